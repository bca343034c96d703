"""Tables in chunks: a Spark table with one row per batch, whose content is bytes in Arrow's stream format.

Java carries few large values instead of many small ones, and Spark keeps them in the memory and on the disks of the
executors. A chunk that is lost with an executor is computed again. What is made of a row depends on nothing but the row, so
a task that dies or runs twice changes nothing.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.errors import InputError, Problem
from largesse.pipeline.spark.session import explain_failure
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

CHUNKS = "place long, n long, scores binary, rest binary"  # rest: ids and features, which few passes read
RESULTS = "place long, n long, content binary"
CHUNK_ROWS = 8_192  # larger values than half a megabyte are costly for Java
JOB_ROWS = 4_000_000  # rows whose results come to the driver at once
CHUNK_BITS = 32  # of a place: the number of a chunk in its partition
Task = Callable[..., bytes | None]


@dataclass(frozen=True, eq=False)
class ChunkedTable:
    """The chunks of a table in the order of its rows, kept by the executors."""

    frame: Any  # columns of CHUNKS; n < 0: a report of a partition, not rows
    places: Array  # (b,) rising
    firsts: Array  # (b + 1,) row number of each chunk's first row, and the number of rows

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.firsts[-1])

    def map(self, task: Task, doing: str, *columns: str) -> Iterator[bytes]:
        """Run a task for every chunk (first row number, content of some columns) on the executors; yield results in order.

        `doing` names the work in errors.
        """
        run = partial(_run_task, task, dict(zip(self.places.tolist(), self.firsts.tolist(), strict=False)))
        start = 0
        while start < len(self.places):
            stop = max(int(np.searchsorted(self.firsts, self.firsts[start] + JOB_ROWS, side="right")) - 1, start + 1)
            asked = f"n > 0 and place between {self.places[start]} and {self.places[stop - 1]}"
            with explain_failure(doing):
                chosen = self.frame.where(asked).select("place", "n", *columns)
                found = chosen.mapInArrow(run, RESULTS).toArrow().sort_by("place")
            if sum(found.column("n").to_pylist()) != self.firsts[stop] - self.firsts[start]:
                hint = "save it as a table first, or give one whose rows keep their order"
                raise InputError("table", [Problem("the table changed while it was read", hint)])
            yield from (content for content in found.column("content").to_pylist() if content)
            start = stop

    def rows(self, task: Callable[..., Iterator[pa.RecordBatch]], schema: Any, *columns: str) -> Any:
        """Return the DataFrame of the rows that a task makes of every chunk on the executors."""
        firsts = dict(zip(self.places.tolist(), self.firsts.tolist(), strict=False))
        chosen = self.frame.where("n > 0").select("place", "n", *columns)
        return chosen.mapInArrow(partial(_make_rows, task, firsts), schema)

    def reports(self) -> list[bytes]:
        """Return the reports of all partitions."""
        found = self.frame.where("n < 0").select("place", "rest").toArrow().sort_by("place")
        return list(found.column("rest").to_pylist())


@contextmanager
def keep_chunks(frame: Any, doing: str) -> Iterator[ChunkedTable]:
    """Compute the chunks of a DataFrame with the columns of CHUNKS, and keep them on the executors while the context lasts."""
    from pyspark import StorageLevel

    kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        with explain_failure(doing):
            heads = kept.where("n > 0").select("place", "n").toArrow().sort_by("place")
        sizes = np.asarray(heads.column("n"), dtype=np.int64)
        yield ChunkedTable(
            kept, np.asarray(heads.column("place"), dtype=np.int64), np.concatenate([[0], np.cumsum(sizes)])
        )
    finally:
        kept.unpersist()


# -- on executors -----------------------------------------------------------------------------------------------------


def find_partition() -> int:
    """Return the number of the partition that this task works on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def make_chunk(part: int, chunk: int, n: int, scores: bytes, rest: bytes) -> pa.RecordBatch:
    """Return a row of a chunked table."""
    return _make_row((part << CHUNK_BITS) + chunk, n, scores=scores, rest=rest)


def make_result(place: int, n: int, content: bytes) -> pa.RecordBatch:
    """Return a row of results."""
    return _make_row(place, n, content=content)


def _make_row(place: int, n: int, **contents: bytes) -> pa.RecordBatch:
    import pyarrow as pa

    columns = {"place": pa.array([place], pa.int64()), "n": pa.array([n], pa.int64())}
    return pa.RecordBatch.from_pydict(
        columns | {name: pa.array([content], pa.binary()) for name, content in contents.items()}
    )


def _run_task(task: Task, firsts: dict[int, int], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for place, n, contents in list_chunks(batches):
        yield make_result(place, n, task(firsts[place], *contents) or b"")


def _make_rows(
    task: Callable[..., Iterator[pa.RecordBatch]], firsts: dict[int, int], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for place, _, contents in list_chunks(batches):
        yield from task(firsts[place], *contents)


def list_chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, int, list[pa.Buffer]]]:
    """Yield place, number of rows, and contents of the chunks of this task."""
    for batch in batches:
        for k in range(batch.num_rows):
            place, n, *contents = (column[k] for column in batch.columns)
            yield place.as_py(), n.as_py(), [content.as_buffer() for content in contents]


def pack_table(table: pa.Table, *, packed: bool = True) -> bytes:
    """Return a table as bytes; compressed if `packed`."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4" if packed else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def unpack_table(content: bytes | pa.Buffer, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a packed table, or some columns of it; the others are not unpacked."""
    import pyarrow as pa

    if columns is None:
        return pa.ipc.open_stream(content).read_all()
    with pa.ipc.open_stream(content) as opened:
        names = opened.schema.names
    options = pa.ipc.IpcReadOptions(included_fields=[k for k, name in enumerate(names) if name in columns])
    return pa.ipc.open_stream(content, options=options).read_all()


def pack_matrices(*matrices: Array) -> bytes:
    """Return matrices (n, …) of numbers as bytes: one after the other, row by row."""
    return b"".join(np.ascontiguousarray(matrix, dtype=np.float64).tobytes() for matrix in matrices)


def pack_arrays(arrays: Mapping[str, Any]) -> bytes:
    """Return arrays and numbers by name as bytes."""
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def unpack_arrays(content: bytes) -> dict[str, Any]:
    """Return what `pack_arrays` packed; numbers are arrays without an axis."""
    with np.load(io.BytesIO(content), allow_pickle=False) as opened:
        return {name: opened[name] for name in opened.files}
