"""Features that give too much away: one that nearly equals the response, or one that nearly equals the level.

The first was usually recorded after the response; a model that learns from it looks excellent and plans nonsense. The
second leaves nobody to compare with. Each feature alone predicts held-out rows by the mean of its group.
"""

from __future__ import annotations

import numpy as np

from largesse.data import group_column
from largesse.records import Array, Leak, Log
from largesse.stats import shuffle_rows

GROUPS = 50
ROWS = 50_000
SUSPECT, SURE = 0.5, 0.8  # shares of the variance that a feature explains on held-out rows


def find_leaks(log: Log, seed: int = 0) -> tuple[Leak, ...]:
    """Return the suspected features, the surest first; of a large log, by its sample."""
    log = log.seen
    rng = np.random.default_rng(seed)
    rows = np.sort(shuffle_rows(len(log), ROWS, rng))
    half = rng.integers(0, 2, len(rows))
    targets = {"response": log.response[rows][:, None], "level": np.eye(len(log.levels))[log.level[rows]]}
    if log.paid is not None:
        targets["cost"] = log.paid[rows][:, None]
    found = []
    for name in log.features.column_names:
        code = group_column(log.features.column(name).take(rows), GROUPS).code
        for of, target in targets.items():
            share = measure_explained(code, target, half)
            if share >= SUSPECT:
                found.append(Leak(name, of, share))
    return tuple(sorted(found, key=lambda leak: -leak.explained))


def measure_explained(code: Array, target: Array, half: Array) -> float:
    """Return the share of the variance of targets (n, m) that means of groups (n,) explain on the other half (n,) of the rows.

    Sums over groups and halves are all that is needed: Σ (t − g)² = Σ t² − 2 g Σ t + g² n within a group.
    """
    target = target - target.mean(axis=0)  # keeps the sums of squares small
    groups = int(code.max()) + 1
    place = half * groups + code
    sizes = np.bincount(place, minlength=2 * groups).reshape(2, groups)
    if not sizes.sum(axis=1).all():
        return 0.0
    left = whole = 0.0
    for column in target.T:
        sums = np.bincount(place, weights=column, minlength=2 * groups).reshape(2, groups)
        squares = np.bincount(half, weights=column**2, minlength=2)
        for train, test in ((0, 1), (1, 0)):
            mean = sums[train].sum() / sizes[train].sum()
            guess = np.where(sizes[train] > 0, sums[train] / np.maximum(sizes[train], 1), mean)
            left += squares[test] - 2 * guess @ sums[test] + guess**2 @ sizes[test]
            whole += squares[test] - 2 * mean * sums[test].sum() + mean**2 * sizes[test].sum()
    return float(max(1.0 - left / whole, 0.0)) if whole > 0 else 0.0
