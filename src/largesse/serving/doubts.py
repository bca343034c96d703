"""What whoever starts a service should know: levels that are not drawn, although the plan explores, or not given now."""

from __future__ import annotations

from largesse.errors import Problem
from largesse.pacing import Ledger, show_time
from largesse.runs import OpenedPolicy


def doubt_exploring(opened: OpenedPolicy) -> str | None:
    """Return a warning, if the plan explores for a purpose and the service cannot do so; None if all is well."""
    if not opened.explores_for or opened.policy.aimed is not None:
        return None
    got = f"the plan explores for {opened.explores_for}, but this service draws nothing: everyone gets the best level at the price"
    if opened.rules:
        return str(Problem(got, "a plan with rules explores among its own customers only: plan without them"))
    return str(Problem(got, "the plan was made by an earlier version: make it again with `largesse plan`"))


def doubt_period(ledger: Ledger) -> str | None:
    """Return a warning, if now is not in the ledger's period."""
    standing = ledger.standing()
    if standing.within:
        return None
    starts, ends = show_time(standing.terms.starts), show_time(standing.terms.ends)
    when = f"begins at {starts}: until then" if standing.now < standing.terms.starts else f"ended at {ends}:"
    return f"the ledger's period {when} everyone gets the cheapest level"
