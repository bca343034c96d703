"""Summaries of a run that are stored as fit.json, plan.json and evaluation.json.

The annotations are the schema of these files: `io.to_json` writes them and `io.read_record` checks them. Numbers that are not
finite are null there. Everything in them is a plain number, text or tuple.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from largesse.records.checkup import Checkup
from largesse.records.evaluation import (
    BestBudget,
    CandidateLoss,
    Estimate,
    Finding,
    FrontierPoint,
    PolicyGainBounds,
    Profit,
    QiniCurve,
    Reference,
    Verdict,
)
from largesse.records.exploration import ConfirmatoryExplorationSize
from largesse.records.input_tables import Log
from largesse.records.logged_policy_changes import LoggedPolicyChanges
from largesse.records.plan_study import DecisionReasons, FeatureResponseCurves, ProtectedAttribute

# -- fit ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelDescription:
    """Name of the fitted model and a sentence about this model."""

    name: str
    about: str


@dataclass(frozen=True)
class ResponseDescription:
    """Name and kind of the response."""

    name: str
    kind: str  # "binary" or "amount"


@dataclass(frozen=True)
class LevelCost:
    """Name of a level and its cost; None where costs differ between customers."""

    name: str
    cost: float | None


@dataclass(frozen=True)
class SampledRowCount:
    """Number of rows of a large log, and number of rows of the sample for fitting models."""

    rows: int
    of: int


@dataclass(frozen=True)
class FitChoices:
    """Held-out losses of the candidates for each automatic choice in the fit."""

    tried: tuple[CandidateLoss, ...]


@dataclass(frozen=True)
class FitSummary:
    """Model, response and levels of a run."""

    model: ModelDescription
    response: ResponseDescription
    levels: tuple[LevelCost, ...]
    on_redemption: bool
    observed: bool
    fingerprint: str
    sample: SampledRowCount | None
    method: FitChoices


def describe_log_response(log: Log) -> ResponseDescription:
    """Return the name and the kind of a log's response."""
    return ResponseDescription(log.response_name, "binary" if log.binary else "amount")


def summarise_fit(model: str, about: str, choices: Sequence[CandidateLoss], log: Log) -> FitSummary:
    """Return the summary of a model that was fitted to a log."""
    levels = log.levels
    costs = [None] * len(levels) if levels.common_costs is None else levels.common_costs.tolist()
    return FitSummary(
        model=ModelDescription(model, about),
        response=describe_log_response(log),
        levels=tuple(LevelCost(name, cost) for name, cost in zip(levels.titles, costs, strict=True)),
        on_redemption=bool(levels.on_redemption),
        observed=levels.observed,
        fingerprint=log.fingerprint,
        sample=None if log.sample is None else SampledRowCount(len(log.seen), len(log)),
        method=FitChoices(tuple(choices)),
    )


# -- plan -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BudgetSize:
    """Budget per customer and in total; None if unlimited."""

    average: float | None
    total: float | None


@dataclass(frozen=True)
class PlannedTotals:
    """Predicted value and spend of the plan, with its budget's shadow price."""

    value: float
    spend: float
    price: float
    gap: float
    confidence: float | None = None  # probability that the plan keeps its budget; None if that is certain


@dataclass(frozen=True)
class LevelTotals:
    """Number of customers, total spend and total extra response of one level."""

    name: str
    customers: int
    share: float
    spend: float
    spend_share: float
    extra: float  # response beyond that at the cheapest level
    cost_per_extra: float | None


@dataclass(frozen=True)
class TotalsByLevel:
    """Number of customers, total spend and total extra response of every level."""

    levels: tuple[LevelTotals, ...]


@dataclass(frozen=True)
class ValueGroupLevels:
    """Planned levels of the customers who share a value of a feature."""

    label: str
    customers: int
    shares: tuple[float, ...]  # (K,)
    average_cost: float
    stop_counts: tuple[tuple[int, ...], ...] = ()  # (stops, K) customers at each level at every budget of the slider
    stop_costs: tuple[float, ...] = ()  # (stops,) average cost


