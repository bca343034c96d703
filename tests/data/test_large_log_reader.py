"""Logs read in batches: the rules, notes and errors of reading them whole; all rows, and features of a sample."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from largesse.data import csv_reader, digest_log, large_log_reader, read_log, table_batches
from largesse.errors import InputError
from largesse.levels import Levels
from largesse.records import Log

N = 900
LEVELS = Levels(costs=[0, 5, 10])
ROLES: dict[str, Any] = {"level": "coupon", "response": "bought"}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_batches, "READ_BATCH_ROWS", 128)
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 4000)


def table(**more: Any) -> pa.Table:
    rng = np.random.default_rng(1)
    words = np.array(["15,09", "7", "1.234,5", "0,5"])
    content = {
        "age": rng.integers(18, 80, N),
        "price": words[rng.integers(0, 4, N)],
        "since": np.array(["31.12.2024", "01.02.2023"])[rng.integers(0, 2, N)],
        "twofold": np.array(["1,234", "5,678"])[rng.integers(0, 2, N)],
        "mostly": np.array(["1", "2", "3", "some"])[rng.integers(0, 4, N)],
        "city": pa.array(np.array(["Oslo", "Rome", None])[rng.integers(0, 3, N)]),
        "same": np.full(N, 7),
        "word": ["always"] * N,
        "nothing": pa.nulls(N, pa.string()),
        "key": [f"k{i}" for i in range(N)],
        "first_day": rng.integers(40_000, 41_000, N),
        "late": pa.array([None] * (N - 1) + ["word"]),
        "coupon": np.array([0, 5, 10])[rng.integers(0, 3, N)],
        "bought": pa.array(rng.integers(0, 2, N), mask=rng.random(N) < 0.05),
        "w": rng.uniform(0.5, 2, N),
        "p": np.full(N, 1 / 3),
        "who": np.array(["a", "b"])[rng.integers(0, 2, N)],
        "house": [f"h{i}" for i in rng.integers(0, 300, N)],
        "id": [f"c{i}" for i in range(N)],
    }
    return pa.table(content | more)


def write(folder: Path, content: pa.Table, kind: str = "parquet") -> Path:
    """Write a table as three files, the second without rows."""
    cuts = [content.slice(0, 400), content.slice(400, 0), content.slice(400)]
    for k, part in enumerate(cuts):
        file = folder / f"{k}.{kind}"
        pq.write_table(part, file, row_group_size=90) if kind == "parquet" else csv.write_csv(part, file)
    return folder


def both(source: Any, levels: Levels = LEVELS, most: int = 300, **roles: Any) -> tuple[Log, Log]:
    given = ROLES | roles
    return read_log(source, levels=levels, **given), read_log(source, levels=levels, most_rows=most, **given)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other))
    return bool(one.equals(other)) if isinstance(one, pa.Array | pa.ChunkedArray) else bool(one == other)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "parquet": lambda folder: write(folder, table()),
    "csv": lambda folder: write(folder, table(), "csv"),
    "memory": lambda _folder: table(),
}
ASKED: dict[str, dict[str, Any]] = {
    "plain": {},
    "all": {"propensity": "p", "weight": "w", "logger": "who", "cluster": "house", "customer": "id"},
    "shares": {"propensity": [1 / 3, 1 / 3, 1 / 3], "weight": "w"},
    "strata": {"propensity_strata": "who"},
    "listed": {"features": ["city", "age", "key", "word"]},
    "parsed": {"parse": {"twofold": "decimal comma", "mostly": "text", "age": "text", "word": {"always": 1}}},
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("source", SOURCES)
def test_a_large_log_is_the_log_and_its_features_those_of_the_whole(source: str, asked: str, tmp_path: Path) -> None:
    whole, large = both(SOURCES[source](tmp_path), **ASKED[asked])
    assert large.sample is not None
    for field in fields(Log):
        if field.name not in ("features", "notes", "sample"):
            assert same(getattr(whole, field.name), getattr(large, field.name)), field.name
    *notes, last = large.notes
    unused = [] if asked != "listed" else ["price", "since", "twofold", "mostly", "first_day"]
    assert notes == [note for note in whole.notes if not any(f"column {name!r}" in note for name in unused)]
    assert (
        last
        == f"models learn from a random sample of {len(large.sample.rows)} of {len(whole)} rows; all rows judge them"
    )
    sample = large.sample
    taken = whole.features.take(sample.rows)
    assert sample.log.features.to_pydict() == taken.to_pydict()
    assert sample.log.features.schema.types == taken.schema.types
    assert np.array_equal(sample.log.level, whole.level[sample.rows])
    parts = list(sample.batches(None))
    assert len(parts) > 3
    assert pa.concat_tables(parts).to_pydict() == whole.features.to_pydict()
    some = whole.features.column_names[1:3]
    assert pa.concat_tables(list(sample.batches(some))).to_pydict() == whole.features.select(some).to_pydict()


def test_a_log_that_fits_is_read_as_ever(tmp_path: Path) -> None:
    for source in (table(), write(tmp_path, table(), "csv")):
        for most in ("auto", N):
            whole, same_log = both(source, most=most)  # type: ignore[arg-type]
            assert same_log.sample is None
            assert digest_log(same_log) == digest_log(whole)
            assert same_log.notes == whole.notes


BAD: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a level in the last row": ({"coupon": np.append(np.tile([0, 5, 10], 300)[:-1], 7)}, {}),
    "no row of a level": ({"coupon": np.tile([0, 5], 450)}, {}),
    "no level": ({"coupon": pa.array([None, *([0, 5, 10] * 300)[1:]])}, {}),
    "an infinite response": ({"bought": np.append(np.arange(N - 1) % 2, np.inf)}, {}),
    "many missing responses": ({"bought": pa.array(np.arange(N) % 2, mask=np.arange(N) > 400)}, {}),
    "a constant response": ({"bought": np.ones(N)}, {}),
    "text as response": ({"bought": ["yes"] * (N - 1) + ["maybe"]}, {}),
    "a bad propensity": ({"p": np.append(np.full(N - 1, 1 / 3), 1.5)}, {"propensity": "p"}),
    "impossible propensities": ({"p": np.full(N, 0.01)}, {"propensity": "p"}),
    "a bad weight": ({"w": np.append(np.ones(N - 1), -1)}, {"weight": "w"}),
    "a missing cluster": ({"house": pa.array(["h"] * (N - 1) + [None])}, {"cluster": "house"}),
    "a column that is not there": ({}, {"weight": "wheight", "features": ["agee", "city"]}),
    "a list as feature": ({"many": [[1]] * N}, {"features": ["many", "age"]}),
    "words that parse does not know": ({}, {"parse": {"mostly": "decimal point", "city": {"Oslo": 1}}}),
    "parse of nothing": ({}, {"parse": {"nowhere": "text"}}),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_bad_rows_are_refused_in_the_same_words(kind: str, case: str, tmp_path: Path) -> None:
    columns, roles = BAD[case]
    if kind == "csv" and "many" in columns:
        pytest.skip("a CSV holds no lists")
    source = write(tmp_path, table(**columns), kind)
    with pytest.raises(InputError) as whole:
        read_log(source, levels=LEVELS, **(ROLES | roles))
    with pytest.raises(InputError) as large:
        read_log(source, levels=LEVELS, most_rows=300, **(ROLES | roles))
    assert str(large.value) == str(whole.value)


def test_rare_levels_are_drawn_more_often_and_count_less() -> None:
    coupon = np.where(np.arange(N) % 30 == 0, 10, np.where(np.arange(N) % 2, 5, 0))
    whole, large = both(table(coupon=coupon))
    sample = large.sample
    assert sample is not None
    own, weight = sample.log.level, sample.log.weights
    assert (own == 2).sum() == (whole.level == 2).sum()  # all of them
    share = [weight[own == k].sum() / weight.sum() for k in range(3)]
    assert share == pytest.approx([(whole.level == k).mean() for k in range(3)])
    _, even = both(table())
    assert even.sample is not None
    assert even.sample.log.weight is None


def test_a_sample_keeps_clusters_whole_and_leaves_rows_outside() -> None:
    whole, large = both(table(), most=N - 1, cluster="house")
    assert whole.cluster is not None
    outside = large.outside
    assert outside.mean() >= 1 / 6 - 0.01
    assert not set(whole.cluster[outside]) & set(whole.cluster[~outside])


def test_an_invalid_limit_and_a_sample_without_some_level_are_refused() -> None:
    most: Any
    for most in (0, -5, 1.5, True, "many"):
        with pytest.raises(InputError, match="most_rows is"):
            read_log(table(), levels=LEVELS, most_rows=most, **ROLES)
    rare = np.append(np.tile([0, 5], 450)[:-1], 10)
    with pytest.raises(InputError, match=r"100 rows .* level 10"):
        read_log(table(coupon=rare), levels=LEVELS, most_rows=100, cluster="house", **ROLES)


def test_the_seed_draws_the_sample() -> None:
    rows = [read_log(table(), levels=LEVELS, most_rows=300, seed=seed, **ROLES).sample.rows for seed in (0, 0, 1)]  # type: ignore[union-attr]
    assert np.array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[0], rows[2])


def test_the_digest_knows_features_sample_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(content: pa.Table = table(), **more: Any) -> str:  # noqa: B008
        return digest_log(read_log(content, levels=LEVELS, **({"most_rows": 300} | ROLES | more)))

    usual = digest()
    age = np.asarray(table().column("age")).copy()
    age[-1] += 1
    assert digest(table(age=age)) != usual
    assert digest(table(word=["always"] * (N - 1) + ["alway"])) != usual
    assert digest(most_rows=299) != usual
    assert digest(seed=1) != usual
    assert digest(parse={"twofold": "decimal comma"}) != usual
    monkeypatch.setattr(table_batches, "READ_BATCH_ROWS", 77)
    assert digest() == usual
    source = write(tmp_path, table())
    assert digest(source) == usual  # type: ignore[arg-type]


def test_text_of_very_many_words_stays_text_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_log_reader, "MAX_COUNTED_VALUES", 100)
    many = [f"{i // 2},5" for i in range(N)]
    log = read_log(table(price=many), levels=LEVELS, most_rows=300, **ROLES)
    assert any("'price' is read as text: it has more than 100 different values" in note for note in log.notes)
    assert any("'key' left out: nearly every row has its own text" in note for note in log.notes)
    assert log.sample is not None
    assert "price" in log.sample.log.features.column_names
