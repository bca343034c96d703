"""Measures of uplift models in the literature: Qini, and areas under cost curves for two and for several levels.

All sort customers by predicted returns, and add up the logged responses. None needs a budget; all are 0.5 for a random order, except
the Qini, which has that value for its mean curve.
"""

from __future__ import annotations

import numpy as np

from largesse.records import Array


def measure_qini(effect: Array, treated: Array, response: Array) -> float:
    """Return the mean of the Qini curve divided by its last value, as the authors of CausalPFN compute it.

    Rows are sorted by falling effect. The curve is the sum of treated responses, less that of the others scaled to as many rows.

    >>> effect = np.array([2.0, 2.0, 0.0, 0.0])
    >>> measure_qini(effect, np.array([True, False, True, False]), np.array([1.0, 0.0, 0.0, 0.0]))
    1.0
    """
    order = np.argsort(-effect, kind="stable")
    treated, response = treated[order], response[order]
    n_treated, n_others = np.cumsum(treated), np.cumsum(~treated)
    others = np.cumsum(response * ~treated) / np.maximum(n_others, 1)
    curve = np.cumsum(response * treated) - others * n_treated
    return float(curve.mean() / curve[-1]) if curve[-1] else float("nan")


def measure_aucc(effect: Array, cost: Array, change: Array, spending: Array) -> float:
    """Return the area under the curve of added value against added cost, with customers sorted by effect / cost.

    `change` and `spending` (n,) are unbiased scores of what the level adds to each customer's value and cost. Both axes end at 1.
    """
    order = np.argsort(-effect / np.maximum(cost, 1e-12), kind="stable")
    return _measure_area(spending[order], change[order])


def measure_multi_level_aucc(curves: Array, costs: Array, value: Array, paid: Array) -> float:
    """Return the area under the cost curve of several levels (MT-AUCC).

    Each customer has one step for each level on the upper hull of curve against cost; steps are sorted by their marginal return.
    `value` and `paid` (n, K) are unbiased scores of what each level brings and costs; a step adds those of its level and
    removes those of the level below it.
    """
    rows, n_levels = np.arange(len(curves)), curves.shape[1]
    below = np.zeros(len(curves), dtype=np.int64)
    returns, changes, spending = [], [], []
    open_rows = np.ones(len(curves), dtype=bool)
    while open_rows.any():
        rise = curves - curves[rows, below][:, None]
        extra = costs - costs[rows, below][:, None]
        further = (np.arange(n_levels) > below[:, None]) & (rise > 0) & (extra > 1e-12)
        slope = np.where(further, rise / np.where(further, extra, 1.0), -np.inf)
        above = slope.argmax(axis=1)
        open_rows &= further.any(axis=1)
        part, lower, upper = rows[open_rows], below[open_rows], above[open_rows]
        returns.append(slope[part, upper])
        changes.append(value[part, upper] - value[part, lower])
        spending.append(paid[part, upper] - paid[part, lower])
        below = np.where(open_rows, above, below)
    slopes, change, spent = (np.concatenate(parts) for parts in (returns, changes, spending))
    order = np.argsort(-slopes, kind="stable")
    return _measure_area(spent[order], change[order])


def _measure_area(spending: Array, change: Array) -> float:
    """Return the area under cumulative value against cumulative cost, both divided by their totals."""
    cost, value = np.cumsum(spending), np.cumsum(change)
    if len(cost) == 0 or cost[-1] <= 0 or value[-1] == 0:
        return float("nan")
    return float(np.trapezoid(np.append(0.0, value / value[-1]), np.append(0.0, cost / cost[-1])))
