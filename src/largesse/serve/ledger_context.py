"""The ledger of a service: opened as it is, or begun with a plan for its price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from largesse.campaign import read_list
from largesse.errors import LedgerError, Problem, fail, join_some, refuse
from largesse.serve.ledger.ledger import Ledger
from largesse.serve.ledger.money import as_units
from largesse.serve.ledger.opening import open_ledger
from largesse.serve.ledger.records import Chooser
from largesse.serve.ledger.terms import KEPT, Terms, agree
from largesse.serve.opened import OpenedPolicy, read_population
from largesse.serve.pacing.controller import PacePlan, Pacer, plan_pace
from largesse.serve.pacing.offers import make_population
from largesse.serve.telling import warn_if_late


@dataclass(frozen=True)
class LedgerSettings:
    """Which ledger, and what it is begun with where there is none yet."""

    address: str
    total: str | None = None
    until: str | None = None
    since: str | None = None
    customers: float | None = None  # foreseen in the whole period; None: as many as the plan's budget pays for
    valid_days: float | None = None
    late: str = "refuse"
    promises: str = KEPT
    most: tuple[float, ...] | None = None  # that each level may cost, where no list says it

    def agree(self) -> Terms | None:
        """Return the terms, if they are given."""
        if self.total is None and self.until is None:
            return None
        missing = [word for word, given in (("--total", self.total), ("--until", self.until)) if given is None]
        refuse(
            "ledger",
            [Problem(f"{word} is not given", "give both, or none for a ledger that is there") for word in missing],
        )
        rules: Any = {"valid_days": self.valid_days, "late": self.late, "promises": self.promises}
        return agree(self.total, self.until, starts=self.since, **rules)

    @property
    def begun(self) -> LedgerSettings:
        """The same ledger, which is there: it is opened, and never begun once more."""
        return replace(self, total=None, until=None)


@dataclass(frozen=True, eq=False)
class Books:
    """A ledger, and what picks levels for it."""

    ledger: Ledger
    chooser: Chooser
    most: tuple[float, ...] | None = None  # that each level may cost


def open_books(opened: OpenedPolicy, source: Path, settings: LedgerSettings) -> Books:
    """Open the ledger; where there is none yet, begin it with a plan for its price."""
    terms = settings.agree()
    try:
        with warn_if_late("waiting for the ledger, which does not answer yet"):
            ledger = open_ledger(settings.address)
    except LedgerError as error:
        if terms is None or error.__cause__ is not None:  # it cannot be reached
            raise
        plan = _plan(opened, source, settings, terms)
        named = {"levels": list(opened.policy.levels.labels), "unit": opened.unit}
        ledger = open_ledger(settings.address, terms, plan={**plan.as_dict(), **named})
    else:
        if terms is not None:  # they must be the ledger's
            ledger.close()
            ledger = open_ledger(settings.address, terms)
    _refuse_other_levels(ledger, opened)
    return Books(ledger, Pacer(), settings.most)


def _refuse_other_levels(ledger: Ledger, opened: OpenedPolicy) -> None:
    """Refuse the ledger of another campaign: its decisions are about other levels."""
    held, own = ledger.standing().plan.get("levels"), list(opened.policy.levels.labels)
    if held is None or held == own:
        return
    ledger.close()
    got = (
        f"the ledger is of another campaign: its levels are {join_some(held)}, those of the policy are {join_some(own)}"
    )
    fail("serve", Problem(got, "give the ledger of this campaign, or begin another: --ledger, --total and --until"))


def check_most(opened: OpenedPolicy, most: tuple[float, ...] | None) -> None:
    """Refuse levels of which nothing says the most that they may cost, before anybody is asked for."""
    policy = opened.policy
    nobody = {name: [None] for name in policy.model.encoder_.features}
    if not policy.levels.cost_columns:
        make_population(policy, nobody, most=most)


def _plan(opened: OpenedPolicy, source: Path, settings: LedgerSettings, terms: Terms) -> PacePlan:
    """Return what the price is controlled by: planned on customers of the run."""
    people = read_population(source, opened.policy, settings.most)
    many = settings.customers
    if many is None:
        if not opened.budget:
            hint = "give --customers, the number foreseen in the whole period"
            fail("serve", Problem("nothing says how many customers to expect", hint))
        many = max(as_units(terms.total) / opened.budget, 1.0)
    policy = opened.policy
    return plan_pace(people, terms, many, exploration_rate=policy.exploration_rate, exploration=policy.exploration)


def read_book(options: Mapping[str, Any]) -> LedgerSettings | None:
    """Return what options of the command line say of a ledger; None where they name none."""
    given = dict(options)
    address = given.pop("ledger", None)
    if address is None:
        hint = "name the ledger, too: --ledger sqlite:///spring.db"
        refuse("serve", [Problem(f"--{word.replace('_', '-')} without --ledger", hint) for word in given])
        return None
    if "most" in given:
        given["most"] = read_list(given["most"], "--most")
    return LedgerSettings(address, **given)
