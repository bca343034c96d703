"""Settings of the HTTP service and its ledger, and warnings about these settings."""

from __future__ import annotations

import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from largesse.campaign import parse_number_list
from largesse.errors import InputError, Problem, fail, refuse
from largesse.serve.access_control import AccessPolicy
from largesse.serve.ledger.amounts_and_times import format_time, read_money
from largesse.serve.ledger.ledger import Ledger
from largesse.serve.ledger.ledger_records import KEPT_PROMISES, LedgerTerms, make_terms
from largesse.serve.served_policy import ServedPolicy

LOCAL_HOSTS = ("127.0.0.1", "localhost")
MIN_TOKEN_LENGTH = 16
MAX_WORKERS = 64
DOCS_PATHS = ("/", "/docs", "/openapi.json")  # open on this machine: a browser cannot send a bearer token


@dataclass(frozen=True)
class LedgerSettings:
    """Settings of a service's ledger: its address, and the terms for a new ledger."""

    address: str
    total: str | None = None
    until: str | None = None
    since: str | None = None
    customers: float | None = None  # expected in the whole period; None: the total divided by the plan's budget
    valid_days: float | None = None
    late: str = "refuse"
    promises: str = KEPT_PROMISES
    max_costs: tuple[float, ...] | None = None  # of each level, if they do not follow from its costs

    def make_terms(self) -> LedgerTerms | None:
        """Make the terms of a new ledger; None if neither total nor end is given."""
        if self.total is None and self.until is None:
            return None
        missing = [option for option, value in (("--total", self.total), ("--until", self.until)) if value is None]
        hint = "give both, or none for a ledger that is there"
        refuse("ledger", [Problem(f"{option} is not given", hint) for option in missing])
        promise = {"valid_days": self.valid_days, "late": self.late, "promises": self.promises}
        return make_terms(self.total, self.until, starts=self.since, **promise)  # type: ignore[arg-type]

    @property
    def without_terms(self) -> LedgerSettings:
        """The same settings without terms, to open an existing ledger only."""
        return replace(self, total=None, until=None)


def parse_ledger_options(options: Mapping[str, Any]) -> LedgerSettings | None:
    """Convert command-line options to ledger settings; None if no ledger is named."""
    settings = dict(options)
    address = settings.pop("ledger", None)
    if address is None:
        hint = "name the ledger, too: --ledger sqlite:///spring.db"
        refuse("serve", [Problem(f"--{name.replace('_', '-')} without --ledger", hint) for name in settings])
        return None
    if "most" in settings:
        settings["max_costs"] = parse_number_list(settings.pop("most"), "--most")
    return LedgerSettings(address, **settings)


@dataclass(frozen=True)
class ServiceSettings:
    """Settings of the HTTP service: policy, address, token, ledger and workers.

    Parameters
    ----------
    source
        A run folder, or a policy file.
    host, port
        The address to listen on. Beyond this machine, a token is required.
    token_file
        A file with the token that requests must carry.
    ledger
        The ledger that keeps the budget, if any.
    workers
        The number of processes.
    without_rules
        Serve a policy although its plan has rules besides the budget, which a price cannot keep.
    quiet
        Log only warnings and errors.
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
        """Validate the number of workers, and require a token for a public address."""
        problems = []
        if not 1 <= self.workers <= MAX_WORKERS:
            problems.append(Problem(f"{self.workers} workers", f"give a number from 1 to {MAX_WORKERS}"))
        if self.token_file is None and self.host not in LOCAL_HOSTS:
            hint = "give --token-file; without a token only this machine itself is answered: --host 127.0.0.1"
            problems.append(Problem(f"nothing is served on {self.host} without a token", hint))
        refuse("serve", problems)

    def make_access_policy(self, token: str | None, port: int) -> AccessPolicy:
        """Make the access policy of the service; a local service allows only local host names."""
        local = self.host in LOCAL_HOSTS
        return AccessPolicy(
            token,
            frozenset(f"{name}:{port}" for name in LOCAL_HOSTS) if local else None,
            open_paths=frozenset({"/healthz", *(DOCS_PATHS if local else ())}),
            hint="send Authorization: Bearer TOKEN, with the token of --token-file",
        )


def read_token(path: Path) -> str:
    """Read the access token from a file; refuse a token that could be guessed."""
    length = f"{MIN_TOKEN_LENGTH} or more letters and digits"
    hint = f"write one line of {length}: (umask 077; openssl rand -hex 32 > {path})"
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InputError("serve", [Problem(f"{path} cannot be read: {reason}", hint)]) from error
    if len(token) < MIN_TOKEN_LENGTH or not token.isascii() or not token.isprintable() or " " in token:
        fail("serve", Problem(f"{path} holds no valid token", hint))
    return token


def list_settings_warnings(settings: ServiceSettings) -> list[str]:
    """Return warnings about a token file that others can read, and about a total budget of zero."""
    warnings = []
    path, total = settings.token_file, None if settings.ledger is None else settings.ledger.total
    if path is not None and sys.platform != "win32":
        mode = path.stat().st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            verb = "change" if mode & (stat.S_IWGRP | stat.S_IWOTH) else "read"
            hint = f"keep the token to yourself: chmod 600 {path}"
            warnings.append(str(Problem(f"others on this machine may {verb} {path}", hint)))
    if total is not None and read_money(total, "the total", up=False) == 0:
        warnings.append("the total is 0: everyone gets the cheapest level")
    return warnings


def list_startup_warnings(served: ServedPolicy, ledger: Ledger | None = None) -> list[str]:
    """Return warnings about planned exploration that does not take place, and a ledger outside its period."""
    warnings, hint = [], ""
    standing = None if ledger is None else ledger.standing()
    if served.explores_for and served.policy.exploration is None:
        hint = "the plan was made by an earlier version: make it again with `largesse plan`"
        if served.rules:
            hint = "a plan with rules explores among its own customers only: plan without them"
    elif served.explores_for and standing is not None and standing.plan.get("exploration") is None:
        hint = "the ledger was begun before the plan explored: begin another one, with another --ledger"
    if hint:
        fixed = "this service does not explore: everyone gets the best level at the price"
        warnings.append(str(Problem(f"the plan explores for {served.explores_for}, but {fixed}", hint)))
    if standing is not None and not standing.in_period:
        starts, ends = format_time(standing.terms.starts), format_time(standing.terms.ends)
        when = f"begins at {starts}: until then" if standing.now < standing.terms.starts else f"ended at {ends}:"
        warnings.append(f"the ledger's period {when} everyone gets the cheapest level")
    return warnings
