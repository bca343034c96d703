import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from largesse.allocation import Constraints, allocate, design_log, set_aim
from largesse.allocation.mix import mix_two_levels
from largesse.errors import BudgetError

COSTS = np.array([0.0, 1.0, 2.0, 3.0])


def _draw_curves(seed: int, n: int = 400) -> np.ndarray:
    rng = np.random.default_rng(seed)
    base, slope = rng.uniform(0.1, 0.4, (n, 1)), rng.gamma(2.0, 0.05, (n, 1))
    return base + slope * np.sqrt(COSTS)


def _set_aim(seed: int = 0, budget: float = 1.2, constraints: Constraints | None = None):  # type: ignore[no-untyped-def]
    curves = _draw_curves(seed)
    return set_aim(curves, COSTS, curves * (1 - curves), budget, None, constraints)


@pytest.mark.parametrize("for_", ["evaluation", "learning"])
@pytest.mark.parametrize("seed", range(3))
def test_exploring_keeps_the_budget_and_gives_up_what_random_levels_do(seed: int, for_: str) -> None:
    aim = _set_aim(seed)
    found = design_log(aim, 0.05, for_)
    assert aim.spend(found.probabilities) <= 1.2
    assert aim.value(found.probabilities) == pytest.approx(aim.value(found.random), rel=1e-6)
    assert np.allclose(found.probabilities.sum(axis=1), 1)
    assert found.probabilities.min() > 0
    gain = aim.planned - aim.incumbent
    assert aim.predict_se(gain, found.probabilities) < aim.predict_se(gain, found.random)
    assert aim.predict_se(gain, aim.planned) == np.inf


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
    aim = set_aim(curves, costs, curves * (1 - curves), budget, None, None)
    try:
        found = design_log(aim, rate).probabilities
    except BudgetError:
        assume(False)
    each = (found * costs).ravel()
    sums = [each.sum(), each.reshape(n, levels).sum(axis=0).sum(), np.cumsum(each)[-1], np.cumsum(each[::-1])[-1]]
    assert max(sums) / n <= budget
    assert aim.spend(found) <= budget
    assert np.allclose(found.sum(axis=1), 1)
    assert found.min() > 0


def test_levels_that_cost_the_same_are_explored() -> None:
    curves = _draw_curves(0)
    aim = set_aim(curves, np.full(4, 0.1), curves * (1 - curves), 0.1, None, None)
    found = design_log(aim, 0.05)
    assert found.probabilities.min() > 0.001
    assert aim.spend(found.probabilities) == pytest.approx(0.1, rel=1e-12)


def test_exploring_for_evaluation_is_more_precise_about_the_gain_than_for_learning() -> None:
    aim = _set_aim()
    gain = aim.planned - aim.incumbent
    errors = [aim.predict_se(gain, design_log(aim, 0.05, for_).probabilities) for for_ in ("evaluation", "learning")]
    assert errors[0] < errors[1]
    each = [
        aim.predict_se(np.eye(4)[np.full(400, 3)], design_log(aim, 0.05, for_).probabilities)
        for for_ in ("evaluation", "learning")
    ]
    assert each[1] < each[0]


def test_the_predicted_error_is_that_of_simulated_logs() -> None:
    aim = _set_aim()
    found = design_log(aim, 0.1).probabilities
    rng, gain = np.random.default_rng(0), aim.planned - aim.incumbent
    estimates = []
    for _ in range(600):
        rows = rng.integers(0, 400, 400)  # customers, too, are drawn
        level = (rng.random(400)[:, None] > np.cumsum(found[rows], axis=1)[:, :-1]).sum(axis=1)
        response = rng.random(400) < aim.curves[rows, level]
        own = gain[rows, level] / found[rows, level] * (response - aim.curves[rows, level])
        estimates.append(((gain * aim.curves).sum(axis=1)[rows] + own).mean())
    assert np.std(estimates) == pytest.approx(aim.predict_se(gain, found), rel=0.12)


def test_rules_hold_in_the_probabilities() -> None:
    eligible = np.ones((400, 4), dtype=bool)
    eligible[:100, 2:] = False
    eligible[100:110] = [False, True, False, False]  # these are fixed
    aim = _set_aim(constraints=Constraints(eligible=eligible, caps={3: 30}, shares={1: 0.3}))
    found = design_log(aim, 0.05).probabilities
    assert (found[~eligible] == 0).all()
    assert (found[100:110, 1] == 1).all()
    assert found[:, 3].sum() < 30
    assert found[:, 1].mean() > 0.3
    assert aim.spend(found) <= 1.2


def test_a_segment_keeps_its_budget_on_average() -> None:
    segment = np.repeat(["a", "b"], 200)
    aim = _set_aim(constraints=Constraints(segment=segment, segment_budgets={"a": 150.0}))
    found = design_log(aim, 0.05).probabilities
    assert (found[:200] * COSTS).sum() <= 150
    assert aim.spend(found) <= 1.2


def test_a_budget_that_pays_for_no_exploring_is_refused() -> None:
    with pytest.raises(BudgetError, match="explore"):
        design_log(_set_aim(budget=0.0), 0.05)


def test_the_best_mix_is_as_good_as_a_plan_for_one_mean_customer() -> None:
    curves = _draw_curves(3).mean(axis=0)
    mix = mix_two_levels(curves, COSTS, 1.2)
    best = allocate(np.tile(curves, (1000, 1)), COSTS, 1.2)
    assert mix @ curves == pytest.approx(best.value, abs=1e-3)
    assert mix @ COSTS == pytest.approx(1.2)
