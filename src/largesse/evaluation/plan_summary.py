"""Summary of a plan: totals, customers per level, and levels by customer group.

The features and their groups are chosen on a sample of very many customers; the sums count all of them. Counts of
batches are added.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from largesse.allocation import BudgetPoint, count_levels_of_plans
from largesse.data import GroupingRule, find_grouping_rule
from largesse.records import (
    Array,
    BudgetSize,
    BudgetSlider,
    ExplorationSummary,
    FeatureLevelAssociation,
    Finding,
    LevelsByGroup,
    LevelTotals,
    PlannedGroup,
    PlannedTotals,
    PlanSummary,
    SliderPlan,
    TotalsByLevel,
    ValueGroupLevels,
)

if TYPE_CHECKING:
    import pyarrow as pa

MAX_SUMMARY_FEATURES = 4
N_FEATURE_GROUPS = 5
MAX_SUMMARY_ROWS = 200_000  # enough to measure the share that a feature explains
MIN_SEPARATION = 0.005  # share of the plan that a shown feature explains
ScoredBatch: TypeAlias = tuple[Array, Array, Array]  # row numbers (n,), curves (n, K), cost rows (1, K) or (n, K)


@dataclass(frozen=True)
class GroupedFeature:
    """Feature that explains the planned levels, with the grouping of its values."""

    feature: str
    grouping: GroupingRule


@dataclass(frozen=True, eq=False)
class PlanCounts:
    """Number of customers and total cost for each customer group and level; counts of batches can be added.

    Groups are those of all features, one after the other; everyone is the last one.
    """

    features: tuple[GroupedFeature, ...]
    counts: Array  # (groups, K) customers of each group at each level
    spend: Array  # (groups,) total cost of each group
    totals: Array  # (3, K) cost of the customers at each level, and additional cost and response compared with the first level
    other_counts: Array  # (budgets, groups, K) at other budgets
    other_spend: Array  # (budgets, groups)

    def __add__(self, other: PlanCounts) -> PlanCounts:
        sums = {field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)[1:]}
        return PlanCounts(self.features, **sums)

    @property
    def n(self) -> int:
        """Number of customers."""
        return int(self.counts[-1].sum())


def choose_explaining_features(features: pa.Table, levels: Array) -> tuple[GroupedFeature, ...]:
    """Choose the features whose groups explain most of the variance of the planned levels (n,).

    A feature explains the share of the levels' variance that lies between its groups.
    """
    K, candidates = int(levels.max(initial=0)) + 1, []
    for name in features.column_names:
        grouping = find_grouping_rule(features.column(name), N_FEATURE_GROUPS)
        code, size = grouping.assign_groups(features.column(name)), len(grouping.labels)
        share = measure_variance_between_groups(np.bincount(code * K + levels, minlength=size * K).reshape(size, K))
        if share >= MIN_SEPARATION:
            candidates.append((-share, name, grouping))
    candidates.sort(key=lambda candidate: candidate[:2])
    return tuple(GroupedFeature(name, grouping) for _, name, grouping in candidates[:MAX_SUMMARY_FEATURES])


def index_feature_groups(features: Sequence[GroupedFeature], table: pa.Table) -> tuple[Array, int]:
    """Return each customer's group numbers, by feature and overall (n, features + 1), and the number of groups."""
    starts = np.cumsum([0, *(len(feature.grouping.labels) for feature in features)])
    codes = [feature.grouping.assign_groups(table.column(feature.feature)) for feature in features]
    numbered = [np.asarray(code, dtype=np.int64) + start for code, start in zip(codes, starts, strict=False)]
    return np.column_stack([*numbered, np.full(len(table), starts[-1])]), int(starts[-1]) + 1


def count_planned_levels(
    features: tuple[GroupedFeature, ...],
    groups: tuple[Array, int],
    levels: Array,
    batch: ScoredBatch,
    others: tuple[Array, Array] | None = None,
) -> PlanCounts:
    """Count a batch's customers by group and planned level (n,).

    `others` are their counts at other budgets: see `allocation.count_levels_at_budgets`.
    """
    _, curves, costs = batch
    (counts,), (spend,) = count_levels_of_plans(levels[None], batch, *groups)
    rows, wide = np.arange(len(levels)), np.broadcast_to(costs, curves.shape)
    paid = wide[rows, levels]
    parts = (paid, paid - wide[:, 0], curves[rows, levels] - curves[:, 0])
    totals = np.array([np.bincount(levels, part, minlength=curves.shape[1]) for part in parts])
    if others is None:
        others = np.zeros((0, *counts.shape), dtype=np.int64), np.zeros((0, *spend.shape))
    return PlanCounts(features, counts, spend, totals, *others)


def measure_variance_between_groups(grouped: Array) -> float:
    """Return the share of the levels' variance between groups, given customer counts (groups, K)."""
    levels, sizes = np.arange(grouped.shape[1]), grouped.sum(axis=1)
    n = int(sizes.sum())
    if not n:
        return 0.0
    mean = float(grouped.sum(axis=0) @ levels) / n
    total = float(grouped.sum(axis=0) @ (levels - mean) ** 2)
    between = float(sizes @ ((grouped @ levels) / np.maximum(sizes, 1) - mean) ** 2)
    return between / total if total > 0 else 0.0


