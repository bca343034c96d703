"""How four databases write names, text, numbers and the few functions that a policy needs.

Names and text are always quoted, so that reserved words, spaces and quotation marks in them do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from largesse.errors import Problem, fail, repr_short, suggest

LARGEST = "1.7976931348623157e308"
SPLIT = 2.0**29 + 1.0  # splits off the 29 bits of a float64 that a float32 does not have (Veltkamp)
TINIEST = 7.006492321624085e-46  # what is not larger is zero in float32


@dataclass(frozen=True)
class Dialect:
    """One way to write SQL. Subclasses say where they differ from DuckDB's."""

    name: ClassVar[str] = "duckdb"
    most: ClassVar[int] = 8_000_000  # characters of a query
    folds_case: ClassVar[bool] = True  # whether two columns may differ by more than the case of their names only
    text_type: ClassVar[str] = "VARCHAR"
    float_type: ClassVar[str] = "DOUBLE"
    fence: ClassVar[str] = ""  # keeps a database from writing out a column wherever it is used
    kept: ClassVar[str] = "MATERIALIZED "  # keeps what is done with the answer apart from how it is computed

    def quote_name(self, name: str) -> str:
        """Return a name of a column or table."""
        return '"' + name.replace('"', '""') + '"'

    def quote_text(self, text: str) -> str:
        """Return text."""
        parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
        return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"

    def can_hold(self, text: str) -> bool:  # noqa: ARG002 -- only some databases hold less than all text
        """Whether a column of this database can hold some text."""
        return True

    def number(self, number: float) -> str:
        """Return a float64, exactly."""
        text = repr(min(max(float(number), -float(LARGEST)), float(LARGEST)))
        return text if "e" in text else text + "e0"

    def as_float(self, column: str) -> str:
        """Return a column of numbers or booleans as float64."""
        return f"CAST({column} AS {self.float_type})"

    def as_text(self, column: str) -> str:
        """Return a column as text."""
        return f"CAST({column} AS {self.text_type})"

    def as_seconds(self, column: str) -> str:
        """Return a column of dates or times as seconds since 1970."""
        return f"epoch_us({column}) / 1e6"

    def round_to_float32(self, column: str) -> str:
        """Return a float64 column rounded as a float32 is, as float64."""
        return f"CAST(CAST({column} AS REAL) AS DOUBLE)"

    def list_words(self, name: str, words: Sequence[str], columns: Sequence[Sequence[str]]) -> str:
        """Return a table of words and numbers, to join with: (word, m0, m1 …)."""
        rows = ", ".join(f"({', '.join(row)})" for row in zip(words, *columns, strict=True))
        heads = ", ".join(["word", *(f"m{j}" for j in range(len(columns)))])
        return f"(VALUES {rows}) AS {name}({heads})"


@dataclass(frozen=True)
class Postgres(Dialect):
    """PostgreSQL 12 or later."""

    name: ClassVar[str] = "postgresql"
    folds_case: ClassVar[bool] = False
    text_type: ClassVar[str] = "text"
    float_type: ClassVar[str] = "double precision"
    fence: ClassVar[str] = " OFFSET 0"
    kept: ClassVar[str] = ""

    def quote_text(self, text: str) -> str:
        """Return text; a backslash means itself only where it is doubled in an escape string."""
        plain = text.replace("'", "''")
        return "E'" + plain.replace("\\", "\\\\") + "'" if "\\" in plain else f"'{plain}'"

    def can_hold(self, text: str) -> bool:
        """PostgreSQL's text has no zero byte."""
        return "\0" not in text

    def number(self, number: float) -> str:
        """Return a float64: a bare number would be a decimal."""
        return f"float8 '{min(max(float(number), -float(LARGEST)), float(LARGEST))!r}'"

    def as_float(self, column: str) -> str:
        """Return numbers or booleans as float64: there is no cast from boolean, and text keeps every digit."""
        text = f"CAST({column} AS text)"
        return f"CASE {text} WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE CAST({text} AS double precision) END"

    def as_seconds(self, column: str) -> str:
        """Return seconds since 1970."""
        return f"CAST(EXTRACT(EPOCH FROM {column}) AS double precision)"

    def round_to_float32(self, column: str) -> str:
        """Return a float64 rounded as a float32 is; a number too small for it is an error here, elsewhere zero."""
        rounded = f"CAST(CAST({column} AS real) AS double precision)"
        return f"CASE WHEN ABS({column}) <= {self.number(TINIEST)} THEN {self.number(0.0)} ELSE {rounded} END"


