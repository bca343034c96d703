"""False-alarm and detection rates of `doctor` on randomised, confounded and leaky logs, and logs with few rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from largesse.evaluation import doctor
from largesse.records import Log, Progress
from largesse.worlds import simulate
from largesse_lab.experiments.experiment_definition import table_experiment
from largesse_lab.pages.markdown import format_table
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress
from largesse_lab.runner.record_cache import RecordCache

ALARM_LOG_ROWS = 2000
ALARM_LOGS_PER_WORLD = 20
PLANTED = ("leaky", "thin")
LEAKS = "suspicious features"
FALSE_ALARM_CASES = {  # simulation, and share of the log that is randomised
    "randomised": ("averaged", 1.0),
    "confounded": ("confounded", 0.2),
    "leaky": ("averaged", 1.0),
    "thin": ("averaged", 1.0),
}
ALARM_TITLES = {
    "randomised": "randomised",
    "confounded": "confounded",
    "leaky": "a planted leak",
    "thin": "a level with 5 rows",
}


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per case and log: the verdicts of the checks on the log."""
    logs = 200 if request.repeats is None else request.repeats
    # A planted problem is either found or not: every fifth log is enough.
    keys = [(case, log) for log in range(logs) for case in FALSE_ALARM_CASES if case not in PLANTED or log % 5 == 0]
    return RecordCache(request.out, ("case", "log")).measure_each(keys, _measure_log, progress)


def _measure_log(case: str, log: int) -> dict[str, Any]:
    checkup = doctor(_draw_log(case, log), seed=log)
    # The most serious finding of a topic comes first.
    verdicts = {finding.topic: finding.answer for finding in reversed(checkup.findings)}
    leaks = [leak.feature for leak in checkup.leaks]
    record = {"case": case, "log": log, "randomised": checkup.randomised, "p": checkup.dependence.p}
    return {**record, "verdicts": verdicts, "leaks": leaks}


def _draw_log(case: str, log: int) -> Log:
    name, mix = FALSE_ALARM_CASES[case]
    seed, stream = divmod(log, ALARM_LOGS_PER_WORLD)
    world = simulate(name, n=ALARM_LOG_ROWS, seed=seed, mix=mix)
    drawn = replace(world.draw(ALARM_LOG_ROWS, stream).log, propensity=None)
    rng = np.random.default_rng(log)
    if case == "leaky":  # recorded after the response, with some errors
        wrong = rng.random(len(drawn)) < 0.02
        leak = np.where(wrong, 1 - drawn.response, drawn.response) + rng.normal(scale=0.1, size=len(drawn))
        return replace(drawn, features=drawn.features.append_column("visits after", [leak]))
    if case == "thin":
        keep = np.ones(len(drawn), dtype=bool)
        keep[rng.permutation(np.flatnonzero(drawn.level == 3))[5:]] = False
        return drawn.take(keep)
    return drawn


def tabulate(records: Records) -> str:
    """Return a Markdown table of detection and false-alarm rates by case."""
    logs = {case: [record for record in records if record["case"] == case] for case in FALSE_ALARM_CASES}
    rows = [
        ("randomised", "not randomised (false alarm)", [not log["randomised"] for log in logs["randomised"]]),
        ("randomised", "a leak (false alarm)", [_read_verdict(log, LEAKS) != "fine" for log in logs["randomised"]]),
        ("confounded", "not randomised", [not log["randomised"] for log in logs["confounded"]]),
        ("leaky", "names the leak first", [log["leaks"][:1] == ["visits after"] for log in logs["leaky"]]),
        ("leaky", "no", [_read_verdict(log, LEAKS) == "no" for log in logs["leaky"]]),
        ("thin", "no", [_read_verdict(log, "rows of each level") == "no" for log in logs["thin"]]),
    ]
    body = [[ALARM_TITLES[case], verdict, f"{np.mean(hits):.1%}" if hits else "–"] for case, verdict, hits in rows]
    counts = ", ".join(f"{len(of_case)} {case}" for case, of_case in logs.items())
    table = format_table(["log", "verdict of doctor", "share of logs"], body, text_columns=2)
    return f"Logs of {ALARM_LOG_ROWS:,} rows: {counts}.\n\n{table}"


def _read_verdict(record: dict[str, Any], topic: str) -> str:
    return str(record["verdicts"][topic])


FALSE_ALARMS_EXPERIMENT = table_experiment(
    "false_alarms", "False alarms of the checks", measure, tabulate, parallel=False
)
