"""The best whole plan, proven: a core of customers around the price, and a list of partial plans that none beats.

Measured at the price λ, a level's loss is what it is worth less than the customer's best level. A plan's value is the
bound, less the losses of its levels, less λ times what it leaves unspent. So a level whose loss alone exceeds the gap
can be in no better plan, and a customer with one level left is decided. The others enter one by one, those who change
the spend at the smallest loss first; partial plans that cost more and bring less than another, or that could not
catch up with the best plan known, are dropped (in the way of Pisinger 1995). Customers of whom only a few can change at
once, as they lose much, have a list of their own, and the two lists are joined.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.allocation.price.rounding import Draft, draft
from largesse.allocation.price.search import Found
from largesse.records import Array

DIGITS = 1e-12  # relative to the total value: what the sums of many numbers can tell apart
MOST = 4_000_000  # partial plans kept at once; beyond it the gap stays open, and is told
LATE = 0.1  # of the gap; customers who lose more than this are kept in a list of their own
FEW = 4096  # partial plans in each of two lists that are joined for a good plan to begin with
SLACK = 1e-12  # relative to the limit; whether a plan fits is decided exactly at the end

Result = tuple[list[tuple[int, int]], float, float]  # changes (row, level), what they cost, how much may still be open
Trail = tuple[
    Any, int, Array, Array
]  # the one before, customer, for each partial plan the one it extends and the level


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
    further: Array  # (m + 1,) the smallest loss of a change among the customers from here on
    widest: float  # the largest change of cost
    early: int  # how many come before those who lose so much that few of them can change at once


@dataclass(frozen=True, eq=False)
class Partial:
    """Partial plans of some customers, cheapest first: what they cost above the price's plan, what they lose."""

    extra: Array
    loss: Array
    trail: Trail | None
    dropped: float  # those that were dropped all lose as much as this, or more


NOBODY = Partial(np.zeros(1), np.zeros(1), None, math.inf)


def prove(plan: Draft, price: float, bound: float) -> float:
    """Improve a plan to the best whole one; return the total value that no plan exceeds."""
    tolerance = DIGITS * abs(float(plan.value))
    if price <= 0 or bound - float(plan.value) <= tolerance:
        return bound
    base = _at_price(plan, price)
    near = (bound - float(plan.value)) / 16  # few customers are that near, and they close most of the gap
    _improve(plan, base, price, bound, near, tolerance, _joined)
    rest = bound - float(plan.value)
    if rest > tolerance:
        rest = _improve(plan, base, price, bound, rest, tolerance, _search)
    return float(plan.value) + rest


def _improve(
    plan: Draft, base: Draft, price: float, bound: float, near: float, tolerance: float, search: Callable[..., Result]
) -> float:
    """Look for a better plan among levels that lose less than `near`; return how much may still be open."""
    gap, reach = bound - float(plan.value), base.room + SLACK * plan.limit
    core = _core(base, price, near)
    while True:
        changes, spent, rest = search(core, price, base.room, reach, gap, tolerance)
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
    from largesse.allocation.price.kernels import classify

    levels = np.empty_like(plan.levels)
    _, sums = classify(plan.curves, plan.costs, levels, True, price, price, levels, levels)
    found = Found(levels, price, sums[:2].tolist(), sums[2:4].tolist(), levels)
    return draft(found, plan.curves, plan.costs, plan.limit)


def _core(base: Draft, price: float, gap: float) -> Core:
    """Return the customers with a level, other than the best at the price, whose loss is below the gap."""
    from largesse.allocation.exact.kernels import near

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
    least = loss.min(axis=1, initial=math.inf)  # the best level itself is still infinite here
    late = least >= LATE * gap
    order = np.lexsort((np.minimum(up, down), late))
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
        _from_here(up[order]),
        _from_here(down[order]),
        _from_here(least[order]),
        float(np.abs(extra[pick]).max(initial=0.0)),
        m - int(late.sum()),
    )


def _from_here(rate: Array) -> Array:
    """Return the smallest of each entry and those behind it, and infinity for what lies behind the last."""
    return np.append(np.minimum.accumulate(rate[::-1])[::-1], math.inf)


