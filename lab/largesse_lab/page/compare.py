"""Methods compared: a summary as one record, whether the paper's orderings hold, and how our models do against its methods.

Every judgement is computed from a summary. One method is better than another where the 95 % interval of the difference lies
on its side of zero, and the comparison is undecided where the interval contains zero. Differences are paired, repeat by
repeat, wherever the summary has them: those from its base row, and those of two other rows in ``pairs``. Without a paired
difference the interval is computed from the two standard deviations, as if the repeats were independent. It is usually wider
than a paired one, and is marked.

A summary holds ``simulations`` {simulation: {row: {"cells": {column: {mean, sd, n}}, "against": {column: {difference, low,
high}}}}}, ``base`` (the row that differences are from), ``paper`` {row: {column: [mean, sd]}}, and ``pairs``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.errors import Problem, refuse
from largesse.report import finite
from largesse_lab.bench.request import simplify

BASE = "CCPOvSIRE"
NORMALISED = ", normalised"  # ends the name of a row that differs from another by its normalised penalty alone
WITHOUT = "†"  # ends the name of a row without a penalty
OURS = ("Stack", "SIRE")  # the default model, and a network
CLAIMS = (  # the paper reports that the first is better than the second
    ("CCPOvSIRE", "CCPOvIRE"),
    ("CCPOvSIRE", "CCPOvSIRE†"),
    ("CCPOvIRE", "CCPOvIRE†"),
    ("CCPOvSIRE", "CFRNet"),
    ("CFRNet", "BART"),
    ("CFRNet", "GANITE"),
    ("CCPOvSIRE", "BanditNet"),
    ("CCPOvSIRE, linear", "CCPOvSIRE, RBF"),
    ("CCPOvIRE, linear", "CCPOvIRE, RBF"),
    ("CCPOvSIRE, RBF", "CCPOvIRE, RBF"),
)
BETTER, WORSE, UNDECIDED = "better", "worse", "undecided"  # the first row against the second
TITLES = {"rmse": "RMSE", "pehe": "√PEHE", "error": "RMSE (two levels: √PEHE)"}
HIGHER = ("reward", "skill")  # columns in which more is better; all others are errors
JUDGED = ("rmse", "skill")  # columns in which our models are judged against the paper's methods


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
    pairs: Mapping[tuple[str, str, str, str], Gap]  # simulation, first, second, column: the second minus the first
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

    @property
    def ours(self) -> list[str]:
        """Our own models among the rows."""
        return [name for name in OURS if name in self.rows]

    @property
    def rivals(self) -> list[str]:
        """The rows for which the paper has numbers."""
        known = {row for row, _ in self.paper}
        return [row for row in self.rows if simplify(row) in known]

    @property
    def judged(self) -> list[str]:
        """The columns in which our models are judged against the paper's methods."""
        return [column for column in self.columns if simplify(column).startswith(JUDGED)]

    def printed(self, row: str, column: str) -> tuple[float, float] | None:
        """Return the paper's mean and sd; None where it has none."""
        return self.paper.get((simplify(row), simplify(column)))

    def best_printed(self, column: str) -> float | None:
        """Return the paper's best number in a column; None where it has none."""
        found = [pair[0] for (_, name), pair in self.paper.items() if name == simplify(column)]
        return (max if is_higher_better(column) else min)(found, default=None)

    def best_rival(self, simulation: str, column: str) -> str | None:
        """Return the paper's method with the best mean here; None where none was measured.

        It is chosen by the very numbers it is then judged by, which favours it a little.
        """
        means = {row: cell.mean for row in self.rivals if (cell := self.cells.get((simulation, row, column)))}
        return (max if is_higher_better(column) else min)(means, key=lambda row: means[row], default=None)


