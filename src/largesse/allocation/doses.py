"""The best amount on a continuous scale, from curves given at knots.

Between knots a curve is a straight line, and so is the cost, so at one price every customer's best dose is a knot on the
upper hull. Only the customer on whom the budget runs out may stop between two knots.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.allocation.checks import check_task, read_numbers, too_small, total_limit
from largesse.allocation.price.hull import climb
from largesse.allocation.price.search import ROUNDING, Short, price_search
from largesse.errors import Problem, as_number, refuse, repr_short
from largesse.records import Array

FINEST = 1e-12  # of the way between two knots; a finer step is none


@dataclass(frozen=True, eq=False)
class Doses:
    """One amount for each customer. Value and spend are averages per customer."""

    doses: Array  # (n,)
    value: float
    spend: float
    price: float
    bound: float  # no choice of doses within the budget is worth more
    budget: float

    @property
    def gap(self) -> float:
        """How much better the best choice could be at most."""
        return max(self.bound - self.value, 0.0)


def best_doses(
    curves: Any,
    knots: Any,
    budget: float | None = None,
    *,
    costs: Any = None,
    total: float | None = None,
    step: float = 0.0,
) -> Doses:
    """Give every customer the dose that makes the responses as large as the budget allows.

    Parameters
    ----------
    curves
        (n, m) expected response at each knot; straight lines between them.
    knots
        (m,) doses, rising.
    budget, total
        Average cost per customer, or the cost of all of them.
    costs
        (m,) or (n, m) cost at each knot, straight lines between them; by default the doses themselves.
    step
        The tolerance of a dose between knots: it is a whole number of these above the knot below, rounded down.

    >>> best_doses([[0.0, 0.6, 0.8], [0.0, 0.5, 1.0]], knots=[0, 5, 10], budget=6).doses
    array([5., 7.])
    """
    problems: list[Problem] = []
    doses_at = read_numbers(knots, "knots", problems)
    if doses_at is not None and (doses_at.ndim != 1 or (np.diff(doses_at) <= 0).any()):
        problems.append(Problem("knots do not rise", "list them from the least dose up"))
    width = as_number(step)
    if width is None or not 0 <= width < math.inf:
        problems.append(Problem(f"step is {repr_short(step)}", "a step is zero or more"))
    refuse("best_doses", problems)
    knots = np.asarray(doses_at, dtype=np.float64)
    curves, costs = check_task(curves, knots if costs is None else costs)
    n = len(curves)
    limit = total_limit(n, budget, total)
    found = price_search(curves, costs, limit)
    if isinstance(found, Short):
        raise too_small(found.cheapest, limit, n, total is not None)
    doses, value, spend = knots[found.levels], math.fsum(found.value), math.fsum(found.spend)
    left = max(limit - spend, 0.0)
    bound = value + (found.price * left if found.price > 0 else 0.0)
    if found.price > 0 and left > 0:
        steps = climb(curves, costs, found.rows, found.levels, found.price)
        dear = np.flatnonzero(steps.cost > left)
        if len(dear):
            at = dear[np.argmax(steps.slope[dear])]
            row = int(found.rows[steps.place[at]])
            paid = costs[row if len(costs) > 1 else 0].astype(np.float64)
            curve = _Curve(knots, curves[row].astype(np.float64), paid)
            stop = _between(curve, int(found.levels[row]), int(steps.level[at]), left, step)
            doses[row], value, spend = stop.dose, value + stop.gain, spend + stop.cost
    average = limit / n if budget is None else float(budget)
    return Doses(doses, value / n, min(spend / n, average), found.price, max(bound, value) / n, average)


@dataclass(frozen=True, eq=False)
class _Curve:
    """One customer's response and cost at each knot (m,)."""

    knots: Array
    response: Array
    paid: Array


@dataclass(frozen=True)
class _Stop:
    """A dose between two knots, and what it brings and costs more than the lower one."""

    dose: float
    gain: float
    cost: float


def _between(curve: _Curve, low: int, high: int, room: float, step: float) -> _Stop:
    """Return the best dose from one knot to another that costs at most `room` more."""
    knots, paid = curve.knots, curve.paid
    best = _Stop(float(knots[low]), 0.0, 0.0)
    for k in range(min(low, high), max(low, high)):
        rise = paid[k + 1] - paid[k]
        share = min(max((paid[low] + room - paid[k]) / rise, 0.0), 1.0) if rise > 0 else 1.0
        if step > FINEST * (knots[k + 1] - knots[k]) and share < 1:
            share = min(math.floor(share * (knots[k + 1] - knots[k]) / step) * step / (knots[k + 1] - knots[k]), 1.0)
        for part in (0.0, share):
            gain = curve.response[k] + part * (curve.response[k + 1] - curve.response[k]) - curve.response[low]
            extra = paid[k] + part * rise - paid[low]
            if gain > best.gain and extra <= room * (1 + ROUNDING):
                best = _Stop(float(knots[k] + part * (knots[k + 1] - knots[k])), float(gain), float(extra))
    return best
