"""Reading of tables in batches of rows, for tables larger than memory.

Columns, types and the number of rows are known before the first batch: from the metadata of Parquet, and for CSV from a first pass
that settles the types (see `csv_reader`). Arrow files are read whole, one by one. Every pass gives the same rows in the same
order; a file that changes between two passes is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from largesse.data.csv_reader import DelimitedSource, infer_column_types, iterate_text_blocks
from largesse.data.table_reader import (
    STREAMED_KINDS,
    check_input_file,
    convert_to_arrow_table,
    detect_csv_format,
    detect_file_kind,
    dictionary_encode_text,
    find_files,
    has_gzip_ending,
    inspect_parquet,
    list_dictionary_columns,
    merge_schemas,
    open_for_arrow,
    read_file,
    read_source,
    validate_table,
    wrap_read_error,
)
from largesse.errors import Problem, fail
from largesse.records import Array, RowTask

if TYPE_CHECKING:
    import pyarrow as pa

READ_BATCH_ROWS = 65_536
MAX_GZIP_RATIO = 20  # compression of most tables
MAX_ARROW_CELLS = 8  # values per byte of an Arrow file
MAX_PIECE_ROWS = 500_000


@dataclass(frozen=True, eq=False)
class TableBatches:
    """Table whose rows are read in batches.

    Text is dictionary-encoded as in `read_table`.
    """

    schema: pa.Schema
    rows: int
    passes: Callable[[Sequence[str] | None], Iterator[pa.Table]]  # batches of the named columns, or of all columns
    mapper: Callable[[RowTask, Sequence[str], Array], Iterator[Array]] | None = (
        None  # implementation of `map` on other machines
    )

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield all rows in batches; `columns` selects columns."""
        return self.passes(columns)

    def map(self, task: RowTask, columns: Sequence[str], wanted: Array) -> Iterator[Array]:
        """Apply a task to the selected rows batch by batch, and yield the results.

        Results are in the order of the rows, and computed where the rows are.
        """
        if self.mapper is not None:
            yield from self.mapper(task, columns, wanted)
            return
        start = 0
        for batch in self.read(columns):
            here = wanted[start : start + len(batch)]
            start += len(batch)
            if here.any():
                yield task(batch if here.all() else batch.filter(here))

    def read_all(self) -> pa.Table:
        """Read all batches into one table."""
        import pyarrow as pa

        return pa.concat_tables(self.read(), promote_options="permissive").unify_dictionaries()


def open_batches(
    source: Any, *, what: str = "table", plain: Collection[str] = (), texts: Collection[str] = ()
) -> TableBatches:
    """Open a file, a folder, a glob or a table in memory for reading in batches.

    The columns `plain` stay plain text; `texts` of a CSV are text, even where they hold digits; `what` names the table in errors.

    >>> batches = open_batches({"age": [31, 44], "city": ["Oslo", "Rome"]})
    >>> batches.rows, batches.schema.names, [len(batch) for batch in batches.read(["age"])]
    (2, ['age', 'city'], [2])
    """
    if isinstance(source, TableBatches):
        return source
    if not isinstance(source, str | os.PathLike):
        table = read_source(source, what, plain, texts)
        return TableBatches(table.schema, table.num_rows, partial(_slice_table, table))
    parts = [_inspect_file(file, what, plain, texts) for file in find_files(source, what)]
    schemas = [dictionary_encode_text(part.schema.empty_table(), plain).schema for part in parts]
    schema = schemas[0] if len(parts) == 1 else merge_schemas([part.file for part in parts], schemas, what)
    rows = sum(part.rows for part in parts)
    return TableBatches(schema, rows, partial(_read_all_files, parts, schema, what, plain))


def bound_value_and_row_counts(source: Any, what: str = "table") -> tuple[float, float]:
    """Return upper bounds of a table's numbers of values and rows, without reading the table."""
    if isinstance(source, TableBatches):
        return source.rows * len(source.schema), source.rows
    if not isinstance(source, str | os.PathLike):
        table = convert_to_arrow_table(source, what)
        return table.num_rows * table.num_columns, table.num_rows
    bounds = [_bound_file_values(file, what) for file in find_files(source, what)]
    return sum(cells for cells, _ in bounds), sum(cells / max(columns, 1) for cells, columns in bounds)


def _bound_file_values(file: Path, what: str) -> tuple[float, int]:
    with wrap_read_error(file, what):
        check_input_file(file, what)
        kind, size = detect_file_kind(file, what), file.stat().st_size
        if kind == "parquet":
            schema, rows, _ = inspect_parquet(file)
            return rows * len(schema), len(schema)
        if kind not in STREAMED_KINDS:
            ratio = MAX_GZIP_RATIO if kind in ("zip", "excel", "spss", "json") else MAX_ARROW_CELLS
            return ratio * size, 1
        # A field takes a byte at least: its separator.
        return size * (MAX_GZIP_RATIO if has_gzip_ending(file) else 1), detect_csv_format(file, ()).columns


@dataclass(frozen=True, eq=False)
class _InspectedFile:
    """File of a table, with its schema, number of rows, size and modification time."""

    file: Path
    schema: pa.Schema
    rows: int
    state: tuple[int, int]  # size and time of the last change
    text: DelimitedSource | None = None  # dialect of a CSV
    words: tuple[str, ...] = ()  # columns that are read as dictionaries from a Parquet file
    kind: str = "parquet"


