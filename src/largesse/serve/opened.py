"""A run folder, or a policy file, opened to decide by: the policy, its version, and what the campaign says of customers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from largesse.campaign import Campaign, read_campaign
from largesse.data import read_customers
from largesse.errors import InputError, Problem, fail, path_problems, refuse
from largesse.pipeline import POLICY
from largesse.policy import Policy
from largesse.records import Customers
from largesse.serve.pacing.customers import Population
from largesse.serve.pacing.offers import make_population

DIGITS = 12  # of a version
SAMPLE = 20_000  # customers that a price is planned on


@dataclass(frozen=True, eq=False)
class OpenedPolicy:
    """A policy with a price, as a run folder or a file holds it."""

    policy: Policy
    version: str  # other policies have other ones
    budget: float | None = None  # average per customer, of the plan
    customer: str | None = None  # the column with the customer's id
    parse: Mapping[str, Any] = field(default_factory=dict)  # how columns are written
    unit: str = ""
    rules: tuple[str, ...] = ()  # of the plan, besides the budget: a price cannot keep them
    explores_for: str = ""  # what the plan explores for, if for anything but at random


def find_policy(source: Path) -> Path:
    """Return the policy file of a run folder; a file is one itself."""
    refuse("serve", path_problems(source, "the run folder"))
    path = source / POLICY if source.is_dir() else source
    if not path.is_file():
        hint = "give a run folder made by `largesse run`, or a policy file"
        fail("serve", Problem(f"there is no policy at {source}", hint))
    return path


def open_policy(source: Path) -> OpenedPolicy:
    """Open a policy; refuse one that has no price yet."""
    while True:
        opened = _open(source)
        if opened.version == _find_version(find_policy(source)):
            return opened  # else another policy came meanwhile, and the version names one of the two


def _find_version(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]
    except OSError as error:
        raise InputError("serve", [Problem(f"{path} cannot be read: {error.strerror}", "give another file")]) from error


def _open(source: Path) -> OpenedPolicy:
    path = find_policy(source)
    version, policy = _find_version(path), Policy.load(path)
    if policy.price is None:
        hint = f"plan first: largesse plan {source} CUSTOMERS --budget …"
        fail("serve", Problem("the policy has no price yet", hint))
    if not source.is_dir():
        return OpenedPolicy(policy, version)
    campaign = read_campaign(source)
    planning, columns = campaign.planning, campaign.columns
    parse = dict(campaign.roles.get("parse") or {})
    own = [word for word in ("barred", "fixed") if getattr(planning, word)]
    rules, aim = (*planning.constraints, *own), planning.explore_for if planning.aimed else ""
    return OpenedPolicy(policy, version, planning.budget, columns.get("customer"), parse, campaign.unit, rules, aim)


def read_population(source: Path, policy: Policy, most: Sequence[float] | None = None) -> Population:
    """Return some customers of a run as a price sees them: of the table that was planned for, or of the log."""
    if not source.is_dir():
        hint = "give the run folder that the policy file comes from"
        fail("serve", Problem("nothing says what customers to expect", hint))
    return sample_population(read_campaign(source, blank_budget=True), policy, most)[0]


def sample_population(
    campaign: Campaign, policy: Policy, most: Sequence[float] | None = None, seed: int = 0
) -> tuple[Population, int]:
    """Return some of a run's customers as a price sees them, and how many there are in all."""
    customers = read_features(campaign, policy, campaign.customers or campaign.log)
    rows = np.sort(np.random.default_rng(seed).permutation(len(customers))[:SAMPLE])
    costs = None if customers.costs is None else customers.costs[rows]
    return make_population(policy, Customers(customers.features.take(rows), None, costs), most=most), len(customers)


def read_features(campaign: Campaign, policy: Policy, source: str) -> Customers:
    """Return the customers of a table, with what a policy needs of them."""
    names, parse = list(policy.model.encoder_.features), campaign.roles.get("parse")
    return read_customers(source, levels=policy.levels, features=names, parse=parse)
