import sys
from pathlib import Path

import numpy as np
import pytest
from flat import flat

from largesse.allocation.plan import allocate
from largesse.data.log import log_from_arrays
from largesse.errors import InputError, MissingPartError
from largesse.levels import Levels
from largesse.policy.policy import Policy
from largesse.records import Array
from largesse.response.base import ResponseModel
from largesse.response.baselines.bart import BART
from largesse.response.boosting import Boosting
from largesse.response.catalogue import model_from_state
from largesse.response.fold_ensemble import mean_scores
from largesse.response.linear import Linear
from largesse.response.networks.sire import SIRE
from largesse.response.stack import BART_ROWS, SMALL, Stack
from largesse.response.thresholds import MANY, Thresholds
from largesse.worlds.simulation import simulate


def data(n: int, own: float, curved: float = 0.0, *, seed: int = 0, K: int = 4) -> tuple[Array, Array, Array]:
    """A log whose increments are .4 for all, or (own = 1) .8 for half of the customers; `curved` bends the base."""
    rng = np.random.default_rng(seed)
    X, level = rng.normal(size=(n, 3)), rng.integers(0, K, n)
    score = 0.5 * X[:, 0] + curved * X[:, 0] * X[:, 1] - 0.6 + 0.4 * level * (1 + own * np.sign(X[:, 2]))
    return X, level, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(float)


def small() -> list[ResponseModel]:
    return [Linear(penalty=0.01), Boosting(rounds=60)]


def chosen(model: Stack) -> str:
    (name,) = [choice.name for choice in model.choices_ if choice.chosen]
    return name


def test_weights_are_not_negative_and_near_one_together() -> None:
    model = Stack(models=small()).fit(*data(500, own=0))
    assert model.weights_.shape == (2,)
    assert (model.weights_ >= 0).all()
    assert 0.5 < model.weights_.sum() < 2.0
    assert [len(member) for member in model.members_] == [5, 5]


def test_the_member_that_fits_the_base_is_weighted_up() -> None:
    straight = Stack(models=small()).fit(*data(2000, own=0))
    bent = Stack(models=small()).fit(*data(2000, own=0, curved=1.5))
    assert straight.weights_[0] > 0.7
    assert bent.weights_[1] > 0.7


def test_one_member_is_enough_unless_all_together_are_clearly_better() -> None:
    straight = Stack(models=small()).fit(*data(1000, own=0))
    assert (straight.weights_ > 0).sum() == 1
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(4000, 12)), rng.integers(0, 4, 4000)
    lines, product = (
        X[:, :10].sum(axis=1),
        X[:, 10] * X[:, 11],
    )  # the ones are what trees miss, the other what lines miss
    score = 0.5 * lines + 2.0 * product - 0.6 + 0.4 * level
    response = (rng.random(4000) < 1 / (1 + np.exp(-score))).astype(float)
    both = Stack(models=[Linear(penalty=0.01), Boosting(rounds=30)]).fit(X, level, response)
    assert (both.weights_ > 0.05).all()


def test_a_member_that_shrinks_itself_is_taken_whole_or_not_at_all() -> None:
    X, level, response = data(600, own=1)
    tiny = flat(SIRE, kappa=0.0, shrinkage=0.01, width=8, rate=0.03, batch=64, epochs=10, members=1)
    model = Stack(models=[Linear(penalty=0.01), tiny]).fit(X, level, response)
    own = [choice.name for choice in model.choices_ if choice.of == "increments of the stack"]
    assert own == ["common increments", "SIRE × 1"]


def kinds(model: Stack, features: int = 50, binary: bool = True) -> list[str]:
    return [type(member).__name__ for member in model._default_models(features, binary)]


def test_the_default_members_are_found_without_asking() -> None:
    assert kinds(Stack()) == ["Additive", "Boosting", "SIRE"]
    assert all(member.get_params()["seed"] == 3 for member in Stack(seed=3)._default_models(200, True))


