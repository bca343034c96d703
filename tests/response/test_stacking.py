"""Stacks of models: the blend of their held-out scores, and the model that is made of it."""

import sys
from copy import copy
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from largesse.allocation.plan_and_frontier import allocate
from largesse.data.log_reader import log_from_arrays
from largesse.errors import InputError
from largesse.levels import Levels
from largesse.progress import report_to
from largesse.records import Array, Log
from largesse.response import linear
from largesse.response.additive import Additive
from largesse.response.boosting import Boosting
from largesse.response.fold_ensemble import average_member_scores
from largesse.response.level_effect_estimation import Link
from largesse.response.linear import Linear
from largesse.response.model_catalogue import list_model_classes
from largesse.response.response_model import ResponseModel
from largesse.response.stacking import (
    DEVIATION_PRECISION,
    SHRUNK_PRECISION,
    Blend,
    MemberScores,
    Stack,
    blend_held_out,
    choose_blend,
    choose_increment_precision,
    convert_to_responses,
)
from largesse.response.threshold_model import Thresholds
from largesse.stats import assign_folds
from largesse.stats.link_functions import sigmoid
from largesse.worlds.paper_simulations import simulate
from largesse_lab.baselines.bart import BART


def data(n: int, own: float, curved: float = 0.0, *, seed: int = 0, K: int = 4) -> tuple[Array, Array, Array]:
    """A log whose increments are .4 for all, or (own = 1) .8 for half of the customers; `curved` bends the base."""
    rng = np.random.default_rng(seed)
    X, level = rng.normal(size=(n, 3)), rng.integers(0, K, n)
    score = 0.5 * X[:, 0] + curved * X[:, 0] * X[:, 1] - 0.6 + 0.4 * level * (1 + own * np.sign(X[:, 2]))
    return X, level, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(float)


class Simulated(NamedTuple):
    """Customers and the chances of yes at every level."""

    X: Array
    truth: Array


def small() -> list[ResponseModel]:
    return [Linear(penalty=0.01), Boosting(rounds=60)]


BARTS = {"trees": 50, "draws": 20, "warm": 10}


def chosen(model: Stack) -> str:
    (name,) = [choice.name for choice in model.choices_ if choice.chosen and choice.of == "increments of the stack"]
    return name


@cache
def straight() -> Stack:
    """Members fitted to a log of straight lines and common increments: for reading only."""
    return Stack(models=small()).fit(*data(2000, own=0))


def test_the_member_that_fits_the_base_is_weighted_up() -> None:
    weights = straight().weights_
    assert weights.shape == (2,)
    assert (weights >= 0).all()
    assert 0.5 < weights.sum() < 2.0
    assert weights[0] > 0.7
    assert [len(member) for member in straight().members_] == [5, 5]
    assert Stack(models=small()).fit(*data(2000, own=0, curved=1.5)).weights_[1] > 0.7


def test_members_that_see_different_parts_of_the_base_are_all_weighted() -> None:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(4000, 12)), rng.integers(0, 4, 4000)
    lines, product = X[:, :10].sum(axis=1), X[:, 10] * X[:, 11]  # what trees miss, and what lines miss
    score = 0.5 * lines + 2.0 * product - 0.6 + 0.4 * level
    response = (rng.random(4000) < 1 / (1 + np.exp(-score))).astype(float)
    both = Stack(models=[Linear(penalty=0.01), Boosting(rounds=30)]).fit(X, level, response)
    assert (both.weights_ > 0.2).all()


def test_by_default_no_network_is_trained_and_no_bart_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stochtree", None)
    monkeypatch.setitem(sys.modules, "jax", None)
    X, level, response = data(300, own=0)
    model = Stack(folds=2).fit(X, level, response)
    assert [type(member[0]).__name__ for member in model.members_] == ["Additive", "Boosting", "Boosting"]
    assert model.predict(X).shape == (300, 4)


