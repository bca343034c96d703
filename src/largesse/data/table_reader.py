"""Reader of tables: files, folders or dataframes as one Arrow table.

Files: Parquet, CSV (also .gz, also ; or tab separated), Arrow/Feather, those of `optional_format_readers`, a zip of one file, a
glob or a folder of them. In memory: pyarrow, pandas, polars, a dict of columns, and any object with the Arrow C stream. Text is
dictionary-encoded: a million rows of a few thousand words then take four bytes each. Every buffer is validated before use, because
Arrow itself trusts the offsets, lengths and codes of a file. Nothing is memory-mapped.
"""

from __future__ import annotations

import glob
import gzip
import os
import re
import shutil
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from largesse.data.arrow_columns import is_text_type, is_unusable_type
from largesse.data.csv_reader import (
    MAX_ROW_BYTES,
    NOTE_KEY,
    DelimitedSource,
    decode_first_bytes,
    detect_text_format,
    read_delimited_text,
)
from largesse.data.optional_format_readers import QUERIED_KINDS, READERS, QueriedFile, read_optional_format
from largesse.data.text_parsing import find_parse_setting_problems, parse_text_columns
from largesse.errors import InputError, Problem, fail, find_path_problems, join_some, plural, refuse

if TYPE_CHECKING:
    import pyarrow as pa

READABLE_ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "excel": (".xlsx", ".xlsm"),
    "json": (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz"),
    "stata": (".dta",),
    "spss": (".sav", ".zsav"),
    "sqlite": (".sqlite", ".sqlite3", ".db"),
    "duckdb": (".duckdb", ".ddb"),
    "zip": (".zip",),
}
STREAMED_KINDS = ("parquet", "csv")  # read in batches; other files are read whole
KNOWN_KINDS = (
    "Parquet (.parquet), CSV (.csv, .csv.gz), Arrow/Feather (.arrow, .feather), Excel (.xlsx), JSON lines (.jsonl), "
    "Stata (.dta), SPSS (.sav), SQLite (.sqlite), DuckDB (.duckdb), and a .zip of one of them"
)
MAX_QUOTED_LETTERS = 200  # of Arrow's own messages
SNIFFED_BYTES = 1 << 16  # of a text file
CONTAINER_LIMIT_FILE = Path("/sys/fs/cgroup/memory.max")  # bytes
DEFAULT_MEMORY_BYTES = 1 << 40


def read_table(
    source: Any, *, what: str = "table", plain: Collection[str] = (), parse: Mapping[str, Any] | None = None
) -> pa.Table:
    """Read a file, a folder, a glob or a dataframe as one Arrow table.

    Text is dictionary-encoded, except in the `plain` columns (ids). `what` names the table in errors; `parse` gives the notation
    of columns (see `read_log`).

    >>> read_table({"age": [31, 44], "city": ["Oslo", "Rome"]}).column_names
    ['age', 'city']
    """
    parse = parse or {}
    refuse(what, find_parse_setting_problems(parse))
    table = read_source(source, what, plain, [name for name, way in parse.items() if way == "text"])
    if not parse:
        return table
    table, _, problems = parse_text_columns(table, parse, None)
    refuse(what, problems)
    return table


def read_source(source: Any, what: str, plain: Collection[str], texts: Collection[str]) -> pa.Table:
    """Read a table from files or from memory, with dictionary-encoded text except in the `plain` columns."""
    if isinstance(source, QueriedFile) and not source.query:
        return _read_files(find_files(source.path, what), what, plain, texts, source.encoding)
    if isinstance(source, str | os.PathLike):
        return _read_files(find_files(source, what), what, plain, texts)
    return dictionary_encode_text(convert_to_arrow_table(source, what), plain)


# -- files -------------------------------------------------------------------------------------------------------------


