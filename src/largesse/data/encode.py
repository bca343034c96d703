"""Features of any kind → one matrix of finite numbers, learnt on the log, safe for values never seen before.

Numbers are standardised, with an indicator where some were missing. Text with few values is one-hot, rare values
pooled; text with many values becomes a smoothed mean of a target (scikit-learn's cross-fitted `TargetEncoder`). Dates
become elapsed days, and sine and cosine of year, week and day. What was learnt is plain JSON: `state`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from largesse.data.columns import Kind, as_floats, as_seconds, count_words, kind_of, word_codes
from largesse.errors import Problem, nearest, refuse
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

FEW = 40  # text with at most this many frequent values is one-hot
RARE = 10  # values seen less often than this are pooled
POOLED = 0.2  # share of rows whose words may be pooled as rare
TARGET_FOLDS = 5
DAY = 86_400.0
CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}  # days
FARTHEST = 1e6  # standard deviations; float32 cannot hold much more, and a value farther out says no more
PLURAL = {"number": "numbers", "date": "dates", "other": "lists or bytes"}


@final
class Encoder:
    """Turns a table of features into a float32 matrix.

    >>> import pyarrow as pa
    >>> table = pa.table({"age": [20.0, None, 40.0], "city": pa.array(["Oslo", "Rome", "Oslo"]).dictionary_encode()})
    >>> encoder = Encoder(rare=1)
    >>> encoder.fit_transform(table, target=np.array([0.0, 1.0, 1.0])).shape
    (3, 3)
    >>> encoder.names
    ('age', 'age missing', 'city = Oslo')
    """

    def __init__(self, few: int = FEW, rare: int = RARE) -> None:
        self.few = few
        self.rare = rare
        self.columns: list[_Column] = []
        self.width = 0  # columns of the table it was learnt on, including those that say nothing

    # -- learning -----------------------------------------------------------------------------------------------

    def fit_transform(self, table: pa.Table, target: Array, *, discrete: bool = False, seed: int = 0) -> Array:
        """Learn the encoding and return the matrix (n, p).

        `target` (n,) is what text with many values is averaged over: responses, or (``discrete=True``) levels. For
        these columns the rows of the log get cross-fitted averages, so that no row is encoded by its own target.
        """
        self.columns, self.width = [], table.num_columns
        blocks = []
        for name in table.column_names:
            column = table.column(name)
            if kind_of(column.type) in ("nothing", "other"):
                continue
            learnt, block = self._learn(name, column, _Target(target, discrete, seed))
            if block.shape[1]:
                self.columns.append(learnt)
                blocks.append(block)
        return _join(blocks, table.num_rows)

    def _learn(self, name: str, column: pa.ChunkedArray, target: _Target) -> tuple[_Column, Array]:
        """Return what is learnt about a column, and the rows' block (n, q) of the matrix."""
        kind = kind_of(column.type)
        if kind == "text":
            return self._learn_text(name, column, target)
        if kind == "date":
            seconds = as_seconds(column)
            date = _Date(name, _learn_scale(seconds / DAY), _used_cycles(seconds))
            return date, date.encode_seconds(seconds)
        values = as_floats(column)
        number = _Number(name, _learn_scale(values))
        return number, number.scale.apply(values)

    def _learn_text(self, name: str, column: pa.ChunkedArray, target: _Target) -> tuple[_Column, Array]:
        tally = count_words(column)  # the most frequent first
        known = len(column) - column.null_count
        rare = min(self.rare, max(1, len(column) // 50))  # in a small log ten rows are not few
        frequent = [word for word, times in tally.items() if times >= rare]
        others = known - sum(tally[word] for word in frequent)
        # Few words, or few rows beyond the frequent ones: one-hot. Else (a thousand postcodes) the words need means.
        # A word that hardly ever comes back has no mean to learn.
        if len(frequent) <= self.few and (len(tally) <= self.few or others <= POOLED * known or known < 2 * len(tally)):
            words = _Words(name, frequent, others > 0, column.null_count > 0)
            return words, words.encode(column)
        return _learn_means(name, word_codes(column, list(tally)), list(tally), target)

    # -- applying -----------------------------------------------------------------------------------------------

    def transform(self, table: pa.Table) -> Array:
        """Return the matrix (n, p) of new rows; refuses a table that lacks a column or holds another kind."""
        self.check(table)
        return _join([learnt.encode(table.column(learnt.name)) for learnt in self.columns], table.num_rows)

    def check(self, table: pa.Table) -> None:
        """Refuse a table in which a feature is missing, there twice, or of another kind than in the log."""
        problems = []
        times = Counter(table.column_names)
        for name, expected in ((learnt.name, learnt.kind) for learnt in self.columns):
            if times[name] > 1:
                problems.append(Problem(f"two columns have the name {name!r}", "rename one of them"))
            elif name not in times:
                problems.append(Problem(f"the feature {name!r} is not in the table", nearest(name, table.column_names)))
            elif (kind := kind_of(table.column(name).type)) not in (expected, "nothing"):
                got = f"the feature {name!r} holds {PLURAL.get(kind, kind)}"
                was = f"in the log it held {PLURAL.get(expected, expected)}"
                problems.append(Problem(f"{got}; {was}", "write it as in the log"))
        refuse("customers", problems)

    @property
    def names(self) -> tuple[str, ...]:
        """What each column of the matrix is."""
        return tuple(name for learnt in self.columns for name in learnt.names)

    @property
    def sources(self) -> tuple[str, ...]:
        """The feature each column of the matrix comes from."""
        return tuple(learnt.name for learnt in self.columns for _ in learnt.names)

    @property
    def features(self) -> tuple[str, ...]:
        """The features that a table of customers must have."""
        return tuple(learnt.name for learnt in self.columns)

    @property
    def state(self) -> dict[str, Any]:
        """What was learnt, as JSON."""
        columns = [{"encoding": learnt.encoding, **asdict(learnt)} for learnt in self.columns]
        return {"few": self.few, "rare": self.rare, "width": self.width, "columns": columns}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Encoder:
        """Return the encoder that `state` describes."""
        encoder = cls(state["few"], state["rare"])
        encoder.columns, encoder.width = [_column_from(column) for column in state["columns"]], state["width"]
        return encoder


# ------------------------------------------------------------------------------------------ what is learnt of a column


@dataclass(frozen=True)
class _Column(ABC):
    """What was learnt about one feature."""

    encoding: ClassVar[str]
    kind: ClassVar[Kind]  # which columns can be encoded this way
    name: str

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """What each of the q columns that the feature becomes is."""

    @abstractmethod
    def encode(self, column: pa.ChunkedArray) -> Array:
        """Return the block of float32 columns (n, q) that the feature becomes."""


@dataclass(frozen=True)
class _Scale:
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
        return _columns(columns, len(values))

    def names(self, name: str) -> list[str]:
        """What each column is."""
        return ([name] if self.spread > 0 else []) + [f"{name} missing"] * self.missing


@final
@dataclass(frozen=True)
class _Number(_Column):
    encoding = "number"
    kind = "number"
    scale: _Scale

    @property
    def names(self) -> list[str]:
        return self.scale.names(self.name)

    def encode(self, column: pa.ChunkedArray) -> Array:
        return self.scale.apply(as_floats(column))


@final
@dataclass(frozen=True)
class _Date(_Column):
    encoding = "date"
    kind = "date"
    scale: _Scale  # of days since 1970
    cycles: Sequence[str]

    @property
    def names(self) -> list[str]:
        waves = [f"{self.name} {wave} of {cycle}" for cycle in self.cycles for wave in ("sine", "cosine")]
        return self.scale.names(self.name) + waves

    def encode(self, column: pa.ChunkedArray) -> Array:
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
class _Words(_Column):
    """One indicator per frequent word, one for the other words and one for missing text, where the log had any."""

    encoding = "words"
    kind = "text"
    words: Sequence[str]
    other: bool
    missing: bool

    @property
    def _shown(self) -> Sequence[str]:
        # Without other or missing text, the last word is where all the others are zero.
        return self.words if self.other or self.missing else self.words[:-1]

    @property
    def _constant(self) -> bool:
        return not self.words and self.other != self.missing

    @property
    def names(self) -> list[str]:
        if self._constant:
            return []
        extra = [f"{self.name} other"] * self.other + [f"{self.name} missing"] * self.missing
        return [f"{self.name} = {word}" for word in self._shown] + extra

    def encode(self, column: pa.ChunkedArray) -> Array:
        if self._constant:
            return _columns([], len(column))
        codes, missing = word_codes(column, self.words), np.asarray(column.is_null())
        columns = [codes == k for k in range(len(self._shown))]
        if self.other:
            columns.append((codes == len(self.words)) & ~missing)
        if self.missing:
            columns.append(missing)
        return _columns(columns, len(column))


@final
@dataclass(frozen=True)
class _Means(_Column):
    """A mean of the target for every word, for missing text where the log had any, and for words never seen."""

    encoding = "means"
    kind = "text"
    words: Sequence[str]
    table: Sequence[Sequence[float]]  # (words + 1 or 2, t) standardised; words, missing, never seen

    @property
    def names(self) -> list[str]:
        width = len(self.table[0])
        return [f"{self.name} (mean)"] if width == 1 else [f"{self.name} (mean {j})" for j in range(width)]

    def encode(self, column: pa.ChunkedArray) -> Array:
        codes = word_codes(column, self.words)
        codes[(codes == len(self.words)) & ~np.asarray(column.is_null())] = len(self.table) - 1
        return np.asarray(self.table, dtype=np.float32)[codes]


ENCODINGS = {"number": _Number, "date": _Date, "words": _Words, "means": _Means}


def _column_from(state: dict[str, Any]) -> _Column:
    fields = {name: value for name, value in state.items() if name != "encoding"}
    if "scale" in fields:
        fields["scale"] = _Scale(**fields["scale"])
    learnt: _Column = ENCODINGS[state["encoding"]](**fields)
    return learnt


# ---------------------------------------------------------------------------------------------------------- learning it


@dataclass(frozen=True, eq=False)
class _Target:
    """What text with many values is averaged over."""

    values: Array  # (n,)
    discrete: bool
    seed: int


def _learn_scale(values: Array) -> _Scale:
    known = values[np.isfinite(values)]
    if not len(known) or known.min() == known.max():
        centre, spread = (float(known[0]) if len(known) else 0.0), 0.0
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            centre, spread = float(known.mean()), float(known.std())
    if not (math.isfinite(centre) and math.isfinite(spread)):  # sums or squares beyond float64
        unit = float(np.abs(known).max())
        centre, spread = unit * float((known / unit).mean()), unit * float((known / unit).std())
    return _Scale(centre, spread, len(known) < len(values))


def _used_cycles(seconds: Array) -> list[str]:
    """Return the cycles that the log goes through at least once; the day only if times are given."""
    known = seconds[np.isfinite(seconds)]
    span = (known.max() - known.min()) / DAY if len(known) else 0.0
    clock = bool(len(known) and np.any(known % DAY))
    return [name for name, days in CYCLES.items() if span >= days and (name != "day" or clock)]


def _learn_means(name: str, codes: Array, words: list[str], target: _Target) -> tuple[_Means, Array]:
    """Return the standardised mean of every word, and the cross-fitted means (n, t) of the log's own rows."""
    from sklearn.model_selection import KFold
    from sklearn.preprocessing import TargetEncoder

    several = "multiclass" if len(np.unique(target.values)) > 2 else "binary"
    cv = KFold(TARGET_FOLDS, shuffle=True, random_state=target.seed)
    every = np.arange(int(codes.max()) + 2)
    encoder = TargetEncoder(categories=[every], target_type=several if target.discrete else "continuous", cv=cv)
    means = encoder.fit_transform(codes[:, None], target.values)
    table = encoder.transform(every[:, None])
    centre, spread = means.mean(axis=0), means.std(axis=0)
    spread[spread == 0] = 1.0
    learnt = _Means(name, words, ((table - centre) / spread).tolist())
    return learnt, ((means - centre) / spread).astype(np.float32)


# -------------------------------------------------------------------------------------------------------------- columns


def _columns(columns: list[Array], rows: int) -> Array:
    """Return columns (n,) side by side as float32 (n, q)."""
    return np.column_stack(columns).astype(np.float32) if columns else np.zeros((rows, 0), dtype=np.float32)


def _join(blocks: list[Array], rows: int) -> Array:
    """Return blocks (n, q) side by side, without a second copy of them all."""
    matrix = np.empty((rows, sum(block.shape[1] for block in blocks)), dtype=np.float32)
    place = 0
    for block in blocks:
        matrix[:, place : place + block.shape[1]] = block
        place += block.shape[1]
    return matrix
