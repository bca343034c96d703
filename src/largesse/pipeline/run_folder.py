"""Run folder: names, readers and writers of its files.

`campaign.toml` has every default spelt out. `policy.largesse`, `plan.parquet`, `frontier.parquet` and `scores.parquet` are for machines,
`report.html` is for people, and `fit.json`, `plan.json` and `evaluation.json` are the numbers behind the report, one
file per step. A command that changes the folder makes a new one next to it, without outdated files, and replaces the old one in
one step. The same seed gives the same bytes.
"""

from __future__ import annotations

import filecmp
import json
import math
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from largesse.campaign import Campaign
from largesse.data import PLAIN_TEXT_ROLES, open_batches
from largesse.errors import InputError, LargesseError, Problem, fail, join_some, refuse
from largesse.evaluation import summarise_plan, summarise_study
from largesse.io import (
    FileTransaction,
    atomic_file,
    atomic_folder,
    can_recover_folder,
    from_json,
    hold_folder,
    read_record,
    refuse_foreign_folder,
    resolve_links,
    resolve_output_file,
    resolve_output_folder,
    to_json,
)
from largesse.pipeline.engine_protocol import PlanOutputFile, PlanResult, ScoredCustomers
from largesse.pipeline.out_of_fold_cache import make_cache_key, tabulate_scores
from largesse.pipeline.table_writer import write_table
from largesse.policy import describe_planned_groups
from largesse.progress import advance, start_stage
from largesse.records import (
    Estimate,
    Finding,
    FitSummary,
    HeldOutPredictions,
    Log,
    Plan,
    PlanSummary,
    Progress,
    Propensities,
    Study,
    StudySummary,
    summarise_fit,
)
from largesse.response import ResponseModel, WithCosts, describe_model


@dataclass(frozen=True)
class RunStep:
    """Step of a run and the file with its numbers."""

    file: str
    command: str
    record: type[Any]  # whose annotations are the schema of the file


CAMPAIGN_FILE, LOG_FILE, POLICY_FILE, REPORT_FILE = "campaign.toml", "log.parquet", "policy.largesse", "report.html"
PLAN_FILE, FRONTIER_FILE, SCORES_FILE = "plan.parquet", "frontier.parquet", "scores.parquet"
FIT_STEP = RunStep("fit.json", "fit", FitSummary)
PLANNING_STEP = RunStep("plan.json", "plan", PlanSummary)
EVALUATION_STEP = RunStep("evaluation.json", "evaluate", StudySummary)
RUN_STEPS = (FIT_STEP, PLANNING_STEP, EVALUATION_STEP)
RUN_FORMAT = 4  # of the files of steps
MAX_STEP_BYTES = 2**26  # of such a file
# A folder with both marks and no file that is not listed is a run folder: it may be replaced.
RUN_FOLDER_MARKS = (CAMPAIGN_FILE, POLICY_FILE)
RUN_FILES = frozenset(
    (
        *RUN_FOLDER_MARKS,
        LOG_FILE,
        PLAN_FILE,
        FRONTIER_FILE,
        SCORES_FILE,
        REPORT_FILE,
        *(step.file for step in RUN_STEPS),
    )
)
PLAN_TABLE_ENDINGS = (".parquet", ".pq", ".csv", ".feather", ".arrow")


def replace_run_folder(out: str | Path) -> AbstractContextManager[Path]:
    """Yield a temporary folder that replaces a run folder when the with-block succeeds."""
    return atomic_folder(out, marks=RUN_FOLDER_MARKS, files=RUN_FILES)


@contextmanager
def hold_run_folder(folder: str | Path) -> Iterator[Path]:
    """Yield the path of a run folder that is locked until the with-block ends."""
    path = Path(folder)
    if not can_recover_folder(path):
        open_run_folder(path)
    with hold_folder(path):
        yield open_run_folder(path)


@contextmanager
def read_run_folder(folder: str | Path) -> Iterator[Path]:
    """Yield the path of a run folder for reading, and raise an error if it is replaced meanwhile."""
    path = Path(folder)
    if can_recover_folder(path):
        with hold_folder(path):
            pass
    before = open_run_folder(path).stat()
    yield path
    after = path.stat() if path.exists() else None
    if after is None or not os.path.samestat(before, after) or before.st_mtime_ns != after.st_mtime_ns:
        fail("run folder", Problem(f"{path} was changed while it was read", "try again"))


def copy_run_folder(batch: FileTransaction, folder: Path) -> Path:
    """Return a temporary copy of a locked run folder that will replace it."""
    return batch.add_folder(folder, RUN_FILES, renew=True)


def check_output_folder(campaign: Campaign, out: str | Path, *, own_log: bool = False) -> None:
    """Raise an error for an output folder that is not a run folder or that holds inputs of the campaign.

    `own_log` exempts the log.
    """
    target = resolve_output_folder(out)
    inputs = [campaign.customers, None if own_log else campaign.log]
    problems = [
        Problem(f"{path} lies in {target}, which would be replaced", "give another --out, or move the file")
        for path in inputs
        if path is not None and target in (resolve_links(path), *resolve_links(path).parents) and target.is_dir()
    ]
    refuse("output", problems)
    refuse_foreign_folder(out, RUN_FOLDER_MARKS, RUN_FILES)


