"""Budget ledger in a database: decisions, promised and redeemed amounts that never exceed a total.

Every change is one transaction that locks the whole ledger. A decision counts with all that it may cost: the part paid at
once, and the face value until it is redeemed or its time is over. So the money spent and promised never exceeds the total.
Where promises hold while the budget lasts, a decision counts with its expected cost, and a redemption that no longer fits is
refused: the money spent never exceeds the total. The answer to a request is kept under its id: a worker that died before it
could answer, or lost the database meanwhile, asks again and gets the same.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar, final

from largesse.errors import LargesseError, LedgerError, Problem, fail, number_or_none, refuse, repr_short
from largesse.serve.ledger.amounts_and_times import format_money, format_time, read_money
from largesse.serve.ledger.ledger_records import (
    Audit,
    DecisionRequest,
    LedgerDecisions,
    LedgerStanding,
    LedgerTerms,
    LevelChooser,
    Offers,
    Redemption,
    find_id_problems,
    find_time_problems,
)
from largesse.serve.ledger.postgres import PostgresStore
from largesse.serve.ledger.sql_statements import ALL_DECISIONS, CREATE, SUM_DECISIONS, SUMS, TABLES_VERSION, TERMS
from largesse.serve.ledger.sqlite import SqliteStore
from largesse.serve.ledger.transactions import (
    Session,
    decide_requests,
    format_price_plan,
    parse_stored_terms,
    raise_ledger_error,
    read_standing,
    redeem_promise,
    refuse_damaged_ledger,
    release_expired_promises,
    write_standing,
)

Answer = TypeVar("Answer")
Store = SqliteStore | PostgresStore
TIMEOUT_SECONDS = 30.0
FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 0.02, 1.0
PAGE_REQUESTS = 1000
ADDRESS_EXAMPLES = "sqlite:///spring.db for one machine, postgresql://user@host/database for many"


@final
class Ledger:
    """Budget ledger that any number of workers share; opened by `open_ledger`, safe to use from several threads.

    Parameters
    ----------
    store
        The database.
    timeout
        Seconds that a call waits for other threads and tries again while the database is busy or gone.
    """

    def __init__(self, store: Store, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._store, self._timeout = store, timeout
        self._lock = threading.Lock()

    def decide(
        self,
        request: str,
        offers: Offers,
        chooser: LevelChooser,
        *,
        policy: str = "",
        content: str | bytes | None = None,
        now: int | None = None,
    ) -> LedgerDecisions:
        """Decide a level for each customer of a request within the budget, and store it under the request's id.

        Parameters
        ----------
        request
            The id. Asked again, the same answer comes back, and nothing is spent twice.
        offers, chooser
            The levels that each customer may get, and an object that picks one of them.
        policy
            The version of the policy, for the log.
        content
            The content of the request: the same id with other content is refused. Default: the customers' ids.
        now
            Microseconds since 1970; default: the database's clock.
        """
        result = self.decide_together([DecisionRequest(request, offers, policy, content)], chooser, now=now)[0]
        if isinstance(result, LargesseError):
            raise result
        return result

    def decide_together(
        self, requests: Sequence[DecisionRequest], chooser: LevelChooser, *, now: int | None = None
    ) -> list[LedgerDecisions | LargesseError]:
        """Decide several requests, one after the other, in a single database transaction.

        Returns for each request its decisions or its error, which does not affect the others. See `decide`.
        """
        refuse("request", find_time_problems(now))

        def work(session: Session) -> list[LedgerDecisions | LargesseError]:
            return decide_requests(session, now, chooser, requests)

        return self._run_transaction(work)

    def redeem(self, request: str, customer: str, amount: Any = None, *, now: int | None = None) -> Redemption:
        """Record the redemption of a promise as spent money; a repeated call changes nothing.

        A redemption of more than is left is refused where promises hold while the budget lasts.

        Parameters
        ----------
        request, customer
            Name the decision.
        amount
            The amount paid, at most the face value; the rest of it is released. Default: the face value.
        now
            Microseconds since 1970; default: the database's clock. After the promise's time the redemption is refused, or
            accepted while the budget has room if the ledger's terms allow it.
        """
        problems = find_id_problems(request, "the request's id") + find_id_problems(customer, "the customer")
        refuse("redemption", problems + find_time_problems(now))
        paid = None if amount is None else read_money(amount, "the amount", up=True)

        def work(session: Session) -> Redemption:
            return redeem_promise(session, now, request, customer, paid)

        return self._run_transaction(work)

    def standing(self, *, now: int | None = None, timeout: float | None = None) -> LedgerStanding:
        """Return the current sums of the ledger, with expired promises released; nothing is written."""
        refuse("ledger", find_time_problems(now))

        def work(session: Session) -> LedgerStanding:
            standing = read_standing(session, now)
            return release_expired_promises(session, standing, all_requests=True, write=False)

        return self._run_transaction(work, timeout, write=False)

    def change_total(self, total: Any) -> LedgerStanding:
        """Change the total budget; refuse a total below the spent and guaranteed amounts."""
        new_total = read_money(total, "the total", up=False)

        def work(session: Session) -> LedgerStanding:
            standing = release_expired_promises(session, read_standing(session), all_requests=True)
            keeps_promises = standing.terms.keeps_promises
            min_total = standing.spent + (standing.promised if keeps_promises else 0)
            if new_total < min_total:
                used = "spent or promised" if keeps_promises else "spent"
                problem = f"a total of {format_money(new_total)} is below the {format_money(min_total)} that are {used}"
                raise_ledger_error(problem, "give at least that much")
            write_standing(session, standing)  # first: the database refuses a total below promises not yet released
            session.run("UPDATE ledger SET total = ?", (new_total,))
            return replace(standing, terms=replace(standing.terms, total=new_total))

        return self._run_transaction(work)

    def audit(self) -> Audit:
        """Recompute the ledger's sums from all decisions, and return the differences."""

        def work(session: Session) -> Audit:
            standing = read_standing(session, 0)
            try:
                added = [int(value) for value in session.fetch(SUM_DECISIONS)[0]]
            except (TypeError, ValueError, OverflowError):
                refuse_damaged_ledger()
            pairs = {name: (getattr(standing, name), value) for name, value in zip(SUMS, added, strict=True)}
            return Audit(standing.decisions, {name: pair for name, pair in pairs.items() if pair[0] != pair[1]})

        return self._run_transaction(work, write=False)

    def decisions(self) -> Iterator[tuple[Any, ...]]:
        """Yield all decisions as tuples of `DECISION_COLUMNS`, oldest first: the rows of the next log."""
        first, last = 0, self.standing().requests
        while first < last:
            page = (first, min(first + PAGE_REQUESTS, last))
            rows = self._run_transaction(lambda session, page=page: session.fetch(ALL_DECISIONS, page), write=False)  # type: ignore[misc]
            if not rows:
                refuse_damaged_ledger()
            yield from rows
            first += PAGE_REQUESTS

    def close(self) -> None:
        """Close the database connection."""
        with self._lock:
            self._store.disconnect()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def display_address(self) -> str:
        """The ledger's address without the password."""
        return self._store.display_address

    def __repr__(self) -> str:
        return f"Ledger({self.display_address})"

    def _run_transaction(
        self, work: Callable[[Session], Answer], timeout: float | None = None, *, write: bool = True
    ) -> Answer:
        """Run a database transaction; repeat it while the database is busy or unreachable, up to a timeout.

        Repeats are safe, because ids are unique.
        """
        seconds = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + seconds
        if not self._lock.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
            problem = Problem(
                f"{self.display_address} is busy: other requests still wait for it", "ask again in a moment"
            )
            raise LedgerError("ledger", [problem]) from TimeoutError()

        def attempt() -> Answer:
            with self._store.transaction(write=write) as session:
                return work(session)

        try:
            return _retry(self._store, attempt, deadline)
        finally:
            self._lock.release()


