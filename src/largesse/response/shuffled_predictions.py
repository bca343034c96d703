"""Permutation importance: predictions of held-out rows with one feature shuffled at a time.

Encoded columns of a feature are shuffled among rows of one fold: text with many values is encoded without a row's own fold, so
nothing of the row's own response leaks in. A sample of rows suffices.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from largesse.data import Encoder
from largesse.records import Array, ShuffledPredictions

MAX_SHUFFLED_ROWS = 3_000  # rows
MAX_SHUFFLED_CELLS = 200_000  # rows × features, if there are more features
MIN_ROWS = 500  # for any number of features

Predict = Callable[[Array, int], Array]  # encoded features (n, p) and the place of a fold → curves (n, K)


def predict_shuffled_features(predict: Predict, encoder: Encoder, X: Array, fold: Array) -> ShuffledPredictions | None:
    """Predict a sample of held-out rows once per feature, with this feature's values shuffled.

    `X` (n, p) are encoded features, `fold` (n,) the folds of the rows. `predict` returns curves by the model without a fold.
    """
    sources = np.array(encoder.sources)
    features = tuple(dict.fromkeys(encoder.sources))
    if not features or not len(X):
        return None
    most = int(np.clip(MAX_SHUFFLED_CELLS // len(features), MIN_ROWS, MAX_SHUFFLED_ROWS))
    rows = np.arange(0, len(X), max(-(-len(X) // most), 1))
    folds, place = np.unique(fold, return_inverse=True)
    some, place = X[rows], place[rows]
    curves: list[Array] = []
    for number, feature in enumerate(features):
        rng, changed = np.random.default_rng([number, len(rows)]), some.copy()
        columns = np.flatnonzero(sources == feature)
        shuffled: Array | None = None
        for f in range(len(folds)):
            mine = np.flatnonzero(place == f)
            if len(mine):
                changed[np.ix_(mine, columns)] = some[np.ix_(rng.permutation(mine), columns)]
                predicted = predict(changed[mine], f)
                shuffled = np.empty((len(rows), predicted.shape[1]), dtype=np.float32) if shuffled is None else shuffled
                shuffled[mine] = predicted
        assert shuffled is not None
        curves.append(shuffled)
    return ShuffledPredictions(features, rows, np.stack(curves))
