"""Engine of a Spark cluster: the driver reads the log, the executors score the customers."""

from __future__ import annotations

import functools
import operator
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast, final

import numpy as np

from largesse.allocation import BatchPlan, PriceSums, allocate_batches
from largesse.campaign import Campaign, read_campaign
from largesse.data import (
    PLAIN_TEXT_ROLES,
    TableBatches,
    check_column_names,
    find_feature_kind,
    find_files,
    make_checked_customers,
    merge_schemas,
    read_piece,
    read_table,
    split_into_pieces,
)
from largesse.errors import InputError, Problem, fail, find_row_limit_problems, refuse, suggest
from largesse.evaluation import MAX_SUMMARY_ROWS, CustomerSample, PlanCounts, choose_explaining_features
from largesse.pipeline.commands import LOCAL_ENGINE, run, show_no_progress
from largesse.pipeline.customer_table_validation import check_memory, list_settings_needing_memory
from largesse.pipeline.engine_protocol import Engine, PlanOutputFile, PlanResult, ScoredCustomers
from largesse.pipeline.local_engine import LocalEngine, choose_sample_rows
from largesse.pipeline.spark.chunked_tables import (
    CHUNKS,
    RESULTS,
    ChunkedTable,
    cache_chunks,
    sum_arrays,
    unpack_arrays,
    unpack_table,
    unpack_table_after_arrays,
)
from largesse.pipeline.spark.executor_tasks import (
    ChunkCosts,
    CustomerTableSpec,
    PlanTask,
    check_customer_rows,
    draw_chunk_costs,
    find_common_costs,
    find_ids_by_hash,
    find_repeated_ids,
    pack_table_chunks,
    pack_task_result,
    plan_chunk,
    run_task_on_selected_rows,
    sample_chunk_customers,
    score_customer_rows,
    select_chunk_columns,
    split_id_hashes,
    sum_chunk_plans_at_prices,
    unpack_part_report,
    yield_chunk_plan,
)
from largesse.pipeline.spark.session import (
    explain_spark_failure,
    open_spark_session,
    read_first_error_line,
    suppress_version_warnings,
)
from largesse.pipeline.table_writer import open_writer
from largesse.policy import Policy
from largesse.progress import advance, report_to, start_stage
from largesse.records import Array, Customers, Log, Progress, RowTask, Scores
from largesse.response import ModelScorer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

ENGINES = ("local", "spark")
PREFIX = "table:"  # of the name of a Spark table in a campaign file
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
NAME = re.compile(r"[\w`]+(\.[\w`]+){0,2}")
TEXT_ENDINGS = (".csv", ".csv.gz", ".tsv", ".txt", ".arrow", ".feather", ".ipc")
DRIVER_ROWS = 500_000  # of a log that come to the driver as one table
BUCKET_IDS = 4_000_000  # ids that one task compares


# -- in one call ------------------------------------------------------------------------------------------------------


def run_on_spark(
    campaign: Campaign | str | Path,
    out: str | Path,
    *,
    log: Any = None,
    customers: Any = None,
    plan: str | None = None,
    session: Any = None,
    master: str | None = None,
    most_rows: int | str | None = None,
    progress: Progress = show_no_progress,
) -> dict[str, Any]:
    """Run a campaign on Spark into a run folder, and return the report's numbers.

    Parameters
    ----------
    campaign
        A campaign, or the path of a campaign file.
    out
        The run folder, on the driver.
    log, customers
        DataFrames, names of tables or paths, instead of those that the campaign names.
    plan
        A table (`table:shop.plan`) or an address (`s3a://shop/plan`) that executors write the plan to. By default the
        driver writes it to the run folder.
    session, master
        The session, or the master to start one with; by default the active session, else one on this machine.
    most_rows
        Models learn from a random sample of this many rows of a larger log, as `most_rows` under [data].
    """
    found = campaign if isinstance(campaign, Campaign) else read_campaign(campaign)
    if log is not None:
        found = replace(found, log=_name_source(log))
    if customers is not None:
        found = replace(found, customers=_name_source(customers))
    if most_rows is not None:
        refuse("log", find_row_limit_problems(most_rows, "most_rows"))
        found = replace(found, most_rows=most_rows)
    check_plan_target(plan)
    with (
        open_spark_session(session, master) as started,
        SparkEngine(started, log=log, customers=customers, plan=plan) as engine,
    ):
        return run(found, out, progress, engine=engine)


