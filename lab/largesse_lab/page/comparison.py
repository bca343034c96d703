"""Methods compared: a summary of an experiment as one record.

A summary holds ``simulations`` {simulation: {row: {"cells": {column: {mean, sd, n}}, "against": {column: {difference, low,
high}}}}}, ``base`` (the row that differences are from, paired repeat by repeat) and ``paper`` {row: {column: [mean, sd]}}.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.errors import Problem, refuse
from largesse_lab.runner.request import simplify

BASE = "CCPOvSIRE"
NORMALISED = ", normalised"  # ends the name of a row that differs from another by its normalised penalty alone
TITLES = {"rmse": "RMSE", "pehe": "√PEHE", "error": "RMSE (two levels: √PEHE)"}
HIGHER = ("reward", "skill")  # columns in which more is better; all others are errors


def title_column(column: str) -> str:
    """Return the title of a column.

    >>> title_column("rmse"), title_column("value 1.5"), title_column("seconds")
    ('RMSE', 'Reward at a budget of 1.5', 'Seconds')
    """
    if simplify(column) in TITLES:
        return TITLES[simplify(column)]
    found = re.fullmatch(r"(reward|skill|spend)([\d.]+)", simplify(column))
    return f"{found[1].capitalize()} at a budget of {found[2]}" if found else column[:1].upper() + column[1:]


def is_higher_better(column: str) -> bool:
    """Return whether more is better in a column.

    >>> is_higher_better("Reward (m = 3)"), is_higher_better("RMSE")
    (True, False)
    """
    return simplify(column).startswith(HIGHER)


def finite(value: Any) -> float | None:
    """Return a finite number as a float; None for anything else."""
    return float(value) if isinstance(value, int | float) and np.isfinite(value) else None


# -- a summary as a record ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """Mean and standard deviation over n repeats; one repeat has no standard deviation."""

    mean: float
    sd: float | None
    n: int


@dataclass(frozen=True)
class Gap:
    """A difference with its 95 % interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """Cells and differences by (simulation, row, column), and the paper's numbers by (row, column)."""

    base: str
    cells: Mapping[tuple[str, str, str], Cell]
    differences: Mapping[tuple[str, str, str], Gap]  # the row minus the base
    paper: Mapping[tuple[str, str], tuple[float, float]]  # mean and sd, by simplified names

    @property
    def simulations(self) -> list[str]:
        """The simulations, in their order."""
        return list(dict.fromkeys(key[0] for key in self.cells))

    @property
    def rows(self) -> list[str]:
        """The methods, in their order."""
        return list(dict.fromkeys(key[1] for key in self.cells))

    @property
    def columns(self) -> list[str]:
        """The measures, in their order."""
        return list(dict.fromkeys(key[2] for key in self.cells))

    def printed(self, row: str, column: str) -> tuple[float, float] | None:
        """Return the paper's mean and sd; None where it has none."""
        return self.paper.get((simplify(row), simplify(column)))

    def best_printed(self, column: str) -> float | None:
        """Return the paper's best number in a column; None where it has none."""
        found = [pair[0] for (_, name), pair in self.paper.items() if name == simplify(column)]
        return (max if is_higher_better(column) else min)(found, default=None)


def read_comparison(summary: Mapping[str, Any]) -> Comparison | None:
    """Return a summary as a record; None where it does not compare methods."""
    cells = _read_cells(summary, "cells", _read_cell)
    if not cells:
        return None
    paper = summary.get("paper", {})
    found = Comparison(
        base=summary.get("base", BASE),
        cells=cells,
        differences=_read_cells(summary, "against", _read_gap),
        paper={(simplify(r), simplify(c)): (p[0], p[1]) for r, row in paper.items() for c, p in row.items()},
    )
    _check_signs(found)
    return found


def _read_cells(
    summary: Mapping[str, Any], what: str, read: Callable[[Mapping[str, Any]], Any]
) -> dict[tuple[str, str, str], Any]:
    """Return all values of one kind by (simulation, row, column); missing and malformed ones are left out."""
    found = {}
    for simulation, rows in _items(summary.get("simulations")):
        for row, parts in _items(rows):
            for column, value in _items(parts.get(what)):
                made = read(value) if isinstance(value, Mapping) else None
                if made is not None:
                    found[simulation, row, column] = made
    return found


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _read_cell(value: Mapping[str, Any]) -> Cell | None:
    mean = finite(value.get("mean"))
    return None if mean is None else Cell(mean, finite(value.get("sd")), int(value.get("n") or 0))


def _read_gap(value: Mapping[str, Any]) -> Gap | None:
    estimate, low, high = (finite(value.get(key)) for key in ("estimate", "low", "high"))
    estimate = finite(value.get("difference")) if estimate is None else estimate
    return None if estimate is None or low is None or high is None else Gap(estimate, low, high)


def _check_signs(found: Comparison) -> None:
    """Refuse differences with the opposite sign of the means: every judgement would be reversed."""
    problems = []
    for (simulation, row, column), gap in found.differences.items():
        mine, base = found.cells.get((simulation, row, column)), found.cells.get((simulation, found.base, column))
        # Means over other repeats may differ by more than the rows do.
        apart = 0.0 if mine is None or base is None or mine.n != base.n else mine.mean - base.mean
        if abs(apart) > 1e-9 and abs(gap.estimate + apart) < 0.1 * abs(apart):
            what = f"the difference of {row} in {column} on {simulation} has the sign of {found.base} minus {row}"
            problems.append(Problem(what, f"write differences as the row minus {found.base}"))
    refuse("summary", problems)
