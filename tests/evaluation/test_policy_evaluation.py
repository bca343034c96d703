from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from largesse.data.log_reader import log_from_arrays
from largesse.errors import BudgetError, InputError
from largesse.evaluation.crossfitted_scores import crossfit_scores
from largesse.evaluation.frontier_estimate import plan_each_fold
from largesse.evaluation.policy_estimates import estimate_policy_value_and_spend
from largesse.evaluation.policy_evaluation import compare, evaluate
from largesse.levels import Levels
from largesse.policy.policy import Policy
from largesse.records import Log
from largesse.response.boosting import Boosting
from largesse.response.linear import Linear
from largesse.worlds.paper_simulations import Simulation, simulate

MODEL = Linear(penalty=0.03)


@pytest.fixture(scope="module")
def sim() -> Simulation:
    return simulate("averaged", n=2000, seed=4, mix=0.3)


@pytest.fixture(scope="module")
def log(sim: Simulation) -> Log:
    """The log with a few of its features: quicker to fit, and no less true."""
    return replace(sim.log, features=sim.log.features.select([f"x{j}" for j in range(6)]))


def texts(result: Any) -> str:
    return " ".join(str(finding) for finding in result.warnings)


@pytest.mark.parametrize("k", [0, 3])
def test_one_level_for_all_is_worth_about_its_true_mean(sim: Simulation, log: Log, k: int) -> None:
    result = evaluate(log, np.full(len(sim), k))
    assert abs(result.value - sim.truth[:, k].mean()) < 3 * result.value_se
    assert result.value_interval[0] < result.value < result.value_interval[1]
    assert (result.spend, result.spend_se) == (k, 0)
    assert (result.estimator, result.propensity, result.rows, result.clusters) == ("dr", "given", 2000, None)


def test_levels_are_judged_like_probabilities_of_one(sim: Simulation, log: Log) -> None:
    levels = np.arange(len(sim)) % 5
    one, other = evaluate(log, levels), evaluate(log, np.eye(5)[levels])
    assert (one.value, one.value_se, one.spend) == pytest.approx((other.value, other.value_se, other.spend))


def test_mixed_probabilities_are_judged(sim: Simulation, log: Log) -> None:
    result = evaluate(log, sim.propensities)
    true = (sim.propensities * sim.truth).sum(axis=1).mean()
    assert abs(result.value - true) < 3 * result.value_se
    assert result.spend == pytest.approx((sim.propensities @ sim.costs).mean())


def test_whole_numbers_may_be_written_as_floats_or_lists(sim: Simulation, log: Log) -> None:
    log = log.take(np.arange(300))
    levels = np.arange(300) % 5
    assert evaluate(log, levels.astype(float)).value == evaluate(log, levels.tolist()).value


def test_a_policy_is_judged_by_its_own_decisions(sim: Simulation, log: Log) -> None:
    log, other = log.take(np.arange(1000)), log.take(np.arange(1000, 2000))
    policy = Policy(Linear(penalty=0.03).fit(other), log.levels, price=0.045)
    result = evaluate(log, policy)
    levels = policy.decide(log)
    assert abs(result.value - sim.truth[np.arange(1000), levels].mean()) < 3 * result.value_se
    assert result.spend == pytest.approx(levels.mean())
    assert result.promise == pytest.approx(policy.model.predict(log)[np.arange(1000), levels].mean())
    assert "trained on this log" not in texts(result)


@pytest.mark.parametrize(
    "explore", [0.0, 0.2]
)  # a few trees give many customers one curve: ties are broken at random too
def test_a_policy_that_draws_levels_is_judged_by_its_probabilities(log: Log, explore: float) -> None:
    log, other = log.take(np.arange(1000)), log.take(np.arange(1000, 2000))
    policy = Policy(Boosting(rounds=3).fit(other), log.levels).calibrate(log, 1.5, explore=explore)
    result, probabilities = evaluate(log, policy), policy.probabilities(log)
    assert (probabilities.max(axis=1) < 1).any()
    scores = crossfit_scores(log, policy.model)
    assert result.value == pytest.approx((probabilities * scores.gamma).sum(axis=1).mean())
    assert result.spend == pytest.approx((probabilities @ np.arange(5)).mean())
    assert result.promise == pytest.approx((probabilities * policy.model.predict(log)).sum(axis=1).mean())


