"""The ledger: a budget that is never overspent, whoever asks, how often, and whatever breaks.

Every change is one transaction that holds the whole ledger. A decision counts with all that it may cost: what is paid at
once, and the face value until it is redeemed or its time is over. So what is spent and what is promised together never
exceed the total. The answer to a request is kept under its id: a worker that died before it could answer, or lost the
database meanwhile, asks again and gets the same.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn, TypeVar, final

import numpy as np

from largesse.errors import LargesseError, LedgerError, Problem, refuse
from largesse.pacing.ledger.entries import (
    Audit,
    Choice,
    Chooser,
    Decided,
    Offers,
    Redemption,
    Standing,
    digest_of,
    id_problems,
)
from largesse.pacing.ledger.store import Session, Store
from largesse.pacing.ledger.tables import (
    ADD_UP,
    ALL_DECISIONS,
    CLOSE_OVER,
    COUNT_OVER,
    COUNTED,
    DECISION,
    FIND_DECISION,
    FIND_REQUEST,
    PAY,
    READ_DECISIONS,
    READ_LEDGER,
    REQUEST,
    TERMS,
)
from largesse.pacing.ledger.terms import Terms, show_time
from largesse.pacing.money import read_money, show_money

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
        Seconds to go on trying while the database is busy or gone.
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
        refuse("request", id_problems(request, "the request's id"))
        digest = offers.digest if content is None else digest_of(content)

        def work(session: Session) -> Decided:
            at = session.now() if now is None else now
            known = session.fetch(FIND_REQUEST, (request,))
            if known:
                return _recall(session, request, digest, known[0])
            before = _sweep(session, _read(session, at))
            choice = chooser.choose(before, offers)
            decided = _decided(request, offers, choice, policy, before)
            _write_decisions(session, decided, digest, before)
            _write(session, _count_decided(before, decided, choice))
            return decided

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
        """
        paid = None if amount is None else read_money(amount, "the amount", up=True)

        def work(session: Session) -> Redemption:
            at = session.now() if now is None else now
            found = session.fetch(FIND_DECISION, (request, customer))
            if not found:
                hint = "give the request's id and the customer as they were decided"
                _refuse(f"request {request!r} holds no decision for the customer {customer!r}", hint)
            number, expires, closed, face, before, _ = found[0]
            value = face if paid is None else paid
            if before is not None:
                return _recall_redemption(request, customer, found[0], value)
            _check_amount(customer, value, face)
            standing = _read(session, at)
            late = bool(closed) or (expires is not None and expires <= at)
            if late and not closed:
                standing = _sweep(session, standing, all_of_it=True)
            if late:
                _check_late(standing, value, expires)
            session.run(PAY, (value, max(at, expires) if late else at, number, customer))
            _write(session, _count_redeemed(standing, value, face, expires, late))
            return Redemption(request, customer, value, late)

        return self._work(work)

    def standing(self, *, now: int | None = None) -> Standing:
        """Return where the budget stands, after promises whose time is over were released."""

        def work(session: Session) -> Standing:
            found = _read(session, session.now() if now is None else now)
            swept = _sweep(session, found, all_of_it=True)
            if swept is not found:
                _write(session, swept)
            return swept

        return self._work(work)

    def change_total(self, total: Any) -> Standing:
        """Raise or lower the budget; not below what is spent and promised."""
        wanted = read_money(total, "the total", up=False)

        def work(session: Session) -> Standing:
            found = _sweep(session, _read(session, session.now()), all_of_it=True)
            least = found.spent + found.promised
            if wanted < least:
                got = f"a total of {show_money(wanted)} is below the {show_money(least)} that are spent or promised"
                _refuse(got, "give at least that much")
            session.run("UPDATE ledger SET total = ?", (wanted,))
            changed = replace(found, terms=replace(found.terms, total=wanted))
            _write(session, changed)
            return changed

        return self._work(work)

    def set_plan(self, plan: dict[str, Any], state: Sequence[float]) -> None:
        """Give the price another plan to go by, and a state to begin with."""
        given = (json.dumps(plan), json.dumps(list(state)))
        self._work(lambda session: session.run("UPDATE ledger SET plan = ?, state = ?", given))

    def audit(self) -> Audit:
        """Add all decisions up again, and say where the counted sums differ."""

        def work(session: Session) -> Audit:
            found, added = _read(session, 0), [int(value) for value in session.fetch(ADD_UP)[0]]
            pairs = {name: (getattr(found, name), value) for name, value in zip(COUNTED, added, strict=True)}
            return Audit(found.decisions, {name: pair for name, pair in pairs.items() if pair[0] != pair[1]})

        return self._work(work)

    def decisions(self) -> Iterator[tuple[Any, ...]]:
        """Yield all decisions, oldest first: the rows of the next log. The columns are `ENTRY`."""
        first, last = 0, self.standing().requests
        while first < last:
            pages = (first, min(first + PAGE, last))
            yield from self._work(lambda session, pages=pages: session.fetch(ALL_DECISIONS, pages))  # type: ignore[misc]
            first += PAGE

    def close(self) -> None:
        """Close the connection."""
        with self._turn:
            self._store.disconnect()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self._store.shown})"

    def _work(self, work: Callable[[Session], T]) -> T:
        """Run a transaction; again where the database was busy or gone, which is safe: ids make repeats harmless."""
        with self._turn:
            return insist(self._store, lambda: self._once(work), self._patience)

    def _once(self, work: Callable[[Session], T]) -> T:
        with self._store.transaction() as session:
            return work(session)


