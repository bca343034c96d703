"""Served policy: loading from a run folder or policy file, and reloading when the file changes."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from largesse.campaign import BUDGET_KEYS, Campaign, read_campaign
from largesse.data import JsonRowEncoder, Row, read_customers
from largesse.errors import InputError, LargesseError, Problem, fail, find_path_problems, refuse, repr_short
from largesse.pipeline import POLICY_FILE
from largesse.policy import Policy
from largesse.records import Customers
from largesse.serve.pacing.population import Population, make_population

VERSION_DIGITS = 12
MAX_SAMPLED_CUSTOMERS = 20_000
RELOAD_CHECK_SECONDS = 1.0
RETRY_SECONDS = 10.0
DEFAULT_ID_FIELD = "customer"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class ServedPolicy:
    """Loaded policy with a shadow price, ready to decide for customers given as JSON rows."""

    policy: Policy
    version: str  # a hash of the file
    budget: float | None = None  # average per customer, of the plan
    customer: str | None = None  # the column with the customer's id
    parse: Mapping[str, Any] = field(default_factory=dict)  # formats of columns
    unit: str = ""
    rules: tuple[str, ...] = ()  # of the plan, besides the budget: a price cannot keep them
    explores_for: str = ""  # the goal of the plan's exploration, unless levels are drawn uniformly

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the policy's levels."""
        return self.policy.levels.labels

    @property
    def id_field(self) -> str:
        """Name of the JSON field that holds the customer's id."""
        return self.customer or DEFAULT_ID_FIELD

    @cached_property
    def encoder(self) -> JsonRowEncoder:
        """Encoder of JSON rows into the policy's features."""
        return JsonRowEncoder(self.policy.model.encoder_, self.parse)

    def encode(self, rows: Sequence[Row]) -> Any:
        """Convert JSON rows to customers for the policy; refuse rows with invalid values."""
        encoded = self.encoder.encode(rows)
        costs = self.policy.levels.cost_columns or ()
        if not costs and not self.policy.options.cells:
            return encoded
        names = dict.fromkeys((*self.policy.model.encoder_.features, *costs))
        table = {name: [row.get(name) for row in rows] for name in names}
        return read_customers(table, levels=self.policy.levels, parse=self.parse)

    def read_ids(self, rows: Sequence[Row], *, required: bool) -> list[Any]:
        """Return the customer ids of JSON rows; a missing id is None, or an error if required."""
        ids = [row.get(self.id_field) for row in rows]
        if set(map(type, ids)) == {str}:
            return ids
        return [name if name is None and not required else read_customer_id(name, self.id_field) for name in ids]


def read_customer_id(value: Any, key: str) -> str | int:
    """Convert a customer id from JSON to text or an integer; 5 and 5.0 are the same id."""
    if isinstance(value, float) and abs(value) < 2**63 and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        fail(
            "customers",
            Problem(f"a customer has the id {repr_short(value)}", f"give {key!r} as text or a whole number"),
        )
    return value


def find_policy_file(source: Path) -> Path:
    """Return the path of the policy file in a run folder, or of the given policy file."""
    refuse("serve", find_path_problems(source, "the run folder"))
    path = source / POLICY_FILE if source.is_dir() else source
    if not path.is_file():
        hint = "give a run folder made by `largesse run`, or a policy file"
        fail("serve", Problem(f"there is no policy at {source}", hint))
    return path


def load_policy(source: Path) -> ServedPolicy:
    """Load the policy of a run folder or policy file; refuse a policy without a shadow price."""
    while True:
        served = _load_policy_file(source)
        if served.version == _hash_file(find_policy_file(source)):
            return served  # else the file was replaced between reading its hash and its content


def _hash_file(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:VERSION_DIGITS]
    except OSError as error:
        raise InputError("serve", [Problem(f"{path} cannot be read: {error.strerror}", "give another file")]) from error


