"""What every response model keeps to. A new one is one line in MODELS; every class of the catalogue must be among them."""

import inspect
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from largesse.data.log_reader import log_from_arrays, read_log
from largesse.errors import InputError, NotFittedError
from largesse.levels import Levels
from largesse.policy.policy import Policy
from largesse.records import Array, Customers, Log
from largesse.response.additive import Additive
from largesse.response.boosting import Boosting
from largesse.response.linear import Linear
from largesse.response.model_catalogue import list_model_classes
from largesse.response.networks.sire import IRE, SIRE
from largesse.response.response_model import ResponseModel
from largesse.response.stacking import Stack
from largesse.response.threshold_model import Thresholds
from largesse_lab.baselines.bart import BART
from largesse_lab.baselines.cfrnet import CFRNet
from largesse_lab.baselines.ganite import GANITE
from largesse_lab.baselines.tlearner import TLearner
from support.models import flat


def slow(model: ResponseModel) -> Any:
    return pytest.param(model, marks=pytest.mark.slow)


def values_of(params: list[Any]) -> list[ResponseModel]:
    return [getattr(param, "values", (param,))[0] for param in params]


MODELS: list[Any] = [
    Linear(penalty=0.01),
    Additive(),
    Thresholds(),
    Boosting(rounds=20),
    Stack(models=[Linear(penalty=0.01), Boosting(rounds=10)], folds=2),
    # Each log of another shape takes seconds to compile for: the fast tests of networks are in files of their own.
    slow(flat(SIRE, kappa=0.0, shrinkage=0.1, width=8, rate=0.03, decay=0.1, batch=32, epochs=5, folds=2)),
    slow(flat(IRE, kappa=0.0, width=8, rate=0.03, decay=0.1, batch=32, epochs=5, folds=2)),
    slow(
        flat(
            CFRNet,
            alpha=0.001,
            ipm="linear",
            width=8,
            depth=1,
            head_width=8,
            head_depth=1,
            initial_scale=1.0,
            rate=0.003,
            steps=600,
        )
    ),
    slow(flat(GANITE, width=16, rate=0.003, steps=600, batch=128)),
    BART(trees=20, draws=20, warm=5),
    TLearner(model=Linear(penalty=0.01)),
]
# A model that needs no special settings for these tests comes from the catalogue as it is.
# Those that learn from costs, which are zero or more, have tests of their own.
OF_COSTS = ("WithCosts", "Proportional")
MODELS += [
    kind()
    for name, kind in list_model_classes().items()
    if name not in OF_COSTS and not any(isinstance(param, kind) for param in values_of(MODELS))
]
PARAMS = values_of(MODELS)
BASELINES = {kind.__name__: kind for kind in (BART, CFRNet, GANITE, TLearner)}
FREE = (IRE, CFRNet, GANITE, BART, TLearner)  # their curves may fall in the level


@pytest.fixture(params=MODELS, ids=lambda model: type(model).__name__)
def model(request: pytest.FixtureRequest) -> ResponseModel:
    return clone(request.param)


def arrays(n: int = 240, K: int = 3, *, amounts: bool = False, seed: int = 0, p: int = 3) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X, level = rng.normal(size=(n, p)), rng.permutation(np.arange(n) % K)
    score = X[:, 0] + 0.6 * level - 0.5
    if amounts:
        return X, level, 40 + 10 * score + rng.normal(size=n)
    return X, level, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(float)


@cache
def _fit(made: str, options: tuple[tuple[str, Any], ...]) -> ResponseModel:
    model = next(param for param in PARAMS if repr(param) == made)
    return clone(model).fit(*arrays(**dict(options)))


def fit_once(model: ResponseModel, **options: Any) -> ResponseModel:
    """Return the model fitted to `arrays(**options)`; tests that leave it as it is share it."""
    return _fit(repr(model), tuple(sorted(options.items())))


