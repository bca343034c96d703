"""The run folder: the names of its files, and how they are written and read back.

`campaign.toml` has every default spelt out. `policy.largesse`, `plan.parquet`, `frontier.parquet` and `scores.parquet` are for machines,
`report.html` is for people, and `fit.json`, `plan.json` and `evaluation.json` are the numbers behind the report, one
file per step. They belong together: a command that changes the folder makes a new one beside it, without what no longer
belongs, and lets it take the old one's place in one step. The same seed gives the same bytes.
"""

from __future__ import annotations

import filecmp
import json
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from largesse.campaign import Campaign
from largesse.data import CODED, open_batches
from largesse.errors import InputError, LargesseError, Problem, fail, join_some, refuse
from largesse.evaluation import summarise_plan, summarise_study
from largesse.io import (
    Batch,
    atomic_file,
    atomic_folder,
    can_recover,
    hold_folder,
    read_record,
    refuse_foreign,
    resolve_file,
    resolve_folder,
    to_json,
    where_is,
)
from largesse.pipeline.engine import PlanResult, ScoredCustomers, Target
from largesse.pipeline.scores_cache import make_key, tabulate_scores
from largesse.pipeline.write import write_table
from largesse.progress import advance, start_stage
from largesse.records import (
    Estimate,
    FitSummary,
    FrontierPoint,
    HeldOut,
    Log,
    Plan,
    PlanSummary,
    Progress,
    Propensities,
    Study,
    StudySummary,
    summarise_fit,
)
from largesse.report import render_report
from largesse.response import ResponseModel, WithCosts, describe_model


@dataclass(frozen=True)
class Part:
    """The numbers that one step leaves for the report."""

    file: str
    step: str  # the command that writes it
    record: type[Any]  # whose annotations are its schema


CAMPAIGN, LOG, POLICY, REPORT = "campaign.toml", "log.parquet", "policy.largesse", "report.html"
PLAN, FRONTIER, SCORES = "plan.parquet", "frontier.parquet", "scores.parquet"
FIT_PART = Part("fit.json", "fit", FitSummary)
PLAN_PART = Part("plan.json", "plan", PlanSummary)
EVALUATION_PART = Part("evaluation.json", "evaluate", StudySummary)
FORMAT = 3  # of these parts
MOST_BYTES = 2**26  # of a part
PARTS = (FIT_PART, PLAN_PART, EVALUATION_PART)
# A folder with the first two and nothing that is not listed is a run folder: it may be replaced.
MARKS = (CAMPAIGN, POLICY)
FILES = frozenset((*MARKS, LOG, PLAN, FRONTIER, SCORES, REPORT, *(part.file for part in PARTS)))
TABLE_ENDINGS = (".parquet", ".pq", ".csv", ".feather", ".arrow")


def replace_run_folder(out: str | Path) -> AbstractContextManager[Path]:
    """Give a temporary folder to fill; it takes the place of `out`, which may be an earlier run folder."""
    return atomic_folder(out, marks=MARKS, files=FILES)


@contextmanager
def hold_run_folder(folder: str | Path) -> Iterator[Path]:
    """Give the path of a run folder, or refuse what is not one; other commands wait while the block lasts."""
    path = Path(folder)
    if not can_recover(path):
        open_run_folder(path)
    with hold_folder(path):
        yield open_run_folder(path)


@contextmanager
def look_into_run_folder(folder: str | Path) -> Iterator[Path]:
    """Give the path of a run folder that is only read; refuse it if another command replaces it meanwhile."""
    path = Path(folder)
    if can_recover(path):
        with hold_folder(path):
            pass
    before = _identify(open_run_folder(path))
    yield path
    if before != _identify(path):
        fail("run folder", Problem(f"{path} was changed while it was read", "try again"))


def _identify(path: Path) -> tuple[int, ...]:
    """Return what tells a folder from one that took its place."""
    found = path.stat() if path.exists() else None
    return () if found is None else (found.st_dev, found.st_ino, found.st_mtime_ns)


def renew_run_folder(batch: Batch, folder: Path) -> Path:
    """Return a new folder, with all that the run folder holds, that will take its place; the caller holds it."""
    return batch.add_folder(folder, FILES, renew=True)


def check_output(campaign: Campaign, out: str | Path, *, own_log: bool = False) -> None:
    """Refuse to replace what is no run folder or holds what the campaign reads; with `own_log` it brings its own log."""
    target = resolve_folder(out)
    inputs = [campaign.customers, None if own_log else campaign.log]
    problems = [
        Problem(f"{path} lies in {target}, which would be replaced", "give another --out, or move the file")
        for path in inputs
        if path is not None and target in (where_is(path), *where_is(path).parents) and target.is_dir()
    ]
    refuse("output", problems)
    refuse_foreign(out, MARKS, FILES)


