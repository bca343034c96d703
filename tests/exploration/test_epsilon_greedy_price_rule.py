import numpy as np
import pytest

from largesse.allocation.plan_and_frontier import decide_at_price
from largesse.errors import BudgetError
from largesse.exploration import EpsilonGreedyPriceRule, fit_rule_at_price, fit_rule_to_budget
from largesse.records import Array


def task(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.random((4000, 4)), axis=1), np.array([0.0, 1.0, 2.0, 3.0])


@pytest.mark.parametrize("explore", [0.0, 0.1])
def test_a_calibrated_rule_costs_the_budget_where_customers_tie(explore: float) -> None:
    rng = np.random.default_rng(2)
    few = np.cumsum(rng.random((10, 4)), axis=1)[rng.integers(0, 10, 3000)]  # many customers share a curve: ties
    costs = np.array([0.0, 1.0, 2.0, 3.0])
    rule = fit_rule_to_budget(few, costs, 1.1, explore)
    assert 0 < rule.tie_probability < 1
    probabilities = rule.probabilities(few, costs)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(3000))
    assert (probabilities @ costs).mean() == pytest.approx(1.1)


def test_without_ties_or_exploring_a_rule_is_the_level_at_the_price() -> None:
    curves, costs = task()
    probabilities = EpsilonGreedyPriceRule(0.4).probabilities(curves, costs)
    assert np.array_equal(probabilities, np.eye(4)[decide_at_price(curves, costs, 0.4)])
    assert fit_rule_at_price(curves, costs, 0.0, 99.0).tie_probability == 0.0


def test_everybody_may_explore_if_the_budget_pays_for_it() -> None:
    curves, costs = task()
    assert fit_rule_to_budget(curves, costs, 1.5, 1.0) == EpsilonGreedyPriceRule(0.0, 0.0, 1.0)
    with pytest.raises(BudgetError, match=r"explore with 0\.667 at most"):
        fit_rule_to_budget(curves, costs, 1.0, 0.9)
