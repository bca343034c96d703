"""A request for decisions: how it is read, and how it is answered, by a policy alone or with a ledger."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.data import check_rows
from largesse.errors import InputError, Problem, refuse, repr_short
from largesse.policy import Expected
from largesse.records import Array
from largesse.serve.json_errors import to_json
from largesse.serve.ledger.money import MICROS
from largesse.serve.ledger.records import LONGEST_ID, Ask, Decided, Reason, is_id
from largesse.serve.ledger_context import Books
from largesse.serve.pacing.offers import make_offers
from largesse.serve.policy_store import Served

MOST_CUSTOMERS = 10_000  # in one request
REASONS = {int(reason): reason.name.lower() for reason in Reason}


@dataclass(frozen=True, eq=False)
class Read:
    """A request that is understood."""

    served: Served  # by which policy it is decided
    request: str
    ids: list[Any]  # of the customers, as they were given
    expected: Expected | None  # of each customer at each level; None where the ledger is asked
    ask: Ask | None  # for the ledger, if there is one


def read_request(served: Served, books: Books | None, asked: dict[str, Any]) -> Read:
    """Understand a request, and let the policy's model say what it expects of the customers."""
    check_keys(asked, ("request_id", "customers"))
    rows = check_rows(asked.get("customers"), MOST_CUSTOMERS)
    request = check_id(asked.get("request_id"), needed=books is not None)
    customers = served.prepare(rows)
    ids = served.name(rows, needed=books is not None)
    if books is None:
        return Read(served, request, ids, served.opened.policy.expect(customers), None)
    offers = make_offers(served.opened.policy, customers, tuple(map(str, ids)), most=books.most)
    return Read(served, request, ids, None, Ask(request, offers, served.version, to_json(rows, ordered=True)))


def decide_alone(read: Read) -> dict[str, Any]:
    """Decide without a ledger; what is drawn at random is drawn from the policy's version, the request and the customer."""
    assert read.expected is not None
    policy, ids, version = read.served.opened.policy, read.ids, read.served.version
    responses, costs = read.expected.responses, read.expected.costs
    probabilities = policy.mix(read.expected)
    names = [str(at) if name is None else str(name) for at, name in enumerate(ids)]
    levels = _draw(probabilities, version, read.request, names) if policy.draws else probabilities.argmax(axis=1)
    rows = np.arange(len(ids))
    return {
        "request_id": read.request,
        "policy": version,
        "price": policy.price,
        "decisions": _list(read, levels, *(part[rows, levels] for part in (probabilities, responses, costs))),
        "repeated": False,
    }


def _list(read: Read, levels: Array, propensity: Array, responses: Array, costs: Array) -> list[dict[str, Any]]:
    """Return the decisions on the customers of a request, each (n,), as they are answered."""
    labels, parts = read.served.labels, (levels, propensity, responses, costs)
    return [
        {
            "customer": customer,
            "level": labels[level],
            "level_number": level,
            "propensity": probability,
            "expected_response": response,
            "expected_cost": cost,
        }
        for customer, level, probability, response, cost in zip(
            read.ids, *(part.tolist() for part in parts), strict=True
        )
    ]


def _draw(probabilities: Array, version: str, request: str, names: Sequence[str]) -> Array:
    """Draw a level (n,) for each customer: the same for the same policy, request and name."""
    drawn = np.array([_share_of(version, request, name) for name in names])
    levels = np.minimum((np.cumsum(probabilities, axis=1) <= drawn[:, None]).sum(axis=1), probabilities.shape[1] - 1)
    # Rounding may end a sum short of one: the last level that has a probability is meant.
    for at in np.flatnonzero(probabilities[np.arange(len(levels)), levels] == 0):
        levels[at] = np.flatnonzero(probabilities[at])[-1]
    return levels


def _share_of(version: str, request: str, customer: str) -> float:
    """Return a number in [0, 1) that looks drawn at random, and is the same for the same words."""
    digest = hashlib.blake2b(json.dumps([version, request, customer]).encode(), digest_size=8).digest()
    return (int.from_bytes(digest) >> 11) / 2**53


def show_decided(read: Read, decided: Decided) -> dict[str, Any]:
    """Answer with what the ledger has decided."""
    costs = (decided.at_once + decided.expected) / MICROS
    decisions = _list(read, decided.levels, decided.propensity, decided.responses, costs)
    for one, price, reason in zip(decisions, decided.price.tolist(), decided.reason.tolist(), strict=True):
        one |= {"price": price, "reason": REASONS[reason]}
    return {
        "request_id": decided.request,
        "policy": decided.policy,
        "price": float(decided.price[-1]),
        "decisions": decisions,
        "repeated": decided.repeated,
    }


def check_keys(asked: dict[str, Any], known: tuple[str, ...]) -> None:
    """Refuse parts that a request does not have."""
    unknown = [key for key in asked if key not in known]
    refuse(
        "request", [Problem(f"{repr_short(key)} is not a part of this request", f"it has {known}") for key in unknown]
    )


def check_id(given: Any, *, needed: bool) -> str:
    """Return the id of a request; a new one where none is needed."""
    if given is None and not needed:
        return uuid.uuid4().hex
    if is_id(given):
        return str(given)
    hint = f"give a text of 1 to {LONGEST_ID} printable letters, another one for every request: sent again, it gets the same answer"
    raise InputError("request", [Problem(f"request_id is {repr_short(given)}", hint)])
