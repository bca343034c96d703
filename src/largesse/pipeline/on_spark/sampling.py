"""A sample of customers, small enough for the driver: on it features are put into groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from largesse.data import as_plain, read_table
from largesse.evaluation import SAMPLE
from largesse.pipeline.on_spark.session import explain_failure
from largesse.pipeline.on_spark.spool import ask, give_answer
from largesse.pipeline.on_spark.tables import Table
from largesse.pipeline.on_spark.tasks import Wanted, list_places

if TYPE_CHECKING:
    import pyarrow as pa

PIECES = 16  # of files that a sample is taken from, evenly spread over the table


def sample_features(table: Table, wanted: Wanted) -> pa.Table:
    """Return the features of about `SAMPLE` customers, or of all if there are no more."""
    found = _sample_frame(table, wanted) if table.pieces is None else _sample_pieces(table, wanted)
    reading = read_table(found, what="customers", parse=dict(wanted.parse))
    return reading.select([name for name in wanted.features if name in reading.column_names])


def _sample_frame(table: Table, wanted: Wanted) -> pa.Table:
    """Return random rows of a DataFrame."""
    frame = table.frame.select(*(name for name in table.frame.columns if name in wanted.features))
    with explain_failure("sampling customers"):
        n = frame.count()
        return (frame if n <= SAMPLE else frame.sample(SAMPLE / n, seed=0)).toArrow()


def _sample_pieces(table: Table, wanted: Wanted) -> pa.Table:
    """Return the first rows of some pieces of files; if there are few rows, all of them."""
    import pyarrow as pa

    pieces = table.pieces or ()
    known = all(piece.rows >= 0 for piece in pieces)
    whole = sum(piece.rows for piece in pieces) <= SAMPLE if known else len(pieces) <= PIECES // 4
    step = 1 if whole else -(-len(pieces) // PIECES)
    chosen, most = pieces[::step], SAMPLE if whole else SAMPLE // min(PIECES, len(pieces))
    task = partial(give_first_rows, most, replace(wanted, pieces=chosen))
    found = ask(table.frame.sparkSession, len(chosen), len(chosen), task, "sampling customers")
    return pa.concat_tables([pa.ipc.open_stream(data).read_all() for data in found], promote_options="permissive")


def give_first_rows(most: int, wanted: Wanted, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the features of the first rows of this task's pieces, as plain columns."""
    import pyarrow as pa

    for place, tables in list_places(wanted, batches):
        rows, kept = 0, []
        for table in tables:
            named = table.select([name for name in wanted.features if name in table.column_names])
            kept.append(named.slice(0, most - rows))
            rows += len(kept[-1])
            if rows >= most:
                break
        whole = pa.concat_tables(kept)
        plain = pa.table({name: as_plain(whole.column(name)) for name in whole.column_names})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, plain.schema) as stream:
            stream.write_table(plain)
        yield give_answer(place, bytes(sink.getvalue()))
