"""The tables of a ledger, and the statements that read and write them within a transaction.

The SQL is read by SQLite and PostgreSQL alike. All money is whole millionths, all times are microseconds since 1970. One row of
`ledger` holds the terms, the sums and the state of the price; every transaction that changes anything holds that row. CHECK
constraints refuse a sum above the total: spent, and promised if promises are kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import lru_cache
from typing import Any, NoReturn, Protocol

import numpy as np

from largesse.errors import LargesseError, LedgerError, Problem, fail, join_some, refuse
from largesse.records import Array
from largesse.serve.ledger.money import show_money
from largesse.serve.ledger.records import (
    Choice,
    Chooser,
    DecisionRequest,
    Decisions,
    Offers,
    Redemption,
    Standing,
    request_problems,
)
from largesse.serve.ledger.terms import Terms, read_terms, show_time


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


# -- SQL ------------------------------------------------------------------------------------------------------------------

FORMAT = 3  # of these tables

COUNTED = (
    *("spent", "promised", "at_once", "settled_expected", "settled_paid", "open_expected", "late_face"),
    *("requests", "decisions", "redemptions", "expired", "settled_wait"),
)
TERMS = ("total", "starts", "ends", "valid", "late", "promises")
DECISION = (
    *("number", "customer", "place", "level", "at_once", "face", "expected"),
    *("propensity", "response", "price", "reason"),
)
REQUEST = ("number", "id", "digest", "policy", "decided_at", "expires_at", "closed")

_SUMS = ",\n  ".join(f"{name} BIGINT NOT NULL DEFAULT 0 CHECK ({name} >= 0)" for name in COUNTED)
_RULE = "promises TEXT NOT NULL DEFAULT 'kept'"
_RESERVED = "reserved BIGINT NOT NULL DEFAULT 0 CHECK (reserved >= 0)"  # an estimate: it is not added up again
_WAIT = "settled_wait BIGINT NOT NULL DEFAULT 0 CHECK (settled_wait >= 0)"
CREATE = (
    f"""CREATE TABLE IF NOT EXISTS ledger (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  format BIGINT NOT NULL,
  total BIGINT NOT NULL,
  starts BIGINT NOT NULL,
  ends BIGINT NOT NULL,
  valid BIGINT,
  late TEXT NOT NULL,
  {_RULE},
  {_SUMS},
  {_RESERVED},
  state TEXT NOT NULL DEFAULT '[]',
  plan TEXT NOT NULL DEFAULT '{{}}',
  CHECK (spent <= total AND (promises <> 'kept' OR spent + promised <= total))
)""",
    """CREATE TABLE IF NOT EXISTS request (
  number BIGINT PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  digest TEXT NOT NULL,
  policy TEXT NOT NULL,
  decided_at BIGINT NOT NULL,
  expires_at BIGINT,
  closed BIGINT NOT NULL
)""",
    "CREATE INDEX IF NOT EXISTS request_open ON request (expires_at) WHERE closed = 0",
    """CREATE TABLE IF NOT EXISTS decision (
  number BIGINT NOT NULL,
  customer TEXT NOT NULL,
  place BIGINT NOT NULL,
  level BIGINT NOT NULL,
  at_once BIGINT NOT NULL,
  face BIGINT NOT NULL,
  expected BIGINT NOT NULL,
  propensity DOUBLE PRECISION NOT NULL,
  response DOUBLE PRECISION NOT NULL,
  price DOUBLE PRECISION NOT NULL,
  reason BIGINT NOT NULL,
  paid BIGINT,
  redeemed_at BIGINT,
  PRIMARY KEY (number, customer)
)""",
)

READ_LEDGER = f"SELECT {', '.join((*TERMS, *COUNTED))}, reserved, state, plan FROM ledger"  # noqa: S608  names of our own
FIND_REQUEST = "SELECT number, digest, policy, decided_at, expires_at FROM request WHERE id = ?"
READ_DECISIONS = """SELECT customer, level, propensity, response, price, reason, at_once, face, expected
FROM decision WHERE number = ? ORDER BY place"""
FIND_DECISION = """SELECT r.number, r.expires_at, r.closed, d.face, d.paid, d.redeemed_at
FROM request r JOIN decision d ON d.number = r.number WHERE r.id = ? AND d.customer = ?"""
PAY = "UPDATE decision SET paid = ?, redeemed_at = ? WHERE number = ? AND customer = ?"

# What was redeemed in time, times the share of a promise's time that it took, in whole thousandths.
_WAITED = """CASE WHEN d.redeemed_at > r.decided_at AND d.redeemed_at < r.expires_at
  THEN d.paid / 1000 * ((d.redeemed_at - r.decided_at) * 1000 / (r.expires_at - r.decided_at)) ELSE 0 END"""

# Requests whose time is over, oldest first; a few at a time, so that nobody waits for long.
_OVER = "SELECT number FROM request WHERE closed = 0 AND expires_at <= ? ORDER BY expires_at, number LIMIT 100"
COUNT_OVER = f"""SELECT CASE WHEN r.expires_at <= ? THEN 1 ELSE 0 END AS early,
  SUM(CASE WHEN d.paid IS NULL THEN d.face ELSE 0 END), SUM(CASE WHEN d.face > 0 THEN d.expected ELSE 0 END),
  SUM(COALESCE(d.paid, 0)), SUM(COALESCE(d.paid, d.face)), SUM(CASE WHEN d.paid IS NULL AND d.face > 0 THEN 1 ELSE 0 END),
  SUM({_WAITED})
