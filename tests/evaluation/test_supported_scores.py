from dataclasses import replace

import numpy as np
import pytest

from largesse.allocation import map_to_supported_levels
from largesse.evaluation import (
    ESTIMATORS,
    estimate_each_level,
    estimate_policy_value_and_spend,
    find_value_bounds,
    measure_policy_influence,
    plan_each_fold,
)
from largesse.evaluation.crossfitted_scores import crossfit_scores, restrict_scores_to_support
from largesse.evaluation.frontier_estimate import make_budget_grid
from largesse.records import Array, Scores
from largesse.worlds import simulate


def restricted() -> tuple[Scores, Array]:
    log = simulate("averaged", n=600, seed=2).log
    first = np.arange(600) % 3 == 0
    kept = ~(first & (log.level >= 3))
    log, first = log.take(kept), first[kept]
    allowed = np.ones((len(log), 5), dtype=bool)
    allowed[first, 3:] = False
    return restrict_scores_to_support(crossfit_scores(log), allowed), allowed


def test_every_held_out_plan_stays_within_the_support_and_its_budget() -> None:
    scores, allowed = restricted()
    rows = np.arange(len(allowed))
    for budget in make_budget_grid(scores):
        plan = plan_each_fold(scores, float(budget) + 1e-9)
        assert allowed[rows, plan.levels].all()
        assert scores.expected_costs[rows, plan.levels].mean() <= budget + 1e-6


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_policy_is_judged_as_the_supported_levels_that_replace_it(estimator: str) -> None:
    scores, allowed = restricted()
    rng = np.random.default_rng(0)
    levels, supported = rng.integers(0, 5, len(allowed)), map_to_supported_levels(allowed)
    replaced = supported[np.arange(len(levels)), levels]
    assert (replaced != levels).any()
    assert estimate_policy_value_and_spend(scores, levels, estimator) == estimate_policy_value_and_spend(
        scores, replaced, estimator
    )
    drawn = np.full((len(levels), 5), 0.2)
    known = estimate_policy_value_and_spend(scores, drawn, estimator)[0].estimate
    assert known == pytest.approx(estimate_policy_value_and_spend(scores, np.full(5, 0.2), estimator)[0].estimate)
    if estimator == "dr":
        assert known == pytest.approx(np.mean([value.estimate for value, _ in estimate_each_level(scores)]))


def test_scores_with_full_support_are_left_alone_and_known_costs_stay_known() -> None:
    scores, allowed = restricted()
    assert restrict_scores_to_support(replace(scores, allowed=None), np.ones_like(allowed)).allowed is None
    assert measure_policy_influence(scores, np.full(len(allowed), 4)).spend.answers is None


def test_bounds_of_a_guessed_level_are_the_supported_ones_next_to_it() -> None:
    _, allowed = restricted()
    scores = crossfit_scores(simulate("averaged", n=600, seed=2).log.take(np.arange(len(allowed))))
    everyone = np.full(len(allowed), 3)
    low, high = find_value_bounds(scores, everyone, allowed)
    guessed = ~allowed[:, 3]
    down = guessed * (scores.gamma[:, 2] - scores.gamma[:, 3])
    up = guessed * (scores.response.max() - scores.gamma[:, 3])  # no dearer level has support, either
    assert (low, high) == pytest.approx((min(down.mean(), 0), max(up.mean(), 0)))
    assert find_value_bounds(scores, everyone, np.ones_like(allowed)) == (0, 0)
