"""PostgreSQL storage of ledgers, for workers on several machines; each ledger has its own schema."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, final
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from largesse.errors import LedgerError, Problem, fail, import_optional_package
from largesse.serve.ledger.amounts_and_times import SteadyClock

DEFAULT_SCHEMA = "largesse"  # unless the address names another: ?schema=spring
CONNECT_SECONDS = 5
TEMPORARY_STATES = {"57P01", "57P02", "57P03", "53300", "40001", "40P01", "55P03"}  # restarts, too many, conflicts
IDLE_TIMEOUT = "25P03"  # of a transaction: this process was stopped meanwhile
LOCK_LEDGER = "SELECT id FROM ledger FOR UPDATE"
SERVER_TIME = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
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
        self._psycopg = import_optional_package("psycopg", "postgres", "ledger")
        self._address, self._schema = _split_schema(address)
        self._begin = f"BEGIN; {TRANSACTION_SETTINGS.format(schema=self._schema)}"
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
        with self.transaction(locks=False) as session:
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
    def transaction(self, *, write: bool = True, locks: bool = True) -> Iterator[PostgresSession]:
        """Yield a session whose transaction locks the ledger for writing, or reads a snapshot of the ledger.

        Changes are durable when the transaction ends.

        The settings are those of the transaction: a pooler (PgBouncer) drops those of the connection without a word.
        """
        begin = self._begin if write else f"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY{self._begin[5:]}"
        session = PostgresSession(self._psycopg, self._connect(), self._clock, begin, locks=write and locks)
        try:
            yield session
            session.end_transaction("COMMIT")
        except BaseException:
            with suppress(Exception):
                session.end_transaction("ROLLBACK")
            raise

    def _connect(self) -> Any:
        if self._connection is not None and self._owner != os.getpid():
            self._connection = None  # a connection must not cross a fork; the parent still uses it
        if self._connection is None or self._connection.closed:
            extra = {"connect_timeout": CONNECT_SECONDS, "application_name": "largesse", **KEEPALIVE}
            self._connection = self._psycopg.connect(self._address, autocommit=True, **extra)
            self._owner = os.getpid()
        return self._connection

    def is_temporary_error(self, error: Exception) -> bool:
        """Return True if a database error may pass: a restart, too many connections, or a conflict."""
        state = getattr(error, "sqlstate", None)
        if state == IDLE_TIMEOUT:
            return True
        if not isinstance(error, self._psycopg.OperationalError | self._psycopg.InterfaceError):
            return False
        return state is None or state in TEMPORARY_STATES or state.startswith("08")

    def explain_database_error(self, error: Exception) -> Problem | None:
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
    """PostgreSQL transaction that sends its statements in one message when a result is needed, and when it ends.

    They go to libpq without psycopg's cursors, which take several times as much CPU time.
    """

    def __init__(self, psycopg: Any, connection: Any, clock: SteadyClock, begin: str, *, locks: bool) -> None:
        self._psycopg, self._connection, self._clock, self._locks = psycopg, connection, clock, locks
        self._encoding = connection.info.encoding
        self._unsent = [begin, *([LOCK_LEDGER] if locks else []), SERVER_TIME]
        self._time: int | None = None  # microseconds since 1970, once the first message is answered

    def now(self) -> int:
        """Return the server's time when it granted the lock, in microseconds since 1970."""
        if self._time is None:
            self.fetch_together([])
        assert self._time is not None
        return self._time

    def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query; an empty list for a statement without a result."""
        return self.fetch_together([(sql, values)])[0]

    def fetch_together(self, queries: Sequence[tuple[str, Sequence[Any]]]) -> list[list[tuple[Any, ...]]]:
        """Send waiting statements and several queries in one message, and return the rows of the queries."""
        statements = [self._bind_values(sql, values) for sql, values in queries]
        results = self._send_statements(statements)
        n_before = len(results) - len(statements)
        if self._time is None:
            self._time = self._clock.read(self._read_rows(results[n_before - 1])[0][0])
            if self._locks and not results[n_before - 2].ntuples:  # only one worker fills an empty ledger
                results = self._send_statements(["LOCK TABLE ledger IN EXCLUSIVE MODE", *statements])
                n_before = 1
        return [self._read_rows(result) for result in results[n_before:]]

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Queue a statement that is sent when the transaction ends, or with the next query."""
        self._unsent.append(self._bind_values(sql, values))

    def insert(self, table: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Insert rows, given as columns, into a table by one statement."""
        rows = (f"({', '.join(map(self._quote_value, row))})" for row in zip(*columns.values(), strict=True))
        self._unsent.append(f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join(rows)}")  # noqa: S608

    def end_transaction(self, statement: str) -> None:
        """End the transaction: send all changes and COMMIT, or discard them and ROLLBACK."""
        if statement == "ROLLBACK":
            self._unsent = []
        self._send_statements([statement])

    def _send_statements(self, statements: Sequence[str]) -> list[Any]:
        """Send the queued and some additional statements in one message; return all results."""
        message, self._unsent = "; ".join([*self._unsent, *statements]), []
        library, connection = self._psycopg, self._connection.pgconn
        connection.send_query(message.encode(self._encoding))
        results: list[Any] = self._connection.wait(library.generators.execute(connection))
        if results[-1].status == library.pq.ExecStatus.FATAL_ERROR:  # nothing is run after an error
            raise library.errors.error_from_result(results[-1], self._encoding)
        return results

    def _read_rows(self, result: Any) -> list[tuple[Any, ...]]:
        """Convert a result to rows of Python values."""
        if not result.ntuples:
            return []
        reader = self._psycopg.adapt.Transformer(self._connection)
        reader.set_pgresult(result)
        rows: list[tuple[Any, ...]] = reader.load_rows(0, result.ntuples, tuple)
        return rows

    def _bind_values(self, sql: str, values: Sequence[Any]) -> str:
        """Write the values of a statement in place of its question marks."""
        first, *rest = sql.split("?")
        return first + "".join([self._quote_value(value) + part for value, part in zip(values, rest, strict=True)])

    def _quote_value(self, value: Any) -> str:
        """Write a number, a text or None as SQL; a text as the server's own library does."""
        if value is None:
            return "NULL"
        if isinstance(value, str):
            quoted: bytes = self._psycopg.pq.Escaping(self._connection.pgconn).escape_literal(
                value.encode(self._encoding)
            )
            return quoted.decode(self._encoding)
        return f"'{value!r}'::float8" if isinstance(value, float) else str(int(value))


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
