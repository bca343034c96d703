"""Ours against the paper's rows."""

from typing import Any

from largesse_lab.experiments import table1
from largesse_lab.page.compared import Compared, compared
from largesse_lab.page.ours import ahead_told, best_rival, best_table


def found(**rows: tuple[float, float]) -> Compared:
    """Five repeats of two simulations with errors and skills near these; on `unit` all rows err alike."""
    records: list[dict[str, Any]] = [
        {
            "simulation": name,
            "repeat": k,
            "row": row,
            "rmse": (rmse if name == "averaged" else 0.1) + shake,
            "skill 3": skill,
        }
        for name in ("averaged", "unit")
        for i, (row, (rmse, skill)) in enumerate(rows.items())
        for k in range(5)
        for shake in [0.001 * ((k * (i + 2)) % 5)]
    ]
    made = compared(table1.summary(records))
    assert made is not None
    return made


def test_the_papers_best_is_that_of_the_best_mean_here() -> None:
    made = found(Stack=(0.1, 0.9), BART=(0.2, 0.3), CFRNet=(0.15, 0.2), logistic=(0.0, 1.0))
    assert best_rival(made, "averaged", "rmse") == "CFRNet"
    assert best_rival(made, "averaged", "skill 3") == "BART"  # larger is better
    assert best_rival(found(Stack=(0.1, 0.9)), "averaged", "rmse") is None


def test_verdicts_are_by_paired_intervals_and_differences_are_ours_minus_theirs() -> None:
    lines = best_table(found(Stack=(0.1, 0.2), SIRE=(0.3, 0.3), BART=(0.2, 0.3))).splitlines()
    assert lines[0] == (
        "| on | column | the paper's best | Stack minus it | 95 % interval | verdict | SIRE minus it | 95 % interval | verdict |"
    )
    rmse, skill, alike = lines[2], lines[3], lines[4]
    assert rmse.startswith("| averaged | RMSE | BART | −0.10")
    assert " | ahead | +0.10" in rmse
    assert rmse.endswith(" | behind |")
    assert skill == (
        "| averaged | Skill at a budget of 3 | BART | −0.1000 | −0.1000 to −0.1000 | behind "
        "| +0.0000 | +0.0000 to +0.0000 | cannot tell |"
    )
    assert alike.startswith("| unit | RMSE | BART |")
    assert alike.count("cannot tell") == 2


def test_being_ahead_is_of_every_row_and_those_that_are_not_beaten_are_named() -> None:
    told = ahead_told(found(Stack=(0.1, 0.2), BART=(0.2, 0.1), CFRNet=(0.3, 0.3)))
    assert told.splitlines() == [
        "- Stack, RMSE: ahead of every row of the paper's on averaged; neither on unit.",
        "- Stack, skill: behind one or more on averaged (m = 3: CFRNet), unit (m = 3: CFRNet).",
    ]


def test_rows_that_are_many_are_counted() -> None:
    told = ahead_told(found(SIRE=(0.3, 0.4), BART=(0.2, 0.5), CFRNet=(0.1, 0.5), GANITE=(0.1, 0.1)))
    assert "SIRE, RMSE: behind one or more on averaged (3 rows)" in told
    assert "SIRE, skill: behind one or more on averaged (m = 3: BART, CFRNet)" in told


def test_budgets_are_judged_one_by_one() -> None:
    cell = {"mean": 0.5, "sd": 0.1, "n": 5}
    gaps = {"skill 1": -0.1, "skill 2": -0.2, "skill 3": 0.1}  # BART minus SIRE
    made = compared(
        {
            "cells": {"text": {row: dict.fromkeys(gaps, cell) for row in ("SIRE", "BART")}},
            "paper": {"BART": {"rmse": [0.2, 0.1]}},
            "pairs": [
                {"simulation": "text", "first": "SIRE", "second": "BART", "column": column}
                | {"estimate": gap, "low": gap - 0.05, "high": gap + 0.05}
                for column, gap in gaps.items()
            ],
        }
    )
    assert made is not None
    assert ahead_told(made) == (
        "- SIRE, skill: ahead of every row of the paper's on text (m = 1, 2); behind one or more on text (m = 3: BART)."
    )


def test_without_ours_or_without_the_paper_nothing_is_said() -> None:
    for made in (found(BART=(0.2, 0.1)), found(Stack=(0.1, 0.2))):
        assert best_table(made) == ahead_told(made) == ""
