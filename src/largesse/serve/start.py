"""Start a service: check what it needs, find a port, and answer until it is stopped, in one process or in several."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from socket import socket

from largesse.errors import Problem, make_visible, refuse
from largesse.serve.ledger.money import read_money
from largesse.serve.server import check_parts, listen
from largesse.serve.settings import HERE, Settings, answer, open_parts, read_token, warn_of_doubts
from largesse.serve.startup_warnings import doubt_token_file
from largesse.serve.telling import hush, say, warn
from largesse.serve.workers import supervise

PORT = 8000
MOST_WORKERS = 64


def open_service(settings: Settings) -> None:
    """Answer until SIGINT or SIGTERM comes."""
    check_parts("serve", "starlette", "uvicorn", "httptools", "orjson")
    problems = []
    if not 1 <= settings.workers <= MOST_WORKERS:
        problems.append(Problem(f"{settings.workers} workers", f"give a number from 1 to {MOST_WORKERS}"))
    if settings.token_file is None and settings.host not in HERE:
        hint = "give --token-file; without a token only this machine itself is answered: --host 127.0.0.1"
        problems.append(Problem(f"nothing is served on {settings.host} without a token", hint))
    refuse("serve", problems)
    token = None if settings.token_file is None else read_token(settings.token_file)
    doubt = None if settings.token_file is None else doubt_token_file(settings.token_file)
    if doubt is not None:
        warn(doubt)
    total = None if settings.ledger is None else settings.ledger.total
    if total is not None and read_money(total, "the total", up=False) == 0:
        warn("the total is 0: everyone gets the cheapest level")
    tell = hush if settings.quiet else say
    with listen(settings.port, PORT, settings.host) as where:
        if settings.port is None and where.getsockname()[1] != PORT:
            warn(f"port {PORT} is in use; this service is at port {where.getsockname()[1]}")
        if settings.workers == 1:
            answer(settings, token, where, lambda: tell(_greeting(where)))
        else:
            with ExitStack() as stack:  # what is wrong is said once, by this process
                warn_of_doubts(*open_parts(settings, stack))
            if settings.ledger is not None:  # a worker that starts later must not spend the budget once more
                settings = replace(settings, ledger=settings.ledger.begun)
            supervise(settings, token, where, lambda: tell(_greeting(where)))
        tell("The service has stopped.")


def _greeting(where: socket) -> str:
    host, port = where.getsockname()[:2]
    return make_visible(f"Decisions at http://{host}:{port}/v1/decide; http://{host}:{port}/ says what to send.")
