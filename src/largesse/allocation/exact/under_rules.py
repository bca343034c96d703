"""The best whole plan under rules, proven.

At the multipliers a level's loss is what it is worth less than the customer's best level. No plan exceeds the bound less
the losses of its levels, so a level that loses more than the gap can be in no better plan. What is left, the core, is
solved as a mixed-integer programme. While the core is too large, the levels that lose least are taken for it: their plan
narrows the gap from below, and their linear relaxation, through its multipliers, from above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from largesse.allocation.exact.milp import SECONDS, Answer, build_program, relaxed_multipliers, solve_program
from largesse.allocation.rules.instance import Instance
from largesse.allocation.rules.multipliers import Multipliers, certify
from largesse.records import Array

MOST = 20_000  # choices that a core may have
SIZES = (400, 1000, 2500, 6000, MOST)  # of the cores that are tried while all that is open does not fit
RELAXED = 3  # cores whose linear relaxation is solved
NEAR = 1e-4  # relative; how close to the best a plan must be when any will do
DIGITS = 1e-12  # relative; what sums of many rounded numbers can tell apart


@dataclass(frozen=True, eq=False)
class Proof:
    """Whether the instance's levels keep the rules, the best multipliers, and the net value that no plan exceeds."""

    kept: bool
    multipliers: Multipliers
    bound: float


@dataclass(frozen=True, eq=False)
class Losses:
    """What each level loses on the best one at multipliers (n, K), infinite if it is not allowed; and that one (n,)."""

    loss: Array
    best: Array


@dataclass(frozen=True, eq=False)
class Core:
    """The choices (n, K) that a better plan may make; and whether these are all of them."""

    choice: Array
    complete: bool


def is_small(instance: Instance) -> bool:
    """Whether all choices together are few enough for a core."""
    return instance.curves.size <= MOST


def find_any_plan(instance: Instance) -> Answer:
    """Return a good plan of a small instance, searched for among all plans; if it has none, that is proven."""
    return solve_program(build_program(instance, instance.levels, instance.allowed), NEAR)


def prove_under_rules(instance: Instance, start: Proof) -> Proof:
    """Improve a plan to the best whole one. Changes the instance's levels; `start.kept` says whether they keep the rules."""
    best = instance.levels.copy() if start.kept else None
    worth = instance.worth(best) if best is not None else -math.inf
    found, bound = _tighten(instance, start, worth)
    for size in SIZES:
        if bound - worth <= DIGITS * abs(worth):
            break
        lost = losses_at(instance, found)
        core = _core_choices(lost, bound - worth, size)
        program = build_program(instance, lost.best, core.choice)
        answer = solve_program(program, 0.0, SECONDS if core.complete else SECONDS / 10)
        if answer.levels is not None:
            now = instance.worth(answer.levels)
            if now > worth:
                best, worth = answer.levels, now
        if core.complete:  # a plan outside the core is no better than the one that was known
            bound = min(bound, max(answer.bound, worth))
            break
    if best is not None:
        instance.levels[:] = best
    return Proof(best is not None, found, bound)


def losses_at(instance: Instance, found: Multipliers) -> Losses:
    """Return what each level loses at the multipliers."""
    rules, prices = instance.rules, found.prices
    worth = instance.curves - prices.cost[rules.group] * instance.costs - prices.customer[rules.group]
    if len(rules.allowed):
        worth[~rules.allowed] = -math.inf
    best = worth.argmax(axis=1)
    return Losses(worth[np.arange(len(best)), best][:, None] - worth, best)


def _core_choices(lost: Losses, gap: float, most: int) -> Core:
    """Return the choices that lose no more than the gap, or the nearest of them if these are too many.

    Customers with one level left have no choice, and none is marked.
    """
    rows = np.arange(len(lost.best))
    choice = np.isfinite(lost.loss) & (lost.loss <= gap * (1 + DIGITS))
    choice[rows, lost.best] = True
    choice[choice.sum(axis=1) == 1] = False
    if choice.sum() <= most:
        return Core(choice, True)
    other = choice.copy()
    other[rows, lost.best] = False
    choice &= lost.loss < np.partition(lost.loss[other], most // 2)[most // 2]
    choice[choice.sum(axis=1) == 1] = False
    return Core(choice, False)


def _tighten(instance: Instance, start: Proof, worth: float) -> tuple[Multipliers, float]:
    """Return the multipliers of a core's linear relaxation if their bound is lower, else those known; and the bound."""
    found, bound = start.multipliers, start.bound
    for _ in range(RELAXED):
        lost = losses_at(instance, found)
        core = _core_choices(lost, bound - worth, MOST)
        if not core.choice.any():
            break
        values = relaxed_multipliers(build_program(instance, lost.best, core.choice))
        if values is None:
            break
        other = Multipliers(instance.rules, values)
        least = certify(instance, other)
        if least >= bound:
            break
        found, bound = other, least
        if core.complete:
            break
    return found, bound
