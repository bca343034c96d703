"""Any table in, one Arrow table out.

Files: Parquet, CSV (also .gz, also ; or tab separated), Arrow/Feather, a glob or a folder of them. In memory: pyarrow,
pandas, polars, a dict of columns, and whatever else speaks the Arrow C stream. Text comes out dictionary-encoded:
a million rows of a few thousand words then take four bytes each.
"""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from largesse.data.columns import is_text, is_unusable
from largesse.data.formats import KNOWN, is_table, read_file
from largesse.data.notation import parse_problems, read_notation
from largesse.errors import InputError, Problem, fail, join_some, path_problems, plural, refuse

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST = 200  # letters of what Arrow says


def read_table(
    source: Any, *, what: str = "table", plain: Collection[str] = (), parse: Mapping[str, Any] | None = None
) -> pa.Table:
    """Read a path, a glob, a folder or a table in memory into one Arrow table.

    Text is dictionary-encoded, except in the `plain` columns: ids, of which every row has its own. `what` names the table
    in errors; `parse` says how columns are written (see `read_log`).

    >>> read_table({"age": [31, 44], "city": ["Oslo", "Rome"]}).column_names
    ['age', 'city']
    """
    parse = parse or {}
    refuse(what, parse_problems(parse))
    if isinstance(source, str | os.PathLike):
        texts = [name for name, way in parse.items() if way == "text"]
        table = _read_files(find_files(source, what), what, plain, texts)
    else:
        table = encode_text(from_memory(source, what), plain)
    if not parse:
        return table
    reading = read_notation(table, parse, None)
    refuse(what, reading.problems)
    return reading.table


def find_files(source: str | os.PathLike[str], what: str) -> list[Path]:
    """Return the files that a path, a folder or a glob stands for, in the order of their names."""
    text = os.fspath(source)
    refuse(what, path_problems(text))
    if is_elsewhere(text):
        fail(what, Problem(f"{text} is not a file on this machine", "Spark may reach it: --engine spark"))
    path = expand_home(text)
    try:
        if path.is_dir():
            return _files_in(path, what)
        if path.exists():
            return [path]
        # Path.glob refuses absolute patterns; glob takes both.
        found = sorted(map(Path, glob.glob(str(path), recursive=True))) if re.search(r"[*?\[]", text) else []  # noqa: PTH207
        if not found:
            fail(what, Problem(f"there is no file {text}", _neighbours(path)))
        files = [place for place in found if place.is_file()]
        return files or [file for folder in found for file in _files_in(folder, what)]
    except OSError as error:  # a name that is too long, a folder that may not be read
        shown = text if len(text) <= 80 else f"{text[:77]}…"
        raise InputError(what, [Problem(f"{shown!r} cannot be opened: {error.strerror}", "give a path")]) from error


def is_elsewhere(text: str) -> bool:
    """Whether this is an address, or the name of a table of Spark, and not a path.

    >>> is_elsewhere("s3a://shop/log"), is_elsewhere("table:shop.log"), is_elsewhere("log.parquet")
    (True, True, False)
    """
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://|table:", text) is not None


def expand_home(text: str) -> Path:
    """Return the path with ~ written out; unlike `Path.expanduser`, leave the ~ of an unknown user alone."""
    return Path(os.path.expanduser(text))  # noqa: PTH111


def _files_in(folder: Path, what: str) -> list[Path]:
    found = sorted(p for p in folder.iterdir() if is_table(p) and not p.name.startswith((".", "_")))
    if not found:
        fail(what, Problem(f"the folder {folder} holds no table", f"known kinds: {KNOWN}"))
    return found


