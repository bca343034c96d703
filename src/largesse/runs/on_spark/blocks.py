"""Blocks: many rows packed into one value, so that Spark moves bytes and never takes rows apart.

A block is one row of a Spark table: where it comes from (`place`, `part`), how many rows it holds, a small note in JSON,
and the rows themselves as an Arrow stream. Blocks are kept on the executors' disks between passes. What a pass does is a
function in `tasks`; what it is told are bytes and numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from largesse.records import Array
from largesse.runs.on_spark.session import explain_failure

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = "place long, part long, rows long, note binary, data binary"
ANSWER = "place long, data binary"


@dataclass(frozen=True)
class Note:
    """What the driver knows of a block."""

    place: int  # the partition or piece it comes from, and …
    part: int  # … its number there: together they give the order of rows
    rows: int
    said: dict[str, Any]


class Block(NamedTuple):
    """A block as executors see it."""

    place: int
    part: int
    data: pa.RecordBatch


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of one table on the executors, and the notes about them in the order of the table's rows."""

    frame: Any  # a DataFrame with the columns `COLUMNS`
    notes: tuple[Note, ...]

    def __len__(self) -> int:
        return sum(note.rows for note in self.notes)

    @property
    def offsets(self) -> dict[tuple[int, int], int]:
        """(place, part) → the number of its first row."""
        starts = np.cumsum([0, *(note.rows for note in self.notes)])
        return {(note.place, note.part): int(start) for note, start in zip(self.notes, starts, strict=False)}

    def ask(self, task: Callable[..., Any], *told: Any, doing: str) -> list[bytes]:
        """Let executors answer from their blocks: `task(*told, blocks)` gives answers; return all that are not empty.

        `doing` names it in errors.
        """
        with explain_failure(doing):
            found = self.frame.mapInArrow(partial(task, *told), ANSWER).toArrow()
        return [data for data in found.column("data").to_pylist() if data]

    def gather(self, task: Callable[..., Any], *told: Any, doing: str) -> pa.Table:
        """Return some of the blocks' rows in their order: `task(*told, blocks)` gives blocks with the rows that are wanted."""
        import pyarrow as pa

        with explain_failure(doing):
            found = self.frame.mapInArrow(partial(task, *told), COLUMNS).toArrow()
        found = found.sort_by([("place", "ascending"), ("part", "ascending")])
        parts = [from_stream(data) for data in found.column("data").to_pylist()]
        return pa.concat_tables([pa.Table.from_batches([part]) for part in parts], promote_options="permissive")


@contextmanager
def make_blocks(frame: Any, task: Callable[..., Any], *told: Any, doing: str) -> Iterator[Blocks]:
    """Make blocks of a DataFrame's rows by `task(*told, batches)`, and forget them when the context ends."""
    from pyspark import StorageLevel

    with explain_failure(doing):
        made = frame.mapInArrow(partial(task, *told), COLUMNS).persist(StorageLevel.DISK_ONLY)
    try:
        with explain_failure(doing):
            found = made.select("place", "part", "rows", "note").toArrow()
        notes = [Note(row["place"], row["part"], row["rows"], json.loads(row["note"])) for row in found.to_pylist()]
        yield Blocks(made, tuple(sorted(notes, key=lambda note: (note.place, note.part))))
    finally:
        made.unpersist()


# -- on executors ---------------------------------------------------------------------------------------------------------


def pack_block(place: int, part: int, note: dict[str, Any], data: pa.RecordBatch | None) -> pa.RecordBatch:
    """Return one block as a row for Spark; without `data` it holds no rows."""
    import pyarrow as pa

    content = {
        "place": pa.array([place], pa.int64()),
        "part": pa.array([part], pa.int64()),
        "rows": pa.array([0 if data is None else data.num_rows], pa.int64()),
        "note": pa.array([json.dumps(note).encode()], pa.binary()),
        "data": pa.array([None if data is None else to_stream(data)], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(content)


def read_blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[Block]:
    """Give the blocks that hold rows."""
    for batch in batches:
        places, parts = batch.column("place").to_pylist(), batch.column("part").to_pylist()
        for place, part, data in zip(places, parts, batch.column("data"), strict=True):
            if data.is_valid:
                yield Block(place, part, from_stream(data.as_buffer()))


def give_answer(place: int, data: bytes) -> pa.RecordBatch:
    """Return an answer of an executor as a row for Spark."""
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"place": pa.array([place], pa.int64()), "data": pa.array([data], pa.binary())})


def to_stream(columns: pa.RecordBatch) -> bytes:
    """Return a record batch as bytes."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, columns.schema) as stream:
        stream.write_batch(columns)
    return bytes(sink.getvalue())


def from_stream(data: Any) -> pa.RecordBatch:
    """Return the record batch of `to_stream`; its columns are views of the bytes."""
    import pyarrow as pa

    with pa.ipc.open_stream(data) as stream:
        return stream.read_next_batch()


def matrix_column(values: Array) -> pa.Array:
    """Return a matrix (n, K) as a column of lists."""
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(values).ravel()), values.shape[1])


def column_matrix(column: pa.Array) -> Array:
    """Return the matrix (n, K) of `matrix_column`."""
    flat: Array = column.flatten().to_numpy(zero_copy_only=True)
    return flat.reshape(len(column), -1)
