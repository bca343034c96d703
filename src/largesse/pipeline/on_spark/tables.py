"""Tables where they are: a DataFrame, a table that Spark knows by name, or files that executors read themselves.

Files on a disk that driver and executors share are read by the same code as on one machine, so that the rules, the messages
and the order of rows are the same. Spark reads what only it can reach: its own tables, and addresses like s3a://….
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from largesse.data import Piece, find_files, kind_of, read_piece, split_file
from largesse.errors import InputError, Problem
from largesse.pipeline.on_spark.session import explain_failure, first_line

MARK = "table:"  # before the name of a table of Spark in a campaign file
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
NAME = re.compile(r"[\w`]+(\.[\w`]+){0,2}")
ENDINGS = (".csv", ".csv.gz", ".tsv", ".txt", ".arrow", ".feather", ".ipc")


@dataclass(frozen=True, eq=False)
class Table:
    """A table on Spark: a DataFrame of its rows, or of the numbers of `pieces` of files."""

    frame: Any
    pieces: tuple[Piece, ...] | None = None
    path: str = ""  # of the files, or their folder or glob


def find_table(session: Any, source: Any, what: str) -> Table:
    """Return the table that a DataFrame, a name, a path or an address stands for; `what` names it in errors."""
    if is_frame(source):
        return Table(source)
    if not isinstance(source, str | os.PathLike):
        hint = "give a Spark DataFrame, the name of a table, or a path"
        raise InputError(what, [Problem(f"not a table for Spark: got {type(source).__name__}", hint)])
    text = os.fspath(source)
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    if ADDRESS.match(text):
        return _read_address(session, text, what)
    if name := _find_name(session, text, what):
        return Table(session.table(name))
    pieces = tuple(piece for file in find_files(text, what) for piece in split_file(file, what))
    # One task for each piece; the rows of this DataFrame are the numbers of pieces.
    return Table(session.range(0, len(pieces), 1, len(pieces)), pieces, text)


def list_texts(table: Table) -> list[str]:
    """Return the columns of a table that hold text."""
    if table.pieces is None:
        return [
            field.name for field in table.frame.schema if field.dataType.typeName() in ("string", "char", "varchar")
        ]
    first = next(read_piece(table.pieces[0], "customers"), None)
    return [] if first is None else [field.name for field in first.schema if kind_of(field.type) == "text"]


def is_frame(source: Any) -> bool:
    """Whether this is a DataFrame of Spark, classic or Connect."""
    return hasattr(source, "mapInArrow") and hasattr(source, "sparkSession")


def _find_name(session: Any, text: str, what: str) -> str:
    """Return the name of the table that a text stands for; empty if it is the path of a file."""
    name = text.removeprefix(MARK)
    if name == text and (not NAME.fullmatch(text) or os.path.exists(text)):  # noqa: PTH110
        return ""
    with explain_failure(f"looking for the table {name!r}"):
        known = bool(session.catalog.tableExists(name))
    if not known and name != text:
        raise InputError(what, [Problem(f"Spark knows no table {name!r}", "give its name as in catalog.schema.table")])
    return name if known else ""


def _read_address(session: Any, address: str, what: str) -> Table:
    """Let Spark read Parquet at an address."""
    if address.lower().endswith(ENDINGS):
        hint = "give a DataFrame, or the name of a table: how text is read is for Spark to say"
        raise InputError(what, [Problem(f"{address} is not Parquet", hint)])
    try:
        return Table(session.read.parquet(address))
    except Exception as error:
        hint = "can Spark reach it, and is it Parquet?"
        raise InputError(what, [Problem(f"{address} cannot be read: {first_line(error)}", hint)]) from error
