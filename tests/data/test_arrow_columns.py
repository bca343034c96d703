"""Kinds of columns, and their values as numbers, codes and groups."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.data.arrow_columns import (
    convert_to_comparable,
    convert_to_floats,
    convert_to_seconds,
    count_words,
    decode_dictionary,
    find_feature_kind,
    find_skip_reason,
    index_words,
    is_number_type,
)
from largesse.data.column_binning import find_grouping_rule, group_column_values


def column(*values: Any, kind: pa.DataType | None = None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, type=kind)])


DAY = dt.date(2024, 3, 1)
KINDS: dict[str, list[pa.Array]] = {
    "number": [
        pa.array([1]),
        pa.array([1.5]),
        pa.array([True]),
        pa.array([Decimal("1.5")]),
        pa.array([dt.timedelta(1)]),
        pa.array([dt.time(9)]),
        pa.array([1, 1]).dictionary_encode(),
    ],
    "text": [pa.array(["a"]), pa.array(["a"], pa.large_string()), pa.array(["a"]).dictionary_encode()],
    "date": [pa.array([DAY]), pa.array([dt.datetime(2024, 3, 1)])],
    "nothing": [pa.nulls(2)],
    "other": [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([b"a"]), pa.array([b"a"]).dictionary_encode()],
}


def test_every_type_has_one_kind() -> None:
    assert {kind: {find_feature_kind(values.type) for values in some} for kind, some in KINDS.items()} == {
        k: {k} for k in KINDS
    }
    assert is_number_type(pa.int8())
    assert is_number_type(pa.bool_())
    assert not is_number_type(pa.duration("s"))  # a feature, but not a number


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (column(1, None), [1, np.nan]),
        (column(True, False), [1, 0]),
        (column(Decimal("2.5")), [2.5]),
        (column(dt.timedelta(seconds=1), None), [1e6, np.nan]),
        (column(dt.time(0, 0, 1)), [1e6]),
    ],
)
def test_what_is_a_number_becomes_floats_and_missing_nan(values: pa.ChunkedArray, expected: list[float]) -> None:
    np.testing.assert_array_equal(convert_to_floats(values), expected)


def test_dates_become_seconds_codes_text_and_nan_missing() -> None:
    np.testing.assert_array_equal(convert_to_seconds(column(dt.date(1970, 1, 2), None)), [86_400, np.nan])
    moment = dt.datetime(1970, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    np.testing.assert_array_equal(convert_to_seconds(column(moment)), [0])
    decoded = decode_dictionary(column("a", None, "b").dictionary_encode())
    assert decoded.to_pylist() == ["a", None, "b"]
    assert decoded.type == pa.string()
    assert convert_to_comparable(column(1.0, float("nan"), None)).null_count == 2
    assert convert_to_comparable(column("nan")).null_count == 0


TEXTS = st.lists(st.one_of(st.none(), st.sampled_from(["a", "b", "c", "", "ä"])), min_size=1)


@given(TEXTS, TEXTS)
def test_words_are_counted_and_coded_alike_in_either_layout(first: list[str | None], second: list[str | None]) -> None:
    plain = pa.chunked_array([pa.array(first, pa.string()), pa.array(second, pa.string())])
    coded = pa.chunked_array([pa.array(part, pa.string()).dictionary_encode() for part in (first, second)])
    tally = count_words(plain)
    assert count_words(coded.unify_dictionaries()) == tally
    assert list(tally.values()) == sorted(tally.values(), reverse=True)
    known = [text for text in (*first, *second) if text is not None]
    assert tally == {word: known.count(word) for word in known}
    expected = [["b", "a"].index(text) if text in ("a", "b") else 2 for text in (*first, *second)]
    assert index_words(plain, ["b", "a"]).tolist() == expected
    assert index_words(coded, ["b", "a"]).tolist() == expected
    assert len(index_words(coded.slice(0, 0), ["b", "a"])) == 0


# -- groups -------------------------------------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.none(), st.floats(width=32)), min_size=1), st.integers(2, 6))
def test_ranges_cover_every_value_in_order(values: list[float | None], most: int) -> None:
    numbers = pa.chunked_array([pa.array(values, pa.float64(), from_pandas=True)])
    groups = group_column_values(numbers, most)
    floats = convert_to_floats(numbers)
    known = np.isfinite(floats)
    assert groups.code.min() >= 0
    assert groups.code.max() < len(groups.labels) <= most + 1
    order = np.argsort(floats[known], kind="stable")
    assert (np.diff(groups.code[known][order]) >= 0).all()
    assert all(groups.labels[g] == "missing" for g in groups.code[~known])
    assert ("missing" in groups.labels) == (not known.all())


def test_ranges_are_of_about_equal_size() -> None:
    groups = group_column_values(column(*np.random.default_rng(0).normal(size=1000)), 5)
    assert np.ptp(np.bincount(groups.code)) <= 2
    assert groups.labels[0].startswith("up to ")
    assert groups.labels[-1].startswith("over ")


@pytest.mark.parametrize(
    ("most", "values", "labels"),
    [
        (2, column(3, 1, 3), ("1", "3")),
        (2, column(0.25, 1234.5, None), ("0.25", "1234", "missing")),
        (2, column(True, False), ("no", "yes")),
        (2, column("b", "a", None, "b", "c"), ("a", "b", "other", "missing")),
        (2, column(DAY, DAY + dt.timedelta(1)), ("up to 2024-03-01", "over 2024-03-01")),
        (2, column(DAY, DAY), ("all",)),
        (2, column(None, None), ("missing",)),
        (2, column(float("nan")), ("missing",)),
        (2, column([1]), ("missing",)),
        (3, column(*range(1941, 1965)), ("up to 1948", "1949 – 1956", "over 1956")),
        (3, column(1, 1, 2, 3, 3, 4), ("up to 1", "2 – 3", "over 3")),
        (3, column(1, 1, 2, 2, 3, 4), ("up to 1", "2", "over 2")),
        (3, column(*range(10_001, 10_010)), ("up to 10,003", "10,004 – 10,006", "over 10,006")),
        (3, column(-0.9, -0.79, -0.5, -0.23, 0.1, 0.4), ("up to −0.79", "over −0.79, up to −0.23", "over −0.23")),
    ],
    ids=str,
)
def test_groups_are_labelled(most: int, values: pa.ChunkedArray, labels: tuple[str, ...]) -> None:
    groups = group_column_values(values, most)
    assert groups.labels == labels
    assert len(groups.code) == len(values)
    assert groups.code.max() < len(labels)


@pytest.mark.parametrize(
    ("known", "others", "labels"),
    [
        (column(3, 1, 3), column(1, 2, None), ["1", "other", "missing"]),
        (column(1.5, 2.5, 3.5, 4.5), column(0.0, 2.5, 9.0, None), ["up to 2.5", "up to 2.5", "over 2.5", "missing"]),
        (column("b", "a"), column("a", "c", None), ["a", "other", "missing"]),
        (column(True, False), column(True, None), ["yes", "missing"]),
        (column(None, None), column(None), ["missing"]),
    ],
)
def test_groups_are_told_for_rows_they_were_not_found_on(
    known: pa.ChunkedArray, others: pa.ChunkedArray, labels: list[str]
) -> None:
    found = find_grouping_rule(known, 2)
    assert [found.labels[g] for g in found.assign_groups(others)] == labels


# -- what is left out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("age", column(1, 2), ""),
        ("", column(1, 2), "row numbers"),
        ("parts", column([1]), "it holds list"),
        ("id", column(*map(str, range(60))).dictionary_encode(), "like an identifier"),
        ("few", column(*map(str, range(40))).dictionary_encode(), ""),
        ("city", column(*["Oslo", "Rome"] * 30).dictionary_encode(), ""),
    ],
)
def test_a_column_that_says_nothing_about_the_next_customer_is_left_out(
    name: str, values: pa.ChunkedArray, reason: str
) -> None:
    found = find_skip_reason(name, values)
    assert reason in found
    assert bool(found) == bool(reason)
