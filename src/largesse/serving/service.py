"""What is asked over HTTP, as functions: decide, redeem, say where the budget stands.

Without a ledger a decision is a function of the policy, the request's id and the customer: asked again, it is the same. With
one it is kept there, and costs fit into its budget whoever else decides.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from largesse.allocation import Mixture
from largesse.data import Row, check_rows
from largesse.errors import InputError, LargesseError, Problem, refuse, show
from largesse.pacing import Decided, Ledger, Reason, as_units, make_offers, show_time
from largesse.policy import Outlook
from largesse.records import Array
from largesse.serving.ledgers import Books
from largesse.serving.metrics import Metrics
from largesse.serving.policies import Served, Watched
from largesse.version import __version__
from largesse.web import RequestError

MOST_CUSTOMERS = 10_000  # in one request
LONGEST = 200  # letters of an id


class Service:
    """Decides by the current policy, and books decisions in a ledger, if there is one. Several threads may ask."""

    def __init__(self, watched: Watched, books: Books | None = None) -> None:
        self.watched, self.books = watched, books
        self.metrics = Metrics()

    @property
    def ledger(self) -> Ledger | None:
        """Where decisions are booked, if anywhere."""
        return None if self.books is None else self.books.ledger

    def warm_up(self) -> None:
        """Decide once for nobody in particular, so that the first customer does not wait for what is compiled."""
        served = self.watched.current
        nobody = [dict.fromkeys(served.opened.policy.model.encoder_.features)]
        with suppress(LargesseError):  # a customer's own costs cannot be missing
            served.opened.policy.expect(served.prepare(nobody))

    def decide(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Give each customer of a request a level."""
        self.watched.refresh()
        served = self.watched.current
        _check_keys(asked, ("request_id", "customers"))
        rows = check_rows(asked.get("customers"), MOST_CUSTOMERS)
        request = _check_id(asked.get("request_id"), needed=self.books is not None)
        customers = served.prepare(rows)
        if self.books is None:
            answer = _decide_alone(served, request, rows, served.opened.policy.expect(customers))
        else:
            answer = _book(self.books, served, request, rows, customers)
        self.metrics.count_decisions(one["level"] for one in answer["decisions"])
        return answer

    def redeem(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Count what a customer redeemed of a promise."""
        _check_keys(asked, ("request_id", "customer", "amount"))
        ledger = self._need_ledger()
        request = _check_id(asked.get("request_id"), needed=True)
        customer = asked.get("customer")
        if isinstance(customer, bool) or not isinstance(customer, str | int):
            hint = "give the customer as in the decision"
            raise InputError("request", [Problem(f"the customer is {show(customer)}", hint)])
        done = ledger.redeem(request, str(customer), asked.get("amount"))
        return {
            "request_id": request,
            "customer": customer,
            "paid": as_units(done.paid),
            "late": done.late,
            "repeated": done.repeated,
        }

    def budget(self) -> dict[str, Any]:
        """Say where the budget stands."""
        standing = self._need_ledger().standing()
        times = {"starts": standing.terms.starts, "ends": standing.terms.ends, "now": standing.now}
        told = {name: show_time(micros).replace(" ", "T") for name, micros in times.items()}
        return standing.as_dict() | told

    def health(self) -> dict[str, Any]:
        """Say what is served, without touching the ledger."""
        self.watched.refresh()
        served = self.watched.current
        found: dict[str, Any] = {"status": "ok", "version": __version__, "policy": served.version}
        found |= {"price": served.opened.policy.price, "ledger": self.ledger is not None}
        if self.watched.problem is not None:
            found |= {"status": "outdated", "problem": self.watched.problem}
        return found

    def write_metrics(self) -> str:
        """Return what was counted, and where the budget stands, for Prometheus."""
        served = self.watched.current
        gauges = {
            "policy_reloads": float(self.watched.reloads),
            "policy_outdated": float(self.watched.problem is not None),
            "price": float(served.opened.policy.price or 0.0),
        }
        if self.ledger is not None:
            standing = self.ledger.standing()
            gauges["budget_total"] = as_units(standing.terms.total)
            gauges |= {f"budget_{word}": as_units(getattr(standing, word)) for word in ("spent", "promised", "room")}
        return self.metrics.write(gauges, served.version)

    def _need_ledger(self) -> Ledger:
        if self.ledger is None:
            hint = "start it with --ledger sqlite:///spring.db --total … --until …"
            raise RequestError(409, "this service has no ledger", hint)
        return self.ledger


def _book(books: Books, served: Served, request: str, rows: Sequence[Row], customers: Any) -> dict[str, Any]:
    """Decide by the ledger's price, and keep the decisions there."""
    ids = served.name(rows, needed=True)
    offers = make_offers(served.opened.policy, customers, tuple(map(str, ids)), most=books.most)
    content = json.dumps(rows, sort_keys=True)
    decided = books.ledger.decide(request, offers, books.chooser, policy=served.version, content=content)
    return _show_decided(served, decided, ids)


def _decide_alone(served: Served, request: str, rows: Sequence[Row], expected: Outlook) -> dict[str, Any]:
    """Decide without a ledger; what is drawn at random is drawn from the policy's version, the request and the customer."""
    policy, ids = served.opened.policy, served.name(rows, needed=False)
    rule = Mixture(float(policy.price or 0.0), policy.share, policy.at_random)
    responses, costs = expected.responses, expected.costs
    probabilities = rule.probabilities(responses, np.ascontiguousarray(costs))
    random = bool(policy.share or policy.at_random)
    names = [str(at) if name is None else str(name) for at, name in enumerate(ids)]
    levels = _draw(probabilities, served.version, request, names) if random else probabilities.argmax(axis=1)
    labels, price = policy.levels.labels, policy.price
    decisions = [
        {
            "customer": ids[at],
            "level": labels[level],
            "level_number": int(level),
            "propensity": float(probabilities[at, level]),
            "expected_response": float(responses[at, level]),
            "expected_cost": float(costs[at, level]),
        }
        for at, level in enumerate(levels)
    ]
    return {"request_id": request, "policy": served.version, "price": price, "decisions": decisions, "repeated": False}


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


def _show_decided(served: Served, decided: Decided, ids: list[Any]) -> dict[str, Any]:
    labels = served.opened.policy.levels.labels
    expected = (decided.at_once + decided.expected) / 1e6
    decisions = [
        {
            "customer": ids[at],
            "level": labels[level],
            "level_number": int(level),
            "propensity": float(decided.propensity[at]),
            "expected_response": float(decided.responses[at]),
            "expected_cost": float(expected[at]),
            "price": float(decided.price[at]),
            "reason": Reason(int(decided.reason[at])).name.lower(),
        }
        for at, level in enumerate(decided.levels)
    ]
    price = float(decided.price[-1])
    return {
        "request_id": decided.request,
        "policy": decided.policy,
        "price": price,
        "decisions": decisions,
        "repeated": decided.repeated,
    }


def _check_keys(asked: dict[str, Any], known: tuple[str, ...]) -> None:
    unknown = [key for key in asked if key not in known]
    refuse("request", [Problem(f"{show(key)} is not a part of this request", f"it has {known}") for key in unknown])


def _check_id(given: Any, *, needed: bool) -> str:
    """Return the id of a request; a new one where none is needed."""
    if given is None and not needed:
        return uuid.uuid4().hex
    if isinstance(given, str) and 0 < len(given) <= LONGEST and given.isprintable():
        return given
    hint = f"give a text of 1 to {LONGEST} printable letters, another one for every request: sent again, it gets the same answer"
    raise InputError("request", [Problem(f"request_id is {show(given)}", hint)])
