"""What a feature shows when its table is read in batches: enough for every rule that looks at a whole column.

Rules ask few things of a feature: whether it is empty, the same in every row or an identifier, and how its words are written.
A `Glance` gathers that batch by batch; `stand_in` is then a short column that has the same answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data.columns import FEW_ROWS, OWN_TEXT, as_floats, as_plain, as_seconds, is_number, kind_of
from largesse.data.notation import (
    DATE_NAME,
    EXCEL,
    SAMPLE,
    excel_note,
    map_words,
    may_be_read,
    parse_as,
    parse_words,
    read_words,
    recognise_words,
)
from largesse.errors import Problem

if TYPE_CHECKING:
    import pyarrow as pa

MOST_WORDS = 1 << 20  # different words of a column that are counted


@dataclass(eq=False)
class Glance:
    """What was seen of a feature so far."""

    name: str
    type: pa.DataType
    rows: int  # of the table
    asked: Any = None  # how `parse` says that it is written
    skip: bool = False  # its text stays as it is
    seen: int = 0  # rows
    nulls: int = 0
    values: Any = None  # one or two different values, of what is not words
    words: dict[str, int] = field(default_factory=dict)  # and how often they come, in order of appearance
    known: int = 0  # rows until there were too many words
    spread: set[str] = field(default_factory=set)  # words of rows spread over the table
    ends: tuple[float, float] = (np.inf, -np.inf)  # of numbers that may be dates
    hashes: tuple[Any, Any] = field(default_factory=lambda: (hashlib.blake2b(), hashlib.blake2b()))

    @property
    def has_words(self) -> bool:
        """Whether it is its words that count."""
        return kind_of(self.type) == "text" or self.asked == "text" or isinstance(self.asked, Mapping)

    def look(self, column: pa.ChunkedArray) -> None:
        """See the next rows."""
        self.nulls += column.null_count
        if self.has_words:
            self._count_words(column)
        elif DATE_NAME.search(self.name) and is_number(self.type):
            found = as_floats(column)
            found = found[np.isfinite(found)]
            low, high = self.ends
            self.ends = (min(low, found.min(initial=np.inf)), max(high, found.max(initial=-np.inf)))
        if not self.has_words:
            self._keep_values(column)
        self._hash(column)
        self.seen += len(column)

    def _keep_values(self, column: pa.ChunkedArray) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if kind_of(self.type) in ("nothing", "other") or (self.values is not None and len(self.values) > 1):
            return
        few = as_plain(column.slice(0, 1000))
        for part in (few, as_plain(column)):  # the first rows show of most columns that they vary
            own = pa.chunked_array([*([] if self.values is None else self.values.chunks), *part.chunks], part.type)
            distinct = pc.unique(own.cast(pa.float32()) if pa.types.is_float16(own.type) else own)
            if len(distinct) > 1:
                break
        self.values = pa.chunked_array([distinct.slice(0, 2)])

    def _count_words(self, column: pa.ChunkedArray) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        step = max(self.rows // SAMPLE, 1)
        column = as_plain(column).cast(pa.string())
        some = column.take(np.arange(-self.seen % step, len(column), step))
        self.spread |= set(some.unique().drop_null().to_pylist())
        if len(self.words) > MOST_WORDS:
            return
        tally = pc.value_counts(column.drop_null())
        for word, times in zip(tally.field("values").to_pylist(), tally.field("counts").to_pylist(), strict=True):
            self.words[word] = self.words.get(word, 0) + times
            self.known += times

    def _hash(self, column: pa.ChunkedArray) -> None:
        """Add values to the digest: their bytes, and the lengths of texts apart, so that batches do not matter."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = kind_of(self.type)
        if kind == "text":
            texts = pc.fill_null(column.cast(pa.large_string()), "")
            lengths = np.where(np.asarray(column.is_null()), -1, np.asarray(pc.binary_length(texts)))
            self.hashes[1].update(lengths.astype(np.int64).tobytes())
            for chunk in texts.chunks:
                start, end = np.frombuffer(chunk.buffers()[1], np.int64)[[chunk.offset, chunk.offset + len(chunk)]]
                self.hashes[0].update(memoryview(chunk.buffers()[2] or b"")[start:end])
        elif kind not in ("nothing", "other"):
            self.hashes[0].update((as_seconds(column) if kind == "date" else as_floats(column)).tobytes())

    @property
    def digest(self) -> str:
        """A digest of its name, kind and values."""
        found = hashlib.blake2b(digest_size=16)
        found.update(f"{self.name}\0{kind_of(self.type)}\0{self.asked!r}".encode("utf-8", "surrogatepass"))
        for part in self.hashes:
            found.update(part.digest())
        return found.hexdigest()


