"""Values of uniform levels on real logs, compared with a calculation by hand."""

import numpy as np
import pytest

from largesse.records import Array
from largesse_lab.experiments.real_log_level_means import compute_stratified_mean_response, measure, tabulate
from largesse_lab.runner.experiment_request import Request


def slow_mean(response: Array, selected: Array, strata: Array) -> float:
    return float(sum((strata == s).mean() * response[selected & (strata == s)].mean() for s in np.unique(strata)))


def test_a_stratified_mean_weights_strata_by_their_size() -> None:
    rng = np.random.default_rng(0)
    strata, selected, response = rng.integers(0, 3, 300), rng.random(300) < 0.5, rng.normal(size=300)
    assert compute_stratified_mean_response(response, selected, strata) == pytest.approx(
        slow_mean(response, selected, strata)
    )


@pytest.mark.slow
@pytest.mark.usefixtures("real_data")
def test_uniform_levels_of_real_logs_are_worth_what_a_calculation_by_hand_gives() -> None:
    found = measure(Request())
    for row in found:
        assert abs(row["estimate"] - row["by_hand"]) < row["se"]
    villages = [row for row in found if row["cluster_se"] is not None]
    assert np.mean([row["cluster_se"] / row["se"] for row in villages]) > 1.05
    assert np.mean([row["cluster_reach"] / row["reach"] for row in villages]) > 1.05  # not at every single level
    assert "| Thornton, got |" in tabulate(found)