def test_thresholds_are_among_the_default_members_where_features_are_many_and_responses_yes_or_no() -> None:
    assert kinds(Stack(), MANY + 1) == ["Additive", "Thresholds", "Boosting", "SIRE"]
    assert "Thresholds" not in kinds(Stack(), MANY)
    assert "Thresholds" not in kinds(Stack(), MANY + 1, binary=False)


def wants(model: Stack, rows: int, boosting: float, others: float, binary: bool = True) -> bool:
    """Whether BART is asked where members hit a share of rows, the rest of them by chance."""
    rng = np.random.default_rng(0)
    level, response = rng.integers(0, 2, rows), (rng.random(rows) < 0.5).astype(float) * (1.0 if binary else 7.0)
    log = log_from_arrays(rng.normal(size=(rows, 2)), level, response)

    def scores(hit: float) -> Array:
        known = np.where(rng.random(rows) < hit, response / response.max() - 0.5, 0.0)
        return np.tile(known[:, None] if binary else response.mean() + 7 * known[:, None], (1, 2))

    return model._wants_bart(
        model._default_models(2, binary), np.array([scores(others), scores(boosting), scores(0.0)]), log
    )


@pytest.mark.parametrize("binary", [True, False])
def test_bart_is_asked_where_boosting_comes_near_the_best_of_a_small_log(binary: bool) -> None:
    assert wants(Stack(), 1000, boosting=0.5, others=0.5, binary=binary)
    assert wants(Stack(), 1000, boosting=0.9, others=0.1, binary=binary)
    assert not wants(Stack(), 1000, boosting=0.1, others=0.9, binary=binary)
    assert not wants(Stack(), BART_ROWS + 1, boosting=0.9, others=0.1, binary=binary)
    assert wants(Stack(bart=True), BART_ROWS + 1, boosting=0.1, others=0.9, binary=binary)
    assert not wants(Stack(bart=False), 1000, boosting=0.9, others=0.1, binary=binary)


@pytest.mark.parametrize(("rows", "asked"), [("trees", True), ("lines", False)])
def test_the_default_members_have_a_bart_where_trees_are_the_better_ones(rows: str, asked: bool) -> None:
    rng = np.random.default_rng(1)
    X, level = rng.normal(size=(600, 4)), rng.integers(0, 2, 600)
    score = 3.0 * np.where(rows == "trees", np.sign(X[:, 0] * X[:, 1]), X.sum(axis=1) / 2) + 0.3 * level
    response = (rng.random(600) < 1 / (1 + np.exp(-score))).astype(float)
    model = Stack(folds=2).fit(X, level, response)
    assert ("BART" in [type(member[0]).__name__ for member in model.members_]) == asked
    assert model.predict(X).shape == (600, 2)


def test_without_stochtree_the_default_members_are_the_others_unless_bart_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "stochtree", None)
    assert not wants(Stack(), 500, boosting=0.9, others=0.1)
    with pytest.raises(MissingPartError, match=r"pip install 'largesse\[bart\]'"):
        Stack(models=[BART(**SMALL)]).fit(*data(100, own=0))


def test_a_bart_gives_its_base_where_it_is_the_best_and_never_its_deviations() -> None:
    models = [Linear(penalty=0.01), BART(**SMALL)]
    straight = Stack(models=models).fit(*data(1000, own=0))
    bent = Stack(models=models).fit(*data(2000, own=1, curved=1.5))
    assert straight.weights_[0] > 0.7
    assert straight.weights_[1] < 0.2
    assert bent.weights_[1] > 0.7
    for model in (straight, bent):
        assert [choice.name for choice in model.choices_] == ["common increments"]


@pytest.mark.parametrize("seed", range(3))
def test_a_bart_that_saw_only_noise_has_no_say(seed: int) -> None:
    X, level, response = data(800, own=0, seed=seed)
    model = Stack(models=[Linear(penalty=0.01), BART(trees=50, draws=1, warm=30)]).fit(X, level, response)
    assert model.weights_[1] == 0


