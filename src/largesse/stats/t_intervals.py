"""Means with standard errors and 95 % t intervals, for rows with weights and clusters."""

from __future__ import annotations

import numpy as np

from largesse.records import Array, Estimate
from largesse.stats.binomial_intervals import COVERAGE


def effective_sample_size(weight: Array) -> float:
    """Return Kish's effective sample size of rows with weights (n,).

    >>> effective_sample_size(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    squares = float(weight @ weight)
    return float(weight.sum()) ** 2 / squares if squares > 0 else 0.0


def t_estimate(values: Array, weight: Array | None = None, cluster: Array | None = None) -> Estimate:
    """Return the weighted mean of values (n,), with its standard error and t interval.

    The standard error is the jackknife's: how far the mean moves as each row or cluster is left out. Without clusters and
    weights it is the textbook's. With large clusters it exceeds the one made from sums over clusters, which ignores that a
    large cluster pulls the mean towards itself.

    >>> t_estimate(np.array([1.0, 2.0, 3.0, 4.0])).estimate
    2.5
    """
    return t_interval(*jackknife_mean(values, weight, cluster))


def jackknife_mean(values: Array, weight: Array | None = None, cluster: Array | None = None) -> tuple[float, Array]:
    """Return the weighted mean of values (n,), and the jackknife influence of each row or cluster.

    An influence is the decrease of the mean without that row or cluster.
    """
    whole = float(len(values)) if weight is None else float(weight.sum())
    mean = float(values.sum() if weight is None else weight @ values) / whole
    parts: Array = values - mean  # influence of every row on the mean, times its weight
    mass: Array | float = 1.0
    if weight is not None:
        parts *= weight
        mass = weight
    if cluster is not None:
        _, unit = np.unique(cluster, return_inverse=True)  # part of a log need not have every cluster
        parts, mass = np.bincount(unit, weights=parts), np.bincount(unit, weights=weight)
    if len(parts) > 1:
        with np.errstate(divide="ignore", invalid="ignore"):  # without a row that has all the weight there is no mean
            parts /= whole - mass
    return mean, parts


def t_interval(mean: float, influences: Array) -> Estimate:
    """Return the standard error and t interval of a mean from its jackknife influences (units,)."""
    units = len(influences)
    if units < 2:
        return Estimate(mean, float("nan"), float("nan"), float("nan"))
    squares = influences * influences
    se = float(np.sqrt((units - 1) / units * squares.sum()))
    reach = t_half_width(squares) * se
    return Estimate(mean, se, mean - reach, mean + reach)


def t_half_width(squares: Array) -> float:
    """Return the half-width of a t interval in standard errors, from squared jackknife influences (units,)."""
    return t_quantile(_degrees_of_freedom(squares))


def _degrees_of_freedom(squares: Array) -> float:
    """Return the degrees of freedom of a standard error from squared jackknife influences (units,).

    Where few units carry most of the sum (rows with large weights, or one buyer among a thousand), the standard error is
    itself uncertain: the sum varies like a χ² with 2 units / (kurtosis − 1) degrees of freedom. The textbook's units − 1
    hold wherever the kurtosis is not clearly above 3, that of a normal distribution.
    """
    units, whole = len(squares), float(squares.sum())
    if not whole > 0:
        return units - 1
    shares = squares / whole  # whose squares cannot vanish, however small the sum
    kurtosis = units * float(shares @ shares)
    kurtosis -= 2 * np.sqrt(24 / units)  # two standard errors: what random variation may add
    return min(units - 1, 2 * units / max(kurtosis - 1, 1e-9))


def t_quantile(freedom: float, coverage: float = COVERAGE) -> float:
    """Return the half-width of a t interval in standard errors, from the degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + coverage / 2))
