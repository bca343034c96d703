"""Who gets what in a plan: the features that go with its levels, and sums over groups of customers.

The features and their groups are chosen on a sample of the customers where there are very many; the sums count all of them. Counts of
batches are added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from largesse.allocation import BudgetPoint, count_levels
from largesse.data import Grouping, find_grouping
from largesse.records import (
    Array,
    BudgetSize,
    BudgetSlider,
    BudgetStop,
    CustomerGroup,
    ExplorationSummary,
    FeatureGroups,
    LevelMoney,
    LevelsByGroup,
    MoneyByLevel,
    PlannedTotals,
    PlanSummary,
)

if TYPE_CHECKING:
    import pyarrow as pa

MAX_FEATURES = 4
GROUPS = 5
SAMPLE = 200_000  # rows are enough to know how much a feature explains
MIN_SEPARATION = 0.005  # a feature that explains less of the plan than this is not worth a picture
Batch: TypeAlias = tuple[Array, Array, Array]  # row numbers (n,), curves (n, K), cost rows (1, K) or (n, K)


@dataclass(frozen=True)
class GroupedFeature:
    """A feature that goes with the planned levels, and its groups."""

    feature: str
    grouping: Grouping


@dataclass(frozen=True, eq=False)
class PlanCounts:
    """Who gets what in some customers; counts of batches are added.

    Groups are those of all features, one after the other; everyone is the last one.
    """

    features: tuple[GroupedFeature, ...]
    counts: Array  # (groups, K) customers of each group at each level
    spend: Array  # (groups,) what each group costs
    totals: Array  # (3, K) what customers at each level cost, and cost and bring more than at the first level
    other_counts: Array  # (budgets, groups, K) at other budgets
    other_spend: Array  # (budgets, groups)

    def __add__(self, other: PlanCounts) -> PlanCounts:
        sums = {field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)[1:]}
        return PlanCounts(self.features, **sums)

    @property
    def n(self) -> int:
        """How many customers were counted."""
        return int(self.counts[-1].sum())


def choose_features(features: pa.Table, levels: Array) -> tuple[GroupedFeature, ...]:
    """Return the features that explain most of the planned levels (n,), the best first, with groups found on these customers.

    How much a feature explains is the share of the levels' variance that lies between its groups.
    """
    K, found = int(levels.max(initial=0)) + 1, []
    for name in features.column_names:
        grouping = find_grouping(features.column(name), GROUPS)
        code, size = grouping.code(features.column(name)), len(grouping.labels)
        share = measure_separation(np.bincount(code * K + levels, minlength=size * K).reshape(size, K))
        if share >= MIN_SEPARATION:
            found.append((-share, name, grouping))
    found.sort(key=lambda one: one[:2])
    return tuple(GroupedFeature(name, grouping) for _, name, grouping in found[:MAX_FEATURES])


def number_groups(features: Sequence[GroupedFeature], table: pa.Table) -> tuple[Array, int]:
    """Return the groups (n, features + 1) of customers, numbered through, and their number; the last group holds everyone."""
    starts = np.cumsum([0, *(len(one.grouping.labels) for one in features)])
    codes = [one.grouping.code(table.column(one.feature)) for one in features]
    numbered = [np.asarray(code, dtype=np.int64) + start for code, start in zip(codes, starts, strict=False)]
    return np.column_stack([*numbered, np.full(len(table), starts[-1])]), int(starts[-1]) + 1


def count_plan(
    features: tuple[GroupedFeature, ...],
    groups: tuple[Array, int],
    levels: Array,
    batch: Batch,
    others: tuple[Array, Array] | None = None,
) -> PlanCounts:
    """Count the customers of a batch at their levels (n,): their `groups` are those of `number_groups`.

    `others` are their counts at other budgets: see `allocation.count_at_budgets`.
    """
    _, curves, costs = batch
    (counts,), (spend,) = count_levels(levels[None], batch, *groups)
    rows, wide = np.arange(len(levels)), np.broadcast_to(costs, curves.shape)
    paid = wide[rows, levels]
    parts = (paid, paid - wide[:, 0], curves[rows, levels] - curves[:, 0])
    totals = np.array([np.bincount(levels, part, minlength=curves.shape[1]) for part in parts])
    if others is None:
        others = np.zeros((0, *counts.shape), dtype=np.int64), np.zeros((0, *spend.shape))
    return PlanCounts(features, counts, spend, totals, *others)


def measure_separation(grouped: Array) -> float:
    """Return the share of the levels' variance that lies between groups, from customers (groups, K) at each level."""
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
    """The plan at one budget: averages per customer, the customers of every group at each level, and what groups cost."""

    budget: float
    spend: float
    value: float
    price: float
    counts: Array  # (groups, K); everyone comes last
    paid: Array  # (groups,) in all
    own: bool = False  # whether it is the plan of the run
    breaks_even: bool = False  # whether it takes every step that brings what it costs, and no other


