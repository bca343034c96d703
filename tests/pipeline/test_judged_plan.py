"""The judged plan is the plan that is written: its rules, its customers."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from largesse import Constraints, Linear, evaluate, read_log, run
from largesse.levels import Levels
from largesse.pipeline import judge, plan

N = 3000
SETTINGS: dict[str, Any] = {
    "level": "coupon", "response": "bought", "customer": "id", "costs": [0, 5, 10], "features": ["age", "city"],
    "budget": 3.0, "model": "linear", "propensity": [1 / 3] * 3, "names": ["none", "five", "ten"],
}  # fmt: skip


def make_table(seed: int = 0, n: int = N) -> pa.Table:
    rng = np.random.default_rng(seed)
    age, city, level = rng.integers(18, 80, n), rng.choice(["Graz", "Linz"], n), rng.integers(0, 3, n)
    bought = (rng.random(n) < truth(age)[np.arange(n), level]).astype(int)
    names = np.array(["none", "five", "ten"])
    return pa.table({"id": np.arange(n), "age": age, "city": city, "coupon": names[level], "bought": bought})


def truth(age: Any) -> Any:
    young = (np.asarray(age) < 45).astype(float)
    return np.column_stack([0.1 + 0.0 * young, 0.1 + 0.2 * young, 0.1 + 0.3 * young])


def true_value(table: pa.Table, planned: pa.Table) -> float:
    age, level = table.column("age").to_numpy(), planned.column("level_number").to_numpy()
    return float(truth(age)[np.arange(len(level)), level].mean())


RULES: dict[str, dict[str, Any]] = {
    "caps": {"caps": {"five": 200, "ten": 100}},
    "shares": {"shares": {"none": 0.85}},
    "segments": {"segment": "city", "segment_budgets": {"Graz": 300.0}},
    "barred": {"barred": {"city": {"Linz": ["ten", "five"]}}},
    "explore": {"explore": 0.3},
    "explore for evaluation": {"explore": 0.2, "explore_for": "evaluation"},
}


@pytest.mark.parametrize("rules", RULES)
def test_value_and_spend_are_those_of_the_plan_under_its_rules(rules: str, tmp_path: Path) -> None:
    table = make_table()
    free, ruled = run(table, tmp_path / "free", **SETTINGS), run(table, tmp_path / "ruled", **SETTINGS, **RULES[rules])
    value = true_value(table, ruled.plan)
    assert value < true_value(table, free.plan) - 0.005
    estimate = ruled["value"]
    assert abs(estimate["estimate"] - value) < 3 * estimate["se"]
    assert estimate["estimate"] < free["value"]["estimate"]
    assert ruled["spend"]["estimate"] <= 3.01
    spends = [point["spend"]["estimate"] for point in ruled["frontier"]["points"]]
    assert all(np.diff(spends) > -1e-6)


def test_rules_that_the_log_cannot_judge_are_answered_by_no(tmp_path: Path) -> None:
    table, rng = make_table(), np.random.default_rng(5)
    customers = make_table(7, 1000).drop_columns(["coupon", "bought"])
    for name in ("may_none", "may_five", "may_ten"):
        customers = customers.append_column(
            name, pa.array(rng.random(1000) < 0.7 if name == "may_ten" else [True] * 1000)
        )
    eligible = ["may_none", "may_five", "may_ten"]
    numbers = run(table, tmp_path / "run", customers=customers, eligible=eligible, **SETTINGS)
    assert numbers["warnings"][0]["answer"] == "no"
    assert numbers["warnings"][0]["topic"] == "constraints"


def test_constraints_of_an_evaluation_are_kept_in_every_fold() -> None:
    log = read_log(
        make_table(), level="coupon", response="bought", levels=Levels(costs=[0, 5, 10], names=SETTINGS["names"]),
        features=["age", "city"],
    )  # fmt: skip
    free = evaluate(log, Linear(), budget=3.0)
    capped = evaluate(log, Linear(), budget=3.0, constraints=Constraints(caps={1: 100, 2: 50}))
    assert capped.spend <= (100 * 5 + 50 * 10) / N + 1e-9
    assert capped.value < free.value


def test_numbers_are_for_the_customers_of_the_plan(tmp_path: Path) -> None:
    table = make_table()
    old = make_table(3, 2000).filter(pa.compute.greater_equal(make_table(3, 2000)["age"], 50))
    customers = old.drop_columns(["coupon", "bought"])
    own, other = (
        run(table, tmp_path / "own", **SETTINGS),
        run(table, tmp_path / "other", customers=customers, **SETTINGS),
    )
    value = true_value(customers, other.plan)
    assert value == pytest.approx(0.1)
    assert other["value"]["low"] < value < other["value"]["high"] < own["value"]["estimate"]
    # The same customers, planned later: the numbers of the run are replaced, and judged anew they agree.
    later = tmp_path / "later.parquet"
    pa.parquet.write_table(customers, later)
    planned = plan(tmp_path / "own", str(later))
    assert [finding["topic"] for finding in planned["customer_warnings"]] == ["your customers"]
    assert not (tmp_path / "own" / "evaluation.json").exists()
    judged = judge(tmp_path / "own")
    assert judged["value"]["estimate"] == pytest.approx(other["value"]["estimate"])


def test_protected_groups_may_have_budgets_of_their_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    n = 1200
    sex, coupon = rng.choice(["f", "m"], n), rng.choice([0, 5, 10], n)
    age = rng.integers(18, 80, n) + np.where(sex == "f", 8, 0)
    bought = (rng.random(n) < 0.1 + 0.02 * coupon * (age < 45)).astype(int)
    log = {"sex": sex, "age": age, "coupon": coupon, "bought": bought}
    most = {name: 2.5 * float((sex == name).sum()) for name in ("f", "m")}
    settings = {"level": "coupon", "response": "bought", "costs": [0, 5, 10], "doses": [0, 5, 10], "model": "linear"}
    settings |= {"protected": ["sex"], "budget": 2.5, "segment": "sex"}
    done = run(pa.table(log), tmp_path / "run", segment_budgets=most, **settings)
    paid = (
        done.plan["cost"].to_numpy()
        if "cost" in done.plan.column_names
        else np.array([0, 5, 10])[done.plan["level_number"]]
    )
    for name, total in most.items():
        assert paid[sex == name].sum() <= total + 1e-9
    assert "sex" not in done.policy.model.encoder_.features
    (column,) = done["protected"]
    spends = [group["spend"]["estimate"] for group in column["groups"]]
    assert abs(spends[0] - spends[1]) < 0.3


@pytest.mark.parametrize(
    ("first_id", "count", "topic", "answer"),
    [(0, 5, "fixed levels", None), (9000, 5, "fixed levels", "careful"), (9000, 200, "constraints", "no")],
)
def test_fixed_customers_outside_the_log_are_named(
    first_id: int, count: int, topic: str, answer: str | None, tmp_path: Path
) -> None:
    ids = np.arange(first_id, first_id + 1000)
    others = make_table(seed=1, n=1000).drop_columns(["coupon", "bought"]).set_column(0, "id", pa.array(ids))
    fixed = dict.fromkeys(map(str, ids[:count]), "ten")
    ruled = run(make_table(), tmp_path / "run", customers=others, fixed=fixed, **SETTINGS)
    assert {finding["topic"]: finding["answer"] for finding in ruled["warnings"]}.get(topic) == answer
