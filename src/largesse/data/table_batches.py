"""Out-of-core reading of tables: batches of rows, one at a time in memory.

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

from largesse.data.csv_reader import DelimitedSource, infer_types, iterate_text
from largesse.data.table_reader import (
    STREAMED_KINDS,
    check_input_file,
    describe_csv,
    encode_text,
    find_files,
    has_gzip_ending,
    inspect_parquet,
    kind_of_file,
    merge_schemas,
    open_file,
    read_file,
    table_from_memory,
    text_columns,
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
class Batches:
    """Table that is read in batches of rows.

    Text is dictionary-encoded as in `read_table`.
    """

    schema: pa.Schema
    rows: int
    passes: Callable[[Sequence[str] | None], Iterator[pa.Table]]  # batches of the named columns, or of all columns
    mapper: Callable[[RowTask, Sequence[str], Array], Iterator[Array]] | None = (
        None  # implementation of `map` on other machines
    )

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield all rows in order in batches, with all or only the named columns."""
        return self.passes(columns)

    def map(self, task: RowTask, columns: Sequence[str], wanted: Array) -> Iterator[Array]:
        """Yield the results of a task for the rows in the mask `wanted` (n,), batch by batch.

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
) -> Batches:
    """Open a path, a glob, a folder or a table in memory for reading in batches.

    The columns `plain` stay plain text; `texts` of a CSV are text, even where they hold digits; `what` names the table in errors.

    >>> batches = open_batches({"age": [31, 44], "city": ["Oslo", "Rome"]})
    >>> batches.rows, batches.schema.names, [len(batch) for batch in batches.read(["age"])]
    (2, ['age', 'city'], [2])
    """
    if isinstance(source, Batches):
        return source
    if not isinstance(source, str | os.PathLike):
        table = encode_text(table_from_memory(source, what), plain)
        return Batches(table.schema, table.num_rows, partial(_slice, table))
    parts = [_inspect_file(file, what, plain, texts) for file in find_files(source, what)]
    schemas = [encode_text(part.schema.empty_table(), plain).schema for part in parts]
    schema = schemas[0] if len(parts) == 1 else merge_schemas([part.file for part in parts], schemas, what)
    rows = sum(part.rows for part in parts)
    return Batches(schema, rows, partial(_read_all, parts, schema, what, plain))


def bound_size(source: Any, what: str = "table") -> tuple[float, float]:
    """Return upper bounds of the numbers of values and rows of a table, from metadata or file sizes."""
    if isinstance(source, Batches):
        return source.rows * len(source.schema), source.rows
    if not isinstance(source, str | os.PathLike):
        table = table_from_memory(source, what)
        return table.num_rows * table.num_columns, table.num_rows
    bounds = [_bound_cells(file, what) for file in find_files(source, what)]
    return sum(cells for cells, _ in bounds), sum(cells / max(columns, 1) for cells, columns in bounds)


def _bound_cells(file: Path, what: str) -> tuple[float, int]:
    with wrap_read_error(file, what):
        check_input_file(file, what)
        kind, size = kind_of_file(file, what), file.stat().st_size
        if kind == "parquet":
            schema, rows, _ = inspect_parquet(file)
            return rows * len(schema), len(schema)
        if kind not in STREAMED_KINDS:
            ratio = MAX_GZIP_RATIO if kind in ("zip", "excel", "spss", "json") else MAX_ARROW_CELLS
            return ratio * size, 1
        # A field takes a byte at least: its separator.
        return size * (MAX_GZIP_RATIO if has_gzip_ending(file) else 1), describe_csv(file, ()).columns


@dataclass(frozen=True, eq=False)
class _File:
    """One file of a table, with its schema, its number of rows and its state on disk."""

    file: Path
    schema: pa.Schema
    rows: int
    state: tuple[int, int]  # size and time of the last change
    text: DelimitedSource | None = None  # dialect of a CSV
    words: tuple[str, ...] = ()  # columns that are read as dictionaries from a Parquet file
    kind: str = "parquet"


def _inspect_file(file: Path, what: str, plain: Collection[str], texts: Collection[str]) -> _File:
    """Return the schema and the number of rows of a file; refuse an unreadable file."""
    with wrap_read_error(file, what):
        check_input_file(file, what)
        kind, state = kind_of_file(file, what), _read_state(file)
        if kind == "csv":
            text = infer_types(describe_csv(file, texts, whole=False))
            return _File(file, text.schema, text.rows, state, text, kind=kind)
        if kind not in STREAMED_KINDS:
            table = read_file(file, what, plain, texts)
            return _File(file, table.schema, table.num_rows, state, kind=kind)
        schema, rows, _ = inspect_parquet(file)
        return _File(file, schema, rows, state, words=tuple(text_columns(schema, plain)))


def _read_state(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def _read_all(
    parts: Sequence[_File], schema: pa.Schema, what: str, plain: Collection[str], columns: Sequence[str] | None
) -> Iterator[pa.Table]:
    """Yield the rows of all files in batches, with the schema that the files share."""
    import pyarrow as pa

    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    for part in parts:
        _check_same(part, what)
        rows = 0
        for batch in _merge_small(_read_file(part, what, plain, columns)):
            rows += len(batch)
            yield _conform(batch, wanted)
        _check_same(part, what, rows)


def _check_same(file: _File, what: str, rows: int | None = None) -> None:
    """Refuse a file that has changed since it was inspected."""
    try:
        same = _read_state(file.file) == file.state and rows in (None, file.rows)
    except OSError:  # the file does not exist any more
        same = False
    if not same:
        fail(what, Problem(f"{file.file} changed while it was read", "try again when nothing writes to it"))


def _read_file(file: _File, what: str, plain: Collection[str], columns: Sequence[str] | None) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file.kind not in STREAMED_KINDS:
        table = encode_text(read_file(file.file, what, plain), plain)
        yield from _slice(table, columns)
        return
    with wrap_read_error(file.file, what):
        if file.text is not None:
            for batch in iterate_text(file.text, columns):
                yield from _slice(encode_text(validate_table(pa.Table.from_batches([batch])), plain))
            return
        with open_file(file.file) as stream, pq.ParquetFile(stream, read_dictionary=file.words) as opened:
            for batch in opened.iter_batches(READ_BATCH_ROWS, columns=None if columns is None else list(columns)):
                yield encode_text(validate_table(pa.Table.from_batches([batch])), plain)


def _merge_small(batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
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


def _slice(table: pa.Table, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    if columns is not None:
        table = table.select(list(columns))
    return (table.slice(start, READ_BATCH_ROWS) for start in range(0, table.num_rows, READ_BATCH_ROWS))


def _conform(batch: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a batch with the columns and types of the common schema of all files."""
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
    """Piece of a table: a file, or some row groups of a Parquet file."""

    path: str
    first: int = 0  # row group
    groups: int = 0  # number of row groups; 0 for the whole file
    rows: int = -1  # −1 if unknown before the file is read


def split_file(file: Path, what: str) -> list[FilePiece]:
    """Split a file into pieces, in the order of its rows; refuse an unreadable file."""
    import pyarrow.parquet as pq

    path = str(file.absolute())
    with wrap_read_error(file, what):
        check_input_file(file, what)
        if kind_of_file(file, what) != "parquet":
            return [FilePiece(path)]
        with open_file(file) as stream, pq.ParquetFile(stream) as opened:
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
    """Yield the rows of a piece of a file in batches, as `read_table` reads those of a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = Path(piece.path)
    if not piece.groups:
        batches = open_batches(piece.path, what=what, plain=plain, texts=texts)
        yield from batches.read() if batches.rows else [batches.schema.empty_table()]
        return
    with wrap_read_error(file, what):
        words = text_columns(inspect_parquet(file)[0], plain)
        groups = range(piece.first, piece.first + piece.groups)
        with open_file(file) as stream, pq.ParquetFile(stream, read_dictionary=words) as opened:
            for batch in opened.iter_batches(READ_BATCH_ROWS, row_groups=groups):
                yield encode_text(validate_table(pa.Table.from_batches([batch])), plain)