def test_a_bart_gives_its_base_where_it_is_the_best_and_never_its_deviations() -> None:
    models = [Linear(penalty=0.01), BART(**BARTS)]
    straight = Stack(models=models).fit(*data(1000, own=0))
    bent = Stack(models=models).fit(*data(2000, own=1, curved=1.5))
    assert straight.weights_[0] > 0.6
    assert straight.weights_[1] < 0.4
    assert bent.weights_[1] > 0.7
    for model in (straight, bent):
        assert model.blend_.shares.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("seed", range(3))
def test_a_bart_that_saw_only_noise_has_little_say(seed: int) -> None:
    X, level, response = data(800, own=0, seed=seed)
    model = Stack(models=[Linear(penalty=0.01), BART(trees=50, draws=1, warm=30)]).fit(X, level, response)
    assert model.weights_[1] < 0.25
    assert model.weights_[0] > 0.6


def test_members_without_a_say_are_not_asked_about_customers(monkeypatch: pytest.MonkeyPatch) -> None:
    X, model = data(1000, own=0)[0], copy(straight())
    assert model.blend_.scores(scores_of(model, X)) == pytest.approx(
        np.log(model.predict(X)) - np.log1p(-model.predict(X))
    )
    model.blend_ = replace(model.blend_, weights=np.array([1.0, 0.0]), shares=np.array([0.0, 0.1]))
    assert model.blend_.used_models == [0, 1]
    model.blend_ = replace(model.blend_, shares=np.zeros(2))
    assert model.blend_.used_models == [0]
    curves = model.predict(X)
    monkeypatch.delattr(Boosting, "_curves")
    assert model.predict(X).tobytes() == curves.tobytes()


def scores_of(model: Stack, X: Array) -> Array:
    return np.array([average_member_scores(member, model.encode(X), Link(True)) for member in model.members_])


def test_increments_are_all_but_common_for_a_log_without_differences() -> None:
    model = Stack(models=small()).fit(*data(2000, own=0, curved=1.0))
    assert model.blend_.shares.max() < 0.2
    assert abs(model.blend_.tilt) < 0.15


def test_strong_differences_are_taken_from_the_member_that_sees_them() -> None:
    X, level, response = data(5000, own=1)
    model = Stack(models=small()).fit(X, level, response)
    assert chosen(model) == "individual increments"
    assert model.blend_.shares[0] == 0  # lines have common increments
    rise = np.diff(model.predict(X)[:, [0, 3]], axis=1)[:, 0]
    assert rise[X[:, 2] > 0.1].mean() > 2 * rise[X[:, 2] < -0.1].mean()


def test_choices_are_of_the_stack_then_of_its_members() -> None:
    model = Stack(models=[Additive(), Boosting(rounds=20)], folds=2).fit(*data(500, own=1))
    names = [choice.name for choice in model.choices_ if choice.of == "increments of the stack"]
    assert names == ["common increments", "individual increments"]
    assert model.choices_[-1].of.startswith("Additive")


def test_a_member_given_twice_changes_next_to_nothing() -> None:
    X, level, response = data(800, own=0)
    once = Stack(models=[Linear(penalty=0.01)]).fit(X, level, response).predict(X)
    twice = Stack(models=[Linear(penalty=0.01)] * 2).fit(X, level, response).predict(X)
    np.testing.assert_allclose(twice, once, atol=2e-3)


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


def saturating(n: int, seed: int, K: int = 10) -> tuple[Simulated, Simulated]:
    """Customers to learn from and fresh ones; each has a reach and a half-way dose of its own."""

    def draw(rows: int, rng: np.random.Generator) -> Simulated:
        X, dose = rng.normal(size=(rows, 4)), np.arange(K) / (K - 1)
        half = 0.15 * np.exp(0.7 * X[:, 1] + 0.4 * rng.normal(size=rows))
        reach = 1.6 + 0.5 * X[:, 2]
        score = 0.8 * X[:, :1] - 0.8 + reach.clip(0)[:, None] * dose / (dose + half[:, None])
        return Simulated(X, sigmoid(score))

    rng = np.random.default_rng(seed)
    return draw(n, rng), draw(4000, rng)


