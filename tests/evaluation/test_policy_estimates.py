import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from largesse.evaluation.crossfitted_scores import crossfit_scores
from largesse.evaluation.estimators import ESTIMATORS
from largesse.evaluation.policy_estimates import (
    choose_mix_name,
    compare_references,
    describe_mix,
    estimate_each_level,
    estimate_gain_over_mix,
    estimate_policy_difference,
    estimate_policy_value_and_spend,
    find_best_mixes,
    measure_policy_influence,
)
from largesse.evaluation.policy_gain_bounds import bound_policy_gains
from largesse.levels import Levels
from largesse.records import Array, Log, Scores
from largesse.stats.t_intervals import t_estimate
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
def test_the_best_mix_of_a_fold_agrees_with_brute_force_on_the_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K = int(rng.integers(1, 5))
    scores = scores_of(rng.normal(size=(30, K)), np.sort(rng.random(K)) + 0.1, weight=rng.random(30))
    cost = scores.costs[0]
    for spend in [*cost, *rng.uniform(cost[0], cost[-1] + 0.1, 3)]:
        mixes = find_best_mixes(scores, float(spend))
        for f, mix in enumerate(mixes.shares):
            other = scores.fold != f
            value = np.average(scores.gamma[other], axis=0, weights=scores.weight[other])
            assert mix.sum() == pytest.approx(1)
            assert (mix >= 0).all()
            assert (mix > 0).sum() <= 2
            assert mix @ cost <= spend + 1e-12
            assert mix @ value == pytest.approx(brute_force(value, cost, spend), abs=2e-3)


def test_best_mix_of_a_spend_below_the_cheapest_level_is_that_level() -> None:
    scores = scores_of(np.random.default_rng(0).random((10, 3)), np.array([1.0, 2.0, 3.0]))
    assert find_best_mixes(scores, 0.5).policy.tolist() == [1, 0, 0]


def test_a_level_with_a_single_row_is_mixed_only_where_nothing_else_costs_as_much() -> None:
    """The score of a level that one customer got is what the model makes of it: nobody is advised to give it."""
    gamma = np.array([[0.0, 1.0, 9.0]] * 101)
    made = replace(scores_of(gamma, np.array([0.0, 1.0, 2.0])), level=np.array([0, 1] * 50 + [2]))
    assert find_best_mixes(made, 0.5).mean == pytest.approx([0.5, 0.5, 0])
    assert find_best_mixes(made, 1.5).mean[2] > 0


@pytest.mark.parametrize("paid_as", ["listed", "observed"])
def test_the_mix_of_a_fold_does_not_depend_on_its_own_scores(paid_as: str) -> None:
    rng = np.random.default_rng(3)
    gamma, costs = rng.normal(size=(300, 3)), np.arange(3) + rng.random((300, 3))
    scores = scores_of(gamma, costs, paid_as=paid_as)
    own, spend = scores.fold == 0, costs[np.arange(300), rng.integers(0, 3, 300)]
    other = replace(scores, gamma=np.where(own[:, None], gamma[::-1] + 5.0, gamma))
    if paid_as == "observed":
        other = replace(other, costs=np.where(own[:, None], 2 * costs, costs))
    before, after = find_best_mixes(scores, spend), find_best_mixes(other, spend)
    assert before.shares[0] == pytest.approx(after.shares[0])
    assert before.shares[1] != pytest.approx(after.shares[1])


@pytest.mark.parametrize("vary", [0.0, 1.0])
def test_the_mix_of_a_fold_spends_as_much_as_the_plan_where_costs_are_certain(vary: float) -> None:
    rng = np.random.default_rng(4)
    costs = np.arange(4) * (1 + vary * rng.random((300, 1)))
    scores = scores_of(np.arange(4) + rng.normal(size=(300, 4)), costs)
    spend = costs[np.arange(300), rng.integers(0, 4, 300)]
    mixed = measure_policy_influence(scores, find_best_mixes(scores, spend).policy)
    for f in range(2):
        assert mixed.spend.values[scores.fold == f].mean() == pytest.approx(spend.mean())


@pytest.mark.parametrize("paid_as", ["listed", "observed"])
def test_no_plan_gains_or_loses_where_the_level_is_all_that_counts(paid_as: str) -> None:
    """Without heterogeneity every plan is as good as a mix: on average the gain is zero."""
    gains, rng = [], np.random.default_rng(5)
    for _ in range(300):
        costs = np.arange(6) + (rng.normal(scale=3.0, size=(200, 6)) if paid_as == "observed" else 0.0)
        scores = scores_of(0.1 * np.arange(6) + rng.normal(size=(200, 6)), costs, paid_as=paid_as)
        gains.append(estimate_gain_over_mix(scores, rng.integers(0, 5, 200)))
    mean = t_estimate(np.array([gain.estimate for gain in gains]))
    assert abs(mean.estimate) < 2.5 * mean.se
    assert np.mean([gain.high < 0 for gain in gains]) < 0.06
    assert np.mean([gain.low > 0 for gain in gains]) < 0.06


