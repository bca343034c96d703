"""Logs that Spark holds, for the driver, which fits and judges: small ones as a table, large ones in files on the shared disk.

Executors write a large log to Parquet, one file for each partition. The driver then reads it in batches as it reads any log
that is larger than memory, with the same rules, the same sample and the same numbers.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from largesse.data import check_names
from largesse.errors import OutputError, Problem
from largesse.pipeline.on_spark.session import SHARE, explain_failure
from largesse.pipeline.on_spark.spool import ANSWER, give_answer, in_order
from largesse.pipeline.on_spark.tasks import find_partition

if TYPE_CHECKING:
    import pyarrow as pa

FEW_ROWS = 500_000  # that go to the driver as one table


def fetch_log(frame: Any, columns: Collection[str] | None, folder: Path) -> pa.Table | Path:
    """Return the rows of a log as a table or, if there are many, the folder that executors have written them to."""
    _check_columns(frame)
    if columns is not None:
        frame = frame.select(*(f"`{name}`" for name in frame.columns if name in columns))
    with explain_failure("reading the log"):
        if frame.count() <= FEW_ROWS:
            return frame.toArrow()
        told = [
            json.loads(one) for one in in_order(frame.mapInArrow(partial(stage_rows, str(folder)), ANSWER).toArrow())
        ]
    names = [one["name"] for one in told if one["rows"]]
    here = {path.name for path in folder.iterdir()}
    if missing := [name for name in names if name not in here]:
        got = f"{len(missing)} of {len(names)} parts of the log are not in {folder}"
        raise OutputError("output", [Problem(got, SHARE)])
    for name in here - set(names):
        (folder / name).unlink()  # of attempts that were given up
    return folder


def stage_rows(folder: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write this partition to a file of its own; give its name and its rows."""
    import pyarrow.parquet as pq

    place, rows, writer = find_partition(), 0, None
    name = f"part-{place:06d}-{uuid.uuid4().hex}.parquet"
    for batch in batches:
        if writer is None:
            writer = pq.ParquetWriter(Path(folder) / name, batch.schema)
        writer.write_batch(batch)
        rows += batch.num_rows
    if writer is not None:
        writer.close()
    yield give_answer(place, {"name": name, "rows": rows if writer is not None else 0})


def _check_columns(frame: Any) -> None:
    """Refuse a DataFrame with two columns of one name, or none."""
    import pyarrow as pa

    check_names(pa.Table.from_arrays([pa.nulls(1)] * len(frame.columns), names=list(frame.columns)), "log")
