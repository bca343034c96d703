"""Fast encoder of customers' features from JSON requests.

Arrow costs some twenty steps for every column of a one-row table. Here plain values (numbers, text, booleans, null, dates such
as 2026-01-31) go straight into the matrix, all numbers at once. Other values (numbers as text, values of another kind) become a
table, which `Encoder` checks and encodes. Both ways give the same matrix.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, final

import numpy as np

from largesse.data.column_encoders import (
    MAX_STANDARD_DEVIATIONS,
    SECONDS_PER_DAY,
    DateEncoder,
    NumberEncoder,
    TargetMeanEncoder,
    WordsEncoder,
)
from largesse.data.encoder import Encoder
from largesse.data.table_reader import read_table
from largesse.errors import InputError, Problem, join_some, plural, refuse, repr_short, suggest
from largesse.records import Array

Row = Mapping[str, Any]
PLAIN_TYPES = {float, int, bool, type(None)}
MAX_LISTED_CUSTOMERS = 5
MAX_CACHED_DAYS = 50_000
ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


@final
@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Matrix of encoded customer features, which models accept in place of a table."""

    matrix: Array  # (n, p) float32
    encoder: Encoder  # that encoded them

    def __len__(self) -> int:
        return len(self.matrix)


@final
class JsonRowEncoder:
    """Encoder of JSON rows as a feature matrix, equal to `Encoder` on a table of the same rows.

    Parameters
    ----------
    encoder
        The fitted encoder.
    parse
        Notations of columns, as for `read_log`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"age": [20.0, 30.0, 40.0], "city": pa.array(["Oslo", "Rome", "Oslo"]).dictionary_encode()})
    >>> encoder = Encoder(rare=1)
    >>> matrix = encoder.fit_transform(table, target=np.array([0.0, 1.0, 1.0]))
    >>> JsonRowEncoder(encoder).encode([{"age": 20, "city": "Oslo"}]).matrix == matrix[:1]
    array([[ True,  True]])
    """

    def __init__(self, encoder: Encoder, parse: Mapping[str, Any] | None = None) -> None:
        self._encoder = encoder
        self._parse = {name: way for name, way in (parse or {}).items() if name in encoder.features}
        self._width = len(encoder.names)
        # Positions are columns of the matrix; −1: none.
        self._numbers: list[tuple[str, int, int]] = []  # name, position, position of the indicator of missing values
        self._texts: list[tuple[str, int, dict[str | None, Array]]] = []  # name, position, text → its columns
        self._others: dict[str, Array] = {}  # columns of unseen text
        self._dates: list[tuple[DateEncoder, int]] = []  # encoder, position
        centres, spreads, place = [], [], 0
        for learnt in encoder.columns:
            if isinstance(learnt, NumberEncoder):
                scale = learnt.scale
                value = place if scale.spread > 0 else -1
                self._numbers.append((learnt.name, value, place + (value >= 0) if scale.missing else -1))
                centres.append(scale.centre)
                spreads.append(scale.spread or 1.0)
            elif isinstance(learnt, WordsEncoder | TargetMeanEncoder):
                self._store_word_columns(learnt, place)
            elif isinstance(learnt, DateEncoder):
                self._dates.append((learnt, place))
            place += len(learnt.names)
        self._centres, self._spreads = np.array(centres), np.array(spreads)
        self._scalars = [
            (*place, *scale) for place, scale in zip(self._numbers, zip(centres, spreads, strict=True), strict=True)
        ]
        self._days: dict[tuple[str, str | None], Array] = {}  # encoded days: most customers share a few thousand
        self._values = np.array([k for k, (_, at, _) in enumerate(self._numbers) if at >= 0], dtype=np.intp)
        self._places = np.array([at for _, at, _ in self._numbers if at >= 0], dtype=np.intp)
        self._gaps = np.array([k for k, (_, _, at) in enumerate(self._numbers) if at >= 0], dtype=np.intp)
        self._marks = np.array([at for _, _, at in self._numbers if at >= 0], dtype=np.intp)

    def _store_word_columns(self, learnt: WordsEncoder | TargetMeanEncoder, place: int) -> None:
        """Store the encoded columns of each known word of a text feature for lookup."""
        import pyarrow as pa

        words: list[str | None] = [*learnt.words, None]
        other = "other"
        while other in learnt.words:
            other += "'"
        blocks = learnt.encode(pa.chunked_array([pa.array([*words, other], type=pa.string())]))
        self._texts.append((learnt.name, place, dict(zip(words, blocks, strict=False))))
        self._others[learnt.name] = blocks[-1]

    def encode(self, rows: Sequence[Row]) -> EncodedRows:
        """Encode the features of JSON rows as a matrix.

        A row with a missing feature, or a feature of another kind, is refused.
        """
        matrix = self._encode_simple_rows(rows)
        if matrix is None:
            matrix = self._encoder.transform(self._make_feature_table(rows))
        return EncodedRows(matrix, self._encoder)

    def _encode_simple_rows(self, rows: Sequence[Row]) -> Array | None:
        """Encode JSON rows without a table; return None if a value, such as text for a number, must be parsed."""
        matrix = np.zeros((len(rows), self._width), dtype=np.float32)
        try:
            if len(rows) == 1:
                if not self._fill_row_numbers(matrix[0], rows[0]):
                    return None
            elif self._numbers:
                columns = [[row[name] for row in rows] for name, _, _ in self._numbers]
                if not all(_are_numbers_or_missing(column) for column in columns):
                    return None
                self._fill_numbers(matrix, np.array(columns, dtype=np.float64).T)
            for name, place, known in self._texts:
                texts = [row[name] for row in rows]
                if not set(map(type, texts)) <= {str, type(None)}:
                    return None
                other = self._others[name]
                width = len(other)
                matrix[:, place : place + width] = [known.get(text, other) for text in texts]
            for learnt, place in self._dates:
                blocks = [self._encode_day(learnt, row[learnt.name]) for row in rows]
                matrix[:, place : place + len(blocks[0])] = blocks
        except (KeyError, TypeError, OverflowError, ValueError):
            return None
        return matrix

    def _fill_row_numbers(self, matrix_row: Array, row: Row) -> bool:
        """Write the standardised numbers of one JSON row into the matrix; return False if a value must be parsed."""
        for name, at, gap, centre, spread in self._scalars:
            value = row[name]
            if type(value) not in PLAIN_TYPES:
                return False
            known = value is not None and math.isfinite(value)
            if at >= 0 and known:
                deviation = (value - centre) / spread
                matrix_row[at] = min(max(deviation, -MAX_STANDARD_DEVIATIONS), MAX_STANDARD_DEVIATIONS)
            if gap >= 0 and not known:
                matrix_row[gap] = 1.0
        return True

    def _encode_day(self, learnt: DateEncoder, text: str | None) -> Array:
        """Encode a date given as text."""
        block = self._days.get((learnt.name, text))
        if block is None:
            block = learnt.encode_seconds(np.array([_parse_day(text)]))[0]
            if len(self._days) < MAX_CACHED_DAYS:
                self._days[learnt.name, text] = block
        return block

    def _fill_numbers(self, matrix: Array, values: Array) -> None:
        known = np.isfinite(values)
        with np.errstate(over="ignore", invalid="ignore"):
            deviations = np.clip(
                (values - self._centres) / self._spreads, -MAX_STANDARD_DEVIATIONS, MAX_STANDARD_DEVIATIONS
            )
        matrix[:, self._places] = np.where(known, deviations, 0.0)[:, self._values]
        matrix[:, self._marks] = ~known[:, self._gaps]

    def _make_feature_table(self, rows: Sequence[Row]) -> Any:
        """Convert JSON rows to a feature table; refuse missing features and mixed types."""
        import pyarrow as pa

        refuse("customers", self._find_missing_features(rows))
        problems, columns = [], {}
        for learnt in self._encoder.columns:
            name, values = learnt.name, [row[learnt.name] for row in rows]
            try:
                columns[name] = _parse_timestamps(values) if learnt.kind == "date" else pa.array(values)
            except (pa.ArrowException, OverflowError, TypeError, ValueError):
                got = f"the feature {name!r} holds values of several kinds: {join_some([repr_short(value) for value in values])}"
                problems.append(Problem(got, "write all of them as in the log"))
        refuse("customers", problems)
        return read_table(pa.table(columns), what="customers", parse=self._parse)

    def _find_missing_features(self, rows: Sequence[Row]) -> list[Problem]:
        """Return a problem for each JSON row that lacks a feature.

        Null is a missing value; an absent key is an error.
        """
        problems: list[Problem] = []
        for at, row in enumerate(rows):
            lacking = [name for name in self._encoder.features if name not in row]
            if lacking and len(problems) < MAX_LISTED_CUSTOMERS:
                where = "the customer lacks" if len(rows) == 1 else f"customer {at + 1} of {len(rows)} lacks"
                what = f"the feature {repr_short(lacking[0])}" if len(lacking) == 1 else plural(len(lacking), "feature")
                more = "" if len(lacking) == 1 else f": {join_some([repr_short(name)[1:-1] for name in lacking])}"
                hint = f"{suggest(lacking[0], list(row))}; send null where a value is not known"
                problems.append(Problem(f"{where} {what}{more}", hint))
        return problems


