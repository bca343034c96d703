"""A ledger in one SQLite file: for one machine, with any number of processes."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, final

from largesse.errors import LedgerError, Problem, path_problems, refuse
from largesse.pacing.ledger.tables import CREATE
from largesse.pacing.ledger.terms import now_micros

APPLICATION = 0x6C677273  # in the file's header: tells a ledger from other SQLite files
WAIT = 5.0  # seconds that SQLite itself waits for another writer
READ_ONLY = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH}
BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


@final
class SqliteStore:
    """A SQLite file in write-ahead mode; a transaction is on the disk when it ends."""

    def __init__(self, path: str) -> None:
        refuse("ledger", path_problems(path, "the ledger"))
        self._path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._owner = 0

    @property
    def shown(self) -> str:
        """The address of the file."""
        return f"sqlite:///{self._path}"

    def prepare(self, create: bool) -> None:
        """Connect; make tables if there are none and `create`, or refuse a file that is no ledger."""
        if not create and not (self._path.is_file() and self._path.stat().st_size):  # SQLite would fill an empty file
            hint = "give --total and --until to begin one, or check the address"
            raise LedgerError("ledger", [Problem(f"there is no ledger at {self.shown}", hint)])
        if not self._path.parent.is_dir():
            raise LedgerError("ledger", [Problem(f"the folder {self._path.parent} is not there", "make it first")])
        if self._path.exists() and not self._path.is_file():  # a pipe would keep us waiting
            raise LedgerError("ledger", [Problem(f"{self._path} is no file", "give a file, or a name that is free")])
        with self.transaction() as session:
            if session.fetch("PRAGMA application_id")[0][0] != APPLICATION:
                for statement in CREATE:
                    session.run(statement)
                session.run(f"PRAGMA application_id = {APPLICATION}")

    @contextmanager
    def transaction(self) -> Iterator[SqliteSession]:
        """Give a session that holds the file for writing."""
        connection = self._connect()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield SqliteSession(connection)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    def _connect(self) -> sqlite3.Connection:
        if self._connection is not None and self._owner != os.getpid():
            self._connection = None  # a connection must not cross a fork; the parent still uses it
        if self._connection is None:
            connection = sqlite3.connect(
                self._path.absolute(), timeout=WAIT, isolation_level=None, check_same_thread=False
            )
            try:
                self._refuse_foreign(connection)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
            except Exception:
                connection.close()
                raise
            self._connection, self._owner = connection, os.getpid()
        return self._connection

    def _refuse_foreign(self, connection: sqlite3.Connection) -> None:
        """Refuse a database of something else before anything in it is changed."""
        mark, tables = (
            connection.execute(f"PRAGMA {word}").fetchone()[0] for word in ("application_id", "schema_version")
        )
        if mark != APPLICATION and (mark or tables):
            hint = "give the address of a ledger, or of a file that is not there yet"
            raise LedgerError("ledger", [Problem(f"{self._path} is a database, but no ledger", hint)])

    def is_passing(self, error: Exception) -> bool:
        """Whether another process holds the file."""
        return isinstance(error, sqlite3.OperationalError) and _code(error) in BUSY

    def explain(self, error: Exception) -> Problem | None:
        """Say what is wrong with the file."""
        if not isinstance(error, sqlite3.Error | UnicodeDecodeError):
            return None
        code = sqlite3.SQLITE_CORRUPT if isinstance(error, UnicodeDecodeError) else _code(error)
        if code in READ_ONLY:
            hint = "a ledger is a file beside which others are made: allow writing to it and to its folder"
            return Problem(f"{self._path} cannot be opened for writing", hint)
        if code in BUSY:
            hint = "another process holds it: look for one that hangs, or use PostgreSQL for many writers"
            return Problem(f"{self._path} is locked", hint)
        if code == sqlite3.SQLITE_FULL:
            return Problem(f"the disk with {self._path} is full", "make room; nothing was written")
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            hint = "give the address of a ledger, or restore the file from a copy"
            return Problem(f"{self._path} is damaged or no database", hint)
        return Problem(f"{self._path}: {error}", "check the file and its disk")

    def disconnect(self) -> None:
        """Close the file."""
        if self._connection is not None and self._owner == os.getpid():
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None


@final
class SqliteSession:
    """A transaction of a SQLite file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def now(self) -> int:
        """Return the time of this machine: everyone who opens the file is on it."""
        return now_micros()

    def fetch(self, sql: str, given: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self._connection.execute(sql, tuple(given)).fetchall()

    def run(self, sql: str, given: Sequence[Any] = ()) -> None:
        """Run a statement."""
        self._connection.execute(sql, tuple(given))

    def insert(self, table: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Add rows."""
        places = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608  names of our own
        self._connection.executemany(sql, zip(*columns.values(), strict=True))


def _code(error: sqlite3.Error) -> int:
    """Return the primary code of an error; 0 where SQLite gave none."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
