"""A port of this machine, and a server on it that stops when it is asked to."""

from __future__ import annotations

import errno
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from largesse.errors import InputError, Problem, fail, require_part

HERE = "127.0.0.1"
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
GRACE = 2  # seconds that answers under way have when the server stops
BACKLOG = 128
TAKEN = (errno.EADDRINUSE, errno.EACCES)  # a port that is in use, or not for this user


def check_parts(subject: str, *packages: str) -> None:
    """Refuse to go on without packages that are an extra of ours, named as the subject."""
    for package in packages:
        require_part(package, subject, subject)


def listen(port: int | None, usual: int, host: str = HERE) -> socket.socket:
    """Return a socket that listens on a port of this machine: the one that is asked for, the usual one, or any that is free."""
    if port is not None and not 0 <= port < 2**16:
        fail("port", Problem(f"the port is {port}", "give a number from 0 (any that is free) to 65535"))
    try:
        return _bind(host, usual if port is None else port)
    except (OSError, TypeError) as error:  # TypeError: a name that no name server could be asked for
        reason = getattr(error, "strerror", None) or "it is no name of a machine"
        if getattr(error, "errno", None) not in TAKEN:
            hint = "give a name or an IPv4 address of this machine, or 0.0.0.0 for all of them"
            raise InputError("host", [Problem(f"nothing can be served on {host!r}: {reason}", hint)]) from error
        if port is None:
            return _bind(host, 0)
        hint = "give another --port, or none for one that is free"
        raise InputError("port", [Problem(f"port {port} cannot be used: {reason}", hint)]) from error


def _bind(host: str, port: int) -> socket.socket:
    # The protocol is named: without it, answers wait for more to send (Nagle), 40 ms each.
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(BACKLOG)
    except BaseException:
        found.close()
        raise
    return found


def serve(
    app: Any, where: socket.socket, started: Callable[[], None], stopping: Callable[[], None], http: str = "h11"
) -> None:
    """Answer on a socket until SIGINT, SIGTERM or SIGHUP comes; then `stopping` is called, and answers under way may end.

    `http` is what reads requests: h11, or httptools, which is faster.
    """
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Stop on a signal, and be done with it: uvicorn itself would raise it once more."""
            if threading.current_thread() is not threading.main_thread():
                yield
                return
            before = {number: signal.signal(number, self.handle_exit) for number in SIGNALS}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

        def handle_exit(self, sig: int, frame: Any) -> None:
            stopping()
            super().handle_exit(sig, frame)

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                started()

    config = uvicorn.Config(
        app,
        http=http,
        ws="none",
        loop="asyncio",
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=5,
    )
    Server(config).run(sockets=[where])
