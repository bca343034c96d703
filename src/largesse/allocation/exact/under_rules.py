"""The best whole plan under rules, proven.

At the multipliers a level's loss is what it is worth less than the customer's best level. No plan exceeds the bound less
the losses of its levels, so a level that loses more than the gap can be in no better plan. What is left, the core, is
solved as a mixed-integer programme. While the core is too large, the levels that lose least are taken for it: their plan
narrows the gap from below, and their linear relaxation, through its multipliers, from above.
"""

from __future__ import annotations

import math

import numpy as np

from largesse.allocation.exact.milp import SECONDS, Answer, modelled, nets, shadow, solved
from largesse.allocation.rules.multipliers import Multipliers, Problem, certify
from largesse.records import Array

MOST = 20_000  # choices that a core may have
SIZES = (400, 1000, 2500, 6000, MOST)  # of the cores that are tried while all that is open does not fit
RELAXED = 3  # cores whose linear relaxation is solved
NEAR = 1e-4  # relative; how close to the best a plan must be when any will do
DIGITS = 1e-12  # relative; what sums of many rounded numbers can tell apart


def small(problem: Problem) -> bool:
    """Whether all choices together are few enough for a core."""
    return problem.curves.size <= MOST


def allowed(problem: Problem) -> Array:
    """Return which levels customers may get (n, K)."""
    return problem.rules.eligible if len(problem.rules.eligible) else np.ones(problem.curves.shape, dtype=bool)


def any_plan(problem: Problem) -> Answer:
    """Return a good plan of a small problem, looked for among all of them; if it has none, that is proven."""
    return solved(modelled(problem, problem.levels, allowed(problem)), NEAR)


def prove(problem: Problem, found: Multipliers, bound: float, kept: bool) -> tuple[bool, Multipliers, float]:
    """Improve a plan to the best whole one. `kept` says whether the plan keeps the rules to begin with.

    Changes the problem's levels. Returns whether they keep the rules, the best multipliers, and the total net value
    that no plan exceeds.
    """
    rows = np.arange(len(problem.levels))
    best = problem.levels.copy() if kept else None
    worth = math.fsum(nets(problem, rows, best).tolist()) if best is not None else -math.inf
    found, bound = _narrowed(problem, found, bound, worth)
    for size in SIZES:
        if bound - worth <= DIGITS * abs(worth):
            break
        loss, at = losses(problem, found)
        choice, whole = _core(loss, at, bound - worth, size)
        answer = solved(modelled(problem, at, choice), 0.0, SECONDS if whole else SECONDS / 10)
        if answer.levels is not None:
            now = math.fsum(nets(problem, rows, answer.levels).tolist())
            if now > worth:
                best, worth = answer.levels, now
        if whole:  # a plan outside the core is no better than the one that was known
            bound = min(bound, max(answer.bound, worth))
            break
    if best is not None:
        problem.levels[:] = best
    return best is not None, found, bound


def losses(problem: Problem, found: Multipliers) -> tuple[Array, Array]:
    """Return what each level loses on the best one at the multipliers (n, K), infinite if it may not be had; and that one (n,)."""
    rules = problem.rules
    price = found.prices(rules)[rules.segment][:, None]
    worth = problem.curves - price * problem.costs - found.toll
    if len(rules.eligible):
        worth[~rules.eligible] = -math.inf
    at = worth.argmax(axis=1)
    return worth[np.arange(len(at)), at][:, None] - worth, at


def _core(loss: Array, at: Array, gap: float, most: int) -> tuple[Array, bool]:
    """Return the choices (n, K) that lose no more than the gap, or the nearest of them; and whether these are all.

    Customers with one level left have no choice, and none is marked.
    """
    rows = np.arange(len(at))
    choice = np.isfinite(loss) & (loss <= gap * (1 + DIGITS))
    choice[rows, at] = True
    choice[choice.sum(axis=1) == 1] = False
    if choice.sum() <= most:
        return choice, True
    other = choice.copy()
    other[rows, at] = False
    choice &= loss < np.partition(loss[other], most // 2)[most // 2]
    choice[choice.sum(axis=1) == 1] = False
    return choice, False


def _narrowed(problem: Problem, found: Multipliers, bound: float, worth: float) -> tuple[Multipliers, float]:
    """Return the multipliers of a core's linear relaxation if they bound all plans more narrowly, else those known."""
    for _ in range(RELAXED):
        loss, at = losses(problem, found)
        choice, whole = _core(loss, at, bound - worth, MOST)
        prices = shadow(modelled(problem, at, choice)) if choice.any() else None
        if prices is None:
            break
        other = _multipliers(problem, prices)
        least = certify(problem, other)
        if least >= bound:
            break
        found, bound = other, least
        if whole:
            break
    return found, bound


def _multipliers(problem: Problem, prices: dict[tuple[str, int], float]) -> Multipliers:
    toll = np.zeros(problem.curves.shape[1])
    segment = np.zeros(len(problem.rules.names))
    for (kind, which), price in prices.items():
        if kind in ("cap", "share"):
            toll[which] += price if kind == "cap" else -price
        elif kind == "segment":
            segment[which] = max(price, 0.0)
    return Multipliers(max(prices.get(("budget", len(segment)), 0.0), 0.0), segment, toll)
