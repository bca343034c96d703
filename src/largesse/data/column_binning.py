"""Groups of a column's values: frequent words, or ranges of numbers or dates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from largesse.data.arrow_columns import (
    convert_to_floats,
    convert_to_seconds,
    count_words,
    find_feature_kind,
    index_words,
)
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class ValueGroups:
    """Group number of every row of a column, with the labels of the groups."""

    code: Array  # (n,) int64, an index into labels
    labels: tuple[str, ...]


@dataclass(frozen=True)
class GroupingRule:
    """Rule that assigns the values of a column to groups: by words, by numbers, or by ranges of numbers or dates.

    The last group is for missing values.
    """

    kind: Literal["words", "values", "ranges", "dates", "nothing"]
    labels: tuple[str, ...]
    words: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()  # rising: distinct values, or upper ends of ranges

    def assign_groups(self, column: pa.ChunkedArray) -> Array:
        """Return the group number (n,) of every row of a column."""
        missing = len(self.labels) - 1
        if self.kind == "nothing":
            return np.full(len(column), missing)
        if self.kind == "words":
            code = index_words(column, self.words)
            code[np.asarray(column.is_null())] = missing
            return code
        values = convert_to_seconds(column) if self.kind == "dates" else convert_to_floats(column)
        known, numbers = np.isfinite(values), np.array(self.numbers)
        code = np.full(len(values), missing)
        place = np.searchsorted(numbers, values[known], side="left")
        if self.kind == "values":  # other values belong to the group "other"
            same = (place < len(numbers)) & (numbers[np.minimum(place, len(numbers) - 1)] == values[known])
            place = np.where(same, place, len(numbers))
        code[known] = place
        return code


def find_grouping_rule(column: pa.ChunkedArray, most: int) -> GroupingRule:
    """Choose a rule that divides the values of a column into about `most` groups.

    Groups are the most frequent words, the distinct values if they are few, or ranges with about equal numbers of rows.

    Other words or values are one more group, and so are missing values.
    """
    import pyarrow as pa

    kind = find_feature_kind(column.type)
    if kind in ("nothing", "other"):
        return GroupingRule("nothing", ("missing",))
    if kind == "text":
        frequent = tuple(sorted(list(count_words(column))[:most]))
        return GroupingRule("words", (*frequent, "other", "missing"), words=frequent)
    if kind == "date":
        cuts = _find_range_ends(convert_to_seconds(column), most)
        return _make_range_rule("dates", cuts, lambda second: str(np.datetime64(int(second), "s"))[:10])
    values = convert_to_floats(column)
    known = values[np.isfinite(values)]
    flags = pa.types.is_boolean(column.type)
    # The first rows show at once that most columns have more values than groups.
    has_few_values = len(known) and len(np.unique(known[: 100 * most])) <= most and len(np.unique(known)) <= most
    if flags or has_few_values:
        distinct = tuple(map(float, np.unique(known)))
        names = ("yes" if value else "no" for value in distinct) if flags else map(format_group_limit, distinct)
        return GroupingRule("values", (*names, "other", "missing"), numbers=distinct)
    whole = bool((known == np.floor(known)).all()) and np.abs(known).max(initial=0.0) < 2**53
    return _make_range_rule("ranges", _find_range_ends(values, most), format_group_limit, whole)


def group_column_values(column: pa.ChunkedArray, most: int) -> ValueGroups:
    """Divide the values of a column into about `most` groups.

    >>> import pyarrow as pa
    >>> group_column_values(pa.chunked_array([[1, 2, 3, 4, None]]), most=2).labels
    ('up to 2', 'over 2', 'missing')
    """
    grouping = find_grouping_rule(column, most)
    return drop_empty_groups(grouping, grouping.assign_groups(column))


def drop_empty_groups(grouping: GroupingRule, code: Array) -> ValueGroups:
    """Return the groups of rows from their group numbers (n,), without empty groups for missing or other values."""
    spare = 0 if grouping.kind == "nothing" else 1 if grouping.kind in ("ranges", "dates") else 2
    n_found = len(grouping.labels) - spare
    used = [g for g in range(len(grouping.labels)) if g < n_found or (code == g).any()]
    position = np.zeros(len(grouping.labels), dtype=code.dtype)
    position[used] = np.arange(len(used))
    return ValueGroups(position[code], tuple(grouping.labels[g] for g in used))


def _find_range_ends(values: Array, most: int) -> Array | None:
    """Return the upper ends of value ranges that hold about equal numbers of rows; None without values."""
    inside = values[np.isfinite(values)]
    if not len(inside):
        return None
    cuts = np.unique(np.quantile(inside, np.linspace(0, 1, most + 1)[1:-1], method="inverted_cdf"))
    return cuts[cuts < inside.max()]


def _make_range_rule(
    kind: Literal["ranges", "dates"], cuts: Array | None, label: Callable[[float], str], whole: bool = False
) -> GroupingRule:
    """Return the rule that groups values into labelled ranges, given the upper ends of the ranges.

    Ranges of integers begin after the end of the previous range.
    """
    if cuts is None:
        return GroupingRule("nothing", ("missing",))
    texts = [label(cut) for cut in cuts]
    if whole:
        between = [label(b) if b == a + 1 else f"{label(a + 1)} – {label(b)}" for a, b in pairwise(cuts)]
    else:
        between = [f"over {a}, up to {b}" for a, b in pairwise(texts)]
    ranges = (f"up to {texts[0]}", *between, f"over {texts[-1]}") if texts else ("all",)
    return GroupingRule(kind, (*ranges, "missing"), numbers=tuple(map(float, cuts)))


def format_group_limit(value: float) -> str:
    """Format the end of a value range for the label of a group.

    It has a minus sign, and no comma in four digits, which may be a year.
    """
    if abs(value) < 1000 and not float(value).is_integer():
        return f"{value:.3g}".replace("-", "−")
    text = f"{value:.0f}" if abs(value) < 10_000 else f"{value:,.0f}"
    return text.replace("-", "−")
