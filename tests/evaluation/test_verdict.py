from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from largesse.data import log_from_arrays
from largesse.evaluation.crossfitted_scores import crossfit_scores
from largesse.evaluation.frontier_estimate import plan_each_fold
from largesse.evaluation.one_column_rule import learn_one_column_rules
from largesse.evaluation.policy_gain_bounds import bound_policy_gains
from largesse.evaluation.verdict import (
    PROBABILITY_RANGE,
    PredictedGain,
    combine_evidence,
    compute_probability_above_zero,
    give_verdict,
    predict_gains,
)
from largesse.levels import Levels
from largesse.records import GRADES, Array, Estimate, Finding, Log, Scores, Verdict
from largesse.stats import sigmoid

LOG_GAIN = Estimate(0.02, 0.02, -0.02, 0.06)


class KnownCurves:
    """Model that predicts given curves by the number in the first feature."""

    def __init__(self, curves: Array) -> None:
        self.curves = curves

    def get_params(self, **_options: Any) -> dict[str, Any]:
        return {"curves": self.curves}

    def fit(self, _log: Log) -> "KnownCurves":
        return self

    def predict(self, features: Any) -> Array:
        return self.curves[np.asarray(features.column(0)).astype(int)]


def make_log(n: int = 4000, effect: float = 2.0, seed: int = 0, **more: Any) -> tuple[Log, Array]:
    """Return a randomised log of two groups, of which one alone responds to the levels, and its true curves."""
    rng = np.random.default_rng(seed)
    group, level = rng.integers(0, 2, n), rng.integers(0, 3, n)
    truth = sigmoid(-1.0 + effect * group[:, None] * np.array([0.0, 0.6, 1.0]))
    response = (rng.random(n) < truth[np.arange(n), level]).astype(float)
    levels = Levels(costs=[0, 1, 2], **more)
    features = np.column_stack([np.arange(n), group]).astype(float)
    return log_from_arrays(features, level, response, levels=levels), truth


def judge(
    log: Log, scores: Scores, plan: Array, warnings: tuple[Finding, ...] = (), *, with_rule: bool = False
) -> Verdict:
    rules = learn_one_column_rules(log, scores, plan) if with_rule else None
    return give_verdict(log, scores, plan, rules, bound_policy_gains(log, scores, plan, rules, learnt=True), warnings)


def judge_model(log: Log, curves: Array, budget: float = 0.8, **options: Any) -> Verdict:
    scores = crossfit_scores(log, KnownCurves(curves))
    return judge(log, scores, plan_each_fold(scores, budget).levels, **options)


def test_a_large_gain_is_proved_and_the_plan_recommended() -> None:
    verdict = judge_model(*make_log())
    assert (verdict.recommended, verdict.grade) == ("plan", "proved")
    assert verdict.plan is not None
    assert verdict.gain is not None
    assert 0 < verdict.gain.low < verdict.gain.estimate < verdict.gain.high
    assert verdict.plan.log.low < verdict.gain.estimate < verdict.plan.log.high
    assert verdict.at_least is not None
    assert verdict.at_least > 0


def test_the_model_and_the_log_know_more_together() -> None:
    verdict = judge_model(*make_log(800, effect=1.0))
    assert verdict.plan is not None
    assert verdict.plan.model is not None
    assert verdict.plan.gain.se < verdict.plan.log.se
    assert verdict.recommended == "plan"
    assert verdict.probability is not None
    assert verdict.probability >= 0.8
    assert verdict.needed_rows is not None


def test_a_plan_for_the_wrong_customers_is_not_recommended() -> None:
    log, truth = make_log()
    scores = crossfit_scores(log, KnownCurves(truth))
    group = np.asarray(log.features.column(1))
    verdict = judge(log, scores, np.where(group == 0, 2, 0))
    assert (verdict.recommended, verdict.grade) == ("mix", "rather not")
    assert verdict.probability == PROBABILITY_RANGE[0]
    assert verdict.needed_rows is None


def test_a_plan_that_treats_everyone_alike_makes_no_difference() -> None:
    log, truth = make_log()
    verdict = judge(log, crossfit_scores(log, KnownCurves(truth)), np.ones(len(log), dtype=int))
    assert (verdict.recommended, verdict.grade, verdict.probability) == ("mix", "no difference", 0.5)


def test_a_rule_with_a_larger_expected_gain_is_recommended() -> None:
    log, truth = make_log()
    group, rng = np.asarray(log.features.column(1)).astype(int), np.random.default_rng(1)
    log = replace(log, features=log.features.select([1]))
    scores = crossfit_scores(make_log()[0], KnownCurves(truth))
    poor = np.where(rng.random(len(log)) < 0.5, group, 1 - group) * 2
    verdict = judge(log, scores, poor, with_rule=True)
    assert verdict.recommended == "rule"
    rule = next(option for option in verdict.options if option.name == "rule")
    assert rule.gain.estimate > verdict.options[0].gain.estimate


def test_what_was_done_before_is_recommended_if_it_gains_more_and_costs_no_more() -> None:
    log, truth = make_log()
    rng, group = np.random.default_rng(2), np.asarray(log.features.column(1)).astype(int)
    chance = np.where(group[:, None] == 1, [0.1, 0.2, 0.7], [0.8, 0.1, 0.1])
    level = (rng.random(len(log))[:, None] > chance.cumsum(axis=1)).sum(axis=1)
    response = (rng.random(len(log)) < truth[np.arange(len(log)), level]).astype(float)
    log = replace(log, level=level, response=response, propensity=chance[np.arange(len(log)), level])
    scores = crossfit_scores(log, KnownCurves(truth))
    plan = rng.permutation(level)  # the same levels for other customers
    verdict = judge(log, scores, plan)
    assert verdict.recommended == "before"
    assert "before" not in [option.name for option in judge(log, scores, np.zeros_like(plan)).options]