def test_a_policy_that_saw_the_log_is_warned_of_first(sim: Simulation, log: Log) -> None:
    log = log.take(np.arange(600))
    policy = Policy(Linear(penalty=0.03).fit(log), log.levels, price=0.045)
    result = evaluate(log, policy)
    assert "trained on this log" in str(result.warnings[0])
    assert result.warnings[0].answer == "careful"


def test_the_promise_of_a_policy_is_weighted_like_its_value() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    log = log_from_arrays(x, np.arange(200) % 2, rng.integers(0, 2, 200), weight=np.where(x[:, 0] > 0, 5.0, 1.0))
    policy = Policy(Linear(penalty=0.01).fit(log), log.levels, price=0.0)
    own = policy.model.predict(log)[np.arange(200), policy.decide(log)]
    assert evaluate(log, policy).promise == pytest.approx(np.average(own, weights=log.weight))


def test_a_policy_of_other_levels_is_refused(sim: Simulation, log: Log) -> None:
    two = log_from_arrays(sim.features[:100, :6], np.arange(100) % 2, sim.response[:100])
    policy = Policy(Linear(penalty=1.0).fit(two), two.levels, price=0.1)
    with pytest.raises(InputError, match="among 2 levels, the log has 5"):
        evaluate(log, policy)


def test_a_model_with_a_budget_is_learnt_and_judged_on_different_rows(sim: Simulation, log: Log) -> None:
    result = evaluate(log, MODEL, budget=1.5)
    scores = crossfit_scores(log, MODEL)
    levels = plan_each_fold(scores, 1.5).levels
    assert result.value == estimate_policy_value_and_spend(scores, levels)[0].estimate
    assert abs(result.value - sim.value(levels)) < 3 * result.value_se
    assert 1.45 < result.spend <= 1.5 == result.budget
    assert result.promise == pytest.approx(scores.curves[np.arange(len(sim)), levels].mean())
    assert [reference.name for reference in result.references] == ["a random mix", "what was done before"]
    assert repr(result).startswith("Evaluation(value=0.")


def test_the_model_given_is_left_unfitted(sim: Simulation, log: Log) -> None:
    model = Linear(penalty=0.1)
    evaluate(log.take(np.arange(200)), model, budget=1.0)
    assert not hasattr(model, "coef_")


def test_the_seed_decides(sim: Simulation, log: Log) -> None:
    log = log.take(np.arange(300))
    assert evaluate(log, MODEL, budget=1, seed=1) == evaluate(log, MODEL, budget=1, seed=1)
    assert evaluate(log, MODEL, budget=1, seed=1).value != evaluate(log, MODEL, budget=1, seed=2).value


def test_a_row_of_weight_two_is_planned_for_and_counted_like_two(sim: Simulation, log: Log) -> None:
    weight = np.where(sim.truth[:, 0] > 0.5, 4.0, 1.0)[:500]
    log = replace(log.take(np.arange(500)), weight=weight)
    result = evaluate(log, MODEL, budget=1.5)
    assert 1.3 < result.spend <= 1.5 * (1 + 1e-12)


def test_spend_on_redemption_is_estimated_with_an_interval(sim: Simulation, log: Log) -> None:
    log = replace(log, levels=Levels(costs=[0, 1, 2, 3, 4], on_redemption=True))
    levels = np.arange(2000) % 5
    result = evaluate(log, levels)
    true = (levels * sim.truth[np.arange(2000), levels]).mean()
    assert abs(result.spend - true) < 3 * result.spend_se
    assert result.spend_interval[0] < result.spend < result.spend_interval[1]
    learnt = evaluate(log, MODEL, budget=0.8)
    assert abs(learnt.spend - 0.8) < 3 * learnt.spend_se + 0.02


def test_clusters_are_counted_and_widen_the_interval() -> None:
    rng = np.random.default_rng(3)
    village = np.arange(600) // 15
    x, level = rng.normal(size=(600, 2)), rng.integers(0, 2, 600)
    bought = rng.random(600) < 0.2 + 0.6 * rng.random(40)[village]
    log = log_from_arrays(x, level, bought, propensity=np.full(600, 0.5), cluster=village)
    result = evaluate(log, np.ones(600, dtype=int))
    assert result.clusters == 40
    assert result.value_se > evaluate(replace(log, cluster=None), np.ones(600, dtype=int)).value_se


def test_a_log_without_propensities_is_judged_by_estimated_ones(sim: Simulation, log: Log) -> None:
    result = evaluate(replace(log, propensity=None), np.full(len(sim), 2))
    assert result.propensity == "estimated"
    assert "estimated from the features" in texts(result)
    assert abs(result.value - sim.truth[:, 2].mean()) < 3.5 * result.value_se


