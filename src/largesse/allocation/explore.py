"""Exploring: some customers get a level at random, so that the next log can be learnt from; the budget pays for it.

A rule for customers has three numbers. The price decides: the best of response − price × cost. Where two levels tie at
the price, the dearer one is given with probability `share`, so that the budget is spent in expectation. And with
probability `explore` a customer gets any level, all alike. The probability of level k is then

    π(k) = explore / K + (1 − explore) · ((1 − share) · 1[k cheapest of the best] + share · 1[k dearest of the best]).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.allocation.plan import allocate, decide_at_price
from largesse.errors import BudgetError, Problem, as_number, refuse, repr_short, whole_problems
from largesse.records import Array

SHORT = 1e-12  # relative; the cheapest plan may exceed what is left by rounding


@dataclass(frozen=True)
class Mixture:
    """The rule that a price, ties and exploring make."""

    price: float
    share: float = 0.0  # where two levels are worth the same at the price, the probability of the dearer one
    explore: float = 0.0  # the share of customers who get a level at random

    def probabilities(self, curves: Array, costs: Array) -> Array:
        """Return the probability (n, K) of each level for curves (n, K) and costs (K,) or (n, K)."""
        found = np.zeros(np.shape(curves))
        rows = np.arange(len(found))
        found[rows, decide_at_price(curves, costs, self.price)] = 1 - self.share
        if self.share:
            found[rows, decide_at_price(curves, costs, self.price, dearest=True)] += self.share
        return mix_levels(found, self.explore)


def check_exploring(explore: Any, seed: Any) -> None:
    """Refuse a share of customers, or a seed, that is none."""
    problems = whole_problems(seed, "seed")
    share = as_number(explore)
    if share is None or not 0 <= share <= 1:
        problems.append(Problem(f"explore is {repr_short(explore)}", "give a share of customers from 0 to 1"))
    refuse("explore", problems)


def mix_levels(probabilities: Array, explore: float) -> Array:
    """Return probabilities (n, K) after a share of customers explores: for them all levels are alike."""
    return explore / probabilities.shape[1] + (1 - explore) * probabilities if explore else probabilities


def left_to_plan(cheapest: float, random: float, budget: float, explore: float) -> float:
    """Return what is left per customer for those who do not explore, or refuse.

    `cheapest` and `random` are what customers cost on average at their cheapest level, and at any level alike.
    """
    rest = budget - explore * random
    if rest < (1 - explore) * cheapest * (1 - SHORT):
        most = max(budget - cheapest, 0.0) / (random - cheapest) if random > cheapest else 0.0
        got = f"exploring with {explore:g} leaves less than the cheapest plan costs"
        raise BudgetError("explore", [Problem(got, f"raise the budget, or explore with {most:.3g} at most")])
    return rest / (1 - explore) if explore < 1 else budget


def exploring_budget(costs: Array, budget: float, explore: float) -> float:
    """Return what is left per customer for those who do not explore, or refuse; costs (n, K)."""
    return left_to_plan(float(costs.min(axis=1).mean()), float(costs.mean()), budget, explore)


def split_ties(price: float, ends: tuple[float, float], budget: float, explore: float = 0.0) -> Mixture:
    """Return the rule at a price whose ties are split so that those who do not explore cost `budget` on average.

    `ends` are what they cost if the cheapest of equally good levels is taken, and the dearest.
    """
    low, high = ends
    share = min(max((budget - low) / (high - low), 0.0), 1.0) if high > low and price > 0 else 0.0
    return Mixture(price, share, explore)


def calibrate_mixture(curves: Array, costs: Array, budget: float, explore: float = 0.0) -> Mixture:
    """Return the rule by which customers like these cost `budget` on average, exploring included.

    >>> calibrate_mixture(np.tile([0.0, 1.0], (10, 1)), np.array([0.0, 1.0]), budget=0.3)
    Mixture(price=1.0, share=0.3, explore=0.0)
    """
    rest = exploring_budget(np.broadcast_to(costs, np.shape(curves)), budget, explore)
    if explore == 1:
        return Mixture(0.0, explore=explore)
    return find_mixture(curves, costs, allocate(curves, costs, rest).price, rest, explore)


def find_mixture(curves: Array, costs: Array, price: float, budget: float, explore: float = 0.0) -> Mixture:
    """Return the rule at a price whose ties are split so that those who do not explore cost `budget` on average."""
    wide, rows = np.broadcast_to(costs, np.shape(curves)), np.arange(len(curves))
    low, high = (
        float(wide[rows, decide_at_price(curves, costs, price, dearest=dearest)].mean()) for dearest in (False, True)
    )
    return split_ties(price, (low, high), budget, explore)
