"""Work of the executors: functions that get bytes, numbers and names, never objects of a user or a pickled model.

A worker reads the archive of the policy once and keeps it. What is wrong with rows goes to the driver as data, so that the
message is that of one machine.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.allocation import as_rows, check_task, expected_costs
from largesse.data import FilePiece, decode_dictionary, read_notation, read_piece, read_table
from largesse.errors import LargesseError, refuse
from largesse.pipeline.customers import check_table, find_suspects
from largesse.pipeline.spark.chunks import (
    CHUNK_ROWS,
    find_partition,
    list_chunks,
    make_chunk,
    make_result,
    pack_matrices,
    pack_table,
    unpack_table,
)
from largesse.policy import Policy
from largesse.records import Array, Customers
from largesse.response import predict_in_blocks
from largesse.stats import one_thread

if TYPE_CHECKING:
    import pyarrow as pa

FEATURE = "feature:"  # before the name of a feature in a chunk


@dataclass(frozen=True)
class TableSpec:
    """The way a table of customers is read: plain values only, since they travel to the executors."""

    features: tuple[str, ...]
    customer: str | None = None  # the column with their ids, if it exists
    costs: tuple[str, ...] = ()  # the columns with their own costs, if there are any
    parse: tuple[tuple[str, Any], ...] = ()  # column → how it is written
    pieces: tuple[FilePiece, ...] | None = None  # of files; None: rows come from Spark


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs of the levels: the same for everybody, or each customer's own."""

    common: tuple[float, ...] | None
    levels: int
    scale: float = 1.0

    def read(self, first: int, scores: pa.Buffer) -> tuple[Array, Array, Array]:
        """Return the row numbers (n,), curves (n, K) and cost rows (1, K) or (n, K) of a chunk."""
        numbers = np.frombuffer(scores, dtype=np.float64)
        curves, own = numbers.reshape(-1, self.levels), np.asarray([self.common])
        if self.common is None:
            curves, own = numbers.reshape(2, -1, self.levels)
        return np.arange(first, first + len(curves)), *as_rows(curves, own if self.scale == 1.0 else own * self.scale)


@lru_cache(maxsize=2)
def load_policy(content: bytes) -> Policy:
    """Return the policy of an archive; a worker reads it once."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.largesse"
        file.write_bytes(content)
        return Policy.load(file)


def archive_policy(policy: Policy) -> bytes:
    """Return the archive of a policy."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.largesse"
        policy.save(file)
        return file.read_bytes()


# -- reading and scoring ----------------------------------------------------------------------------------------------


