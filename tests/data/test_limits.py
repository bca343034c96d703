"""Weights, responses and values at the edge of what can be computed with: refused at the door, with the number."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from largesse.data import open_batches
from largesse.data.log import read_log
from largesse.data.read import read_table
from largesse.errors import InputError
from largesse.evaluation import evaluate
from largesse.levels import Levels
from largesse.records import Log
from largesse.response import Linear

N = 120
LEVEL = np.arange(N) % 3


def read(**columns: Any) -> Log:
    rng = np.random.default_rng(2)
    usual = {"age": rng.normal(size=N), "coupon": LEVEL, "bought": rng.integers(0, 2, N), "w": np.ones(N)}
    roles = {role: role for role in ("cluster", "logger", "customer") if role in columns}
    levels = Levels(costs=[0, 1, 2])
    return read_log(usual | columns, level="coupon", response="bought", weight="w", levels=levels, **roles)  # type: ignore[misc]


def on_rows(*rows: int) -> Any:
    weight = np.zeros(N)
    weight[list(rows)] = 1
    return weight


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        (np.where(LEVEL == 1, 0.0, 1.0), "all rows with level 1 have weight zero"),
        (np.where(LEVEL == 2, 1e-200, 1.0), "all rows with level 2 have weight zero"),
        (on_rows(7), "leave only about 1.0 of 120 rows"),
        (on_rows(0, 1, 2), "leave only about 3.0 of 120 rows"),
        (np.where(np.arange(N) == 3, 1e9, 1.0), "rows 3, 0, 1"),
        (np.full(N, 1e300), "the largest weight in 'w' is 1e+300"),
        (np.full(N, 1e-300), "the largest weight in 'w' is 1e-300"),
        (np.full(N, -1.0), "negative in 120 rows"),
        (np.full(N, np.nan), "missing, infinite or negative"),
        (np.zeros(N), "every weight in 'w' is zero"),
    ],
)
def test_weights_that_leave_nothing_to_estimate_are_refused(weight: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(w=weight)
    assert said in str(caught.value)


@pytest.mark.parametrize("seed", range(4))
def test_weights_that_are_accepted_can_be_worked_with(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weight = np.where((LEVEL == 0) & (np.arange(N) > 9), 0.0, rng.lognormal(0, 1, N))
    assert np.isfinite(evaluate(read(w=weight), Linear(), budget=1.0).value)


@pytest.mark.parametrize("largest", [1e38, 1e150, 1e300])
def test_responses_beyond_computing_are_refused(largest: float) -> None:
    with pytest.raises(InputError, match="as large as"):
        read(bought=np.arange(N) / N * largest)


def test_half_precision_groups_are_read() -> None:
    groups = (np.arange(N) % 20).astype(np.float16)
    log = read(cluster=groups, logger=groups)
    assert np.array_equal(log.cluster, np.arange(N) % 20)


def test_a_time_beyond_the_year_9999_is_no_response() -> None:
    late = pa.array([2**60] * N, pa.timestamp("us"))
    with pytest.raises(InputError, match="does not hold numbers"):
        read(bought=late)


@pytest.mark.parametrize("number", [10**30, 10**400, -(10**25)])
def test_integers_beyond_64_bits_are_refused(number: int) -> None:
    with pytest.raises(InputError, match="could not be converted"):
        read(age=[number] * N)


@pytest.mark.parametrize("word", ["1_0", "５", "1e5_0"])
def test_only_ascii_digits_are_numbers(word: str) -> None:
    with pytest.raises(InputError, match="not in the list"):
        read(coupon=np.where(LEVEL == 1, word, LEVEL.astype(str)))


def test_everything_wrong_is_named_together() -> None:
    content = {
        "age": [1.0] * 9,
        "coupon": [0, 1, 7] * 3,
        "p": [2.0] * 9,
        "w": [-1.0] * 9,
        "bought": [np.inf] + [0.0] * 8,
    }
    with pytest.raises(InputError) as caught:
        read_log(
            content,
            level="coupon",
            response="bought",
            propensity="p",
            weight="w",
            features=["age", "city"],
            levels=Levels(costs=[0, 1]),
        )
    said = str(caught.value)
    for part in ("'city' is not in", "holds a level", "is infinite", "not in (0, 1]", "negative"):
        assert part in said


@pytest.mark.parametrize("ending", [".csv.gz", ".parquet", ".arrow"])
def test_a_table_larger_than_memory_is_refused(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largesse.data.read.memory_limit", lambda: 1_000_000)
    file, table = tmp_path / f"log{ending}", pa.table({"a": np.zeros(1_000_000), "b": pa.nulls(1_000_000, pa.string())})
    if ending == ".csv.gz":
        file.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000))
    elif ending == ".parquet":
        pq.write_table(table, file)
    else:
        feather.write_feather(table, file, compression="zstd")
    assert file.stat().st_size < 1_000_000
    with pytest.raises(InputError, match=r"1\.0 MB"):
        read_table(file)
    if ending != ".arrow":
        assert open_batches(file).rows == 1_000_000


def test_a_name_that_is_not_utf8_is_read(tmp_path: Path) -> None:
    for ending, write in ((".csv", lambda p: p.write_bytes(b"a\n1\n")), (".parquet", _write_parquet)):
        file = tmp_path / f"caf\udce9{ending}"
        write(file)
        assert read_table(file).column("a").to_pylist() == [1]


def _write_parquet(path: Path) -> None:
    with path.open("wb") as stream:
        pq.write_table(pa.table({"a": [1]}), stream)


@pytest.mark.parametrize("path", ["a\0b.csv", "a" * 300 + ".csv", "x/" * 3000])
def test_impossible_paths_are_refused(path: str) -> None:
    with pytest.raises(InputError, match=r"NUL|too long"):
        read_table(path)


def test_control_characters_are_escaped_in_errors() -> None:
    with pytest.raises(InputError) as caught:
        read_log({"a\x1b[2J": [1]}, level="\x1b]0;x\x07", response="a", levels=Levels(costs=[0, 1]))
    assert not {"\x1b", "\x07"} & set(str(caught.value))