def _retry(store: Store, attempt: Callable[[], Answer], deadline: float) -> Answer:
    """Repeat a database operation at growing intervals until a deadline, as long as its error may be temporary."""
    wait = FIRST_RETRY_SECONDS
    while True:
        try:
            return attempt()
        except LargesseError:
            raise
        except Exception as error:
            problem = store.explain_database_error(error)
            if problem is None:
                raise
            temporary = store.is_temporary_error(error)
            store.disconnect()
            if not temporary or time.monotonic() + wait > deadline:
                raise LedgerError("ledger", [problem]) from error
        time.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311  so that workers do not return all at once
        wait = min(2 * wait, MAX_RETRY_SECONDS)


# -- opening --------------------------------------------------------------------------------------------------------------


def open_ledger(
    address: str,
    terms: LedgerTerms | None = None,
    *,
    plan: dict[str, Any] | None = None,
    timeout: float = TIMEOUT_SECONDS,
    read_only: bool = False,
) -> Ledger:
    """Open a ledger by its address; given terms (total, period, promises), create it if it does not exist.

    Parameters
    ----------
    address
        ``sqlite:///spring.db`` (relative; four slashes for an absolute path), or ``postgresql://…``, with
        ``?schema=spring`` for one of several ledgers in a database.
    terms
        The terms to begin with: `make_terms`. An existing ledger must have the same.
    plan
        The plan of the price, for a ledger that begins: `PacingPlan.as_dict`.
    timeout
        Seconds that every call waits for other threads and tries again while the database is busy or gone.
    read_only
        Nothing will be written: a SQLite file may be on a medium that cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from largesse.serve import make_terms
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_ledger(f"sqlite:///{folder}/spring.db", make_terms(500, "2999-12-31")) as ledger:
    ...         ledger.standing().as_dict()["room"]
    500.0
    """
    unchecked_terms: Any = terms
    problems, seconds = [], number_or_none(timeout)
    if not isinstance(unchecked_terms, LedgerTerms | None):
        problems.append(Problem(f"the terms are {repr_short(terms)}", "make them with make_terms(total, ends)"))
    if seconds is None or not 0 <= seconds < float("inf"):
        problems.append(Problem(f"the timeout is {repr_short(timeout)}", "give a number of seconds, zero or more"))
    refuse("ledger", problems)
    store, plan_text = make_store(address, read_only=read_only), format_price_plan({} if plan is None else plan)
    deadline = time.monotonic() + timeout
    try:
        _retry(store, lambda: store.prepare(() if terms is None else CREATE), deadline)
        _retry(store, lambda: _begin_ledger(store, terms, plan_text, write=not read_only), deadline)
    except BaseException:
        store.disconnect()
        raise
    return Ledger(store, timeout=timeout)


