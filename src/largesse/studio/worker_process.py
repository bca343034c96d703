"""Worker process of the studio: tasks read from standard input, results and progress written to standard output.

The studio can stop it at any time: it leaves its task by an exception, so that half-written folders are cleaned up. It also
stops when its input ends, because then the studio has gone. Tasks call the functions of the command line.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import signal
import sys
import threading
import time
import tomllib
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from largesse import pipeline
from largesse.campaign import Campaign, TableProfile, parse_campaign, profile_table, read_campaign
from largesse.errors import InputError, LargesseError, Problem
from largesse.progress import ProgressTracker, report_to, start_stage
from largesse.serve import write_json
from largesse.studio.background_jobs import STOP_SECONDS
from largesse.studio.draft_json import (
    assign_roles,
    convert_draft_to_campaign,
    describe_inspected_table,
    describe_problems,
    list_segments,
)
from largesse.studio.runs_and_what_ifs import list_level_shares

MAX_PROFILE_BYTES = 1 << 27  # of a table that is read only to offer its columns for rules
REPORT_SECONDS = 0.2  # between two reports of progress


# -- tasks -------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _inspect_cached_table(path: str, _size: int, _changed: int) -> TableProfile:
    return profile_table(path)


def load_table_profile(path: str) -> TableProfile:
    """Load the profile of a table (column types and values); the last profile is cached."""
    status = Path(path).stat()
    return _inspect_cached_table(path, status.st_size, status.st_mtime_ns)


def inspect_file(path: str, roles: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Inspect a table with given column roles, by default guessed roles; return the inspection as JSON types."""
    start_stage("looking at the table")
    profile = load_table_profile(path)
    if roles is not None:
        return describe_inspected_table(*assign_roles(profile, roles), roles.get("protected") or ())
    guessed = profile.make_draft()
    return describe_inspected_table(guessed, guessed.features)


def write_example_log(path: str) -> dict[str, Any]:
    """Write the demo's log to a path and inspect it, with the settings of the demo's campaign."""
    import pyarrow.parquet as pq

    campaign, table = pipeline.demo_campaign()
    pq.write_table(table, path)
    return _inspect_campaign_log(path, campaign) | {
        "suggested_costs": list(campaign.levels.costs),
        "suggested_budget": campaign.planning.budget,
        "suggested_on_redemption": bool(campaign.levels.on_redemption),
        "suggested_unit": campaign.unit,
        "suggested_title": campaign.title,
    }


def inspect_run_log(path: str, folder: str) -> dict[str, Any]:
    """Inspect the log of an earlier run, and return a campaign draft with the run's settings."""
    campaign = read_campaign(Path(folder))
    plan = tomllib.loads(campaign.text)["plan"]
    spent = {key: plan.pop(key) for key in ("budget", "total") if key in plan}
    kind = "total" if "total" in spent else "budget"
    costs = campaign.levels.common_costs
    draft = {
        "names": list(campaign.levels.labels),
        "settled": True,
        "costs": {}
        if costs is None
        else {label: f"{cost:g}" for label, cost in zip(campaign.levels.labels, costs, strict=True)},
        "contact": f"{campaign.levels.contact_cost:g}" if campaign.levels.contact_cost else "",
        "onRedemption": campaign.levels.on_redemption is True,
        "kind": kind,
        "budget": f"{spent[kind]:.12g}" if kind in spent else "",
        "unit": campaign.unit,
        "responseUnit": campaign.response_unit,
        "responseValue": "" if campaign.response_value is None else f"{campaign.response_value:.12g}",
        "model": campaign.model,
        "seed": campaign.seed,
        "title": campaign.title,
        "parse": dict(campaign.roles.get("parse") or {}),
        "labels": "\n".join(f"{name} = {label}" for name, label in campaign.labels.items()),
        "customers": _find_customers_file(campaign.customers, folder),
        "plan": plan,
    }
    return _inspect_campaign_log(path, campaign) | {"draft": draft}


