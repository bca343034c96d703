"""Comparison of a plan's customers with those of the log."""

from __future__ import annotations

from dataclasses import dataclass, replace

from largesse.records.monitoring import ColumnDrift


@dataclass(frozen=True)
class UnknownValues:
    """Values of one feature that new customers have and no logged customer has."""

    feature: str
    share: float  # of the customers
    examples: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.feature!r} is {' or '.join(self.examples)}"


@dataclass(frozen=True)
class CustomerShift:
    """Differences between a plan's customers and a log's customers, before and after weighting the log."""

    unknown: float  # share of the customers with a value that the log never had
    values: tuple[UnknownValues, ...]  # the most frequent first
    drifted: tuple[ColumnDrift, ...]  # columns that differ clearly, the largest drift first
    effective: float | None = None  # rows that the log is worth when it is weighted to the customers
    remaining: tuple[ColumnDrift, ...] = ()  # columns that still differ after weighting

    def add_weighting_result(self, effective: float, remaining: tuple[ColumnDrift, ...]) -> CustomerShift:
        """Return the comparison of customers, completed by the differences that remain after weighting the log."""
        return replace(self, effective=effective, remaining=remaining)
