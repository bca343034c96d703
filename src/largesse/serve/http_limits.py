"""HTTP protocol with limits on the number of connections, the time of a request and the size of its headers.

uvicorn's protocol waits for a first request, for headers and for bodies without end, and joins the pieces of a header as they come
(quadratic time). It also closes a connection whose client has sent all it has and closed its half (shutdown), without an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
from typing import Any, ClassVar, cast
from weakref import WeakSet

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

MAX_HEAD_BYTES = 1 << 16  # of address and headers
REQUEST_SECONDS = 15.0  # until a request has arrived …
BYTES_PER_SECOND = 1 << 14  # … and longer for a body that arrives at least this fast
SWEEP_SECONDS = 1.0
SOCKET_BACKLOG = 128  # also the number of connections that are accepted at a time
RESERVED_FILES = 5 * SOCKET_BACKLOG  # for accepted connections that are not counted yet, the policy and the ledger
MAX_CONNECTIONS = 8192


class LimitedProtocol(HttpToolsProtocol):  # type: ignore[misc]
    """HTTP connection that is closed if its request is late, its headers are too large, or too many are open."""

    swept: ClassVar[WeakSet[ServerState]] = WeakSet()  # servers whose timer runs
    deadline = math.inf  # of the request that is awaited
    unparsed = 0  # bytes since the last complete part of a request
    head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the timeout of a new connection; close the oldest waiting connection if there are too many."""
        super().connection_made(transport)
        self.deadline = self.loop.time() + REQUEST_SECONDS
        if self.server_state not in self.swept:
            self.swept.add(self.server_state)
            self._close_late_connections()
        if len(self.connections) > count_max_connections():
            waiting = [each for each in self._list_connections() if each.awaits_client and each is not self]
            late = min(waiting, key=lambda each: each.deadline, default=self)
            late.connections.discard(late)
            late.transport.abort()

    @property
    def awaits_client(self) -> bool:
        """True if the connection is waiting for data from the client."""
        return not self.pipeline and (self.cycle is None or self.cycle.response_complete or self.cycle.more_body)

    def _list_connections(self) -> list[LimitedProtocol]:
        return [cast(LimitedProtocol, each) for each in self.connections]

    def _close_late_connections(self) -> None:
        """Close all connections whose requests are late, repeatedly, with one timer for all connections."""
        now = self.loop.time()
        for each in self._list_connections():
            if each.deadline < now and each.awaits_client:
                each.transport.abort()
        self.loop.call_later(SWEEP_SECONDS, self._close_late_connections)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; refuse a request with too many header bytes."""
        if self.transport.is_closing():  # after a refusal
            return
        self.unparsed += len(data)
        super().data_received(data)
        if self.unparsed > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The headers are too large.")

    def eof_received(self) -> bool:
        """Keep a connection whose client has finished sending, until its requests are answered."""
        if self.awaits_client:
            return False
        self.cycle.keep_alive = False
        return True

    def on_message_begin(self) -> None:
        """Reset the count of header bytes at the start of a request."""
        self.unparsed = self.head_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the bytes of a header; refuse more than the maximum."""
        self.head_bytes += len(name) + len(value) + 4  # with ": " and the end of the line
        if self.head_bytes > MAX_HEAD_BYTES:
            raise ValueError("the headers are too large")  # the parser refuses the request
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Reset the count of unparsed bytes, and start to answer the request."""
        self.unparsed = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Extend the request's deadline by the time that the received body bytes allow."""
        self.unparsed = 0
        self.deadline += len(body) / BYTES_PER_SECOND
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Start the timeout of the connection's next request."""
        self.deadline = self.loop.time() + REQUEST_SECONDS
        super().on_response_complete()


def count_max_connections() -> int:
    """Return the number of connections that the process's file limit allows."""
    if sys.platform == "win32":
        return MAX_CONNECTIONS
    import resource

    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    unlimited: Any = resource.RLIM_INFINITY
    return MAX_CONNECTIONS if files == unlimited else min(max(files - RESERVED_FILES, files // 4), MAX_CONNECTIONS)


def raise_file_limit() -> None:
    """Raise the process's limit of open files to the number that the connections need."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + RESERVED_FILES
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
