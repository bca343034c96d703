"""The best whole plan within a budget, proven: a core of customers around the price, and partial plans that none beats.

Measured at the price λ, a level's loss is what it is worth less than the customer's best level. A plan's value is the
bound, less the losses of its levels, less λ times what it leaves unspent. So a level whose loss alone exceeds the gap
can be in no better plan, and a customer with one level left is decided. The others enter one by one, those who change
the spend at the smallest loss first; partial plans that cost more and bring less than another, or that could not
catch up with the best plan known, are dropped (in the way of Pisinger 1995). Customers who lose so much that only a few
of them can change at once have a list of their own, and the two lists are joined.

The lists are of rounded numbers, so plans may seem to fit that are over the budget by a rounding. The best plan among
those bounds all that do fit, and is the best of them if it fits itself. If it does not, or if few customers are open,
`whole` decides without rounding; where that takes too long, the gap that is left says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from largesse.allocation.exact.whole import prove_in_whole_numbers
from largesse.allocation.price.rounding import Draft, make_draft
from largesse.allocation.price.search import ROUNDING, Found
from largesse.records import Array

DIGITS = 1e-12  # relative to the total value: what the sums of many numbers can tell apart
MOST = 4_000_000  # partial plans kept at once; beyond it the search stops, and `plan.gap` is what remains
LATE = 0.1  # of the gap; customers who lose more than this are kept in a list of their own
FEW = 4096  # partial plans in each of two lists that are joined for a good plan to begin with
TRIES = 16  # plans that only fit by rounding
NUDGE = 1e-9  # relative; by how much a gap may be off
OPEN = 24  # customers whose plans are always compared without rounding
EFFORT, MOST_EFFORT = 20_000, 400_000  # partial plans that may be compared so: where all is clear, and where it is not


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
class Trail:
    """How partial plans came about: the customer who entered last, and for each plan the one it extends and the level."""

    before: Trail | None
    customer: int
    parent: Array
    option: Array


@dataclass(frozen=True, eq=False)
class Partial:
    """Partial plans of some customers, cheapest first: what they cost above the price's plan, what they lose."""

    extra: Array
    loss: Array
    trail: Trail | None
    dropped: float  # those that were dropped all lose as much as this, or more


NOBODY = Partial(np.zeros(1), np.zeros(1), None, math.inf)


@dataclass(frozen=True)
class Goal:
    """What changes are searched for: those that spend the room left by the best levels at the price at a small loss."""

    price: float
    room: float
    reach: float  # the most that changes may cost; whether a plan fits is decided exactly at the end
    gap: float
    tolerance: float  # what is left of the gap when it counts as closed


@dataclass(frozen=True)
class Changes:
    """Changes (row, level) of the best levels at the price, what they cost, and what they leave of the gap."""

    changes: list[tuple[int, int]]
    cost: float
    left: float
    least: float  # of the gap that any plan leaves


@dataclass(frozen=True)
class Outcome:
    """How much of the gap may remain; and whether the best plan found fits, not only by rounding."""

    rest: float
    certain: bool


@dataclass(frozen=True)
class Pair:
    """The least that two partial plans, one of each list, leave of the gap together; what they cost; their places."""

    left: float
    cost: float
    first: int
    second: int


@dataclass(frozen=True)
class Outlook:
    """The smallest losses of the customers to come: per unit of further cost, per unit saved, and of any change."""

    up: float = 0.0
    down: float = 0.0
    further: float = 0.0


def prove_within_budget(plan: Draft, price: float, bound: float) -> float:
    """Improve a plan to the best whole one; return the total value that no plan exceeds."""
    tolerance = DIGITS * abs(float(plan.value))
    if math.isinf(plan.limit) or bound - float(plan.value) <= tolerance:
        return bound
    base = _draft_at_price(plan, price)
    rows = _settle(base, price, plan)
    most = _bound(base, price)
    gap = float(most - plan.value)
    near = _near_rows(base, price, gap / 16, rows)  # few customers are that near, and they close most of the gap
    _improve(
        plan,
        base,
        Goal(price, base.room, 0.0, gap, tolerance),
        _core_customers(base, price, gap / 16, near),
        _join_halves,
    )
    gap = rest = float(most - plan.value)
    rows, certain = _near_rows(base, price, gap, rows), True
    if gap > tolerance:
        core = _core_customers(base, price, gap, rows)
        outcome = _improve(plan, base, Goal(price, base.room, 0.0, gap, tolerance), core, _search)
        rest, certain = outcome.rest, outcome.certain
        rows = _near_rows(base, price, float(most - plan.value), rows)
    if len(rows) <= OPEN or not certain:
        proven = prove_in_whole_numbers(plan, base, rows, price, EFFORT if certain else MOST_EFFORT)
        rest = 0.0 if proven else min(rest, max(float(most - plan.value), 0.0))
    return float(plan.value) + rest


