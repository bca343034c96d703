"""The honest frontier: what policies learnt for each budget really bring and cost.

Every budget has a pointwise interval, which holds for that budget, and a wider simultaneous one: with 95 % certainty the
whole curve lies inside these together. How much wider is read off the correlations between budgets: it is the 95 %
quantile of the largest of correlated normal errors (a "sup-t" band; Montiel Olea and Plagborg-Møller 2019).
"""

from __future__ import annotations

import numpy as np

from largesse.allocation import frontier
from largesse.evaluation.value import learnt_plan, policy_scores, weighted
from largesse.records import Array, Estimate, FrontierPoint, Scores
from largesse.stats import COVERAGE, mean_estimate, t_quantile

POINTS = 21
DRAWS = 20_000


def frontier_band(scores: Scores, budgets: Array | None = None, estimator: str = "dr") -> list[FrontierPoint]:
    """Return the cross-fitted value and spend at each average budget; by default from the cheapest plan to the dearest."""
    budgets = usual_budgets(scores) if budgets is None else budgets
    parts = np.empty((_units(scores), len(budgets)), dtype=np.float32)  # only for correlations
    points = []
    for j, budget in enumerate(budgets):
        levels, prices = learnt_plan(scores, float(budget))
        value, spend = policy_scores(scores, levels, estimator)
        own = scores.curves[np.arange(len(levels)), levels]
        promise = float(scores.weight @ own / scores.weight.sum())
        estimate = mean_estimate(value, scores.weight, scores.cluster)
        parts[:, j] = _by_unit(scores, value - estimate.estimate)
        paid = mean_estimate(spend, scores.weight, scores.cluster)
        price = float(np.mean(prices[np.isfinite(prices)])) if np.isfinite(prices).any() else float("nan")
        points.append(FrontierPoint(float(budget), estimate, paid, promise, price))
    reach = simultaneous_reach(parts)
    usual = t_quantile(len(parts) - 1) if len(parts) > 1 else float("nan")
    return [_with_band(point, reach / usual) for point in points]


def usual_budgets(scores: Scores, also: float | None = None) -> Array:
    """Return budgets spread from the cheapest plan to the one that gives every customer the best level, and `also`."""
    front = frontier(*weighted(scores, np.arange(len(scores.curves))))
    low, high = float(front.spend[0]), float(front.spend[-1])
    budgets = np.linspace(low, high, POINTS)
    return np.unique(np.append(budgets, min(max(also, low), high))) if also is not None else np.unique(budgets)


def simultaneous_reach(parts: Array, seed: int = 0) -> float:
    """Return how many standard errors a band must reach so that all its points hold together, 95 % of the time.

    `parts` (units, points) are the centred contributions of rows or clusters to each point.
    """
    size = np.sqrt(np.einsum("ub,ub->b", parts, parts, dtype=np.float64))
    kept = size > 1e-6 * max(size.max(initial=0.0), 1e-300)
    pointwise = t_quantile(len(parts) - 1) if len(parts) > 1 else float("nan")
    if kept.sum() < 2:
        return pointwise
    scaled = parts[:, kept] / size[kept].astype(parts.dtype)
    spread, turn = np.linalg.eigh((scaled.T @ scaled).astype(np.float64))
    root = turn * np.sqrt(np.maximum(spread, 0.0))
    draws = np.random.default_rng(seed).standard_normal((DRAWS, len(root))) @ root.T
    normal = float(np.quantile(np.abs(draws).max(axis=1), COVERAGE))
    # With few rows or clusters errors are not known to be normal: as much wider as one interval is.
    return max(normal * pointwise / t_quantile(1e9), pointwise)


def _with_band(point: FrontierPoint, wider: float) -> FrontierPoint:
    """Return a point with its part of the band: so many times wider than its own interval."""
    value: Estimate = point.value
    low, high = (value.estimate + wider * (end - value.estimate) for end in (value.low, value.high))
    return FrontierPoint(point.budget, value, point.spend, point.promise, point.price, (low, high))


def _units(scores: Scores) -> int:
    return len(scores.level) if scores.cluster is None else len(np.unique(scores.cluster))


def _by_unit(scores: Scores, centred: Array) -> Array:
    """Return weighted sums over rows or clusters."""
    parts: Array = scores.weight * centred
    if scores.cluster is None:
        return parts
    _, own = np.unique(scores.cluster, return_inverse=True)
    return np.bincount(own, weights=parts)
