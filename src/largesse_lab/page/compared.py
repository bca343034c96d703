"""A summary of methods, however it was written, as one record; and names, however they are spelled.

Two shapes are read. One has ``simulations`` {simulation: {row: {"cells": {column: {mean, sd, n}}, "against": {column:
{difference, low, high}}}}}; the other ``cells`` {simulation: {row: {column: …}}} and ``differences`` likewise, with
``estimate``. Both may have ``base``, the row that differences are from, ``paper`` {row: {column: [mean, sd]}}, ``notes``, and
``pairs``, differences of two other rows (see `orderings`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from largesse.errors import Problem, refuse
from largesse.report import finite

BASE = "CCPOvSIRE"
TITLES = {"rmse": "RMSE", "pehe": "√PEHE", "error": "RMSE (two levels: √PEHE)"}
HIGHER = ("reward", "skill")  # columns that should be large; all others are errors


def plain(name: str) -> str:
    """Return a name of a method or column without what may be written in several ways.

    >>> plain("Reward (m = 3)") == plain("reward 3") == plain("value 3"), plain("√PEHE"), plain("CCPOvIRE†")
    (True, 'pehe', 'ccpovire†')
    """
    bare = re.sub(r"[^a-z0-9.†]", "", re.sub(r"\bm\s*=", "", name.lower()))
    return re.sub(r"^value", "reward", bare)


def titled(column: str) -> str:
    """Return a column's name for people.

    >>> titled("rmse"), titled("value 1.5"), titled("seconds")
    ('RMSE', 'Reward at a budget of 1.5', 'Seconds')
    """
    if plain(column) in TITLES:
        return TITLES[plain(column)]
    found = re.fullmatch(r"(reward|skill|spend)([\d.]+)", plain(column))
    return f"{found[1].capitalize()} at a budget of {found[2]}" if found else column[:1].upper() + column[1:]


def higher_is_better(column: str) -> bool:
    """Return whether a column should be large.

    >>> higher_is_better("Reward (m = 3)"), higher_is_better("RMSE")
    (True, False)
    """
    return plain(column).startswith(HIGHER)


@dataclass(frozen=True)
class Cell:
    """Mean and standard deviation over n repeats; no deviation where there was one."""

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
class Compared:
    """Methods compared: cells and differences by (simulation, row, column), what the paper printed by (row, column)."""

    base: str
    cells: Mapping[tuple[str, str, str], Cell]
    differences: Mapping[tuple[str, str, str], Gap]  # the row minus the base
    pairs: Mapping[tuple[str, str, str, str], Gap]  # simulation, first, second, column: the second minus the first
    paper: Mapping[tuple[str, str], tuple[float, float]]  # by plain names: mean, sd
    notes: Sequence[str]

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
        """What was measured."""
        return list(dict.fromkeys(key[2] for key in self.cells))

    def printed(self, row: str, column: str) -> tuple[float, float] | None:
        """Return what the paper printed there, however row and column are spelled; None where it printed nothing."""
        return self.paper.get((plain(row), plain(column)))

    def best_printed(self, column: str) -> float | None:
        """Return the best number the paper printed in a column."""
        found = [pair[0] for (_, name), pair in self.paper.items() if name == plain(column)]
        return (max if higher_is_better(column) else min)(found, default=None)


def compared(summary: Mapping[str, Any]) -> Compared | None:
    """Return a summary as a record; None where it does not compare methods."""
    cells = _deep(summary, "cells", _cell)
    if not cells:
        return None
    found = Compared(
        base=summary.get("base", BASE),
        cells=cells,
        differences=_deep(summary, "differences", _gap) or _deep(summary, "against", _gap),
        pairs={(p["simulation"], p["first"], p["second"], p["column"]): g for p in summary.get("pairs", []) if (g := _gap(p))},
        paper={(plain(r), plain(c)): (p[0], p[1]) for r, row in summary.get("paper", {}).items() for c, p in row.items()},
        notes=summary.get("notes", ()),
    )  # fmt: skip
    _check(found)
    return found


def _deep(summary: Mapping[str, Any], what: str, read: Any) -> dict[tuple[str, str, str], Any]:
    """Return what lies three deep, by its three names, in either shape; what is not there or not so is left out."""
    turned = summary.get("simulations")
    nested = summary.get(what, {})
    if isinstance(turned, Mapping):
        nested = {name: {row: parts.get(what, {}) for row, parts in rows.items()} for name, rows in turned.items()}
    found = {}
    for simulation, rows in _items(nested):
        for row, columns in _items(rows):
            for column, value in _items(columns):
                made = read(value) if isinstance(value, Mapping) else None
                if made is not None:
                    found[simulation, row, column] = made
    return found


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _cell(value: Mapping[str, Any]) -> Cell | None:
    mean = finite(value.get("mean"))
    return None if mean is None else Cell(mean, finite(value.get("sd")), int(value.get("n") or 0))


def _gap(value: Mapping[str, Any]) -> Gap | None:
    estimate, low, high = (finite(value.get(key)) for key in ("estimate", "low", "high"))
    estimate = finite(value.get("difference")) if estimate is None else estimate
    return None if estimate is None or low is None or high is None else Gap(estimate, low, high)


def _check(found: Compared) -> None:
    """Refuse differences that run the other way than the means: every verdict would be turned round."""
    problems = []
    for (simulation, row, column), gap in found.differences.items():
        mine, base = found.cells.get((simulation, row, column)), found.cells.get((simulation, found.base, column))
        apart = 0.0 if mine is None or base is None else mine.mean - base.mean
        if abs(apart) > 1e-9 and abs(gap.estimate + apart) < 0.1 * abs(apart):
            what = f"the difference of {row} in {column} on {simulation} has the sign of {found.base} minus {row}"
            problems.append(Problem(what, f"write differences as the row minus {found.base}"))
    refuse("summary", problems)
