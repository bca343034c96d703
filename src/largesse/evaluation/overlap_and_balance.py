"""Overlap of the levels' propensities, and balance of the features between levels."""

from __future__ import annotations

import numpy as np

from largesse.evaluation.randomisation_check import find_randomised_units
from largesse.propensity import PropensityFeatures
from largesse.records import MIN_LEVEL_ROWS, Array, Log, Overlap
from largesse.stats import effective_sample_size, t_quantile

N_PROPENSITY_BINS = 10
MAX_BALANCE_FEATURES = 12
MIN_EFFECTIVE_LEVEL_ROWS = 100.0
MIN_LEVEL_PROPENSITY = 0.01
MAX_FALSE_DIFFERENCES = 0.01  # share of randomised logs in which any difference exceeds its limit by chance


def measure_overlap(log: Log, propensity: Array, features: PropensityFeatures) -> Overlap:
    """Measure each level's rows and propensities, and the balance of features before and after weighting."""
    rows, effective, smallest, answers = measure_level_overlap(log, propensity)
    names, by_level, beyond_chance = _measure_balance(log, propensity, features)
    before, after = np.abs(by_level).max(axis=2, initial=0.0)
    edges = np.linspace(0.0, 1.0, N_PROPENSITY_BINS + 1)
    return Overlap(
        rows=rows,
        effective=effective,
        smallest=smallest,
        answers=answers,
        features=names,
        before=before,
        after=after,
        edges=edges,
        counts=np.array([np.histogram(propensity[log.level == k], edges)[0] for k in range(len(log.levels))]),
        by_level=by_level,
        beyond_chance=beyond_chance,
        sampled=len(features.rows) if len(features.rows) < len(log) else 0,
    )


def measure_level_overlap(log: Log, propensity: Array) -> tuple[Array, Array, Array, tuple[str, ...]]:
    """Return each level's rows, effective sample size, smallest propensity (K,) and grade."""
    inverse = log.weights / propensity
    masks = [log.level == k for k in range(len(log.levels))]
    rows = np.array([int(mask.sum()) for mask in masks])
    effective = np.array([effective_sample_size(inverse[mask]) for mask in masks])
    smallest = np.array([propensity[mask].min(initial=1.0) for mask in masks])
    answers = tuple(grade_level_overlap(*level) for level in zip(rows, effective, smallest, strict=True))
    return rows, effective, smallest, answers


def grade_level_overlap(rows: float, effective: float, smallest: float) -> str:
    """Grade the overlap of one level's propensities: fine, careful or no."""
    if rows < MIN_LEVEL_ROWS or effective < MIN_LEVEL_ROWS:
        return "no"
    return "careful" if effective < MIN_EFFECTIVE_LEVEL_ROWS or smallest < MIN_LEVEL_PROPENSITY else "fine"


def _measure_balance(log: Log, propensity: Array, features: PropensityFeatures) -> tuple[tuple[str, ...], Array, Array]:
    """Return the least balanced features, with their standardised differences before and after weighting.

    Beyond chance (features,) is the largest difference after weighting, where it exceeds that of randomised levels.
    """
    K = len(log.levels)
    if not features.names:
        return (), np.zeros((2, 0, K)), np.zeros(0)
    X, level = features.X.astype(np.float64), log.level[features.rows]
    plain = log.weights[features.rows] if features.weight is None else features.weight
    inverse = plain / propensity[features.rows]
    columns = np.stack([_compare_level_means(X, level, K, weight, plain) for weight in (plain, inverse)])
    limits = _bound_chance_differences(
        X, level, K, inverse, plain, None if log.assigned is None else log.assigned[features.rows]
    )
    excess = np.where(np.abs(columns[1]) > limits, np.abs(columns[1]), 0.0).max(axis=1)
    sources = np.array(features.sources)
    # A feature of several columns is shown by the one that differs most at each level.
    by_feature = np.stack([_select_largest_differences(columns[:, sources == name]) for name in features.names], axis=1)
    beyond = np.array([excess[sources == name].max() for name in features.names])
    order = np.lexsort((-np.abs(by_feature).max(axis=(0, 2), initial=0.0), -beyond))[:MAX_BALANCE_FEATURES]
    return tuple(features.names[j] for j in order), by_feature[:, order], beyond[order]


def _bound_chance_differences(
    X: Array, level: Array, K: int, inverse: Array, plain: Array, group: Array | None
) -> Array:
    """Return the largest standardised difference (columns, K) that randomised levels would leave by chance.

    Levels were given to units: groups of rows, or single rows. A level's mean has the variance of the units' sums of deviations,
    divided by the effective number of units at the level, less the part of the finite set of units that has the level.
    """
    numbered = find_randomised_units(level, group)
    code = np.arange(len(level)) if numbered is None else numbered
    units = int(code.max()) + 1
    mean = np.average(X, axis=0, weights=plain)
    deviations = (X - mean) * plain[:, None]
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=plain))
    if numbered is not None:
        deviations = np.stack([np.bincount(code, weights=column, minlength=units) for column in deviations.T], axis=1)
    spread[spread == 0] = np.inf
    per_unit = np.sqrt((deviations**2).mean(axis=0)) * units / plain.sum() / spread  # (columns,) in standard deviations
    limits = np.full((X.shape[1], K), np.inf)
    coverage = 1 - MAX_FALSE_DIFFERENCES / limits.size
    for k in range(K):
        at_level = np.bincount(code[level == k], weights=inverse[level == k], minlength=units)
        effective = effective_sample_size(at_level)
        if effective > 1:
            fraction = np.count_nonzero(at_level) / units
            limits[:, k] = per_unit * np.sqrt((1 - fraction) / effective) * t_quantile(effective - 1, coverage)
    return limits


def _select_largest_differences(columns: Array) -> Array:
    """Return the largest differences by absolute value over a feature's columns, before and after weighting (2, K)."""
    place = np.abs(columns).argmax(axis=1)
    return np.take_along_axis(columns, place[:, None], axis=1)[:, 0]


def _compare_level_means(X: Array, level: Array, K: int, weight: Array, plain: Array) -> Array:
    """Return the standardised difference (columns, K) between each level's mean and the overall mean."""
    mean = np.average(X, axis=0, weights=plain)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=plain))
    spread[spread == 0] = 1.0
    out = np.zeros((X.shape[1], K))
    for k in range(K):
        mask = level == k
        if weight[mask].sum() > 0:
            out[:, k] = (np.average(X[mask], axis=0, weights=weight[mask]) - mean) / spread
    return out
