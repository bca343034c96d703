"""Exploration of a campaign's plan: drawn levels, their propensities, and the numbers for the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from largesse.allocation import Constraints
from largesse.campaign import Planning
from largesse.exploration import ExplorationRule, ResponseVariance, plan_exploration
from largesse.records import Array, Exploration, ExplorationSummary, ExplorationWay, Plan


@dataclass(frozen=True, eq=False)
class ExplorationResult:
    """A plan whose levels were drawn, their propensities, and the numbers for the report."""

    plan: Plan
    propensity: Array  # (n,)
    numbers: ExplorationSummary
    rule: ExplorationRule | None  # for customers who are not in the plan; None if levels are not open to everyone


def explore_plan(
    planning: Planning,
    curves: Array,
    costs: Array,
    constraints: Constraints | None,
    variance: ResponseVariance,
    seed: int,
) -> ExplorationResult:
    """Plan for curves (n, K) and costs (K,) or (n, K) as a campaign says, and explore around the plan."""
    goal, rate, budget = planning.explore_for, planning.explore, planning.average(len(curves))
    settings: Any = {"goal": goal, "rate": rate, "constraints": constraints, "seed": seed}
    exploration, rule = plan_exploration(curves, costs, budget, variance, **settings)
    plan = Plan(
        levels=exploration.decisions.levels,
        value=exploration.value,
        spend=min(exploration.spend, exploration.budget),
        price=exploration.price,
        bound=exploration.value + exploration.given_up,  # the value of the plan without exploration
        budget=exploration.budget,
    )
    return ExplorationResult(plan, exploration.decisions.propensity, describe(exploration), rule)


def describe(exploration: Exploration) -> ExplorationSummary:
    """Return the cost and the precision of an exploration."""
    ways = tuple(ExplorationWay(way.name, way.given_up, way.plan_se, way.gain_se) for way in exploration.precisions)
    return ExplorationSummary(exploration.goal, exploration.rate, exploration.given_up, exploration.this.money, ways)