def test_members_without_a_say_are_not_asked_about_customers(monkeypatch: pytest.MonkeyPatch) -> None:
    X, level, response = data(1000, own=0)
    model = Stack(models=small()).fit(X, level, response)
    assert model.blend_.used == [0]
    curves = model.predict(X)
    assert model.blend_.scores(scores_of(model, X)) == pytest.approx(np.log(curves) - np.log1p(-curves))
    monkeypatch.delattr(Boosting, "_curves")
    assert model.predict(X).tobytes() == curves.tobytes()


def scores_of(model: Stack, X: Array) -> Array:
    return np.array([mean_scores(member, model.encode(X), True) for member in model.members_])


def test_common_increments_are_kept_for_a_log_without_differences() -> None:
    model = Stack(models=small()).fit(*data(2000, own=0, curved=1.0))
    assert chosen(model) == "common increments"
    assert model.blend_.share == 0


def test_strong_differences_are_taken_from_the_member_that_sees_them() -> None:
    model = Stack(models=small()).fit(*data(5000, own=1))
    assert chosen(model) in ("Boosting × 0.5", "Boosting × 1")


def test_candidates_run_from_the_most_to_the_least_shrunk_and_from_simple_to_complex() -> None:
    model = Stack(models=[Boosting(rounds=5), Linear(penalty=0.01), Boosting(rounds=20)]).fit(*data(500, own=1))
    names = [choice.name for choice in model.choices_]
    assert names == ["common increments", *(f"Boosting × {w}" for w in ("0.25", "0.25", "0.5", "0.5", "1", "1"))]


def test_a_member_given_twice_changes_next_to_nothing() -> None:
    X, level, response = data(800, own=0)
    once = Stack(models=[Linear(penalty=0.01)]).fit(X, level, response).predict(X)
    twice = Stack(models=[Linear(penalty=0.01)] * 2).fit(X, level, response).predict(X)
    np.testing.assert_allclose(twice, once, atol=1e-6)


def test_no_member_is_fitted_more_often_than_there_are_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []
    learn = Linear._learn
    monkeypatch.setattr(Linear, "_learn", lambda self, X, log: (fits.append(len(log)), learn(self, X, log))[1])
    Stack(models=[Linear(penalty=0.01)], folds=4).fit(*data(400, own=0))
    assert fits == [300] * 4


@pytest.mark.parametrize("name", ["averaged", "unit"])
def test_it_is_hardly_worse_than_its_best_member(name: str) -> None:
    sim = simulate(name, 2000, seed=3)
    new = sim.draw(4000, 7)
    errors, skills = [], []
    for model in (*small(), Stack(models=small())):
        curves = model.fit(sim.log).predict(new.features)
        errors.append(np.sqrt(((curves - new.truth) ** 2).mean()))
        skills.append(new.skill(allocate(curves, new.costs, budget=1.5).levels, 1.5))
    assert errors[2] < 1.03 * min(errors[:2])
    assert skills[2] > max(skills[:2]) - 0.1


# ---------------------------------------------------------------------------------------------- odd logs and keeping


def test_two_levels_few_rows_of_one_and_heavy_tails_are_learnt_from() -> None:
    rng = np.random.default_rng(5)
    X, level = rng.normal(size=(600, 3)), np.zeros(600, dtype=int)
    level[:12] = 1
    amounts = 20 + 5 * X[:, 0] + rng.pareto(1.5, 600) * rng.choice([0, 10], 600)
    curves = Stack(models=small()).fit(X, level, amounts).predict(X)
    assert np.isfinite(curves).all()
    assert (np.diff(curves, axis=1) >= 0).all()
    assert curves.min() > amounts.min() - amounts.std()
    assert curves.max() < amounts.max()


