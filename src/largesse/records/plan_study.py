"""Study of one log and model: evaluation, frontier, cost curve, explanations and checks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from largesse.records.allocation_results import SpendingCurve
from largesse.records.array_type import Array
from largesse.records.checkup import MIN_LEVEL_ROWS, Checkup
from largesse.records.display import Card, DisplayMixin
from largesse.records.evaluation import (
    BestBudget,
    Estimate,
    Evaluation,
    FrontierPoint,
    HeldOutPlan,
    PolicyGainBounds,
    QiniCurve,
    Scores,
    format_interval_ends,
    list_estimate_cells,
)
from largesse.records.explanation import FeatureDecisionImportance
from largesse.records.exploration import ConfirmatoryExplorationSize
from largesse.records.logged_policy_changes import LoggedPolicyChanges

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class GroupLevelResponse:
    """Mean response of a customer group at one level, with the number of logged rows."""

    model: float  # the mean of the model's curves
    value: Estimate  # doubly robust
    rows: int
    effective: float  # effective sample size after weighting by 1 / propensity

    @property
    def few(self) -> bool:
        """True if the level has too few rows in the group for an estimate."""
        return self.rows < MIN_LEVEL_ROWS or self.effective < MIN_LEVEL_ROWS


@dataclass(frozen=True)
class GroupResponseCurve:
    """Mean response of a customer group at every level."""

    label: str
    rows: int
    levels: tuple[GroupLevelResponse, ...]


@dataclass(frozen=True)
class FeatureResponseCurves:
    """Response curves of the groups of one feature."""

    feature: str
    groups: tuple[GroupResponseCurve, ...]


@dataclass(frozen=True)
class DecisionExample:
    """Typical customer of a level, with response curve, costs, and shadow prices at which the level would change."""

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
class PriceSensitivity:
    """Share of customers whose level changes if the budget's shadow price changes by a factor."""

    change: float  # relative to the price
    share: float


@dataclass(frozen=True)
class DecisionReasons:
    """Explanation of held-out decisions: typical customers, sensitivity to the shadow price, feature importance."""

    examples: tuple[DecisionExample, ...] = ()
    moves: tuple[PriceSensitivity, ...] = ()
    movers: tuple[FeatureDecisionImportance, ...] = ()


@dataclass(frozen=True)
class ProtectedGroup:
    """Spend and gain of a plan for the customers who share a value of a protected attribute."""

    label: str
    rows: int
    share: float  # of all customers
    spend: Estimate
    extra: Estimate  # response beyond that at the cheapest level
    gain: Estimate  # over the best uniform mix at the same spend


@dataclass(frozen=True)
class ProtectedAttribute:
    """Groups of a protected attribute."""

    column: str
    groups: tuple[ProtectedGroup, ...]


@dataclass(frozen=True, eq=False)
class Study(DisplayMixin):
    """All estimates of a run at one budget, computed once from the same cross-fitted scores."""

    scores: Scores
    plan: HeldOutPlan  # at the budget of the run; `evaluation` estimates its value
    plans: tuple[HeldOutPlan, ...]  # at every budget of the frontier
    evaluation: Evaluation
    frontier: tuple[FrontierPoint, ...]
    cost_curve: QiniCurve
    estimates: dict[str, Estimate]  # the plan's value by every estimator
    mean_curve: Array  # (K,) the model's own mean response at each level
    checkup: Checkup
    safety: PolicyGainBounds  # lower bounds of the gains of the plan and of a simple rule over the best uniform mix
    transitions: LoggedPolicyChanges  # from the logged policy to this plan
    spending: SpendingCurve | None = None  # estimated costs of plans, where costs are not certain
    why: DecisionReasons = DecisionReasons()
    groups: tuple[
        FeatureResponseCurves, ...
    ] = ()  # response curves of groups, by the features most associated with the plan
    best: BestBudget | None = None  # budget of the largest profit, if the log has the value of a response
    next_log: ConfirmatoryExplorationSize | None = (
        None  # that would settle the verdict; None if it is settled, or the plan cannot explore
    )
    protected: tuple[ProtectedAttribute, ...] = ()  # spend and gain by group

    def __repr__(self) -> str:
        return f"Study({len(self.frontier)} budgets, {self.evaluation!r})"

    def card(self) -> Card:
        """Return a notebook table of the evaluation, and one of policies at every budget."""
        rows = [
            (point.budget, point.value.estimate, format_interval_ends(point.value.interval), point.promise, point.price)
            for point in self.frontier
        ]
        head = ("budget", "honest value", "95 %", "promise", "price")
        return replace(self.evaluation.card(), below=Card("At every budget", head, rows))

    def to_arrow(self) -> pa.Table:
        """Return a table of value and spend of plans, and of the best mix of levels for all customers, by budget."""
        import pyarrow as pa

        mixes = self.cost_curve.mixes
        spends, values = [mix.spend for mix in mixes], [mix.value for mix in mixes]

        return pa.Table.from_pylist(
            [
                {
                    "budget": point.budget,
                    **list_estimate_cells("value", point.value),
                    **list_estimate_cells("spend", point.spend),
                    "promise": point.promise,
                    "price": point.price,
                    "band_low": point.band[0],
                    "band_high": point.band[1],
                    "mix": float(np.interp(point.spend.estimate, spends, values)) if mixes else None,
                    **({} if point.profit is None else list_estimate_cells("profit", point.profit)),
                }
                for point in self.frontier
            ]
        )
