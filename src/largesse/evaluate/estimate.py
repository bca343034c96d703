"""A mean with its standard error and 95 % interval; rows may have weights and come in clusters."""

from __future__ import annotations

import numpy as np

from largesse.records import Array, Estimate

COVERAGE = 0.95


def mean_estimate(values: Array, weight: Array | None = None, cluster: Array | None = None) -> Estimate:
    """Return the weighted mean of `values` (n,), its standard error over rows or clusters, and a t interval.

    >>> mean_estimate(np.array([1.0, 2.0, 3.0, 4.0])).estimate
    2.5
    """
    whole = float(len(values)) if weight is None else float(weight.sum())
    mean = float(values.sum() if weight is None else weight @ values) / whole
    parts: Array = values - mean  # influence of every row on the mean, times its weight
    if weight is not None:
        parts *= weight
    if cluster is not None:
        _, own = np.unique(cluster, return_inverse=True)  # part of a log need not have every cluster
        parts = np.bincount(own, weights=parts)
    units = len(parts)
    if units < 2:
        return Estimate(mean, float("nan"), float("nan"), float("nan"))
    se = float(np.sqrt(units / (units - 1) * (parts @ parts)) / whole)
    reach = t_quantile(units - 1) * se
    return Estimate(mean, se, mean - reach, mean + reach)


def t_quantile(freedom: float, coverage: float = COVERAGE) -> float:
    """Return how many standard errors an interval reaches with so many degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + coverage / 2))