def _neighbours(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"the folder {folder} does not exist either"
    names = sorted(p.name for p in folder.iterdir() if is_table(p))
    return f"tables in {folder}: {join_some(names)}" if names else f"{folder} holds no table; known kinds: {KNOWN}"


def _read_files(files: list[Path], what: str, plain: Collection[str], texts: Collection[str]) -> pa.Table:
    import pyarrow as pa

    tables = [encode_text(read_file(file, what, plain, texts), plain) for file in files]
    if len(tables) == 1:
        return tables[0]
    merge_schemas(files, [table.schema for table in tables], what)
    return pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()


def merge_schemas(files: Sequence[Path], schemas: Sequence[pa.Schema], what: str) -> pa.Schema:
    """Return the schema that the tables of several files have together; refuse files that do not fit together."""
    import pyarrow as pa

    refuse(what, _column_mismatches(files, [set(schema.names) for schema in schemas]))
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        column = re.search(r"Field (.+) has incompatible types", str(error))
        which = f"the column {column[1]!r}" if column else "a column"
        hint = "write the column with one type in every file"
        raise InputError(what, [Problem(f"{which} has different types in the {len(files)} files", hint)]) from error


def _column_mismatches(files: Sequence[Path], columns: Sequence[set[str]]) -> list[Problem]:
    problems = []
    for file, names in zip(files[1:], columns[1:], strict=True):
        odd = sorted(columns[0] ^ names)
        if odd:
            problems.append(
                Problem(
                    f"{file.name} and {files[0].name} do not have the same columns: {join_some(odd)}",
                    "files of a glob must share their columns",
                )
            )
    return problems


def from_memory(source: Any, what: str) -> pa.Table:
    """Return a table in memory as an Arrow table."""
    import pyarrow as pa

    try:
        if isinstance(source, pa.Table):
            return source
        if isinstance(source, pa.RecordBatch):
            return pa.Table.from_batches([source])
        if isinstance(source, dict):
            return pa.table({str(name): values for name, values in source.items()})
        if type(source).__module__.split(".")[0] == "pandas" and hasattr(source, "columns"):
            frame = _plain_frame(source)
            refuse(what, _repeated_names(list(frame.columns)))
            return pa.Table.from_pandas(frame, preserve_index=False)
        if hasattr(source, "collect") and not hasattr(source, "__arrow_c_stream__"):
            source = source.collect()  # a polars LazyFrame
        if hasattr(source, "__arrow_c_stream__") and type(source).__name__ != "Series":
            return pa.table(source)
    except InputError:
        raise
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InputError(what, [_conversion_problem(error)]) from error
    got = "None" if source is None else type(source).__name__
    raise InputError(what, [Problem(f"not a table: got {got}", "give a path, or a pandas, polars or pyarrow table")])


def _conversion_problem(error: Exception) -> Problem:
    """Name the column that could not be converted, if Arrow names it."""
    said = " ".join(str(part) for part in error.args).strip() or type(error).__name__
    column = re.search(r"Conversion failed for column (.+) with type", said)
    if column:
        return Problem(
            f"the column {column[1]!r} holds values of different types",
            f"give it one type; as text: frame[{column[1]!r}] = frame[{column[1]!r}].astype(str)",
        )
    first = said.splitlines()[0]
    return Problem(
        f"the table could not be converted: {first if len(first) <= LONGEST else first[:LONGEST] + '…'}",
        "a column is a list or array of one type, all columns of one length",
    )


def _plain_frame(frame: Any) -> Any:
    """Return a pandas frame whose columns have text as names; an index with a name is a column too."""
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    if named:
        frame = frame.reset_index(level=named)
    if all(isinstance(name, str) for name in frame.columns):
        return frame
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def encode_text(table: pa.Table, plain: Collection[str]) -> pa.Table:
    """Give every text column the type dictionary<int32, string>, one dictionary per column, or string if it is plain."""
    import pyarrow as pa

    columns = [
        _encode_column(column, plain=name in plain)
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=table.column_names).unify_dictionaries()


def _encode_column(column: pa.ChunkedArray, *, plain: bool) -> pa.ChunkedArray:
    """Return text as dictionary<int32, string>, and other categories (numbers, dates) as their values."""
    import pyarrow as pa

    kind, wanted = column.type, pa.dictionary(pa.int32(), pa.string())
    if is_text(kind):
        return column.cast(pa.string()) if plain else column.cast(pa.string()).dictionary_encode()
    if not pa.types.is_dictionary(kind) or kind == wanted:
        return column
    if is_text(kind.value_type):  # polars and pandas have their own sizes of codes and kinds of text
        parts = [
            pa.DictionaryArray.from_arrays(chunk.indices.cast(pa.int32()), chunk.dictionary.cast(pa.string()))
            for chunk in column.chunks
        ]
        return pa.chunked_array(parts, type=wanted)
    return column if is_unusable(kind) else column.cast(kind.value_type)


def check_names(table: pa.Table, what: str) -> None:
    """Refuse a table with two columns of one name, or with no rows."""
    check_size(table.column_names, table.num_rows, what)


def check_size(names: Sequence[str], rows: int, what: str) -> None:
    """Refuse columns of which two have one name, or that have no rows."""
    problems = _repeated_names(names)
    if rows == 0:
        problems.append(
            Problem(f"it has {plural(len(names), 'column')} but no rows", "was the export filtered to nothing?")
        )
    refuse(what, problems)


def _repeated_names(names: Sequence[str]) -> list[Problem]:
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    return [Problem(f"two columns have the same name: {join_some(twice)}", "rename one of them")] if twice else []
