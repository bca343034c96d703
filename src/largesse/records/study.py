"""Whether a log can answer the question, and everything that a run says about a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from largesse.records.array import Array
from largesse.records.display import Card, Shown
from largesse.records.evaluation import (
    BestBudget,
    Estimate,
    Evaluation,
    Finding,
    FrontierPoint,
    HeldOutPlan,
    Propensities,
    Qini,
    Safety,
    Scores,
    spread_estimate,
    write_ends,
)
from largesse.records.explanation import Mover
from largesse.records.plan import Spending
from largesse.records.transitions import Changes

if TYPE_CHECKING:
    import pyarrow as pa

FEW_ROWS = 30  # a level with fewer rows, or fewer effective rows, cannot be judged
NOT_BY_CHANCE = 0.01  # a p-value below this is not put down to chance


@dataclass(frozen=True, eq=False)
class Overlap:
    """How well the log covers each level, and how alike the customers of different levels are."""

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
    sampled: int = 0  # rows that differences were measured on; 0: on all. Everything else counts all rows


@dataclass(frozen=True)
class Dependence:
    """How clearly levels follow the features: the p-value of their independence, from permutations."""

    p: float
    times: float  # the linear statistic, relative to its mean over permutations
    units: int  # rows or clusters that were permuted
    of: str = "row"  # "row" or "cluster": what was permuted
    sampled: bool = False  # whether the units are a sample of all


@dataclass(frozen=True)
class Leak:
    """A feature that alone explains most of the response, or of the level."""

    feature: str
    of: str  # "response", "level" or "cost"
    explained: float  # share of the variance, on held-out rows


@dataclass(frozen=True)
class HeavyRow:
    """A row with a large weight."""

    row: int
    level: str
    propensity: float
    share: float  # of all weight


@dataclass(frozen=True, eq=False)
class Checkup(Shown):
    """Whether a log can answer the question: every check, the most serious first, and the numbers behind them."""

    findings: tuple[Finding, ...]
    rows: int
    clusters: int | None
    labels: tuple[str, ...]
    propensity: Propensities
    overlap: Overlap
    dependence: Dependence
    raw: tuple[Estimate, ...]  # mean response at each level, as logged
    weighted: tuple[Estimate, ...]  # the same, rows weighted by 1 / propensity
    leaks: tuple[Leak, ...]
    heavy: tuple[HeavyRow, ...]

    @property
    def answer(self) -> str:
        """The most serious answer: "no", "careful" or "fine"."""
        answers = {finding.answer for finding in self.findings}
        return next((answer for answer in ("no", "careful") if answer in answers), "fine")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are not fine."""
        return tuple(finding for finding in self.findings if finding.answer != "fine")

    @property
    def randomised(self) -> bool:
        """Whether levels look as if they were assigned without regard to the features."""
        return self.dependence.p >= NOT_BY_CHANCE

    def __repr__(self) -> str:
        checks = "; ".join(f"{finding.topic}: {finding.answer}" for finding in self.findings)
        return f"Checkup({self.rows:,} rows, {self.answer}: {checks})"

    def card(self) -> Card:
        """Return all findings, the most serious first."""
        rows = [(found.topic, found.answer, found.text) for found in self.findings]
        return Card(f"Checkup of {self.rows:,} rows: {self.answer}", ("check", "answer", ""), rows)

    def to_arrow(self) -> pa.Table:
        """Return all findings, the most serious first."""
        import pyarrow as pa

        rows = [{"topic": found.topic, "answer": found.answer, "text": found.text} for found in self.findings]
        return pa.Table.from_pylist(rows)


@dataclass(frozen=True)
class GroupPoint:
    """The mean response of a group of customers at one level, and the rows of the log behind it."""

    model: float  # the mean of the model's curves
    value: Estimate  # doubly robust
    rows: int
    effective: float  # effective sample size after weighting by 1 / propensity

    @property
    def few(self) -> bool:
        """Whether too few rows had the level for an estimate."""
        return self.rows < FEW_ROWS or self.effective < FEW_ROWS


@dataclass(frozen=True)
class GroupCurve:
    """The mean response of a group of customers at every level."""

    label: str
    rows: int
    levels: tuple[GroupPoint, ...]


@dataclass(frozen=True)
class FeatureCurves:
    """The response curves of a feature's groups."""

    feature: str
    groups: tuple[GroupCurve, ...]


@dataclass(frozen=True)
class DecisionExample:
    """A typical customer of a level: the curve, the costs, and the prices at which the decision would change."""

    level: str
    share: float  # of customers who get the level
    price: float
    curve: tuple[float, ...]
    costs: tuple[float, ...]
    dearer: str | None
    below: float | None
    cheaper: str | None
    above: float | None


@dataclass(frozen=True)
class PriceMove:
    """The share of customers who would get another level if the price changed."""

    change: float  # relative to the price
    share: float


@dataclass(frozen=True)
class DecisionSummary:
    """The reasons of decisions on held-out rows: typical customers, other prices, and the features that move decisions."""

    examples: tuple[DecisionExample, ...] = ()
    moves: tuple[PriceMove, ...] = ()
    movers: tuple[Mover, ...] = ()


@dataclass(frozen=True, eq=False)
class Study(Shown):
    """Everything a run says about a model at a budget, each number computed once from the same cross-fitted scores."""

    scores: Scores
    plan: HeldOutPlan  # at the budget of the run: what `evaluation` judges
    plans: tuple[HeldOutPlan, ...]  # at every budget of the frontier
    evaluation: Evaluation
    frontier: tuple[FrontierPoint, ...]
    cost_curve: Qini
    estimates: dict[str, Estimate]  # the plan's value by every estimator
    mean_curve: Array  # (K,) the model's own mean response at each level
    checkup: Checkup
    safety: Safety  # the plan and a simple rule: lower bounds of what either gains over the best uniform mix
    transitions: Changes  # from what was done to this plan
    spending: Spending | None = None  # what plans really cost, where costs are not certain
    why: DecisionSummary = DecisionSummary()
    groups: tuple[FeatureCurves, ...] = ()  # response curves of groups, by the features that the plan goes with most
    best: BestBudget | None = None  # for the greatest profit, where the log says what a response is worth

    def __repr__(self) -> str:
        return f"Study({len(self.frontier)} budgets, {self.evaluation!r})"

    def card(self) -> Card:
        """Return the evaluation, and what policies bring at every budget."""
        rows = [
            (point.budget, point.value.estimate, write_ends(point.value.interval), point.promise, point.price)
            for point in self.frontier
        ]
        head = ("budget", "honest value", "95 %", "promise", "price")
        return replace(self.evaluation.card(), below=Card("At every budget", head, rows))

    def to_arrow(self) -> pa.Table:
        """Return what policies learnt for each budget really bring and cost, and what their models promise."""
        import pyarrow as pa

        return pa.Table.from_pylist(
            [
                {
                    "budget": point.budget,
                    **spread_estimate("value", point.value),
                    **spread_estimate("spend", point.spend),
                    "promise": point.promise,
                    "price": point.price,
                    "band_low": point.band[0],
                    "band_high": point.band[1],
                    **({} if point.profit is None else spread_estimate("profit", point.profit)),
                }
                for point in self.frontier
            ]
        )
