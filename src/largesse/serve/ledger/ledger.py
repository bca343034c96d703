"""The ledger: a budget that is never overspent, whoever asks, how often, and whatever breaks.

Every change is one transaction that holds the whole ledger. A decision counts with all that it may cost: what is paid at
once, and the face value until it is redeemed or its time is over. So what is spent and what is promised together never
exceed the total. Where promises hold while the budget lasts, a decision counts with what it will probably cost, and a
redemption that no longer fits is refused: what is spent never exceeds the total. The answer to a request is kept under its
id: a worker that died before it could answer, or lost the database meanwhile, asks again and gets the same.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar, final

from largesse.errors import LargesseError, LedgerError, Problem, as_number, fail, refuse, repr_short
from largesse.serve.ledger.money import read_money, show_money
from largesse.serve.ledger.postgres import PostgresStore
from largesse.serve.ledger.records import (
    Audit,
    Chooser,
    DecisionRequest,
    Decisions,
    Offers,
    Redemption,
    Standing,
    id_problems,
    moment_problems,
)
from largesse.serve.ledger.sqlite import SqliteStore
from largesse.serve.ledger.statements import (
    ADD_UP,
    ALL_DECISIONS,
    COUNTED,
    FIND_DECISION,
    FORMAT,
    PAY,
    TERMS,
    DecisionTransaction,
    Session,
    Store,
    check_amount,
    check_late,
    check_left,
    count_redeemed,
    read_promise,
    read_redemption,
    read_standing,
    refuse_damaged,
    refuse_entry,
    release_expired,
    write_plan,
    write_standing,
)
from largesse.serve.ledger.terms import Terms, read_terms, show_time

T = TypeVar("T")
TIMEOUT = 30.0  # seconds that a database may be gone
FIRST, LONGEST = 0.02, 1.0  # seconds between attempts, at first and at most
PAGE = 1000  # requests that are read together


@final
class Ledger:
    """A budget shared by any number of workers. Opened by `open_ledger`; safe to use from several threads.

    Parameters
    ----------
    store
        The database.
    timeout
        Seconds that a call waits for other threads and tries again while the database is busy or gone.
    """

    def __init__(self, store: Store, *, timeout: float = TIMEOUT) -> None:
        self._store, self._timeout = store, timeout
        self._turn = threading.Lock()

    def decide(
        self,
        request: str,
        offers: Offers,
        chooser: Chooser,
        *,
        policy: str = "",
        content: str | bytes | None = None,
        now: int | None = None,
    ) -> Decisions:
        """Give each customer of a request a level that fits into the budget, and keep it; once for each request id.

        Parameters
        ----------
        request
            The id. Asked again, the same answer comes back, and nothing is spent twice.
        offers, chooser
            What each customer may get, and what picks one of it.
        policy
            The version of the policy, for the log.
        content
            What was asked: the same id with other content is refused. Default: the customers' ids.
        now
            Microseconds since 1970; default: the database's clock.
        """
        found = self.decide_together([DecisionRequest(request, offers, policy, content)], chooser, now=now)[0]
        if isinstance(found, LargesseError):
            raise found
        return found

    def decide_together(
        self, asks: Sequence[DecisionRequest], chooser: Chooser, *, now: int | None = None
    ) -> list[Decisions | LargesseError]:
        """Decide several requests in one transaction, one after the other: the disk confirms them together.

        Returns for each its decisions, or why it was refused; that does not touch the others. See `decide`.
        """
        refuse("request", moment_problems(now))

        def work(session: Session) -> list[Decisions | LargesseError]:
            turn = DecisionTransaction(session, session.now() if now is None else int(now), chooser)
            found = [turn.decide(ask) for ask in asks]
            turn.end()
            return found

        return self._work(work)

    def redeem(self, request: str, customer: str, amount: Any = None, *, now: int | None = None) -> Redemption:
        """Count a redemption: a promise becomes spent. Once: told again, it changes nothing.

        Parameters
        ----------
        request, customer
            Name the decision.
        amount
            What was paid, at most the face value; what it is below that is released. Default: the face value.
        now
            When, in microseconds since 1970; default: now. After the promise's time it is refused; or accepted while the
            budget has room, if the ledger's terms say so.

        Where promises hold while the budget lasts, a redemption of more than is left is refused.
        """
        odd = id_problems(request, "the request's id") + id_problems(customer, "the customer")
        refuse("redemption", odd + moment_problems(now))
        paid = None if amount is None else read_money(amount, "the amount", up=True)

        def work(session: Session) -> Redemption:
            at = session.now() if now is None else int(now)
            found = session.fetch(FIND_DECISION, (request, customer))
            if not found:
                hint = "give the request's id and the customer as they were decided"
                refuse_entry(f"request {request!r} holds no decision for the customer {customer!r}", hint)
            number, expires, closed, face, before, _ = read_promise(found[0])
            value = face if paid is None else paid
            if before is not None:
                return read_redemption(request, customer, found[0], value)
            check_amount(customer, value, face)
            standing = read_standing(session, at)
            late = bool(closed) or (expires is not None and expires <= at)
            if late:
                standing = release_expired(session, standing, all_of_it=True)
                check_late(standing, value, expires)
            check_left(standing, customer, value)
            session.run(PAY, (value, max(at, expires) if late else at, number, customer))
            write_standing(session, count_redeemed(standing, value, face, expires, late))
            return Redemption(request, customer, value, late)

        return self._work(work)

    def standing(self, *, now: int | None = None, timeout: float | None = None) -> Standing:
        """Return where the budget stands, after promises whose time is over were released."""
        refuse("ledger", moment_problems(now))

        def work(session: Session) -> Standing:
            found = read_standing(session, session.now() if now is None else int(now))
            swept = release_expired(session, found, all_of_it=True)
            if swept is not found:
                write_standing(session, swept)
            return swept

        return self._work(work, timeout)

    def change_total(self, total: Any) -> Standing:
        """Raise or lower the budget; not below what is spent, and promised where promises are kept."""
        wanted = read_money(total, "the total", up=False)

        def work(session: Session) -> Standing:
            found = release_expired(session, read_standing(session, session.now()), all_of_it=True)
            kept = found.terms.kept
            least = found.spent + (found.promised if kept else 0)
            if wanted < least:
                what = "spent or promised" if kept else "spent"
                got = f"a total of {show_money(wanted)} is below the {show_money(least)} that are {what}"
                refuse_entry(got, "give at least that much")
            write_standing(session, found)  # first: the database itself refuses a total below what was not yet released
            session.run("UPDATE ledger SET total = ?", (wanted,))
            return replace(found, terms=replace(found.terms, total=wanted))

        return self._work(work)

    def audit(self) -> Audit:
        """Add all decisions up again, and say where the counted sums differ."""

        def work(session: Session) -> Audit:
            found = read_standing(session, 0)
            try:
                added = [int(value) for value in session.fetch(ADD_UP)[0]]
            except (TypeError, ValueError, OverflowError):
                refuse_damaged()
            pairs = {name: (getattr(found, name), value) for name, value in zip(COUNTED, added, strict=True)}
            return Audit(found.decisions, {name: pair for name, pair in pairs.items() if pair[0] != pair[1]})

        return self._work(work)

    def decisions(self) -> Iterator[tuple[Any, ...]]:
        """Yield all decisions, oldest first: the rows of the next log. The columns are `ENTRY`."""
        first, last = 0, self.standing().requests
        while first < last:
            pages = (first, min(first + PAGE, last))
            rows = self._work(lambda session, pages=pages: session.fetch(ALL_DECISIONS, pages))  # type: ignore[misc]
            if not rows:
                refuse_damaged()
            yield from rows
            first += PAGE

    def close(self) -> None:
        """Close the connection."""
        with self._turn:
            self._store.disconnect()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def shown(self) -> str:
        """The address as it may be shown: without a password."""
        return self._store.shown

    def __repr__(self) -> str:
        return f"Ledger({self.shown})"

    def _work(self, work: Callable[[Session], T], timeout: float | None = None) -> T:
        """Run a transaction; again where the database was busy or gone, which is safe: ids make repeats harmless."""
        seconds = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + seconds
        if not self._turn.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
            problem = Problem(f"{self.shown} is busy: other requests still wait for it", "ask again in a moment")
            raise LedgerError("ledger", [problem]) from TimeoutError()
        try:
            return retry(self._store, lambda: self._once(work), deadline)
        finally:
            self._turn.release()

    def _once(self, work: Callable[[Session], T]) -> T:
        with self._store.transaction() as session:
            return work(session)


def retry(store: Store, attempt: Callable[[], T], deadline: float) -> T:
    """Try again, ever more slowly and until a deadline, while an error may pass by itself; then say what is wrong."""
    wait = FIRST
    while True:
        try:
            return attempt()
        except LargesseError:
            raise
        except Exception as error:
            problem = store.explain(error)
            if problem is None:
                raise
            passing = store.is_passing(error)
            store.disconnect()
            if not passing or time.monotonic() + wait > deadline:
                raise LedgerError("ledger", [problem]) from error
        time.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311  so that workers do not return all at once
        wait = min(2 * wait, LONGEST)


# -- opening --------------------------------------------------------------------------------------------------------------

WAYS = "sqlite:///spring.db for one machine, postgresql://user@host/database for many"


def open_ledger(
    address: str,
    terms: Terms | None = None,
    *,
    plan: dict[str, Any] | None = None,
    timeout: float = TIMEOUT,
) -> Ledger:
    """Open a ledger; with terms, begin it where there is none yet.

    Parameters
    ----------
    address
        ``sqlite:///spring.db`` (relative; four slashes for an absolute path), or ``postgresql://…``, with
        ``?schema=spring`` for one of several ledgers in a database.
    terms
        What it is opened with: `make_terms`. A ledger that is there already must have the same.
    plan
        What the price goes by, for a ledger that begins: `PacePlan.as_dict`.
    timeout
        Seconds that every call waits for other threads and tries again while the database is busy or gone.

    Examples
    --------
    >>> import tempfile
    >>> from largesse.serve import make_terms
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_ledger(f"sqlite:///{folder}/spring.db", make_terms(500, "2999-12-31")) as ledger:
    ...         ledger.standing().as_dict()["room"]
    500.0
    """
    refuse("ledger", _problems(terms, timeout))
    store, price = make_store(address), write_plan({} if plan is None else plan)
    deadline = time.monotonic() + timeout
    try:
        retry(store, lambda: store.prepare(create=terms is not None), deadline)
        retry(store, lambda: _begin(store, terms, price), deadline)
    except BaseException:
        store.disconnect()
        raise
    return Ledger(store, timeout=timeout)


def _problems(terms: Any, timeout: Any) -> list[Problem]:
    found, seconds = [], as_number(timeout)
    if not isinstance(terms, Terms | None):
        found.append(Problem(f"the terms are {repr_short(terms)}", "make them with make_terms(total, ends)"))
    if seconds is None or not 0 <= seconds < float("inf"):
        found.append(Problem(f"the timeout is {repr_short(timeout)}", "give a number of seconds, zero or more"))
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
