"""A plan that explores for the next log: levels drawn with probabilities that make it tell most for what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from largesse.allocation import Constraints
from largesse.campaign import Planning
from largesse.evaluation import Noise
from largesse.policy import Aimed, Expected, Exploring, explore_by_rule
from largesse.records import Array, Exploration, Plan


@dataclass(frozen=True, eq=False)
class Explored:
    """A plan whose levels were drawn, their propensities, and the numbers for the report."""

    plan: Plan
    propensity: Array  # (n,)
    numbers: dict[str, Any]
    rule: Aimed | None  # for customers who are not in the plan; there is none where it has constraints


def explore_for(
    how: Planning, curves: Array, costs: Array, constraints: Constraints | None, noise: Noise, seed: int
) -> Explored:
    """Plan for curves (n, K) and costs (K,) or (n, K) as a campaign says, and explore around the plan."""
    asked = Exploring(how.explore_for, how.explore, None, constraints, seed)
    found, rule = explore_by_rule(Expected(curves, costs, noise), how.average(len(curves)), asked)
    plan = Plan(
        levels=found.decisions.levels,
        value=found.value,
        spend=min(found.spend, found.budget),
        price=found.price,
        bound=found.value + found.given_up,  # what a plan that does not explore brings
        budget=found.budget,
    )
    return Explored(plan, found.decisions.propensity, describe(found), rule)


def describe(found: Exploration) -> dict[str, Any]:
    """Return what the report says of an exploration, in JSON types."""
    return {
        "for": found.for_,
        "rate": found.rate,
        "given_up": found.given_up,
        "money": found.this.money,
        "narrowing": found.narrowing,
        "ways": [
            {"name": one.name, "given_up": one.given_up, "plan_se": one.plan_se, "gain_se": one.gain_se}
            for one in found.precisions
        ],
    }
