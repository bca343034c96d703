import numpy as np
import pytest

from largesse.data import log_from_arrays
from largesse.records import Array, Log
from largesse.response import CurvePosterior, fit_curve_posterior
from largesse.response.level_effect_estimation import fit_level_effect_posterior
from largesse.stats import sigmoid

LADDER = np.array([0.0, 0.3, 0.5, 0.6])


def draw_log(n: int, seed: int = 0) -> tuple[Log, Array, Array]:
    """Return a randomised log of yes/no responses with its true curves and folds."""
    rng = np.random.default_rng(seed)
    x, level = rng.normal(size=n), rng.integers(0, 4, n)
    truth = sigmoid((-1.0 + 0.7 * x)[:, None] + LADDER)
    log = log_from_arrays(x[:, None], level, (rng.random(n) < truth[np.arange(n), level]).astype(float))
    return log, truth, np.arange(n) % 5


def fit(log: Log, curves: Array, fold: Array, weight: Array | None = None) -> CurvePosterior:
    n = len(curves)
    found = fit_curve_posterior(log, curves, fold, np.ones(n) if weight is None else weight, np.arange(n))
    assert found is not None
    return found


def mean_increments(posterior: CurvePosterior, rows: int, count: int = 200) -> Array:
    """Return the mean curve of every draw, less its first level."""
    means = np.array([curves.mean(axis=0) for curves in posterior.draw_curves(count, np.arange(rows))])
    return means - means[:, :1]


def test_draws_surround_the_truth_and_close_in_on_it_with_more_rows() -> None:
    spreads = []
    for n in (1000, 16_000):
        log, truth, fold = draw_log(n)
        drawn, true = mean_increments(fit(log, truth, fold), n), truth.mean(axis=0) - truth[:, 0].mean()
        spreads.append(drawn.std(axis=0)[1:])
        assert (np.abs(drawn.mean(axis=0) - true)[1:] < 4 * spreads[-1]).all()
    assert (spreads[1] < 0.6 * spreads[0]).all()


def test_curves_without_effects_are_corrected_by_the_rows() -> None:
    log, truth, fold = draw_log(16_000)
    flat = np.repeat(truth.mean(axis=1, keepdims=True), 4, axis=1)
    corrected, known = (mean_increments(fit(log, curves, fold), len(flat)) for curves in (flat, truth))
    np.testing.assert_allclose(corrected.mean(axis=0), known.mean(axis=0), atol=0.005)


def test_deviations_that_the_rows_contradict_lose_their_share() -> None:
    log, truth, fold = draw_log(16_000)
    noise = np.random.default_rng(1).normal(scale=0.3, size=truth.shape)
    share = fit(log, sigmoid(np.log(truth / (1 - truth)) + noise), fold).mean[-1]
    assert -0.2 < share < 0.3


def test_ladders_of_draws_never_fall() -> None:
    posterior = fit_level_effect_posterior(np.array([0.3, 0.1]), 0.05 * np.eye(2), np.array([0.0, 0.5, 1.0]), 0.3)
    ladders = posterior.draw_level_effects(500, np.random.default_rng(0))
    assert (ladders[:, 0] == 0).all()
    assert (np.diff(ladders, axis=1) >= -1e-12).all()
    assert posterior.weights.sum() == pytest.approx(1.0)


def test_rows_without_weight_do_not_count() -> None:
    log, truth, fold = draw_log(1000)
    weight = (np.arange(1000) < 800).astype(float)
    wrong = log.response.copy()
    wrong[800:] = 1 - wrong[800:]
    other = log_from_arrays(np.asarray(log.features.column(0))[:, None], log.level, wrong)
    np.testing.assert_allclose(fit(log, truth, fold, weight).mean, fit(other, truth, fold, weight).mean)


def test_draws_are_repeatable_and_a_single_level_has_none() -> None:
    log, truth, fold = draw_log(500)
    posterior = fit(log, truth, fold)
    first, again = (next(posterior.draw_curves(1, np.arange(10), seed=4)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert first.shape == (10, 4)
    assert fit_curve_posterior(log, truth[:, :1], fold, np.ones(500), np.arange(500)) is None
    assert fit_curve_posterior(log, truth, fold, np.zeros(500), np.arange(500)) is None
