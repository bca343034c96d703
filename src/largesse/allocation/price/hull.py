"""Upper hulls and the steps along them, of all customers, from the best to the worst.

Along a customer's upper hull the gain per unit of cost falls from step to step, so spending on the best steps first
respects each customer's own order and is optimal for the problem in which one customer may be split between two
levels (the linear relaxation of the multiple-choice knapsack; Sinha and Zoltners 1979).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.records import Array


@dataclass(frozen=True, eq=False)
class Path:
    """The cheapest plan, and every worthwhile step up from it, best first. Sums are over all customers."""

    start: Array  # (n,) level of the cheapest plan
    base_cost: float
    base_value: float
    customer: Array  # (m,) whose step it is
    level: Array  # (m,) level it leads to
    cost: Array  # (m,) what it costs more
    gain: Array  # (m,) what it brings more
    slope: Array  # (m,) gain per unit of cost, falling

    def levels(self, taken: int) -> Array:
        """Return every customer's level (n,) after the first `taken` steps."""
        levels = self.start.copy()
        levels[self.customer[:taken]] = self.level[:taken]  # a customer's later step comes later, and wins
        return levels


def steps(curves: Array, costs: Array) -> Path:
    """Return the path of curves (n, K) under costs (K,) or (n, K)."""
    curves, costs = as_rows(curves, costs)
    start, sums = cheapest(curves, costs)
    who, to, slope, cost = climb(curves, costs, np.arange(len(curves)), start, 0.0)
    # Stable, and steps were listed lowest first: a customer's equal slopes stay in their order.
    order = np.argsort(-slope, kind="stable")
    who, to, slope, cost = who[order], to[order], slope[order], cost[order]
    return Path(start, float(sums[2] + sums[3]), float(sums[0] + sums[1]), who, to, cost, slope * cost, slope)


def as_rows(curves: Array, costs: Array) -> tuple[Array, Array]:
    """Return curves (n, K) and costs (1, K) or (n, K) as the compiled loops read them; copied only if they must be."""
    curves, costs = _readable(curves), _readable(costs)
    return curves, costs[None, :] if costs.ndim == 1 else costs


def _readable(values: Array) -> Array:
    kind = values.dtype if values.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    rows = np.ascontiguousarray(values, dtype=kind).view()
    rows.flags.writeable = False  # one kind of array, one compiled loop
    return rows


def cheapest(curves: Array, costs: Array) -> tuple[Array, Array]:
    """Return the cheapest levels (n,), and their total value and its carry, cost and its carry."""
    from largesse.allocation.price.kernels import classify

    levels = np.empty(len(curves), dtype=np.int64)
    _, sums = classify(curves, costs, levels, True, np.inf, np.inf, levels, levels)
    return levels, sums[:4]


def climb(curves: Array, costs: Array, rows: Array, levels: Array, low: float) -> tuple[Array, Array, Array, Array]:
    """Return the steps up the hulls of some rows from their levels (n,), as far as they bring `low` per unit of cost.

    Four arrays (m,), row by row, each row's lowest step first: the place in `rows`, the level the step leads to, its
    slope, its cost.
    """
    from largesse.allocation.price.kernels import walk

    most = len(rows) * (curves.shape[1] - 1)  # memory is touched only as far as it is filled
    who, to = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    slope, cost = np.empty(most), np.empty(most)
    m = walk(curves, costs, rows, levels, low, who, to, slope, cost)
    return who[:m], to[:m], slope[:m], cost[:m]
