"""Features of any kind become finite numbers, the same way on the log and on customers never seen."""

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.data.encoder import Encoder
from largesse.data.table_reader import read_table
from largesse.errors import InputError

N = 60
RNG = np.random.default_rng(11)
TARGET = RNG.normal(size=N)


def fitted(column: Any, target: Any = None, **settings: Any) -> tuple[Encoder, np.ndarray]:
    table = read_table(pa.table({"x": column if isinstance(column, pa.Array) else pa.array(column)}))
    encoder = Encoder(**settings)
    return encoder, encoder.fit_transform(table, TARGET[: table.num_rows] if target is None else target)


def applied(encoder: Encoder, column: Any) -> np.ndarray:
    values = column if isinstance(column, pa.Array) else pa.array(column)
    return encoder.transform(read_table(pa.table({"x": values})))


def every_kind() -> dict[str, pa.Array]:
    days = [dt.date(2023, 1, 1) + dt.timedelta(days=int(9 * k)) for k in range(N)]
    return {
        "number": pa.array(RNG.normal(size=N)),
        "holes": pa.array([None if k % 7 == 0 else float(k) for k in range(N)]),
        "flag": pa.array([k % 3 == 0 for k in range(N)]),
        "few words": pa.array([("red", "green", None)[k % 3] for k in range(N)]),
        "many words": pa.array([f"w{k % 45}" for k in range(N)]),
        "day": pa.array(days),
        "moment": pa.array([dt.datetime(2023, 1, 1, k % 24) + dt.timedelta(days=k) for k in range(N)]),
        "zoned": pa.array([dt.datetime(2023, 1, 1 + k % 28) for k in range(N)], pa.timestamp("ns", "Asia/Tokyo")),
        "lasted": pa.array([dt.timedelta(minutes=k) for k in range(N)]),
        "clock": pa.array([dt.time(k % 24) for k in range(N)]),
        "price": pa.array([Decimal(k) / 4 for k in range(N)]),
        "constant": pa.array([3] * N),
        "nothing": pa.nulls(N),
    }


def everything() -> pa.Table:
    return read_table(pa.table(every_kind()))


# -- each kind ------------------------------------------------------------------------------------------------------------


def test_numbers_are_standardised_and_missing_ones_marked() -> None:
    encoder, X = fitted([1.0, 2.0, None, 3.0])
    assert encoder.names == ("x", "x missing")
    known = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(X[[0, 1, 3], 0], (known - 2) / known.std(), rtol=1e-6)
    np.testing.assert_array_equal(X[:, 1], [0, 0, 1, 0])
    assert X[2, 0] == 0
    assert X.dtype == np.float32
    flags, X = fitted([True, False, True, False])
    assert flags.names == ("x",)
    np.testing.assert_allclose(X[:, 0], [1, -1, 1, -1])


@pytest.mark.parametrize(
    ("words", "names", "sums"),
    [
        (["a"] * 20 + ["b"] * 20 + ["c"] * 20, ("x = a", "x = b"), [20, 20]),  # the last word needs no column
        (["a"] * 40 + ["b"] * 18 + ["c", "d"], ("x = a", "x = b", "x = c"), [40, 18, 1]),  # one row in 60 is not rare
        (["a"] * 400 + ["b"] * 190 + ["c", "d"] * 5, ("x = a", "x = b", "x other"), [400, 190, 10]),
        (["", "a", None] * 20, ("x = ", "x = a", "x missing"), [20, 20, 20]),  # empty text is a word
        ([f"w{k}" for k in range(600)], (), []),  # all rare
    ],
)
def test_few_words_are_one_hot_and_rare_ones_pooled(words: Any, names: tuple[str, ...], sums: list[int]) -> None:
    encoder, X = fitted(words, target=np.arange(float(len(words))))
    assert encoder.names == names
    np.testing.assert_array_equal(X.sum(axis=0), sums)


def test_unseen_words_count_among_the_rare_and_never_as_a_known_one() -> None:
    encoder, _ = fitted(["a"] * 400 + ["b"] * 190 + ["c"] * 10, target=np.arange(600.0), rare=20)
    np.testing.assert_array_equal(
        applied(encoder, ["a", "b", "c", "never", None]), [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]]
    )


