"""The ledger of a service: opened as it is, or begun with a plan for its price."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from largesse.campaign import read_list
from largesse.errors import LedgerError, Problem, fail, join_some, refuse
from largesse.serve.ledger.ledger import Ledger, open_ledger
from largesse.serve.ledger.money import as_units
from largesse.serve.ledger.records import Chooser
from largesse.serve.ledger.terms import KEPT, Terms, make_terms
from largesse.serve.pacing.controller import PacePlan, Pacer, plan_pace
from largesse.serve.pacing.customers import make_population
from largesse.serve.policy_store import ServedPolicy, read_population

NOTICE_SECONDS = 3.0  # of waiting for the ledger, after which a message is logged

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LedgerSettings:
    """The address of a ledger, and what it is begun with if it does not exist."""

    address: str
    total: str | None = None
    until: str | None = None
    since: str | None = None
    customers: float | None = None  # expected in the whole period; None: as many as the plan's budget pays for
    valid_days: float | None = None
    late: str = "refuse"
    promises: str = KEPT
    most: tuple[float, ...] | None = None  # that each level may cost, where no list of costs says it

    def make_terms(self) -> Terms | None:
        """Return the terms, or None if neither total nor end is given."""
        if self.total is None and self.until is None:
            return None
        missing = [word for word, value in (("--total", self.total), ("--until", self.until)) if value is None]
        hint = "give both, or none for a ledger that is there"
        refuse("ledger", [Problem(f"{word} is not given", hint) for word in missing])
        return make_terms(
            self.total,
            self.until,
            starts=self.since,
            valid_days=self.valid_days,
            late=self.late,
            promises=self.promises,
        )

    @property
    def existing(self) -> LedgerSettings:
        """The same ledger without terms: it is opened, and never begun."""
        return replace(self, total=None, until=None)


@dataclass(frozen=True, eq=False)
class LedgerContext:
    """A ledger and the pacer that chooses levels for it."""

    ledger: Ledger
    chooser: Chooser
    most: tuple[float, ...] | None = None  # that each level may cost


def open_ledger_context(served: ServedPolicy, source: Path, settings: LedgerSettings) -> LedgerContext:
    """Open the ledger; if it does not exist, begin it with a plan for its price."""
    terms = settings.make_terms()
    notice = threading.Timer(NOTICE_SECONDS, logger.warning, ["waiting for the ledger, which does not answer yet"])
    notice.daemon = True
    notice.start()
    try:
        ledger = open_ledger(settings.address)
    except LedgerError as error:
        if terms is None or error.__cause__ is not None:  # it cannot be reached
            raise
        plan = _plan(served, source, settings, terms)
        named = {"levels": list(served.labels), "unit": served.unit}
        ledger = open_ledger(settings.address, terms, plan={**plan.as_dict(), **named})
    else:
        if terms is not None:  # they must be the ledger's
            ledger.close()
            ledger = open_ledger(settings.address, terms)
    finally:
        notice.cancel()
    _refuse_other_levels(ledger, served)
    return LedgerContext(ledger, Pacer(), settings.most)


def _refuse_other_levels(ledger: Ledger, served: ServedPolicy) -> None:
    """Refuse the ledger of another campaign: its decisions are about other levels."""
    held, labels = ledger.standing().plan.get("levels"), list(served.labels)
    if held is None or held == labels:
        return
    ledger.close()
    got = f"the ledger is of another campaign: its levels are {join_some(held)}, those of the policy are {join_some(labels)}"
    fail("serve", Problem(got, "give the ledger of this campaign, or begin another: --ledger, --total and --until"))


def require_max_costs(served: ServedPolicy, most: tuple[float, ...] | None) -> None:
    """Require a maximum cost for every level before the first request."""
    policy = served.policy
    customer = {name: [None] for name in policy.model.encoder_.features}
    if not policy.levels.cost_columns:
        make_population(policy, customer, most=most)


def _plan(served: ServedPolicy, source: Path, settings: LedgerSettings, terms: Terms) -> PacePlan:
    """Return the plan of the price, made for customers of the run."""
    policy, n_customers = served.policy, settings.customers
    population = read_population(source, policy, settings.most)
    if n_customers is None:
        if not served.budget:
            hint = "give --customers, the number expected in the whole period"
            fail("serve", Problem("nothing says how many customers to expect", hint))
        n_customers = max(as_units(terms.total) / served.budget, 1.0)
    return plan_pace(
        population, terms, n_customers, exploration_rate=policy.exploration_rate, exploration=policy.exploration
    )


def parse_ledger_options(options: Mapping[str, Any]) -> LedgerSettings | None:
    """Return the ledger settings of command-line options; None if they name no ledger."""
    given = dict(options)
    address = given.pop("ledger", None)
    if address is None:
        hint = "name the ledger, too: --ledger sqlite:///spring.db"
        refuse("serve", [Problem(f"--{word.replace('_', '-')} without --ledger", hint) for word in given])
        return None
    if "most" in given:
        given["most"] = read_list(given["most"], "--most")
    return LedgerSettings(address, **given)