def check_output_file(out: str | Path | None, *inputs: str | None, own: str = "") -> None:
    """Raise an error if an output path is an input, a file of a run folder, or not a regular file.

    A file of a run folder named `own` is allowed.
    """
    if out is None:
        return
    target = resolve_output_file(out)
    if any(name is not None and target == resolve_links(name) for name in inputs if target.exists()):
        fail("output", Problem(f"{out} is what is read", "give another --out"))
    inside = all((target.parent / mark).is_file() for mark in RUN_FOLDER_MARKS)
    if inside and target.name in RUN_FILES - {own}:
        fail("output", Problem(f"{out} is a part of a run folder", "give another --out"))


def check_table_path(out: str | Path | None, *inputs: str | None, own: str = PLAN_FILE) -> None:
    """Raise an error for an output table with an unknown file type or a path that must not be replaced."""
    if out is not None and Path(out).suffix.lower() not in PLAN_TABLE_ENDINGS:
        fail(
            "output", Problem(f"{out} has an ending that names no table format", f"use {', '.join(PLAN_TABLE_ENDINGS)}")
        )
    check_output_file(out, *inputs, own=own)


def differs_from_plan_file(out: str | Path, home: Path) -> bool:
    """Test if an output path differs from the plan file of a run folder."""
    return resolve_output_file(out) != resolve_output_file(home / PLAN_FILE)


def open_run_folder(folder: str | Path) -> Path:
    """Return the path of a run folder, or raise an error for any other folder."""
    path = Path(folder)
    missing = [mark for mark in RUN_FOLDER_MARKS if not (path / mark).is_file()]
    hint = "largesse fit or largesse run makes one"
    if not path.exists():
        near = sorted(policy.parent.name for policy in path.absolute().parent.glob(f"*/{POLICY_FILE}"))
        hint = f"run folders next to it: {join_some(near)}" if near else hint
        fail("run folder", Problem(f"there is no folder {path}", hint))
    if missing:
        if CAMPAIGN_FILE not in missing:
            hint = f"a part of it was removed; make a new one: largesse run {path / CAMPAIGN_FILE} --out …"
        fail("run folder", Problem(f"{path} is not a run folder (it holds no {missing[0]})", hint))
    return path


# -- writing ----------------------------------------------------------------------------------------------------------


def write_log(path: Path, table: Any) -> None:
    """Write a log from a table in memory, or link or copy a Parquet file."""
    if not isinstance(table, Path):
        write_table(table, path)
        return
    try:
        os.link(table, path)
    except OSError:  # another disk, or one without such names
        shutil.copyfile(table, path)


def convert_log_to_parquet(campaign: Campaign, target: Path) -> Path:
    """Write a campaign's log to one Parquet file, and return its path.

    A log that is a Parquet file stays where it is.
    """
    import pyarrow.parquet as pq

    source = Path(campaign.log)
    if source.is_file() and source.suffix.lower() in (".parquet", ".pq"):
        return source
    parse, features = campaign.roles.get("parse") or {}, campaign.roles.get("features") or ()
    coded = {campaign.columns[role] for role in PLAIN_TEXT_ROLES if role in campaign.columns} - {*features}
    texts = [name for name, way in parse.items() if way == "text"]
    batches = open_batches(campaign.source, what="log", plain=coded, texts=texts)
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


def write_fit_summary(folder: Path, model: ResponseModel, log: Log) -> dict[str, Any]:
    """Write the summary of a fitted model and its log, and return it as JSON types."""
    name = type(model.model_ if isinstance(model, WithCosts) else model).__name__
    return write_step(folder, FIT_STEP, summarise_fit(name, describe_model(name), model.choices_, log))


def write_plan(
    folder: Path,
    result: PlanResult,
    customers: ScoredCustomers,
    progress: Progress,
    out: str | Path | None = None,
    *,
    raw_ids: bool = False,
    customer_warnings: Sequence[Finding] = (),
) -> dict[str, Any]:
    """Write a plan and its policy into a run folder, and return the plan's numbers for the report.

    In CSV, text that would begin a formula is escaped, unless ids are wanted raw.
    """
    if (folder / PLAN_FILE).is_dir():  # a cluster writes a folder of parts
        shutil.rmtree(folder / PLAN_FILE)
    paths = (folder / PLAN_FILE, *([Path(out)] if out else []))
    targets = [PlanOutputFile(path, path.suffix.lower() == ".csv" and not raw_ids) for path in paths]
    counts = customers.write_plan_tables(result, targets, progress)
    result.policy.save(folder / POLICY_FILE)
    summary = summarise_plan(
        result.plan,
        result.policy.levels.titles,
        counts,
        confidence=result.confidence,
        shadow=result.plan.shadow if isinstance(result.plan, Plan) else {},
        points=result.points,
        excuse=result.excuse,
        exploration=result.exploration,
        customer_warnings=customer_warnings,
        groups=describe_planned_groups(result.policy.model.encoder_, *customers.sample_levels(result)),
    )
    return write_step(folder, PLANNING_STEP, summary)


