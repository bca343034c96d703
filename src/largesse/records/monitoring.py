"""Results of monitoring: predictions against outcomes, drift of columns, and the power of a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.records.checkup import Leak
from largesse.records.display import Card, DisplayMixin
from largesse.records.evaluation import Estimate, Finding, format_interval_ends, list_estimate_cells

if TYPE_CHECKING:
    import pyarrow as pa

EXIT_CODES = {"fine": 0, "careful": 10, "no": 20}  # exit codes; 2 stays that of errors
SERIOUS_ANSWERS = ("no", "careful")


@dataclass(frozen=True)
class PredictedAndRealised:
    """Predicted mean, realised mean and their difference, each with its standard error."""

    promised: Estimate
    realised: Estimate
    difference: Estimate  # realised − promised
    p: float  # p-value of no difference


@dataclass(frozen=True)
class RealisedTenth:
    """Predicted and realised mean response of one tenth of the customers, sorted by predicted gain.

    Customers are sorted by predicted gain over the cheapest level.
    """

    gain: float  # predicted gain per customer
    promised: float  # response
    realised: Estimate
    rows: int


@dataclass(frozen=True)
class LevelUptake:
    """Number of customers planned for a level, and the share of them who received this level."""

    name: str
    planned: int  # customers
    given: int
    followed: float  # share of its planned customers who received it; NaN without planned customers


@dataclass(frozen=True)
class ColumnDrift:
    """Population stability index of one column between two tables, and the p-value of equal distributions."""

    column: str
    psi: float  # population stability index: 0 where nothing changed; 0.25 is a lot
    p: float  # of equal distributions, corrected for the number of columns


@dataclass(frozen=True, eq=False)
class CampaignCheck(DisplayMixin):
    """Comparison of a finished campaign with its plan, as findings and the figures behind the findings."""

    findings: tuple[Finding, ...]  # the most serious first
    rows: int
    joined: int | None
    value: PredictedAndRealised
    spend: PredictedAndRealised
    tenths: tuple[RealisedTenth, ...]
    levels: tuple[LevelUptake, ...]
    followed: float  # share of customers who got the planned level
    drifts: tuple[ColumnDrift, ...]  # the largest first; empty where there is nothing to compare with
    price: tuple[float, Estimate] | None  # of the plan, and of the campaign's customers
    leaks: tuple[Leak, ...]

    @property
    def answer(self) -> str:
        """Most serious answer of all findings: fine, careful or no."""
        return next(
            (word for word in SERIOUS_ANSWERS if any(finding.answer == word for finding in self.findings)), "fine"
        )

    @property
    def code(self) -> int:
        """Exit code for a scheduler: 0 fine, 10 careful, 20 no."""
        return EXIT_CODES[self.answer]

    def __repr__(self) -> str:
        checks = "; ".join(f"{finding.topic}: {finding.answer}" for finding in self.findings)
        return f"CampaignCheck({self.rows:,} rows, {self.answer}: {checks})"

    def card(self) -> Card:
        """Return a notebook table of all findings, with predicted and realised means below."""
        rows = [(finding.topic, finding.answer, finding.text) for finding in self.findings]
        means = [
            (
                name,
                comparison.promised.estimate,
                comparison.realised.estimate,
                format_interval_ends(comparison.realised.interval),
                comparison.difference.estimate,
            )
            for name, comparison in (("value", self.value), ("spend", self.spend))
        ]
        below = Card("Per customer", ("", "promised", "realised", "95 %", "difference"), means)
        return Card(f"Campaign of {self.rows:,} rows: {self.answer}", ("check", "answer", ""), rows, below=below)

    def to_arrow(self) -> pa.Table:
        """Return a table of predicted and realised means of each tenth of the customers."""
        import pyarrow as pa

        rows = [
            {
                "tenth": place,
                "gain": tenth.gain,
                "promised": tenth.promised,
                **list_estimate_cells("realised", tenth.realised),
            }
            for place, tenth in enumerate(self.tenths, 1)
        ]
        return pa.Table.from_pylist(rows)


# -- power of a test --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TestSize:
    """Number of customers in a randomised test that detects a given gain; infinite for a gain of at most 0."""

    __test__ = False  # pytest: not a test class

    gain: float  # per customer, whether the level differs or not
    switchers: float  # customers of both arms whose level differs
    traffic: float  # customers who must arrive until `switchers` of them are found
    diluted: float  # customers in a test of everybody
    days: float | None = None  # until the traffic has arrived; None if the daily traffic is unknown


@dataclass(frozen=True)
class TestedOutcome:
    """Outcome of a randomised test: its gain, its standard deviations and the required numbers of customers."""

    __test__ = False

    name: str  # "value", "profit", "value less cost" or "not worse"
    detail: str
    gain: Estimate  # per customer, from the log; or as given
    sd: tuple[float, float]  # of a switcher's outcome, under the plan and under its alternative
    best_share: float  # share of the plan's arm with which the test is smallest
    expected: TestSize  # if the gain equals its estimate
    least: TestSize  # if the gain is at the lower end of its interval


@dataclass(frozen=True)
class PowerAnalysis(DisplayMixin):
    """Required size and duration of randomised tests of a plan against another policy."""

    incumbent: str
    switchers: float  # share of customers whose level differs
    cases: tuple[TestedOutcome, ...]
    power: float
    coverage: float
    rows: int  # of the log
    per_day: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> TestedOutcome:
        """Test sizes for the mean response."""
        return self.cases[0]

    def __repr__(self) -> str:
        if not self.cases:
            return f"PowerAnalysis({self.switchers:.1%} switchers: there is nothing to test)"
        size = self.value.expected
        return (
            f"PowerAnalysis({self.switchers:.1%} switchers, {write_customer_count(size.switchers)} of them or "
            f"{write_customer_count(size.traffic)} customers for a gain of {size.gain:.3g}, power {self.power:.0%})"
        )

    def card(self) -> Card:
        """Return a notebook table of the number of customers that each test needs.

        It has a row for the estimated gain and one for its lower end.
        """
        rows: list[tuple[Any, ...]] = []
        for case in self.cases:
            for words, size in (("if it is what it seems", case.expected), ("at the lower end", case.least)):
                numbers = (
                    write_customer_count(size.switchers),
                    write_customer_count(size.traffic),
                    write_customer_count(size.diluted),
                )
                rows.append((case.name, words, size.gain, *numbers, _write_days(size.days)))
        head = ("test of", "", "gain", "switchers", "customers until then", "customers if all are tested", "days")
        title = f"Test against {self.incumbent}: {self.switchers:.1%} of the customers are switchers"
        return Card(title, head, rows, self.notes)

    def to_arrow(self) -> pa.Table:
        """Return a table of the tests, with the required customers for the expected gain and its lower interval end."""
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


def write_customer_count(size: float) -> str:
    """Format a number of customers, rounded up to three digits.

    >>> write_customer_count(12345.6), write_customer_count(12), write_customer_count(float("inf"))
    ('12,400', '12', 'no number')
    """
    if not np.isfinite(size):
        return "no number"
    unit = 10 ** max(len(str(int(size))) - 3, 0)
    return f"{int(-(-size // unit) * unit):,}"


def _write_days(days: float | None) -> str:
    """Format a number of days, rounded up; a dash if unknown or infinite."""
    return "–" if days is None or not np.isfinite(days) else f"{int(-(-days // 1)):,}"
