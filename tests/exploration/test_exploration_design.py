"""A design keeps the budget, gives up no more than random levels, and is as precise as it says."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from largesse.allocation import allocate, mix_two_levels
from largesse.errors import BudgetError
from largesse.exploration import design_exploration, make_exploration_task
from largesse.exploration.exploration_design import ExplorationTask, solve_neyman_allocation
from largesse.records import Array

COSTS = np.array([0.0, 1.0, 2.0, 3.0])


def draw_curves(seed: int, n: int = 400) -> Array:
    rng = np.random.default_rng(seed)
    base, slope = rng.uniform(0.1, 0.4, (n, 1)), rng.gamma(2.0, 0.05, (n, 1))
    return base + slope * np.sqrt(COSTS)


def draw_task(seed: int = 0, budget: float = 1.2, eligible: Array | None = None) -> ExplorationTask:
    curves = draw_curves(seed)
    return make_exploration_task(curves, COSTS, curves * (1 - curves), budget, None, eligible)


@pytest.mark.parametrize("goal", ["evaluation", "learning"])
@pytest.mark.parametrize("seed", range(3))
def test_exploring_keeps_the_budget_and_gives_up_what_random_levels_do(seed: int, goal: str) -> None:
    task = draw_task(seed)
    design = design_exploration(task, 0.05, goal)
    assert task.compute_mean_cost(design.probabilities) <= 1.2
    assert task.compute_mean_response(design.probabilities) == pytest.approx(
        task.compute_mean_response(design.random), rel=1e-6
    )
    assert np.allclose(design.probabilities.sum(axis=1), 1)
    assert design.probabilities.min() > 0
    gain = task.planned - task.incumbent
    assert task.predict_se(gain, design.probabilities) < task.predict_se(gain, design.random)
    assert task.predict_se(gain, task.planned) == np.inf


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 60),
    levels=st.integers(2, 5),
    unit=st.sampled_from([1e-3, 0.1, 1.0, 1e6]),
    dear=st.floats(0.02, 1.2),
    rate=st.sampled_from([0.001, 0.05, 0.5, 1.0]),
    own_costs=st.booleans(),
)
def test_the_expected_spend_is_never_above_the_budget_in_any_order_of_summation(
    seed: int, n: int, levels: int, unit: float, dear: float, rate: float, own_costs: bool
) -> None:
    rng = np.random.default_rng(seed)
    curves = np.sort(rng.uniform(0.01, 0.99, (n, levels)), axis=1)
    costs = unit * np.sort(rng.uniform(0, 3, (n if own_costs else 1, levels)), axis=1) * np.ones((n, 1))
    ends = costs.min(axis=1).mean(), costs.max(axis=1).mean()
    budget = float(ends[0] + dear * (ends[1] - ends[0]))
    task = make_exploration_task(curves, costs, curves * (1 - curves), budget)
    try:
        probabilities = design_exploration(task, rate).probabilities
    except BudgetError:
        assume(False)
    each = (probabilities * costs).ravel()
    sums = [each.sum(), each.reshape(n, levels).sum(axis=0).sum(), np.cumsum(each)[-1], np.cumsum(each[::-1])[-1]]
    assert max(sums) / n <= budget
    assert task.compute_mean_cost(probabilities) <= budget
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert probabilities.min() > 0


def test_levels_that_cost_the_same_are_explored() -> None:
    curves = draw_curves(0)
    task = make_exploration_task(curves, np.full(4, 0.1), curves * (1 - curves), 0.1)
    design = design_exploration(task, 0.05)
    assert design.probabilities.min() > 0.001
    assert task.compute_mean_cost(design.probabilities) == pytest.approx(0.1, rel=1e-12)


def test_each_goal_is_more_precise_about_its_own_estimate() -> None:
    task = draw_task()
    designs = [design_exploration(task, 0.05, goal).probabilities for goal in ("evaluation", "learning")]
    gain = [task.predict_se(task.planned - task.incumbent, design) for design in designs]
    level = [task.predict_se(np.eye(4)[np.full(400, 3)], design) for design in designs]
    assert gain[0] < gain[1]
    assert level[1] < level[0]


def test_the_predicted_error_is_that_of_simulated_logs() -> None:
    task = draw_task()
    probabilities = design_exploration(task, 0.1).probabilities
    rng, gain = np.random.default_rng(0), task.planned - task.incumbent
    estimates = []
    for _ in range(600):
        rows = rng.integers(0, 400, 400)  # customers, too, are drawn
        level = (rng.random(400)[:, None] > np.cumsum(probabilities[rows], axis=1)[:, :-1]).sum(axis=1)
        response = rng.random(400) < task.curves[rows, level]
        residual = gain[rows, level] / probabilities[rows, level] * (response - task.curves[rows, level])
        estimates.append(((gain * task.curves).sum(axis=1)[rows] + residual).mean())
    assert np.std(estimates) == pytest.approx(task.predict_se(gain, probabilities), rel=0.12)


def test_only_eligible_levels_are_drawn() -> None:
    eligible = np.ones((400, 4), dtype=bool)
    eligible[:100, 2:] = False
    eligible[100:110] = [False, True, False, False]  # these are fixed
    task = draw_task(eligible=eligible)
    probabilities = design_exploration(task, 0.05).probabilities
    assert (probabilities[~eligible] == 0).all()
    assert (probabilities[100:110, 1] == 1).all()
    assert task.compute_mean_cost(probabilities) <= 1.2
    with pytest.raises(BudgetError, match="explore"):  # a budget that pays for no exploring
        design_exploration(draw_task(budget=0.0), 0.05)


def test_the_best_mix_is_as_good_as_a_plan_for_copies_of_the_mean_customer() -> None:
    curves = draw_curves(3).mean(axis=0)
    mix = mix_two_levels(curves, COSTS, 1.2)
    best = allocate(np.tile(curves, (1000, 1)), COSTS, 1.2)
    assert mix @ curves == pytest.approx(best.value, abs=1e-3)
    assert mix @ COSTS == pytest.approx(1.2)


# -- the solver -----------------------------------------------------------------------------------------------------------


def draw_limits(seed: int, n: int = 4, K: int = 3) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    spread = rng.uniform(0.2, 1.0, (n, K))
    curves, costs = (np.sort(rng.uniform(0, 1, (n, K)), axis=1) for _ in range(2))
    return spread, np.stack([-curves, costs]), np.full((n, K), 0.01)


@pytest.mark.parametrize("seed", range(5))
def test_probabilities_are_as_good_as_a_general_solver_finds(seed: int) -> None:
    spread, terms, least = draw_limits(seed)
    n, K = spread.shape
    free = spread / spread.sum(axis=1, keepdims=True)
    start = (terms * free).sum(axis=2).mean(axis=1)
    limits = start - 0.05 * np.ptp(terms, axis=2).mean(axis=1)  # both bind, or nearly

    def objective(p: Array) -> float:
        return float((spread.ravel() ** 2 / p).sum() / n)

    rules = [{"type": "eq", "fun": lambda p: p.reshape(n, K).sum(axis=1) - 1}]
    rules += [
        {"type": "ineq", "fun": lambda p, j=j: limits[j] - (terms[j] * p.reshape(n, K)).sum() / n} for j in range(2)
    ]
    plain = minimize(objective, free.ravel(), bounds=[(0.01, 1)] * (n * K), constraints=rules, tol=1e-12)
    probabilities, _, excess = solve_neyman_allocation(spread, terms, limits, least, np.ones(2))
    if not plain.success:  # the two limits cannot both be kept
        assert excess > 1e-6
        return
    assert excess < 1e-8
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert probabilities.min() >= 0.01 - 1e-12
    assert objective(probabilities.ravel()) == pytest.approx(plain.fun, rel=1e-5)


def test_without_limits_that_bind_probabilities_follow_the_spreads() -> None:
    spread, terms, least = draw_limits(0)
    loose = np.full(2, 10.0)
    probabilities, prices, _ = solve_neyman_allocation(spread, terms, loose, np.zeros(spread.shape), np.zeros(2))
    assert np.allclose(probabilities, spread / spread.sum(axis=1, keepdims=True))
    assert (prices == 0).all()
    spread[:, 1] = 0  # a level without a spread gets its smallest probability
    assert np.allclose(solve_neyman_allocation(spread, terms, loose, least, np.zeros(2))[0][:, 1], 0.01)


def test_limits_that_contradict_each_other_are_detected() -> None:
    spread, terms, least = draw_limits(2)
    assert solve_neyman_allocation(spread, terms, np.array([-5.0, 0.1]), least, np.ones(2))[2] > 0.01
