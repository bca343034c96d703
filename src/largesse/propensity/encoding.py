"""A log's features as numbers, for questions about its levels: text with many values becomes means of levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.data import Encoder
from largesse.records import Array, Log
from largesse.stats import sample_rows


@dataclass(frozen=True, eq=False)
class LevelFeatures:
    """Encoded features of some rows of a log."""

    X: Array  # (m, p) float32
    rows: Array  # (m,) which rows of the log these are
    names: tuple[str, ...]  # the features that vary
    sources: tuple[str, ...]  # (p,) the feature that each column comes from

    def sample(self, most: int, seed: int = 0) -> LevelFeatures:
        """Return at most `most` of the rows, drawn at random."""
        if len(self.rows) <= most:
            return self
        drawn = sample_rows(len(self.rows), most, seed)
        return LevelFeatures(self.X[drawn], self.rows[drawn], self.names, self.sources)


def encode_for_levels(log: Log, most: int | None = None, seed: int = 0, fold: Array | None = None) -> LevelFeatures:
    """Encode the features of a log, or of at most `most` of its rows, drawn at random; of a fold (n,) without its levels.

    >>> from largesse.data import log_from_arrays
    >>> encode_for_levels(log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0])).X.shape
    (4, 4)
    """
    rows = np.arange(len(log)) if most is None else sample_rows(len(log), most, seed)
    part = log if len(rows) == len(log) else log.take(rows)
    encoder = Encoder()
    X = encoder.fit_transform(
        part.features, part.level, discrete=True, seed=seed, fold=None if fold is None else fold[rows]
    )
    return LevelFeatures(X, rows, tuple(encoder.features), tuple(encoder.sources))
