from typing import Any

import numpy as np
import pytest

from largesse.records import Array, Log
from largesse.response import Linear
from largesse.worlds import simulate
from largesse_lab.experiments.simulation import CHAPTER, MODELS, POLICIES, measure, summarise, tabulate
from largesse_lab.page.sections import Result, write_section
from largesse_lab.runner import measures
from largesse_lab.runner.measures import draw_two_levels
from largesse_lab.runner.request import Request


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "TRAIN", 1000)
    monkeypatch.setattr(measures, "FRESH", 1000)
    monkeypatch.setitem(MODELS, "linear", lambda: Linear(penalty=0.1))


def test_chunks_give_the_same_numbers() -> None:
    request = Request(["averaged", "unit"], ["linear"], 1)
    one, many = measure(request), measure(Request(["averaged", "unit"], ["linear"], 1, chunk=3))
    assert [record | {"seconds": 0} for record in one] == [record | {"seconds": 0} for record in many]


def test_the_effect_of_the_binary_problem_is_judged_against_the_truth() -> None:
    records = {r["model"]: r for r in measure(Request(["averaged"], ["linear"], 1))}
    assert records["oracle"]["√pehe"] == 0.0
    assert records["uniform"]["√pehe"] is None
    sim = simulate("averaged", n=1000, seed=0)
    log, fresh = draw_two_levels(sim), sim.draw(1000, seed=99)
    effect = log.response[log.level == 1].mean() - log.response[log.level == 0].mean()
    error = effect - (fresh.truth[:, 1] - fresh.truth[:, 0])
    assert records["level means"]["√pehe"] == pytest.approx(np.sqrt((error**2).mean()))
    assert 0 < records["linear"]["√pehe"] < 0.5
    assert "| uniform | 0." in tabulate(list(records.values()))


class Cheap:
    """A policy that gives everybody level 1."""

    def fit(self, _log: Log) -> "Cheap":
        return self

    def decide(self, customers: Any) -> Array:
        return np.ones(len(customers), dtype=np.int64)

    def probabilities(self, customers: Any) -> Array:
        return np.eye(5)[self.decide(customers)]


def test_a_policy_has_plans_and_spends_and_no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, "cheap", lambda _budget: Cheap())
    records = measure(Request(["averaged"], ["cheap"], 1))
    mine = records[-1]
    assert "rmse" not in mine
    assert mine["spend 1.5"] == mine["expected spend 3"] == 1
    assert "| cheap | – | – | – |" in tabulate(records)


def test_a_summary_has_means_and_differences_from_level_means_and_makes_a_section() -> None:
    records = measure(Request(["averaged", "unit"], ["linear"], 2))
    found = summarise(records)
    mine = [r["rmse"] for r in records if (r["simulation"], r["model"]) == ("averaged", "linear")]
    means = [r["rmse"] for r in records if (r["simulation"], r["model"]) == ("averaged", "level means")]
    linear = found["simulations"]["averaged"]["linear"]
    assert linear["cells"]["rmse"]["mean"] == pytest.approx(np.mean(mine))
    assert linear["against"]["rmse"]["difference"] == pytest.approx(np.mean(mine) - np.mean(means))
    made = write_section(Result("simulation", {}, found, "simulation.json"), CHAPTER, "results")
    assert "simulation-rmse.svg" in made.figures
    assert any(part.startswith("| method | averaged | unit |") for part in made.parts)
