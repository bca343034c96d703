"""With which probability each row's own level was chosen: from the log when it says so, else estimated.

The estimate is a cross-fitted multinomial logistic regression on the features. It is never clipped silently: how many
rows were raised to the floor comes back with the numbers.
"""

from __future__ import annotations

import warnings

import numpy as np

from largesse.data import Encoder
from largesse.records import Array, Log

FLOOR = 0.01
FITTING_ROWS = 200_000  # a propensity model learns nothing from further rows that its folds do not already show


def propensities(log: Log, fold: Array, seed: int = 0) -> tuple[Array, str, int]:
    """Return the propensity of the logged level (n,), "given" or "estimated", and how many were raised to the floor."""
    if log.propensity is not None:
        return log.propensity, "given", 0
    found = np.empty(len(log))
    for f in np.unique(fold):
        test = fold == f
        shares = _fit_predict(log.take(~test), log.take(test), seed)
        found[test] = shares[np.arange(int(test.sum())), log.level[test]]
    low = found < FLOOR
    return np.maximum(found, FLOOR), "estimated", int(low.sum())


def _fit_predict(train: Log, test: Log, seed: int) -> Array:
    """Return the chances (m, K) of every level for the rows of `test`."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    K = len(train.levels)
    encoder = Encoder()
    X = encoder.fit_transform(train.features, train.level, discrete=True, seed=seed)
    rows = np.random.default_rng(seed).permutation(len(train))[:FITTING_ROWS]
    shares = np.tile(np.bincount(train.level, minlength=K) / len(train), (len(test), 1))
    present = np.unique(train.level[rows])
    if X.shape[1] == 0 or len(present) < 2:
        return shares
    model = LogisticRegression(C=0.1, max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[rows], train.level[rows], sample_weight=None if train.weight is None else train.weight[rows])
    shares = np.zeros((len(test), K))
    shares[:, model.classes_] = model.predict_proba(encoder.transform(test.features))
    return shares