def arrange_plans(plan: PlanTotals, counts: PlanCounts, points: Sequence[BudgetPoint]) -> list[CountedPlan]:
    """Return the plans at other budgets and, among them, that of the run, by their budgets.

    A budget at which everyone gets what the plan of the run gives is left out: it would be the same plan twice.
    """
    others = [
        CountedPlan(
            *(point.budget, point.spend, point.value, point.price),
            *(counted, paid * point.ratio),
            breaks_even=point.breaks_even,
        )
        for point, counted, paid in zip(points, counts.other_counts, counts.other_spend, strict=True)
    ]
    if not others or not math.isfinite(plan.budget):
        return others
    own = CountedPlan(plan.budget, plan.spend, plan.value, plan.price, counts.counts, counts.spend, own=True)
    kept = _leave_out(others, own)
    even = any(other.breaks_even for other in others) and not any(other.breaks_even for other in kept)
    return sorted([replace(own, breaks_even=even), *kept], key=lambda one: one.budget)


def _leave_out(others: Iterable[CountedPlan], own: CountedPlan) -> list[CountedPlan]:
    return [
        other
        for other in others
        if not (np.array_equal(other.counts, own.counts) and math.isclose(other.value, own.value, rel_tol=1e-9))
    ]


# -- the summary ----------------------------------------------------------------------------------------------------------


class PlanTotals(Protocol):
    """The totals of a plan: that of `allocate`, or one whose levels are in batches."""

    @property
    def value(self) -> float:
        """Average response."""

    @property
    def spend(self) -> float:
        """Average cost."""

    @property
    def price(self) -> float:
        """Response gained per further unit of budget."""

    @property
    def budget(self) -> float:
        """Average per customer."""

    @property
    def gap(self) -> float:
        """The most by which the best plan could be better."""

    def __len__(self) -> int: ...


def summarise_plan(
    plan: PlanTotals,
    labels: Sequence[str],
    counts: PlanCounts,
    *,
    confidence: float | None = None,
    shadow: Mapping[str, float] | None = None,
    points: Sequence[BudgetPoint] = (),
    excuse: str = "",
    exploration: ExplorationSummary | None = None,
) -> PlanSummary:
    """Return the summary of a plan: its totals, and who gets what, from counts of all customers.

    `labels` (K,) name the levels, `points` are the plans at other budgets.
    """
    counted = arrange_plans(plan, counts, points)
    budget = plan.budget if math.isfinite(plan.budget) else None
    return PlanSummary(
        customers=len(plan),
        budget=BudgetSize(budget, None if budget is None else budget * len(plan)),
        planned=PlannedTotals(plan.value, plan.spend, plan.price, plan.gap, confidence),
        money=_sum_levels(labels, counts),
        who=_list_features(counts, counted),
        frontier=BudgetSlider(
            tuple(
                BudgetStop(
                    stop.budget,
                    stop.spend,
                    stop.value,
                    stop.price,
                    tuple((stop.counts[-1] / max(int(stop.counts[-1].sum()), 1)).tolist()),
                    tuple(stop.counts[-1].tolist()),
                    stop.own,
                    stop.breaks_even,
                )
                for stop in counted
            ),
            excuse,
        ),
        shadow=dict(shadow or {}),
        exploration=exploration,
    )


def _sum_levels(labels: Sequence[str], counts: PlanCounts) -> MoneyByLevel:
    """Return the cost and the extra response of each level, against giving its customers the cheapest one."""
    spend, more, extra = counts.totals.tolist()
    total = sum(spend)
    return MoneyByLevel(
        tuple(
            LevelMoney(
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


def _list_features(found: PlanCounts, plans: Sequence[CountedPlan]) -> LevelsByGroup:
    """Return the features with their groups' levels and costs, in the plan and at every budget of the slider."""
    features, place = [], 0
    for one in found.features:
        groups = []
        first, place = place, place + len(one.grouping.labels)
        for label, own in zip(one.grouping.labels, range(first, place), strict=True):
            counts = found.counts[own]
            if counts.any():
                n = int(counts.sum())
                groups.append(
                    CustomerGroup(
                        label=label,
                        customers=n,
                        shares=tuple((counts / n).tolist()),
                        average_cost=float(found.spend[own] / n),
                        stop_counts=tuple(tuple(stop.counts[own].tolist()) for stop in plans),
                        stop_costs=tuple(float(stop.paid[own] / int(stop.counts[own].sum())) for stop in plans),
                    )
                )
        features.append(FeatureGroups(one.feature, measure_separation(found.counts[first:place]), tuple(groups)))
    return LevelsByGroup(tuple(sorted(features, key=lambda feature: -feature.explains)))
