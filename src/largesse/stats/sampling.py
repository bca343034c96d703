"""Random samples of rows and clusters, and random levels with given probabilities."""

from __future__ import annotations

import numpy as np

from largesse.records import Array

MIN_LEVEL_SHARE = 0.5  # of an equal share; a rare level gets at least this much of a sample


def sample_rows(count: int, most: int, seed: int | np.random.Generator = 0) -> Array:
    """Draw at most `most` of `count` row indices at random, and return the indices in ascending order.

    >>> sample_rows(3, 10), len(sample_rows(100, 10))
    (array([0, 1, 2]), 10)
    """
    return np.arange(count) if count <= most else np.sort(shuffle_rows(count, most, seed))


def shuffle_rows(count: int, most: int, seed: int | np.random.Generator = 0) -> Array:
    """Draw at most `most` of `count` row indices at random, and return the indices in random order."""
    return np.random.default_rng(seed).permutation(count)[:most]


def draw_levels(probabilities: Array, seed: int | np.random.Generator) -> Array:
    """Draw one random level per row from level probabilities (n, K).

    >>> draw_levels(np.array([[0.0, 1.0], [1.0, 0.0]]), 0)
    array([1, 0])
    """
    # The last threshold is left out: it is one up to rounding, and must not be passed.
    thresholds = np.cumsum(probabilities, axis=1)[:, :-1]
    return (np.random.default_rng(seed).random(len(probabilities))[:, None] >= thresholds).sum(axis=1)


def draw_levels_for_rows(probabilities: Array, rows: Array, seed: int) -> Array:
    """Draw random levels for some rows of a table, equal to those of a draw for the whole table.

    >>> every = np.full((5, 2), 0.5)
    >>> draw_levels_for_rows(every[2:], np.arange(2, 5), 0), draw_levels(every, 0)
    (array([0, 0, 1]), array([1, 0, 0, 0, 1]))
    """
    levels = np.empty(len(rows), dtype=np.int64)
    starts = np.flatnonzero(np.diff(rows, prepend=rows[:1] - 2) != 1)
    for start, end in zip(starts, [*starts[1:], len(rows)], strict=True):
        generator = np.random.PCG64(seed).advance(int(rows[start]))  # one number for each row before
        levels[start:end] = draw_levels(probabilities[start:end], np.random.Generator(generator))
    return levels


def allocate_sample_to_levels(counts: Array, most: int) -> Array:
    """Return the number (K,) of rows to sample at each level, at most `most` in total.

    Levels get their share of all rows. A rare level gets half of an equal share, or all its rows.

    >>> allocate_sample_to_levels(np.array([900, 90, 10]), 100), allocate_sample_to_levels(np.array([600, 400]), 100)
    (array([74, 16, 10]), array([60, 40]))
    """
    least = np.minimum(counts, int(MIN_LEVEL_SHARE * most / len(counts)))
    fixed = np.zeros(len(counts), dtype=bool)
    while True:
        left, whole = most - int(least[fixed].sum()), max(int(counts[~fixed].sum()), 1)
        exact = np.where(fixed, least, counts * min(left / whole, 1.0))
        wanted = np.floor(exact).astype(np.int64)
        short = wanted < least
        if not short.any():
            break
        fixed |= short
    more = np.argsort(wanted - exact, kind="stable")[: max(min(most, int(counts.sum())) - int(wanted.sum()), 0)]
    wanted[more] += wanted[more] < counts[more]  # what rounding left over
    return wanted


def draw_rows_by_level(level: Array, K: int, most: int, seed: int = 0) -> tuple[Array, Array | None]:
    """Draw at most `most` rows, stratified by level (n,), and return their indices and sampling weights.

    Rows are returned in their original order. A weight is the number of rows that a row represents; the weights are
    None if all are equal.
    """
    counts = np.bincount(level, minlength=K)
    wanted = allocate_sample_to_levels(counts, most)
    rng = np.random.default_rng(seed)
    drawn = [rng.permutation(np.flatnonzero(level == k))[:many] for k, many in enumerate(wanted)]
    rows = np.sort(np.concatenate(drawn))
    if not (wanted > np.ceil(counts * (most / max(len(level), 1)))).any():  # no level got more than its share
        return rows, None
    return rows, (counts / np.maximum(wanted, 1))[level[rows]]


def draw_clusters(cluster: Array, most: int, seed: int = 0) -> Array:
    """Draw whole clusters at random, and return the indices of their rows, at most `most` in total."""
    _, code, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(sizes))
    drawn = np.zeros(len(sizes), dtype=bool)
    drawn[order[np.cumsum(sizes[order]) <= most]] = True
    return np.flatnonzero(drawn[code])
