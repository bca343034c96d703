"""Encoders of single features: numbers, dates and text as numeric columns."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from largesse.data.arrow_columns import Kind, convert_to_floats, convert_to_seconds, index_words
from largesse.io import check_scalar_type, join_field_path, read_record
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

SECONDS_PER_DAY = 86_400.0
CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}  # days
MAX_TARGET_MEAN = 1e30  # within the range of float32
MAX_STANDARD_DEVIATIONS = 1e6  # standard deviations from the mean; values farther out are clipped


@dataclass(frozen=True)
class ColumnEncoder(ABC):
    """Base class of encoders that convert one feature to numeric columns."""

    encoding: ClassVar[str]
    kind: ClassVar[Kind]  # of the columns that it encodes
    name: str

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of the encoder's q numeric columns."""

    @abstractmethod
    def is_sound(self) -> bool:
        """Test if the encoder's fields are finite and consistent with each other."""

    @abstractmethod
    def encode(self, column: pa.ChunkedArray) -> Array:
        """Encode a feature's values as float32 columns (n, q)."""


@dataclass(frozen=True)
class NumberScale:
    """Mean and standard deviation that standardise a number, with an optional indicator of missing values."""

    centre: float
    spread: float  # zero when all known values are the same
    missing: bool

    def apply(self, values: Array) -> Array:
        """Standardise values (n,) as float32 columns (n, q), including the indicator of missing values.

        Missing values become the mean; the second column indicates them.
        """
        known = np.isfinite(values)
        columns = []
        if self.spread > 0:
            with np.errstate(over="ignore", invalid="ignore"):
                deviations = (values - self.centre) / self.spread
            columns.append(np.where(known, np.clip(deviations, -MAX_STANDARD_DEVIATIONS, MAX_STANDARD_DEVIATIONS), 0.0))
        if self.missing:
            columns.append(~known)
        return stack_encoded_columns(columns, len(values))

    def is_sound(self) -> bool:
        """Test if the mean and the standard deviation are finite."""
        return math.isfinite(self.centre) and 0 <= self.spread < math.inf

    def names(self, name: str) -> list[str]:
        """Return the names of the encoded columns of a feature."""
        return ([name] if self.spread > 0 else []) + [f"{name} missing"] * self.missing


@final
@dataclass(frozen=True)
class NumberEncoder(ColumnEncoder):
    """Encoder of a number as a standardised column, with an indicator of missing values."""

    encoding = "number"
    kind = "number"
    scale: NumberScale

    @property
    def names(self) -> list[str]:
        """Names of the encoder's q numeric columns."""
        return self.scale.names(self.name)

    def is_sound(self) -> bool:
        """Test if the encoder's fields are consistent with each other."""
        return self.scale.is_sound()

    def encode(self, column: pa.ChunkedArray) -> Array:
        """Encode numbers as float32 columns (n, q)."""
        return self.scale.apply(convert_to_floats(column))


@final
@dataclass(frozen=True)
class DateEncoder(ColumnEncoder):
    """Encoder of a date as days since 1970, with sine and cosine of yearly, weekly and daily cycles."""

    encoding = "date"
    kind = "date"
    scale: NumberScale  # of days since 1970
    cycles: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """Names of the encoder's q numeric columns."""
        waves = [f"{self.name} {wave} of {cycle}" for cycle in self.cycles for wave in ("sine", "cosine")]
        return self.scale.names(self.name) + waves

    def is_sound(self) -> bool:
        """Test if the encoder's fields are consistent with each other."""
        return self.scale.is_sound() and set(self.cycles) <= set(CYCLES) and _are_distinct(self.cycles)

    def encode(self, column: pa.ChunkedArray) -> Array:
        """Encode dates as float32 columns (n, q)."""
        return self.encode_seconds(convert_to_seconds(column))

    def encode_seconds(self, seconds: Array) -> Array:
        """Encode seconds since 1970 (n,) as float32 columns (n, q)."""
        blocks = [self.scale.apply(seconds / SECONDS_PER_DAY)]
        for cycle in self.cycles:
            angle = np.where(np.isfinite(seconds), seconds, 0.0) * (2 * math.pi / (CYCLES[cycle] * SECONDS_PER_DAY))
            blocks.append(np.column_stack([np.sin(angle), np.cos(angle)]).astype(np.float32))
        return np.concatenate(blocks, axis=1)