FROM decision d JOIN request r ON r.number = d.number WHERE d.number IN ({_OVER}) GROUP BY 1"""  # noqa: S608
CLOSE_OVER = f"UPDATE request SET closed = 1 WHERE number IN ({_OVER})"  # noqa: S608

# What the counted sums should be. Promises that are kept and outlast the period count by their faces until they are paid.
_LATE = "(l.promises = 'kept' AND (r.expires_at IS NULL OR r.expires_at > l.ends))"
ADD_UP = f"""SELECT
  COALESCE(SUM(d.at_once + COALESCE(d.paid, 0)), 0),
  COALESCE(SUM(CASE WHEN r.closed = 0 AND d.paid IS NULL THEN d.face ELSE 0 END), 0),
  COALESCE(SUM(d.at_once), 0),
  COALESCE(SUM(CASE WHEN r.closed = 1 AND d.face > 0 AND NOT {_LATE} THEN d.expected ELSE 0 END), 0),
  COALESCE(SUM(CASE WHEN r.closed = 1 THEN COALESCE(d.paid, 0) ELSE 0 END), 0),
  COALESCE(SUM(CASE WHEN r.closed = 0 AND d.face > 0 AND NOT {_LATE} THEN d.expected ELSE 0 END), 0),
  COALESCE(SUM(CASE WHEN r.closed = 0 AND {_LATE} THEN COALESCE(d.paid, d.face) ELSE 0 END), 0),
  (SELECT COUNT(*) FROM request),
  COUNT(*),
  COALESCE(SUM(CASE WHEN d.paid IS NULL THEN 0 ELSE 1 END), 0),
  COALESCE(SUM(CASE WHEN r.closed = 1 AND d.face > 0 AND (d.paid IS NULL OR d.redeemed_at >= r.expires_at)
    THEN 1 ELSE 0 END), 0),
  COALESCE(SUM(CASE WHEN r.closed = 1 AND l.promises <> 'kept' THEN {_WAITED} ELSE 0 END), 0)
FROM decision d JOIN request r ON r.number = d.number CROSS JOIN ledger l"""  # noqa: S608
ENTRY = (
    *("request", "customer", "level", "propensity", "response", "price", "reason", "at_once", "face", "expected"),
    *("paid", "policy", "decided_at", "expires_at", "redeemed_at", "closed"),
)
ALL_DECISIONS = """SELECT r.id, d.customer, d.level, d.propensity, d.response, d.price, d.reason, d.at_once, d.face,
  d.expected, d.paid, r.policy, r.decided_at, r.expires_at, d.redeemed_at, r.closed
FROM request r JOIN decision d ON d.number = r.number WHERE r.number > ? AND r.number <= ? ORDER BY r.number, d.place"""

NEVER = 2**62  # microseconds since 1970
LARGEST = 2**63 - 1  # number that a database holds

# -- the ledger's row ----------------------------------------------------------------------------------------------------


def read_standing(session: Session, now: int) -> Standing:
    """Return the ledger's row."""
    found = session.fetch(READ_LEDGER)
    if not found:
        refuse_entry("the ledger is empty", "open it with a total and a period")
    *numbers, reserved, state, plan = found[0]
    counted = dict(zip((*COUNTED, "reserved"), (*numbers[len(TERMS) :], reserved), strict=True))
    try:
        terms, price = read_terms(numbers[: len(TERMS)]), (tuple(json.loads(state)), _read_plan(plan))
        sound = all(type(value) is int and value >= 0 for value in counted.values())
        gone = counted["spent"] + (counted["promised"] if terms.kept else 0)
        if not (sound and math.isfinite(sum(price[0])) and gone <= terms.total):
            raise ValueError
    except (TypeError, ValueError, OverflowError, RecursionError):
        refuse_damaged()
    return Standing(terms, now, **counted, state=price[0], plan=price[1])


