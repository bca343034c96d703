"""Any table in, one Arrow table out.

Files: Parquet, CSV (also .gz, also ; or tab separated), Arrow/Feather, a glob or a folder of them. In memory: pyarrow,
pandas, polars, a dict of columns, and whatever else speaks the Arrow C stream. Text comes out dictionary-encoded:
a million rows of a few thousand words then take four bytes each.
"""

from __future__ import annotations

import glob
import gzip
import os
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from largesse.data.columns import is_text, is_unusable
from largesse.errors import InputError, Problem, count, fail, refuse, some

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz"),
    "arrow": (".arrow", ".feather", ".ipc"),
}
KNOWN = "Parquet (.parquet), CSV (.csv, .csv.gz) and Arrow/Feather (.arrow, .feather)"


def read_table(source: Any, *, what: str = "table", plain: Collection[str] = ()) -> pa.Table:
    """Read a path, a glob, a folder or a table in memory into one Arrow table.

    Text is dictionary-encoded, except in the `plain` columns: ids, of which every row has its own. `what` names the table
    in errors.

    >>> read_table({"age": [31, 44], "city": ["Oslo", "Rome"]}).column_names
    ['age', 'city']
    """
    if isinstance(source, str | os.PathLike):
        return _read_files(_find_files(source, what), what, plain)
    return _encode_text(_from_memory(source, what), plain)


def _find_files(source: str | os.PathLike[str], what: str) -> list[Path]:
    """Return the files that a path, a folder or a glob stands for, in the order of their names."""
    text = os.fspath(source)
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


def expand_home(text: str) -> Path:
    """Return the path with ~ written out; unlike `Path.expanduser`, leave the ~ of an unknown user alone."""
    return Path(os.path.expanduser(text))  # noqa: PTH111


def _files_in(folder: Path, what: str) -> list[Path]:
    found = sorted(p for p in folder.iterdir() if _is_table(p) and not p.name.startswith((".", "_")))
    if not found:
        fail(what, Problem(f"the folder {folder} holds no table", f"known kinds: {KNOWN}"))
    return found


def _is_table(file: Path) -> bool:
    return file.name.lower().endswith(tuple(ending for kind in KINDS.values() for ending in kind))