def check_file(out: str | Path | None, *inputs: str | None, own: str = "") -> None:
    """Refuse to write over something that is not a regular file, an input, or a run folder's file other than `own`."""
    if out is None:
        return
    target = resolve_file(out)
    if any(name is not None and target == where_is(name) for name in inputs if target.exists()):
        fail("output", Problem(f"{out} is what is read", "give another --out"))
    inside = all((target.parent / mark).is_file() for mark in MARKS)
    if inside and target.name in FILES - {own}:
        fail("output", Problem(f"{out} is a part of a run folder", "give another --out"))


def check_table(out: str | Path | None, *inputs: str | None, own: str = PLAN) -> None:
    """Refuse to write a table to a name whose ending is not the name of a format, or where it must not be written."""
    if out is not None and Path(out).suffix.lower() not in TABLE_ENDINGS:
        fail("output", Problem(f"{out} has an ending that names no table format", f"use {', '.join(TABLE_ENDINGS)}"))
    check_file(out, *inputs, own=own)


def open_run_folder(folder: str | Path) -> Path:
    """Return the path of a run folder, or refuse what is not one."""
    path = Path(folder)
    missing = [mark for mark in MARKS if not (path / mark).is_file()]
    if missing:
        fail("run folder", _tell_missing(path, missing))
    return path


def _tell_missing(path: Path, missing: list[str]) -> Problem:
    hint = "largesse fit or largesse run makes one"
    if not path.exists():
        near = sorted(one.parent.name for one in path.absolute().parent.glob(f"*/{POLICY}"))
        return Problem(f"there is no folder {path}", f"run folders beside it: {join_some(near)}" if near else hint)
    if CAMPAIGN not in missing:
        hint = f"a part of it was removed; make a new one: {_run_again(path)}"
    return Problem(f"{path} is not a run folder (it holds no {missing[0]})", hint)


def _run_again(folder: Path) -> str:
    return f"largesse run {folder / CAMPAIGN} --out …"


# -- writing ----------------------------------------------------------------------------------------------------------


def write_campaign(folder: Path, campaign: Campaign) -> None:
    """Write the campaign with every default spelt out."""
    write_text(folder / CAMPAIGN, campaign.text)


def write_log(path: Path, table: Any) -> None:
    """Keep a log: a table in memory, or a Parquet file, of which the folder gets a second name or a copy."""
    if not isinstance(table, Path):
        write_table(table, path)
        return
    try:
        os.link(table, path)
    except OSError:  # another disk, or one without such names
        shutil.copyfile(table, path)


def bring_log(campaign: Campaign, target: Path) -> Path:
    """Write the log of a campaign, as its roles say how to read it, to one Parquet file; return the path of that.

    A log that is a Parquet file stays where it is.
    """
    import pyarrow.parquet as pq

    source = Path(campaign.log)
    if source.is_file() and source.suffix.lower() in (".parquet", ".pq"):
        return source
    parse, features = campaign.roles.get("parse") or {}, campaign.roles.get("features") or ()
    coded = {campaign.columns[role] for role in CODED if role in campaign.columns} - {*features}
    texts = [name for name, way in parse.items() if way == "text"]
    batches = open_batches(source, what="log", plain=coded, texts=texts)
    if not batches.rows:
        refuse("log", [Problem("it has no rows", "was the export filtered to nothing?")])
    start_stage("reading", batches.rows)
    done = 0
    with atomic_file(target) as part, part.open("wb") as sink, pq.ParquetWriter(sink, batches.schema) as writer:
        for table in batches.read():
            writer.write_table(table)
            done += len(table)
            advance(done / batches.rows)
    return target


def write_fit(folder: Path, model: ResponseModel, log: Log) -> dict[str, Any]:
    """Write what was learnt, and return it as it is written."""
    name = type(model.model_ if isinstance(model, WithCosts) else model).__name__
    return write_part(folder, FIT_PART, summarise_fit(name, describe_model(name), model.choices_, log))


def write_plan(
    folder: Path,
    result: PlanResult,
    customers: ScoredCustomers,
    progress: Progress,
    out: str | Path | None = None,
    *,
    raw_ids: bool = False,
) -> dict[str, Any]:
    """Write the plan (to `out`, too, if given) and its policy; return the numbers for the report as they are written.

    CSV is for spreadsheets: text that would begin a formula there is escaped, unless ids are wanted raw.
    """
    if (folder / PLAN).is_dir():  # a cluster writes a folder of parts
        shutil.rmtree(folder / PLAN)
    paths = (folder / PLAN, *([Path(out)] if out else []))
    targets = [Target(path, path.suffix.lower() == ".csv" and not raw_ids) for path in paths]
    counts = customers.write(result, targets, progress)
    result.policy.save(folder / POLICY)
    summary = summarise_plan(
        result.plan,
        result.policy.levels.titles,
        counts,
        confidence=result.confidence,
        shadow=result.plan.shadow if isinstance(result.plan, Plan) else {},
        points=result.points,
        excuse=result.excuse,
        exploration=result.exploration,
    )
    return write_part(folder, PLAN_PART, summary)


