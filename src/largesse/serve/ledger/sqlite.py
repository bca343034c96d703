"""Storage of a ledger in one SQLite file, for any number of processes on one machine."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, final

from largesse.errors import LedgerError, Problem, fail, path_problems, refuse
from largesse.io import is_mount_point
from largesse.serve.ledger.money_time import now_micros

APPLICATION_ID = 0x6C677273  # in the file's header: tells a ledger from other SQLite files
SYNCHRONOUS = "FULL"  # a transaction is on the disk when it ends
WRITER_TIMEOUT_SECONDS = 5.0
READ_ONLY_CODES = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH}
BUSY_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

FileId = tuple[int, int]  # device and inode
NO_FILE: FileId = (-1, -1)


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
        self._file: FileId | None = None  # of the ledger, once it is known
        self._journal: FileId | None = None  # of the write-ahead log of this connection
        self._journal_path = Path(f"{path}-wal")

    @property
    def display_address(self) -> str:
        """The address of the file."""
        return f"sqlite:///{self._path}"

    def prepare(self, create: Sequence[str]) -> None:
        """Connect; run the statements that `create` the tables if the file is new, or refuse another kind of file."""
        path, exists = self._path, self._path.exists()
        if not create and not (path.is_file() and path.stat().st_size):  # SQLite would fill an empty file
            hint = "check the address; largesse serve begins one with --total and --until"
            _refuse(f"there is no ledger at {self.display_address}", hint)
        if not path.parent.is_dir():
            _refuse(f"the folder {path.parent} is not there", "make it first")
        if exists and not path.is_file():  # opening a pipe would block
            _refuse(f"{path} is not a file", "give a file, or a name that is free")
        # A file under several names has a journal, and with it a budget, under each of them.
        if exists and is_mount_point(path.resolve()):
            _refuse(f"{path} is mounted by itself", "mount its folder: other files are made next to a ledger")
        if exists and path.stat().st_nlink > 1:
            hint = "remove the other names (find / -samefile …), or copy the file and use the copy alone"
            _refuse(f"{path} has more than one name (hard links)", hint)
        self._connect(create=bool(create))
        with self.transaction() as session:
            if session.fetch("PRAGMA application_id")[0][0] != APPLICATION_ID:
                for statement in create:
                    session.run(statement)
                session.run(f"PRAGMA application_id = {APPLICATION_ID}")

    @contextmanager
    def transaction(self) -> Iterator[SqliteSession]:
        """Give a session that locks the file for writing."""
        connection = self._connect()
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._check_files()
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
                self._file = NO_FILE
                raise MovedError
            # A missing file is only made where a ledger begins: elsewhere it was taken away.
            address = f"{self._path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
            connection = sqlite3.connect(
                address, timeout=WRITER_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False, uri=True
            )
            try:
                application, tables = (
                    connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "schema_version")
                )
                if application != APPLICATION_ID and (application or tables):  # before anything in it is changed
                    hint = "give the address of a ledger, or of a file that is not there yet"
                    _refuse(f"{self._path} is a database, but not a ledger", hint)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
            except Exception:
                connection.close()
                raise
            self._connection, self._owner, self._journal = connection, os.getpid(), None
            self._journal_path = Path(f"{self._path.resolve()}-wal")
        return self._connection

    def _check_files(self) -> None:
        """Refuse to go on if the file, or its journal, was taken away or replaced while it is open.

        SQLite would write on into files that are lost, and a ledger that begins in their place has the whole budget once
        more. The journal exists as soon as a connection has locked the file for writing.
        """
        file, journal = _identify(self._path), _identify(self._journal_path)
        self._file, self._journal = self._file or file, self._journal or journal
        if self._file != file or self._journal != journal:
            self._file = NO_FILE  # permanently: another file may get the inode of the lost one
            raise MovedError

    def is_temporary(self, error: Exception) -> bool:
        """Return True if another process has locked the file."""
        return isinstance(error, sqlite3.OperationalError) and _error_code(error) in BUSY_CODES

    def explain(self, error: Exception) -> Problem | None:
        """Explain an error of the file; None for other errors."""
        if not isinstance(error, sqlite3.Error | UnicodeDecodeError):
            return None
        if isinstance(error, MovedError):
            hint = "stop whatever uses it, put the file back with its -wal next to it, and start again"
            return Problem(f"{self._path} was taken away or replaced while it was open", hint)
        code = sqlite3.SQLITE_CORRUPT if isinstance(error, UnicodeDecodeError) else _error_code(error)
        if code in READ_ONLY_CODES:
            hint = "other files are made next to a ledger: allow writing to it and to its folder"
            return Problem(f"{self._path} cannot be opened for writing", hint)
        if code in BUSY_CODES:
            hint = "another process uses it: look for one that hangs, or use PostgreSQL for many writers"
            return Problem(f"{self._path} is locked", hint)
        if code == sqlite3.SQLITE_FULL:
            return Problem(f"the disk with {self._path} is full", "make room; nothing was written")
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            hint = "give the address of a ledger, or restore the file from a copy"
            return Problem(f"{self._path} is damaged or not a database", hint)
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

    def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self._connection.execute(sql, tuple(values)).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Run a statement."""
        self._connection.execute(sql, tuple(values))

    def insert(self, table: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Add rows."""
        places = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608  names of our own
        self._connection.executemany(sql, zip(*columns.values(), strict=True))


def _identify(path: Path) -> FileId | None:
    """Return the device and inode of a file; None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _error_code(error: sqlite3.Error) -> int:
    """Return the primary code of an error; 0 if SQLite gave none."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def _refuse(problem: str, hint: str) -> NoReturn:
    fail("ledger", Problem(problem, hint), LedgerError)
