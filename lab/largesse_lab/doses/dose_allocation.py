"""Allocation of continuous doses under a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from largesse.errors import Problem, find_budget_problems, make_below_cheapest_error, number_or_none, refuse
from largesse.records import Array

DOSE_ROUNDING = 1e-12  # relative; rounding errors of sums do not stop the search


@dataclass(frozen=True, eq=False)
class DoseAllocation:
    """Best doses of customers under a budget, with their mean value and mean spend per customer."""

    doses: Array  # (n,)
    value: float
    spend: float
    price: float
    bound: float  # no choice of doses within the budget is worth more
    budget: float

    @property
    def gap(self) -> float:
        """Upper bound of the value lost compared with the best allocation, per customer."""
        return max(self.bound - self.value, 0.0)


def best_doses(curves: Any, knots: Any, budget: float, *, step: float = 0.0) -> DoseAllocation:
    """Return the doses that maximise the total expected response under a budget; a dose is its own cost.

    Between knots a curve is a straight line, so at one price every customer's best dose is a knot on the upper hull of the
    curve. Only the customer on whom the budget runs out may stop between two knots.

    Parameters
    ----------
    curves
        (n, m) expected response at each knot; straight lines between them.
    knots
        (m,) doses, rising.
    budget
        Average dose per customer.
    step
        The tolerance of a dose between knots: it is a whole number of these above the knot below, rounded down.

    Examples
    --------
    >>> best_doses([[0.0, 0.6, 0.8], [0.0, 0.5, 1.0]], knots=[0, 5, 10], budget=6).doses
    array([5., 7.])
    """
    try:
        curves, knots = np.asarray(curves, dtype=np.float64), np.asarray(knots, dtype=np.float64)
    except (TypeError, ValueError):
        refuse(
            "best_doses", [Problem("curves or knots are not tables of numbers", "give curves (n, m) and knots (m,)")]
        )
    problems = find_budget_problems(budget)
    if knots.ndim != 1 or not (np.diff(knots) > 0).all():
        problems.append(Problem("knots do not rise", "list them from the least dose up"))
    if curves.ndim != 2 or not len(curves) or curves.shape[1:] != knots.shape or not np.isfinite(curves).all():
        problems.append(
            Problem(f"curves have the shape {curves.shape}", "give one finite response per customer and knot")
        )
    if (width := number_or_none(step)) is None or not 0 <= width < math.inf:
        problems.append(Problem(f"step is {step!r}", "a step is zero or more"))
    refuse("best_doses", problems)
    n, left = len(curves), len(curves) * (budget - knots[0])
    if left < 0:
        raise make_below_cheapest_error("best_doses", budget, float(knots[0]))
    place, first, last = (
        np.array(column, dtype=np.int64) for column in zip(*_list_hull_steps(curves, knots), strict=True)
    )
    gain = curves[place, last] - curves[place, first]
    cost = knots[last] - knots[first]
    # Along a hull slopes fall, and a stable sort keeps equal ones in order: each customer climbs without gaps.
    order = np.argsort(-gain / np.maximum(cost, 1e-300), kind="stable")
    order = order[gain[order] > 0]
    spent = np.cumsum(cost[order])
    taken = int(np.searchsorted(spent, left * (1 + DOSE_ROUNDING), side="right"))
    at = np.zeros(n, dtype=np.int64)  # knots
    np.maximum.at(at, place[order[:taken]], last[order[:taken]])
    doses, value = knots[at], math.fsum(curves[np.arange(n), at])
    price, bound = 0.0, value
    if taken < len(order):
        at_margin = order[taken]
        room = max(left - (spent[taken - 1] if taken else 0.0), 0.0)
        price = float(gain[at_margin] / cost[at_margin])
        bound = value + price * room
        row, low, high = int(place[at_margin]), int(first[at_margin]), int(last[at_margin])
        doses[row], more = _find_best_dose_between(knots, curves[row], low, high, room, step)
        value += more
    return DoseAllocation(doses, value / n, min(float(doses.mean()), budget), price, max(bound, value) / n, budget)


def _list_hull_steps(curves: Array, knots: Array) -> list[tuple[int, int, int]]:
    """List the segments of all customers' upper hulls: customer, knot below, knot above."""
    steps = []
    for i, curve in enumerate(curves):
        hull = [0]
        for k in range(1, len(knots)):
            while len(hull) > 1 and (curve[k] - curve[hull[-2]]) * (knots[hull[-1]] - knots[hull[-2]]) >= (
                curve[hull[-1]] - curve[hull[-2]]
            ) * (knots[k] - knots[hull[-2]]):
                hull.pop()
            hull.append(k)
        steps += [(i, low, high) for low, high in pairwise(hull)]
    return steps


def _find_best_dose_between(
    knots: Array, curve: Array, low: int, high: int, room: float, step: float
) -> tuple[float, float]:
    """Return the best dose between two knots that fits into the remaining budget, and its gain."""
    best = (float(knots[low]), 0.0)
    for k in range(low, high):
        dose = min(knots[low] + room, knots[k + 1])
        if step > 0 and dose < knots[k + 1]:
            dose = knots[k] + math.floor((dose - knots[k]) / step) * step
        if dose >= knots[k]:
            gain = float(np.interp(dose, knots, curve) - curve[low])
            best = max(best, (float(dose), gain), key=lambda pair: pair[1])
    return best
