"""Reader of CSV and other delimited text, with detection of separator, decimal point and column types.

`read_delimited_text` reads everything, with Arrow's type inference. `infer_column_types` infers the same types with one block in
memory: a column begins with the type of its first block; where a later value does not fit, it gets the next type in Arrow's order
that the value fits. `iterate_text_blocks` then reads block by block.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from csv import Error as CsvError
from csv import reader as csv_reader
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from largesse.errors import Problem, repr_short

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 1 << 24
MAX_ROW_BYTES = 1 << 26
UTF8, WESTERN = "utf8", "cp1252"
ENCODING_NAMES = {WESTERN: "Windows-1252 (Western European)", "utf-16": "UTF-16"}
NOTE_KEY = b"largesse_note"  # of a schema: a remark about the way in which a file was read
MISFIT_MESSAGE = re.compile(
    r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to .+?: (?:invalid value|expected .*?offset in) '(.*)'",
    re.DOTALL,
)


@dataclass(frozen=True, eq=False)
class DelimitedSource:
    """Delimited text file with its separator, decimal point and column types."""

    open: Callable[[], Any]
    delimiter: str
    decimal: str
    types: dict[str, pa.DataType]  # of the columns whose types are known
    columns: int  # of the header
    careful: bool = False  # True to read on one thread, which allows line breaks in fields and names an invalid line
    names: tuple[str, ...] = field(default=(), kw_only=True)  # known once types are settled
    rows: int = field(default=0, kw_only=True)  # likewise
    encoding: str = UTF8
    may_be_western: bool = False  # True if the first lines are ASCII: bytes that are not UTF-8 may come later

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns of the text."""
        import pyarrow as pa

        return pa.schema([(name, self.types[name]) for name in self.names]).with_metadata(self.encoding_metadata)

    @property
    def encoding_metadata(self) -> dict[bytes, bytes] | None:
        """Schema metadata that names the guessed encoding; None for UTF-8."""
        name = ENCODING_NAMES.get(self.encoding)
        if name is None:
            return None
        text = f"the file is not UTF-8; it was read as {name}: check names with accents, and save it as UTF-8 if they are wrong"
        return {NOTE_KEY: text.encode()}

    @property
    def in_western(self) -> DelimitedSource:
        """The same text source, decoded as Windows-1252 (Western European)."""
        return replace(self, encoding=WESTERN, may_be_western=False)


def find_encoding_problems(name: str) -> list[Problem]:
    """Return the problem of an unknown encoding; an empty name is a guess.

    >>> find_encoding_problems("cp1251"), find_encoding_problems("")
    ([], [])
    """
    with suppress(LookupError, ValueError):
        if not name or "x".encode(name).decode(name) == "x":
            return []
    return [Problem(f"encoding is {repr_short(name)}", "name one that Python knows: utf-8, cp1251, iso-8859-2, utf-16")]


