import numpy as np
import pytest

from largesse.propensity.covariate_balancing import MIN_BALANCED_ROWS, _fit_level_correction, balance_propensities


def drawn(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    high = 1 / (1 + np.exp(-X[:, 0]))
    level = (rng.random(n) < high).astype(int)
    return X, level, np.where(level == 1, high, 1 - high)


def test_weighted_means_of_each_level_become_those_of_all() -> None:
    X, level, _ = drawn(2000, 4)
    balanced = balance_propensities(np.full(2000, 0.5), X, level, np.ones(2000))
    for k in (0, 1):
        logged = level == k
        assert (1 / balanced[logged]).sum() == pytest.approx(2000, rel=1e-3)
        np.testing.assert_allclose(
            np.average(X[logged], axis=0, weights=1 / balanced[logged]), X.mean(axis=0), atol=0.01
        )


def test_from_nothing_it_finds_a_logistic_truth() -> None:
    X, level, true = drawn(20_000, 2)
    balanced = balance_propensities(np.full(20_000, 0.5), X, level, np.ones(20_000))
    assert np.abs(balanced - true).mean() < 0.02


def test_weights_of_rows_count() -> None:
    X, level, _ = drawn(1000, 2)
    weight = np.where(X[:, 1] > 0, 3.0, 1.0)
    balanced = balance_propensities(np.full(1000, 0.5), X, level, weight)
    logged = level == 1
    mean = np.average(X, axis=0, weights=weight)
    np.testing.assert_allclose(
        np.average(X[logged], axis=0, weights=weight[logged] / balanced[logged]), mean, atol=0.02
    )


def test_many_features_do_not_make_wild_weights() -> None:
    rng = np.random.default_rng(1)
    X, level = rng.normal(size=(400, 300)), rng.integers(0, 2, 400)
    balanced = balance_propensities(np.full(400, 0.5), X, level, np.ones(400))
    assert 1.0 <= np.sqrt((1 / balanced**2).mean()) / 2 < 1.6


def test_thin_levels_are_left_as_they_are() -> None:
    X, level = np.random.default_rng(2).normal(size=(200, 2)), np.zeros(200, dtype=int)
    level[: MIN_BALANCED_ROWS - 1] = 1
    balanced = balance_propensities(np.full(200, 0.3), X, level, np.ones(200))
    assert (balanced[level == 1] == 0.3).all()


def test_the_slope_is_zero_where_it_ends() -> None:
    rng = np.random.default_rng(3)
    Z = np.column_stack([np.ones(60), rng.normal(size=(60, 2))])
    odds, share, others = rng.normal(size=60), np.full(60, 1 / 100), np.array([0.4, 0.05, -0.02])
    tilt = _fit_level_correction(Z, odds, share, others, 60)
    ridge = np.array([1e-6, 0.01, 0.01])
    slope = others - (share * np.exp(-(odds + Z @ tilt))) @ Z + ridge * tilt
    np.testing.assert_allclose(slope, 0, atol=1e-5)