def skill_of(model: ResponseModel, known: Simulated, fresh: Simulated, budget: float, seed: int) -> float:
    """The gain over the same level for all, as a share of the gain of the best plan over these."""
    rng = np.random.default_rng([seed, 5])
    level = rng.integers(0, known.truth.shape[1], len(known.X))
    response = (rng.random(len(level)) < known.truth[np.arange(len(level)), level]).astype(float)
    K = known.truth.shape[1]
    log = log_from_arrays(known.X, level, response, levels=Levels(costs=np.arange(K)))
    rows, costs = np.arange(len(fresh.X)), np.arange(K, dtype=float)
    curves = model.fit(log).predict(fresh.X)
    ours = fresh.truth[rows, allocate(curves, costs, budget=budget).levels].mean()
    best = fresh.truth[rows, allocate(fresh.truth, costs, budget=budget).levels].mean()
    even = np.interp(budget, costs, fresh.truth.mean(axis=0))
    return float((ours - even) / (best - even))


@pytest.mark.parametrize("seed", range(3))
def test_plans_over_ten_saturating_levels_do_not_gamble(seed: int) -> None:
    """Equal steps would make every level as efficient as the next, and give some customers all and the others nothing."""
    known, fresh = saturating(2000, seed)
    model = Stack(models=[Linear(penalty=0.03), Boosting(rounds=50)], folds=3)
    for budget in (2.25, 4.5):
        assert skill_of(model, known, fresh, budget, seed) > -0.3


def test_averaged_ladders_plan_better_than_measured_steps_and_than_equal_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = [(*saturating(2000, seed), budget, seed) for seed in range(6) for budget in (2.25, 4.5)]
    model = Linear(penalty=0.03)
    ours = np.array([skill_of(model, *world) for world in worlds])
    monkeypatch.setattr(linear, "_replace_increments", lambda found, rows: found)  # noqa: ARG005
    equal = np.array([skill_of(model, *world) for world in worlds])
    monkeypatch.setattr(linear, "INCREMENT_STIFFNESS", 0.0)
    measured = np.array([skill_of(model, *world) for world in worlds])
    assert np.median(ours) > 0.1
    assert ours.mean() > max(equal.mean(), measured.mean())
    assert (ours > -0.3).mean() > 0.9


def test_amounts_with_many_zeros_are_whether_times_how_much() -> None:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(1500, 3)), rng.integers(0, 3, 1500)
    buys = rng.random(1500) < sigmoid(X[:, 0] - 1 + 0.6 * level)
    spent = buys * np.exp(2 + 0.5 * X[:, 1] + rng.normal(size=1500))
    model = Stack(models=small(), folds=2).fit(X, level, spent)
    assert model.amounts_ is not None
    assert model.blend_.link.binary
    curves = model.predict(X)
    assert (curves > 0).all()
    assert (np.diff(curves, axis=1) >= 0).all()
    assert curves[np.arange(1500), level].mean() == pytest.approx(spent.mean(), rel=0.15)
    assert np.corrcoef(curves[:, 1], sigmoid(X[:, 0] - 0.4) * np.exp(0.5 * X[:, 1]))[0, 1] > 0.8
    again = Stack.from_state(*model.state(), list_model_classes())
    assert again.predict(X).tobytes() == curves.tobytes()
    assert Stack(models=small(), folds=2).fit(X, level, spent - 1).amounts_ is None


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


def test_thresholds_are_fitted_to_all_rows_for_new_customers_and_kept() -> None:
    X, level, response = data(400, own=0)
    model = Stack(models=[Thresholds(penalty=0.1)]).fit(X, level, response)
    assert isinstance(model.whole_[0], Thresholds)
    assert 0 in model.blend_.used_models
    alone = Thresholds(penalty=0.1).fit(X, level, response)
    np.testing.assert_allclose(model.whole_[0]._curves(model.encode(X)), alone.predict(X), atol=1e-6)
    state, arrays = model.state()
    again = Stack.from_state(state, arrays, list_model_classes())
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    model.whole_ = (None,)
    assert np.abs(model.predict(X) - again.predict(X)).max() > 1e-4
    state["learnt"]["whole_"].append(None)  # of no member
    with pytest.raises(ValueError, match="members"):
        Stack.from_state(state, arrays, list_model_classes())
    with pytest.raises(InputError):
        Stack(models=[]).fit(X, level, response)


