"""Storage of a ledger in PostgreSQL, for many machines: each ledger has a schema of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, final
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from largesse.errors import LedgerError, Problem, fail, require_part
from largesse.serve.ledger.money_time import SteadyClock

DEFAULT_SCHEMA = "largesse"  # unless the address names another: ?schema=spring
CONNECT_SECONDS = 5
COLUMN_TYPES = {"customer": "text", "id": "text", "digest": "text", "policy": "text"} | dict.fromkeys(
    ("propensity", "response", "price"), "float8"
)  # of the columns that are inserted; the others are whole numbers
TEMPORARY_STATES = {"57P01", "57P02", "57P03", "53300", "40001", "40P01", "55P03"}  # restarts, too many, conflicts
IDLE_TIMEOUT = "25P03"  # of a transaction: this process was stopped meanwhile
POOLED_STATES = {
    "26000",
    "42P05",
}  # a prepared statement is missing or doubled: a pooler gave this client another connection
PREPARE_AFTER = 5  # executions
LOCK_LEDGER = "SELECT id FROM ledger FOR UPDATE; "
SERVER_TIME = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, (SELECT max(id) FROM ledger)"
TRANSACTION_SETTINGS = """SET LOCAL search_path TO {schema};
SET LOCAL idle_in_transaction_session_timeout TO 60000;
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"""
# A server that is silent for half a minute counts as gone; the network itself would wait for hours.
KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4, "tcp_user_timeout": 30_000}
HOST_PATTERN = re.compile(r"(\[[^]]*\]|[^][:]*)(:[0-9]*)?")


@final
class PostgresStore:
    """A schema of a PostgreSQL database; writers wait for each other at the ledger's row."""

    def __init__(self, address: str) -> None:
        self._psycopg = require_part("psycopg", "postgres", "ledger")
        self._address, self._schema = _split_schema(address)
        self._connection: Any = None
        self._prepare_after: int | None = PREPARE_AFTER
        self._clock = SteadyClock()
        self._owner = 0

    @property
    def display_address(self) -> str:
        """The address without its password."""
        parts = urlsplit(self._address)
        location = parts.netloc.rpartition("@")
        user = location[0].partition(":")[0]
        query = urlencode([pair for pair in parse_qsl(parts.query) if "pass" not in pair[0]])
        address = _join(parts, f"{user}@{location[2]}" if user else location[2], query)
        return f"{address} (schema {self._schema})"

    def prepare(self, create: Sequence[str]) -> None:
        """Connect; run the statements that `create` the tables if the schema is empty, or refuse other tables."""
        with self._begin() as cursor:
            # Two workers that begin a ledger at the same moment take turns.
            cursor.execute("SELECT pg_advisory_xact_lock(7307291, hashtext(%s))", (self._schema,))
            cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (self._schema,))
            tables = {row[0] for row in cursor.fetchall()}
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
                cursor.execute(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"')
                for statement in create:
                    cursor.execute(statement)

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[PostgresSession]:
        """Give a session that locks the ledger's row, or that reads one state of it."""
        mode, first = (
            ("", LOCK_LEDGER + SERVER_TIME) if write else ("ISOLATION LEVEL REPEATABLE READ, READ ONLY", SERVER_TIME)
        )
        with self._begin(mode, first) as cursor:
            while cursor.nextset():  # the time is the last result
                pass
            now, locked_id = cursor.fetchone()
            if write and locked_id is None:
                cursor.execute("LOCK TABLE ledger IN EXCLUSIVE MODE")  # only one worker fills it
            yield PostgresSession(cursor, self._clock.read(now))

    @contextmanager
    def _begin(self, mode: str = "", first: str = "") -> Iterator[Any]:
        """Give the cursor of a transaction in the ledger's schema, which is on the disk when it ends.

        The settings are those of the transaction: a pooler (PgBouncer) drops those of the connection without a word. The `first`
        statements are sent with them, in one message.
        """
        connection = self._connect()
        with connection.cursor() as cursor:
            try:
                settings = TRANSACTION_SETTINGS.format(schema=self._schema)
                cursor.execute(f"BEGIN {mode}; {settings}; {first}", prepare=False)
                yield cursor
                cursor.execute("COMMIT")
            except BaseException as error:
                with suppress(Exception):
                    cursor.execute("ROLLBACK")
                if getattr(error, "sqlstate", None) in POOLED_STATES:
                    self._prepare_after = None
                raise

    def _connect(self) -> Any:
        if self._connection is not None and self._owner != os.getpid():
            self._connection = None  # a connection must not cross a fork; the parent still uses it
        if self._connection is None or self._connection.closed:
            extra = {"connect_timeout": CONNECT_SECONDS, "application_name": "largesse", **KEEPALIVE}
            self._connection = self._psycopg.connect(
                self._address, autocommit=True, prepare_threshold=self._prepare_after, **extra
            )
            self._owner = os.getpid()
        return self._connection

    def is_temporary(self, error: Exception) -> bool:
        """Return True if the server is restarting, not ready yet, or asks for a retry."""
        state = getattr(error, "sqlstate", None)
        if state == IDLE_TIMEOUT or state in POOLED_STATES:
            return True
        if not isinstance(error, self._psycopg.OperationalError | self._psycopg.InterfaceError):
            return False
        return state is None or state in TEMPORARY_STATES or state.startswith("08")

    def explain(self, error: Exception) -> Problem | None:
        """Explain an error of the server or the database; None for other errors."""
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
        """Close the connection."""
        if self._connection is not None and self._owner == os.getpid():
            with suppress(Exception):
                self._connection.close()
        self._connection = None


@final
class PostgresSession:
    """A transaction of a PostgreSQL database."""

    def __init__(self, cursor: Any, now: int) -> None:
        self._cursor, self._now = cursor, now

    def now(self) -> int:
        """Return the time of the server when it gave the lock: the clocks of machines may differ."""
        return self._now

    def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        self._cursor.execute(sql.replace("?", "%s"), tuple(values))
        return list(self._cursor.fetchall())

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Run a statement."""
        self._cursor.execute(sql.replace("?", "%s"), tuple(values))

    def insert(self, table: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Add rows, all in one statement."""
        places = ", ".join(f"%s::{COLUMN_TYPES.get(name, 'int8')}[]" for name in columns)
        sql = f"INSERT INTO {table} ({', '.join(columns)}) SELECT * FROM unnest({places})"  # noqa: S608  names of our own
        self._cursor.execute(sql, [list(values) for values in columns.values()])


def _split_schema(address: str) -> tuple[str, str]:
    """Return an address for PostgreSQL, and the schema that it named."""
    parts = _split(address)
    pairs = parse_qsl(parts.query)
    schema = dict(pairs).get("schema", DEFAULT_SCHEMA)
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
        hint = "use small letters, digits and _, with a letter first: ?schema=spring"
        fail("ledger", Problem(f"the schema is named {schema[:80]!r}", hint))
    query = urlencode([pair for pair in pairs if pair[0] != "schema"])
    return _join(parts, parts.netloc, query), schema


def _split(address: str) -> SplitResult:
    """Split an address; refuse one that is cut within its password, without showing that."""
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


def _join(parts: SplitResult, place: str, query: str) -> str:
    return f"{parts.scheme}://{place}{parts.path}{'?' if query else ''}{query}"
