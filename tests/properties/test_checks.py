"""Facts that hold for every check of a campaign, whatever the log: what may not change it, and what must.

The order of rows and of columns, the format of the file, the types of columns, and rows of other customers say nothing about
the plan. A plan that was followed is followed, one that was not is found, and every number is finite or left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse import pipeline
from support.answers import read_strictly
from support.commands import working_folder
from support.examples import RNGS, examples
from support.shops import run_folder, shop_table

Rng = np.random.Generator
AMOUNTS = np.array([0, 5, 10])


@cache
def plan_of(kind: str) -> pa.Table:
    return pq.read_table(run_folder(kind) / "plan.parquet")


def draw_log(kind: str, rng: Rng) -> pa.Table:
    """Return a campaign in which some share of customers got their level; responses may drift, features too."""
    table = shop_table(60, seed=2)
    level = plan_of(kind)["level_number"].to_numpy().copy()
    other = rng.random(60) < rng.choice([0.0, 0.0, 0.05, 0.5, 1.0])
    level[other] = (level[other] + rng.integers(1, 3, int(other.sum()))) % 3
    chance = float(rng.choice([0.0, 0.1, 0.4, 1.0]))
    columns = {name: table[name] for name in table.column_names}
    columns["coupon"] = pa.array(AMOUNTS[level])
    columns["bought"] = pa.array((rng.random(60) < chance).astype(np.int64))
    if rng.random() < 0.3:
        columns["age"] = pa.array(table["age"].to_numpy() + float(rng.choice([0.0, 30.0, 1e6])))
    return pa.table(columns)


def find_difference(one: Any, other: Any, where: str = "") -> str:
    """Return where two descriptions differ by more than rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return next(
            (found for key in one if (found := find_difference(one[key], other.get(key), f"{where}.{key}"))), ""
        )
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return next((found for i, (a, b) in pairs if (found := find_difference(a, b, f"{where}[{i}]"))), "")
    if isinstance(one, int | float) and isinstance(other, int | float):
        return (
            ""
            if one == other or abs(one - other) <= 1e-6 * max(abs(one), abs(other), 1e-6)
            else f"{where}: {one} → {other}"
        )
    return "" if one == other else f"{where}: {one!r:.100} → {other!r:.100}"


# -- what may not change anything ----------------------------------------------------------------------------------------


def turn_rows(log: pa.Table, folder: Path, rng: Rng) -> str:
    pq.write_table(log.take(pa.array(rng.permutation(len(log)))), folder / "two.parquet")
    return "two.parquet"


def turn_columns(log: pa.Table, folder: Path, rng: Rng) -> str:
    pq.write_table(log.select([log.column_names[i] for i in rng.permutation(log.num_columns)]), folder / "two.parquet")
    return "two.parquet"


def write_as_csv(log: pa.Table, folder: Path, rng: Rng) -> str:
    csv.write_csv(log, folder / "two.csv")
    return "two.csv"


def add_strangers(log: pa.Table, folder: Path, rng: Rng) -> str:
    """Rows of customers who are not in the plan are left out."""
    more = shop_table(int(rng.integers(1, 40)), seed=int(rng.integers(1000)))
    ids = pa.array([f"stranger {i}" for i in range(len(more))])
    both = pa.concat_tables([log, more.set_column(0, "id", ids).select(log.column_names).cast(log.schema)])
    pq.write_table(both, folder / "two.parquet")
    return "two.parquet"


def check_again(log: pa.Table, folder: Path, rng: Rng) -> str:
    return "one.parquet"


def retype(log: pa.Table, folder: Path, rng: Rng) -> str:
    """The same values in other types: another width, text, decimals, categories, moments in UTC."""
    for at, name in enumerate(log.column_names):
        ways = TYPES[name]
        kind = ways[rng.integers(len(ways))]
        column = log[name].cast(pa.timestamp("us")) if pa.types.is_timestamp(kind) else log[name]
        log = log.set_column(at, name, column.cast(kind))
        if rng.random() < 0.3 and not pa.types.is_string_view(kind):
            log = log.set_column(at, name, log[name].dictionary_encode())
    with pa.OSFile(str(folder / "two.arrow"), "wb") as file, pa.ipc.new_file(file, log.schema) as writer:
        writer.write_table(log)
    return "two.arrow"


WORDS = (pa.string(), pa.large_string(), pa.string_view())
NUMBERS = (pa.int64(), pa.int8(), pa.uint8(), pa.float32(), pa.float64(), pa.decimal128(21, 2))
MOMENTS = tuple(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC"))
TYPES = {
    "id": WORDS,
    "city": WORDS,
    "age": (pa.float64(),),
    "since": (pa.date32(), pa.date64(), *MOMENTS),
    "coupon": (*NUMBERS, *WORDS),
    "bought": (*NUMBERS, pa.bool_(), *WORDS),
}
CHANGES: tuple[Callable[[pa.Table, Path, Rng], str], ...] = (
    turn_rows, turn_columns, write_as_csv, add_strangers, check_again, retype,
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@examples(1)
@given(st.sampled_from(["plain", "explored"]), RNGS)
def test_a_check_says_what_was_followed_and_no_more(change: Callable[..., str], kind: str, rng: Rng) -> None:
    log = draw_log(kind, rng)
    with working_folder() as folder:
        pq.write_table(log, folder / "one.parquet")
        name = change(log, folder, rng)
        found, shown = pipeline.check(run_folder(kind), str(folder / "one.parquet"))
        again, other = pipeline.check(run_folder(kind), str(folder / name))
    read_strictly(json.dumps(shown))
    followed = float((log["coupon"].to_numpy() == AMOUNTS[plan_of(kind)["level_number"].to_numpy()]).mean())
    answer = next(one["answer"] for one in shown["checks"] if one["topic"] == "plan")
    assert answer == ("fine" if followed >= 0.98 else "careful" if followed >= 0.9 else "no"), followed
    assert found.code in (0, 10, 20)
    assert answer != "no" or found.code == 20
    for described in (shown, other):
        described.pop("fingerprint")  # of the file
    if change is add_strangers:  # how many they are is a finding of its own
        shown, other = ({word: one[word] for word in ("value", "spend", "levels")} for one in (shown, other))
    else:
        assert found.code == again.code
    assert find_difference(shown, other) == ""
