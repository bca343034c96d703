"""How much the packed parts of a Parquet or Arrow file unpack to, before any of them is unpacked.

A few kilobytes of zstd or lz4 can stand for more than a machine holds. Both kinds of file say beside each packed part how
long it is unpacked, and their readers unpack no more than that. The sums in the footer of a Parquet file are only
claims, so its pages are walked one by one. Everything here may be damaged: what cannot be followed is an `ArrowInvalid`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

HEADER = 1 << 10  # bytes that are enough for most headers of pages
LONGEST_HEADER = 1 << 24  # what Arrow reads at most
DEEPEST = 16  # structs and lists within each other
BATCH, DICTIONARY = 3, 2  # kinds of messages that hold packed buffers
EARLY = b"ARROW:experimental_compression"  # how Arrow 0.17 said that buffers are packed; it is still understood
BYTES, FIXED, DELTA_BYTES = 6, 7, 7  # Parquet's numbers for bytes, for those of one length, and for shared beginnings
WIDTHS = {0: 0.125, 1: 4, 4: 4, BYTES: 4}  # kind → bytes of a value in memory, at least, if not 8


# -- Parquet ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Chunk:
    """One column of one group of rows: its values, and how large its pages are unpacked."""

    column: str
    values: int
    pages: int  # bytes of all pages
    least: float  # bytes that the values take in memory, at least
    words: int  # bytes of its largest dictionary, any word of which any value may be
    beginnings: int  # bytes of its largest page, if values may begin as the one before


def list_chunks(stream: Any, lengths: Sequence[int]) -> list[Chunk]:
    """Measure every column of every group of rows of a Parquet file; nothing is unpacked.

    `lengths` are those of the values of its columns, where all values of a column have one length. The footer is read here:
    Arrow's own view of a column ends the process when some of its numbers contradict each other.
    """
    import pyarrow as pa

    try:
        found = [_measure_column(stream, entry[3], lengths[k]) for group in _read_groups(stream) for k, entry in group]
    except (TypeError, ValueError, OverflowError, LookupError, AttributeError) as error:
        raise pa.ArrowInvalid("a column that cannot be found") from error
    return found


def _read_groups(stream: Any) -> Iterator[Iterator[tuple[int, dict[int, Any]]]]:
    """Return what the footer says about the columns of each group of rows."""
    size = stream.seek(-8, os.SEEK_END)
    length = int.from_bytes(stream.read(4), "little")
    stream.seek(max(size - length, 0))
    footer = _Compact(stream.read(length)).read_struct()
    return (enumerate(group[1]) for group in footer[4])


def _measure_column(stream: Any, found: dict[int, Any], length: int) -> Chunk:
    kind, name, values = found[1], found[3][0].decode(), max(found[5], 0)
    begin = found[9] if not 0 < found.get(11, 0) < found[9] else found[11]
    pages = _measure_pages(stream, begin, begin + found[7], values)
    width = length if kind == FIXED else WIDTHS.get(kind, 8)
    repeated = (pages.words, pages.beginnings) if kind == BYTES else (0, 0)
    return Chunk(name, values, pages.size, values * width, *repeated)


@dataclass
class _Pages:
    size: int = 0  # of all pages, unpacked
    words: int = 0  # of the largest dictionary
    beginnings: int = 0  # of the largest page whose values may begin as the one before


def _measure_pages(stream: Any, at: int, end: int, values: int) -> _Pages:
    """Walk through the pages of a column."""
    found, seen = _Pages(), 0
    while seen < values and at < end:
        header, length = _read_header(stream, at, end)
        unpacked, packed = _size(header[2]), _size(header[3])
        found.size += unpacked
        for kind, place in (
            (5, 2),
            (8, 4),
        ):  # a page of values, of the first and of the second kind: where its encoding stands
            if kind in header:
                seen += _size(header[kind][1])
                found.beginnings = max(found.beginnings, unpacked if header[kind][place] == DELTA_BYTES else 0)
        found.words = max(found.words, unpacked if 7 in header else 0)
        at += length + packed
    return found


def _size(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError("not a size")
    return value


def _read_header(stream: Any, at: int, end: int) -> tuple[dict[int, Any], int]:
    """Return the fields of the header of a page, and its length."""
    import pyarrow as pa

    size = HEADER
    while True:
        stream.seek(at)
        content = stream.read(max(min(size, end - at), 0))
        compact = _Compact(content)
        try:
            return compact.read_struct(), compact.at
        except (IndexError, ValueError, RecursionError) as error:
            if len(content) < size or size >= LONGEST_HEADER:
                raise pa.ArrowInvalid("a page whose header cannot be read") from error
        size *= 16


class _Compact:
    """Reads Thrift's compact form: whole numbers, bytes, lists and structs."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def read_struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > DEEPEST:
            raise ValueError("too deep")
        found: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._whole()
            found[number] = self._read(head & 15, depth)
        return found

    def _read(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):  # true and false: the kind is the value
            return kind == 1
        if kind in (4, 5, 6):
            return self._whole()
        if kind in (3, 7, 8):
            return self._take({3: 1, 7: 8}.get(kind) or self._varint())
        if kind == 12:
            return self.read_struct(depth + 1)
        if kind in (9, 10):
            return self._read_list(depth)
        raise ValueError(f"kind {kind}")

    def _read_list(self, depth: int) -> list[Any]:
        if depth > DEEPEST:
            raise ValueError("too deep")
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._varint()
        return [self._byte() if head & 15 in (1, 2) else self._read(head & 15, depth + 1) for _ in range(size)]

    def _byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number without an end")

    def _whole(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _take(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self.content):
            raise IndexError("beyond the end")
        return self.content[self.at - size : self.at]


def measure_repeated(opened: pq.ParquetFile, columns: list[str], largest: int, most: int) -> int:
    """Return the bytes that columns take without a dictionary, counted until they are more than `most`."""
    size = 0
    for batch in opened.iter_batches(batch_size=max(most // max(largest, 1), 1), columns=columns):
        size += batch.nbytes
        if size > most:
            break
    return size


# -- Arrow --------------------------------------------------------------------------------------------------------------


def measure_stream(content: pa.Buffer) -> int:
    """Return the bytes that the packed buffers of a stream of messages unpack to."""
    import pyarrow as pa

    messages = pa.ipc.MessageReader.open_stream(content)
    return sum(map(_measure_message, messages))


def measure_file(content: pa.Buffer) -> int:
    """Return the bytes that the packed buffers of an Arrow file unpack to, those listed twice counted twice."""
    import pyarrow as pa

    size = content.size
    try:
        (length,) = struct.unpack("<i", content.slice(size - 10, 4).to_pybytes())
        footer = _Table(memoryview(content.slice(size - 10 - length, length)))
        blocks = [struct.unpack_from("<qiiq", footer.bytes, at) for n in (2, 3) for at in footer.items(n, 24)]
        total = 0
        for start, head, _, body in blocks:
            if min(start, head, body) < 0 or start + head + body > size:
                raise pa.ArrowInvalid("a block beyond the end")
            total += _measure_message(pa.ipc.read_message(content.slice(start, head + body)))
        return total
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise pa.ArrowInvalid("a footer that cannot be read") from error


def _measure_message(message: Any) -> int:
    """Return the bytes that the buffers of a message unpack to; none, if they are not packed."""
    import pyarrow as pa

    try:
        table = _Table(memoryview(message.metadata))
        kind = table.number(1, "<B")
        header = table.table(2)
        if kind == DICTIONARY and header is not None:
            header = header.table(1)
        if kind not in (BATCH, DICTIONARY) or header is None:
            return 0
        if header.table(3) is None and EARLY not in bytes(table.bytes):
            return 0
        total = 0
        for at in header.items(2, 16):
            start, length = struct.unpack_from("<qq", header.bytes, at)
            if length >= 8:
                (unpacked,) = struct.unpack("<q", message.body.slice(start, 8).to_pybytes())
                total += max(unpacked, 0)  # -1 stands for a buffer that is not packed
        return total
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise pa.ArrowInvalid("a message that cannot be read") from error


class _Table:
    """A table of a flatbuffer: its numbers, tables and lists, by the number of their field."""

    def __init__(self, content: memoryview, at: int | None = None) -> None:
        self.bytes = content
        self.at = self._follow(0) if at is None else at

    def _follow(self, at: int) -> int:
        return at + int(struct.unpack_from("<I", self.bytes, at)[0])

    def _field(self, number: int) -> int | None:
        where = self.at - int(struct.unpack_from("<i", self.bytes, self.at)[0])
        if where < 0:
            raise ValueError("before the beginning")
        (size,) = struct.unpack_from("<H", self.bytes, where)
        if 4 + 2 * number >= size:
            return None
        (offset,) = struct.unpack_from("<H", self.bytes, where + 4 + 2 * number)
        return self.at + int(offset) if offset else None

    def number(self, number: int, form: str) -> int:
        at = self._field(number)
        return 0 if at is None else int(struct.unpack_from(form, self.bytes, at)[0])

    def table(self, number: int) -> _Table | None:
        at = self._field(number)
        return None if at is None else _Table(self.bytes, self._follow(at))

    def items(self, number: int, size: int) -> range:
        """Return where the items of a list of structs begin."""
        at = self._field(number)
        if at is None:
            return range(0)
        first = self._follow(at)
        (count,) = struct.unpack_from("<I", self.bytes, first)
        return range(first + 4, first + 4 + count * size, size)


def measure_views(column: pa.ChunkedArray) -> int:
    """Return the bytes of a column of views of text: many views may show the same text."""
    import numpy as np

    size = 0
    for chunk in column.chunks:
        views = np.frombuffer(chunk.buffers()[1], np.int32, 4 * (chunk.offset + len(chunk)))[4 * chunk.offset :: 4]
        size += int(views[np.asarray(chunk.is_valid())].sum(dtype=np.int64))
    return size
