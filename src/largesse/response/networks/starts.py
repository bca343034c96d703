"""Where the common curve of a network starts: at a guess, or at a plain regression on the rows of each fold's network."""

from __future__ import annotations

import numpy as np

from largesse.records import Array, Log
from largesse.response.ladder import dose_shares
from largesse.response.linear import Rows, fit_regression_folds
from largesse.response.networks.fitted import Scale
from largesse.response.networks.settings import FIRST_STEP
from largesse.stats import logit

REGRESSION_ROWS = 20_000  # enough to know where to start
RIDGE = 0.03


def guess_curve(log: Log, scale: Scale) -> Array:
    """Return small equal increments around the mean response: scores (K,)."""
    K = len(log.levels)
    middle = scale.standardise(np.average(log.response, weights=log.weight))
    if scale.bounded:
        middle = logit(middle, inside=0.0) if 0 < middle < 1 else np.zeros(())
    return middle + FIRST_STEP * (np.arange(K) - (K - 1) / 2)


def regression_curves(X: Array, log: Log, fold: Array, parts: Array, scale: Scale) -> Array:
    """Return the mean scores (parts, K) of regressions that leave each part out."""
    some = np.arange(len(log))[:: -(-len(log) // REGRESSION_ROWS)]
    response = scale.standardise(log.response[some])
    weight = log.weights[some]
    cluster = None if log.cluster is None else log.cluster[some]
    K, doses = len(log.levels), dose_shares(log.levels)
    rows = Rows(X[some], log.level[some], response, weight, K, scale.bounded, doses, cluster)
    kept = fit_regression_folds(rows, fold[some], RIDGE)
    middle = (weight / weight.sum()) @ X[some]
    order = np.unique(fold[some]).tolist()
    curves = []
    for part in parts.tolist():
        fit = kept[order.index(part)]
        curves.append(fit.intercept + middle @ fit.coef + fit.level_effects)
    return np.array(curves)
