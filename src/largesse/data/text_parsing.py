"""Parsing of text columns that hold numbers or dates, with detection of the notation.

A column that can be read in one way only (15,09 or 1.234,56 or 5 EUR or 31.12.2024) is parsed, with a note. An ambiguous column
(1,234) stays text, with a note that asks for `parse`. Only the digits 0 to 9 make numbers.
The words of a column are its distinct texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data.arrow_columns import (
    convert_to_floats,
    count_words,
    decode_dictionary,
    find_feature_kind,
    format_values,
    is_number_type,
    is_text_type,
)
from largesse.errors import Problem, join_some, percent

if TYPE_CHECKING:
    import pyarrow as pa

NOTATIONS = {
    "number": "numbers",
    "decimal comma": "numbers with a decimal comma",
    "decimal point": "numbers with a decimal point",
    "percent": "percentages",
    "text": "text",
    "day first": "dates, the day first",
    "month first": "dates, the month first",
    "excel date": "Excel's day numbers",
}
YES_WORDS = {"yes": 1, "y": 1, "ja": 1, "j": 1, "true": 1, "t": 1, "oui": 1, "si": 1, "sí": 1, "wahr": 1}
NO_WORDS = {"no": 0, "n": 0, "nein": 0, "false": 0, "f": 0, "non": 0, "falsch": 0}
MISSING_WORDS = {"", "-", "–", "—", ".", "?", "na", "n/a", "n.a.", "null", "none", "nan", "#n/a"}
UNIT_PATTERN = r"€|\$|£|¥|EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CZK|AUD|CAD|%"
GROUP_SPACES = " \u00a0\u2009\u202f'’"
NUMBER_SHAPE = re.compile(
    rf"\s*([+\-−]?)\s*({UNIT_PATTERN})?\s*([+\-−]?(?:[0-9][0-9.,{GROUP_SPACES}]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?)\s*({UNIT_PATTERN})?\s*"
)
GROUP_MARKS = {"decimal point": ",", "decimal comma": "."}
NUMBER_PATTERNS = {
    way: re.compile(
        rf"[+-]?(?:[0-9]*|[1-9][0-9]{{0,2}}(?:[{group}{GROUP_SPACES}][0-9]{{3}})+)(?:\{mark}[0-9]*)?(?:[eE][+-]?[0-9]+)?"
    )
    for way, group, mark in (("decimal point", ",", "."), ("decimal comma", ".", ","))
}
DAY_MONTH_DATE = re.compile(r"\s*([0-9]{1,2})([./-])([0-9]{1,2})\2([0-9]{4})\s*")
ISO_DATE = re.compile(r"\s*([0-9]{4})-([0-9]{2})-([0-9]{2})\s*")  # can be read in one way only
DATE_NOTATIONS = ("day first", "month first", "excel date")
EXCEL_DAYS = (20_000, 60_000)  # 1954 to 2064
DATE_NAME = re.compile(r"date|datum|(^|_)(day|tag|since|seit|fecha)($|_)|_at$", re.IGNORECASE)
MIN_NUMBER_SHARE = 0.5  # of the words of a text column that gets a note
MAX_COUNTED_WORDS = 20  # words that a note counts; if more are not numbers, it gives the share of numbers
SAMPLED_CELLS = 1000  # values that are inspected before a whole column


@dataclass(frozen=True)
class NumberNotation:
    """Number notation of a text column (decimal point, decimal comma), with the texts that are not numbers."""

    way: str  # decimal point, decimal comma, plain, ambiguous or none
    unit: str = ""
    odd: tuple[str, ...] = ()  # words that are not numbers
    share: float = 1.0  # of the words that are numbers

    @property
    def is_unambiguous(self) -> bool:
        """True if every text is a number in exactly one notation."""
        return not self.odd and (self.way in GROUP_MARKS or (self.way == "plain" and bool(self.unit)))


def find_parse_setting_problems(parse: Any, columns: Sequence[str] | None = None) -> list[Problem]:
    """Return a problem for each invalid entry of the `parse` setting (column → notation)."""
    hint = f"give one of {', '.join(NOTATIONS)}; or the number for each word: {{yes = 1, no = 0}}"
    if not isinstance(parse, Mapping):
        return [Problem(f"parse is {parse!r}", 'give a notation for each column: parse={"price": "decimal comma"}')]
    problems = []
    for name, way in parse.items():
        numbers = isinstance(way, Mapping) and all(isinstance(value, int | float) for value in way.values())
        if not numbers and not (isinstance(way, str) and way in NOTATIONS):
            problems.append(Problem(f"parse of {name!r} is {way!r}", hint))
        elif columns is not None and name not in columns:
            problems.append(
                Problem(f"parse names {name!r}, which is not in the table", f"known: {join_some(list(columns))}")
            )
    return problems


def parse_text_columns(
    table: pa.Table, parse: Mapping[str, Any], skip: Collection[str] | None
) -> tuple[pa.Table, list[str], list[Problem]]:
    """Parse text columns as numbers or dates, by given notations or where only one notation fits.

    Returns the table, notes and problems.

    Columns to `skip` (None: all) are parsed only if `parse` names them.
    """
    import pyarrow as pa

    notes: list[str] = []
    problems: list[Problem] = []
    columns = []
    skip = table.column_names if skip is None else skip
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in parse:
            column = parse_column(name, column, parse[name], problems)
        elif name not in skip and find_feature_kind(column.type) == "text":
            column, note = _parse_if_unambiguous(name, column)
            notes += note
        elif name not in skip and may_hold_excel_dates(name, column):
            notes.append(write_excel_date_note(name))
        columns.append(column)
    return pa.Table.from_arrays(columns, names=table.column_names), notes, problems


def write_excel_date_note(name: str) -> str:
    """Write the note that a numeric column may hold Excel's day numbers."""
    return f'column {name!r} is read as numbers; if they are Excel\'s days: parse it as "excel date"'


