"""Tables in batches of rows: what `read_table` would read, with only a batch of it in memory at any time.

Columns, types and the number of rows are known before the first batch: Parquet says them, of CSV the types are settled by
reading it once (see `delimited`), Arrow files are read whole, one after the other. Every pass gives the same rows in the same
order; a file that changes between two passes is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from largesse.data.delimited import Text, iter_text, settle_types
from largesse.data.formats import (
    check_file,
    check_repeated,
    checked,
    describe_csv,
    explain,
    is_gzip,
    kind_of_file,
    look_at_parquet,
    open_file,
    read_file,
)
from largesse.data.read import encode_text, find_files, from_memory, merge_schemas
from largesse.errors import Problem, fail

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 65_536
PACKED = 20  # times smaller than the text that they hold are most files packed by gzip, at most
ARROW_CELLS = 8  # values that a byte of an Arrow file holds, at most


@dataclass(frozen=True, eq=False)
class Batches:
    """A table that is read in batches; text is dictionary-encoded as in `read_table`."""

    schema: pa.Schema
    rows: int
    passes: Callable[[Sequence[str] | None], Iterator[pa.Table]]  # of some columns, or of all

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Give the rows in order, in batches; only some columns, if they are named."""
        return self.passes(columns)


def open_batches(
    source: Any, *, what: str = "table", plain: Collection[str] = (), texts: Collection[str] = ()
) -> Batches:
    """Open a path, a glob, a folder or a table in memory to be read in batches.

    The columns `plain` stay plain text; `texts` of a CSV are text, even where they hold digits; `what` names the table in errors.

    >>> batches = open_batches({"age": [31, 44], "city": ["Oslo", "Rome"]})
    >>> batches.rows, batches.schema.names, [len(batch) for batch in batches.read(["age"])]
    (2, ['age', 'city'], [2])
    """
    if not isinstance(source, str | os.PathLike):
        table = encode_text(from_memory(source, what), plain)
        return Batches(table.schema, table.num_rows, partial(_slice, table))
    parts = [_look(file, what, plain, texts) for file in find_files(source, what)]
    schemas = [encode_text(part.schema.empty_table(), plain).schema for part in parts]
    schema = schemas[0] if len(parts) == 1 else merge_schemas([part.file for part in parts], schemas, what)
    rows = sum(part.rows for part in parts)
    return Batches(schema, rows, partial(_read_all, parts, schema, what, plain))


def has_at_most(source: Any, rows: int, what: str = "table") -> bool:
    """Whether a table surely has no more rows than this: by what its files say of themselves, or by their sizes."""
    if not isinstance(source, str | os.PathLike):
        return len(from_memory(source, what)) <= rows
    bounds = (_most_of(file, what) for file in find_files(source, what))
    return sum(cells / max(columns, 1) for cells, columns in bounds) <= rows


def most_cells(source: Any, what: str = "table") -> tuple[float, int]:
    """Return how many values a table has at most, by what its files say or by their sizes; and how many columns at least."""
    if not isinstance(source, str | os.PathLike):
        table = from_memory(source, what)
        return table.num_rows * table.num_columns, table.num_columns
    bounds, columns = zip(*(_most_of(file, what) for file in find_files(source, what)), strict=True)
    return sum(bounds), min(columns)


def _most_of(file: Path, what: str) -> tuple[float, int]:
    with explain(file, what):
        check_file(file, what)
        kind, size = kind_of_file(file, what), file.stat().st_size
        if kind == "parquet":
            found = look_at_parquet(file, what, (), whole=False)
            return found.rows * len(found.schema), len(found.schema)
        if kind == "arrow":
            return ARROW_CELLS * size, 1
        # A field takes a byte at least: its separator.
        return size * (PACKED if is_gzip(file) else 1), describe_csv(file, ()).columns


@dataclass(frozen=True, eq=False)
class _Part:
    """One file."""

    file: Path
    schema: pa.Schema
    rows: int
    state: tuple[int, int]  # size and time of the last change
    text: Text | None = None  # how a CSV is written
    words: tuple[str, ...] = ()  # columns that a Parquet file is asked for as dictionaries
    kind: str = "parquet"


def _look(file: Path, what: str, plain: Collection[str], texts: Collection[str]) -> _Part:
    """Return what there is to know of a file before its rows are read; refuse one that cannot be read."""
    with explain(file, what):
        check_file(file, what)
        kind, state = kind_of_file(file, what), _state(file)
        if kind == "csv":
            text = settle_types(describe_csv(file, texts, whole=False))
            return _Part(file, text.schema, text.rows, state, text, kind=kind)
        if kind == "arrow":
            table = read_file(file, what, plain, texts)
            return _Part(file, table.schema, table.num_rows, state, kind=kind)
        found = look_at_parquet(file, what, plain, whole=False)
        check_repeated(file, what, found)
        return _Part(file, found.schema, found.rows, state, words=tuple(found.words))


def _state(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_size, found.st_mtime_ns


def _read_all(
    parts: Sequence[_Part], schema: pa.Schema, what: str, plain: Collection[str], columns: Sequence[str] | None
) -> Iterator[pa.Table]:
    """Give the rows of all files in batches of one schema."""
    import pyarrow as pa

    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    for part in parts:
        _check_same(part, what)
        rows = 0
        for batch in _gather(_read_part(part, what, plain, columns)):
            rows += len(batch)
            yield _fit(batch, wanted)
        _check_same(part, what, rows)


def _check_same(part: _Part, what: str, rows: int | None = None) -> None:
    """Refuse a file that is not as it was when its columns were found, or that has another number of rows."""
    try:
        same = _state(part.file) == part.state and rows in (None, part.rows)
    except OSError:  # it is gone
        same = False
    if not same:
        fail(what, Problem(f"{part.file} changed while it was read", "try again when nothing writes to it"))


def _read_part(part: _Part, what: str, plain: Collection[str], columns: Sequence[str] | None) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if part.kind == "arrow":
        table = encode_text(read_file(part.file, what, plain), plain)
        yield from _slice(table, columns)
        return
    with explain(part.file, what):
        if part.text is not None:
            for batch in iter_text(part.text, columns):
                yield from _slice(encode_text(checked(pa.Table.from_batches([batch])), plain))
            return
        with open_file(part.file) as stream, pq.ParquetFile(stream, read_dictionary=part.words) as opened:
            for batch in opened.iter_batches(BATCH, columns=None if columns is None else list(columns)):
                yield encode_text(checked(pa.Table.from_batches([batch])), plain)


def _gather(batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Put small batches together."""
    import pyarrow as pa

    held: list[pa.Table] = []
    for batch in batches:
        if held and sum(map(len, held)) + len(batch) > BATCH:
            yield pa.concat_tables(held).unify_dictionaries()
            held = []
        held.append(batch)
    if held:
        yield pa.concat_tables(held).unify_dictionaries()


def _slice(table: pa.Table, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    if columns is not None:
        table = table.select(list(columns))
    return (table.slice(start, BATCH) for start in range(0, table.num_rows, BATCH))


def _fit(batch: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a batch with the columns and types that all files have together."""
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
