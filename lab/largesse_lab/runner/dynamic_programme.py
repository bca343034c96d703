"""The paper's dynamic programme over whole budgets: small and slow. The product's plans are checked against it."""

from __future__ import annotations

import numpy as np

from largesse.errors import Problem, refuse
from largesse.records import Array


def dynamic_programme(curves: Array, costs: Array, total: int) -> Array:
    """Return the best levels (n,) for whole costs (K,) and a whole total budget, in O(n K total).

    >>> dynamic_programme(np.array([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]]), np.array([0, 1, 2]), total=3)
    array([1, 2])
    """
    paid = np.asarray(costs).astype(np.int64)
    if not np.array_equal(paid, costs) or paid.ndim != 1:
        refuse("dynamic_programme", [Problem("costs are not whole numbers (K,)", "use allocate for any costs")])
    best = np.zeros(total + 1)  # best value of the customers so far, by what they spend at most
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