def parse_expected_kinds(table: pa.Table, expected: Mapping[str, str]) -> pa.Table:
    """Parse text columns that are expected to hold numbers or dates."""
    for name, kind in expected.items():
        position = table.schema.get_field_index(name)  # −1 for a name that is not there, or there twice
        if kind in ("number", "date") and position >= 0 and find_feature_kind(table.column(position).type) == "text":
            column, _ = _parse_if_unambiguous(name, table.column(position))
            table = table.set_column(position, name, column)
    return table


def detect_number_notation(words: Sequence[str]) -> NumberNotation:
    """Detect the notation of numbers that are stored as text.

    >>> detect_number_notation(["15,09", "7"]).way, detect_number_notation(["1,234"]).way, detect_number_notation(["5 EUR", "10 EUR"]).unit
    ('decimal comma', 'ambiguous', 'EUR')
    """
    shapes = {word: NUMBER_SHAPE.fullmatch(word) for word in words}
    odd = [word for word, shape in shapes.items() if shape is None]
    bodies = {word: (shape[1] + shape[3]).strip() for word, shape in shapes.items() if shape is not None}
    units = {(shape[2] or "") + (shape[4] or "") for shape in shapes.values() if shape is not None}
    fits = {way: [w for w, body in bodies.items() if not _fits_notation(body, way)] for way in GROUP_MARKS}
    best = min(fits, key=lambda way: len(fits[way]))
    odd += fits[best]
    share = 1 - len(odd) / max(len(words), 1)
    unit = units.pop() if len(units) == 1 else ""
    if len(units) or not bodies:
        return NumberNotation("none", "", tuple(words), share)
    if not any(re.search(r"[^0-9+\-−]", body) for body in bodies.values()):
        return NumberNotation("plain", unit, tuple(odd), share)
    twofold = len(fits["decimal point"]) == len(fits["decimal comma"])
    if twofold and any(re.search(r"[.,]", body) for body in bodies.values()):
        return NumberNotation("ambiguous", unit, tuple(odd), share)
    return NumberNotation(best, unit, tuple(odd), share)


def _fits_notation(body: str, way: str) -> bool:
    return NUMBER_PATTERNS[way].fullmatch(body.replace("−", "-")) is not None


