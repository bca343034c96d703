"""Hard logs: their truths, and short runs."""

import numpy as np
import pytest

from largesse_lab.experiments.hard_log_coverage import (
    HARD_LOG_CASES,
    HardLogCase,
    _compute_true_values,
    _draw_rows,
    measure,
)
from largesse_lab.runner.experiment_request import Request


def test_truths_are_expected_responses_and_large_households_buy_more() -> None:
    value = _compute_true_values(HardLogCase(1000, 1.5))["value"]
    assert value == pytest.approx(0.05 * np.exp(1.125) * (1 + 0.3 * 1.7), rel=0.002)
    rows = _draw_rows(HARD_LOG_CASES["amounts (σ 1.5), 80 households, informative"], np.random.default_rng(1), 80)
    assert rows.household is not None
    assert rows.chance.min() < 0.04 < 0.06 < rows.chance.max()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in HARD_LOG_CASES if "own curves" not in name])
def test_intervals_hold(name: str) -> None:
    """A short version of `largesse experiment hard_logs --repeats 400`."""
    records = measure(Request([name], repeats=150))
    for key in ("ips", "snips", "dr", "sndr", "switch", "dros", "bootstrap"):
        places = [record["places"][key] for record in records if record["places"].get(key, "none") != "none"]
        if len(places) > 30:
            assert np.mean([place == "in" for place in places]) > 0.9
