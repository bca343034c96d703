"""Profit: what a response is worth, less what it costs. Intervals, and the budget that leaves most.

The profit of a row is its score of the response times the value of a response, less its score of the cost. Value and spend of
a row go together (who buys also redeems), so the interval is that of their difference, row by row, and not made from two
intervals.

*The best budget.* Plans at every budget of the frontier are judged on the same held-out rows. A budget may be the best unless
another is clearly better: unless a difference in profit exceeds what 95 % of the largest correlated errors of all differences
from that budget reach. The budget that is truly best of all that are compared is therefore kept in 95 % of all logs, however
many there are (multiple comparisons with the best; Hsu 1981, with correlations as they are).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from largesse.evaluation.bootstrap import bootstrap_interval
from largesse.evaluation.estimates import estimate_ratio, make_terms, score_policy
from largesse.evaluation.estimators import Terms
from largesse.evaluation.frontier_estimate import DRAWS, ENOUGH, count_units, find_reach, sum_units
from largesse.evaluation.influence import Influence, join_intervals
from largesse.records import Array, BestBudget, Estimate, HeldOutPlan, Profit, Scores
from largesse.stats import COVERAGE, t_quantile

ROUNDING = 1e-12


def measure_profit(scores: Scores, policy: Array, worth: float, estimator: str = "dr") -> Influence:
    """Return the influence of each row on the profit of a policy, if one unit of response is worth so much."""
    value, spend = score_policy(scores, policy, estimator)
    return value * worth - spend


def estimate_profit(
    scores: Scores, policy: Array, worth: float, estimator: str = "dr", interval: str = "influence", seed: int = 0
) -> Profit:
    """Estimate what a policy leaves after costs, alone and against giving everyone the cheapest level."""
    value, spend = score_policy(scores, policy, estimator)
    least, cheapest = score_policy(scores, np.zeros(len(scores.level), dtype=np.int64), estimator)
    found = _mean(scores, value * worth - spend)
    if interval == "bootstrap":
        terms = _join_terms(*make_terms(scores, policy, estimator), worth)
        found = join_intervals(bootstrap_interval(terms, scores.weight, scores.cluster, seed=seed), found)
    more, paid = (value - least) * worth, spend - cheapest
    return Profit(worth, found, _mean(scores, more - paid), estimate_ratio(scores, more, paid))


def _join_terms(value: Terms, spend: Terms, worth: float) -> Terms:
    """Return the terms of the profit; both outcomes of a policy have the same weights below the line."""
    plain, top = (
        _subtract(None if one is None else worth * one, other)
        for one, other in ((value.plain, spend.plain), (value.top, spend.top))
    )
    return Terms(plain, top, value.bottom if value.bottom is not None else spend.bottom)


def _subtract(one: Array | None, other: Array | None) -> Array | None:
    if one is None or other is None:
        return one if other is None else -other
    return one - other


# -- the best budget --------------------------------------------------------------------------------------------------


def trace_profit(
    scores: Scores, plans: Sequence[HeldOutPlan], worth: float, budget: float, estimator: str = "dr"
) -> tuple[list[Estimate], BestBudget]:
    """Estimate the profit of each plan, and which of their budgets leaves most; `budget` is that of the run."""
    units = count_units(scores)
    some = slice(None, None, -(-units // ENOUGH))  # errors of many rows correlate as those of some do
    parts = np.empty((len(range(units)[some]), len(plans)), dtype=np.float32)
    found = []
    for j, plan in enumerate(plans):
        own = measure_profit(scores, plan.levels, worth, estimator)
        found.append(_mean(scores, own))
        parts[:, j] = sum_units(scores, own.values - found[-1].estimate)[some]
    profits = np.array([estimate.estimate for estimate in found])
    spread = np.array([estimate.se for estimate in found])
    may = find_candidates(profits, parts, spread)
    best, here = int(np.argmax(profits)), int(np.argmin([abs(plan.budget - budget) for plan in plans]))
    usual = t_quantile(len(parts) - 1) if len(parts) > 1 else float("nan")
    budgets = [plan.budget for plan, kept in zip(plans, may, strict=True) if kept]
    wide = _widen(found[best], find_reach(parts) / usual)
    return found, BestBudget(plans[best].budget, wide, min(budgets), max(budgets), bool(may[here]))


def find_candidates(profits: Array, parts: Array, spread: Array, seed: int = 0) -> Array:
    """Return which points (m,) are not clearly below another: the truly best is among them in 95 % of all logs.

    Parameters
    ----------
    profits, spread
        (m,) estimates and their standard errors.
    parts
        (units, m) centred contributions of rows or clusters to each, up to a common factor.
    """
    covariance = (parts.T @ parts).astype(np.float64)
    size = np.sqrt(np.diag(covariance))
    turn = np.divide(spread, size, out=np.zeros_like(spread), where=size > 0)
    covariance *= turn * turn[:, None]  # in the unit of the estimates
    apart = np.sqrt(np.maximum(np.add.outer(np.diag(covariance), np.diag(covariance)) - 2 * covariance, 0.0))
    apart[apart <= 1e-6 * max(float(spread.max()), 1e-300)] = 0.0  # the same plan twice, but for rounding
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = np.random.default_rng(seed).standard_normal((DRAWS, len(root))) @ root.T
    one_sided = 2 * COVERAGE - 1
    slack = t_quantile(max(len(parts) - 1, 1), one_sided) / t_quantile(1e9, one_sided)
    kept = np.ones(len(profits), dtype=bool)
    for j in range(len(profits)):
        others = np.flatnonzero(apart[j] > 0)
        known = (apart[j] == 0) & (profits > profits[j] + ROUNDING * np.abs(profits[j]))
        if len(others):
            errors = ((draws[:, others] - draws[:, [j]]) / apart[j, others]).max(axis=1)
            reach = slack * max(float(np.quantile(errors, COVERAGE)), 0.0)
            kept[j] = not ((profits[others] - profits[j]) > reach * apart[j, others]).any()
        kept[j] &= not known.any()
    return kept


def _widen(found: Estimate, times: float) -> Estimate:
    low, high = (found.estimate + times * (end - found.estimate) for end in (found.low, found.high))
    return replace(found, low=low, high=high)


def _mean(scores: Scores, influence: Influence) -> Estimate:
    return influence.estimate(scores.weight, scores.cluster)
