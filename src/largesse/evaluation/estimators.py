"""Off-policy estimators behind one interface; `ESTIMATORS` lists them with a sentence each.

Each takes what a log says about a policy (`Judged`) and returns `Terms`: the estimate is mean(plain) + mean(top) /
mean(bottom). From these follow the influence of every row, hence intervals, paired differences and bands, and the
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

from largesse.records import Array, Scores

CHOOSING_ROWS = 20_000  # a constant needs no more rows to be chosen well
CONSTANTS = 10


@dataclass(frozen=True, eq=False)
class Judged:
    """What a log says about one policy and one outcome, per row."""

    direct: Array  # (n,) the curve, averaged over the policy's probabilities
    ratio: Array  # (n,) the policy's probability of the logged level / the log's
    residual: Array  # (n,) outcome − curve at the logged level
    outcome: Array  # (n,)
    weight: Array | None = None  # (n,); None: all equal


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of an estimate mean(plain) + mean(top) / mean(bottom); means are weighted by the rows' weights."""

    plain: Array | None  # (n,)
    top: Array | None = None  # (n,)
    bottom: Array | None = None  # (n,)


def judge_rows(
    curves: Array, level: Array, outcome: Array, propensity: Array, policy: Array, weight: Array | None = None
) -> Judged:
    """Return what a log says about a policy.

    Parameters
    ----------
    curves
        (n, K) predictions of the outcome by models that did not see the row.
    level, outcome, propensity
        (n,) what was done, what came of it, and the probability with which it was done.
    policy
        Levels (n,), probabilities (n, K), or probabilities (K,) for all rows.
    weight
        (n,) of the rows.
    """
    rows = np.arange(len(level))
    own = curves[rows, level]
    if policy.ndim == 1 and np.issubdtype(policy.dtype, np.integer):
        direct, ratio = curves[rows, policy], (policy == level) / propensity
    elif policy.ndim == 1:
        direct, ratio = curves @ policy.astype(curves.dtype), policy[level] / propensity
    else:
        direct, ratio = np.einsum("nk,nk->n", policy, curves), policy[rows, level] / propensity
    np.subtract(outcome, own, out=own)
    return Judged(direct, ratio, own, outcome, weight)


def judge_response(scores: Scores, policy: Array) -> Judged:
    """Return what scores say about the response under a policy."""
    return judge_rows(scores.curves, scores.level, scores.response, scores.propensity, policy, scores.weight)


def judge_cost(scores: Scores, policy: Array) -> Judged:
    """Return what scores say about the cost under a policy: an outcome like the response, paid at the logged level."""
    return judge_rows(scores.expected_costs, scores.level, scores.paid, scores.propensity, policy, scores.weight)


def _direct(rows: Judged) -> Terms:
    return Terms(rows.direct)


def _ips(rows: Judged) -> Terms:
    return Terms(rows.ratio * rows.outcome)


def _snips(rows: Judged) -> Terms:
    return Terms(None, rows.ratio * rows.outcome, rows.ratio)


def _dr(rows: Judged) -> Terms:
    return Terms(_corrected(rows, rows.ratio.copy()))


def _sndr(rows: Judged) -> Terms:
    return Terms(rows.direct, rows.ratio * rows.residual, rows.ratio)


def _switch(rows: Judged) -> Terms:
    return Terms(_corrected(rows, _switched(rows.ratio, choose_constant(rows, _switched))))


def _dros(rows: Judged) -> Terms:
    return Terms(_corrected(rows, _shrunk(rows.ratio, choose_constant(rows, _shrunk))))


@dataclass(frozen=True)
class Estimator:
    """One way to estimate a policy's value, and what it does in a few words."""

    terms: Callable[[Judged], Terms]
    description: str
    biased: bool = False  # by as much as its curves are wrong: its interval includes that of `dr`


ESTIMATORS = {
    "direct": Estimator(_direct, "the model's predictions alone; the interval includes that of dr", biased=True),
    "ips": Estimator(_ips, "responses weighted by inverse propensities"),
    "snips": Estimator(_snips, "ips with weights that sum to one"),
    "dr": Estimator(_dr, "predictions corrected by weighted residuals (doubly robust)"),
    "sndr": Estimator(_sndr, "dr with weights that sum to one"),
    "switch": Estimator(
        _switch, "dr with rows of large weight left to the model; the interval includes that of dr", biased=True
    ),
    "dros": Estimator(_dros, "dr with large weights shrunk; the interval includes that of dr", biased=True),
}


def measure_influence(terms: Terms, weight: Array | None = None) -> Array:
    """Return scores (n,) whose weighted mean is the estimate and whose spread is that of its influence function."""
    if terms.top is None or terms.bottom is None:
        assert terms.plain is not None
        return terms.plain
    top, bottom = (weighted_mean(column, weight) for column in (terms.top, terms.bottom))
    if bottom == 0:  # no row of the log got the level that the policy would give
        return np.full(len(terms.top), np.nan)
    ratio = top / bottom
    out: Array = terms.bottom * (-ratio / bottom)
    out += terms.top / bottom
    out += ratio
    if terms.plain is not None:
        out += terms.plain
    return out


def weighted_mean(values: Array, weight: Array | None) -> float:
    """Return the weighted mean of values (n,)."""
    return float(values.mean()) if weight is None else float(weight @ values / weight.sum())


# -- bounded weights --------------------------------------------------------------------------------------------------


def _corrected(rows: Judged, ratio: Array) -> Array:
    """Return direct + ratio · residual, in the array of the ratio."""
    ratio *= rows.residual
    ratio += rows.direct
    return ratio


def _switched(ratio: Array, constant: float) -> Array:
    return np.where(ratio <= constant, ratio, 0.0)


def _shrunk(ratio: Array, constant: float) -> Array:
    if not np.isfinite(constant):
        return ratio.copy()
    out = ratio * ratio
    out += constant
    np.divide(ratio, out, out=out)
    out *= constant
    return out


def choose_constant(rows: Judged, bound: Callable[[Array, float], Array]) -> float:
    """Return the constant with the least estimated bias² + variance; infinity, which leaves weights alone, is a candidate.

    The squared bias is measured against the unbiased estimate, minus its expected noise, so that a small log does not
    mistake noise for bias.
    """
    n = len(rows.ratio)
    some = slice(None, None, max(n // CHOOSING_ROWS, 1))
    ratio, residual, direct = rows.ratio[some], rows.residual[some], rows.direct[some]
    weight = np.ones(len(ratio)) if rows.weight is None else rows.weight[some]
    weight = weight / weight.sum()
    best, least = np.inf, _variance(direct + ratio * residual, weight) / n
    for constant in _candidates(ratio, squared=bound is _shrunk):
        kept = bound(ratio, constant)
        missed = (ratio - kept) * residual
        bias = float(weight @ missed)
        noise = _variance(missed, weight) / len(ratio)
        risk = max(bias**2 - noise, 0.0) + _variance(direct + kept * residual, weight) / n
        if risk < least:
            best, least = constant, risk
    return best


def _candidates(ratio: Array, *, squared: bool) -> Array:
    """Return constants from the median of the positive weights to the largest; for shrinkage, their squares."""
    used = ratio[ratio > 0]
    if len(used) == 0:
        return np.zeros(0)
    tops = np.geomspace(max(float(np.median(used)), 1e-12), float(used.max()), CONSTANTS)
    return tops**2 if squared else tops[:-1]


def _variance(values: Array, weight: Array) -> float:
    """Return the weighted variance; weights sum to one."""
    centred = values - weight @ values
    centred *= centred
    return float(weight @ centred)
