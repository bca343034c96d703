"""Off-policy estimate of the budget–value frontier: cross-fitted plans at many budgets, with confidence band.

Every budget is planned once (`plan_at_budgets`); frontier and cost curve use the same plans.

*Frontier.* Every budget has a pointwise interval, which holds for that budget, and a wider simultaneous one: with 95 %
confidence the whole curve lies inside the band. How much wider it is follows from the correlations between budgets: it is
the 95 % quantile of the largest of correlated normal errors (a "sup-t" band; Montiel Olea and Plagborg-Møller 2019).

*Cost curve.* At every budget the learnt policy is compared with the best mixture of levels, the same for everyone, at the same
spend, chosen for each fold on the other folds. The area between the two curves, divided by the range of spends, is the average
gain from choosing customers over all budgets: the Qini measure for several levels with costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from largesse.allocation import BUDGET_CONFIDENCE, Constraints, CostCorrection, allocate, decide_at_price, frontier
from largesse.errors import BudgetError
from largesse.evaluation.estimators import compute_weighted_mean, restrict_policy_to_support
from largesse.evaluation.influence_functions import Influence, widen_interval
from largesse.evaluation.policy_estimates import (
    FoldLevelMeans,
    compare_with_best_mix,
    estimate_from_influence,
    estimate_from_policy_influence,
    estimate_level_means,
    find_best_mixes,
    measure_policy_influence,
    predict_mean_response,
)
from largesse.evaluation.spend_by_price import FoldSpending, measure_spend_by_price
from largesse.records import Array, FrontierPoint, HeldOutPlan, QiniCurve, QiniPoint, Scores, UniformMixValue
from largesse.stats import COVERAGE, t_quantile

N_BUDGETS = 21
N_ERROR_DRAWS = 20_000
MAX_FOLD_COPIES, MAX_ROW_COPIES = 50_000, 20  # customers that the rows of a fold, and a row of mean weight, represent
MAX_FRONTIER_ROWS = 5_000_000  # larger logs are handled in contributions, and correlations are measured on a sample
MAX_CORRELATION_UNITS = 1_000_000  # rows or clusters of that sample


# -- plans ------------------------------------------------------------------------------------------------------------


def make_budget_grid(scores: Scores) -> Array:
    """Return budgets spread evenly between the cheapest plan and the plan with the best level for each customer."""
    if len(scores.curves) > MAX_FRONTIER_ROWS:
        low = compute_weighted_mean(
            np.concatenate([costs.min(axis=1) for _, costs in _iterate_curve_blocks(scores)]), scores.weight
        )
        return np.unique(np.linspace(low, find_budget_at_price(scores, 0.0), N_BUDGETS))
    front = frontier(*_weight_curves_and_costs(scores, slice(None)))
    return np.unique(np.linspace(float(front.spend[0]), float(front.spend[-1]), N_BUDGETS))


def find_budget_at_price(scores: Scores, price: float) -> float:
    """Return the expected cost of the plan with each customer's best level at a shadow price."""
    spends = [
        costs[np.arange(len(costs)), decide_at_price(curves, costs, price)]
        for curves, costs in _iterate_curve_blocks(scores)
    ]
    return compute_weighted_mean(np.concatenate(spends), scores.weight)


def _iterate_curve_blocks(scores: Scores) -> Iterator[tuple[Array, Array]]:
    """Yield the response curves and the expected costs of a log's rows, block by block."""
    for start in range(0, len(scores.curves), MAX_FRONTIER_ROWS):
        rows = slice(start, start + MAX_FRONTIER_ROWS)
        yield scores.curves[rows], scores.expected_costs[rows]


def add_budget_to_grid(budgets: Array, budget: float) -> Array:
    """Add one budget to a grid of budgets, clipped to the grid's range."""
    return np.unique(np.append(budgets, min(max(budget, budgets[0]), budgets[-1])))


@dataclass(frozen=True, eq=False)
class FoldPlan:
    """Plan for one fold's rows: levels (m,) or probabilities (m, K), and the budget's shadow price."""

    policy: Array
    price: float


