"""The numbers of a run as they are kept and shown: one record for each of the files fit.json, plan.json and evaluation.json.

The annotations are the schema of these files: `io.to_json` writes them and `io.read_record` checks them. Numbers that are not
finite are null there. Everything in them is a plain number, text or tuple.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from largesse.records.checkup import Checkup
from largesse.records.evaluation import (
    BestBudget,
    Choice,
    Estimate,
    Finding,
    FrontierPoint,
    Profit,
    Qini,
    Recommendation,
    Reference,
)
from largesse.records.input_tables import Log
from largesse.records.logged_policy_changes import LoggedPolicyChanges
from largesse.records.study import DecisionSummary, FeatureCurves

# -- fit ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelName:
    """The fitted model, and a sentence about it."""

    name: str
    about: str


@dataclass(frozen=True)
class ResponseName:
    """The response, and its kind."""

    name: str
    kind: str  # "binary" or "amount"


@dataclass(frozen=True)
class LevelCost:
    """A level and its cost; None where costs differ between customers."""

    name: str
    cost: float | None


@dataclass(frozen=True)
class SampledRows:
    """The rows of a large log that the model learnt from."""

    rows: int
    of: int


@dataclass(frozen=True)
class FitMethod:
    """The candidates of every choice that the model made."""

    tried: tuple[Choice, ...]


@dataclass(frozen=True)
class FitSummary:
    """The model, the response and the levels of a run."""

    model: ModelName
    response: ResponseName
    levels: tuple[LevelCost, ...]
    on_redemption: bool
    observed: bool
    fingerprint: str
    sample: SampledRows | None
    method: FitMethod


def name_response(log: Log) -> ResponseName:
    """Return the name and the kind of a log's response."""
    return ResponseName(log.response_name, "binary" if log.binary else "amount")


def summarise_fit(model: str, about: str, choices: Sequence[Choice], log: Log) -> FitSummary:
    """Return the summary of a model that was fitted to a log."""
    levels = log.levels
    costs = [None] * len(levels) if levels.common_costs is None else levels.common_costs.tolist()
    return FitSummary(
        model=ModelName(model, about),
        response=name_response(log),
        levels=tuple(LevelCost(name, cost) for name, cost in zip(levels.titles, costs, strict=True)),
        on_redemption=bool(levels.on_redemption),
        observed=levels.observed,
        fingerprint=log.fingerprint,
        sample=None if log.sample is None else SampledRows(len(log.seen), len(log)),
        method=FitMethod(tuple(choices)),
    )


# -- plan -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BudgetSize:
    """A budget per customer and in all; None without a limit."""

    average: float | None
    total: float | None


@dataclass(frozen=True)
class PlannedTotals:
    """The plan's value, spend and price as the model expects them."""

    value: float
    spend: float
    price: float
    gap: float
    confidence: float | None = None  # probability that the plan keeps its budget; None: it is certain to


@dataclass(frozen=True)
class LevelTotals:
    """Customers, spend and extra response of one level, in all."""

    name: str
    customers: int
    share: float
    spend: float
    spend_share: float
    extra: float  # response beyond that at the cheapest level
    cost_per_extra: float | None


@dataclass(frozen=True)
class TotalsByLevel:
    """Customers, spend and extra response of every level."""

    levels: tuple[LevelTotals, ...]


@dataclass(frozen=True)
class CustomerGroup:
    """The levels of customers who share a value of a feature."""

    label: str
    customers: int
    shares: tuple[float, ...]  # (K,)
    average_cost: float
    stop_counts: tuple[tuple[int, ...], ...] = ()  # (stops, K) customers at each level at every budget of the slider
    stop_costs: tuple[float, ...] = ()  # (stops,) average cost


@dataclass(frozen=True)
class FeatureGroups:
    """A feature that the planned levels go with, and its groups."""

    feature: str
    explains: float  # share of the levels' variance
    groups: tuple[CustomerGroup, ...]


@dataclass(frozen=True)
class LevelsByGroup:
    """The features that the planned levels go with most."""

    features: tuple[FeatureGroups, ...]


@dataclass(frozen=True)
class SliderPlan:
    """The plan at one budget of the slider."""

    budget: float
    spend: float
    value: float
    price: float
    shares: tuple[float, ...]
    counts: tuple[int, ...]
    own: bool = False  # whether it is the plan of the run
    pays: bool = False  # whether it takes every step that brings what it costs, and no other


@dataclass(frozen=True)
class BudgetSlider:
    """The plans at other budgets and this one, by budget; or the reason why there are none."""

    stops: tuple[SliderPlan, ...]
    excuse: str = ""


@dataclass(frozen=True)
class ExplorationPrecision:
    """The precision that one way to draw the next log gives its evaluation."""

    name: str
    given_up: float
    plan_se: float
    gain_se: float