@dataclass(frozen=True)
class Outcome:
    """How a feature is read, once all of it was seen."""

    way: str | None = None  # in which its words are numbers or dates
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def conclude(glance: Glance) -> Outcome:
    """Return how a feature is read: as `read_notation` would read the whole column."""
    if glance.asked is not None:
        read = glance.has_words and glance.asked not in ("text", "excel date")
        return Outcome(problems=tuple(parse_words(glance.name, list(glance.words), glance.asked)[1] if read else ()))
    if glance.skip:
        return Outcome()
    if glance.has_words:
        if not may_be_read(sorted(glance.spread)):
            return Outcome()
        if len(glance.words) > MOST_WORDS:
            say = f"it has more than {MOST_WORDS:,} different values; if they are numbers or dates, parse says how to read them"
            return Outcome(notes=(f"column {glance.name!r} is read as text: {say}",))
        words = sorted(glance.words, key=lambda word: (-glance.words[word], word))
        way, notes = recognise_words(glance.name, words, sorted(glance.spread))
        return Outcome(way, tuple(notes))
    low, high = glance.ends
    return Outcome(notes=(excel_note(glance.name),)) if EXCEL[0] <= low <= high <= EXCEL[1] else Outcome()


def convert(column: pa.ChunkedArray, glance: Glance, outcome: Outcome) -> pa.ChunkedArray:
    """Return part of a feature, read as it was concluded."""
    import pyarrow as pa

    if glance.asked is not None:
        found = parse_as(glance.name, column, glance.asked, [])
    elif outcome.way is not None:
        words = column.cast(pa.string()).unique().drop_null().to_pylist()
        found = map_words(column, words, read_words(words, outcome.way))
    else:
        return column
    # A part without any words says nothing about its type; the words of all rows do.
    if not pa.types.is_null(found.type) or not glance.words:
        return found
    dates = (outcome.way or glance.asked) in ("day first", "month first")
    return found.cast(pa.date32() if dates else pa.float64())


def stand_in(glance: Glance, outcome: Outcome) -> pa.ChunkedArray:
    """Return a short column that has the answers of the whole column to the rules of features."""
    import pyarrow as pa

    if glance.has_words:
        if _is_identifier(glance, outcome):
            return pa.chunked_array([pa.array([str(k) for k in range(FEW_ROWS)]).dictionary_encode()])
        as_text = outcome.way is None and glance.asked in (None, "text")
        some = [*list(glance.words)[: 2 if as_text else SAMPLE], *([None] if glance.nulls else [])]
        found = convert(pa.chunked_array([pa.array(some, pa.string())]), glance, outcome)
    elif glance.values is None:  # empty, or nothing that can be compared
        return pa.chunked_array([pa.nulls(2, glance.type)])
    else:
        found = convert(glance.values, glance, outcome)
    return pa.chunked_array([*found.chunks, *found.chunks]) if len(found) == 1 else found


def _is_identifier(glance: Glance, outcome: Outcome) -> bool:
    """Whether nearly every row has a text of its own, or had one until there were too many to count."""
    import pyarrow as pa

    coded = glance.asked == "text" or (glance.asked is None and pa.types.is_dictionary(glance.type))
    many = glance.rows >= FEW_ROWS and len(glance.words) > OWN_TEXT * glance.known > 0
    return coded and outcome.way is None and many