@pytest.mark.parametrize(
    ("topic", "answer", "mute"),
    [
        ("support", "no", True),
        ("training log", "careful", True),
        ("support", "careful", False),
        ("balance", "no", False),
    ],
)
def test_serious_findings_forbid_a_verdict(topic: str, answer: str, mute: bool) -> None:
    log, truth = make_log(600)
    verdict = judge_model(log, truth, warnings=(Finding(topic, answer, "A finding."),))
    assert (verdict.recommended is None) == mute
    assert (verdict.grade == "cannot say") == mute
    if mute:
        assert verdict.reason == "A finding."
        assert verdict.probability is verdict.gain is verdict.plan is None


def test_logs_that_cannot_say_anything() -> None:
    log, truth = make_log(600)
    few, few_truth = make_log(80)
    for case, curves in (
        (few, few_truth),
        (replace(log, level=np.where(np.arange(600) < 20, log.level, 1)), truth),
        (replace(log, response=np.ones(600)), truth),
        (replace(log, response=np.r_[np.random.default_rng(0).lognormal(size=5), np.zeros(595)]), truth),
    ):
        verdict = judge_model(case, curves)
        assert verdict.recommended is None
        assert verdict.reason


def test_evidence_is_combined_by_precision() -> None:
    sharp, vague = (combine_evidence("plan", LOG_GAIN, PredictedGain(0.01, 0.01, sd)) for sd in (0.005, 0.2))
    assert 0.01 < sharp.gain.estimate < vague.gain.estimate < 0.02
    assert sharp.gain.se < vague.gain.se < LOG_GAIN.se
    assert sharp.probability > vague.probability
    alone = combine_evidence("plan", LOG_GAIN, None)
    assert (alone.gain, alone.model) == (LOG_GAIN, None)


def test_where_model_and_log_exclude_each_other_the_log_is_believed() -> None:
    found = combine_evidence("plan", LOG_GAIN, PredictedGain(-0.2, -0.2, 0.01))
    assert found.contradiction
    assert found.gain == LOG_GAIN
    assert not combine_evidence("plan", LOG_GAIN, PredictedGain(-0.2, -0.2, 0.4)).contradiction


@pytest.mark.parametrize("mean", [-9.0, -0.1, 0.0, 0.1, 9.0])
@pytest.mark.parametrize("se", [0.0, 1e-15, 0.3])
def test_probabilities_are_never_certain(mean: float, se: float) -> None:
    low, high = PROBABILITY_RANGE
    assert low <= compute_probability_above_zero(mean, se) <= high
    assert compute_probability_above_zero(mean, se) + compute_probability_above_zero(-mean, se) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["weights", "clusters", "redeemed", "observed", "amounts", "unsupported"])
def test_verdicts_of_all_kinds_of_logs(kind: str) -> None:
    log, truth = make_log(1500, **({"on_redemption": True} if kind == "redeemed" else {}))
    rng, n = np.random.default_rng(3), 1500
    if kind == "weights":
        log = replace(log, weight=rng.uniform(0.0, 3.0, n))
    if kind == "clusters":
        log = replace(log, cluster=np.arange(n) // 3)
    if kind == "observed":
        log = replace(
            log, levels=Levels(names=["a", "b", "c"], observed=True), paid=log.level * rng.uniform(0.8, 1.2, n)
        )
    if kind == "amounts":
        log, truth = replace(log, response=log.response * rng.lognormal(2.0, 0.5, n)), truth * np.exp(2.125)
    scores = crossfit_scores(log, KnownCurves(truth))
    if kind == "unsupported":
        allowed = np.ones((n, 3), dtype=bool)
        allowed[:100, 2] = False
        scores = replace(scores, allowed=allowed)
    verdict = judge(log, scores, plan_each_fold(scores, 0.5 if kind == "redeemed" else 0.8).levels)
    assert verdict.grade in GRADES
    assert verdict.recommended == "plan"
    assert verdict.gain is not None
    assert np.isfinite([verdict.gain.estimate, *verdict.gain.interval]).all()


def test_the_scale_of_weights_and_responses_does_not_matter() -> None:
    log, truth = make_log(800, effect=1.0)
    small = replace(log, response=3.0 * log.response + 1.0)
    large = replace(small, response=10.0 * small.response, weight=np.full(800, 7.0))
    one, ten = (
        crossfit_scores(small, KnownCurves(3.0 * truth + 1.0)),
        crossfit_scores(large, KnownCurves(30.0 * truth + 10.0)),
    )
    plan = plan_each_fold(one, 0.8).levels
    first, second = judge(small, one, plan), judge(large, ten, plan)
    assert first.probability == pytest.approx(second.probability)
    assert first.gain is not None
    assert second.gain is not None
    assert 10 * first.gain.estimate == pytest.approx(second.gain.estimate)


def test_promises_are_those_of_the_curves() -> None:
    log, truth = make_log(1000)
    scores = crossfit_scores(log, KnownCurves(truth))
    plan = plan_each_fold(scores, 0.8).levels
    (found,) = predict_gains(log, scores, [plan]) or []
    spend, means = plan.mean(), truth.mean(axis=0)
    mix = max((1 - s) * means[a] + s * means[b] for a, b in ((0, 1), (0, 2)) if 0 <= (s := spend / b) <= 1)
    assert found.promise == pytest.approx(truth[np.arange(1000), plan].mean() - mix)
    assert found.deviation > 0
