from dataclasses import replace

import numpy as np
import pytest

from largesse.data import log_from_arrays
from largesse.evaluation.crossfitted_scores import crossfit_scores
from largesse.evaluation.frontier_estimate import find_band_critical_value, plan_each_fold
from largesse.evaluation.one_column_rule import learn_one_column_rules
from largesse.evaluation.policy_estimates import compare_references, measure_policy_influence
from largesse.evaluation.policy_gain_bounds import bound_policy_gains
from largesse.records import Array, Log, Scores
from largesse.response import Linear
from largesse.worlds import simulate

MODEL = Linear(penalty=0.03)


@pytest.fixture(scope="module")
def log() -> Log:
    made = simulate("confounded", n=1500, seed=2, mix=0.3).log
    return replace(made, features=made.features.select([f"x{j}" for j in range(5)]))


@pytest.fixture(scope="module")
def judged(log: Log) -> tuple[Scores, Array]:
    scores = crossfit_scores(log, MODEL)
    return scores, plan_each_fold(scores, 1.5).levels


def test_the_plan_comes_first_with_the_gain_that_references_show(log: Log, judged: tuple[Scores, Array]) -> None:
    scores, plan = judged
    found = bound_policy_gains(log, scores, plan, learn_one_column_rules(log, scores, plan), learnt=True)
    assert [option.name for option in found.options] == ["this plan", "a simple rule"]
    assert (
        found.options[0].gain
        == compare_references(scores, measure_policy_influence(scores, plan), log.levels)[0].difference
    )
    assert found.options[1].spend.estimate == pytest.approx(found.options[0].spend.estimate, rel=0.02)


def test_a_bound_never_says_more_than_the_interval_beside_it(log: Log, judged: tuple[Scores, Array]) -> None:
    found = bound_policy_gains(log, *judged, learn_one_column_rules(log, *judged), learnt=True)
    for option in found.options:
        assert option.at_least is not None
        assert option.at_least <= option.gain.low
        assert (option.at_least > 0) == (option.gain.low > 0)


def test_the_critical_value_grows_as_options_differ() -> None:
    rng = np.random.default_rng(0)
    one, two = rng.standard_normal((2, 5000, 1))
    same, apart = (find_band_critical_value(np.hstack(pair), one_sided=True) for pair in ((one, one), (one, two)))
    assert same == pytest.approx(1.645, abs=0.02)
    assert apart == pytest.approx(1.955, abs=0.02)
    assert find_band_critical_value(one, one_sided=True) == pytest.approx(1.645, abs=0.01)
    assert find_band_critical_value(np.hstack((one, -one)), one_sided=True) <= 1.961  # never beyond Bonferroni's


def test_the_guarantee_lies_below_the_interval_and_is_dearer_for_learnt_policies(
    log: Log, judged: tuple[Scores, Array]
) -> None:
    fixed, learnt = (
        bound_policy_gains(log, *judged, learn_one_column_rules(log, *judged), learnt=learnt).options[0]
        for learnt in (False, True)
    )
    assert fixed.guaranteed is not None
    assert learnt.guaranteed is not None
    assert 0 < learnt.guaranteed < fixed.guaranteed < fixed.value.low


def test_why_no_value_is_guaranteed_is_said(log: Log, judged: tuple[Scores, Array]) -> None:
    unknown = bound_policy_gains(replace(log, propensity=None), *judged, None)
    assert "needs the propensities" in unknown.excuse
    assert unknown.options[0].guaranteed is None
    assert "largest possible value" in bound_policy_gains(replace(log, response=9 * log.response), *judged, None).excuse


def test_too_few_buyers_have_no_bound_and_a_log_without_features_no_rule() -> None:
    rng = np.random.default_rng(1)
    response = np.zeros(300)
    response[:5] = rng.lognormal(size=5)
    made = log_from_arrays(np.ones((300, 1)), np.arange(300) % 3, response)
    scores, plan = crossfit_scores(made), np.full(300, 2)
    safety = bound_policy_gains(made, scores, plan, learn_one_column_rules(made, scores, plan))
    (only,) = safety.options
    assert (only.name, only.at_least) == ("this plan", None)


def test_a_plan_that_treats_everyone_alike_gains_nothing() -> None:
    rng = np.random.default_rng(2)
    level = rng.integers(0, 2, 400)
    made = log_from_arrays(rng.normal(size=(400, 2)), level, rng.random(400) < 0.2 + 0.5 * level)
    safety = bound_policy_gains(made, crossfit_scores(made), np.full(400, 1), None)
    assert safety.options[0].at_least == 0
