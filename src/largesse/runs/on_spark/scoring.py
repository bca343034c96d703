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
from largesse.errors import InputError, Problem
from largesse.policy import Policy
from largesse.runs.on_spark.blocks import ANSWER, Blocks, make_blocks
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
Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class SparkScored:
    """Fulfils `Scored` with blocks on executors."""

    blocks: Blocks
    place: Place
    schema: pa.Schema  # of the table that was read

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


@contextmanager
def score_table(table: Table, policy: Policy, wanted: Wanted) -> Iterator[SparkScored]:
    """Score the customers of a table on the executors; refuse what `Local` refuses, in the same words.

    Scores are kept on the executors' disks while the context lasts.
    """
    wanted = replace(wanted, pieces=table.pieces)
    told = (seal_policy(policy), wanted)
    with make_blocks(table.frame, score_customers, *told, doing="scoring customers") as blocks:
        schema = _merge(blocks, table)
        _refuse_rows(blocks, policy, wanted, schema)
        if wanted.customer in schema.names:
            _refuse_repeats(blocks, str(wanted.customer))
        yield SparkScored(blocks, Place(blocks.offsets, _common_costs(policy)), schema)


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
