"""What a ledger asks of a database: one writer at a time, all of a transaction or nothing, and errors that are told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from largesse.errors import Problem


class Session(Protocol):
    """A transaction that holds the ledger: nobody else changes it until the block ends."""

    def now(self) -> int:
        """Return the time in microseconds since 1970, by the clock that all workers share."""
        ...

    def fetch(self, sql: str, given: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query; ``?`` stands for what is given."""
        ...

    def run(self, sql: str, given: Sequence[Any] = ()) -> None:
        """Run a statement."""
        ...

    def insert(self, table: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Add rows to a table, column by column."""
        ...


class Store(Protocol):
    """A database that holds one ledger."""

    @property
    def shown(self) -> str:
        """The address as it may be shown: without a password."""
        ...

    def prepare(self, create: bool) -> None:
        """Connect; make tables if there are none and `create`, or refuse."""
        ...

    def transaction(self) -> AbstractContextManager[Session]:
        """Give a session that holds the ledger; what it did is kept when the block ends well, else nothing is."""
        ...

    def is_passing(self, error: Exception) -> bool:
        """Whether an error may pass by itself: the database is busy, or restarts."""
        ...

    def explain(self, error: Exception) -> Problem | None:
        """Say what an error of the database means, and what to do; None if it is no such error."""
        ...

    def disconnect(self) -> None:
        """Close the connection; the next transaction opens another."""
        ...
