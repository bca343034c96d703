"""What is asked over HTTP, as functions: decide, redeem, say where the budget stands.

Without a ledger a decision is a function of the policy, the request's id and the customer: asked again, it is the same. With
one it is kept there, and costs fit into its budget whoever else decides.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from largesse.errors import InputError, LargesseError, LedgerError, Problem, repr_short
from largesse.serve.decisions import Read, check_id, check_keys, decide_alone, read_request, show_decided
from largesse.serve.json_errors import RequestError
from largesse.serve.ledger.ledger import Ledger
from largesse.serve.ledger.money import as_units
from largesse.serve.ledger.records import Decided
from largesse.serve.ledger.terms import show_time
from largesse.serve.ledger_context import Books
from largesse.serve.metrics import Metrics
from largesse.serve.policy_store import Watched
from largesse.version import __version__

SCRAPE = 2.0  # seconds that metrics wait for the ledger


class Service:
    """Decides by the current policy, and books decisions in a ledger, if there is one. Several threads may ask."""

    def __init__(self, watched: Watched, books: Books | None = None) -> None:
        self.watched, self.books = watched, books
        self.metrics = Metrics()
        self._price: float | None = None  # that decided last, where a ledger's price does

    @property
    def ledger(self) -> Ledger | None:
        """Where decisions are booked, if anywhere."""
        return None if self.books is None else self.books.ledger

    def warm_up(self) -> None:
        """Decide once for nobody in particular, so that the first customer does not wait for what is compiled."""
        served = self.watched.current
        nobody = [dict.fromkeys(served.opened.policy.model.encoder_.features)]
        with suppress(LargesseError):  # a customer's own costs cannot be missing
            served.opened.policy.mix(served.opened.policy.expect(served.prepare(nobody)))

    def read(self, asked: dict[str, Any]) -> Read:
        """Understand a request for decisions: who is asked for, and what the model expects of them."""
        return read_request(self.watched.current, self.books, asked)

    def answer(self, read: Read, decided: Decided | None = None) -> dict[str, Any]:
        """Answer a request: by the policy alone, or with what the ledger has decided."""
        answer = decide_alone(read) if decided is None else show_decided(read, decided)
        if not answer["repeated"]:
            self.metrics.count_decisions(one["level"] for one in answer["decisions"])
            self._price = None if decided is None else answer["price"]
        return answer

    def redeem(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Count what a customer redeemed of a promise."""
        check_keys(asked, ("request_id", "customer", "amount"))
        ledger = self._need_ledger()
        request = check_id(asked.get("request_id"), needed=True)
        customer = asked.get("customer")
        if isinstance(customer, bool) or not isinstance(customer, str | int):
            hint = "give the customer as in the decision"
            raise InputError("request", [Problem(f"the customer is {repr_short(customer)}", hint)])
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
            "price": float(served.opened.policy.price or 0.0) if self._price is None else self._price,
        }
        if self.ledger is not None:
            gauges |= _measure_budget(self.ledger)
        return self.metrics.write(gauges, served.version)

    def _need_ledger(self) -> Ledger:
        if self.ledger is None:
            hint = "start it with --ledger sqlite:///spring.db --total … --until …"
            raise RequestError(409, "this service has no ledger", hint)
        return self.ledger


def _measure_budget(ledger: Ledger) -> dict[str, float]:
    """Return where the budget stands as gauges. While the ledger does not answer, what else is counted must not wait."""
    try:
        standing = ledger.standing(patience=SCRAPE)
    except LedgerError:
        return {"ledger_up": 0.0}
    amounts = {"total": standing.terms.total}
    amounts |= {word: getattr(standing, word) for word in ("spent", "promised", "held", "room")}
    return {"ledger_up": 1.0} | {f"budget_{word}": as_units(amount) for word, amount in amounts.items()}
