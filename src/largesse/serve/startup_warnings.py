"""What whoever starts a service should know: a token that others may read, levels that are not drawn or not given now."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

from largesse.errors import Problem
from largesse.serve.ledger.ledger import Ledger
from largesse.serve.ledger.terms import show_time
from largesse.serve.opened import OpenedPolicy


def doubt_exploring(opened: OpenedPolicy, ledger: Ledger | None = None) -> str | None:
    """Return a warning, if the plan explores for a purpose and the service cannot do so; None if all is well."""
    if not opened.explores_for:
        return None
    got = f"the plan explores for {opened.explores_for}, but this service draws nothing: everyone gets the best level at the price"
    if opened.policy.exploration is None and opened.rules:
        return str(Problem(got, "a plan with rules explores among its own customers only: plan without them"))
    if opened.policy.exploration is None:
        return str(Problem(got, "the plan was made by an earlier version: make it again with `largesse plan`"))
    if ledger is not None and ledger.standing().plan.get("exploration") is None:
        hint = (
            "the ledger was begun before the plan explored, and keeps to that: begin another one, with another --ledger"
        )
        return str(Problem(got, hint))
    return None


def doubt_period(ledger: Ledger) -> str | None:
    """Return a warning, if now is not in the ledger's period."""
    standing = ledger.standing()
    if standing.within:
        return None
    starts, ends = show_time(standing.terms.starts), show_time(standing.terms.ends)
    when = f"begins at {starts}: until then" if standing.now < standing.terms.starts else f"ended at {ends}:"
    return f"the ledger's period {when} everyone gets the cheapest level"


def doubt_token_file(path: Path) -> str | None:
    """Return a warning, if others on this machine may read or change the token; None where there is no telling."""
    mode = path.stat().st_mode
    if sys.platform == "win32" or not mode & (stat.S_IRWXG | stat.S_IRWXO):
        return None
    what = "change" if mode & (stat.S_IWGRP | stat.S_IWOTH) else "read"
    return str(Problem(f"others on this machine may {what} {path}", f"keep the token to yourself: chmod 600 {path}"))