@pytest.mark.parametrize("name", ["averaged", "unit"])
def test_a_fit_that_holds_rows_out_is_the_fit_itself(name: str) -> None:
    log = simulate(name, n=400, seed=2).log
    fold = assign_folds(log, 5, 0)
    plain, both = (Stack(models=[Linear(penalty=0.1), Boosting(rounds=10)]) for _ in range(2))
    held = both.fit_held_out(log, fold)
    assert np.array_equal(plain.fit(log).predict(log), both.predict(log))
    assert held.curves.shape == (400, len(log.levels))
    assert (np.diff(held.curves, axis=1) >= 0).all()
    assert np.array_equal(
        held.curves, Stack(models=[Linear(penalty=0.1), Boosting(rounds=10)]).predict_held_out(log, fold).curves
    )
    by_fold = both.predict_by_fold(log)
    for f, curves in enumerate(by_fold):
        np.testing.assert_allclose(curves[fold == f], held.curves[fold == f], atol=1e-9)
    # Rows that were held out are less well known than rows that were seen.
    rows = np.arange(len(log))
    seen, unseen = (
        ((curves[rows, log.level] - log.response) ** 2).mean() for curves in (both.predict(log), held.curves)
    )
    assert seen < unseen


def test_a_fit_says_how_far_it_is() -> None:
    heard: list[float] = []
    with report_to(lambda _stage, done: heard.append(done)):
        Stack(models=[Additive(), Boosting(rounds=5)]).fit(simulate("averaged", n=300, seed=1).log)
    assert heard == sorted(heard)
    assert len([done for done in heard if 0 < done < 0.9]) >= 4  # members and folds
    assert heard[-1] == pytest.approx(0.9)  # what is left is the blend


LADDER = np.array([0.0, 0.5, 0.7, 1.0])
LEVELS = Levels(costs=[0, 1, 2, 3])


def log_of(scores: Array, *, amounts: bool = False, seed: int = 0, **more: Any) -> Log:
    """A log of levels drawn at random, with responses by their scores (n, K)."""
    rng = np.random.default_rng([seed, 1])
    n = len(scores)
    level = rng.integers(0, scores.shape[1], n)
    own = scores[np.arange(n), level]
    response = own + rng.normal(size=n) if amounts else (rng.random(n) < sigmoid(own)).astype(float)
    return log_from_arrays(np.zeros((n, 1)), level, response, levels=LEVELS, **more)


def blend_of(held: Array, log: Log, precision: float | None = None) -> Blend:
    fold = assign_folds(log, 5)
    return choose_blend(
        MemberScores(held, [DEVIATION_PRECISION if precision is None else precision] * len(held)), log, fold
    )[0]


def curves_of(base: Array, effects: Array = LADDER) -> Array:
    return base[:, None] + effects


def made(**changes: Any) -> Blend:
    """A blend of two members and three levels."""
    rng = np.random.default_rng(0)
    common, lift = np.array([-0.2, 0.1, 0.3]), np.array([-0.2, 0.0, 0.2])
    centres = np.sort(rng.normal(size=(2, 3)), axis=1)
    whole = Blend(Link(True), np.array([0.6, 0.5]), common, np.array([0.3, 0.0]), centres, 0.4, -0.1, 0.8, lift)
    return replace(whole, **changes)


# ---------------------------------------------------------------------------------------------- what a blend says


def test_scores_agree_with_a_slow_loop() -> None:
    blend, held = made(shares=np.array([0.3, 0.2])), np.random.default_rng(1).normal(size=(2, 30, 3)) * 3
    found = blend.scores(held)
    for i in range(30):
        base = sum(blend.weights[m] * held[m, i].mean() for m in range(2))
        z = min(max((base - blend.middle) / blend.spread, -2.5), 2.5)
        for k in range(3):
            own = sum(blend.shares[m] * (held[m, i, k] - held[m, i].mean() - blend.centres[m, k]) for m in range(2))
            assert found[i, k] == pytest.approx(base + blend.common[k] + blend.tilt * z * blend.lift[k] + own)


