"""What executors run: functions of this package that are told bytes, numbers and names, never objects of a user.

A worker reads the sealed policy once and keeps it for the tasks that follow. What is wrong with rows goes to the driver as
data, so that people see the same message as on one machine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.allocation import check_batch, expected_costs, pack_answer
from largesse.data import Piece, as_plain, read_notation, read_piece, read_table
from largesse.errors import LargesseError, refuse
from largesse.evaluation import Shown
from largesse.pipeline.customers import check_planned, may_be_wrong
from largesse.pipeline.on_spark.spool import (
    Block,
    PartWriter,
    Stored,
    column_matrix,
    give_answer,
    list_numbers,
    matrix_column,
    read_parts,
)
from largesse.policy import Policy
from largesse.records import Array, Customers
from largesse.response import expect_in_blocks
from largesse.stats import one_thread

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Wanted:
    """How a table of customers is read: plain values alone, for they travel to the executors."""

    features: tuple[str, ...]
    customer: str | None = None  # the column with their ids, if it is there
    costs: tuple[str, ...] = ()  # the columns with their own costs, if there are any
    parse: tuple[tuple[str, Any], ...] = ()  # column → how it is written
    pieces: tuple[Piece, ...] | None = None  # of files; None: rows come from Spark
    shown: tuple[Shown, ...] = ()  # features whose groups the report may count

    @property
    def checked(self) -> list[str]:
        """The columns whose values must keep a rule."""
        return [name for name in (self.customer, *self.costs, *dict(self.parse)) if name is not None]


@lru_cache(maxsize=2)
def load_policy(content: bytes) -> Policy:
    """Return the policy that is sealed in these bytes; a worker reads it once."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.largesse"
        file.write_bytes(content)
        return Policy.load(file)


def seal_policy(policy: Policy) -> bytes:
    """Return the bytes of the policy's file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.largesse"
        policy.save(file)
        return file.read_bytes()


# -- reading --------------------------------------------------------------------------------------------------------------


def list_places(wanted: Wanted, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """Give the places that this task works on, each with its rows: those from Spark, or pieces of files."""
    plain, texts = [str(wanted.customer)], [name for name, way in wanted.parse if way == "text"]
    if wanted.pieces is None:
        yield find_partition(), (read_table(batch, what="customers", plain=plain) for batch in batches)
        return
    for place in list_numbers(batches):
        yield place, read_piece(wanted.pieces[place], "customers", plain, texts)


def find_partition() -> int:
    """Return the number of the partition that this task works on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def check_rows(table: pa.Table, policy: Policy, wanted: Wanted) -> Customers:
    """Return the customers in a table that was read; refuse it as `Local` does."""
    reading = read_notation(table, dict(wanted.parse), None)
    refuse("customers", reading.problems)
    return check_planned(reading.table, policy.levels, wanted.customer, wanted.features)


# -- scoring --------------------------------------------------------------------------------------------------------------