def parse_number(word: str, way: str) -> float:
    """Parse a text as a number in a given notation; return NaN if it is not one."""
    shape = NUMBER_SHAPE.fullmatch(word)
    if shape is None:
        return float("nan")
    text = re.sub(f"[{GROUP_SPACES}]", "", (shape[1] + shape[3]).replace("−", "-"))
    if not _fits_notation((shape[1] + shape[3]).strip(), way):
        return float("nan")
    text = text.replace(GROUP_MARKS[way], "").replace(",", ".")
    return float(text) / (100 if "%" in (shape[2], shape[4]) else 1)


def is_plain_number(text: str) -> bool:
    """Test if a text is a number, with an optional decimal point and exponent.

    Python's `float` also accepts 1_0, ５ and infinity.
    """
    return re.fullmatch(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*", text) is not None


def parse_numbers(words: Sequence[str]) -> list[float] | None:
    """Parse texts as numbers; return None unless exactly one notation fits all of them.

    Yes and no become 1 and 0.
    """
    folded = [word.strip().casefold() for word in words]
    if len(folded) > 0 and set(folded) <= {*YES_WORDS, *NO_WORDS}:
        return [float((YES_WORDS | NO_WORDS)[word]) for word in folded]
    style = detect_number_notation(words)
    if style.odd or style.way in ("ambiguous", "none"):
        return None
    return [parse_number(word, style.way if style.way in GROUP_MARKS else "decimal point") for word in words]


def replace_words(column: pa.ChunkedArray, words: Sequence[str], values: Any) -> pa.ChunkedArray:
    """Replace each distinct text of a column by its parsed value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    index = pc.index_in(decode_dictionary(column).cast(pa.string()), value_set=pa.array(words, pa.string()))
    return pa.chunked_array([pa.array(values, from_pandas=True).take(index.combine_chunks())])


# -------------------------------------------------------------------------------------------------------- by themselves


def _parse_if_unambiguous(name: str, column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, list[str]]:
    """Parse a text column as numbers or dates if exactly one notation fits, and return notes for the user."""
    step = max(len(column) // SAMPLED_CELLS, 1)
    some_words = list(count_words(column.take(np.arange(0, len(column), step))))
    if not look_like_numbers_or_dates(some_words):
        return column, []
    words = list(count_words(column))
    way, notes = detect_word_notation(name, words, some_words)
    return (column if way is None else replace_words(column, words, convert_words(words, way))), notes


def look_like_numbers_or_dates(words: Sequence[str]) -> bool:
    """Test if some of the texts look like numbers or dates."""
    return any(NUMBER_SHAPE.fullmatch(word) or DAY_MONTH_DATE.fullmatch(word) for word in words)


def detect_word_notation(name: str, words: list[str], some_words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Detect the number or date notation of a column's distinct texts; None unless exactly one fits.

    `words` are sorted by frequency.

    `some_words` come from rows spread over the column.
    """
    if any(DAY_MONTH_DATE.fullmatch(word) for word in some_words):
        return _detect_date_notation(name, words)
    style = detect_number_notation(words)
    example = words[0]
    if style.is_unambiguous:
        way = style.way if style.way in GROUP_MARKS else "decimal point"
        how = NOTATIONS[way] if style.way in GROUP_MARKS else "numbers"
        unit = f" in {style.unit}" if style.unit else ""
        return way, [f"column {name!r} is read as {how}{unit}: {example!r} is {parse_number(example, way):g}"]
    if style.way == "ambiguous" and not style.odd:
        return None, [
            f"column {name!r} is read as text: {example!r} may have a decimal comma or a decimal point; "
            f'say which: parse it as "decimal comma" or "decimal point"'
        ]
    if style.share > MIN_NUMBER_SHARE:
        odd = f"all but {len(style.odd):,}" if 0 < len(style.odd) <= MAX_COUNTED_WORDS else percent(style.share)
        but = (
            f", but not {join_some([repr(word) for word in style.odd], 5)}: leave such cells empty" if style.odd else ""
        )
        return None, [f"column {name!r} is read as text, though {odd} of its different values are numbers{but}"]
    return None, []


def convert_words(words: Sequence[str], way: str) -> list[Any]:
    """Convert texts to numbers or dates in a known notation."""
    dates = way in ("day first", "month first")
    return [_parse_date(word, way) if dates else parse_number(word, way) for word in words]


def _detect_date_notation(name: str, words: list[str]) -> tuple[str | None, list[str]]:
    parts = [DAY_MONTH_DATE.fullmatch(word) for word in words]
    odd = [word for word, value in zip(words, parts, strict=True) if value is None]
    if odd:
        return None, [
            f"column {name!r} is read as text: its dates are written in different ways: {join_some([words[0], *odd], 4)}"
        ]
    way = detect_date_order(words)
    if way is None:
        return None, [
            f'column {name!r} is read as text: {words[0]!r} may start with day or month; parse it as "day first" or "month first"'
        ]
    values = convert_words(words, way)
    if None in values:
        return None, [f"column {name!r} is read as text: some of its dates do not exist"]
    return way, [f"column {name!r} is read as {NOTATIONS[way]}: {words[0]!r} is {values[0]}"]


def detect_date_order(words: Sequence[str]) -> str | None:
    """Return the order of day and month in dates, "day first" or "month first"; None if both are possible."""
    parts = [match for match in map(DAY_MONTH_DATE.fullmatch, words) if match]
    first, second = max(int(p[1]) for p in parts), max(int(p[3]) for p in parts)
    if first > 12 >= second or (all(p[2] == "." for p in parts) and second <= 12):
        return "day first"
    return "month first" if second > 12 >= first else None


def _parse_date(word: str, way: str) -> Any:
    import datetime as dt

    match, iso = DAY_MONTH_DATE.fullmatch(word), ISO_DATE.fullmatch(word)
    if iso is not None:
        year, month, day = iso.groups()
    elif match is not None:
        year, (day, month) = match[4], (match[1], match[3]) if way == "day first" else (match[3], match[1])
    else:
        return None
    try:
        return dt.date(int(year), int(month), int(day))
    except ValueError:
        return None


def may_hold_excel_dates(name: str, column: pa.ChunkedArray) -> bool:
    """Test if a numeric column, named like a date, may hold Excel's day numbers."""
    if not is_number_type(column.type) or not DATE_NAME.search(name):
        return False
    values = convert_to_floats(column)
    known = values[np.isfinite(values)]
    return bool(len(known) and known.min() >= EXCEL_DAYS[0] and known.max() <= EXCEL_DAYS[1])


# ------------------------------------------------------------------------------------------------------------ as asked


def parse_column(name: str, column: pa.ChunkedArray, way: Any, problems: list[Problem]) -> pa.ChunkedArray:
    """Parse a column in a given notation, and collect the values that do not fit as problems."""
    import pyarrow as pa

    if way in DATE_NOTATIONS and find_feature_kind(column.type) == "date":
        return column
    if way == "text":
        texts = decode_dictionary(column)
        return (texts if is_text_type(texts.type) else texts.cast(pa.string())).dictionary_encode()
    if way == "excel date":
        days = convert_to_floats(column) if is_number_type(column.type) else np.full(len(column), np.nan)
        dates = np.datetime64("1899-12-30", "D") + np.where(np.isfinite(days), np.floor(days), 0).astype("m8[D]")
        return pa.chunked_array([pa.array(dates, mask=~np.isfinite(days))])
    if way == "percent" and is_number_type(column.type):
        return pa.chunked_array([pa.array(convert_to_floats(column) / 100, from_pandas=True)])
    if not isinstance(way, Mapping) and is_number_type(column.type):
        return column
    words = format_values(decode_dictionary(column).cast(pa.string()).unique().drop_null())
    values, wrong = parse_words(name, words, way)
    problems += wrong
    return column if wrong else replace_words(column, words, values)


def parse_words(name: str, words: list[str], way: Any) -> tuple[list[Any], list[Problem]]:
    """Parse a column's distinct texts in a given notation, and return their values and problems."""
    if isinstance(way, Mapping):
        known = {str(word).strip().casefold(): float(value) for word, value in way.items()}
        values: list[Any] = [known.get(word.strip().casefold()) for word in words]
        if None in values and all(is_plain_number(word) and float(word) in known.values() for word in words):
            values = [float(word) for word in words]  # the next log contains the numbers themselves
    elif way in ("day first", "month first"):
        values = [_parse_date(word, way) for word in words]
    else:
        values = _parse_numbers_in_notation(words, way)
    odd = [w for w, v in zip(words, values, strict=True) if v is None and w.strip().casefold() not in MISSING_WORDS]
    if not odd:
        return values, []
    notation = NOTATIONS[way] if isinstance(way, str) else f"one of {join_some(list(way))}"
    got = f"{name!r} is not {notation} throughout: {join_some([repr(w) for w in odd])}"
    hint = "map them all: give a number for each of these words"
    if not isinstance(way, Mapping):
        kind = "dates" if way in DATE_NOTATIONS else "numbers"
        hint = f'write all {kind} in the same way, and leave missing ones empty; or parse it as "text"'
    return values, [Problem(got, hint)]


def _parse_numbers_in_notation(words: list[str], way: str) -> list[float | None]:
    mark = way if way in GROUP_MARKS else "decimal point"
    numbers = [parse_number(word, mark) for word in words]
    share = 100 if way == "percent" else 1
    return [
        None if np.isnan(number) else (number if "%" in word else number / share)
        for word, number in zip(words, numbers, strict=True)
    ]


# -- suggestions for a first campaign file -----------------------------------------------------------------------------


@dataclass(frozen=True)
class NotationSuggestion:
    """Number or date notations that fit a text column."""

    ways: tuple[Any, ...]  # values of `parse`
    example: str  # a word of the column


def suggest_notations(column: pa.ChunkedArray) -> NotationSuggestion | None:
    """Return the number or date notations that fit a text column; None for other text.

    >>> import pyarrow as pa
    >>> suggest_notations(pa.chunked_array([["15,09", "7"]])).ways, suggest_notations(pa.chunked_array([["1,234"]])).ways
    (('decimal comma',), ('decimal comma', 'decimal point'))
    >>> suggest_notations(pa.chunked_array([["Yes", "No"]])).ways
    ({'No': 0, 'Yes': 1},)
    """
    if find_feature_kind(column.type) != "text" or not _may_hold_numbers(column):
        return None
    words = list(count_words(column))
    folded = {word: word.strip().casefold() for word in words}
    if set(folded.values()) <= {*YES_WORDS, *NO_WORDS}:
        return NotationSuggestion(
            ({word: (YES_WORDS | NO_WORDS)[fold] for word, fold in sorted(folded.items())},), words[0]
        )
    if all(DAY_MONTH_DATE.fullmatch(word) for word in words):
        way = detect_date_order(words)
        return NotationSuggestion((way,) if way else ("day first", "month first"), words[0])
    style = detect_number_notation(words)
    if style.is_unambiguous:
        plain = "percent" if style.unit == "%" else "number"
        return NotationSuggestion((style.way if style.way in GROUP_MARKS else plain,), words[0])
    if style.way == "ambiguous" and not style.odd:
        return NotationSuggestion(("decimal comma", "decimal point"), words[0])
    return None


def _may_hold_numbers(column: pa.ChunkedArray) -> bool:
    """Test if some sampled values of a text column look like numbers or dates."""
    sample = column.take(np.arange(0, len(column), max(len(column) // SAMPLED_CELLS, 1)))
    return any(
        NUMBER_SHAPE.fullmatch(word)
        or DAY_MONTH_DATE.fullmatch(word)
        or word.strip().casefold() in (YES_WORDS | NO_WORDS)
        for word in count_words(sample)
    )


def parse_unambiguous_columns(table: pa.Table) -> tuple[pa.Table, dict[str, NotationSuggestion]]:
    """Parse the text columns that exactly one number or date notation fits.

    Returns the table and the suggestions for its text columns.
    """
    ways = {name: suggest_notations(table.column(name)) for name in table.column_names}
    suggestions = {name: way for name, way in ways.items() if way is not None}
    unambiguous = {name: suggestion.ways[0] for name, suggestion in suggestions.items() if len(suggestion.ways) == 1}
    parsed, _, _ = parse_text_columns(table, unambiguous, None)
    # A column with an impossible date stays text.
    remaining = {
        name: suggestion
        for name, suggestion in suggestions.items()
        if name not in unambiguous or find_feature_kind(parsed.column(name).type) != "text"
    }
    return parsed, remaining