def make_store(address: str, *, read_only: bool = False) -> Store:
    """Return the storage (SQLite or PostgreSQL) that a ledger's address names."""
    scheme, _, location = address.partition("://") if isinstance(address, str) else ("", "", "")  # type: ignore[redundant-expr]
    if scheme == "sqlite" and location.startswith("/") and len(location) > 1:
        return SqliteStore(location[1:], read_only=read_only)
    if scheme not in ("postgresql", "postgres") or not location:
        visible_address = (
            re.sub("(?<=://).*@", "…@", address) if isinstance(address, str) else address  # type: ignore[redundant-expr]
        )  # without a password
        fail("ledger", Problem(f"the ledger's address is {repr_short(visible_address)}", f"give {ADDRESS_EXAMPLES}"))
    return PostgresStore(address)


def _begin_ledger(store: Store, terms: LedgerTerms | None, plan: str, *, write: bool) -> None:
    """Write the terms (total, period, promises) and the plan into an empty ledger; refuse a ledger that differs."""
    with store.transaction(write=write) as session:
        version = session.fetch("SELECT format FROM ledger")
        if version and version != [(TABLES_VERSION,)]:
            problem = (
                f"{store.display_address} was written by another version of largesse (tables of format {version[0][0]})"
            )
            raise_ledger_error(problem, "open it with that version of largesse, or begin another ledger")
        rows = session.fetch(f"SELECT {', '.join(TERMS)} FROM ledger")  # noqa: S608  names of our own
        if not rows:
            if terms is None:
                raise_ledger_error(f"{store.display_address} is empty", "open it with a total and a period")
            columns = {
                "id": 1,
                "format": TABLES_VERSION,
                **{name: getattr(terms, name) for name in TERMS},
                "plan": plan,
            }
            sql = f"INSERT INTO ledger ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608
            session.run(sql, list(columns.values()))
            return
        try:
            ledger_terms = parse_stored_terms(tuple(rows[0]))
        except ValueError:
            refuse_damaged_ledger()
    if terms is not None:
        _compare_terms(terms, ledger_terms, store)


def _compare_terms(terms: LedgerTerms, ledger_terms: LedgerTerms, store: Store) -> None:
    """Refuse terms (total, period, promises) that differ from the ledger's, except for the start."""
    problems = []
    if terms.total != ledger_terms.total:
        problem = f"the total is {format_money(terms.total)}, but the ledger has {format_money(ledger_terms.total)}"
        problems.append(
            Problem(problem, f"leave it out, or change the ledger's: largesse ledger {store.display_address} --total …")
        )
    if terms.ends != ledger_terms.ends:
        problem = f"the period ends at {format_time(terms.ends)}, but the ledger's at {format_time(ledger_terms.ends)}"
        problems.append(Problem(problem, "leave it out, or begin another ledger"))
    if (terms.valid, terms.late, terms.promises) != (ledger_terms.valid, ledger_terms.late, ledger_terms.promises):
        problems.append(
            Problem(
                f"other terms of promises than those of {store.display_address}", f"it has: {ledger_terms.describe()}"
            )
        )
    if problems:
        raise LedgerError("ledger", problems)
