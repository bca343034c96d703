"""Columns of an Arrow table: kinds of features, and conversion of values to numbers or codes.

Five kinds: number (also boolean, duration, time of day), text, date, nothing (all values missing) and other (lists, records,
bytes: not usable as a feature).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from largesse.errors import make_visible
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

Kind: TypeAlias = Literal["number", "text", "date", "nothing", "other"]
ROW_NUMBER_NAMES = ("", "Unnamed: 0", "__index_level_0__")  # of row numbers in files of pandas
MAX_EXAMPLES, MAX_EXAMPLE_LETTERS = 3, 60
MIN_UNIQUE_SHARE = 0.9  # of the texts of an identifier
MIN_ROWS_FOR_IDENTIFIER = 50


# ---------------------------------------------------------------------------------------------------------------- kinds


def find_feature_kind(kind: pa.DataType) -> Kind:
    """Return the kind of feature (number, text, date, nothing, other) of an Arrow type."""
    import pyarrow.types as types

    if types.is_null(kind):
        return "nothing"
    if is_unusable_type(kind):
        return "other"
    if types.is_dictionary(kind):
        return find_feature_kind(kind.value_type)
    if is_text_type(kind):
        return "text"
    return "date" if types.is_date(kind) or types.is_timestamp(kind) else "number"


def is_text_type(kind: pa.DataType) -> bool:
    """Test if an Arrow type is text."""
    import pyarrow.types as types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_number_type(kind: pa.DataType) -> bool:
    """Test if an Arrow type is numeric or boolean.

    Durations and times of day are not.
    """
    import pyarrow.types as types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def is_unusable_type(kind: pa.DataType) -> bool:
    """Test if an Arrow type, such as a list, cannot be a feature, an id or a group.

    These are lists, records, bytes and extension types.
    """
    import pyarrow as pa
    import pyarrow.types as types

    inner = kind.value_type if types.is_dictionary(kind) else kind
    return bool(
        types.is_nested(inner)
        or isinstance(inner, pa.BaseExtensionType)
        or types.is_run_end_encoded(inner)
        or types.is_binary(inner)
        or types.is_large_binary(inner)
        or types.is_binary_view(inner)
        or types.is_fixed_size_binary(inner)
        or types.is_interval(inner)
    )


def find_skip_reason(name: str, column: pa.ChunkedArray) -> str:
    """Return the reason why a column is not usable as a feature; empty if it is usable."""
    if is_unusable_type(column.type):
        return f"it holds {column.type}, not numbers, text or dates"
    if name in ROW_NUMBER_NAMES:
        return "it looks like row numbers that were written to a file"
    return "nearly every row has its own text, like an identifier" if _is_identifier_column(column) else ""


def _is_identifier_column(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type) or len(column) < MIN_ROWS_FOR_IDENTIFIER:
        return False
    known = len(column) - column.null_count
    # Counted among the rows: a dictionary may hold words that no row uses.
    return len(pc.unique(column).drop_null()) > MIN_UNIQUE_SHARE * known > 0


# --------------------------------------------------------------------------------------------------------------- values


def convert_to_floats(column: pa.ChunkedArray) -> Array:
    """Convert numbers, booleans, durations or times of day to float64 (n,); missing values become NaN.

    Durations and times of day are in microseconds.
    """
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_duration(column.type):
        column = column.cast(pa.duration("us"), safe=False).cast(pa.int64())
    elif pa.types.is_time(column.type):
        column = column.cast(pa.time64("us"), safe=False).cast(pa.int64())
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def convert_to_seconds(column: pa.ChunkedArray) -> Array:
    """Convert dates to seconds since 1970 (n,); missing dates become NaN."""
    import pyarrow as pa

    stamps = column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None)), safe=False).cast(pa.int64())
    return np.asarray(stamps.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64) / 1e6


def decode_dictionary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Remove the dictionary encoding of a column."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type) or is_unusable_type(column.type):
        return column
    return column.cast(column.type.value_type)


def convert_to_comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column to a type whose values Arrow can compare with each other.

    Dictionary encoding is removed, float16 becomes float32, and NaN becomes null.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = decode_dictionary(column)
    column = column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)  # pandas writes NaN, most files null


def format_values(column: pa.Array | pa.ChunkedArray) -> list[str]:
    """Format the values of a column as texts for messages.

    Years beyond 9999, which Python cannot represent, become numbers.
    """
    import pyarrow as pa

    try:
        return [str(value) for value in column.to_pylist()]
    except (OverflowError, ValueError):
        whole = pa.int32() if column.type.bit_width == 32 else pa.int64()
        return [f"{column.type} {value}" for value in column.cast(whole).to_pylist()]


def count_words(column: pa.ChunkedArray) -> dict[str, int]:
    """Count the occurrences of each word in a text column, sorted by frequency.

    >>> import pyarrow as pa
    >>> count_words(pa.chunked_array([["b", "a", None, "b"]]))
    {'b': 2, 'a': 1}
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    tally = pc.value_counts(column.cast(pa.string()).drop_null())
    pairs = zip(tally.field("values").to_pylist(), tally.field("counts").to_pylist(), strict=True)
    return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))


def index_words(column: pa.ChunkedArray, words: Sequence[str]) -> Array:
    """Return the index (n,) of each row's text in a list of words; any other text gets len(words).

    >>> import pyarrow as pa
    >>> index_words(pa.chunked_array([["b", "a", None, "c"]]), ["a", "b"])
    array([1, 0, 2, 2])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pa.array(words, type=pa.string())

    def look_up(texts: pa.Array | pa.ChunkedArray) -> Array:
        index = pc.fill_null(pc.index_in(texts.cast(pa.string()), value_set=known), len(words))
        return np.asarray(index, dtype=np.int64)

    if not pa.types.is_dictionary(column.type):
        return look_up(column)
    parts = [np.zeros(0, dtype=np.int64)]
    for chunk in column.chunks:  # look up each distinct word once, then spread over the rows
        index = np.asarray(pc.fill_null(chunk.indices.cast(pa.int64()), len(chunk.dictionary)))
        parts.append(np.append(look_up(chunk.dictionary), len(words))[index])
    return np.concatenate(parts)


def list_example_values(column: pa.ChunkedArray) -> list[str]:
    """Return a few values of a column as short texts.

    >>> import pyarrow as pa
    >>> list_example_values(pa.chunked_array([[1.5, 1.5, None, 2.0]]))
    ['1.5', '2']
    """
    import pyarrow as pa

    try:
        examples = decode_dictionary(column.slice(0, 200)).unique().drop_null().slice(0, MAX_EXAMPLES).to_pylist()
    except (pa.ArrowException, OverflowError, ValueError):  # dates beyond the calendar, types that cannot be compared
        return []
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in examples]
    return [
        make_visible(text if len(text) <= MAX_EXAMPLE_LETTERS else f"{text[:MAX_EXAMPLE_LETTERS]}…") for text in texts
    ]
