import numpy as np
import pytest

from largesse.worlds import simulate
from largesse_lab.runner.measures import draw_two_levels, judge_curves, judge_uniform


def test_the_binary_problem_has_the_first_two_levels_in_their_original_odds() -> None:
    sim = simulate("averaged", n=2000, seed=1)
    log = draw_two_levels(sim)
    assert len(log) == 1000
    assert len(log.levels) == 2
    assert log.propensity is not None
    odds = sim.propensities[:1000, 1] / sim.propensities[:1000, :2].sum(axis=1)
    assert log.propensity == pytest.approx(np.where(log.level == 1, odds, 1 - odds))
    assert log.level.mean() == pytest.approx(odds.mean(), abs=0.05)
    expected = sim.truth[np.arange(1000), log.level].mean()
    assert log.response.mean() == pytest.approx(expected, abs=0.05)
    assert np.array_equal(draw_two_levels(sim).response, log.response)


def test_the_truth_has_no_error_and_full_skill_and_the_best_uniform_mix_has_none() -> None:
    sim = simulate("averaged", n=600, seed=1)
    found = judge_curves(sim.truth, sim)
    assert found["rmse"] == found["increments"] == 0
    assert found["skill 3"] == pytest.approx(1.0, abs=0.02)
    assert judge_curves(sim.truth + 0.25, sim)["rmse"] == pytest.approx(0.25)
    assert judge_uniform(sim)["skill 1.5"] == 0
