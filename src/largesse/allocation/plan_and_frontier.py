"""Best plan at one budget, frontier of value over all budgets, and best levels at a shadow price."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from largesse.allocation.constraints.constrained_problem import arrange_constraints, make_constrained_problem
from largesse.allocation.constraints.constrained_solver import plan_under_constraints
from largesse.allocation.constraints.constraint_types import Budget, Constraints, Limit
from largesse.allocation.constraints.lagrange_multipliers import Multipliers
from largesse.allocation.input_checks import check_curves_and_costs, compute_total_budget, make_budget_error
from largesse.allocation.mixed_integer_solver import OptimalityProof, prove_optimum
from largesse.allocation.price.plan_rounding import PlanDraft, keep_within_budget, make_plan_draft, spend_remainder
from largesse.allocation.price.price_search import BudgetShortfall, search_price
from largesse.allocation.price.upper_hulls import convert_to_kernel_arrays, find_cheapest_levels, find_hull_steps
from largesse.errors import Problem, refuse, repr_short
from largesse.levels import Levels
from largesse.records import Array, Frontier, Plan

TIE = 1e-12  # relative; a price is a rounded slope, so the two ends of its step are worth the same only up to this


def allocate(
    curves: Any,
    costs: Any,
    budget: float | None = None,
    *,
    total: float | None = None,
    constraints: Constraints | None = None,
    exact: bool = False,
) -> Plan:
    """Give every customer one level so that the total response is as large as the budget allows.

    Parameters
    ----------
    curves
        (n, K) expected response of each customer at each level; single or double precision, read where they are.
    costs
        (K,) or (n, K) cost of each level, zero or more; or the `Levels`, which know how costs are paid.
    budget, total
        Average cost per customer that may not be exceeded; or the cost of all customers together.
    constraints
        Further rules: eligibility, caps, shares, budgets of segments. `plan.shadow` is the value of relaxing each.
    exact
        Prove the best whole plan, instead of one within `plan.gap` of it. A mixed-integer programme decides among at most
        20,000 customer–level choices; if these are not enough, or it times out, `plan.gap` is the remaining gap.

    Returns
    -------
    Plan
        One level per customer, never over budget, with a value proven to be within `plan.gap` of the best.

    Examples
    --------
    >>> plan = allocate([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]], costs=[0, 1, 2], budget=1.5)
    >>> plan.levels, round(plan.value, 3), plan.spend
    (array([1, 2]), 0.65, 1.5)
    """
    _check_options(constraints, exact)
    labels = costs.labels if isinstance(costs, Levels) else None
    curves, costs = check_curves_and_costs(curves, costs)
    limit = compute_total_budget(n := len(curves), budget, total)
    average = limit / n if budget is None else float(budget)
    if constraints is not None:
        rules = (constraints if labels is None else constraints.number_levels(labels)).rules(*curves.shape)
        limits = [Budget(limit), *(rule for rule in rules if isinstance(rule, Limit))]
        under = arrange_constraints(limits, rules, curves.shape)
        return replace(plan_under_constraints(curves, costs, under, average, exact), labels=labels)
    solution = search_price(curves, costs, limit)
    if isinstance(solution, BudgetShortfall):
        raise make_budget_error(solution.cheapest, limit, n, total is not None)
    plan = make_plan_draft(solution, curves, costs, limit)
    bound = float(plan.value) + (solution.price * max(plan.remaining_budget, 0.0) if solution.price > 0 else 0.0)
    keep_within_budget(plan, solution.rows)
    spend_remainder(plan, solution.rows)
    if exact and bound > plan.value:
        bound = _improve_to_optimum(plan, solution.price, bound)
    bound = max(bound, float(plan.value))
    # The exact mean is within the budget; spend / n is rounded and may be a bit above it.
    spend = min(float(plan.spend) / n, average)
    amounts: dict[str, Any] = {"labels": labels, "curves": curves, "costs": costs}
    return Plan(plan.levels, float(plan.value) / n, spend, solution.price, bound / n, average, **amounts)


def _check_options(constraints: Any, exact: Any) -> None:
    """Refuse options of the wrong type."""
    problems = []
    if not isinstance(exact, bool | np.bool_):
        problems.append(Problem(f"exact is {repr_short(exact)}", "give True or False"))
    if constraints is not None and not isinstance(constraints, Constraints):
        got = f"constraints are a {type(constraints).__name__}"
        problems.append(Problem(got, "give Constraints(caps={2: 100}, …)"))
    refuse("allocate", problems)


def _improve_to_optimum(plan: PlanDraft, price: float, bound: float) -> float:
    """Improve a plan to the proven optimum where possible, and return the upper bound of its value."""
    rules = arrange_constraints([Budget(plan.limit)], (), plan.curves.shape)
    instance = replace(make_constrained_problem(plan.curves, plan.costs, rules), levels=plan.levels.copy())
    proof = prove_optimum(instance, OptimalityProof(True, Multipliers(rules, np.array([price])), bound))
    for row in np.flatnonzero(instance.levels != plan.levels):
        plan.change_level(int(row), int(instance.levels[row]))
    return proof.bound


def frontier(curves: Any, costs: Any) -> Frontier:
    """Return the highest average response at every average budget.

    The value is that of the curves: where a model predicts them, it is the model's promise. `make_study(log, model, budget)` estimates
    values from a log, with intervals, next to the best uniform mix.

    >>> front = frontier([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]], costs=[0, 1, 2])
    >>> front.spend, front.value.round(3)
    (array([0. , 1. , 1.5, 2. ]), array([0.15, 0.5 , 0.65, 0.7 ]))
    """
    curves, costs = check_curves_and_costs(curves, costs)
    n = len(curves)
    start, sums = find_cheapest_levels(curves, costs)
    steps = find_hull_steps(curves, costs, np.arange(n), start, 0.0)
    order = np.argsort(-steps.slope)  # equal slopes are joined below, so that their order does not matter
    slope, cost = steps.slope[order], steps.cost[order]
    spend = (sums[2] + np.concatenate([[0.0], np.cumsum(cost)])) / n
    value = (sums[0] + np.concatenate([[0.0], np.cumsum(slope * cost)])) / n
    return _merge_equal_slopes(spend, value, np.concatenate([[math.inf], slope]))


def decide_at_price(curves: Array, costs: Array, price: float, *, dearest: bool = False) -> Array:
    """Return each customer's best level at a shadow price: the maximum of response − price × cost.

    Ties go to the cheapest.

    With `dearest`, the dearest if they tie.

    Many customers may share one curve: if rounding broke their tie upwards, all of them would overspend together.

    >>> decide_at_price(np.array([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]]), np.array([0, 1, 2]), price=0.2)
    array([1, 2])
    """
    from largesse.allocation.price.price_kernels import write_levels_at_price

    levels = np.empty(len(curves), dtype=np.int64)
    write_levels_at_price(*convert_to_kernel_arrays(curves, costs), float(price), TIE, dearest, levels)
    return levels


def split_ties_at_price(curves: Array, costs: Array, price: float, share: float) -> Array:
    """Return level probabilities (n, K) at a shadow price, with ties split between cheapest and dearest level.

    The dearest of the best levels gets `share`, the cheapest the rest.

    >>> split_ties_at_price(np.array([[0.0, 1.0, 1.5]]), np.array([0, 1, 2]), price=1.0, share=0.25)
    array([[0.75, 0.25, 0.  ]])
    """
    from largesse.allocation.price.price_kernels import write_tie_probabilities

    probabilities = np.zeros(np.shape(curves))
    write_tie_probabilities(*convert_to_kernel_arrays(curves, costs), float(price), TIE, float(share), probabilities)
    return probabilities


def _merge_equal_slopes(spend: Array, value: Array, price: Array) -> Frontier:
    """Merge neighbouring frontier steps of equal slope into one segment of the frontier.

    Equal slopes are a tie between customers.
    """
    last = np.append(price[1:] != price[:-1], True)
    return Frontier(spend[last], value[last], price[last])
