"""One file in, one Arrow table out: Parquet, CSV (see `delimited`) and Arrow/Feather.

A file may be damaged, cut off or made to harm. Nothing is mapped into memory, and every buffer is checked before it is
used: Arrow itself trusts the offsets, lengths and codes that a file gives.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from largesse.data.columns import is_text
from largesse.data.delimited import Text, describe_text, read_text
from largesse.data.memory import memory_limit, write_size
from largesse.data.unpacked import (
    Chunk,
    list_chunks,
    measure_file,
    measure_repeated,
    measure_stream,
    measure_views,
)
from largesse.errors import InputError, Problem, fail, plural

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
            "csv": lambda file: checked(read_text(describe_csv(file, texts))),
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


@dataclass(frozen=True, eq=False)
class ParquetFacts:
    """What a Parquet file says of itself."""

    schema: pa.Schema
    rows: int
    words: list[str]  # columns of text that are read as dictionaries
    chunks: list[Chunk]


def look_at_parquet(file: Path, what: str, plain: Collection[str], *, whole: bool = True) -> ParquetFacts:
    """Return what a Parquet file says of itself; refuse one that would unpack to more than a table may."""
    import pyarrow.parquet as pq

    with open_file(file) as stream, pq.ParquetFile(stream) as opened:
        schema, rows = opened.schema_arrow, opened.metadata.num_rows
        lengths = [opened.schema.column(k).length for k in range(opened.metadata.num_columns)]
    with file.open("rb") as raw:
        chunks = list_chunks(raw, lengths)
    words = [field.name for field in schema if is_text(field.type) and field.name not in plain]
    _check_unpacked(file, what, sum(chunk.pages for chunk in chunks), whole=whole)
    return ParquetFacts(schema, rows, words, chunks)


def _read_parquet(file: Path, what: str, plain: Collection[str]) -> pa.Table:
    import pyarrow.parquet as pq

    found = look_at_parquet(file, what, plain)
    least = sum(chunk.least for chunk in found.chunks)
    # A few bytes can stand for a billion equal rows: the least they take in memory is known beforehand.
    _check_memory(file, what, least, f"unpacks to {plural(found.rows, 'row')}: at least")
    check_repeated(file, what, found)
    # Pages are decoded straight into dictionary codes: the plain strings never exist in memory. pq.read_table would fail on
    # two columns of one name before an error could name them.
    with open_file(file) as stream, pq.ParquetFile(stream, read_dictionary=found.words) as opened:
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
    _check_memory(file, what, 4 * table.num_rows * table.num_columns, f"has {plural(table.num_rows, 'row')}: at least")
    views = [column for column in table.columns if pa.types.is_string_view(column.type)]
    _check_memory(file, what, sum(map(measure_views, views)), "holds text that repeats itself:")
    return table


def _check_unpacked(file: Path, what: str, size: float, *, whole: bool = True) -> None:
    """Refuse a file whose packed parts, of the size they announce, are beyond what a table may unpack to."""
    if size > _most(file, whole=whole):
        hint = "is it a table? If so, write it again without compression"
        fail(what, Problem(f"{file} unpacks from {write_size(file.stat().st_size)} to {write_size(size)}", hint))


def _check_memory(file: Path, what: str, size: float, got: str) -> None:
    """Refuse a file that takes more than the memory there is."""
    if size > memory_limit():
        got = f"{file} {got} {write_size(size)}, and this machine has {write_size(memory_limit())}"
        fail(what, Problem(got, "read fewer rows at a time"))


def check_repeated(file: Path, what: str, found: ParquetFacts) -> None:
    """Refuse text that is written once and stands for many rows, where it would have to be written out.

    The columns `words` stay in a dictionary; what other text takes is counted, if it could be too much.
    """
    import pyarrow.parquet as pq

    words, chunks = found.words, found.chunks
    largest = {chunk: max(chunk.beginnings, 0 if chunk.column in words else chunk.words) for chunk in chunks}
    if sum(chunk.values * size for chunk, size in largest.items()) <= memory_limit():
        return
    names = sorted({chunk.column for chunk, size in largest.items() if size})
    with open_file(file) as stream, pq.ParquetFile(stream) as opened:
        size = measure_repeated(opened, names, max(largest.values()), memory_limit())
    _check_memory(file, what, size, "holds text that repeats itself: at least")


def _most(file: Path, *, whole: bool = True) -> int:
    """Return the bytes that a file may unpack to; what is not in memory as a whole may be larger than that."""
    most = max(HARMLESS, USUAL_RATIO * file.stat().st_size)
    return min(memory_limit(), most) if whole else most


def describe_csv(file: Path, texts: Collection[str], *, whole: bool = True) -> Text:
    """Return how a CSV is written, by its first lines; with `whole`, all of it is to be in memory at once."""
    return describe_text(lambda: open_file(file, whole=whole), _head(file), texts)


def open_file(file: Path, *, whole: bool = True) -> Any:
    """Open a file for Arrow, which itself knows only names that are UTF-8."""
    import pyarrow as pa

    if is_gzip(file):
        return pa.PythonFile(_Unpacked(file, _most(file, whole=whole)), mode="r")
    try:
        str(file).encode()
    except UnicodeEncodeError:
        return pa.PythonFile(file.open("rb"), mode="r")
    return pa.OSFile(str(file))


class _Unpacked(io.RawIOBase):
    """What a gzip file unpacks to, read up to a limit: a few megabytes can unpack to more than a machine holds."""

    def __init__(self, file: Path, most: int) -> None:
        self.file, self.inner = file, gzip.open(file, "rb")  # noqa: SIM115
        self.most = most

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


def is_gzip(file: Path) -> bool:
    """Whether the name of a file says that it is packed by gzip."""
    return file.name.lower().endswith(".gz")


def _head(file: Path, size: int = 65536) -> str:
    with (gzip.open if is_gzip(file) else open)(file, "rb") as stream:
        found = stream.read(size)
    if found.startswith((b"\xff\xfe", b"\xfe\xff")):  # UTF-16, as Excel writes "Unicode text"
        raise UnicodeDecodeError("utf-8", found[:2], 0, 2, "UTF-16 byte order mark")
    return str(found.decode("utf-8", errors="replace"))