# -- plans at other budgets ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CountedPlan:
    """Plan at one budget: value and spend per customer, and customer counts by group and level."""

    budget: float
    spend: float
    value: float
    price: float
    counts: Array  # (groups, K); everyone comes last
    paid: Array  # (groups,) in total
    own: bool = False  # whether it is the plan of the run
    breaks_even: bool = False  # whether it takes every step that brings what it costs, and no other


def sort_plans_by_budget(plan: PlanAverages, counts: PlanCounts, points: Sequence[BudgetPoint]) -> list[CountedPlan]:
    """Return the run's plan and the plans at other budgets, sorted by budget, without duplicates."""
    others = [
        CountedPlan(
            point.budget, point.spend, point.value, point.price, counted, paid * point.ratio, False, point.breaks_even
        )
        for point, counted, paid in zip(points, counts.other_counts, counts.other_spend, strict=True)
    ]
    if not others or not math.isfinite(plan.budget):
        return others
    different = [
        other
        for other in others
        if not (np.array_equal(other.counts, counts.counts) and math.isclose(other.value, plan.value, rel_tol=1e-9))
    ]
    even = any(other.breaks_even for other in others) and not any(other.breaks_even for other in different)
    own = CountedPlan(plan.budget, plan.spend, plan.value, plan.price, counts.counts, counts.spend, True, even)
    return sorted([own, *different], key=lambda counted: counted.budget)


# -- the summary ----------------------------------------------------------------------------------------------------------


class PlanAverages(Protocol):
    """Interface of a plan with its average value and spend, its budget, and the budget's shadow price."""

    @property
    def value(self) -> float: ...  # noqa: D102
    @property
    def spend(self) -> float: ...  # noqa: D102
    @property
    def price(self) -> float: ...  # noqa: D102
    @property
    def budget(self) -> float: ...  # noqa: D102
    @property
    def gap(self) -> float: ...  # noqa: D102
    def __len__(self) -> int: ...


def summarise_plan(
    plan: PlanAverages,
    labels: Sequence[str],
    counts: PlanCounts,
    *,
    confidence: float | None = None,
    shadow: Mapping[str, float] | None = None,
    points: Sequence[BudgetPoint] = (),
    excuse: str = "",
    exploration: ExplorationSummary | None = None,
    customer_warnings: Sequence[Finding] = (),
    groups: Sequence[PlannedGroup] = (),
) -> PlanSummary:
    """Summarise a plan from counts of its customers by group and level."""
    counted = sort_plans_by_budget(plan, counts, points)
    budget = plan.budget if math.isfinite(plan.budget) else None
    stops = []
    for stop in counted:
        everyone = stop.counts[-1]
        shares, numbers = tuple((everyone / max(int(everyone.sum()), 1)).tolist()), tuple(everyone.tolist())
        stops.append(
            SliderPlan(stop.budget, stop.spend, stop.value, stop.price, shares, numbers, stop.own, stop.breaks_even)
        )
    return PlanSummary(
        customers=len(plan),
        budget=BudgetSize(budget, None if budget is None else budget * len(plan)),
        planned=PlannedTotals(plan.value, plan.spend, plan.price, plan.gap, confidence),
        money=_sum_totals_by_level(labels, counts),
        who=_list_levels_by_group(counts, counted),
        frontier=BudgetSlider(tuple(stops), excuse),
        shadow=dict(shadow or {}),
        exploration=exploration,
        customer_warnings=tuple(customer_warnings),
        groups=tuple(groups),
    )


def _sum_totals_by_level(labels: Sequence[str], counts: PlanCounts) -> TotalsByLevel:
    """Return each level's number of customers, total cost and extra response over the cheapest level."""
    spend, more, extra = counts.totals.tolist()
    total = sum(spend)
    return TotalsByLevel(
        tuple(
            LevelTotals(
                name=label,
                customers=int(counts.counts[-1, k]),
                share=float(counts.counts[-1, k] / counts.n),
                spend=spend[k],
                spend_share=spend[k] / total if total > 0 else 0.0,
                extra=extra[k],
                cost_per_extra=more[k] / extra[k] if extra[k] > 0 and k > 0 else None,
            )
            for k, label in enumerate(labels)
        )
    )


def _list_levels_by_group(counts: PlanCounts, plans: Sequence[CountedPlan]) -> LevelsByGroup:
    """List planned levels and costs by customer group, for the plan and for every budget of the report's slider."""
    features, first = [], 0
    for feature in counts.features:
        groups, labels = [], feature.grouping.labels
        for group, label in enumerate(labels, first):
            levels = counts.counts[group]
            if levels.any():
                n = int(levels.sum())
                groups.append(
                    ValueGroupLevels(
                        label=label,
                        customers=n,
                        shares=tuple((levels / n).tolist()),
                        average_cost=float(counts.spend[group] / n),
                        stop_counts=tuple(tuple(stop.counts[group].tolist()) for stop in plans),
                        stop_costs=tuple(float(stop.paid[group] / int(stop.counts[group].sum())) for stop in plans),
                    )
                )
        explained = measure_variance_between_groups(counts.counts[first : first + len(labels)])
        features.append(FeatureLevelAssociation(feature.feature, explained, tuple(groups)))
        first += len(labels)
    return LevelsByGroup(tuple(sorted(features, key=lambda feature: -feature.explains)))
