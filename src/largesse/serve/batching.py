"""Booking requests in a ledger while others are answered.

A ledger takes one request at a time, and the disk takes its time to confirm it. Requests that come meanwhile wait here, and
are booked together: one transaction, one confirmation.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from largesse.serve.ledger.records import Ask, Decided
from largesse.serve.ledger_context import Books

TOGETHER = 1_000  # customers after which no more requests join a transaction


class Slip(NamedTuple):
    """A request, and who waits for its decisions."""

    ask: Ask
    decided: asyncio.Future[Decided]
    loop: asyncio.AbstractEventLoop


class Clerk:
    """Books requests in a thread of its own, which ends with `stop`."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._slips: queue.SimpleQueue[Slip | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="clerk", daemon=True)
        self._thread.start()

    async def book(self, ask: Ask) -> Decided:
        """Return the decisions on a request when the ledger has them; raise what the ledger refuses."""
        loop = asyncio.get_running_loop()
        slip = Slip(ask, loop.create_future(), loop)
        self._slips.put(slip)
        return await slip.decided

    def stop(self) -> None:
        """Book what waits, and end."""
        self._slips.put(None)
        self._thread.join()

    def _work(self) -> None:
        going = True
        while going:
            slips, going = self._take()
            if slips:
                self._book(slips)

    def _take(self) -> tuple[list[Slip], bool]:
        """Return the requests that wait, one at least, and whether there will be more."""
        slips: list[Slip] = []
        customers = 0
        while customers < TOGETHER:
            try:
                slip = self._slips.get(block=not slips)
            except queue.Empty:
                break
            if slip is None:
                return slips, False
            slips.append(slip)
            customers += len(slip.ask.offers)
        return slips, True

    def _book(self, slips: list[Slip]) -> None:
        found: Sequence[Decided | Exception]
        try:
            found = self._books.ledger.decide_together([slip.ask for slip in slips], self._books.chooser)
        except Exception as error:  # the ledger cannot be reached
            found = [error] * len(slips)
        for slip, one in zip(slips, found, strict=True):
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more, but others will
                slip.loop.call_soon_threadsafe(_hand_out, slip.decided, one)


def _hand_out(waiting: asyncio.Future[Decided], found: Decided | Exception) -> None:
    if waiting.done():  # nobody waits any more
        return
    if isinstance(found, Exception):
        waiting.set_exception(found)
    else:
        waiting.set_result(found)
