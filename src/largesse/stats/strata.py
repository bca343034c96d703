"""Samples of rows that keep every level, or whole clusters."""

from __future__ import annotations

import numpy as np

from largesse.records import Array

LEAST = 0.5  # of an equal share: what a rare level gets of a sample at least


def share_rows(counts: Array, most: int) -> Array:
    """Return how many rows of each level (K,) make up a sample of at most `most`.

    Levels get their share of all rows. A rare one gets half of what it would get if all got the same, or all its rows.

    >>> share_rows(np.array([900, 90, 10]), 100), share_rows(np.array([600, 400]), 100)
    (array([74, 16, 10]), array([60, 40]))
    """
    least = np.minimum(counts, int(LEAST * most / len(counts)))
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


def draw_rows(level: Array, K: int, most: int, seed: int = 0) -> tuple[Array, Array | None]:
    """Return at most `most` rows drawn at random from every level (n,), in order, and how many rows each of them stands for.

    The latter is None where all stand for the same number.
    """
    counts = np.bincount(level, minlength=K)
    wanted = share_rows(counts, most)
    rng = np.random.default_rng(seed)
    drawn = [rng.permutation(np.flatnonzero(level == k))[:many] for k, many in enumerate(wanted)]
    rows = np.sort(np.concatenate(drawn))
    if not (wanted > np.ceil(counts * (most / max(len(level), 1)))).any():  # nobody got more than a share
        return rows, None
    return rows, (counts / np.maximum(wanted, 1))[level[rows]]


def draw_clusters(cluster: Array, most: int, seed: int = 0) -> Array:
    """Return the rows, in order, of clusters drawn at random: as many whole clusters (n,) as have at most `most` rows."""
    _, own, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(sizes))
    kept = np.zeros(len(sizes), dtype=bool)
    kept[order[np.cumsum(sizes[order]) <= most]] = True
    return np.flatnonzero(kept[own])
