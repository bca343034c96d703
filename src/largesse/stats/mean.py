"""A mean with its standard error and 95 % interval; rows may have weights and come in clusters."""

from __future__ import annotations

import numpy as np

from largesse.records import Array, Estimate

COVERAGE = 0.95


def mean_estimate(values: Array, weight: Array | None = None, cluster: Array | None = None) -> Estimate:
    """Return the weighted mean of `values` (n,), its standard error over rows or clusters, and a t interval.

    The standard error is the jackknife's: how far the mean moves as each row or cluster is left out. Without clusters and
    weights it is the textbook's. With large clusters it exceeds the one made from sums over clusters, which ignores that a
    large cluster pulls the mean towards itself.

    >>> mean_estimate(np.array([1.0, 2.0, 3.0, 4.0])).estimate
    2.5
    """
    return t_interval(*leave_out(values, weight, cluster))


def leave_out(values: Array, weight: Array | None = None, cluster: Array | None = None) -> tuple[float, Array]:
    """Return the weighted mean, and how far each row or cluster moves it (units,): how far it falls without that one."""
    whole = float(len(values)) if weight is None else float(weight.sum())
    mean = float(values.sum() if weight is None else weight @ values) / whole
    parts: Array = values - mean  # influence of every row on the mean, times its weight
    mass: Array | float = 1.0
    if weight is not None:
        parts *= weight
        mass = weight
    if cluster is not None:
        _, own = np.unique(cluster, return_inverse=True)  # part of a log need not have every cluster
        parts, mass = np.bincount(own, weights=parts), np.bincount(own, weights=weight)
    if len(parts) > 1:
        with np.errstate(divide="ignore", invalid="ignore"):  # without a row that has all the weight there is no mean
            parts /= whole - mass
    return mean, parts


def t_interval(mean: float, moves: Array) -> Estimate:
    """Return a mean with its standard error and t interval, by how far each row or cluster moves it (units,)."""
    units = len(moves)
    if units < 2:
        return Estimate(mean, float("nan"), float("nan"), float("nan"))
    squares = moves * moves
    se = float(np.sqrt((units - 1) / units * squares.sum()))
    reach = t_reach(squares) * se
    return Estimate(mean, se, mean - reach, mean + reach)


def t_reach(squares: Array) -> float:
    """Return how many standard errors a t interval reaches, by the squares (units,) that made the standard error."""
    return t_quantile(_freedom(squares))


def _freedom(squares: Array) -> float:
    """Return the degrees of freedom of a standard error made from squares (units,).

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
    """Return how many standard errors an interval reaches to either side, by its degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + coverage / 2))
