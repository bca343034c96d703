"""The simple models: each compared with a slow, plain version of itself, or where the answer is known."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from largesse.data import log_from_arrays
from largesse.levels import Levels
from largesse.records import Log
from largesse.response import list_models
from largesse_lab.runner.competitor_models import PEERS, fit_ridges, make_competitor

BASELINES = ("bart", "cfrnet", "ganite")  # whose fits have tests of their own, and take long
# Packages of competitors: tests/lab/peers runs them where they are installed.
PACKAGES = ("lightgbm", "xgboost", "econml", "causalml", "perpetual", "stochtree", "TabPFN")


def draw_log(*, binary: bool, n: int = 300) -> Log:
    rng = np.random.default_rng(0)
    X, level = rng.standard_normal((n, 2)), rng.integers(0, 3, n)
    score = X[:, 0] + 0.5 * level - 1
    response = (rng.random(n) < 1 / (1 + np.exp(-score))) if binary else score + 0.1 * rng.standard_normal(n)
    return log_from_arrays(X, level, response.astype(np.float64), levels=Levels(costs=[0, 1, 2]))


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("name", [name for name in PEERS if name.split()[0] not in (*BASELINES, *PACKAGES, "funnel")])
def test_every_peer_predicts_a_curve_for_every_customer(name: str, binary: bool) -> None:
    log = draw_log(binary=binary)
    model = make_competitor(name)
    assert model is not None
    model.fit(log)
    curves = model.predict(log.features)
    assert curves.shape == (300, 3)
    assert np.isfinite(curves).all()


def test_the_funnel_learns_amounts_of_those_who_respond() -> None:
    log = draw_log(binary=True)
    amounts = replace(log, response=log.response * np.random.default_rng(1).gamma(2.0, 10.0, len(log)))
    model = make_competitor("funnel product")
    assert model is not None
    model.fit(amounts)
    curves = model.predict(log.features)
    assert np.isfinite(curves).all()
    assert curves.mean() == pytest.approx(amounts.response.mean(), rel=0.5)


def test_every_model_of_the_catalogue_is_known() -> None:
    assert all(make_competitor(name, seed=1) is not None for name in (*list_models(), *BASELINES))


@pytest.mark.parametrize("binary", [True, False])
def test_logistic_is_scikit_learns(binary: bool) -> None:
    from sklearn.linear_model import LogisticRegression, Ridge

    log = draw_log(binary=binary)
    row = PEERS["logistic"](0)
    row.fit(log)
    X = row.encoder.transform(log.features)  # type: ignore[attr-defined]
    model = LogisticRegression(tol=1e-8) if binary else Ridge()
    model.fit(np.column_stack([X, log.level]), log.response)
    given = np.column_stack([X, np.full(len(log), 2)])
    expected = model.predict_proba(given)[:, 1] if binary else model.predict(given)
    assert row.predict(log.features)[:, 2] == pytest.approx(expected, abs=1e-3)


def test_uniform_is_the_non_falling_mean_of_each_level_and_fills_a_level_nobody_had() -> None:
    table = pa.table({"x": np.arange(60.0)})
    level, response = np.repeat([0, 1, 3], 20), np.repeat([1.0, 0.5, 2.0], 20)
    log = Log(table, level, response, Levels(costs=[0, 1, 2, 3]))
    row = PEERS["uniform"](0)
    row.fit(log)
    assert row.predict(log.features)[0].tolist() == pytest.approx([0.75, 0.75, 1.25, 2.0])


def test_ridges_shrink_noise_and_follow_what_is_there() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 5))
    targets = np.column_stack([X @ [1.0, 2, 0, 0, 0] + 3, rng.standard_normal(400)])
    found = fit_ridges(X, targets)(X)
    assert found[:, 0] == pytest.approx(targets[:, 0], abs=0.01)
    assert found[:, 1].std() < 0.15


def test_per_level_boosting_survives_a_level_at_which_nobody_responded() -> None:
    log = draw_log(binary=True)
    response = np.where(log.level == 0, 0.0, log.response)
    silent = log_from_arrays(log.features, log.level, response, levels=log.levels)
    row = PEERS["per-level boosting"](0)
    row.fit(silent)
    assert row.predict(silent.features)[:, 0].max() < 0.05
