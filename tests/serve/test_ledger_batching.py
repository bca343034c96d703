"""Requests that wait for the ledger are booked together, and each gets its own answer."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import pytest

from largesse.errors import LedgerError, Problem
from largesse.serve import DecisionRequest, Ledger, LedgerDecisions
from largesse.serve.endpoints import N_THREADS, Service
from largesse.serve.ledger_batching import MAX_BATCH_CUSTOMERS, LedgerBatcher
from support.ledgers import Dearest, make_offers


class SlowLedger:
    """Answers when `go` is set; notes the requests of each transaction."""

    def __init__(self) -> None:
        self.taken, self.go = threading.Event(), threading.Event()
        self.together: list[list[str]] = []

    def decide_together(self, requests: Sequence[DecisionRequest], _: Any) -> list[LedgerDecisions | LedgerError]:
        names = [request.request for request in requests]
        self.together.append(names)
        self.taken.set()
        assert self.go.wait(10)
        if "gone" in names:
            raise OSError("the database is gone")
        return [refusal(request.request) if request.request == "no" else decide(request) for request in requests]


def refusal(request: str) -> LedgerError:
    return LedgerError("ledger", [Problem(f"{request} is refused", "ask otherwise")])


def decide(request: DecisionRequest) -> LedgerDecisions:
    zeros = [np.zeros(len(request.offers), dtype=np.int64)] * 8
    return LedgerDecisions(request.request, request.offers.customers, *zeros, "v1", 0, None)  # type: ignore[call-arg]


def make_request(request: str, n_customers: int = 1) -> DecisionRequest:
    return DecisionRequest(request, make_offers([f"c{k}" for k in range(n_customers)]))


@pytest.fixture
def ledger() -> SlowLedger:
    return SlowLedger()


@pytest.fixture
def batcher(ledger: SlowLedger) -> Iterator[LedgerBatcher]:
    batcher = LedgerBatcher(cast(Ledger, ledger), Dearest())
    yield batcher
    batcher.stop()


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    """Run a coroutine in a thread of its own: the browser of other tests keeps an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work()).result()  # type: ignore[arg-type]


async def start(ledger: SlowLedger, batcher: LedgerBatcher, *requests: DecisionRequest) -> list[asyncio.Future[Any]]:
    """Submit a request, and others while the ledger is busy with it."""
    futures = [asyncio.ensure_future(batcher.submit(make_request("a")))]
    await asyncio.to_thread(ledger.taken.wait, 10)
    futures += [asyncio.ensure_future(batcher.submit(request)) for request in requests]
    await asyncio.sleep(0)
    return futures


@pytest.mark.parametrize(
    ("sizes", "together", "results"),
    [
        ({"b": 1, "no": 1, "c": 1}, [["a"], ["b", "no", "c"]], "a b LedgerError c"),
        ({"b": MAX_BATCH_CUSTOMERS, "c": 1}, [["a"], ["b"], ["c"]], "a b c"),  # large requests do not wait
        ({"gone": 1, "b": 1}, [["a"], ["gone", "b"]], "a OSError OSError"),  # all who wait get the error
    ],
)
def test_requests_that_wait_are_booked_together(
    ledger: SlowLedger, batcher: LedgerBatcher, sizes: dict[str, int], together: list[list[str]], results: str
) -> None:
    async def work() -> list[Any]:
        futures = await start(ledger, batcher, *(make_request(name, size) for name, size in sizes.items()))
        ledger.go.set()
        return await asyncio.gather(*futures, return_exceptions=True)

    found = [result.request if isinstance(result, LedgerDecisions) else type(result).__name__ for result in run(work)]
    assert (ledger.together, " ".join(found)) == (together, results)


def test_a_loop_that_is_closed_does_not_end_the_batches(ledger: SlowLedger, batcher: LedgerBatcher) -> None:
    async def leave() -> None:
        (future,) = await start(ledger, batcher)
        future.cancel()

    run(leave)
    ledger.go.set()
    result = run(lambda: asyncio.wait_for(batcher.submit(make_request("b")), 10))
    assert result.request == "b"


def test_queued_requests_are_booked_before_the_thread_ends(ledger: SlowLedger) -> None:
    batcher = LedgerBatcher(cast(Ledger, ledger), Dearest())

    async def work() -> None:
        waiting, left = await start(ledger, batcher, make_request("b"))
        left.cancel()  # the client has disconnected; the decision is kept all the same
        ledger.go.set()
        await waiting
        await asyncio.to_thread(batcher.stop)
        with pytest.raises(asyncio.CancelledError):
            await left

    run(work)
    assert ledger.together == [["a"], ["b"]]


def test_metrics_answer_while_all_threads_wait_for_the_ledger(
    booked: tuple[Any, Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, service = booked
    monkeypatch.setattr("largesse.serve.endpoints.METRICS_TIMEOUT_SECONDS", 0.05)
    assert service.ledger is not None
    with ThreadPoolExecutor(N_THREADS + 2) as pool:
        with service.ledger._lock:
            waiting = [
                pool.submit(ask, "/v1/redeem", {"request_id": "r", "customer": "c"}) for _ in range(N_THREADS + 1)
            ]
            metrics = pool.submit(ask, "/metrics").result(timeout=20).text
        assert "\nlargesse_ledger_up 0.0\n" in metrics
        assert {answer.result().status_code for answer in waiting} == {409}
