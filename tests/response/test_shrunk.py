from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from largesse.data.log import log_from_arrays
from largesse.levels import Levels
from largesse.policy.policy import Policy
from largesse.records import Array
from largesse.response.baselines.tlearner import TLearner
from largesse.response.boosting import Boosting
from largesse.response.catalogue import model_from_state
from largesse.response.choose import Choose
from largesse.response.linear import Linear
from largesse.response.stack import Shrunk
from largesse.worlds.simulation import simulate


def logit(p: Array) -> Array:
    return np.log(p) - np.log1p(-p)


def data(n: int, own: float, seed: int = 0, *, amounts: bool = False) -> tuple[Array, Array, Array]:
    """A log of four levels whose increments are .4 for all, or (own = 1) .8 for half of the customers and 0 for the others."""
    rng = np.random.default_rng(seed)
    X, level = rng.normal(size=(n, 3)), rng.integers(0, 4, n)
    score = 0.5 * X[:, 0] - 0.6 + 0.4 * level * (1 + own * np.sign(X[:, 1]))
    if amounts:
        return X, level, 20 + 10 * score + rng.standard_t(2.5, n)
    return X, level, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(float)


def test_no_share_and_no_tilt_give_all_customers_the_same_increments() -> None:
    X, level, response = data(600, own=1)
    model = Shrunk(model=Boosting(rounds=30)).fit(X, level, response)
    model.blend_ = replace(model.blend_, shares=np.zeros(1), tilt=0.0)
    increments = np.diff(logit(model.predict(X)), axis=1)
    assert np.ptp(increments, axis=0).max() < 1e-9
    assert increments.max() > 0


def test_common_increments_are_found_to_be_common() -> None:
    sim = simulate("averaged", 1500, seed=1)
    assert Shrunk(model=Boosting(rounds=60)).fit(sim.log).blend_.shares[0] < 0.2


@pytest.mark.parametrize("amounts", [False, True])
def test_strong_differences_and_many_rows_keep_a_model_its_own(amounts: bool) -> None:
    X, level, response = data(6000, own=1, amounts=amounts)
    model = Shrunk(model=Boosting(rounds=100)).fit(X, level, response)
    # Who rises more lies higher, too: of yes and no, the tilt may say as much as the deviations.
    assert model.blend_.shares[0] >= 0.75 or model.blend_.tilt > 0.3
    rise = np.diff(model.predict(X)[:, [0, 3]], axis=1)[:, 0]
    assert rise[X[:, 1] > 0.1].mean() > 3 * rise[X[:, 1] < -0.1].mean()


def test_differences_that_do_not_follow_the_base_are_the_members_own() -> None:
    X, level, _ = data(6000, own=1)
    score = 0.5 * X[:, 0] + 0.4 * level + 0.4 * (level - 1.5) * np.sign(X[:, 1]) - 0.6
    response = (np.random.default_rng(1).random(6000) < 1 / (1 + np.exp(-score))).astype(float)
    model = Shrunk(model=Boosting(rounds=100)).fit(X, level, response)
    assert model.blend_.shares[0] > 0.5
    assert abs(model.blend_.tilt) < 0.1
    rise = np.diff(model.predict(X)[:, [0, 3]], axis=1)[:, 0]
    assert rise[X[:, 1] > 0.1].mean() > 1.8 * rise[X[:, 1] < -0.1].mean()


def test_shrinking_mends_the_increments_of_boosting() -> None:
    sim = simulate("averaged", 2000, seed=0)
    error = {}
    for model in (Boosting(), Shrunk(model=Boosting())):
        wrong = np.diff(model.fit(sim.log).predict(sim.features) - sim.truth, axis=1)
        error[type(model)] = np.sqrt((wrong**2).mean())
    assert error[Shrunk] < 0.8 * error[Boosting]


def test_choices_tell_what_was_tried() -> None:
    model = Shrunk(model=Boosting(rounds=10)).fit(*data(400, own=1))
    assert [choice.name for choice in model.choices_] == ["common increments", "individual increments"]
    assert [choice.chosen for choice in model.choices_] == [False, True]


