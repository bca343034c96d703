"""Encoder of features as a matrix of finite numbers, fitted to a log and safe for unseen values.

Numbers are standardised, with an indicator where some were missing. Text with few values is one-hot, rare values
pooled; text with many values becomes a smoothed mean of a target (scikit-learn's cross-fitted `TargetEncoder`). Dates
become elapsed days, and sine and cosine of year, week and day. `state` is the fitted encoder as JSON.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from largesse.data.arrow_columns import (
    Kind,
    convert_to_floats,
    convert_to_seconds,
    count_words,
    decode_dictionary,
    find_feature_kind,
    index_words,
)
from largesse.data.column_encoders import (
    CYCLES,
    SECONDS_PER_DAY,
    ColumnEncoder,
    DateEncoder,
    NumberEncoder,
    NumberScale,
    TargetMeanEncoder,
    WordsEncoder,
    restore_column_encoders,
)
from largesse.data.text_parsing import parse_expected_kinds
from largesse.errors import Problem, refuse, suggest
from largesse.io import to_json
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

MAX_ONE_HOT_WORDS = 40
MIN_WORD_COUNT = 10  # rarer words are pooled
MAX_POOLED_SHARE = 0.2  # of the rows
TARGET_FOLDS = 5
KIND_NAMES = {"number": "numbers", "date": "dates", "other": "lists or bytes"}


@final
class Encoder:
    """Encoder of a feature table as a float32 matrix.

    >>> import pyarrow as pa
    >>> table = pa.table({"age": [20.0, None, 40.0], "city": pa.array(["Oslo", "Rome", "Oslo"]).dictionary_encode()})
    >>> encoder = Encoder(rare=1)
    >>> encoder.fit_transform(table, target=np.array([0.0, 1.0, 1.0])).shape
    (3, 3)
    >>> encoder.names
    ('age', 'age missing', 'city = Oslo')
    """

    def __init__(self, few: int = MAX_ONE_HOT_WORDS, rare: int = MIN_WORD_COUNT) -> None:
        self.few = few
        self.rare = rare
        self.columns: list[ColumnEncoder] = []
        self.width = 0  # number of columns of the table that it was fitted to, constant ones included

    # -- learning -----------------------------------------------------------------------------------------------

    def fit_transform(
        self, table: pa.Table, target: Array, *, discrete: bool = False, seed: int = 0, fold: Array | None = None
    ) -> Array:
        """Fit the encoder to a table and return its encoded matrix (n, p).

        `target` (n,) holds responses, or levels if `discrete`; its means encode text with many values. These means
        are cross-fitted, so that no row is encoded by its own target, or, with `fold` (n,), by a target of its fold.
        """
        self.columns, self.width = [], table.num_columns
        blocks = []
        for name in sorted(
            table.column_names
        ):  # the order of a table's columns changes nothing, not even ties of trees
            column = table.column(name)
            if find_feature_kind(column.type) in ("nothing", "other"):
                continue
            learnt, block = self._fit_column(name, column, _EncodingTarget(target, discrete, seed, fold))
            if block.shape[1]:
                self.columns.append(learnt)
                blocks.append(block)
        return _join_encoded_blocks(blocks, table.num_rows)

    def _fit_column(self, name: str, column: pa.ChunkedArray, target: _EncodingTarget) -> tuple[ColumnEncoder, Array]:
        """Fit the encoder of one column, and return it with the encoded columns (n, q)."""
        kind = find_feature_kind(column.type)
        if kind == "text":
            return self._fit_text_column(name, column, target)
        if kind == "date":
            seconds = convert_to_seconds(column)
            date = DateEncoder(name, _fit_number_scale(seconds / SECONDS_PER_DAY), _find_covered_cycles(seconds))
            return date, date.encode_seconds(seconds)
        values = convert_to_floats(column)
        number = NumberEncoder(name, _fit_number_scale(values))
        return number, number.scale.apply(values)

    def _fit_text_column(
        self, name: str, column: pa.ChunkedArray, target: _EncodingTarget
    ) -> tuple[ColumnEncoder, Array]:
        tally = count_words(column)  # the most frequent first
        known = len(column) - column.null_count
        rare = min(self.rare, max(1, len(column) // 50))  # in a small log, ten rows are a large share
        frequent = [word for word, times in tally.items() if times >= rare]
        others = known - sum(tally[word] for word in frequent)
        # One-hot for few words, few rows with other words, or words that hardly ever repeat (no mean to learn); else means.
        if len(frequent) <= self.few and (
            len(tally) <= self.few or others <= MAX_POOLED_SHARE * known or known < 2 * len(tally)
        ):
            words = WordsEncoder(name, tuple(frequent), others > 0, column.null_count > 0)
            return words, words.encode(column)
        return _fit_target_means(name, index_words(column, list(tally)), list(tally), target)

    # -- applying -----------------------------------------------------------------------------------------------

    def transform(self, table: pa.Table) -> Array:
        """Encode the rows of a new feature table as a matrix (n, p).

        A table with a missing column, or a column of another kind, is refused.
        """
        table = parse_expected_kinds(table, self.kinds)
        self.check(table)
        return _join_encoded_blocks(
            [learnt.encode(table.column(learnt.name)) for learnt in self.columns], table.num_rows
        )

    def read_raw_features(self, table: pa.Table) -> dict[str, Array]:
        """Return the unencoded features of a table as one array (n,) per feature."""
        self.check(table)
        return make_raw_arrays(table, self.kinds)

    @property
    def kinds(self) -> dict[str, Kind]:
        """Kind (number, text, date) of every feature, by the feature's name."""
        return {learnt.name: learnt.kind for learnt in self.columns}

    def check(self, table: pa.Table) -> None:
        """Refuse a table whose features are missing, repeated or of another kind than in the log."""
        problems = []
        table = parse_expected_kinds(table, self.kinds)
        times = Counter(table.column_names)
        for name, expected in ((learnt.name, learnt.kind) for learnt in self.columns):
            if times[name] > 1:
                problems.append(Problem(f"two columns have the name {name!r}", "rename one of them"))
            elif name not in times:
                problems.append(Problem(f"the feature {name!r} is not in the table", suggest(name, table.column_names)))
            elif (kind := find_feature_kind(table.column(name).type)) not in (expected, "nothing"):
                got = f"the feature {name!r} holds {KIND_NAMES.get(kind, kind)}"
                was = f"in the log it held {KIND_NAMES.get(expected, expected)}"
                problems.append(Problem(f"{got}; {was}", "write it as in the log"))
        refuse("customers", problems)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names of the encoded matrix."""
        return tuple(name for learnt in self.columns for name in learnt.names)

    @property
    def sources(self) -> tuple[str, ...]:
        """Name of the original feature of each column of the encoded matrix."""
        return tuple(learnt.name for learnt in self.columns for _ in learnt.names)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that a customer table must have."""
        return tuple(learnt.name for learnt in self.columns)

    @property
    def state(self) -> dict[str, Any]:
        """Fitted encoder as a JSON-compatible dictionary."""
        columns = [{"encoding": learnt.encoding, **to_json(learnt)} for learnt in self.columns]
        return {"few": self.few, "rare": self.rare, "width": self.width, "columns": columns}

    @classmethod
    def from_state(cls, state: Any) -> Encoder:
        """Restore an encoder from its saved state; raise ValueError if the state is invalid."""
        columns = restore_column_encoders(state)
        encoder = cls(state["few"], state["rare"])
        encoder.columns, encoder.width = columns, state["width"]
        return encoder


