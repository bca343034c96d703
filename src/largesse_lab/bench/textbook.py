"""The plain methods of the paper: a search over prices, a table over budgets, and a list of prices.

Small and slow; the fast ones are checked against them, and the paper's tables use them as they stand.
"""

from __future__ import annotations

import numpy as np

from largesse.errors import Problem, refuse
from largesse.records import Array


def priced(curves: Array, costs: Array, price: float) -> Array:
    """Return each customer's best level (n,) of response − price × cost, the first if they tie (Proposition 1)."""
    return np.argmax(curves - price * np.broadcast_to(costs, curves.shape), axis=1)


def cost_of(levels: Array, costs: Array, shape: tuple[int, ...]) -> float:
    """Return the total cost of levels (n,)."""
    return float(np.broadcast_to(costs, shape)[np.arange(len(levels)), levels].sum(dtype=np.float64))


def binary_search(curves: Array, costs: Array, total: float, halvings: int = 60) -> Array:
    """Return the levels (n,) at the least price whose plan fits a total budget: Proposition 1, price by bisection.

    >>> binary_search(np.array([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]]), np.array([0.0, 1.0, 2.0]), total=3)
    array([1, 2])
    """
    low, high = 0.0, 1.0
    while cost_of(priced(curves, costs, high), costs, curves.shape) > total and high < 1e300:
        high *= 2
    if cost_of(priced(curves, costs, low), costs, curves.shape) <= total:
        return priced(curves, costs, low)
    for _ in range(halvings):
        middle = (low + high) / 2
        fits = cost_of(priced(curves, costs, middle), costs, curves.shape) <= total
        low, high = (low, middle) if fits else (middle, high)
    return priced(curves, costs, high)


def dynamic_programme(curves: Array, costs: Array, total: int) -> Array:
    """Return the best levels (n,) for whole costs (K,) and a whole total budget, in O(n K total).

    >>> dynamic_programme(np.array([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]]), np.array([0, 1, 2]), total=3)
    array([1, 2])
    """
    paid = np.asarray(costs).astype(np.int64)
    if not np.array_equal(paid, costs) or paid.ndim != 1:
        refuse("dynamic_programme", [Problem("costs are not whole numbers (K,)", "use allocate for any costs")])
    best = np.zeros(total + 1)  # for the customers so far, spending at most so much
    choice = np.empty((len(curves), total + 1), dtype=np.int64)
    for i, curve in enumerate(curves):
        table = np.full((len(paid), total + 1), -np.inf)
        for k, cost in enumerate(paid):
            if cost <= total:
                table[k, cost:] = best[: total + 1 - cost] + curve[k]
        choice[i], best = table.argmax(axis=0), table.max(axis=0)
    if not np.isfinite(best[total]):
        refuse("dynamic_programme", [Problem("the budget is below the cheapest plan", "raise the budget")])
    levels, left = np.empty(len(curves), dtype=np.int64), total
    for i in reversed(range(len(curves))):
        levels[i] = choice[i, left]
        left -= int(paid[levels[i]])
    return levels


def price_list(curves: Array, costs: Array, total: float, prices: Array | None = None) -> Array:
    """Return the levels (n,) of the best plan within a total budget among those of some prices, by default 1 to 10.

    As in the paper's image experiment; when none fits, the cheapest levels.
    """
    wide = np.broadcast_to(costs, curves.shape)
    best, worth = np.argmin(wide, axis=1), -np.inf
    for price in np.arange(1.0, 11.0) if prices is None else prices:
        levels = priced(curves, costs, float(price))
        value = float(curves[np.arange(len(levels)), levels].sum(dtype=np.float64))
        if cost_of(levels, costs, curves.shape) <= total and value > worth:
            best, worth = levels, value
    return best