@dataclass(frozen=True)
class ExplorationSummary:
    """The cost and the precision of a plan that explores."""

    goal: str  # "evaluation" or "learning"
    rate: float
    given_up: float
    money: float
    ways: tuple[ExplorationPrecision, ...]


@dataclass(frozen=True)
class PlanSummary:
    """The plan of a run: its budget, its expected value and spend, and who gets what."""

    customers: int
    budget: BudgetSize
    planned: PlannedTotals
    money: TotalsByLevel
    who: LevelsByGroup
    frontier: BudgetSlider
    shadow: dict[str, float] = field(default_factory=dict)  # constraint → gain of one more unit of it
    exploration: ExplorationSummary | None = None


# -- evaluation -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogFacts:
    """The log that the plan was evaluated on."""

    rows: int
    clusters: int | None
    propensity: str
    clipped: int
    clipped_weight: float


@dataclass(frozen=True)
class LevelResponse:
    """The mean response at one level: by the model, and as logged."""

    name: str
    model: float
    raw: Estimate


@dataclass(frozen=True)
class ResponseCurves:
    """The mean response at each level, of all customers and of groups."""

    levels: tuple[LevelResponse, ...]
    features: tuple[FeatureCurves, ...]


@dataclass(frozen=True)
class FrontierSummary:
    """Value and spend at every budget."""

    points: tuple[FrontierPoint, ...]


@dataclass(frozen=True)
class NamedEstimate:
    """The plan's value by one estimator, and a sentence about the estimator."""

    name: str
    about: str
    estimate: float
    se: float
    low: float
    high: float


@dataclass(frozen=True)
class StudyMethod:
    """The plan's value by every estimator."""

    estimates: tuple[NamedEstimate, ...]


@dataclass(frozen=True)
class LevelOverlap:
    """The rows of one level, and whether they suffice."""

    name: str
    rows: int
    effective: float
    smallest: float
    answer: str


@dataclass(frozen=True)
class PropensityHistogram:
    """The propensities of each level's rows."""

    edges: tuple[float, ...]
    counts: tuple[tuple[float, ...], ...]  # (K, bins)


@dataclass(frozen=True)
class FeatureBalance:
    """Standardised differences of a feature between levels, before and after weighting."""

    feature: str
    before: float
    after: float
    levels_before: tuple[float, ...]
    levels_after: tuple[float, ...]


@dataclass(frozen=True)
class Support:
    """The checks of a log, its overlap and its balance."""

    checks: tuple[Finding, ...]
    overlap: tuple[LevelOverlap, ...]
    propensities: PropensityHistogram
    balance: tuple[FeatureBalance, ...]
    balance_sample: int  # rows that balance was measured on; 0: all


@dataclass(frozen=True)
class StudySummary:
    """The evaluation of a run: value, spend, comparisons, warnings, and every section's estimates."""

    budget: float | None
    log: LogFacts
    estimator: str
    value: Estimate
    spend: Estimate
    promise: float | None
    per_spend: Estimate | None
    gain_per_spend: Estimate | None
    profit: Profit | None
    best_budget: BestBudget | None
    versus: tuple[Reference, ...]
    uniform: tuple[Reference, ...]
    warnings: tuple[Finding, ...]
    curve: ResponseCurves
    frontier: FrontierSummary
    method: StudyMethod
    support: Support
    targeting: Qini
    safety: Recommendation
    why: DecisionSummary
    changes: LoggedPolicyChanges


# -- plan and evaluation --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SliderEstimate:
    """Estimates at one budget of the slider; None where the log does not say. The standard error is not known between budgets."""

    value: Estimate | None
    gain: Estimate | None  # over the best uniform mix at the same spend
    profit: Estimate | None
    judged: bool  # whether the budget is one of the evaluation's; otherwise the estimates lie on the line between two of them


@dataclass(frozen=True)
class SliderEstimates:
    """Estimates at every budget of the slider, in the order of its stops."""

    estimates: tuple[SliderEstimate, ...]


@dataclass(frozen=True)
class NeededRows:
    """The size of a log that would show a gain this log leaves open, if the gain is as large as it seems."""

    times: float  # the rows of this log
    rows: float | None  # None: more than any log has


@dataclass(frozen=True)
class JointSummary:
    """The numbers of a run that need both its plan and its evaluation. They are computed for every report, not kept in a file."""

    frontier: SliderEstimates
    needed_rows: NeededRows | None  # None: nothing to compare with, or no gain at all


def summarise_checkup(checkup: Checkup) -> Support:
    """Return the checks, the overlap of each level, and the balance of each feature."""
    overlap = checkup.overlap
    rows = zip(checkup.labels, overlap.rows, overlap.effective, overlap.smallest, overlap.answers, strict=True)
    before, after = overlap.by_level
    return Support(
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
