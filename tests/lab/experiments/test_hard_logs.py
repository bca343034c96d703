import numpy as np
import pytest

from largesse_lab.experiments.hard_logs import CASES, Case, _draw_world, _find_truth, measure, tabulate
from largesse_lab.runner.request import Request


@pytest.mark.parametrize("name", ["yes/no, 12 households", "amounts (σ 1.5), 300 rows"])
def test_every_estimate_is_placed_in_every_log(name: str) -> None:
    found = measure(Request([name], repeats=3))
    assert [(record["case"], record["log"]) for record in found] == [(name, 0), (name, 1), (name, 2)]
    assert set(found[0]["places"].values()) <= {"in", "above", "below", "none"}
    assert name in tabulate(found)


def test_truths_are_those_of_the_worlds() -> None:
    case = Case(1000, 1.5)
    assert _find_truth(case)["value"] == pytest.approx(0.05 * np.exp(1.125) * (1 + 0.3 * 1.7), rel=0.002)
    world = _draw_world(CASES["amounts (σ 1.5), 80 households, informative"], np.random.default_rng(1), 80)
    assert world.house is not None
    assert world.chance.min() < 0.04 < 0.06 < world.chance.max()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if "own curves" not in name])
def test_intervals_hold(name: str) -> None:
    """A short version of `largesse experiment hard_logs --repeats 400`."""
    found = measure(Request([name], repeats=150))
    for key in ("ips", "snips", "dr", "sndr", "switch", "dros", "bootstrap"):
        places = [record["places"][key] for record in found if record["places"].get(key, "none") != "none"]
        if len(places) > 30:
            assert np.mean([place == "in" for place in places]) > 0.9
