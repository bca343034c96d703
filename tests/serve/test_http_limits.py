"""A server closes late, endless and surplus connections, answers clients that have closed their half, and stops with an answer."""

import asyncio
import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from largesse.serve import AccessPolicy, AuthMiddleware, http_limits, make_error_handlers, open_listening_socket
from largesse.serve.server_process import MAX_LOG_RECORDS, _make_server_config, configure_logging

HEAD = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"


async def echo(request: Request) -> Response:
    """Answer with the body."""
    return Response(await request.body())


async def wait(_: Request) -> Response:
    """Never answer."""
    await asyncio.Event().wait()
    return Response()


class Running:
    """A server that runs in a thread."""

    def __init__(self) -> None:
        routes = [Route("/", echo, methods=["POST"]), Route("/wait", wait, methods=["POST"])]
        app = AuthMiddleware(Starlette(routes=routes, exception_handlers=make_error_handlers("", "")), AccessPolicy())
        self.bound = open_listening_socket(0, 0)
        self.address = self.bound.getsockname()
        config = _make_server_config(app)
        config.timeout_graceful_shutdown = 0
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([self.bound],), daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def send(self, *parts: bytes, close_half: bool = False) -> socket.socket:
        connection = socket.create_connection(self.address, timeout=20)
        for part in parts:
            connection.sendall(part)
        if close_half:
            connection.shutdown(socket.SHUT_WR)
        return connection


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """A server with tight limits."""
    monkeypatch.setattr(http_limits, "REQUEST_SECONDS", 0.4)
    monkeypatch.setattr(http_limits, "SWEEP_SECONDS", 0.05)
    monkeypatch.setattr(http_limits, "BYTES_PER_SECOND", 1000)
    monkeypatch.setattr(http_limits, "MAX_CONNECTIONS", 8)
    found = Running()
    yield found
    found.server.should_exit = True
    found.thread.join(20)
    found.bound.close()


def receive(connection: socket.socket) -> bytes:
    """Return all that comes until the connection is closed."""
    found = b""
    with connection, suppress(ConnectionResetError):
        while part := connection.recv(65536):
            found += part
    return found


def post(body: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join([HEAD + b"Content-Length: %d" % len(body), *headers, b"", body])


@pytest.mark.parametrize("parts", [[], [b"POST / HT"], [HEAD], [HEAD + b"Content-Length: 9\r\n\r\n", b"ab"]])
def test_a_request_that_is_late_is_cut_off(running: Running, parts: list[bytes]) -> None:
    assert receive(running.send(*parts)) == b""


def test_a_slow_body_is_read_as_long_as_it_arrives(running: Running) -> None:
    connection = running.send(HEAD + b"Content-Length: 2000\r\nConnection: close\r\n\r\n")
    for _ in range(10):
        time.sleep(0.08)
        connection.sendall(b"x" * 200)
    assert receive(connection).endswith(b"x" * 2000)


def test_idle_connections_make_room_for_new_ones(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_limits, "REQUEST_SECONDS", 60)
    idle = [running.send() for _ in range(30)]
    assert b"200 OK" in receive(running.send(post(b"here", b"Connection: close")))
    assert [receive(connection) for connection in idle[:20]] == [b""] * 20  # the oldest were closed
    for connection in idle[20:]:
        connection.close()


BIG = b"a" * (http_limits.MAX_HEAD_BYTES + 1)


@pytest.mark.parametrize(
    "head",
    [
        HEAD + b"X: " + BIG * 8,
        HEAD + BIG * 8,
        b"POST /" + BIG * 8,
        HEAD + b"X: 1\r\n" * 20_000 + b"\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: 1\r\n" * 20_000 + b"\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + BIG * 8,
    ],
    ids=["value", "name", "address", "many", "trailers", "chunk"],
)
def test_a_head_without_end_is_refused(running: Running, head: bytes) -> None:
    connection = running.send()
    with suppress(ConnectionError):  # it may be closed already
        for at in range(0, len(head), 1 << 14):
            connection.sendall(head[at : at + (1 << 14)])
    assert b"200 OK" not in receive(connection)


@pytest.mark.parametrize("complete", [True, False])
def test_a_client_that_has_closed_its_half_is_answered(running: Running, complete: bool) -> None:
    asked = post(b"a") + post(b"here") if complete else post(b"here")[:-1]
    assert receive(running.send(asked, close_half=True)).endswith(b"here") == complete


def test_a_request_that_outlasts_the_server_is_503(running: Running) -> None:
    connection = running.send(post(b"").replace(b"/", b"/wait", 1))
    time.sleep(0.2)
    running.server.should_exit = True
    head, _, body = receive(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503")
    assert b"retry-after" in head
    assert json.loads(body)["error"]["message"]


def test_messages_of_clients_do_not_fill_the_disk(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    log = logging.getLogger("asyncio")
    for k in range(10 * MAX_LOG_RECORDS):
        log.error("no more files (%d)", k)
    sys.stderr.flush()
    assert capsys.readouterr().err.count("no more files") == MAX_LOG_RECORDS