class FoldPlanner(Protocol):
    """Interface of planners that plan some rows of a log under a campaign's constraints."""

    def __call__(self, rows: Array, curves: Array, costs: Array, budget: float, /) -> FoldPlan:
        """Plan rows (m,) of the log, possibly repeated, from their curves (m, K) and costs (K,) or (m, K)."""


@dataclass(frozen=True, eq=False)
class ConstrainedFoldPlanner:
    """Planner for rows of a log, under the plan's constraints scaled to the number of rows."""

    constraints: Constraints
    customers: int

    def __call__(self, rows: Array, curves: Array, costs: Array, budget: float, /) -> FoldPlan:
        """Return the plan of rows (m,) of the log."""
        plan = allocate(curves, costs, budget, constraints=self.constraints.take(rows, self.customers))
        return FoldPlan(plan.levels, plan.price)


def plan_at_budgets(
    scores: Scores,
    budgets: Iterable[float],
    spending: FoldSpending | None = None,
    confidence: float = BUDGET_CONFIDENCE,
    planner: FoldPlanner | None = None,
) -> tuple[HeldOutPlan, ...]:
    """Plan the log's rows at each of several average budgets, fold by fold."""
    spending, plans = spending or measure_spend_by_price(scores), []
    for budget in budgets:
        with suppress(*([BudgetError] if planner is not None else [])):
            plans.append(plan_each_fold(scores, float(budget), spending, confidence, planner))
    return tuple(plans)


def plan_each_fold(
    scores: Scores,
    budget: float,
    spending: FoldSpending | None = None,
    confidence: float = BUDGET_CONFIDENCE,
    planner: FoldPlanner | None = None,
) -> HeldOutPlan:
    """Plan the log's rows at one average budget, fold by fold, as if each fold held new customers.

    A fold's curves come from models that were not fitted to it, and its price from those curves. A row of weight two is planned
    like two customers. Levels are those that the log supports. Where costs are not certain, they are corrected by the cost of
    plans in the other folds; known `spending` is not measured again. A `planner` plans the folds under further rules.
    """
    spending = spending or measure_spend_by_price(scores)
    K = scores.curves.shape[1]
    levels = np.empty(len(scores.level), dtype=np.min_scalar_type(-K))  # small: plans at many budgets are in memory
    probabilities = None
    prices, scales = [], []
    for place, f in enumerate(np.unique(scores.fold)):
        rows = scores.fold == f
        curves, costs = _weight_curves_and_costs(scores, rows)
        correction = CostCorrection()
        if spending is not None:
            correction = spending.correct_expected_costs(place, budget, confidence)
            costs = costs * correction.scale
        scales.append(correction.scale)
        if planner is not None:
            plan_of_fold = _plan_fold(scores, np.flatnonzero(rows), correction.scale, budget, planner)
            prices.append(plan_of_fold.price)
            if plan_of_fold.policy.ndim == 1:
                levels[rows] = plan_of_fold.policy
                continue
            if probabilities is None:
                probabilities = np.zeros((len(levels), K), dtype=np.float32)
            probabilities[rows] = plan_of_fold.policy
            continue
        try:
            plan = allocate(curves, costs, budget)
            levels[rows] = plan.levels
            prices.append(plan.price)
        except BudgetError:
            allocate(
                *_weight_curves_and_costs(scores, slice(None)), budget
            )  # refuses a budget too small for the whole log
            # Only this fold costs more: it gets its cheapest plan, with the best of the levels that tie.
            costs = np.broadcast_to(costs, curves.shape)
            cheapest = costs <= costs.min(axis=1, keepdims=True)
            levels[rows] = np.argmax(np.where(cheapest, curves, -np.inf), axis=1)
            prices.append(np.inf)
    policy = restrict_policy_to_support(scores, levels if probabilities is None else probabilities)
    return HeldOutPlan(budget, policy, np.array(prices), None if spending is None else np.array(scales))


