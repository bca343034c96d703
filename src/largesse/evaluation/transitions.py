"""Decomposition of a plan's gain over the logged policy by level, and the transitions between levels.

Whom the plan gives a level depends on features alone, so what these customers bring more than before has a doubly robust
estimate: the mean over all rows of (score of the plan's level − response) where the plan gives that level, else zero. Those of
all levels add up to the plan's value less that of what was done.

Who *had* which level does not depend on features alone. Rows say how many move from one level to another; what such a move
brings is what the model expects, on rows that it has not seen.
"""

from __future__ import annotations

import numpy as np

from largesse.evaluation.estimates import score_log, score_policy
from largesse.records import Array, Changes, LevelChange, Move, Scores, ValueSpend


def measure_changes(scores: Scores, levels: Array) -> Changes:
    """Return what a plan with levels (n,) for a log's rows changes; estimates are doubly robust.

    >>> from largesse.evaluation import crossfit
    >>> from largesse.worlds import simulate
    >>> log = simulate("averaged", n=500, seed=1).log
    >>> found = measure_changes(crossfit(log), np.full(500, 3))
    >>> [change.level for change in found.levels], sum(move.rows for move in found.moves)
    ([3], 500)
    """
    weight, cluster = scores.weight, scores.cluster
    after, before = score_policy(scores, levels), score_log(scores)
    more = [one - other for one, other in zip(after, before, strict=True)]
    whole = float(weight.sum())
    found = []
    for level in np.unique(levels):
        mine = levels == level
        gained, spent = (part.within(mine).estimate(weight, cluster) for part in more)
        found.append(LevelChange(int(level), float(weight[mine].sum()) / whole, gained, spent))
    ends = [
        ValueSpend(value.estimate(weight, cluster), spend.estimate(weight, cluster)) for value, spend in (before, after)
    ]
    return Changes(ends[0], ends[1], tuple(found), _list_moves(scores, levels))


def _list_moves(scores: Scores, levels: Array) -> tuple[Move, ...]:
    """Return who moves from which level to which, with what the model expects of it."""
    K, rows, weight = scores.curves.shape[1], np.arange(len(levels)), scores.weight
    cell = scores.level.astype(np.int64) * K + levels
    counts = np.bincount(cell, minlength=K * K)
    sizes = np.bincount(cell, weights=weight, minlength=K * K)
    means = []
    for table in (scores.curves, scores.expected_costs):
        gained = table[rows, levels] - table[rows, scores.level]
        means.append(np.bincount(cell, weights=weight * gained, minlength=K * K) / np.maximum(sizes, 1e-300))
    return tuple(
        Move(k // K, k % K, int(counts[k]), float(sizes[k] / weight.sum()), float(means[0][k]), float(means[1][k]))
        for k in np.flatnonzero(counts).tolist()
    )
