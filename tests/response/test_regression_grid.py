"""Many regressions at once end where each would end alone."""

from dataclasses import replace

import numpy as np
import pytest

from largesse.response.linear import (
    LINEAR_TOLERANCE,
    _make_lower_bounds,
    _make_penalty_matrix,
    _minimise_penalised_loss,
)
from largesse.response.regression_grid import RegressionGrid, RegressionRows, fit_all_penalties, score_penalty_grid
from largesse.stats import sigmoid

K, PENALTIES = 4, (1e-4, 1e-2, 1.0)


def make_rows(n: int, p: int, *, binary: bool, seed: int = 0, weighted: bool = False) -> RegressionRows:
    rng = np.random.default_rng(seed)
    X, level = rng.normal(size=(n, p)).astype(np.float32), rng.integers(0, K, n)
    score = X @ rng.normal(size=p) / np.sqrt(p) + np.array([0.0, 0.5, 0.4, 0.9])[level]
    response = (rng.random(n) < sigmoid(score)).astype(float) if binary else score + rng.normal(size=n)
    weight = rng.lognormal(size=n) if weighted else np.ones(n)
    return RegressionRows(X, level, response, weight, K, binary, np.linspace(0, 1, K))


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_each_regression_ends_at_its_own_minimum(binary: bool, weighted: bool) -> None:
    rows, p = make_rows(400, 6, binary=binary, weighted=weighted), 6
    place = np.arange(400) % 3
    ridges = np.stack([_make_penalty_matrix(p, K, penalty, 0.1) for penalty in PENALTIES])
    task = RegressionGrid(rows, place, ridges)
    found = fit_all_penalties(task, np.zeros(p + K), _make_lower_bounds(p, K), LINEAR_TOLERANCE)
    assert found.shape == (3, 3, p + K)
    for j, penalty in enumerate(PENALTIES):
        for f in range(3):
            alone = _minimise_penalised_loss(rows.take_rows(place != f), penalty, 0.1)
            np.testing.assert_allclose(found[j, f], alone, atol=2e-3 if penalty < 1e-3 else 3e-4)
    assert (found[:, :, p : p + K - 1] >= 0).all()


def test_a_fold_is_scored_by_the_regression_without_it() -> None:
    rows, p, place = make_rows(300, 5, binary=True), 5, np.arange(300) % 4
    ridges = _make_penalty_matrix(p, K, 0.01, 0.1)[None]
    task = RegressionGrid(rows, place, ridges)
    found = fit_all_penalties(task, np.zeros(p + K), _make_lower_bounds(p, K), LINEAR_TOLERANCE)
    scores = score_penalty_grid(task, found)
    for i in (0, 7, 150, 299):
        here = found[0, place[i]]
        level = here[p : p + rows.level[i]].sum() + here[-1]
        assert scores[0, i] == pytest.approx(float(rows.X[i] @ here[:p]) + level, abs=1e-5)


def test_a_fold_with_all_the_weight_leaves_rows_that_count_alike() -> None:
    rows, p, place = make_rows(200, 3, binary=True), 3, np.arange(200) % 2
    weight = np.where(place == 0, 1.0, 0.0)
    task = RegressionGrid(replace(rows, weight=weight), place, _make_penalty_matrix(p, K, 0.01, 0.1)[None])
    found = fit_all_penalties(task, np.zeros(p + K), _make_lower_bounds(p, K), LINEAR_TOLERANCE)
    alone = _minimise_penalised_loss(make_rows(200, 3, binary=True).take_rows(place == 1), 0.01, 0.1)
    np.testing.assert_allclose(found[0, 0], alone, atol=1e-3)


def test_separated_rows_and_empty_levels_have_finite_fits() -> None:
    X = np.linspace(-1, 1, 60, dtype=np.float32)[:, None]
    level, response = np.where(np.arange(60) % 2, 3, 0), (X[:, 0] > 0).astype(float)
    ridges = np.stack([_make_penalty_matrix(1, K, penalty, 0.1) for penalty in (1e-4, 1.0)])
    rows = RegressionRows(X, level, response, np.ones(60), K, True, np.linspace(0, 1, K))
    task = RegressionGrid(rows, np.arange(60) % 5, ridges)
    assert np.isfinite(fit_all_penalties(task, np.zeros(1 + K), _make_lower_bounds(1, K), 1e-8)).all()
