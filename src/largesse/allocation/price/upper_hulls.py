"""Upper hulls of response curves over costs, and the steps between neighbouring levels on the hulls.

Along a customer's upper hull the gain per unit of cost falls from step to step, so spending on the best steps first
respects each customer's own order and is optimal for the problem in which one customer may be split between two
levels (the linear relaxation of the multiple-choice knapsack; Sinha and Zoltners 1979).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.records import Array


@dataclass(frozen=True, eq=False)
class HullSteps:
    """Steps between levels on customers' upper hulls: gain per unit of cost, and added cost.

    Row by row, each row's lowest step first.
    """

    place: Array  # whose step it is: the place among the rows
    level: Array  # the level it leads to
    slope: Array  # gain per unit of cost, never rising along a row
    cost: Array  # what it costs more


def convert_to_kernel_arrays(curves: Array, costs: Array) -> tuple[Array, Array]:
    """Convert curves (n, K) and costs to the array layout of the compiled loops.

    Costs are (1, K) or (n, K). Arrays are copied only if necessary.
    """
    curves, costs = _make_read_only(curves), _make_read_only(costs)
    return curves, costs[None, :] if costs.ndim == 1 else costs


def _make_read_only(values: Array) -> Array:
    kind = values.dtype if values.dtype.char in "fd" else np.dtype(np.float64)  # float32, float64
    rows = np.ascontiguousarray(values, dtype=kind).view()
    rows.flags.writeable = False  # one kind of array, one compiled loop
    return rows


def find_cheapest_levels(curves: Array, costs: Array) -> tuple[Array, Array]:
    """Return the cheapest levels (n,), and the total value and cost of this plan.

    Both sums come with their carries.
    """
    from largesse.allocation.price.price_kernels import classify_rows

    levels = np.empty(len(curves), dtype=np.int64)
    _, sums = classify_rows(curves, costs, levels, True, np.inf, np.inf, levels, levels)
    return levels, sums[:4]


def find_hull_steps(curves: Array, costs: Array, rows: Array, levels: Array, low: float) -> HullSteps:
    """Return the steps on customers' upper hulls with a gain of at least `low` per unit of cost.

    They start at the customers' levels (n,).
    """
    from largesse.allocation.price.price_kernels import list_hull_steps

    most = len(rows) * (curves.shape[1] - 1)  # memory is touched only as far as it is filled
    place, level = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    slope, cost = np.empty(most), np.empty(most)
    m = list_hull_steps(curves, costs, rows, levels, low, place, level, slope, cost)
    return HullSteps(place[:m], level[:m], slope[:m], cost[:m])
