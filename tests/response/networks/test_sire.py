"""SIRE and IRE: what they choose, what they refuse, what they keep, and the shape of their curves."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from largesse.data.log_reader import log_from_arrays, read_log
from largesse.errors import InputError, PolicyFileError
from largesse.levels import Levels
from largesse.policy.policy import Policy
from largesse.records import Array, Log
from largesse.response.networks import network_settings_search as search
from largesse.response.networks.fitted_networks import ResponseScale
from largesse.response.networks.network_settings import MONOTONE
from largesse.response.networks.sire import IRE, KAPPA_CANDIDATES, PLAIN_KAPPAS, SHRINKAGE_PENALTIES, SIRE
from largesse.response.networks.sire_training import compute_representations
from largesse.stats.folds import assign_folds
from largesse.worlds.paper_simulations import simulate
from support.models import flat, leave_untrained

# The same small network everywhere: it is compiled once. Where training does not matter, nothing is trained.
TINY: dict[str, Any] = {
    "kappa": 0.0,
    "width": 8,
    "rate": 0.03,
    "decay": 0.1,
    "batch": 32,
    "epochs": 5,
    "members": 1,
    "folds": 2,
}
KINDS = ("binary", "fractions", "amounts")
CUSTOMERS = np.random.default_rng(3).normal(size=(20_000, 3)) * 3


def sire(**other: Any) -> SIRE:
    return flat(SIRE, **({"shrinkage": 0.1} | TINY | other))


def ire(**other: Any) -> IRE:
    return flat(IRE, **(TINY | other))


def arrays(K: int = 3, kind: str = "binary", n: int = 240) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(n, 3)), rng.permutation(np.arange(n) % K)
    chance = 1 / (1 + np.exp(-(X[:, 0] + 0.6 * level - 0.5)))
    if kind == "binary":
        return X, level, (rng.random(n) < chance).astype(float)
    return X, level, chance if kind == "fractions" else 100 * chance - 20


@cache
def fitted(kind: str = "binary") -> SIRE:
    """The usual model, trained: for reading only."""
    return sire().fit(*arrays(kind=kind))


def untrained(model: Any, *data: Any) -> Any:
    with leave_untrained():
        return model.fit(*(data or arrays()))


def named_log(loggers: Any = None) -> Log:
    X, level, response = arrays()
    table = {"a": X[:, 0], "b": X[:, 1], "level": level, "response": response}
    roles = {} if loggers is None else {"logger": "who"}
    table |= {} if loggers is None else {"who": loggers}
    return read_log(table, level="level", response="response", levels=Levels(costs=[0, 1, 2]), **roles)


def tried(model: Any) -> list[float]:
    return [float(choice.name) for choice in model.kappa_choices_]


# ---------------------------------------------------------------------------------------------- what is chosen


@pytest.mark.slow
def test_common_increments_are_chosen_where_all_customers_climb_alike() -> None:
    sim = simulate("averaged", n=500)
    model = sire(shrinkage="auto", rate=0.01, epochs=10).fit(sim.log)
    assert [float(choice.name) for choice in model.shrinkage_choices_] == list(SHRINKAGE_PENALTIES)
    assert model.penalty_ == np.inf
    assert not model.fit_.gate.any()
    steps = np.diff(model.fit_.scores(model.encode(sim.log)), axis=1)
    assert np.ptp(steps, axis=0).max() < 1e-5


@pytest.mark.parametrize(
    "rule", [pytest.param("auto", marks=pytest.mark.slow), "dr", pytest.param("loggers", marks=pytest.mark.slow)]
)
def test_a_rule_for_kappa_keeps_what_was_tried(rule: str) -> None:
    model = sire(kappa=rule).fit(named_log(np.arange(240) % 3 if rule == "loggers" else None))
    assert tried(model) == list(KAPPA_CANDIDATES)
    (chosen,) = [choice for choice in model.kappa_choices_ if choice.chosen]
    assert chosen.loss == min(choice.loss for choice in model.kappa_choices_)
    assert float(chosen.name) == model.kappa_


def test_no_balance_is_always_tried_but_a_given_kappa_is_taken() -> None:
    for kappa in ([1 / 3], (0.0, 1 / 3), np.array([1 / 3])):
        model = untrained(sire(kappa=kappa))
        assert tried(model) == pytest.approx([0, 1 / 3], rel=1e-5)
        assert model.kappa_ in (0.0, 1 / 3)
    given = untrained(ire(kappa=1 / 3))
    assert (given.kappa_, len(given.kappa_choices_)) == (1 / 3, 1)


def test_the_scale_of_the_representation_has_its_own_strengths() -> None:
    assert max(PLAIN_KAPPAS) == 1000
    for normalise, strengths in ((True, KAPPA_CANDIDATES), ("auto", KAPPA_CANDIDATES), (False, PLAIN_KAPPAS)):
        assert tried(untrained(ire(kappa="auto", normalise=normalise))) == list(strengths)


def test_only_the_penalty_that_is_not_normalised_shrinks_the_representation() -> None:
    def spread(**other: Any) -> float:
        model = ire(epochs=20, decay=0.0, **other).fit(*arrays())
        z = compute_representations(model.fit_.params, model.encode(arrays()[0]), model.fit_.shape)
        return float(z.std(axis=1).mean())

    without = spread(kappa=0.0)
    assert spread(kappa=30.0, normalise=False) < 0.7 * without
    assert spread(kappa=30.0, normalise=True) > 0.9 * without


def test_choices_say_what_they_were_choices_of() -> None:
    choices = untrained(sire(kappa=[0.3], shrinkage="auto")).choices_
    names = [choice.name for choice in choices]
    assert names[:4] == ["guess", "regression", "inf", "0.3"]
    assert names[-2:] == ["κ = 0", "κ = 0.3"]
    assert {choice.of for choice in choices} == {
        "SIRE: training starts at",
        "SIRE: own increments held by",
        "SIRE: balance",
    }
    assert sum(choice.chosen for choice in choices) == 3


def test_the_usual_head_is_thresholds_only_for_many_features_and_responses_in_the_unit_interval() -> None:
    for features, bounded, head in [(101, True, "cdf"), (100, True, "elastic"), (101, False, "elastic")]:
        assert SIRE()._choose_head(ResponseScale(bounded), features) == head
        assert SIRE(head="minmax")._choose_head(ResponseScale(bounded), features) == "minmax"


def test_settings_of_many_rows_are_chosen_on_some_and_networks_learn_from_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    score = search.NetworkSettingsSearch._predict_held_out_scores

    def counted(self: Any, candidate: Any, params: Any, fold: Array, parts: Array) -> Array:
        rows.append(len(fold))
        return score(self, candidate, params, fold, parts)

    monkeypatch.setattr(search, "SETTINGS_SEARCH_ROWS", 100)
    monkeypatch.setattr(search.NetworkSettingsSearch, "_predict_held_out_scores", counted)
    model = untrained(sire(kappa=[0.0, 1.0], shrinkage="auto", members=2))
    assert rows == [100] * (len(rows) - 2) + [240, 240]  # the best candidate, and its second member
    assert len(model.kappa_choices_) == 2
    assert len(model.fit_.gate) == 4
    rows.clear()
    untrained(sire(kappa=0.0, shrinkage=0.1, start="guess"))  # nothing is chosen
    assert set(rows) == {240}


# ---------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("settings", "hints"),
    [
        ({"kappa": "dre"}, ["did you mean 'dr'"]),
        ({"kappa": -1.0}, ["zero or more"]),
        ({"kappa": [1.0, -1.0]}, ["zero or more"]),
        ({"kappa": float("nan")}, ["zero or more"]),
        ({"shrinkage": "cv"}, ["'auto'"]),
        ({"shrinkage": -0.1}, ["zero or more"]),
        ({"head": "elastc"}, ["did you mean 'elastic'"]),
        ({"head": "free"}, [""]),
        ({"activation": "rele"}, ["did you mean 'relu'"]),
        ({"optimiser": "adm"}, ["did you mean 'adam'"]),
        ({"schedule": "cosin"}, ["did you mean 'cosine'"]),
        ({"start": "gues"}, ["did you mean 'guess'"]),
        ({"kernel": "liner"}, ["did you mean 'linear'"]),
        ({"estimator": "unbiassed"}, ["did you mean 'unbiased'"]),
        *(({name: 0}, ["1 or more"]) for name in ("width", "depth", "batch", "epochs", "patience", "folds", "members")),
        ({"kappa": "cvv", "head": "nothing", "optimiser": "none", "folds": 0}, ["cvv", "nothing", "none", "1 or more"]),
    ],
    ids=str,
)
def test_bad_settings_are_refused_together_in_words(settings: dict[str, Any], hints: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        sire(**settings).fit(*arrays())
    assert len(caught.value.problems) == len(settings)
    assert all(f"{name}={value!r}" in str(caught.value) for name, value in settings.items())
    assert all(hint in str(caught.value) for hint in hints)


def test_settings_that_do_not_fit_the_log_are_refused() -> None:
    with pytest.raises(InputError, match="IRE: 2 things are wrong"):
        flat(IRE, kappa="cvv", optimiser="none").fit(*arrays())
    with pytest.raises(InputError, match="head='cdf'"):
        sire(head="cdf").fit(*arrays(kind="amounts"))
    for loggers in (None, np.zeros(240, dtype=int)):
        with pytest.raises(InputError, match="kappa='loggers'"):
            sire(kappa="loggers").fit(named_log(loggers))


# ---------------------------------------------------------------------------------------------- what is learnt from


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [fitted, pytest.param(None, marks=pytest.mark.slow)], ids=["SIRE", "IRE"])
def test_any_kind_of_response_is_learnt(make: Callable[[str], Any] | None, kind: str) -> None:
    X, level, response = arrays(kind=kind)
    curves = (make(kind) if make else ire().fit(X, level, response)).predict(X)
    own = curves[np.arange(len(X)), level]
    assert ((own - response) ** 2).mean() < 0.95 * response.var()
    if kind != "amounts":
        assert 0 <= curves.min() <= curves.max() <= 1


def test_two_levels_and_one_fold_are_enough() -> None:
    X, level, response = arrays(K=2)
    curves = untrained(sire(), X, level, response).predict(X)
    assert curves.shape == (240, 2)
    assert (np.diff(curves, axis=1) >= 0).all()
    single = untrained(sire(folds=1))  # a single model with a hold-out
    assert len(single.fit_.gate) == 1
    assert single.predict(X).shape == (240, 3)


def test_only_the_ratio_of_weights_matters() -> None:
    X, level, response = arrays()
    plain = fitted().predict(X)
    assert np.array_equal(sire().fit(X, level, response, weight=np.full(240, 8.0)).predict(X), plain)
    heavy = sire().fit(X, level, response, weight=np.where(response > 0, 5.0, 1.0)).predict(X)
    assert heavy.mean() > plain.mean() + 0.1


def test_clusters_are_held_out_whole() -> None:
    X, level, response = arrays()
    model = untrained(sire(folds=5), log_from_arrays(X, level, response, cluster=np.arange(240) % 2))
    assert len(model.fit_.gate) == 2  # two clusters: two models, each trained on one of them
    log = log_from_arrays(X, level, response, cluster=np.zeros(240, dtype=int))
    with pytest.raises(InputError, match="same cluster"):
        sire().fit(log)


def test_fold_models_average_to_the_model() -> None:
    log, model = log_from_arrays(*arrays()), fitted()
    X = model.encode(log)
    blank: Any = clone(model)
    blank.encoder_, blank.levels_ = model.encoder_, 3
    parts = blank.fold_models(X, log, assign_folds(log, 2, model.seed))
    mean = np.mean([part.fit_.scores(X) for part in parts], axis=0)
    np.testing.assert_allclose(model.fit_.calibration(mean), model.fit_.scores(X), atol=1e-5)


def test_each_fold_is_the_mean_of_its_members() -> None:
    one, three = untrained(sire()), untrained(sire(members=3))
    assert len(three.fit_.gate) == 6
    assert three.fit_.folds == 2
    for name, value in one.fit_.params.items():  # the first member starts where a single one does
        np.testing.assert_allclose(three.fit_.params[name][:2], value, atol=1e-5)
        if value.ndim == 3:
            assert np.abs(three.fit_.params[name][2:4] - value).max() > 1e-3
    assert [len(three.fit_.networks_of_fold(j).gate) for j in range(2)] == [3, 3]
    X = three.encode(arrays()[0])
    mean = np.mean([three.fit_.networks_of_fold(j).scores(X) for j in range(2)], axis=0)
    np.testing.assert_allclose(three.fit_.calibration(mean), three.fit_.scores(X), atol=1e-5)


def test_a_falling_rate_trains_another_model_than_a_constant_one() -> None:
    X, level, response = arrays()
    constant = sire(schedule="constant").fit(X, level, response).predict(X)
    assert np.abs(fitted().predict(X) - constant).max() > 1e-3


def test_rare_responses_with_large_steps_are_learnt_from_a_good_start() -> None:
    """One in fifty responds at level 0, one in two at level 2: far from where small equal steps start."""
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(1500, 2)), rng.integers(0, 3, 1500)
    truth = 1 / (1 + np.exp(-(np.array([-3.9, -1.5, 0.0])[level] + 0.3 * X[:, 0])))
    response = (rng.random(1500) < truth).astype(float)
    settings: dict[str, Any] = {"kappa": 0.0, "shrinkage": np.inf, "width": 16, "members": 1, "folds": 2}
    models = {start: flat(SIRE, start=start, **settings).fit(X, level, response) for start in ("auto", "guess")}
    assert [choice.name for choice in models["auto"].start_choices_ if choice.chosen] == ["regression"]
    raw = [response[level == k].mean() for k in range(3)]
    np.testing.assert_allclose(models["auto"].predict(X).mean(axis=0), raw, atol=0.04)
    assert np.abs(models["guess"].predict(X).mean(axis=0) - raw).max() > 0.08


@pytest.mark.slow
def test_a_small_log_is_seen_as_often_as_it_needs() -> None:
    X, level, response = arrays(n=60)
    few = sire(batch=512, epochs=4).fit(X, level, response).predict(X)
    many = sire(batch=512, epochs=4 * search.MIN_STEPS).fit(X, level, response).predict(X)
    assert np.abs(few - response.mean()).max() > 0.02
    assert np.abs(few - many).max() > 1e-4


# ---------------------------------------------------------------------------------------------- curves


@pytest.mark.slow
@pytest.mark.parametrize("head", MONOTONE)
def test_twenty_thousand_customers_never_lose_by_a_higher_level(head: str) -> None:
    X, level, response = arrays()
    curves = sire(head=head).fit(X, level, 1 - response).predict(CUSTOMERS)
    assert np.isfinite(curves).all()
    assert np.diff(curves, axis=1).min() >= -1e-6


@pytest.mark.parametrize("kind", ["binary", "amounts"])
def test_concave_curves_rise_ever_less(kind: str) -> None:
    curves = untrained(sire(head="concave"), *arrays(kind=kind)).predict(CUSTOMERS)
    unit = 1 if kind == "binary" else np.ptp(curves)
    assert np.diff(curves, axis=1).min() >= -1e-6 * unit
    assert np.diff(curves, n=2, axis=1).max() <= 1e-6 * unit


def test_a_mean_of_concave_curves_is_concave() -> None:
    """A mean of logits is not: here one model is flat and the other a straight line up to almost 1."""
    model = untrained(sire(head="concave"))
    mass = np.array([[0.5, 0.0, 0.499999, 1e-6], [0.01, 1e-9, 1e-9, 0.99]])
    params = {name: np.zeros_like(value) for name, value in model.fit_.params.items()}
    model.fit_ = replace(model.fit_, params=params | {"head_b": np.log(mass + 1e-12).astype(np.float32)})
    curves = model.predict(np.zeros((1, 3)))[0]
    np.testing.assert_allclose(curves, [0.255, 0.38, 0.505], atol=1e-4)


# ---------------------------------------------------------------------------------------------- keeping


@pytest.mark.parametrize("kind", ["binary", "amounts"])
@pytest.mark.parametrize(
    "model",
    [
        sire(),
        sire(shrinkage=np.inf),
        sire(kappa=[1 / 3]),
        ire(),
        pytest.param(ire(kappa=100.0, normalise=False), marks=pytest.mark.slow),
    ],
    ids=["one", "inf", "κ", "IRE", "as it is"],
)
def test_a_kept_policy_has_the_same_curves_bit_for_bit(model: Any, kind: str, tmp_path: Path) -> None:
    model = fitted(kind) if repr(model) == repr(sire()) else untrained(clone(model), *arrays(kind=kind))
    Policy(model, Levels(costs=[0, 1, 2]), price=0.1).save(tmp_path / "policy")
    kept: Any = Policy.load(tmp_path / "policy").model
    assert kept.predict(CUSTOMERS[:500]).tobytes() == model.predict(CUSTOMERS[:500]).tobytes()
    assert (kept.kappa_, kept.penalty_, kept.fit_.scale) == (model.kappa_, model.penalty_, model.fit_.scale)
    assert kept.get_params() == model.get_params()
    Policy(kept, Levels(costs=[0, 1, 2]), price=0.1).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "policy").read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        lambda params: {**params, "w0": params["w0"][:, :, :-1]},
        lambda params: {**params, "head_b": params["head_b"][:, :1]},  # would pass by broadcasting
        lambda params: {**params, "steps": params["steps"][:1]},
        lambda params: {name: value[:1] for name, value in params.items()},  # one model, two gates
        lambda params: {name: value for name, value in params.items() if name != "b1"},
        lambda params: {**params, "w9": params["w0"]},
    ],
    ids=["narrow", "short", "fewer", "one", "missing", "more"],
)
def test_a_file_with_other_parameters_is_refused(change: Any, tmp_path: Path) -> None:
    model = type(fitted()).from_state(*fitted().state())
    model.fit_ = replace(model.fit_, params=change(model.fit_.params))
    Policy(model, Levels(costs=[0, 1, 2]), price=0.1).save(tmp_path / "policy")
    with pytest.raises(PolicyFileError, match="holds unexpected content"):
        Policy.load(tmp_path / "policy")
