"""The frozen records that pass between rooms.

Shapes: n rows or customers, K levels. Levels are numbered 0..K−1, cheapest first. Value and spend are averages per
customer unless a name says total. Records hold arrays and numbers; they know nothing about how they were made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Required, TypeAlias, TypedDict

import numpy as np

from largesse.levels import Levels

Array: TypeAlias = np.ndarray[Any, Any]

if TYPE_CHECKING:
    import pyarrow as pa

# What a column of a log can be, and what it then holds: the one list of roles, for `read_log`, campaign files and options.
ROLES = {
    "level": "the level each customer got",
    "response": "what happened",
    "propensity": "the probability with which the row's own level was chosen, in (0, 1]",
    "logger": "the policy that chose the level",
    "cluster": "the household, village or other group whose rows are not independent",
    "weight": "the weight of the row",
    "customer": "the customer's id",
    "features": "the columns to learn from; by default every column that has no other role",
}


class Roles(TypedDict, total=False):
    """Which column has which role; `ROLES` says what each holds."""

    level: Required[str]
    response: Required[str]
    propensity: str | None
    logger: str | None
    cluster: str | None
    weight: str | None
    customer: str | None
    features: Sequence[str] | None


NOT_BY_CHANCE = 0.01  # a p-value below this is not put down to chance


class Progress(Protocol):
    """Hears which stage of the work has begun, and what share of the stage is done (0 to 1)."""

    def __call__(self, stage: str, done: float, /) -> None:
        """Show it."""


@dataclass(frozen=True, eq=False)
class Log:
    """A checked log of past decisions: n rows of features, level, response and what else the table knew.

    Made by `read_log`, which checks every rule once; nothing after it checks again.
    """

    features: pa.Table
    level: Array  # (n,) int64 in 0..K−1
    response: Array  # (n,) float64
    levels: Levels
    propensity: Array | None = None  # (n,) float64: probability with which the row's own level was chosen
    logger: Array | None = None  # (n,) int64 codes of the logging policy
    cluster: Array | None = None  # (n,) int64 codes
    weight: Array | None = None  # (n,) float64
    customer: pa.Array | None = None
    costs: Array | None = None  # (n, K) float64, when costs are per customer
    notes: tuple[str, ...] = ()
    response_name: str = "response"

    def __len__(self) -> int:
        return len(self.level)

    def __repr__(self) -> str:
        extras = [
            name
            for name in ("propensity", "logger", "cluster", "weight", "customer")
            if getattr(self, name) is not None
        ]
        known = f", with {', '.join(extras)}" if extras else ""
        return f"Log({len(self):,} rows, {self.features.num_columns} features, {len(self.levels)} levels{known})"

    @cached_property
    def binary(self) -> bool:
        """Whether every response is 0 or 1."""
        return bool(np.isin(self.response, (0.0, 1.0)).all())

    @cached_property
    def clusters(self) -> int | None:
        """How many clusters there are; None where rows are independent."""
        return None if self.cluster is None else len(np.unique(self.cluster))

    @property
    def weights(self) -> Array:
        """The weight (n,) of every row: ones where none are given."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def scaled_weights(self) -> Array:
        """The weight (n,) of every row, scaled to mean one."""
        return np.ones(len(self)) if self.weight is None else self.weight / self.weight.mean()

    @property
    def fingerprint(self) -> str:
        """A short digest of levels and responses: tells whether a model has seen these rows."""
        digest = hashlib.sha256(np.ascontiguousarray(self.level).tobytes())
        digest.update(np.ascontiguousarray(self.response).tobytes())
        return digest.hexdigest()[:16]

    def take(self, rows: Array) -> Log:
        """Return the log of the given rows (indices or a mask)."""
        index = np.flatnonzero(rows) if rows.dtype == bool else rows

        def part(values: Array | None) -> Array | None:
            return None if values is None else values[index]

        return Log(
            features=self.features.take(index),
            level=self.level[index],
            response=self.response[index],
            levels=self.levels,
            propensity=part(self.propensity),
            logger=part(self.logger),
            cluster=part(self.cluster),
            weight=part(self.weight),
            customer=None if self.customer is None else self.customer.take(index),
            costs=part(self.costs),
            notes=self.notes,
            response_name=self.response_name,
        )


@dataclass(frozen=True, eq=False)
class Customers:
    """Customers to plan for: features, and what else the table knew."""

    features: pa.Table
    customer: pa.Array | None = None
    costs: Array | None = None  # (n, K) float64, when costs are per customer

    def __len__(self) -> int:
        return int(self.features.num_rows)


@dataclass(frozen=True)
class Mix:
    """The one customer whom chance gives the higher of two levels, so that the budget is spent in expectation."""

    customer: int  # row
    low: int
    high: int
    chance: float  # of the higher level


