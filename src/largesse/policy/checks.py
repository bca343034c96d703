"""What makes the parts of a policy valid, each by itself and together."""

from __future__ import annotations

import math
from typing import Any

from largesse.errors import Problem, as_number, fail, refuse, repr_short
from largesse.levels import Levels
from largesse.policy.aimed import Aimed
from largesse.response import ResponseModel, WithCosts

MOST_SCALE = 1e6  # of costs, up or down: corrections are far smaller, and products stay finite


def check_policy(policy: Any) -> None:
    """Refuse values of a policy that are none, and parts that do not belong together."""
    refuse("policy", _list_problems(policy))
    learnt = getattr(policy.model, "levels_", len(policy.levels))
    if learnt != len(policy.levels):
        got = f"the model was fitted with {learnt} levels, but {len(policy.levels)} are given"
        fail("policy", Problem(got, "give the levels of the log it was fitted on: log.levels"))
    if policy.levels.observed and not isinstance(policy.model, WithCosts):
        hint = "fit a model of them, too: WithCosts(Stack()).fit(log)"
        fail("policy", Problem("costs are observed, but the model knows responses only", hint))
    if policy.aimed is not None:
        _check_aimed(policy)


def _list_problems(policy: Any) -> list[Problem]:
    """Return what is wrong with the values, each by itself."""
    found = []
    wanted: dict[str, tuple[Any, str]] = {
        "model": (ResponseModel, "give a response model that was fitted: Linear().fit(log)"),
        "levels": (Levels, "give the levels of the log: log.levels"),
        "aimed": (Aimed | None, "let calibrate find it: policy.calibrate(customers, budget, explore_for='evaluation')"),
    }
    for word, (kind, hint) in wanted.items():
        if not isinstance(getattr(policy, word), kind):
            found.append(Problem(f"{word} is {repr_short(getattr(policy, word))}", hint))
    price = 0.0 if policy.price is None else as_number(policy.price)
    if price is None or not 0 <= price < math.inf:
        found.append(
            Problem(f"the price is {repr_short(policy.price)}", "a price is a number, zero or more: plan.price")
        )
    for word, given in (("at_random", policy.at_random), ("share", policy.share)):
        chance = as_number(given)
        if chance is None or not 0 <= chance <= 1:
            found.append(Problem(f"{word} is {repr_short(given)}", "give a probability, from 0 to 1"))
    scale = as_number(policy.scale)
    if scale is None or not 1 / MOST_SCALE <= scale <= MOST_SCALE:
        hint = f"costs are multiplied by a number from {1 / MOST_SCALE:g} to {MOST_SCALE:g}"
        found.append(Problem(f"scale is {repr_short(policy.scale)}", hint))
    return found


def _check_aimed(policy: Any) -> None:
    """Refuse a rule of exploring that was found for another price, for other levels, or beside another one."""
    rule, hint = policy.aimed.rule, "calibrate it anew: policy.calibrate(customers, budget)"
    problems = []
    if len(rule.incumbent) != len(policy.levels):
        problems.append(Problem(f"it explores {len(rule.incumbent)} levels, and there are {len(policy.levels)}", hint))
    if (rule.plan.price, rule.plan.share) != (policy.price, policy.share):
        got = f"it explores around a price of {rule.plan.price:g}, and its price is {repr_short(policy.price)}"
        problems.append(Problem(got, hint))
    if policy.at_random:
        got = f"it explores for {rule.for_}, and gives {policy.at_random:g} of the customers a level at random"
        problems.append(Problem(got, "set at_random or aimed, not both"))
    refuse("policy", problems)
