"""The honest frontier: what policies learnt for each budget really bring and cost, with pointwise intervals."""

from __future__ import annotations

import numpy as np

from largesse.allocate import Path, steps
from largesse.evaluate.value import policy_value, weighted
from largesse.records import Array, FrontierPoint, Scores

POINTS = 21


def frontier_band(scores: Scores, budgets: Array | None = None) -> list[FrontierPoint]:
    """Return the cross-fitted value and spend at each average budget; by default from the cheapest plan to the dearest."""
    parts = [scores.fold == f for f in np.unique(scores.fold)]
    paths = [steps(*weighted(scores, rows)) for rows in parts]
    if budgets is None:
        budgets = usual_budgets(scores)
    spent = [np.concatenate([[0.0], np.cumsum(path.cost)]) for path in paths]
    return [_point(scores, parts, paths, spent, float(budget)) for budget in budgets]


def usual_budgets(scores: Scores, also: float | None = None) -> Array:
    """Return budgets spread from the cheapest plan to the one that gives every customer the best level, and `also`."""
    n = len(scores.curves)
    path = steps(*weighted(scores, np.arange(n)))
    low = path.base_cost / n
    high = low + float(path.cost.sum()) / n
    budgets = np.linspace(low, high, POINTS)
    return np.unique(np.append(budgets, min(max(also, low), high))) if also is not None else np.unique(budgets)


def _point(scores: Scores, parts: list[Array], paths: list[Path], spent: list[Array], budget: float) -> FrontierPoint:
    levels = np.empty(len(scores.level), dtype=np.int64)
    prices = []
    for rows, path, sums in zip(parts, paths, spent, strict=True):
        left = budget * len(path.start) - path.base_cost
        taken = max(int(np.searchsorted(sums, left * (1 + 1e-12), side="right")) - 1, 0)
        levels[rows] = path.levels(taken)
        prices.append(float(path.slope[taken]) if taken < len(path.slope) else 0.0)
    value, spend = policy_value(scores, levels)
    own = scores.curves[np.arange(len(levels)), levels]
    promise = float(scores.weight @ own / scores.weight.sum())
    return FrontierPoint(budget, value, spend, promise, float(np.mean(prices)))