def test_part_of_a_log_without_some_level_can_still_be_judged(sim: Simulation, log: Log) -> None:
    part = log.take(sim.level < 4)
    assert "(0 rows" in texts(evaluate(part, np.zeros(len(part), dtype=int)))


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.zeros(9, dtype=int), r"the policy has shape \(9,\)"),
        (np.zeros((10, 2)), r"the policy has shape \(10, 2\)"),
        (np.full(10, 3), "levels 0 to 2"),
        (np.full(10, -1), "levels 0 to 2"),
        (np.full(10, 0.5), "not whole numbers"),
        (np.full(10, np.nan), "not whole numbers"),
        (np.array(["a"] * 10), "not whole numbers"),
        (np.full((10, 3), 0.5), "not probabilities"),
        (np.tile([1.5, -0.5, 0.0], (10, 1)), "not probabilities"),
        (np.full((10, 3), np.nan), "not probabilities"),
    ],
)
def test_bad_policies_are_refused(policy: Any, message: str) -> None:
    log = log_from_arrays(np.arange(20.0).reshape(10, 2), np.arange(10) % 3, np.arange(10) % 2)
    with pytest.raises(InputError, match=message):
        evaluate(log, policy)


def test_bad_arguments_are_refused(sim: Simulation, log: Log) -> None:
    log = log.take(np.arange(60))
    with pytest.raises(InputError, match="budget"):
        evaluate(log, Linear())
    with pytest.raises(InputError, match="did you mean 'dr'"):
        evaluate(log, np.zeros(60, dtype=int), estimator="drr")
    with pytest.raises(InputError, match="folds is 1"):
        evaluate(log, np.zeros(60, dtype=int), folds=1)
    dear = replace(log, levels=Levels(costs=[1, 2, 3, 4, 5]))
    with pytest.raises(BudgetError, match=r"budget of 0\.5 is below the cheapest plan, which costs 1 per customer"):
        evaluate(dear, MODEL, budget=0.5)


# ---------------------------------------------------------------------------------------------- coverage


def covered(policy: str, logs: int = 200, n: int = 1000) -> float:
    """Share of simulated logs whose 95 % interval holds the true value."""
    hits = 0
    for seed in range(logs):
        sim = simulate("averaged", n=n, seed=seed, mix=0.2)
        if policy == "fixed":
            fresh = sim.draw(20_000, seed)
            low, high = evaluate(sim.log, _fixed(sim), seed=seed).value_interval
            true = fresh.value(_fixed(fresh))
        else:
            scores = crossfit_scores(sim.log, Linear(), seed=seed)
            levels = plan_each_fold(scores, 1.5).levels
            low, high = estimate_policy_value_and_spend(scores, levels)[0].interval
            # Each fold has a policy of its own; what is estimated is what they bring on the rows they did not see.
            true = sim.value(levels)
        hits += low <= true <= high
    return hits / logs


def _fixed(sim: Simulation) -> np.ndarray:
    return (sim.features[:, 0] > 5).astype(int) + 2 * (sim.features[:, 7] > 5)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fixed", "learnt"])
def test_intervals_hold_the_true_value_as_often_as_they_say(policy: str) -> None:
    assert 0.91 <= covered(policy) <= 0.98


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"folds": 2.5}, "folds is 2.5"),
        ({"folds": 1}, "folds is 1"),
        ({"folds": "5"}, "folds is '5'"),
        ({"seed": -1}, "the seed is -1"),
        ({"seed": 1.5}, "the seed is 1.5"),
        ({"log": {"coupon": [1]}}, "the log is {'coupon': "),
        ({"log": None}, "the log is None"),
    ],
)
def test_odd_arguments_are_refused_in_words(given: dict[str, Any], what: str) -> None:
    log = simulate("averaged", n=100).log
    everyone = np.zeros(100, dtype=np.int64)
    for verb in (
        lambda **more: evaluate(policy=everyone, **more),
        lambda **more: compare(policy=everyone, other=everyone, **more),
    ):
        with pytest.raises(InputError, match=what):
            verb(**{"log": log, **given})


def test_a_ragged_policy_is_refused_in_words() -> None:
    sim = simulate("averaged", 100)
    with pytest.raises(InputError, match="numbers"):
        evaluate(sim.log, [[0.5, 0.5], [1.0]])