@lru_cache(maxsize=8)
def _read_plan(text: str) -> dict[str, Any]:
    """Return the plan of the price; it hardly ever changes, and nobody changes what is returned."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError
    return found


def write_plan(plan: Any) -> str:
    """Return what the price goes by as it is kept; refuse a plan that cannot be."""
    try:
        if not isinstance(plan, dict):
            raise ValueError
        return json.dumps(plan, allow_nan=False)
    except (TypeError, ValueError, OverflowError, RecursionError):
        fail("ledger", Problem("the price's plan is no dict of numbers", "give PacePlan.as_dict()"))


def refuse_damaged() -> NoReturn:
    """Say that the ledger holds something that nobody wrote there."""
    refuse_entry("the ledger is damaged: it holds values that it cannot hold", "restore it from a copy")


_WRITE = f"UPDATE ledger SET {', '.join(f'{name} = ?' for name in COUNTED)}, reserved = ?, state = ?"  # noqa: S608  names of our own


def write_standing(session: Session, standing: Standing) -> None:
    """Write the sums and the state of the price."""
    over = [name for name in (*COUNTED, "reserved") if getattr(standing, name) > LARGEST]
    if over:
        refuse_entry(f"the ledger cannot count so far: {join_some(over)}", "begin another, in a larger unit of money")
    values = [getattr(standing, name) for name in COUNTED]
    session.run(_WRITE, [*values, standing.reserved, json.dumps(standing.state)])


def release_expired(session: Session, standing: Standing, *, all_of_it: bool = False) -> Standing:
    """Close requests whose time is over: what was promised and not redeemed is released."""
    if not standing.open:
        return standing
    ends = standing.terms.ends if standing.terms.kept else NEVER
    while True:
        over = session.fetch(COUNT_OVER, (ends, standing.now))
        for early, released, expected, paid, held, many, waited in (map(int, row) for row in over):
            changes = {"promised": standing.promised - released, "expired": standing.expired + many}
            changes["settled_paid"] = standing.settled_paid + paid
            changes["settled_wait"] = standing.settled_wait + (0 if standing.terms.kept else waited)
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


KINDS = (np.int64, *(np.float64,) * 3, *(np.int64,) * 4)  # of what is kept of a decision, after the customer

# -- decisions -----------------------------------------------------------------------------------------------------------


class DecisionTransaction:
    """Decisions on requests within one transaction: each sees what those before it left of the budget."""

    def __init__(self, session: Session, now: int, chooser: Chooser) -> None:
        self._session, self._now, self._chooser = session, now, chooser
        self._standing: Standing | None = None

    def decide(self, ask: DecisionRequest) -> Decisions | LargesseError:
        """Return the decisions on a request, or why there are none. What refuses a request wrote nothing before."""
        try:
            refuse("request", request_problems(ask.request, ask.policy, ask.content))
            digest = ask.digest
            known = self._session.fetch(FIND_REQUEST, (ask.request,))
            if known:
                return recall(self._session, ask.request, digest, known[0])
            if self._standing is None:
                self._standing = release_expired(self._session, read_standing(self._session, self._now))
            choice = self._chooser.choose(self._standing, ask.offers)
            decided = as_decided(ask.request, ask.offers, choice, ask.policy, self._standing)
        except LargesseError as error:
            return error
        write_decisions(self._session, decided, digest, self._standing)
        self._standing = count_decided(self._standing, decided, choice)
        return decided

    def end(self) -> None:
        """Write the sums."""
        if self._standing is not None:
            write_standing(self._session, self._standing)


def as_decided(request: str, offers: Offers, choice: Choice, policy: str, before: Standing) -> Decisions:
    """Return the decisions of a choice; a choice that does not fit is a mistake of the chooser, and nothing is kept."""
    rows, levels = np.arange(len(offers)), np.asarray(choice.levels, dtype=np.int64)
    at_once, face, expected = (part[rows, levels] for part in (offers.at_once, offers.face, offers.expected))
    paid, promised = add_up(at_once), add_up(face)
    if paid > before.left or (before.terms.kept and paid + promised > before.room):
        raise RuntimeError("a chooser gave more than the ledger has room for")
    if before.promised + promised > LARGEST:
        got = f"open promises would come to {show_money(before.promised + promised)}: more than a ledger can count"
        refuse_entry(got, "give levels the costs that they really have")
    valid = before.terms.valid
    expires = None if valid is None else before.now + valid
    return Decisions(
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


def add_up(amounts: Array) -> int:
    """Return a sum that is exact, even beyond 64 bits."""
    return sum(amounts.tolist())


def write_decisions(session: Session, decided: Decisions, digest: str, before: Standing) -> None:
    """Add a request and its decisions."""
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


def count_decided(before: Standing, decided: Decisions, choice: Choice) -> Standing:
    """Return the standing after decisions."""
    at_once, face = add_up(decided.at_once), add_up(decided.face)
    late = _counts_in_full(decided.expires_at, before.terms)
    expected = add_up(decided.expected[decided.face > 0])
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
        reserved=0 if before.terms.kept else max(int(choice.reserved), 0),
    )


def _counts_in_full(expires: int | None, terms: Terms) -> bool:
    """Whether a promise is kept and outlasts the period: nothing of it can be given again."""
    return terms.kept and (expires is None or expires > terms.ends)


def recall(session: Session, request: str, digest: str, known: tuple[Any, ...]) -> Decisions:
    """Return the decisions that the ledger holds for a request."""
    number, before, policy, decided_at, expires_at = known
    if type(decided_at) is not int or not isinstance(expires_at, int | None) or not isinstance(policy, str):
        refuse_damaged()
    if before != digest:
        got = f"the request {request!r} was answered at {show_time(decided_at)} with other content"
        refuse_entry(got, "give every request an id of its own; repeat one only as it was")
    try:
        customers, *parts = zip(*session.fetch(READ_DECISIONS, (number,)), strict=True)
        arrays: list[Any] = [np.array(part, dtype=kind) for part, kind in zip(parts, KINDS, strict=True)]
    except (TypeError, ValueError, OverflowError):
        refuse_damaged()
    levels, propensity, responses, price, reason, *money = arrays
    return Decisions(
        *(request, tuple(customers), levels, propensity, responses, price, reason),
        *(*money, policy, decided_at, expires_at, True),
    )


# -- redemptions ---------------------------------------------------------------------------------------------------------


def count_redeemed(standing: Standing, value: int, face: int, expires: int | None, late: bool) -> Standing:
    """Return the standing after a redemption."""
    changes = {"spent": standing.spent + value, "redemptions": standing.redemptions + 1}
    if late:  # its reservation is gone: it is paid from what is left
        changes["settled_paid"] = standing.settled_paid + value
    else:
        changes["promised"] = standing.promised - face
        changes["reserved"] = max(standing.reserved - value, 0)
        if _counts_in_full(expires, standing.terms):
            changes["late_face"] = standing.late_face - face + value
    return replace(standing, **changes)  # type: ignore[arg-type]


def read_promise(found: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the promise that a row holds."""
    number, expires, closed, face, paid, at = found
    needed = (number, closed, face, *(() if paid is None else (paid, at)), *(() if expires is None else (expires,)))
    if not all(type(value) is int for value in needed):
        refuse_damaged()
    return found