def _name_source(source: Any) -> str:
    return os.fspath(source) if isinstance(source, str | os.PathLike) else "table:a DataFrame"


@contextmanager
def open_engine(engine: str = "local", master: str | None = None, plan_to: str | None = None) -> Iterator[Engine]:
    """Yield the engine with the given name; a new Spark session ends with the context."""
    if engine not in ENGINES:
        fail("engine", Problem(f"there is no engine {engine!r}", suggest(engine, ENGINES)))
    if engine == "local":
        for option, value in (("--master", master), ("--plan-to", plan_to)):
            if value is not None:
                fail("engine", Problem(f"{option} {value} is given, but not --engine spark", "add --engine spark"))
        yield LOCAL_ENGINE
        return
    check_plan_target(plan_to)
    with open_spark_session(master=master) as session, SparkEngine(session, plan=plan_to) as made:
        yield made


def check_plan_target(target: str | None) -> None:
    """Raise an error if a plan's target is neither a table name nor an address."""
    if target is None or ADDRESS.match(target) or NAME.fullmatch(target.removeprefix(PREFIX)):
        return
    hint = "give a table (table:shop.plan) or an address (s3a://shop/plan.parquet, file:///data/plan.csv)"
    fail("output", Problem(f"{target!r} is neither a table of Spark nor an address", hint))


# -- sources ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SparkTable:
    """Table on Spark as a DataFrame or as parts of files."""

    frame: Any
    spec: CustomerTableSpec = field(default_factory=lambda: CustomerTableSpec(()))
    path: str = ""  # of the files, or their folder or glob


def is_spark_dataframe(source: Any) -> bool:
    """Return True for a Spark DataFrame, classic or Connect."""
    return hasattr(source, "mapInArrow") and hasattr(source, "sparkSession")


def find_spark_table(session: Any, source: Any, what: str) -> SparkTable:
    """Return the Spark table of a DataFrame, a table name, a path or an address."""
    if is_spark_dataframe(source):
        return SparkTable(source)
    if not isinstance(source, str | os.PathLike):
        hint = "give a Spark DataFrame, the name of a table, or a path"
        raise InputError(what, [Problem(f"not a table for Spark: got {type(source).__name__}", hint)])
    text = os.fspath(source)
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    if ADDRESS.match(text):
        return SparkTable(_read_address(session, text, what))
    if name := _find_table_name(session, text, what):
        return SparkTable(session.table(name))
    pieces = tuple(piece for file in find_files(text, what) for piece in split_into_pieces(file, what))
    # One task for each piece; the rows of this DataFrame are the numbers of pieces.
    return SparkTable(session.range(0, len(pieces), 1, len(pieces)), CustomerTableSpec((), pieces=pieces), text)


def _find_table_name(session: Any, text: str, what: str) -> str:
    """Return the table name in a text, or an empty text for the path of a file."""
    name = text.removeprefix(PREFIX)
    if name == text and (not NAME.fullmatch(text) or os.path.exists(text)):  # noqa: PTH110
        return ""
    with explain_spark_failure(f"looking for the table {name!r}"):
        known = bool(session.catalog.tableExists(name))
    if not known and name != text:
        raise InputError(what, [Problem(f"Spark knows no table {name!r}", "give its name as in catalog.schema.table")])
    return name if known else ""


def _read_address(session: Any, address: str, what: str) -> Any:
    if address.lower().endswith(TEXT_ENDINGS):
        hint = "give a DataFrame, or the name of a table: Spark's own options say how text is read"
        raise InputError(what, [Problem(f"{address} is not Parquet", hint)])
    try:
        return session.read.parquet(address)
    except Exception as error:
        hint = "can Spark reach it, and is it Parquet?"
        raise InputError(what, [Problem(f"{address} cannot be read: {read_first_error_line(error)}", hint)]) from error


