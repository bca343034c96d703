"""The settings of a service, and warnings about them."""

from __future__ import annotations

import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from largesse.errors import InputError, Problem, fail, refuse
from largesse.serve.auth import AccessPolicy
from largesse.serve.ledger.ledger import Ledger
from largesse.serve.ledger.money import read_money
from largesse.serve.ledger.terms import show_time
from largesse.serve.ledger_context import LedgerSettings
from largesse.serve.policy_store import ServedPolicy

LOCAL_HOSTS = ("127.0.0.1", "localhost")
MIN_TOKEN_LENGTH = 16
MAX_WORKERS = 64
DOCS_PATHS = ("/", "/docs", "/openapi.json")  # open on this machine: a browser cannot send a bearer token


@dataclass(frozen=True)
class Settings:
    """How to serve a policy.

    Parameters
    ----------
    source
        A run folder, or a policy file.
    host, port
        Where to listen. Beyond this machine, a token is required.
    token_file
        A file with the token that requests must bring.
    ledger
        The ledger that keeps the budget, if any.
    workers
        The number of processes.
    without_rules
        Serve a policy although its plan has rules besides the budget, which a price cannot keep.
    quiet
        Log nothing but warnings and errors.
    """

    source: Path
    host: str = LOCAL_HOSTS[0]
    port: int | None = None
    token_file: Path | None = None
    ledger: LedgerSettings | None = None
    workers: int = 1
    without_rules: bool = False
    quiet: bool = False

    def check(self) -> None:
        """Refuse settings that cannot be served."""
        problems = []
        if not 1 <= self.workers <= MAX_WORKERS:
            problems.append(Problem(f"{self.workers} workers", f"give a number from 1 to {MAX_WORKERS}"))
        if self.token_file is None and self.host not in LOCAL_HOSTS:
            hint = "give --token-file; without a token only this machine itself is answered: --host 127.0.0.1"
            problems.append(Problem(f"nothing is served on {self.host} without a token", hint))
        refuse("serve", problems)

    def access(self, token: str | None, port: int) -> AccessPolicy:
        """Return the access policy; on this machine, only its own names are allowed as hosts."""
        local = self.host in LOCAL_HOSTS
        return AccessPolicy(
            token,
            frozenset(f"{name}:{port}" for name in LOCAL_HOSTS) if local else None,
            open_paths=frozenset({"/healthz", *(DOCS_PATHS if local else ())}),
            hint="send Authorization: Bearer TOKEN, with the token of --token-file",
        )


def read_token(path: Path) -> str:
    """Return the token of a file; refuse one that could be guessed."""
    hint = (
        f"write one line of {MIN_TOKEN_LENGTH} or more letters and digits: (umask 077; openssl rand -hex 32 > {path})"
    )
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InputError("serve", [Problem(f"{path} cannot be read: {reason}", hint)]) from error
    if len(token) < MIN_TOKEN_LENGTH or not token.isascii() or not token.isprintable() or " " in token:
        fail("serve", Problem(f"{path} holds no valid token", hint))
    return token


def settings_warnings(settings: Settings) -> list[str]:
    """Return warnings about a token file that others may read, and a total of zero."""
    warnings = []
    path, total = settings.token_file, None if settings.ledger is None else settings.ledger.total
    if path is not None and sys.platform != "win32":
        mode = path.stat().st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            what = "change" if mode & (stat.S_IWGRP | stat.S_IWOTH) else "read"
            hint = f"keep the token to yourself: chmod 600 {path}"
            warnings.append(str(Problem(f"others on this machine may {what} {path}", hint)))
    if total is not None and read_money(total, "the total", up=False) == 0:
        warnings.append("the total is 0: everyone gets the cheapest level")
    return warnings


def startup_warnings(served: ServedPolicy, ledger: Ledger | None = None) -> list[str]:
    """Return warnings about exploration that the service cannot do, and a ledger whose period is not now."""
    warnings = []
    hint = ""
    standing = None if ledger is None else ledger.standing()
    if served.explores_for and served.policy.exploration is None and served.rules:
        hint = "a plan with rules explores among its own customers only: plan without them"
    elif served.explores_for and served.policy.exploration is None:
        hint = "the plan was made by an earlier version: make it again with `largesse plan`"
    elif served.explores_for and standing is not None and standing.plan.get("exploration") is None:
        hint = (
            "the ledger was begun before the plan explored, and keeps to that: begin another one, with another --ledger"
        )
    if hint:
        got = f"the plan explores for {served.explores_for}, but this service draws nothing: everyone gets the best level at the price"
        warnings.append(str(Problem(got, hint)))
    if standing is not None and not standing.within:
        starts, ends = show_time(standing.terms.starts), show_time(standing.terms.ends)
        when = f"begins at {starts}: until then" if standing.now < standing.terms.starts else f"ended at {ends}:"
        warnings.append(f"the ledger's period {when} everyone gets the cheapest level")
    return warnings
