"""Database transactions of a ledger: decisions, redemptions and the release of expired promises."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from largesse.errors import LargesseError, LedgerError, Problem, fail, join_some, refuse
from largesse.serve.ledger.amounts_and_times import format_money, format_time
from largesse.serve.ledger.ledger_records import (
    LATE_REDEMPTIONS,
    PROMISES,
    ChosenLevels,
    DecisionRequest,
    LedgerDecisions,
    LedgerStanding,
    LedgerTerms,
    LevelChooser,
    Redemption,
    is_valid_id,
)
from largesse.serve.ledger.postgres import PostgresSession
from largesse.serve.ledger.sql_statements import (
    CLOSE_EXPIRED,
    COUNT_EXPIRED,
    COUNTS,
    DECISION_ARRAYS,
    DECISION_TYPES,
    FIND_DECISION,
    FIND_REQUESTS,
    PAY,
    READ_DECISIONS,
    READ_LEDGER,
    TERMS,
    WRITE_LEDGER,
)
from largesse.serve.ledger.sqlite import SqliteSession

Session = SqliteSession | PostgresSession


NO_END = 2**62  # microseconds since 1970
MAX_QUERY_VALUES = 1000
MAX_CLOSED_REQUESTS = 100  # with a decision: it does not lock the ledger for long
MAX_INTEGER = 2**63 - 1  # of a database

# -- the ledger's row ----------------------------------------------------------------------------------------------------


def read_standing(session: Session, now: int | None = None) -> LedgerStanding:
    """Read the current sums of a ledger from its database row."""
    rows = session.fetch(READ_LEDGER)
    return parse_standing(rows, _get_time(session, now))


def _get_time(session: Session, now: int | None) -> int:
    """Return the given time, or the database's time if no time is given."""
    return session.now() if now is None else int(now)


def parse_standing(rows: Sequence[tuple[Any, ...]], now: int) -> LedgerStanding:
    """Convert the database row of a ledger to its current sums; refuse an invalid row."""
    if not rows:
        refuse_damaged_ledger()
    *numbers, state, plan = rows[0]
    counts = dict(zip(COUNTS, numbers[len(TERMS) :], strict=True))
    try:
        terms, price_plan = parse_stored_terms(tuple(numbers[: len(TERMS)])), _parse_plan(plan)
        price_state = tuple(json.loads(state))
        are_counts = set(map(type, counts.values())) == {int} and min(counts.values()) >= 0
        used_amount = counts["spent"] + (counts["promised"] if terms.keeps_promises else 0)
        if not (are_counts and math.isfinite(sum(price_state)) and used_amount <= terms.total):
            raise ValueError
    except (TypeError, ValueError, OverflowError, RecursionError):
        refuse_damaged_ledger()
    return LedgerStanding(terms, now, **counts, state=price_state, plan=price_plan)


@lru_cache(maxsize=8)
def parse_stored_terms(values: tuple[Any, ...]) -> LedgerTerms:
    """Convert database values to a ledger's terms (total, period, promises); raise ValueError if invalid."""
    total, starts, ends, valid, late, promises = values
    are_integers = all(type(value) is int for value in (total, starts, ends, 1 if valid is None else valid))
    if (
        not (are_integers and late in LATE_REDEMPTIONS and promises in PROMISES)
        or total < 0
        or starts >= ends
        or (valid is not None and valid < 1)
    ):
        raise ValueError("invalid terms of a ledger")
    return LedgerTerms(total, starts, ends, valid, late, promises)


@lru_cache(maxsize=8)
def _parse_plan(text: str) -> dict[str, Any]:
    """Parse the JSON of a ledger's shadow price plan; the result is cached."""
    plan = json.loads(text)
    if not isinstance(plan, dict):
        raise ValueError
    return plan


def format_price_plan(plan: Any) -> str:
    """Write a plan of the shadow price as JSON; refuse an invalid plan."""
    try:
        if not isinstance(plan, dict):
            raise ValueError
        return json.dumps(plan, allow_nan=False)
    except (TypeError, ValueError, OverflowError, RecursionError):
        fail("ledger", Problem("the plan of the price is not a dict of numbers", "give PacingPlan.as_dict()"))