def _find_customers_file(table: str | None, folder: str) -> str:
    """Return the name of a run's customer table if it lies in the studio's folder; empty otherwise."""
    return Path(table).name if table is not None and Path(table).parent == Path(folder).absolute().parent else ""


def write_simpler_plan(folder: str, kind: str, out: str) -> dict[str, Any]:
    """Write a run's simple rule, or its mix of levels for all customers, as a plan in a CSV file."""
    with report_to(None) as progress:
        pipeline.plan(folder, kind=kind, out=out, progress=progress)
    return {"file": out}


def _inspect_campaign_log(path: str, campaign: Campaign) -> dict[str, Any]:
    """Inspect the log of a campaign, with the campaign's column roles and order of levels."""
    roles: dict[str, Any] = dict(campaign.roles)
    listed = {word: list(roles.get(word) or ()) for word in ("features", "protected")}
    inspection = inspect_file(path, {**campaign.columns, **listed})
    levels = {level["name"]: level for level in inspection["levels"] or ()}
    known = [levels[label] for label in campaign.levels.labels if label in levels]
    return inspection | {"levels": known, "order_known": True} if len(known) == len(levels) else inspection


def check_draft(path: str, draft: dict[str, Any], keeps_log: bool, checkup: bool = False) -> dict[str, Any]:
    """Check a draft; return its problems, or its campaign file as text.

    `toml` is for a run folder that keeps the log, `now` for the log's present place.
    """
    try:
        campaign = convert_draft_to_campaign(draft, load_table_profile(path), path, checkup=checkup)
    except InputError as error:
        return {"toml": None, "now": None, "problems": describe_problems(error.problems)}
    moved = campaign.with_log(pipeline.LOG_FILE) if keeps_log else campaign
    return {"toml": moved.text, "now": campaign.text, "problems": []}


def examine_log(toml: str) -> dict[str, Any]:
    """Check the log of a campaign before a run; return the findings as JSON types."""
    with report_to(None) as progress:
        numbers = pipeline.examine(parse_campaign(tomllib.loads(toml)), progress=progress)
    return {
        "verdict": numbers["answer"],
        "headline": numbers["headline"],
        "findings": [
            {"verdict": check["answer"], "title": check["topic"], "text": check["text"], "hint": ""}
            for check in numbers["support"]["checks"]
        ],
        "levels": [
            {
                "name": level["name"],
                "rows": level["rows"],
                "response": level["raw"]["estimate"],
                "interval": [level["raw"]["low"], level["raw"]["high"]],
            }
            for level in numbers["curve"]["levels"]
        ],
        "notes": numbers["notes"],
    }


def run_campaign(toml: str, out: str, private: str, keeps_log: bool) -> dict[str, Any]:
    """Run a campaign in a new run folder; with `keeps_log`, its log moves into the run folder."""
    campaign, folder, log = parse_campaign(tomllib.loads(toml)), Path(out), None
    pipeline.refuse_existing_path(folder)
    if keeps_log:
        log = pipeline.convert_log_to_parquet(campaign, Path(private) / pipeline.LOG_FILE)
        campaign = campaign.with_log(pipeline.LOG_FILE)
        pipeline.refuse_existing_path(folder)
    pipeline.run(campaign, out, table=log)
    return {"run": folder.name}


def describe_rule_columns(folder: str) -> dict[str, Any]:
    """Return the columns that a run's constraints can name, and the values of columns with few values.

    Both are empty for a large table.
    """
    campaign = read_campaign(Path(folder))
    path = Path(campaign.customers or campaign.log)
    if not path.is_file() or path.stat().st_size > MAX_PROFILE_BYTES:
        return {"columns": [], "segments": {}}
    profile = load_table_profile(str(path))
    # A plan for a log's own customers knows its features alone.
    features = list(campaign.roles.get("features") or ()) if campaign.customers is None else None
    taken = {*campaign.columns.values(), *(campaign.levels.cost_columns or ())}
    names = [name for name in profile.columns if name not in taken and (not features or name in features)]
    return {"columns": names, "segments": list_segments(profile, names)}


