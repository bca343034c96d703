"""Plans within one budget against the true optimum, in whole numbers: every float is a whole number over a power of two.

`run(range(1000))` makes one small instance per seed, asks for the default plan, the exact plan and the frontier, and
counts what is wrong with them. Nothing here uses the solvers' code, nor any solver.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from harness import FINE, Outcome

import largesse as lg

ROUNDING = Fraction(1, 10**12)  # relative; what plans are promised to
WHOLE_PLANS = 700  # instances with so many whole plans or fewer have their frontier compared with each of them
BEAM = 40  # partial plans that are kept for a first good plan

Table = list[list[int]]


@dataclass(frozen=True)
class Task:
    """One instance: curves (n, K), costs (K,) or (n, K), a budget in total, and the family it is of."""

    curves: np.ndarray[Any, Any]
    costs: np.ndarray[Any, Any]
    total: float
    family: str


@dataclass(frozen=True)
class Whole:
    """An instance in whole numbers: values, costs and the budget, each times its own power of two."""

    values: Table
    costs: Table
    limit: int
    unit: Fraction  # of values
    coin: Fraction  # of costs


# ------------------------------------------------------------------------------------------------------ the optimum


def whole_numbers(table: np.ndarray[Any, Any], *others: float) -> tuple[Table, list[int], Fraction]:
    """Return a table and further numbers, without any rounding, as multiples of a unit."""
    rows = [[Fraction(float(x)) for x in row] for row in table]
    more = [Fraction(x) for x in others]
    unit = max([x.denominator for row in rows for x in row] + [x.denominator for x in more])
    return [[int(x * unit) for x in row] for row in rows], [int(x * unit) for x in more], Fraction(1, unit)


def whole_task(task: Task) -> Whole:
    """Return the instance in whole numbers."""
    values, _, unit = whole_numbers(task.curves)
    paid = np.broadcast_to(task.costs, task.curves.shape)
    costs, (limit,), coin = whole_numbers(paid, min(task.total, float(paid.max()) * len(paid) * 2 + 1.0))
    return Whole(values, costs, limit, unit, coin)


def good_price(task: Whole) -> Fraction:
    """Return a price at which plans cost about the limit: any will do, a good one makes the search short."""
    slopes = {Fraction(0)}
    for f, c in zip(task.values, task.costs, strict=True):
        for a, b in itertools.permutations(range(len(f)), 2):
            if f[b] > f[a] and c[b] > c[a]:
                slopes.add(Fraction(f[b] - f[a], c[b] - c[a]))
    order = sorted(slopes)
    low, high = 0, len(order) - 1
    while low < high:
        middle = (low + high) // 2
        p, q = order[middle].numerator, order[middle].denominator
        spent = 0
        for f, c in zip(task.values, task.costs, strict=True):
            spent += min((-(q * v - p * x), x) for v, x in zip(f, c, strict=True))[1]
        low, high = (low, middle) if spent <= task.limit else (middle + 1, high)
    return order[low]


def best_value(task: Whole) -> int | None:
    """Return the largest value of any whole plan within the limit, None if there is none.

    A dynamic programme: customers enter one by one; of partial plans only those stay that none beats in both cost and
    value, and that could still reach a plan known from a narrow first pass.
    """
    price = good_price(task)
    known = _pass(task, price, None, BEAM)
    return _pass(task, price, known, None)


def _pass(task: Whole, price: Fraction, known: int | None, beam: int | None) -> int | None:
    p, q = price.numerator, price.denominator
    n = len(task.values)
    least = [0] * (n + 1)  # what the customers from here on cost at least
    most = [0] * (n + 1)  # and are worth at most at the price, times q
    for i in reversed(range(n)):
        pairs = list(zip(task.values[i], task.costs[i], strict=True))
        least[i] = least[i + 1] + min(c for _, c in pairs)
        most[i] = most[i + 1] + max(q * v - p * c for v, c in pairs)
    plans = [(0, 0)]
    for i in range(n):
        found = []
        for v, c in set(zip(task.values[i], task.costs[i], strict=True)):
            found += [(cost + c, value + v) for cost, value in plans if cost + c + least[i + 1] <= task.limit]
        found.sort(key=lambda plan: (plan[0], -plan[1]))
        plans, top = [], None
        for cost, value in found:
            if top is not None and value <= top:
                continue
            top = value
            if known is None or q * value + most[i + 1] + p * (task.limit - cost) >= q * known:
                plans.append((cost, value))
        if beam is not None and len(plans) > beam:
            cheap = plans[0]
            plans = sorted([*sorted(plans, key=lambda plan: p * plan[0] - q * plan[1])[:beam], cheap])
    return max((value for _, value in plans), default=None)


# ------------------------------------------------------------------------------------------------------ instances


def _own(rng: np.random.Generator, n: int, K: int) -> bool:
    return bool(rng.random() < 0.5 or n * K == 0)


def _random(rng: np.random.Generator, n: int, K: int) -> tuple[Any, Any]:
    return rng.normal(size=(n, K)).cumsum(axis=1), np.sort(rng.random((n, K) if _own(rng, n, K) else K) * 5, axis=-1)


def _nearly_proportional(rng: np.random.Generator, n: int, K: int) -> tuple[Any, Any]:
    costs = np.sort(rng.integers(0, 14, (n, K) if _own(rng, n, K) else K), axis=-1).astype(float)
    noise = rng.choice([0.0, 1e-10, 1e-8, 1e-4, 0.1]) * rng.choice([-1, 0, 1, 2], (n, K))
    return rng.choice([0.1, 0.3, 1.0, 0.25]) * np.broadcast_to(costs, (n, K)) + noise, costs


def _ties(rng: np.random.Generator, n: int, K: int) -> tuple[Any, Any]:
    unit = rng.choice([1.0, 0.1, 0.25, 1 / 3])
    return rng.integers(-2, 5, (n, K)) * unit, rng.integers(0, 4, (n, K) if _own(rng, n, K) else K) * unit


def _zero_width(rng: np.random.Generator, n: int, K: int) -> tuple[Any, Any]:
    curves, costs = _random(rng, n, K)
    same = rng.integers(0, K, 2)
    costs[..., same[0]] = costs[..., same[1]]
    curves[:, same[0]] = np.where(rng.random(n) < 0.5, curves[:, same[1]], curves[:, same[0]])
    return curves, np.nextafter(costs, 9) if rng.random() < 0.3 else costs


def _equal_costs(rng: np.random.Generator, n: int, K: int) -> tuple[Any, Any]:
    return rng.normal(size=(n, K)), np.full((n, K) if _own(rng, n, K) else K, rng.choice([0.0, 0.1, 3.0]))


def _scales(rng: np.random.Generator, n: int, K: int) -> tuple[Any, Any]:
    curves, costs = FAMILIES[rng.choice(["random", "ties", "nearly proportional"])](rng, n, K)
    return curves * 10.0 ** rng.integers(-120, 120), costs * 10.0 ** rng.integers(-120, 120)


def _mixed_scales(rng: np.random.Generator, n: int, K: int) -> tuple[Any, Any]:
    curves, costs = _random(rng, n, K)
    return curves * 10.0 ** rng.integers(-6, 7, (n, 1)), costs * 10.0 ** rng.integers(-6, 7, (n, 1))


def _negative(rng: np.random.Generator, n: int, K: int) -> tuple[Any, Any]:
    curves, costs = _random(rng, n, K)
    return curves - rng.choice([1, 10, 1e6]), costs


def _unsorted(rng: np.random.Generator, n: int, K: int) -> tuple[Any, Any]:
    return rng.random((n, K)), rng.random((n, K)) * rng.choice([1.0, 7.0])


def _duplicated(rng: np.random.Generator, n: int, K: int) -> tuple[Any, Any]:
    curves, costs = _random(rng, n, K)
    copies = rng.integers(0, max(n // 3, 1), n)
    return curves[copies], costs[copies] if costs.ndim == 2 else costs


def _single(rng: np.random.Generator, n: int, K: int) -> tuple[Any, Any]:
    curves, costs = _random(rng, n, K)
    return curves.astype(np.float32), costs.astype(rng.choice([np.float32, np.float64]))


FAMILIES: dict[str, Callable[[np.random.Generator, int, int], tuple[Any, Any]]] = {
    "random": _random,
    "nearly proportional": _nearly_proportional,
    "ties": _ties,
    "zero width": _zero_width,
    "equal costs": _equal_costs,
    "scales": _scales,
    "mixed scales": _mixed_scales,
    "negative": _negative,
    "unsorted": _unsorted,
    "duplicated": _duplicated,
    "single precision": _single,
}


def draw_total(rng: np.random.Generator, curves: Any, costs: Any) -> float:
    """Return a budget: anywhere, none, at a plan's own cost or one rounding beside it, at the cheapest or dearest plan."""
    paid = np.broadcast_to(costs, curves.shape).astype(float)
    cheapest, dearest = math.fsum(paid.min(axis=1)), math.fsum(paid.max(axis=1))
    kind = rng.integers(0, 10)
    if kind < 3:
        return float(cheapest + (dearest - cheapest) * rng.random())
    if kind == 3:
        return 0.0
    if kind in (4, 5):
        return (cheapest, dearest)[kind - 4]
    if kind == 6:
        return float(dearest * 1.5 + 1)
    if kind == 7:
        levels = rng.integers(0, curves.shape[1], len(curves))
    else:  # the cost of what a price gives: a breakpoint
        slope = abs(float(rng.normal())) * (np.ptp(curves) / (np.ptp(paid) or 1.0))
        levels = np.argmax(curves - slope * paid, axis=1)
    at = math.fsum(paid[np.arange(len(paid)), levels])
    return max(float(rng.choice([at, np.nextafter(at, 0), np.nextafter(at, math.inf)])), 0.0)


