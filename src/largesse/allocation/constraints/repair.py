"""From the levels that multipliers stand for to a plan that keeps every limit.

The levels nearly keep the limits. Changes that lose least at the multipliers are made until all limits are kept: first
those on customers, where money may be overdrawn, then those on money. What is left is spent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from largesse.allocation.constraints.dual import Multipliers
from largesse.allocation.constraints.problem import Instance, Rows
from largesse.records import Array

ROUNDS, FILL_ROUNDS = 12, 2  # of repair, and of spending what is left
SWAPPERS, SWAPS = 1000, 200  # customers among whom pairs are looked for, and how many are swapped
BATCH = 65536  # changes that are looked at in one round


@dataclass(frozen=True, eq=False)
class _Pass:
    """One pass over all customers for changes that move a sum of money or customers over some cells."""

    part: Array  # (S, K) bool
    money: bool
    sign: float  # 1 up, −1 down
    is_open: Array  # (S, K) bool, where changes may lead
    target: Array  # (R,) bool, the broken rows that changes are for; none when they are always welcome
    floor: float  # the least that a further unit of money must bring


def repair(instance: Instance, found: Multipliers) -> Array:
    """Change the levels that lose least until the limits are kept, then spend what is left.

    Returns what is left of each limit (R,), below zero where it could not be kept.
    """
    rules = instance.rules
    for _ in range(ROUNDS):
        slack = instance.slack()
        if (slack >= 0).all():
            break
        broken = np.flatnonzero((slack < 0) & ~rules.money)
        order = broken[np.lexsort((rules.levels[broken].argmax(axis=1), rules.signs[broken]))]  # least ones first
        taken = sum(_mend(instance, found, slack, np.array([r])) for r in order)
        for sign in (1.0, -1.0):
            over = np.flatnonzero((slack < 0) & rules.money & (rules.signs == sign))
            taken += _mend(instance, found, slack, over) if len(over) else 0
        if not taken and not _swap(instance, slack):
            return slack
    for _ in range(FILL_ROUNDS):
        slack = instance.slack()
        if (slack[rules.money] < 0).any() or not _spend(instance, found, slack):
            break
    slack = instance.slack()
    over = np.flatnonzero((slack < 0) & rules.money & (rules.signs > 0))
    while len(over) and _mend(instance, found, slack, over):
        slack = instance.slack()
        over = np.flatnonzero((slack < 0) & rules.money & (rules.signs > 0))
    return slack


def _mend(instance: Instance, found: Multipliers, slack: Array, broken: Array) -> int:
    """Make the best changes that help broken rows, all of one unit and sign; return how many there were."""
    rules = instance.rules
    money, sign = bool(rules.money[broken[0]]), float(-rules.signs[broken[0]])
    part = _cells(rules, broken)
    is_open = np.ones_like(part)
    if money or sign < 0:
        is_open = ~_cells(rules, np.flatnonzero((slack < 1) & ~rules.money & (rules.signs > 0)))
    if money:  # a spent limit on some levels only is no place to save at
        spent = (slack <= 0) & rules.money & (rules.signs > 0) & ~rules.levels.all(axis=1)
        spent[broken] = False
        is_open &= ~_cells(rules, np.flatnonzero(spent))
    target = np.zeros(len(rules.rows), dtype=bool)
    target[broken] = True
    return _change(instance, found, slack, _Pass(part, money, sign, is_open, target, -math.inf))


def _spend(instance: Instance, found: Multipliers, slack: Array) -> int:
    """Make the best changes that spend what is left; return how many there were."""
    rules = instance.rules
    full = (rules.signs > 0) & np.where(rules.money, slack <= 0, slack < 1)
    is_open = ~_cells(rules, np.flatnonzero(full))
    target = np.zeros(len(rules.rows), dtype=bool)
    return _change(instance, found, slack, _Pass(np.ones_like(is_open), True, 1.0, is_open, target, rules.floor))


def _cells(rules: Rows, which: Array) -> Array:
    """Return the cells (S, K) that some rows cover."""
    cells = np.zeros((rules.groups, rules.levels.shape[1]), dtype=bool)
    for r in which:
        cells[np.ix_(rules.rows[r].groups, rules.rows[r].levels)] = True
    return cells


def _change(instance: Instance, found: Multipliers, slack: Array, way: _Pass) -> int:
    """Make the best changes of one pass; return how many there were."""
    from largesse.allocation.constraints.kernels import accept, offers

    rules, n, prices = instance.rules, len(instance.levels), found.prices
    row, to, key = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n)
    m = offers(
        instance.curves, instance.costs, rules.allowed, rules.group, prices.cost, prices.customer, instance.levels,
        way.part, way.money, way.sign, way.floor, way.is_open, row, to, key,
    )  # fmt: skip
    first = np.argpartition(key[:m], BATCH)[:BATCH] if m > BATCH else np.arange(m)
    order = first[np.argsort(key[first], kind="stable")]
    return accept(
        instance.costs, rules.group, row[order], to[order], instance.levels, slack, *rules.of_group,
        rules.money, rules.signs, rules.levels, way.target, way.money,
    )  # fmt: skip


def _swap(instance: Instance, slack: Array) -> bool:
    """Swap levels between customers, a pair at a time, as long as it saves where money is overdrawn."""
    from largesse.allocation.constraints.kernels import swap

    rules, some = instance.rules, False
    rows = np.arange(min(len(instance.levels), SWAPPERS))
    for _ in range(SWAPS):
        if (slack[rules.money] >= 0).all() or not swap(
            instance.costs, rules.allowed, rules.group, rows, instance.levels, slack, *rules.of_group,
            rules.money, rules.signs, rules.levels,
        ):  # fmt: skip
            break
        some = True
    return some
