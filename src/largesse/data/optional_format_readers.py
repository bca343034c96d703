"""Readers of file formats that need optional packages: Excel, JSON, Stata, SPSS, SQLite and DuckDB.

Each reads a whole file into memory. A file that may hold several tables, such as a database, takes a query.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from largesse.errors import LargesseError, Problem, fail, import_optional_package, join_some, suggest

if TYPE_CHECKING:
    import pyarrow as pa

MAX_SHEETS_LISTED = 8


@dataclass(frozen=True)
class QueriedFile:
    """File with the SQL query or sheet name that selects one of its tables, or with its text encoding."""

    path: str
    query: str = ""
    encoding: str = ""  # of a CSV; empty: guessed


def read_optional_format(file: Path, kind: str, what: str, query: str = "") -> Any:
    """Read a file of an optional format (Excel, Stata, …) as a dataframe or an Arrow table."""
    reader = READERS[kind]
    if query and kind not in QUERIED_KINDS:
        fail(what, Problem(f"{file} takes no query", f"a query selects from {join_some(QUERIED_KINDS)}"))
    try:
        return reader(file, what, query)
    except (LargesseError, PermissionError):
        raise
    except Exception as error:  # each library has errors of its own
        first = str(error).strip().split("\n")[0] or type(error).__name__
        hint = "check the query, and whether the file is complete" if query else "write the file again; is it complete?"
        fail(what, Problem(f"{file} cannot be read as {kind}: {first}", hint))


def _read_excel(file: Path, what: str, query: str) -> Any:
    import_optional_package("openpyxl", "excel", what)
    frames = import_optional_package("pandas", "excel", what).read_excel(file, sheet_name=None, engine="openpyxl")
    sheets = [str(name) for name in frames]
    if query:
        if query not in sheets:
            fail(what, Problem(f"{file} has no sheet {query!r}", suggest(query, sheets)))
        frames = {query: frames[query]}
    filled = {name: frame for name, frame in frames.items() if query or not frame.empty}
    if len(filled) != 1:
        listed = join_some([repr(name) for name in filled or sheets], MAX_SHEETS_LISTED)
        got = f"{file} has {len(filled)} sheets with rows: {listed}" if filled else f"{file} has no sheet with rows"
        fail(what, Problem(got, 'name one: query = "Sheet1"'))
    return _convert_mixed_columns(next(iter(filled.values())))


def _convert_mixed_columns(frame: Any) -> Any:
    """Convert dataframe columns with values of mixed types to text."""
    for name in frame.columns:
        column = frame[name]
        if column.dtype == object and column.dropna().map(type).nunique() > 1:
            frame[name] = column.map(_format_spreadsheet_cell, na_action="ignore")
    return frame


def _format_spreadsheet_cell(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _read_json(file: Path, _what: str, _query: str) -> pa.Table:
    import gzip

    import pyarrow as pa

    with gzip.open(file, "rb") if file.name.lower().endswith(".gz") else file.open("rb") as stream:
        if stream.read(1024).lstrip()[:1] != b"[":
            import pyarrow.json as json_lines

            stream.seek(0)
            return json_lines.read_json(pa.PythonFile(stream, mode="r"))
        stream.seek(0)
        return pa.Table.from_pylist(json.load(stream))


def _read_stata(file: Path, what: str, _query: str) -> Any:
    return import_optional_package("pandas", "stata", what).read_stata(file)


def _read_spss(file: Path, what: str, _query: str) -> Any:
    import_optional_package("pyreadstat", "stata", what)
    frame = import_optional_package("pandas", "stata", what).read_spss(file)
    frame.attrs.clear()  # Arrow cannot write them
    return frame


def _read_sqlite(file: Path, what: str, query: str) -> pa.Table:
    import sqlite3
    from contextlib import closing

    import pyarrow as pa

    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
        cursor = database.execute(query or _write_table_query([name for (name,) in tables], file, what))
        names, rows = [column[0] for column in cursor.description or ()], cursor.fetchall()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pa.Table.from_arrays([_make_array(values) for values in columns], names=names)


def _make_array(values: Sequence[Any]) -> pa.Array:
    """Convert values to an Arrow array; values of mixed types become text."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        numbers = all(value is None or isinstance(value, int | float) for value in values)
        return pa.array([value if value is None else float(value) if numbers else str(value) for value in values])


def _read_duckdb(file: Path, what: str, query: str) -> pa.Table:
    duckdb = import_optional_package("duckdb", "duckdb", what)
    with duckdb.connect(str(file), read_only=True) as database:
        names = [row[0] for row in database.execute("SHOW TABLES").fetchall()]
        return database.sql(query or _write_table_query(names, file, what)).to_arrow_table()


def _write_table_query(names: Sequence[str], file: Path, what: str) -> str:
    """Return the SQL query that selects all rows of a database's only table."""
    if len(names) != 1:
        got = f"{file} has {len(names)} tables" + (f": {join_some([repr(name) for name in names])}" if names else "")
        fail(what, Problem(got, 'say which rows to read: query = "SELECT * FROM …"'))
    return 'SELECT * FROM "' + names[0].replace('"', '""') + '"'  # noqa: S608 — the name is quoted


READERS: dict[str, Callable[[Path, str, str], Any]] = {
    "excel": _read_excel,
    "json": _read_json,
    "stata": _read_stata,
    "spss": _read_spss,
    "sqlite": _read_sqlite,
    "duckdb": _read_duckdb,
}
QUERIED_KINDS = ("excel", "sqlite", "duckdb")
