import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from largesse.allocation import allocate, mix_two_levels
from largesse.errors import BudgetError
from largesse.exploration.exploration_design import ExplorationTask, design_log, make_task, solve_neyman
from largesse.records import Array

COSTS = np.array([0.0, 1.0, 2.0, 3.0])


def _draw_curves(seed: int, n: int = 400) -> Array:
    rng = np.random.default_rng(seed)
    base, slope = rng.uniform(0.1, 0.4, (n, 1)), rng.gamma(2.0, 0.05, (n, 1))
    return base + slope * np.sqrt(COSTS)


def draw_task(seed: int = 0, budget: float = 1.2, eligible: Array | None = None) -> ExplorationTask:
    curves = _draw_curves(seed)
    return make_task(curves, COSTS, curves * (1 - curves), budget, None, eligible)


@pytest.mark.parametrize("goal", ["evaluation", "learning"])
@pytest.mark.parametrize("seed", range(3))
def test_exploring_keeps_the_budget_and_gives_up_what_random_levels_do(seed: int, goal: str) -> None:
    task = draw_task(seed)
    found = design_log(task, 0.05, goal)
    assert task.spend(found.probabilities) <= 1.2
    assert task.value(found.probabilities) == pytest.approx(task.value(found.random), rel=1e-6)
    assert np.allclose(found.probabilities.sum(axis=1), 1)
    assert found.probabilities.min() > 0
    gain = task.planned - task.incumbent
    assert task.predict_se(gain, found.probabilities) < task.predict_se(gain, found.random)
    assert task.predict_se(gain, task.planned) == np.inf


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 60),
    levels=st.integers(2, 5),
    unit=st.sampled_from([1e-3, 0.1, 1.0, 1e6]),
    dear=st.floats(0.02, 1.2),
    rate=st.sampled_from([0.001, 0.05, 0.5, 1.0]),
    own=st.booleans(),
)
def test_the_expected_spend_is_never_above_the_budget_in_any_order_of_summation(
    seed: int, n: int, levels: int, unit: float, dear: float, rate: float, own: bool
) -> None:
    rng = np.random.default_rng(seed)
    curves = np.sort(rng.uniform(0.01, 0.99, (n, levels)), axis=1)
    costs = unit * np.sort(rng.uniform(0, 3, (n if own else 1, levels)), axis=1) * np.ones((n, 1))
    ends = costs.min(axis=1).mean(), costs.max(axis=1).mean()
    budget = float(ends[0] + dear * (ends[1] - ends[0]))
    task = make_task(curves, costs, curves * (1 - curves), budget)
    try:
        found = design_log(task, rate).probabilities
    except BudgetError:
        assume(False)
    each = (found * costs).ravel()
    sums = [each.sum(), each.reshape(n, levels).sum(axis=0).sum(), np.cumsum(each)[-1], np.cumsum(each[::-1])[-1]]
    assert max(sums) / n <= budget
    assert task.spend(found) <= budget
    assert np.allclose(found.sum(axis=1), 1)
    assert found.min() > 0


def test_levels_that_cost_the_same_are_explored() -> None:
    curves = _draw_curves(0)
    task = make_task(curves, np.full(4, 0.1), curves * (1 - curves), 0.1)
    found = design_log(task, 0.05)
    assert found.probabilities.min() > 0.001
    assert task.spend(found.probabilities) == pytest.approx(0.1, rel=1e-12)


def test_exploring_goalevaluation_is_more_precise_about_the_gain_than_goallearning() -> None:
    task = draw_task()
    gain = task.planned - task.incumbent
    errors = [task.predict_se(gain, design_log(task, 0.05, goal).probabilities) for goal in ("evaluation", "learning")]
    assert errors[0] < errors[1]
    each = [
        task.predict_se(np.eye(4)[np.full(400, 3)], design_log(task, 0.05, goal).probabilities)
        for goal in ("evaluation", "learning")
    ]
    assert each[1] < each[0]


def test_the_predicted_error_is_that_of_simulated_logs() -> None:
    task = draw_task()
    found = design_log(task, 0.1).probabilities
    rng, gain = np.random.default_rng(0), task.planned - task.incumbent
    estimates = []
    for _ in range(600):
        rows = rng.integers(0, 400, 400)  # customers, too, are drawn
        level = (rng.random(400)[:, None] > np.cumsum(found[rows], axis=1)[:, :-1]).sum(axis=1)
        response = rng.random(400) < task.curves[rows, level]
        own = gain[rows, level] / found[rows, level] * (response - task.curves[rows, level])
        estimates.append(((gain * task.curves).sum(axis=1)[rows] + own).mean())
    assert np.std(estimates) == pytest.approx(task.predict_se(gain, found), rel=0.12)


def test_only_eligible_levels_are_drawn() -> None:
    eligible = np.ones((400, 4), dtype=bool)
    eligible[:100, 2:] = False
    eligible[100:110] = [False, True, False, False]  # these are fixed
    task = draw_task(eligible=eligible)
    found = design_log(task, 0.05).probabilities
    assert (found[~eligible] == 0).all()
    assert (found[100:110, 1] == 1).all()
    assert task.spend(found) <= 1.2


def test_a_budget_that_pays_goalno_exploring_is_refused() -> None:
    with pytest.raises(BudgetError, match="explore"):
        design_log(draw_task(budget=0.0), 0.05)


def test_the_best_mix_is_as_good_as_a_plan_goalone_mean_customer() -> None:
    curves = _draw_curves(3).mean(axis=0)
    mix = mix_two_levels(curves, COSTS, 1.2)
    best = allocate(np.tile(curves, (1000, 1)), COSTS, 1.2)
    assert mix @ curves == pytest.approx(best.value, abs=1e-3)
    assert mix @ COSTS == pytest.approx(1.2)


# ---------------------------------------------------------------------------------------------- the solver


def draw_limits(seed: int, n: int = 4, K: int = 3) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    spread = rng.uniform(0.2, 1.0, (n, K))
    curves = np.sort(rng.uniform(0, 1, (n, K)), axis=1)
    costs = np.sort(rng.uniform(0, 1, (n, K)), axis=1)
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
    found = solve_neyman(spread, terms, limits, least, np.ones(2))
    if not plain.success:  # the two limits cannot both be kept
        assert found.broken > 1e-6
        return
    assert found.broken < 1e-8
    assert np.allclose(found.probabilities.sum(axis=1), 1)
    assert found.probabilities.min() >= 0.01 - 1e-12
    assert objective(found.probabilities.ravel()) == pytest.approx(plain.fun, rel=1e-5)


def test_without_limits_that_bind_probabilities_follow_the_spreads() -> None:
    spread, terms, _ = draw_limits(0)
    found = solve_neyman(spread, terms, np.full(2, 10.0), np.zeros(spread.shape), np.zeros(2))
    assert np.allclose(found.probabilities, spread / spread.sum(axis=1, keepdims=True))
    assert (found.prices == 0).all()


def test_a_level_that_nobody_asks_about_gets_what_is_least() -> None:
    spread, terms, least = draw_limits(1)
    spread[:, 1] = 0
    found = solve_neyman(spread, terms, np.full(2, 10.0), least, np.zeros(2))
    assert np.allclose(found.probabilities[:, 1], 0.01)


def test_limits_that_contradict_each_other_are_seen() -> None:
    spread, terms, least = draw_limits(2)
    assert solve_neyman(spread, terms, np.array([-5.0, 0.1]), least, np.ones(2)).broken > 0.01