def test_the_score_of_a_row_does_not_depend_on_which_rows_come_with_it() -> None:
    held = np.random.default_rng(1).normal(size=(2, 101, 3))
    together = made().scores(held)
    for rows in ([0], [100], [3, 50], list(range(7, 90))):
        assert made().scores(held[:, rows]).tobytes() == together[rows].tobytes()


@pytest.mark.parametrize("link", [Link(True), Link(False, 20.0)])
def test_responses_never_fall_in_the_level(link: Link) -> None:
    held = np.random.default_rng(2).normal(size=(2, 200, 3)) * 2
    scores = made(tilt=-1.0, shares=np.array([1.0, 1.0])).scores(held)
    assert (np.diff(scores, axis=1) < 0).any()
    assert (np.diff(convert_to_responses(scores, link), axis=1) >= 0).all()


# ---------------------------------------------------------------------------------------------- base and common increments


@pytest.mark.parametrize("amounts", [False, True])
def test_weights_are_near_those_of_the_truth(amounts: bool) -> None:
    rng = np.random.default_rng(0)
    bases = rng.normal(size=(3, 60_000))
    log = log_of(curves_of(1.0 * bases[0] + 0.3 * bases[1]), amounts=amounts)
    blend = blend_of(np.array([curves_of(base) for base in bases]), log)
    weights = blend.weights * (blend.link.unit if amounts else 1.0)
    np.testing.assert_allclose(weights, [1.0, 0.3, 0.0], atol=0.05)
    common = (blend.common - blend.common[0]) * (blend.link.unit if amounts else 1.0)
    np.testing.assert_allclose(common, LADDER, atol=0.08)


def test_members_count_alike_where_rows_are_few() -> None:
    rng = np.random.default_rng(1)
    base = rng.normal(size=60)
    held = np.array([curves_of(base + 0.1 * rng.normal(size=60)) for _ in range(2)])
    weights = blend_of(held, log_of(curves_of(base))).weights
    assert weights.min() > 0.6 * weights.max()


def test_common_increments_do_not_follow_those_of_members() -> None:
    base = np.random.default_rng(0).normal(size=20_000)
    blend = blend_of(curves_of(base, 5 * LADDER)[None], log_of(curves_of(base)))
    np.testing.assert_allclose(blend.common - blend.common[0], LADDER, atol=0.15)
    mean = sigmoid(blend.scores(curves_of(base, 5 * LADDER)[None])).mean(axis=0)
    np.testing.assert_allclose(mean, sigmoid(curves_of(base)).mean(axis=0), atol=0.02)


def test_bases_that_are_the_same_for_all_are_harmless() -> None:
    log = log_of(curves_of(np.zeros(2000)))
    blend = blend_of(curves_of(np.zeros(2000))[None], log)
    assert blend.tilt == 0
    assert blend.spread < 1e-9
    assert np.isfinite(blend.scores(curves_of(np.zeros(10))[None])).all()
    blend.check(1)


# ---------------------------------------------------------------------------------------------- the tilt


def tilted(n: int, tilt: float, seed: int = 0, amounts: bool = False) -> tuple[Array, Log]:
    base = np.random.default_rng(seed).normal(size=n)
    scores = base[:, None] + LADDER + tilt * base[:, None] * (LADDER - LADDER.mean())
    return curves_of(base)[None], log_of(scores, amounts=amounts, seed=seed)


@pytest.mark.parametrize("tilt", [0.6, -0.5])
def test_a_known_tilt_is_recovered_from_many_rows(tilt: float) -> None:
    held, log = tilted(150_000, tilt)
    blend = blend_of(held, log)
    assert blend.tilt == pytest.approx(tilt, abs=0.12)
    assert blend.lift @ np.ones(4) == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("n", [500, 5000, 100_000])
