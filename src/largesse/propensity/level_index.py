"""Propensities from a one-dimensional index of the features: the expected number of the level.

A company that targets by a score gives dearer levels to customers with higher scores, or with lower ones. So the expected
number of the level holds most of what features tell about levels, and one regression learns it, where a classifier learns
a score for every level. The base of a response model is a further feature: companies like to target by expected responses.
"""

from __future__ import annotations

import numpy as np

from largesse.propensity.covariate_balancing import MAX_PROPENSITY_ROWS
from largesse.propensity.estimate import MIN_PROPENSITY, make_logistic_fit
from largesse.records import Array, Log
from largesse.stats import limit_to_one_thread, sample_rows

INDEX_RIDGE = 0.02  # per row, of a regression on standardised features
INDEX_INVERSE_PENALTY = 0.1  # of the regression of the levels on the index
MAX_INDEX_DEVIATIONS = 4.0  # standard deviations at which columns are clipped


def estimate_by_index(log: Log, X: Array, base: Array, fold: Array, seed: int = 0) -> Array:
    """Return out-of-fold propensities (n,) of the logged levels, from encoded features (n, p) and base scores (n,).

    >>> from largesse.data import log_from_arrays
    >>> rng = np.random.default_rng(0)
    >>> score = rng.normal(size=3000)
    >>> level = (rng.random(3000) < np.where(score > 0, 0.8, 0.2)).astype(int)
    >>> log = log_from_arrays(score[:, None], level, score + level)
    >>> propensity = estimate_by_index(log, score[:, None], np.zeros(3000), np.arange(3000) % 5)
    >>> bool(propensity[(level == 1) & (score > 1)].mean() > 0.6), bool(propensity[(level == 1) & (score < -1)].mean() < 0.4)
    (True, True)
    """
    features = np.column_stack([X, base]).astype(np.float32)
    number = log.level / max(len(log.levels) - 1, 1) - 0.5
    index, propensity = np.empty((len(log), 2)), np.empty(len(log))
    parts = [(fold == f, _sample_others(fold, f, seed)) for f in np.unique(fold)]
    with limit_to_one_thread():
        for test, training in parts:
            index[test] = _predict_numbers(features, number, log.weights, training, test)
        columns = _standardise(np.column_stack([index, base]))
        columns = np.column_stack([columns, columns**2 - 1.0, columns**3 / 3.0 - columns])
        fit = make_logistic_fit(INDEX_INVERSE_PENALTY)
        for test, training in parts:
            classifier = fit(columns[training], log.level[training], log.weights[training], len(log.levels))
            propensity[test] = classifier(columns[test])[np.arange(int(test.sum())), log.level[test]]
    return np.maximum(propensity, MIN_PROPENSITY)


def _sample_others(fold: Array, left_out: int, seed: int) -> Array:
    """Return the rows of all other folds, or a random sample of them."""
    others = np.flatnonzero(fold != left_out)
    return others[sample_rows(len(others), MAX_PROPENSITY_ROWS, seed)]


def _standardise(columns: Array) -> Array:
    """Standardise and clip columns (n, q)."""
    scaled = (columns - columns.mean(axis=0)) / (columns.std(axis=0) + 1e-9)
    return np.clip(scaled, -MAX_INDEX_DEVIATIONS, MAX_INDEX_DEVIATIONS)


def _predict_numbers(features: Array, number: Array, weight: Array, training: Array, test: Array) -> Array:
    """Return the expected level numbers (m, 2) of test rows by ridge regression and by boosted trees."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import Ridge

    weights = weight[training] / (weight[training].mean() or 1.0)
    sample_weight = None if np.ptp(weights) == 0 else weights  # bins of weighted rows are slow to find
    scaled = _standardise(features)
    ridge = Ridge(alpha=INDEX_RIDGE * len(training)).fit(scaled[training], number[training], sample_weight)
    trees = HistGradientBoostingRegressor(
        max_iter=60, max_leaf_nodes=8, max_bins=32, min_samples_leaf=40, early_stopping=False, random_state=0
    ).fit(features[training], number[training], sample_weight)
    return np.column_stack([ridge.predict(scaled[test]), trees.predict(features[test])])
