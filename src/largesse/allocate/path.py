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
    n = len(curves)
    costs = np.broadcast_to(costs, curves.shape)
    stack, size = hull(curves, costs)
    rows = np.arange(n)
    start = stack[:, 0]
    customer, to, gain, cost = [], [], [], []
    for j in range(1, stack.shape[1]):
        here = np.flatnonzero(size > j)
        above, below = stack[here, j], stack[here, j - 1]
        customer.append(here)
        to.append(above)
        gain.append(curves[here, above].astype(np.float64) - curves[here, below])
        cost.append(costs[here, above].astype(np.float64) - costs[here, below])
    who, level = _joined(customer, np.int64), _joined(to, np.int64)
    more, extra = _joined(gain, np.float64), _joined(cost, np.float64)
    slope = more / extra
    # Stable, and steps were listed lowest first: a customer's equal slopes stay in their order.
    order = np.argsort(-slope, kind="stable")
    base_cost = float(costs[rows, start].sum(dtype=np.float64))
    base_value = float(curves[rows, start].sum(dtype=np.float64))
    return Path(start, base_cost, base_value, who[order], level[order], extra[order], more[order], slope[order])


def _joined(parts: list[Array], kind: type) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)


def hull(curves: Array, costs: Array) -> tuple[Array, Array]:
    """Return each customer's levels on the upper hull, cheapest first: stack (n, K) and how many of it count (n,).

    The first is the cheapest level (the best of them, if several cost the same). Levels in the middle of a straight
    piece stay: they are the finer steps that an integer plan can take.
    """
    n, K = curves.shape
    # By cost, and among equal costs the best first, the lower level if they tie.
    order = np.lexsort((np.broadcast_to(np.arange(K), (n, K)), -curves, costs), axis=1)
    rows = np.arange(n)
    stack = np.zeros((n, K), dtype=np.int64)
    stack[:, 0] = order[:, 0]
    size = np.ones(n, dtype=np.int64)
    for k in range(1, K):
        level = order[:, k]
        top = stack[rows, size - 1]
        better = (curves[rows, level] > curves[rows, top]) & (costs[rows, level] > costs[rows, top])
        here = rows[better]
        _pop(stack, size, here, level, curves, costs)
        stack[here, size[here]] = level[here]
        size[here] += 1
    return stack, size


def _pop(stack: Array, size: Array, here: Array, level: Array, curves: Array, costs: Array) -> None:
    """Take off the tops that lie below the line from the one before them to the new level."""
    while True:
        here = here[size[here] >= 2]
        new, top, below = level[here], stack[here, size[here] - 1], stack[here, size[here] - 2]

        def slope(a: Array, b: Array, rows: Array = here) -> Array:
            rise = curves[rows, b].astype(np.float64) - curves[rows, a]
            return rise / (costs[rows, b].astype(np.float64) - costs[rows, a])

        here = here[slope(top, new) > slope(below, top)]
        if not len(here):
            return
        size[here] -= 1