def _are_numbers_or_missing(column: list[Any]) -> bool:
    """Test if all values are numbers, booleans or None."""
    return set(map(type, column)) <= PLAIN_TYPES


def _parse_timestamps(values: list[Any]) -> Any:
    """Parse a list of texts as dates and times; return other values unchanged.

    The notation is 2026-01-31 or 2026-01-31 10:30.
    """
    import pyarrow as pa

    stamps = pa.array(values)
    try:
        return stamps.cast(pa.timestamp("us")) if pa.types.is_string(stamps.type) else stamps
    except pa.ArrowException:
        return stamps


def _parse_day(text: str | None) -> float:
    """Convert a date such as 2026-01-31 to seconds since 1970; None becomes NaN.

    Other values raise ValueError or TypeError.
    """
    if text is None:
        return math.nan
    if not ISO_DAY.fullmatch(text):
        raise ValueError
    return (date.fromisoformat(text).toordinal() - EPOCH_ORDINAL) * SECONDS_PER_DAY


def parse_json_rows(content: Any, most: int) -> list[Row]:
    """Return the rows of a JSON request; refuse invalid content and more than `most` rows."""
    if not isinstance(content, list) or not content or not all(isinstance(row, dict) for row in content):
        got = "an empty list" if content == [] else repr_short(content)
        hint = 'send one object for each: "customers": [{"age": 31, "city": "Oslo"}]'
        raise InputError("customers", [Problem(f"customers is {got}", hint)])
    if len(content) > most:
        raise InputError("customers", [Problem(f"{len(content):,} customers in one request", f"send at most {most:,}")])
    return content
