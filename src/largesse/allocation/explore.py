"""A plan that gives some customers a level by chance, so that the next log can be learnt from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from largesse.allocation.checks import checked, total_limit
from largesse.allocation.plan import allocate
from largesse.errors import BudgetError, Problem
from largesse.records import Array, Decisions, Plan


def exploring_budget(costs: Array, budget: float, explore: float) -> float:
    """Return what is left per customer for those who do not explore, or refuse; costs (n, K)."""
    cheapest, chance = float(costs.min(axis=1).mean()), float(costs.mean())
    rest = budget - explore * chance
    if rest < (1 - explore) * cheapest * (1 - 1e-12):
        most = max(budget - cheapest, 0.0) / (chance - cheapest) if chance > cheapest else 0.0
        got = f"exploring with {explore:g} leaves less than the cheapest plan costs"
        raise BudgetError("explore", [Problem(got, f"raise the budget, or explore with {most:.3g} at most")])
    return rest / (1 - explore) if explore < 1 else budget


def explore_plan(
    curves: Any, costs: Any, budget: float | None, explore: float, *, total: float | None = None, seed: int = 0
) -> tuple[Plan, Decisions]:
    """Plan within a budget that also pays for exploring, then give a share of customers a level by chance.

    The plan's value and spend are expected ones; the decisions say with which probability each level was chosen.

    >>> plan, made = explore_plan(np.tile([0.0, 1.0], (1000, 1)), [0, 1], budget=0.5, explore=0.1)
    >>> plan.spend, np.unique(made.propensity).round(2)
    (0.5, array([0.05, 0.95]))
    """
    curves, costs = checked(curves, costs)
    n, K = curves.shape
    average = total_limit(n, budget, total) / n
    wide = np.broadcast_to(costs, curves.shape)
    plan = allocate(curves, costs[0] if len(costs) == 1 else costs, exploring_budget(wide, average, explore))
    rng = np.random.default_rng(seed)
    by_chance, drawn = rng.random(n) < explore, rng.integers(0, K, n)
    levels = np.where(by_chance, drawn, plan.levels)
    propensity = explore / K + (1 - explore) * (levels == plan.levels)
    value, bound = ((1 - explore) * v + explore * float(curves.mean()) for v in (plan.value, plan.bound))
    spend = (1 - explore) * plan.spend + explore * float(wide.mean())
    plan = replace(plan, levels=levels, value=value, bound=bound, spend=min(spend, average), budget=average)
    return plan, Decisions(levels, propensity)
