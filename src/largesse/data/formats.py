"""One file in, one Arrow table out: Parquet, CSV (also .gz, also ; or tab separated) and Arrow/Feather.

A file may be damaged, cut off or made to harm. Nothing is mapped into memory, and every buffer is checked before it is
used: Arrow itself trusts the offsets, lengths and codes that a file gives.
"""

from __future__ import annotations

import gzip
import io
import itertools
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from csv import Error as CsvError
from csv import reader as csv_reader
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from largesse.data.columns import is_text
from largesse.data.memory import memory_limit, write_size
from largesse.data.unpacked import (
    Chunk,
    list_chunks,
    measure_file,
    measure_repeated,
    measure_stream,
    measure_views,
)
from largesse.errors import InputError, Problem, count, fail

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz"),
    "arrow": (".arrow", ".feather", ".ipc"),
}
KNOWN = "Parquet (.parquet), CSV (.csv, .csv.gz) and Arrow/Feather (.arrow, .feather)"
USUAL_RATIO = 100  # tables rarely shrink more than this when they are packed …
HARMLESS = 1 << 30  # … and those that unpack to less than this may


def read_file(file: Path, what: str, plain: Collection[str] = (), texts: Collection[str] = ()) -> pa.Table:
    """Read one file; text of Parquet comes dictionary-encoded, except in the `plain` columns.

    The columns `texts` of a CSV are text, even where they hold digits.
    """
    with explain(file, what):
        check_file(file, what)
        readers: dict[str, Callable[[Path], pa.Table]] = {
            "parquet": partial(_read_parquet, what=what, plain=plain),
            "csv": partial(_read_csv, texts=texts),
            "arrow": partial(_read_arrow, what=what),
        }
        return readers[kind_of_file(file, what)](file)


def check_file(file: Path, what: str) -> None:
    """Refuse what is not a regular file, or is empty."""
    if not file.is_file():
        fail(what, Problem(f"{file} is not a regular file", "give a file or a folder of files"))
    if file.stat().st_size == 0:
        fail(what, Problem(f"{file} is empty (0 bytes)", "was the export interrupted?"))


def checked(table: pa.Table) -> pa.Table:
    """Return a table whose every name, offset, length and code was checked: Arrow would follow them anywhere."""
    _ = [field.name for field in table.schema]  # a name that is not UTF-8 raises here
    table.validate(full=True)
    for column in table.columns:
        for chunk in column.chunks:
            _check_array(chunk)
    return table


def _check_array(array: pa.Array) -> None:
    import pyarrow as pa

    array.validate(full=True)
    if isinstance(array, pa.DictionaryArray):
        _check_array(array.dictionary)


def is_table(file: Path) -> bool:
    """Whether the name of a file ends as that of a table."""
    return file.name.lower().endswith(tuple(ending for kind in KINDS.values() for ending in kind))


def kind_of_file(file: Path, what: str) -> str:
    """Return the kind of a table, by the ending of its name or its first bytes."""
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
def explain(file: Path, what: str) -> Iterator[None]:
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


def _read_parquet(file: Path, what: str, plain: Collection[str]) -> pa.Table:
    import pyarrow.parquet as pq

    with open_file(file) as stream, pq.ParquetFile(stream) as opened:
        schema, rows = opened.schema_arrow, opened.metadata.num_rows
        lengths = [opened.schema.column(k).length for k in range(opened.metadata.num_columns)]
    with file.open("rb") as raw:
        chunks = list_chunks(raw, lengths)
    words = [field.name for field in schema if is_text(field.type) and field.name not in plain]
    _check_unpacked(file, what, sum(chunk.pages for chunk in chunks))
    # A few bytes can stand for a billion equal rows: the least they take in memory is known beforehand.
    _check_memory(file, what, sum(chunk.least for chunk in chunks), f"unpacks to {count(rows, 'row')}: at least")
    _check_repeated(file, what, chunks, words)
    # Pages are decoded straight into dictionary codes: the plain strings never exist in memory. pq.read_table would fail on
    # two columns of one name before an error could name them.
    with open_file(file) as stream, pq.ParquetFile(stream, read_dictionary=words) as opened:
        return checked(opened.read())


def _read_arrow(file: Path, what: str) -> pa.Table:
    import pyarrow as pa

    # Read, not mapped: a file that is cut while it is mapped ends the process.
    content = pa.py_buffer(file.read_bytes())
    try:
        opened, size = pa.ipc.open_file(content), measure_file(content)
    except pa.ArrowInvalid:
        opened, size = pa.ipc.open_stream(content), measure_stream(content)
    _check_unpacked(file, what, size)
    table = checked(opened.read_all())
    # Columns that say how often a value comes, or show the same text many times, are small only until they are read.
    _check_memory(file, what, 4 * table.num_rows * table.num_columns, f"has {count(table.num_rows, 'row')}: at least")
    views = [column for column in table.columns if pa.types.is_string_view(column.type)]
    _check_memory(file, what, sum(map(measure_views, views)), "holds text that repeats itself:")
    return table


