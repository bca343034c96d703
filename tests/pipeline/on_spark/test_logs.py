"""Logs come to the driver: all rows, or a sample of a stated size that has every level's share."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shops import shop_table

from largesse.campaign import read_campaign
from largesse.data import digest_log
from largesse.errors import InputError
from largesse.pipeline.line import silent
from largesse.pipeline.local import Local
from largesse.pipeline.on_spark import ClusterError, Spark, logs
from largesse.response import make_model


def in_order(session: Any, table: pa.Table) -> Any:
    return session.createDataFrame(table).coalesce(1)


def test_a_log_of_spark_is_that_of_its_file(session: Any, shop: Path) -> None:
    campaign = read_campaign(shop)
    frame = in_order(session, pq.read_table(shop / "log.parquet"))
    frame.createOrReplaceTempView("shop_log")
    own = digest_log(Local().read_log(campaign))
    for source in (None, frame, "shop_log", "table:shop_log", (shop / "log.parquet").as_uri(), shop / "log.parquet"):
        assert digest_log(Spark(session, log=source).read_log(campaign)) == own


def test_a_large_log_goes_through_files_and_judges_as_on_one_machine(
    session: Any, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "FEW_ROWS", 100)
    campaign = replace(read_campaign(shop), most_rows=200)
    table = pq.read_table(shop / "log.parquet")
    frame = session.createDataFrame(table).repartitionByRange(3, "id").sortWithinPartitions("id")
    held = {}
    with Spark(session, log=frame.unionByName(frame.limit(0)), near=shop) as engine:
        for name, one in (("local", Local()), ("spark", engine)):
            log = one.read_log(campaign)
            assert log.sample is not None
            _, held[name] = one.fit(make_model("linear"), log, seed=0, progress=silent)
        assert digest_log(log) == digest_log(Local().read_log(campaign))
    assert (held["spark"].curves == held["local"].curves).all()
    assert sorted(path.name for path in shop.iterdir() if path.name.startswith(".")) == []


def test_columns_that_are_not_asked_for_are_not_fetched(session: Any, tmp_path: Path) -> None:
    found = logs.fetch_log(in_order(session, shop_table(50, seed=1)), ["coupon", "age"], tmp_path)
    assert sorted(found.column_names) == ["age", "coupon"]


def test_a_log_that_breaks_rules_gets_the_message_of_one_machine(session: Any, shop: Path) -> None:
    campaign = read_campaign(shop)
    table = pq.read_table(shop / "log.parquet")
    bad = [pa.array([None, 7, *table.column("coupon").to_pylist()[2:]]), pa.array([2e300] * 300)]
    for name, column in zip(("coupon", "bought"), bad, strict=True):
        table = table.set_column(table.column_names.index(name), name, column)
    with pytest.raises(InputError) as local:
        Local().read_log(campaign, table)
    with pytest.raises(InputError) as found:
        Spark(session).read_log(campaign, in_order(session, table))
    assert str(found.value) == str(local.value)
    assert len(found.value.problems) >= 3


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("table:nowhere.log", "Spark knows no table 'nowhere.log'"),
        ("s3a://shop/log.csv", "is not Parquet"),
        ("missing.parquet", "there is no file missing.parquet"),
    ],
)
def test_what_is_not_there_is_named(source: str, message: str, session: Any, shop: Path) -> None:
    with pytest.raises((InputError, ClusterError), match=message):
        Spark(session, log=source).read_log(read_campaign(shop))


def test_two_columns_of_one_name_are_refused(session: Any, shop: Path) -> None:
    frame = in_order(session, pq.read_table(shop / "log.parquet"))
    twice = frame.select("*", frame["age"])
    with pytest.raises(InputError, match="two columns have the same name: age"):
        Spark(session).read_log(read_campaign(shop), twice)