def test_many_words_that_are_each_rare_still_get_their_means() -> None:
    rng = np.random.default_rng(0)
    code = rng.integers(0, 1000, 5000)
    effect = rng.normal(size=1000)
    target = effect[code] + rng.normal(size=5000)
    encoder, X = fitted([f"postcode {k}" for k in code], target=target)
    assert encoder.names == ("x (mean)",)
    fresh = applied(encoder, [f"postcode {k}" for k in range(1000)])[:, 0]
    assert np.corrcoef(fresh, effect)[0, 1] > 0.7
    assert 0.3 < np.corrcoef(X[:, 0], target)[0, 1] < 0.75  # cross-fitted: no row tells its own target


def test_many_words_become_one_mean_and_unseen_ones_the_overall_mean() -> None:
    words = [f"w{k % 50}" for k in range(2000)]
    target = np.array([k % 50 for k in range(2000)], dtype=float)
    encoder, X = fitted(words, target)
    assert encoder.names == ("x (mean)",)
    assert np.corrcoef(X[:, 0], target)[0, 1] > 0.99
    codes = applied(encoder, ["w0", "w25", "w49", "never", None])[:, 0]
    assert codes[0] < codes[1] < codes[2]
    assert codes[3] == codes[4]
    assert abs(codes[3]) < 0.05
    words = [None if k % 51 == 50 else f"w{k % 51}" for k in range(2040)]  # missing text has its own mean
    encoder, _ = fitted(words, np.array([100.0 if word is None else 0.0 for word in words]))
    missing, never, known = applied(encoder, [None, "never", "w3"])[:, 0]
    assert missing > never > known


def test_days_move_on_the_circles_that_the_log_goes_round() -> None:
    week = fitted([dt.date(2024, 1, 1) + dt.timedelta(days=k) for k in range(10)])[0]
    assert week.names == ("x", "x sine of week", "x cosine of week")
    year = fitted([dt.date(2022, 1, 1) + dt.timedelta(days=20 * k) for k in range(40)])[0]
    assert "x sine of year" in year.names
    assert not any("day" in name for name in year.names)
    clock = fitted([dt.datetime(2024, 1, 1) + dt.timedelta(hours=7 * k) for k in range(40)])[0]
    assert "x cosine of day" in clock.names


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_moment_or_duration_is_the_same_in_every_unit_and_zone(unit: str) -> None:
    moments = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=7 * k) for k in range(40)]
    encoder, X = fitted(pa.array(moments, pa.timestamp("us")))
    zoned = pa.array(moments, pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit, "Asia/Tokyo"))
    for same in (pa.array(moments, pa.timestamp(unit)), zoned):
        np.testing.assert_array_equal(applied(encoder, same), X)
    lasted = [dt.timedelta(hours=k) for k in range(40)]
    encoder, X = fitted(pa.array(lasted, pa.duration("us")))
    np.testing.assert_array_equal(applied(encoder, pa.array(lasted, pa.duration(unit))), X)


@pytest.mark.parametrize(
    "constant", [[7] * N, ["a"] * N, [dt.date(2024, 1, 1)] * N, [True] * N, [None] * N, [float("nan")] * N]
)
def test_a_column_that_says_the_same_everywhere_takes_no_place(constant: list[Any]) -> None:
    encoder, X = fitted(constant)
    # A column that is missing throughout may keep its mark; it must not say anything else.
    assert X.shape[1] <= 1
    assert len(np.unique(X)) <= 1
    assert applied(encoder, constant[:3]).shape == (3, X.shape[1])


# -- finite, always -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        [1.7e308, -1.7e308] * 30,
        [1e300, 2e300] * 30,
        [5e-324, 0.0] * 30,
        [1.0] * 59 + [1e308],
        [float("inf"), 1.0, -float("inf"), 2.0] * 15,
        [2**63 - 1, -(2**63)] * 30,
    ],
    ids=["largest", "huge", "smallest", "one huge", "infinite", "integers"],
)
def test_extreme_numbers_stay_finite_on_the_log_and_beyond_it(values: list[Any]) -> None:
    encoder, X = fitted(values)
    beyond = applied(encoder, pa.array([1.7e308, -1.7e308, float("inf"), float("nan"), None, 0.0]))
    assert np.isfinite(X).all()
    assert np.isfinite(beyond).all()