def write_study(folder: Path, study: Study) -> dict[str, Any]:
    """Write the frontier, and the evaluation; return the latter as it is written."""
    write_table(_frontier_table(study.frontier), folder / FRONTIER)
    return write_part(folder, EVALUATION_PART, summarise_study(study))


def write_scores(folder: Path, campaign: Campaign, log: Log, held: HeldOut, propensities: Propensities | None) -> None:
    """Cache what does not depend on the budget: out-of-fold curves and, where the log was examined, its propensities."""
    write_table(tabulate_scores(make_key(campaign, log), held, propensities), folder / SCORES)


def write_report(folder: Path, shown: dict[str, Any], out: str | Path | None = None) -> None:
    """Write the page (to `out`, if given)."""
    write_text(Path(out) if out else folder / REPORT, render_report(shown))


def drop_outdated(new: Path, before: Path, *, apart: bool = False) -> list[str]:
    """Leave out an evaluation of another budget than the plan's, and a report of other numbers than those beside it.

    `apart`: the evaluation is of another plan for some other reason. Returns what was left out.
    """
    if apart or not _are_together(new):
        for name in (EVALUATION_PART.file, FRONTIER):
            (new / name).unlink(missing_ok=True)
    told = FILES - {LOG, SCORES, REPORT}
    if any(not _is_same(new / name, before / name) for name in told):
        (new / REPORT).unlink(missing_ok=True)
    return [name for name in (EVALUATION_PART.file, REPORT) if (before / name).exists() and not (new / name).exists()]


def have_same_budget(planned: dict[str, Any], judged: dict[str, Any]) -> bool:
    """Whether a plan and an evaluation are for one budget, up to rounding."""
    average, budget = planned["budget"]["average"], judged["budget"]
    if average is None or budget is None:
        return average is budget
    return math.isclose(average, budget, rel_tol=1e-6)


def _are_together(folder: Path) -> bool:
    """Whether plan and evaluation are for one budget; an evaluation without a plan stands for itself."""
    if not (folder / PLAN_PART.file).exists():
        return True
    try:
        return have_same_budget(read_part(folder, PLAN_PART), read_part(folder, EVALUATION_PART))
    except (InputError, KeyError, TypeError):  # one is missing or damaged
        return False


def _is_same(first: Path, second: Path) -> bool:
    if not first.is_file() or not second.is_file():
        return first.is_file() == second.is_file()
    return filecmp.cmp(first, second, shallow=False)


def write_text(path: Path, text: str) -> None:
    """Write a text file, all of it or nothing."""
    with atomic_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_part(folder: Path, part: Part, summary: Any) -> dict[str, Any]:
    """Write a record as JSON, and return what reading it back would give."""
    plain: dict[str, Any] = to_json(summary)
    kept = {"format": FORMAT, **plain}
    write_text(folder / part.file, json.dumps(kept, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return plain


def _frontier_table(points: tuple[FrontierPoint, ...]) -> Any:
    """Return one row per budget: spend and value with their intervals, the band, the promise and the price."""
    import pyarrow as pa

    rows = [
        {
            "budget": point.budget,
            **_interval_columns("spend", point.spend),
            **_interval_columns("value", point.value),
            "band_low": point.band[0],
            "band_high": point.band[1],
            "promise": point.promise,
            "price": point.price,
            **({} if point.profit is None else _interval_columns("profit", point.profit)),
        }
        for point in points
    ]
    return pa.table({name: [row[name] for row in rows] for name in rows[0]})


def _interval_columns(name: str, found: Estimate) -> dict[str, float]:
    return {name: found.estimate, f"{name}_low": found.low, f"{name}_high": found.high}


# -- reading ----------------------------------------------------------------------------------------------------------


def read_part(folder: Path, part: Part) -> dict[str, Any]:
    """Read the numbers that a step left, or say which step is missing."""
    path, hint = folder / part.file, f"run largesse {part.step} again"
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(MOST_BYTES), parse_constant=_refuse_constant)
    except FileNotFoundError as error:
        step = _run_again(folder) if part.step == "fit" else f"largesse {part.step} {folder} …"
        missing = Problem(f"{folder} has no {part.file} yet", f"run: {step}")
        raise InputError("run folder", [missing]) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError("run folder", [Problem(f"{path} is damaged", hint)]) from error
    if not isinstance(found, dict):
        fail("run folder", Problem(f"{path} is damaged", hint))
    if found.pop("format", None) != FORMAT:
        fail("run folder", Problem(f"{path} was written by another version of largesse", hint))
    try:
        read_record(part.record, found)
    except ValueError as error:
        raise InputError("run folder", [Problem(f"{path} is damaged: {error}", hint)]) from error
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


@contextmanager
def expect_numbers(folder: Path) -> Iterator[None]:
    """Refuse a run folder whose numbers make the block fail: each of the right kind, they may still not fit together."""
    try:
        yield
    except LargesseError:
        raise
    except Exception as error:
        names = ", ".join(part.file for part in PARTS)
        got = f"the numbers in {names} of {folder} do not fit together"
        raise InputError("run folder", [Problem(got, "run largesse run again")]) from error
