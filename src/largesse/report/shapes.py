"""What the files of numbers hold that the steps of a run leave: declared here once, checked whenever one is read.

A number may be missing (None): JSON has no word for one that is not finite. Other keys than these may be there, too.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

from largesse.report.exploration import ExplorationNumbers
from largesse.report.shape_parts import Changes, Estimate, FeatureCurves, Number, Why

Answer: TypeAlias = Literal["fine", "note", "careful", "no"]


class NamedEstimate(Estimate):
    """An estimate by one estimator."""

    name: str


class Reference(TypedDict):
    """A comparison."""

    name: str
    detail: str
    value: Estimate
    spend: Estimate
    difference: Estimate
    profit: NotRequired[Estimate]
    profit_difference: NotRequired[Estimate]


class BestBudget(TypedDict):
    """The budget that leaves most after costs."""

    budget: Number
    profit: Estimate
    low: Number
    high: Number
    may_be_this: bool


class Profit(TypedDict):
    """What is left after costs."""

    response_value: Number
    own: Estimate
    gain: Estimate
    returned: Estimate
    best: NotRequired[BestBudget]


class Finding(TypedDict):
    """A warning, or the answer of a check."""

    topic: str
    answer: Answer
    text: str


class Name(TypedDict):
    """Something with a name."""

    name: str


class Level(TypedDict):
    """A level and its cost, where that is the same for everybody."""

    name: str
    cost: Number


class Response(TypedDict):
    """The response, and what it is."""

    name: str
    kind: Literal["binary", "amount"]


class Tried(TypedDict):
    """A candidate of a choice."""

    name: str
    loss: Number
    difference: Number
    se: Number
    chosen: bool
    of: str


class Choices(TypedDict):
    """What the model tried."""

    tried: list[Tried]


class LearntRows(TypedDict):
    """How many rows of a large log the model learnt from."""

    rows: int
    of: int


class FitNumbers(TypedDict):
    """What `fit` leaves."""

    model: Name
    response: Response
    levels: list[Level]
    on_redemption: bool
    observed: NotRequired[bool]
    fingerprint: str
    sample: NotRequired[LearntRows]
    method: Choices


class Budget(TypedDict):
    """A budget per customer and in all; no number where there is no limit."""

    average: Number
    total: Number


class Planned(TypedDict):
    """What the model expects of the plan."""

    value: Number
    spend: Number
    price: Number
    gap: Number
    confidence: NotRequired[Number]


class LevelMoney(TypedDict):
    """Where the money goes: one level."""

    name: str
    customers: int
    share: Number
    spend: Number
    spend_share: Number
    extra: Number
    cost_per_extra: Number


class Money(TypedDict):
    """Where the money goes."""

    levels: list[LevelMoney]


class Group(TypedDict):
    """Customers who share a value of a feature."""

    label: str
    customers: int
    shares: list[Number]
    average_cost: Number
    stop_counts: NotRequired[list[list[int]]]  # at every stop of the budget slider
    stop_costs: NotRequired[list[Number]]


class Feature(TypedDict):
    """A feature that goes with the levels."""

    feature: str
    explains: Number
    groups: list[Group]


class Who(TypedDict):
    """The features that go with the levels most."""

    features: list[Feature]


class Stop(TypedDict):
    """The plan at another budget."""

    budget: Number
    spend: Number
    value: Number
    price: Number
    shares: list[Number]
    counts: NotRequired[list[int]]
    own: NotRequired[bool]
    pays: NotRequired[bool]


class Stops(TypedDict):
    """The plans at other budgets and this one, the smallest first; or why there are none."""

    stops: list[Stop]
    excuse: NotRequired[str]


class PlanNumbers(TypedDict):
    """What `plan` leaves."""

    customers: int
    budget: Budget
    planned: Planned
    shadow: NotRequired[dict[str, Number]]
    exploration: NotRequired[ExplorationNumbers]
    money: Money
    who: Who
    frontier: NotRequired[Stops]


class LogFacts(TypedDict):
    """The log that the plan was judged by."""

    rows: int
    clusters: int | None
    propensity: str
    clipped: Number
    clipped_weight: Number


class CurveLevel(TypedDict):
    """The mean response at one level."""

    name: str
    model: Number
    raw: Estimate


class Curve(TypedDict):
    """The mean response at each level, and that of groups of customers."""

    levels: list[CurveLevel]
    features: NotRequired[list[FeatureCurves]]


class Band(TypedDict):
    """The ends of a band."""

    low: Number
    high: Number


class Point(TypedDict):
    """The best plan at one budget."""

    budget: Number
    value: Estimate
    spend: Estimate
    band: Band
    promise: Number
    price: Number
    profit: NotRequired[Estimate]


class Points(TypedDict):
    """The frontier."""

    points: list[Point]


class Estimates(TypedDict):
    """The plan's value by every estimator."""

    estimates: list[NamedEstimate]


class Overlap(TypedDict):
    """How well the log covers a level."""

    name: str
    rows: int
    effective: Number
    smallest: Number
    answer: Answer


class Histogram(TypedDict):
    """The propensities of each level."""

    edges: list[Number]
    counts: list[list[Number]]


class Balance(TypedDict):
    """How alike the customers of the levels are in a feature."""

    feature: str
    before: Number
    after: Number
    levels_before: list[Number]
    levels_after: list[Number]


class Support(TypedDict):
    """Whether the log can answer the question."""

    checks: list[Finding]
    overlap: list[Overlap]
    propensities: Histogram
    balance: list[Balance]


class TargetingPoint(TypedDict):
    """What choosing gains at one spend."""

    budget: NotRequired[Number]
    spend: Number
    gain: Estimate
    uniform: Number
    difference: Estimate


class Targeting(TypedDict):
    """What choosing gains."""

    area: Estimate
    points: list[TargetingPoint]


class Option(TypedDict):
    """One way to spend the money."""

    name: str
    detail: str
    value: Estimate
    spend: Estimate
    gain: Estimate
    at_least: Number
    guaranteed: Number
    profit: NotRequired[Estimate]


class Safety(TypedDict):
    """The plan beside a simple rule."""

    options: list[Option]
    recommended: str
    excuse: str


class StudyNumbers(TypedDict):
    """What `evaluate` leaves."""

    budget: Number
    log: LogFacts
    estimator: str
    value: Estimate
    spend: Estimate
    promise: Number
    per_spend: Estimate
    gain_per_spend: Estimate
    profit: NotRequired[Profit]
    versus: list[Reference]
    uniform: list[Reference]
    warnings: list[Finding]
    curve: Curve
    frontier: Points
    method: Estimates
    support: Support
    targeting: Targeting
    safety: Safety
    why: NotRequired[Why]
    changes: NotRequired[Changes]