def _load_policy_file(source: Path) -> ServedPolicy:
    path = find_policy_file(source)
    version, policy = _hash_file(path), Policy.load(path)
    if policy.price is None:
        hint = f"plan first: largesse plan {source} CUSTOMERS --budget …"
        fail("serve", Problem("the policy has no price yet", hint))
    if not source.is_dir():
        return ServedPolicy(policy, version)
    campaign = read_campaign(source)
    planning = campaign.planning
    return ServedPolicy(
        policy,
        version,
        budget=planning.budget,
        customer=campaign.columns.get("customer"),
        parse=dict(campaign.roles.get("parse") or {}),
        unit=campaign.unit,
        rules=(*planning.constraints, *(setting for setting in ("barred", "fixed") if getattr(planning, setting))),
        explores_for=planning.explore_for if planning.explores_for_goal else "",
    )


def read_population(source: Path, policy: Policy, max_costs: Sequence[float] | None = None) -> Population:
    """Read a sample of the customers that a run planned for, as a population for pacing."""
    if not source.is_dir():
        hint = "give the run folder that the policy file comes from"
        fail("serve", Problem("a policy file alone contains no customers to plan for", hint))
    return sample_population(read_campaign(source, optional=BUDGET_KEYS), policy, max_costs)[0]


def sample_population(
    campaign: Campaign, policy: Policy, max_costs: Sequence[float] | None = None, seed: int = 0
) -> tuple[Population, int]:
    """Draw a sample of a campaign's customers as a population; return it with the number of customers."""
    customers = read_customer_features(campaign, policy, campaign.customers or campaign.source)
    rows = np.sort(np.random.default_rng(seed).permutation(len(customers))[:MAX_SAMPLED_CUSTOMERS])
    costs = None if customers.costs is None else customers.costs[rows]
    sample = Customers(customers.features.take(rows), None, costs)
    return make_population(policy, sample, max_costs=max_costs), len(customers)


def read_customer_features(campaign: Campaign, policy: Policy, source: Any) -> Customers:
    """Read the customers of a table, with the columns that a policy needs."""
    names, parse = list(policy.model.encoder_.features), campaign.roles.get("parse")
    return read_customers(source, levels=policy.levels, features=names, parse=parse)


class PolicyStore:
    """Store of the currently served policy, reloaded when the policy file changes.

    Parameters
    ----------
    source
        The run folder, or the policy file.
    check
        Raises an error for a policy that must not be served; called for the first one and every new one.
    """

    def __init__(self, source: Path, check: Callable[[ServedPolicy], None] = lambda _: None) -> None:
        self._source, self._check = source, check
        self._mark = self._read_file_mark()
        self._refused, self._retry_at = self._mark, 0.0  # the error may pass: no memory, no files, a network folder
        self.current = load_policy(source)
        check(self.current)
        self.reloads = 0
        self.problem: str | None = None  # with the newest policy, which is not served
        self._closed = threading.Event()

    def watch(self) -> None:
        """Check the policy file for changes in a background thread, until `close`."""

        def work() -> None:
            while not self._closed.wait(RELOAD_CHECK_SECONDS):
                self.reload_if_changed()

        threading.Thread(target=work, name="policy-reload", daemon=True).start()

    def close(self) -> None:
        """Stop the background thread."""
        self._closed.set()

    def reload_if_changed(self) -> None:
        """Reload the policy if its file has changed; keep the old policy if the new file is invalid."""
        mark = self._read_file_mark()
        if mark == self._mark:
            self.problem = None  # another file was there, and has gone
            return
        if mark is None or (mark == self._refused and time.monotonic() < self._retry_at):
            return
        self._refused, self._retry_at = mark, time.monotonic() + RETRY_SECONDS
        try:
            loaded = load_policy(self._source)
            self._check(loaded)
        except Exception as error:  # whatever is wrong with it, the service goes on
            problem = str(error) if isinstance(error, LargesseError | OSError) else repr(error)
            if problem != self.problem:
                logger.warning(
                    "policy %s goes on, because the new one cannot be served\n%s", self.current.version, problem
                )
            self.problem = problem
            return
        self._mark = mark
        before, self.current, self.problem = self.current, loaded, None
        self.reloads += 1
        if loaded.version != before.version:
            logger.info("Policy %s decides now.", loaded.version)

    def _read_file_mark(self) -> tuple[int, int, int] | None:
        """Return inode, modification time and size of the policy file; None if it is missing."""
        try:
            stat = find_policy_file(self._source).stat()
        except (LargesseError, OSError):
            return None
        return stat.st_ino, stat.st_mtime_ns, stat.st_size