@dataclass(frozen=True)
class FeatureLevelAssociation:
    """Feature that is associated with the planned levels, and the groups of its values."""

    feature: str
    explains: float  # share of the levels' variance
    groups: tuple[ValueGroupLevels, ...]


@dataclass(frozen=True)
class LevelsByGroup:
    """Planned levels by customer group, for the features most strongly associated with the levels."""

    features: tuple[FeatureLevelAssociation, ...]


@dataclass(frozen=True)
class SliderPlan:
    """Plan at one budget of the report's slider."""

    budget: float
    spend: float
    value: float
    price: float
    shares: tuple[float, ...]
    counts: tuple[int, ...]
    own: bool = False  # True for the plan of the run
    pays: bool = False  # True for the plan with all upgrades whose value is at least their cost


@dataclass(frozen=True)
class BudgetSlider:
    """Plans at all budgets of the report's slider, or the reason for their absence."""

    stops: tuple[SliderPlan, ...]
    excuse: str = ""


@dataclass(frozen=True)
class ExplorationPrecision:
    """Expected precision of the next log's estimates under one exploration design."""

    name: str
    given_up: float
    plan_se: float
    gain_se: float


@dataclass(frozen=True)
class ExplorationSummary:
    """Goal, cost and expected precision of an exploration."""

    goal: str  # "evaluation" or "learning"
    rate: float
    given_up: float
    money: float
    ways: tuple[ExplorationPrecision, ...]


@dataclass(frozen=True)
class GroupCondition:
    """Condition on one feature that defines a group of customers."""

    feature: str
    kind: str  # "number", "flag" (0 or 1), "date" or "text"
    holds: bool
    limit: float | None = None  # numbers and dates below it
    word: str | None = None  # texts equal to it
    or_missing: bool = False  # True if customers without a value belong to the group, too


@dataclass(frozen=True)
class PlannedGroup:
    """Customer group defined by a few conditions, with its most frequent planned level."""

    conditions: tuple[GroupCondition, ...]
    share: float  # of all customers
    level: int
    agreement: float  # share of the group that gets this level


@dataclass(frozen=True)
class PlanSummary:
    """Plan of a run: budget, expected value and spend, and levels by customer group."""

    customers: int
    budget: BudgetSize
    planned: PlannedTotals
    money: TotalsByLevel
    who: LevelsByGroup
    frontier: BudgetSlider
    shadow: dict[str, float] = field(default_factory=dict)  # constraint → value of one more unit of its limit
    exploration: ExplorationSummary | None = None
    customer_warnings: tuple[Finding, ...] = ()  # about customers who are not those of the log
    groups: tuple[PlannedGroup, ...] = ()  # that describe the plan in a few conditions, the largest first


# -- evaluation -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EvaluationLogSummary:
    """Number of rows and propensities of the log that evaluates the plan."""

    rows: int
    clusters: int | None
    propensity: str
    clipped: int
    clipped_weight: float
    customers: int | None = None  # different ids, where customers have several rows


@dataclass(frozen=True)
class LevelResponse:
    """Mean response at one level: weighted by 1 / propensity, unweighted, and predicted by the model.

    The weighted mean is that of the log's checkup.
    """

    name: str
    value: Estimate
    raw: Estimate
    model: float


@dataclass(frozen=True)
class ResponseCurves:
    """Mean response at each level, for all customers and for groups of customers."""

    levels: tuple[LevelResponse, ...]
    features: tuple[FeatureResponseCurves, ...]


@dataclass(frozen=True)
class FrontierSummary:
    """Estimated value and spend at every budget."""

    points: tuple[FrontierPoint, ...]


@dataclass(frozen=True)
class EstimatorValue:
    """Value of the plan by one estimator, and a sentence about this estimator."""

    name: str
    about: str
    estimate: float
    se: float
    low: float
    high: float


@dataclass(frozen=True)
class ValueByEstimator:
    """Value of the plan by every estimator."""

    estimates: tuple[EstimatorValue, ...]


