"""True values and skill scores of plans for simulated customers, whose true responses are known."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from largesse.allocation import frontier
from largesse.errors import InputError, Problem, find_budget_problems, make_below_cheapest_error, refuse
from largesse.records import Array, Frontier


class KnownTruth:
    """Base class of simulated customers whose true response at every level is known.

    It computes true values of plans and uniform mixtures, and the skill of a plan.
    A subclass has the two fields below.
    """

    truth: Array  # (n, K) float64: the true mean response of every customer at every level
    costs: Array  # (K,) float64, rising

    def __len__(self) -> int:
        return len(self.truth)

    def value(self, levels: Array) -> float:
        """Return the mean true response of a plan with levels (n,)."""
        plan, top = np.asarray(levels), self.truth.shape[1] - 1
        if plan.shape != (len(self),) or not np.isin(plan, np.arange(top + 1)).all():
            problem = f"not one level 0..{top} per customer: got an array of shape {plan.shape} and type {plan.dtype}"
            raise InputError("plan", [Problem(problem, f"give {len(self):,} levels")])
        return float(self.truth[np.arange(len(self)), plan.astype(np.int64)].mean())

    def oracle_value(self, budget: float) -> float:
        """Return the highest mean true response of any plan within a budget per customer.

        One customer may be split between two levels.
        """
        return self._best.at(self._check_budget(budget))

    def uniform_value(self, budget: float) -> float:
        """Return the highest mean true response of one mix of levels for all customers within a budget per customer."""
        return self._best_uniform.at(self._check_budget(budget))

    @cached_property
    def _best(self) -> Frontier:
        return frontier(self.truth, self.costs)

    @cached_property
    def _best_uniform(self) -> Frontier:
        return frontier(self.truth.mean(axis=0, keepdims=True), self.costs)

    def skill(self, levels: Array, budget: float) -> float:
        """Return the skill score of a plan: 0 for the best mix of levels for all customers, 1 for the best plan.

        It is (V − V_uniform) / (V_oracle − V_uniform) with V the value of the plan.
        The plan (n,) should cost no more than the budget: overspending is not punished here. The skill is NaN where
        no plan is better than a uniform mixture, as with a budget of 0.
        """
        return self.skill_of(self.value(levels), budget)

    def skill_of(self, value: float, budget: float) -> float:
        """Return the skill score of a plan with mean true response `value`: 0 for the best mix, 1 for the best plan."""
        uniform = self.uniform_value(budget)
        max_gain = self.oracle_value(budget) - uniform
        # Both are means of n terms near one: a smaller difference is rounding error.
        return (value - uniform) / max_gain if max_gain > 1e-12 else float("nan")

    def _check_budget(self, budget: float) -> float:
        refuse("budget", find_budget_problems(budget, unlimited=True))
        cheapest = float(self.costs[0])
        if budget < cheapest:
            raise make_below_cheapest_error("budget", budget, cheapest)
        return float(budget)
