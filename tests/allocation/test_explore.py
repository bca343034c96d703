import numpy as np
import pytest

from largesse.allocation.explore import Mixture, calibrate_mixture, explore_plan, exploring_budget, find_mixture
from largesse.allocation.plan import allocate, decide_at_price
from largesse.errors import BudgetError
from largesse.records import Array


def task(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.random((4000, 4)), axis=1), np.array([0.0, 1.0, 2.0, 3.0])


def test_decisions_are_drawn_with_the_propensity_they_say() -> None:
    curves, costs = task()
    made = explore_plan(curves, costs, 1.2, 0.3, seed=1)
    plan = allocate(curves, costs, exploring_budget(np.broadcast_to(costs, curves.shape), 1.2, 0.3))
    assert np.array_equal(made.decisions.levels, made.plan.levels)
    stays = made.decisions.levels == plan.levels
    assert np.allclose(made.decisions.propensity, np.where(stays, 0.3 / 4 + 0.7, 0.3 / 4))
    assert stays.mean() == pytest.approx(0.7 + 0.3 / 4, abs=0.03)
    again, decisions = explore_plan(curves, costs, 1.2, 0.3, seed=1)
    assert np.array_equal(again.levels, made.plan.levels)
    assert np.array_equal(decisions.propensity, made.decisions.propensity)


def test_expected_spend_includes_exploring_and_keeps_the_budget() -> None:
    curves, costs = task()
    made = explore_plan(curves, costs, None, 0.2, total=1.2 * len(curves)).plan
    assert made.spend <= 1.2 == made.budget
    assert made.spend == pytest.approx(1.2, abs=1e-3)
    assert costs[made.levels].mean() == pytest.approx(1.2, abs=0.05)
    assert made.value <= made.bound


@pytest.mark.parametrize("explore", [0.0, 0.1])
def test_the_rule_of_a_plan_is_the_calibrated_one_and_costs_the_budget(explore: float) -> None:
    rng = np.random.default_rng(2)
    few = np.cumsum(rng.random((10, 4)), axis=1)[rng.integers(0, 10, 3000)]  # many customers share a curve: ties
    costs = np.array([0.0, 1.0, 2.0, 3.0])
    rule = explore_plan(few, costs, 1.1, explore).rule
    assert rule == calibrate_mixture(few, costs, 1.1, explore)
    assert 0 < rule.share < 1
    probabilities = rule.probabilities(few, costs)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(3000))
    assert (probabilities @ costs).mean() == pytest.approx(1.1)


def test_without_ties_or_exploring_a_rule_is_the_level_at_the_price() -> None:
    curves, costs = task()
    probabilities = Mixture(0.4).probabilities(curves, costs)
    assert np.array_equal(probabilities, np.eye(4)[decide_at_price(curves, costs, 0.4)])
    assert find_mixture(curves, costs, 0.0, 99.0).share == 0.0


def test_everybody_may_explore_if_the_budget_pays_for_it() -> None:
    curves, costs = task()
    assert calibrate_mixture(curves, costs, 1.5, 1.0) == Mixture(0.0, 0.0, 1.0)
    assert np.allclose(explore_plan(curves, costs, 1.5, 1.0).decisions.propensity, 0.25)
    with pytest.raises(BudgetError, match=r"explore with 0\.667 at most"):
        explore_plan(curves, costs, 1.0, 0.9)