def decode_first_bytes(head: bytes) -> tuple[str, str]:
    """Decode the first bytes of a file, and guess the encoding: UTF-8, UTF-16 or Windows-1252.

    A text with both valid and invalid sequences of UTF-8 is damaged, not Western.

    >>> decode_first_bytes("Größe".encode()), decode_first_bytes("Größe".encode("cp1252"))
    (('Größe', 'utf8'), ('Größe', 'cp1252'))
    """
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):  # as Excel writes "Unicode text"
        return head[: len(head) // 2 * 2].decode("utf-16", errors="replace"), "utf-16"
    text = head.decode("utf-8", errors="replace")
    cut = text[:-1] if text.endswith("\ufffd") and len(head) > 4 else text  # the last letter may be incomplete
    foreign = {letter for letter in cut if ord(letter) > 127}
    if foreign == {"\ufffd"}:
        with suppress(UnicodeDecodeError):
            return head.decode(WESTERN), WESTERN
    return text, UTF8


def detect_text_format(
    opener: Callable[[], Any], head: str, texts: Collection[str], encoding: str = UTF8
) -> DelimitedSource:
    """Detect the separator, the decimal point and the code columns from the first lines of a delimited text.

    The columns `texts` stay text, even if they hold digits.
    """
    import pyarrow as pa

    delimiter, decimal = _detect_dialect(head)
    kinds = dict.fromkeys([*texts, *_find_code_columns(head, delimiter)], pa.string())
    columns = head.partition("\n")[0].count(delimiter) + 1
    ascii_only = encoding == UTF8 and head.isascii()
    text = DelimitedSource(opener, delimiter, decimal, kinds, columns, _has_quoted_newlines(head))
    return replace(text, encoding=encoding, may_be_western=ascii_only)


def read_delimited_text(text: DelimitedSource) -> pa.Table:
    """Read all rows of delimited text into a table."""
    import pyarrow as pa

    try:
        table = _parse_whole_text(text)
    except pa.ArrowInvalid:
        # Again, on one thread and in larger blocks: line breaks inside quotes may come late in the file, a header or a row may
        # be longer than a block, and only one thread can name a bad line.
        table = _parse_whole_text(replace(text, careful=True))
    if text.may_be_western and _has_binary_columns(table.schema):
        return read_delimited_text(text.in_western)
    _refuse_binary_columns(table.schema)
    return table.replace_schema_metadata(text.encoding_metadata)


def _has_binary_columns(schema: pa.Schema) -> bool:
    import pyarrow as pa

    return any(pa.types.is_binary(column.type) for column in schema)  # what Arrow makes of text that is not UTF-8


def _refuse_binary_columns(schema: pa.Schema) -> None:
    import pyarrow as pa

    for column in schema:
        if pa.types.is_binary(column.type):  # what Arrow makes of text that is not UTF-8
            raise pa.ArrowInvalid(f"invalid UTF8 in column {column.name}")


def _parse_whole_text(text: DelimitedSource) -> pa.Table:
    import pyarrow.csv as csv

    with text.open() as stream:
        size = MAX_ROW_BYTES if text.careful else None  # a row must fit into a block
        options = csv.ReadOptions(use_threads=not text.careful, block_size=size, encoding=text.encoding)
        return csv.read_csv(stream, options, **_make_arrow_options(text))


def _make_arrow_options(text: DelimitedSource, columns: Sequence[str] | None = None) -> dict[str, Any]:
    import pyarrow.csv as csv

    return {
        "parse_options": csv.ParseOptions(delimiter=text.delimiter, newlines_in_values=text.careful),
        "convert_options": csv.ConvertOptions(
            strings_can_be_null=True,
            decimal_point=text.decimal,
            column_types=text.types,
            include_columns=None if columns is None else list(columns),
        ),
    }


# -- block by block ------------------------------------------------------------------------------------------------------


def infer_column_types(text: DelimitedSource) -> DelimitedSource:
    """Infer the column types of a delimited text, and count its rows, block by block."""
    import pyarrow as pa

    while True:
        try:
            return _try_column_types(text)
        except _TypeMisfitError as error:
            text = replace(text, names=error.names, types=text.types | error.types)
        except pa.ArrowInvalid as error:
            if text.may_be_western and "UTF8" in str(error):
                text = replace(text.in_western, names=())
            elif text.careful:
                raise
            else:
                text = replace(text, careful=True)


def iterate_text_blocks(text: DelimitedSource, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a delimited text with known column types, block by block."""
    with _open_block_reader(text, columns) as reader:
        yield from reader


@contextmanager
def _open_block_reader(text: DelimitedSource, columns: Sequence[str] | None = None) -> Iterator[Any]:
    import pyarrow.csv as csv

    size = MAX_ROW_BYTES if text.careful else BLOCK_BYTES
    options = csv.ReadOptions(use_threads=not text.careful, block_size=size, encoding=text.encoding)
    with text.open() as opened, csv.open_csv(opened, options, **_make_arrow_options(text, columns)) as reader:
        yield reader


class _TypeMisfitError(Exception):
    """Error for a value that does not fit the type of its column."""

    def __init__(self, names: tuple[str, ...], types: dict[str, pa.DataType]) -> None:
        super().__init__()
        self.names, self.types = names, types


def _try_column_types(text: DelimitedSource) -> DelimitedSource:
    """Read a whole text with assumed column types, and count the rows.

    Raises `_TypeMisfitError` at a value that does not fit.
    """
    import pyarrow as pa

    names, types, rows = text.names, text.types, 0
    try:
        with _open_block_reader(text) as reader:
            _refuse_binary_columns(reader.schema)
            names, types = tuple(reader.schema.names), {column.name: column.type for column in reader.schema}
            rows = sum(batch.num_rows for batch in reader)
    except pa.ArrowInvalid as error:
        misfit = MISFIT_MESSAGE.search(str(error))
        if misfit is None or int(misfit[1]) >= len(names):
            raise
        name = names[int(misfit[1])]
        raise _TypeMisfitError(names, types | {name: _widen_type(types[name], misfit[2], text.decimal)}) from error
    return replace(text, names=names, types=types, rows=rows)


def _widen_type(kind: pa.DataType, value: str, decimal: str) -> pa.DataType:
    """Return the next wider Arrow type that a value fits."""
    import pyarrow as pa

    stamps = [pa.timestamp(unit, tz=zone) for unit in ("s", "ns") for zone in (None, "UTC")]
    order = [pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), *stamps, pa.float64(), pa.string()]
    later = order[order.index(kind) + 1 :] if kind in order else []
    return next((other for other in later if _fits_type(value, other, decimal)), pa.string())


def _fits_type(value: str, kind: pa.DataType, decimal: str) -> bool:
    import pyarrow as pa
    import pyarrow.csv as csv

    written = 'x\n"' + value.replace('"', '""') + '"\n'
    options = csv.ConvertOptions(column_types={"x": kind}, decimal_point=decimal)
    parse = csv.ParseOptions(newlines_in_values=True)
    try:
        csv.read_csv(io.BytesIO(written.encode("utf-8", "surrogatepass")), parse_options=parse, convert_options=options)
    except pa.ArrowInvalid:
        return False
    return True


# -- how it is written ---------------------------------------------------------------------------------------------------


def _detect_dialect(head: str) -> tuple[str, str]:
    """Detect the separator from the header line, and a decimal comma from the values."""
    header, _, body = head.partition("\n")
    delimiter = max(",;\t|", key=header.count)
    if header.count(delimiter) == 0:
        return ",", "."
    commas = delimiter == ";" and re.search(r"(^|;)-?\d+,\d+(;|\r?$)", body, re.MULTILINE)
    points = re.search(r"(^|;)-?\d+\.\d+(;|\r?$)", body, re.MULTILINE)
    return delimiter, "," if commas and not points else "."


def _find_code_columns(head: str, delimiter: str) -> list[str]:
    """Return the names of columns, such as postcodes, that would lose leading zeros as numbers."""
    try:
        rows = list(itertools.islice(csv_reader(head.splitlines()[:-1], delimiter=delimiter), 500))
    except CsvError:  # reading the file will report the line
        return []
    columns = zip(*(row for row in rows[1:] if len(row) == len(rows[0])), strict=True)
    return [
        name for name, values in zip(rows[0] if rows else [], columns, strict=False) if _are_zero_padded_codes(values)
    ]


def _are_zero_padded_codes(values: Sequence[str]) -> bool:
    """Test if values are digit strings of equal length, some with a leading zero."""
    known = [value for value in values if value]
    digits = all(re.fullmatch("[0-9]{4,}", value) for value in known)
    return digits and len(set(map(len, known))) == 1 and any(value.startswith("0") for value in known)


def _has_quoted_newlines(head: str) -> bool:
    """Test if a quoted field among the first lines contains a line break."""
    return any(line.count('"') % 2 for line in head.splitlines()[:200])