def _joined(core: Core, price: float, room: float, reach: float, gap: float, tolerance: float) -> Result:
    """Return good changes, fast: every partial plan of some near customers beside every one of as many others."""
    one, other = (_listed(core, range(half, len(core.row), 2), price, gap, tolerance) for half in (0, 1))
    left, spent, places = _pair(one, other, price, room, reach)
    if left >= gap:
        return [], 0.0, gap
    return _changes(core, [(one, places[0]), (other, places[1])]), spent, left


def _listed(core: Core, customers: range, price: float, gap: float, tolerance: float) -> Partial:
    """Return the partial plans of some customers that none of them beats, up to a few."""
    part = NOBODY
    for at in customers:
        if len(part.extra) > FEW:
            break
        part = _extended(part, core, at, (price, 0.0), (0.0, 0.0, 0.0), gap, tolerance)
    return part


def _extended(
    part: Partial,
    core: Core,
    at: int,
    purse: tuple[float, float],
    rates: tuple[float, float, float],
    gap: float,
    tolerance: float,
) -> Partial:
    """Return partial plans extended by one more customer. `purse` is the price and the room, `rates` what is to come."""
    from largesse.allocation.exact.kernels import extend

    if core.least[at] >= gap:
        return part
    options = slice(core.first[at], core.first[at + 1])
    same = SLACK * core.widest
    extra, loss, parent, option, missed = extend(
        part.extra, part.loss, core.extra[options], core.loss[options], *purse, *rates, gap - tolerance, gap, same
    )
    return Partial(extra, loss, (part.trail, at, parent, option), min(part.dropped, gap - missed))


def _pair(
    one: Partial, other: Partial, price: float, room: float, reach: float
) -> tuple[float, float, tuple[int, int]]:
    """Return the least that two partial plans leave of the gap together, what they cost, and their places.

    Along a list worth rises with cost, so the best partner of a plan is the dearest that still fits.
    """
    partner = np.searchsorted(other.extra, reach - one.extra, side="right") - 1
    spent = one.extra + other.extra[partner]
    left = np.where(
        (partner >= 0) & (spent <= reach), one.loss + other.loss[partner] + price * (room - spent), math.inf
    )
    here = int(np.argmin(left))
    return float(left[here]), float(spent[here]), (here, int(partner[here]))


def _search(core: Core, price: float, room: float, reach: float, gap: float, tolerance: float) -> Result:
    """Return the changes (row, level) that close most of the gap, what they cost, and how much may still be open."""
    one = other = NOBODY
    best, spent = [(NOBODY, 0)], 0.0
    front, back = 0, len(core.row) - 1
    while front <= back and len(one.extra):
        if front >= core.early and len(other.extra) <= len(one.extra):
            other = _extended(other, core, back, (price, 0.0), (0.0, 0.0, 0.0), gap, tolerance)
            back -= 1
        else:
            rates = (core.rate_up[front + 1], core.rate_down[front + 1], core.further[front + 1])
            one = _extended(one, core, front, (price, room), rates, gap, tolerance)
            front += 1
            here = int(np.searchsorted(one.extra, reach, side="right")) - 1  # worth rises with cost along the list
            left = float(one.loss[here] + price * (room - one.extra[here])) if here >= 0 else math.inf
            if left < gap:
                gap, spent, best = left, float(one.extra[here]), [(one, here)]
        if max(len(one.extra), len(other.extra)) > MOST:
            return _changes(core, best), spent, gap
    if len(one.extra):
        left, cost, places = _pair(one, other, price, room, reach)
        if left < gap:
            gap, spent, best = left, cost, [(one, places[0]), (other, places[1])]
    return _changes(core, best), spent, max(gap - min(one.dropped, other.dropped), 0.0)


def _changes(core: Core, plans: list[tuple[Partial, int]]) -> list[tuple[int, int]]:
    """Return the changes of some partial plans, each read back from its end."""
    changes = []
    for part, place in plans:
        trail = part.trail
        while trail is not None:
            trail, at, parent, option = trail
            if option[place]:
                changes.append((int(core.row[at]), int(core.level[core.first[at] + option[place]])))
            place = int(parent[place])
    return changes
