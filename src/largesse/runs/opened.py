"""A run folder, or a policy file, opened to decide by: the policy, its version, and what the campaign says of customers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from largesse.errors import InputError, Problem, fail, path_problems, refuse
from largesse.policy import Policy
from largesse.records import Array
from largesse.runs.campaign import read_campaign
from largesse.runs.folder import POLICY, SCORES

DIGITS = 12  # of a version


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
    path = find_policy(source)
    try:
        version = hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]
    except OSError as error:
        raise InputError("serve", [Problem(f"{path} cannot be read: {error.strerror}", "give another file")]) from error
    policy = Policy.load(path)
    if policy.price is None:
        hint = f"plan first: largesse plan {source} CUSTOMERS --budget …"
        fail("serve", Problem("the policy has no price yet", hint))
    if not source.is_dir():
        return OpenedPolicy(policy, version)
    campaign = read_campaign(source)
    planning, columns = campaign.planning, campaign.columns
    parse = dict(campaign.roles.get("parse") or {})
    rules = tuple(planning.constraints)
    return OpenedPolicy(policy, version, planning.budget, columns.get("customer"), parse, campaign.unit, rules)


def read_curves(source: Path, most: int) -> Array | None:
    """Return what models that did not see them expect of customers of the log, (n, K): at most so many, the same each time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not source.is_dir() or not (source / SCORES).is_file():
        return None
    try:
        table = pq.read_table(source / SCORES)
        names = [name for name in table.column_names if name.startswith("curve_")]
        curves = np.column_stack([table.column(f"curve_{k}").to_numpy() for k in range(len(names))])
    except (OSError, KeyError, ValueError, pa.ArrowException):
        return None
    if not len(curves) or not np.isfinite(curves).all():
        return None
    rows = np.sort(np.random.default_rng(0).permutation(len(curves))[:most])
    return np.asarray(curves[rows], dtype=np.float64)