@dataclass(frozen=True, eq=False)
class Plan:
    """One level for each customer, what it costs, and how far from the best plan it can be at most."""

    levels: Array  # (n,) int64
    value: float  # average response
    spend: float  # average cost, never above the budget
    price: float  # response gained per further unit of budget (λ)
    bound: float  # no plan within the budget can be worth more than this
    budget: float  # average per customer
    mix: Mix | None = None  # when one customer is mixed; value and spend are then expected ones
    shadow: dict[str, float] = field(default_factory=dict)  # rule → what one more unit of it would bring

    @property
    def gap(self) -> float:
        """How much better the best plan could be at most."""
        return max(self.bound - self.value, 0.0)

    def __len__(self) -> int:
        return len(self.levels)

    def __repr__(self) -> str:
        return (
            f"Plan({len(self):,} customers, value={self.value:.6g}, spend={self.spend:.6g} of {self.budget:.6g}, "
            f"price={self.price:.4g}, gap={self.gap:.2g})"
        )


@dataclass(frozen=True, eq=False)
class Decisions:
    """A level for each customer, and the probability with which it was chosen: what the next log should hold."""

    levels: Array  # (n,) int64
    propensity: Array  # (n,) float64

    def __len__(self) -> int:
        return len(self.levels)


@dataclass(frozen=True, eq=False)
class Frontier:
    """The best value at every budget: breakpoints of a concave, piecewise linear curve."""

    spend: Array  # (m,) rising
    value: Array  # (m,) rising
    price: Array  # (m,) falling: slope of the piece that ends at the breakpoint; infinite at the first

    def at(self, budget: float) -> float:
        """Return the best value at a budget (one customer may be split between two levels)."""
        if budget < self.spend[0] * (1 - 1e-12):  # the mean of equal costs may be rounded up
            return float("nan")
        return float(np.interp(budget, self.spend, self.value))

    def price_at(self, budget: float) -> float:
        """Return what one more unit of budget buys at this budget; 0 where nothing is left to buy."""
        place = int(np.searchsorted(self.spend, budget, side="right"))
        return float(self.price[place]) if place < len(self.price) else 0.0

    def budget_at(self, price: float) -> float:
        """Return the budget up to which every further unit still brings at least `price`.

        >>> Frontier(np.array([0.0, 1.0, 3.0]), np.array([0.0, 5.0, 7.0]), np.array([np.inf, 5.0, 1.0])).budget_at(2)
        1.0
        """
        return float(self.spend[np.count_nonzero(self.price >= price) - 1])

    def __len__(self) -> int:
        return len(self.spend)


@dataclass(frozen=True)
class Estimate:
    """A number estimated from data, with its standard error and 95 % interval."""

    estimate: float
    se: float
    low: float
    high: float

    @property
    def interval(self) -> tuple[float, float]:
        """Return (low, high)."""
        return (self.low, self.high)


@dataclass(frozen=True, eq=False)
class Propensities:
    """With which probability each row's own level was chosen, and how that is known."""

    own: Array  # (n,) as used: none below the floor
    source: str  # "given" or "estimated"
    model: str = ""  # what estimated them: "logistic", "boosting" or "shares"
    clipped: int = 0  # rows that were raised to the floor
    clipped_weight: float = 0.0  # share of all weight 1 / propensity that raising them took away


@dataclass(frozen=True, eq=False)
class Scores:
    """What a log says about every row and level, made without letting a row judge itself (cross-fitting).

    ``gamma[i, k]`` is the doubly robust score of giving level k to row i: averaged over rows it estimates the mean
    response at that level. Whatever policy is to be judged, its value is a weighted mean of these.
    """

    curves: Array  # (n, K) out-of-fold predictions of the response
    gamma: Array  # (n, K) doubly robust scores of the response
    costs: Array  # (n, K) scores of the cost: known, or doubly robust like gamma when paid on redemption
    expected_costs: Array  # (n, K) costs as the model expects them; what a plan made from the curves would use
    propensity: Array  # (n,) of the logged level, as used
    fold: Array  # (n,) int64
    level: Array  # (n,)
    response: Array  # (n,)
    paid: Array  # (n,) cost of what was done, per row
    weight: Array  # (n,) float64, mean one
    cluster: Array | None
    propensity_source: str  # "given" or "estimated"
    clipped: int = 0  # rows whose estimated propensity was raised to the floor
    clipped_weight: float = 0.0  # share of all weight that raising them took away


@dataclass(frozen=True)
class Finding:
    """Something a reader must know, in plain words: a note, a reason to be careful, or a no."""

    severity: str  # "note", "careful" or "no"
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Reference:
    """Something a plan is compared with: its value and spend, and by how much the plan is better (paired)."""

    name: str
    detail: str
    value: Estimate
    spend: Estimate
    difference: Estimate


