"""How many customers a test of a plan needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.records.display import Card, Shown
from largesse.records.evaluation import Estimate

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class TestSize:
    """How many customers a test needs to show one gain; infinite where there is none to show."""

    __test__ = False  # it is no test of this package

    gain: float  # per customer, switchers or not
    switchers: float  # both arms together, among customers whose level differs
    traffic: float  # customers who must come by until so many differ
    diluted: float  # customers in a test of everybody
    days: float | None = None  # until the traffic has come; None: not asked


@dataclass(frozen=True)
class TestCase:
    """One outcome of a test: what the plan gains, how much responses vary, and how many customers show it."""

    __test__ = False

    name: str  # "value", "profit", "value less cost" or "not worse"
    detail: str
    gain: Estimate  # per customer, from the log; or as given
    sd: tuple[float, float]  # of a switcher's outcome, under the plan and under what it is compared with
    best_share: float  # of the customers for the plan's arm, with which the test is smallest
    expected: TestSize  # if the gain is what it seems
    least: TestSize  # if it is at the lower end of its interval


@dataclass(frozen=True)
class PowerAnalysis(Shown):
    """How many customers a test of a plan against what it replaces needs, and how long that takes."""

    incumbent: str
    switchers: float  # share of customers whose level differs
    cases: tuple[TestCase, ...]
    power: float
    coverage: float
    rows: int  # of the log
    per_day: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> TestCase:
        """The test of the value; a plan that changes nothing has none."""
        return self.cases[0]

    def __repr__(self) -> str:
        if not self.cases:
            return f"PowerAnalysis({self.switchers:.1%} switchers: there is nothing to test)"
        size = self.value.expected
        return (
            f"PowerAnalysis({self.switchers:.1%} switchers, {write_size(size.switchers)} of them or {write_size(size.traffic)} "
            f"customers for a gain of {size.gain:.3g}, power {self.power:.0%})"
        )

    def card(self) -> Card:
        """Return the customers that each test needs, for the estimate and for the lower end of its interval."""
        rows: list[tuple[Any, ...]] = []
        for case in self.cases:
            for words, size in (("if it is what it seems", case.expected), ("at the lower end", case.least)):
                numbers = (write_size(size.switchers), write_size(size.traffic), write_size(size.diluted))
                rows.append((case.name, words, size.gain, *numbers, _write_days(size.days)))
        head = ("test of", "", "gain", "switchers", "customers until then", "customers if all are tested", "days")
        title = f"Test against {self.incumbent}: {self.switchers:.1%} of the customers are switchers"
        return Card(title, head, rows, self.notes)

    def to_arrow(self) -> pa.Table:
        """Return one row for each test, and for the estimate and the lower end of the gain."""
        import pyarrow as pa

        rows = [
            {
                "test": case.name,
                "at": word,
                **{name: getattr(size, name) for name in ("gain", "switchers", "traffic", "diluted", "days")},
            }
            for case in self.cases
            for word, size in (("estimate", case.expected), ("low", case.least))
        ]
        return pa.Table.from_pylist(rows)


def write_size(many: float) -> str:
    """Write a number of customers, rounded up to three digits.

    >>> write_size(12345.6), write_size(12), write_size(float("inf"))
    ('12,400', '12', 'no number')
    """
    if not np.isfinite(many):
        return "no number"
    unit = 10 ** max(len(str(int(many))) - 3, 0)
    return f"{int(-(-many // unit) * unit):,}"


def _write_days(days: float | None) -> str:
    return "–" if days is None or not np.isfinite(days) else f"{int(-(-days // 1)):,}"
