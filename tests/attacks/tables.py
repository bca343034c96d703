"""Damaged files of tables: each must be read or refused, never end the process.

`run(seeds)` damages one file per seed and reads it in a fork. The file's format, the kind of damage and its place all
follow from the seed.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
import os
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
from harness import Outcome

ROWS = 90
LIMIT = 20  # seconds that one file may take


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


def _simple() -> pa.Table:
    return plain_table().drop_columns(["tags", "pair", "view"])


def _ipc(stream: bool, codec: str | None) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(sink, plain_table().schema, options=options) as writer:
        writer.write_table(plain_table(), max_chunksize=40)
    return sink.getvalue()


def _parquet(codec: str, **settings: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(plain_table().drop_columns(["view"]), sink, compression=codec, row_group_size=40, **settings)
    return sink.getvalue()


def _csv() -> bytes:
    sink = io.BytesIO()
    csv.write_csv(_simple(), sink)
    return sink.getvalue()


FORMATS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "arrow": (".arrow", lambda: _ipc(False, None)),
    "arrow-lz4": (".arrow", lambda: _ipc(False, "lz4")),
    "arrow-zstd": (".feather", lambda: _ipc(False, "zstd")),
    "stream": (".arrow", lambda: _ipc(True, None)),
    "stream-zstd": (".arrow", lambda: _ipc(True, "zstd")),
    "parquet": (".parquet", lambda: _parquet("snappy")),
    "parquet-plain": (".parquet", lambda: _parquet("none", use_dictionary=False)),
    "parquet-zstd": (".parquet", lambda: _parquet("zstd", data_page_version="2.0")),
    "csv": (".csv", _csv),
    "csv-gz": (".csv.gz", lambda: gzip.compress(_csv(), mtime=0)),
}


@cache
def _whole(form: str) -> bytes:
    return FORMATS[form][1]()


# ------------------------------------------------------------------------------------------------------------- damage


def _flip_bits(content: bytearray, rng: np.random.Generator) -> None:
    for at in rng.integers(0, len(content), rng.integers(1, 9)):
        content[at] ^= 1 << int(rng.integers(8))


def _set_bytes(content: bytearray, rng: np.random.Generator) -> None:
    for at in rng.integers(0, len(content), rng.integers(1, 9)):
        content[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF, int(rng.integers(256))]))


def _flip_ends(content: bytearray, rng: np.random.Generator) -> None:
    """Headers and footers hold the lengths and offsets of all the rest."""
    size = min(len(content), 4096)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(size))
        content[at if rng.random() < 0.5 else -1 - at] = int(rng.integers(256))


def _write_number(content: bytearray, rng: np.random.Generator) -> None:
    """Write an extreme number where an offset, a length or an index may stand."""
    width = int(rng.choice([4, 8]))
    number = int(rng.choice([-1, 0, 1, 2**31 - 1, -(2**31), len(content), 2 * len(content), 1 << 20]))
    at = int(rng.integers(0, max(1, (len(content) - 8) // 4))) * 4
    content[at : at + width] = number.to_bytes(width, "little", signed=True)


def _cut(content: bytearray, rng: np.random.Generator) -> None:
    del content[int(rng.integers(0, len(content))) :]


def _cut_middle(content: bytearray, rng: np.random.Generator) -> None:
    start, end = sorted(rng.integers(0, len(content), 2).tolist())
    del content[start : min(end, start + 64)]


def _swap_regions(content: bytearray, rng: np.random.Generator) -> None:
    size = int(rng.integers(1, 65))
    a, b = rng.integers(0, max(1, len(content) - size), 2).tolist()
    content[a : a + size], content[b : b + size] = content[b : b + size], content[a : a + size]


def _blank_region(content: bytearray, rng: np.random.Generator) -> None:
    size, at = int(rng.integers(1, 257)), int(rng.integers(0, len(content)))
    size = min(size, len(content) - at)
    content[at : at + size] = (b"\xff" if rng.random() < 0.5 else b"\0") * size


DAMAGES = (
    _flip_bits,
    _set_bytes,
    _flip_ends,
    _write_number,
    _cut,
    _cut_middle,
    _swap_regions,
    _blank_region,
)


def damage(seed: int, forms: tuple[str, ...] = tuple(FORMATS)) -> tuple[str, bytes]:
    """Return the format and the damaged bytes of a seed."""
    rng = np.random.default_rng(seed)
    form = forms[int(rng.integers(len(forms)))]
    content = bytearray(_whole(form))
    if form == "csv-gz" and rng.random() < 0.5:  # the text inside, under a sound checksum
        inner = bytearray(gzip.decompress(bytes(content)))
        DAMAGES[int(rng.integers(len(DAMAGES)))](inner, rng)
        return form, gzip.compress(bytes(inner), mtime=0)
    for _ in range(int(rng.integers(1, 3))):
        if content:
            DAMAGES[int(rng.integers(len(DAMAGES)))](content, rng)
    return form, bytes(content)


# ------------------------------------------------------------------------------------------------------------- reading


def _read(path: Path) -> str:
    """Read a file all the way to the matrix that models see, and say how it ended."""
    from largesse.data import Encoder, read_log
    from largesse.errors import InputError
    from largesse.levels import Levels

    try:
        log = read_log(path, level="coupon", response="bought", levels=Levels(costs=[0, 1, 2]))
        Encoder().fit_transform(log.features, log.response)
        for column in log.features.columns:
            if not pa.types.is_temporal(column.type):  # Python knows no year beyond 9999
                column.to_pylist()
    except InputError as error:
        str(error)
        return "refused"
    return "read"


def _read_in_fork(path: Path, noisy: bool) -> str:
    """Return how reading the file ended: read, refused, traceback, hung, or killed by which signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2 if not noisy else 1)
            signal.alarm(LIMIT)
            code = {"read": 0, "refused": 2}[_read(path)]
        except BaseException:
            if noisy:
                traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return "hung" if name == "SIGALRM" else f"killed by {name}"
    return {0: "read", 2: "refused"}.get(os.WEXITSTATUS(status), "traceback")


def run(seeds: Iterable[int], forms: tuple[str, ...] = tuple(FORMATS), noisy: bool = False) -> dict[str, int]:
    """Return how often each end was met; everything but "read" and "refused" is a fault."""
    import sklearn.preprocessing

    import largesse.data  # once here, not in every fork

    del largesse, sklearn
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            form, content = damage(seed, forms)
            path = Path(folder) / f"damaged{FORMATS[form][0]}"
            path.write_bytes(content)
            ended = _read_in_fork(path, noisy)
            counts[ended] += 1
            if noisy and ended not in ("read", "refused"):
                sys.stdout.write(f"seed {seed}: {form}: {ended}\n")
    return dict(counts)


def attack(seed: int) -> Outcome:
    """Damage one file and read it in this process, which a bad file may end."""
    form, content = damage(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"damaged{FORMATS[form][0]}"
        path.write_bytes(content)
        return Outcome("fine" if _read(path) == "read" else "refused", form)


if __name__ == "__main__":
    first, last = (int(word) for word in sys.argv[1:3])
    chosen = tuple(sys.argv[3].split(",")) if len(sys.argv) > 3 else tuple(FORMATS)
    sys.stdout.write(f"{run(range(first, last), chosen, noisy=True)}\n")