def score_customers(
    content: bytes, wanted: Wanted, folder: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Score this task's customers into parts of a spool, and tell the driver of each: its name, and what is wrong with it."""
    policy = load_policy(content)
    with one_thread():
        for place, tables in list_places(wanted, batches):
            yield give_answer(place, _score_place(policy, wanted, folder, tables))


def _score_place(policy: Policy, wanted: Wanted, folder: str, tables: Iterator[pa.Table]) -> dict[str, Any]:
    """Write ids, curves and costs of customers to a part; of batches that break a rule, write the rows that may break it."""
    from largesse.pipeline.hashing import hash_ids

    part, odd, numbers = PartWriter(folder), PartWriter(folder), [np.zeros(0, np.uint64)]
    told: dict[str, Any] = {}
    while True:
        table = None
        try:
            table = next(tables, None)
            if table is None:
                break
            told.setdefault("schema", table.schema.serialize().to_pybytes().hex())
            if table.num_rows:
                rows = _score(policy, check_rows(table, policy, wanted), wanted.shown)
                part.write(rows)
                if "customer" in rows.schema.names:
                    numbers.append(hash_ids(rows.column("customer")))
        except LargesseError as error:
            told.setdefault("wrong", [error.subject, [[problem.what, problem.hint] for problem in error.problems]])
            for rows in [] if table is None else _suspect(table, wanted):
                odd.write(rows)
    part.close()
    odd.close()
    if part.sizes:
        np.sort(np.concatenate(numbers)).tofile(Path(folder) / f"{part.name}.ids")
    return {**told, "name": part.name, "sizes": part.sizes or [], "odd": odd.name}


def _score(policy: Policy, customers: Customers, shown: Sequence[Shown]) -> pa.RecordBatch:
    """Return ids, curves (n, K), where customers differ in them costs (n, K), and the groups of features that may be shown."""
    import pyarrow as pa

    curves, own = expect_in_blocks(policy.model, customers, workers=1)
    costs = expected_costs(policy.levels, curves, own)
    check_batch(curves, costs)
    columns = {"curves": matrix_column(curves)}
    if costs.ndim == 2:
        columns["costs"] = matrix_column(costs)
    if customers.customer is not None:
        columns["customer"] = customers.customer
    if shown:
        codes = [one.grouping.code(customers.features.column(one.feature)) for one in shown]
        columns["groups"] = matrix_column(np.column_stack(codes).astype(np.uint8))
    return pa.RecordBatch.from_pydict(columns)


def _suspect(table: pa.Table, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Give what the rules look at, of the rows that may break one: all others count for nothing in a message."""
    import pyarrow as pa

    kept = table.select([name for name in wanted.checked if name in table.column_names])
    if not wanted.parse:
        kept = kept.filter(may_be_wrong(kept, wanted.customer, wanted.costs))
    plain = pa.table({name: as_plain(kept.column(name)) for name in kept.column_names})
    yield from plain.combine_chunks().to_batches() if plain.num_columns else ()


# -- asking ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Costs:
    """What levels cost: everybody the same, or every customer their own."""

    common: tuple[float, ...] | None
    scale: float = 1.0

    def batch(self, block: Block) -> tuple[Array, Array, Array]:
        """Return the row numbers (n,), curves (n, K) and cost rows (1, K) or (n, K) of a block."""
        own = column_matrix(block.data.column("costs")) if self.common is None else np.asarray(self.common)
        return check_batch(
            column_matrix(block.data.column("curves")), own if self.scale == 1.0 else own * self.scale, block.first
        )


def answer_question(
    question: Any, costs: Costs, stored: Stored, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Give the sum of the answers of this task's customers."""
    total = None
    for block in read_parts(stored, batches):
        answer = question.of(*costs.batch(block))
        total = answer if total is None else total + answer
    if total is not None:
        yield give_answer(0, pack_answer(total))


# -- ids that repeat ------------------------------------------------------------------------------------------------------


def find_repeats(buckets: int, stored: Stored, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the numbers of ids that come more than once; a task compares those between two ends, of all parts."""
    folder, parts = stored
    ends = [(2**64 * k) // buckets for k in range(buckets + 1)]
    for bucket in list_numbers(batches):
        low, high = ends[bucket], ends[bucket + 1]
        held = [np.zeros(0, np.uint64)]
        for part in parts:
            numbers = np.memmap(Path(folder) / f"{part.name}.ids", dtype=np.uint64, mode="r")
            start = np.searchsorted(numbers, np.uint64(low))
            stop = len(numbers) if high == 2**64 else np.searchsorted(numbers, np.uint64(high))
            held.append(np.array(numbers[start:stop]))
        met = np.sort(np.concatenate(held))
        yield give_answer(bucket, np.unique(met[1:][met[1:] == met[:-1]]).tobytes())


def fetch_ids(numbers: bytes, stored: Stored, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the ids that have one of these numbers."""
    import pyarrow as pa

    from largesse.pipeline.hashing import hash_ids

    wanted = np.frombuffer(numbers, dtype=np.uint64)
    for block in read_parts(stored, batches):
        ids = block.data.select(["customer"])
        found = ids.filter(np.isin(hash_ids(ids.column("customer")), wanted))
        if found.num_rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, found.schema) as stream:
                stream.write_batch(found)
            yield give_answer(block.first, bytes(sink.getvalue()))
