"""How text that holds numbers or dates can be read: what a first campaign file says under [columns.parse]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data.columns import count_words, kind_of
from largesse.data.notation import DATE, GROUPED, NO, SAMPLE, SHAPE, YES, date_way, find_style, read_notation

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Suggestion:
    """The ways in which a column can be read: one, or several between which only its owner can choose."""

    ways: tuple[Any, ...]  # as `parse` takes them
    example: str  # a word of the column


def suggest_parse(column: pa.ChunkedArray) -> Suggestion | None:
    """Return how a column of text can be read as numbers or dates; None if it is plain, or no way fits all of it.

    >>> import pyarrow as pa
    >>> suggest_parse(pa.chunked_array([["15,09", "7"]])).ways, suggest_parse(pa.chunked_array([["1,234"]])).ways
    (('decimal comma',), ('decimal comma', 'decimal point'))
    >>> suggest_parse(pa.chunked_array([["Yes", "No"]])).ways
    ({'No': 0, 'Yes': 1},)
    """
    if kind_of(column.type) != "text" or not _may_hold_numbers(column):
        return None
    words = list(count_words(column))
    folded = {word: word.strip().casefold() for word in words}
    if set(folded.values()) <= {*YES, *NO}:
        return Suggestion(({word: (YES | NO)[fold] for word, fold in sorted(folded.items())},), words[0])
    if all(DATE.fullmatch(word) for word in words):
        way = date_way(words)
        return Suggestion((way,) if way else ("day first", "month first"), words[0])
    style = find_style(words)
    if style.certain:
        plain = "percent" if style.unit == "%" else "number"
        return Suggestion((style.way if style.way in GROUPED else plain,), words[0])
    if style.way == "ambiguous" and not style.odd:
        return Suggestion(("decimal comma", "decimal point"), words[0])
    return None


def _may_hold_numbers(column: pa.ChunkedArray) -> bool:
    """Whether some of a sample of the words could be a number or a date: a quick look, most columns end here."""
    sample = column.take(np.arange(0, len(column), max(len(column) // SAMPLE, 1)))
    return any(
        SHAPE.fullmatch(word) or DATE.fullmatch(word) or word.strip().casefold() in (YES | NO)
        for word in count_words(sample)
    )


def is_yes_or_no(suggestion: Suggestion | None) -> bool:
    """Whether a column says yes and no."""
    return suggestion is not None and isinstance(suggestion.ways[0], dict)


def read_suggested(table: pa.Table) -> tuple[pa.Table, dict[str, Suggestion]]:
    """Return a table with the columns that can be read in one way only read so, and how its text can be read."""
    ways = {name: suggest_parse(table.column(name)) for name in table.column_names}
    found = {name: way for name, way in ways.items() if way is not None}
    sure = {name: one.ways[0] for name, one in found.items() if len(one.ways) == 1}
    read = read_notation(table, sure, None).table
    # What does not fit after all, as a date that no calendar has, stays text.
    kept = {name: one for name, one in found.items() if name not in sure or kind_of(read.column(name).type) != "text"}
    return read, kept
