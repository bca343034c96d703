"""Atomic writers of tables in batches, as Parquet, CSV or Feather."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from largesse.io import atomic_file
from largesse.pipeline.engine_protocol import PlanOutputFile

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 1 << 20  # of a Parquet file
WRITE_BATCH_ROWS = 1 << 16  # of CSV and Feather
FORMULA_STARTS = "=+-@\t\r\n＝＋－＠"  # characters that a spreadsheet takes for the beginning of a formula


@dataclass(eq=False)
class TableWriter:
    """Writer of a table that buffers rows up to the size of a Parquet row group."""

    sink: IO[bytes]
    ending: str
    escaped: bool
    waiting: list[pa.Table] = field(default_factory=list)
    writer: Any = None  # of Arrow, once the schema is known

    def write(self, table: pa.Table) -> None:
        """Append rows to the table."""
        import pyarrow as pa

        self.waiting.append(escape_formulas(table) if self.escaped else table)
        while sum(map(len, self.waiting)) >= GROUP_ROWS:
            collected = pa.concat_tables(self.waiting)
            self._flush(collected.slice(0, GROUP_ROWS))
            self.waiting = [collected.slice(GROUP_ROWS)]

    def close(self) -> None:
        """Write the buffered rows."""
        import pyarrow as pa

        self._flush(pa.concat_tables(self.waiting))
        self.writer.close()

    def _flush(self, table: pa.Table) -> None:
        import pyarrow as pa
        import pyarrow.csv as csv
        import pyarrow.parquet as pq

        parquet = self.ending not in (".csv", ".feather", ".arrow")
        if self.writer is None and parquet:
            # In a plan, levels and costs are few; a dictionary of ids or responses would be as long as they are.
            few = ["level", "level_number", "expected_cost"] if "level_number" in table.column_names else True
            self.writer = pq.ParquetWriter(self.sink, table.schema, use_dictionary=few)
        elif self.writer is None and self.ending == ".csv":
            self.writer = csv.CSVWriter(self.sink, table.schema)
        elif self.writer is None:
            packed = pa.ipc.IpcWriteOptions(compression="lz4")
            self.writer = pa.ipc.new_file(self.sink, table.schema, options=packed)
        self.writer.write_table(table, GROUP_ROWS if parquet else WRITE_BATCH_ROWS)


@contextmanager
def open_writer(target: PlanOutputFile) -> Iterator[TableWriter]:
    """Yield a table writer in the format of the path's ending; the file appears when the block succeeds."""
    # Arrow takes only names that are UTF-8; an open file has none.
    with atomic_file(target.path) as part, part.open("wb") as sink:
        writer = TableWriter(sink, target.path.suffix.lower(), target.escaped)
        try:
            yield writer
            writer.close()
        except BaseException:
            with suppress(Exception):  # while the file is still open
                writer.writer.close()
            raise


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table atomically in the format of the path's ending."""
    with open_writer(PlanOutputFile(path)) as writer:
        writer.write(table)


def convert_plan_to_csv(plan: IO[bytes], sink: IO[bytes]) -> None:
    """Convert a Parquet plan to CSV for spreadsheets, with escaped formulas."""
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    with pq.ParquetFile(plan) as source:
        schema = escape_formulas(source.schema_arrow.empty_table()).schema
        with csv.CSVWriter(sink, schema) as writer:
            for batch in source.iter_batches(WRITE_BATCH_ROWS):
                writer.write_table(escape_formulas(pa.Table.from_batches([batch])))


def escape_formulas(table: pa.Table) -> pa.Table:
    """Return a table whose texts cannot be read as spreadsheet formulas.

    An apostrophe is put before them; numbers stay as they are.

    >>> import pyarrow as pa
    >>> escape_formulas(pa.table({"id": ["=1+1", "a"], "n": [-5, 5]})).to_pylist()
    [{'id': "'=1+1", 'n': -5}, {'id': 'a', 'n': 5}]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    starts, quote = pa.array(list(FORMULA_STARTS), pa.large_string()), pa.scalar("'", pa.large_string())
    for place, column in enumerate(table.schema):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            words = table.column(place).cast(pa.large_string())
            risky = pc.fill_null(pc.is_in(pc.utf8_slice_codeunits(words, 0, 1), starts), False)
            quoted = pc.binary_join_element_wise(quote, words, pa.scalar("", pa.large_string()))
            table = table.set_column(place, column.name, pc.if_else(risky, quoted, words))
    return table