def plan_what_if(folder: str, out: str, rules: dict[str, Any]) -> dict[str, Any]:
    """Plan a run again under other constraints, with the run's model; return the plan as JSON types."""
    with report_to(None) as progress:
        numbers = pipeline.try_plan(folder, Path(out), rules, progress=progress)
    campaign, log = read_campaign(Path(out)), Path(folder) / pipeline.LOG_FILE
    moved = campaign.with_log(pipeline.LOG_FILE) if Path(campaign.log) == log.absolute() else campaign
    budget = numbers["budget"]
    return {
        "planned": {**numbers["planned"], "budget": budget["average"], "total": budget["total"]},
        "levels": list_level_shares(numbers, campaign.levels),
        "segments": numbers["segments"],
        "shadow": numbers.get("shadow", {}),
        "customers": numbers["customers"],
        "toml": moved.text,
    }


def keep_what_if(folder: str, tried: str, out: str) -> dict[str, Any]:
    """Save a what-if plan as a new run folder."""
    with report_to(None) as progress:
        pipeline.save_tried_plan(folder, Path(tried), Path(out), progress=progress)
    return {"run": Path(out).name}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "inspect": inspect_file,
    "example": write_example_log,
    "again": inspect_run_log,
    "campaign": check_draft,
    "doctor": examine_log,
    "run": run_campaign,
    "what-if": plan_what_if,
    "keep": keep_what_if,
    "simpler": write_simpler_plan,
    "describe": describe_rule_columns,
}


# -- the process -------------------------------------------------------------------------------------------------------


def main() -> None:
    """Run the tasks from standard input until it ends."""
    # Standard output belongs to the results: other output goes to standard error.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, _exit_on_signal)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lock = threading.Lock()

    def send_event(event: dict[str, Any]) -> None:
        line = memoryview(write_json(event) + b"\n")
        with lock, suppress(OSError):
            while line:
                line = line[out.write(line) or 0 :]

    tasks: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_queue_tasks, args=(tasks,), daemon=True).start()
    for package in sys.argv[1:]:
        if tasks.empty():
            with suppress(ImportError):
                importlib.import_module(package)
    while (line := tasks.get()) is not None:
        send_event(_run_task(json.loads(line), send_event))


def _run_task(task: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Run a task; return its result, or its problems, as JSON types."""
    tracker, next_time = ProgressTracker(), 0.0

    def report_progress(stage: str, done: float) -> None:
        nonlocal next_time
        if done == 0.0 or time.monotonic() >= next_time:
            next_time = time.monotonic() + REPORT_SECONDS
            send({"stage": stage, "rows": tracker.rows, "done": done, "left": tracker.seconds_left})

    tracker.listener = report_progress
    try:
        with report_to(tracker):
            return {"result": TASKS[task.pop("task")](**task)}
    except LargesseError as error:
        subject, problems = error.subject, list(error.problems)
    except Exception as error:
        subject, problems = "work", [_explain_error(error)]
    return {"error": {"subject": subject, "problems": describe_problems(problems)}}


def _explain_error(error: Exception) -> Problem:
    if isinstance(error, MemoryError):
        return Problem("there is not enough memory for this", "use a smaller table, or fewer columns")
    if isinstance(error, OSError):
        return Problem(f"{error.filename or 'a file'}: {error.strerror or error}", "check the disk and its permissions")
    traceback.print_exception(error)
    return Problem("something went wrong here", "this is a mistake of ours: the terminal shows the details")


def _queue_tasks(tasks: queue.SimpleQueue[str | None]) -> None:
    """Put every line of standard input on a queue; at its end, cancel the current task."""
    for line in sys.stdin:
        tasks.put(line)
    tasks.put(None)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_SECONDS)
    os._exit(1)


def _exit_on_signal(*_: object) -> None:
    sys.unraisablehook = lambda _: None
    sys.exit(143)


if __name__ == "__main__":
    main()
