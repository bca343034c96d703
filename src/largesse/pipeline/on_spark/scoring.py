"""Customers on Spark: scored where they are, checked by the rules of one machine, and asked by the planner."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import numpy as np

from largesse.allocation import Question, expected_costs, unpack_answer
from largesse.data import check_customers, merge_schemas
from largesse.errors import InputError, LargesseError, Problem
from largesse.evaluation import Shown, group_features, measure_separation
from largesse.io import scratch_folder
from largesse.pipeline.on_spark.sampling import sample_features
from largesse.pipeline.on_spark.session import explain_failure
from largesse.pipeline.on_spark.spool import ANSWER, Part, Spool, ask, in_order
from largesse.pipeline.on_spark.tables import Table
from largesse.pipeline.on_spark.tasks import (
    Costs,
    Wanted,
    answer_question,
    check_rows,
    fetch_ids,
    find_repeats,
    score_customers,
    seal_policy,
)
from largesse.policy import Policy
from largesse.records import Array, Customers
from largesse.response import expect_in_blocks

if TYPE_CHECKING:
    import pyarrow as pa

IDS = 4_000_000  # that are compared in one place
MOST_SHOWN = 64  # features whose groups are counted; of more, those that seem to matter most
Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class SparkScored:
    """Fulfils `ScoredCustomers` with a spool that executors read."""

    spool: Spool
    costs: Costs
    policy: bytes  # sealed
    ids: pa.DataType | None  # None: customers are numbered by their rows
    shown: tuple[Shown, ...]  # features whose groups the report may count

    @property
    def n(self) -> int:
        """How many customers there are."""
        return len(self.spool)

    def ask(self, question: Question[Answer], /) -> Answer:
        """Return the sum of the answers of all customers."""
        kind = get_type_hints(type(question).of)["return"]
        packed = self.spool.ask(answer_question, question, self.costs, doing="planning")
        answers = (unpack_answer(kind, answer) for answer in packed)
        total: Answer = functools.reduce(operator.add, answers)
        return total

    def scaled(self, scale: float) -> SparkScored:
        """Return the same customers with costs that are multiplied."""
        return replace(self, costs=replace(self.costs, scale=scale))

    def gather(self) -> tuple[Customers, Array, Array]:
        """Refuse: what needs all customers at once is planned by `Local`."""
        raise NotImplementedError("customers on Spark are never all in one place")


@contextmanager
def score_table(table: Table, policy: Policy, wanted: Wanted, near: Path) -> Iterator[SparkScored]:
    """Score the customers of a table on the executors; refuse what `Local` refuses, in the same words.

    What is expected of them is kept in a folder `near` another while the context lasts.
    """
    wanted = replace(wanted, pieces=table.pieces)
    wanted = replace(wanted, shown=_group_sample(table, policy, wanted))
    content = seal_policy(policy)
    with scratch_folder(near) as folder:
        task = partial(score_customers, content, wanted, str(folder))
        with explain_failure("scoring customers"):
            told = [json.loads(one) for one in in_order(table.frame.mapInArrow(task, ANSWER).toArrow())]
        schema = _merge(told, table)
        _refuse_rows(told, folder, policy, wanted, schema)
        spool = Spool(table.frame.sparkSession, str(folder), _number(told))
        there = wanted.customer in schema.names
        if there:
            _refuse_repeats(spool, str(wanted.customer))
        ids = schema.field(wanted.customer).type if there else None
        yield SparkScored(spool, Costs(_common_costs(policy)), content, ids, wanted.shown)


def _number(told: Sequence[dict[str, Any]]) -> tuple[Part, ...]:
    """Return the parts that hold rows, which are numbered one after the other."""
    parts, first = [], 0
    for one in told:
        if one["sizes"]:
            parts.append(Part(one["name"], first, tuple(one["sizes"])))
            first += sum(one["sizes"])
    return tuple(parts)


def _group_sample(table: Table, policy: Policy, wanted: Wanted) -> tuple[Shown, ...]:
    """Return features with their groups, found on a sample of the customers: those that the report may show."""
    try:
        features = sample_features(table, wanted)
    except LargesseError:  # scoring will say what is wrong with all rows
        return ()
    if not features.num_rows or features.num_columns < len(wanted.features):
        return ()
    found = group_features(features)
    if len(found) <= MOST_SHOWN:
        return found
    curves, _ = expect_in_blocks(policy.model, Customers(features), workers=1)
    gain = curves[:, -1] - curves[:, 0]
    tenth = np.searchsorted(np.quantile(gain, np.linspace(0, 1, 11)[1:-1]), gain)
    return tuple(sorted(found, key=lambda one: -_explains(one, features, tenth))[:MOST_SHOWN])


def _explains(one: Shown, features: pa.Table, tenth: Array) -> float:
    """Return how much a feature's groups explain of which tenth of the customers gains how much from all levels."""
    code, groups = one.grouping.code(features.column(one.feature)), len(one.grouping.labels)
    return measure_separation(np.bincount(code * 10 + tenth, minlength=10 * groups).reshape(groups, 10))