@final
@dataclass(frozen=True)
class WordsEncoder(ColumnEncoder):
    """One-hot encoder of text: one indicator each for frequent words, for other words and for missing text."""

    encoding = "words"
    kind = "text"
    words: tuple[str, ...]
    other: bool
    missing: bool

    @property
    def indicator_words(self) -> Sequence[str]:
        """Words that have an indicator column of their own."""
        # Without other or missing text, the last word needs none.
        return self.words if self.other or self.missing else self.words[:-1]

    @property
    def _constant(self) -> bool:
        return not self.words and self.other != self.missing

    @property
    def names(self) -> list[str]:
        """Names of the encoder's q numeric columns."""
        if self._constant:
            return []
        extra = [f"{self.name} other"] * self.other + [f"{self.name} missing"] * self.missing
        return [f"{self.name} = {word}" for word in self.indicator_words] + extra

    def is_sound(self) -> bool:
        """Test if the encoder's words are distinct."""
        return _are_distinct(self.words)

    def encode(self, column: pa.ChunkedArray) -> Array:
        """Encode text as float32 indicator columns (n, q)."""
        if self._constant:
            return stack_encoded_columns([], len(column))
        codes, missing = index_words(column, self.words), np.asarray(column.is_null())
        columns = [codes == k for k in range(len(self.indicator_words))]
        if self.other:
            columns.append((codes == len(self.words)) & ~missing)
        if self.missing:
            columns.append(missing)
        return stack_encoded_columns(columns, len(column))


@final
@dataclass(frozen=True)
class TargetMeanEncoder(ColumnEncoder):
    """Encoder of text that replaces each word by the mean target of the rows with this word."""

    encoding = "means"
    kind = "text"
    words: tuple[str, ...]
    table: tuple[tuple[float, ...], ...]  # (words + 1 or 2, t) standardised; words, missing, never seen

    @property
    def names(self) -> list[str]:
        """Names of the encoder's q numeric columns."""
        width = len(self.table[0])
        return [f"{self.name} (mean)"] if width == 1 else [f"{self.name} (mean {j})" for j in range(width)]

    def is_sound(self) -> bool:
        """Test if the encoder's fields are finite and consistent with each other."""
        widths = {len(row) for row in self.table}
        in_range = all(abs(mean) <= MAX_TARGET_MEAN for row in self.table for mean in row)
        rows = len(self.table) - len(self.words)
        return rows in (1, 2) and len(widths) == 1 and widths != {0} and in_range and _are_distinct(self.words)

    def encode(self, column: pa.ChunkedArray) -> Array:
        """Encode text as float32 columns (n, q) of mean targets."""
        codes = index_words(column, self.words)
        codes[(codes == len(self.words)) & ~np.asarray(column.is_null())] = len(self.table) - 1
        return np.asarray(self.table, dtype=np.float32)[codes]


ENCODINGS: dict[str, type[ColumnEncoder]] = {
    "number": NumberEncoder,
    "date": DateEncoder,
    "words": WordsEncoder,
    "means": TargetMeanEncoder,
}


# ------------------------------------------------------------------------------------------------------------ reading


def restore_column_encoders(state: Any) -> list[ColumnEncoder]:
    """Restore the column encoders from a saved encoder's state; raise ValueError if it is invalid."""
    state = check_scalar_type(state, dict, "encoder")
    few, rare, width = (check_scalar_type(state.get(name), int, f"encoder/{name}") for name in ("few", "rare", "width"))
    states = check_scalar_type(state.get("columns"), list, "encoder/columns")
    columns = [_restore_column_encoder(column, f"encoder/columns/{k}") for k, column in enumerate(states)]
    if min(few, rare, width - len(columns)) < 0:
        raise ValueError("encoder: a number of columns or rows is invalid")
    if not _are_distinct([column.name for column in columns]):
        raise ValueError("encoder: two columns have the same name")
    return columns


def _restore_column_encoder(state: Any, place: str) -> ColumnEncoder:
    fields = dict(check_scalar_type(state, dict, place))
    encoding = check_scalar_type(fields.pop("encoding", None), str, join_field_path(place, "encoding"))
    if encoding not in ENCODINGS:
        raise ValueError(f"{place}: its encoding is not known")
    column = read_record(ENCODINGS[encoding], fields, place)
    if not column.is_sound():
        raise ValueError(f"{place}: its fields are inconsistent")
    return column


def _are_distinct(words: Sequence[str]) -> bool:
    return len(set(words)) == len(words)


def stack_encoded_columns(columns: list[Array], rows: int) -> Array:
    """Stack columns (n,) as a float32 matrix (n, q)."""
    return np.column_stack(columns).astype(np.float32) if columns else np.zeros((rows, 0), dtype=np.float32)
