"""The ledger: a budget that is never overspent, whoever asks, how often, and whatever breaks.

Every change is one transaction that holds the whole ledger. A decision counts with all that it may cost: what is paid at
once, and the face value until it is redeemed or its time is over. So what is spent and what is promised together never
exceed the total. Where promises hold while the budget lasts, a decision counts with what it will probably cost, and a
redemption that no longer fits is refused: what is spent never exceeds the total. The answer to a request is kept under its
id: a worker that died before it could answer, or lost the database meanwhile, asks again and gets the same.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar, final

from largesse.errors import LargesseError, LedgerError, Problem, refuse
from largesse.serve.ledger.money import read_money, show_money
from largesse.serve.ledger.records import (
    Ask,
    Audit,
    Chooser,
    Decided,
    Offers,
    Redemption,
    Standing,
    id_problems,
    moment_problems,
)
from largesse.serve.ledger.rows import (
    Turn,
    check_amount,
    check_late,
    check_left,
    count_redeemed,
    read_promise,
    read_standing,
    recall_redemption,
    refuse_damaged,
    refuse_entry,
    release,
    write_plan,
    write_standing,
)
from largesse.serve.ledger.statements import ADD_UP, ALL_DECISIONS, COUNTED, FIND_DECISION, PAY
from largesse.serve.ledger.store import Session, Store

T = TypeVar("T")
PATIENCE = 30.0  # seconds that a database may be gone
FIRST, LONGEST = 0.02, 1.0  # seconds between attempts, at first and at most
PAGE = 1000  # requests that are read together


@final
class Ledger:
    """A budget shared by any number of workers. Opened by `open_ledger`; safe to use from several threads.

    Parameters
    ----------
    store
        The database.
    patience
        Seconds that a call waits for other threads and tries again while the database is busy or gone.
    """

    def __init__(self, store: Store, *, patience: float = PATIENCE) -> None:
        self._store, self._patience = store, patience
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
    ) -> Decided:
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
        found = self.decide_together([Ask(request, offers, policy, content)], chooser, now=now)[0]
        if isinstance(found, LargesseError):
            raise found
        return found

    def decide_together(
        self, asks: Sequence[Ask], chooser: Chooser, *, now: int | None = None
    ) -> list[Decided | LargesseError]:
        """Decide several requests in one transaction, one after the other: the disk confirms them together.

        Returns for each its decisions, or why it was refused; that does not touch the others. See `decide`.
        """
        refuse("request", moment_problems(now))

        def work(session: Session) -> list[Decided | LargesseError]:
            turn = Turn(session, session.now() if now is None else int(now), chooser)
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
                return recall_redemption(request, customer, found[0], value)
            check_amount(customer, value, face)
            standing = read_standing(session, at)
            late = bool(closed) or (expires is not None and expires <= at)
            if late:
                standing = release(session, standing, all_of_it=True)
                check_late(standing, value, expires)
            check_left(standing, customer, value)
            session.run(PAY, (value, max(at, expires) if late else at, number, customer))
            write_standing(session, count_redeemed(standing, value, face, expires, late))
            return Redemption(request, customer, value, late)

        return self._work(work)

    def standing(self, *, now: int | None = None, patience: float | None = None) -> Standing:
        """Return where the budget stands, after promises whose time is over were released."""
        refuse("ledger", moment_problems(now))

        def work(session: Session) -> Standing:
            found = read_standing(session, session.now() if now is None else int(now))
            swept = release(session, found, all_of_it=True)
            if swept is not found:
                write_standing(session, swept)
            return swept

        return self._work(work, patience)

    def change_total(self, total: Any) -> Standing:
        """Raise or lower the budget; not below what is spent, and promised where promises are kept."""
        wanted = read_money(total, "the total", up=False)

        def work(session: Session) -> Standing:
            found = release(session, read_standing(session, session.now()), all_of_it=True)
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

    def set_plan(self, plan: dict[str, Any]) -> None:
        """Give the price another plan to go by; it begins anew."""
        given = write_plan(plan)
        self._work(lambda session: session.run("UPDATE ledger SET plan = ?, state = '[]'", (given,)))

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

    def _work(self, work: Callable[[Session], T], patience: float | None = None) -> T:
        """Run a transaction; again where the database was busy or gone, which is safe: ids make repeats harmless."""
        seconds = self._patience if patience is None else patience
        deadline = time.monotonic() + seconds
        if not self._turn.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
            problem = Problem(f"{self.shown} is busy: other requests still wait for it", "ask again in a moment")
            raise LedgerError("ledger", [problem]) from TimeoutError()
        try:
            return insist(self._store, lambda: self._once(work), deadline)
        finally:
            self._turn.release()

    def _once(self, work: Callable[[Session], T]) -> T:
        with self._store.transaction() as session:
            return work(session)


def insist(store: Store, attempt: Callable[[], T], deadline: float) -> T:
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
