"""Rounding of the price search's result to a plan within the budget, and spending of the remaining budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from largesse.allocation.price.price_search import PriceSolution
from largesse.records import Array

FILL_ROUNDS = 16  # how often what is left is offered to the customer who gains most from it
CARRY_PRECISION = 1e-24  # relative; sums with a carry are exact to more digits than this


@dataclass(eq=False)
class PlanDraft:
    """Plan under construction: level of each customer, and exact total value and cost."""

    curves: Array  # (n, K)
    costs: Array  # (1, K) or (n, K)
    levels: Array
    value: Fraction
    spend: Fraction
    limit: float

    @property
    def remaining_budget(self) -> float:
        """Remaining budget, negative if the plan exceeds its budget."""
        return math.inf if math.isinf(self.limit) else float(Fraction(self.limit) - self.spend)

    def change_level(self, row: int, level: int) -> None:
        """Give a customer another level, and update the plan's totals."""
        paid = self.costs[row if len(self.costs) > 1 else 0]
        old = self.levels[row]
        self.spend += Fraction(float(paid[level])) - Fraction(float(paid[old]))
        self.value += Fraction(float(self.curves[row, level])) - Fraction(float(self.curves[row, old]))
        self.levels[row] = level


def make_plan_draft(solution: PriceSolution, curves: Array, costs: Array, limit: float) -> PlanDraft:
    """Convert the result of a shadow price search to a plan draft with exact totals."""
    spend = _sum_exact_cost(solution.spend, solution.levels, costs, limit)
    return PlanDraft(curves, costs, solution.levels, sum(map(Fraction, solution.value), Fraction(0)), spend, limit)


def _sum_exact_cost(parts: list[float], levels: Array, costs: Array, limit: float) -> Fraction:
    """Return the total cost of a plan, exact enough to compare with the budget."""
    total = sum(map(Fraction, parts), Fraction(0))
    if math.isinf(limit) or abs(float(total - Fraction(limit))) > CARRY_PRECISION * limit or not any(parts[1::2]):
        return total
    paid = costs[np.arange(len(levels)) if len(costs) > 1 else 0, levels]
    return Fraction(limit) + Fraction(math.fsum([*paid.tolist(), -limit]))


def keep_within_budget(plan: PlanDraft, rows: Array) -> None:
    """Lower the levels that lose least value until the plan's exact cost is within the budget."""
    from largesse.allocation.price.price_kernels import find_best_change

    while plan.remaining_budget < 0:
        row, level, _ = find_best_change(plan.curves, plan.costs, rows, plan.levels, plan.remaining_budget)
        if row < 0 and len(rows) < len(plan.levels):
            rows = np.arange(len(plan.levels))
        elif row < 0:
            _give_cheapest_levels(plan)
            return
        else:
            plan.change_level(row, level)


def _give_cheapest_levels(plan: PlanDraft) -> None:
    """Give customers their cheapest levels, the largest saving first, until the plan is within the budget.

    If it never is, it has become the cheapest plan: the budget equals its cost, up to rounding.
    """
    paid = np.broadcast_to(plan.costs, plan.curves.shape)
    saved = paid[np.arange(len(paid)), plan.levels] - paid.min(axis=1)
    for row in np.argsort(-saved, kind="stable"):
        if plan.remaining_budget >= 0 or saved[row] <= 0:
            return
        plan.change_level(int(row), int(paid[row].argmin()))


def spend_remainder(plan: PlanDraft, rows: Array) -> None:
    """Spend the remaining budget on the changes of levels with the largest gain that still fit."""
    from largesse.allocation.price.price_kernels import find_best_change

    for _ in range(FILL_ROUNDS):
        row, level, _ = find_best_change(plan.curves, plan.costs, rows, plan.levels, plan.remaining_budget)
        if row < 0:
            return
        old = plan.levels[row]
        plan.change_level(row, level)
        if plan.remaining_budget < 0:  # the difference was rounded down
            plan.change_level(row, old)
            return
