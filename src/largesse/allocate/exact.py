"""The best whole plan, proven: a core of customers around the price, and a list of partial plans that none beats.

Measured at the price λ, a level's loss is what it is worth less than the customer's best level. A plan's value is the
bound, less the losses of its levels, less λ times what it leaves unspent. So a level whose loss alone exceeds the gap
can be in no better plan, and a customer with one level left is decided. The others enter one by one, those who change
the spend at the smallest loss first; partial plans that cost more and bring less than another, or that could not
catch up with the best plan known, are dropped (in the way of Pisinger 1995).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from largesse.allocate.search import Found
from largesse.allocate.whole import Draft, draft
from largesse.records import Array

DIGITS = 1e-12  # relative to the total value: what the sums of many numbers can tell apart
MOST = 4_000_000  # partial plans kept at once; beyond it the gap stays open, and is told
SLACK = 1e-12  # relative to the limit; whether a plan fits is decided exactly at the end


@dataclass(frozen=True, eq=False)
class Core:
    """Levels that may still change, customer by customer, those who change the spend at the smallest loss first."""

    row: Array  # (m,)
    first: Array  # (m + 1,) where each customer's levels begin; the first is the best one at the price
    level: Array  # (levels,)
    extra: Array  # (levels,) cost above the customer's best level at the price
    loss: Array  # (levels,)
    least: Array  # (m,) the smallest loss of a change
    rate_up: Array  # (m + 1,) the smallest loss per unit of further cost among the customers from here on
    rate_down: Array  # (m + 1,) the same per unit saved


def prove(plan: Draft, price: float, bound: float) -> float:
    """Improve a plan to the best whole one; return the total value that no plan exceeds."""
    tolerance = DIGITS * abs(float(plan.value))
    if price <= 0 or bound - float(plan.value) <= tolerance:
        return bound
    base = _at_price(plan, price)
    near = (bound - float(plan.value)) / 16  # few customers are that near, and they close most of the gap
    rest = _improve(plan, base, price, bound, near, tolerance)
    gap = bound - float(plan.value)
    if gap > near:
        rest = _improve(plan, base, price, bound, gap, tolerance)
    return float(plan.value) + rest


def _improve(plan: Draft, base: Draft, price: float, bound: float, near: float, tolerance: float) -> float:
    """Look for a better plan among levels that lose less than `near`; return how much may still be open."""
    gap, reach = bound - float(plan.value), base.room + SLACK * plan.limit
    core = _core(base, price, near)
    while True:
        changes, spent, rest = _search(core, price, base.room, reach, gap, tolerance)
        old = [(row, int(base.levels[row])) for row, _ in changes]
        for row, level in changes:
            base.change(row, level)
        fits = base.room >= 0 or not changes
        if changes and fits and base.value > plan.value:
            plan.levels[:], plan.value, plan.spend = base.levels, base.value, base.spend
        for row, level in old:
            base.change(row, level)
        if fits:
            return rest
        reach = float(np.nextafter(spent, -math.inf))  # it only fitted by rounding


def _at_price(plan: Draft, price: float) -> Draft:
    """Return the plan that gives everybody the best level at the price."""
    from largesse.allocate.kernels import classify

    levels = np.empty_like(plan.levels)
    _, sums = classify(plan.curves, plan.costs, levels, True, price, price, levels, levels)
    found = Found(levels, price, sums[:2].tolist(), sums[2:4].tolist(), levels)
    return draft(found, plan.curves, plan.costs, plan.limit)


def _core(base: Draft, price: float, gap: float) -> Core:
    """Return the customers with a level, other than the best at the price, whose loss is below the gap."""
    from largesse.allocate.kernels import near

    K = base.curves.shape[1]
    row = np.empty(len(base.levels), dtype=np.int64)  # memory is touched only as far as it is filled
    m = near(base.curves, base.costs, base.levels, price, gap, row)
    row = row[:m]
    f = base.curves[row].astype(np.float64)
    c = np.broadcast_to(base.costs[row] if len(base.costs) > 1 else base.costs, f.shape).astype(np.float64)
    here = (np.arange(m), base.levels[row])
    extra = c - c[here][:, None]
    loss = np.maximum(price * extra - (f - f[here][:, None]), 0.0)
    loss[(extra == 0) | (loss >= gap)] = math.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(np.isfinite(loss), loss / np.abs(extra), math.inf)
    up, down = (np.where(side, rate, math.inf).min(axis=1, initial=math.inf) for side in (extra > 0, extra < 0))
    order = np.argsort(np.minimum(up, down), kind="stable")
    least = loss.min(axis=1, initial=math.inf)  # the best level itself is still infinite here
    loss[here], extra[here] = 0.0, 0.0
    rank = np.argsort(loss[order], axis=1, kind="stable")  # the best level has no loss and comes first, before ties
    stays = np.isfinite(np.take_along_axis(loss[order], rank, axis=1))
    own = rank == base.levels[row][order][:, None]
    rank = np.take_along_axis(rank, np.argsort(~own, axis=1, kind="stable"), axis=1)
    pick = (np.repeat(order, K).reshape(m, K)[stays], rank[stays])
    first = np.concatenate([[0], np.cumsum(stays.sum(axis=1))])
    return Core(
        row[order],
        first,
        pick[1],
        extra[pick],
        loss[pick],
        least[order],
        *(_from_here(side[order]) for side in (up, down)),
    )


def _from_here(rate: Array) -> Array:
    """Return the smallest of each entry and those behind it, and infinity for what lies behind the last."""
    return np.append(np.minimum.accumulate(rate[::-1])[::-1], math.inf)


def _search(
    core: Core, price: float, room: float, reach: float, gap: float, tolerance: float
) -> tuple[list[tuple[int, int]], float, float]:
    """Return the changes (row, level) that close most of the gap, what they cost, and how much may still be open."""
    from largesse.allocate.kernels import extend

    extra, loss = np.zeros(1), np.zeros(1)
    trail: list[tuple[int, Array, Array]] = []  # customer, and for each partial plan the one it extends and the level
    best, spent, rest = (0, -1), 0.0, 0.0
    same = SLACK * float(np.abs(core.extra).max(initial=0.0))
    for at, least in enumerate(core.least.tolist()):
        if least >= gap:
            continue
        options = slice(core.first[at], core.first[at + 1])
        extra, loss, parent, option, missed = extend(
            extra, loss, core.extra[options], core.loss[options], price, room, core.rate_up[at + 1],
            core.rate_down[at + 1], gap - tolerance, gap, same,
        )  # fmt: skip
        rest = max(rest, missed)
        if not len(extra):
            break
        trail.append((at, parent, option))
        left = np.where(extra <= reach, loss + price * (room - extra), math.inf)
        here = int(np.argmin(left))
        if left[here] < gap:
            rest = max(rest - (gap - float(left[here])), 0.0)
            gap, best, spent = float(left[here]), (len(trail), here), float(extra[here])
        if len(extra) > MOST:
            return _changes(core, trail, *best), spent, gap
    return _changes(core, trail, *best), spent, rest


def _changes(core: Core, trail: list[tuple[int, Array, Array]], length: int, place: int) -> list[tuple[int, int]]:
    """Return the changes of a partial plan, read back from its end."""
    changes = []
    for at, parent, option in reversed(trail[:length]):
        if option[place]:
            changes.append((int(core.row[at]), int(core.level[core.first[at] + option[place]])))
        place = int(parent[place])
    return changes
