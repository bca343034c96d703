"""Customers on Spark: scored where they are, checked by the rules of one machine, and asked by the planner."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, get_type_hints

import numpy as np

from largesse.allocation import Question, expected_costs, unpack_answer
from largesse.data import check_customers, merge_schemas
from largesse.errors import InputError, LargesseError, Problem
from largesse.policy import Policy
from largesse.records import Array, Customers
from largesse.report import Shown, group_features, measure_explained
from largesse.response import expect_in_blocks
from largesse.runs.on_spark.blocks import ANSWER, Blocks, make_blocks
from largesse.runs.on_spark.sampling import sample_features
from largesse.runs.on_spark.session import explain_failure
from largesse.runs.on_spark.tables import Table
from largesse.runs.on_spark.tasks import (
    Place,
    Wanted,
    answer_question,
    check_rows,
    fetch_blocks,
    fetch_ids,
    find_repeats,
    score_customers,
    seal_policy,
    spread_ids,
)

if TYPE_CHECKING:
    import pyarrow as pa

IDS = 4_000_000  # that are compared in one place
MOST_SHOWN = 64  # features whose groups are counted; of more, those that seem to matter most
Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class SparkScored:
    """Fulfils `ScoredCustomers` with blocks on executors."""

    blocks: Blocks
    place: Place
    policy: bytes  # sealed
    ids: pa.DataType | None  # None: customers are numbered by their rows
    shown: tuple[Shown, ...]  # features whose groups the report may count

    @property
    def n(self) -> int:
        """How many customers there are."""
        return len(self.blocks)

    def ask(self, question: Question[Answer], /) -> Answer:
        """Return the sum of the answers of all blocks."""
        kind = get_type_hints(type(question).of)["return"]
        packed = self.blocks.ask(answer_question, question, self.place, doing="planning")
        answers = (unpack_answer(kind, answer) for answer in packed)
        total: Answer = functools.reduce(operator.add, answers)
        return total

    def scaled(self, scale: float) -> SparkScored:
        """Return the same customers with costs that are multiplied."""
        return replace(self, place=replace(self.place, scale=scale))

    def gather(self) -> tuple[Customers, Array, Array]:
        """Refuse: what needs all customers at once is planned by `Local`."""
        raise NotImplementedError("customers on Spark are never all in one place")


@contextmanager
def score_table(table: Table, policy: Policy, wanted: Wanted) -> Iterator[SparkScored]:
    """Score the customers of a table on the executors; refuse what `Local` refuses, in the same words.

    Scores are kept on the executors' disks while the context lasts.
    """
    wanted = replace(wanted, pieces=table.pieces)
    wanted = replace(wanted, shown=_group_sample(table, policy, wanted))
    content = seal_policy(policy)
    with make_blocks(table.frame, score_customers, content, wanted, doing="scoring customers") as blocks:
        schema = _merge(blocks, table)
        _refuse_rows(blocks, policy, wanted, schema)
        there = wanted.customer in schema.names
        if there:
            _refuse_repeats(blocks, str(wanted.customer))
        ids = schema.field(wanted.customer).type if there else None
        yield SparkScored(blocks, Place(blocks.offsets, _common_costs(policy)), content, ids, wanted.shown)


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
    return measure_explained(np.bincount(code * 10 + tenth, minlength=10 * groups).reshape(groups, 10))


def _common_costs(policy: Policy) -> tuple[float, ...] | None:
    """Return what levels cost everybody; None where customers differ."""
    levels = policy.levels
    if levels.on_redemption or levels.observed or levels.cost_columns is not None:
        return None
    return tuple(expected_costs(levels, np.zeros((1, len(levels)))).tolist())


def _merge(blocks: Blocks, table: Table) -> pa.Schema:
    """Return the schema of the whole table; refuse files that do not fit together."""
    import pyarrow as pa

    known = {
        note.place: pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(note.said["schema"])))
        for note in blocks.notes
        if "schema" in note.said
    }
    if table.pieces is not None:
        first = {table.pieces[place].path: schema for place, schema in sorted(known.items(), reverse=True)}
        files = [Path(path) for path in dict.fromkeys(piece.path for piece in table.pieces) if path in first]
        return merge_schemas(files, [first[str(file)] for file in files], "customers") if files else pa.schema([])
    with explain_failure("reading columns"):
        return known[min(known)] if known else table.frame.limit(0).toArrow().schema


def _refuse_rows(blocks: Blocks, policy: Policy, wanted: Wanted, schema: pa.Schema) -> None:
    """Refuse a table that breaks a rule: the rows that may break one are looked at together, here."""
    wrong = [note for note in blocks.notes if "wrong" in note.said]
    if suspects := [(note.place, note.part) for note in wrong if note.rows]:
        rows = blocks.gather(fetch_blocks, suspects, doing="checking customers")
        check_rows(_fill(rows, schema), policy, wanted)
    if wrong:
        subject, problems = wrong[0].said["wrong"]
        raise InputError(subject, [Problem(*problem) for problem in problems])
    if not len(blocks):
        check_rows(schema.empty_table(), policy, wanted)


def _refuse_repeats(blocks: Blocks, customer: str) -> None:
    """Refuse ids that come more than once."""
    buckets = max(len(blocks) // IDS, 1)
    with explain_failure("comparing ids"):
        spread = blocks.frame.select("place", "part", "data").mapInArrow(partial(spread_ids, buckets), ANSWER)
        met = spread.repartition(buckets, "place").mapInArrow(find_repeats, ANSWER).toArrow()
    if numbers := b"".join(met.column("data").to_pylist()):
        ids = blocks.gather(fetch_ids, numbers, doing="comparing ids")
        check_customers(ids.rename_columns([customer]), customer=customer)


def _fill(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with all columns of a schema; those it does not have are empty."""
    import pyarrow as pa

    there = {name: table.column(name) for name in table.column_names}
    return pa.table({f.name: there.get(f.name, pa.nulls(len(table), f.type)) for f in schema})
