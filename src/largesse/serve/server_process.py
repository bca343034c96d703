"""Web server processes: a listening socket, and uvicorn with one or several workers."""

from __future__ import annotations

import errno
import logging
import math
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from largesse.errors import InputError, LargesseError, Problem, fail, import_optional_package, make_visible
from largesse.serve.access_control import AuthMiddleware
from largesse.serve.service_settings import (
    LOCAL_HOSTS,
    ServiceSettings,
    list_settings_warnings,
    list_startup_warnings,
    read_token,
)

DEFAULT_PORT = 8000
SHUTDOWN_SECONDS = 2  # for requests in progress
WORKER_RESTART_SECONDS = 5.0  # a worker that cannot start waits before it ends
WORKER_SILENCE_SECONDS = 20  # then it is killed: stopped within a transaction, it would hold up all others
MAX_LOG_RECORDS, LOG_SECONDS = 50, 10.0
BUSY_PORT_ERRORS = (errno.EADDRINUSE, errno.EACCES)  # used by another process, or forbidden for this user

logger = logging.getLogger("largesse.serve")


def require_packages(extra: str, *packages: str) -> None:
    """Raise an error if any of the packages that an optional extra installs is missing."""
    for package in packages:
        import_optional_package(package, extra, extra)


def open_listening_socket(port: int | None, default: int, host: str = LOCAL_HOSTS[0]) -> socket.socket:
    """Open a listening socket on `port`; if it is None, on the default port, or on any free port if busy."""
    if port is not None and not 0 <= port < 2**16:
        fail("port", Problem(f"the port is {port}", "give a number from 0 (any that is free) to 65535"))
    try:
        return _bind_socket(host, default if port is None else port)
    except (OSError, TypeError) as error:  # TypeError: a name that no name server could be asked for
        reason = getattr(error, "strerror", None) or "it is not the name of a machine"
        if getattr(error, "errno", None) not in BUSY_PORT_ERRORS:
            hint = "give a name or an IPv4 address of this machine, or 0.0.0.0 for all of them"
            raise InputError("host", [Problem(f"nothing can be served on {host!r}: {reason}", hint)]) from error
        if port is None:
            return _bind_socket(host, 0)
        hint = "give another --port, or none for one that is free"
        raise InputError("port", [Problem(f"port {port} cannot be used: {reason}", hint)]) from error


def _bind_socket(host: str, port: int) -> socket.socket:
    # With the protocol named, asyncio sets TCP_NODELAY; without, answers wait for more to send (Nagle), 40 ms each.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen()
    except BaseException:
        bound.close()
        raise
    return bound


def run_server(app: Any, bound: socket.socket, stopping: Callable[[], None] = lambda: None) -> None:
    """Run a web application on a socket until SIGINT, SIGTERM or SIGHUP.

    Then `stopping` is called, and requests in progress are finished.
    """
    import uvicorn

    class Server(uvicorn.Server):  # type: ignore[misc]
        def handle_exit(self, sig: int, frame: Any) -> None:
            stopping()
            super().handle_exit(sig, frame)

    server = Server(_make_server_config(app))
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        # uvicorn raises a signal again after it has stopped; these handlers ignore it.
        before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
        if hasattr(signal, "SIGHUP"):  # the terminal was closed
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        server.run(sockets=[bound])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _make_server_config(app: Any, **options: Any) -> Any:
    import uvicorn

    from largesse.serve.http_limits import SOCKET_BACKLOG, LimitedProtocol, raise_file_limit

    raise_file_limit()
    return uvicorn.Config(
        app,
        http=LimitedProtocol,
        backlog=SOCKET_BACKLOG,
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_worker_healthcheck=WORKER_SILENCE_SECONDS,
        **options,
    )


