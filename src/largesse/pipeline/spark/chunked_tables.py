"""Spark tables with one row per batch of rows, whose content is Arrow bytes.

Java carries few large values instead of many small ones, and Spark keeps them in the memory and on the disks of the
executors. A chunk that is lost with an executor is computed again. A result depends on nothing but its chunk, so a task that
dies or runs twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.errors import InputError, Problem
from largesse.pipeline.spark.session import explain_spark_failure
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

# `head` comes to the driver with the list of chunks; n < 0 marks a partition's report, which is all in its head.
CHUNKS = "place long, n long, head binary, scores binary, rest binary"
RESULTS = "place long, n long, content binary"
MAX_CHUNK_ROWS = 8_192  # larger values than half a megabyte are costly for Java
JOB_ROWS = 4_000_000  # rows whose results come to the driver at once
CHUNK_BITS = 32  # of a place: the number of a chunk in its partition


@dataclass(frozen=True, eq=False)
class ChunkedTable:
    """Table in chunks of consecutive rows that are stored on the Spark executors.

    Tasks get the number of a chunk's first row and the contents of some columns. `doing` names the work in errors.
    """

    frame: Any  # columns of CHUNKS
    places: Array  # (b,) rising
    firsts: Array  # (b + 1,) row number of each chunk's first row, and the number of rows
    heads: list[bytes]  # (b,)
    reports: list[bytes]  # one of each partition

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.firsts[-1])

    def map(self, task: Callable[..., bytes], doing: str, *columns: str) -> Iterator[bytes]:
        """Run a task on every chunk on the executors, and yield its nonempty results in order."""
        start = 0
        while start < len(self.places):
            stop = max(int(np.searchsorted(self.firsts, self.firsts[start] + JOB_ROWS, side="right")) - 1, start + 1)
            here = f"place between {self.places[start]} and {self.places[stop - 1]}"
            results = self._run(run_task_on_chunks, task, doing, here, columns).sort_by("place")
            _check_rows(results, self.firsts[stop] - self.firsts[start])
            yield from (content for content in results.column("content").to_pylist() if content)
            start = stop

    def sum(self, task: Callable[..., Mapping[str, Array]], doing: str, *columns: str) -> dict[str, Array]:
        """Run a task on every chunk on the executors, and return the sums of its results by name."""
        results = self._run(sum_task_over_chunks, task, doing, "true", columns)
        _check_rows(results, self.n)
        return sum_arrays(map(unpack_arrays, results.column("content").to_pylist()))

    def rows(self, task: Callable[..., Iterator[pa.RecordBatch]], schema: Any, *columns: str) -> Any:
        """Return a Spark DataFrame of the rows that a task makes from every chunk."""
        chosen = self.frame.where("n > 0").select("place", "n", *columns)
        return chosen.mapInArrow(partial(yield_task_rows, task, self._first_rows), schema)

    def _run(self, run: Any, task: Any, doing: str, where: str, columns: Sequence[str]) -> pa.Table:
        with explain_spark_failure(doing):
            chosen = self.frame.where(f"n > 0 and {where}").select("place", "n", *columns)
            return chosen.mapInArrow(partial(run, task, self._first_rows), RESULTS).toArrow()

    @property
    def _first_rows(self) -> dict[int, int]:
        return dict(zip(self.places.tolist(), self.firsts.tolist(), strict=False))


def _check_rows(results: pa.Table, expected: int) -> None:
    """Raise an error if the results' number of rows differs from the table's."""
    if sum(results.column("n").to_pylist()) != expected:
        hint = "save it as a table first, or give one whose rows keep their order"
        raise InputError("table", [Problem("the table changed while it was read", hint)])


@contextmanager
def cache_chunks(frame: Any, doing: str) -> Iterator[ChunkedTable]:
    """Yield the chunks of a Spark DataFrame, cached on the executors until the context ends."""
    from pyspark import StorageLevel

    kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        with explain_spark_failure(doing):
            listed = kept.select("place", "n", "head").toArrow().sort_by("place")
        sizes, places = (np.asarray(listed.column(name), dtype=np.int64) for name in ("n", "place"))
        heads, chunks = listed.column("head").to_pylist(), sizes > 0
        firsts = np.concatenate([[0], np.cumsum(sizes[chunks])])
        of_chunks, reports = ([heads[k] for k in np.flatnonzero(kind)] for kind in (chunks, ~chunks))
        yield ChunkedTable(kept, places[chunks], firsts, of_chunks, reports)
    finally:
        kept.unpersist()


# -- on executors -----------------------------------------------------------------------------------------------------


def find_partition_number() -> int:
    """Return the partition number of the current Spark task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def make_chunk_row(
    part: int, chunk: int, n: int, head: bytes, scores: bytes = b"", rest: bytes = b""
) -> pa.RecordBatch:
    """Return one chunk as a row of a chunked table."""
    return make_bytes_row((part << CHUNK_BITS) + chunk, n, head=head, scores=scores, rest=rest)


