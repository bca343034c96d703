"""What plans really cost where costs depend on what customers do."""

from dataclasses import replace

import numpy as np
import pytest

from largesse.allocation import allocate, decide_at_price
from largesse.data.log_reader import log_from_arrays
from largesse.evaluation.crossfitted_scores import crossfit_scores
from largesse.evaluation.frontier_estimate import plan_each_fold
from largesse.evaluation.policy_estimates import estimate_policy_value_and_spend
from largesse.evaluation.policy_evaluation import evaluate
from largesse.evaluation.spend_by_price import measure_spend_by_price
from largesse.evaluation.study_estimation import make_study
from largesse.levels import Levels
from largesse.records import Array, Log, Scores
from largesse.response.linear import Linear
from largesse.response.observed_cost_model import Proportional, WithCosts
from largesse.worlds.paper_simulations import simulate

MODEL = Linear(penalty=0.01)
FACE = [0, 1, 2, 3, 4]


@pytest.fixture(scope="module")
def log() -> Log:
    found = simulate("averaged", n=800, seed=2, mix=0.5).log
    some = found.features.select([f"x{j}" for j in range(6)])
    return replace(found, features=some, levels=Levels(costs=FACE, on_redemption=True))


@pytest.fixture(scope="module")
def scores(log: Log) -> Scores:
    return crossfit_scores(log, MODEL)


def test_every_fold_spends_as_much_as_the_others_by_its_own_range(scores: Scores) -> None:
    measured = measure_spend_by_price(scores)
    assert measured is not None
    curve, mass = measured.curve_of_all_folds, measured.weight
    assert list(curve.price) == sorted(curve.price, reverse=True)
    assert curve.expected[0] == curve.honest[0] == 0  # the cheapest plan
    dearest = measured.expected[-1] / mass
    for j, share in enumerate(np.linspace(0, 1, len(curve.price))):
        assert measured.expected[j] / mass == pytest.approx(share * dearest, abs=0.03)  # up to the step of a customer
    levels = decide_at_price(scores.curves, scores.expected_costs, 0.0)
    spend = estimate_policy_value_and_spend(scores, levels)[1]
    assert curve.honest[-1] == pytest.approx(spend.estimate)
    assert curve.reach[-1] == pytest.approx(spend.se, rel=0.1)


def test_the_curve_for_a_fold_is_made_without_it(scores: Scores) -> None:
    measured = measure_spend_by_price(scores)
    assert measured is not None
    others = np.arange(5) != 2
    without_fold, curve = measured.make_curve_without_fold(2), measured.curve_of_all_folds
    assert without_fold.honest[10] == measured.honest[10, others].sum() / measured.weight[others].sum()
    assert without_fold.reach == curve.reach  # the margin is that of the plan that is written
    assert curve.noise == pytest.approx(scores.paid.std(ddof=1) / np.sqrt(800) / scores.paid.mean())


def draw_noise(seed: int, n: int = 500) -> Scores:
    """Return scores of customers who all cost 1 at level 1, by fold models that have seen the noise of the other folds."""
    rng = np.random.default_rng(seed)
    fold, noise = np.arange(n) % 5, rng.normal(0, 2, n)
    seen = np.array([noise[fold != f].mean() for f in range(5)])[fold]
    curves = np.column_stack([np.zeros(n), 1 + rng.normal(0, 0.05, n) + seen])
    paid = np.column_stack([np.zeros(n), 1 + noise])
    ones = np.ones(n)
    return Scores(
        curves=curves,
        gamma=paid,
        costs=paid,
        expected_costs=np.column_stack([np.zeros(n), ones]),
        propensity=ones,
        fold=fold,
        level=np.ones(n, dtype=np.int64),
        response=1 + noise,
        paid=1 + noise,
        weight=ones,
        cluster=None,
        paid_as="observed",
    )


def test_the_noise_of_a_fold_does_not_make_its_plan_seem_cheap() -> None:
    errors, at_one_price = [], []
    for seed in range(60):
        scores = draw_noise(seed)
        measured = measure_spend_by_price(scores)
        assert measured is not None
        curve = measured.curve_of_all_folds
        errors.append(curve.honest[15] - curve.expected[15])  # half of the customers get level 1
        levels = decide_at_price(scores.curves, scores.expected_costs, measured.price[15])
        at_one_price.append(estimate_policy_value_and_spend(scores, levels)[1].estimate - levels.mean())
    assert abs(np.mean(errors)) < 2.5 * np.std(errors) / np.sqrt(60)
    assert np.mean(at_one_price) < -4 * np.std(at_one_price) / np.sqrt(60)


