"""The ledger of a service: opened as it is, or begun with a plan for its price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from largesse.errors import LedgerError, Problem, fail, refuse
from largesse.pacing import Chooser, Ledger, Pacer, Population, Terms, agree, as_units, open_ledger, plan_pace
from largesse.runs import OpenedPolicy, read_curves
from largesse.serving.offers import bound_problems, make_offers

SAMPLE = 20_000  # customers of the log that the price is planned on


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

    def agree(self) -> Terms | None:
        """Return the terms, if they are given."""
        if self.total is None and self.until is None:
            return None
        missing = [word for word, given in (("--total", self.total), ("--until", self.until)) if given is None]
        refuse(
            "ledger",
            [Problem(f"{word} is not given", "give both, or none for a ledger that is there") for word in missing],
        )
        return agree(self.total, self.until, starts=self.since, valid_days=self.valid_days, late=self.late)


@dataclass(frozen=True, eq=False)
class Books:
    """A ledger, and what picks levels for it."""

    ledger: Ledger
    chooser: Chooser


def open_books(opened: OpenedPolicy, source: Path, settings: LedgerSettings) -> Books:
    """Open the ledger; where there is none yet, begin it with a plan for its price."""
    refuse("ledger", bound_problems(opened.policy))
    terms = settings.agree()
    try:
        ledger = open_ledger(settings.address)
    except LedgerError:
        if terms is None:
            raise
        plan = _plan(opened, source, settings, terms)
        ledger = open_ledger(settings.address, terms, plan=plan.as_dict(), state=plan.start())
    else:
        if terms is not None:  # they must be the ledger's
            ledger.close()
            ledger = open_ledger(settings.address, terms)
    return Books(ledger, Pacer())


def _plan(opened: OpenedPolicy, source: Path, settings: LedgerSettings, terms: Terms) -> Any:
    """Return what the price is controlled by: planned on customers of the log, as held-out models expect them."""
    policy, curves = opened.policy, read_curves(source, SAMPLE)
    if curves is None:
        hint = "give the run folder, with its scores.parquet: largesse evaluate RUN makes it"
        fail("serve", Problem("nothing says what customers to expect", hint))
    many = settings.customers
    if many is None:
        if not opened.budget:
            hint = "give --customers, the number foreseen in the whole period"
            fail("serve", Problem("nothing says how many customers to expect", hint))
        many = max(as_units(terms.total) / opened.budget, 1.0)
    offers = make_offers(policy, tuple(map(str, range(len(curves)))), curves)
    people = Population(offers.responses, offers.at_once, offers.face, offers.expected)
    return plan_pace(people, terms, many, at_random=policy.at_random)


def read_book(options: Mapping[str, Any]) -> LedgerSettings | None:
    """Return what options of the command line say of a ledger; None where they name none."""
    given = dict(options)
    address = given.pop("ledger", None)
    if address is None:
        hint = "name the ledger, too: --ledger sqlite:///spring.db"
        refuse("serve", [Problem(f"--{word.replace('_', '-')} without --ledger", hint) for word in given])
        return None
    return LedgerSettings(address, **given)
