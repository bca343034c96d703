"""From tables and arrays to logs and customers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from largesse.data.log_reader import digest_log, log_from_arrays, read_customers, read_log
from largesse.errors import InputError
from largesse.levels import Levels
from largesse.records import Customers

TABLE = {"age": [20, 30, 40, 50], "city": ["Oslo", "Rome"] * 2, "coupon": [0, 5, 0, 5], "bought": [0, 1, 1, 0]}
LEVELS = Levels([0, 5])


def test_names_that_are_numbers_may_be_given_as_numbers() -> None:
    frame = pd.DataFrame(TABLE).set_axis([0, 1, 2, 3], axis=1)
    log = read_log(frame, level=2, response=3, features=[0], levels=LEVELS)  # type: ignore[arg-type, list-item]
    assert log.features.column_names == ["0"]


def test_an_unknown_argument_and_a_missing_column_are_named_with_what_to_give() -> None:
    with pytest.raises(InputError) as found:
        read_log(TABLE, levels=LEVELS, level="coupon", wieght="age")  # type: ignore[call-arg]
    message = str(found.value)
    assert "there is no argument 'wieght'\n   → did you mean 'weight'?" in message
    assert "the response column is not named\n   → give response= the name of the column with what happened" in message


def test_arrays_become_columns_of_their_own_kind() -> None:
    features = np.array([[1, "a"], [2, "b"], [3, "a"], [4, None]], dtype=object)
    log = log_from_arrays(features, [0, 1, 0, 1], [0, 1, 1, 0])
    assert log.features.schema.field("x0").type == pa.int64()
    assert log.features["x1"].to_pylist() == ["a", "b", "a", None]
    from_array = log_from_arrays(np.array([["a"], ["b"], ["a"], ["b"]]), [0, 1, 0, 1], [0, 1, 1, 0])
    from_frame = log_from_arrays(pd.DataFrame({"x0": ["a", "b", "a", "b"]}), [0, 1, 0, 1], [0, 1, 1, 0])
    assert from_array.features.equals(from_frame.features)


def test_customers_keep_their_ids_and_all_other_columns() -> None:
    found = read_customers({"id": [2**60 + 1, 2**60 + 2], "age": [1, 2], "note": ["x", "y"]}, customer="id")
    assert isinstance(found, Customers)
    assert found.customer.to_pylist() == [2**60 + 1, 2**60 + 2]
    assert found.features.column_names == ["age", "note"]
    assert len(found) == 2


def test_several_mistakes_about_customers_are_named_in_one_error() -> None:
    with pytest.raises(InputError) as caught:
        read_customers({"idd": [1]}, customer="id", levels=Levels(["c0", "c1"]), features=["age"])
    assert len(caught.value.problems) == 4


def test_text_that_is_only_a_role_stays_plain_and_a_feature_is_dictionary_encoded() -> None:
    ids = [f"c{k}" for k in range(4)]
    log = read_log(TABLE | {"id": ids}, level="coupon", response="bought", levels=LEVELS, customer="id")
    assert log.customer is not None
    assert log.customer.type == pa.string()
    assert log.customer.to_pylist() == ids
    both = read_log(TABLE, level="coupon", response="bought", levels=LEVELS, cluster="city", features=["age", "city"])
    assert pa.types.is_dictionary(both.features["city"].type)
    assert both.cluster is not None
    assert both.cluster.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    "roles",
    [{"features": 3.5}, {"features": np.array(3)}, {"response": ["bought"]}, {"cluster": ("a", "b")}, {"level": []}],
)
def test_roles_that_are_no_names_are_refused_in_words(roles: dict[str, Any]) -> None:
    table = {"age": [20, 30, 40, 50], "coupon": [0, 5, 0, 5], "bought": [0, 1, 1, 0]}
    with pytest.raises(InputError, match=f"{next(iter(roles))} is"):
        read_log(table, levels=Levels(costs=[0, 5]), **{"level": "coupon", "response": "bought", **roles})


@pytest.mark.parametrize("missing", ["level", "response"])
def test_arrays_without_levels_or_responses_are_refused(missing: str) -> None:
    given = {"level": [0, 1, 0, 1], "response": [0, 1, 1, 0], missing: None}
    with pytest.raises(InputError, match=f"{missing} is None"):
        log_from_arrays(np.eye(4), **given)


# -- digest --------------------------------------------------------------------------------------------------------------


def digest_table(**changed: Any) -> pa.Table:
    columns = {
        "age": [31.0, None, 44.0, 20.0],
        "city": ["Oslo", "Rome", None, "Oslo"],
        "day": np.array(["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"], dtype="datetime64[D]"),
        "y": [0, 1, 0, 1],
        "r": [0, 1, 1, 0],
    }
    return pa.table(columns | changed)


def digest(source: pa.Table) -> str:
    return digest_log(read_log(source, level="y", response="r", levels=Levels([0, 1])))


def test_every_value_and_setting_matters_but_not_its_storage() -> None:
    whole = digest_table()
    cut = pa.concat_tables([whole.slice(0, 1), whole.slice(1)])
    coded = pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 2]), pa.array(["Rome", "Bern", "Oslo"]))
    other = whole.set_column(1, "city", coded).set_column(0, "age", whole["age"].cast(pa.float32()))
    assert digest(whole) == digest(cut) == digest(other)
    found = {
        digest(digest_table(**changed))
        for changed in (
            {},
            {"age": [31.0, None, 44.0, 21.0]},
            {"age": [31.0, 1.0, 44.0, 20.0]},
            {"city": ["Oslo", "Rome", None, "Rome"]},
            {"city": ["Oslo", "Rome", "", "Oslo"]},
            {"day": np.array(["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-05"], dtype="datetime64[D]")},
            {"y": [0, 1, 1, 1]},
            {"r": [0, 1, 1, 1]},
        )
    }
    assert len(found) == 8
    log = read_log(digest_table(), level="y", response="r", levels=Levels([0, 1]))
    others = [
        replace(log, levels=Levels(costs=[0, 2])),
        replace(log, weight=np.array([1.0, 2.0, 1.0, 2.0])),
        replace(log, cluster=log.level),
    ]
    assert len({digest_log(one) for one in (log, *others)}) == 4