def _check_unpacked(file: Path, what: str, size: float) -> None:
    """Refuse a file whose packed parts, of the size they announce, are beyond what a table may unpack to."""
    if size > _most(file):
        hint = "is it a table? If so, write it again without compression"
        fail(what, Problem(f"{file} unpacks from {write_size(file.stat().st_size)} to {write_size(size)}", hint))


def _check_memory(file: Path, what: str, size: float, got: str) -> None:
    """Refuse a file that takes more than the memory there is."""
    if size > memory_limit():
        got = f"{file} {got} {write_size(size)}, and this machine has {write_size(memory_limit())}"
        fail(what, Problem(got, "read fewer rows at a time"))


def _check_repeated(file: Path, what: str, chunks: list[Chunk], words: list[str]) -> None:
    """Refuse text that is written once and stands for many rows, where it would have to be written out.

    The columns `words` stay in a dictionary; what other text takes is counted, if it could be too much.
    """
    import pyarrow.parquet as pq

    largest = {chunk: max(chunk.beginnings, 0 if chunk.column in words else chunk.words) for chunk in chunks}
    if sum(chunk.values * size for chunk, size in largest.items()) <= memory_limit():
        return
    names = sorted({chunk.column for chunk, size in largest.items() if size})
    with open_file(file) as stream, pq.ParquetFile(stream) as opened:
        size = measure_repeated(opened, names, max(largest.values()), memory_limit())
    _check_memory(file, what, size, "holds text that repeats itself: at least")


def _most(file: Path) -> int:
    """Return the bytes that a file may unpack to."""
    return min(memory_limit(), max(HARMLESS, USUAL_RATIO * file.stat().st_size))


def _read_csv(file: Path, texts: Collection[str]) -> pa.Table:
    import pyarrow as pa

    head = _head(file)
    try:
        table = _parse_csv(file, head, texts, careful=_quoted_newlines(head))
    except pa.ArrowInvalid:
        # Again, on one thread: line breaks inside quotes may come late in the file, and only one thread can name a bad line.
        table = _parse_csv(file, head, texts, careful=True)
    for column in table.schema:
        if pa.types.is_binary(column.type):  # what Arrow makes of text that is not UTF-8
            raise pa.ArrowInvalid(f"invalid UTF8 in column {column.name}")
    return checked(table)


def _parse_csv(file: Path, head: str, texts: Collection[str], *, careful: bool) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv as csv

    delimiter, decimal = _dialect(head)
    kinds = dict.fromkeys([*texts, *_find_codes(head, delimiter)], pa.string())
    with open_file(file) as stream:
        return csv.read_csv(
            stream,
            read_options=csv.ReadOptions(use_threads=not careful),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=careful),
            convert_options=csv.ConvertOptions(strings_can_be_null=True, decimal_point=decimal, column_types=kinds),
        )


def open_file(file: Path) -> Any:
    """Open a file for Arrow, which itself knows only names that are UTF-8."""
    import pyarrow as pa

    if _is_gzip(file):
        return pa.PythonFile(_Unpacked(file), mode="r")
    try:
        str(file).encode()
    except UnicodeEncodeError:
        return pa.PythonFile(file.open("rb"), mode="r")
    return pa.OSFile(str(file))


class _Unpacked(io.RawIOBase):
    """What a gzip file unpacks to, read up to a limit: a few megabytes can unpack to more than a machine holds."""

    def __init__(self, file: Path) -> None:
        self.file, self.inner = file, gzip.open(file, "rb")  # noqa: SIM115
        self.most = _most(file)

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, at most `size`."""
        found: bytes = self.inner.read(size)
        if self.inner.tell() > self.most:
            what = f"{self.file} unpacks to more than {write_size(self.most)}"
            fail("table", Problem(what, "is it a table? If so, unpack it first, or write Parquet"))
        return found

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def close(self) -> None:
        """Close the file."""
        self.inner.close()
        super().close()


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


def _find_codes(head: str, delimiter: str) -> list[str]:
    """Return the columns of codes, like postcodes: as numbers they would lose their leading zeros."""
    try:
        rows = list(itertools.islice(csv_reader(head.splitlines()[:-1], delimiter=delimiter), 500))
    except CsvError:  # a line that is no CSV; reading the file will say so
        return []
    columns = zip(*(row for row in rows[1:] if len(row) == len(rows[0])), strict=True)
    return [name for name, values in zip(rows[0] if rows else [], columns, strict=False) if _are_codes(values)]


def _are_codes(values: Sequence[str]) -> bool:
    """Whether values are digits of one length, four or more, some with a zero in front."""
    known = [value for value in values if value]
    digits = all(re.fullmatch("[0-9]{4,}", value) for value in known)
    return digits and len(set(map(len, known))) == 1 and any(value.startswith("0") for value in known)


def _quoted_newlines(head: str) -> bool:
    """Whether an early quoted field spans lines; reading such a file takes a slower path."""
    return any(line.count('"') % 2 for line in head.splitlines()[:200])
