"""The last look: all customers but those with open steps are decided for good, and those are gathered and settled.

What is settled in memory depends on the steps alone, not on batches: the open steps are taken in their order as long as they
fit, and what is left of the budget goes to the customers who gain most from it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np

from largesse.allocation.passes.look import Look
from largesse.allocation.passes.sums import CHUNKS, LOWEST, as_fraction, as_units, carry, in_units, units_of
from largesse.allocation.price.hull import climb
from largesse.allocation.price.rounding import Draft, spend_rest
from largesse.allocation.price.search import ROUNDING
from largesse.records import Array


@dataclass(frozen=True)
class Gather:
    """Asks for the customers with open steps."""

    look: Look

    def of(self, rows: Array, curves: Array, costs: Array) -> Gathered:
        """Return the customers with open steps, among row numbers (n,), curves (n, K) and cost rows (1, K) or (n, K)."""
        levels, sums, unsure = part(self.look, rows, curves, costs)
        paid = costs[unsure] if len(costs) > 1 else costs
        return Gathered(len(rows), sums, rows[unsure], levels[unsure], curves[unsure], paid)


@dataclass(frozen=True, eq=False)
class Gathered:
    """The open customers among some, and exact sums over all of them. Added, they come in any order."""

    n: int
    sums: Array  # (2, CHUNKS) value and cost of all customers with the steps that are taken
    rows: Array  # (m,) row numbers of the open customers
    levels: Array  # (m,) theirs with the steps that are taken
    curves: Array  # (m, K)
    costs: Array  # (1, K) or (m, K)

    def __add__(self, other: Gathered) -> Gathered:
        own = len(self.costs) > 1 or len(other.costs) > 1 or not np.array_equal(self.costs, other.costs)
        paid = [np.broadcast_to(some.costs, some.curves.shape) if own else some.costs for some in (self, other)]
        rows, levels, curves = (
            np.concatenate([getattr(some, word) for some in (self, other)]) for word in ("rows", "levels", "curves")
        )
        costs = np.concatenate(paid) if own else self.costs
        return Gathered(self.n + other.n, carry(self.sums + other.sums), rows, levels, curves, costs)

    def ordered(self) -> Gathered:
        """Return the same with the customers in the order of their rows."""
        order = np.argsort(self.rows, kind="stable")
        costs = self.costs if len(self.costs) == 1 else self.costs[order]
        return Gathered(self.n, self.sums, self.rows[order], self.levels[order], self.curves[order], costs)


@dataclass(frozen=True, eq=False)
class Settled:
    """The price, and what remains to be known of a plan: which levels the open customers get."""

    look: Look
    n: int
    rows: Array  # (m,) open customers, rising
    levels: Array  # (m,)
    price: float
    value: Fraction  # totals
    spend: Fraction
    bound: float

    def decide(self, rows: Array, curves: Array, costs: Array) -> Array:
        """Return the levels (n,) of some of the customers: row numbers (n,), curves (n, K), cost rows (1, K) or (n, K)."""
        levels, _, unsure = part(self.look, rows, curves, costs, summed=False)
        levels[unsure] = self.levels[np.searchsorted(self.rows, rows[unsure])]
        return levels


def part(look: Look, rows: Array, curves: Array, costs: Array, *, summed: bool = True) -> tuple[Array, Array, Array]:
    """Return levels (n,) with the steps that are taken, exact sums (2, CHUNKS) of their value and cost, and who is open."""
    from largesse.allocation.passes.kernels import part_rows

    levels, unsure = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.int64)
    sums = np.zeros((2 * summed, CHUNKS), dtype=np.int64)
    found = part_rows((rows, curves, costs), look.slopes, look.ends, levels, sums, unsure)
    return levels, carry(sums), unsure[:found]


def settle(look: Look, gathered: Gathered, limit: float) -> Settled:
    """Take open steps in their order as long as they fit, then spend what is left among the open customers."""
    these = gathered.ordered()
    place, level, slope, units = _list_steps(look, these)
    spent = list(accumulate(units, initial=as_units(these.sums[1])))
    bought = len(units) if limit == math.inf else max(bisect_right(spent, units_of(limit)) - 1, 0)
    levels = these.levels.copy()
    levels[place[:bought]] = level[:bought]  # of a customer's steps the last one stands
    value = as_fraction(these.sums[0]) + _gain(these, levels)
    plan = Draft(these.curves, these.costs, levels, value, Fraction(spent[bought], 1 << LOWEST), limit)
    steepest = float(slope[bought]) if bought < len(slope) else 0.0
    bound = float(value + Fraction(steepest) * Fraction(max(plan.room, 0.0))) if steepest else float(value)
    if plan.room > 0:
        spend_rest(plan, np.arange(len(levels)))
    price = _price(look, slope, bought, spent, limit)
    return Settled(look, these.n, these.rows, levels, price, plan.value, plan.spend, max(bound, float(plan.value)))


def _list_steps(look: Look, these: Gathered) -> tuple[Array, Array, Array, list[int]]:
    """Return the open steps in their order: whose, to which level, slope, and exact cost in whole units."""
    steps = climb(these.curves, these.costs, np.arange(len(these.rows)), these.levels, look.low)
    start = np.append(True, steps.place[1:] != steps.place[:-1])[: len(steps.place)]
    before = np.where(start, these.levels[steps.place], np.roll(steps.level, 1))
    order = np.argsort(-steps.slope, kind="stable")  # rows rise, and so do the steps of a row
    order = order[steps.slope[order] >= look.low]
    place, level, before = steps.place[order], steps.level[order], before[order]
    paid = np.broadcast_to(these.costs, these.curves.shape)
    costs = zip(in_units(paid[place, level].tolist()), in_units(paid[place, before].tolist()), strict=True)
    return place, level, steps.slope[order], [to - at for to, at in costs]


def _gain(these: Gathered, levels: Array) -> Fraction:
    """Return what other levels bring the open customers more, exactly."""
    changed = np.flatnonzero(levels != these.levels)
    more, less = (in_units(these.curves[changed, of[changed]].tolist()) for of in (levels, these.levels))
    return Fraction(sum(more) - sum(less), 1 << LOWEST)


def _price(look: Look, slope: Array, bought: int, spent: list[int], limit: float) -> float:
    """Return the slope of the first step that does not fit; rounding of the budget does not count."""
    if bought == len(slope):
        return 0.0
    if spent[bought + 1] > units_of(limit * (1 + ROUNDING)):
        return float(slope[bought])
    if bought + 1 < len(slope):
        return float(slope[bought + 1])
    return 0.0 if look.whole else float(slope[bought])