@dataclass(frozen=True)
class LevelOverlap:
    """Overlap of one level: number of logged rows, effective sample size, smallest propensity and grade.

    The grade is "fine", "careful" or "no".
    """

    name: str
    rows: int
    effective: float
    smallest: float
    answer: str


@dataclass(frozen=True)
class PropensityHistogram:
    """Histogram of the propensities of each level's rows."""

    edges: tuple[float, ...]
    counts: tuple[tuple[float, ...], ...]  # (K, bins)


@dataclass(frozen=True)
class FeatureBalance:
    """Standardised differences of one feature between levels, before and after weighting by 1 / propensity."""

    feature: str
    before: float
    after: float
    levels_before: tuple[float, ...]
    levels_after: tuple[float, ...]


@dataclass(frozen=True)
class LogCheckSummary:
    """Findings of a log's checks, with the overlap of the levels and the balance of the features."""

    checks: tuple[Finding, ...]
    overlap: tuple[LevelOverlap, ...]
    propensities: PropensityHistogram
    balance: tuple[FeatureBalance, ...]
    balance_sample: int  # rows that balance was measured on; 0: all


@dataclass(frozen=True)
class StudySummary:
    """Evaluation of a run: value, spend, comparisons, warnings, and the estimates of every report section."""

    budget: float | None
    log: EvaluationLogSummary
    estimator: str
    value: Estimate
    spend: Estimate
    promise: float | None
    profit: Profit | None
    best_budget: BestBudget | None
    versus: tuple[Reference, ...]
    uniform: tuple[Reference, ...]
    warnings: tuple[Finding, ...]
    curve: ResponseCurves
    frontier: FrontierSummary
    method: ValueByEstimator
    support: LogCheckSummary
    targeting: QiniCurve
    safety: PolicyGainBounds
    why: DecisionReasons
    changes: LoggedPolicyChanges
    verdict: Verdict
    next_log: ConfirmatoryExplorationSize | None = None  # see `Study.next_log`
    protected: tuple[ProtectedAttribute, ...] = ()


# -- plan and evaluation --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SliderEstimate:
    """Value, gain and profit at one budget of the report's slider; each is None if unavailable.

    Interpolated estimates have no standard error.
    """

    value: Estimate | None
    gain: Estimate | None  # over the best uniform mix at the same spend
    profit: Estimate | None
    judged: bool  # True if the budget is one of the evaluation's; otherwise the estimates are interpolated


@dataclass(frozen=True)
class SliderEstimates:
    """Estimates at every budget of the report's slider, in the order of the budgets."""

    estimates: tuple[SliderEstimate, ...]


@dataclass(frozen=True)
class NeededRows:
    """Number of log rows that would confirm an estimated gain."""

    times: float  # multiple of the rows of this log
    rows: float | None  # None if no log has as many


@dataclass(frozen=True)
class SliderSummary:
    """Estimates of the evaluation at the budgets of the plan's slider.

    They are computed for every report, not stored.
    """

    frontier: SliderEstimates


def summarise_checkup(checkup: Checkup) -> LogCheckSummary:
    """Convert a log's checkup to a summary of plain numbers for the report."""
    overlap = checkup.overlap
    rows = zip(checkup.labels, overlap.rows, overlap.effective, overlap.smallest, overlap.answers, strict=True)
    before, after = overlap.by_level
    return LogCheckSummary(
        checks=checkup.findings,
        overlap=tuple(
            LevelOverlap(label, int(n), float(effective), float(smallest), answer)
            for label, n, effective, smallest, answer in rows
        ),
        propensities=PropensityHistogram(
            tuple(overlap.edges.tolist()), tuple(tuple(row) for row in overlap.counts.tolist())
        ),
        balance=tuple(
            FeatureBalance(
                name,
                float(overlap.before[j]),
                float(overlap.after[j]),
                tuple(before[j].tolist()),
                tuple(after[j].tolist()),
            )
            for j, name in enumerate(overlap.features)
        ),
        balance_sample=overlap.sampled,
    )