def insist(store: Store, attempt: Callable[[], T], patience: float) -> T:
    """Try again, ever more slowly, while an error may pass by itself; then say what is wrong."""
    deadline, wait = time.monotonic() + patience, FIRST
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


# -- the ledger's row ----------------------------------------------------------------------------------------------------


def _read(session: Session, now: int) -> Standing:
    found = session.fetch(READ_LEDGER)
    if not found:
        _refuse("the ledger is empty", "open it with a total and a period")
    *numbers, state, plan = found[0]
    terms = Terms(**dict(zip(TERMS, numbers[: len(TERMS)], strict=True)))
    counted = dict(zip(COUNTED, numbers[len(TERMS) :], strict=True))
    return Standing(terms, now, **counted, state=tuple(json.loads(state)), plan=json.loads(plan))


_WRITE = f"UPDATE ledger SET {', '.join(f'{name} = ?' for name in COUNTED)}, state = ?"  # noqa: S608  names of our own


def _write(session: Session, standing: Standing) -> None:
    values = [getattr(standing, name) for name in COUNTED]
    session.run(_WRITE, [*values, json.dumps(standing.state)])


def _sweep(session: Session, standing: Standing, *, all_of_it: bool = False) -> Standing:
    """Close requests whose time is over: what was promised and not redeemed is released."""
    while True:
        over = session.fetch(COUNT_OVER, (standing.terms.ends, standing.now))
        for early, released, expected, paid, held, many in (map(int, row) for row in over):
            changes = {"promised": standing.promised - released, "expired": standing.expired + many}
            changes["settled_paid"] = standing.settled_paid + paid
            if early:
                changes["open_expected"] = standing.open_expected - expected
                changes["settled_expected"] = standing.settled_expected + expected
            else:
                changes["late_face"] = standing.late_face - held
            standing = replace(standing, **changes)  # type: ignore[arg-type]
        if over:
            session.run(CLOSE_OVER, (standing.now,))
        if not over or not all_of_it:
            return standing


# -- decisions -----------------------------------------------------------------------------------------------------------


def _decided(request: str, offers: Offers, choice: Choice, policy: str, before: Standing) -> Decided:
    """Return the decisions of a choice; a choice that does not fit is a mistake of the chooser, and nothing is kept."""
    rows, levels = np.arange(len(offers)), np.asarray(choice.levels, dtype=np.int64)
    at_once, face, expected = (part[rows, levels] for part in (offers.at_once, offers.face, offers.expected))
    if int(at_once.sum()) + int(face.sum()) > before.room:
        raise RuntimeError("a chooser gave more than the ledger has room for")
    valid = before.terms.valid
    expires = None if valid is None else before.now + valid
    return Decided(
        request,
        offers.customers,
        levels,
        choice.propensity,
        offers.responses[rows, levels],
        choice.price,
        choice.reason,
        at_once,
        face,
        expected,
        policy,
        before.now,
        expires,
    )