def make_bytes_row(place: int, n: int, **contents: bytes) -> pa.RecordBatch:
    """Return one row with binary columns as a record batch."""
    import pyarrow as pa

    numbers = {"place": pa.array([place], pa.int64()), "n": pa.array([n], pa.int64())}
    return pa.RecordBatch.from_pydict(numbers | {name: pa.array([x], pa.binary()) for name, x in contents.items()})


def run_task_on_chunks(
    task: Any, firsts: dict[int, int], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield a task's result for every chunk of a partition."""
    for place, n, contents in yield_chunks(batches):
        yield make_bytes_row(place, n, content=task(firsts[place], *contents))


def sum_task_over_chunks(
    task: Any, firsts: dict[int, int], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the sum of a task's results over all chunks of a partition."""
    total: dict[str, Array] = {}
    rows = 0
    for place, n, contents in yield_chunks(batches):
        total = sum_arrays([*([total] if total else []), task(firsts[place], *contents)])
        rows += n
    if rows:
        yield make_bytes_row(0, rows, content=pack_arrays(total))


def yield_task_rows(task: Any, firsts: dict[int, int], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a task makes from every chunk of a partition."""
    for place, _, contents in yield_chunks(batches):
        yield from task(firsts[place], *contents)


def yield_chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, int, list[pa.Buffer]]]:
    """Yield the position, number of rows and contents of each chunk of a partition."""
    for batch in batches:
        for k in range(batch.num_rows):
            place, n, *contents = (column[k] for column in batch.columns)
            yield place.as_py(), n.as_py(), [content.as_buffer() for content in contents]


def sum_arrays(results: Any) -> dict[str, Array]:
    """Return the sums of several results' arrays by name."""
    total: dict[str, Array] = {}
    for result in results:
        total = {name: total[name] + array if total else array for name, array in result.items()}
    return total


# -- contents ---------------------------------------------------------------------------------------------------------


def pack_table(table: pa.Table) -> bytes:
    """Return a table as compressed Arrow bytes."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def unpack_table(content: bytes | pa.Buffer, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the table, or some columns of it, from packed bytes."""
    import pyarrow as pa

    if columns is None:
        return pa.ipc.open_stream(content).read_all()
    with pa.ipc.open_stream(content) as opened:
        names = opened.schema.names
    options = pa.ipc.IpcReadOptions(included_fields=[k for k, name in enumerate(names) if name in columns])
    return pa.ipc.open_stream(content, options=options).read_all()


def pack_arrays(arrays: Mapping[str, Any], table: pa.Table | None = None) -> bytes:
    """Return named arrays and an optional table as bytes."""
    from safetensors.numpy import save

    head = save({name: np.array(values, order="C") for name, values in arrays.items()})
    return len(head).to_bytes(8, "little") + head + (b"" if table is None else pack_table(table))


def unpack_arrays(content: bytes) -> dict[str, Any]:
    """Return the named arrays from packed bytes."""
    from safetensors.numpy import load

    return dict(load(content[8 : 8 + int.from_bytes(content[:8], "little")]))


def unpack_table_after_arrays(content: bytes) -> pa.Table:
    """Return the table that follows the arrays in packed bytes."""
    return unpack_table(content[8 + int.from_bytes(content[:8], "little") :])
