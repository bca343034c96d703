from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from largesse.data.log_reader import log_from_arrays
from largesse.records import Array
from largesse.response.linear import Linear
from largesse.response.response_model import ResponseModel
from largesse.response.stacking import Stack
from largesse.response.threshold_model import (
    MAX_AXES,
    ThresholdRows,
    Thresholds,
    ThresholdScores,
    _estimate_marginal_probabilities,
    _RegularisationPath,
    fit_thresholds,
)
from largesse.stats.linear_algebra import principal_axes
from largesse.stats.link_functions import sigmoid
from largesse.worlds.paper_simulations import simulate
from largesse_lab.nested_label_logs import generate_labelled_rows, make_bandit


def shares(n: int = 60, p: int = 4, K: int = 3, seed: int = 0) -> tuple[Array, ThresholdRows]:
    rng = np.random.default_rng(seed)
    X, level = rng.normal(size=(n, p)).astype(np.float32), rng.integers(0, K, n)
    response = (rng.random(n) < sigmoid(X[:, 0] + level - 1.0)).astype(float)
    return X, ThresholdRows(level, response, np.full(n, 1.0 / n), K)


def test_the_slope_of_the_loss_is_right() -> None:
    X, rows = shares()
    path = _RegularisationPath(principal_axes(X, MAX_AXES), np.ones(60, dtype=bool), rows)
    path.Z = path.Z.astype(np.float64)  # differences are taken of float64
    scale = np.full((4, 1), 0.7)
    at = np.random.default_rng(1).normal(size=4 * 4 + 4)
    expected = approx_fprime(at, lambda z: path._objective(z, scale, 0.1)[0], 1e-6)
    np.testing.assert_allclose(path._objective(at, scale, 0.1)[1], expected, atol=1e-5)


def test_features_turned_and_wider_than_rows_give_the_same_curves() -> None:
    X, rows = shares(n=40, p=6)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(90, 90)))[0][:6]  # six directions among ninety
    wide = (X @ turn).astype(np.float32)
    plain, turned = fit_thresholds(X, rows, 0.1), fit_thresholds(wide, rows, 0.1)
    np.testing.assert_allclose(plain.predict_curves(X), turned.predict_curves(wide), atol=1e-3)


def test_a_row_gets_the_same_curve_whoever_comes_with_it() -> None:
    rng = np.random.default_rng(0)
    lines, X = ThresholdScores(rng.normal(size=(7, 4)), rng.normal(size=4)), rng.normal(size=(50, 7)).astype(np.float32)
    assert np.array_equal(lines.predict_curves(X)[:3], lines.predict_curves(X[:3]))


def test_every_threshold_is_possible_at_first() -> None:
    level = np.tile([0, 1, 2], 10)
    for share in (np.zeros(30), np.ones(30), (level == 0).astype(float), (level == 2).astype(float)):
        usual = _estimate_marginal_probabilities(ThresholdRows(level, share, np.full(30, 1 / 30), 3))
        assert usual.min() > 0
        assert usual.sum() == pytest.approx(1)


def test_thresholds_are_found_where_common_increments_cannot_express_them() -> None:
    generated = generate_labelled_rows(3000)
    made = make_bandit(generated.features, generated.nested_level)
    own, common = (model.fit(made.log).predict(made.features) for model in (Thresholds(), Linear()))
    error = [float(np.sqrt(np.mean((curves - made.truth) ** 2))) for curves in (own, common)]
    assert error[0] < 0.9 * error[1]


def test_penalties_are_tried_until_they_no_longer_gain_and_the_best_is_kept() -> None:
    model = Thresholds().fit(simulate("averaged", n=400).log)
    losses = [choice.loss for choice in model.choices_]
    assert losses.index(min(losses)) >= len(losses) - 3
    assert next(c for c in model.choices_ if c.chosen).loss == min(losses)
    assert f"{model.penalty_:g}" == next(c.name for c in model.choices_ if c.chosen)


def test_fold_models_never_saw_their_fold() -> None:
    X, rows = shares(200)
    level, response = rows.level, rows.share
    fold = np.arange(200) % 4
    log, changed = (log_from_arrays(X, level, r) for r in (response, np.where(fold == 2, 1 - response, response)))
    model = Thresholds(penalty=0.1).fit(log)
    one, other = (model.fold_models(X, part, fold) for part in (log, changed))
    same = [np.array_equal(a._curves(X), b._curves(X)) for a, b in zip(one, other, strict=True)]
    assert same == [False, False, True, False]


@pytest.mark.parametrize(("width", "joins"), [(101, True), (100, False)])
def test_thresholds_join_the_stack_where_features_are_many(
    width: int, joins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(120, width)), np.arange(120) % 2
    asked: list[bool] = []
    members = Stack._default_models

    def usual(self: Stack, *log: Any) -> list[ResponseModel]:
        made = members(self, *log)
        assert {model.get_params()["seed"] for model in made} == {3}
        asked.append(any(isinstance(model, Thresholds) for model in made))
        return [Linear(penalty=0.1)]

    monkeypatch.setattr(Stack, "_default_models", usual)
    Stack(folds=2, seed=3).fit(X, level, np.arange(120) % 3 == 0)
    Stack(folds=2, seed=3).fit(X, level, rng.normal(size=120))  # amounts have no thresholds
    assert asked == [joins, False]
