"""The second stage of SIRE: what it corrects, what it leaves alone, and what it is fitted to."""

from copy import copy
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

from largesse.data.log_reader import log_from_arrays
from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.response.model_catalogue import list_model_classes
from largesse.response.networks.doubly_robust_correction import TAU, _ResidualRegression, fit_correction
from largesse.response.networks.sire import SIRE
from largesse.worlds.paper_simulations import simulate
from support.models import flat


def small(**more: object) -> SIRE:
    return flat(SIRE, **{"kappa": 0.0, "shrinkage": np.inf, "width": 8, "epochs": 1, "folds": 3, "members": 1, **more})


def confounded(n: int, seed: int, *, amounts: bool = False) -> tuple[Log, Array, Array]:
    """A log that gave high levels to those who respond anyway, propensities given; its features and true curves."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    odds = np.exp(0.7 * X[:, :1] * (np.arange(3) - 1))
    rho = odds / odds.sum(axis=1, keepdims=True)
    level = (rng.random(n)[:, None] >= np.cumsum(rho, axis=1)[:, :-1]).sum(axis=1)
    score = X[:, :1] + 0.4 * np.arange(3) - 0.5
    truth = 10 * score if amounts else 1 / (1 + np.exp(-score))
    own = truth[np.arange(n), level]
    response = own + rng.normal(size=n) if amounts else (rng.random(n) < own).astype(float)
    levels = Levels(costs=[0, 1, 2])
    return log_from_arrays(X, level, response, levels=levels, propensity=rho[np.arange(n), level]), X, truth


def error(model: SIRE, X: Array, truth: Array) -> float:
    return float(np.sqrt(((model.predict(X) - truth) ** 2).mean()))


@pytest.mark.slow
@pytest.mark.parametrize("amounts", [False, True])
def test_what_the_first_stage_missed_is_put_right(amounts: bool) -> None:
    plain, second = [], []
    for seed in range(3):
        log, X, truth = confounded(1500, seed, amounts=amounts)
        plain.append(error(small(seed=seed).fit(log), X, truth))
        second.append(error(small(seed=seed, orthogonal=True).fit(log), X, truth))
    assert np.mean(second) < 0.8 * np.mean(plain)


@pytest.mark.slow
def test_a_first_stage_that_missed_nothing_is_left_alone() -> None:
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 600)
    X, response = rng.normal(size=(600, 3)), (rng.random(600) < 0.3 + 0.1 * level).astype(float)
    settings = {"epochs": 60, "rate": 0.03, "decay": 0.1, "folds": 2}
    plain, second = (small(**settings, orthogonal=o).fit(X, level, response) for o in (False, True))
    assert second.fit_.correction is None
    assert next(c.name for c in second.correction_choices_ if c.chosen) == "none"
    assert np.array_equal(second.predict(X), plain.predict(X))


@cache
def corrected(amounts: bool = False) -> tuple[SIRE, Log, Array]:
    """A model with a second stage, the log that it learnt from and its features: for reading only."""
    log, X, _ = confounded(900, 0, amounts=amounts)
    return small(orthogonal=True).fit(log), log, X


@pytest.mark.parametrize("amounts", [False, True])
def test_corrected_curves_rise_and_stay_inside(amounts: bool) -> None:
    model, _, X = corrected(amounts)
    assert model.fit_.correction is not None
    curves = model.predict(5 * X)
    assert (np.diff(curves, axis=1) >= 0).all()
    if not amounts:
        assert curves.min() >= 0
        assert curves.max() <= 1


def test_it_is_kept_exactly_and_cloned() -> None:
    model, _, X = corrected()
    again = type(model).from_state(*model.state(), list_model_classes())
    assert np.array_equal(again.predict(X), model.predict(X))
    assert clone(model).orthogonal is True
    assert "orthogonal=True" in repr(model)
    np.testing.assert_allclose(model.predict(X[4:6]), model.predict(X)[4:6], rtol=1e-5)


def test_fold_models_stay_honest_about_the_rows_they_did_not_see() -> None:
    model, log, X = corrected()
    blank, fold, encoded = copy(model), np.arange(900) % 3, model.encode(X)
    one = blank.fold_models(encoded, log, fold)[0]
    other = small().fit(log)
    assert np.array_equal(one.predict(X), other.fold_models(encoded, log, fold)[0].predict(X))


@pytest.mark.slow
def test_missing_propensities_are_estimated() -> None:
    sim = simulate("averaged", n=400)
    model = small(orthogonal=True, folds=2).fit(sim.features, sim.level, sim.response)
    assert np.isfinite(model.predict(sim.features)).all()


# ---------------------------------------------------------------------------------------------- the regression


def stage(n: int = 60) -> tuple[_ResidualRegression, Log, Array, Array]:
    log, X, _ = confounded(n, 1)
    curves = np.full((n, 3), 0.4)
    assert log.propensity is not None
    return _ResidualRegression(X, curves, log, log.propensity), log, X, curves


def test_leaving_one_out_is_what_the_losses_say() -> None:
    made, log, X, _ = stage()
    _, losses = made.fit("slope", 0.1)
    for left in (0, 17):
        rest = np.delete(np.arange(60), left)
        design = np.concatenate([np.eye(3)[log.level], X, X * ((log.level - 1) / np.sqrt(2 / 3))[:, None]], axis=1)
        ridge = np.diag([1.0] * 3 + [6.0] * 6)
        D, w, e = design[rest], made.weight[rest], made.residual[rest]
        coef = np.linalg.solve(D.T @ (w[:, None] * D) + ridge, D.T @ (w * e))
        assert losses[left] == pytest.approx(made.overlap[left] * (made.residual[left] - design[left] @ coef) ** 2)


def test_no_row_has_more_say_than_the_overlap_allows() -> None:
    made, *_ = stage()
    assert made.overlap.max() <= 1 / TAU


def test_what_is_added_is_what_was_fitted() -> None:
    made, log, X, curves = stage(900)
    chosen, choices = fit_correction([X], [curves], [log], [log.propensity])
    assert len(choices) == 8
    assert chosen is not None
    fitted = chosen.mean_corrections(X[None], 3)
    assert np.corrcoef(fitted[np.arange(900), log.level], made.residual)[0, 1] > 0.3
