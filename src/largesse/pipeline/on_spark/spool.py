"""The spool: what executors expect of customers, in files beside the output, on the disk that driver and executors share.

A task writes one file for each place that it works on, under a name that no other attempt has, and tells the driver of it;
files that the driver was not told of do not count. So a task that dies, or is done twice, changes nothing, and no row goes
through Java. Later passes read the files, a few parts each. The folder is gone when the command ends.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from largesse.pipeline.on_spark.session import explain_failure
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

ANSWER = "place long, data binary"
PART_ROWS = 2_000_000  # that a task looks at, if there are so many: every task has a cost of its own, of about 50 ms
TASKS = 8  # at least, if there are so many parts


class Part(NamedTuple):
    """A file of the spool."""

    name: str
    first: int  # number of its first row
    sizes: tuple[int, ...]  # rows of its batches


@dataclass(frozen=True, eq=False)
class Spool:
    """The parts of a table in the order of its rows."""

    session: Any
    folder: str
    parts: tuple[Part, ...]

    def __len__(self) -> int:
        return sum(sum(part.sizes) for part in self.parts)

    def ask(self, task: Callable[..., Any], *told: Any, doing: str) -> list[bytes]:
        """Let executors look at all parts: `task(*told, spool, places)` gives answers; return them in the order of places.

        `doing` names it in errors.
        """
        tasks = min(len(self.parts), max(len(self) // PART_ROWS, TASKS))
        there = (self.folder, self.parts)
        return ask(self.session, len(self.parts), tasks, partial(task, *told, there), doing)


Stored = tuple[str, tuple[Part, ...]]  # the folder and the parts of a spool, as executors are told them


def ask(session: Any, places: int, tasks: int, task: Callable[..., Any], doing: str) -> list[bytes]:
    """Let executors do a task for each of some places; return what they answer, in the order of places."""
    with explain_failure(doing):
        found = session.range(0, places, 1, max(tasks, 1)).mapInArrow(task, ANSWER).toArrow()
    return in_order(found)


def in_order(answers: pa.Table) -> list[bytes]:
    """Return what tasks answered, in the order of places."""
    return [data for data in answers.sort_by("place").column("data").to_pylist() if data]


# -- on executors ---------------------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """A batch of a part."""

    first: int  # number of its first row
    data: pa.RecordBatch


def read_parts(stored: Stored, batches: Iterator[pa.RecordBatch]) -> Iterator[Block]:
    """Give the blocks of the parts that a task is to look at."""
    import pyarrow as pa

    folder, parts = stored
    for place in list_numbers(batches):
        part = parts[place]
        with pa.memory_map(str(Path(folder) / part.name)) as file, pa.ipc.open_file(file) as opened:
            first = part.first
            for k, size in enumerate(part.sizes):
                yield Block(first, opened.get_batch(k))
                first += size


def list_numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    """Give the places that a task is to work on."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def give_answer(place: int, data: bytes | dict[str, Any]) -> pa.RecordBatch:
    """Return an answer of an executor as a row for Spark."""
    import pyarrow as pa

    content = json.dumps(data).encode() if isinstance(data, dict) else data
    return pa.RecordBatch.from_pydict(
        {"place": pa.array([place], pa.int64()), "data": pa.array([content], pa.binary())}
    )


@dataclass(eq=False)
class PartWriter:
    """A part that is being written: batches of one schema, and numbers of ids."""

    folder: str
    name: str = ""
    sizes: list[int] | None = None
    inner: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        import pyarrow as pa

        if self.inner is None:
            self.name, self.sizes = f"{uuid.uuid4().hex}.arrow", []
            self.inner = pa.ipc.new_file(str(Path(self.folder) / self.name), batch.schema)
        self.inner.write_batch(batch)
        assert self.sizes is not None
        self.sizes.append(batch.num_rows)

    def close(self) -> None:
        """Finish the file."""
        if self.inner is not None:
            self.inner.close()


def matrix_column(values: Array) -> pa.Array:
    """Return a matrix (n, K) as a column of lists."""
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(values).ravel()), values.shape[1])


def column_matrix(column: pa.Array) -> Array:
    """Return the matrix (n, K) of `matrix_column`."""
    flat: Array = column.flatten().to_numpy(zero_copy_only=True)
    return flat.reshape(len(column), -1)
