"""Exact budget allocation by the paper's dynamic programme, for whole-number costs."""

from __future__ import annotations

import numpy as np

from largesse.records import Array


def allocate_by_dynamic_programme(curves: Array, costs: Array, total: int) -> Array:
    """Return the optimal levels (n,) for whole costs (K,) and a whole total budget, in O(n K total).

    >>> allocate_by_dynamic_programme(np.array([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]]), np.array([0, 1, 2]), total=3)
    array([1, 2])
    """
    paid = np.asarray(costs).astype(np.int64)
    best = np.zeros(total + 1)  # best value of the customers so far, by their maximal spend
    choice = np.empty((len(curves), total + 1), dtype=np.int64)
    for i, curve in enumerate(curves):
        table = np.full((len(paid), total + 1), -np.inf)
        for k, cost in enumerate(paid):
            if cost <= total:
                table[k, cost:] = best[: total + 1 - cost] + curve[k]
        choice[i], best = table.argmax(axis=0), table.max(axis=0)
    levels, left = np.empty(len(curves), dtype=np.int64), total
    for i in reversed(range(len(curves))):
        levels[i] = choice[i, left]
        left -= int(paid[levels[i]])
    return levels
