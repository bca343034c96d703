"""Additive models: bent lines where the log bends, straight ones elsewhere."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.data import log_from_arrays
from largesse.response.additive import ADDITIVE_SEARCH_ROWS, Additive, place_hinges
from largesse.response.linear import Linear
from largesse.stats.folds import assign_folds


def bent(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A log in which each of two features has a shape of its own, and the truth behind it (n, 3)."""
    rng = np.random.default_rng(seed)
    X, level = rng.uniform(-2, 2, size=(n, 4)), rng.integers(0, 3, n)
    score = 1.5 * np.abs(X[:, 0]) - 1.5 - np.cos(2 * X[:, 1]) + 0.5 * X[:, 2]
    truth = 1 / (1 + np.exp(-(score[:, None] + 0.4 * np.arange(3))))
    return X, level, (rng.random(n) < truth[np.arange(n), level]).astype(float), truth


def test_shapes_that_lines_miss_are_found() -> None:
    X, level, response, _ = bent(3000)
    fresh, _, _, truth = bent(3000, seed=1)
    line, curve = (model.fit(X, level, response).predict(fresh) for model in (Linear(), Additive()))
    assert np.sqrt(((curve - truth) ** 2).mean()) < 0.4 * np.sqrt(((line - truth) ** 2).mean())


def test_straight_lines_are_kept_for_a_straight_log() -> None:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(1500, 5)), rng.integers(0, 3, 1500)
    response = (rng.random(1500) < 1 / (1 + np.exp(-(X[:, 0] + 0.3 * level)))).astype(float)
    model = Additive().fit(X, level, response)
    assert model.shape_.scale == 0
    assert [choice.name for choice in model.choices_] == ["straight lines", "hinges × 0.5", "hinges × 2"]
    np.testing.assert_allclose(model.predict(X), Linear().fit(X, level, response).predict(X), atol=0.02)


def test_increments_are_never_negative_and_are_common() -> None:
    X, level, response, _ = bent(800)
    curves = Additive().fit(X, level, 1 - response).predict(X)
    score = np.log(curves) - np.log1p(-curves)
    assert (np.diff(curves, axis=1) >= 0).all()
    assert np.ptp(np.diff(score, axis=1), axis=0).max() < 1e-6


def test_amounts_are_learnt_on_their_own_scale() -> None:
    X, level, _, truth = bent(2000)
    amounts = 100 * truth[np.arange(2000), level] + np.random.default_rng(2).normal(size=2000)
    found = Additive().fit(X, level, amounts).predict(X)
    assert np.sqrt(((found - 100 * truth) ** 2).mean()) < 5


def test_each_fold_is_learnt_without_its_rows() -> None:
    log = log_from_arrays(*bent(600)[:3])
    model = Additive().fit(log)
    X, fold = model.encode(log), assign_folds(log, 4, 0)
    parts = Additive.fold_models(model, X, log, fold)
    assert len(parts) == 4
    other = log.response.copy()
    other[fold == 0] = 1 - other[fold == 0]
    moved = Additive.fold_models(model, X, replace(log, response=other), fold)
    # the settings are chosen for all folds together, so the first model may differ by them, but not by its coefficients' rows
    if moved[0].penalty_ == parts[0].penalty_ and moved[0].shape_.scale == parts[0].shape_.scale:
        np.testing.assert_allclose(moved[0].predict(log), parts[0].predict(log), atol=1e-6)
    assert np.abs(moved[1].predict(log) - parts[1].predict(log)).max() > 1e-3


@pytest.mark.slow
def test_many_rows_are_learnt_from_some_of_them() -> None:
    X, level, response, truth = bent(ADDITIVE_SEARCH_ROWS * 6)
    model = Additive().fit(X, level, response)
    assert np.sqrt(((model.predict(X[:5000]) - truth[:5000]) ** 2).mean()) < 0.03


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 99), knots=st.integers(1, 7), n=st.integers(1, 300))
def test_hinges_say_nothing_that_the_line_says(seed: int, knots: int, n: int) -> None:
    X = np.random.default_rng(seed).normal(size=(n, 3))
    X[:, 1] = np.round(X[:, 1])  # few values: stays a line where quantiles coincide
    X[:, 2] = 5.0
    found = place_hinges(X, knots)
    assert 2 not in found.columns
    hinges = found(X)
    assert hinges.shape == (n, knots * len(found.columns))
    if hinges.size:
        np.testing.assert_allclose(hinges.mean(axis=0), 0, atol=1e-9)
        own = np.tile(X[:, found.columns], knots)
        np.testing.assert_allclose((hinges * own).mean(axis=0), 0, atol=1e-8)


def test_a_row_bends_on_its_own() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    found = place_hinges(X, 5)
    np.testing.assert_array_equal(found(X)[7:9], found(X[7:9]))
    assert found(X[:0]).shape == (0, 15)
    assert found(X).dtype == np.float32
