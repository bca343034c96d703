"""The rows of a ledger: how decisions and redemptions are written, counted and read back within a transaction."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from largesse.errors import LargesseError, LedgerError, Problem, fail, join_some, refuse
from largesse.records import Array
from largesse.serve.ledger.money import show_money
from largesse.serve.ledger.records import Ask, Choice, Chooser, Decided, Offers, Redemption, Standing, request_problems
from largesse.serve.ledger.statements import (
    CLOSE_OVER,
    COUNT_OVER,
    COUNTED,
    DECISION,
    FIND_REQUEST,
    READ_DECISIONS,
    READ_LEDGER,
    REQUEST,
    TERMS,
)
from largesse.serve.ledger.store import Session
from largesse.serve.ledger.terms import Terms, read_terms, show_time

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


def release(session: Session, standing: Standing, *, all_of_it: bool = False) -> Standing:
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


class Turn:
    """Decisions on requests within one transaction: each sees what those before it left of the budget."""

    def __init__(self, session: Session, now: int, chooser: Chooser) -> None:
        self._session, self._now, self._chooser = session, now, chooser
        self._standing: Standing | None = None

    def decide(self, ask: Ask) -> Decided | LargesseError:
        """Return the decisions on a request, or why there are none. What refuses a request wrote nothing before."""
        try:
            refuse("request", request_problems(ask.request, ask.policy, ask.content))
            digest = ask.digest
            known = self._session.fetch(FIND_REQUEST, (ask.request,))
            if known:
                return recall(self._session, ask.request, digest, known[0])
            if self._standing is None:
                self._standing = release(self._session, read_standing(self._session, self._now))
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


def as_decided(request: str, offers: Offers, choice: Choice, policy: str, before: Standing) -> Decided:
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


def add_up(amounts: Array) -> int:
    """Return a sum that is exact, even beyond 64 bits."""
    return sum(amounts.tolist())


def write_decisions(session: Session, decided: Decided, digest: str, before: Standing) -> None:
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


def count_decided(before: Standing, decided: Decided, choice: Choice) -> Standing:
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


def recall(session: Session, request: str, digest: str, known: tuple[Any, ...]) -> Decided:
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
    return Decided(
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


def recall_redemption(request: str, customer: str, found: tuple[Any, ...], value: int) -> Redemption:
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