def test_a_model_without_deviations_has_nothing_to_choose() -> None:
    model = Shrunk(model=Linear(penalty=0.01)).fit(*data(400, own=0, amounts=True))
    assert [choice.name for choice in model.choices_] == ["common increments"]
    assert model.choices_[0].chosen
    assert Shrunk(model=Linear(penalty=0.01)).fit(*data(400, own=0)).blend_.shares.tolist() == [0.0]


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_weights_are_repeated_rows_for_a_model_to_which_they_are(seed: int) -> None:
    X, level, response = data(600, own=1, seed=seed)
    heavy = X[:, 1] > np.median(X[:, 1])
    times, couple = np.where(heavy, 3, 1), np.where(heavy, np.cumsum(heavy), np.cumsum(~heavy))
    again = np.repeat(np.arange(600), times)
    weighted = log_from_arrays(X, level, response, cluster=couple, weight=times.astype(float))
    repeated = log_from_arrays(X[again], level[again], response[again], cluster=couple[again])
    model = Shrunk(model=TLearner(model=Linear(penalty=0.01)), folds=2)
    one, other = (clone(model).fit(log) for log in (weighted, repeated))
    for a, b in zip(one.choices_, other.choices_, strict=True):  # weights count in the choice as copies do
        assert (a.name, a.chosen) == (b.name, b.chosen)
        np.testing.assert_allclose([a.loss, a.difference, a.se], [b.loss, b.difference, b.se], atol=5e-3)
    assert len(one.choices_) == 2
    assert np.abs(one.predict(X) - other.predict(X)).mean() < 5e-3


# ---------------------------------------------------------------------------------------------- odd logs and keeping


def test_a_part_of_amounts_that_looks_like_answers_is_no_trouble() -> None:
    X, level, response = data(300, own=0)
    response[17] = 3.0  # four of five parts for learning hold it, the fifth only 0 and 1
    curves = Shrunk(model=Boosting(rounds=10)).fit(X, level, response).predict(X)
    assert abs(curves.mean() - response.mean()) < 0.1
    assert (np.diff(curves, axis=1) >= 0).all()


def test_the_wrapped_model_stays_unfitted_and_can_be_any() -> None:
    inner = Choose(models=[Linear(penalty=0.01)], folds=2)
    model = Shrunk(model=Shrunk(model=inner, folds=2), folds=2).fit(*data(200, own=0))
    assert not hasattr(inner, "encoder_")
    assert len(model.models_) == 2


def test_a_kept_model_keeps_what_was_tried_and_its_models(tmp_path: Any) -> None:
    X, level, response = data(400, own=1)
    model = Shrunk(model=Shrunk(model=Boosting(rounds=7), folds=3), folds=2, seed=4).fit(X, level, response)
    Policy(model, Levels(costs=[0, 1, 2, 3]), 0.1).save(tmp_path / "policy")
    kept = Policy.load(tmp_path / "policy").model
    assert kept.predict(X).tobytes() == model.predict(X).tobytes()
    assert repr(kept) == repr(model)
    assert isinstance(kept, Shrunk)
    assert kept.choices_ == model.choices_


def test_states_that_do_not_fit_are_refused() -> None:
    state, arrays = Shrunk(model=Linear(penalty=0.01), folds=2).fit(*data(200, own=0)).state()
    with pytest.raises(ValueError, match="announced as"):
        model_from_state(state, {**arrays, "blend_/common": np.zeros(3)})
    state["learnt"]["models_"][0]["kind"] = "Oracle"
    with pytest.raises(ValueError, match="'Oracle'"):
        model_from_state(state, arrays)


def test_a_state_whose_blend_no_fit_can_have_found_is_refused() -> None:
    state, arrays = Shrunk(model=Boosting(rounds=5), folds=2).fit(*data(200, own=0)).state()
    with pytest.raises(ValueError, match="negative weights"):
        model_from_state(state, {**arrays, "blend_/weights": np.array([-1.0])})
    with pytest.raises(ValueError, match="missing or infinite"):
        model_from_state(state, {**arrays, "blend_/shares": np.array([np.nan])})
    state["learnt"]["blend_"].update(tilt=0.5, spread=0)
    with pytest.raises(ValueError, match="along bases that are the same for all"):
        model_from_state(state, arrays)