def write_standing(session: Session, standing: LedgerStanding) -> None:
    """Write a ledger's current sums and the price controller's state to its database row."""
    counts = [getattr(standing, name) for name in COUNTS]
    if max(counts) > MAX_INTEGER:
        too_large = join_some([name for name, value in zip(COUNTS, counts, strict=True) if value > MAX_INTEGER])
        raise_ledger_error(f"the ledger cannot count so far: {too_large}", "begin another, in a larger unit of money")
    session.run(WRITE_LEDGER, [*counts, json.dumps(standing.state)])


def release_expired_promises(
    session: Session, standing: LedgerStanding, *, all_requests: bool = False, write: bool = True
) -> LedgerStanding:
    """Release the money of expired promises; return the new sums.

    Only a transaction that writes closes their requests.
    """
    if standing.terms.valid is None or not standing.has_open_promises:
        return standing
    ends = standing.terms.ends if standing.terms.keeps_promises else NO_END
    requests = standing.now, MAX_INTEGER if all_requests else MAX_CLOSED_REQUESTS
    groups = session.fetch(COUNT_EXPIRED, (ends, *requests))
    for early, released, expected, paid, held, expired, waited in (map(int, row) for row in groups):
        changes = {
            "promised": standing.promised - released,
            "expired": standing.expired + expired,
            "settled_paid": standing.settled_paid + paid,
            "settled_wait": standing.settled_wait + (0 if standing.terms.keeps_promises else waited),
        }
        if early:
            changes["open_expected"] = standing.open_expected - expected
            changes["settled_expected"] = standing.settled_expected + expected
        else:
            changes["late_face"] = standing.late_face - held
        standing = replace(standing, **changes)  # type: ignore[arg-type]
    if groups and write:
        session.run(CLOSE_EXPIRED, requests)
    return standing


# -- decisions -----------------------------------------------------------------------------------------------------------


def decide_requests(
    session: Session, now: int | None, chooser: LevelChooser, requests: Sequence[DecisionRequest]
) -> list[LedgerDecisions | LargesseError]:
    """Decide several requests in one transaction; return the decisions or the error of each request.

    A refused request writes nothing.
    """
    results: list[LedgerDecisions | LargesseError] = []
    standing: LedgerStanding | None = None
    ids = [request.request for request in requests if is_valid_id(request.request)]
    queries: list[tuple[str, Sequence[Any]]] = [(READ_LEDGER, ())]
    for first in range(0, len(ids), MAX_QUERY_VALUES):
        some = ids[first : first + MAX_QUERY_VALUES]
        queries.append((f"{FIND_REQUESTS} ({', '.join('?' * len(some))})", some))
    ledger_row, *found = session.fetch_together(queries)
    known = {row[0]: row[1:] for rows in found for row in rows}
    new: dict[str, tuple[str, LedgerDecisions]] = {}
    for request in requests:
        try:
            refuse("request", request.find_problems())
            name, digest = request.request, request.digest
            if name in new:  # in this very batch
                digest_before, decided = new[name]
                _compare_digests(name, digest_before, digest, decided.decided_at)
                results.append(replace(decided, repeated=True))
                continue
            if name in known:
                results.append(_read_earlier_decisions(session, name, digest, known[name]))
                continue
            if standing is None:
                standing = release_expired_promises(session, parse_standing(ledger_row, _get_time(session, now)))
            decided, standing = _apply_choice(request, chooser.choose(standing, request.offers), standing)
        except LargesseError as error:
            results.append(error)
            continue
        new[name] = digest, decided
        results.append(decided)
    if standing is not None:
        _write_decisions(session, list(new.values()), standing.requests + 1 - len(new))
        write_standing(session, standing)
    return results


