"""Estimates of profit (value of responses minus cost), and the most profitable budget.

The profit of a row is its score of the response times the value of a response, minus its score of the cost. Value and spend of
a row go together (a buyer also redeems), so the interval is that of their difference, row by row.

*The best budget.* Plans at every budget of the frontier are evaluated on the same held-out rows. A budget may be the best unless
another is clearly better: unless a difference in profit exceeds the largest error of all differences from that budget in 95 % of
draws, correlated as they are. The truly best of all compared budgets is therefore kept in 95 % of all logs, however
many there are (multiple comparisons with the best; Hsu 1981).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from largesse.evaluation.frontier_estimate import (
    MAX_CORRELATION_UNITS,
    N_ERROR_DRAWS,
    count_independent_units,
    find_band_critical_value,
    sum_by_unit,
)
from largesse.evaluation.influence_functions import PolicyInfluence, widen_interval
from largesse.evaluation.policy_estimates import estimate_from_influence, estimate_ratio, measure_policy_influence
from largesse.records import Array, BestBudget, Estimate, HeldOutPlan, Profit, Scores
from largesse.stats import COVERAGE, t_quantile

PROFIT_TOLERANCE = 1e-12


def estimate_profit(
    scores: Scores, policy: PolicyInfluence, cheapest: PolicyInfluence, response_value: float
) -> Profit:
    """Estimate a policy's profit, and its gain in profit over the cheapest level for everyone."""
    change = policy.minus(cheapest)
    value_gain = change.value * response_value
    return Profit(
        response_value,
        estimate_from_influence(scores, policy.measure_profit_influence(response_value)),
        estimate_from_influence(scores, value_gain - change.spend),
        estimate_ratio(scores, value_gain, change.spend),
    )


# -- the best budget --------------------------------------------------------------------------------------------------


def estimate_profit_by_budget(
    scores: Scores, plans: Sequence[HeldOutPlan], response_value: float, budget: float, estimator: str = "dr"
) -> tuple[list[Estimate], BestBudget]:
    """Estimate the profit of each plan, and find the most profitable budget."""
    units = count_independent_units(scores)
    sample = slice(
        None, None, -(-units // MAX_CORRELATION_UNITS)
    )  # errors of many rows correlate as those of a sample do
    contributions = np.empty((len(range(units)[sample]), len(plans)), dtype=np.float32)
    estimates = []
    for j, plan in enumerate(plans):
        profit = measure_policy_influence(scores, plan.policy, estimator).measure_profit_influence(response_value)
        estimates.append(estimate_from_influence(scores, profit))
        contributions[:, j] = sum_by_unit(scores, profit.values - estimates[-1].estimate)[sample]
    profits = np.array([estimate.estimate for estimate in estimates])
    candidates = mark_possible_best_points(profits, contributions, np.array([estimate.se for estimate in estimates]))
    best, nearest = int(np.argmax(profits)), int(np.argmin([abs(plan.budget - budget) for plan in plans]))
    pointwise = t_quantile(len(contributions) - 1) if len(contributions) > 1 else float("nan")
    budgets = [plan.budget for plan, kept in zip(plans, candidates, strict=True) if kept]
    wide = widen_interval(estimates[best], find_band_critical_value(contributions) / pointwise)
    return estimates, BestBudget(plans[best].budget, wide, min(budgets), max(budgets), bool(candidates[nearest]))


def mark_possible_best_points(profits: Array, contributions: Array, spread: Array, seed: int = 0) -> Array:
    """Return a mask of the points (m,) that may have the largest profit, with 95 % confidence.

    Parameters
    ----------
    profits, spread
        (m,) estimates and their standard errors.
    contributions
        (units, m) centred contributions of rows or clusters to each, up to a common factor.
    """
    covariance = (contributions.T @ contributions).astype(np.float64)
    size = np.sqrt(np.diag(covariance))
    scale = np.divide(spread, size, out=np.zeros_like(spread), where=size > 0)
    covariance *= scale * scale[:, None]  # in the unit of the estimates
    variance = np.diag(covariance)
    se = np.sqrt(np.maximum(np.add.outer(variance, variance) - 2 * covariance, 0.0))  # of the differences
    se[se <= 1e-6 * max(float(spread.max()), 1e-300)] = 0.0  # the same plan twice, up to rounding
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = np.random.default_rng(seed).standard_normal((N_ERROR_DRAWS, len(root))) @ root.T
    one_sided = 2 * COVERAGE - 1
    slack = t_quantile(max(len(contributions) - 1, 1), one_sided) / t_quantile(1e9, one_sided)
    candidates = np.ones(len(profits), dtype=bool)
    for j in range(len(profits)):
        others = np.flatnonzero(se[j] > 0)
        surely_better = (se[j] == 0) & (profits > profits[j] + PROFIT_TOLERANCE * np.abs(profits[j]))
        if len(others):
            errors = ((draws[:, others] - draws[:, [j]]) / se[j, others]).max(axis=1)
            reach = slack * max(float(np.quantile(errors, COVERAGE)), 0.0)
            candidates[j] = not ((profits[others] - profits[j]) > reach * se[j, others]).any()
        candidates[j] &= not surely_better.any()
    return candidates