@dataclass(frozen=True)
class Evaluation:
    """What a policy will bring and cost, judged from the log alone."""

    value: float
    value_interval: tuple[float, float]
    value_se: float
    spend: float
    spend_interval: tuple[float, float]
    spend_se: float
    estimator: str
    rows: int
    clusters: int | None
    propensity: str
    clipped: int
    budget: float | None = None
    promise: float | None = None  # the model's own prediction for the same policy: usually too good
    references: tuple[Reference, ...] = ()
    warnings: tuple[Finding, ...] = ()
    uniform: tuple[Reference, ...] = ()  # every level given to everybody, and by how much the policy is better
    per_spend: Estimate | None = None  # value per unit spent
    gain_per_spend: Estimate | None = None  # gain over the cheapest level for all, per unit spent more
    clipped_weight: float = 0.0  # share of all weight that raising propensities to the floor took away
    interval: str = "influence"  # where the intervals of value and spend come from: "influence" or "bootstrap"

    def __repr__(self) -> str:
        low, high = self.value_interval
        return (
            f"Evaluation(value={self.value:.4g} [{low:.4g}, {high:.4g}], "
            f"spend={self.spend:.4g} [{self.spend_interval[0]:.4g}, {self.spend_interval[1]:.4g}], {self.rows:,} rows)"
        )


@dataclass(frozen=True)
class DoseEvaluation:
    """What a policy of continuous doses will bring and cost, judged from a log of doses."""

    value: Estimate
    spend: Estimate
    bandwidth: float  # half-width of the kernel, in units of the dose
    effective: float  # rows near enough to the policy's doses, in effect
    density: str  # "given" or "estimated"
    rows: int
    warnings: tuple[Finding, ...] = ()


@dataclass(frozen=True, eq=False)
class HeldOutPlan:
    """A plan for the rows of a log at one budget: each fold is planned by models and a price that never saw it."""

    budget: float  # average per customer
    levels: Array  # (n,) int64
    prices: Array  # (folds,) infinite where a fold's cheapest plan costs more than the budget


@dataclass(frozen=True)
class FrontierPoint:
    """What a policy learnt for one budget really brings and costs (cross-fitted), beside what its model promises."""

    budget: float
    value: Estimate
    spend: Estimate
    promise: float
    price: float
    band: tuple[float, float] = (float("nan"), float("nan"))  # holds for all budgets together


@dataclass(frozen=True)
class QiniPoint:
    """What a learnt policy gains over the cheapest plan at one spend, and what the best uniform mix would."""

    budget: float
    spend: float
    gain: Estimate
    uniform: float
    difference: Estimate  # learnt − uniform at the same spend, paired


@dataclass(frozen=True)
class Qini:
    """The cost curve: gains at every spend, and the mean difference between learnt and uniform over all spends."""

    points: tuple[QiniPoint, ...]
    area: Estimate


@dataclass(frozen=True)
class Choice:
    """One candidate of a choice made from data: its held-out loss, and how it compares with the best (paired)."""

    name: str
    loss: float
    difference: float
    se: float
    chosen: bool = False
    of: str = ""  # what is chosen


@dataclass(frozen=True, eq=False)
class Overlap:
    """How well the log covers each level, and how alike its levels' customers are."""

    rows: Array  # (K,)
    effective: Array  # (K,) effective number of rows after weighting by 1 / propensity
    smallest: Array  # (K,) smallest propensity among the level's rows
    features: tuple[str, ...] = ()
    before: Array = field(
        default_factory=lambda: np.zeros(0)
    )  # (features,) largest standardised difference over levels
    after: Array = field(default_factory=lambda: np.zeros(0))  # the same after weighting
    edges: Array = field(default_factory=lambda: np.zeros(0))  # histogram of propensities of the logged levels
    counts: Array = field(default_factory=lambda: np.zeros((0, 0)))  # (K, bins)
    by_level: Array = field(default_factory=lambda: np.zeros((2, 0, 0)))  # (before and after, features, K) signed


@dataclass(frozen=True)
class Dependence:
    """How clearly levels follow the features: the p-value of their independence, from permutations."""

    p: float
    times: float  # the linear statistic, in units of what permuted levels show
    units: int  # rows or clusters that were permuted


@dataclass(frozen=True)
class Leak:
    """A feature that alone explains most of the response, or of the level."""

    feature: str
    of: str  # "response" or "level"
    explained: float  # share of the variance, on held-out rows


@dataclass(frozen=True)
class HeavyRow:
    """A row that speaks for many others."""

    row: int
    level: str
    propensity: float
    share: float  # of all weight


@dataclass(frozen=True)
class Verdict:
    """One question put to a log, and the answer: fine, careful or no."""

    about: str
    answer: str
    text: str


@dataclass(frozen=True, eq=False)
class Checkup:
    """Can this log answer the question? Verdicts, the most serious first, and the numbers behind them."""

    verdicts: tuple[Verdict, ...]
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
        """The most serious of the verdicts."""
        return self.verdicts[0].answer

    @property
    def randomised(self) -> bool:
        """Whether levels look as if they were given without regard to the features."""
        return self.dependence.p >= NOT_BY_CHANCE

    def __repr__(self) -> str:
        told = "; ".join(f"{v.about}: {v.answer}" for v in self.verdicts)
        return f"Checkup({self.rows:,} rows, {self.answer}: {told})"


@dataclass(frozen=True, eq=False)
class Study:
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
