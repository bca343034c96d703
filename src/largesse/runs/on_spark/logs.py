"""Logs on Spark: all rows, or a stratified sample of them, brought to the driver, which fits and judges."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data import check_names
from largesse.records import Array
from largesse.runs.on_spark.session import explain_failure

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 5_000_000  # of a log that are brought to the driver by default
SPARE, SPARE_ROWS = 1.02, 100  # Spark draws about as many rows as asked for; what is drawn too many is dropped
MOST_LEVELS = 1000  # distinct values of a level column that a sample keeps apart


def fetch_log(frame: Any, level: str, columns: Collection[str] | None, rows: int, seed: int) -> tuple[pa.Table, str]:
    """Return the rows of a log, or `rows` of them drawn at random by level, and a note if not all are there."""
    _check_columns(frame)
    if columns is not None:
        frame = frame.select(*(name for name in frame.columns if name in columns))
    with explain_failure("counting the log"):
        n = int(frame.count())
    if n <= rows or level not in frame.columns:
        with explain_failure("reading the log"):
            return frame.toArrow(), ""
    with explain_failure("counting the log"):
        tally = frame.groupBy(level).count().limit(MOST_LEVELS).toArrow()
    values, counts = tally.column(level).to_pylist(), np.asarray(tally.column("count").to_numpy())
    table = _draw(frame, level, values, counts, rows, seed)
    return table, f"{len(table):,} of {n:,} rows are used: a random sample of every level"


def _check_columns(frame: Any) -> None:
    """Refuse a DataFrame with two columns of one name, or none."""
    import pyarrow as pa

    check_names(pa.Table.from_arrays([pa.nulls(1)] * len(frame.columns), names=list(frame.columns)), "log")


def _shares(counts: Array, rows: int) -> Array:
    """Return how many rows (m,) of each level make up a sample of `rows`, in proportion; every level has one."""
    exact = counts * (rows / counts.sum())
    found = np.maximum(np.floor(exact).astype(np.int64), 1)
    short = rows - int(found.sum())
    if short > 0:
        found[np.argsort(-(exact - found), kind="stable")[:short]] += 1
    least: Array = np.minimum(found, counts)
    return least


def _draw(frame: Any, level: str, values: list[Any], counts: Array, rows: int, seed: int) -> pa.Table:
    """Return rows drawn at random: of each value of the level column its share, exactly."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

    wanted = _shares(counts, rows)
    enough = np.minimum((SPARE * wanted + SPARE_ROWS) / counts, 1.0)
    share = F.lit(0.0)
    for value, part in zip(values, enough.tolist(), strict=True):
        share = F.when(F.col(f"`{level}`").eqNullSafe(F.lit(value)), F.lit(part)).otherwise(share)
    with explain_failure("drawing a sample of the log"):
        drawn = frame.where(F.rand(seed) < share).toArrow()
    rng, column, kept = np.random.default_rng(seed), drawn.column(level), []
    for value, count in zip(values, wanted.tolist(), strict=True):
        same = pc.is_null(column) if value is None else pc.equal(column, pa.scalar(value, column.type))
        found = np.flatnonzero(np.asarray(pc.fill_null(same, False)))
        kept.append(rng.permutation(found)[:count])
    return drawn.take(np.sort(np.concatenate(kept)))
