"""What a known truth says about plans: their value, the best value at every budget, and skill."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import linprog

from largesse.errors import InputError
from largesse.records import Array
from largesse.worlds.known_truth import KnownTruth
from largesse.worlds.paper_simulations import simulate

COSTS = np.array([0.0, 1.0, 2.0, 4.0])


@dataclass(frozen=True, eq=False)
class Made(KnownTruth):
    truth: Array
    costs: Array


def made(seed: int, n: int = 30, costs: Array = COSTS) -> Made:
    """Customers with rising curves, some of them with a level below the line between its neighbours."""
    return Made(np.sort(np.random.default_rng(seed).random((n, len(costs))), axis=1), costs)


def best_plan(known: KnownTruth, price: float) -> Array:
    return np.argmax(known.truth - price * known.costs, axis=1)


def best_mixture(truth: Array, costs: Array, budget: float) -> float:
    """The linear program: probabilities of levels for every row, within an average cost."""
    n, K = truth.shape
    found = linprog(
        -truth.ravel() / n,
        A_ub=np.tile(costs, n)[None] / n,
        b_ub=[budget],
        A_eq=np.kron(np.eye(n), np.ones(K)),
        b_eq=np.ones(n),
    )
    return -float(found.fun)


def test_value_is_the_mean_truth_of_the_plan() -> None:
    known = made(0)
    plan = np.arange(30) % 4
    assert known.value(plan) == pytest.approx(np.mean([known.truth[i, k] for i, k in enumerate(plan)]))


@pytest.mark.parametrize("costs", [COSTS, COSTS + 0.5])
@pytest.mark.parametrize("budget", [0.5, 0.9, 1.7, 3.9, 9.0])
def test_oracle_and_uniform_values_are_those_of_the_linear_program(budget: float, costs: Array) -> None:
    for seed in range(5):
        known = made(seed, costs=costs)
        assert known.oracle_value(budget) == pytest.approx(best_mixture(known.truth, costs, budget))
        means = known.truth.mean(axis=0, keepdims=True)
        assert known.uniform_value(budget) == pytest.approx(best_mixture(means, costs, budget))


def test_oracle_and_uniform_meet_where_nothing_can_be_chosen() -> None:
    known = made(1)
    for budget, level in [(0, 0), (4, 3), (9, 3)]:
        assert known.oracle_value(budget) == pytest.approx(known.truth[:, level].mean())
        assert known.uniform_value(budget) == pytest.approx(known.truth[:, level].mean())
        assert math.isnan(known.skill(np.full(30, level), budget))


def test_skill_is_one_for_the_best_plan_and_zero_for_the_uniform_one() -> None:
    sim = simulate("confounded", n=1000)
    best = best_plan(sim, price=0.045)
    assert sim.skill(best, sim.costs[best].mean()) == pytest.approx(1)
    assert sim.skill(np.ones(1000, dtype=int), budget=1) == pytest.approx(0, abs=1e-9)
    assert sim.skill(np.zeros(1000, dtype=int), budget=1) < 0


def test_bad_plans_and_budgets_are_named() -> None:
    known = made(2, n=10)
    for plan in (np.zeros(9, dtype=int), np.full(10, 4), np.full(10, -1), np.full(10, 0.5)):
        with pytest.raises(InputError, match="one level"):
            known.value(plan)
    for budget in (-1, math.nan):
        with pytest.raises(InputError, match="the budget is"):
            known.oracle_value(budget)
