"""What policies learnt for each budget really bring and cost: the frontier with its band, and the cost curve.

Every budget is planned once (`plan_budgets`); frontier and cost curve are two readings of the same plans.

*Frontier.* Every budget has a pointwise interval, which holds for that budget, and a wider simultaneous one: with 95 %
confidence the whole curve lies inside the band. How much wider it is follows from the correlations between budgets: it is
the 95 % quantile of the largest of correlated normal errors (a "sup-t" band; Montiel Olea and Plagborg-Møller 2019).

*Cost curve.* At every budget the learnt policy is compared with the best mixture of levels, the same for everybody, at the
same spend. The area between the two curves, divided by the range of spends, is what choosing customers gains on average
over all budgets: the Qini measure for several levels with costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from largesse.allocation import EVEN, Correction, allocate, correct_costs, frontier
from largesse.errors import BudgetError
from largesse.evaluation.estimators import weighted_mean
from largesse.evaluation.influence import Influence
from largesse.evaluation.spending import FoldSpending, measure_spending
from largesse.evaluation.value import allow_for_spend, find_best_mix, predict_value, score_policy
from largesse.records import Array, FrontierPoint, HeldOutPlan, Qini, QiniPoint, Scores
from largesse.stats import COVERAGE, t_quantile

POINTS = 21
DRAWS = 20_000


# -- plans ------------------------------------------------------------------------------------------------------------


def spread_budgets(scores: Scores) -> Array:
    """Return budgets spread evenly from the cheapest plan to the one that gives every customer the best level."""
    front = frontier(*_weighted(scores, np.arange(len(scores.curves))))
    return np.unique(np.linspace(float(front.spend[0]), float(front.spend[-1]), POINTS))


def add_budget(budgets: Array, budget: float) -> Array:
    """Return budgets with one more among them, moved to the nearest end if it lies outside."""
    return np.unique(np.append(budgets, min(max(budget, budgets[0]), budgets[-1])))


def plan_budgets(
    scores: Scores, budgets: Iterable[float], spending: FoldSpending | None = None, confidence: float = EVEN
) -> tuple[HeldOutPlan, ...]:
    """Plan the log's rows at each of several average budgets; see `plan_held_out`."""
    spending = spending or measure_spending(scores)
    return tuple(plan_held_out(scores, float(budget), spending, confidence) for budget in budgets)


def plan_held_out(
    scores: Scores, budget: float, spending: FoldSpending | None = None, confidence: float = EVEN
) -> HeldOutPlan:
    """Plan the log's rows at an average budget, each fold like a fresh set of customers.

    A fold's curves come from models that never saw it, and its price from those curves. A row of weight two is planned
    like two customers. Where costs are not certain, they are corrected by what plans cost in the other folds; that
    `spending`, if known, need not be measured again.
    """
    spending = spending or measure_spending(scores)
    levels, prices, scales = np.empty(len(scores.level), dtype=np.int64), [], []
    for place, f in enumerate(np.unique(scores.fold)):
        rows = scores.fold == f
        curves, costs = _weighted(scores, rows)
        correction = Correction()
        if spending is not None:
            correction = correct_costs(curves, costs, budget, spending.without(place), confidence)
            costs = costs * correction.scale
        scales.append(correction.scale)
        try:
            plan = allocate(curves, costs, budget)
            levels[rows] = plan.levels
            prices.append(plan.price)
        except BudgetError:
            allocate(*_weighted(scores, np.arange(len(levels))), budget)  # refuses a budget too small for the whole log
            levels[rows] = _cheapest(curves, costs)  # only this fold costs more: it gets its cheapest plan
            prices.append(np.inf)
    return HeldOutPlan(budget, levels, np.array(prices), None if spending is None else np.array(scales))


def _cheapest(curves: Array, costs: Array) -> Array:
    """Return the level (n,) with the least cost, the best of those that tie."""
    least = costs <= costs.min(axis=1, keepdims=True)
    return np.argmax(np.where(least, curves, -np.inf), axis=1)


def _weighted(scores: Scores, rows: Array) -> tuple[Array, Array]:
    """Return the curves and expected costs of some rows times their weights, so that plain sums weight every row."""
    weight = (scores.weight[rows] / scores.weight[rows].mean())[:, None]
    return weight * scores.curves[rows], weight * scores.expected_costs[rows]


# -- frontier ---------------------------------------------------------------------------------------------------------


