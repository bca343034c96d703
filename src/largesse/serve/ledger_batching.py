"""Batching of concurrent decision requests into single ledger transactions.

A ledger runs one transaction at a time, and each waits for the disk (fsync). Requests that arrive meanwhile are queued and
booked together, in one transaction.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from largesse.serve.ledger.ledger import Ledger
from largesse.serve.ledger.ledger_records import DecisionRequest, LedgerDecisions, LevelChooser

MAX_BATCH_CUSTOMERS = 1_000


class PendingRequest(NamedTuple):
    """Queued decision request, with the future of its decisions."""

    request: DecisionRequest
    decisions: asyncio.Future[LedgerDecisions]
    loop: asyncio.AbstractEventLoop


class LedgerBatcher:
    """Background thread that decides queued requests in batches, each in one ledger transaction."""

    def __init__(self, ledger: Ledger, chooser: LevelChooser) -> None:
        self._ledger, self._chooser = ledger, chooser
        self._queue: queue.SimpleQueue[PendingRequest | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run_batches, name="ledger-batches", daemon=True)
        self._thread.start()

    async def submit(self, request: DecisionRequest) -> LedgerDecisions:
        """Queue a request, and return its decisions when the ledger has stored them."""
        loop = asyncio.get_running_loop()
        pending = PendingRequest(request, loop.create_future(), loop)
        self._queue.put(pending)
        return await pending.decisions

    def stop(self) -> None:
        """Process all queued requests, and stop the background thread."""
        self._queue.put(None)
        self._thread.join()

    def _run_batches(self) -> None:
        running = True
        while running:
            batch, running = self._take_batch()
            if batch:
                self._book_batch(batch)

    def _take_batch(self) -> tuple[list[PendingRequest], bool]:
        """Take the next batch of requests from the queue; return it, and False if it is the last batch."""
        batch: list[PendingRequest] = []
        n_customers = 0
        while n_customers < MAX_BATCH_CUSTOMERS:
            try:
                pending = self._queue.get(block=not batch)
            except queue.Empty:
                break
            if pending is None:
                return batch, False
            batch.append(pending)
            n_customers += len(pending.request.offers)
        return batch, True

    def _book_batch(self, batch: list[PendingRequest]) -> None:
        results: Sequence[LedgerDecisions | Exception]
        try:
            requests = [pending.request for pending in batch]
            results = self._ledger.decide_together(requests, self._chooser)
        except Exception as error:  # the ledger cannot be reached
            results = [error] * len(batch)
        for pending, result in zip(batch, results, strict=True):
            with suppress(RuntimeError):  # this loop is closed; other requests may still wait
                pending.loop.call_soon_threadsafe(_resolve_future, pending.decisions, result)


def _resolve_future(future: asyncio.Future[LedgerDecisions], result: LedgerDecisions | Exception) -> None:
    if future.done():  # the client has disconnected
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