def read_comparison(summary: Mapping[str, Any]) -> Comparison | None:
    """Return a summary as a record; None where it does not compare methods."""
    cells = _read_cells(summary, "cells", _read_cell)
    if not cells:
        return None
    pairs = {(p["simulation"], p["first"], p["second"], p["column"]): _read_gap(p) for p in summary.get("pairs", [])}
    paper = summary.get("paper", {})
    found = Comparison(
        base=summary.get("base", BASE),
        cells=cells,
        differences=_read_cells(summary, "against", _read_gap),
        pairs={key: gap for key, gap in pairs.items() if gap is not None},
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


# -- two rows ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Duel:
    """Two rows on one simulation, in one column: by how much the first is better than the second."""

    first: str
    second: str
    simulation: str
    column: str
    gain: Gap  # positive where the first is better
    paired: bool

    @property
    def verdict(self) -> str:
        """Whether the first row is better, worse, or neither for certain."""
        return BETTER if self.gain.low > 0 else WORSE if self.gain.high < 0 else UNDECIDED


def compare_rows(found: Comparison, simulation: str, first: str, second: str, column: str) -> Duel | None:
    """Return by how much the first row is better than the second; None where a number is missing."""
    minus = found.pairs.get((simulation, first, second, column))
    if minus is None and first == found.base:
        minus = found.differences.get((simulation, second, column))
    gap = minus if minus is not None else _compare_unpaired(found, simulation, first, second, column)
    if gap is None:
        return None
    if is_higher_better(column):
        gap = Gap(-gap.estimate, -gap.high, -gap.low)
    return Duel(first, second, simulation, column, gap, paired=minus is not None)


def _compare_unpaired(found: Comparison, simulation: str, first: str, second: str, column: str) -> Gap | None:
    """Return the second minus the first with an interval from the two standard deviations; None where either has none."""
    a, b = found.cells.get((simulation, first, column)), found.cells.get((simulation, second, column))
    if a is None or b is None or a.sd is None or b.sd is None or min(a.n, b.n) < 2:
        return None
    from scipy.stats import t  # slow to import

    # the degrees of freedom of the smaller sample
    half = float(t.ppf(0.975, min(a.n, b.n) - 1) * np.hypot(a.sd / a.n**0.5, b.sd / b.n**0.5))
    return Gap(b.mean - a.mean, b.mean - a.mean - half, b.mean - a.mean + half)


# -- the paper's orderings ---------------------------------------------------------------------------------------------


def judge_orderings(found: Comparison) -> list[Duel]:
    """Return every ordering of the paper that the summary can judge, in the columns for which the paper has numbers."""
    return [
        duel
        for simulation in found.simulations
        for first, second in match_claims(found.rows)
        for column in found.columns
        if _is_claimed(found, first, second, column)
        if (duel := compare_rows(found, simulation, first, second, column)) is not None
    ]


def match_claims(rows: Sequence[str], claims: Sequence[tuple[str, str]] = CLAIMS) -> list[tuple[str, str]]:
    """Return the claimed pairs for which both rows were measured, spelled as in our tables."""
    spelled = {simplify(row): row for row in rows}
    pairs = [(simplify(first), simplify(second)) for first, second in claims]
    return [(spelled[first], spelled[second]) for first, second in pairs if first in spelled and second in spelled]


def _is_claimed(found: Comparison, first: str, second: str, column: str) -> bool:
    """Return whether the paper has both numbers, the first being the better one."""
    ends = found.printed(first, column), found.printed(second, column)
    if ends[0] is None or ends[1] is None:
        return False
    return ends[0][0] > ends[1][0] if is_higher_better(column) else ends[0][0] < ends[1][0]


# -- our models against the paper's methods ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """One of our models against all of the paper's methods, on one simulation and in one column."""

    simulation: str
    column: str
    verdict: str  # better than every method, worse than at least one, or neither
    better_rivals: tuple[str, ...]  # methods that are better than our model


def rank_model(found: Comparison, name: str, kind: str) -> list[Standing]:
    """Return where one of our models stands, in every column of a kind ("rmse" or "skill") and on every simulation."""
    standings = []
    for simulation in found.simulations:
        for column in [column for column in found.judged if simplify(column).startswith(kind)]:
            made = [compare_rows(found, simulation, name, row, column) for row in found.rivals]
            duels = [duel for duel in made if duel is not None]
            beaten_by = tuple(duel.second for duel in duels if duel.verdict == WORSE)
            best = all(duel.verdict == BETTER for duel in duels)
            if duels:
                verdict = WORSE if beaten_by else BETTER if best else UNDECIDED
                standings.append(Standing(simulation, column, verdict, beaten_by))
    return standings
