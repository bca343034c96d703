"""Exploring: some customers get a level at random, so that the next log can be learnt from; the budget pays for it.

A rule for customers has three numbers. The price decides: the best of response − price × cost. Where two levels tie at
the price, the dearer one is given with probability `share`, so that the budget is spent in expectation. And with
probability `explore` a customer gets any level, all alike. The probability of level k is then

    π(k) = explore / K + (1 − explore) · ((1 − share) · 1[k cheapest of the best] + share · 1[k dearest of the best]).

A plan for given customers splits ties itself, so its levels take the place of the best ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from largesse.allocation.checks import check_task, total_limit
from largesse.allocation.plan import allocate, decide_at_price
from largesse.errors import BudgetError, Problem, as_number, refuse, repr_short, whole_problems
from largesse.records import Array, Decisions, Plan
from largesse.stats import draw_levels

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


@dataclass(frozen=True, eq=False)
class ExploringPlan:
    """A plan that explores: its value and spend are expected ones. Unpacks into the plan and the decisions."""

    plan: Plan
    decisions: Decisions  # the levels that were drawn, and the probability of each
    rule: Mixture  # for customers not seen yet

    def __iter__(self) -> Iterator[Any]:
        return iter((self.plan, self.decisions))


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


def explore_plan(
    curves: Any, costs: Any, budget: float | None, explore: float, *, total: float | None = None, seed: int = 0
) -> ExploringPlan:
    """Plan within a budget that also pays for exploring, then give a share of customers a level at random.

    The plan's value and spend are expected ones; the decisions give the probability with which each level was chosen.

    >>> plan, made = explore_plan(np.tile([0.0, 1.0], (1000, 1)), [0, 1], budget=0.5, explore=0.1)
    >>> plan.spend, np.unique(made.propensity).round(2)
    (0.5, array([0.05, 0.95]))
    """
    check_exploring(explore, seed)
    curves, costs = check_task(curves, costs)
    n, K = curves.shape
    average = total_limit(n, budget, total) / n
    wide = np.broadcast_to(costs, curves.shape)
    rest, common = exploring_budget(wide, average, explore), costs[0] if len(costs) == 1 else costs
    plan = allocate(curves, common, rest)
    probabilities = mix_levels(np.eye(K)[plan.levels], explore)
    levels = draw_levels(probabilities, seed)
    value, bound = ((1 - explore) * v + explore * float(curves.mean()) for v in (plan.value, plan.bound))
    spend = (1 - explore) * plan.spend + explore * float(wide.mean())
    rule = find_mixture(curves, common, plan.price, rest, explore)
    plan = replace(plan, levels=levels, value=value, bound=bound, spend=min(spend, average), budget=average)
    return ExploringPlan(plan, Decisions(levels, probabilities[np.arange(n), levels]), rule)
