"""Why a customer gets a level: checked against plain scans over prices, and on a log whose truth is known."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from largesse.allocation import decide_at_price
from largesse.data import log_from_arrays, read_customers
from largesse.errors import InputError, NotFittedError
from largesse.evaluation import compute_scores, measure_decision_importance, plan_each_fold
from largesse.levels import Levels
from largesse.policy import Policy
from largesse.propensity import estimate_propensities
from largesse.records import Explanation, Log, find_neighbouring_levels_and_prices
from largesse.response import Linear, WithCosts, fit_out_of_fold
from largesse.stats import assign_folds
from largesse_lab.baselines import TLearner
from support.pages import figures

LEVELS = Levels(costs=[0, 1, 2], names=["none", "5 €", "10 €"])


def draw_log(n: int, seed: int) -> Log:
    """`taste` decides whether a level works; `mood` moves the response alike at every level; `noise` is noise."""
    rng = np.random.default_rng(seed)
    taste, mood, noise = rng.normal(size=(3, n))
    level = rng.integers(0, 3, n)
    response = mood + np.where(taste > 0, 2.0, 0.2) * level + rng.normal(size=n)
    features = {"noise": noise, "mood": mood, "taste": (taste > 0) * 1.0}
    return log_from_arrays(features, level, response, levels=LEVELS, propensity=np.full(n, 1 / 3))


@pytest.fixture(scope="module")
def log() -> Log:
    return draw_log(900, 1)


@pytest.fixture(scope="module")
def policy(log: Log) -> Policy:
    return Policy(TLearner(model=Linear(penalty=0.01)).fit(log), LEVELS, price=1.0)


def test_prices_that_change_a_level_are_those_that_a_scan_finds() -> None:
    rng = np.random.default_rng(3)
    curves = rng.normal(size=(200, 4)).cumsum(axis=1)
    costs = rng.uniform(0.1, 1, size=(200, 4)).cumsum(axis=1)
    price = 0.7
    levels = decide_at_price(curves, costs, price)
    dearer, below, cheaper, above = find_neighbouring_levels_and_prices(curves, costs, levels)
    assert (dearer >= 0).any()
    assert (dearer < 0).any()
    assert (cheaper < 0).any()
    for row in range(200):
        one = curves[row : row + 1], costs[row : row + 1]
        if dearer[row] >= 0:
            assert decide_at_price(*one, below[row] * (1 - 1e-6))[0] == dearer[row]
            assert decide_at_price(*one, below[row] * (1 + 1e-6))[0] == levels[row]
        else:
            assert np.isnan(below[row])
            assert decide_at_price(*one, 0.0)[0] == levels[row]
        if cheaper[row] >= 0:
            assert decide_at_price(*one, above[row] * (1 + 1e-6))[0] == cheaper[row]
            assert decide_at_price(*one, above[row] * (1 - 1e-6))[0] == levels[row]
        else:
            assert levels[row] == 0


def test_levels_that_follow_at_the_same_price_are_passed_over() -> None:
    found = find_neighbouring_levels_and_prices(
        np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]), np.tile([0.0, 1.0, 2.0], (2, 1)), np.array([0, 2])
    )
    assert [part.tolist()[place] for part, place in zip(found, (0, 0, 1, 1), strict=True)] == [2, 1.0, 0, 1.0]


def test_an_explanation_holds_what_is_decided(policy: Policy, log: Log) -> None:
    why = policy.explain(log)
    np.testing.assert_array_equal(why.levels, policy.decide(log))
    np.testing.assert_allclose(why.curves, policy.model.predict(log))
    np.testing.assert_array_equal(why.worth.argmax(axis=1), why.levels)
    assert len(why) == len(log)
    assert why.movers == ()
    ids = read_customers({**log.features.to_pydict(), "id": np.arange(900)}, customer="id")
    named = policy.explain(ids).customer
    assert named is not None
    assert named.to_pylist() == list(range(900))


def test_words_name_levels_and_prices() -> None:
    curves, costs = np.array([[0.1, 0.9, 1.7], [0.1, 0.1, 0.1]]), np.tile([0.0, 1.0, 2.0], (2, 1))
    costs[0] = [0, 0.9, 2]
    levels = np.array([1, 0])
    why = Explanation(
        curves, costs, 0.8, levels, *find_neighbouring_levels_and_prices(curves, costs, levels), LEVELS.labels
    )
    assert figures(why.words(0)) == [5, 0.9, 0.9, 0.8, 10, 0.727, 0.889]  # 5 €, or 10 € below and none above a price
    assert why.words(0).index("10 €") < why.words(0).index("none")
    assert figures(why.words(-1)) == [0.1, 0, 0.8]  # no other price would change that
    with pytest.raises(InputError, match=r"2 .*2"):
        why.words(2)


def test_the_feature_that_decides_moves_decisions_and_its_loss_is_real(log: Log) -> None:
    fresh = draw_log(1500, 2)
    model = TLearner(model=Linear(penalty=0.01)).fit(log)
    why = Policy(model, LEVELS, price=1.0).explain(fresh, log=fresh)
    movers = {mover.feature: mover for mover in why.movers}
    assert why.rows == 1500
    assert why.movers[0].feature == "taste"
    # Shuffled, half of each kind get the other kind’s level: two levels that bring 2 too few, or .2 where they cost 1.
    assert movers["taste"].moved == pytest.approx(0.5, abs=0.05)
    assert movers["taste"].loss.low < 0.5 * 0.5 * (2 * (2 - 1) + 2 * (1 - 0.2)) < movers["taste"].loss.high
    assert movers["noise"].moved < 0.1
    assert movers["noise"].loss.low <= 0 <= movers["noise"].loss.high
    assert repr(why) == "Explanation(1,500 customers at price=1, moved most by taste)"


def test_a_log_that_trained_the_model_is_held_out_by_folds(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    learn = Linear._learn

    def noted(self: Linear, X: Any, rows: Log) -> None:
        sizes.append(len(rows))
        learn(self, X, rows)

    policy = Policy(Linear(penalty=0.01).fit(log), LEVELS, price=1.0)
    monkeypatch.setattr(Linear, "_learn", noted)
    first = policy.explain(log[:5], log=log, folds=3)
    assert sizes == [600, 600, 600]
    assert {mover.feature for mover in first.movers} == {"noise", "mood", "taste"}
    policy.explain(log[:5], log=draw_log(300, 5))
    assert len(sizes) == 3
    assert policy.explain(log[:5], log=log, folds=3).movers == first.movers


def test_observed_costs_are_held_out_too() -> None:
    log = draw_log(600, 7)
    paid = log.level * np.where(log.features["mood"].to_numpy() > 0, 2.0, 0.5)
    levels = Levels(names=["none", "5 €", "10 €"], observed=True)
    seen = log_from_arrays(log.features, log.level, log.response, levels=levels, propensity=log.propensity, paid=paid)
    policy = Policy(WithCosts(TLearner(model=Linear(penalty=0.01))).fit(seen), levels, price=1.0)
    why = policy.explain(seen, log=seen, folds=2)
    assert {mover.feature for mover in why.movers[:2]} == {"mood", "taste"}


def test_what_cannot_be_explained_is_refused(policy: Policy, log: Log) -> None:
    with pytest.raises(NotFittedError, match="no price yet"):
        replace(policy, price=None).explain(log)
    with pytest.raises(InputError, match="folds is 1"):
        policy.explain(log, log=log, folds=1)
    other = log_from_arrays(log.features, log.level % 2, log.response)
    with pytest.raises(InputError, match="3 levels"):
        policy.explain(log, log=other)
    with pytest.raises(InputError, match="measured"):
        policy.explain(log, log=log.features)  # type: ignore[arg-type]


def test_shuffled_held_out_rows_say_which_features_move_a_held_out_plan(log: Log) -> None:
    fold = assign_folds(log, 3, 0)
    held = fit_out_of_fold(TLearner(model=Linear(penalty=0.01)), log, fold)
    scores = compute_scores(log, held, estimate_propensities(log, fold, 0))
    assert held.shuffled is not None
    movers = {
        mover.feature: mover
        for mover in measure_decision_importance(log, scores, plan_each_fold(scores, 1.0), held.shuffled)
    }
    assert next(iter(movers)) == "taste"
    assert movers["taste"].moved == pytest.approx(0.5, abs=0.06)
    assert movers["taste"].loss.low > 0
    assert movers["noise"].moved < 0.1
    assert movers["noise"].loss.low <= 0 <= movers["noise"].loss.high


def test_a_plan_that_no_price_makes_has_no_movers(log: Log) -> None:
    fold = assign_folds(log, 3, 0)
    held = fit_out_of_fold(Linear(), log, fold)
    scores = compute_scores(log, held, estimate_propensities(log, fold, 0))
    plan = replace(plan_each_fold(scores, 1.0), prices=np.full(3, np.inf))
    assert held.shuffled is not None
    assert measure_decision_importance(log, scores, plan, held.shuffled) == ()
