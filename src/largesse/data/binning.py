"""Binning of a column into groups that are learnt from some rows and assigned to any others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from largesse.data.arrow_columns import as_floats, as_seconds, count_words, kind_of, word_codes
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Groups:
    """Binned column: the group of every row, and the labels of the groups."""

    code: Array  # (n,) int64, an index into labels
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Grouping:
    """Binning rule of a column: by words, by values, or by ranges of numbers or dates.

    The last group is for missing values.
    """

    kind: Literal["words", "values", "ranges", "dates", "nothing"]
    labels: tuple[str, ...]
    words: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()  # rising: distinct values, or upper ends of ranges

    def code(self, column: pa.ChunkedArray) -> Array:
        """Return the group (n,) of every row of a column, as an index into `labels`."""
        missing = len(self.labels) - 1
        if self.kind == "nothing":
            return np.full(len(column), missing)
        if self.kind == "words":
            code = word_codes(column, self.words)
            code[np.asarray(column.is_null())] = missing
            return code
        values = as_seconds(column) if self.kind == "dates" else as_floats(column)
        known, numbers = np.isfinite(values), np.array(self.numbers)
        code = np.full(len(values), missing)
        place = np.searchsorted(numbers, values[known], side="left")
        if self.kind == "values":  # other values belong to the group "other"
            same = (place < len(numbers)) & (numbers[np.minimum(place, len(numbers) - 1)] == values[known])
            place = np.where(same, place, len(numbers))
        code[known] = place
        return code


def find_grouping(column: pa.ChunkedArray, most: int) -> Grouping:
    """Find a binning rule with about `most` groups for a column.

    Groups are the most frequent words, the distinct values if they are few, or ranges with about equal numbers of rows.

    Other words or values are one more group, and so are missing values.
    """
    import pyarrow as pa

    kind = kind_of(column.type)
    if kind in ("nothing", "other"):
        return Grouping("nothing", ("missing",))
    if kind == "text":
        frequent = tuple(sorted(list(count_words(column))[:most]))
        return Grouping("words", (*frequent, "other", "missing"), words=frequent)
    if kind == "date":
        cuts = _find_cuts(as_seconds(column), most)
        return _name_ranges("dates", cuts, lambda second: str(np.datetime64(int(second), "s"))[:10])
    values = as_floats(column)
    known = values[np.isfinite(values)]
    flags = pa.types.is_boolean(column.type)
    # The first rows show at once that most columns have more values than groups.
    has_few_values = len(known) and len(np.unique(known[: 100 * most])) <= most and len(np.unique(known)) <= most
    if flags or has_few_values:
        distinct = tuple(map(float, np.unique(known)))
        names = ("yes" if value else "no" for value in distinct) if flags else map(name_value, distinct)
        return Grouping("values", (*names, "other", "missing"), numbers=distinct)
    whole = bool((known == np.floor(known)).all()) and np.abs(known).max(initial=0.0) < 2**53
    return _name_ranges("ranges", _find_cuts(values, most), name_value, whole)


def group_column(column: pa.ChunkedArray, most: int) -> Groups:
    """Bin a column into about `most` groups, by the rule of `find_grouping`.

    >>> import pyarrow as pa
    >>> group_column(pa.chunked_array([[1, 2, 3, 4, None]]), most=2).labels
    ('up to 2', 'over 2', 'missing')
    """
    grouping = find_grouping(column, most)
    return name_groups(grouping, grouping.code(column))


def name_groups(grouping: Grouping, code: Array) -> Groups:
    """Return the groups of rows from their codes (n,), without empty groups of missing or other values."""
    spare = 0 if grouping.kind == "nothing" else 1 if grouping.kind in ("ranges", "dates") else 2
    n_found = len(grouping.labels) - spare
    used = [g for g in range(len(grouping.labels)) if g < n_found or (code == g).any()]
    position = np.zeros(len(grouping.labels), dtype=code.dtype)
    position[used] = np.arange(len(used))
    return Groups(position[code], tuple(grouping.labels[g] for g in used))


def _find_cuts(values: Array, most: int) -> Array | None:
    """Return the upper ends of ranges with about equal numbers of values; None if all values are missing."""
    inside = values[np.isfinite(values)]
    if not len(inside):
        return None
    cuts = np.unique(np.quantile(inside, np.linspace(0, 1, most + 1)[1:-1], method="inverted_cdf"))
    return cuts[cuts < inside.max()]


def _name_ranges(
    kind: Literal["ranges", "dates"], cuts: Array | None, label: Callable[[float], str], whole: bool = False
) -> Grouping:
    """Return the binning rule for ranges that end at `cuts`, with labels for these ranges.

    Ranges of integers begin after the end of the previous range.
    """
    if cuts is None:
        return Grouping("nothing", ("missing",))
    texts = [label(cut) for cut in cuts]
    if whole:
        between = [label(b) if b == a + 1 else f"{label(a + 1)} – {label(b)}" for a, b in pairwise(cuts)]
    else:
        between = [f"over {a}, up to {b}" for a, b in pairwise(texts)]
    ranges = (f"up to {texts[0]}", *between, f"over {texts[-1]}") if texts else ("all",)
    return Grouping(kind, (*ranges, "missing"), numbers=tuple(map(float, cuts)))


def name_value(value: float) -> str:
    """Format a number for the label of a group.

    It has a minus sign, and no comma in four digits, which may be a year.
    """
    if abs(value) < 1000 and not float(value).is_integer():
        return f"{value:.3g}".replace("-", "−")
    text = f"{value:.0f}" if abs(value) < 10_000 else f"{value:,.0f}"
    return text.replace("-", "−")
