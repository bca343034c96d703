"""A ledger in one SQLite file: for one machine, with any number of processes."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, final

from largesse.errors import LedgerError, Problem, path_problems, refuse
from largesse.io import is_mounted
from largesse.serve.ledger.statements import CREATE
from largesse.serve.ledger.terms import now_micros

APPLICATION = 0x6C677273  # in the file's header: tells a ledger from other SQLite files
WAIT = 5.0  # seconds that SQLite itself waits for another writer
READ_ONLY = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH}
BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

Place = tuple[int, int]
NOWHERE: Place = (-1, -1)


class MovedError(sqlite3.OperationalError):
    """The file is not the one that was opened."""


@final
class SqliteStore:
    """A SQLite file in write-ahead mode; a transaction is on the disk when it ends."""

    def __init__(self, path: str) -> None:
        refuse("ledger", path_problems(path, "the ledger"))
        self._path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._owner = 0
        self._file: Place | None = None  # which file the ledger is, once it is known
        self._journal: Place | None = None  # which file is written first, for this connection …
        self._beside = Path(f"{path}-wal")  # … and where it is

    @property
    def shown(self) -> str:
        """The address of the file."""
        return f"sqlite:///{self._path}"

    def prepare(self, create: bool) -> None:
        """Connect; make tables if there are none and `create`, or refuse a file that is no ledger."""
        if not create and not (self._path.is_file() and self._path.stat().st_size):  # SQLite would fill an empty file
            hint = "check the address; largesse serve begins one with --total and --until"
            raise LedgerError("ledger", [Problem(f"there is no ledger at {self.shown}", hint)])
        if not self._path.parent.is_dir():
            raise LedgerError("ledger", [Problem(f"the folder {self._path.parent} is not there", "make it first")])
        if self._path.exists() and not self._path.is_file():  # a pipe would keep us waiting
            raise LedgerError("ledger", [Problem(f"{self._path} is no file", "give a file, or a name that is free")])
        self._refuse_other_names()
        self._connect(create=create)
        with self.transaction() as session:
            if session.fetch("PRAGMA application_id")[0][0] != APPLICATION:
                for statement in CREATE:
                    session.run(statement)
                session.run(f"PRAGMA application_id = {APPLICATION}")

    def _refuse_other_names(self) -> None:
        """Refuse a file that others may open under another name: each name has a journal, and with it a budget, of its own."""
        if not self._path.exists():
            return
        if is_mounted(self._path.resolve()):
            hint = "mount the folder that it is in: a ledger is a file beside which others are made"
            raise LedgerError("ledger", [Problem(f"{self._path} is mounted by itself", hint)])
        if self._path.stat().st_nlink > 1:
            hint = "remove the other names (find / -samefile …), or copy the file and use the copy alone"
            raise LedgerError("ledger", [Problem(f"{self._path} has more than one name (hard links)", hint)])

    @contextmanager
    def transaction(self) -> Iterator[SqliteSession]:
        """Give a session that holds the file for writing."""
        connection = self._connect()
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._keep_place()
            yield SqliteSession(connection)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    def _connect(self, *, create: bool = False) -> sqlite3.Connection:
        if self._connection is not None and self._owner != os.getpid():
            self._connection = None  # a connection must not cross a fork; the parent still uses it
        if self._connection is None:
            if self._file is not None and _identify(self._path) != self._file:
                self._file = NOWHERE
                raise MovedError
            # A file that is not there is only made where a ledger begins: elsewhere it was taken away.
            address = f"{self._path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
            connection = sqlite3.connect(address, timeout=WAIT, isolation_level=None, check_same_thread=False, uri=True)
            try:
                self._refuse_foreign(connection)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
            except Exception:
                connection.close()
                raise
            self._connection, self._owner, self._journal = connection, os.getpid(), None
            self._beside = Path(f"{self._path.resolve()}-wal")
        return self._connection

    def _keep_place(self) -> None:
        """Refuse to go on where the file, or the journal beside it, was taken away or replaced while it is open.

        SQLite would write on into files that nobody finds again, and a ledger that begins in their place has the whole
        budget once more. Whoever holds the file for writing has made the journal.
        """
        found, journal = _identify(self._path), _identify(self._beside)
        self._file, self._journal = self._file or found, self._journal or journal
        if self._file != found or self._journal != journal:
            self._file = NOWHERE  # for good: another file may get the number of the one that is gone
            raise MovedError

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
        if isinstance(error, MovedError):
            hint = "stop whatever uses it, put the file back with its -wal beside it, and start again"
            return Problem(f"{self._path} was taken away or replaced while it was open", hint)
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


def _identify(path: Path) -> Place | None:
    """Return what tells a file from one that took its place; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _code(error: sqlite3.Error) -> int:
    """Return the primary code of an error; 0 where SQLite gave none."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
