"""Logs come to the driver: all rows, or a sample of a stated size that has every level's share."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shops import shop_table

from largesse.data import digest_log
from largesse.errors import InputError
from largesse.runs import read_campaign
from largesse.runs.local import Local
from largesse.runs.on_spark import ClusterError, Spark
from largesse.runs.on_spark.logs import fetch_log


def in_order(session: Any, table: pa.Table) -> Any:
    return session.createDataFrame(table).coalesce(1)


def test_a_log_of_spark_is_that_of_its_file(session: Any, shop: Path) -> None:
    campaign = read_campaign(shop)
    frame = in_order(session, pq.read_table(shop / "log.parquet"))
    frame.createOrReplaceTempView("shop_log")
    own = digest_log(Local().read_log(campaign))
    for source in (None, frame, "shop_log", "table:shop_log", (shop / "log.parquet").as_uri(), shop / "log.parquet"):
        assert digest_log(Spark(session, log=source).read_log(campaign)) == own


def test_a_sample_has_the_stated_size_and_every_levels_share(session: Any) -> None:
    table = shop_table(4000, seed=1)
    rare = np.asarray(table.column("coupon")).copy()
    rare[:2] = 20
    table = table.set_column(table.column_names.index("coupon"), "coupon", pa.array(rare))
    frame = session.createDataFrame(table).repartition(3)
    found, note = fetch_log(frame, "coupon", ["id", "coupon", "age"], 1000, seed=0)
    assert set(found.column_names) == {"id", "coupon", "age"}
    assert note == "1,000 of 4,000 rows are used: a random sample of every level"
    assert len(set(found.column("id").to_pylist())) == 1000
    drawn = np.asarray(found.column("coupon"))
    for level in (0, 5, 10, 20):
        assert abs((drawn == level).sum() - (rare == level).sum() / 4) <= 1
    assert fetch_log(frame, "coupon", None, 4000, seed=0)[1] == ""


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
