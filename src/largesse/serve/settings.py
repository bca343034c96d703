"""Answering on a socket, in this process: what is served, to whom, and with which ledger."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from socket import socket

from largesse.errors import InputError, Problem, fail, join_some
from largesse.serve.auth import Door, Guard
from largesse.serve.ledger_context import Books, LedgerSettings, check_most, open_books
from largesse.serve.policy_store import Served, Watched
from largesse.serve.server import serve
from largesse.serve.startup_warnings import doubt_exploring, doubt_period
from largesse.serve.telling import hush, say, warn

HERE = ("127.0.0.1", "localhost")
LEAST = 16  # letters of a token
TOLD = ("/", "/docs", "/openapi.json")  # what to send; a browser cannot bring a token along


@dataclass(frozen=True)
class Settings:
    """How to serve a policy.

    Parameters
    ----------
    source
        A run folder, or a policy file.
    host, port
        Where to listen. Elsewhere than on this machine itself, a token is needed.
    token_file
        A file with the token that requests must bring along.
    ledger
        Where decisions are booked, if anywhere.
    workers
        How many processes decide.
    without_rules
        Serve a policy although its plan has rules besides the budget, which a price cannot keep.
    quiet
        Say nothing but warnings and errors.
    """

    source: Path
    host: str = HERE[0]
    port: int | None = None
    token_file: Path | None = None
    ledger: LedgerSettings | None = None
    workers: int = 1
    without_rules: bool = False
    quiet: bool = False


def answer(settings: Settings, token: str | None, where: socket, started: Callable[[], None]) -> None:
    """Answer on a socket, in this process."""
    from largesse.serve.app import make_app
    from largesse.serve.service import Service

    with ExitStack() as stack:
        watched, books = open_parts(settings, stack)
        if settings.workers == 1:  # several processes would say it several times
            warn_of_doubts(watched, books)
        service = Service(watched, books)
        service.warm_up()
        watched.keep_up()
        app = Guard(make_app(service), make_door(token, settings.host, where.getsockname()[1]))
        serve(app, where, started, lambda: None, "httptools")


def open_parts(settings: Settings, stack: ExitStack) -> tuple[Watched, Books | None]:
    """Load the policy and open the ledger, for as long as the stack lasts."""
    first: list[Served] = []

    def accept(served: Served) -> None:
        """Refuse rules that a price cannot keep, and levels that a ledger cannot count or did not count before."""
        rules = served.opened.rules
        if rules and not settings.without_rules:
            hint = "plan without them; or serve without them all the same: --without-rules"
            fail("serve", Problem(f"a served policy cannot keep the plan's rules: {join_some(rules)}", hint))
        if settings.ledger is None:
            return
        if first and served.labels != first[0].labels:
            hint = "stop the service, and start it with a new ledger"
            fail("serve", Problem("the new policy has other levels than the ledger's decisions", hint))
        check_most(served.opened, settings.ledger.most)

    watched = Watched(settings.source, accept, hush if settings.quiet else say, warn)
    accept(watched.current)
    first.append(watched.current)
    if settings.ledger is None:
        return watched, None
    books = open_books(watched.current.opened, settings.source, settings.ledger)
    stack.callback(books.ledger.close)
    return watched, books


def warn_of_doubts(watched: Watched, books: Books | None) -> None:
    """Tell whoever starts a service what it does not do."""
    ledger = None if books is None else books.ledger
    for doubt in (doubt_exploring(watched.current.opened, ledger), None if ledger is None else doubt_period(ledger)):
        if doubt is not None:
            warn(doubt)


def make_door(token: str | None, host: str, port: int) -> Door:
    """Return what a service lets in. On this machine itself, only its own names count: pages elsewhere have others."""
    hosts = frozenset(f"{name}:{port}" for name in HERE) if host in HERE else None
    hint = "send Authorization: Bearer TOKEN, with the token of --token-file"
    told = TOLD if hosts is not None else ()
    return Door(token, hosts, open_paths=frozenset({"/healthz", *told}), hint=hint)


def read_token(path: Path) -> str:
    """Return the token that a file holds; refuse one that could be guessed."""
    hint = f"write one line of {LEAST} or more letters and digits: (umask 077; openssl rand -hex 32 > {path})"
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InputError("serve", [Problem(f"{path} cannot be read: {reason}", hint)]) from error
    if len(token) < LEAST or not token.isascii() or not token.isprintable() or " " in token:
        fail("serve", Problem(f"{path} holds no token", hint))
    return token
