"""Comparison of a plan's customers with those of the log."""

from __future__ import annotations

from dataclasses import dataclass, replace

from largesse.records.monitoring import Drift


@dataclass(frozen=True)
class UnknownValues:
    """Values of one feature that customers have and the log never had."""

    feature: str
    share: float  # of the customers
    examples: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.feature!r} is {' or '.join(self.examples)}"


@dataclass(frozen=True)
class CustomerShift:
    """Comparison of customers with those of a log, and of the weighted log with them."""

    unknown: float  # share of the customers with a value that the log never had
    values: tuple[UnknownValues, ...]  # the most frequent first
    drifted: tuple[Drift, ...]  # columns that differ clearly, the largest drift first
    effective: float | None = None  # rows that the log is worth when it is weighted to the customers
    remaining: tuple[Drift, ...] = ()  # columns that still differ after weighting

    def measure(self, effective: float, remaining: tuple[Drift, ...]) -> CustomerShift:
        """Return the comparison with the result of weighting."""
        return replace(self, effective=effective, remaining=remaining)
