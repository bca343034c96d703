"""Levels that a kind of customers never got: barred by a policy in every form, and by the plans of a run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from largesse import Boosting, Levels, Linear, evaluate, read_log, run
from largesse.allocation import allocate, map_to_supported_levels, penalise_unsupported_levels
from largesse.data import Row
from largesse.evaluation import doctor
from largesse.policy import Policy
from largesse.propensity import find_supported_levels
from largesse.records import Log
from largesse.serve.served_policy import ServedPolicy

N = 4000


def make_table(seed: int = 0) -> pa.Table:
    """Nobody in segment C gets level 2, nobody from 65 on level 1, nobody of unknown age level 0."""
    rng = np.random.default_rng(seed)
    segment = rng.choice(["A", "B", "C"], N, p=[0.4, 0.3, 0.3])
    age = rng.integers(18, 80, N).astype(float)
    age[rng.random(N) < 0.15] = np.nan
    level = rng.integers(0, 3, N)
    level = np.where((segment == "C") & (level == 2), rng.integers(0, 2, N), level)
    level = np.where((age >= 65) & (level == 1), np.where(segment == "C", 0, 2), level)
    level = np.where(np.isnan(age) & (level == 0), 1, level)
    bought = (rng.random(N) < 0.1 + 0.1 * level + 0.1 * (age > 40)).astype(float)
    columns = {"segment": segment, "age": pa.array(age, from_pandas=True), "level": level, "bought": bought}
    return pa.table(columns | {"id": np.arange(N)})


@pytest.fixture(scope="module")
def log() -> Log:
    levels = Levels(costs=[0, 1, 2])
    return read_log(make_table(), level="level", response="bought", levels=levels, features=["segment", "age"])


@pytest.fixture(scope="module", params=[Linear, Boosting])
def policy(log: Log, request: Any) -> Policy:
    return Policy(request.param().fit(log), log.levels, price=0.05, unsupported=doctor(log).unsupported)


def test_a_policy_gives_supported_levels_only_unless_it_is_told_to(log: Log, policy: Policy) -> None:
    supported, rows = find_supported_levels(policy.unsupported, log.features, 3), np.arange(N)
    assert (~supported).mean(axis=0).min() > 0.05
    supported[:, 0] = True  # the cheapest level is never barred
    assert supported[rows, policy.decide(log)].all()
    assert not supported[rows, replace(policy, bar_unsupported=False).decide(log)].all()
    assert policy.probabilities(log)[~supported].max() == 0


def test_a_saved_an_exported_and_a_served_policy_bar_the_same_levels(log: Log, policy: Policy, tmp_path: Path) -> None:
    duckdb, onnxruntime = pytest.importorskip("duckdb"), pytest.importorskip("onnxruntime")
    levels = policy.decide(log)
    policy.save(tmp_path / "policy")
    assert np.array_equal(Policy.load(tmp_path / "policy").decide(log), levels)
    customers = log.features.append_column("customer", pa.array(np.arange(N)))
    answer = duckdb.from_arrow(customers).query("customers", policy.to_sql()).fetchnumpy()
    assert np.array_equal(answer["level_number"][np.argsort(answer["customer"])], levels)
    session = onnxruntime.InferenceSession(policy.to_onnx())
    inputs = policy.onnx_inputs(log.features)
    (numbers,) = session.run(["level_number"], {part.name: inputs[part.name] for part in session.get_inputs()})
    assert np.array_equal(numbers, levels)
    served, rows = ServedPolicy(policy, "1"), list[Row](log.features.slice(0, 300).to_pylist())
    assert np.array_equal(policy.mix(policy.expect(served.encode(rows))).argmax(axis=1), levels[:300])


def test_plans_never_choose_barred_options_and_cost_what_they_say() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        curves, allowed = np.sort(rng.random((60, 4)), axis=1), rng.random((60, 4)) < 0.6
        allowed[~allowed.any(axis=1), 0] = True
        costs = np.array([0.0, 1.0, 2.0, 4.0])
        barred, paid = penalise_unsupported_levels(curves, costs, allowed)
        cheapest = np.where(allowed, costs, np.inf).min(axis=1).mean()
        plan = allocate(barred, paid, cheapest + 0.3 * (seed % 7))
        assert allowed[np.arange(60), plan.levels].all()
        assert np.broadcast_to(costs, allowed.shape)[np.arange(60), plan.levels].mean() == pytest.approx(plan.spend)
        copies = np.take_along_axis(curves, map_to_supported_levels(allowed), axis=1)
        np.testing.assert_allclose(barred, copies, atol=1e-5)


def test_a_run_bars_them_and_judges_the_plan_that_it_writes(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"level": "level", "response": "bought", "costs": [0, 1, 2], "customer": "id"}
    settings |= {"features": ["segment", "age"], "budget": 1.5, "model": "linear"}
    barred = run(make_table(), tmp_path / "barred", **settings)
    cells = barred.policy.unsupported
    table = make_table().select(["segment", "age"])
    planned = barred.plan.column("level_number").to_numpy()
    supported = find_supported_levels(cells, table, 3)
    supported[:, 0] = True
    assert supported[np.arange(N), planned].all()
    allowed = run(make_table(), tmp_path / "allowed", unsupported="allow", **settings)
    planned = allowed.plan.column("level_number").to_numpy()
    assert not supported[np.arange(N), planned].all()
    width = [part["value"]["high"] - part["value"]["low"] for part in (barred, allowed)]
    assert width[1] > 2 * width[0]  # bounds, where nothing is known
    assert allowed.policy.unsupported == cells
    assert not allowed.policy.bar_unsupported


def test_an_evaluation_learns_within_the_support_and_refuses_to_trust_a_policy_beyond_it(log: Log) -> None:
    assert not any(finding.answer == "no" for finding in evaluate(log, Linear(), budget=1.5).warnings)
    warnings = evaluate(log, np.full(len(log), 2)).warnings
    assert [finding.topic for finding in warnings if finding.answer == "no"] == ["support"]
