"""A log's features as numbers, for questions about its levels: text with many values becomes means of levels."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    encoder: Encoder
    weight: Array | None = (
        None  # (m,) of the rows, where it is not the log's: a sample has more of some levels than the log
    )

    def sample(self, most: int, seed: int = 0) -> LevelFeatures:
        """Return at most `most` of the rows, drawn at random."""
        if len(self.rows) <= most:
            return self
        drawn = sample_rows(len(self.rows), most, seed)
        weight = None if self.weight is None else self.weight[drawn]
        return replace(self, X=self.X[drawn], rows=self.rows[drawn], weight=weight)


def encode_for_levels(log: Log, most: int | None = None, seed: int = 0, fold: Array | None = None) -> LevelFeatures:
    """Encode the features of a log, or of at most `most` of its rows, drawn at random; of a fold (n,) without its levels.

    Of a large log, it is the sample that is encoded.

    >>> from largesse.data import log_from_arrays
    >>> encode_for_levels(log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0])).X.shape
    (4, 4)
    """
    seen, sample = log.seen, log.sample
    rows = np.arange(len(seen)) if most is None else sample_rows(len(seen), most, seed)
    part = seen if len(rows) == len(seen) else seen.take(rows)
    rows, weight = (rows, None) if sample is None else (sample.rows[rows], part.weight)
    encoder = Encoder()
    X = encoder.fit_transform(
        part.features, part.level, discrete=True, seed=seed, fold=None if fold is None else fold[rows]
    )
    return LevelFeatures(X, rows, tuple(encoder.features), tuple(encoder.sources), encoder, weight)
