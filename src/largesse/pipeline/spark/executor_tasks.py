"""Functions that run on Spark executors: score, count, sum and plan chunks of customers.

Invalid rows go to the driver as data, so that the message is that of one machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.allocation import (
    check_curves_and_costs,
    convert_to_kernel_arrays,
    decide_at_price,
    expected_costs,
    sum_plans_at_prices,
)
from largesse.data import FilePiece, decode_dictionary, parse_text_columns, read_piece, read_table
from largesse.errors import LargesseError, refuse
from largesse.evaluation import GroupedFeature, count_planned_levels, index_feature_groups
from largesse.levels import Levels
from largesse.pipeline.customer_table_validation import check_customer_table, find_suspicious_rows
from largesse.pipeline.engine_protocol import PlanResult
from largesse.pipeline.local_engine import hash_row_numbers
from largesse.pipeline.spark.chunked_tables import (
    MAX_CHUNK_ROWS,
    find_partition_number,
    make_bytes_row,
    make_chunk_row,
    pack_arrays,
    pack_table,
    unpack_table,
    yield_chunks,
)
from largesse.policy import AllowedLevels
from largesse.records import Array, Customers, RowTask
from largesse.response import ModelScorer
from largesse.stats import limit_to_one_thread

if TYPE_CHECKING:
    import pyarrow as pa

FEATURE = "feature:"  # before the name of a feature in a chunk


# -- logs -------------------------------------------------------------------------------------------------------------


def pack_table_chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition as packed chunks."""
    import pyarrow as pa

    part = find_partition_number()
    for chunk, batch in enumerate(batch for batch in batches if batch.num_rows):
        yield make_chunk_row(part, chunk, batch.num_rows, b"", rest=pack_table(pa.Table.from_batches([batch])))


def select_chunk_columns(names: Sequence[str] | None, _first: int, rest: pa.Buffer) -> bytes:
    """Return some columns of a chunk as packed bytes."""
    return rest.to_pybytes() if names is None else pack_table(unpack_table(rest, names))


