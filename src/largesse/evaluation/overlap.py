"""How well the log covers each level, and how alike the customers of different levels are."""

from __future__ import annotations

import numpy as np

from largesse.data import Encoder
from largesse.records import Array, Log, Overlap

ROWS = 100_000  # a balance table needs no more
BINS = 10
SHOWN = 12


def measure_overlap(log: Log, propensity: Array, seed: int = 0) -> Overlap:
    """Return effective rows and smallest propensities per level, and the balance of features before and after weighting."""
    K = len(log.levels)
    weight = np.ones(len(log)) if log.weight is None else log.weight
    inverse = weight / propensity
    groups = [log.level == k for k in range(K)]
    names, by_level = _balance(log, weight, inverse, seed)
    before, after = np.abs(by_level).max(axis=2, initial=0.0)
    edges = np.linspace(0.0, 1.0, BINS + 1)
    return Overlap(
        rows=np.array([int(g.sum()) for g in groups]),
        effective=np.array([_effective(inverse[g]) for g in groups]),
        smallest=np.array([propensity[g].min(initial=1.0) for g in groups]),
        features=names,
        before=before,
        after=after,
        edges=edges,
        counts=np.array([np.histogram(propensity[g], edges)[0] for g in groups]),
        by_level=by_level,
    )


def _effective(weight: Array) -> float:
    """Return how many equally weighted rows carry as much information (Kish)."""
    squares = float(weight @ weight)
    return float(weight.sum()) ** 2 / squares if squares > 0 else 0.0


def _balance(log: Log, weight: Array, inverse: Array, seed: int) -> tuple[tuple[str, ...], Array]:
    """Return the features that differ most between levels, and their differences (before and after, features, K)."""
    if len(log) > ROWS:
        rows = np.sort(np.random.default_rng(seed).permutation(len(log))[:ROWS])
        log, weight, inverse = log.take(rows), weight[rows], inverse[rows]
    encoder = Encoder()
    X = encoder.fit_transform(log.features, log.level, discrete=True, seed=seed).astype(np.float64)
    columns = np.stack([_differences(X, log.level, len(log.levels), w, weight) for w in (weight, inverse)])
    if not encoder.features:
        return (), np.zeros((2, 0, len(log.levels)))
    sources = np.array(encoder.sources)
    # A feature of several columns is shown by the one that differs most at each level.
    both = np.stack([_worst(columns[:, sources == name]) for name in encoder.features], axis=1)
    order = np.argsort(-np.abs(both).max(axis=(0, 2), initial=0.0), kind="stable")[:SHOWN]
    return tuple(encoder.features[j] for j in order), both[:, order]


def _worst(columns: Array) -> Array:
    """Return of (2, columns, K) the entries (2, K) that are farthest from zero."""
    place = np.abs(columns).argmax(axis=1)
    return np.take_along_axis(columns, place[:, None], axis=1)[:, 0]


def _differences(X: Array, level: Array, K: int, weight: Array, plain: Array) -> Array:
    """Return per column and level (columns, K) the mean at the level − mean of all, in standard deviations."""
    mean = np.average(X, axis=0, weights=plain)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=plain))
    spread[spread == 0] = 1.0
    out = np.zeros((X.shape[1], K))
    for k in range(K):
        here = level == k
        if weight[here].sum() > 0:
            out[:, k] = (np.average(X[here], axis=0, weights=weight[here]) - mean) / spread
    return out
