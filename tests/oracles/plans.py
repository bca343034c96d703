"""The best plan within one budget, and every plan under constraints, in exact arithmetic."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Table = list[list[int]]
BEAM_WIDTH = 40  # partial plans


@dataclass(frozen=True)
class WholeProblem:
    """An allocation problem in whole numbers: values, costs and the limit, each times a power of two of its own."""

    values: Table
    costs: Table
    limit: int
    value_unit: Fraction
    cost_unit: Fraction


def whole_numbers(table: np.ndarray[Any, Any], *others: float) -> tuple[Table, list[int], Fraction]:
    """Return a table and further numbers, without any rounding, as multiples of a unit."""
    rows = [[Fraction(float(x)) for x in row] for row in table]
    more = [Fraction(x) for x in others]
    unit = max([x.denominator for row in rows for x in row] + [x.denominator for x in more])
    return [[int(x * unit) for x in row] for row in rows], [int(x * unit) for x in more], Fraction(1, unit)


def to_whole_numbers(curves: Array, costs: Array, total: float) -> WholeProblem:
    """Return a problem in whole numbers: every float is a whole number over a power of two."""
    values, _, unit = whole_numbers(curves)
    paid = np.broadcast_to(costs, curves.shape)
    rows, (limit,), coin = whole_numbers(paid, min(total, float(paid.max()) * len(paid) * 2 + 1.0))
    return WholeProblem(values, rows, limit, unit, coin)


def _good_price(problem: WholeProblem) -> Fraction:
    """Return a price at which plans cost about the limit. Any price is correct; a good one shortens the search."""
    slopes = {Fraction(0)}
    for f, c in zip(problem.values, problem.costs, strict=True):
        for a, b in itertools.permutations(range(len(f)), 2):
            if f[b] > f[a] and c[b] > c[a]:
                slopes.add(Fraction(f[b] - f[a], c[b] - c[a]))
    order = sorted(slopes)
    low, high = 0, len(order) - 1
    while low < high:
        middle = (low + high) // 2
        p, q = order[middle].numerator, order[middle].denominator
        spent = 0
        for f, c in zip(problem.values, problem.costs, strict=True):
            spent += min((-(q * v - p * x), x) for v, x in zip(f, c, strict=True))[1]
        low, high = (low, middle) if spent <= problem.limit else (middle + 1, high)
    return order[low]


def best_value(problem: WholeProblem) -> int | None:
    """Return the largest value of any whole plan within the limit, None if there is none.

    A dynamic programme over customers. It keeps partial plans that no other beats in both cost and value, and that can
    still reach the value of a plan found by a narrow first search.
    """
    price = _good_price(problem)
    known = _search_plans(problem, price, None, BEAM_WIDTH)
    return _search_plans(problem, price, known, None)


def _search_plans(problem: WholeProblem, price: Fraction, known: int | None, beam: int | None) -> int | None:
    """Return the best value; with a `beam`, that of the best plan among the most promising partial plans."""
    p, q = price.numerator, price.denominator
    n = len(problem.values)
    least = [0] * (n + 1)  # lowest cost of the customers from here on
    most = [0] * (n + 1)  # their highest net value at the price, times q
    for i in reversed(range(n)):
        pairs = list(zip(problem.values[i], problem.costs[i], strict=True))
        least[i] = least[i + 1] + min(c for _, c in pairs)
        most[i] = most[i + 1] + max(q * v - p * c for v, c in pairs)
    plans = [(0, 0)]
    for i in range(n):
        candidates = []
        for v, c in set(zip(problem.values[i], problem.costs[i], strict=True)):
            candidates += [(cost + c, value + v) for cost, value in plans if cost + c + least[i + 1] <= problem.limit]
        candidates.sort(key=lambda plan: (plan[0], -plan[1]))
        plans, top = [], None
        for cost, value in candidates:
            if top is not None and value <= top:
                continue
            top = value
            if known is None or q * value + most[i + 1] + p * (problem.limit - cost) >= q * known:
                plans.append((cost, value))
        if beam is not None and len(plans) > beam:
            cheap = plans[0]
            plans = sorted([*sorted(plans, key=lambda plan: p * plan[0] - q * plan[1])[:beam], cheap])
    return max((value for _, value in plans), default=None)


class EveryPlan:
    """Every plan of a small problem with constraints, in rational numbers.

    `rules` holds the settings of `Constraints`.
    """

    def __init__(self, curves: Array, costs: Array, total: float, rules: dict[str, Any]) -> None:
        self.total, self.rules, (self.n, self.K) = total, rules, curves.shape
        face = np.broadcast_to(costs, curves.shape)
        self.paid = [[Fraction(float(cost)) for cost in row] for row in face]
        self.worth = [[Fraction(float(value)) for value in row] for row in curves]
        self.floor = Fraction(rules.get("least_return", 0.0))

    def plans(self) -> Iterable[tuple[int, ...]]:
        return itertools.product(range(self.K), repeat=self.n)

    def net(self, plan: tuple[int, ...]) -> Fraction:
        """Return the value of a plan minus the least return on its cost."""
        return sum((self.worth[i][k] - self.floor * self.paid[i][k] for i, k in enumerate(plan)), Fraction(0))

    def cost(self, plan: tuple[int, ...], segment: str | None = None) -> Fraction:
        segments = self.rules.get("segment")
        rows = [i for i in range(self.n) if segment is None or segments[i] == segment]
        return sum((self.paid[i][plan[i]] for i in rows), Fraction(0))

    def broken(self, plan: tuple[int, ...], leeway: Fraction = Fraction(0)) -> str:
        """Return the name of a rule that a plan breaks, or "". Budgets may be exceeded by a share `leeway`."""
        rules = self.rules
        if self.cost(plan) > Fraction(self.total) * (1 + leeway):
            return "budget"
        if "eligible" in rules and not all(rules["eligible"][i, k] for i, k in enumerate(plan)):
            return "eligible"
        if any(plan.count(k) > most for k, most in rules.get("caps", {}).items()):
            return "caps"
        if any(plan.count(k) < math.ceil(share * self.n - 1e-9) for k, share in rules.get("shares", {}).items()):
            return "shares"
        for name, total in rules.get("segment_budgets", {}).items():
            if self.cost(plan, name) > Fraction(total) * (1 + leeway):
                return f"budget of {name}"
        return ""
