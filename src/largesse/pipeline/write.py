"""Plans written batch by batch: Parquet, CSV or Feather, each table all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from largesse.io import atomic_file
from largesse.pipeline.engine import Target

if TYPE_CHECKING:
    import pyarrow as pa

GROUP = 1 << 20  # rows of a group of a Parquet file
FORMULA_STARTS = "=+-@\t\r\n＝＋－＠"  # characters that a spreadsheet takes for the beginning of a formula


@dataclass(eq=False)
class Writer:
    """An open table: rows are put together up to the size of a group, then written."""

    sink: IO[bytes]
    ending: str
    escaped: bool
    waiting: list[pa.Table] = field(default_factory=list)
    rows: int = 0
    inner: Any = None

    def write(self, table: pa.Table) -> None:
        """Add rows."""
        self.waiting.append(escape_formulas(table) if self.escaped else table)
        self.rows += len(table)
        while self.rows >= GROUP:
            whole = self._join()
            self._flush(whole.slice(0, GROUP))
            rest = whole.slice(GROUP)
            self.waiting, self.rows = [rest], len(rest)

    def close(self) -> None:
        """Write what is left."""
        self._flush(self._join())
        self.inner.close()
        self.inner = None

    def release(self) -> None:
        """Let go of a table that could not be finished, while its file is still open."""
        if self.inner is not None:
            with suppress(Exception):
                self.inner.close()

    def _join(self) -> pa.Table:
        import pyarrow as pa

        return pa.concat_tables(self.waiting)

    def _flush(self, table: pa.Table) -> None:
        import pyarrow as pa
        import pyarrow.csv as csv
        import pyarrow.parquet as pq

        if self.inner is None:
            if self.ending == ".csv":
                self.inner = csv.CSVWriter(self.sink, table.schema)
            elif self.ending in (".feather", ".arrow"):
                packed = pa.ipc.IpcWriteOptions(compression="lz4")
                self.inner = pa.ipc.new_file(self.sink, table.schema, options=packed)
            else:
                # In a plan, levels and costs are few; a dictionary of ids or responses would be as long as they are.
                few = ["level", "level_number", "expected_cost"] if "level_number" in table.column_names else True
                self.inner = pq.ParquetWriter(self.sink, table.schema, use_dictionary=few)
        if self.ending in (".csv", ".feather", ".arrow"):
            self.inner.write_table(table, 1 << 16)
        else:
            self.inner.write_table(table, row_group_size=GROUP)


@contextmanager
def open_writer(target: Target) -> Iterator[Writer]:
    """Give a table to write, in the format that the ending of the path names; it is there when the block ends well."""
    # Arrow takes only names that are UTF-8; an open file has none.
    with atomic_file(target.path) as part, part.open("wb") as sink:
        writer = Writer(sink, target.path.suffix.lower(), target.escaped)
        try:
            yield writer
            writer.close()
        finally:
            writer.release()


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table, all of it or nothing, in the format that the ending of the path names."""
    with open_writer(Target(path)) as writer:
        writer.write(table)


def escape_formulas(table: pa.Table) -> pa.Table:
    """Return a table whose text never begins a formula: an apostrophe is put before it. Numbers stay as they are.

    >>> import pyarrow as pa
    >>> escape_formulas(pa.table({"id": ["=1+1", "a"], "n": [-5, 5]})).to_pylist()
    [{'id': "'=1+1", 'n': -5}, {'id': 'a', 'n': 5}]
    """
    import pyarrow as pa

    for place, column in enumerate(table.schema):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            table = table.set_column(place, column.name, _escape(table.column(place).cast(pa.large_string())))
    return table


def _escape(words: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    risky = pc.fill_null(
        pc.is_in(pc.utf8_slice_codeunits(words, 0, 1), pa.array(list(FORMULA_STARTS), words.type)), False
    )
    mark, nothing = pa.scalar("'", words.type), pa.scalar("", words.type)
    return pc.if_else(risky, pc.binary_join_element_wise(mark, words, nothing), words)