def _common_costs(policy: Policy) -> tuple[float, ...] | None:
    """Return what levels cost everybody; None where customers differ."""
    levels = policy.levels
    if levels.on_redemption or levels.observed or levels.cost_columns is not None:
        return None
    return tuple(expected_costs(levels, np.zeros((1, len(levels)))).tolist())


def _merge(told: Sequence[dict[str, Any]], table: Table) -> pa.Schema:
    """Return the schema of the whole table; refuse files that do not fit together."""
    import pyarrow as pa

    known = [pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(one["schema"]))) for one in told if "schema" in one]
    if table.pieces is None:
        with explain_failure("reading columns"):
            return known[0] if known else table.frame.limit(0).toArrow().schema
    paths = [piece.path for piece, one in zip(table.pieces, told, strict=True) if "schema" in one]
    first = dict(zip(reversed(paths), reversed(known), strict=True))
    files = list(dict.fromkeys(paths))
    return (
        merge_schemas([Path(path) for path in files], [first[path] for path in files], "customers")
        if files
        else pa.schema([])
    )


def _refuse_rows(
    told: Sequence[dict[str, Any]], folder: Path, policy: Policy, wanted: Wanted, schema: pa.Schema
) -> None:
    """Refuse a table that breaks a rule: the rows that may break one are looked at together, here."""
    import pyarrow as pa

    wrong = [one for one in told if "wrong" in one]
    if names := [one["odd"] for one in wrong if one["odd"]]:
        rows = pa.concat_tables(
            [pa.ipc.open_file(folder / name).read_all() for name in names], promote_options="permissive"
        )
        check_rows(_fill(rows, schema), policy, wanted)
    if wrong:
        subject, problems = wrong[0]["wrong"]
        raise InputError(subject, [Problem(*problem) for problem in problems])
    if not any(one["sizes"] for one in told):
        check_rows(schema.empty_table(), policy, wanted)


def _refuse_repeats(spool: Spool, customer: str) -> None:
    """Refuse ids that come more than once."""
    import pyarrow as pa

    buckets, doing = max(len(spool) // IDS, 1), "comparing ids"
    task = partial(find_repeats, buckets, (spool.folder, spool.parts))
    if numbers := b"".join(ask(spool.session, buckets, buckets, task, doing)):
        found = [pa.ipc.open_stream(data).read_all() for data in spool.ask(fetch_ids, numbers, doing=doing)]
        ids = pa.concat_tables(found, promote_options="permissive")
        check_customers(ids.rename_columns([customer]), customer=customer)


def _fill(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with all columns of a schema; those it does not have are empty."""
    import pyarrow as pa

    there = {name: table.column(name) for name in table.column_names}
    return pa.table({f.name: there.get(f.name, pa.nulls(len(table), f.type)) for f in schema})