def make_raw_arrays(table: pa.Table, kinds: Mapping[str, Kind]) -> dict[str, Array]:
    """Convert table columns to one array (n,) each, without encoding.

    Numbers, and dates in seconds since 1970, have NaN for missing values; text has None.
    """
    table, arrays = parse_expected_kinds(table, kinds), {}
    for name, kind in kinds.items():
        column = table.column(name)
        if kind == "text":
            arrays[name] = np.array(decode_dictionary(column).to_pylist(), dtype=object)
        else:
            arrays[name] = convert_to_seconds(column) if kind == "date" else convert_to_floats(column)
    return arrays


# -- learning -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _EncodingTarget:
    """Target values whose means encode text features with many words."""

    values: Array  # (n,)
    discrete: bool
    seed: int
    fold: Array | None = None  # (n,); None: random folds


def _fit_number_scale(values: Array) -> NumberScale:
    """Return the mean and the standard deviation of values (n,), with a flag for missing values."""
    known = values[np.isfinite(values)]
    if not len(known) or known.min() == known.max():
        centre, spread = (float(known[0]) if len(known) else 0.0), 0.0
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            centre, spread = float(known.mean()), float(known.std())
    if not (math.isfinite(centre) and math.isfinite(spread)):  # sums or squares beyond float64
        unit = float(np.abs(known).max())
        centre, spread = unit * float((known / unit).mean()), unit * float((known / unit).std())
    return NumberScale(centre, spread, len(known) < len(values))


def _find_covered_cycles(seconds: Array) -> tuple[str, ...]:
    """Return the cycles (year, week, day) that dates (n,) cover at least once."""
    known = seconds[np.isfinite(seconds)]
    span = (known.max() - known.min()) / SECONDS_PER_DAY if len(known) else 0.0
    clock = bool(len(known) and np.any(known % SECONDS_PER_DAY))
    return tuple(name for name, days in CYCLES.items() if span >= days and (name != "day" or clock))


def _fit_target_means(
    name: str, codes: Array, words: list[str], target: _EncodingTarget
) -> tuple[TargetMeanEncoder, Array]:
    """Fit a target-mean encoder to a text column, and return it with cross-fitted means (n, t)."""
    from sklearn.model_selection import KFold, PredefinedSplit
    from sklearn.preprocessing import TargetEncoder

    target_type = "multiclass" if len(np.unique(target.values)) > 2 else "binary"
    drawn = KFold(TARGET_FOLDS, shuffle=True, random_state=target.seed)
    cv = drawn if target.fold is None else PredefinedSplit(target.fold)
    codes_known = np.arange(int(codes.max()) + 2)
    encoder = TargetEncoder(
        categories=[codes_known], target_type=target_type if target.discrete else "continuous", cv=cv
    )
    means = encoder.fit_transform(codes[:, None], target.values)
    table = encoder.transform(codes_known[:, None])
    centre, spread = means.mean(axis=0), means.std(axis=0)
    spread[spread == 0] = 1.0
    learnt = TargetMeanEncoder(name, tuple(words), tuple(map(tuple, ((table - centre) / spread).tolist())))
    return learnt, ((means - centre) / spread).astype(np.float32)


def _join_encoded_blocks(blocks: list[Array], rows: int) -> Array:
    """Join encoded columns (n, q) of all features to one matrix (n, p)."""
    matrix = np.empty((rows, sum(block.shape[1] for block in blocks)), dtype=np.float32)
    start = 0
    for block in blocks:
        matrix[:, start : start + block.shape[1]] = block
        start += block.shape[1]
    return matrix