def _bound(base: Draft, price: float) -> Fraction:
    """Return the value that no plan exceeds, given everybody's best level at the price."""
    return base.value + Fraction(price) * (Fraction(base.limit) - base.spend)


def _settle(base: Draft, price: float, plan: Draft) -> Array:
    """Make sure that the base has the best levels, and return the customers who may have others in a better plan."""
    from largesse.allocation.exact.kernels import settle_ties

    while True:
        gap = float(_bound(base, price) - plan.value)
        rows = _near_rows(base, price, gap * (1 + NUDGE))
        to = np.empty_like(rows)
        settle_ties(base.curves, base.costs, base.levels, rows, price, to)
        for at in np.flatnonzero(to != base.levels[rows]):
            base.change(int(rows[at]), int(to[at]))
        if float(_bound(base, price) - plan.value) <= gap * (1 + NUDGE):
            return rows


def _improve(plan: Draft, base: Draft, goal: Goal, core: Core, search: Callable[[Core, Goal], Changes]) -> Outcome:
    """Search for a better plan among the levels of the core.

    `base` has everybody's best level at the price. It may be the best plan itself: then nothing changes.
    """
    goal = replace(goal, reach=base.room + ROUNDING * core.widest * len(core.row))
    before = plan.value
    found = first = search(core, goal)
    for _ in range(TRIES):
        if found.left >= goal.gap:  # none is better than the plan that is known
            break
        if _take(plan, base, found.changes):
            break
        goal = replace(goal, reach=float(np.nextafter(found.cost, -math.inf)))  # it only fitted by rounding
        found = search(core, goal)
    if found is first:
        return Outcome(max(first.left - first.least, 0.0), True)
    return Outcome(max(goal.gap - float(plan.value - before) - first.least, 0.0), False)


def _take(plan: Draft, base: Draft, changes: list[tuple[int, int]]) -> bool:
    """Take the plan that changes make of the base, if it is better; return whether it is within the budget."""
    old = [(row, int(base.levels[row])) for row, _ in changes]
    for row, level in changes:
        base.change(row, level)
    fits = base.room >= 0
    if fits and base.value > plan.value:
        plan.levels[:], plan.value, plan.spend = base.levels, base.value, base.spend
    for row, level in old:
        base.change(row, level)
    return fits


def _draft_at_price(plan: Draft, price: float) -> Draft:
    """Return the plan that gives everybody the best level at the price."""
    from largesse.allocation.price.kernels import classify

    levels = np.empty_like(plan.levels)
    _, sums = classify(plan.curves, plan.costs, levels, True, price, price, levels, levels)
    found = Found(levels, price, sums[:2].tolist(), sums[2:4].tolist(), levels)
    return make_draft(found, plan.curves, plan.costs, plan.limit)


def _near_rows(base: Draft, price: float, gap: float, among: Array | None = None) -> Array:
    """Return the customers, all or among some, with a level, other than the best at the price, that loses less than the gap."""
    from largesse.allocation.exact.kernels import near

    levels = base.levels
    row = np.empty(len(levels) if among is None else len(among), dtype=np.int64)  # touched only as far as it is filled
    some = levels if among is None else among
    return row[: near(base.curves, base.costs, levels, some, among is None, price, gap, row)]


def _core_customers(base: Draft, price: float, gap: float, row: Array) -> Core:
    """Return customers (m,) and their levels whose loss is below the gap."""
    m, K = len(row), base.curves.shape[1]
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


