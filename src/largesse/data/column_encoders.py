"""Encoders of single features: each turns its feature into columns of finite numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from largesse.data.columns import Kind, as_floats, as_seconds, word_codes
from largesse.io import at_place, read_record, read_scalar
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

DAY = 86_400.0
CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}  # days
FARTHEST_MEAN = 1e30  # float32 holds it
FARTHEST = 1e6  # standard deviations; float32 cannot hold much more, and a value farther out says no more


@dataclass(frozen=True)
class ColumnEncoder(ABC):
    """The encoder of one feature."""

    encoding: ClassVar[str]
    kind: ClassVar[Kind]  # which columns can be encoded this way
    name: str

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of the q encoded columns."""

    @abstractmethod
    def is_sound(self) -> bool:
        """Whether its parts, each of the right type, fit together and are finite."""

    @abstractmethod
    def encode(self, column: pa.ChunkedArray) -> Array:
        """Return the block of float32 columns (n, q) that the feature becomes."""


@dataclass(frozen=True)
class NumberScale:
    """Numbers as standard deviations from their mean, with an indicator where some were missing in the log."""

    centre: float
    spread: float  # zero when all known values are the same
    missing: bool

    def apply(self, values: Array) -> Array:
        """Return values (n,) as float32 columns (n, 0), (n, 1) or (n, 2); missing ones are at the mean."""
        known = np.isfinite(values)
        columns = []
        if self.spread > 0:
            with np.errstate(over="ignore", invalid="ignore"):
                apart = (values - self.centre) / self.spread
            columns.append(np.where(known, np.clip(apart, -FARTHEST, FARTHEST), 0.0))
        if self.missing:
            columns.append(~known)
        return stack_columns(columns, len(values))

    def is_sound(self) -> bool:
        """Whether it can be applied."""
        return math.isfinite(self.centre) and 0 <= self.spread < math.inf

    def names(self, name: str) -> list[str]:
        """Names of the columns."""
        return ([name] if self.spread > 0 else []) + [f"{name} missing"] * self.missing


@final
@dataclass(frozen=True)
class NumberEncoder(ColumnEncoder):
    """A number: its distance from the mean, and whether it is missing."""

    encoding = "number"
    kind = "number"
    scale: NumberScale

    @property
    def names(self) -> list[str]:
        """Names of the q encoded columns."""
        return self.scale.names(self.name)

    def is_sound(self) -> bool:
        """Whether its parts fit together."""
        return self.scale.is_sound()

    def encode(self, column: pa.ChunkedArray) -> Array:
        """Return the block of columns (n, q)."""
        return self.scale.apply(as_floats(column))


@final
@dataclass(frozen=True)
class DateEncoder(ColumnEncoder):
    """A date: the days since 1970 as a number, and the cycles that the log went through."""

    encoding = "date"
    kind = "date"
    scale: NumberScale  # of days since 1970
    cycles: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """Names of the q encoded columns."""
        waves = [f"{self.name} {wave} of {cycle}" for cycle in self.cycles for wave in ("sine", "cosine")]
        return self.scale.names(self.name) + waves

    def is_sound(self) -> bool:
        """Whether its parts fit together."""
        return self.scale.is_sound() and set(self.cycles) <= set(CYCLES) and _differ(self.cycles)

    def encode(self, column: pa.ChunkedArray) -> Array:
        """Return the block of columns (n, q)."""
        return self.encode_seconds(as_seconds(column))

    def encode_seconds(self, seconds: Array) -> Array:
        """Return the block of seconds since 1970 (n,)."""
        blocks = [self.scale.apply(seconds / DAY)]
        for cycle in self.cycles:
            angle = np.where(np.isfinite(seconds), seconds, 0.0) * (2 * math.pi / (CYCLES[cycle] * DAY))
            blocks.append(np.column_stack([np.sin(angle), np.cos(angle)]).astype(np.float32))
        return np.concatenate(blocks, axis=1)


