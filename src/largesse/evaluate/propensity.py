"""With which probability each row's own level was chosen: from the log when it says so, else estimated.

The estimate is a cross-fitted multinomial logistic regression on the features, its ridge penalty chosen on held-out
rows: an overfitted propensity is a wild weight, an overshrunk one leaves confounding in. It is never clipped silently:
how many rows were raised to the floor comes back with the numbers.
"""

from __future__ import annotations

import warnings

import numpy as np

from largesse.data import Encoder
from largesse.data.threads import one_thread
from largesse.evaluate.estimate import mean_estimate
from largesse.records import Array, Log

FLOOR = 0.01
STRENGTHS = (0.01, 0.03, 0.1, 1.0)  # of the features: inverses of the ridge penalty
CHOOSING_ROWS = 10_000  # more rows do not make the choice of a strength better, only slower
CHOOSING_FOLDS = 3
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
    encoder = Encoder()
    X = encoder.fit_transform(train.features, train.level, discrete=True, seed=seed)
    rows = np.random.default_rng(seed).permutation(len(train))[:FITTING_ROWS]
    level = train.level[rows]
    # A strength is weighed against the rows, so weights of another unit must not change it.
    weight = np.ones(len(rows)) if train.weight is None else train.weight[rows] / train.weight.mean()
    with one_thread():
        strength = chosen_strength(X[rows], level, weight, len(train.levels))
        return _shares(X[rows], level, weight, strength, encoder.transform(test.features), len(train.levels))


def chosen_strength(X: Array, level: Array, weight: Array, K: int) -> float:
    """Return the largest strength whose held-out log loss is within one paired standard error of the least.

    Where rows cannot tell, the features are trusted more rather than less: what is shrunk away is no longer adjusted for.
    """
    X, level, weight = X[:CHOOSING_ROWS], level[:CHOOSING_ROWS], weight[:CHOOSING_ROWS]
    fold = np.arange(len(level)) % CHOOSING_FOLDS
    losses = np.empty((len(STRENGTHS), len(level)))
    for f in range(CHOOSING_FOLDS):
        train, held = fold != f, np.flatnonzero(fold == f)
        for j, strength in enumerate(STRENGTHS):
            shares = _shares(X[train], level[train], weight[train], strength, X[held], K)
            losses[j, held] = -np.log(np.maximum(shares[np.arange(len(held)), level[held]], FLOOR))
    best = int(np.argmin(losses @ weight))
    worse = [mean_estimate(row - losses[best], weight) for row in losses]
    return max(s for s, e in zip(STRENGTHS, worse, strict=True) if e.estimate <= e.se or s == STRENGTHS[best])


def _shares(X: Array, level: Array, weight: Array, strength: float, asked: Array, K: int) -> Array:
    """Return the chances (m, K) of every level for the rows `asked` (m, p), learnt from X (n, p) and levels (n,)."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if X.shape[1] == 0 or len(np.unique(level)) < 2:
        return np.tile(np.bincount(level, weights=weight, minlength=K) / weight.sum(), (len(asked), 1))
    model = LogisticRegression(C=strength, max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, level, sample_weight=weight)
    shares = np.zeros((len(asked), K))
    shares[:, model.classes_] = model.predict_proba(asked)
    return shares