def make_task(seed: int) -> Task:
    """Return the instance of a seed."""
    rng = np.random.default_rng([20, seed])
    family = list(FAMILIES)[seed % len(FAMILIES)]
    n, K = int(rng.integers(1, 13)), int(rng.integers(2, 9))
    curves, costs = FAMILIES[family](rng, n, K)
    return Task(curves, costs, draw_total(rng, curves, costs), family)


# ------------------------------------------------------------------------------------------------------ the judge


def judge(task: Task) -> list[str]:
    """Return everything that is wrong with the plans and the frontier of an instance: nothing, one hopes."""
    whole = whole_task(task)
    best = best_value(whole)
    wrong = [fault for exact in (False, True) for fault in _judge_plan(task, whole, best, exact)]
    if task.curves.shape[1] ** len(task.curves) <= WHOLE_PLANS:
        wrong += _judge_frontier(task, whole)
    return wrong


def _judge_plan(task: Task, whole: Whole, best: int | None, exact: bool) -> list[str]:
    name = "exact" if exact else "default"
    try:
        plan = lg.allocate(task.curves, task.costs, total=task.total, exact=exact)
    except ValueError as error:
        refused = type(error).__name__ == "BudgetError"
        return [] if refused and best is None else [f"{name}: {type(error).__name__}"]
    except Exception as error:
        return [f"{name}: {type(error).__name__}"]
    n = len(task.curves)
    value = sum(whole.values[i][k] for i, k in enumerate(plan.levels))
    cost = sum(whole.costs[i][k] for i, k in enumerate(plan.levels))
    cheapest = sum(min(row) for row in whole.costs)
    if best is None:  # what the cheapest plan costs, rounded, is a budget that it keeps
        near = cost == cheapest <= whole.limit * (1 + ROUNDING)
        return [] if near else [f"{name}: a plan where there is none"]
    wrong = []
    if cost > whole.limit:
        wrong.append(f"{name}: over the budget")
    size = abs(best) + 1  # in units; a plan's figures are totals in floats, over n
    ulps = Fraction(8, 2**53) * size
    if abs(Fraction(plan.value) * n / whole.unit - value) > ulps:
        wrong.append(f"{name}: value is not that of the levels")
    if Fraction(plan.bound) * n / whole.unit < best - ulps:
        wrong.append(f"{name}: bound below the best")
    if plan.gap == 0 and value < best - ulps:
        wrong.append(f"{name}: false proof")
    if exact and value < best - ROUNDING * size:
        wrong.append(f"{name}: not the best")
    if exact and plan.gap * n / whole.unit > 2 * ROUNDING * size:
        wrong.append(f"{name}: not proven")
    return wrong


