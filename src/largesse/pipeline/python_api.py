"""Python API of campaigns: a run from dataframes and settings, with its numbers, plan and report."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any

from largesse.campaign import CAMPAIGN_SECTIONS, Campaign, parse_campaign, read_campaign
from largesse.data import convert_to_arrow_table, read_table
from largesse.errors import Problem, fail, refuse, suggest
from largesse.levels import Levels
from largesse.pipeline import commands
from largesse.pipeline import run_folder as files
from largesse.pipeline.table_writer import write_table
from largesse.policy import Policy
from largesse.records import Progress
from largesse.worlds import read_thornton, thornton_levels

if TYPE_CHECKING:
    import pyarrow as pa

FRAME_HEIGHT = 800  # of a report in a notebook, in pixels
TOP_SETTINGS = ("title", "unit", "response_unit", "response_value")  # settings at the top of a campaign file
SECTION_OF = {word: name for name, words in CAMPAIGN_SECTIONS.items() if name != "model" for word in words}
SETTING_NAMES = (*TOP_SETTINGS, "levels", "model", "seed", "engine", *SECTION_OF)
LEVEL_SETTINGS = ("costs", "names", "doses", "on_redemption", "contact_cost", "dose_unit")


@dataclass(frozen=True)
class Page:
    """HTML report that notebooks display."""

    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        # A frame separates the style and script of the page from those of the notebook.
        attributes = f'style="width:100%;height:{FRAME_HEIGHT}px;border:0" sandbox="allow-scripts" title="Report"'
        return f'<iframe srcdoc="{escape(self.html)}" {attributes}></iframe>'

    def save(self, path: str | Path) -> None:
        """Write the HTML page to a file."""
        files.check_output_file(path)
        files.write_text(Path(path), self.html)


class Run(dict[str, Any]):
    """Numbers of a run's report by name, with the run's plan, policy and report.

    A run without a folder of its own is in a temporary one, which is removed with the object.
    """

    def __init__(self, numbers: Mapping[str, Any], folder: str | Path, *, temporary: Path | None = None) -> None:
        super().__init__(numbers)
        self.folder = Path(folder)
        if temporary is not None:
            weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)

    def __repr__(self) -> str:
        answer = self.get("answer")
        return f"Run({str(self.folder)!r}{'' if answer is None else ', ' + repr(answer['headline'])})"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()

    @property
    def report(self) -> Page:
        """HTML report of the run."""
        return Page((self.folder / files.REPORT_FILE).read_text(encoding="utf-8"))

    @property
    def plan(self) -> pa.Table:
        """Plan of the run as a table with one row per customer."""
        return read_table(self.folder / files.PLAN_FILE, what="plan", plain=("customer", "level"))

    def plan_as(self, kind: str) -> pa.Table:
        """Return the plan by the policy ("plan"), by the simple "rule" or by one "mix" of levels for all customers."""
        if kind == "plan":
            return self.plan
        with TemporaryDirectory(prefix="largesse-") as folder:
            path = Path(folder) / files.PLAN_FILE
            commands.plan(self.folder, kind=kind, out=path)
            return read_table(path, what="plan", plain=("customer", "level"))

    @property
    def policy(self) -> Policy:
        """Fitted policy, which decides for new customers."""
        return Policy.load(self.folder / files.POLICY_FILE)


def run(
    source: Any,
    out: str | Path | None = None,
    progress: Progress = commands.show_no_progress,
    *,
    table: Any = None,
    customers: Any = None,
    **settings: Any,
) -> Run:
    """Fit, plan, evaluate and report a campaign, and return the run with its numbers, plan and report.

    Parameters
    ----------
    source
        A log, as a dataframe, a dict of columns or a path, with the settings of a campaign file as keywords: at least
        `level`, `response`, `costs` (or `levels`) and `budget`. Or a `Campaign`, or the path of a campaign file.
    out
        The run folder. Without one, the run is kept as long as the returned object.
    progress
        Callback for the progress; or use ``with show_progress():``.
    table
        With a campaign, the log in memory: the folder keeps it.
    customers
        The customers to plan for, as a dataframe or a path; by default those of the log. A dataframe is kept next to the
        run folder, under its name with ``-customers.parquet``.
    settings
        Any setting of a campaign file by its name, such as ``model="quick"``, ``seed=1``, ``unit="€"``,
        ``response_unit="€"``, ``response_value=0.35``.
    """
    engine = settings.pop("engine", commands.LOCAL_ENGINE)
    campaign, table = _read_source(source, table, settings)
    temporary = Path(mkdtemp(prefix="largesse-")) if out is None else None
    folder = temporary / "run" if temporary is not None else Path(str(out))
    try:
        with _write_customers(folder, customers) as path:
            if path is not None:
                campaign = replace(campaign, customers=path)
            numbers = commands.run(campaign, folder, progress, table=table, engine=engine)
    except BaseException:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    return Run(numbers, folder, temporary=temporary)


def show_report(source: Any, **settings: Any) -> Page:
    """Return the report of a run, of a run folder, or of a log after a new run."""
    if isinstance(source, Run):
        return source.report
    if isinstance(source, str | os.PathLike) and not settings:
        page = Path(source) / files.REPORT_FILE
        if not page.is_file():
            fail("report", Problem(f"{source} holds no report", "give a run folder, or a log with level=…, response=…"))
        return Page(page.read_text(encoding="utf-8"))
    return run(source, **settings).report


def _read_source(source: Any, table: Any, settings: dict[str, Any]) -> tuple[Campaign, Any]:
    """Return the campaign of a source, and its log if the log is in memory."""
    if "level" in settings or not isinstance(source, Campaign | str | os.PathLike):
        if table is not None:
            fail("run", Problem("a log and a table are both given", "give the log alone"))
        if isinstance(source, str | os.PathLike):
            return make_campaign(settings, source), None
        return make_campaign(settings), convert_to_arrow_table(source, "log")
    if settings:
        hint = "change the campaign itself, or give a log with level=…, response=…"
        fail("run", Problem(f"a campaign and {', '.join(sorted(settings))} are both given", hint))
    campaign = source if isinstance(source, Campaign) else read_campaign(Path(source))
    if table is None:
        return campaign, None
    return campaign.with_log(files.LOG_FILE), convert_to_arrow_table(table, "log")


def make_campaign(settings: Mapping[str, Any], log: str | os.PathLike[str] | None = None) -> Campaign:
    """Return a campaign from settings by name.

    Without the path of a log, the run folder holds the log.

    >>> make_campaign({"level": "coupon", "response": "bought", "costs": [0, 5], "budget": 1.5}).planning.budget
    1.5
    """
    unknown = [word for word in settings if word not in SETTING_NAMES]
    refuse("run", [Problem(f"{word!r} is not a setting", suggest(word, SETTING_NAMES)) for word in unknown])
    given = {**settings}
    levels = given.pop("levels", None)
    if levels is None and isinstance(given.get("costs"), Mapping):
        levels = given.pop("costs")
    if isinstance(levels, Mapping):
        levels = Levels(levels)
    if isinstance(levels, Levels):
        words = [word for word in LEVEL_SETTINGS if word != "dose_unit" or levels.dose_unit]
        if levels.observed and not any(levels.costs):
            words.remove("costs")
        given = {word: value for word in words if (value := getattr(levels, word)) is not None} | given
    elif levels is not None:
        hint = "give levels=Levels(costs=[0, 5, 10]), or costs=[0, 5, 10]"
        fail("run", Problem(f"levels is a {type(levels).__name__}", hint))
    if given.get("propensity") is not None and not isinstance(given["propensity"], str):
        given["propensities"] = given.pop("propensity")  # of the levels, the same for all customers
    content: dict[str, Any] = {"log": files.LOG_FILE if log is None else os.fspath(log)}
    content |= {word: given.pop(word) for word in TOP_SETTINGS if word in given}
    if model := {word: given.pop(key) for key, word in (("model", "name"), ("seed", "seed")) if key in given}:
        content["model"] = model
    for word, value in given.items():
        value = value.tolist() if hasattr(value, "tolist") else value
        content.setdefault(SECTION_OF[word], {})[word] = list(value) if isinstance(value, tuple) else value
    campaign = parse_campaign(content)
    return campaign if log is not None else campaign.with_log(files.LOG_FILE)


@contextmanager
def _write_customers(folder: Path, customers: Any) -> Iterator[str | None]:
    """Yield the path of a customer table, which is written to a temporary file if it is in memory.

    If the run fails, the table of an earlier run is restored.
    """
    if customers is None or isinstance(customers, str | os.PathLike):
        yield None if customers is None else str(Path(customers).absolute())
        return
    path = folder.absolute().with_name(f"{folder.name}-customers.parquet")
    files.check_output_file(path)
    table = convert_to_arrow_table(customers, "customers")
    earlier = path.with_name(f".{path.name}.earlier")
    if path.exists():
        path.replace(earlier)
    try:
        write_table(table, path)
        yield str(path)
    except BaseException:
        path.unlink(missing_ok=True)
        if earlier.exists():
            earlier.replace(path)
        raise
    earlier.unlink(missing_ok=True)


# -- the demo ---------------------------------------------------------------------------------------------------------


def demo_campaign() -> tuple[Campaign, pa.Table]:
    """Return the demo's campaign and log: Thornton's randomised cash for collecting a test result.

    The budget is half of the cost of the most generous level, which is paid only to those who come.
    """
    import pyarrow.compute as pc

    levels, table = thornton_levels(), read_thornton()
    came = pc.mean(table.filter(pc.equal(table["incentive"], levels.labels[-1]))["got"]).as_py()
    settings = {
        "levels": levels,
        "level": "incentive",
        "response": "got",
        "cluster": "village",
        "customer": "customer",
        "features": ["block", "age", "distance"],
        "budget": round(float(levels.costs[-1]) * came / 2, 2),
        "title": "Cash for collecting a test result (Thornton 2008)",
        "unit": "USD",
    }
    return make_campaign(settings), table
