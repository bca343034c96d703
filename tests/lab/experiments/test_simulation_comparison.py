"""Models on simulated logs: chunks, the binary problem, policies, and the summary."""

from typing import Any

import numpy as np
import pytest

from largesse.records import Array, Log
from largesse.response import Linear
from largesse.worlds import simulate
from largesse_lab.experiments.simulation_comparison import (
    POLICIES,
    SIMULATION_EXPERIMENT,
    SIMULATION_MODELS,
    measure,
    summarise,
)
from largesse_lab.runner import truth_measures
from largesse_lab.runner.experiment_request import Records, Request
from largesse_lab.runner.truth_measures import select_two_level_log


@pytest.fixture(scope="module", autouse=True)
def _small() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(truth_measures, "LOG_ROWS", 600)
        patch.setattr(truth_measures, "FRESH_ROWS", 600)
        patch.setitem(SIMULATION_MODELS, "linear", lambda: Linear(penalty=0.1))
        yield


@pytest.fixture(scope="module")
def records(_small: None) -> Records:
    return measure(Request(["averaged", "unit"], ["linear"], 2))


def test_chunks_give_the_same_numbers(records: Records) -> None:
    chunked = measure(Request(["averaged", "unit"], ["linear"], 2, chunk=3))
    assert [record | {"seconds": 0} for record in chunked] == [record | {"seconds": 0} for record in records]


def test_the_effect_of_the_binary_problem_is_compared_with_the_truth(records: Records) -> None:
    by_model = {r["model"]: r for r in records if (r["simulation"], r["seed"]) == ("averaged", 0)}
    assert by_model["oracle"]["√pehe"] == 0.0
    assert by_model["uniform"]["√pehe"] is None
    sim = simulate("averaged", n=600, seed=0)
    log, fresh = select_two_level_log(sim), sim.draw(600, seed=99)
    effect = log.response[log.level == 1].mean() - log.response[log.level == 0].mean()
    error = effect - (fresh.truth[:, 1] - fresh.truth[:, 0])
    assert by_model["level means"]["√pehe"] == pytest.approx(np.sqrt((error**2).mean()))
    assert 0 < by_model["linear"]["√pehe"] < 0.5


class LevelOnePolicy:
    """A policy that gives everybody level 1."""

    def fit(self, _log: Log) -> "LevelOnePolicy":
        return self

    def decide(self, customers: Any) -> Array:
        return np.ones(len(customers), dtype=np.int64)

    def probabilities(self, customers: Any) -> Array:
        return np.eye(5)[self.decide(customers)]


def test_a_policy_has_plans_and_spends_and_no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, "level one", lambda _budget: LevelOnePolicy())
    record = measure(Request(["averaged"], ["level one"], 1))[-1]
    assert "rmse" not in record
    assert record["spend 1.5"] == record["expected spend 3"] == 1


def test_a_summary_has_means_and_differences_from_level_means_and_makes_a_page(records: Records) -> None:
    summary = summarise(records)
    errors = {
        model: [r["rmse"] for r in records if (r["simulation"], r["model"]) == ("averaged", model)]
        for model in ("linear", "level means")
    }
    linear = summary["simulations"]["averaged"]["linear"]
    assert linear["cells"]["rmse"]["mean"] == pytest.approx(np.mean(errors["linear"]))
    difference = np.mean(errors["linear"]) - np.mean(errors["level means"])
    assert linear["against"]["rmse"]["difference"] == pytest.approx(difference)
    section = SIMULATION_EXPERIMENT.make_result_section(summary)
    assert "simulation-rmse.svg" in section.figures
    assert any(part.startswith("| method | averaged | unit |") for part in section.paragraphs)
