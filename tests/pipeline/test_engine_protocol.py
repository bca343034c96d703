"""What every engine must do, whichever machine holds the rows."""

import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from largesse.campaign.campaign_file import read_campaign
from largesse.errors import InputError
from largesse.pipeline.commands import show_no_progress
from largesse.pipeline.engine_protocol import Engine, PlanOutputFile
from largesse.pipeline.local_engine import LocalEngine
from largesse.pipeline.scored_customer_plan import make_plan
from largesse.policy import Policy
from largesse.response import make_model

FEATURES = {"age": "number", "city": "text", "since": "date"}


@pytest.fixture(params=["local", "batches"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setattr("largesse.data.table_batches.READ_BATCH_ROWS", 64)
    monkeypatch.setattr("largesse.pipeline.local_engine.SCORING_BATCH_ROWS", 50)
    return LocalEngine() if request.param == "local" else LocalEngine(rows=10)


def test_an_engine_has_every_method_of_the_protocol_with_the_same_parameters(engine: Engine) -> None:
    for name, method in inspect.getmembers(Engine, inspect.isfunction):
        if not name.startswith("_"):
            asked = list(inspect.signature(method).parameters)[1:]
            assert list(inspect.signature(getattr(engine, name)).parameters) == asked


def test_the_log_is_read_as_the_campaign_says(engine: Engine, shop: Path) -> None:
    log = engine.read_log(read_campaign(shop))
    assert len(log) == 300
    assert log.features.column_names == list(FEATURES)
    other = engine.read_log(read_campaign(shop), pq.read_table(shop / "log.parquet").slice(0, 120))
    assert len(other) == 120


def planned_by(engine: Engine, shop: Path, customers: Path, features: Mapping[str, str] = FEATURES) -> pa.Table:
    """Return the plan that an engine makes and writes for customers, as it reads back."""
    campaign = read_campaign(shop)
    log = engine.read_log(campaign)
    model = make_model("linear").fit(log)
    opened, policy = engine.open_customers(campaign, str(customers), features), Policy(model, log.levels)
    with engine.score_customer_table(policy, opened, shop, show_no_progress) as scored:
        result = make_plan(campaign.spending(budget=2.0), policy, scored, show_no_progress)
        counts = scored.write_plan_tables(result, [PlanOutputFile(shop / "plan.parquet")], show_no_progress)
    plan = pq.read_table(shop / "plan.parquet")
    assert counts.n == scored.n == len(plan)
    return plan


def test_a_plan_has_every_customer_by_id_and_in_order(engine: Engine, shop: Path) -> None:
    plan = planned_by(engine, shop, shop / "customers.parquet")
    assert plan["customer"].to_pylist() == pq.read_table(shop / "customers.parquet")["id"].to_pylist()
    assert np.mean(plan["expected_cost"]) <= 2.0


def test_constraints_see_columns_that_are_no_features(engine: Engine, shop: Path) -> None:
    campaign = read_campaign(shop)
    campaign = replace(campaign, planning=replace(campaign.planning, constraints={"caps": {2: 10}}))
    log = engine.read_log(campaign)
    opened = engine.open_customers(campaign, str(shop / "customers.parquet"), {"age": "number"})
    model = make_model("linear").fit(log)
    with engine.score_customer_table(Policy(model, log.levels), opened, shop, show_no_progress) as scored:
        customers, curves, costs = scored.collect()
    assert set(customers.features.column_names) >= {*FEATURES}
    assert curves.shape == (200, 3)
    assert costs.shape == (3,)


def test_customers_without_the_id_column_are_numbered_but_a_misspelt_one_is_named(engine: Engine, shop: Path) -> None:
    table = pq.read_table(shop / "customers.parquet")
    pq.write_table(table.drop_columns("id"), shop / "new.parquet")
    assert planned_by(engine, shop, shop / "new.parquet")["customer"].to_pylist() == list(range(200))
    pq.write_table(table.rename_columns(["ids", *FEATURES]), shop / "new.parquet")
    with pytest.raises(InputError, match="did you mean 'ids'"):
        planned_by(engine, shop, shop / "new.parquet")