def _inspect_file(file: Path, what: str, plain: Collection[str], texts: Collection[str]) -> _InspectedFile:
    """Read the schema and the number of rows of a file; refuse an unreadable file."""
    with wrap_read_error(file, what):
        check_input_file(file, what)
        kind, state = detect_file_kind(file, what), _read_file_state(file)
        if kind == "csv":
            text = infer_column_types(detect_csv_format(file, texts, whole=False))
            return _InspectedFile(file, text.schema, text.rows, state, text, kind=kind)
        if kind not in STREAMED_KINDS:
            table = read_file(file, what, plain, texts)
            return _InspectedFile(file, table.schema, table.num_rows, state, kind=kind)
        schema, rows, _ = inspect_parquet(file)
        return _InspectedFile(file, schema, rows, state, words=tuple(list_dictionary_columns(schema, plain)))


def _read_file_state(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def _read_all_files(
    parts: Sequence[_InspectedFile], schema: pa.Schema, what: str, plain: Collection[str], columns: Sequence[str] | None
) -> Iterator[pa.Table]:
    """Yield the rows of several files in batches with a common schema."""
    import pyarrow as pa

    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    for part in parts:
        _refuse_changed_file(part, what)
        rows = 0
        for batch in _merge_small_batches(_read_file_batches(part, what, plain, columns)):
            rows += len(batch)
            yield _convert_to_schema(batch, wanted)
        _refuse_changed_file(part, what, rows)


def _refuse_changed_file(file: _InspectedFile, what: str, rows: int | None = None) -> None:
    """Refuse a file that was changed during reading."""
    try:
        same = _read_file_state(file.file) == file.state and rows in (None, file.rows)
    except OSError:  # the file does not exist any more
        same = False
    if not same:
        fail(what, Problem(f"{file.file} changed while it was read", "try again when nothing writes to it"))


def _read_file_batches(
    file: _InspectedFile, what: str, plain: Collection[str], columns: Sequence[str] | None
) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file.kind not in STREAMED_KINDS:
        table = dictionary_encode_text(read_file(file.file, what, plain), plain)
        yield from _slice_table(table, columns)
        return
    with wrap_read_error(file.file, what):
        if file.text is not None:
            for batch in iterate_text_blocks(file.text, columns):
                yield from _slice_table(dictionary_encode_text(validate_table(pa.Table.from_batches([batch])), plain))
            return
        with open_for_arrow(file.file) as stream, pq.ParquetFile(stream, read_dictionary=file.words) as opened:
            for batch in opened.iter_batches(READ_BATCH_ROWS, columns=None if columns is None else list(columns)):
                yield dictionary_encode_text(validate_table(pa.Table.from_batches([batch])), plain)


def _merge_small_batches(batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Merge small batches into larger ones."""
    import pyarrow as pa

    held: list[pa.Table] = []
    for batch in batches:
        if held and sum(map(len, held)) + len(batch) > READ_BATCH_ROWS:
            yield pa.concat_tables(held).unify_dictionaries()
            held = []
        held.append(batch)
    if held:
        yield pa.concat_tables(held).unify_dictionaries()


def _slice_table(table: pa.Table, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    if columns is not None:
        table = table.select(list(columns))
    return (table.slice(start, READ_BATCH_ROWS) for start in range(0, table.num_rows, READ_BATCH_ROWS))


def _convert_to_schema(batch: pa.Table, schema: pa.Schema) -> pa.Table:
    """Convert a batch to the common schema of all files."""
    import pyarrow as pa

    if batch.schema.equals(schema):
        return batch
    if batch.column_names != schema.names:
        batch = batch.select(schema.names)
    columns = [
        pa.chunked_array([pa.nulls(len(batch), field.type)])
        if pa.types.is_null(column.type)
        else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


# -- pieces of files for several machines -----------------------------------------------------------------------------


class FilePiece(NamedTuple):
    """Part of a table that one worker reads: a whole file, or some row groups of a Parquet file."""

    path: str
    first: int = 0  # row group
    groups: int = 0  # number of row groups; 0 for the whole file
    rows: int = -1  # −1 if unknown before the file is read


def split_into_pieces(file: Path, what: str) -> list[FilePiece]:
    """Split a file into parts that workers can read separately."""
    import pyarrow.parquet as pq

    path = str(file.absolute())
    with wrap_read_error(file, what):
        check_input_file(file, what)
        if detect_file_kind(file, what) != "parquet":
            return [FilePiece(path)]
        with open_for_arrow(file) as stream, pq.ParquetFile(stream) as opened:
            sizes = [opened.metadata.row_group(k).num_rows for k in range(opened.metadata.num_row_groups)]
    if not sum(sizes):
        return [FilePiece(path, rows=0)]  # a file without rows still has columns
    pieces, first = [], 0
    for k in range(1, len(sizes) + 1):
        if k == len(sizes) or sum(sizes[first : k + 1]) > MAX_PIECE_ROWS:
            pieces.append(FilePiece(path, first, k - first, sum(sizes[first:k])))
            first = k
    return pieces


def read_piece(
    piece: FilePiece, what: str, plain: Collection[str] = (), texts: Collection[str] = ()
) -> Iterator[pa.Table]:
    """Yield the rows of one part of a file in batches."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = Path(piece.path)
    if not piece.groups:
        batches = open_batches(piece.path, what=what, plain=plain, texts=texts)
        yield from batches.read() if batches.rows else [batches.schema.empty_table()]
        return
    with wrap_read_error(file, what):
        words = list_dictionary_columns(inspect_parquet(file)[0], plain)
        groups = range(piece.first, piece.first + piece.groups)
        with open_for_arrow(file) as stream, pq.ParquetFile(stream, read_dictionary=words) as opened:
            for batch in opened.iter_batches(READ_BATCH_ROWS, row_groups=groups):
                yield dictionary_encode_text(validate_table(pa.Table.from_batches([batch])), plain)
