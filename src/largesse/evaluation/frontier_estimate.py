"""Off-policy estimates of the frontier: held-out plans at a grid of budgets, with a simultaneous band, and the cost curve.

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

from largesse.allocation import EVEN, Correction, allocate, correct_costs, decide_at_price, frontier
from largesse.errors import BudgetError
from largesse.evaluation.cost_calibration import FoldSpending, measure_spending
from largesse.evaluation.estimates import allow_for_spend, find_best_mix, predict_value, score_policy, score_spend
from largesse.evaluation.estimators import weighted_mean
from largesse.evaluation.influence import Influence
from largesse.records import Array, FrontierPoint, HeldOutPlan, Qini, QiniPoint, Scores
from largesse.stats import COVERAGE, t_quantile

POINTS = 21
DRAWS = 20_000
MANY = 5_000_000  # rows; of more, not everything is looked at together
ENOUGH = 1_000_000  # rows or clusters, if there are many: errors at different budgets correlate as they do in these


# -- plans ------------------------------------------------------------------------------------------------------------


def spread_budgets(scores: Scores) -> Array:
    """Return budgets spread evenly from the cheapest plan to the one that gives every customer the best level."""
    if len(scores.curves) > MANY:
        return np.unique(np.linspace(*_find_ends(scores), POINTS))
    front = frontier(*_weighted(scores, slice(None)))
    return np.unique(np.linspace(float(front.spend[0]), float(front.spend[-1]), POINTS))


def _find_ends(scores: Scores) -> tuple[float, float]:
    """Return what the cheapest plan costs, and the one that gives every customer the best level, part by part."""
    low = high = 0.0
    for start in range(0, len(scores.curves), MANY):
        rows = slice(start, start + MANY)
        curves, costs = scores.curves[rows], scores.expected_costs[rows]
        each, weight = np.arange(len(curves)), scores.weight[rows]
        low += float(weight @ costs.min(axis=1))
        high += float(weight @ costs[each, decide_at_price(curves, costs, 0.0)])
    whole = float(scores.weight.sum())
    return low / whole, high / whole


def find_budget_at(scores: Scores, price: float) -> float:
    """Return what plans cost, as models expect it, that take every step which brings at least a price."""
    total = 0.0
    for start in range(0, len(scores.curves), MANY):
        curves, costs = scores.curves[start : start + MANY], scores.expected_costs[start : start + MANY]
        levels, weight = decide_at_price(curves, costs, price), scores.weight[start : start + MANY]
        total += float(weight @ costs[np.arange(len(curves)), levels])
    return total / float(scores.weight.sum())


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
    K = scores.curves.shape[1]
    levels = np.empty(
        len(scores.level), dtype=np.min_scalar_type(-K)
    )  # plans at many budgets are kept: small numbers do
    prices, scales = [], []
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
            allocate(*_weighted(scores, slice(None)), budget)  # refuses a budget too small for the whole log
            levels[rows] = _cheapest(curves, costs)  # only this fold costs more: it gets its cheapest plan
            prices.append(np.inf)
    return HeldOutPlan(budget, levels, np.array(prices), None if spending is None else np.array(scales))


def _cheapest(curves: Array, costs: Array) -> Array:
    """Return the level (n,) with the least cost, the best of those that tie."""
    costs = np.broadcast_to(costs, curves.shape)
    least = costs <= costs.min(axis=1, keepdims=True)
    return np.argmax(np.where(least, curves, -np.inf), axis=1)


def _weighted(scores: Scores, rows: Array | slice) -> tuple[Array, Array]:
    """Return the curves and expected costs of some rows times their weights, so that plain sums weight every row.

    Costs are (K,) where all rows have the same, and the same weight.
    """
    curves, costs, weight = scores.curves[rows], scores.expected_costs, scores.weight[rows]
    if (weight == 1.0).all():
        return curves, costs[0] if costs.strides[0] == 0 else costs[rows]
    weight = (weight / (weight.mean() or 1.0))[:, None]  # a fold may have no weight at all
    return weight * curves, weight * costs[rows]


# -- frontier ---------------------------------------------------------------------------------------------------------


def trace_frontier(scores: Scores, plans: Sequence[HeldOutPlan], estimator: str = "dr") -> tuple[FrontierPoint, ...]:
    """Estimate value and spend at each plan's budget, with pointwise intervals and a simultaneous band."""
    units = count_units(scores)
    some = slice(None, None, -(-units // ENOUGH) if units > MANY else 1)
    parts = np.empty((len(range(units)[some]), len(plans)), dtype=np.float32)  # only for correlations
    points = []
    for j, plan in enumerate(plans):
        value, spend = score_policy(scores, plan.levels, estimator)
        estimate = value.estimate(scores.weight, scores.cluster)
        parts[:, j] = sum_units(scores, value.values - estimate.estimate)[some]
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


def count_units(scores: Scores) -> int:
    """Return how many rows, or clusters of rows, are independent."""
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
    paid = [float(weight @ score_spend(scores, plan.levels, estimator).values / weight.sum()) for plan in plans]
    points, area = [], Influence(np.zeros(len(weight)))
    for plan, cost, share in zip(plans, paid, _trapezoid(np.array(paid)), strict=True):
        mix = find_best_mix(scores, cost)
        other, others = score_policy(scores, mix, estimator)
        mixed = weighted_mean((other - start).values, weight)
        value, spend = score_policy(scores, plan.levels, estimator)
        gain = (value - start).estimate(weight, cluster)
        gap = allow_for_spend(scores, mix, value - other, spend - others)
        points.append(QiniPoint(plan.budget, cost, gain, mixed, gap.estimate(weight, cluster)))
        area = area + gap * float(share)
    return Qini(tuple(points), area.estimate(weight, cluster))


def _trapezoid(spend: Array) -> Array:
    """Return the share of each point in the mean over the range of spends, by the trapezoidal rule."""
    steps = np.maximum(np.diff(spend), 0.0)
    if steps.sum() == 0:
        return np.full(len(spend), 1.0 / len(spend))
    share: Array = (np.append(steps, 0.0) + np.insert(steps, 0, 0.0)) / 2
    return share / steps.sum()