def _judge_frontier(task: Task, whole: Whole) -> list[str]:
    try:
        front = lg.frontier(task.curves, task.costs)
    except Exception as error:
        return [f"frontier: {type(error).__name__}"]
    n, levels = len(task.curves), range(task.curves.shape[1])
    spend = [Fraction(float(x)) * n / whole.coin for x in front.spend]
    value = [Fraction(float(x)) * n / whole.unit for x in front.value]
    size = max(abs(x) for row in whole.values for x in row) * n
    wide = max(max(row) for row in whole.costs) * n
    slack = ROUNDING * size
    for plan in itertools.product(levels, repeat=n):
        cost = sum(whole.costs[i][k] for i, k in enumerate(plan))
        worth = sum(whole.values[i][k] for i, k in enumerate(plan))
        at = sum(1 for x in spend if x <= cost + ROUNDING * wide) - 1
        if at < 0:
            return ["frontier: begins above the cheapest plan"]
        top = value[at]
        if at + 1 < len(spend) and spend[at + 1] > spend[at]:
            part = max((cost - spend[at]) / (spend[at + 1] - spend[at]), Fraction(0))
            top += part * (value[at + 1] - value[at])
        if (
            worth
            > top + slack + ROUNDING * wide * Fraction(min(float(front.price[at]), 1e300)) * whole.coin / whole.unit
        ):
            return ["frontier: below a whole plan"]
    return []


def attack(seed: int) -> Outcome:
    """Judge the instance of a seed."""
    task = make_task(seed)
    faults = judge(task)
    return Outcome("false proof", f"{', '.join(faults)} ({task.family})") if faults else FINE


def run(seeds: Iterable[int]) -> dict[str, int]:
    """Return how many instances were tried, and how often each fault was found, with its family."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        task = make_task(seed)
        counts["tried"] += 1
        for fault in judge(task):
            counts[f"{fault} ({task.family})"] += 1
    return dict(counts)
