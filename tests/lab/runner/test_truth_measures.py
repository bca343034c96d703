import numpy as np
import pytest

from largesse.worlds import simulate
from largesse_lab.runner.allocation_dynamic_programme import allocate_by_dynamic_programme
from largesse_lab.runner.paper_methods import find_max_entropy_proportions
from largesse_lab.runner.truth_measures import judge_curves, measure_best_level_mix, select_two_level_log
from support.plans import paid_by, whole_optimum


def test_the_binary_problem_has_the_first_two_levels_in_their_original_odds() -> None:
    sim = simulate("averaged", n=2000, seed=1)
    log = select_two_level_log(sim)
    assert (len(log), len(log.levels)) == (1000, 2)
    assert log.propensity is not None
    odds = sim.propensities[:1000, 1] / sim.propensities[:1000, :2].sum(axis=1)
    assert log.propensity == pytest.approx(np.where(log.level == 1, odds, 1 - odds))
    assert log.level.mean() == pytest.approx(odds.mean(), abs=0.05)
    assert log.response.mean() == pytest.approx(sim.truth[np.arange(1000), log.level].mean(), abs=0.05)
    assert np.array_equal(select_two_level_log(sim).response, log.response)


def test_the_truth_has_no_error_and_full_skill_and_the_best_uniform_mix_has_none() -> None:
    sim = simulate("averaged", n=600, seed=1)
    record = judge_curves(sim.truth, sim)
    assert record["rmse"] == record["increments"] == 0
    assert record["skill 3"] == pytest.approx(1.0, abs=0.02)
    assert judge_curves(sim.truth + 0.25, sim)["rmse"] == pytest.approx(0.25)
    assert measure_best_level_mix(sim)["skill 1.5"] == 0


def test_random_levels_spend_the_budget() -> None:
    for budget in (0.5, 1.5, 3.0):
        shares = find_max_entropy_proportions(np.arange(5.0), budget)
        assert shares.sum() == pytest.approx(1)
        assert shares @ np.arange(5) == pytest.approx(budget)


def test_the_dynamic_programme_is_the_best_whole_plan() -> None:
    rng = np.random.default_rng(0)
    for _ in range(15):
        n, K = int(rng.integers(1, 20)), int(rng.integers(1, 6))
        curves, costs = rng.random((n, K)), np.sort(rng.integers(0, 7, K)).astype(float)
        total = int(n * costs[0] + rng.integers(0, 40))
        levels = allocate_by_dynamic_programme(curves, costs, total)
        assert paid_by(levels, costs, curves.shape) <= total
        assert curves[np.arange(n), levels].mean() == pytest.approx(whole_optimum(curves, costs, total / n), abs=1e-9)
