"""Whether times how much, as a model of its own and inside others."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from flat import flat

from largesse.errors import InputError
from largesse.records import Log
from largesse.response.additive import Additive
from largesse.response.base import ResponseModel
from largesse.response.boosting import Boosting
from largesse.response.catalogue import model_classes
from largesse.response.fold_ensemble import fit_folds, held_out_scores
from largesse.response.hurdle import Hurdle
from largesse.response.level_effects import Link
from largesse.response.linear import Linear
from largesse.response.networks.sire import SIRE
from largesse.stats import assign_folds
from largesse.worlds import RandomLog, draw_world

WORLD = 42  # three levels, a third of customers buy, log-normal amounts
SMALL: dict[str, Any] = {
    "kappa": 0.0,
    "shrinkage": 0.1,
    "width": 8,
    "rate": 0.03,
    "decay": 0.1,
    "batch": 64,
    "epochs": 5,
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
def test_curves_are_chances_times_amounts_and_never_fall(place: int) -> None:
    model = fitted(place)
    curves = model.predict(fresh().table)
    amounts = model.amounts_(model.encode(fresh().table))  # type: ignore[attr-defined]
    assert (np.diff(curves, axis=1) >= 0).all()
    assert (curves >= 0).all()
    assert (curves <= amounts).all()
    assert curves.mean() == pytest.approx(fresh().truth.mean(), rel=0.2)


@every
def test_it_is_saved_and_read_back(place: int) -> None:
    model = fitted(place)
    again = type(model).from_state(*model.state(), model_classes())
    assert again.predict(fresh().table).tobytes() == model.predict(fresh().table).tobytes()


@every
def test_fold_models_have_not_seen_their_fold(place: int) -> None:
    model = fitted(place)
    fold = assign_folds(log(), 2, 0)
    X = model.encode(log())
    one = fit_folds(MODELS[place], X, log(), fold, model)
    huge = np.where(fold == 0, 50.0, 1.0) * log().response  # what the first fold holds must not matter to its model
    other = fit_folds(MODELS[place], X, _with(huge), fold, model)
    assert np.allclose(one[0].predict(fresh().table), other[0].predict(fresh().table))
    assert other[1].predict(fresh().table).mean() > 20 * one[1].predict(fresh().table).mean()
    assert np.isfinite(held_out_scores(one, X, fold, Link(False))).all()


def _with(response: Any) -> Log:
    from dataclasses import replace

    return replace(log(), response=response)


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
