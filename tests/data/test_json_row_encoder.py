"""Rows of JSON are encoded to the last bit as a table of the same rows is, and refused by the same rules."""

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.data import JsonRowEncoder, parse_json_rows, read_table
from largesse.data.encoder import Encoder
from largesse.errors import InputError


def learn() -> Encoder:
    rng = np.random.default_rng(0)
    n = 400
    table = read_table(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 10, n)),
            "visits": rng.poisson(3, n),
            "same": np.full(n, 7.0),
            "member": rng.random(n) < 0.5,
            "city": pa.array([["Oslo", "Rome", "Kyiv", None][k] for k in rng.integers(0, 4, n)]),
            "plan": pa.array([["a", "b"][k] for k in rng.integers(0, 2, n)]),
            "postcode": pa.array([f"P{k}" for k in rng.integers(0, 90, n)]),
            "since": pa.array(
                [None, *(dt.date(2022, 1, 1) + dt.timedelta(int(k)) for k in rng.integers(0, 900, n - 1))]
            ),
        }
    )
    encoder = Encoder()
    encoder.fit_transform(table, target=rng.random(n))
    return encoder


ENCODER = learn()
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "age": st.none() | st.booleans() | st.floats(-1e308, 1e308) | st.integers(-(2**63), 2**64 - 1),
            "visits": st.none() | st.integers(-5, 10**6),
            "same": st.none() | st.floats(-1e9, 1e9),
            "member": st.none() | st.booleans(),
            "city": st.none() | st.sampled_from(["Oslo", "Rome", "other", "", "Bergen"]),
            "plan": st.none() | st.sampled_from(["a", "b", "c"]),
            "postcode": st.none() | st.sampled_from([f"P{k}" for k in range(95)]),
            "since": st.none() | st.dates(dt.date(1200, 1, 1), dt.date(2200, 1, 1)).map(str),
            "unused": st.none() | st.text(max_size=3),
        }
    ),
    min_size=1,
    max_size=6,
)


def as_table(rows: list[dict[str, Any]]) -> pa.Table:
    columns = {name: pa.array([row[name] for row in rows]) for name in ENCODER.features if name != "age"}
    columns["age"] = pa.array([None if row["age"] is None else float(row["age"]) for row in rows])
    columns["since"] = pa.array([None if row["since"] is None else dt.date.fromisoformat(row["since"]) for row in rows])
    return read_table(pa.table(columns))


@given(ROWS)
@settings(max_examples=150, deadline=None)
def test_rows_are_encoded_as_a_table_of_them_is(rows: list[dict[str, Any]]) -> None:
    rows = json.loads(json.dumps(rows))
    np.testing.assert_array_equal(JsonRowEncoder(ENCODER).encode(rows).matrix, ENCODER.transform(as_table(rows)))


def plain(**changes: Any) -> dict[str, Any]:
    row = {
        "age": 30,
        "visits": 2,
        "same": 7.0,
        "member": True,
        "city": "Oslo",
        "plan": "a",
        "postcode": "P1",
        "since": None,
    }
    return row | changes


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{key: value for key, value in plain().items() if key != "age"}], "the customer lacks the feature 'age'"),
        ([plain(), {"Age": 3}], "customer 2 of 2 lacks 7 features"),
        ([plain(city=3)], "the feature 'city' holds numbers; in the log it held text"),
        ([plain(age="old")], "the feature 'age' holds text; in the log it held numbers"),
        ([plain(age=[1])], "the feature 'age' holds lists or bytes"),
        ([plain(age=1), plain(age="x")], "values of several kinds: 1, 'x'"),
        ([plain(city={"a": 1})], "'city'"),
    ],
)
def test_rows_are_refused_by_the_logs_own_rules(rows: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(InputError, match="(?s)" + re.escape(words)):
        JsonRowEncoder(ENCODER).encode(rows)


def test_dates_times_and_numbers_as_text_are_read_as_in_a_csv_file(tmp_path: Path) -> None:
    encoder = JsonRowEncoder(ENCODER)
    np.testing.assert_array_equal(encoder.encode([plain(age="31.5")]).matrix, encoder.encode([plain(age=31.5)]).matrix)
    texts = ["2024-02-03", "2024-02-03 10:30:00", "2024-02-03T10:30:00", "31.12.2024"]
    for text in texts:
        (tmp_path / "one.csv").write_text(
            f"age,visits,same,member,city,plan,postcode,since\n30,2,7,true,Oslo,a,P1,{text}\n"
        )
        found = JsonRowEncoder(ENCODER).encode([plain(since=text)]).matrix
        np.testing.assert_array_equal(found, ENCODER.transform(read_table(tmp_path / "one.csv")))
    for text in ("2024-02-30", "soon", "3/4/2024"):
        with pytest.raises(InputError, match=r"'since' .*text.*dates"):
            JsonRowEncoder(ENCODER).encode([plain(since=text)])


def test_customers_are_a_list_of_objects_of_limited_length() -> None:
    for rows in (None, [], {}, [1], "x", [{}, 3]):
        with pytest.raises(InputError, match="customers is"):
            parse_json_rows(rows, 10)
    with pytest.raises(InputError, match="11 customers"):
        parse_json_rows([{}] * 11, 10)


@pytest.mark.parametrize("many", [1, 2])
def test_features_of_long_names_that_a_row_lacks_are_named_in_short(many: int) -> None:
    encoder = Encoder()
    encoder.fit_transform(read_table({f"{'x' * 5000}{k}": [1.0, 2.0, 3.0] for k in range(many)}), target=np.arange(3.0))
    with pytest.raises(InputError, match="lacks") as caught:
        JsonRowEncoder(encoder).encode([{"age": 1}])
    assert len(str(caught.value)) < 500