def test_without_a_tilt_next_to_none_is_found(n: int) -> None:
    found = [blend_of(*tilted(n, 0.0, seed)).tilt for seed in range(4)]
    assert max(map(abs, found)) < 0.12
    assert np.mean(np.abs(found)) < (0.1 if n < 1000 else 0.05)


def test_few_rows_are_not_believed_about_a_tilt() -> None:
    found = [blend_of(*tilted(400, 0.5, seed)).tilt for seed in range(5)]
    assert np.median(np.abs(found)) < 0.2


def test_amounts_have_no_tilt() -> None:
    assert blend_of(*tilted(5000, 0.6, amounts=True)).tilt == 0


# ---------------------------------------------------------------------------------------------- deviations


def deviating(n: int, real: float, seed: int = 0) -> tuple[Array, Log]:
    """Held-out scores of a member that says customers deviate, and a log in which `real` of it is so."""
    rng = np.random.default_rng(seed)
    base, own = rng.normal(size=n), rng.normal(size=n)[:, None] * (LADDER - LADDER.mean())
    return (curves_of(base) + own)[None], log_of(curves_of(base) + real * own, seed=seed)


def test_deviations_that_are_real_are_used_with_many_rows() -> None:
    held, log = deviating(40_000, real=1.0)
    assert blend_of(held, log).shares[0] == pytest.approx(1, abs=0.15)
    held, log = deviating(40_000, real=0.5)
    assert blend_of(held, log).shares[0] == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("n", [500, 40_000])
def test_deviations_that_are_noise_are_hardly_used(n: int) -> None:
    shares = [blend_of(*deviating(n, real=0.0, seed=seed)).shares[0] for seed in range(4)]
    assert max(shares) < 0.25
    assert np.mean(shares) < 0.1


def test_few_rows_leave_real_deviations_shrunk_and_those_of_members_that_shrink_themselves_less() -> None:
    held, log = deviating(400, real=1.0)
    firm, loose, never = (
        blend_of(held, log, precision).shares[0] for precision in (DEVIATION_PRECISION, SHRUNK_PRECISION, np.inf)
    )
    assert never == 0 < firm < loose < 1.3
    assert firm < 0.7


def test_how_firmly_deviations_are_held_depends_on_the_member() -> None:
    assert choose_increment_precision(shrinks=False, only_base=False) == DEVIATION_PRECISION > SHRUNK_PRECISION
    assert choose_increment_precision(shrinks=True, only_base=False) == SHRUNK_PRECISION
    assert choose_increment_precision(shrinks=True, only_base=True) == np.inf


def test_that_folds_disagree_about_levels_says_nothing_about_customers() -> None:
    base = np.random.default_rng(0).normal(size=4000)
    log = log_of(curves_of(base))
    fold = assign_folds(log, 5)
    ladders = np.random.default_rng(1).normal(size=(5, 4))[fold]
    blend, choices = choose_blend(MemberScores((base[:, None] + ladders)[None], [DEVIATION_PRECISION]), log, fold)
    assert blend.shares.tolist() == [0.0]
    assert choices[0].name == "common increments"


# ---------------------------------------------------------------------------------------------- what was tried, and keeping


def test_clusters_count_in_the_choice() -> None:
    held, log = deviating(300, real=1.0)
    copies, again = np.repeat(np.arange(300), 20), [log.level, log.response]
    again = [np.repeat(part, 20) for part in again]

    def fitted(**more: Any) -> tuple[float, float]:
        many = log_from_arrays(np.zeros((6000, 1)), *again, levels=LEVELS, **more)
        blend, choices = choose_blend(MemberScores(held[:, copies], [DEVIATION_PRECISION]), many, assign_folds(many, 5))
        return blend.shares[0], max(choice.se for choice in choices)

    (alone, sure), (together, unsure) = fitted(), fitted(cluster=copies)
    assert together < 0.8 * alone
    assert unsure > 2 * sure * together / alone


