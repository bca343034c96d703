"""The price at which a budget is spent, by selection.

A sample of customers brackets the price. One pass over all customers decides for good those who get the same level at
both ends of the bracket, which is nearly everybody; the others are sampled again until few are left, and among their
steps up the hull the price is selected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from largesse.allocation.price.hull import climb
from largesse.records import Array

SAMPLE = 4096  # customers that bracket the price, and no more than an eighth of them
FEW = 4096  # customers whose steps are looked at one by one
WIDTH = 4.0  # standard errors of the sample's spend on either side
WIDEST = 100.0  # then the bracket of the round before is taken instead
NUDGE = 1e-9  # relative; many customers may share a slope, and must all lie inside the bracket
ROUNDING = 1e-12  # relative; running sums are rounded, the final check of a plan is exact


@dataclass(frozen=True, eq=False)
class Found:
    """The price, what every customer gets at it, and who was close to getting something else. Sums are totals."""

    levels: Array  # (n,) ties split as far as the budget goes
    price: float
    value: list[float]  # its sum, and that of the spend, is exact to far more digits than a number holds
    spend: list[float]
    rows: Array  # (m,) the customers whose level hangs on the price


@dataclass(frozen=True)
class Short:
    """The budget is below what the cheapest plan costs."""

    cheapest: float


def price_search(curves: Array, costs: Array, limit: float) -> Found | Short:
    """Return the price at which curves (n, K) and cost rows (1, K) or (n, K) spend a total of `limit`."""
    from largesse.allocation.price.kernels import classify

    levels = np.empty(len(curves), dtype=np.int64)
    rows: Array | None = None  # the undecided; None is everybody
    ends, known = (math.inf, 0.0), None
    width, room = WIDTH, limit * (1 + ROUNDING)
    decided: list[Array] = []
    rng = np.random.default_rng(0)
    while rows is None or len(rows) > FEW:
        m = len(levels) if rows is None else len(rows)
        inside = (0.0, 0.0) if limit == math.inf else ends
        if m > FEW and width < WIDEST and limit < math.inf:
            inside = _bracket(curves, costs, rows, ends, (room, known), width, rng)
        unsure = np.empty(m, dtype=np.int64)  # memory is touched only as far as it is filled
        found, sums = classify(curves, costs, levels if rows is None else rows, rows is None, *inside, levels, unsure)
        rest = room - sums[2]
        if sums[4] > rest and inside[0] == math.inf:
            return Short(float(sums[2] + sums[4]))
        if (sums[4] > rest and inside[0] < ends[0]) or (sums[5] <= rest and inside[1] > ends[1]):
            width *= 4  # the price lies outside the sample's bracket
            continue
        decided.append(sums[:4])
        rows, ends, room, known = unsure[:found], inside, rest, float(sums[4])
        if found > 0.7 * m:  # many customers share one curve: no bracket parts them
            break
    return _settled(curves, costs, rows, levels, ends[1], decided, limit)


def _bracket(
    curves: Array,
    costs: Array,
    rows: Array | None,
    ends: tuple[float, float],
    purse: tuple[float, float | None],
    width: float,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return a high and a low price between which, going by a sample, the undecided spend what is left for them.

    `purse` is what is left for them, and what they cost at the high end; None before that is known.
    """
    room, known = purse
    m = len(curves) if rows is None else len(rows)
    size = min(SAMPLE, m // 8)
    chosen = rng.integers(0, m, size)
    sample = chosen if rows is None else rows[chosen]
    f, c = curves[sample], costs[sample] if len(costs) > 1 else costs
    start = levels_at(f, c, ends[0])
    steps = climb(f, c, np.arange(size), start, ends[1])
    slope, cost = steps.slope, steps.cost
    # Once the cost at the high end is known, chance plays only in what comes on top.
    base = np.broadcast_to(c, f.shape)[np.arange(size), start] if known is None else np.full(size, known / m)
    order = np.argsort(-slope)
    spent, goal = base.mean() + np.cumsum(cost[order]) / size, room / m
    taken = order[: np.searchsorted(spent, goal, side="right")]
    each = base + np.bincount(steps.place[taken], cost[taken], minlength=size)
    margin = width * (float(each.std()) + NUDGE * goal) / math.sqrt(size)
    above = int(np.searchsorted(spent, goal - margin, side="left"))
    below = int(np.searchsorted(spent, goal + margin, side="right"))
    high = slope[order[above]] * (1 + NUDGE) if above < len(slope) and goal - margin > base.mean() else ends[0]
    low = slope[order[below]] * (1 - NUDGE) if below < len(slope) else ends[1]
    return float(min(high, ends[0])), float(max(low, ends[1]))


def levels_at(curves: Array, costs: Array, price: float) -> Array:
    """Return the best levels (n,) at a price, the cheapest if they tie; at an infinite price the cheapest levels."""
    from largesse.allocation.price.kernels import classify

    levels = np.empty(len(curves), dtype=np.int64)
    classify(curves, costs, levels, True, price, price, levels, levels)
    return levels


def _settled(
    curves: Array, costs: Array, rows: Array, levels: Array, low: float, decided: list[Array], limit: float
) -> Found:
    """Select the price among the steps of the undecided rows, and take what it allows."""
    from largesse.allocation.price.kernels import select, settle, totals

    steps = climb(curves, costs, rows, levels, low)
    before = totals(curves, costs, rows, levels)
    room = limit * (1 + ROUNDING) - math.fsum([*(s for sums in decided for s in sums[2:]), *before[2:]])
    price = select(steps.slope, steps.cost, room)
    settle(curves, costs, rows, levels, price, room)
    sums = [*decided, totals(curves, costs, rows, levels)]
    value, spend = ([float(s) for part in sums for s in part[at : at + 2]] for at in (0, 2))
    return Found(levels, price, value, spend, rows)