def trace_frontier(scores: Scores, plans: Sequence[HeldOutPlan], estimator: str = "dr") -> tuple[FrontierPoint, ...]:
    """Estimate value and spend at each plan's budget, with pointwise intervals and a simultaneous band."""
    parts = np.empty((_units(scores), len(plans)), dtype=np.float32)  # only for correlations
    points = []
    for j, plan in enumerate(plans):
        value, spend = score_policy(scores, plan.levels, estimator)
        estimate = value.estimate(scores.weight, scores.cluster)
        parts[:, j] = sum_units(scores, value.values - estimate.estimate)
        paid = spend.estimate(scores.weight, scores.cluster)
        promise = predict_value(scores.curves, plan.levels, scores.weight)
        points.append(FrontierPoint(plan.budget, estimate, paid, promise, _mean_price(plan.prices)))
    reach = find_reach(parts)
    usual = t_quantile(len(parts) - 1) if len(parts) > 1 else float("nan")
    return tuple(_with_band(point, reach / usual) for point in points)


def _mean_price(prices: Array) -> float:
    finite = prices[np.isfinite(prices)]
    return float(np.mean(finite)) if len(finite) else float("nan")


def find_reach(parts: Array, seed: int = 0, *, one_sided: bool = False) -> float:
    """Return how many standard errors a band must reach so that all its points hold together, 95 % of the time.

    `parts` (units, points) are the centred contributions of rows or clusters to each point. Draws are those of a multiplier
    bootstrap with normal multipliers. `one_sided`: the band has lower ends only.
    """
    size = np.sqrt(np.einsum("ub,ub->b", parts, parts, dtype=np.float64))
    kept = size > 1e-6 * max(size.max(initial=0.0), 1e-300)
    freedom, single = len(parts) - 1, 2 * COVERAGE - 1 if one_sided else COVERAGE
    pointwise = t_quantile(freedom, single) if freedom > 0 else float("nan")
    if kept.sum() < 2:
        return pointwise
    scaled = parts[:, kept] / size[kept].astype(parts.dtype)
    spread, turn = np.linalg.eigh((scaled.T @ scaled).astype(np.float64))
    root = turn * np.sqrt(np.maximum(spread, 0.0))
    draws = np.random.default_rng(seed).standard_normal((DRAWS, len(root))) @ root.T
    normal = float(np.quantile((draws if one_sided else np.abs(draws)).max(axis=1), COVERAGE))
    # With few rows or clusters errors are not known to be normal: widen the band as much as one interval is widened.
    found = max(normal * pointwise / t_quantile(1e9, single), pointwise)
    return min(found, t_quantile(freedom, 1 - (1 - single) / kept.sum()))  # Bonferroni's is never too short


def _with_band(point: FrontierPoint, wider: float) -> FrontierPoint:
    """Return a point with its part of the band: `wider` times as wide as its own interval."""
    value = point.value
    low, high = (value.estimate + wider * (end - value.estimate) for end in (value.low, value.high))
    return replace(point, band=(low, high))


def _units(scores: Scores) -> int:
    return len(scores.level) if scores.cluster is None else len(np.unique(scores.cluster))


def sum_units(scores: Scores, centred: Array) -> Array:
    """Return weighted sums over rows or clusters."""
    parts: Array = scores.weight * centred
    if scores.cluster is None:
        return parts
    _, own = np.unique(scores.cluster, return_inverse=True)
    return np.bincount(own, weights=parts)


# -- cost curve -------------------------------------------------------------------------------------------------------


def trace_cost_curve(scores: Scores, plans: Sequence[HeldOutPlan], estimator: str = "dr") -> Qini:
    """Estimate the gain over the first plan at each spend, learnt and uniform, and the area between them."""
    weight, cluster = scores.weight, scores.cluster
    start, _ = score_policy(scores, plans[0].levels, estimator)
    points, gaps = [], []
    for plan in plans:
        value, spend = score_policy(scores, plan.levels, estimator)
        paid = float(weight @ spend.values / weight.sum())
        mix = find_best_mix(scores, paid)
        other, cost = score_policy(scores, mix, estimator)
        gap = allow_for_spend(scores, mix, value - other, spend - cost)
        gain = (value - start).estimate(weight, cluster)
        mixed = weighted_mean((other - start).values, weight)
        points.append(QiniPoint(plan.budget, paid, gain, mixed, gap.estimate(weight, cluster)))
        gaps.append(gap)
    share = _trapezoid(np.array([point.spend for point in points]))
    area = sum((gap * float(s) for s, gap in zip(share, gaps, strict=True)), Influence(np.zeros(len(weight))))
    return Qini(tuple(points), area.estimate(weight, cluster))


def _trapezoid(spend: Array) -> Array:
    """Return the share of each point in the mean over the range of spends, by the trapezoidal rule."""
    steps = np.maximum(np.diff(spend), 0.0)
    if steps.sum() == 0:
        return np.full(len(spend), 1.0 / len(spend))
    share: Array = (np.append(steps, 0.0) + np.insert(steps, 0, 0.0)) / 2
    return share / steps.sum()