def _list_text_columns(source: SparkTable) -> list[str]:
    """Return the names of a table's text columns."""
    if source.spec.pieces is None:
        kinds = ("string", "char", "varchar")
        return [field.name for field in source.frame.schema if field.dataType.typeName() in kinds]
    first = next(read_piece(source.spec.pieces[0], "customers"), None)
    return [] if first is None else [field.name for field in first.schema if find_feature_kind(field.type) == "text"]


# -- the engine -------------------------------------------------------------------------------------------------------


@final
class SparkEngine:
    """Engine on a Spark session (`Engine` protocol), used as a context.

    Parameters
    ----------
    session
        A session, classic or Connect.
    log, customers
        DataFrames, names of tables or paths that take the place of those that the campaign names.
    plan
        A table or an address that executors write plans to; by default the driver writes them to the run folder.
    """

    def __init__(
        self, session: SparkSession, *, log: Any = None, customers: Any = None, plan: str | None = None
    ) -> None:
        self.session, self.log, self.customers, self.plan = session, log, customers, plan
        self._local, self._stack = LocalEngine(), ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read_log(self, campaign: Campaign, source: Any = None) -> Log:
        """Read and check the campaign's log, or another source with the same columns.

        Files that the driver reaches are read as on one machine. The rest comes from Spark; of a large log, the executors keep
        the rows and score those outside the sample.
        """
        given = source if source is not None else self.log if self.log is not None else campaign.source
        if not (is_spark_dataframe(given) or isinstance(given, str | os.PathLike)):
            return self._local.read_log(campaign, given)
        table = find_spark_table(self.session, given, "log")
        if table.spec.pieces is not None:
            return self._local.read_log(campaign, table.path)
        features = campaign.roles.get("features")
        named = {*campaign.columns.values(), *(campaign.levels.cost_columns or ()), *(features or ())}
        named |= {*(campaign.roles.get("protected") or ())}
        plain = {campaign.columns[role] for role in PLAIN_TEXT_ROLES if role in campaign.columns} - {*(features or ())}
        return self._local.read_log(campaign, self._fetch_log(table.frame, None if features is None else named, plain))

    def _fetch_log(self, frame: Any, columns: set[str] | None, plain: set[str]) -> Any:
        """Return a log's rows as a table, or as batches on the executors if there are many rows."""
        check_column_names(frame.columns, 1, "log")
        if columns is not None:
            frame = frame.select(*(f"`{name}`" for name in frame.columns if name in columns))
        with explain_spark_failure("reading the log"):
            if frame.count() <= DRIVER_ROWS:
                return frame.toArrow()
            schema = read_table(frame.limit(0).toArrow(), what="log", plain=plain).schema
            packed = frame.mapInArrow(pack_table_chunks, CHUNKS)
        chunks = self._stack.enter_context(cache_chunks(packed, "reading the log"))

        def read(names: Sequence[str] | None) -> Iterator[pa.Table]:
            chosen = None if names is None else list(names)
            for content in chunks.map(partial(select_chunk_columns, chosen), "reading the log", "rest"):
                table = read_table(unpack_table(content), what="log", plain=plain)
                yield table if chosen is None else table.select(chosen)

        def run_there(task: RowTask, names: Sequence[str], wanted: Array) -> Iterator[Array]:
            job = partial(run_task_on_selected_rows, task, list(names), frozenset(plain), np.packbits(wanted))
            for content in chunks.map(job, "scoring the log", "rest"):
                yield unpack_arrays(content)["rows"]

        return TableBatches(schema, chunks.n, read, run_there)

    def open_customers(self, campaign: Campaign, source: Any, features: Mapping[str, str]) -> Any:
        """Find a customer table, whose rows the executors check during scoring.

        The driver reads the table where all customers are needed at once, and refuses one that does not fit into its memory.
        """
        table = find_spark_table(self.session, source if self.customers is None else self.customers, "customers")
        parse, costs = campaign.roles.get("parse") or {}, campaign.levels.cost_columns or ()
        numbers = [*(name for name, kind in features.items() if kind in ("number", "date")), *costs]
        written = [name for name in _list_text_columns(table) if name in numbers and name not in parse]
        reasons = list_settings_needing_memory(campaign.planning)
        if written:
            words = f"numbers that are written as text ({', '.join(map(repr, written))})"
            reasons.append(Problem(words, "say under [data] parse how these columns are written"))
        if reasons:
            with explain_spark_failure("reading customers"):
                check_memory(*_count_rows_and_columns(table), len(campaign.levels), reasons)
                given = table.path if table.spec.pieces is not None else table.frame.toArrow()
            return self._local.open_customers(campaign, given, features)
        customer = campaign.columns.get("customer")
        spec = CustomerTableSpec(tuple(features), customer, tuple(costs), tuple(parse.items()), table.spec.pieces)
        return replace(table, spec=spec)

    @contextmanager
    def score_customer_table(
        self, policy: Policy, customers: Any, near: Path, progress: Progress, log_scores: Scores | None = None
    ) -> Iterator[ScoredCustomers]:
        """Yield scored customers: on the executors, or on the driver if it has read them."""
        if not isinstance(customers, SparkTable):
            with self._local.score_customer_table(policy, customers, near, progress, log_scores) as scored:
                yield scored
            return
        with ExitStack() as stack:
            with report_to(progress):
                start_stage("scoring customers")
                chunks, ids = stack.enter_context(score_spark_table(customers, policy))
            costs = ChunkCosts(find_common_costs(policy.options), len(policy.levels))
            yield SparkCustomers(chunks, costs, customers.spec.features, ids, self.plan)


