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


def standardise(X: Array) -> Array:
    """Return the columns of X (n, p) that vary, each with mean 0 and standard deviation 1."""
    spread = X.std(axis=0)
    return ((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))[:, spread > 0]
