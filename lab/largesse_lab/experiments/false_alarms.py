"""Does `doctor` raise false alarms, and does it find real problems? Randomised and confounded logs, a leak, a rare level."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from largesse.evaluation import doctor
from largesse.records import Checkup, Log, Progress
from largesse.worlds import simulate
from largesse_lab.experiments.base import Experiment
from largesse_lab.page.sections import Chapter
from largesse_lab.page.tables import write_table
from largesse_lab.runner.cache import Kept
from largesse_lab.runner.request import Records, Request, ignore_progress

ROWS = 2000
LOGS_PER_WORLD = 20
PLANTED = ("leaky", "thin")
CASES = {
    "randomised": ("averaged", 1.0),
    "confounded": ("confounded", 0.2),
    "leaky": ("averaged", 1.0),
    "thin": ("averaged", 1.0),
}
TITLES = {
    "randomised": "randomised",
    "confounded": "confounded",
    "leaky": "a planted leak",
    "thin": "a level with 5 rows",
}


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per case and log: whether the checks call it randomised, and their verdicts."""
    logs = 200 if request.repeats is None else request.repeats
    # What is planted is either found or not: every fifth log is enough.
    todo = [(case, log) for log in range(logs) for case in CASES if case not in PLANTED or log % 5 == 0]
    kept = Kept(request.out, ("case", "log"))
    kept.complete([[key] for key in todo], lambda keys: [_measure_log(*keys[0])], progress)
    return kept.take(todo)


def _measure_log(case: str, log: int) -> dict[str, Any]:
    return {"case": case, "log": log, **_read_verdicts(doctor(_draw_log(case, log), seed=log))}


def _read_verdicts(found: Checkup) -> dict[str, Any]:
    # The most serious finding of a topic comes first.
    verdicts = {finding.topic: finding.answer for finding in reversed(found.findings)}
    named = [leak.feature for leak in found.leaks]
    return {"randomised": found.randomised, "p": found.dependence.p, "verdicts": verdicts, "leaks": named}


def _draw_log(case: str, log: int) -> Log:
    name, mix = CASES[case]
    seed, place = divmod(log, LOGS_PER_WORLD)
    made = replace(simulate(name, n=ROWS, seed=seed, mix=mix).draw(ROWS, place).log, propensity=None)
    rng = np.random.default_rng(log)
    if case == "leaky":  # recorded after the response, with some errors
        wrong = rng.random(len(made)) < 0.02
        leak = np.where(wrong, 1 - made.response, made.response) + rng.normal(scale=0.1, size=len(made))
        return replace(made, features=made.features.append_column("visits after", [leak]))
    if case == "thin":
        keep = np.ones(len(made), dtype=bool)
        keep[rng.permutation(np.flatnonzero(made.level == 3))[5:]] = False
        return made.take(keep)
    return made


def tabulate(records: Records) -> str:
    """Return what the checks said about each case as Markdown."""
    by = {case: [record for record in records if record["case"] == case] for case in CASES}

    def share(case: str, hits: list[bool]) -> str:
        return f"{np.mean(hits):.1%}" if by[case] else "–"

    rows = [
        ("randomised", "not randomised (false alarm)", [not record["randomised"] for record in by["randomised"]]),
        (
            "randomised",
            "a leak (false alarm)",
            [r["verdicts"]["suspicious features"] != "fine" for r in by["randomised"]],
        ),
        ("confounded", "not randomised", [not record["randomised"] for record in by["confounded"]]),
        ("leaky", "names the leak first", [record["leaks"][:1] == ["visits after"] for record in by["leaky"]]),
        ("leaky", "no", [record["verdicts"]["suspicious features"] == "no" for record in by["leaky"]]),
        ("thin", "no", [record["verdicts"]["rows of each level"] == "no" for record in by["thin"]]),
    ]
    body = [[TITLES[case], said, share(case, hits)] for case, said, hits in rows]
    head = f"Logs of {ROWS:,} rows: {', '.join(f'{len(found)} {case}' for case, found in by.items())}.\n\n"
    return head + write_table(["log", "doctor says", "share of logs"], body, words=2) + "\n"


EXPERIMENT = Experiment("false_alarms", measure, tabulate, Chapter("False alarms of the checks"), parts=False)
