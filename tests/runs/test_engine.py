"""What every engine must do, whichever machine holds the rows."""

import inspect
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from largesse.data import read_table
from largesse.errors import InputError
from largesse.response import make_model
from largesse.runs.campaign import read_campaign
from largesse.runs.engine import Engine
from largesse.runs.line import silent
from largesse.runs.local import Local
from largesse.runs.on_spark import Spark

FEATURES = ("age", "city", "since")


@pytest.fixture(params=["local", "spark"])
def engine(request: pytest.FixtureRequest) -> Engine:
    return Local() if request.param == "local" else Spark(request.getfixturevalue("session"))


def test_an_engine_has_every_method_of_the_protocol_with_the_same_parameters(engine: Engine) -> None:
    for name, method in inspect.getmembers(Engine, inspect.isfunction):
        if not name.startswith("_"):
            asked = list(inspect.signature(method).parameters)[1:]
            assert list(inspect.signature(getattr(engine, name)).parameters) == asked


def test_the_log_is_read_as_the_campaign_says(engine: Engine, shop: Path) -> None:
    log = engine.read_log(read_campaign(shop))
    assert len(log) == 300
    assert tuple(log.features.column_names) == FEATURES
    other = engine.read_log(read_campaign(shop), pq.read_table(shop / "log.parquet").slice(0, 120))
    assert len(other) == 120


def test_customers_keep_their_ids_and_columns_that_are_no_features(engine: Engine, shop: Path) -> None:
    campaign = read_campaign(shop)
    customers = engine.read_customers(campaign, str(shop / "customers.parquet"), ("age",))
    assert customers.customer is not None
    assert customers.customer.to_pylist()[:2] == ["c00000", "c00001"]
    assert set(customers.features.column_names) == {*FEATURES}


def test_customers_without_the_id_column_have_no_ids_but_a_misspelt_one_is_named(engine: Engine, shop: Path) -> None:
    campaign, table = read_campaign(shop), pq.read_table(shop / "customers.parquet")
    pq.write_table(table.drop_columns("id"), shop / "new.parquet")
    assert engine.read_customers(campaign, str(shop / "new.parquet"), FEATURES).customer is None
    pq.write_table(table.rename_columns(["ids", *FEATURES]), shop / "new.parquet")
    with pytest.raises(InputError, match="did you mean 'ids'"):
        engine.read_customers(campaign, str(shop / "new.parquet"), FEATURES)


def test_a_fitted_model_predicts_every_level_of_every_customer(engine: Engine, shop: Path) -> None:
    campaign = read_campaign(shop)
    model, _ = engine.fit(make_model("linear"), engine.read_log(campaign), seed=0, progress=silent)
    customers = engine.read_customers(campaign, str(shop / "customers.parquet"), FEATURES)
    assert engine.predict(model, customers).shape == (200, 3)


@pytest.mark.parametrize("ending", ["parquet", "pq", "csv", "feather", "arrow"])
def test_a_written_table_reads_back_the_same(engine: Engine, ending: str, tmp_path: Path) -> None:
    table = pa.table({"customer": [1, 2], "expected_cost": [0.5, 1.5]})
    engine.write_table(tmp_path / f"plan.{ending}", table)
    assert read_table(tmp_path / f"plan.{ending}").to_pydict() == table.to_pydict()


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".feather"])
def test_a_table_is_written_under_a_name_that_is_not_utf8(engine: Engine, tmp_path: Path, ending: str) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9" + ending.encode())
    engine.write_table(path, pa.table({"age": [31, 44]}))
    engine.write_table(tmp_path / f"plain{ending}", pa.table({"age": [31, 44]}))
    assert path.read_bytes() == (tmp_path / f"plain{ending}").read_bytes()
