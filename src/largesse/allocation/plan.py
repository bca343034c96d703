"""The plan at one budget, the frontier over all of them, and the rule that a price stands for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from largesse.allocation.checks import check_task, too_small, total_limit
from largesse.allocation.constraints import Budget, Constraints
from largesse.allocation.price.hull import as_rows, cheapest, climb
from largesse.allocation.price.rounding import Draft, keep_within, make_draft, spend_rest
from largesse.allocation.price.search import Found, Short, price_search
from largesse.allocation.rules.instance import arrange_rules
from largesse.allocation.rules.rule import Limit
from largesse.allocation.rules.solve import plan_under_rules
from largesse.errors import Problem, fail, refuse, repr_short, whole_problems
from largesse.levels import Levels
from largesse.records import Array, Frontier, Mix, Plan

TIE = 1e-12  # relative; a price is a rounded slope, so the two ends of its step are worth the same only up to this


def allocate(
    curves: Any,
    costs: Any,
    budget: float | None = None,
    *,
    total: float | None = None,
    constraints: Constraints | None = None,
    exact: bool = False,
    randomise: bool = False,
    seed: int = 0,
) -> Plan:
    """Give every customer one level so that the responses are as large as the budget allows.

    Parameters
    ----------
    curves
        (n, K) expected response of each customer at each level; single or double precision, read where they are.
    costs
        (K,) or (n, K) cost of each level, zero or more; or the `Levels`, which know how costs are paid.
    budget, total
        Average cost per customer that may not be exceeded; or the cost of all customers together.
    constraints
        Further rules: who may get what, caps, shares, budgets of segments. `plan.shadow` says what relaxing each would bring.
    exact
        Prove the best whole plan, instead of one within `plan.gap` of it. Under constraints optimality is proven over at
        most 20,000 customer–level choices; if that is not enough, or times out, `plan.gap` is the remaining gap.
    randomise, seed
        Draw one customer's level at random, so that the expected cost is the budget itself and the expected value the
        best that any mixed plan has: `plan.mix` names the customer, the two levels and the probability.

    Returns the plan: whole levels, never over budget, its value proven to be within `plan.gap` of the best there is.

    >>> plan = allocate([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]], costs=[0, 1, 2], budget=1.5)
    >>> plan.levels, round(plan.value, 3), plan.spend
    (array([1, 2]), 0.65, 1.5)
    """
    _check_wishes(constraints, exact, randomise, seed)
    labels = costs.labels if isinstance(costs, Levels) else None
    curves, costs = check_task(curves, costs)
    limit = total_limit(n := len(curves), budget, total)
    average = limit / n if budget is None else float(budget)
    if constraints is not None:
        rules = constraints.rules(*curves.shape)
        limits = [Budget(limit), *(rule for rule in rules if isinstance(rule, Limit))]
        under = arrange_rules(limits, rules, curves.shape)
        return replace(plan_under_rules(curves, costs, under, average, exact), labels=labels)
    found = price_search(curves, costs, limit)
    if isinstance(found, Short):
        raise too_small(found.cheapest, limit, n, total is not None)
    plan = make_draft(found, curves, costs, limit)
    bound = float(plan.value) + (found.price * max(plan.room, 0.0) if found.price > 0 else 0.0)
    keep_within(plan, found.rows)
    if randomise:
        return replace(_mixed(plan, found, average, seed), labels=labels)
    spend_rest(plan, found.rows)
    if exact:
        from largesse.allocation.exact.budget import prove_within_budget

        bound = prove_within_budget(plan, found.price, bound)
    return replace(_plan(plan, found.price, max(bound, float(plan.value)), average), labels=labels)


def _check_wishes(constraints: Any, exact: Any, randomise: Any, seed: Any) -> None:
    """Refuse wishes that are not of their kind, or that exclude each other."""
    problems = whole_problems(seed, "seed")
    for name, wish in (("exact", exact), ("randomise", randomise)):
        if not isinstance(wish, bool | np.bool_):
            problems.append(Problem(f"{name} is {repr_short(wish)}", "give True or False"))
    if constraints is not None and not isinstance(constraints, Constraints):
        got = f"constraints are a {type(constraints).__name__}"
        problems.append(Problem(got, "give Constraints(caps={2: 100}, …)"))
    refuse("allocate", problems)
    if exact and randomise:
        hint = "exact proves the best whole plan, randomise mixes one customer: choose one"
        fail("allocate", Problem("exact and randomise were both asked for", hint))
    if constraints is not None and randomise:
        hint = "without constraints; under them, exact=True proves the best whole plan"
        fail("allocate", Problem("randomise works with one budget only", hint))


def _plan(plan: Draft, price: float, bound: float, average: float) -> Plan:
    n = len(plan.levels)
    # The exact mean is within the budget; spend / n is rounded and may be a bit above it.
    return Plan(plan.levels, float(plan.value) / n, min(float(plan.spend) / n, average), price, bound / n, average)


def _mixed(plan: Draft, found: Found, average: float, seed: int) -> Plan:
    """Return the plan with the customer on whom the budget ran out between two levels."""
    steps = climb(plan.curves, plan.costs, found.rows, plan.levels, found.price)
    dear = np.flatnonzero(steps.cost > plan.room)
    if found.price <= 0 or plan.room <= 0 or not len(dear):
        return _plan(plan, found.price, float(plan.value), average)
    step = dear[np.argmax(steps.slope[dear])]
    row, level, n = int(found.rows[steps.place[step]]), int(steps.level[step]), len(plan.levels)
    mix = Mix(row, int(plan.levels[row]), level, plan.room / float(steps.cost[step]))
    value = (float(plan.value) + float(steps.slope[step]) * plan.room) / n
    if np.random.default_rng(seed).random() < mix.probability:
        plan.levels[row] = level
    return Plan(plan.levels, value, average, found.price, value, average, mix)


def frontier(curves: Any, costs: Any) -> Frontier:
    """Return the best average value for every average budget, in one pass.

    >>> front = frontier([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]], costs=[0, 1, 2])
    >>> front.spend, front.value.round(3)
    (array([0. , 1. , 1.5, 2. ]), array([0.15, 0.5 , 0.65, 0.7 ]))
    """
    curves, costs = check_task(curves, costs)
    n = len(curves)
    start, sums = cheapest(curves, costs)
    steps = climb(curves, costs, np.arange(n), start, 0.0)
    order = np.argsort(-steps.slope)  # equal slopes are joined below, so that their order does not matter
    slope, cost = steps.slope[order], steps.cost[order]
    spend = (sums[2] + np.concatenate([[0.0], np.cumsum(cost)])) / n
    value = (sums[0] + np.concatenate([[0.0], np.cumsum(slope * cost)])) / n
    return _merged(spend, value, np.concatenate([[math.inf], slope]))


def decide_at_price(curves: Array, costs: Array, price: float, *, dearest: bool = False) -> Array:
    """Return the levels (n,) that a price stands for: the best of response − price × cost, the cheapest if they tie.

    With `dearest`, the dearest if they tie.

    Many customers may share one curve: if rounding broke their tie upwards, all of them would overspend together.

    >>> decide_at_price(np.array([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]]), np.array([0, 1, 2]), price=0.2)
    array([1, 2])
    """
    from largesse.allocation.price.kernels import decide

    levels = np.empty(len(curves), dtype=np.int64)
    decide(*as_rows(curves, costs), float(price), TIE, dearest, levels)
    return levels


def _merged(spend: Array, value: Array, price: Array) -> Frontier:
    """Join steps of equal slope into one piece: a tie between customers is a straight line of the frontier."""
    last = np.append(price[1:] != price[:-1], True)
    return Frontier(spend[last], value[last], price[last])
