"""SQLite storage of a ledger in one file, for several processes on one machine."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, final

from largesse.errors import LedgerError, Problem, fail, find_path_problems, refuse
from largesse.io import is_mount_point
from largesse.serve.ledger.amounts_and_times import SteadyClock, now_micros

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

APPLICATION_ID = 0x6C677273  # in the file's header: tells a ledger from other SQLite files
SYNCHRONOUS = "FULL"  # a transaction is on the disk when it ends
WRITER_TIMEOUT_SECONDS = 5.0
LOCK_POLL_SECONDS = 0.001  # between two attempts to lock
READ_ONLY_CODES = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH}
BUSY_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

FileId = tuple[int, int]  # device and inode
NO_FILE: FileId = (-1, -1)


class MovedFileError(sqlite3.OperationalError):
    """Error for a ledger file that was removed or replaced while it was open."""


@final
class SqliteStore:
    """SQLite storage of a ledger in one file, with a write-ahead log; commits are durable.

    A `read_only` store may also read a file that cannot be written.
    """

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        refuse("ledger", find_path_problems(path, "the ledger"))
        self._path, self._read_only = Path(path), read_only
        self._clock = SteadyClock()
        self._turn: int | None = None  # an open file whose lock is held by the process that writes next
        self._connection: sqlite3.Connection | None = None
        self._owner = 0
        self._file: FileId | None = None  # of the ledger, once it is known
        self._journal: FileId | None = None  # of the write-ahead log of this connection
        self._journal_path = Path(f"{path}-wal")

    @property
    def display_address(self) -> str:
        """The address of the ledger's file."""
        return f"sqlite:///{self._path}"

    def prepare(self, create: Sequence[str]) -> None:
        """Connect to the file; create the tables in a new file, or refuse a file that is not a ledger."""
        path, exists = self._path, self._path.exists()
        if not create and not (path.is_file() and path.stat().st_size):  # SQLite would fill an empty file
            hint = "check the address; largesse serve begins one with --total and --until"
            _refuse_ledger(f"there is no ledger at {self.display_address}", hint)
        if not path.parent.is_dir():
            _refuse_ledger(f"the folder {path.parent} is not there", "make it first")
        if exists and not path.is_file():  # opening a pipe would block
            _refuse_ledger(f"{path} is not a file", "give a file, or a name that is free")
        # A file under several names has a journal, and with it a budget, under each of them.
        if exists and is_mount_point(path.resolve()):
            _refuse_ledger(f"{path} is mounted by itself", "mount its folder: other files are made next to a ledger")
        if exists and path.stat().st_nlink > 1:
            hint = "remove the other names (find / -samefile …), or copy the file and use the copy alone"
            _refuse_ledger(f"{path} has more than one name (hard links)", hint)
        self._connect(create=bool(create))
        if not create:
            return
        with self.transaction() as session:
            if session.fetch("PRAGMA application_id")[0][0] != APPLICATION_ID:
                for statement in create:
                    session.run(statement)
                session.run(f"PRAGMA application_id = {APPLICATION_ID}")

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[SqliteSession]:
        """Yield a session whose transaction locks the file for writing, or reads a snapshot of it."""
        connection = self._connect()
        if write:
            self._lock_file(connection)
        else:
            connection.execute("BEGIN")
        try:
            self._check_files()
            yield SqliteSession(connection, self._clock)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    def _lock_file(self, connection: sqlite3.Connection) -> None:
        """Lock the file for writing, in a fair order between processes.

        SQLite lets waiting processes try at growing intervals, and the process that has just written would write again and again.
        Here the process whose turn is next holds another lock, and tries often.
        """
        deadline = time.monotonic() + WRITER_TIMEOUT_SECONDS
        while not _try_file_lock(self._turn) and time.monotonic() < deadline:
            time.sleep(LOCK_POLL_SECONDS)
        try:
            while True:
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    return
                except sqlite3.OperationalError as error:
                    if _find_error_code(error) not in BUSY_CODES or time.monotonic() >= deadline:
                        raise
                time.sleep(LOCK_POLL_SECONDS)
        finally:
            _release_file_lock(self._turn)

    def _connect(self, *, create: bool = False) -> sqlite3.Connection:
        if self._connection is not None and self._owner != os.getpid():
            self._connection = self._turn = None  # a connection must not cross a fork; the parent still uses it
        if self._connection is None:
            if self._file is not None and _find_file_id(self._path) != self._file:
                self._file = NO_FILE
                raise MovedFileError
            place = self._path.resolve()
            self._journal_path = Path(f"{place}-wal")
            if create:  # ids and promises of customers: SQLite makes its other files with the rights of this one
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            # A missing file is only made where a ledger begins: elsewhere it was taken away.
            if self._read_only and not all(
                map(_is_writable, (place, place.parent))
            ):  # a copy on a medium, or another's file
                if self._journal_path.exists() and self._journal_path.stat().st_size:
                    hint = "copy both to a folder that you may write to, and give the address of the copy"
                    _refuse_ledger(
                        f"{self._path} cannot be written, and a part of it is in {self._journal_path.name}", hint
                    )
                self._connection = self._open_connection("ro&immutable=1")
            else:
                self._connection = self._open_connection("rw")
                self._turn = _open_lock_file(Path(f"{place}-lock"))
            self._owner, self._journal = os.getpid(), None
        return self._connection

    def _open_connection(self, mode: str) -> sqlite3.Connection:
        """Connect to a file that is a ledger or empty; refuse any other database."""
        address = f"{self._path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(
            address, timeout=LOCK_POLL_SECONDS, isolation_level=None, check_same_thread=False, uri=True
        )
        try:
            application, tables = (
                connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "schema_version")
            )
            if application != APPLICATION_ID and (application or tables):  # before anything in it is changed
                hint = "give the address of a ledger, or of a file that is not there yet"
                _refuse_ledger(f"{self._path} is a database, but not a ledger", hint)
            if mode == "rw":
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        except Exception:
            connection.close()
            raise
        return connection

    def _check_files(self) -> None:
        """Refuse to continue if the file or its journal was removed or replaced while open.

        SQLite would write on into files that are lost, and a ledger that begins in their place has the whole budget once
        more. The journal exists as soon as a connection has locked the file for writing.
        """
        file, journal = _find_file_id(self._path), _find_file_id(self._journal_path)
        self._file, self._journal = self._file or file, self._journal or journal
        if self._file != file or self._journal != journal:
            self._file = NO_FILE  # permanently: another file may get the inode of the lost one
            raise MovedFileError

    def is_temporary_error(self, error: Exception) -> bool:
        """Return True if a database error only says that another process has locked the file."""
        return isinstance(error, sqlite3.OperationalError) and _find_error_code(error) in BUSY_CODES

    def explain_database_error(self, error: Exception) -> Problem | None:
        """Convert a database error to a problem with a hint; None for other errors."""
        if not isinstance(error, sqlite3.Error | UnicodeDecodeError):
            return None
        if isinstance(error, MovedFileError):
            hint = "stop whatever uses it, put the file back with its -wal next to it, and start again"
            return Problem(f"{self._path} was taken away or replaced while it was open", hint)
        code = sqlite3.SQLITE_CORRUPT if isinstance(error, UnicodeDecodeError) else _find_error_code(error)
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
        """Close the connection to the file."""
        if self._connection is not None and self._owner == os.getpid():
            with suppress(sqlite3.Error):
                self._connection.close()
            if self._turn is not None:
                os.close(self._turn)
        self._connection = self._turn = None


