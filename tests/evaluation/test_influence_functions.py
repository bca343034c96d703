import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from largesse.evaluation.estimators import ESTIMATORS, make_estimator_rows
from largesse.evaluation.influence_functions import (
    Influence,
    PolicyInfluence,
    estimate_with_every_estimator,
    find_nonzero_responses,
    join_intervals,
    measure_estimator_influence,
)
from largesse.evaluation.policy_estimates import (
    bootstrap_value_and_spend,
    compare_references,
    estimate_cost_per_extra,
    estimate_policy_difference,
    estimate_policy_value_and_spend,
    estimate_ratio,
    measure_level_influence,
    measure_logged_influence,
    measure_policy_influence,
)
from largesse.evaluation.policy_evaluation import evaluate
from largesse.levels import Levels
from largesse.records import Array, Estimate, Log, Scores
from largesse.stats import t_estimate


def draw_scores(seed: int, n: int = 1000, *, buyers: float = 0.05) -> tuple[Scores, Array]:
    """A log of three levels by lot in which few customers buy, for amounts of any size."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 3, n)
    response = (rng.random(n) < buyers) * np.exp(1.5 * rng.standard_normal(n))
    curves = np.full((n, 3), buyers * math.exp(1.125))
    gamma = curves.copy()
    gamma[np.arange(n), level] += 3 * (response - curves[np.arange(n), level])
    costs = np.tile([0.0, 1.0, 2.0], (n, 1))
    fields: dict[str, Any] = {"curves": curves, "gamma": gamma, "costs": costs, "expected_costs": costs}
    fields |= {"propensity": np.full(n, 1 / 3), "fold": np.arange(n) % 2, "level": level, "response": response}
    fields |= {"paid": costs[np.arange(n), level], "weight": np.ones(n), "cluster": None}
    return Scores(**fields), np.where(np.arange(n) % 2, 2, 1)


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr", "sndr", "switch", "dros"])
def test_values_of_rare_purchases_are_covered(estimator: str) -> None:
    truth, inside, given = 0.05 * math.exp(1.125), 0, 0
    for seed in range(120):
        value, spend = estimate_policy_value_and_spend(*draw_scores(seed), estimator)
        given += not math.isnan(value.high)
        inside += value.low <= truth <= value.high
        assert math.isfinite(spend.high)  # what levels cost is known
    assert given > 100
    assert inside >= 0.92 * given


@pytest.mark.parametrize("name", [name for name, estimator in ESTIMATORS.items() if estimator.biased])
@pytest.mark.parametrize("rare", [False, True])
def test_intervals_of_biased_estimators_include_the_unbiased_one(name: str, rare: bool) -> None:
    scores, policy = draw_scores(1)
    outcome = scores.response if rare else scores.response + 1
    rows = make_estimator_rows(scores.curves, scores.level, outcome, scores.propensity, policy)
    found = estimate_with_every_estimator(rows)
    assert found[name].low <= found["dr"].low < found["dr"].high <= found[name].high


def test_sums_and_multiples_keep_the_tail_and_the_unbiased_estimate() -> None:
    scores, policy = draw_scores(5)
    rows = make_estimator_rows(scores.curves, scores.level, scores.response, scores.propensity, policy)
    nonzero = find_nonzero_responses(scores.response)
    one, two = measure_estimator_influence(rows, "dr", nonzero), measure_estimator_influence(rows, "switch", nonzero)
    twice, none = (one + one).estimate(), one - one
    assert twice.interval == pytest.approx((one * 2.0).estimate().interval)
    assert none.estimate().interval == (0, 0)
    assert two.unbiased is not None
    mixed = (two + one).unbiased
    assert mixed is not None
    np.testing.assert_allclose(mixed.values, 2 * one.values)
    assert mixed.tail is not None
    assert one.tail is not None
    np.testing.assert_allclose(mixed.tail, 2 * one.tail)
    assert one.shift(5.0).estimate().high == pytest.approx(one.estimate().high + 5)


def test_what_two_policies_have_in_common_carries_nothing() -> None:
    one = Influence(np.arange(4.0), np.array([0.0, 0.3, 0.1, 0.0]))
    other = Influence(np.ones(4), np.array([0.0, 0.3, 0.0, 0.0]))
    assert (one - other).tail is not None
    np.testing.assert_allclose((one - other).tail, [0, 0, 0.1, 0])  # type: ignore[arg-type]


def test_an_interval_without_ends_stays_without() -> None:
    nan = float("nan")
    assert math.isnan(join_intervals(Estimate(1, 1, 0, 2), Estimate(1, 1, nan, nan)).low)
    assert join_intervals(Estimate(1, 1, 0, 2), Estimate(1, 1, -1, 1)).interval == (-1, 2)


def test_with_too_few_buyers_nothing_that_rests_on_them_has_an_interval() -> None:
    scores, policy = draw_scores(3, n=200)
    for estimator in ESTIMATORS:
        value, _ = estimate_policy_value_and_spend(scores, policy, estimator)
        assert math.isfinite(value.estimate)
        assert math.isnan(value.low)
        assert math.isnan(value.high)
    for found in (
        join_intervals(
            bootstrap_value_and_spend(scores, policy)[0], estimate_policy_value_and_spend(scores, policy)[0]
        ),
        estimate_policy_difference(scores, policy, np.zeros(200, dtype=int)).value,
        estimate_ratio(scores, *measure_policy_influence(scores, policy)),
        compare_references(scores, measure_policy_influence(scores, policy), Levels(costs=[0, 1, 2]))[1].difference,
    ):
        assert math.isnan(found.low)


def test_an_evaluation_says_why_it_has_no_interval() -> None:
    import pyarrow as pa

    scores, policy = draw_scores(3, n=200)
    features = pa.table({"x": np.arange(200.0)})
    levels = Levels(costs=[0, 1, 2])
    log = Log(features, scores.level, scores.response, levels, propensity=scores.propensity)
    found = evaluate(log, policy)
    said = [str(warning) for warning in found.warnings if warning.topic == "interval"]
    buyers = int(((policy == scores.level) & (scores.response > 0)).sum())
    assert len(said) == 1
    assert said[0].startswith(
        f"Only {buyers} customers with a non-zero response carry this estimate: too few for an interval."
    )
    assert "no interval" in repr(found)


def draw_answers(seed: int, n: int = 300, **more: Any) -> tuple[Scores, Array]:
    """A log of three levels by lot in which few customers say yes; a yes costs as much as the level."""
    scores, policy = draw_scores(seed, n)
    rng = np.random.default_rng(seed)
    rows, face, curves = np.arange(n), np.array([0.0, 1.0, 2.0]), np.full((n, 3), 0.05)
    response = (rng.random(n) < 0.05).astype(np.float64)
    gamma, expected, paid = curves.copy(), curves * face, response * face[scores.level]
    costs = expected.copy()
    gamma[rows, scores.level] += 3 * (response - 0.05)
    costs[rows, scores.level] += 3 * (paid - expected[rows, scores.level])
    fields = {"curves": curves, "gamma": gamma, "costs": costs, "expected_costs": expected, "paid": paid}
    fields |= {"response": response, "face": face[scores.level]}
    return replace(scores, **(fields | more)), policy


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_values_and_spends_of_few_answers_are_covered(estimator: str) -> None:
    plain, inside = np.zeros(2), np.zeros(2)
    for seed in range(200):
        scores, policy = draw_answers(seed)
        found = estimate_policy_value_and_spend(scores, policy, estimator)
        short = [t_estimate(part[np.arange(len(policy)), policy]) for part in (scores.gamma, scores.costs)]
        truths = (0.05, 0.05 * policy.mean())
        inside += [one.low <= truth <= one.high for one, truth in zip(found, truths, strict=True)]
        plain += [one.low <= truth <= one.high for one, truth in zip(short, truths, strict=True)]
    assert (inside >= 0.94 * 200).all()
    assert (plain < inside).all()


def test_answers_of_two_policies_cancel_where_they_agree() -> None:
    scores, policy = draw_answers(1)
    other = np.where(np.arange(len(policy)) < 250, policy, 0)
    one, two = measure_policy_influence(scores, policy)[0], measure_policy_influence(scores, other)[0]
    gap = (one - two).answers
    assert gap is not None
    assert np.flatnonzero(gap.stakes).min() >= 250
    low, high = estimate_policy_difference(scores, policy, other).value.interval
    assert low < 0 < high
    assert high - low < one.estimate().high - one.estimate().low


def test_what_was_done_has_the_exact_interval_of_a_share_at_least() -> None:
    scores, _ = draw_answers(2)
    value = measure_logged_influence(scores)[0].estimate()
    exact = stats.binomtest(int(scores.response.sum()), len(scores.response)).proportion_ci(0.95, method="exact")
    assert value.high >= exact.high * 0.999
    assert value.high < exact.high * 1.05


@pytest.mark.parametrize(("clusters", "given"), [(19, False), (20, True)])
def test_ratios_with_few_clusters_have_no_interval(clusters: int, given: bool) -> None:
    scores, policy = draw_answers(3, cluster=np.arange(300) % clusters)
    influence = measure_policy_influence(scores, policy)
    for top, bottom in (influence, influence.minus(measure_level_influence(scores, 0))):
        found = estimate_ratio(scores, top, bottom)
        assert math.isfinite(found.estimate)
        assert (not math.isnan(found.low)) is (not math.isnan(found.high)) is given


def test_the_ends_of_a_ratio_are_where_the_difference_may_be_zero() -> None:
    scores, policy = draw_answers(3, 3000)
    influence = measure_policy_influence(scores, policy)
    changes = (
        influence,
        PolicyInfluence(influence.spend, influence.value),
        influence.minus(measure_level_influence(scores, 0)),
    )
    for top, bottom in changes:
        found = estimate_ratio(scores, top, bottom)
        below = bottom.estimate(scores.weight, scores.cluster)
        for end, name in ((found.low, "low"), (found.high, "high")):
            if math.isfinite(end):
                difference = (top - bottom * end).estimate(scores.weight, scores.cluster)
                assert getattr(difference, name) == pytest.approx(0.0, abs=1e-3 * difference.se)
        assert (below.low <= 0 <= below.high) is not (math.isfinite(found.low) and math.isfinite(found.high))
    ratio, inverse = (estimate_ratio(scores, *pair) for pair in changes[:2])
    assert (1 / ratio.high, 1 / ratio.low) == pytest.approx((inverse.low, inverse.high), rel=1e-3)


@pytest.mark.parametrize(("effect", "bounded"), [(0.05, True), (0.0, False)])
def test_the_cost_of_an_extra_response_is_covered_and_unbounded_without_an_effect(effect: float, bounded: bool) -> None:
    inside, given, ended = 0, 0, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        rows, level = np.arange(4000), rng.integers(0, 2, 4000)
        curves = np.tile([0.1, 0.1 + effect], (4000, 1))
        response = (rng.random(4000) < curves[rows, level]).astype(np.float64)
        gamma, costs = curves.copy(), np.tile([0.0, 1.0], (4000, 1))
        gamma[rows, level] += 2 * (response - curves[rows, level])
        fields: dict[str, Any] = {"curves": curves, "gamma": gamma, "costs": costs, "expected_costs": costs}
        fields |= {"propensity": np.full(4000, 0.5), "fold": rows % 2, "level": level, "response": response}
        scores = Scores(**fields, paid=costs[rows, level], weight=np.ones(4000), cluster=None)
        found = estimate_cost_per_extra(
            scores, measure_level_influence(scores, 1).minus(measure_level_influence(scores, 0))
        )
        if found is not None:
            given += 1
            ended += math.isfinite(found.high)
            inside += effect > 0 and found.low <= 1 / effect <= found.high
    assert inside >= 0.9 * given if bounded else inside == 0
    assert ended >= 0.9 * given if bounded else ended <= 0.12 * given
