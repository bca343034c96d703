"""Customers are scored where they are: the same curves, the same checks, the same plan as in memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shops import shop_table

from largesse.allocation import hold_scores, price_plan
from largesse.campaign import read_campaign
from largesse.data import read_log
from largesse.errors import InputError
from largesse.levels import Levels
from largesse.pipeline.line import silent
from largesse.pipeline.local import Local
from largesse.pipeline.on_spark import Spark
from largesse.pipeline.on_spark.scoring import score_table
from largesse.pipeline.on_spark.tables import Table, find_table
from largesse.pipeline.on_spark.tasks import Wanted
from largesse.policy import Policy
from largesse.records import Customers
from largesse.response import Linear, make_model

COSTS = {"c0": 0.0, "c1": 5.0, "c2": 10.0}


@pytest.fixture(scope="module")
def policy() -> Policy:
    levels = Levels(costs=[0, 5, 10])
    log = read_log(shop_table(300, seed=1), levels=levels, level="coupon", response="bought", customer="id")
    return Policy(Linear().fit(log), log.levels)


def wanted(policy: Policy, **more: Any) -> Wanted:
    return Wanted(tuple(policy.model.encoder_.features), "id", **more)


def make_frame(session: Any, table: pa.Table, partitions: int = 3) -> Any:
    """A DataFrame whose rows are in order, in some partitions, one of which has no rows."""
    frame = session.createDataFrame(table).repartitionByRange(partitions, "id").sortWithinPartitions("id")
    return frame.unionByName(frame.limit(0))


@pytest.fixture(params=["frame", "files", "name"])
def table_of(request: pytest.FixtureRequest, session: Any, tmp_path: Path) -> Any:
    def place(table: pa.Table) -> Table:
        if request.param == "frame":
            return find_table(session, make_frame(session, table), "customers")
        if request.param == "name":
            make_frame(session, table).createOrReplaceTempView("shop_customers")
            return find_table(session, "shop_customers", "customers")
        for k, start in enumerate(range(0, max(len(table), 1), 70)):
            pq.write_table(table.slice(start, 70), tmp_path / f"c{k:02d}.parquet", row_group_size=20)
        pq.write_table(table.slice(0, 0), tmp_path / "c05.parquet")
        return find_table(session, str(tmp_path / "c*.parquet"), "customers")

    return place


def test_the_plan_is_that_of_all_customers_in_memory(table_of: Any, policy: Policy, tmp_path: Path) -> None:
    table = shop_table(200, seed=2, log=False)
    curves = policy.model.predict(Customers(table.drop_columns("id")))
    with score_table(table_of(table), policy, wanted(policy), tmp_path) as scored:
        assert scored.n == 200
        found = price_plan(scored, budget=2.5)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    expected = price_plan(hold_scores(curves, np.array([0.0, 5.0, 10.0])), budget=2.5)
    assert (found.price, found.value, found.spend) == pytest.approx(
        (expected.price, expected.value, expected.spend), rel=1e-12
    )


def spoil(table: pa.Table, name: str, rows: list[int], value: Any) -> pa.Table:
    column = table.column(name).to_pylist()
    for row in rows:
        column[row] = value
    return table.set_column(table.column_names.index(name), name, pa.array(column, table.schema.field(name).type))


SPOILT = {
    "no id": lambda table: spoil(table, "id", [3, 150, 199], None),
    "ids twice": lambda table: spoil(table, "id", [3, 150, 199], "c00007"),
    "no feature": lambda table: table.drop_columns("age"),
    "id misspelt": lambda table: table.rename_columns(["ids", *table.column_names[1:]]),
    "no rows": lambda table: table.slice(0, 0),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_bad_customers_get_the_message_of_one_machine(kind: str, session: Any, policy: Policy, tmp_path: Path) -> None:
    from largesse.data import read_table
    from largesse.pipeline.customers import check_planned

    table = SPOILT[kind](shop_table(200, seed=2, log=False))
    with pytest.raises(InputError) as expected:
        check_planned(read_table(table, plain=["id"]), policy.levels, "id", policy.model.encoder_.features)
    frame = session.createDataFrame(table).coalesce(2)
    with pytest.raises(InputError) as found, score_table(Table(frame), policy, wanted(policy), tmp_path):
        pass
    assert str(found.value) == str(expected.value)


def test_numbers_that_are_written_as_text_are_read_as_on_one_machine(session: Any, shop: Path, ran: Path) -> None:
    table = pq.read_table(shop / "customers.parquet")
    words = pa.array([None if age is None else f"{age:.2f}".replace(".", ",") for age in table["age"].to_pylist()])
    table = table.set_column(table.column_names.index("age"), "age", words)
    pq.write_table(table, shop / "words.parquet")
    campaign, kinds = read_campaign(shop), {"age": "number", "city": "text", "since": "date"}
    for source in (str(shop / "words.parquet"), session.createDataFrame(table).coalesce(1)):
        opened = Spark(session).open_customers(campaign, source, kinds)
        assert isinstance(opened, Customers)
        assert opened.features.equals(Local().open_customers(campaign, table, kinds).features)


def test_files_that_do_not_fit_together_are_refused_as_on_one_machine(session: Any, shop: Path) -> None:
    table = pq.read_table(shop / "customers.parquet")
    (shop / "all").mkdir()
    pq.write_table(table.slice(0, 100), shop / "all" / "a.parquet")
    pq.write_table(table.slice(100).drop_columns("age"), shop / "all" / "b.parquet")
    campaign, kinds = read_campaign(shop), {"age": "number", "city": "text", "since": "date"}
    messages = []
    for engine in (Local(), Spark(session)):
        with pytest.raises(InputError) as caught:
            plan_all(engine, campaign, shop / "all", kinds, shop)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    content = (shop / "all" / "a.parquet").read_bytes()
    (shop / "all" / "b.parquet").write_bytes(content[:-40])
    messages = []
    for engine in (Local(), Spark(session)):
        with pytest.raises(InputError, match="damaged or cut off") as caught:
            plan_all(engine, campaign, shop / "all", kinds, shop)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def plan_all(engine: Any, campaign: Any, source: Path, kinds: dict[str, str], near: Path) -> None:
    log = engine.read_log(campaign)
    model, _ = engine.fit(make_model("linear"), log, seed=0, progress=silent)
    opened = engine.open_customers(campaign, str(source), kinds)
    with engine.score_customers(Policy(model, log.levels), opened, near, silent):
        pass