def test_costs_that_are_always_paid_are_planned_as_they_are(scores: Scores) -> None:
    known = crossfit_scores(simulate("averaged", n=300, seed=2).log, MODEL)
    assert measure_spend_by_price(known) is None
    plan = plan_each_fold(known, 1.5)
    assert plan.scales is None
    for f in range(5):
        own = known.fold == f
        alone = allocate(known.curves[own], known.expected_costs[own], 1.5)
        assert np.array_equal(plan.levels[own], alone.levels)


def test_where_the_model_expects_too_little_held_out_plans_still_cost_their_budget(scores: Scores) -> None:
    # A model that expects three quarters of what is really paid.
    blind = replace(scores, expected_costs=0.75 * scores.expected_costs)
    spend = estimate_policy_value_and_spend(blind, plan_each_fold(blind, 0.8, confidence=0.5).levels)[1]
    wrong = replace(blind, paid_as="listed")
    before = estimate_policy_value_and_spend(wrong, plan_each_fold(wrong, 0.8).levels)[1]
    assert before.estimate > 0.97
    assert abs(spend.estimate - 0.8) < 0.5 * abs(before.estimate - 0.8)


def test_confidence_leaves_a_margin_below_the_budget(log: Log) -> None:
    even, sure = (make_study(log, MODEL, 0.8, confidence=confidence) for confidence in (0.5, 0.95))
    assert sure.evaluation.spend < even.evaluation.spend
    assert even.spending == sure.spending is not None
    usual = evaluate(log, MODEL, budget=0.8).spend
    assert sure.evaluation.spend < usual < even.evaluation.spend


# ---------------------------------------------------------------------------------------------- observed costs


def draw_observed(n: int, seed: int) -> tuple[Log, Array]:
    """Return a randomised log whose costs depend on what customers do, and the true mean costs (n, K)."""
    rng = np.random.default_rng(seed)
    x, level = rng.normal(size=(n, 3)), rng.integers(0, 3, n)
    rate = 1 / (1 + np.exp(-(x[:, :1] - 0.5 + 0.6 * np.arange(3))))
    each = np.exp(0.5 * x[:, 1])
    bought = rng.random(n) < rate[np.arange(n), level]
    paid = bought * level * each * rng.exponential(size=n)
    log = log_from_arrays(x, level, bought.astype(float), propensity=np.full(n, 1 / 3), paid=paid)
    return log, rate * np.arange(3) * each[:, None]


def test_observed_costs_are_scored_like_responses() -> None:
    log, truth = draw_observed(3000, 0)
    assert log.paid is not None
    scores = crossfit_scores(log, WithCosts(MODEL, costs=Proportional(penalty=0.01)))
    assert (scores.paid_as, scores.certain) == ("observed", False)
    assert np.array_equal(scores.paid, log.paid)
    own = scores.expected_costs[np.arange(3000), log.level]
    assert np.allclose(scores.costs[np.arange(3000), log.level], own + 3 * (log.paid - own))
    for k in range(3):
        estimate = estimate_policy_value_and_spend(scores, np.full(3000, k))[1]
        assert estimate.low <= truth[:, k].mean() <= estimate.high
    assert np.mean((scores.expected_costs - truth) ** 2) < 0.2 * truth.var()


def test_a_bare_response_model_gets_the_default_model_of_costs() -> None:
    log, _ = draw_observed(300, 1)
    both = crossfit_scores(log, WithCosts(MODEL))
    assert np.array_equal(crossfit_scores(log, MODEL).costs, both.costs)


def test_a_policy_that_knows_what_levels_cost_whom_spends_better_than_a_uniform_one() -> None:
    log, _ = draw_observed(8000, 2)
    found = evaluate(log, WithCosts(MODEL), budget=0.5)
    assert found.spend_interval[0] < 0.5 < found.spend_interval[1]
    assert found.references[0].difference.low > 0