def _read_earlier_decisions(session: Session, request: str, digest: str, row: tuple[Any, ...]) -> LedgerDecisions:
    """Read the stored decisions on a repeated request."""
    number, digest_before, policy, decided_at, expires_at = row
    if type(decided_at) is not int or not isinstance(expires_at, int | None) or not isinstance(policy, str):
        refuse_damaged_ledger()
    _compare_digests(request, digest_before, digest, decided_at)
    try:
        customers, *columns = zip(*session.fetch(READ_DECISIONS, (number,)), strict=True)
        arrays: list[Any] = [np.array(column, dtype=kind) for column, kind in zip(columns, DECISION_TYPES, strict=True)]
    except (TypeError, ValueError, OverflowError):
        refuse_damaged_ledger()
    levels, propensity, responses, price, reason, *money = arrays
    return LedgerDecisions(
        *(request, tuple(customers), levels, propensity, responses, price, reason),
        *(*money, policy, decided_at, expires_at, True),
    )


def _compare_digests(request: str, digest_before: Any, digest: str, decided_at: int) -> None:
    """Refuse a repeated request whose content differs from the stored one."""
    if digest_before != digest:
        problem = f"the request {request!r} was answered at {format_time(decided_at)} with other content"
        raise_ledger_error(problem, "give every request an id of its own; repeat one only as it was")


def _apply_choice(
    request: DecisionRequest, choice: ChosenLevels, standing: LedgerStanding
) -> tuple[LedgerDecisions, LedgerStanding]:
    """Convert chosen levels to decisions and new sums of the ledger; raise an error if the cost exceeds the budget."""
    offers, terms, levels = request.offers, standing.terms, np.asarray(choice.levels, dtype=np.int64)
    n_levels, given = offers.responses.shape[1], levels.tolist()
    cells = levels + n_levels * np.arange(len(offers))
    at_once, face, expected = offers.at_once.take(cells), offers.face.take(cells), offers.expected.take(cells)
    faces = face.tolist()
    paid, promised = sum(at_once.tolist()), sum(faces)  # exact, even beyond 64 bits
    if not 0 <= min(given) <= max(given) < n_levels:
        raise RuntimeError("a chooser gave a level that was not offered")
    if paid > standing.left or (terms.keeps_promises and paid + promised > standing.room):
        raise RuntimeError("a chooser gave more than the ledger has room for")
    if standing.promised + promised > MAX_INTEGER:
        problem = (
            f"open promises would sum to {format_money(standing.promised + promised)}: more than a ledger can count"
        )
        raise_ledger_error(problem, "give levels the costs that they really have")
    decided = LedgerDecisions(
        request.request,
        offers.customers,
        levels,
        choice.propensity,
        offers.responses.take(cells),
        choice.price,
        choice.reason,
        at_once,
        face,
        expected,
        request.policy,
        decided_at=standing.now,
        expires_at=None if terms.valid is None else standing.now + terms.valid,
    )
    in_full = terms.counts_in_full(decided.expires_at)
    redeemed = 0 if in_full else sum(amount for amount, face in zip(expected.tolist(), faces, strict=True) if face > 0)
    return decided, replace(
        standing,
        spent=standing.spent + paid,
        promised=standing.promised + promised,
        at_once=standing.at_once + paid,
        open_expected=standing.open_expected + redeemed,
        late_face=standing.late_face + (promised if in_full else 0),
        requests=standing.requests + 1,
        decisions=standing.decisions + len(decided),
        state=choice.state,
        reserved=0 if terms.keeps_promises else max(int(choice.reserved), 0),
    )


def _write_decisions(session: Session, decided: Sequence[tuple[str, LedgerDecisions]], first: int) -> None:
    """Insert requests with their digests, and the decisions on the requests, into the database.

    `first` is the number of the first request.
    """
    if not decided:
        return
    requests = {
        "number": range(first, first + len(decided)),
        "id": [each.request for _, each in decided],
        "digest": [digest for digest, _ in decided],
        "policy": [each.policy for _, each in decided],
        "decided_at": [each.decided_at for _, each in decided],
        "expires_at": [each.expires_at for _, each in decided],
        "closed": [int(not (each.face > 0).any()) for _, each in decided],
    }
    session.insert("request", requests)
    columns: dict[str, list[Any]] = {
        "number": [],
        "customer": [],
        "place": [],
        **{name: [] for name in DECISION_ARRAYS},
    }
    for number, (_, each) in enumerate(decided, first):
        columns["number"] += [number] * len(each)
        columns["customer"] += each.customers
        columns["place"] += range(len(each))
        for name, attribute in DECISION_ARRAYS.items():
            columns[name] += getattr(each, attribute).tolist()
    session.insert("decision", columns)


