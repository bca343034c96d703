"""The service: decisions, redemptions and the budget over HTTP.

Without a ledger a decision is a function of the policy, the request's id and the customer: repeated, it is the same. With a
ledger it is kept there, and its costs fit into the budget, whichever process decides.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from largesse.errors import InputError, LargesseError, LedgerError, Problem, repr_short
from largesse.serve.batching import LedgerBatcher
from largesse.serve.decisions import check_id, check_keys, decide_alone, describe_decisions, parse_request
from largesse.serve.json_errors import RequestError, error_response, json_response, read_json, write_json
from largesse.serve.ledger.ledger import Ledger
from largesse.serve.ledger.money import as_units
from largesse.serve.ledger.terms import show_time
from largesse.serve.ledger_context import LedgerContext
from largesse.serve.metrics import Metrics
from largesse.serve.openapi import describe_api, render_docs
from largesse.serve.policy_store import PolicyStore
from largesse.version import __version__

THREADS = 4  # for requests that are not answered on the event loop
INLINE_BYTES = 16_000  # of a body that is decided on the event loop
SCRAPE_SECONDS = 2.0  # that metrics wait for the ledger
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
T = TypeVar("T")


class Service:
    """The handlers of a service, one coroutine for each address; `close` ends its threads and its ledger."""

    def __init__(self, store: PolicyStore, context: LedgerContext | None = None) -> None:
        self.store, self.context = store, context
        self.metrics = Metrics()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="decide")
        self._batcher = None if context is None else LedgerBatcher(context)
        self._last_price: float | None = None  # of the ledger

    @property
    def ledger(self) -> Ledger | None:
        """The ledger, if there is one."""
        return None if self.context is None else self.context.ledger

    def warm_up(self) -> None:
        """Decide for an empty customer, so that the first real one does not wait for the compiler."""
        served = self.store.current
        customer = [dict.fromkeys(served.policy.model.encoder_.features)]
        with suppress(LargesseError):  # a customer's own costs cannot be missing
            served.policy.mix(served.policy.expect(served.encode(customer)))

    def close(self) -> None:
        """Book all queued requests, then end the threads and the connection."""
        self.store.close()
        if self._batcher is not None:
            self._batcher.stop()
        self._pool.shutdown(wait=True)
        if self.ledger is not None:
            self.ledger.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def decide(self, request: Request) -> Response:
        """Give customers levels; small requests are computed on the event loop, large ones in a thread."""
        body = await request.body()
        run = _run_inline if len(body) <= INLINE_BYTES else self._run_in_thread

        async def answer() -> bytes:
            _require_json(request)
            parsed = await run(lambda: parse_request(self.store.current, self.context, read_json(body)))
            if self._batcher is None or parsed.for_ledger is None:
                return await run(lambda: self._write(decide_alone(parsed), from_ledger=False))
            decisions = await self._batcher.submit(parsed.for_ledger)
            return await run(lambda: self._write(describe_decisions(parsed, decisions), from_ledger=True))

        return await self._answer(request, answer())

    def _write(self, answer: dict[str, Any], *, from_ledger: bool) -> bytes:
        if not answer["repeated"]:
            self.metrics.count_decisions(decision["level"] for decision in answer["decisions"])
            self._last_price = answer["price"] if from_ledger else None
        return write_json(answer)

    async def redeem(self, request: Request) -> Response:
        """Count a redemption."""
        body = await request.body()

        def work() -> bytes:
            _require_json(request)
            content, ledger = read_json(body), self._require_ledger()
            check_keys(content, ("request_id", "customer", "amount"))
            name, customer = check_id(content.get("request_id"), required=True), content.get("customer")
            if isinstance(customer, bool) or not isinstance(customer, str | int):
                hint = "give the customer as in the decision"
                raise InputError("request", [Problem(f"the customer is {repr_short(customer)}", hint)])
            redemption = ledger.redeem(name, str(customer), content.get("amount"))
            answer = {"request_id": name, "customer": customer, "paid": as_units(redemption.paid)}
            return write_json({**answer, "late": redemption.late, "repeated": redemption.repeated})

        return await self._answer(request, self._run_in_thread(work))

    async def budget(self, request: Request) -> Response:
        """Return the standing of the budget."""

        def work() -> bytes:
            standing = self._require_ledger().standing()
            times = {"starts": standing.terms.starts, "ends": standing.terms.ends, "now": standing.now}
            texts = {name: show_time(micros).replace(" ", "T") for name, micros in times.items()}
            return write_json(standing.as_dict() | texts)

        return await self._answer(request, self._run_in_thread(work))

    async def health(self, _: Request) -> Response:
        """Return the version of the policy; the ledger is not asked."""
        served, problem = self.store.current, self.store.problem
        content: dict[str, Any] = {"status": "ok", "version": __version__, "policy": served.version}
        content |= {"price": served.policy.price, "ledger": self.ledger is not None}
        return json_response(content if problem is None else content | {"status": "outdated", "problem": problem})

    async def measure(self, request: Request) -> Response:
        """Return all metrics; not in the pool, whose threads may all wait for the ledger."""
        return await self._answer(request, asyncio.to_thread(self.write_metrics), PROMETHEUS)

    def write_metrics(self) -> bytes:
        """Return all metrics as Prometheus text."""
        served = self.store.current
        gauges = {
            "policy_reloads": float(self.store.reloads),
            "policy_outdated": float(self.store.problem is not None),
            "price": float(served.policy.price or 0.0) if self._last_price is None else self._last_price,
        }
        if self.ledger is not None:
            try:
                standing = self.ledger.standing(timeout=SCRAPE_SECONDS)
            except LedgerError:
                gauges["ledger_up"] = 0.0
            else:
                amounts = {word: getattr(standing, word) for word in ("spent", "promised", "held", "room")}
                amounts["total"] = standing.terms.total
                gauges |= {"ledger_up": 1.0, **{f"budget_{word}": as_units(micros) for word, micros in amounts.items()}}
        return self.metrics.write(gauges, served.version)

    async def openapi(self, _: Request) -> Response:
        """Return the description for programs."""
        return json_response(describe_api(self.store.current))

    async def docs(self, _: Request) -> Response:
        """Return the description for people."""
        headers = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return Response(render_docs(describe_api(self.store.current)), 200, headers, "text/html")

    async def _answer(self, request: Request, work: Awaitable[bytes], media_type: str = "application/json") -> Response:
        """Wait for an answer, turn an error into one, and count it."""
        start = time.perf_counter()
        try:
            response = Response(await work, media_type=media_type)
        except Exception as error:
            response = error_response(error)
        self.metrics.count_answer(request.url.path, response.status_code, time.perf_counter() - start)
        return response

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def _require_ledger(self) -> Ledger:
        if self.ledger is None:
            hint = "start it with --ledger sqlite:///spring.db --total … --until …"
            raise RequestError(409, "this service has no ledger", hint)
        return self.ledger


async def _run_inline(work: Callable[[], T]) -> T:
    return work()


def _require_json(request: Request) -> None:
    """Refuse other content types: a stranger's page cannot send this one without asking first."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestError(415, "the body is not declared as JSON", "send Content-Type: application/json")
