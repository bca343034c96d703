"""Logs without heterogeneity: their responses and costs, and the table of their gains."""

import numpy as np
import pytest

from largesse_lab.experiments.winner_curse import HomogeneousWorld, draw_homogeneous_log, tabulate


@pytest.mark.parametrize("observed", [False, True])
def test_responses_and_costs_rise_with_the_level_alone(observed: bool) -> None:
    log = draw_homogeneous_log(HomogeneousWorld(4, 60_000, observed), seed=1)
    for k, rate in enumerate((0.1, 0.2, 0.3, 0.4)):
        rows = log.level == k
        assert log.response[rows].mean() == pytest.approx(rate, abs=0.015)
        if log.paid is not None:
            assert log.paid[rows].mean() == pytest.approx(k, rel=0.03)
    feature = log.features.column("a").to_numpy()
    assert abs(np.corrcoef(feature, log.response)[0, 1]) < 0.02


def test_the_table_counts_intervals_on_either_side_of_zero() -> None:
    gains = [[-0.02, -0.03, -0.01], [0.0, -0.01, 0.01], [0.02, 0.01, 0.03], [0.04, 0.02, 0.06]]
    records = [{"case": "flat", "log": k, "mix": 0.01, "plan": gain, "area": gain} for k, gain in enumerate(gains)]
    cells = [cell.strip() for cell in tabulate(records).splitlines()[-1].split("|")[1:-1]]
    assert cells[:4] == ["flat", "4", "+1.00 (1.29) [25.0%, 50.0%]", "–"]
    assert cells[-1] == "+1.00 (0.00)"