# -- redemptions ---------------------------------------------------------------------------------------------------------


def redeem_promise(session: Session, now: int | None, request: str, customer: str, amount: int | None) -> Redemption:
    """Redeem a customer's promise for `amount` (default: the face value); a repeated call changes nothing."""
    rows = session.fetch(FIND_DECISION, (request, customer))
    now = _get_time(session, now)
    if not rows:
        hint = "give the request's id and the customer as they were decided"
        raise_ledger_error(f"request {request!r} holds no decision for the customer {customer!r}", hint)
    number, expires, closed, face, paid_before, redeemed_at = rows[0]
    integers = [number, closed, face, *([] if expires is None else [expires])]
    integers += [] if paid_before is None else [paid_before, redeemed_at]
    if not all(type(value) is int for value in integers):
        refuse_damaged_ledger()
    value = face if amount is None else amount
    if paid_before is not None:
        if paid_before != value:
            before = f"{format_money(paid_before)} at {format_time(redeemed_at)}"
            problem = f"the customer {customer!r} redeemed {before}, not {format_money(value)}"
            raise_ledger_error(problem, "a promise is redeemed once; give the same amount to repeat it")
        return Redemption(request, customer, paid_before, expires is not None and expires <= redeemed_at, True)
    if not face:
        hint = "only promises that are paid later are redeemed"
        raise_ledger_error(f"the customer {customer!r} was promised nothing", hint)
    if value > face:
        promised = f"{format_money(face)} was promised to the customer {customer!r}"
        hint = "the most that a level may cost is reserved when it is given: raise its cost there"
        raise_ledger_error(f"a redemption of {format_money(value)}, but {promised}", hint)
    standing = read_standing(session, now)
    ended = expires is not None and expires <= now
    late = bool(closed) or ended  # closed before its end: a clock was ahead when something was decided
    if late:
        standing = release_expired_promises(session, standing, all_requests=True)
        problem = f"the promise ended at {format_time(expires)}" if ended else "the money of the promise was released"
        if ended and standing.terms.late == "refuse":
            raise_ledger_error(
                problem, "its money was released; a ledger with late='accept' takes it while there is room"
            )
        if value > standing.room:
            left = f"{problem}, and only {format_money(standing.room)} is left"
            raise_ledger_error(left, "raise the total, and redeem again")
    if value > standing.left:  # only where promises hold while the budget lasts
        left = format_money(standing.left)
        problem = (
            f"the budget does not last: {left} is left, and the customer {customer!r} redeems {format_money(value)}"
        )
        raise_ledger_error(problem, f"redeem {left} or less, or raise the total (ledger.change_total) and redeem again")
    session.run(PAY, (value, max(now, expires) if late else now, number, customer))
    changes = {"spent": standing.spent + value, "redemptions": standing.redemptions + 1}
    if late:  # its reservation is gone: it is paid from what is left
        changes["settled_paid"] = standing.settled_paid + value
    else:
        changes["promised"] = standing.promised - face
        changes["reserved"] = max(standing.reserved - value, 0)
        if standing.terms.counts_in_full(expires):
            changes["late_face"] = standing.late_face - face + value
    write_standing(session, replace(standing, **changes))  # type: ignore[arg-type]
    return Redemption(request, customer, value, late)


def raise_ledger_error(problem: str, hint: str) -> NoReturn:
    """Raise a `LedgerError` for a change or an opening that the ledger does not allow."""
    fail("ledger", Problem(problem, hint), LedgerError)


def refuse_damaged_ledger() -> NoReturn:
    """Raise an error for a ledger whose database holds invalid values."""
    raise_ledger_error("the ledger is damaged: it holds values that it cannot hold", "restore it from a copy")
