"""The best whole plan within a budget, in whole numbers: nothing is rounded.

Costs and values are floats, so they are whole numbers over a power of two. Partial plans are listed as in `budget`, but
with Python's integers; that is slow, so it is for few customers, and for budgets that some plans keep or break only by
rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from largesse.allocation.price.rounding import Draft
from largesse.records import Array


@dataclass(frozen=True)
class Choice:
    """A level of a customer: what it costs and loses more than the customer's best level at the price."""

    row: int
    level: int
    extra: Fraction
    loss: Fraction


@dataclass(frozen=True)
class Goal:
    """What changes are searched for: those that cost at most `room` and leave less of the gap than all of it."""

    price: Fraction
    room: Fraction
    gap: Fraction


@dataclass(frozen=True)
class Scaled:
    """A goal and the choices of each customer, (extra, loss, choice) dearest last, as whole numbers."""

    price: int
    room: int
    gap: int
    choices: list[list[tuple[int, int, Choice]]]


def prove_in_whole_numbers(plan: Draft, base: Draft, rows: Array, price: float, effort: int) -> bool:
    """Improve a plan to the best one in which only some rows differ from `base`, their best levels at the price.

    Returns whether that is proven after an effort of so many partial plans. Changes `base` as well.
    """
    value = Fraction(price)
    choices = [_choices(base, int(row), value) for row in rows]
    for best, *_ in choices:
        base.change(best.row, best.level)
    room = Fraction(base.limit) - base.spend
    goal = Goal(value, room, base.value + value * room - plan.value)
    if goal.gap <= 0:
        return True
    found, proven = _search(_scale(goal, choices), effort)
    if found is not None:
        for choice in found:
            base.change(choice.row, choice.level)
        plan.levels[:], plan.value, plan.spend = base.levels, base.value, base.spend
    return proven


def _choices(base: Draft, row: int, price: Fraction) -> list[Choice]:
    """Return the levels of a customer, the best one at the price first, the cheapest of them if they tie."""
    paid = [Fraction(float(c)) for c in base.costs[row if len(base.costs) > 1 else 0]]
    worth = [Fraction(float(f)) - price * c for f, c in zip(base.curves[row], paid, strict=True)]
    best = max(range(len(paid)), key=lambda k: (worth[k], -paid[k]))
    order = sorted(range(len(paid)), key=lambda k: k != best)
    return [Choice(row, k, paid[k] - paid[best], worth[best] - worth[k]) for k in order]


def _scale(goal: Goal, choices: list[list[Choice]]) -> Scaled:
    """Return whole numbers, without rounding: all denominators are powers of two."""
    kept = [[c for c in row if c.loss < goal.gap or c is row[0]] for row in choices]
    coin = max([goal.room.denominator, *(c.extra.denominator for row in kept for c in row)])
    rate = goal.price / coin
    unit = max([goal.gap.denominator, rate.denominator, *(c.loss.denominator for row in kept for c in row)])
    scaled = [sorted(((int(c.extra * coin), int(c.loss * unit), c) for c in row), key=lambda c: c[:2]) for row in kept]
    return Scaled(int(rate * unit), int(goal.room * coin), int(goal.gap * unit), scaled)


def _search(task: Scaled, effort: int) -> tuple[list[Choice] | None, bool]:
    """Return the choices that leave least of the gap, None if none leave less than all; and whether that is proven."""
    price, room, gap = task.price, task.room, task.gap
    dear = sum(row[-1][0] for row in task.choices)  # what the customers to come cost at most, and at least
    cheap = sum(row[0][0] for row in task.choices)
    plans: list[tuple[int, int, Any]] = [(0, 0, None)]
    for row in task.choices:
        dear, cheap = dear - row[-1][0], cheap - row[0][0]
        effort -= len(plans) * len(row)
        if effort < 0:
            return None, False
        found = [
            (cost + extra, lost + loss, (choice, trail))
            for extra, loss, choice in row
            for cost, lost, trail in plans
            if lost + loss < gap and cost + extra + cheap <= room
        ]
        found.sort(key=lambda plan: plan[:2])
        plans, top = [], None
        for cost, lost, trail in found:
            worth = price * cost - lost
            if (top is None or worth > top) and lost + price * max(room - cost - dear, 0) < gap:
                plans.append((cost, lost, trail))
            top = worth if top is None else max(top, worth)
    best = max(plans, key=lambda plan: price * plan[0] - plan[1], default=None)
    if best is None or best[1] + price * (room - best[0]) >= gap:
        return None, True
    return _read(best[2]), True


def _read(trail: Any) -> list[Choice]:
    choices = []
    while trail is not None:
        choice, trail = trail
        choices.append(choice)
    return choices
