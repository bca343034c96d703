"""Checkup of a log: findings, overlap of levels, dependence on features, leaks and heavy rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from largesse.records.array_type import Array
from largesse.records.display import Card, DisplayMixin
from largesse.records.evaluation import Estimate, Finding, Propensities, sort_findings
from largesse.records.unsupported_cells import UnsupportedCells

if TYPE_CHECKING:
    import pyarrow as pa

CHECK_TOPICS = (
    *(
        "rows of each level",
        "support",
        "randomisation",
        "propensities",
        "balance",
        "weights",
        "order of levels",
        "costs",
    ),
    *("suspicious features", "clusters", "customers", "within customers", "within clusters", "reading the log"),
)
MIN_LEVEL_ROWS = 30  # a level with fewer rows, or fewer effective rows, cannot be judged
MAX_SIGNIFICANT_P = 0.01  # a p-value below this counts as significant


@dataclass(frozen=True, eq=False)
class Overlap:
    """Number of logged rows of each level, their propensities, and feature balance between the levels."""

    rows: Array  # (K,)
    effective: Array  # (K,) effective sample size after weighting by 1 / propensity
    smallest: Array  # (K,) smallest propensity among the level's rows
    answers: tuple[str, ...]  # (K,) "fine", "careful" or "no": whether the level's effect can be estimated
    features: tuple[str, ...]  # those that differ most between levels
    before: Array  # (features,) largest standardised difference over levels
    after: Array  # the same after weighting
    edges: Array  # histogram of the propensities of logged levels
    counts: Array  # (K, bins)
    by_level: Array  # (before and after, features, K) signed differences
    beyond_chance: Array  # (features,) largest difference after weighting that chance does not explain, or 0
    sampled: int = 0  # rows that differences were measured on; 0: on all. Everything else counts all rows


@dataclass(frozen=True)
class IndependenceTest:
    """Result of a permutation test of independence between the logged levels and the features."""

    p: float
    times: float  # the linear statistic, relative to its mean over permutations
    units: int  # rows or clusters that were permuted
    of: str = "row"  # "row" or "cluster": what was permuted
    sampled: bool = False  # whether the units are a sample of all


@dataclass(frozen=True)
class RandomisedStrata:
    """Column with strata within which the levels look randomised."""

    column: str
    strata: int
    p: float  # of independence within strata


@dataclass(frozen=True)
class WithinCustomerComparison:
    """Effects of the levels, estimated among all rows and within customers who received several levels."""

    of: str  # "customer" or "cluster": what rows are compared within
    groups: int  # that have several levels
    levels: tuple[int, ...]  # (L + 1,) the compared levels
    among: tuple[Estimate, ...]  # (L,) difference to the first, rows weighted by 1 / propensity
    within: tuple[Estimate, ...]  # (L,) the same, within customers
    difference: tuple[Estimate, ...]  # (L,) among − within
    p: float  # of no difference at any level


@dataclass(frozen=True)
class Leak:
    """Feature that alone explains most of the variance of the response, the level or the cost."""

    feature: str
    of: str  # "response", "level" or "cost"
    explained: float  # share of the variance, on held-out rows


@dataclass(frozen=True)
class HeavyRow:
    """Logged row with one of the largest inverse-propensity weights."""

    row: int
    level: str
    propensity: float
    share: float  # of all weight


@dataclass(frozen=True, eq=False)
class Checkup(DisplayMixin):
    """Findings of all checks of a log, with the figures behind the findings."""

    findings: tuple[Finding, ...]
    rows: int
    clusters: int | None
    labels: tuple[str, ...]
    propensity: Propensities
    overlap: Overlap
    dependence: IndependenceTest
    raw: tuple[Estimate, ...]  # mean response at each level, as logged
    weighted: tuple[Estimate, ...]  # the same, rows weighted by 1 / propensity
    leaks: tuple[Leak, ...]
    heavy: tuple[HeavyRow, ...]
    unsupported: UnsupportedCells
    customers: int | None = None  # different ids, where customers have several rows
    within: WithinCustomerComparison | None = None  # where customers or clusters got several levels

    @property
    def answer(self) -> str:
        """The most serious answer of all findings: "no", "careful" or "fine"."""
        answers = {finding.answer for finding in self.findings}
        return next((answer for answer in ("no", "careful") if answer in answers), "fine")

    def add(self, findings: Sequence[Finding]) -> Checkup:
        """Return the checkup with additional findings, sorted by severity."""
        return replace(self, findings=sort_findings((*self.findings, *findings)))

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings whose answer is not "fine"."""
        return tuple(finding for finding in self.findings if finding.answer != "fine")

    @property
    def randomised(self) -> bool:
        """True if the levels look randomised: no significant dependence on the features."""
        return self.dependence.p >= MAX_SIGNIFICANT_P

    def __repr__(self) -> str:
        checks = "; ".join(f"{finding.topic}: {finding.answer}" for finding in self.findings)
        return f"Checkup({self.rows:,} rows, {self.answer}: {checks})"

    def card(self) -> Card:
        """Return a notebook table of all findings, the most serious first."""
        rows = [(finding.topic, finding.answer, finding.text) for finding in self.findings]
        return Card(f"Checkup of {self.rows:,} rows: {self.answer}", ("check", "answer", ""), rows)

    def to_arrow(self) -> pa.Table:
        """Return a table of all findings, the most serious first."""
        import pyarrow as pa

        rows = [{"topic": finding.topic, "answer": finding.answer, "text": finding.text} for finding in self.findings]
        return pa.Table.from_pylist(rows)
