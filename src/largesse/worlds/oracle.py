"""Customers whose true response at every level is known: what any plan for them is worth, and the best that could be."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from largesse.allocation import frontier
from largesse.errors import InputError, Problem, below_cheapest, budget_problems, refuse
from largesse.records import Array, Frontier


class KnownTruth:
    """What records with a truth share: the value of a plan, of the best plan, of one mixture for all, and skill.

    An abstract base: a record that inherits from it has the two fields below.
    """

    truth: Array  # (n, K) float64: the true mean response of every customer at every level
    costs: Array  # (K,) float64, rising

    def __len__(self) -> int:
        return len(self.truth)

    def value(self, levels: Array) -> float:
        """Return the mean true response of a plan: levels (n,) in 0..K−1."""
        plan, top = np.asarray(levels), self.truth.shape[1] - 1
        if plan.shape != (len(self),) or not np.isin(plan, np.arange(top + 1)).all():
            got = f"got an array of shape {plan.shape} and type {plan.dtype}"
            problem = Problem(f"not one level 0..{top} per customer: {got}", f"give {len(self):,} levels")
            raise InputError("plan", [problem])
        return float(self.truth[np.arange(len(self)), plan.astype(np.int64)].mean())

    def oracle_value(self, budget: float) -> float:
        """Return the best mean true response within an average cost; one customer may be split between two levels."""
        return self._best.at(self._checked(budget))

    def uniform_value(self, budget: float) -> float:
        """Return the best mean true response of one mixture of levels for everybody, within an average cost."""
        return self._best_uniform.at(self._checked(budget))

    @cached_property
    def _best(self) -> Frontier:
        return frontier(self.truth, self.costs)

    @cached_property
    def _best_uniform(self) -> Frontier:
        return frontier(self.truth.mean(axis=0, keepdims=True), self.costs)

    def skill(self, levels: Array, budget: float) -> float:
        """Return (V − V_uniform) / (V_oracle − V_uniform): 0 is no better than treating all alike, 1 is the best plan.

        The plan (n,) should cost no more than the budget: overspending is not punished here. The skill is NaN where
        nobody can do better than uniform, as with a budget of 0.
        """
        return self.skill_of(self.value(levels), budget)

    def skill_of(self, value: float, budget: float) -> float:
        """Return the skill of a plan whose mean true response is known."""
        uniform = self.uniform_value(budget)
        room = self.oracle_value(budget) - uniform
        # Both are means of n terms near one: a smaller difference is rounding error.
        return (value - uniform) / room if room > 1e-12 else float("nan")

    def _checked(self, budget: float) -> float:
        refuse("budget", budget_problems(budget, unlimited=True))
        least = float(self.costs[0])
        if budget < least:
            raise below_cheapest("budget", budget, least)
        return float(budget)
