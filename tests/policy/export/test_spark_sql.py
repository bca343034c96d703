"""The query for Spark SQL, run by Spark: nulls, NaN, infinities and words never seen are decided as by the policy."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from largesse.records import Array
from support.exports import assert_same, draw_customers, make_policy, odd_customers

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def utc(session: Any) -> Iterator[Any]:
    """The session with the time zone that exported queries ask for."""
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    yield session
    session.conf.set("spark.sql.session.timeZone", before)


def _run(session: Any, query: str, customers: pa.Table) -> dict[str, Array]:
    """Return what Spark says, in the order of the customers."""
    session.createDataFrame(customers).createOrReplaceTempView("customers")
    found = session.sql(query).toArrow()
    place = {who: row for row, who in enumerate(found["customer"].to_pylist())}
    assert len(place) == len(found) == len(customers)
    ordered = found.take(pa.array([place[who] for who in customers["customer"].to_pylist()]))
    return {name: np.asarray(ordered[name]) for name in ordered.column_names}


@pytest.mark.parametrize("name", ["linear", "additive", "boosting"])
def test_spark_decides_like_the_policy(utc: Any, name: str) -> None:
    policy, table = make_policy(name), odd_customers()
    found = _run(utc, policy.to_sql("spark"), table)
    assert np.array_equal(found["level_number"], policy.decide(table.drop_columns(["customer"])))
    assert_same(found, policy, table)


def test_spark_decides_like_the_policy_tree(utc: Any) -> None:
    table = odd_customers()
    tree = make_policy("linear").to_tree(table, depth=3)
    for customers in (table, draw_customers(500, 8, odd=True)):
        found = _run(utc, tree.to_sql("spark"), customers)
        assert np.array_equal(found["level_number"], tree.decide(customers))
        assert len(np.unique(found["level_number"])) > 1


@pytest.mark.parametrize("name", ["linear", "boosting"])
def test_rows_without_any_value_are_decided_like_the_policy(utc: Any, name: str) -> None:
    policy, table = make_policy(name), odd_customers(50)
    empty = pa.table({n: table[n] if n == "customer" else pa.nulls(50, table[n].type) for n in table.column_names})
    found = _run(utc, policy.to_sql("spark"), empty)
    assert np.array_equal(found["level_number"], policy.decide(empty.drop_columns(["customer"])))