@cache
def _fit_table(made: str) -> ResponseModel:
    return clone(next(param for param in PARAMS if repr(param) == made)).fit(read(table()))


def table(n: int = 240, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    city = rng.choice(["Oslo", "Rome", "Bonn"], n)
    age, level = rng.uniform(18, 80, n), rng.permutation(np.arange(n) % 3)
    bought = (rng.random(n) < 0.2 + 0.15 * level + 0.3 * (city == "Rome")).astype(int)
    return {"age": age, "city": city.tolist(), "coupon": level, "bought": bought}


def read(source: Any) -> Log:
    return read_log(source, level="coupon", response="bought", levels=Levels(costs=[0, 1, 2]))


# ---------------------------------------------------------------------------------------------- scikit-learn's contract


def test_settings_are_stored_and_changed_by_name(model: ResponseModel) -> None:
    kind = type(model)
    marks = {name: object() for name in inspect.signature(kind).parameters}
    assert vars(kind(**marks)) == marks  # type: ignore[arg-type]
    assert all(p.kind is p.KEYWORD_ONLY for p in inspect.signature(kind).parameters.values())
    assert model.set_params(seed=5) is model
    assert model.get_params()["seed"] == 5
    assert "seed=5" in repr(model)
    with pytest.raises(InputError, match="did you mean 'seed'"):
        model.set_params(sed=1)


def test_fitting_adds_learnt_names_alone_and_clone_drops_them(model: ResponseModel) -> None:
    fitted = fit_once(model)
    assert all(name.endswith("_") for name in set(vars(fitted)) - set(vars(model)))
    assert repr(clone(fitted)) == repr(fitted) == repr(model)
    assert not [name for name in vars(clone(fitted)) if name.endswith("_")]


def test_choices_say_what_they_were_choices_of(model: ResponseModel) -> None:
    choices = fit_once(model).choices_
    assert all(choice.of for choice in choices)
    assert sum(choice.chosen for choice in choices) >= len({choice.of for choice in choices})


# ---------------------------------------------------------------------------------------------- fit and predict


def test_a_log_and_its_arrays_teach_the_same_bits(model: ResponseModel) -> None:
    X, level, response = arrays()
    log = log_from_arrays(X, level, response)
    one, other = clone(model).fit(log), fit_once(model)
    assert one.predict(X).tobytes() == other.predict(X).tobytes()
    assert one.fingerprint_ == other.fingerprint_ == log.fingerprint
    for customers in (log, Customers(log.features), log.features, X.tolist()):
        assert np.array_equal(one.predict(customers), one.predict(X))


@pytest.mark.parametrize("K", [2, 6])  # three levels are in most other tests
@pytest.mark.parametrize("amounts", [False, True])
def test_curves_have_one_finite_number_per_customer_and_level(model: ResponseModel, K: int, amounts: bool) -> None:
    options: dict[str, Any] = {"K": K, "amounts": amounts}
    curves = fit_once(model, **options).predict(arrays(**options)[0][:50])
    assert curves.shape == (50, K)
    assert curves.dtype == np.float64
    assert np.isfinite(curves).all()
    if not amounts:
        assert curves.min() >= 0
        assert curves.max() <= 1


@pytest.mark.parametrize("amounts", [False, True])
def test_curves_never_fall_in_the_level(model: ResponseModel, amounts: bool) -> None:
    X, level, response = arrays(amounts=amounts, K=6)
    falling = response - 0.8 * (level if amounts else 0)
    wild = np.random.default_rng(9).normal(size=(300, 3)) * 5
    if isinstance(model, FREE):
        pytest.skip("its curves are free")
    assert (np.diff(model.fit(X, level, falling).predict(wild), axis=1) >= 0).all()


@pytest.mark.parametrize("amounts", [False, True])
def test_something_is_learnt(model: ResponseModel, amounts: bool) -> None:
    X, level, response = arrays(1000, amounts=amounts)
    curves = model.fit(X, level, response).predict(X)
    fitted = curves[np.arange(1000), level]
    assert ((fitted - response) ** 2).mean() < 0.9 * response.var()
    least = 0.05 if isinstance(model, GANITE) else 0.1  # its adversary hardly sees an effect of 0/1 responses
    assert (curves[:, 2] - curves[:, 0]).mean() > (5 if amounts else least)


def test_each_row_is_predicted_on_its_own(model: ResponseModel) -> None:
    X, model = arrays()[0], fit_once(model)
    curves = model.predict(X)
    np.testing.assert_allclose(model.predict(X[::-1])[::-1], curves, rtol=1e-5)
    np.testing.assert_allclose(model.predict(X[3:4]), curves[3:4], rtol=1e-5)
    assert model.predict(np.zeros((0, 3))).shape == (0, 3)


def test_fitting_again_forgets_what_was_learnt_before(model: ResponseModel) -> None:
    X, level, response = arrays()
    again = clone(model).fit(*arrays(seed=5, K=2)).fit(X, level, response)
    assert np.array_equal(again.predict(X), fit_once(model).predict(X))


# ---------------------------------------------------------------------------------------------- tables and bad input


def test_columns_are_found_by_name_in_any_frame(model: ResponseModel) -> None:
    columns, model = table(), _fit_table(repr(model))
    expected = model.predict(pa.table({"age": columns["age"], "city": columns["city"]}))
    for frame in (pd.DataFrame, pl.DataFrame, pa.table):
        turned = frame({"extra": np.zeros(240), "city": columns["city"], "age": columns["age"]})
        assert np.array_equal(model.predict(turned), expected)


def test_categories_never_seen_and_missing_values_are_predicted(model: ResponseModel) -> None:
    curves = _fit_table(repr(model)).predict(pa.table({"age": [30.0, None, 1e9], "city": ["Lima", None, "Rome"]}))
    assert np.isfinite(curves).all()
    assert isinstance(model, FREE) or (np.diff(curves, axis=1) >= 0).all()


def test_bad_input_is_refused_in_words(model: ResponseModel) -> None:
    X, level, response = arrays()
    name = type(model).__name__
    with pytest.raises(NotFittedError, match=rf"call {name}\(\)\.fit\(log\) first"):
        model.predict(np.zeros((1, 3)))
    with pytest.raises(NotFittedError, match="not been fitted"):
        model.state()
    for data, words in (
        ((X,), "no level or response"),
        ((X, level[1:], response), r"level has shape \(239,\)"),
        ((X[:, 0], level, response), r"features have shape \(240,\)"),
    ):
        with pytest.raises(InputError, match=words):
            model.fit(*data)
    with pytest.raises(InputError, match="levels"):
        model.fit(log_from_arrays(X, level, response), weight=np.ones(len(X)))
    for customers, words in (
        (X[:, :2], "the array has 2 columns; the model was fitted with 3"),
        (np.column_stack([X, X[:, 0]]), "the array has 4 columns; the model was fitted with 3"),
    ):
        with pytest.raises(InputError, match=words):
            fit_once(model).predict(customers)
    for columns, words in (
        ({"age": [30.0], "citi": ["Rome"]}, "'city' is not in the table"),
        ({"age": ["old"], "city": ["Rome"]}, "'age' holds text"),
    ):
        with pytest.raises(InputError, match=words):
            _fit_table(repr(model)).predict(pa.table(columns))


# ---------------------------------------------------------------------------------------------- odd logs


def test_a_level_with_a_single_row_is_still_predicted(model: ResponseModel) -> None:
    X, level, response = arrays()
    level = np.minimum(level, 1)
    level[7] = 2
    curves = model.fit(X, level, response).predict(X)
    assert curves.shape == (240, 3)
    assert np.isfinite(curves).all()


def test_one_feature_is_enough_and_constant_ones_change_nothing(model: ResponseModel) -> None:
    X, level, response = arrays()
    wide = np.column_stack([X, np.full(240, 7.0)])
    assert np.array_equal(fit_once(model).predict(X), clone(model).fit(wide, level, response).predict(wide))
    same = clone(model).fit(np.ones((240, 2)), level, response).predict(np.ones((5, 2)))
    assert np.ptp(same, axis=0).max() == 0  # one curve for all
    X, level, response = arrays(p=1)
    assert model.fit(X, level, response).predict(X).shape == (240, 3)


@pytest.mark.parametrize("events", [1, 2, 12])
def test_a_rare_response_can_be_learnt_from(model: ResponseModel, events: int) -> None:
    X, level, _ = arrays(600)
    response = np.zeros(600)
    response[np.flatnonzero(level == 2)[:events]] = 1
    curves = model.fit(X, level, response).predict(X)
    assert curves.mean() < 0.1


def test_the_unit_of_an_amount_does_not_matter(model: ResponseModel) -> None:
    X, level, response = arrays(amounts=True)
    response -= 40  # some below zero: in no unit do they look like shares in [0, 1]
    curves = clone(model).fit(X, level, response).predict(X)
    for factor in (1e-3, 1e3):
        other = clone(model).fit(X, level, factor * response).predict(X)
        np.testing.assert_allclose(other / factor, curves, rtol=2e-3, atol=2e-3 * response.std())


# Boosting counts the rows of a leaf, batches are drawn by row, an adversary is a noisy teacher, and a posterior is surer
# of three rows than of one that weighs three.
_NEAR = {
    "Boosting": 0.06,
    "Stack": 0.02,
    "SIRE": 0.04,
    "IRE": 0.04,
    "CFRNet": 0.06,
    "GANITE": 0.12,
    "BART": 0.12,
}


def test_weights_count_like_repeated_rows(model: ResponseModel) -> None:
    X, level, response = arrays(600, seed=3)
    alone = isinstance(model, CFRNet | GANITE)  # what they hold out is drawn row by row
    heavy = X[:, 1] > (0.0 if alone else np.median(X[:, 1]))
    times = np.where(heavy, 3, 1)
    # A heavy and a light row are a couple: copies stay in one fold, and folds are the same with weights and with copies.
    couple = np.where(heavy, np.cumsum(heavy), np.cumsum(~heavy))
    again = np.repeat(np.arange(600), times)

    def curves(rows: Array, **more: Any) -> Array:
        log = log_from_arrays(X[rows], level[rows], response[rows], cluster=None if alone else couple[rows], **more)
        return clone(model).fit(log).predict(X)

    by_weight, by_copies = curves(np.arange(600), weight=times.astype(float)), curves(again)
    by_neither = curves(np.arange(600))
    assert np.abs(by_weight - by_copies).mean() < _NEAR.get(type(model).__name__, 0.002)
    assert np.abs(by_weight - by_neither).max() > 1e-3


# ---------------------------------------------------------------------------------------------- saving


@pytest.mark.parametrize("options", [{}, {"amounts": True}, None], ids=["0/1", "amounts", "table"])
def test_a_saved_policy_has_the_same_curves_bit_for_bit(
    model: ResponseModel, options: dict[str, Any] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("largesse.policy.policy.list_model_classes", lambda: list_model_classes() | BASELINES)
    model = _fit_table(repr(model)) if options is None else fit_once(model, **options)
    Policy(model, Levels(costs=[0, 1, 2]), price=0.1).save(tmp_path / "policy")
    saved = Policy.load(tmp_path / "policy").model
    odd = pa.table({"age": [30.0, None], "city": ["Lima", None]})
    for customers in (read(table()), odd) if options is None else (arrays(**options)[0],):
        assert saved.predict(customers).tobytes() == model.predict(customers).tobytes()
    assert (saved.fingerprint_, saved.levels_, saved.binary_) == (model.fingerprint_, 3, not options)
    assert saved.choices_ == model.choices_
