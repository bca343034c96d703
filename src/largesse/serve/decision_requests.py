"""Decision requests of the HTTP service: parsing, decisions without a ledger, and JSON answers."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from largesse.data import parse_json_rows
from largesse.errors import InputError, Problem, fail, join_some, repr_short
from largesse.policy import ExpectedOutcomes
from largesse.serve.json_bodies import RequestError, write_json
from largesse.serve.ledger.amounts_and_times import MICROS
from largesse.serve.ledger.ledger_records import MAX_ID_LENGTH, DecisionRequest, LedgerDecisions, Reason, is_valid_id
from largesse.serve.pacing.population import make_offers
from largesse.serve.served_policy import ServedPolicy

MAX_REQUEST_CUSTOMERS = 10_000
REASONS = {int(reason): reason.name.lower() for reason in Reason}


@dataclass(frozen=True, eq=False)
class ParsedRequest:
    """Checked decision request: customers' ids, with predictions or a request to the ledger."""

    served: ServedPolicy
    request: str
    ids: list[Any]  # of the customers, as given
    expected: ExpectedOutcomes | None  # responses and costs, without a ledger …
    for_ledger: DecisionRequest | None  # … and with one


def parse_request(
    served: ServedPolicy, content: dict[str, Any], for_ledger: bool, max_costs: Sequence[float] | None
) -> ParsedRequest:
    """Check the JSON of a decision request, and predict the responses and costs of its customers."""
    check_request_keys(content, ("request_id", "customers"))
    rows = parse_json_rows(content.get("customers"), MAX_REQUEST_CUSTOMERS)
    request = check_request_id(content.get("request_id"), required=for_ledger)
    customers = served.encode(rows)
    ids = served.read_ids(rows, required=for_ledger)
    if not for_ledger:
        return ParsedRequest(served, request, ids, served.policy.expect(customers), None)
    names = tuple(map(str, ids))
    if len(set(names)) < len(names):
        raise RequestError(409, "a customer comes twice in the request", "name each customer once")
    offers = make_offers(served.policy, customers, names, max_costs=max_costs)
    ledger_request = DecisionRequest(request, offers, served.version, write_json(rows, ordered=True))
    return ParsedRequest(served, request, ids, None, ledger_request)


def decide_without_ledger(parsed: ParsedRequest) -> dict[str, Any]:
    """Decide the levels of a request without a ledger; return the answer as JSON types.

    Random levels depend only on the version of the policy, the request and the customer.
    """
    assert parsed.expected is not None
    policy, version = parsed.served.policy, parsed.served.version
    probabilities = policy.mix(parsed.expected).tolist()
    if policy.draws:
        names = [str(at) if name is None else str(name) for at, name in enumerate(parsed.ids)]
        levels = [
            _draw_repeatable_level(row, version, parsed.request, name)
            for row, name in zip(probabilities, names, strict=True)
        ]
    else:
        levels = [row.index(max(row)) for row in probabilities]
    tables = (probabilities, parsed.expected.responses.tolist(), parsed.expected.costs.tolist())
    columns = ([row[level] for row, level in zip(table, levels, strict=True)] for table in tables)
    return {
        "request_id": parsed.request,
        "policy": version,
        "price": policy.price,
        "decisions": _describe_customers(parsed, levels, *columns),
        "repeated": False,
    }


def describe_ledger_decisions(parsed: ParsedRequest, decisions: LedgerDecisions) -> dict[str, Any]:
    """Return the ledger's decisions on a request as the JSON types of the answer."""
    costs = (decisions.at_once + decisions.expected) / MICROS
    arrays = (decisions.levels, decisions.propensity, decisions.responses, costs)
    rows = _describe_customers(parsed, *(array.tolist() for array in arrays))
    for row, price, reason in zip(rows, decisions.price.tolist(), decisions.reason.tolist(), strict=True):
        row |= {"price": price, "reason": REASONS[reason]}
    return {
        "request_id": decisions.request,
        "policy": decisions.policy,
        "price": float(decisions.price[-1]),
        "decisions": rows,
        "repeated": decisions.repeated,
    }


def _describe_customers(
    parsed: ParsedRequest, levels: list[int], propensity: list[float], responses: list[float], costs: list[float]
) -> list[dict[str, Any]]:
    """Return each customer's decision as JSON types."""
    labels = parsed.served.labels
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
            parsed.ids, levels, propensity, responses, costs, strict=True
        )
    ]


def _draw_repeatable_level(probabilities: Sequence[float], version: str, request: str, name: str) -> int:
    """Draw a customer's level from the hash of policy version, request and customer id."""
    uniform, last = _hash_to_uniform(version, request, name), 0
    for level, probability in enumerate(probabilities):
        if probability:
            uniform, last = uniform - probability, level
            if uniform < 0:
                break
    return last  # rounding may end a sum short of one: then the last level that has a probability


def _hash_to_uniform(version: str, request: str, customer: str) -> float:
    """Hash a policy version, a request and a customer to a pseudo-random number in [0, 1)."""
    digest = hashlib.blake2b(write_json([version, request, customer]), digest_size=8).digest()
    return (int.from_bytes(digest) >> 11) / 2**53


def check_request_keys(content: dict[str, Any], known: tuple[str, ...]) -> None:
    """Refuse unknown keys in the JSON of a request."""
    unknown = [repr_short(key) for key in content if key not in known]
    if unknown:
        fail("request", Problem(f"unknown in this request: {join_some(unknown)}", f"it has {join_some(known)}"))


def check_request_id(request_id: Any, *, required: bool) -> str:
    """Return the id of a request; make a new one if the id is missing and optional."""
    if request_id is None and not required:
        return uuid.uuid4().hex
    if is_valid_id(request_id):
        return str(request_id)
    hint = f"give a text of 1 to {MAX_ID_LENGTH} printable letters, another one for every request: sent again, it gets the same answer"
    raise InputError("request", [Problem(f"request_id is {repr_short(request_id)}", hint)])
