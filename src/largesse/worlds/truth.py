"""Customers whose true response at every level is known: what any plan for them is worth, and the best that could be."""

from __future__ import annotations

import numpy as np

from largesse.errors import BudgetError, InputError, Problem
from largesse.records import Array


class Known:
    """What records with a truth share: the value of plans, of the best plan, of one mixture for all, and skill."""

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
        """Return the best mean true response at an average cost; one customer may be split between two levels."""
        gain, width = np.diff(hull(self.truth, self.costs), axis=1), np.diff(self.costs)
        # A hull's steps bring less and less for their cost, so buying the best steps first is the best plan.
        order = np.argsort(-(gain / width), axis=None, kind="stable")
        worth = np.concatenate([[0.0], np.cumsum(gain.ravel()[order])])
        spent = np.concatenate([[0.0], np.cumsum(np.broadcast_to(width, gain.shape).ravel()[order])])
        bought = np.interp(len(self) * (self._checked(budget) - self.costs[0]), spent, worth)
        return float(self.truth[:, 0].mean() + bought / len(self))

    def uniform_value(self, budget: float) -> float:
        """Return the best mean true response of one mixture of levels given to everybody, at an average cost."""
        means = hull(self.truth.mean(axis=0, keepdims=True), self.costs)[0]
        return float(np.interp(self._checked(budget), self.costs, means))

    def skill(self, levels: Array, budget: float) -> float:
        """Return (V − V_uniform) / (V_oracle − V_uniform): 0 is no better than treating all alike, 1 is the best.

        The plan (n,) should cost no more than the budget: what it spends beyond is not held against it here.
        It is NaN where nobody can do better than uniform, as with a budget of 0.
        """
        return self.skill_of(self.value(levels), budget)

    def skill_of(self, value: float, budget: float) -> float:
        """Return the skill of a plan whose mean true response is known."""
        uniform = self.uniform_value(budget)
        room = self.oracle_value(budget) - uniform
        # Both are means of n terms near one; a room below their rounding error is no room.
        return (value - uniform) / room if room > 1e-12 else float("nan")

    def _checked(self, budget: float) -> float:
        least = float(self.costs[0])
        if not budget >= least:
            hint = f"the cheapest level costs {least:g}: give {least:g} or more"
            raise BudgetError("budget", [Problem(f"{budget:g} per customer", hint)])
        return float(budget)


def hull(curves: Array, costs: Array) -> Array:
    """Return the smallest concave curves (m, K) above the given ones, at rising costs (K,).

    >>> hull(np.array([[0.0, 0.0, 1.0, 1.0, 1.25]]), np.arange(5.0))
    array([[0.   , 0.5  , 1.   , 1.125, 1.25 ]])
    """
    above = curves.copy()
    size = curves.shape[1]
    for left in range(size):
        for right in range(left + 2, size):
            inside = np.arange(left + 1, right)
            share = (costs[inside] - costs[left]) / (costs[right] - costs[left])
            chords = curves[:, [left]] * (1 - share) + curves[:, [right]] * share
            above[:, inside] = np.maximum(above[:, inside], chords)
    return above
