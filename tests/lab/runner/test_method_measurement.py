"""The engine of the paper's tables, on a tiny table of fast methods."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.records import Array, CandidateLoss, Log
from largesse.response import Linear
from largesse.worlds import simulate
from largesse_lab.runner import method_measurement, truth_measures
from largesse_lab.runner.experiment_request import Request, ignore_progress
from largesse_lab.runner.method_measurement import Method, measure_methods


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, small_logs: None) -> None:
    monkeypatch.setattr(method_measurement, "GRID_REPEATS", 2)


def linear(penalty: float = 0.1) -> Linear:
    return Linear(penalty=penalty)


def run(methods: dict[str, Method], names: tuple[str, ...] = ("averaged",), **other: Any) -> list[dict[str, Any]]:
    request = Request(names, tuple(methods), **({"repeats": 2, "chunk": 2} | other))
    return measure_methods(methods, request, ignore_progress)


class GridModel:
    """A stand-in with a grid: α is best at 2 in the first repeat, at 3 in the second, and at 2 on average."""

    def __init__(self, alpha: Any = 1.0, seed: int = 0) -> None:
        self.alpha, self.seed = alpha, seed

    def get_params(self, deep: bool) -> dict[str, Any]:  # noqa: ARG002
        return {"alpha": self.alpha, "seed": self.seed}

    def set_params(self, **params: Any) -> "GridModel":
        return GridModel(**(self.get_params(deep=False) | params))

    def fit(self, log: Log) -> None:
        self.inner, self.alpha_ = Linear(penalty=1.0).fit(log), self.alpha
        losses = [[3.0, 1.0, 2.0], [3.0, 2.5, 2.0]][min(self.seed, 1)]
        self.choices_ = [CandidateLoss("", loss, 0.0, 0.0) for loss in losses]

    def predict(self, customers: Any) -> Array:
        return self.inner.predict(customers)


# ---------------------------------------------------------------------------------------------- one record


def test_each_repeat_has_its_own_log_and_seed() -> None:
    methods = {"linear": Method(linear)}
    found = run(methods)
    made = simulate("averaged", n=300, seed=1)
    fresh = made.draw(300, seed=truth_measures.FRESH_SEED)
    error = linear().set_params(seed=1).fit(made.log).predict(fresh.features) - fresh.truth
    assert found[1]["rmse"] == pytest.approx(truth_measures.compute_root_mean_square(error))
    binary = linear().set_params(seed=1).fit(truth_measures.select_two_level_log(made))
    assert found[1]["√pehe"] == pytest.approx(
        truth_measures.measure_effect_error(binary.predict(fresh.features), fresh.truth)
    )
    assert found[0]["rmse"] != found[1]["rmse"]
    assert (
        method_measurement.list_model_fits(methods["linear"], method_measurement.simulate_repeat("averaged", 1), {})[
            0
        ].model.seed
        == 1
    )


class BudgetLevelPolicy:
    """A policy that gives everybody the dearest level within the budget."""

    def __init__(self, budget: float) -> None:
        self.budget = budget

    def set_params(self, seed: int) -> "BudgetLevelPolicy":
        self.seed = seed
        return self

    def fit(self, log: Log) -> None:
        self.level = max(k for k, cost in enumerate(log.levels.costs) if cost <= self.budget)

    def decide(self, customers: Any) -> Array:
        return np.full(len(customers), self.level)

    def probabilities(self, customers: Any) -> Array:
        return np.eye(5)[self.decide(customers)]


def test_a_policy_has_one_network_for_each_budget() -> None:
    (found,) = run({"policy": Method(BudgetLevelPolicy, policy=True)}, repeats=1)
    assert (found["spend 1.5"], found["spend 3"]) == (1, 3)
    assert found["expected spend 3"] == 3
    assert "rmse" not in found


def test_where_nothing_can_be_gained_there_is_no_skill() -> None:
    (found,) = run({"linear": Method(linear, binary=False)}, ("literal",), repeats=1)
    assert found["skill 3"] is None
    assert found["value 3"] > 0.6


def test_the_dynamic_programme_is_never_beaten_and_hardly_better() -> None:
    for record in run({"linear": Method(linear, binary=False)}):
        lost = record["few programme predicted"] - record["few ours predicted"]
        assert -1e-9 <= lost < 2e-3  # at most one of sixty customers is a level short


def test_the_logs_of_a_chunk_are_fitted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    fit = method_measurement.fit_models_together
    monkeypatch.setattr(
        method_measurement, "fit_models_together", lambda models, logs: sizes.append(len(logs)) or fit(models, logs)
    )
    run({"linear": Method(linear, binary=False)}, repeats=3)
    assert sizes == [2, 1]


# ---------------------------------------------------------------------------------------------- grids


def test_a_grid_is_searched_on_the_first_repeats_and_its_best_used_for_all(tmp_path: Path) -> None:
    out = tmp_path / "kept.jsonl"
    found = run({"graded": Method(GridModel, grid=(("alpha", (1.0, 2.0, 3.0)),))}, repeats=3, out=out)
    assert [record["alpha"] for record in found] == ["2.0"] * 3
    grids = [record for record in map(json.loads, out.read_text().splitlines()) if record["row"] == "graded grid"]
    assert [record["repeat"] for record in grids] == [0, 1]
    assert set(grids[0]["losses"]) == {"levels", "binary"}


def test_few_repeats_use_what_an_earlier_search_found(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = {"averaged": {"levels": {"penalty": 3.0}, "binary": {"penalty": 0.01}}}
    row = Method(linear, grid=(("penalty", (0.01, 3.0)),), earlier=earlier)
    fitted: list[Linear] = []

    def fit(models: list[Linear], logs: list[Log]) -> None:
        fitted.extend(model.fit(log) for model, log in zip(models, logs, strict=True))

    monkeypatch.setattr(method_measurement, "fit_models_together", fit)
    run({"linear": row}, ("averaged", "unit"), repeats=1)
    assert [model.penalty for model in fitted] == [3.0, 0.01, 0.1, 0.1]  # elsewhere the model's own


# ---------------------------------------------------------------------------------------------- without a GPU


def test_without_a_gpu_models_are_smaller_and_records_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = {"linear": Method(linear, small={"penalty": 5.0}, binary=False)}
    (small,) = run(methods, repeats=1)
    assert small["small"]
    monkeypatch.setattr(method_measurement, "select_settings_without_gpu", lambda _settings: {})
    (whole,) = run(methods, repeats=1)
    assert "small" not in whole
    assert whole["rmse"] != small["rmse"]


def test_few_repeats_have_smaller_settings_and_more_repeats_measure_them_again(tmp_path: Path) -> None:
    methods, out = {"linear": Method(linear, few={"penalty": 5.0}, binary=False)}, tmp_path / "kept.jsonl"
    (few,) = run(methods, repeats=1, out=out)
    assert few["small"]
    assert run(methods, repeats=1, out=out) == [few]
    assert len(out.read_text().splitlines()) == 1  # kept, not measured twice
    whole = run(methods, repeats=2, out=out)  # as many as a search takes
    assert "small" not in whole[0]
    assert whole[0]["rmse"] < few["rmse"]
    assert run(methods, repeats=2, out=out) == whole
