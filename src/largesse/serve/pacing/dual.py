"""The prices of a budget over time: the dual of a plan that keeps promised money at hand at every moment.

A promise counts with its face value while it stands, and with what is redeemed of it afterwards. There is one price for the
budget at each of some points in time. Any prices give a bound that no plan exceeds; the best give the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.records import Array
from largesse.serve.pacing.customers import Population


@dataclass(frozen=True, eq=False)
class Dual:
    """The best prices (J,) of a budget at points in time, and the plan that goes with them."""

    prices: Array
    levels: Array  # (n,)
    bound: float
    slack: float  # what prices still say about constraints that the levels do not meet exactly


def place(times: Array, valid: float, days: float, many: int) -> Array:
    """Return for each time (n,) the first point at or after it, and the first at or after its promise's end, (n, 2)."""
    wide = days / many
    first = np.minimum((times / wide).astype(np.int64), many - 1)
    last = np.maximum(np.ceil((times + valid) / wide).astype(np.int64) - 1, 0)
    return np.stack([first, np.where(times + valid > days, many, np.minimum(last, many - 1))], axis=1)


def solve_dual(customers: Population, redeems: Array, when: Array, many: int, total: float) -> Dual:
    """Return the best prices for customers who come at `when` (n, 2); `redeems` (n, K) is the share of faces redeemed."""
    from scipy.optimize import minimize

    from largesse.serve.pacing.kernels import lagrangian

    responses = customers.responses
    levels, used = np.zeros(len(responses), dtype=np.int64), np.zeros(many + 1)
    parts = (responses, customers.at_once, customers.face, redeems, when)
    spread = float((responses.max(axis=1) - responses[:, 0]).sum())
    unit = max(spread, 1e-300) / max(total, 1e-300)  # a price that is about right

    def dual(scaled: Array) -> tuple[float, Array]:
        ahead = np.append(np.cumsum(scaled[::-1])[::-1], 0.0) * unit
        inner = lagrangian(*parts, ahead, used, levels)
        slope = 1.0 - np.cumsum(used)[:-1] / max(total, 1e-300)
        return inner / (unit * total) + ahead[0] / unit if total > 0 else inner, slope

    start = np.zeros(many)
    start[-1] = 0.3
    bounds: Any = [(0.0, None)] * many
    limits = {"maxiter": 300, "maxfun": 500}
    found = minimize(dual, start, jac=True, bounds=bounds, method="L-BFGS-B", options=limits)
    best, slope = dual(found.x)
    slack = float((found.x * slope).sum()) * unit * total
    return Dual(found.x * unit, levels, best * unit * total, slack)