def test_clusters_and_weights_are_respected() -> None:
    X, level, response = data(600, own=0)
    log = log_from_arrays(X, level, response, cluster=np.arange(600) // 6, weight=np.linspace(0.2, 3, 600))
    model = Stack(models=small()).fit(log)
    plain = Stack(models=small()).fit(X, level, response)
    assert np.abs(model.predict(X) - plain.predict(X)).max() > 1e-4
    three = log_from_arrays(X, level, response, cluster=np.arange(600) // 200)
    assert [len(member) for member in Stack(models=small()).fit(three).members_] == [3, 3]


def test_stacking_no_models_is_refused() -> None:
    with pytest.raises(InputError, match="no models to stack"):
        Stack(models=[]).fit(*data(100, own=0))
    with pytest.raises(InputError, match=r"bart=.always.\n.*True, False, or .auto."):
        Stack(bart="always").fit(*data(100, own=0))


def test_a_saved_bart_needs_stochtree_only_to_be_fitted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, level, response = data(400, own=1)
    model = Stack(models=[BART(**SMALL)], bart=False, folds=2).fit(X, level, response)
    Policy(model, Levels(costs=[0, 1, 2, 3]), 0.1).save(tmp_path / "policy")
    again = Policy.load(tmp_path / "policy").model.fit(X, level, response)
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    monkeypatch.setitem(sys.modules, "stochtree", None)
    kept = Policy.load(tmp_path / "policy").model
    assert kept.predict(X).tobytes() == model.predict(X).tobytes()
    with pytest.raises(MissingPartError, match="stochtree is not installed"):
        kept.fit(X, level, response)


def test_a_saved_stack_is_the_same_and_can_be_fitted_again(tmp_path: Path) -> None:
    X, level, response = data(500, own=1)
    model = Stack(models=small(), folds=3, seed=2).fit(X, level, response)
    Policy(model, Levels(costs=[0, 1, 2, 3]), 0.1).save(tmp_path / "policy")
    kept = Policy.load(tmp_path / "policy").model
    assert isinstance(kept, Stack)
    assert kept.predict(X).tobytes() == model.predict(X).tobytes()
    assert kept.weights_.tobytes() == model.weights_.tobytes()
    assert kept.choices_ == model.choices_
    assert kept.fit(X, level, response).predict(X).tobytes() == model.predict(X).tobytes()


def test_a_state_with_fold_models_missing_is_refused() -> None:
    state, arrays = Stack(models=small(), folds=2).fit(*data(200, own=0)).state()
    state["learnt"]["members_"][1].pop()
    with pytest.raises(ValueError, match=r"\[2, 1\] fold models of the members"):
        model_from_state(state, arrays)


def test_thresholds_are_fitted_to_all_rows_for_new_customers_and_kept() -> None:
    X, level, response = data(400, own=0)
    model = Stack(models=[Thresholds(penalty=0.1)]).fit(X, level, response)
    assert isinstance(model.whole_[0], Thresholds)
    assert 0 in model.blend_.used
    alone = Thresholds(penalty=0.1).fit(X, level, response)
    np.testing.assert_allclose(model.whole_[0]._curves(model.encode(X)), alone.predict(X), atol=1e-6)
    before = model.predict(X)
    model.whole_ = (None,)
    assert np.abs(model.predict(X) - before).max() > 1e-4
    model = Stack(models=[Thresholds(penalty=0.1)]).fit(X, level, response)
    again = model_from_state(*model.state())
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_saved_stack_whose_models_of_all_rows_are_of_no_member_is_refused() -> None:
    X, level, response = data(200, own=0)
    state, arrays = Stack(models=[Thresholds(penalty=0.1)]).fit(X, level, response).state()
    state["learnt"]["whole_"].append(None)
    with pytest.raises(ValueError, match="fold models of the members"):
        model_from_state(state, arrays)
