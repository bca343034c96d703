"""Mean response at each level of a log: unweighted, weighted by 1 / propensity, and for groups of customers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from largesse.evaluation.plan_summary import MAX_SUMMARY_ROWS, choose_explaining_features
from largesse.evaluation.policy_estimates import measure_level_influence
from largesse.records import (
    MIN_LEVEL_ROWS,
    Array,
    Estimate,
    FeatureResponseCurves,
    GroupLevelResponse,
    GroupResponseCurve,
    Log,
    Scores,
)
from largesse.stats import effective_sample_size, estimate_skewed_mean, is_sparse_amount, t_quantile

MISSING = float("nan")
MIN_SHARE_CASES = 5  # with fewer ones, or fewer zeros, a t interval of a share is too short
MAX_CURVE_FEATURES = 2


@dataclass(frozen=True)
class MeanResponseFall:
    """Decrease of the weighted mean response from a cheaper level to a dearer level."""

    high: int  # the cheaper level
    low: int
    by: float
    se: float  # of the difference
    sure: float  # the fall in standard errors, after allowing for few rows, clusters and cases


@dataclass(frozen=True)
class MeanResponseCurve:
    """Mean response at each level, with all decreases from a cheaper to a dearer level."""

    raw: tuple[Estimate, ...]  # (K,) as logged
    weighted: tuple[Estimate, ...]  # (K,) rows weighted by 1 / propensity
    falls: tuple[MeanResponseFall, ...]  # of the weighted means, the surest first; only between levels with enough rows


def measure_mean_responses(log: Log, propensity: Array) -> MeanResponseCurve:
    """Measure the mean response at each level, with its interval, and all decreases between levels."""
    weight, rare = log.weights, is_sparse_amount(log.response)
    raw, weighted, rows = [], [], []
    for k in range(len(log.levels)):
        at_level = log.level == k
        raw.append(_estimate_level_mean(log, at_level, weight))
        rows.append(effective_sample_size((weight / propensity)[at_level]))
        scores, tail = _score_weighted_mean(log, propensity, weight, k)
        mean = estimate_skewed_mean(scores, weight, log.cluster, tail if rare else None)
        weighted.append(_widen_small_sample_interval(mean, log, at_level, rows[-1]))
    falls = []
    for high, low in combinations(range(len(rows)), 2):
        if min(rows[high], rows[low]) < MIN_LEVEL_ROWS or not weighted[low].estimate < weighted[high].estimate:
            continue
        (high_scores, high_tail), (low_scores, low_tail) = (
            _score_weighted_mean(log, propensity, weight, k) for k in (high, low)
        )
        fall = estimate_skewed_mean(
            high_scores - low_scores, weight, log.cluster, high_tail - low_tail if rare else None
        )
        # The interval's reach allows for few clusters and heavy rows.
        reach = (fall.high - fall.low) / 2 / t_quantile(1e9)
        floor = sum(bound_share_variance(weighted[k].estimate, rows[k]) for k in (high, low)) if log.binary else 0.0
        se = max(reach, float(np.sqrt(floor))) if np.isfinite(reach) else 0.0
        falls.append(MeanResponseFall(high, low, fall.estimate, fall.se, fall.estimate / se if se > 0 else 0.0))
    return MeanResponseCurve(tuple(raw), tuple(weighted), tuple(sorted(falls, key=lambda fall: -fall.sure)))


def _score_weighted_mean(log: Log, propensity: Array, weight: Array, level: int) -> tuple[Array, Array]:
    """Return influence values (n,) of a level's weighted mean response, and the responses' contributions to them."""
    ratio = (log.level == level) / propensity
    share = float(weight @ ratio) / float(weight.sum())
    if not share > 0:
        return np.full(len(log), np.nan), np.zeros(len(log))
    mean = float(weight @ (ratio * log.response)) / float(weight.sum()) / share
    return mean + ratio * (log.response - mean) / share, ratio * log.response / share


def bound_share_variance(share: float, rows: float) -> float:
    """Return a positive lower bound of the variance of an estimated share (Agresti and Coull)."""
    share = (min(max(share, 0.0), 1.0) * rows + 2) / (rows + 4)
    return share * (1 - share) / (rows + 4)


def _estimate_level_mean(log: Log, at_level: Array, weight: Array) -> Estimate:
    if not at_level.any() or not weight[at_level].sum() > 0:
        return Estimate(MISSING, MISSING, MISSING, MISSING)
    response, cluster = log.response[at_level], None if log.cluster is None else log.cluster[at_level]
    mean = estimate_skewed_mean(
        response, weight[at_level], cluster, response if is_sparse_amount(log.response) else None
    )
    return _widen_small_sample_interval(mean, log, at_level, effective_sample_size(weight[at_level]))


def _widen_small_sample_interval(mean: Estimate, log: Log, at_level: Array, rows: float) -> Estimate:
    """Widen the interval of a mean from few rows or from identical responses.

    The interval of a share is then the exact binomial one; an amount that never varied has none.
    """
    if not at_level.any() or not np.isfinite(mean.estimate):
        return mean
    response = log.response[at_level]
    constant = bool(response.min() == response.max())
    if not log.binary:
        return Estimate(mean.estimate, MISSING, MISSING, MISSING) if constant else mean
    share = min(max(mean.estimate, 0.0), 1.0)
    if not constant and rows >= MIN_LEVEL_ROWS and min(share, 1 - share) * rows >= MIN_SHARE_CASES:
        return mean
    if constant and log.cluster is not None:  # rows of one cluster may agree for a reason of their own
        rows = min(rows, float(len(np.unique(log.cluster[at_level]))))
    low, high = compute_exact_share_interval(share * rows, rows)
    return Estimate(mean.estimate, mean.se if mean.se > 0 else MISSING, low, high)


def compute_exact_share_interval(cases: float, rows: float) -> tuple[float, float]:
    """Return the exact 95 % interval of a share (Clopper and Pearson), also for fractional counts.

    >>> [round(end, 3) for end in compute_exact_share_interval(0, 3)]
    [0.0, 0.708]
    """
    from scipy.special import betaincinv

    if rows <= 0:
        return 0.0, 1.0
    low = float(betaincinv(cases, rows - cases + 1, 0.025)) if cases > 0 else 0.0
    high = float(betaincinv(cases + 1, rows - cases, 0.975)) if cases < rows else 1.0
    return low, high


# -- groups of customers ----------------------------------------------------------------------------------------------


def estimate_curves_by_feature(log: Log, scores: Scores, levels: Array) -> tuple[FeatureResponseCurves, ...]:
    """Estimate response curves of customer groups, for the features that best explain the planned levels (n,)."""
    seen, step = log.seen, max(-(-len(log.seen) // MAX_SUMMARY_ROWS), 1)
    places = np.arange(0, len(seen), step)
    rows, features = places, seen.features if step == 1 else seen.features.take(places)
    if log.sample is not None:  # rows of a sample have weights that make up for how they were drawn
        rows, weight = log.sample.rows[places], np.zeros(len(scores.weight))
        weight[log.sample.rows] = seen.weights
        scores = replace(scores, weight=weight)
    traced = []
    for chosen in choose_explaining_features(features, levels[rows])[:MAX_CURVE_FEATURES]:
        codes, labels = chosen.grouping.assign_groups(features.column(chosen.feature)), chosen.grouping.labels
        curves, sizes = (
            estimate_group_curves(scores, rows, codes, len(labels)),
            np.bincount(codes, minlength=len(labels)),
        )
        groups = zip(labels, sizes.tolist(), curves, strict=True)
        curves_of_groups = tuple(GroupResponseCurve(label, n, tuple(points)) for label, n, points in groups if points)
        traced.append(FeatureResponseCurves(chosen.feature, curves_of_groups))
    return tuple(traced)


def estimate_group_curves(scores: Scores, rows: Array, groups: Array, n_groups: int) -> list[list[GroupLevelResponse]]:
    """Estimate the mean response at every level (K) for each group of rows.

    `rows` (m,) are some rows of the log, and `groups` (m,) their groups, numbered from zero.

    >>> from largesse.evaluation import crossfit_scores
    >>> from largesse.worlds import simulate
    >>> log = simulate("averaged", n=500, seed=1).log
    >>> curves = estimate_group_curves(crossfit_scores(log), np.arange(500), np.arange(500) % 2, 2)
    >>> len(curves), len(curves[0]), sum(point.rows for curve in curves for point in curve)
    (2, 5, 500)
    """
    curves: list[list[GroupLevelResponse]] = [[] for _ in range(n_groups)]
    for k in range(scores.curves.shape[1]):
        value = measure_level_influence(scores, k).value
        for group in range(n_groups):
            members = rows[groups == group]
            weight, logged = scores.weight[members], members[scores.level[members] == k]
            cluster = None if scores.cluster is None else scores.cluster[members]
            if len(members) and weight.sum() > 0:
                model = float(weight @ scores.curves[members, k] / weight.sum())
                estimate = value.select_rows(members).estimate(weight, cluster)
                effective = effective_sample_size(scores.weight[logged] / scores.propensity[logged])
                curves[group].append(GroupLevelResponse(model, estimate, len(logged), effective))
    return curves