def _neighbours(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"the folder {folder} does not exist either"
    names = sorted(p.name for p in folder.iterdir() if _is_table(p))
    return f"tables in {folder}: {some(names)}" if names else f"{folder} holds no table; known kinds: {KNOWN}"


def _read_files(files: list[Path], what: str, plain: Collection[str]) -> pa.Table:
    import pyarrow as pa

    tables = [_read_file(file, what, plain) for file in files]
    if len(tables) == 1:
        return tables[0]
    refuse(what, _column_mismatches(files, tables))
    try:
        merged = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        column = re.search(r"Field (.+) has incompatible types", str(error))
        which = f"the column {column[1]!r}" if column else "a column"
        hint = "write the column with one type in every file"
        raise InputError(what, [Problem(f"{which} has different types in the {len(files)} files", hint)]) from error
    return merged.unify_dictionaries()


def _column_mismatches(files: list[Path], tables: list[pa.Table]) -> list[Problem]:
    first = set(tables[0].column_names)
    problems = []
    for file, table in zip(files[1:], tables[1:], strict=True):
        odd = sorted(first ^ set(table.column_names))
        if odd:
            problems.append(
                Problem(
                    f"{file.name} and {files[0].name} do not have the same columns: {some(odd)}",
                    "files of a glob must share their columns",
                )
            )
    return problems


def _read_file(file: Path, what: str, plain: Collection[str]) -> pa.Table:
    with _explain(file, what):
        if file.stat().st_size == 0:
            fail(what, Problem(f"{file} is empty (0 bytes)", "was the export interrupted?"))
        kind = _kind(file, what)
        if kind == "parquet":
            return _encode_text(_read_parquet(file, plain), plain)
        return _encode_text(_read_csv(file) if kind == "csv" else _read_arrow(file), plain)


def _kind(file: Path, what: str) -> str:
    name = file.name.lower()
    for kind, endings in KINDS.items():
        if name.endswith(endings):
            return kind
    with file.open("rb") as stream:
        head = stream.read(6)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1"):
        return "arrow"
    raise InputError(what, [Problem(f"{file} is of an unknown kind", f"known kinds: {KNOWN}")])


@contextmanager
def _explain(file: Path, what: str) -> Iterator[None]:
    """Turn the errors of Arrow's readers into a sentence that names the file."""
    import pyarrow as pa

    try:
        yield
    except PermissionError as error:
        raise InputError(what, [Problem(f"{file} may not be read", "check its permissions")]) from error
    except (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(what, [_diagnosis(file, str(error))]) from error


def _diagnosis(file: Path, message: str) -> Problem:
    ragged = re.search(r"Expected (\d+) columns, got (\d+)", message)
    if ragged:
        where = re.search(r"Row #(\d+)", message)
        row = f"line {where[1]}" if where else "a line"
        return Problem(
            f"{file}: {row} has {ragged[2]} fields where the header has {ragged[1]}",
            "quote fields that contain the separator",
        )
    if "UTF8" in message or "utf-8" in message:
        return Problem(f"{file} is not UTF-8 text", "save it as UTF-8 (iconv -f latin1 -t utf-8)")
    if "Not a gzipped file" in message:
        return Problem(f"{file} is not a gzip file, though its name says so", "rename it, or compress it with gzip")
    if "Empty CSV" in message:
        return Problem(f"{file} is empty", "was the export interrupted?")
    first = message.strip().splitlines()[0] if message.strip() else "unreadable"
    return Problem(f"{file} is damaged or cut off: {first}", "write the file again; was the export interrupted?")


def _read_parquet(file: Path, plain: Collection[str]) -> pa.Table:
    import pyarrow.parquet as pq

    schema = pq.read_schema(file)
    words = [field.name for field in schema if is_text(field.type) and field.name not in plain]
    # Pages are decoded straight into dictionary codes: the plain strings never exist in memory. pq.read_table would fail on
    # two columns of one name before an error could name them.
    with pq.ParquetFile(file, read_dictionary=words) as opened:
        return opened.read()


def _read_arrow(file: Path) -> pa.Table:
    import pyarrow as pa

    with pa.memory_map(str(file)) as mapped:
        try:
            return pa.ipc.open_file(mapped).read_all()
        except pa.ArrowInvalid:
            mapped.seek(0)
            return pa.ipc.open_stream(mapped).read_all()


def _read_csv(file: Path) -> pa.Table:
    import pyarrow as pa

    head = _head(file)
    try:
        table = _parse_csv(file, head, careful=_quoted_newlines(head))
    except pa.ArrowInvalid:
        # Again, on one thread: line breaks inside quotes may come late in the file, and only one thread can name a bad line.
        table = _parse_csv(file, head, careful=True)
    for column in table.schema:
        if pa.types.is_binary(column.type):  # what Arrow makes of text that is not UTF-8
            raise pa.ArrowInvalid(f"invalid UTF8 in column {column.name}")
    return table


def _parse_csv(file: Path, head: str, *, careful: bool) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv as csv

    delimiter, decimal = _dialect(head)
    with pa.input_stream(str(file), compression="gzip" if _is_gzip(file) else None) as stream:
        return csv.read_csv(
            stream,
            read_options=csv.ReadOptions(use_threads=not careful),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=careful),
            convert_options=csv.ConvertOptions(strings_can_be_null=True, decimal_point=decimal),
        )


def _is_gzip(file: Path) -> bool:
    return file.name.lower().endswith(".gz")


def _head(file: Path, size: int = 65536) -> str:
    with (gzip.open if _is_gzip(file) else open)(file, "rb") as stream:
        found = stream.read(size)
    if found.startswith((b"\xff\xfe", b"\xfe\xff")):  # UTF-16, as Excel writes "Unicode text"
        raise UnicodeDecodeError("utf-8", found[:2], 0, 2, "UTF-16 byte order mark")
    return str(found.decode("utf-8", errors="replace"))


def _dialect(head: str) -> tuple[str, str]:
    """Guess the separator from the header, and the decimal comma that goes with semicolons."""
    header, _, body = head.partition("\n")
    delimiter = max(",;\t|", key=header.count)
    if header.count(delimiter) == 0:
        return ",", "."
    commas = delimiter == ";" and re.search(r"(^|;)-?\d+,\d+(;|\r?$)", body, re.MULTILINE)
    points = re.search(r"(^|;)-?\d+\.\d+(;|\r?$)", body, re.MULTILINE)
    return delimiter, "," if commas and not points else "."


def _quoted_newlines(head: str) -> bool:
    """Whether an early quoted field spans lines; reading such a file takes a slower path."""
    return any(line.count('"') % 2 for line in head.splitlines()[:200])


def _from_memory(source: Any, what: str) -> pa.Table:
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
    except (pa.ArrowException, TypeError, ValueError) as error:
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
    return Problem(
        f"the table could not be converted: {said.splitlines()[0]}",
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


def _encode_text(table: pa.Table, plain: Collection[str]) -> pa.Table:
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
    names: Sequence[str] = table.column_names
    problems = _repeated_names(names)
    if table.num_rows == 0:
        problems.append(
            Problem(f"it has {count(len(names), 'column')} but no rows", "was the export filtered to nothing?")
        )
    refuse(what, problems)


def _repeated_names(names: Sequence[str]) -> list[Problem]:
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    return [Problem(f"two columns have the same name: {some(twice)}", "rename one of them")] if twice else []
