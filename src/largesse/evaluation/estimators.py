"""Off-policy estimators (IPS, doubly robust, …) with a common interface, listed in `ESTIMATORS`.

Each takes the rows of a log under a policy (`EstimatorRows`) and returns `EstimateTerms`: the estimate is mean(plain) +
mean(top) / mean(bottom). From these follow the influence of every row, hence intervals, paired differences and bands, and the
bootstrap. With w the ratio of the policy's probability of the logged level to the log's, q the curve under the policy, and
e = r − f̂ the residual at the logged level:

=========  ====================================  ==========================================================
direct     q                                     trusts the curves; no weights, all of their bias
ips        w r                                   trusts the propensities; unbiased, high variance
snips      Σ w r / Σ w                           the same, with weights that sum to one
dr         q + w e                               right if either is right: the default
sndr       q + Σ w e / Σ w                       the same, with weights that sum to one
switch     q + w e where w ≤ τ                   leaves rows of large weight to the curves
dros       q + λ w / (w² + λ) e                  shrinks large weights instead ("optimistic shrinkage")
=========  ====================================  ==========================================================

τ and λ minimise the estimated bias² + variance (Su, Dimakopoulou, Krishnamurthy and Dudík 2020). The spread of rows does not
show the bias that direct, switch and dros accept, so their intervals include that of dr.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from largesse.allocation import map_to_supported_levels, replace_unsupported_levels, replace_unsupported_probabilities
from largesse.records import Array, Scores

MAX_TUNING_ROWS = 20_000  # a constant needs no more rows to be chosen well
N_TUNING_CONSTANTS = 10


@dataclass(frozen=True, eq=False)
class EstimatorRows:
    """Input of an off-policy estimator: each row's importance ratio, outcome, prediction and residual."""

    direct: Array  # (n,) the curve, averaged over the policy's probabilities
    ratio: Array  # (n,) the policy's probability of the logged level / the log's
    residual: Array  # (n,) outcome − curve at the logged level
    outcome: Array  # (n,)
    weight: Array | None = None  # (n,); None: all equal


@dataclass(frozen=True, eq=False)
class EstimateTerms:
    """Row-wise terms (n,) of an off-policy estimate mean(plain) + mean(top) / mean(bottom)."""

    plain: Array | None  # (n,)
    top: Array | None = None  # (n,)
    bottom: Array | None = None  # (n,)


def is_level_array(policy: Array) -> bool:
    """Test if a policy array holds levels (n,), not probabilities."""
    return policy.ndim == 1 and np.issubdtype(policy.dtype, np.integer)


def make_estimator_rows(
    curves: Array, level: Array, outcome: Array, propensity: Array, policy: Array, weight: Array | None = None
) -> EstimatorRows:
    """Compute the importance ratio and the residual of each logged row under a policy.

    Parameters
    ----------
    curves
        (n, K) out-of-fold predictions of the outcome.
    level, outcome, propensity
        (n,) the logged level, its outcome, and the probability with which the level was chosen.
    policy
        Levels (n,), probabilities (n, K), or probabilities (K,) for all rows.
    weight
        (n,) of the rows.
    """
    rows = np.arange(len(level))
    residual = curves[rows, level]
    if is_level_array(policy):
        direct, ratio = curves[rows, policy], (policy == level) / propensity
    elif policy.ndim == 1:
        direct, ratio = curves @ policy.astype(curves.dtype), policy[level] / propensity
    else:
        direct, ratio = np.einsum("nk,nk->n", policy, curves), policy[rows, level] / propensity
    np.subtract(outcome, residual, out=residual)
    return EstimatorRows(direct, ratio, residual, outcome, weight)


def restrict_policy_to_support(scores: Scores, policy: Array) -> Array:
    """Replace the levels of a policy that the log does not support by supported levels."""
    if scores.allowed is None:
        return policy
    supported = map_to_supported_levels(scores.allowed)
    return (replace_unsupported_levels if is_level_array(policy) else replace_unsupported_probabilities)(
        policy, supported
    )


def make_response_rows(scores: Scores, policy: Array) -> EstimatorRows:
    """Compute the importance ratios and the response residuals of a scored log under a policy."""
    policy = restrict_policy_to_support(scores, policy)
    return make_estimator_rows(scores.curves, scores.level, scores.response, scores.propensity, policy, scores.weight)


def make_cost_rows(scores: Scores, policy: Array) -> EstimatorRows:
    """Compute the importance ratios and the cost residuals of a scored log under a policy."""
    policy = restrict_policy_to_support(scores, policy)
    return make_estimator_rows(
        scores.expected_costs, scores.level, scores.paid, scores.propensity, policy, scores.weight
    )


@dataclass(frozen=True)
class Estimator:
    """Off-policy estimator of a policy's value, with a short description."""

    terms: Callable[[EstimatorRows], EstimateTerms]
    description: str
    biased: bool = False  # by as much as its curves are wrong: its interval includes that of `dr`