def run_task_on_selected_rows(
    task: RowTask, names: Sequence[str], plain: frozenset[str], wanted: Array, first: int, rest: pa.Buffer
) -> bytes:
    """Return a task's result for the selected rows of a chunk.

    `wanted` has one bit for each row of the table.
    """
    table = read_table(unpack_table(rest, names), what="log", plain=plain).select(names)
    here = np.unpackbits(wanted[first // 8 : (first + len(table) + 7) // 8])[first % 8 :][: len(table)].astype(bool)
    with limit_to_one_thread():
        return pack_arrays({"rows": task(table.filter(here))}) if here.any() else b""


# -- reading and scoring customers ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CustomerTableSpec:
    """Columns and formats of a customer table on Spark."""

    features: tuple[str, ...]
    customer: str | None = None  # the column with their ids, if it exists
    costs: tuple[str, ...] = ()  # the columns with their own costs, if there are any
    parse: tuple[tuple[str, Any], ...] = ()  # column → how it is written
    pieces: tuple[FilePiece, ...] | None = None  # of files; None: rows come from Spark


def score_customer_rows(
    scorer: ModelScorer, options: AllowedLevels, spec: CustomerTableSpec, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield scored batches of a partition's customers, with a report of the table's schema and invalid rows."""
    with limit_to_one_thread():
        for part, tables in yield_table_parts(spec, batches):
            report: dict[str, Any] = {}
            suspects: list[pa.Table] = []
            chunk = 0
            while True:
                table = None
                try:
                    table = next(tables, None)
                    if table is None:
                        break
                    report.setdefault("schema", table.schema.serialize().to_pybytes().hex())
                    customers = check_customer_rows(table, options.levels, spec) if table.num_rows else None
                    if customers is not None and "wrong" not in report:
                        for n, *contents in _score_customer_chunks(scorer, options, customers, spec.features):
                            yield make_chunk_row(part, chunk, n, *contents)
                            chunk += 1
                except LargesseError as error:
                    problems = [[problem.what, problem.hint] for problem in error.problems]
                    report.setdefault("wrong", [error.subject, problems])
                    suspects += [] if table is None else [_select_suspicious_rows(table, spec)]
            yield make_chunk_row(part, chunk, -1, _pack_report(report, suspects))


def yield_table_parts(
    spec: CustomerTableSpec, batches: Iterator[pa.RecordBatch]
) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """Yield the part number and the row batches of each table part in a Spark task.

    A part is a partition, a file, or some row groups of a Parquet file.
    """
    plain, texts = [str(spec.customer)], [name for name, way in spec.parse if way == "text"]
    if spec.pieces is None:
        yield find_partition_number(), (read_table(batch, what="customers", plain=plain) for batch in batches)
        return
    for batch in batches:
        for part in batch.column(0).to_pylist():
            yield part, read_piece(spec.pieces[part], "customers", plain, texts)


def check_customer_rows(table: pa.Table, levels: Levels, spec: CustomerTableSpec) -> Customers:
    """Return the customers of a table after the checks of the local engine."""
    table, _, problems = parse_text_columns(table, dict(spec.parse), None)
    refuse("customers", problems)
    return check_customer_table(table, levels, spec.customer, spec.features)


def _score_customer_chunks(
    scorer: ModelScorer, options: AllowedLevels, customers: Customers, features: Sequence[str]
) -> Iterator[tuple[int, bytes, bytes, bytes]]:
    """Yield chunks of scored customers: row count, sums by level, response curves with costs, ids with features."""
    import pyarrow as pa

    K = len(options.levels)
    scored = scorer(customers.features)
    curves, paid = scored[:, :K], scored[:, K:] if scored.shape[1] > K else customers.costs
    curves, costs = check_curves_and_costs(
        *options.expect_outcomes(curves, paid, options.mark_allowed(customers.features))
    )
    columns: dict[str, Any] = {} if customers.customer is None else {"customer": customers.customer}
    columns |= {FEATURE + name: customers.features.column(name) for name in features}
    rest = pa.table(columns) if columns else None
    for start in range(0, len(curves), MAX_CHUNK_ROWS):
        part = curves[start : start + MAX_CHUNK_ROWS]
        own = costs if len(costs) == 1 else costs[start : start + MAX_CHUNK_ROWS]
        tables = [part] if find_common_costs(options) is not None else [part, own]
        scores = b"".join(np.ascontiguousarray(table, dtype=np.float64).tobytes() for table in tables)
        others = b"" if rest is None else pack_table(rest.slice(start, MAX_CHUNK_ROWS))
        yield len(part), pack_arrays(vars(sum_plans_at_prices(part, own, ()))), scores, others


def find_common_costs(options: AllowedLevels) -> tuple[float, ...] | None:
    """Return the costs of the levels if all customers have the same costs, else None."""
    levels = options.levels
    if levels.on_redemption or levels.observed or levels.cost_columns is not None or options.cells:
        return None
    return tuple(expected_costs(levels, np.zeros((1, len(levels)))).tolist())


def _select_suspicious_rows(table: pa.Table, spec: CustomerTableSpec) -> pa.Table:
    """Return the rows that may be invalid, with only the checked columns."""
    import pyarrow as pa

    checked = [name for name in (spec.customer, *spec.costs, *dict(spec.parse)) if name in table.column_names]
    kept = table.select(list(dict.fromkeys(checked)))
    if not spec.parse:
        kept = kept.filter(find_suspicious_rows(kept, spec.customer, spec.costs))
    return pa.table({name: decode_dictionary(kept.column(name)) for name in kept.column_names})


def _pack_report(report: dict[str, Any], suspects: Sequence[pa.Table]) -> bytes:
    import pyarrow as pa

    tables = [table for table in suspects if table.num_rows]
    rows = pack_table(pa.concat_tables(tables, promote_options="permissive")) if tables else b""
    return json.dumps(report).encode() + b"\n" + rows


def unpack_part_report(content: bytes) -> tuple[dict[str, Any], pa.Table | None]:
    """Unpack the report of a table part: schema, problems and suspicious rows."""
    head, _, rows = content.partition(b"\n")
    return json.loads(head), unpack_table(rows) if rows else None


# -- ids --------------------------------------------------------------------------------------------------------------


def read_chunk_ids(rest: pa.Buffer) -> pa.Array:
    """Return the customer ids of a chunk."""
    return unpack_table(rest, ["customer"]).column("customer").combine_chunks()


def split_id_hashes(buckets: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Distribute the hashes of ids into buckets so that equal hashes share a task."""
    from largesse.pipeline.id_hashes import hash_ids

    ends = np.array([(2**64 * k) // buckets for k in range(1, buckets)], dtype=np.uint64)
    for _, _, (rest,) in yield_chunks(batches):
        hashes = np.sort(hash_ids(read_chunk_ids(rest)))
        for bucket, part in enumerate(np.split(hashes, np.searchsorted(hashes, ends))):
            yield make_bytes_row(bucket, len(part), content=part.tobytes())


def find_repeated_ids(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the id hashes that occur more than once in a task's buckets."""
    parts = [np.frombuffer(content, dtype=np.uint64) for _, _, (content,) in yield_chunks(batches)]
    hashes = np.sort(np.concatenate([np.zeros(0, np.uint64), *parts]))
    repeated = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    if len(repeated):
        yield make_bytes_row(find_partition_number(), len(repeated), content=repeated.tobytes())


def find_ids_by_hash(hashes: bytes, _first: int, rest: pa.Buffer) -> bytes:
    """Return the ids of a chunk whose hashes are among the given hashes."""
    import pyarrow as pa

    from largesse.pipeline.id_hashes import hash_ids

    ids = read_chunk_ids(rest)
    same = np.isin(hash_ids(ids), np.frombuffer(hashes, dtype=np.uint64))
    return pack_table(pa.table({"customer": ids.filter(pa.array(same))})) if same.any() else b""


# -- sums -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ChunkCosts:
    """Costs of the levels in a chunk of customers: common to all customers, or separate for each customer."""

    common: tuple[float, ...] | None
    levels: int
    scale: float = 1.0

    def read(self, first: int, scores: pa.Buffer) -> tuple[Array, Array, Array]:
        """Return a chunk's row numbers (n,), curves (n, K) and costs (1, K) or (n, K)."""
        numbers = np.frombuffer(scores, dtype=np.float64)
        curves, own = numbers.reshape(-1, self.levels), np.asarray([self.common])
        if self.common is None:
            curves, own = numbers.reshape(2, -1, self.levels)
        return np.arange(first, first + len(curves)), *convert_to_kernel_arrays(
            curves, own if self.scale == 1.0 else own * self.scale
        )


def pack_task_result(task: Any, costs: ChunkCosts, first: int, scores: pa.Buffer) -> bytes:
    """Return an allocation task's result for a chunk of customers as packed arrays."""
    return pack_arrays(task(*costs.read(first, scores)))


def sum_chunk_plans_at_prices(
    prices: Sequence[float], costs: ChunkCosts, first: int, scores: pa.Buffer
) -> dict[str, Any]:
    """Return the total costs and responses of a chunk's customers at several shadow prices, as `PriceSums` fields."""
    return vars(sum_plans_at_prices(*costs.read(first, scores)[1:], prices))


def draw_chunk_costs(
    plan: PlanResult, seeds: Sequence[int], costs: ChunkCosts, first: int, scores: pa.Buffer
) -> dict[str, Array]:
    """Return total costs (m,) of a chunk's customers under random exploration, one for each random seed (m,)."""
    return {"costs": plan.draw_costs(costs.read(first, scores), seeds)}


def sample_chunk_customers(
    price: float,
    scale: float,
    highest: int,
    features: Sequence[str],
    costs: ChunkCosts,
    first: int,
    scores: pa.Buffer,
    rest: pa.Buffer,
) -> bytes:
    """Return the total cost of a chunk's customers at a shadow price, and a random sample of these customers.

    Of equally good levels the cheapest are taken, or the dearest.
    """
    rows, curves, paid = costs.read(first, scores)
    scaled = paid if scale == 1.0 else paid * scale
    wide, place = np.broadcast_to(scaled, curves.shape), np.arange(len(rows))
    ends = [decide_at_price(curves, scaled, price, dearest=dearest) for dearest in (False, True)]
    chosen = np.flatnonzero(hash_row_numbers(rows) <= np.uint64(highest))
    sums = {"costs": np.array([wide[place, levels].sum() for levels in ends])}
    sample = {"rows": rows[chosen], "curves": curves[chosen], "paid": paid[chosen] if len(paid) > 1 else paid}
    return pack_arrays(sums | sample, read_chunk_features(rest, features, rows).take(chosen))


# -- plans ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PlanTask:
    """Plan that executors apply to chunks of customers."""

    plan: PlanResult  # whose policy is `AllowedLevels`: tables of a plan need no more
    costs: ChunkCosts
    ids: pa.DataType | None  # None: customers are numbered by their rows
    features: tuple[GroupedFeature, ...] = ()  # whose groups are counted

    def read_customer_ids(self, rows: Array, rest: pa.Buffer) -> pa.Array:
        """Return the customer ids of a chunk's rows, which are row numbers for a table without ids."""
        import pyarrow as pa

        return pa.array(rows) if self.ids is None else read_chunk_ids(rest).cast(self.ids)


def plan_chunk(wanted: bool, task: PlanTask, first: int, scores: pa.Buffer, rest: pa.Buffer) -> bytes:
    """Return a chunk's plan counts and, if `wanted`, the plan of its customers."""
    plan, batch = task.plan, task.costs.read(first, scores)
    rows, curves, expected = batch
    decided = plan.decide(*batch)
    groups = index_feature_groups(
        task.features, read_chunk_features(rest, [grouped.feature for grouped in task.features], rows)
    )
    paid = expected if plan.ratio == 1.0 else expected * plan.ratio
    counts = count_planned_levels(
        task.features, groups, decided[0], (rows, curves, paid), plan.count_levels_at_other_budgets(batch, *groups)
    )
    table = plan.make_plan_table(task.read_customer_ids(rows, rest), decided, curves, expected) if wanted else None
    return pack_arrays({name: values for name, values in vars(counts).items() if name != "features"}, table)


def yield_chunk_plan(task: PlanTask, first: int, scores: pa.Buffer, rest: pa.Buffer) -> Iterator[pa.RecordBatch]:
    """Yield the plan of a chunk's customers as record batches."""
    batch = task.costs.read(first, scores)
    ids = task.read_customer_ids(batch[0], rest)
    yield from task.plan.make_plan_table(ids, task.plan.decide(*batch), *batch[1:]).to_batches()


def read_chunk_features(rest: pa.Buffer, names: Sequence[str], rows: Array) -> pa.Table:
    """Return some features of a chunk's customers as a table."""
    import pyarrow as pa

    if not names:
        return pa.table({"row": rows})
    table = unpack_table(rest, [FEATURE + name for name in names])
    return table.rename_columns([name.removeprefix(FEATURE) for name in table.column_names]).select(list(names))