@final
@dataclass(frozen=True)
class WordsEncoder(ColumnEncoder):
    """One indicator per frequent word, one for the other words and one for missing text, where the log had any."""

    encoding = "words"
    kind = "text"
    words: tuple[str, ...]
    other: bool
    missing: bool

    @property
    def shown(self) -> Sequence[str]:
        """The words that have an indicator of their own."""
        # Without other or missing text, the last word is where all the others are zero.
        return self.words if self.other or self.missing else self.words[:-1]

    @property
    def _constant(self) -> bool:
        return not self.words and self.other != self.missing

    @property
    def names(self) -> list[str]:
        """Names of the q encoded columns."""
        if self._constant:
            return []
        extra = [f"{self.name} other"] * self.other + [f"{self.name} missing"] * self.missing
        return [f"{self.name} = {word}" for word in self.shown] + extra

    def is_sound(self) -> bool:
        """Whether its parts fit together."""
        return _differ(self.words)

    def encode(self, column: pa.ChunkedArray) -> Array:
        """Return the block of columns (n, q)."""
        if self._constant:
            return stack_columns([], len(column))
        codes, missing = word_codes(column, self.words), np.asarray(column.is_null())
        columns = [codes == k for k in range(len(self.shown))]
        if self.other:
            columns.append((codes == len(self.words)) & ~missing)
        if self.missing:
            columns.append(missing)
        return stack_columns(columns, len(column))


@final
@dataclass(frozen=True)
class MeansEncoder(ColumnEncoder):
    """A mean of the target for every word, for missing text where the log had any, and for words never seen."""

    encoding = "means"
    kind = "text"
    words: tuple[str, ...]
    table: tuple[tuple[float, ...], ...]  # (words + 1 or 2, t) standardised; words, missing, never seen

    @property
    def names(self) -> list[str]:
        """Names of the q encoded columns."""
        width = len(self.table[0])
        return [f"{self.name} (mean)"] if width == 1 else [f"{self.name} (mean {j})" for j in range(width)]

    def is_sound(self) -> bool:
        """Whether its parts fit together."""
        widths = {len(row) for row in self.table}
        near = all(abs(mean) <= FARTHEST_MEAN for row in self.table for mean in row)
        rows = len(self.table) - len(self.words)
        return rows in (1, 2) and len(widths) == 1 and widths != {0} and near and _differ(self.words)

    def encode(self, column: pa.ChunkedArray) -> Array:
        """Return the block of columns (n, q)."""
        codes = word_codes(column, self.words)
        codes[(codes == len(self.words)) & ~np.asarray(column.is_null())] = len(self.table) - 1
        return np.asarray(self.table, dtype=np.float32)[codes]


ENCODINGS: dict[str, type[ColumnEncoder]] = {
    "number": NumberEncoder,
    "date": DateEncoder,
    "words": WordsEncoder,
    "means": MeansEncoder,
}


# ------------------------------------------------------------------------------------------------------------ reading


def read_columns(state: Any) -> list[ColumnEncoder]:
    """Return the columns of an encoder's state; raise ValueError if the state is invalid."""
    state = read_scalar(state, dict, "encoder")
    few, rare, width = (read_scalar(state.get(name), int, f"encoder/{name}") for name in ("few", "rare", "width"))
    found = read_scalar(state.get("columns"), list, "encoder/columns")
    columns = [_read_column(column, f"encoder/columns/{k}") for k, column in enumerate(found)]
    if min(few, rare, width - len(columns)) < 0:
        raise ValueError("encoder: a number of columns or rows is not possible")
    if not _differ([column.name for column in columns]):
        raise ValueError("encoder: two columns have the same name")
    return columns


def _read_column(state: Any, place: str) -> ColumnEncoder:
    fields = dict(read_scalar(state, dict, place))
    encoding = read_scalar(fields.pop("encoding", None), str, at_place(place, "encoding"))
    if encoding not in ENCODINGS:
        raise ValueError(f"{place}: its encoding is not known")
    column = read_record(ENCODINGS[encoding], fields, place)
    if not column.is_sound():
        raise ValueError(f"{place}: its parts do not fit together")
    return column


def _differ(words: Sequence[str]) -> bool:
    return len(set(words)) == len(words)


# ------------------------------------------------------------------------------------------------------------ columns


def stack_columns(columns: list[Array], rows: int) -> Array:
    """Return columns (n,) side by side as float32 (n, q)."""
    return np.column_stack(columns).astype(np.float32) if columns else np.zeros((rows, 0), dtype=np.float32)
