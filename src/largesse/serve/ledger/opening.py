"""Opening a ledger by its address."""

from __future__ import annotations

import re
import time
from typing import Any

from largesse.errors import LedgerError, Problem, as_number, fail, refuse, repr_short
from largesse.serve.ledger.ledger import PATIENCE, Ledger, insist
from largesse.serve.ledger.money import show_money
from largesse.serve.ledger.postgres import PostgresStore
from largesse.serve.ledger.rows import refuse_damaged, write_plan
from largesse.serve.ledger.sqlite import SqliteStore
from largesse.serve.ledger.statements import FORMAT, TERMS, UPGRADE
from largesse.serve.ledger.store import Store
from largesse.serve.ledger.terms import Terms, read_terms, show_time

WAYS = "sqlite:///spring.db for one machine, postgresql://user@host/database for many"


def open_ledger(
    address: str,
    terms: Terms | None = None,
    *,
    plan: dict[str, Any] | None = None,
    patience: float = PATIENCE,
) -> Ledger:
    """Open a ledger; with terms, begin it where there is none yet.

    Parameters
    ----------
    address
        ``sqlite:///spring.db`` (relative; four slashes for an absolute path), or ``postgresql://…``, with
        ``?schema=spring`` for one of several ledgers in a database.
    terms
        What it is opened with: `agree`. A ledger that is there already must have the same.
    plan
        What the price goes by, for a ledger that begins: `PacePlan.as_dict`.
    patience
        Seconds that every call waits for other threads and tries again while the database is busy or gone.

    >>> import tempfile
    >>> from largesse.serve import agree
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_ledger(f"sqlite:///{folder}/spring.db", agree(500, "2999-12-31")) as ledger:
    ...         ledger.standing().as_dict()["room"]
    500.0
    """
    refuse("ledger", _problems(terms, patience))
    store, price = make_store(address), write_plan({} if plan is None else plan)
    deadline = time.monotonic() + patience
    try:
        insist(store, lambda: store.prepare(create=terms is not None), deadline)
        insist(store, lambda: _begin(store, terms, price), deadline)
    except BaseException:
        store.disconnect()
        raise
    return Ledger(store, patience=patience)


def _problems(terms: Any, patience: Any) -> list[Problem]:
    found, seconds = [], as_number(patience)
    if not isinstance(terms, Terms | None):
        found.append(Problem(f"the terms are {repr_short(terms)}", "make them with agree(total, ends)"))
    if seconds is None or not 0 <= seconds < float("inf"):
        found.append(Problem(f"the patience is {repr_short(patience)}", "give a number of seconds, zero or more"))
    return found


def make_store(address: str) -> Store:
    """Return the database that an address names."""
    scheme, _, rest = address.partition("://") if isinstance(address, str) else ("", "", "")
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return SqliteStore(rest[1:])
    if scheme not in ("postgresql", "postgres") or not rest:
        shown = re.sub("(?<=://).*@", "…@", address) if isinstance(address, str) else address  # without a password
        fail("ledger", Problem(f"the ledger's address is {repr_short(shown)}", f"give {WAYS}"))
    return PostgresStore(address)


def _begin(store: Store, terms: Terms | None, plan: str) -> None:
    """Fill a ledger that is empty; refuse one of another version, or of other terms."""
    with store.transaction() as session:
        if session.fetch("SELECT format FROM ledger") == [(1,)]:
            for statement in UPGRADE:
                session.run(statement)
        version = session.fetch("SELECT format FROM ledger")
        if version and version != [(FORMAT,)]:
            hint = "open it with that version of largesse, or begin another ledger"
            got = f"{store.shown} was written by another version of largesse (tables of format {version[0][0]})"
            raise LedgerError("ledger", [Problem(got, hint)])
        found = session.fetch(f"SELECT {', '.join(TERMS)} FROM ledger")  # noqa: S608  names of our own
        if not found and terms is None:
            raise LedgerError("ledger", [Problem(f"{store.shown} is empty", "open it with a total and a period")])
        if not found and terms is not None:
            given = {name: getattr(terms, name) for name in TERMS}
            columns = {"id": 1, "format": FORMAT, **given, "plan": plan}
            places = ", ".join("?" * len(columns))
            sql = f"INSERT INTO ledger ({', '.join(columns)}) VALUES ({places})"  # noqa: S608  names of our own
            session.run(sql, list(columns.values()))
            return
        try:
            held = read_terms(found[0])
        except ValueError:
            refuse_damaged()
        if terms is not None:
            _compare(terms, held, store)


def _compare(given: Terms, held: Terms, store: Store) -> None:
    """Refuse terms that are not the ledger's; when it began may differ, for that is now unless it is said."""
    problems = []
    if given.total != held.total:
        got = f"the total is {show_money(given.total)}, but the ledger has {show_money(held.total)}"
        problems.append(Problem(got, f"leave it out, or change the ledger's: largesse ledger {store.shown} --total …"))
    if given.ends != held.ends:
        got = f"the period ends at {show_time(given.ends)}, but the ledger's at {show_time(held.ends)}"
        problems.append(Problem(got, "leave it out, or begin another ledger"))
    if (given.valid, given.late, given.promises) != (held.valid, held.late, held.promises):
        problems.append(Problem(f"other terms of promises than those of {store.shown}", f"it has: {held.describe()}"))
    if problems:
        raise LedgerError("ledger", problems)