def test_customers_are_encoded_like_rows_of_the_log() -> None:
    encoder, table = Encoder(), everything()
    X = encoder.fit_transform(table, TARGET)
    again = encoder.transform(table)
    plain = np.array([source != "many words" for source in encoder.sources])  # those are cross-fitted
    np.testing.assert_array_equal(again[:, plain], X[:, plain])
    assert len(encoder.names) == len(encoder.sources) == X.shape[1]
    turned = table.select(table.column_names[::-1]).append_column("more", [["x"] * N])
    np.testing.assert_array_equal(encoder.transform(turned), again)
    missing = encoder.transform(pa.table({name: pa.nulls(3) for name in table.column_names}))
    assert missing.shape == (3, X.shape[1])
    assert np.isfinite(missing).all()
    assert encoder.transform(table.slice(0, 0)).shape == (0, X.shape[1])
    restored = Encoder.from_state(json.loads(json.dumps(encoder.state)))
    assert restored.transform(table).tobytes() == again.tobytes()
    assert (restored.names, restored.features) == (encoder.names, encoder.features)


def test_codes_and_plain_text_are_the_same_words() -> None:
    encoder, X = fitted(["a", "b", "c"] * 20)
    chunks = pa.chunked_array([["a", "b"], ["c", "a", "b", "c"], ["a", "b", "c"] * 18])
    for column in (pa.array(["a", "b", "c"] * 20), chunks.dictionary_encode()):
        np.testing.assert_array_equal(encoder.transform(pa.table({"x": column})), X)


SCALE = {"centre": 1.0, "spread": 2.0, "missing": False}
STATES = {
    "number": {"encoding": "number", "name": "x", "scale": SCALE},
    "date": {"encoding": "date", "name": "x", "scale": SCALE, "cycles": ["week"]},
    "words": {"encoding": "words", "name": "x", "words": ["a", "b"], "other": True, "missing": False},
    "means": {"encoding": "means", "name": "x", "words": ["a"], "table": [[0.5], [0.0]]},
}


@pytest.mark.parametrize(
    ("encoding", "change", "place"),
    [
        ("number", {"encoding": "y"}, "encoder/columns/0"),
        ("number", {"encoding": None}, "encoder/columns/0/encoding"),
        ("number", {"more": 1}, "encoder/columns/0.*more"),
        ("number", {"name": 1}, "encoder/columns/0/name"),
        ("number", {"scale": {"centre": 1.0, "spread": 2.0}}, "encoder/columns/0/scale"),
        *(
            ("number", {"scale": {**SCALE, "centre": bad}}, "encoder/columns/0")
            for bad in (None, "inf", 1e999, 10**400)
        ),
        *(("number", {"scale": {**SCALE, "spread": bad}}, "encoder/columns/0") for bad in (None, -1, 1e999)),
        ("date", {"scale": {**SCALE, "spread": -1.0}}, "encoder/columns/0"),
        ("date", {"cycles": ["month"]}, "encoder/columns/0"),
        ("date", {"cycles": "week"}, "encoder/columns/0/cycles"),
        ("words", {"words": ["a", "a"]}, "encoder/columns/0"),
        ("words", {"words": ["a", None]}, "encoder/columns/0/words/1"),
        ("words", {"other": 1}, "encoder/columns/0/other"),
        ("means", {"table": [[0.5]]}, "encoder/columns/0"),
        ("means", {"table": [[0.5], [0.0, 1.0]]}, "encoder/columns/0"),
        ("means", {"table": [[0.5], ["x"]]}, "encoder/columns/0/table/1/0"),
        *(("means", {"table": [[0.5], [bad]]}, "encoder/columns/0") for bad in (None, "nan", 1e31)),
    ],
)
def test_a_damaged_column_is_refused_with_its_place(encoding: str, change: dict[str, Any], place: str) -> None:
    state = {"few": 40, "rare": 10, "width": 1, "columns": [STATES[encoding]]}
    assert Encoder.from_state(state).state == state
    with pytest.raises(ValueError, match=place):
        Encoder.from_state({**state, "columns": [{**STATES[encoding], **change}]})


@pytest.mark.parametrize("change", [{"few": -1}, {"rare": True}, {"width": 0}, {"columns": {}}, {"columns": [1]}])
def test_a_damaged_encoder_is_refused(change: dict[str, Any]) -> None:
    state = {"few": 40, "rare": 10, "width": 2, "columns": [STATES["number"]]}
    with pytest.raises(ValueError, match="encoder"):
        Encoder.from_state({**state, **change})
    with pytest.raises(ValueError, match="encoder"):
        Encoder.from_state({**state, "columns": [STATES["number"], STATES["words"]]})  # one name twice
    with pytest.raises(ValueError, match="encoder"):
        Encoder.from_state([])