def open_service(settings: ServiceSettings) -> None:
    """Run the HTTP service until SIGINT or SIGTERM."""
    require_packages("serve", "starlette", "uvicorn", "httptools", "orjson", "prometheus_client")
    from largesse.serve.endpoints import load_service

    configure_logging(quiet=settings.quiet)
    settings.check()
    token = None if settings.token_file is None else read_token(settings.token_file)
    for warning in list_settings_warnings(settings):
        logger.warning(warning)
    with open_listening_socket(settings.port, DEFAULT_PORT, settings.host) as bound:
        host, port = bound.getsockname()[:2]
        if settings.port is None and port != DEFAULT_PORT:
            logger.warning("port %d is in use; this service is at port %d", DEFAULT_PORT, port)
        greeting = f"Decisions at http://{host}:{port}/v1/decide; see http://{host}:{port}/ for the format."
        with load_service(settings) as service:  # with several workers, too: errors are reported once
            for warning in list_startup_warnings(service.store.current, service.ledger):
                logger.warning(warning)
            if settings.workers == 1:
                app = _prepare_app(service, settings, token, port)
                logger.info(greeting)
                run_server(app, bound)
        if settings.workers > 1:
            if settings.ledger is not None:  # a worker that starts later must not begin a ledger with the whole budget
                settings = replace(settings, ledger=settings.ledger.without_terms)
            logger.info(greeting)
            run_workers(settings, token, bound)
        logger.info("The service has stopped.")


def _prepare_app(service: Any, settings: ServiceSettings, token: str | None, port: int) -> AuthMiddleware:
    from largesse.serve.endpoints import make_service_app

    service.warm_up()
    return AuthMiddleware(make_service_app(service), settings.make_access_policy(token, port))


def run_workers(settings: ServiceSettings, token: str | None, bound: socket.socket) -> None:
    """Run several worker processes of the service until SIGINT or SIGTERM; restart crashed workers."""
    from uvicorn.supervisors import Multiprocess

    # The token is passed on: its file may have changed when a worker is started again.
    factory = partial(make_worker_app, settings, token, bound.getsockname()[1])
    config = _make_server_config(factory, factory=True, workers=settings.workers)
    if not settings.quiet:
        logging.getLogger("uvicorn.error").setLevel(logging.INFO)  # it logs the death of a worker
    Multiprocess(config, [bound]).run()


def make_worker_app(settings: ServiceSettings, token: str | None, port: int) -> AuthMiddleware:
    """Make the web application of a worker process, which stops with its parent process."""
    from largesse.serve.endpoints import load_service

    configure_logging(quiet=settings.quiet)
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    try:
        return _prepare_app(load_service(settings), settings, token, port)
    except LargesseError as error:  # the policy or the ledger may be missing for a moment
        logger.warning(str(error))
        time.sleep(WORKER_RESTART_SECONDS)
        sys.exit(2)


def _stop_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


class _VisibleFormatter(logging.Formatter):
    """Log formatter that escapes control characters, because messages contain names from files."""

    def format(self, record: logging.LogRecord) -> str:
        return make_visible(super().format(record))


class _LogRateLimit(logging.Filter):
    """Log filter that drops messages beyond a number per time window, so that clients cannot fill the disk."""

    def __init__(self) -> None:
        super().__init__()
        self._start, self._count = -math.inf, 0

    def filter(self, record: logging.LogRecord) -> bool:
        if record.created - self._start > LOG_SECONDS:
            dropped, self._start, self._count = self._count - MAX_LOG_RECORDS, record.created, 0
            if dropped > 0:
                record.msg = f"{dropped:,} messages are not shown\n{record.msg}"
        self._count += 1
        return self._count <= MAX_LOG_RECORDS


def configure_logging(*, quiet: bool = False) -> None:
    """Configure logging: messages to standard output, warnings and errors to standard error."""
    messages, warnings = logging.StreamHandler(sys.stdout), logging.StreamHandler(sys.stderr)
    messages.addFilter(lambda record: record.levelno < logging.WARNING)
    messages.setFormatter(_VisibleFormatter("%(message)s"))
    warnings.addFilter(_LogRateLimit())
    warnings.setLevel(logging.WARNING)
    warnings.setFormatter(_VisibleFormatter("largesse: %(message)s"))
    for name in ("largesse", "uvicorn.error", "asyncio"):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [messages, warnings], False
        log.setLevel(logging.WARNING if quiet or name != "largesse" else logging.INFO)
    logging.raiseExceptions = False  # the service goes on if its output is closed
