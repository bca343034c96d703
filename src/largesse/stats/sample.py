"""Random rows and random levels."""

from __future__ import annotations

import numpy as np

from largesse.records import Array


def sample_rows(count: int, most: int, seed: int | np.random.Generator = 0) -> Array:
    """Return the indices of at most `most` of `count` rows, drawn at random, in their original order.

    >>> sample_rows(3, 10), len(sample_rows(100, 10))
    (array([0, 1, 2]), 10)
    """
    return np.arange(count) if count <= most else np.sort(shuffle_rows(count, most, seed))


def shuffle_rows(count: int, most: int, seed: int | np.random.Generator = 0) -> Array:
    """Return the indices of at most `most` of `count` rows, drawn at random, in random order."""
    return np.random.default_rng(seed).permutation(count)[:most]


def draw_levels(probabilities: Array, seed: int | np.random.Generator) -> Array:
    """Return one level (n,) for each row of probabilities (n, K).

    >>> draw_levels(np.array([[0.0, 1.0], [1.0, 0.0]]), 0)
    array([1, 0])
    """
    # The last threshold is left out: it is one up to rounding, and must not be passed.
    thresholds = np.cumsum(probabilities, axis=1)[:, :-1]
    return (np.random.default_rng(seed).random(len(probabilities))[:, None] >= thresholds).sum(axis=1)


def draw_rows_levels(probabilities: Array, rows: Array, seed: int) -> Array:
    """Return what `draw_levels` with this seed gives some rows (n,) of a larger table, by their probabilities (n, K).

    >>> every = np.full((5, 2), 0.5)
    >>> draw_rows_levels(every[2:], np.arange(2, 5), 0), draw_levels(every, 0)
    (array([0, 0, 1]), array([1, 0, 0, 0, 1]))
    """
    levels = np.empty(len(rows), dtype=np.int64)
    starts = np.flatnonzero(np.diff(rows, prepend=rows[:1] - 2) != 1)
    for start, end in zip(starts, [*starts[1:], len(rows)], strict=True):
        generator = np.random.PCG64(seed).advance(int(rows[start]))  # one number for each row before
        levels[start:end] = draw_levels(probabilities[start:end], np.random.Generator(generator))
    return levels


def standardise(X: Array) -> Array:
    """Return the columns of X (n, p) that vary, each with mean 0 and standard deviation 1."""
    spread = X.std(axis=0)
    return ((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))[:, spread > 0]