def write_evaluation(folder: Path, study: Study) -> dict[str, Any]:
    """Write the frontier and the evaluation of a plan, and return the evaluation as JSON types."""
    import pyarrow as pa

    def record_interval(name: str, estimate: Estimate | None) -> dict[str, float]:
        if estimate is None:
            return {}
        return {name: estimate.estimate, f"{name}_low": estimate.low, f"{name}_high": estimate.high}

    rows = [
        {"budget": point.budget}
        | record_interval("spend", point.spend)
        | record_interval("value", point.value)
        | {"band_low": point.band[0], "band_high": point.band[1], "promise": point.promise, "price": point.price}
        | record_interval("profit", point.profit)
        for point in study.frontier
    ]
    write_table(pa.table({name: [row[name] for row in rows] for name in rows[0]}), folder / FRONTIER_FILE)
    return write_step(folder, EVALUATION_STEP, summarise_study(study))


def write_scores(
    folder: Path, campaign: Campaign, log: Log, held: HeldOutPredictions, propensities: Propensities | None
) -> None:
    """Write the cache of out-of-fold predictions and propensities into a run folder."""
    write_table(tabulate_scores(make_cache_key(campaign, log), held, propensities), folder / SCORES_FILE)


def remove_outdated_results(new: Path, before: Path, *, other_plan: bool = False) -> list[str]:
    """Remove outdated evaluation and report files from a run folder, and return their names."""
    if other_plan or not _is_consistent(new):
        for name in (EVALUATION_STEP.file, FRONTIER_FILE):
            (new / name).unlink(missing_ok=True)
    if any(not _is_same_file(new / name, before / name) for name in RUN_FILES - {LOG_FILE, SCORES_FILE, REPORT_FILE}):
        (new / REPORT_FILE).unlink(missing_ok=True)
    return [
        name for name in (EVALUATION_STEP.file, REPORT_FILE) if (before / name).exists() and not (new / name).exists()
    ]


def have_same_budget(planned: dict[str, Any], judged: dict[str, Any]) -> bool:
    """Return True if a plan and an evaluation have the same budget up to rounding."""
    average, budget = planned["budget"]["average"], judged["budget"]
    if average is None or budget is None:
        return average is budget
    return math.isclose(average, budget, rel_tol=1e-6)


def _is_consistent(folder: Path) -> bool:
    """Return True if a run folder's plan and evaluation have the same budget, or the plan is missing."""
    if not (folder / PLANNING_STEP.file).exists():
        return True
    try:
        return have_same_budget(read_step(folder, PLANNING_STEP), read_step(folder, EVALUATION_STEP))
    except (InputError, KeyError, TypeError):  # one is missing or damaged
        return False


def _is_same_file(first: Path, second: Path) -> bool:
    if not first.is_file() or not second.is_file():
        return first.is_file() == second.is_file()
    return filecmp.cmp(first, second, shallow=False)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_step(folder: Path, step: RunStep, summary: Any) -> dict[str, Any]:
    """Write the numbers of a run's step as JSON, and return them as JSON types."""
    numbers: dict[str, Any] = to_json(summary)
    text = json.dumps({"format": RUN_FORMAT, **numbers}, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(folder / step.file, text + "\n")
    return numbers


# -- reading ----------------------------------------------------------------------------------------------------------


def read_step(folder: Path, step: RunStep) -> dict[str, Any]:
    """Read the numbers of a run's step, or raise an error for a missing or damaged file."""
    path, hint = folder / step.file, f"run largesse {step.command} again"
    try:
        with path.open("rb") as file:
            numbers = from_json(file.read(MAX_STEP_BYTES))
        if not isinstance(numbers, dict):
            raise ValueError("not an object")
    except FileNotFoundError as error:
        first = f"run {folder / CAMPAIGN_FILE} --out" if step is FIT_STEP else f"{step.command} {folder}"
        missing = Problem(f"{folder} has no {step.file} yet", f"run: largesse {first} …")
        raise InputError("run folder", [missing]) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError("run folder", [Problem(f"{path} is damaged", hint)]) from error
    if numbers.pop("format", None) != RUN_FORMAT:
        fail("run folder", Problem(f"{path} was written by another version of largesse", hint))
    try:
        read_record(step.record, numbers)
    except ValueError as error:
        raise InputError("run folder", [Problem(f"{path} is damaged: {error}", hint)]) from error
    return numbers


@contextmanager
def refuse_contradicting_numbers(folder: Path) -> Iterator[None]:
    """Convert errors of a with-block that reads a run folder to an error about contradicting numbers in it.

    Valid numbers may still contradict each other.
    """
    try:
        yield
    except LargesseError:
        raise
    except Exception as error:
        names = ", ".join(step.file for step in RUN_STEPS)
        got = f"the numbers in {names} of {folder} do not fit together"
        raise InputError("run folder", [Problem(got, "run largesse run again")]) from error