def _count_rows_and_columns(table: SparkTable) -> tuple[int, int]:
    """Count the rows and columns of a table; file parts with an unknown number of rows count as empty."""
    pieces = table.spec.pieces
    if pieces is None:
        return table.frame.count(), len(table.frame.columns)
    first = next(read_piece(pieces[0], "customers"), None)
    return sum(max(piece.rows, 0) for piece in pieces), 0 if first is None else first.num_columns


# -- scored customers -------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class SparkCustomers:
    """Scored customers in chunks on the executors (`ScoredCustomers` protocol)."""

    chunks: ChunkedTable
    costs: ChunkCosts
    features: tuple[str, ...]
    ids: pa.DataType | None  # None: customers are numbered by their rows
    target: str | None = None  # a table or an address that executors write plans to
    sample: tuple[tuple[Array, Array, Array], pa.Table] | None = None  # rows, curves and costs; and their features

    @property
    def n(self) -> int:
        """The number of customers."""
        return self.chunks.n

    def sum_plans_at_prices(self, prices: Sequence[float], /) -> PriceSums:
        """Return the total costs and responses of customers' plans at decreasing shadow prices."""
        if len(prices):
            sums = self.chunks.sum(
                partial(sum_chunk_plans_at_prices, tuple(prices), self.costs), "adding up costs", "scores"
            )
        else:
            sums = sum_arrays(map(unpack_arrays, self.chunks.heads))
        return PriceSums(int(sums.pop("n")), **sums)

    def allocate(self, budget: float | None = None, *, total: float | None = None, scale: float = 1.0) -> BatchPlan:
        """Return the best plan within an average or total budget, with all costs multiplied by `scale`."""
        costs = replace(self.costs, scale=scale)

        def ask(task: Any) -> Iterator[dict[str, Array]]:
            return map(
                unpack_arrays, self.chunks.map(partial(pack_task_result, task, costs), "searching the price", "scores")
            )

        return allocate_batches(ask, self.n, budget, total=total)

    def find_mean_cost_range(self, price: float, *, scale: float = 1.0) -> tuple[float, float]:
        """Return the average cost at a shadow price, with ties decided for the cheapest and for the dearest level.

        The same pass draws the sample of customers that `LocalEngine` draws, on which the features of the report are chosen.
        """
        import pyarrow as pa

        highest = (
            2**64 - 1 if self.n <= 2 * MAX_SUMMARY_ROWS else int(2**64 * (1.05 * MAX_SUMMARY_ROWS / self.n))
        )  # some more than needed
        task = partial(sample_chunk_customers, price, scale, highest, self.features, self.costs)
        contents = list(self.chunks.map(task, "splitting ties", "scores", "rest"))
        parts = [unpack_arrays(content) for content in contents]
        table = pa.concat_tables(map(unpack_table_after_arrays, contents)).unify_dictionaries().combine_chunks()
        rows, curves = (np.concatenate([part[name] for part in parts]) for name in ("rows", "curves"))
        paid = parts[0]["paid"] if self.costs.common is not None else np.concatenate([part["paid"] for part in parts])
        chosen = choose_sample_rows(rows, MAX_SUMMARY_ROWS)
        batch = rows[chosen], curves[chosen], paid[chosen] if len(paid) > 1 else paid
        self.sample = batch, table.take(chosen).select(list(self.features))
        low, high = np.sum([part["costs"] for part in parts], axis=0) / self.n
        return float(low), float(high)

    def draw_costs(self, plan: PlanResult, seeds: Sequence[int], /) -> Array:
        """Return total costs (m,) of a plan with random exploration, one for each random seed (m,)."""
        part = replace(plan, policy=cast(Policy, plan.policy.options))
        task = partial(draw_chunk_costs, part, tuple(seeds), self.costs)
        return self.chunks.sum(task, "drawing levels", "scores")["costs"]

    def collect(self) -> tuple[Customers, Array, Array]:
        """Raise an error, because the customers are on the executors and not in memory."""
        settings = "constraints, exact = true and exploration for a goal"
        got = f"{settings} need all customers on the driver; these {self.n:,} customers are on the executors"
        fail("customers", Problem(got, "open the customers with the campaign that has these settings"))

    def write_plan_tables(self, plan: PlanResult, targets: Sequence[PlanOutputFile], progress: Progress) -> PlanCounts:
        """Write a plan atomically in the customers' order, and return its counts for the report.

        The driver writes the files, from chunks that the executors made; a table or an address is written by the executors.
        """
        with report_to(progress), ExitStack() as stack:
            start_stage("writing the plan", self.n)
            part = cast(Policy, plan.policy.options)
            task = PlanTask(
                replace(plan, policy=part), self.costs, self.ids, choose_explaining_features(*self.sample_levels(plan))
            )
            writers = [stack.enter_context(open_writer(file)) for file in targets[self.target is not None :]]
            counts = list[PlanCounts]()
            for content in self.chunks.map(
                partial(plan_chunk, bool(writers), task), "writing the plan", "scores", "rest"
            ):
                counts = [
                    functools.reduce(operator.add, [*counts, PlanCounts(task.features, **unpack_arrays(content))])
                ]
                for writer in writers:
                    writer.write(unpack_table_after_arrays(content))
                advance(counts[0].n / self.n)
            if self.target is not None:
                targets[0].path.unlink(missing_ok=True)
                self._write_table(task, self.target)
        return counts[0]

    def draw_customer_sample(self) -> CustomerSample:
        """Return a random sample of customers with their features and curves."""
        (_, curves, _), features = self._draw_cached_sample(0.0)
        return CustomerSample(features, curves)

    def _draw_cached_sample(self, price: float) -> tuple[tuple[Array, Array, Array], pa.Table]:
        """Return the cached random sample of customers, drawn when costs at a shadow price are first summed."""
        if self.sample is None:
            self.find_mean_cost_range(price)
        assert self.sample is not None
        return self.sample

    def sample_levels(self, plan: PlanResult) -> tuple[pa.Table, Array]:
        """Return the features and planned levels (m,) of a random sample of customers."""
        batch, features = self._draw_cached_sample(plan.plan.price)
        return features, plan.decide(*batch)[0]

    def _write_table(self, task: PlanTask, target: str) -> None:
        """Write the plan to a table or an address by Spark's own writers."""
        import pyarrow as pa
        from pyspark.sql.pandas.types import from_arrow_schema

        rows, curves = np.zeros(0, dtype=np.int64), np.zeros((0, self.costs.levels))
        ids = pa.array([], pa.int64() if self.ids is None else self.ids)
        decided = (rows, rows.astype(np.float64) if task.plan.explore else None)
        schema = from_arrow_schema(task.plan.make_plan_table(ids, decided, curves, curves).schema)
        with explain_spark_failure(f"writing {target}"):
            writer = self.chunks.rows(partial(yield_chunk_plan, task), schema, "scores", "rest").write.mode("overwrite")
            if not ADDRESS.match(target):
                writer.saveAsTable(target.removeprefix(PREFIX))
            elif target.lower().endswith(".csv"):
                writer.csv(target, header=True)
            else:
                writer.parquet(target)


