"""Requests that wait for the ledger are booked together, and each gets its own answer."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import pytest

from largesse.errors import LedgerError, Problem
from largesse.serve import DecisionRequest, Ledger, LedgerDecisions
from largesse.serve.batching import MAX_BATCH_CUSTOMERS, LedgerBatcher
from largesse.serve.endpoints import THREADS, Service
from support.ledgers import Dearest, make_offers


class SlowLedger:
    """Answers the first request when it is told to; notes what came together."""

    def __init__(self) -> None:
        self.taken, self.go = threading.Event(), threading.Event()
        self.together: list[list[str]] = []

    def decide_together(self, asks: Sequence[DecisionRequest], _: Any) -> list[LedgerDecisions | LedgerError]:
        self.together.append([ask.request for ask in asks])
        self.taken.set()
        assert self.go.wait(10)
        if any(ask.request == "gone" for ask in asks):
            raise OSError("the database is gone")
        return [refusal(ask.request) if ask.request == "no" else decide(ask) for ask in asks]


def refusal(request: str) -> LedgerError:
    return LedgerError("ledger", [Problem(f"{request} is refused", "ask otherwise")])


def decide(ask: DecisionRequest) -> LedgerDecisions:
    none = np.zeros(len(ask.offers), dtype=np.int64)
    return LedgerDecisions(
        ask.request, ask.offers.customers, none, none, none, none, none, none, none, none, "v1", 0, None
    )


def make_ask(request: str, many: int = 1) -> DecisionRequest:
    return DecisionRequest(request, make_offers([f"c{k}" for k in range(many)]))


async def come(ledger: SlowLedger, batcher: LedgerBatcher, first: str, others: Sequence[DecisionRequest]) -> list[Any]:
    """Book a request, and others while the ledger is busy with it."""
    waiting = [asyncio.ensure_future(batcher.submit(make_ask(first)))]
    await asyncio.to_thread(ledger.taken.wait, 10)
    waiting += [asyncio.ensure_future(batcher.submit(ask)) for ask in others]
    await asyncio.sleep(0)
    ledger.go.set()
    return await asyncio.gather(*waiting, return_exceptions=True)


def run(first: str, others: Sequence[DecisionRequest]) -> tuple[list[Any], list[list[str]]]:
    """Return the answers, and what the ledger was asked together."""
    ledger = SlowLedger()
    batcher = LedgerBatcher(cast(Ledger, ledger), Dearest())
    found: list[Any] = []
    # A thread of its own: the browser of other tests keeps an event loop in this one.
    thread = threading.Thread(target=lambda: found.extend(asyncio.run(come(ledger, batcher, first, others))))
    thread.start()
    thread.join()
    batcher.stop()
    return found, ledger.together


def test_requests_that_wait_are_booked_together() -> None:
    found, together = run("a", [make_ask(name) for name in ("b", "no", "c")])
    assert together == [["a"], ["b", "no", "c"]]
    assert [one.request for one in found if isinstance(one, LedgerDecisions)] == ["a", "b", "c"]
    assert str(found[2]) == str(refusal("no"))


def test_large_requests_do_not_wait_for_each_other() -> None:
    _, together = run("a", [make_ask("b", MAX_BATCH_CUSTOMERS), make_ask("c")])
    assert together == [["a"], ["b"], ["c"]]


def test_a_ledger_that_is_gone_is_told_to_all_who_wait() -> None:
    found, together = run("a", [make_ask("gone"), make_ask("b")])
    assert together == [["a"], ["gone", "b"]]
    assert isinstance(found[0], LedgerDecisions)
    assert [type(one) for one in found[1:]] == [OSError, OSError]


def test_metrics_answer_while_all_others_wait_for_the_ledger(
    booked: tuple[Any, Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, service = booked
    monkeypatch.setattr("largesse.serve.endpoints.SCRAPE_SECONDS", 0.05)
    assert service.ledger is not None
    with ThreadPoolExecutor(THREADS + 2) as pool:
        with service.ledger._lock:
            waiting = [pool.submit(ask, "/v1/redeem", {"request_id": "r", "customer": "c"}) for _ in range(THREADS + 1)]
            told = pool.submit(ask, "/metrics").result(timeout=20).text
        assert "\nlargesse_ledger_up 0.0\n" in told
        assert {one.result().status_code for one in waiting} == {409}


def test_a_loop_that_is_closed_does_not_end_the_batches() -> None:
    ledger = SlowLedger()
    batcher = LedgerBatcher(cast(Ledger, ledger), Dearest())

    async def leave() -> None:
        waiting = asyncio.ensure_future(batcher.submit(make_ask("a")))
        await asyncio.to_thread(ledger.taken.wait, 10)
        waiting.cancel()

    async def follow() -> LedgerDecisions:
        return await asyncio.wait_for(batcher.submit(make_ask("b")), 10)

    with ThreadPoolExecutor(1) as apart:
        apart.submit(asyncio.run, leave()).result()
        ledger.go.set()
        assert apart.submit(asyncio.run, follow()).result().request == "b"
    batcher.stop()


def test_what_waits_is_booked_before_the_thread_ends() -> None:
    ledger = SlowLedger()
    batcher = LedgerBatcher(cast(Ledger, ledger), Dearest())

    async def leave() -> None:
        waiting = asyncio.ensure_future(batcher.submit(make_ask("a")))
        await asyncio.to_thread(ledger.taken.wait, 10)
        left = asyncio.ensure_future(batcher.submit(make_ask("b")))
        await asyncio.sleep(0)
        left.cancel()  # the client has hung up; the decision is kept all the same
        ledger.go.set()
        await waiting
        await asyncio.to_thread(batcher.stop)
        with pytest.raises(asyncio.CancelledError):
            await left

    thread = threading.Thread(target=asyncio.run, args=(leave(),))
    thread.start()
    thread.join()
    assert ledger.together == [["a"], ["b"]]
