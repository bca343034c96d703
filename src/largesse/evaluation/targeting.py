"""Who gets what in a plan: the features that go with its levels, and sums over groups of customers.

The features and their groups are chosen on a sample of the customers where there are very many; the sums count all of them. Sums
over batches are exact, so that batches change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from largesse.allocation import Stop, add_by_group, add_counted, add_sums, choose_unit, total_of
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

SHOWN = 4
GROUPS = 5
SAMPLE = 200_000  # how much a feature explains is known well enough from this many rows
LEAST = 0.005  # a feature that explains less of the plan than this is not worth a picture


@dataclass(frozen=True)
class Shown:
    """A feature that goes with the planned levels, and its groups."""

    feature: str
    grouping: Grouping


@dataclass(frozen=True, eq=False)
class PlanTally:
    """Who gets what in some customers. Tallies are added; groups are those of all shown features, one after the other."""

    n: int
    counts: Array  # (K,) customers at each level
    money: Array  # (3, K, chunks) what they cost, what they cost and bring more than at the first level
    grouped: Array  # (groups, K) customers of each group at each level
    paid: Array  # (groups, chunks) what each group costs
    stops: (
        Array  # (stops, groups + 1, K + 1) at other budgets, customers at each level and what they cost; all come last
    )

    def __add__(self, other: PlanTally) -> PlanTally:
        return PlanTally(
            self.n + other.n,
            self.counts + other.counts,
            add_sums(self.money, other.money),
            self.grouped + other.grouped,
            add_sums(self.paid, other.paid),
            self.stops + other.stops,
        )

    @property
    def totals(self) -> Array:
        """What customers at each level (3, K) cost, and cost and bring more than at the first level."""
        return np.array([[total_of(part) for part in row] for row in self.money])


def choose_shown(features: pa.Table, levels: Array) -> tuple[Shown, ...]:
    """Return the features that explain most of the planned levels (n,), the most telling first.

    How much a feature explains is the share of the levels' variance that lies between its groups.
    """
    K = int(levels.max(initial=0)) + 1
    counted = {
        one: _count(one.grouping.code(features.column(one.feature)), levels, one, K) for one in group_features(features)
    }
    return _most_telling(counted)


def group_features(features: pa.Table) -> tuple[Shown, ...]:
    """Return every feature with its groups, found on these customers."""
    return tuple(Shown(name, find_grouping(features.column(name), GROUPS)) for name in features.column_names)


def keep_telling(shown: Sequence[Shown], tally: PlanTally) -> tuple[tuple[Shown, ...], PlanTally]:
    """Return the features that explain most of a plan, of those that were counted, and the tally of these alone."""
    ends = np.cumsum([0, *(len(one.grouping.labels) for one in shown)])[1:-1]
    counted = dict(zip(shown, np.split(tally.grouped, ends), strict=False))
    paid = dict(zip(shown, np.split(tally.paid, ends), strict=False))
    places = dict(zip(shown, np.split(np.arange(len(tally.grouped)), ends), strict=False))
    kept = _most_telling(counted)
    grouped = np.concatenate([tally.grouped[:0], *(counted[one] for one in kept)])
    least = np.concatenate([tally.paid[:0], *(paid[one] for one in kept)])
    stops = tally.stops[:, np.concatenate([*(places[one] for one in kept), [tally.stops.shape[1] - 1]]).astype(int)]
    return kept, replace(tally, grouped=grouped, paid=least, stops=stops)


def _most_telling(counted: Mapping[Shown, Array]) -> tuple[Shown, ...]:
    """Return the features that explain most, by the customers (groups, K) of each group at each level."""
    shares = {one: measure_separation(grouped) for one, grouped in counted.items()}
    telling = sorted((-share, one.feature, one) for one, share in shares.items() if share >= LEAST)
    return tuple(one for _, _, one in telling[:SHOWN])


def tally_plan(shown: Sequence[Shown], features: pa.Table, levels: Array, curves: Array, costs: Array) -> PlanTally:
    """Count customers: their features, levels (n,), curves (n, K) and costs (n, K)."""
    return tally_codes(shown, code_groups(shown, features), levels, curves, costs)


def code_groups(shown: Sequence[Shown], features: pa.Table) -> list[Array]:
    """Return the groups (n,) of customers in every shown feature."""
    return [one.grouping.code(features.column(one.feature)) for one in shown]


def number_groups(shown: Sequence[Shown], codes: Sequence[Array], n: int) -> tuple[Array, int]:
    """Return all groups (n, features + 1) of customers, numbered through, and how many there are; the last holds everyone."""
    starts = np.cumsum([0, *(len(one.grouping.labels) for one in shown)])
    numbered = [np.asarray(code, dtype=np.int64) + start for code, start in zip(codes, starts, strict=False)]
    return np.column_stack([*numbered, np.full(n, starts[-1])]), int(starts[-1]) + 1


def tally_codes(
    shown: Sequence[Shown],
    codes: Sequence[Array],
    levels: Array,
    curves: Array,
    costs: Array,
    stops: Array | None = None,
) -> PlanTally:
    """Count customers: their groups (n,) in every shown feature, levels (n,), curves (n, K) and costs (n, K).

    `stops` are their counts at other budgets.
    """
    rows, K = np.arange(len(levels)), curves.shape[1]
    counts = np.bincount(levels, minlength=K)
    grouped = [_count(code, levels, one, K) for code, one in zip(codes, shown, strict=True)]
    more = add_by_group(curves[rows, levels] - curves[:, 0], levels, K)
    if costs.strides[0] == 0:  # the same for everybody: counts say it all
        paid = [add_counted(part, costs[0]) for part in grouped]
        money = [add_counted(np.diag(counts), costs[0] - least) for least in (0.0, costs[0, 0])]
    else:
        spend = costs[rows, levels]
        paid = [add_by_group(spend, code, len(one.grouping.labels)) for code, one in zip(codes, shown, strict=True)]
        money = [add_by_group(spend - least, levels, K) for least in (0.0, costs[:, 0])]
    sums = np.stack([*money, more])
    nobody, nothing = np.zeros((0, K), dtype=np.int64), np.zeros((0, sums.shape[2]), dtype=np.int64)
    every, least = np.concatenate([nobody, *grouped]), np.concatenate([nothing, *paid])
    none = np.zeros((0, len(every) + 1, K + 1), dtype=np.int64)
    return PlanTally(len(rows), counts, sums, every, least, none if stops is None else stops)


def _count(code: Array, levels: Array, one: Shown, K: int) -> Array:
    """Return the customers (groups, K) of each group at each level."""
    groups = len(one.grouping.labels)
    return np.bincount(code * K + levels, minlength=groups * K).reshape(groups, K)


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
class CountedStop:
    """The plan at one budget: averages per customer, the customers of every group at each level, and their mean cost."""

    budget: float
    spend: float
    value: float
    price: float
    counts: Array  # (groups + 1, K); everyone comes last
    paid: Array  # (groups,) in all
    own: bool = False  # whether it is the plan of the run
    pays: bool = False  # whether it takes every step that brings what it costs, and no other


def arrange_stops(plan: PlanTotals, tally: PlanTally, stops: Sequence[Stop]) -> list[CountedStop]:
    """Return the plans at other budgets and, among them, that of the run, by their budgets.

    A stop at which everyone gets what the plan of the run gives is left out: it would be the same plan twice.
    """
    unit = choose_unit(stops)
    others = [
        CountedStop(
            stop.budget,
            stop.spend,
            stop.value,
            stop.price,
            each[:, :-1],
            each[:-1, -1] * (unit * stop.ratio),
            pays=stop.pays,
        )
        for stop, each in zip(stops, tally.stops, strict=True)
    ]
    if not others or not math.isfinite(plan.budget):
        return others
    paid = np.array([total_of(part) for part in tally.paid])
    own = CountedStop(
        plan.budget, plan.spend, plan.value, plan.price, np.vstack([tally.grouped, tally.counts]), paid, own=True
    )
    kept = _leave_out(others, own)
    pays = any(stop.pays for stop in others) and not any(stop.pays for stop in kept)
    return sorted([replace(own, pays=pays), *kept], key=lambda stop: stop.budget)


def _leave_out(stops: Iterable[CountedStop], own: CountedStop) -> list[CountedStop]:
    return [
        stop
        for stop in stops
        if not (np.array_equal(stop.counts, own.counts) and math.isclose(stop.value, own.value, rel_tol=1e-9))
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
    shown: Sequence[Shown],
    tally: PlanTally,
    *,
    confidence: float | None = None,
    shadow: Mapping[str, float] | None = None,
    stops: Sequence[Stop] = (),
    excuse: str = "",
    exploration: ExplorationSummary | None = None,
) -> PlanSummary:
    """Return the summary of a plan: its totals, and who gets what, from counts of all customers.

    `labels` (K,) name the levels, `shown` are the counted features, `stops` the plans at other budgets.
    """
    counted = arrange_stops(plan, tally, stops)
    budget = plan.budget if math.isfinite(plan.budget) else None
    return PlanSummary(
        customers=len(plan),
        budget=BudgetSize(budget, None if budget is None else budget * len(plan)),
        planned=PlannedTotals(plan.value, plan.spend, plan.price, plan.gap, confidence),
        money=_sum_levels(labels, tally),
        who=_list_features(shown, tally, counted),
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
                    stop.pays,
                )
                for stop in counted
            ),
            excuse,
        ),
        shadow=dict(shadow or {}),
        exploration=exploration,
    )


def _sum_levels(labels: Sequence[str], tally: PlanTally) -> MoneyByLevel:
    """Return the cost and the extra response of each level, against giving its customers the cheapest one."""
    spend, more, extra = tally.totals.tolist()
    total = sum(spend)
    return MoneyByLevel(
        tuple(
            LevelMoney(
                name=label,
                customers=int(tally.counts[k]),
                share=float(tally.counts[k] / tally.n),
                spend=spend[k],
                spend_share=spend[k] / total if total > 0 else 0.0,
                extra=extra[k],
                cost_per_extra=more[k] / extra[k] if extra[k] > 0 and k > 0 else None,
            )
            for k, label in enumerate(labels)
        )
    )


def _list_features(shown: Sequence[Shown], tally: PlanTally, stops: Sequence[CountedStop]) -> LevelsByGroup:
    """Return the features with their groups' levels and costs, in the plan and at every budget of the slider."""
    features, place = [], 0
    for one in shown:
        groups = []
        first, place = place, place + len(one.grouping.labels)
        for label, own in zip(one.grouping.labels, range(first, place), strict=True):
            counts = tally.grouped[own]
            if counts.any():
                n = int(counts.sum())
                groups.append(
                    CustomerGroup(
                        label=label,
                        customers=n,
                        shares=tuple((counts / n).tolist()),
                        average_cost=total_of(tally.paid[own]) / n,
                        stop_counts=tuple(tuple(stop.counts[own].tolist()) for stop in stops),
                        stop_costs=tuple(float(stop.paid[own] / int(stop.counts[own].sum())) for stop in stops),
                    )
                )
        features.append(FeatureGroups(one.feature, measure_separation(tally.grouped[first:place]), tuple(groups)))
    return LevelsByGroup(tuple(sorted(features, key=lambda feature: -feature.explains)))
