"""What executors run: functions of this package that are told bytes, numbers and names, never objects of a user.

A worker reads the sealed policy once and keeps it for the tasks that follow. What is wrong with rows goes to the driver as
data, so that people see the same message as on one machine.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.allocation import check_batch, expected_costs, pack_answer
from largesse.data import Piece, read_notation, read_piece, read_table
from largesse.errors import LargesseError, refuse
from largesse.policy import Policy
from largesse.records import Array, Customers
from largesse.report import Shown
from largesse.response import expect_in_blocks
from largesse.runs.customers import check_planned, may_be_wrong
from largesse.runs.on_spark.blocks import Block, column_matrix, give_answer, matrix_column, pack_block, read_blocks
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
        yield _partition(), (read_table(batch, what="customers", plain=plain) for batch in batches)
        return
    for batch in batches:
        for place in batch.column(0).to_pylist():
            yield place, read_piece(wanted.pieces[place], "customers", plain, texts)


def _partition() -> int:
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


def score_customers(content: bytes, wanted: Wanted, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn customers into blocks of ids, curves and costs; of a batch that breaks a rule, the rows that may break it."""
    policy = load_policy(content)
    for place, tables in list_places(wanted, batches):
        for part in itertools.count():
            note: dict[str, Any] = {}
            table = rows = None
            try:
                table = next(tables, None)
                if table is None:
                    break
                note = {} if part else {"schema": table.schema.serialize().to_pybytes().hex()}
                if table.num_rows:
                    with one_thread():
                        rows = _score(policy, check_rows(table, policy, wanted), wanted.shown)
            except LargesseError as error:
                note["wrong"] = [error.subject, [[problem.what, problem.hint] for problem in error.problems]]
                rows = None if table is None else _suspect(table, wanted)
            yield pack_block(place, part, note, rows)


def _score(policy: Policy, customers: Customers, shown: Sequence[Shown]) -> pa.RecordBatch:
    """Return ids, curves (n, K), where customers differ in them costs (n, K), and the groups of features that may be shown."""
    import pyarrow as pa

    curves, own = expect_in_blocks(policy.model, customers, workers=1)
    costs = expected_costs(policy.levels, curves, own)
    columns = {"curves": matrix_column(curves)}
    if costs.ndim == 2:
        columns["costs"] = matrix_column(costs)
    if customers.customer is not None:
        columns["customer"] = customers.customer
    if shown:
        codes = [one.grouping.code(customers.features.column(one.feature)) for one in shown]
        columns["groups"] = matrix_column(np.column_stack(codes).astype(np.uint8))
    return pa.RecordBatch.from_pydict(columns)


def _suspect(table: pa.Table, wanted: Wanted) -> pa.RecordBatch | None:
    """Return what the rules look at, of the rows that may break one: all others count for nothing in a message."""
    kept = table.select([name for name in wanted.checked if name in table.column_names])
    if not wanted.parse:
        kept = kept.filter(may_be_wrong(kept, wanted.customer, wanted.costs))
    batches = kept.combine_chunks().to_batches()
    return batches[0] if batches else None


# -- asking ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Place:
    """What makes batches for `allocation` of blocks: where their rows start, and costs that are the same for everybody."""

    offsets: dict[tuple[int, int], int]  # (place, part) → the number of the first row
    common: tuple[float, ...] | None  # costs of the levels; None: every customer has their own
    scale: float = 1.0  # of all costs

    def batch(self, block: Block) -> tuple[Array, Array, Array]:
        """Return the row numbers (n,), curves (n, K) and cost rows (1, K) or (n, K) of a block."""
        own = column_matrix(block.data.column("costs")) if self.common is None else np.asarray(self.common)
        costs = own if self.scale == 1.0 else own * self.scale
        return check_batch(column_matrix(block.data.column("curves")), costs, self.offsets[block.place, block.part])


def answer_question(question: Any, place: Place, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the sum of the answers of this task's blocks; none if it has no rows."""
    total = None
    for block in read_blocks(batches):
        answer = question.of(*place.batch(block))
        total = answer if total is None else total + answer
    if total is not None:
        yield give_answer(_partition(), pack_answer(total))


def fetch_blocks(wanted: list[tuple[int, int]], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the blocks at these places and parts as they are."""
    for block in read_blocks(batches):
        if (block.place, block.part) in wanted:
            yield pack_block(block.place, block.part, {}, block.data)


# -- ids that repeat ------------------------------------------------------------------------------------------------------


def spread_ids(buckets: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give a number for every id, in buckets, so that equal ids meet in one place."""
    from largesse.runs.hashing import hash_ids

    for block in read_blocks(batches):
        numbers = hash_ids(block.data.column("customer"))
        bucket = numbers % np.uint64(buckets)
        for k in np.unique(bucket).tolist():
            yield give_answer(k, numbers[bucket == k].tobytes())


def find_repeats(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the numbers that come more than once in this task's buckets."""
    held = [np.frombuffer(data.as_buffer(), dtype=np.uint64) for batch in batches for data in batch.column("data")]
    numbers = np.sort(np.concatenate([np.zeros(0, np.uint64), *held]))
    twice = np.unique(numbers[1:][numbers[1:] == numbers[:-1]])
    if len(twice):
        yield give_answer(0, twice.tobytes())


def fetch_ids(numbers: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the ids that have one of these numbers."""
    from largesse.runs.hashing import hash_ids

    wanted = np.frombuffer(numbers, dtype=np.uint64)
    for block in read_blocks(batches):
        ids = block.data.select(["customer"])
        found = ids.filter(np.isin(hash_ids(ids.column("customer")), wanted))
        if found.num_rows:
            yield pack_block(block.place, block.part, {}, found)
