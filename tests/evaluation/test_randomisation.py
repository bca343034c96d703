import numpy as np
import pytest

from largesse.evaluation.randomisation import measure_dependence


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 5)), rng


def test_the_test_errs_as_seldom_as_it_says() -> None:
    found = []
    for seed in range(200):
        X, rng = drawn(150, seed)
        found.append(measure_dependence(X, rng.integers(0, 3, 150), permutations=99, seed=seed).p)
    assert 0.02 <= np.mean(np.array(found) <= 0.05) <= 0.09
    assert 0.4 < np.mean(found) < 0.6


def test_shifted_means_are_seen() -> None:
    X, rng = drawn(600, 0)
    level = (X[:, 0] + 1.5 * rng.normal(size=600) > 0).astype(int)
    assert measure_dependence(X, level).p <= 0.002 < 0.01


def test_dependence_without_shifted_means_is_seen() -> None:
    X, rng = drawn(2000, 1)
    level = (np.abs(X[:, 0]) + 0.3 * rng.normal(size=2000) > 0.7).astype(int)
    X = X[:, :2]
    assert measure_dependence(X, level).p < 0.01


def test_levels_given_to_whole_clusters_are_permuted_by_cluster() -> None:
    """Villages were randomised: their people are alike and got the same level, which over rows would look like dependence."""
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        village = np.repeat(np.arange(40), 15)
        X = rng.normal(size=(40, 3))[village] + 0.3 * rng.normal(size=(600, 3))
        found.append(measure_dependence(X, rng.integers(0, 2, 40)[village], village, permutations=99, seed=seed))
    assert np.mean([d.p <= 0.05 for d in found]) <= 0.13
    assert found[0].units == 40


@pytest.mark.parametrize("X", [np.zeros((50, 0)), np.ones((50, 2))])
def test_features_that_say_nothing_follow_nothing(X: np.ndarray) -> None:
    assert measure_dependence(X, np.arange(50) % 2).p == 1.0


def test_one_level_alone_follows_nothing() -> None:
    assert measure_dependence(np.random.default_rng(0).normal(size=(50, 2)), np.zeros(50, dtype=int)).p == 1.0
