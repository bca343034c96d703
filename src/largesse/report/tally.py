"""What the report says of a plan, as sums over batches of customers: they are exact, so batches change nothing.

Which features are shown, and in which groups, is chosen on a sample of the customers where there are very many. What is shown
counts all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from largesse.allocation import add_by_group, add_counted, add_sums, total_of
from largesse.data import Grouping, find_grouping
from largesse.records import Array

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
    shares = {one: measure_explained(grouped) for one, grouped in counted.items()}
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


def measure_explained(grouped: Array) -> float:
    """Return the share of the levels' variance that lies between groups, from customers (groups, K) at each level."""
    levels, sizes = np.arange(grouped.shape[1]), grouped.sum(axis=1)
    n = int(sizes.sum())
    if not n:
        return 0.0
    mean = float(grouped.sum(axis=0) @ levels) / n
    total = float(grouped.sum(axis=0) @ (levels - mean) ** 2)
    between = float(sizes @ ((grouped @ levels) / np.maximum(sizes, 1) - mean) ** 2)
    return between / total if total > 0 else 0.0
