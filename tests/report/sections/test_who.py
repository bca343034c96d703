from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from largesse.report.section import PlanStep
from largesse.report.sections.who import numbers as module
from largesse.report.sections.who.numbers import describe_who


def make_step(step: PlanStep, n: int) -> PlanStep:
    """A plan that follows one feature, and does not follow another."""
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 3, n)
    features = pa.table({"follows": levels.astype(float), "noise": rng.normal(size=n)})
    plan = replace(step.plan, levels=levels)
    return PlanStep(plan, features, np.zeros((n, 3)), np.tile([0.0, 5.0, 10.0], (n, 1)), step.labels)


def test_features_that_explain_the_plan_come_first_and_others_are_left_out(binary_run: Any) -> None:
    (feature,) = describe_who(make_step(binary_run.plan, 3000))["features"]
    assert feature["feature"] == "follows"
    assert feature["explains"] == pytest.approx(1.0)
    assert [group["average_cost"] for group in feature["groups"]] == [0.0, 5.0, 10.0]
    assert [group["shares"] for group in feature["groups"]] == np.eye(3).tolist()


def test_groups_count_all_customers_also_where_features_are_compared_on_a_sample(
    binary_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS", 500)
    feature = describe_who(make_step(binary_run.plan, 3000))["features"][0]
    assert sum(group["customers"] for group in feature["groups"]) == 3000


def test_a_plan_that_is_the_same_for_everyone_is_explained_by_nothing(binary_run: Any) -> None:
    step = make_step(binary_run.plan, 100)
    same = replace(step, plan=replace(step.plan, levels=np.ones(100, dtype=np.int64)))
    assert describe_who(same)["features"] == []
