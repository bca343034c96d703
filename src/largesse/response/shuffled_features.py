"""Held-out rows whose features are shuffled, one at a time: what models expect of them says which features matter.

Encoded columns of a feature are shuffled among rows of one fold: text of many values is encoded without a row's own fold, so
nothing that the row itself told comes in by the way. Some rows suffice to know how many decisions a feature moves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from largesse.data import Encoder
from largesse.records import Array, Shuffled

MOST = 3_000  # rows
CELLS = 200_000  # rows × features, if there are more features
LEAST = 500  # rows, however many features there are

Predict = Callable[[Array, int], Array]  # encoded features (n, p) and the place of a fold → curves (n, K)


def shuffle_features(predict: Predict, encoder: Encoder, X: Array, fold: Array) -> Shuffled | None:
    """Return what is expected of some rows (n, p), with folds (n,), when each feature in turn is shuffled among them.

    `predict` gives the curves of rows by what did not see a fold. None where there is nothing to shuffle.
    """
    sources = np.array(encoder.sources)
    features = tuple(dict.fromkeys(encoder.sources))
    if not features or not len(X):
        return None
    most = int(np.clip(CELLS // len(features), LEAST, MOST))
    rows = np.arange(0, len(X), max(-(-len(X) // most), 1))
    folds, place = np.unique(fold, return_inverse=True)
    some, place = X[rows], place[rows]
    curves: list[Array] = []
    for number, feature in enumerate(features):
        rng, changed = np.random.default_rng([number, len(rows)]), some.copy()
        columns = np.flatnonzero(sources == feature)
        found: Array | None = None
        for f in range(len(folds)):
            mine = np.flatnonzero(place == f)
            if len(mine):
                changed[np.ix_(mine, columns)] = some[np.ix_(rng.permutation(mine), columns)]
                part = predict(changed[mine], f)
                found = np.empty((len(rows), part.shape[1]), dtype=np.float32) if found is None else found
                found[mine] = part
        assert found is not None
        curves.append(found)
    return Shuffled(features, rows, np.stack(curves))