@pytest.mark.parametrize("discrete", [False, True])
def test_a_category_of_pure_noise_does_not_look_predictive_on_its_own_rows(discrete: bool) -> None:
    rng = np.random.default_rng(5)
    n = 12_000
    words = pa.table({"x": pa.array([f"w{k}" for k in rng.integers(0, 3000, n)])})
    target = rng.integers(0, 2, n) if discrete else rng.normal(size=n)
    encoder = Encoder(rare=2)
    X = encoder.fit_transform(read_table(words), target, discrete=discrete)
    assert X.shape == (n, 1)
    assert abs(np.corrcoef(X[:, 0], target)[0, 1]) < 0.05
    # The same means without cross-fitting would: this is what the rows are spared.
    assert np.corrcoef(encoder.transform(read_table(words))[:, 0], target)[0, 1] > 0.3


def test_means_of_words_leave_the_whole_fold_of_a_row_out() -> None:
    rng = np.random.default_rng(7)
    n = 600
    table = pa.table({"zip": pa.array([f"z{code}" for code in rng.integers(0, 60, n)])})
    fold, target = np.arange(n) % 4, rng.random(n)
    other = np.where(fold == 1, 1 - target, target)
    one, two = (Encoder().fit_transform(table, values, fold=fold) for values in (target, other))
    means = [block[:, 0] * 1.0 for block in (one, two)]
    # Standardised alike, the means of a fold's own rows do not know its targets.
    here = np.corrcoef(means[0][fold == 1], means[1][fold == 1])[0, 1]
    assert here == pytest.approx(1.0, abs=1e-6)
    assert np.corrcoef(means[0][fold == 0], means[1][fold == 0])[0, 1] < 0.95


# -- what is refused ------------------------------------------------------------------------------------------------------


def test_columns_that_are_gone_or_changed_are_named_together() -> None:
    encoder = Encoder()
    table = read_table({"age": [1.0, 2.0], "city": ["a", "b"], "day": [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]})
    encoder.fit_transform(table, np.array([0.0, 1.0]))
    with pytest.raises(InputError) as caught:
        encoder.transform(read_table({"agee": [1.0], "city": [3], "day": ["2024-01-01"]}))
    assert [problem.what for problem in caught.value.problems] == [
        "the feature 'age' is not in the table",
        "the feature 'city' holds numbers; in the log it held text",
        "the feature 'day' holds text; in the log it held dates",
    ]
    assert caught.value.problems[0].hint == "did you mean 'agee'?"


# -- any table ------------------------------------------------------------------------------------------------------------

KINDS = {
    "number": st.none() | st.floats(width=64),
    "integer": st.none() | st.integers(-(2**63), 2**63 - 1),
    "flag": st.none() | st.booleans(),
    "text": st.none() | st.text(max_size=3),
    "day": st.none() | st.dates(),
    "moment": st.none() | st.datetimes(),
}
TYPES = {
    "number": pa.float64(),
    "integer": pa.int64(),
    "flag": pa.bool_(),
    "text": pa.string(),
    "day": pa.date32(),
    "moment": pa.timestamp("us"),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, pa.Table]:
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=4))
    both = []
    for rows in (draw(st.integers(1, 30)), draw(st.integers(0, 10))):
        columns = {
            f"x{j}": pa.array(draw(st.lists(KINDS[kind], min_size=rows, max_size=rows)), TYPES[kind])
            for j, kind in enumerate(kinds)
        }
        both.append(read_table(pa.table(columns)))
    return both[0], both[1]


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(tables(), st.integers(1, 3))
def test_any_table_gives_a_finite_matrix_of_one_width(both: tuple[pa.Table, pa.Table], few: int) -> None:
    log, customers = both
    encoder = Encoder(few=few, rare=1)
    target = np.arange(log.num_rows, dtype=float)
    # Means of words are cross-fitted in five folds, which need five rows.
    if log.num_rows < 5:
        encoder.few = 100
    X = encoder.fit_transform(log, target)
    found = encoder.transform(customers)
    assert np.isfinite(X).all()
    assert np.isfinite(found).all()
    assert X.shape[0] == log.num_rows
    assert found.shape == (customers.num_rows, X.shape[1])
    assert len(encoder.names) == X.shape[1]