@dataclass(frozen=True)
class Spark(Dialect):
    """Spark SQL."""

    name: ClassVar[str] = "spark"
    kept: ClassVar[str] = ""
    text_type: ClassVar[str] = "STRING"

    def quote_name(self, name: str) -> str:
        """Return a name."""
        return "`" + name.replace("`", "``") + "`"

    def quote_text(self, text: str) -> str:
        """Return text, with every backslash and quotation mark escaped."""
        plain = text.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\u0000")
        return f"'{plain}'"

    def number(self, number: float) -> str:
        """Return a float64."""
        return repr(min(max(float(number), -float(LARGEST)), float(LARGEST))) + "D"

    def as_seconds(self, column: str) -> str:
        """Return seconds since 1970, in the time zone of the session."""
        return f"unix_micros(CAST({column} AS TIMESTAMP)) / 1e6D"

    def round_to_float32(self, column: str) -> str:
        """Return a float64 rounded as a float32 is."""
        return f"CAST(CAST({column} AS FLOAT) AS DOUBLE)"


@dataclass(frozen=True)
class BigQuery(Dialect):
    """GoogleSQL of BigQuery, which has float64 only."""

    name: ClassVar[str] = "bigquery"
    kept: ClassVar[str] = ""
    most: ClassVar[int] = 1_000_000  # its limit for the text of a query
    text_type: ClassVar[str] = "STRING"
    float_type: ClassVar[str] = "FLOAT64"

    def quote_name(self, name: str) -> str:
        """Return a name."""
        return "`" + _escape(name).replace("`", "\\`") + "`"

    def quote_text(self, text: str) -> str:
        """Return text."""
        return "'" + _escape(text).replace("'", "\\'") + "'"

    def as_seconds(self, column: str) -> str:
        """Return seconds since 1970."""
        return f"UNIX_MICROS(CAST({column} AS TIMESTAMP)) / 1e6"

    def round_to_float32(self, column: str) -> str:
        """Return a float64 rounded to the 24 bits of a float32, by float64 arithmetic."""
        wide = f"{column} * {self.number(SPLIT)}"
        return f"({wide}) - (({wide}) - {column})"

    def list_words(self, name: str, words: Sequence[str], columns: Sequence[Sequence[str]]) -> str:
        """Return a table of words and numbers."""
        heads = ["word", *(f"m{j}" for j in range(len(columns)))]
        rows = [
            f"STRUCT({', '.join(f'{cell} AS {head}' for cell, head in zip(row, heads, strict=True))})"
            for row in zip(words, *columns, strict=True)
        ]
        return f"UNNEST([{', '.join(rows)}]) AS {name}"


def _escape(text: str) -> str:
    """Return text with what may not stand in a BigQuery literal as escapes."""
    return "".join(
        "\\\\" if letter == "\\" else letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in text
    )


DIALECTS: dict[str, Dialect] = {one.name: one for one in (Dialect(), Postgres(), Spark(), BigQuery())}


def find_dialect(name: str) -> Dialect:
    """Return a dialect by its name, or refuse.

    >>> find_dialect("spark").quote_name("a`b")
    '`a``b`'
    """
    if not isinstance(name, str) or name not in DIALECTS:
        fail("export", Problem(f"dialect {repr_short(name)} is not known", suggest(str(name), DIALECTS)))
    return DIALECTS[name]