@final
class SqliteSession:
    """SQLite transaction of a ledger."""

    def __init__(self, connection: sqlite3.Connection, clock: SteadyClock) -> None:
        self._connection, self._clock = connection, clock

    def now(self) -> int:
        """Return the current time of this machine, without clock jumps, in microseconds since 1970."""
        return self._clock.read(now_micros())

    def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self._connection.execute(sql, tuple(values)).fetchall()

    def fetch_together(self, queries: Sequence[tuple[str, Sequence[Any]]]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of several queries."""
        return [self.fetch(sql, values) for sql, values in queries]

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Run a statement without a result."""
        self._connection.execute(sql, tuple(values))

    def insert(self, table: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Insert rows, given as columns, into a table."""
        places = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608  names of our own
        self._connection.executemany(sql, zip(*columns.values(), strict=True))


def _find_file_id(path: Path) -> FileId | None:
    """Return the device and inode of a file; None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _open_lock_file(path: Path) -> int | None:
    """Open the lock file by which processes take turns to write; None if the system has no file locks."""
    return None if fcntl is None else os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)  # type: ignore[redundant-expr]


def _try_file_lock(file: int | None) -> bool:
    """Try to lock an open lock file without waiting; return True if locked."""
    if file is None or fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _release_file_lock(file: int | None) -> None:
    if file is not None and fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_UN)


def _find_error_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary error code of an error; 0 if it has none."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def _refuse_ledger(problem: str, hint: str) -> NoReturn:
    fail("ledger", Problem(problem, hint), LedgerError)