@contextmanager
def score_spark_table(source: SparkTable, policy: Policy) -> Iterator[tuple[ChunkedTable, pa.DataType | None]]:
    """Score the customers of a table on the executors, and return their chunks and the type of their ids."""
    import pyarrow as pa

    spec, levels = source.spec, policy.levels
    with suppress_version_warnings():
        frame = source.frame.mapInArrow(
            partial(score_customer_rows, ModelScorer(policy.model), policy.options, spec), CHUNKS
        )
    with cache_chunks(frame, "scoring customers") as chunks:
        reports = [unpack_part_report(content) for content in chunks.reports]
        schema = _merge_schemas(reports, source)
        if suspects := [rows for _, rows in reports if rows is not None]:
            check_customer_rows(
                _add_missing_columns(pa.concat_tables(suspects, promote_options="permissive"), schema), levels, spec
            )
        if wrong := [report["wrong"] for report, _ in reports if "wrong" in report]:
            subject, problems = wrong[0]
            raise InputError(subject, [Problem(*problem) for problem in problems])
        if not chunks.n:
            check_customer_rows(schema.empty_table(), levels, spec)
        known = spec.customer in schema.names
        if known:
            _refuse_repeated_ids(chunks, str(spec.customer))
        yield chunks, schema.field(spec.customer).type if known else None