def _join_halves(core: Core, goal: Goal) -> Changes:
    """Return good changes, fast: every partial plan of some near customers beside every one of as many others."""
    one, other = (_list_plans(core, range(half, len(core.row), 2), goal) for half in (0, 1))
    pair = _best_pair(one, other, goal)
    if pair.left >= goal.gap:
        return Changes([], 0.0, goal.gap, 0.0)
    return Changes(_read_changes(core, [(one, pair.first), (other, pair.second)]), pair.cost, pair.left, 0.0)


def _list_plans(core: Core, customers: range, goal: Goal) -> Partial:
    """Return the partial plans of some customers that none of them beats, up to a few."""
    part = NOBODY
    for at in customers:
        if len(part.extra) > FEW:
            break
        part = _extend(part, core, at, replace(goal, room=0.0), Outlook())
    return part


def _extend(part: Partial, core: Core, at: int, goal: Goal, outlook: Outlook) -> Partial:
    """Return partial plans extended by one more customer."""
    from largesse.allocation.exact.kernels import extend

    if core.least[at] >= goal.gap:
        return part
    options = slice(core.first[at], core.first[at + 1])
    extra, loss, parent, option, missed = extend(
        part.extra, part.loss, core.extra[options], core.loss[options], goal.price, goal.room,
        outlook.up, outlook.down, outlook.further, goal.gap - goal.tolerance, goal.gap, ROUNDING * core.widest,
    )  # fmt: skip
    return Partial(extra, loss, Trail(part.trail, at, parent, option), min(part.dropped, goal.gap - missed))


def _best_pair(one: Partial, other: Partial, goal: Goal) -> Pair:
    """Return the two partial plans that leave least of the gap together.

    Along a list worth rises with cost, so the best partner of a plan is the dearest that still fits.
    """
    partner = np.searchsorted(other.extra, goal.reach - one.extra, side="right") - 1
    cost = one.extra + other.extra[partner]
    left = one.loss + other.loss[partner] + goal.price * (goal.room - cost)
    left = np.where((partner >= 0) & (cost <= goal.reach), left, math.inf)
    here = int(np.argmin(left))
    return Pair(float(left[here]), float(cost[here]), here, int(partner[here]))


def _search(core: Core, goal: Goal) -> Changes:
    """Return the changes that close most of the gap."""
    one = other = NOBODY
    best, cost = [(NOBODY, 0)], 0.0
    front, back = 0, len(core.row) - 1
    while front <= back and len(one.extra) and goal.gap > goal.tolerance:
        if front >= core.early and len(other.extra) <= len(one.extra):
            other = _extend(other, core, back, replace(goal, room=0.0), Outlook())
            back -= 1
        else:
            outlook = Outlook(core.rate_up[front + 1], core.rate_down[front + 1], core.further[front + 1])
            one = _extend(one, core, front, goal, outlook)
            front += 1
            here = int(np.searchsorted(one.extra, goal.reach, side="right")) - 1  # worth rises with cost along the list
            left = float(one.loss[here] + goal.price * (goal.room - one.extra[here])) if here >= 0 else math.inf
            if left < goal.gap:
                goal, cost, best = replace(goal, gap=left), float(one.extra[here]), [(one, here)]
        if max(len(one.extra), len(other.extra)) > MOST:
            return Changes(_read_changes(core, best), cost, goal.gap, 0.0)
    if goal.gap <= goal.tolerance:  # closed; the lists need not be finished
        return Changes(_read_changes(core, best), cost, goal.gap, 0.0)
    if len(one.extra):
        pair = _best_pair(one, other, goal)
        if pair.left < goal.gap:
            goal, cost = replace(goal, gap=pair.left), pair.cost
            best = [(one, pair.first), (other, pair.second)]
    return Changes(_read_changes(core, best), cost, goal.gap, min(goal.gap, one.dropped, other.dropped))


def _read_changes(core: Core, plans: list[tuple[Partial, int]]) -> list[tuple[int, int]]:
    """Return the changes of some partial plans, each read back from its end."""
    changes = []
    for part, place in plans:
        trail = part.trail
        while trail is not None:
            picked = trail.option[place]
            if picked:
                at = trail.customer
                changes.append((int(core.row[at]), int(core.level[core.first[at] + picked])))
            place, trail = int(trail.parent[place]), trail.before
    return changes
