"""Odd tables and damaged files: each is read soundly, all the way to an evaluation, or refused."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import os
import signal
import tempfile
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import largesse as lg
from largesse.allocation import expected_costs
from largesse.data import Encoder
from largesse.errors import InputError
from support.answers import refusals
from support.commands import try_command, working_folder
from support.examples import RNGS, examples
from support.odd_values import draw_name, draw_values, write_as

Rng = np.random.Generator
ROWS = 90  # of the files that are damaged
READING_SECONDS = 20  # that one damaged file may take
CAMPAIGN = """log = "{log}"
[columns]
level = {level}
response = {response}
[levels]
costs = {costs}
[plan]
budget = 3
[model]
name = "linear"
"""

# -- odd tables ---------------------------------------------------------------------------------------------------------


class OddLog(NamedTuple):
    """A table in some form, which column plays which role, and the levels."""

    source: Any
    roles: dict[str, Any]
    levels: Any


@st.composite
def odd_logs(draw: st.DrawFn) -> OddLog:
    """A sound log with some columns of odd values under odd names, some of them with a role."""
    rows, K = draw(st.sampled_from([60, 0, 1, 7, 30, 60, 90, 90, 120])), draw(st.integers(2, 4))
    width = draw(st.integers(0, 6) if draw(st.integers(0, 99)) < 99 else st.integers(500, 10_000))
    optional = st.sets(st.sampled_from(["propensity", "logger", "cluster", "weight", "customer"]), max_size=2)
    names, rng = draw(st.one_of(st.just(set()), optional)), draw(RNGS)
    columns: dict[str, Any] = {}
    for _ in range(width):
        columns[draw_name(rng)] = draw_values(rng, rows) if rng.random() < 0.4 else rng.normal(size=rows)
    roles: dict[str, Any] = {"level": draw_name(rng), "response": draw_name(rng)}
    columns[roles["level"]] = np.arange(rows) % K if rng.random() < 0.9 else draw_values(rng, rows)
    plain = rng.integers(0, 2, rows) if rng.random() < 0.6 else np.round(rng.lognormal(0, 1, rows), 3)
    columns[roles["response"]] = plain if rng.random() < 0.9 else draw_values(rng, rows)
    for role in sorted(names):
        roles[role] = draw_name(rng)
        columns[roles[role]] = draw_role(rng, role, rows, K)
    if rng.random() < 0.1:
        roles["features"] = [str(rng.choice(np.array(list(columns), dtype=object)))]
    if rng.random() < 0.9:
        columns["plain"] = rng.normal(size=rows)
    costs = np.sort(rng.integers(0, 20, K)).astype(float) * (np.arange(K) > 0)
    levels = lg.Levels(costs=costs, on_redemption=bool(rng.random() < 0.3), contact_cost=float(rng.choice([0, 0.5])))
    return OddLog(write_as(rng, columns), roles, levels)


def draw_role(rng: Rng, role: str, rows: int, K: int) -> Any:
    """Draw a column for a role: usually one that makes sense."""
    if rng.random() < 0.5:
        return draw_values(rng, rows)
    sensible = {
        "propensity": np.full(rows, 1 / K),
        "weight": rng.choice([0.0, 1.0, 2.0, 1e300, 1e-300], rows, p=[0.1, 0.5, 0.3, 0.05, 0.05]),
        "customer": [f"c{i}" for i in range(rows)],
    }
    return sensible.get(role, rng.integers(0, 9, rows))


@examples(16)
@given(odd_logs(), st.floats(0, 25))
def test_an_odd_table_is_refused_or_gives_sound_numbers(odd: OddLog, budget: float) -> None:
    with refusals():
        log = lg.read_log(odd.source, levels=odd.levels, **odd.roles)
        model = lg.Linear().fit(log)
        curves = model.predict(log)
        assert curves.shape == (len(log), len(log.levels))
        assert np.isfinite(curves).all()
        costs = expected_costs(log.levels, curves, log.costs)
        plan = lg.allocate(curves, costs, budget)
        face = np.broadcast_to(costs, curves.shape)[np.arange(len(log)), plan.levels]
        spent = sum((Fraction(float(cost)) for cost in face), Fraction(0))
        assert spent <= Fraction(budget) * len(log) * (1 + Fraction(1, 10**14)), "over budget"
        check_saved_policy(lg.Policy(model, log.levels, plan.price), log)
        check_evaluation(lg.evaluate(log, model, budget=budget))


def check_saved_policy(policy: Any, log: Any) -> None:
    """Check that a policy that was saved and loaded decides as before."""
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder) / "policy.largesse")
        loaded = lg.Policy.load(Path(folder) / "policy.largesse")
        assert np.array_equal(loaded.decide(log), policy.decide(log))


def check_evaluation(found: Any) -> None:
    """Check that an evaluation has finite numbers in order."""
    for name in ("value", "spend"):
        estimate, (low, high) = getattr(found, name), getattr(found, f"{name}_interval")
        assert np.isfinite(estimate), name
        assert not np.isfinite(low) or low <= estimate <= high, name


@examples(4)
@given(odd_logs(), st.sampled_from(["parquet", "feather", "arrow", "csv"]))
def test_commands_read_or_refuse_an_odd_table(odd: OddLog, kind: str) -> None:
    with working_folder() as folder:
        path = f"log.{kind}"
        if not write_file(odd.source, folder / path):
            return
        level, response = str(odd.roles["level"]), str(odd.roles["response"])
        costs = ",".join(f"{cost:g}" for cost in odd.levels.costs)
        text = CAMPAIGN.format(log=path, level=quote(level), response=quote(response), costs=f"[{costs}]")
        (folder / "own.toml").write_text(text, encoding="utf-8")
        roles = (f"--level={level}", f"--response={response}", f"--costs={costs}")
        try_command(folder, "init", path)
        try_command(folder, "doctor", path)
        try_command(folder, "fit", path, *roles, "--model=linear", "--out=q")
        try_command(folder, "run", "own.toml", "--out=r")


def quote(name: str) -> str:
    """Return a name as TOML writes text."""
    plain = "".join(c if 32 <= ord(c) != 127 and c not in '"\\' else f"\\u{ord(c):04x}" for c in name)
    return f'"{plain}"'


def write_file(source: Any, path: Path) -> bool:
    """Write a table, and return whether a file of this kind can hold it."""
    try:
        table, sink = source if isinstance(source, pa.Table) else pa.table(source), io.BytesIO()
        if path.suffix == ".parquet":
            pq.write_table(table, sink)
        elif path.suffix == ".csv":
            csv.write_csv(table, sink)
        elif path.suffix == ".feather":
            feather.write_feather(table, sink)
        else:
            with pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
    except Exception:
        return False
    path.write_bytes(sink.getvalue())
    return True


# -- damaged files ------------------------------------------------------------------------------------------------------


@cache
def plain_table() -> pa.Table:
    """A log with columns of every usual type, some of them missing here and there."""
    rng = np.random.default_rng(5)
    coupon = np.arange(ROWS) % 3
    words = [None if k % 17 == 3 else f"Ort {k % 7} – São" for k in range(ROWS)]
    return pa.table(
        {
            "coupon": coupon,
            "bought": rng.integers(0, 2, ROWS),
            "age": pa.array([None if k % 11 == 0 else float(k) for k in range(ROWS)]),
            "city": words,
            "town": pa.array(words).dictionary_encode(),
            "loyal": pa.array([bool(k % 2) for k in range(ROWS)]),
            "since": [dt.date(2020, 1, 1) + dt.timedelta(days=k) for k in range(ROWS)],
            "seen": [dt.datetime(2024, 1, 1) + dt.timedelta(hours=k) for k in range(ROWS)],
            "long": pa.array([f"text {k}" * (k % 5) for k in range(ROWS)], pa.large_string()),
            "tags": pa.array([[k, k + 1] for k in range(ROWS)]),
            "pair": pa.array([{"a": k, "b": str(k)} for k in range(ROWS)]),
            "view": pa.array([f"a view that is long enough {k}" for k in range(ROWS)], pa.string_view()),
        }
    )


def simple_table() -> pa.Table:
    return plain_table().drop_columns(["tags", "pair", "view"])


def make_ipc(stream: bool, codec: str | None) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(sink, plain_table().schema, options=options) as writer:
        writer.write_table(plain_table(), max_chunksize=40)
    return sink.getvalue()


def make_parquet(codec: str, **settings: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(plain_table().drop_columns(["view"]), sink, compression=codec, row_group_size=40, **settings)
    return sink.getvalue()


def make_csv() -> bytes:
    sink = io.BytesIO()
    csv.write_csv(simple_table(), sink)
    return sink.getvalue()


FORMATS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "arrow": (".arrow", lambda: make_ipc(False, None)),
    "arrow-lz4": (".arrow", lambda: make_ipc(False, "lz4")),
    "arrow-zstd": (".feather", lambda: make_ipc(False, "zstd")),
    "stream": (".arrow", lambda: make_ipc(True, None)),
    "stream-zstd": (".arrow", lambda: make_ipc(True, "zstd")),
    "parquet": (".parquet", lambda: make_parquet("snappy")),
    "parquet-plain": (".parquet", lambda: make_parquet("none", use_dictionary=False)),
    "parquet-zstd": (".parquet", lambda: make_parquet("zstd", data_page_version="2.0")),
    "csv": (".csv", make_csv),
    "csv-gz": (".csv.gz", lambda: gzip.compress(make_csv(), mtime=0)),
}


@cache
def sound_file(form: str) -> bytes:
    return FORMATS[form][1]()


def flip_bits(content: bytearray, rng: np.random.Generator) -> None:
    for at in rng.integers(0, len(content), rng.integers(1, 9)):
        content[at] ^= 1 << int(rng.integers(8))


def set_bytes(content: bytearray, rng: np.random.Generator) -> None:
    for at in rng.integers(0, len(content), rng.integers(1, 9)):
        content[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF, int(rng.integers(256))]))


def flip_ends(content: bytearray, rng: np.random.Generator) -> None:
    """Headers and footers hold the lengths and offsets of all the rest."""
    size = min(len(content), 4096)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(size))
        content[at if rng.random() < 0.5 else -1 - at] = int(rng.integers(256))


def write_number(content: bytearray, rng: np.random.Generator) -> None:
    """Write an extreme number where an offset, a length or an index may stand."""
    width = int(rng.choice([4, 8]))
    number = int(rng.choice([-1, 0, 1, 2**31 - 1, -(2**31), len(content), 2 * len(content), 1 << 20]))
    at = int(rng.integers(0, max(1, (len(content) - 8) // 4))) * 4
    content[at : at + width] = number.to_bytes(width, "little", signed=True)


def cut(content: bytearray, rng: np.random.Generator) -> None:
    del content[int(rng.integers(0, len(content))) :]


def cut_middle(content: bytearray, rng: np.random.Generator) -> None:
    start, end = sorted(rng.integers(0, len(content), 2).tolist())
    del content[start : min(end, start + 64)]


def swap_regions(content: bytearray, rng: np.random.Generator) -> None:
    size = int(rng.integers(1, 65))
    a, b = rng.integers(0, max(1, len(content) - size), 2).tolist()
    content[a : a + size], content[b : b + size] = content[b : b + size], content[a : a + size]


def blank_region(content: bytearray, rng: np.random.Generator) -> None:
    size, at = int(rng.integers(1, 257)), int(rng.integers(0, len(content)))
    size = min(size, len(content) - at)
    content[at : at + size] = (b"\xff" if rng.random() < 0.5 else b"\0") * size


DAMAGES = (flip_bits, set_bytes, flip_ends, write_number, cut, cut_middle, swap_regions, blank_region)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
@pytest.mark.parametrize("form", FORMATS)
@examples(10)
@given(st.lists(st.sampled_from(DAMAGES), min_size=1, max_size=2), st.booleans(), RNGS)
def test_a_damaged_file_is_read_or_refused(form: str, damages: list[Any], inside: bool, rng: Rng) -> None:
    inside = inside and form == "csv-gz"  # damage to the text within, under a sound checksum
    content = bytearray(gzip.decompress(sound_file(form)) if inside else sound_file(form))
    for damage in damages:
        if content:
            damage(content, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"damaged{FORMATS[form][0]}"
        path.write_bytes(gzip.compress(bytes(content), mtime=0) if inside else content)
        assert read_in_fork(path) in ("read", "refused")


@pytest.mark.parametrize("form", FORMATS)
def test_the_file_that_is_damaged_is_read_as_it_is(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"sound{FORMATS[form][0]}"
    path.write_bytes(sound_file(form))
    assert read_to_the_end(path)


def read_in_fork(path: Path) -> str:
    """Return how reading the file ended: read, refused, with a traceback, or killed by which signal."""
    import sklearn.preprocessing  # noqa: F401  once here, not in every fork

    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            signal.alarm(READING_SECONDS)
            code = 0 if read_to_the_end(path) else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return {0: "read", 2: "refused"}.get(os.WEXITSTATUS(status), "a traceback")


def read_to_the_end(path: Path) -> bool:
    """Read a file all the way to the matrix that models see; return whether it was accepted."""
    try:
        log = lg.read_log(path, level="coupon", response="bought", levels=lg.Levels(costs=[0, 1, 2]))
        Encoder().fit_transform(log.features, log.response)
        for column in log.features.columns:
            if not pa.types.is_temporal(column.type):  # Python knows no year beyond 9999
                column.to_pylist()
    except InputError as error:
        str(error)
        return False
    return True