def read_redemption(request: str, customer: str, found: tuple[Any, ...], value: int) -> Redemption:
    """Return the redemption that the ledger holds; refuse another amount."""
    _, expires, _, _, before, at = found
    if before != value:
        got = f"the customer {customer!r} redeemed {show_money(before)} at {show_time(at)}, not {show_money(value)}"
        refuse_entry(got, "a promise is redeemed once; give the same amount to repeat it")
    return Redemption(request, customer, before, expires is not None and expires <= at, True)


def check_amount(customer: str, value: int, face: int) -> None:
    """Refuse an amount that was not promised."""
    if not face:
        refuse_entry(
            f"the customer {customer!r} was promised nothing", "only promises that are paid later are redeemed"
        )
    if value > face:
        got = f"a redemption of {show_money(value)}, but {show_money(face)} was promised to the customer {customer!r}"
        refuse_entry(got, "the most that a level may cost is reserved when it is given: raise its cost there")


def check_left(standing: Standing, customer: str, value: int) -> None:
    """Refuse a redemption that no longer fits into the budget: only where promises hold while it lasts."""
    if value > standing.left:
        left, asked = show_money(standing.left), show_money(value)
        got = f"the budget does not last: {left} is left, and the customer {customer!r} redeems {asked}"
        refuse_entry(got, f"redeem {left} or less, or raise the total (ledger.change_total) and tell it again")


def check_late(standing: Standing, value: int, expires: int) -> None:
    """Refuse a redemption after the promise's time, by the ledger's terms."""
    if standing.terms.late == "refuse":
        hint = "its money was released; a ledger with late='accept' takes it while there is room"
        refuse_entry(f"the promise ended at {show_time(expires)}", hint)
    if value > standing.room:
        hint = "raise the total, and tell it again"
        refuse_entry(f"the promise ended at {show_time(expires)}, and only {show_money(standing.room)} is left", hint)


def refuse_entry(got: str, hint: str) -> NoReturn:
    """Refuse what a ledger does not allow."""
    raise LedgerError("ledger", [Problem(got, hint)])
