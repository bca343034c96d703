"""Random assignment of rows to cross-validation folds, with whole clusters and evenly spread levels."""

from __future__ import annotations

import numpy as np

from largesse.errors import Problem, find_integer_problems, refuse
from largesse.records import Array, Log, LogSample

MIN_ROWS_FOR_THREE_FOLDS = 100_000
HOLD_OUT_FOLDS = 10  # a share of the log is held out in tenths


def choose_fold_count(rows: int) -> int:
    """Choose the default number of cross-validation folds from the number of rows of a log.

    Five, or three from `MIN_ROWS_FOR_THREE_FOLDS` rows on.

    >>> choose_fold_count(20_000), choose_fold_count(1_000_000)
    (5, 3)
    """
    return 3 if rows >= MIN_ROWS_FOR_THREE_FOLDS else 5


def assign_folds(log: Log, count: int = 5, seed: int = 0) -> Array:
    """Assign each row of a log to one of `count` folds, and return the fold numbers (n,).

    Without clusters the rows of each level are spread evenly over the folds; with clusters, whole clusters go to the fold
    that is smallest so far, the largest clusters first. Rows outside the sample of a large log have folds of their own, after
    those of the sample: no model sees them, but each of their folds is planned like a fresh set of customers.
    """
    refuse("folds", find_integer_problems(count, "the number of folds") + find_integer_problems(seed, "the seed"))
    if log.sample is not None:
        return _assign_around_sample(log, log.sample, count, seed)
    _check_fold_count(log, count)
    return _assign_rows(log.level, log.cluster, count, seed)


def _assign_rows(level: Array, cluster: Array | None, count: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    return _assign_by_level(level, count, rng) if cluster is None else _assign_by_cluster(cluster, count, rng)


def _assign_around_sample(log: Log, sample: LogSample, count: int, seed: int) -> Array:
    """Assign a large log's sample to the first folds, and all other rows to later folds.

    The later folds have about the size of the sample's folds, or are larger.
    """
    inside, outside = assign_folds(sample.log, count, seed), log.outside
    first = int(inside.max()) + 1
    others = int(outside.sum())
    parts = min(max(round(others * first / len(inside)), 1), count)
    fold = np.empty(len(log), dtype=np.int64)
    fold[sample.rows] = inside
    if others:
        cluster = None if log.cluster is None else log.cluster[outside]
        fold[outside] = first + _assign_rows(log.level[outside], cluster, parts, seed)
    return fold


def mark_held_out_rows(log: Log, share: float, seed: int) -> Array:
    """Return the mask (n,) of random held-out rows: about a `share` of the rows at each level.

    Whole clusters are held out together.
    """
    fold = assign_folds(log, max(2, min(HOLD_OUT_FOLDS, len(log))), seed)
    parts = int(fold.max()) + 1  # fewer clusters make fewer parts
    return fold < min(max(1, round(share * parts)), parts - 1)


def _check_fold_count(log: Log, count: int) -> None:
    problems = []
    if not 2 <= count <= len(log):
        problems.append(
            Problem(f"{count} folds of a log with {len(log)} rows", "use at least 2 folds, and no more than rows")
        )
    elif log.cluster is not None and np.ptp(log.cluster) == 0:
        problems.append(
            Problem("every row is in the same cluster", "rows are held out by whole clusters: it takes at least two")
        )
    refuse("folds", problems)


def _assign_by_level(level: Array, count: int, rng: np.random.Generator) -> Array:
    shuffled = rng.permutation(len(level))
    dealt = shuffled[np.argsort(level[shuffled], kind="stable")]
    fold = np.empty(len(level), dtype=np.int64)
    fold[dealt] = np.arange(len(level)) % count
    return fold


def _assign_by_cluster(cluster: Array, count: int, rng: np.random.Generator) -> Array:
    _, cluster = np.unique(cluster, return_inverse=True)  # part of a log need not have every cluster
    sizes = np.bincount(cluster)
    shuffled = rng.permutation(len(sizes))
    order = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    filled = np.zeros(min(count, len(sizes)), dtype=np.int64)
    home = np.empty(len(sizes), dtype=np.int64)
    for group in order:
        home[group] = np.argmin(filled)
        filled[home[group]] += sizes[group]
    return home[cluster]