def list_tables(spec: TableSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """Yield the parts that this task works on, each with its rows: those of a partition, or pieces of files."""
    plain, texts = [str(spec.customer)], [name for name, way in spec.parse if way == "text"]
    if spec.pieces is None:
        yield find_partition(), (read_table(batch, what="customers", plain=plain) for batch in batches)
        return
    for batch in batches:
        for part in batch.column(0).to_pylist():
            yield part, read_piece(spec.pieces[part], "customers", plain, texts)


def score_rows(archive: bytes, spec: TableSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Score the customers of this task, chunk by chunk; report for each part its schema and what is wrong with it."""
    policy = load_policy(archive)
    with one_thread():
        for part, tables in list_tables(spec, batches):
            report: dict[str, Any] = {}
            odd: list[pa.Table] = []
            chunk = 0
            while True:
                table = None
                try:
                    table = next(tables, None)
                    if table is None:
                        break
                    report.setdefault("schema", table.schema.serialize().to_pybytes().hex())
                    customers = check_rows(table, policy, spec) if table.num_rows else None
                    if customers is not None and "wrong" not in report:
                        for n, scores, rest in _score(policy, customers, spec.features):
                            yield make_chunk(part, chunk, n, scores, rest)
                            chunk += 1
                except LargesseError as error:
                    problems = [[problem.what, problem.hint] for problem in error.problems]
                    report.setdefault("wrong", [error.subject, problems])
                    odd += [] if table is None else [_find_suspects(table, spec)]
            yield make_chunk(part, chunk, -1, b"", _pack_report(report, odd))


def check_rows(table: pa.Table, policy: Policy, spec: TableSpec) -> Customers:
    """Return the customers of a table; refuse it as on one machine."""
    table, _, problems = read_notation(table, dict(spec.parse), None)
    refuse("customers", problems)
    return check_table(table, policy.levels, spec.customer, spec.features)


def _score(policy: Policy, customers: Customers, features: Sequence[str]) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield chunks of customers: how many, curves (n, K) and costs (n, K) if they differ in them, ids and features."""
    import pyarrow as pa

    curves, own = predict_in_blocks(policy.model, customers, workers=1)
    costs = expected_costs(policy.levels, curves, own)
    check_task(curves, costs)
    columns: dict[str, Any] = {} if customers.customer is None else {"customer": customers.customer}
    columns |= {FEATURE + name: customers.features.column(name) for name in features}
    rest = pa.table(columns) if columns else None
    for start in range(0, len(curves), CHUNK_ROWS):
        some = slice(start, start + CHUNK_ROWS)
        scores = pack_matrices(curves[some], *([costs[some]] if costs.ndim == 2 else []))
        others = b"" if rest is None else pack_table(rest.slice(start, CHUNK_ROWS))
        yield len(curves[some]), scores, others


def _find_suspects(table: pa.Table, spec: TableSpec) -> pa.Table:
    """Return the checked columns of the rows that may break a rule; other rows have no part in a message."""
    import pyarrow as pa

    checked = [name for name in (spec.customer, *spec.costs, *dict(spec.parse)) if name in table.column_names]
    kept = table.select(list(dict.fromkeys(checked)))
    if not spec.parse:
        kept = kept.filter(find_suspects(kept, spec.customer, spec.costs))
    return pa.table({name: decode_dictionary(kept.column(name)) for name in kept.column_names})


def _pack_report(report: dict[str, Any], odd: Sequence[pa.Table]) -> bytes:
    import pyarrow as pa

    head = json.dumps(report).encode()
    tables = [table for table in odd if table.num_rows]
    return head + b"\n" + (pack_table(pa.concat_tables(tables, promote_options="permissive")) if tables else b"")


def unpack_report(content: bytes) -> tuple[dict[str, Any], pa.Table | None]:
    """Return what a part reports: its schema and problems, and the rows that may break a rule."""
    head, _, rows = content.partition(b"\n")
    return json.loads(head), unpack_table(rows) if rows else None


# -- chunks -----------------------------------------------------------------------------------------------------------


def read_features(rest: pa.Buffer, names: Sequence[str]) -> pa.Table:
    """Return some features of a chunk."""
    table = unpack_table(rest, [FEATURE + name for name in names])
    return table.rename_columns([name.removeprefix(FEATURE) for name in table.column_names]).select(list(names))


def read_ids(rest: pa.Buffer) -> pa.Array:
    """Return the ids of a chunk."""
    return unpack_table(rest, ["customer"]).column("customer").combine_chunks()


def find_ids(hashes: bytes, first: int, rest: pa.Buffer) -> bytes:
    """Return the ids of a chunk that have one of these hashes."""
    import pyarrow as pa

    from largesse.pipeline.id_hashes import hash_ids

    del first
    ids = read_ids(rest)
    same = np.isin(hash_ids(ids), np.frombuffer(hashes, dtype=np.uint64))
    return pack_table(pa.table({"customer": ids.filter(pa.array(same))})) if same.any() else b""


def split_hashes(buckets: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sort the hashes of ids into buckets, so that equal ones meet in one task."""
    from largesse.pipeline.id_hashes import hash_ids

    ends = np.array([(2**64 * k) // buckets for k in range(1, buckets)], dtype=np.uint64)
    for _, _, (rest,) in list_chunks(batches):
        hashes = np.sort(hash_ids(read_ids(rest)))
        for bucket, part in enumerate(np.split(hashes, np.searchsorted(hashes, ends))):
            yield make_result(bucket, len(part), part.tobytes())


def find_repeats(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the hashes that come more than once among those of this task's buckets."""
    parts = [np.frombuffer(content, dtype=np.uint64) for _, _, (content,) in list_chunks(batches)]
    hashes = np.sort(np.concatenate([np.zeros(0, np.uint64), *parts]))
    repeated = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    if len(repeated):
        yield make_result(find_partition(), len(repeated), repeated.tobytes())
