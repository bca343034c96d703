"""Propensities from one index of the features."""

import numpy as np

from largesse.data.log_reader import log_from_arrays
from largesse.propensity.single_index_propensity import estimate_single_index_propensities
from largesse.records import Array, Log


def make_targeted(n: int, strength: float, *, K: int = 5, seed: int = 0) -> tuple[Log, Array, Array, Array]:
    """A log whose levels follow a curved surface of two features; its features, the surface and the true propensities."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    surface = (np.abs(X[:, 0]) - 0.8) / 0.6 + X[:, 1]
    odds = np.exp(strength * surface[:, None] * np.linspace(-1.0, 1.0, K))
    chances = odds / odds.sum(axis=1, keepdims=True)
    level = (rng.random(n)[:, None] > np.cumsum(chances, axis=1)).sum(axis=1)
    return log_from_arrays(X, level, rng.integers(0, 2, n).astype(float)), X, surface, chances[np.arange(n), level]


def measure_error(propensity: Array, truth: Array) -> float:
    """Return the root mean square of the log ratios."""
    return float(np.sqrt(np.mean(np.log(propensity / truth) ** 2)))


def test_an_index_finds_the_propensities_of_a_targeted_log() -> None:
    log, X, _, truth = make_targeted(6000, 1.0)
    fold = np.arange(6000) % 5
    estimate = estimate_single_index_propensities(log, X, np.zeros(6000), fold)
    shares = np.bincount(log.level)[log.level] / 6000
    assert measure_error(estimate, truth) < 0.4 * measure_error(shares, truth)


def test_a_base_that_levels_follow_makes_propensities_better() -> None:
    log, X, surface, truth = make_targeted(1500, 1.0)
    fold = np.arange(1500) % 5
    without, with_base = (estimate_single_index_propensities(log, X, base, fold) for base in (np.zeros(1500), surface))
    assert measure_error(with_base, truth) < 0.8 * measure_error(without, truth)


def test_random_levels_have_nearly_constant_propensities() -> None:
    log, X, surface, truth = make_targeted(6000, 0.0)
    assert measure_error(estimate_single_index_propensities(log, X, surface, np.arange(6000) % 5), truth) < 0.1


def test_the_level_of_a_row_does_not_change_its_own_fit() -> None:
    log, X, surface, _ = make_targeted(1000, 1.0)
    fold = np.arange(1000) % 5
    first = estimate_single_index_propensities(log, X, surface, fold)
    level = log.level.copy()
    level[fold == 0] = level[fold == 0][::-1]
    moved = estimate_single_index_propensities(log_from_arrays(X, level, log.response), X, surface, fold)
    same = (fold == 0) & (level == log.level)
    # The index of a row comes from other folds; only the scale of all indices sees the fold's rows.
    assert np.corrcoef(np.log(first[same]), np.log(moved[same]))[0, 1] > 0.99
