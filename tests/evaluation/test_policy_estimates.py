import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from largesse.evaluation.crossfitting import crossfit
from largesse.evaluation.estimators import ESTIMATORS
from largesse.evaluation.policy_estimates import (
    compare_references,
    describe_mix,
    estimate_difference,
    estimate_gain,
    estimate_uniform,
    estimate_value,
    find_best_mix,
    name_mix,
    score_policy,
)
from largesse.evaluation.recommendation import recommend_policy
from largesse.levels import Levels
from largesse.records import Array, Log, Scores
from largesse.stats.intervals import t_estimate
from largesse.worlds import simulate


def scores_of(gamma: Array, costs: Array, **more: Any) -> Scores:
    n, K = gamma.shape
    given: dict[str, Any] = {
        "curves": gamma,
        "gamma": gamma,
        "costs": np.broadcast_to(costs, gamma.shape),
        "expected_costs": np.broadcast_to(costs, gamma.shape),
        "propensity": np.full(n, 1 / K),
        "fold": np.arange(n) % 2,
        "level": np.arange(n) % K,
        "response": np.arange(n) % 2 * 1.0,
        "paid": np.broadcast_to(costs, gamma.shape)[np.arange(n), np.arange(n) % K],
        "weight": np.ones(n),
        "cluster": None,
    }
    return Scores(**{**given, **more})


def brute_force(value: Array, cost: Array, spend: float) -> float:
    """The best value of a mixture of two levels on a fine grid of shares: mixtures of more are never better."""
    best = -np.inf
    for a, b in itertools.product(range(len(value)), repeat=2):
        share = np.linspace(0, 1, 2001)
        worth = (1 - share) * value[a] + share * value[b]
        paid = (1 - share) * cost[a] + share * cost[b]
        best = max(best, worth[paid <= spend + 1e-9].max(initial=-np.inf))
    return best


@pytest.mark.parametrize("seed", range(20))
def test_best_mix_agrees_with_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K = int(rng.integers(1, 5))
    scores = scores_of(rng.normal(size=(30, K)), np.sort(rng.random(K)) + 0.1, weight=rng.random(30))
    value = np.average(scores.gamma, axis=0, weights=scores.weight)
    cost = scores.costs[0]
    for spend in [*cost, *rng.uniform(cost[0], cost[-1] + 0.1, 3)]:
        mix = find_best_mix(scores, spend)
        assert mix.sum() == pytest.approx(1)
        assert (mix >= 0).all()
        assert (mix > 0).sum() <= 2
        assert mix @ cost <= spend + 1e-12
        assert mix @ value >= brute_force(value, cost, spend) - 1e-3
        assert mix @ value == pytest.approx(brute_force(value, cost, spend), abs=2e-3)


def test_best_mix_of_a_spend_below_the_cheapest_level_is_that_level() -> None:
    scores = scores_of(np.random.default_rng(0).random((10, 3)), np.array([1.0, 2.0, 3.0]))
    assert find_best_mix(scores, 0.5).tolist() == [1, 0, 0]


def test_a_level_with_a_single_row_is_mixed_only_where_nothing_else_costs_as_much() -> None:
    """The score of a level that one customer got is what the model makes of it: nobody is advised to give it."""
    gamma = np.array([[0.0, 1.0, 9.0]] * 101)
    made = replace(scores_of(gamma, np.array([0.0, 1.0, 2.0])), level=np.array([0, 1] * 50 + [2]))
    assert find_best_mix(made, 0.5) == pytest.approx([0.5, 0.5, 0])
    assert find_best_mix(made, 1.5)[2] > 0


def test_policy_value_is_the_mean_of_its_scores() -> None:
    rng = np.random.default_rng(1)
    scores = scores_of(
        rng.normal(size=(40, 3)), np.array([0.0, 1, 2]), weight=rng.random(40), cluster=np.arange(40) // 3
    )
    levels = rng.integers(0, 3, 40)
    value, spend = estimate_value(scores, levels)
    assert value == t_estimate(scores.gamma[np.arange(40), levels], scores.weight, scores.cluster)
    assert spend.estimate == pytest.approx(np.average(levels, weights=scores.weight))


def test_probabilities_may_be_common_to_all() -> None:
    scores = scores_of(np.random.default_rng(2).normal(size=(40, 3)), np.array([0.0, 1, 2]))
    shares = np.array([0.2, 0.3, 0.5])
    value, spend = score_policy(scores, shares)
    np.testing.assert_allclose(value.values, scores.gamma @ shares)
    np.testing.assert_allclose(spend.values, 1.3)
    assert [v.estimate for v, _ in estimate_uniform(scores)] == pytest.approx(scores.gamma.mean(axis=0).tolist())


def test_references_are_paired_with_the_policy() -> None:
    rng = np.random.default_rng(3)
    scores = scores_of(rng.normal(size=(60, 3)), np.array([0.0, 1, 2]))
    levels = np.argmax(scores.gamma, axis=1)
    same, before = compare_references(
        scores, score_policy(scores, levels), Levels(costs=[0, 1, 2], names=["none", "small", "big"])
    )
    value, spend = estimate_value(scores, levels)
    assert same.spend.estimate <= spend.estimate + 1e-12
    assert same.difference.estimate == pytest.approx(value.estimate - same.value.estimate)
    own = scores.gamma[np.arange(60), levels]
    assert before.difference == t_estimate(own - scores.response, scores.weight)
    assert before.value.estimate == scores.response.mean()
    assert before.spend.estimate == scores.paid.mean()
    assert before.detail == "the levels in the log"