def _plan_fold(scores: Scores, rows: Array, scale: float, budget: float, planner: FoldPlanner) -> FoldPlan:
    """Plan the rows (m,) of one fold under constraints; a row of weight two counts as two customers."""
    curves, costs = scores.curves[rows], scores.expected_costs
    common = costs.strides[0] == 0
    costs = costs[0] * scale if common else costs[rows] * scale
    weight = scores.weight[rows]
    if weight.min() == weight.max():
        return planner(rows, curves, costs, budget)
    copies = _count_represented_customers(weight)
    place = np.repeat(np.arange(len(rows)), copies)
    plan = planner(rows[place], curves[place], costs if common else costs[place], budget)
    # Rows without a copy have next to no weight.
    policy = np.eye(curves.shape[1])[decide_at_price(curves, costs, plan.price)]
    policy[copies > 0] = 0.0
    share = 1.0 / copies[place]
    if plan.policy.ndim == 1:
        np.add.at(policy, (place, plan.policy), share)
    else:
        np.add.at(policy, place, plan.policy * share[:, None])
    return FoldPlan(policy, plan.price)


def _count_represented_customers(weight: Array) -> Array:
    """Return the whole number (m,) of customers that each weighted row represents, by systematic sampling."""
    times = min(max(MAX_FOLD_COPIES // len(weight), 1), MAX_ROW_COPIES)
    ends = np.cumsum(weight) / weight.sum() * len(weight) * times
    return np.diff(np.floor(ends + 0.5).astype(np.int64), prepend=0)


def _weight_curves_and_costs(scores: Scores, rows: Array | slice) -> tuple[Array, Array]:
    """Return the curves and the expected costs of rows, multiplied by the rows' weights.

    Costs are (K,) where all rows have the same, and the same weight.
    """
    curves, costs, weight = scores.curves[rows], scores.expected_costs, scores.weight[rows]
    if (weight == 1.0).all():
        return curves, costs[0] if costs.strides[0] == 0 else costs[rows]
    weight = (weight / (weight.mean() or 1.0))[:, None]  # a fold may have no weight at all
    return weight * curves, weight * costs[rows]


# -- frontier ---------------------------------------------------------------------------------------------------------


def estimate_frontier(scores: Scores, plans: Sequence[HeldOutPlan], estimator: str = "dr") -> tuple[FrontierPoint, ...]:
    """Estimate value and spend of the plans at all budgets, with intervals and a simultaneous confidence band."""
    units = count_independent_units(scores)
    sample = slice(None, None, -(-units // MAX_CORRELATION_UNITS) if units > MAX_FRONTIER_ROWS else 1)
    contributions = np.empty((len(range(units)[sample]), len(plans)), dtype=np.float32)  # only for correlations
    points = []
    for j, plan in enumerate(plans):
        influence = measure_policy_influence(scores, plan.policy, estimator)
        value, spend = estimate_from_policy_influence(scores, influence)
        contributions[:, j] = sum_by_unit(scores, influence.value.values - value.estimate)[sample]
        promise = predict_mean_response(scores.curves, plan.policy, scores.weight)
        finite = plan.prices[np.isfinite(plan.prices)]
        price = float(np.mean(finite)) if len(finite) else float("nan")
        points.append(FrontierPoint(plan.budget, value, spend, promise, price))
    pointwise = t_quantile(len(contributions) - 1) if len(contributions) > 1 else float("nan")
    times = find_band_critical_value(contributions) / pointwise
    return tuple(replace(point, band=widen_interval(point.value, times).interval) for point in points)


def find_band_critical_value(contributions: Array, *, one_sided: bool = False) -> float:
    """Return the half-width, in standard errors, of a simultaneous 95 % confidence band.

    `contributions` (units, points) are the centred contributions of rows or clusters to each point. Draws are those of a multiplier
    bootstrap with normal multipliers. `one_sided`: the band has lower ends only.
    """
    size = np.sqrt(np.einsum("ub,ub->b", contributions, contributions, dtype=np.float64))
    uncertain = size > 1e-6 * max(size.max(initial=0.0), 1e-300)
    freedom, single = len(contributions) - 1, 2 * COVERAGE - 1 if one_sided else COVERAGE
    pointwise = t_quantile(freedom, single) if freedom > 0 else float("nan")
    if uncertain.sum() < 2:
        return pointwise
    scaled = contributions[:, uncertain] / size[uncertain].astype(contributions.dtype)
    spread, turn = np.linalg.eigh((scaled.T @ scaled).astype(np.float64))
    root = turn * np.sqrt(np.maximum(spread, 0.0))
    draws = np.random.default_rng(0).standard_normal((N_ERROR_DRAWS, len(root))) @ root.T
    normal = float(np.quantile((draws if one_sided else np.abs(draws)).max(axis=1), COVERAGE))
    # With few rows or clusters errors are not known to be normal: widen the band as much as one interval is widened.
    reach = max(normal * pointwise / t_quantile(1e9, single), pointwise)
    return min(reach, t_quantile(freedom, 1 - (1 - single) / uncertain.sum()))  # Bonferroni's is never too short


def count_independent_units(scores: Scores) -> int:
    """Return the number of clusters, or of rows in a log without clusters."""
    return len(scores.level) if scores.cluster is None else len(np.unique(scores.cluster))


def sum_by_unit(scores: Scores, centred: Array) -> Array:
    """Return the weighted sum of values for each cluster, or for each row without clusters."""
    contributions: Array = scores.weight * centred
    if scores.cluster is None:
        return contributions
    _, code = np.unique(scores.cluster, return_inverse=True)
    return np.bincount(code, weights=contributions)


# -- cost curve -------------------------------------------------------------------------------------------------------


def estimate_qini_curve(
    scores: Scores, plans: Sequence[HeldOutPlan], spends: Sequence[float], estimator: str = "dr"
) -> QiniCurve:
    """Estimate the Qini curve of plans: the gain over the cheapest plan at each spend, and the area."""
    first, shares = (
        measure_policy_influence(scores, plans[0].policy, estimator).value,
        _compute_trapezoid_weights(np.array(spends)),
    )
    points, area, means = [], Influence(np.zeros(len(scores.weight))), estimate_level_means(scores)
    for plan, spend, share in zip(plans, spends, shares, strict=True):
        policy = measure_policy_influence(scores, plan.policy, estimator)
        _, mixed, difference = compare_with_best_mix(scores, policy, estimator, means)
        uniform = compute_weighted_mean((mixed.value - first).values, scores.weight)
        gain = estimate_from_influence(scores, policy.value - first)
        points.append(QiniPoint(plan.budget, spend, gain, uniform, estimate_from_influence(scores, difference)))
        area = area + difference * float(share)
    return QiniCurve(
        tuple(points), estimate_from_influence(scores, area), estimate_mix_values(scores, means, estimator)
    )


def estimate_mix_values(scores: Scores, means: FoldLevelMeans, estimator: str = "dr") -> tuple[UniformMixValue, ...]:
    """Estimate the value of the best mix of levels for all customers, with each level's mean cost as the spend."""
    costs = np.unique(np.average(means.cost, axis=0, weights=means.weight))
    mixed = (
        measure_policy_influence(scores, find_best_mixes(scores, float(cost), means).policy, estimator)
        for cost in costs
    )
    values = (compute_weighted_mean(influence.value.values, scores.weight) for influence in mixed)
    return tuple(UniformMixValue(float(cost), value) for cost, value in zip(costs, values, strict=True))


def _compute_trapezoid_weights(spend: Array) -> Array:
    """Return the weight of each point in the mean over a range of spends, by the trapezoidal rule."""
    steps = np.maximum(np.diff(spend), 0.0)
    if steps.sum() == 0:
        return np.full(len(spend), 1.0 / len(spend))
    share: Array = (np.append(steps, 0.0) + np.insert(steps, 0, 0.0)) / 2
    return share / steps.sum()
