"""Hurdle models: whether customers respond, and the mean amount of those who do."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from largesse.data import Encoder
from largesse.data.log_reader import log_from_arrays
from largesse.errors import InputError
from largesse.records import Array, Log
from largesse.response.additive import Additive
from largesse.response.boosting import Boosting
from largesse.response.fold_ensemble import fit_fold_copies, score_held_out_rows
from largesse.response.hurdle import Hurdle
from largesse.response.level_effect_estimation import Link
from largesse.response.linear import Linear
from largesse.response.model_catalogue import list_model_classes
from largesse.response.networks.sire import SIRE
from largesse.response.responder_amounts import (
    MIN_RESPONDERS,
    ResponderAmounts,
    fit_responder_amounts,
    has_zeros_and_amounts,
    mark_responders,
    suits_hurdle_model,
)
from largesse.response.response_model import ResponseModel
from largesse.stats import assign_folds
from largesse.worlds import RandomLog, draw_world
from support.models import flat

WORLD = 42  # three levels, a third of customers buy, log-normal amounts
SMALL: dict[str, Any] = {
    "kappa": 0.0,
    "shrinkage": 0.1,
    "width": 8,
    "rate": 0.03,
    "decay": 0.1,
    "batch": 64,
    "epochs": 5,
    "members": 1,
}
MODELS = [
    Hurdle(),
    Hurdle(chance=Boosting(rounds=20), amount=Linear(penalty=0.1)),
    Linear(penalty=0.01),
    Additive(),
    flat(SIRE, folds=2, **SMALL),
]


@cache
def log() -> Log:
    return draw_world(WORLD).draw_log(800).log


@cache
def fresh() -> RandomLog:
    return draw_world(WORLD).draw_fresh(2000)


@cache
def fitted(place: int) -> ResponseModel:
    return MODELS[place].fit(log())


def relative_error(model: ResponseModel) -> float:
    wrong = model.predict(fresh().table) - fresh().truth
    return float(np.sqrt((wrong**2).mean() / fresh().truth.var()))


every = pytest.mark.parametrize("place", range(len(MODELS)), ids=[repr(model)[:22] for model in MODELS])


@every
def test_curves_are_chances_times_amounts_and_never_fall_also_after_saving(place: int) -> None:
    model = fitted(place)
    curves = model.predict(fresh().table)
    amounts = model.amounts_(model.encode(fresh().table))  # type: ignore[attr-defined]
    assert (np.diff(curves, axis=1) >= 0).all()
    assert (curves >= 0).all()
    assert (curves <= amounts).all()
    assert curves.mean() == pytest.approx(fresh().truth.mean(), rel=0.2)
    again = type(model).from_state(*model.state(), list_model_classes())
    assert again.predict(fresh().table).tobytes() == curves.tobytes()


@every
def test_fold_models_have_not_seen_their_fold(place: int) -> None:
    model = fitted(place)
    rows = log().take(np.arange(400))
    fold, X = assign_folds(rows, 2, 0), model.encode(rows)
    (one,) = fit_fold_copies([MODELS[place]], X, rows, fold, model)
    huge = np.where(fold == 0, 50.0, 1.0) * rows.response  # what the first fold holds must not matter to its model
    (other,) = fit_fold_copies([MODELS[place]], X, replace(rows, response=huge), fold, model)
    assert np.allclose(one[0].predict(fresh().table), other[0].predict(fresh().table))
    assert other[1].predict(fresh().table).mean() > 20 * one[1].predict(fresh().table).mean()
    assert np.isfinite(score_held_out_rows(one, X, fold, Link(False))).all()


def test_two_parts_err_less_than_one() -> None:
    assert relative_error(fitted(0)) < 0.9 * relative_error(Boosting().fit(log()))


def test_a_plan_of_linear_and_additive_models_gains_over_uniform() -> None:
    from largesse.allocation import allocate

    budget = draw_world(WORLD).budgets[0]
    for place in (2, 3):
        plan = allocate(fitted(place).predict(fresh().table), fresh().costs, budget)
        assert fresh().skill(plan.levels, budget) > 0.1


def test_responses_of_one_part_go_to_the_model_of_chances_as_they_are() -> None:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(300, 2)), rng.integers(0, 3, 300)
    plain = X[:, 0] + level + rng.normal(size=300)
    for response in (plain, np.exp(plain), (plain > 1).astype(float)):
        model = Hurdle(chance=Linear(penalty=0.01)).fit(X, level, response)
        alone = Linear(penalty=0.01).fit(X, level, response)
        assert model.amounts_ is None
        assert np.array_equal(model.predict(X), alone.predict(X))


@pytest.mark.parametrize("settings", [{"chance": "both"}, {"amount": "much"}, {"amount": None}])
def test_settings_that_are_no_models_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"leave (chance|amount)='auto'"):
        Hurdle(**settings).fit(log())


def purchases(n: int = 3000, *, rise: float = 0.0, noise: float = 1.0, slope: float = 0.7, seed: int = 0) -> Log:
    """Four in ten buy, for log-normal amounts that rise with the first feature and, if asked, with the level."""
    rng = np.random.default_rng(seed)
    X, level = rng.normal(size=(n, 3)), rng.integers(0, 3, n)
    mean = 3 + slope * X[:, 0] + rise * level
    amounts = np.exp(mean + noise * rng.normal(size=n))
    return log_from_arrays(X, level, (rng.random(n) < 0.4) * amounts)


def encoded(log: Log) -> tuple[Array, Encoder]:
    encoder = Encoder()
    return encoder.fit_transform(log.features, log.response, seed=0), encoder


def fit(log: Log) -> tuple[ResponderAmounts, Array]:
    X, encoder = encoded(log)
    return fit_responder_amounts(X, log, encoder, "auto", 0), X


@cache
def plain_fit() -> tuple[ResponderAmounts, Array, Log]:
    log = purchases()
    return *fit(log), log


# ---------------------------------------------------------------------------------------------- which logs


@pytest.mark.parametrize(
    ("responses", "parts", "looks"),
    [
        ([0, 0, 0, 1, 1, 0], False, False),  # 0/1
        ([0, 0, 0, 5, 5, 0], True, True),  # one amount
        ([0, 0, 3, 4, 90, 0], True, True),
        ([0, 0, 8, 9, 9, 1], True, False),  # the tail is to the left
        ([0, -1, 8, 9, 90, 1], False, False),
        ([1, 1, 8, 9, 90, 1], False, False),  # no zeros
    ],
)
def test_two_parts_are_zeros_and_amounts(responses: list[float], parts: bool, looks: bool) -> None:
    log = log_from_arrays(np.zeros((6, 1)), [0, 1] * 3, responses)
    assert (has_zeros_and_amounts(log), suits_hurdle_model(log)) == (parts, looks)


def test_few_zeros_and_zeros_without_weight_are_no_part_of_their_own() -> None:
    log = purchases(200)
    few = replace(log, response=np.where(np.arange(200) < 5, 0.0, log.response + 1.0))
    light = replace(log, weight=np.where(log.response > 0, 1.0, 1e-3))
    assert has_zeros_and_amounts(few)
    assert [suits_hurdle_model(each) for each in (log, few, light)] == [True, False, False]


def test_whether_is_one_for_every_amount() -> None:
    log = purchases(200)
    assert mark_responders(log).binary
    assert np.array_equal(mark_responders(log).response > 0, log.response > 0)


# ---------------------------------------------------------------------------------------------- how much


def test_means_of_long_tails_are_not_biased_by_logarithms() -> None:
    # Without a correction, exponentials of mean logarithms would be too low by a factor of exp(−noise² / 2) = .61.
    ratios = []
    for seed in range(3):
        log = purchases(seed=seed)
        amounts, X = fit(log)
        truth = np.exp(3 + 0.7 * np.asarray(log.features.column(0)) + 0.5)
        ratios.append(amounts(X)[:, 0].mean() / truth.mean())
    assert 0.9 < np.mean(ratios) < 1.1


def test_what_features_say_about_amounts_is_learnt() -> None:
    amounts, X, log = plain_fit()
    truth = 0.7 * np.asarray(log.features.column(0))
    assert np.corrcoef(np.log(amounts(X)[:, 0]), truth)[0, 1] > 0.9


def test_noise_is_not_followed() -> None:
    amounts, X = fit(purchases(600, slope=0.0, noise=1.4))
    assert np.log(amounts(X)[:, 0]).std() < 0.15


def test_one_purchase_of_any_size_does_not_decide_who_spends_more() -> None:
    amounts, X, log = plain_fit()
    response = log.response.copy()
    response[np.flatnonzero(response > 0)[7]] = 1e7
    changed, _ = fit(replace(log, response=response))
    one, other = np.log(amounts(X)[:, 0]), np.log(changed(X)[:, 0])
    assert (one - other).std() < 0.1 * one.std()


def test_level_effects_are_shrunk_unless_many_responders_say_more() -> None:
    few, _ = fit(purchases(300, rise=0.3, seed=1))
    many, _ = fit(purchases(20_000, rise=0.3, seed=1))
    assert 0 <= few.effects[-1] < 0.45  # the truth is 0.6
    assert 0.5 < many.effects[-1] < 0.65
    falling, _ = fit(purchases(rise=-0.3))
    assert np.array_equal(falling.effects, np.zeros(3))


@pytest.mark.parametrize("responders", [0, 1, 2, MIN_RESPONDERS - 1])
def test_few_responders_have_one_amount_for_all(responders: int) -> None:
    log = purchases(300)
    late = np.cumsum(log.response > 0) > responders
    amounts, X = fit(replace(log, response=np.where(late, 0.0, log.response)))
    assert amounts.model is None
    assert np.isfinite(amounts(X)).all()
    assert np.ptp(amounts(X)[:, 0]) == 0


def test_another_model_of_amounts_can_be_given() -> None:
    log = purchases(600)
    X, encoder = encoded(log)
    amounts = fit_responder_amounts(X, log, encoder, Linear(penalty=0.01), 0)
    assert isinstance(amounts.model, Linear)
    assert amounts.slope == pytest.approx(1.0, abs=0.1)
    # Customers unlike any responder get no amounts beyond theirs.
    far = np.full((1, X.shape[1]), 1e4, dtype=np.float32)
    assert amounts(far).max() <= 3 * log.response.max()