def test_rows_beyond_the_most_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    held, log = deviating(4000, real=1.0)
    whole = blend_of(held, log)
    monkeypatch.setattr("largesse.response.stacking.MAX_STACKING_ROWS", 2000)
    some = blend_of(held, log)
    assert some.weights[0] == pytest.approx(whole.weights[0], abs=0.2)
    assert some.weights[0] != whole.weights[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": np.array([0.5, -0.1])}, "negative weights or shares"),
        ({"shares": np.array([-0.1, 0.0])}, "negative weights or shares"),
        ({"tilt": float("nan")}, "a tilt of nan"),
        ({"tilt": float("inf")}, "a tilt of inf"),
        ({"middle": float("-inf")}, "around -inf"),
        ({"spread": float("nan")}, "± nan"),
        ({"spread": -1.0}, "± -1.0"),
        ({"spread": 0.0}, "the same for all"),
        ({"spread": 1e-300}, "the same for all"),
        ({"link": Link(False, 0.0)}, "units of 0.0"),
        ({"link": Link(False, float("nan"))}, "units of nan"),
        ({"link": Link(False, float("inf"))}, "units of inf"),
    ],
)
def test_a_blend_that_no_fit_can_have_found_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**changes).check(2)
    model = copy(straight())
    model.blend_ = replace(model.blend_, **{"tilt": 0.4, **changes})
    with pytest.raises(ValueError, match=message):  # also when it is loaded
        Stack.from_state(*model.state(), list_model_classes())
    made(tilt=0.0, spread=0.0).check(2)
    with pytest.raises(ValueError, match="2 members, of 3"):
        made().check(3)


def test_the_curves_of_a_fold_do_not_depend_on_its_responses_once_members_are_fitted() -> None:
    rng = np.random.default_rng(5)
    n, K = 400, 3
    held = rng.normal(size=(2, n, 1)) + np.cumsum(rng.random((2, n, K)), axis=2)
    level = rng.integers(0, K, n)
    log = log_from_arrays(
        np.zeros((n, 1)), level, (rng.random(n) < sigmoid(held[0, np.arange(n), level])).astype(float)
    )
    fold, members = assign_folds(log, 5), MemberScores(held, [DEVIATION_PRECISION, DEVIATION_PRECISION])
    turned = replace(log, response=np.where(fold == 2, 1 - log.response, log.response))
    curves, others = (blend_held_out(members, one, fold)[0] for one in (log, turned))
    assert np.array_equal(curves[fold == 2], others[fold == 2])
    assert not np.allclose(curves[fold == 1], others[fold == 1])
    assert (np.diff(curves, axis=1) >= 0).all()
    # The blend of all rows says nearly the same of them.
    whole = convert_to_responses(choose_blend(members, log, fold)[0].scores(held), Link(True))
    assert np.abs(curves - whole).max() < 0.15


def test_recorded_propensities_keep_the_missed_base_out_of_the_increments() -> None:
    rng = np.random.default_rng(0)
    n, K = 6000, 4
    missed, X = rng.normal(size=n), rng.normal(size=(n, 3))
    odds = np.exp(missed[:, None] * np.linspace(-1.0, 1.0, K))
    chances = odds / odds.sum(axis=1, keepdims=True)
    level = (rng.random(n)[:, None] > np.cumsum(chances, axis=1)).sum(axis=1)
    response = (rng.random(n) < sigmoid(-0.5 + X[:, 0] + missed + 0.1 * level)).astype(float)
    log = log_from_arrays(X, level, response)
    recorded = replace(log, propensity=chances[np.arange(n), level])
    spans = [np.ptp(Stack(models=small()).fit(each).blend_.common) for each in (log, recorded)]
    assert spans[0] > 0.8
    assert spans[1] < 0.6


def test_constant_propensities_change_the_blend_hardly() -> None:
    X, level, response = data(2000, own=0)
    log = log_from_arrays(X, level, response)
    shares = np.bincount(level)[level] / len(level)
    plain = Stack(models=small()).fit(log).predict(X)
    np.testing.assert_allclose(Stack(models=small()).fit(replace(log, propensity=shares)).predict(X), plain, atol=0.02)
