"""SIRE and IRE: what they choose, what they refuse, what they keep, and the shape of their curves."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from largesse.data.log import log_from_arrays, read_log
from largesse.errors import InputError, PolicyFileError
from largesse.levels import Levels
from largesse.policy.policy import Policy
from largesse.records import Array, Log
from largesse.response.base import ResponseModel
from largesse.response.networks.fold_networks import ResponseScale
from largesse.response.networks.network_settings import MONOTONE
from largesse.response.networks.sire import IRE, KAPPAS, PENALTIES, PLAIN_KAPPAS, SIRE
from largesse.response.networks.sire_loss import mean_scores, represent
from largesse.worlds.paper import simulate
from support.models import flat

# The same small network everywhere: it is compiled once.
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


def sire(**other: Any) -> SIRE:
    return flat(SIRE, **({"shrinkage": 0.1} | TINY | other))


def arrays(K: int = 3, kind: str = "binary", n: int = 240) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(n, 3)), rng.permutation(np.arange(n) % K)
    chance = 1 / (1 + np.exp(-(X[:, 0] + 0.6 * level - 0.5)))
    if kind == "binary":
        return X, level, (rng.random(n) < chance).astype(float)
    return X, level, chance if kind == "fractions" else 100 * chance - 20


def named_log(loggers: Any = None, **other: Any) -> Log:
    X, level, response = arrays()
    table = {"a": X[:, 0], "b": X[:, 1], "level": level, "response": response} | other
    if loggers is not None:
        table["who"] = loggers
    roles = {name: name for name in other} | ({} if loggers is None else {"logger": "who"})
    return read_log(table, level="level", response="response", levels=Levels(costs=[0, 1, 2]), **roles)


def tried(model: Any) -> list[float]:
    return [float(choice.name) for choice in model.kappa_choices_]


# ---------------------------------------------------------------------------------------------- what is chosen


@pytest.mark.slow
def test_common_increments_are_chosen_where_all_customers_climb_alike() -> None:
    sim = simulate("averaged", n=500)
    model = sire(shrinkage="auto", rate=0.01, epochs=10).fit(sim.log)
    assert [float(choice.name) for choice in model.shrinkage_choices_] == list(PENALTIES)
    assert model.penalty_ == np.inf
    assert not model.fit_.gate.any()
    steps = np.diff(model.fit_.scores(model.encode(sim.log)), axis=1)
    assert np.ptp(steps, axis=0).max() < 1e-5


@pytest.mark.parametrize("rule", [pytest.param("auto", marks=pytest.mark.slow), "dr"])
def test_a_rule_for_kappa_keeps_what_was_tried(rule: str) -> None:
    model = sire(kappa=rule, epochs=2).fit(*arrays())
    assert tried(model) == list(KAPPAS)
    assert [choice.chosen for choice in model.kappa_choices_].count(True) == 1
    chosen = next(choice for choice in model.kappa_choices_ if choice.chosen)
    assert chosen.loss == min(choice.loss for choice in model.kappa_choices_)
    assert float(chosen.name) == model.kappa_


@pytest.mark.slow
def test_kappa_can_be_chosen_by_leaving_one_logging_policy_out() -> None:
    model = sire(kappa="loggers", epochs=2).fit(named_log(np.arange(240) % 3))
    assert tried(model) == list(KAPPAS)
    assert [choice.chosen for choice in model.kappa_choices_].count(True) == 1


@pytest.mark.parametrize("kappa", [[1 / 3], (0.0, 1 / 3), np.array([1 / 3])])
def test_no_balance_is_always_tried_too(kappa: Any) -> None:
    model = sire(kappa=kappa, epochs=2).fit(*arrays())
    assert tried(model) == pytest.approx([0, 1 / 3], rel=1e-5)
    assert model.kappa_ in (0.0, 1 / 3)


def test_the_scale_of_the_representation_has_its_own_strengths() -> None:
    assert max(PLAIN_KAPPAS) == 1000
    for normalise, strengths in ((True, KAPPAS), ("auto", KAPPAS), (False, PLAIN_KAPPAS)):
        model = flat(IRE, **TINY | {"kappa": "auto", "epochs": 2, "normalise": normalise}).fit(*arrays())
        assert tried(model) == list(strengths)


def test_only_the_penalty_that_is_not_normalised_shrinks_the_representation() -> None:
    def spread(**other: Any) -> float:
        model = flat(IRE, **TINY | {"epochs": 20, "decay": 0.0} | other).fit(*arrays())
        z = represent(model.fit_.params, model.encode(arrays()[0]), model.fit_.shape)
        return float(z.std(axis=1).mean())

    without = spread()
    assert spread(kappa=30.0, normalise=False) < 0.7 * without
    assert spread(kappa=30.0, normalise=True) > 0.9 * without


def test_a_given_kappa_is_taken() -> None:
    model = flat(IRE, **TINY | {"kappa": 1 / 3, "epochs": 2}).fit(*arrays())
    assert model.kappa_ == 1 / 3
    assert len(model.kappa_choices_) == 1


# ---------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("loggers", [None, np.zeros(240, dtype=int)], ids=["none", "one"])
def test_leaving_policies_out_needs_at_least_two(loggers: Any) -> None:
    with pytest.raises(InputError, match="needs a log that names two or more logging policies"):
        sire(kappa="loggers").fit(named_log(loggers))


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("kappa", "dre", "did you mean 'dr'"),
        ("kappa", -1.0, "zero or more"),
        ("kappa", [1.0, -1.0], "zero or more"),
        ("kappa", float("nan"), "zero or more"),
        ("shrinkage", "cv", "'auto'"),
        ("shrinkage", -0.1, "zero or more"),
        ("head", "elastc", "did you mean 'elastic'"),
        ("head", "free", ""),
        ("activation", "rele", "did you mean 'relu'"),
        ("optimiser", "adm", "did you mean 'adam'"),
        ("kernel", "liner", "did you mean 'linear'"),
        ("estimator", "unbiassed", "did you mean 'unbiased'"),
        ("width", 0, "1 or more"),
        ("depth", 0, "1 or more"),
        ("batch", 0, "1 or more"),
        ("epochs", 0, "1 or more"),
        ("patience", 0, "1 or more"),
        ("folds", 0, "1 or more"),
    ],
)
def test_a_bad_setting_is_refused_in_words(name: str, value: Any, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        sire(**{name: value}).fit(*arrays())
    assert f"{name}={value!r}" in str(caught.value)
    assert hint in str(caught.value)
    assert len(caught.value.problems) == 1


def test_bad_settings_are_named_together() -> None:
    with pytest.raises(InputError, match="SIRE: 4 things are wrong"):
        sire(kappa="cvv", head="nothing", optimiser="none", folds=0).fit(*arrays())
    with pytest.raises(InputError, match="IRE: 2 things are wrong"):
        flat(IRE, kappa="cvv", optimiser="none").fit(*arrays())


def test_thresholds_are_refused_for_amounts() -> None:
    with pytest.raises(InputError, match=r"head='cdf' is for responses in \[0, 1\]"):
        sire(head="cdf").fit(*arrays(kind="amounts"))


# ---------------------------------------------------------------------------------------------- what is learnt from


@pytest.mark.parametrize(
    "model", [sire(), pytest.param(flat(IRE, **TINY), marks=pytest.mark.slow)], ids=["SIRE", "IRE"]
)
@pytest.mark.parametrize("kind", ["binary", "fractions", "amounts"])
def test_any_kind_of_response_is_learnt(model: ResponseModel, kind: str) -> None:
    X, level, response = arrays(kind=kind)
    curves = clone(model).fit(X, level, response).predict(X)
    own = curves[np.arange(len(X)), level]
    assert ((own - response) ** 2).mean() < 0.95 * response.var()
    if kind != "amounts":
        assert 0 <= curves.min() <= curves.max() <= 1


def test_two_levels_are_enough() -> None:
    X, level, response = arrays(K=2)
    curves = sire().fit(X, level, response).predict(X)
    assert curves.shape == (240, 2)
    assert (np.diff(curves, axis=1) >= 0).all()


def test_only_the_ratio_of_weights_matters() -> None:
    X, level, response = arrays()
    plain = sire().fit(X, level, response).predict(X)
    assert np.array_equal(sire().fit(X, level, response, weight=np.full(240, 8.0)).predict(X), plain)
    heavy = sire().fit(X, level, response, weight=np.where(response > 0, 5.0, 1.0)).predict(X)
    assert heavy.mean() > plain.mean() + 0.1


def test_clusters_are_held_out_whole() -> None:
    X, level, response = arrays()
    cluster = np.arange(240) % 2
    model = sire(folds=5).fit(log_from_arrays(X, level, response, cluster=cluster))
    assert len(model.fit_.gate) == 2  # two clusters: two models, each trained on one of them
    log = log_from_arrays(X, level, response, cluster=np.zeros(240, dtype=int))
    with pytest.raises(InputError, match="every row is in the same cluster"):
        sire().fit(log)


def test_one_fold_is_a_single_model_with_a_hold_out() -> None:
    X, level, response = arrays()
    model = sire(folds=1).fit(X, level, response)
    assert len(model.fit_.gate) == 1
    assert model.predict(X).shape == (240, 3)


def test_fold_models_average_to_the_model() -> None:
    X, level, response = arrays()
    log = log_from_arrays(X, level, response)
    model = sire().fit(log)
    encoded = model.encode(X)
    whole = model.fit_.scores(encoded)
    models: Any = clone(model)
    models.encoder_, models.levels_ = model.encoder_, 3
    from largesse.stats.folds import assign_folds

    parts = models.fold_models(encoded, log, assign_folds(log, 2, model.seed))
    mean = np.mean([part.fit_.scores(encoded) for part in parts], axis=0)
    np.testing.assert_allclose(model.fit_.calibration(mean), whole, atol=1e-5)


def test_each_fold_is_the_mean_of_its_members() -> None:
    X, level, response = arrays()
    log = log_from_arrays(X, level, response)
    one, three = sire().fit(log), sire(members=3).fit(log)
    assert len(three.fit_.gate) == 6
    assert three.fit_.folds == 2
    for name, value in one.fit_.params.items():  # the first member starts where a single one does
        np.testing.assert_allclose(three.fit_.params[name][:2], value, atol=1e-5)
        if value.ndim == 3:
            assert np.abs(three.fit_.params[name][2:4] - value).max() > 1e-3
    assert [len(three.fit_.single(j).gate) for j in range(2)] == [3, 3]
    encoded = three.encode(X)
    mean = np.mean([three.fit_.single(j).scores(encoded) for j in range(2)], axis=0)
    np.testing.assert_allclose(three.fit_.calibration(mean), three.fit_.scores(encoded), atol=1e-5)


def test_a_falling_rate_trains_another_model_than_a_constant_one() -> None:
    X, level, response = arrays()
    falling, constant = (sire(schedule=kind).fit(X, level, response).predict(X) for kind in ("cosine", "constant"))
    assert np.abs(falling - constant).max() > 1e-3
    with pytest.raises(InputError, match="did you mean 'cosine'"):
        sire(schedule="cosin").fit(X, level, response)


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
    with pytest.raises(InputError, match="did you mean 'guess'"):
        flat(SIRE, start="gues").fit(X, level, response)


@pytest.mark.slow
def test_a_small_log_is_seen_as_often_as_it_needs() -> None:
    from largesse.response.networks.settings_search import LEAST_STEPS

    X, level, response = arrays(n=60)
    few = sire(batch=512, epochs=4).fit(X, level, response).predict(X)
    many = sire(batch=512, epochs=4 * LEAST_STEPS).fit(X, level, response).predict(X)
    assert np.abs(few - response.mean()).max() > 0.02
    assert np.abs(few - many).max() > 1e-4


# ---------------------------------------------------------------------------------------------- curves

CUSTOMERS = np.random.default_rng(3).normal(size=(20_000, 3)) * 3


@pytest.mark.slow
@pytest.mark.parametrize("head", MONOTONE)
def test_twenty_thousand_customers_never_lose_by_a_higher_level(head: str) -> None:
    X, level, response = arrays()
    curves = sire(head=head).fit(X, level, 1 - response).predict(CUSTOMERS)
    assert np.isfinite(curves).all()
    assert np.diff(curves, axis=1).min() >= -1e-6


@pytest.mark.parametrize("kind", ["binary", "amounts"])
def test_concave_curves_rise_ever_less(kind: str) -> None:
    curves = sire(head="concave").fit(*arrays(kind=kind)).predict(CUSTOMERS)
    unit = 1 if kind == "binary" else np.ptp(curves)
    assert np.diff(curves, axis=1).min() >= -1e-6 * unit
    assert np.diff(curves, n=2, axis=1).max() <= 1e-6 * unit


@pytest.mark.slow
def test_a_mean_of_concave_curves_is_concave() -> None:
    """A mean of logits is not: here one model is flat and the other a straight line up to almost 1."""
    model = sire(head="concave").fit(*arrays())
    mass = np.array([[0.5, 0.0, 0.499999, 1e-6], [0.01, 1e-9, 1e-9, 0.99]])
    params = {name: np.zeros_like(value) for name, value in model.fit_.params.items()}
    model.fit_ = replace(model.fit_, params=params | {"head_b": np.log(mass + 1e-12).astype(np.float32)})
    curves = model.predict(np.zeros((1, 3)))[0]
    np.testing.assert_allclose(curves, [0.255, 0.38, 0.505], atol=1e-4)


def test_predicting_in_parts_gives_the_same() -> None:
    model = sire().fit(*arrays())
    X = model.encode(CUSTOMERS[:1000])
    whole = model.fit_.scores(X)
    parts = mean_scores(model.fit_.params, X, model.fit_.shape, model.fit_.gate, rows=300)
    np.testing.assert_allclose(model.fit_.calibration(parts), whole, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------------------------------------- keeping


@pytest.mark.parametrize("kind", ["binary", "amounts"])
@pytest.mark.parametrize(
    "model",
    [
        sire(),
        pytest.param(sire(shrinkage=np.inf), marks=pytest.mark.slow),
        pytest.param(sire(kappa=[1 / 3], epochs=2), marks=pytest.mark.slow),
        flat(IRE, **TINY),
        pytest.param(flat(IRE, **TINY | {"kappa": 100.0, "normalise": False}), marks=pytest.mark.slow),
    ],
    ids=["one", "inf", "κ", "IRE", "as it is"],
)
def test_a_kept_policy_has_the_same_curves_bit_for_bit(model: Any, kind: str, tmp_path: Path) -> None:
    X, level, response = arrays(kind=kind)
    model = clone(model).fit(X, level, response)
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
    model = sire().fit(*arrays())
    model.fit_ = replace(model.fit_, params=change(model.fit_.params))
    Policy(model, Levels(costs=[0, 1, 2]), price=0.1).save(tmp_path / "policy")
    with pytest.raises(PolicyFileError, match="holds something that is not expected"):
        Policy.load(tmp_path / "policy")


def test_clone_copies_settings_and_nothing_learnt() -> None:
    model = sire(seed=4).fit(*arrays())
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not [name for name in vars(copy) if name.endswith("_")]
    assert copy.fit(*arrays()).predict(CUSTOMERS[:9]).tobytes() == model.predict(CUSTOMERS[:9]).tobytes()


def test_choices_say_what_they_were_choices_of() -> None:
    sim = simulate("averaged", n=200, seed=0)
    choices = flat(SIRE, kappa=[0.3], width=8, epochs=5, folds=2).fit(sim.log).choices_
    names = [choice.name for choice in choices]
    assert names[:4] == ["guess", "regression", "inf", "0.3"]
    assert names[-2:] == ["κ = 0", "κ = 0.3"]
    assert {choice.of for choice in choices} == {
        "SIRE: training starts at",
        "SIRE: own increments held by",
        "SIRE: balance",
    }
    assert sum(choice.chosen for choice in choices) == 3


# ---------------------------------------------------------------------------------------------- the head


def test_the_usual_head_is_thresholds_only_for_many_features_and_responses_in_the_unit_interval() -> None:
    for features, bounded, head in [(101, True, "cdf"), (100, True, "elastic"), (101, False, "elastic")]:
        assert SIRE()._head(ResponseScale(bounded), features) == head
        assert SIRE(head="minmax")._head(ResponseScale(bounded), features) == "minmax"


def test_settings_of_many_rows_are_chosen_on_some_and_networks_learn_from_all(
    programs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    from largesse.response.networks import settings_search as search

    X, level, response = arrays()
    rows: list[int] = []
    kept = search.Search._held_scores

    def counted(self: Any, candidate: Any, params: Any, fold: Array, parts: Array) -> Array:
        rows.append(len(fold))
        return kept(self, candidate, params, fold, parts)

    monkeypatch.setattr(search, "CHOOSING_ROWS", 100)
    monkeypatch.setattr(search.Search, "_held_scores", counted)
    model = sire(kappa=[0.0, 1.0], shrinkage="auto", members=2).fit(X, level, response)
    assert rows == [100] * (len(rows) - 2) + [240, 240]  # the best candidate, and its second member
    assert len(model.kappa_choices_) == 2
    assert len(model.fit_.gate) == 4
    rows.clear()
    sire(kappa=0.0, shrinkage=0.1, start="guess").fit(X, level, response)  # nothing is chosen
    assert set(rows) == {240}