def find_files(source: str | os.PathLike[str], what: str) -> list[Path]:
    """Return the files of a path, a folder or a glob, sorted by name."""
    text = os.fspath(source)
    refuse(what, find_path_problems(text))
    if is_remote(text):
        fail(what, Problem(f"{text} is not a file on this machine", "Spark may reach it: --engine spark"))
    path = expand_home(text)
    try:
        if path.is_dir():
            return _list_folder_tables(path, what)
        if path.exists():
            return [path]
        # Path.glob refuses absolute patterns; glob takes both.
        matches = sorted(map(Path, glob.glob(str(path), recursive=True))) if re.search(r"[*?\[]", text) else []  # noqa: PTH207
        if not matches:
            fail(what, Problem(f"there is no file {text}", _write_path_hint(path)))
        files = [match for match in matches if match.is_file()]
        return files or [file for folder in matches for file in _list_folder_tables(folder, what)]
    except OSError as error:  # a name that is too long, a folder that may not be read
        short = text if len(text) <= 80 else f"{text[:77]}…"
        raise InputError(what, [Problem(f"{short!r} cannot be opened: {error.strerror}", "give a path")]) from error


def is_remote(text: str) -> bool:
    """Test if a source is a URL or the name of a Spark table, not a local path.

    >>> is_remote("s3a://shop/log"), is_remote("table:shop.log"), is_remote("log.parquet")
    (True, True, False)
    """
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://|table:", text) is not None


def expand_home(text: str) -> Path:
    """Expand the home folder (~) in a path.

    Unlike `Path.expanduser`, it leaves the ~ of an unknown user unchanged.
    """
    return Path(os.path.expanduser(text))  # noqa: PTH111


def _list_folder_tables(folder: Path, what: str) -> list[Path]:
    tables = sorted(p for p in folder.iterdir() if is_table_file(p) and not p.name.startswith((".", "_")))
    if not tables:
        fail(what, Problem(f"the folder {folder} holds no table", f"known kinds: {KNOWN_KINDS}"))
    return tables