ESTIMATORS = {
    "direct": Estimator(
        lambda rows: EstimateTerms(rows.direct),
        "the model's predictions alone; the interval includes that of dr",
        biased=True,
    ),
    "ips": Estimator(
        lambda rows: EstimateTerms(rows.ratio * rows.outcome), "responses weighted by inverse propensities"
    ),
    "snips": Estimator(
        lambda rows: EstimateTerms(None, rows.ratio * rows.outcome, rows.ratio), "ips with weights that sum to one"
    ),
    "dr": Estimator(
        lambda rows: _add_weighted_residuals(rows, rows.ratio.copy()),
        "predictions corrected by weighted residuals (doubly robust)",
    ),
    "sndr": Estimator(
        lambda rows: EstimateTerms(rows.direct, rows.ratio * rows.residual, rows.ratio),
        "dr with weights that sum to one",
    ),
    "switch": Estimator(
        lambda rows: _add_weighted_residuals(
            rows, _drop_large_ratios(rows.ratio, tune_ratio_bound(rows, _drop_large_ratios))
        ),
        "dr with rows of large weight left to the model; the interval includes that of dr",
        biased=True,
    ),
    "dros": Estimator(
        lambda rows: _add_weighted_residuals(
            rows, _shrink_large_ratios(rows.ratio, tune_ratio_bound(rows, _shrink_large_ratios))
        ),
        "dr with large weights shrunk; the interval includes that of dr",
        biased=True,
    ),
}


def measure_influence(terms: EstimateTerms, weight: Array | None = None) -> Array:
    """Return influence values (n,) whose weighted mean is the estimate."""
    if terms.top is None or terms.bottom is None:
        assert terms.plain is not None
        return terms.plain
    top, bottom = (compute_weighted_mean(column, weight) for column in (terms.top, terms.bottom))
    if bottom == 0:  # no row of the log got the level that the policy would give
        return np.full(len(terms.top), np.nan)
    ratio = top / bottom
    out: Array = terms.bottom * (-ratio / bottom)
    out += terms.top / bottom
    out += ratio
    if terms.plain is not None:
        out += terms.plain
    return out


def compute_weighted_mean(values: Array, weight: Array | None) -> float:
    """Return the weighted mean of values (n,)."""
    return float(values.mean()) if weight is None else float(weight @ values / weight.sum())


# -- bounded weights --------------------------------------------------------------------------------------------------


def _add_weighted_residuals(rows: EstimatorRows, ratio: Array) -> EstimateTerms:
    """Return the doubly robust terms: prediction + importance ratio × residual."""
    ratio *= rows.residual
    ratio += rows.direct
    return EstimateTerms(ratio)


def _drop_large_ratios(ratio: Array, constant: float) -> Array:
    return np.where(ratio <= constant, ratio, 0.0)


def _shrink_large_ratios(ratio: Array, constant: float) -> Array:
    if not np.isfinite(constant):
        return ratio.copy()
    out = ratio * ratio
    out += constant
    np.divide(ratio, out, out=out)
    out *= constant
    return out


def tune_ratio_bound(rows: EstimatorRows, bound: Callable[[Array, float], Array]) -> float:
    """Choose the bound of importance ratios that minimises the estimated bias² + variance.

    The squared bias is measured against the unbiased estimate, minus its expected noise, so that a small log does not
    mistake noise for bias.
    """
    n = len(rows.ratio)
    sample = slice(None, None, max(n // MAX_TUNING_ROWS, 1))
    ratio, residual, direct = rows.ratio[sample], rows.residual[sample], rows.direct[sample]
    weight = np.ones(len(ratio)) if rows.weight is None else rows.weight[sample]
    weight = weight / weight.sum()
    positive = ratio[ratio > 0]
    constants = np.zeros(0)
    if len(positive):  # from the median of the positive weights to the largest
        constants = np.geomspace(max(float(np.median(positive)), 1e-12), float(positive.max()), N_TUNING_CONSTANTS)
        constants = constants**2 if bound is _shrink_large_ratios else constants[:-1]
    best, smallest = np.inf, _compute_weighted_variance(direct + ratio * residual, weight) / n
    for constant in constants:
        bounded = bound(ratio, constant)
        missed = (ratio - bounded) * residual
        bias = float(weight @ missed)
        noise = _compute_weighted_variance(missed, weight) / len(ratio)
        risk = max(bias**2 - noise, 0.0) + _compute_weighted_variance(direct + bounded * residual, weight) / n
        if risk < smallest:
            best, smallest = constant, risk
    return best


def _compute_weighted_variance(values: Array, weight: Array) -> float:
    """Return the weighted variance of values, for weights that sum to one."""
    centred = values - weight @ values
    centred *= centred
    return float(weight @ centred)
