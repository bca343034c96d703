"""Fast propensity estimates from one index of the features, the expected level number.

A company that targets by a score gives dearer levels to customers with higher scores, or with lower ones. So the expected
number of the level holds most of what features tell about levels, and one regression learns it, where a classifier learns
a score for every level. The base of a response model is a further feature: companies like to target by expected responses.
"""

from __future__ import annotations

import numpy as np

from largesse.propensity.covariate_balancing import MAX_PROPENSITY_ROWS
from largesse.propensity.propensity_estimation import MIN_PROPENSITY, make_logistic_fitter
from largesse.records import Array, Log
from largesse.stats import limit_to_one_thread, sample_rows

INDEX_RIDGE = 0.02  # per row, of a regression on standardised features
INDEX_INVERSE_PENALTY = 0.1  # of the regression of the levels on the index
MAX_INDEX_DEVIATIONS = 4.0  # standard deviations at which columns are clipped


def estimate_single_index_propensities(log: Log, X: Array, base: Array, fold: Array, seed: int = 0) -> Array:
    """Estimate out-of-fold propensities (n,) from an index of the features: the expected level number.

    X are encoded features (n, p), `base` the base scores (n,).

    >>> from largesse.data import log_from_arrays
    >>> rng = np.random.default_rng(0)
    >>> score = rng.normal(size=3000)
    >>> level = (rng.random(3000) < np.where(score > 0, 0.8, 0.2)).astype(int)
    >>> log = log_from_arrays(score[:, None], level, score + level)
    >>> propensity = estimate_single_index_propensities(log, score[:, None], np.zeros(3000), np.arange(3000) % 5)
    >>> bool(propensity[(level == 1) & (score > 1)].mean() > 0.6), bool(propensity[(level == 1) & (score < -1)].mean() < 0.4)
    (True, True)
    """
    features = np.column_stack([X, base]).astype(np.float32)
    number = log.level / max(len(log.levels) - 1, 1) - 0.5
    index, propensity = np.empty((len(log), 2)), np.empty(len(log))
    parts = [(fold == f, _sample_rows_of_other_folds(fold, f, seed)) for f in np.unique(fold)]
    with limit_to_one_thread():
        for test, training in parts:
            index[test] = _predict_level_numbers(features, number, log.weights, training, test)
        columns = _standardise_and_clip(np.column_stack([index, base]))
        columns = np.column_stack([columns, columns**2 - 1.0, columns**3 / 3.0 - columns])
        fit = make_logistic_fitter(INDEX_INVERSE_PENALTY)
        for test, training in parts:
            classifier = fit(columns[training], log.level[training], log.weights[training], len(log.levels))
            propensity[test] = classifier(columns[test])[np.arange(int(test.sum())), log.level[test]]
    return np.maximum(propensity, MIN_PROPENSITY)


def _sample_rows_of_other_folds(fold: Array, left_out: int, seed: int) -> Array:
    """Return the rows outside a fold, or a random sample of these rows."""
    others = np.flatnonzero(fold != left_out)
    return others[sample_rows(len(others), MAX_PROPENSITY_ROWS, seed)]


def _standardise_and_clip(columns: Array) -> Array:
    """Standardise columns (n, q), and clip them at a few standard deviations."""
    scaled = (columns - columns.mean(axis=0)) / (columns.std(axis=0) + 1e-9)
    return np.clip(scaled, -MAX_INDEX_DEVIATIONS, MAX_INDEX_DEVIATIONS)


def _predict_level_numbers(features: Array, number: Array, weight: Array, training: Array, test: Array) -> Array:
    """Predict the level numbers of test rows by ridge regression and by boosted trees, as columns (m, 2)."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import Ridge

    weights = weight[training] / (weight[training].mean() or 1.0)
    sample_weight = None if np.ptp(weights) == 0 else weights  # bins of weighted rows are slow to find
    scaled = _standardise_and_clip(features)
    ridge = Ridge(alpha=INDEX_RIDGE * len(training)).fit(scaled[training], number[training], sample_weight)
    trees = HistGradientBoostingRegressor(
        max_iter=60, max_leaf_nodes=8, max_bins=32, min_samples_leaf=40, early_stopping=False, random_state=0
    ).fit(features[training], number[training], sample_weight)
    return np.column_stack([ridge.predict(scaled[test]), trees.predict(features[test])])