def _merge_schemas(reports: Sequence[tuple[dict[str, Any], Any]], source: SparkTable) -> pa.Schema:
    """Return the common schema of a table's files, or raise an error if they differ."""
    import pyarrow as pa

    heads = [report for report, _ in reports]
    known = [pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(head["schema"]))) for head in heads if "schema" in head]
    if source.spec.pieces is None:
        with explain_spark_failure("reading columns"):
            return known[0] if known else source.frame.limit(0).toArrow().schema
    paths = [piece.path for piece, head in zip(source.spec.pieces, heads, strict=True) if "schema" in head]
    first = dict(zip(reversed(paths), reversed(known), strict=True))
    files = list(dict.fromkeys(paths))
    if not files:
        return pa.schema([])
    return merge_schemas([Path(path) for path in files], [first[path] for path in files], "customers")


def _add_missing_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with all columns of a schema, where missing columns are empty."""
    import pyarrow as pa

    known = {name: table.column(name) for name in table.column_names}
    return pa.table({f.name: known.get(f.name, pa.nulls(len(table), f.type)) for f in schema})


def _refuse_repeated_ids(chunks: ChunkedTable, customer: str) -> None:
    """Raise an error for customer ids that occur more than once."""
    import pyarrow as pa

    buckets, doing = max(chunks.n // BUCKET_IDS, 1), "comparing ids"
    with explain_spark_failure(doing):
        ids = chunks.frame.where("n > 0").select("place", "n", "rest")
        parted = ids.mapInArrow(partial(split_id_hashes, buckets), RESULTS).repartition(buckets, "place")
        met = parted.mapInArrow(find_repeated_ids, RESULTS).toArrow()
    if hashes := b"".join(met.column("content").to_pylist()):
        found = [unpack_table(content) for content in chunks.map(partial(find_ids_by_hash, hashes), doing, "rest")]
        ids = pa.concat_tables(found, promote_options="permissive")
        make_checked_customers(ids.rename_columns([customer]), customer=customer)
