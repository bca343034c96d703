"""Does the doctor cry wolf, and does it see the wolf? Randomised logs, confounded ones, a planted leak, a thin level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from largesse.evaluation import doctor
from largesse.records import Checkup, Log
from largesse.worlds import simulate
from largesse_lab.bench.kept import Kept

ROWS = 2000
LOGS_PER_WORLD = 20
PLANTED = ("leaky", "thin")
CASES = {
    "randomised": ("averaged", 1.0),
    "confounded": ("confounded", 0.2),
    "leaky": ("averaged", 1.0),
    "thin": ("averaged", 1.0),
}


def lots(
    *,
    logs: int = 200,
    out: str | Path | None = None,
    tell: Callable[[str, float], None] = lambda _what, _done: None,
) -> list[dict[str, Any]]:
    """Return one record per case and log: whether the doctor calls it randomised, and its verdicts."""
    kept = Kept(out, ("case", "log"))
    # What is planted is found or not: every fifth log is enough to see it.
    todo = [(case, log) for log in range(logs) for case in CASES if case not in PLANTED or log % 5 == 0]
    for done, (case, log) in enumerate(todo):
        tell(f"{case}, log {log}", done / len(todo))
        if (case, log) not in kept.found:
            kept.add({"case": case, "log": log, **_seen(doctor(_drawn(case, log), seed=log))})
    return [kept.found[key] for key in todo]


def _seen(found: Checkup) -> dict[str, Any]:
    # The most serious finding of a topic comes first.
    verdicts = {finding.topic: finding.answer for finding in reversed(found.findings)}
    named = [leak.feature for leak in found.leaks]
    return {"randomised": found.randomised, "p": found.dependence.p, "verdicts": verdicts, "leaks": named}


def _drawn(case: str, log: int) -> Log:
    name, mix = CASES[case]
    seed, place = divmod(log, LOGS_PER_WORLD)
    made = replace(simulate(name, n=ROWS, seed=seed, mix=mix).draw(ROWS, place).log, propensity=None)
    rng = np.random.default_rng(log)
    if case == "leaky":  # written down after the fact, now and then wrongly
        wrong = rng.random(len(made)) < 0.02
        told = np.where(wrong, 1 - made.response, made.response) + rng.normal(scale=0.1, size=len(made))
        return replace(made, features=made.features.append_column("visits after", [told]))
    if case == "thin":
        keep = np.ones(len(made), dtype=bool)
        keep[rng.permutation(np.flatnonzero(made.level == 3))[5:]] = False
        return made.take(keep)
    return made


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return what the doctor said, case by case, as Markdown."""
    by = {case: [record for record in records if record["case"] == case] for case in CASES}
    share = {case: np.mean([record["randomised"] for record in found]) for case, found in by.items()}
    found_leak = np.mean([record["leaks"][:1] == ["visits after"] for record in by["leaky"]])
    no_leak = np.mean([record["verdicts"]["leaks"] == "no" for record in by["leaky"]])
    no_rows = np.mean([record["verdicts"]["rows of each level"] == "no" for record in by["thin"]])
    false_leak = np.mean([record["verdicts"]["leaks"] != "fine" for record in by["randomised"]])
    return (
        "\n".join(
            [
                f"Logs of {ROWS:,} rows: {', '.join(f'{len(found)} {case}' for case, found in by.items())}.",
                "",
                "| log | the doctor says | share of logs |",
                "|---|---|---:|",
                f"| randomised | not randomised (false alarm) | {1 - share['randomised']:.1%} |",
                f"| randomised | a leak (false alarm) | {false_leak:.1%} |",
                f"| confounded | not randomised | {1 - share['confounded']:.1%} |",
                f"| a planted leak | names it first | {found_leak:.1%} |",
                f"| a planted leak | no | {no_leak:.1%} |",
                f"| a level with 5 rows | no | {no_rows:.1%} |",
            ]
        )
        + "\n"
    )
