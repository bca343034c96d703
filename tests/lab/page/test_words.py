"""Our models against the paper's methods, in words and in a table."""

from typing import Any

from largesse_lab.experiments.table1 import TABLE
from largesse_lab.page.compare import Comparison, read_comparison
from largesse_lab.page.tables import tabulate_best
from largesse_lab.page.words import brief_methods, describe_standings


def found(**rows: tuple[float, float]) -> Comparison:
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
    made = read_comparison(TABLE.summarise(records))
    assert made is not None
    return made


def test_the_papers_best_is_that_of_the_best_mean_here() -> None:
    made = found(Stack=(0.1, 0.9), BART=(0.2, 0.3), CFRNet=(0.15, 0.2), logistic=(0.0, 1.0))
    assert made.best_rival("averaged", "rmse") == "CFRNet"
    assert made.best_rival("averaged", "skill 3") == "BART"  # larger is better
    assert found(Stack=(0.1, 0.9)).best_rival("averaged", "rmse") is None


def test_verdicts_are_by_paired_intervals_and_differences_are_ours_minus_theirs() -> None:
    lines = tabulate_best(found(Stack=(0.1, 0.2), SIRE=(0.3, 0.3), BART=(0.2, 0.3))).splitlines()
    assert lines[0] == (
        "| on | column | the paper's best | Stack minus it | 95 % interval | verdict | SIRE minus it | 95 % interval | verdict |"
    )
    rmse, skill, alike = lines[2], lines[3], lines[4]
    assert rmse.startswith("| averaged | RMSE | BART | −0.10")
    assert " | better | +0.10" in rmse
    assert rmse.endswith(" | worse |")
    assert skill == (
        "| averaged | Skill at a budget of 3 | BART | −0.1000 | −0.1000 to −0.1000 | worse "
        "| +0.0000 | +0.0000 to +0.0000 | undecided |"
    )
    assert alike.startswith("| unit | RMSE | BART |")
    assert alike.count("undecided") == 2


def test_being_ahead_is_of_every_row_and_those_that_are_not_beaten_are_named() -> None:
    told = describe_standings(found(Stack=(0.1, 0.2), BART=(0.2, 0.1), CFRNet=(0.3, 0.3)))
    assert told.splitlines() == [
        "- Stack, RMSE: better than every method of the paper on averaged; undecided on unit.",
        "- Stack, skill: worse than at least one on averaged (m = 3: CFRNet), unit (m = 3: CFRNet).",
    ]


def test_rows_that_are_many_are_counted() -> None:
    told = describe_standings(found(SIRE=(0.3, 0.4), BART=(0.2, 0.5), CFRNet=(0.1, 0.5), GANITE=(0.1, 0.1)))
    assert "SIRE, RMSE: worse than at least one on averaged (3 methods)" in told
    assert "SIRE, skill: worse than at least one on averaged (m = 3: BART, CFRNet)" in told


def test_budgets_are_judged_one_by_one() -> None:
    cell = {"mean": 0.5, "sd": 0.1, "n": 5}
    gaps = {"skill 1": -0.1, "skill 2": -0.2, "skill 3": 0.1}  # BART minus SIRE
    made = read_comparison(
        {
            "simulations": {"text": {row: {"cells": dict.fromkeys(gaps, cell)} for row in ("SIRE", "BART")}},
            "paper": {"BART": {"rmse": [0.2, 0.1]}},
            "pairs": [
                {"simulation": "text", "first": "SIRE", "second": "BART", "column": column}
                | {"estimate": gap, "low": gap - 0.05, "high": gap + 0.05}
                for column, gap in gaps.items()
            ],
        }
    )
    assert made is not None
    assert brief_methods(made) == (
        "SIRE is better than every method of the paper in skill on 2 of 3 pairs of problem and budget "
        "(worse than at least one on 1)."
    )
    assert describe_standings(made) == (
        "- SIRE, skill: better than every method of the paper on text (m = 1, 2); worse than at least one on text (m = 3: BART)."
    )


def test_without_ours_or_without_the_paper_nothing_is_said() -> None:
    for made in (found(BART=(0.2, 0.1)), found(Stack=(0.1, 0.2))):
        assert tabulate_best(made) == describe_standings(made) == ""
