"""PostgreSQL storage of ledgers, for workers on several machines; each ledger has its own schema."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, final
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from largesse.errors import LedgerError, Problem, fail, require_part
from largesse.serve.ledger.amounts_and_times import SteadyClock

DEFAULT_SCHEMA = "largesse"  # unless the address names another: ?schema=spring
CONNECT_SECONDS = 5
COLUMN_TYPES = {"customer": "text", "id": "text", "digest": "text", "policy": "text"} | dict.fromkeys(
    ("propensity", "response", "price"), "float8"
)  # of the columns that are inserted; the others are whole numbers
TEMPORARY_STATES = {"57P01", "57P02", "57P03", "53300", "40001", "40P01", "55P03"}  # restarts, too many, conflicts
IDLE_TIMEOUT = "25P03"  # of a transaction: this process was stopped meanwhile
LOCK_LEDGER = "SELECT id FROM ledger FOR UPDATE; "
SERVER_TIME = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, (SELECT max(id) FROM ledger)"
TRANSACTION_SETTINGS = """SET LOCAL search_path TO {schema};
SET LOCAL idle_in_transaction_session_timeout TO 60000;
SET LOCAL extra_float_digits TO 3;
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"""
# A server that is silent for half a minute counts as gone; the network itself would wait for hours.
KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4, "tcp_user_timeout": 30_000}
HOST_PATTERN = re.compile(r"(\[[^]]*\]|[^][:]*)(:[0-9]*)?")


@final
class PostgresStore:
    """PostgreSQL storage of a ledger in one schema; writers wait for a lock on the ledger's row."""

    def __init__(self, address: str) -> None:
        self._psycopg = require_part("psycopg", "postgres", "ledger")
        self._address, self._schema = _split_schema(address)
        self._connection: Any = None
        self._clock = SteadyClock()
        self._owner = 0

    @property
    def display_address(self) -> str:
        """The database address without the password."""
        parts = urlsplit(self._address)
        location = parts.netloc.rpartition("@")
        user = location[0].partition(":")[0]
        query = urlencode([pair for pair in parse_qsl(parts.query) if "pass" not in pair[0]])
        address = _join_address(parts, f"{user}@{location[2]}" if user else location[2], query)
        return f"{address} (schema {self._schema})"

    def prepare(self, create: Sequence[str]) -> None:
        """Connect to the database; create the tables in an empty schema, or refuse other tables."""
        with self._open_transaction() as session:
            # Two workers that begin a ledger at the same moment take turns.
            session.fetch("SELECT pg_advisory_xact_lock(7307291, hashtext(?))", (self._schema,))
            tables = {
                row[0] for row in session.fetch("SELECT tablename FROM pg_tables WHERE schemaname = ?", (self._schema,))
            }
            if not tables and not create:
                hint = "check the address; largesse serve begins one with --total and --until"
                fail("ledger", Problem(f"there is no ledger at {self.display_address}", hint), LedgerError)
            if tables and not {"ledger", "request", "decision"} <= tables:
                hint = "name a schema of its own: postgresql://…/database?schema=spring"
                fail(
                    "ledger",
                    Problem(f"{self.display_address} holds tables that are not of a ledger", hint),
                    LedgerError,
                )
            if not tables:
                for statement in (f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"', *create):
                    session.run(statement)

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[PostgresSession]:
        """Yield a session whose transaction locks the ledger for writing, or reads a snapshot of it."""
        mode, first = (
            ("", LOCK_LEDGER + SERVER_TIME) if write else ("ISOLATION LEVEL REPEATABLE READ, READ ONLY", SERVER_TIME)
        )
        with self._open_transaction(mode, first) as session:
            now, locked_id = session.last_row()
            if write and locked_id is None:
                session.fetch("LOCK TABLE ledger IN EXCLUSIVE MODE")  # only one worker fills it
            session.time = self._clock.read(now)
            yield session

    @contextmanager
    def _open_transaction(self, mode: str = "", first: str = "") -> Iterator[PostgresSession]:
        """Yield a session with a transaction in the ledger's schema, durable when it ends.

        The settings are those of the transaction: a pooler (PgBouncer) drops those of the connection without a word. The `first`
        statements are sent with them, in one message.
        """
        connection = self._connect()
        with connection.cursor() as cursor:
            try:
                settings = TRANSACTION_SETTINGS.format(schema=self._schema)
                cursor.execute(f"BEGIN {mode}; {settings}; {first}")
                session = PostgresSession(cursor)
                yield session
                session.commit()
            except BaseException:
                with suppress(Exception):
                    cursor.execute("ROLLBACK")
                raise

    def _connect(self) -> Any:
        if self._connection is not None and self._owner != os.getpid():
            self._connection = None  # a connection must not cross a fork; the parent still uses it
        if self._connection is None or self._connection.closed:
            extra = {"connect_timeout": CONNECT_SECONDS, "application_name": "largesse", **KEEPALIVE}
            # Values are quoted here, by the library of PostgreSQL, so that one message may hold several statements.
            cursors = self._psycopg.ClientCursor
            self._connection = self._psycopg.connect(self._address, autocommit=True, cursor_factory=cursors, **extra)
            self._owner = os.getpid()
        return self._connection

    def is_temporary(self, error: Exception) -> bool:
        """Return True if a database error may pass: a restart, too many connections, or a conflict."""
        state = getattr(error, "sqlstate", None)
        if state == IDLE_TIMEOUT:
            return True
        if not isinstance(error, self._psycopg.OperationalError | self._psycopg.InterfaceError):
            return False
        return state is None or state in TEMPORARY_STATES or state.startswith("08")

    def explain(self, error: Exception) -> Problem | None:
        """Convert a database error to a problem with a hint; None for other errors."""
        if not isinstance(error, self._psycopg.Error):
            return None
        text = re.sub(r"\s+", " ", str(error)).strip() or type(error).__name__
        if isinstance(error, self._psycopg.OperationalError | self._psycopg.InterfaceError):
            hint = "check that the server runs, and user, password and database in the address"
            return Problem(f"{self.display_address} does not answer: {text}", hint)
        if getattr(error, "sqlstate", "") == "42501":
            hint = "give its user the right to use and create the schema"
            return Problem(f"{self.display_address} does not allow it: {text}", hint)
        return Problem(f"{self.display_address}: {text}", "check that the schema holds a ledger of this version")

    def disconnect(self) -> None:
        """Close the connection to the server."""
        if self._connection is not None and self._owner == os.getpid():
            with suppress(Exception):
                self._connection.close()
        self._connection = None


@final
class PostgresSession:
    """PostgreSQL transaction that sends all its changes in one message when it ends."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor
        self._changes: list[str] = []
        self._values: list[Any] = []
        self.time = 0  # microseconds since 1970

    def now(self) -> int:
        """Return the server's time when it granted the lock, in microseconds since 1970."""
        return self.time

    def last_row(self) -> Any:
        """Return the result row of the last statement in a message."""
        while self._cursor.nextset():
            pass
        return self._cursor.fetchone()

    def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query; an empty list for a statement without a result."""
        return self.fetch_together([(sql, values)])[-1]

    def fetch_together(self, queries: Sequence[tuple[str, Sequence[Any]]]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of several queries, sent in one message after all earlier changes."""
        self._changes += [sql for sql, _ in queries]
        self._values += [value for _, values in queries for value in values]
        n_before = len(self._changes) - len(queries)
        self._send_statements()
        results = []
        for place in range(n_before + len(queries)):
            if place >= n_before:
                has_rows = self._cursor.pgresult.nfields > 0
                results.append(list(self._cursor.fetchall()) if has_rows else [])
            self._cursor.nextset()
        return results

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Queue a statement that is sent when the transaction ends, or before the next query."""
        self._changes.append(sql)
        self._values += values

    def insert(self, table: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Insert rows, given as columns, into a table by one statement."""
        names = ", ".join(columns)
        kinds = ", ".join(f"{name} {COLUMN_TYPES.get(name, 'int8')}" for name in columns)
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        sql = f"INSERT INTO {table} ({names}) SELECT {names} FROM json_to_recordset(?) AS rows({kinds})"  # noqa: S608  names of our own
        self.run(sql, [json.dumps(rows, ensure_ascii=False)])

    def commit(self) -> None:
        """Send all queued changes, and commit the transaction."""
        self._changes.append("COMMIT")
        self._send_statements()

    def _send_statements(self) -> None:
        self._cursor.execute("; ".join(self._changes).replace("?", "%s"), self._values)
        self._changes, self._values = [], []


def _split_schema(address: str) -> tuple[str, str]:
    """Split an address into the address for PostgreSQL and the name of the schema."""
    parts = _split_address(address)
    pairs = parse_qsl(parts.query)
    schema = dict(pairs).get("schema", DEFAULT_SCHEMA)
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
        hint = "use small letters, digits and _, with a letter first: ?schema=spring"
        fail("ledger", Problem(f"the schema is named {schema[:80]!r}", hint))
    query = urlencode([pair for pair in pairs if pair[0] != "schema"])
    return _join_address(parts, parts.netloc, query), schema


def _split_address(address: str) -> SplitResult:
    """Split an address into its parts; refuse a malformed one without showing its password."""
    try:
        parts = urlsplit(address)
        hosts = parts.netloc.rpartition("@")[2].split(",")
        sound = all(map(HOST_PATTERN.fullmatch, hosts)) and not parts.fragment and "@" not in parts.path
    except ValueError:
        sound = False
    if not sound:
        hint = (
            "write it as postgresql://user:password@host:5432/database; in a password, %2F for /, %3F for ?, %23 for #"
        )
        fail("ledger", Problem("the address of the PostgreSQL server cannot be read", hint))
    return parts


def _join_address(parts: SplitResult, place: str, query: str) -> str:
    return f"{parts.scheme}://{place}{parts.path}{'?' if query else ''}{query}"