def test_policy_value_is_the_mean_of_its_scores() -> None:
    rng = np.random.default_rng(1)
    scores = scores_of(
        rng.normal(size=(40, 3)), np.array([0.0, 1, 2]), weight=rng.random(40), cluster=np.arange(40) // 3
    )
    levels = rng.integers(0, 3, 40)
    value, spend = estimate_policy_value_and_spend(scores, levels)
    assert value == t_estimate(scores.gamma[np.arange(40), levels], scores.weight, scores.cluster)
    assert spend.estimate == pytest.approx(np.average(levels, weights=scores.weight))


def test_probabilities_may_be_common_to_all() -> None:
    scores = scores_of(np.random.default_rng(2).normal(size=(40, 3)), np.array([0.0, 1, 2]))
    shares = np.array([0.2, 0.3, 0.5])
    value, spend = measure_policy_influence(scores, shares)
    np.testing.assert_allclose(value.values, scores.gamma @ shares)
    np.testing.assert_allclose(spend.values, 1.3)
    assert [v.estimate for v, _ in estimate_each_level(scores)] == pytest.approx(scores.gamma.mean(axis=0).tolist())


def test_references_are_paired_with_the_policy() -> None:
    rng = np.random.default_rng(3)
    scores = scores_of(rng.normal(size=(60, 3)), np.array([0.0, 1, 2]))
    levels = np.argmax(scores.gamma, axis=1)
    same, before = compare_references(
        scores, measure_policy_influence(scores, levels), Levels(costs=[0, 1, 2], names=["none", "small", "big"])
    )
    value, spend = estimate_policy_value_and_spend(scores, levels)
    assert same.spend.estimate <= spend.estimate + 1e-12
    assert same.difference.estimate == pytest.approx(value.estimate - same.value.estimate)
    own = scores.gamma[np.arange(60), levels]
    assert before.difference == t_estimate(own - scores.response, scores.weight)
    assert before.value.estimate == scores.response.mean()
    assert before.spend.estimate == scores.paid.mean()
    assert before.detail == "the levels in the log"


def test_treating_all_alike_is_no_better_than_itself() -> None:
    scores = scores_of(np.arange(3.0) + np.random.default_rng(4).normal(size=(60, 3)) / 9, np.array([0.0, 1, 2]))
    same, _ = compare_references(scores, measure_policy_influence(scores, np.full(60, 2)), Levels(costs=[0, 1, 2]))
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
    return log, crossfit_scores(log)


@pytest.fixture(scope="module")
def plan() -> Array:
    return np.random.default_rng(0).integers(0, 5, 400)


def test_a_gain_allows_for_errors_of_spends(uncertain: tuple[Log, Scores], plan: Array) -> None:
    """By hand: a jackknife of θ = V(plan) − F(S(plan)), F the line through the two levels of each fold's mix."""
    _, scores = uncertain
    own, alone = np.arange(400), estimate_gain_over_mix(replace(scores, paid_as="listed"), plan)
    mixes = find_best_mixes(scores, scores.costs[own, plan])

    def theta(weight: Array) -> float:
        total = 0.0
        for f, (mix, slope) in enumerate(zip(mixes.shares, mixes.slopes, strict=True)):
            rows = np.flatnonzero(mixes.fold == f)
            value, cost = (table[rows, plan[rows]] - table[rows] @ mix for table in (scores.gamma, scores.costs))
            total += weight[rows] @ (value - slope * cost)
        return float(total / weight.sum())

    found = estimate_gain_over_mix(scores, plan)
    left_out = np.array([theta((np.arange(400) != i).astype(float)) for i in range(400)])
    assert found.estimate == pytest.approx(theta(np.ones(400)), abs=1e-9)
    assert found.se == pytest.approx(float(left_out.std()) * np.sqrt(399), rel=0.02)
    assert found.se != pytest.approx(alone.se, rel=0.03)
    assert found.low < found.estimate - 1.9 * found.se
    assert found.high > found.estimate + 1.9 * found.se


def test_references_and_options_show_the_same_gain(uncertain: tuple[Log, Scores], plan: Array) -> None:
    log, scores = uncertain
    found = estimate_gain_over_mix(scores, plan)
    assert compare_references(scores, measure_policy_influence(scores, plan), log.levels)[0].difference == found
    option = bound_policy_gains(log, scores, plan, None).options[0]
    assert option.gain == found
    assert option.at_least is not None
    assert option.at_least <= found.estimate - 1.64 * found.se


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_gain_at_certain_costs_is_the_difference_in_value(always_paid: Log, plan: Array, estimator: str) -> None:
    scores = crossfit_scores(always_paid)
    mixes = find_best_mixes(scores, estimate_policy_value_and_spend(scores, plan, estimator)[1].estimate)
    plain = estimate_policy_difference(scores, plan, mixes.policy, estimator).value
    assert estimate_gain_over_mix(scores, plan, estimator) == plain
    assert (
        compare_references(scores, measure_policy_influence(scores, plan, estimator), always_paid.levels, estimator)[
            0
        ].difference
        == plain
    )


def test_a_gain_over_a_single_level_needs_no_spends(uncertain: tuple[Log, Scores]) -> None:
    _, scores = uncertain
    scores = replace(scores, gamma=scores.gamma - 2.0 * np.arange(5))  # the cheapest level is the best
    plan = np.full(400, 1)
    cheapest = estimate_policy_difference(scores, plan, np.zeros(400, dtype=np.int64)).value
    found = estimate_gain_over_mix(scores, plan)
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
    assert choose_mix_name(np.array(mix)) == name
