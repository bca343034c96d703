"""The mean response at each level, straight from the rows: as logged, weighted by 1 / propensity, and where it falls."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from largesse.records import FEW_ROWS, Array, Estimate, Log
from largesse.stats import estimate_mean, is_rare, t_quantile

NAN = float("nan")
FEW_CASES = 5  # with fewer ones, or fewer zeros, a t interval of a share is too short


@dataclass(frozen=True)
class Fall:
    """The weighted mean response at a level lies below that at a cheaper one."""

    high: int  # the cheaper level
    low: int
    by: float
    se: float  # of the difference
    sure: float  # how many standard errors it is, after allowing for few rows, clusters and cases


@dataclass(frozen=True)
class MeanCurve:
    """The mean response at each level."""

    raw: tuple[Estimate, ...]  # (K,) as logged
    weighted: tuple[Estimate, ...]  # (K,) rows weighted by 1 / propensity
    falls: tuple[Fall, ...]  # of the weighted means, the surest first; only between levels with enough rows


def measure_curve(log: Log, propensity: Array) -> MeanCurve:
    """Measure the mean response at each level, its interval, and every fall from a cheaper level to a dearer one."""
    plain, rare = log.scaled_weights, is_rare(log.response)
    raw, weighted, rows = [], [], []
    for k in range(len(log.levels)):
        own = log.level == k
        raw.append(_level_mean(log, own, plain))
        rows.append(_count_effective((plain / propensity)[own]))
        scores, tail = _score_level(log, propensity, plain, k)
        weighted.append(_widen(estimate_mean(scores, plain, log.cluster, tail if rare else None), log, own, rows[-1]))
    falls = []
    for high, low in combinations(range(len(rows)), 2):
        if min(rows[high], rows[low]) < FEW_ROWS or not weighted[low].estimate < weighted[high].estimate:
            continue
        (one, first), (two, second) = (_score_level(log, propensity, plain, k) for k in (high, low))
        fall = estimate_mean(one - two, plain, log.cluster, first - second if rare else None)
        floor = _least_se(log, weighted[high], rows[high]) + _least_se(log, weighted[low], rows[low])
        falls.append(_measure_fall(high, low, fall, floor))
    return MeanCurve(tuple(raw), tuple(weighted), tuple(sorted(falls, key=lambda fall: -fall.sure)))


def _score_level(log: Log, propensity: Array, weight: Array, level: int) -> tuple[Array, Array]:
    """Return scores (n,) whose mean is the weighted mean response at a level, and what weighted responses add to them."""
    ratio = (log.level == level) / propensity
    part = float(weight @ ratio) / float(weight.sum())
    if not part > 0:
        return np.full(len(log), np.nan), np.zeros(len(log))
    mean = float(weight @ (ratio * log.response)) / float(weight.sum()) / part
    return mean + ratio * (log.response - mean) / part, ratio * log.response / part


def _measure_fall(high: int, low: int, fall: Estimate, floor: float) -> Fall:
    """Return a fall with how sure it is; the interval's reach allows for few clusters and heavy rows."""
    reach = (fall.high - fall.low) / 2 / t_quantile(1e9)
    se = max(reach, float(np.sqrt(floor))) if np.isfinite(reach) else 0.0
    return Fall(high, low, fall.estimate, fall.se, fall.estimate / se if se > 0 else 0.0)


def _least_se(log: Log, mean: Estimate, rows: float) -> float:
    """Return the square of the standard error that a share has at least: that of Agresti and Coull, never zero."""
    if not log.binary:
        return 0.0
    share = (min(max(mean.estimate, 0.0), 1.0) * rows + 2) / (rows + 4)
    return share * (1 - share) / (rows + 4)


def _level_mean(log: Log, own: Array, weight: Array) -> Estimate:
    if not own.any() or not weight[own].sum() > 0:
        return Estimate(NAN, NAN, NAN, NAN)
    response, cluster = log.response[own], None if log.cluster is None else log.cluster[own]
    found = estimate_mean(response, weight[own], cluster, response if is_rare(log.response) else None)
    return _widen(found, log, own, _count_effective(weight[own]))


def _count_effective(weight: Array) -> float:
    """Return how many rows of equal weight say as much as these (Kish)."""
    squares = float(weight @ weight)
    return float(weight.sum()) ** 2 / squares if squares > 0 else 0.0


def _widen(found: Estimate, log: Log, own: Array, rows: float) -> Estimate:
    """Return the estimate with an interval that few rows, or rows that all agree, can really support.

    The interval of a share is then the exact binomial one; an amount that never varied has none.
    """
    if not own.any() or not np.isfinite(found.estimate):
        return found
    response = log.response[own]
    constant = bool(response.min() == response.max())
    if not log.binary:
        return Estimate(found.estimate, NAN, NAN, NAN) if constant else found
    share = min(max(found.estimate, 0.0), 1.0)
    if not constant and rows >= FEW_ROWS and min(share, 1 - share) * rows >= FEW_CASES:
        return found
    if constant and log.cluster is not None:  # rows of one cluster may agree for a reason of their own
        rows = min(rows, float(len(np.unique(log.cluster[own]))))
    low, high = bound_share(share * rows, rows)
    return Estimate(found.estimate, found.se if found.se > 0 else NAN, low, high)


def bound_share(cases: float, rows: float) -> tuple[float, float]:
    """Return the exact 95 % interval of a share (Clopper and Pearson); rows need not be whole.

    >>> [round(end, 3) for end in bound_share(0, 3)]
    [0.0, 0.708]
    """
    from scipy.special import betaincinv

    if rows <= 0:
        return 0.0, 1.0
    low = float(betaincinv(cases, rows - cases + 1, 0.025)) if cases > 0 else 0.0
    high = float(betaincinv(cases + 1, rows - cases, 0.975)) if cases < rows else 1.0
    return low, high
