"""The plan at one budget, the frontier over all of them, and the rule that a price stands for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from largesse.allocate.costs import expected_costs
from largesse.allocate.path import Path, steps
from largesse.errors import BudgetError, Problem, refuse
from largesse.records import Array, Frontier, Levels, Plan

FILL_ROUNDS = 16  # how often what is left after rounding is offered to the customer who gains most from it
SLACK = 1e-12  # relative; running sums are rounded, the final check below is exact
TIE = 1e-12  # relative; a price is a rounded slope, so the two ends of its step are worth the same only up to this


def allocate(curves: Any, costs: Any, budget: float | None = None, *, total: float | None = None) -> Plan:
    """Give every customer one level so that the responses are as large as the budget allows.

    Parameters
    ----------
    curves
        (n, K) expected response of each customer at each level.
    costs
        (K,) or (n, K) cost of each level, zero or more; or the `Levels`, which know how costs are paid.
    budget
        Average cost per customer that may not be exceeded.
    total
        Or the cost of all customers together.

    Returns
    -------
    Plan
        Whole levels, never over budget; its value is proven to be within `plan.gap` of the best there is.

    >>> plan = allocate([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]], costs=[0, 1, 2], budget=1.5)
    >>> plan.levels, round(plan.value, 3), plan.spend
    (array([1, 2]), 0.65, 1.5)
    """
    curves, costs = _checked(curves, costs)
    n = len(curves)
    limit = _limit(n, budget, total)
    average = limit / n if budget is None else float(budget)
    path = steps(curves, costs)
    if path.base_cost > limit * (1 + SLACK):
        raise _too_small(path.base_cost, limit, n, total is not None)
    left = limit - path.base_cost
    spent = np.cumsum(path.cost)
    taken = int(np.searchsorted(spent, left * (1 + SLACK), side="right"))
    levels = path.levels(taken)
    costs = np.broadcast_to(costs, curves.shape)
    _repair(levels, costs, path, taken, limit)
    _fill(levels, curves, costs, limit)
    spend = _spend(levels, costs)
    value = math.fsum(curves[np.arange(n), levels].tolist())
    bound = max(_bound(path, taken, left, spent), value)
    price = float(path.slope[taken]) if taken < len(path.slope) else 0.0
    # The exact mean is within the budget; spend / n is rounded twice and may be a bit above it.
    return Plan(levels, value / n, min(spend / n, average), price, bound / n, average)


def frontier(curves: Any, costs: Any) -> Frontier:
    """Return the best average value for every average budget, in one pass.

    >>> front = frontier([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]], costs=[0, 1, 2])
    >>> front.spend, front.value.round(3)
    (array([0. , 1. , 1.5, 2. ]), array([0.15, 0.5 , 0.65, 0.7 ]))
    """
    curves, costs = _checked(curves, costs)
    path = steps(curves, costs)
    n = len(curves)
    spend = (path.base_cost + np.concatenate([[0.0], np.cumsum(path.cost)])) / n
    value = (path.base_value + np.concatenate([[0.0], np.cumsum(path.gain)])) / n
    return _merged(spend, value, np.concatenate([[math.inf], path.slope]))


def at_price(curves: Array, costs: Array, price: float) -> Array:
    """Return the levels (n,) that a price stands for: the best of response − price × cost, the cheapest if they tie.

    >>> at_price(np.array([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]]), np.array([0, 1, 2]), price=0.2)
    array([1, 2])
    """
    costs = np.broadcast_to(costs, curves.shape).astype(np.float64, copy=False)
    worth = curves - price * costs
    # Many customers may share one curve: if rounding broke their tie upwards, all of them would overspend together.
    scale = np.abs(curves).max(axis=1) + price * costs.max(axis=1)
    tied = worth >= (worth.max(axis=1) - TIE * scale)[:, None]
    return np.argmin(np.where(tied, costs, np.inf), axis=1)


def _merged(spend: Array, value: Array, price: Array) -> Frontier:
    """Join steps of equal slope into one piece: a tie between customers is a straight line of the frontier."""
    last = np.append(price[1:] != price[:-1], True)
    return Frontier(spend[last], value[last], price[last])


def _checked(curves: Any, costs: Any) -> tuple[Array, Array]:
    curves = np.asarray(curves)
    costs = expected_costs(costs, curves) if isinstance(costs, Levels) else np.asarray(costs)
    problems = []
    if curves.ndim != 2 or 0 in curves.shape:
        problems.append(
            Problem(f"curves have shape {curves.shape}", "give one row per customer and one column per level")
        )
    elif not np.issubdtype(curves.dtype, np.number) or not np.isfinite(curves).all():
        problems.append(
            Problem("curves hold missing or infinite numbers", "every customer needs a response at every level")
        )
    if curves.ndim == 2 and costs.shape not in ((curves.shape[1],), curves.shape):
        problems.append(Problem(f"costs have shape {costs.shape}, curves {curves.shape}", "give costs (K,) or (n, K)"))
    elif not np.issubdtype(costs.dtype, np.number) or not np.isfinite(costs).all() or (costs < 0).any():
        problems.append(Problem("costs hold negative, missing or infinite numbers", "costs are zero or more"))
    refuse("allocate", problems)
    if not np.issubdtype(curves.dtype, np.floating):
        curves = curves.astype(np.float64)
    return curves, costs.astype(np.float64, copy=False)


def _limit(n: int, budget: float | None, total: float | None) -> float:
    """Return the budget for all customers together."""
    if (budget is None) == (total is None):
        refuse(
            "allocate",
            [Problem("give either budget (average per customer) or total", "allocate(curves, costs, budget=1.7)")],
        )
    limit = total if total is not None else (budget or 0.0) * n
    if math.isnan(limit) or limit < 0:
        refuse(
            "allocate",
            [Problem(f"the budget is {total if total is not None else budget}", "a budget is a number, zero or more")],
        )
    return float(limit)


def _too_small(cheapest: float, limit: float, n: int, total: bool) -> BudgetError:
    unit = 1 if total else n
    got = f"the budget of {limit / unit:g} is below the cheapest plan, which costs {cheapest / unit:g}{'' if total else ' per customer'}"
    return BudgetError("allocate", [Problem(got, "raise the budget, or add a level that costs nothing")])


def _bound(path: Path, taken: int, left: float, spent: Array) -> float:
    """Return the value of the plan in which one customer may be split: no whole plan is worth more."""
    value = path.base_value + float(path.gain[:taken].sum())
    if taken < len(path.gain):
        rest = left - (float(spent[taken - 1]) if taken else 0.0)
        value += float(path.slope[taken]) * max(rest, 0.0)
    return value


def _spend(levels: Array, costs: Array) -> float:
    """Return the total cost, summed exactly."""
    return math.fsum(costs[np.arange(len(levels)), levels].tolist())


def _repair(levels: Array, costs: Array, path: Path, taken: int, limit: float) -> None:
    """Undo the last steps that only fitted by rounding."""
    while taken and _spend(levels, costs) > limit:
        taken -= 1
        who = path.customer[taken]
        before = np.flatnonzero(path.customer[:taken] == who)
        levels[who] = path.level[before[-1]] if len(before) else path.start[who]


def _fill(levels: Array, curves: Array, costs: Array, limit: float) -> None:
    """Offer what is left, again and again, to the customer who gains most from a level that still fits."""
    rows = np.arange(len(levels))
    for _ in range(FILL_ROUNDS):
        left = limit - _spend(levels, costs)
        now = costs[rows, levels][:, None]
        fits = costs - now <= left
        gain = np.where(fits, curves - curves[rows, levels][:, None].astype(np.float64), 0.0)
        best = int(np.argmax(gain))
        who, level = divmod(best, curves.shape[1])
        if gain[who, level] <= 0:
            return
        old = levels[who]
        levels[who] = level
        if _spend(levels, costs) > limit:  # the difference was rounded down
            levels[who] = old
            return