def _write_path_hint(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"the folder {folder} does not exist either"
    names = sorted(p.name for p in folder.iterdir() if is_table_file(p))
    return (
        f"tables in {folder}: {join_some(names)}" if names else f"{folder} holds no table; known kinds: {KNOWN_KINDS}"
    )


def _read_files(
    files: list[Path], what: str, plain: Collection[str], texts: Collection[str], encoding: str = ""
) -> pa.Table:
    import pyarrow as pa

    tables = [dictionary_encode_text(read_file(file, what, plain, texts, encoding), plain) for file in files]
    if len(tables) == 1:
        return tables[0]
    merge_schemas(files, [table.schema for table in tables], what)
    return pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()


def merge_schemas(files: Sequence[Path], schemas: Sequence[pa.Schema], what: str) -> pa.Schema:
    """Return the common schema of several files; refuse incompatible columns or types."""
    import pyarrow as pa

    refuse(what, _find_column_mismatches(files, [set(schema.names) for schema in schemas]))
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        column = re.search(r"Field (.+) has incompatible types", str(error))
        which = f"the column {column[1]!r}" if column else "a column"
        hint = "write the column with one type in every file"
        raise InputError(what, [Problem(f"{which} has different types in the {len(files)} files", hint)]) from error


def _find_column_mismatches(files: Sequence[Path], columns: Sequence[set[str]]) -> list[Problem]:
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


# -- one file ------------------------------------------------------------------------------------------------------------


def read_file(
    file: Path, what: str, plain: Collection[str] = (), texts: Collection[str] = (), encoding: str = ""
) -> pa.Table:
    """Read one file into an Arrow table.

    Text of Parquet comes dictionary-encoded, except in the `plain` columns.

    The columns `texts` of a CSV are text, even where they hold digits. Its `encoding` is guessed by default.
    """
    with wrap_read_error(file, what):
        check_input_file(file, what)
        kind = detect_file_kind(file, what)
        if kind == "csv":
            return validate_table(read_delimited_text(detect_csv_format(file, texts, encoding=encoding)))
        if kind == "parquet":
            return _read_parquet(file, what, plain)
        if kind == "arrow":
            return _read_arrow(file, what)
        if kind == "zip":
            return _read_zip(file, what, plain, texts, encoding)
        return validate_table(convert_to_arrow_table(read_optional_format(file, kind, what), what))


def _read_zip(file: Path, what: str, plain: Collection[str], texts: Collection[str], encoding: str) -> pa.Table:
    """Read the only table of a zip file."""
    try:
        with zipfile.ZipFile(file) as archive, TemporaryDirectory(prefix="largesse-") as folder:
            inner = [
                info
                for info in archive.infolist()
                if is_table_file(Path(info.filename)) and not _is_hidden_member(info)
            ]
            if len(inner) != 1:
                listed = join_some([repr(info.filename) for info in inner])
                got = f"{file} holds {plural(len(inner), 'table')}" + (f": {listed}" if inner else "")
                fail(what, Problem(got, "put one table in it, or unpack it and name the folder"))
            _check_memory(file, what, inner[0].file_size, 1)
            target = Path(folder) / Path(inner[0].filename).name
            with archive.open(inner[0]) as packed, target.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
            return read_file(target, what, plain, texts, encoding)
    except (zipfile.BadZipFile, RuntimeError) as error:
        raise InputError(what, [Problem(f"{file} is no readable zip file: {error}", "write it again")]) from error


def _is_hidden_member(info: zipfile.ZipInfo) -> bool:
    return info.is_dir() or any(part.startswith((".", "__")) for part in Path(info.filename).parts)


def _read_query_result(source: QueriedFile, what: str) -> pa.Table:
    """Read the result of a query on a file as a table; without a query, the file itself."""
    if not source.query:
        return read_source(source, what, (), ())
    files = find_files(source.path, what)
    file = files[0]
    with wrap_read_error(file, what):
        check_input_file(file, what)
        kind = detect_file_kind(file, what)
        if len(files) > 1 or kind not in READERS:
            fail(what, Problem(f"{source.path} takes no query", f"a query selects from {join_some(QUERIED_KINDS)}"))
        return validate_table(convert_to_arrow_table(read_optional_format(file, kind, what, source.query), what))


def _read_parquet(file: Path, what: str, plain: Collection[str]) -> pa.Table:
    import pyarrow.parquet as pq

    schema, rows, unpacked = inspect_parquet(file)
    # A few bytes of a file can hold a billion equal rows; in memory each row takes the width of its columns.
    _check_memory(file, what, max(unpacked, rows * sum(_min_byte_width(field.type) for field in schema)), rows)
    # Pages are decoded straight into dictionary codes: the plain strings never exist in memory. pq.read_table would fail on
    # two columns of one name before an error could name them.
    with (
        open_for_arrow(file) as stream,
        pq.ParquetFile(stream, read_dictionary=list_dictionary_columns(schema, plain)) as opened,
    ):
        return validate_table(opened.read())


def _min_byte_width(kind: pa.DataType) -> float:
    try:
        return float(kind.bit_width) / 8
    except ValueError:  # a type of variable width
        return 4


def inspect_parquet(file: Path) -> tuple[pa.Schema, int, int]:
    """Return the schema, the number of rows and the uncompressed size in bytes of a Parquet file."""
    import pyarrow.parquet as pq

    with open_for_arrow(file) as stream, pq.ParquetFile(stream) as opened:
        metadata = opened.metadata
        pages = sum(metadata.row_group(k).total_byte_size for k in range(metadata.num_row_groups))
        return opened.schema_arrow, metadata.num_rows, pages


def list_dictionary_columns(schema: pa.Schema, plain: Collection[str]) -> list[str]:
    """Return the names of the text columns to be read with dictionary encoding."""
    return [field.name for field in schema if is_text_type(field.type) and field.name not in plain]


def _read_arrow(file: Path, what: str) -> pa.Table:
    import pyarrow as pa

    # Read, not mapped: a file that is cut while it is mapped ends the process.
    content = pa.py_buffer(file.read_bytes())
    try:
        opened = pa.ipc.open_file(content)
        batches = (opened.get_batch(k) for k in range(opened.num_record_batches))
    except pa.ArrowInvalid:
        opened = batches = pa.ipc.open_stream(content)
    parts, size, rows = [], 0, 0
    for batch in batches:
        rows += batch.num_rows
        size += max(batch.nbytes, 4 * batch.num_rows * batch.num_columns)  # run-ends grow when they are written out
        _check_memory(file, what, size, rows)
        parts.append(batch)
    return validate_table(pa.Table.from_batches(parts, opened.schema))


def _check_memory(file: Path, what: str, size: float, rows: int) -> None:
    limit = read_memory_limit()
    if size > limit:
        rows_text = plural(rows, "row")
        got = f"{file} takes at least {format_size(size)} for {rows_text}, and this machine has {format_size(limit)}"
        fail(what, Problem(got, "read fewer rows at a time"))


def check_input_file(file: Path, what: str) -> None:
    """Refuse a path that is not a regular, non-empty file."""
    if not file.is_file():
        fail(what, Problem(f"{file} is not a regular file", "give a file or a folder of files"))
    if file.stat().st_size == 0:
        fail(what, Problem(f"{file} is empty (0 bytes)", "was the export interrupted?"))


def validate_table(table: pa.Table) -> pa.Table:
    """Check an Arrow table for corrupt names, offsets and codes, and return the table."""
    import pyarrow as pa

    _ = [field.name for field in table.schema]  # a name that is not UTF-8 raises here
    table.validate(full=True)
    arrays = [chunk for column in table.columns for chunk in column.chunks]
    while arrays:
        array = arrays.pop()
        array.validate(full=True)
        if isinstance(array, pa.DictionaryArray):
            arrays.append(array.dictionary)
    return table


def is_table_file(file: Path) -> bool:
    """Test if a file name ends like a table file, such as .csv or .parquet."""
    return file.name.lower().endswith(tuple(ending for kind in READABLE_ENDINGS.values() for ending in kind))


def detect_file_kind(file: Path, what: str) -> str:
    """Detect the kind of a table file from its name or its first bytes."""
    name = file.name.lower()
    for kind, endings in READABLE_ENDINGS.items():
        if name.endswith(endings):
            return kind
    with file.open("rb") as stream:
        head = stream.read(6)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1"):
        return "arrow"
    raise InputError(what, [Problem(f"{file} is of an unknown kind", f"known kinds: {KNOWN_KINDS}")])


@contextmanager
def wrap_read_error(file: Path, what: str) -> Iterator[None]:
    """Convert Arrow's read errors to an `InputError` that names the file."""
    import pyarrow as pa

    try:
        yield
    except PermissionError as error:
        raise InputError(what, [Problem(f"{file} may not be read", "check its permissions")]) from error
    except (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(what, [_diagnose_read_error(file, str(error))]) from error


def _diagnose_read_error(file: Path, message: str) -> Problem:
    ragged = re.search(r"Expected (\d+) columns, got (\d+)", message)
    if ragged:
        where = re.search(r"Row #(\d+)", message)
        row = f"line {where[1]}" if where else "a line"
        return Problem(
            f"{file}: {row} has {ragged[2]} fields where the header has {ragged[1]}",
            "quote fields that contain the separator",
        )
    if "UTF8" in message or "utf-8" in message:
        hint = "save it as UTF-8; some of it is UTF-8, so that it is no text of one encoding"
        return Problem(f"{file} is not UTF-8 text", hint)
    if "Not a gzipped file" in message:
        return Problem(f"{file} is not a gzip file, though its name says so", "rename it, or compress it with gzip")
    if "straddling" in message or ("Empty CSV" in message and file.stat().st_size > MAX_ROW_BYTES):
        got = f"{file} has a line of more than {MAX_ROW_BYTES >> 20} MiB"
        return Problem(got, "is a quote missing at the end of a field? Else leave the long column out")
    if "Empty CSV" in message:
        return Problem(f"{file} is empty", "was the export interrupted?")
    first = message.strip().splitlines()[0] if message.strip() else "unreadable"
    return Problem(f"{file} is damaged or cut off: {first}", "write the file again; was the export interrupted?")


def detect_csv_format(file: Path, texts: Collection[str], *, whole: bool = True, encoding: str = "") -> DelimitedSource:
    """Detect the separator, the decimal point, the code columns and, unless it is given, the encoding of a CSV file.

    With `whole`, an unpacked gzip file must fit into memory.
    """
    head = _read_head(file)
    text, encoding = (head.decode(encoding, "replace"), encoding) if encoding else decode_first_bytes(head)
    return detect_text_format(lambda: open_for_arrow(file, whole=whole), text, texts, encoding)


def open_for_arrow(file: Path, *, whole: bool = True) -> Any:
    """Open a file, unpacking gzip, as a stream for Arrow's readers.

    With `whole`, an unpacked gzip file must fit into memory.
    """
    import pyarrow as pa

    if has_gzip_ending(file):
        return pa.PythonFile(_GzipFile(file, read_memory_limit() if whole else None), mode="r")
    try:
        str(file).encode()
    except UnicodeEncodeError:  # Arrow knows only names in UTF-8
        return pa.PythonFile(file.open("rb"), mode="r")
    return pa.OSFile(str(file))


class _GzipFile(gzip.GzipFile):
    """Gzip file with a limit on the number of unpacked bytes."""

    def __init__(self, file: Path, max_size: int | None) -> None:
        super().__init__(file, "rb")
        self._file, self._max_size = file, max_size

    def read(self, size: int | None = -1) -> bytes:
        """Return the next unpacked bytes, at most `size`."""
        content = super().read(size)
        if self._max_size is not None and self.tell() > self._max_size:
            got = f"{self._file} unpacks to more than the {format_size(self._max_size)} of memory of this machine"
            fail("table", Problem(got, "write Parquet, or read fewer rows at a time"))
        return content


def has_gzip_ending(file: Path) -> bool:
    """Test if a file name ends in .gz."""
    return file.name.lower().endswith(".gz")


def _read_head(file: Path) -> bytes:
    with (gzip.open if has_gzip_ending(file) else open)(file, "rb") as stream:
        return bytes(stream.read(SNIFFED_BYTES))


# -- tables in memory --------------------------------------------------------------------------------------------------


def convert_to_arrow_table(source: Any, what: str) -> pa.Table:
    """Convert a dataframe or another table in memory to an Arrow table."""
    import pyarrow as pa

    if isinstance(source, QueriedFile):
        return _read_query_result(source, what)
    try:
        if isinstance(source, pa.Table):
            return source
        if isinstance(source, pa.RecordBatch):
            return pa.Table.from_batches([source])
        if isinstance(source, dict):
            return pa.table({str(name): values for name, values in source.items()})
        if type(source).__module__.split(".")[0] == "pandas" and hasattr(source, "columns"):
            frame = _flatten_pandas_frame(source)
            refuse(what, _find_repeated_columns(list(frame.columns)))
            return pa.Table.from_pandas(frame, preserve_index=False)
        if hasattr(source, "collect") and not hasattr(source, "__arrow_c_stream__"):
            source = source.collect()  # a polars LazyFrame
        if hasattr(source, "__arrow_c_stream__") and type(source).__name__ != "Series":
            return pa.table(source)
    except InputError:
        raise
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InputError(what, [_describe_conversion_error(error)]) from error
    got = "None" if source is None else type(source).__name__
    raise InputError(what, [Problem(f"not a table: got {got}", "give a path, or a pandas, polars or pyarrow table")])


def _describe_conversion_error(error: Exception) -> Problem:
    message = " ".join(str(argument) for argument in error.args).strip() or type(error).__name__
    column = re.search(r"Conversion failed for column (.+) with type", message)
    if column:
        return Problem(
            f"the column {column[1]!r} holds values of different types",
            f"give it one type; as text: frame[{column[1]!r}] = frame[{column[1]!r}].astype(str)",
        )
    first = message.splitlines()[0]
    return Problem(
        f"the table could not be converted: {first if len(first) <= MAX_QUOTED_LETTERS else first[:MAX_QUOTED_LETTERS] + '…'}",
        "a column is a list or array of one type, all columns of one length",
    )


def _flatten_pandas_frame(frame: Any) -> Any:
    """Return a pandas dataframe with text column names and with its named indices as columns."""
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    if named:
        frame = frame.reset_index(level=named)
    if all(isinstance(name, str) for name in frame.columns):
        return frame
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def dictionary_encode_text(table: pa.Table, plain: Collection[str]) -> pa.Table:
    """Dictionary-encode the text columns of a table, except the columns in `plain`.

    Each column has one dictionary; plain columns become strings.
    """
    import pyarrow as pa

    columns = [
        _dictionary_encode_column(column, plain=name in plain)
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    encoded = pa.Table.from_arrays(columns, names=table.column_names).unify_dictionaries()
    return encoded.replace_schema_metadata(table.schema.metadata)


def list_reading_notes(schema: pa.Schema) -> list[str]:
    """Return the reader's notes on a table's encoding, from the metadata of the table's schema."""
    note = (schema.metadata or {}).get(NOTE_KEY)
    return [] if note is None else [note.decode()]


def _dictionary_encode_column(column: pa.ChunkedArray, *, plain: bool) -> pa.ChunkedArray:
    """Dictionary-encode a text column; convert dictionary-encoded numbers or dates to a plain column."""
    import pyarrow as pa

    kind, wanted = column.type, pa.dictionary(pa.int32(), pa.string())
    if is_text_type(kind):
        return column.cast(pa.string()) if plain else column.cast(pa.string()).dictionary_encode()
    if not pa.types.is_dictionary(kind) or kind == wanted:
        return column
    if is_text_type(kind.value_type):  # polars and pandas have their own sizes of codes and kinds of text
        parts = [
            pa.DictionaryArray.from_arrays(chunk.indices.cast(pa.int32()), chunk.dictionary.cast(pa.string()))
            for chunk in column.chunks
        ]
        return pa.chunked_array(parts, type=wanted)
    return column if is_unusable_type(kind) else column.cast(kind.value_type)


def check_column_names(names: Sequence[str], rows: int, what: str) -> None:
    """Refuse a table with repeated column names or without rows."""
    problems = _find_repeated_columns(names)
    if rows == 0:
        problems.append(
            Problem(f"it has {plural(len(names), 'column')} but no rows", "was the export filtered to nothing?")
        )
    refuse(what, problems)


def _find_repeated_columns(names: Sequence[str]) -> list[Problem]:
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    return [Problem(f"two columns have the same name: {join_some(twice)}", "rename one of them")] if twice else []


# -- memory --------------------------------------------------------------------------------------------------------------


@cache
def read_memory_limit() -> int:
    """Return the memory of this machine or container, in bytes."""
    limits = [DEFAULT_MEMORY_BYTES]
    if hasattr(os, "sysconf") and {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(os.sysconf_names):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # not a container, or one without a limit
        limits.append(int(CONTAINER_LIMIT_FILE.read_text(encoding="ascii")))
    return min(limit for limit in limits if limit > 0)


def format_size(size: float) -> str:
    """Format a number of bytes with a unit such as MB.

    >>> format_size(3_200_000_000)
    '3.2 GB'
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
