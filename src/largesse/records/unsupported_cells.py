"""Customer groups that never received some level in the log, as conditions on features."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class CellCondition:
    """Condition on one feature: a set of words, a range of numbers or dates, or missing values."""

    feature: str
    kind: str  # "words", "numbers", "dates" or "missing"
    label: str = ""  # in words, such as "60 or more"
    words: tuple[str, ...] = ()
    low: float = -math.inf  # of numbers, or of dates in seconds since 1970; both ends belong to the range
    high: float = math.inf

    def __str__(self) -> str:
        return f"{self.feature!r} is {self.label}"


@dataclass(frozen=True)
class UnsupportedCell:
    """Customer group without logged rows at some levels, defined by conditions on features."""

    conditions: tuple[CellCondition, ...]
    levels: tuple[int, ...]
    rows: int  # of the log
    share: float  # of all weight
    exceptions: int  # rows that got one of the levels all the same
    expected: float  # rows that would have got one of the levels if it were as frequent as next to the cell
    p: float  # probability of the cell by chance, corrected for the search

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))


@dataclass(frozen=True)
class UnsupportedCells:
    """All customer groups of a log that lack logged rows at some levels, the largest first."""

    cells: tuple[UnsupportedCell, ...] = ()
    share: float = 0.0  # of all weight, on rows in at least one cell
    single: float = 0.0  # of all weight, on rows with one supported level, or none
    barred: float = 0.0  # mean share of the levels that a row lacks

    def __bool__(self) -> bool:
        return bool(self.cells)

    def join(self, other: UnsupportedCells) -> UnsupportedCells:
        """Return the unsupported customer groups of this object and of another one together."""
        return UnsupportedCells((*self.cells, *other.cells)) if other else self
