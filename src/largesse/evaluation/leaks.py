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
    """Return the suspected features, the surest first."""
    rng = np.random.default_rng(seed)
    rows = np.sort(shuffle_rows(len(log), ROWS, rng))
    half = rng.integers(0, 2, len(rows))
    targets = {"response": log.response[rows][:, None], "level": np.eye(len(log.levels))[log.level[rows]]}
    found = []
    for name in log.features.column_names:
        code = group_column(log.features.column(name).take(rows), GROUPS).code
        for of, target in targets.items():
            share = measure_explained(code, target, half)
            if share >= SUSPECT:
                found.append(Leak(name, of, share))
    return tuple(sorted(found, key=lambda leak: -leak.explained))


def measure_explained(code: Array, target: Array, half: Array) -> float:
    """Return the share of the variance of targets (n, m) that groups (n,) explain on the half they were not learnt from."""
    left = whole = 0.0
    for held in (0, 1):
        train, test = half != held, half == held
        if not train.any() or not test.any():
            return 0.0
        mean = target[train].mean(axis=0)
        sizes = np.bincount(code[train], minlength=int(code.max()) + 1)
        for j in range(target.shape[1]):
            sums = np.bincount(code[train], weights=target[train, j], minlength=len(sizes))
            guess = np.where(sizes > 0, sums / np.maximum(sizes, 1), mean[j])[code[test]]
            left += float(((target[test, j] - guess) ** 2).sum())
            whole += float(((target[test, j] - mean[j]) ** 2).sum())
    return max(1.0 - left / whole, 0.0) if whole > 0 else 0.0