def test_treating_all_alike_is_no_better_than_itself() -> None:
    scores = scores_of(np.arange(3.0) + np.random.default_rng(4).normal(size=(60, 3)) / 9, np.array([0.0, 1, 2]))
    same, _ = compare_references(scores, score_policy(scores, np.full(60, 2)), Levels(costs=[0, 1, 2]))
    assert (same.difference.estimate, same.difference.se) == pytest.approx((0, 0), abs=1e-12)
    assert same.detail == "all get 'level 2'"


# ---------------------------------------------------------------------------------------------- gains at the same spend


@pytest.fixture(scope="module")
def always_paid() -> Log:
    return simulate("averaged", n=400, seed=0).log


@pytest.fixture(scope="module", params=["redeemed", "observed"])
def uncertain(request: pytest.FixtureRequest, always_paid: Log) -> tuple[Log, Scores]:
    """A log whose costs are paid on redemption, or observed: a large part of them by few customers."""
    if request.param == "redeemed":
        log = replace(always_paid, levels=Levels(costs=[0, 1, 2, 3, 4], on_redemption=True))
    else:
        paid = always_paid.level * np.random.default_rng(1).lognormal(sigma=1.5, size=400)
        levels = Levels(names=["0", "1", "2", "3", "4"], observed=True)
        log = replace(always_paid, levels=levels, costs=None, paid=paid)
    return log, crossfit(log)


@pytest.fixture(scope="module")
def plan() -> Array:
    return np.random.default_rng(0).integers(0, 5, 400)


def test_a_gain_allows_for_errors_of_spends(uncertain: tuple[Log, Scores], plan: Array) -> None:
    """By hand: a jackknife of θ = V(plan) − F(S(plan)), F the line through the two levels of the mix."""
    _, scores = uncertain
    own = np.arange(400), plan
    mix = find_best_mix(scores, float(scores.costs[own].mean()))
    a, b = np.flatnonzero(mix)

    def theta(weight: Array) -> float:
        share = weight / weight.sum()
        value, cost = share @ scores.gamma, share @ scores.costs
        slope = (value[b] - value[a]) / (cost[b] - cost[a])
        return float(share @ scores.gamma[own] - value[a] - slope * (share @ scores.costs[own] - cost[a]))

    found, alone = estimate_gain(scores, plan), estimate_difference(scores, plan, mix).value
    left_out = np.array([theta(np.arange(400) != i) for i in range(400)])
    assert found.estimate == pytest.approx(theta(np.ones(400)), abs=1e-9)
    assert found.se == pytest.approx(float(left_out.std()) * np.sqrt(399), rel=0.02)
    assert found.se != pytest.approx(alone.se, rel=0.03)
    assert found.low < found.estimate - 1.9 * found.se
    assert found.high > found.estimate + 1.9 * found.se


def test_references_and_options_show_the_same_gain(uncertain: tuple[Log, Scores], plan: Array) -> None:
    log, scores = uncertain
    found = estimate_gain(scores, plan)
    assert compare_references(scores, score_policy(scores, plan), log.levels)[0].difference == found
    option = recommend_policy(log, scores, plan).options[0]
    assert option.gain == found
    assert option.at_least is not None
    assert option.at_least <= found.estimate - 1.64 * found.se


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_gain_at_certain_costs_is_the_difference_in_value(always_paid: Log, plan: Array, estimator: str) -> None:
    scores = crossfit(always_paid)
    mix = find_best_mix(scores, estimate_value(scores, plan, estimator)[1].estimate)
    plain = estimate_difference(scores, plan, mix, estimator).value
    assert estimate_gain(scores, plan, estimator) == plain
    assert (
        compare_references(scores, score_policy(scores, plan, estimator), always_paid.levels, estimator)[0].difference
        == plain
    )


def test_a_gain_over_a_single_level_needs_no_spends(uncertain: tuple[Log, Scores]) -> None:
    _, scores = uncertain
    scores = replace(scores, gamma=scores.gamma - 2.0 * np.arange(5))  # the cheapest level is the best
    plan = np.full(400, 1)
    cheapest = estimate_difference(scores, plan, np.zeros(400, dtype=np.int64)).value
    found = estimate_gain(scores, plan)
    assert (found.estimate, found.se) == pytest.approx((cheapest.estimate, cheapest.se))
    assert np.isfinite(found.low)


@pytest.mark.parametrize(
    ("mix", "words"),
    [
        ([0, 1, 0], "all get 'small'"),
        ([0.25, 0.75, 0], "25 % get 'none', 75 % get 'small'"),
        ([0.999, 0.001, 0], "all get 'none'"),
    ],
)
def test_mixes_are_said_in_words(mix: list[float], words: str) -> None:
    assert describe_mix(np.array(mix), Levels(costs=[0, 1, 2], names=["none", "small", "big"])) == words


@pytest.mark.parametrize(("mix", "name"), [([0, 1, 0], "everyone the same"), ([0.25, 0.75, 0], "a random mix")])
def test_only_one_level_for_everybody_is_called_the_same(mix: list[float], name: str) -> None:
    assert name_mix(np.array(mix)) == name