def _write_decisions(session: Session, decided: Decided, digest: str, before: Standing) -> None:
    number, n = before.requests + 1, len(decided)
    open_ = bool((decided.face > 0).any())
    row = (number, decided.request, digest, decided.policy, decided.decided_at, decided.expires_at, int(not open_))
    session.insert("request", {name: [value] for name, value in zip(REQUEST, row, strict=True)})
    money = (part.tolist() for part in (decided.at_once, decided.face, decided.expected))
    rest = (decided.propensity, decided.responses, decided.price, decided.reason)
    columns = (
        *([number] * n, decided.customers, range(n), decided.levels.tolist()),
        *money,
        *(np.asarray(part).tolist() for part in rest),
    )
    session.insert("decision", dict(zip(DECISION, columns, strict=True)))


def _count_decided(before: Standing, decided: Decided, choice: Choice) -> Standing:
    at_once, face = int(decided.at_once.sum()), int(decided.face.sum())
    late = decided.expires_at is None or decided.expires_at > before.terms.ends
    expected = int(decided.expected[decided.face > 0].sum())
    return replace(
        before,
        spent=before.spent + at_once,
        promised=before.promised + face,
        at_once=before.at_once + at_once,
        open_expected=before.open_expected + (0 if late else expected),
        late_face=before.late_face + (face if late else 0),
        requests=before.requests + 1,
        decisions=before.decisions + len(decided),
        state=tuple(map(float, choice.state)),
    )


def _recall(session: Session, request: str, digest: str, known: tuple[Any, ...]) -> Decided:
    """Return the decisions that the ledger holds for a request."""
    number, before, policy, decided_at, expires_at = known
    if before != digest:
        got = f"the request {request!r} was answered at {show_time(decided_at)} with other content"
        _refuse(got, "give every request an id of its own; repeat one only as it was")
    customers, *parts = zip(*session.fetch(READ_DECISIONS, (number,)), strict=True)
    levels, propensity, responses, price, reason, *money = map(np.array, parts)
    return Decided(
        *(request, tuple(customers), levels, propensity, responses, price, reason),
        *(*money, policy, decided_at, expires_at, True),
    )


# -- redemptions ---------------------------------------------------------------------------------------------------------


def _count_redeemed(standing: Standing, value: int, face: int, expires: int | None, late: bool) -> Standing:
    changes = {"spent": standing.spent + value, "redemptions": standing.redemptions + 1}
    if late:  # its reservation is gone: it is paid from what is left
        changes["settled_paid"] = standing.settled_paid + value
    else:
        changes["promised"] = standing.promised - face
        if expires is None or expires > standing.terms.ends:
            changes["late_face"] = standing.late_face - face + value
    return replace(standing, **changes)  # type: ignore[arg-type]


def _recall_redemption(request: str, customer: str, found: tuple[Any, ...], value: int) -> Redemption:
    _, expires, _, _, before, at = found
    if before != value:
        got = f"the customer {customer!r} redeemed {show_money(before)} at {show_time(at)}, not {show_money(value)}"
        _refuse(got, "a promise is redeemed once; give the same amount to repeat it")
    return Redemption(request, customer, before, expires is not None and expires <= at, True)


def _check_amount(customer: str, value: int, face: int) -> None:
    if not face:
        _refuse(f"the customer {customer!r} was promised nothing", "only promises that are paid later are redeemed")
    if value > face:
        got = f"a redemption of {show_money(value)}, but {show_money(face)} was promised to the customer {customer!r}"
        _refuse(got, "the most that a level may cost is reserved when it is given: raise its cost there")


def _check_late(standing: Standing, value: int, expires: int) -> None:
    if standing.terms.late == "refuse":
        hint = "its money was released; a ledger with late='accept' takes it while there is room"
        _refuse(f"the promise ended at {show_time(expires)}", hint)
    if value > standing.room:
        hint = "raise the total, and tell it again"
        _refuse(f"the promise ended at {show_time(expires)}, and only {show_money(standing.room)} is left", hint)


def _refuse(got: str, hint: str) -> NoReturn:
    raise LedgerError("ledger", [Problem(got, hint)])
