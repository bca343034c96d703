"""Roles of columns in a log (level, response, propensity, …): checks of the arguments, and reading by role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from largesse.data.assignment_unit_detection import find_assignment_unit
from largesse.data.propensity_checks import (
    GivenPropensities,
    compute_stratum_propensities,
    find_invalid_level_propensities,
    find_propensity_problems,
    find_share_mismatches,
)
from largesse.data.table_checks import TableChecker
from largesse.data.text_parsing import find_parse_setting_problems
from largesse.errors import Problem, refuse, repr_short, suggest
from largesse.levels import Levels
from largesse.records import ROLES, Array, Log

COLUMN_ROLES = tuple(role for role in ROLES if role != "features")
LISTS = ("known_before", "accepted", "protected", "parse")  # arguments that go with roles
# Within some of these, levels never vary.
OUTCOME_ROLES = ("level", "response", "propensity", "cost_column", "logger", "weight")
# Roles whose text is not dictionary-encoded.
PLAIN_TEXT_ROLES = ("level", "logger", "cluster", "customer", "propensity_strata")


@dataclass(frozen=True)
class RoleSpec:
    """Column name of each role in a log, with the related settings."""

    levels: Levels
    named: dict[str, str]  # role → column
    features: list[str] | None  # None: every column that has no other role
    shares: Sequence[float] | None  # one propensity for each level
    parse: Mapping[str, Any]  # notations of columns
    absent: bool = False  # True if levels may have no rows
    known_before: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()  # columns that models of the response do not see

    @property
    def plain_text_columns(self) -> set[str]:
        """Names of the text columns that stay plain text, without Arrow's dictionary encoding."""
        return {self.named[role] for role in PLAIN_TEXT_ROLES if role in self.named} - {*(self.features or ())}

    @property
    def columns_read_as_text(self) -> list[str]:
        """Names of the columns that stay text even if they hold digits only."""
        return [name for name, way in self.parse.items() if way == "text"]


def make_role_spec(levels: Levels, roles: Mapping[str, Any]) -> RoleSpec:
    """Convert the arguments of `read_log` to column names by role, and refuse invalid arguments."""
    refuse("log", _find_argument_problems(levels, roles))
    # Column names are text, also those that were numbers in a dataframe.
    named = {role: str(roles[role]) for role in ROLES if role in COLUMN_ROLES and _is_column_name(roles.get(role))}
    features = None if roles.get("features") is None else [str(name) for name in roles["features"]]
    shares = None if _is_column_name(roles.get("propensity")) else roles.get("propensity")
    known, accepted, protected = (
        tuple(str(name) for name in roles.get(word) or ()) for word in ("known_before", "accepted", "protected")
    )
    if features is not None:
        features = [name for name in features if name not in protected]
    return RoleSpec(
        levels, named, features, shares, roles.get("parse") or {}, bool(roles.get("absent")), known, accepted, protected
    )


def _is_column_name(column: Any) -> bool:
    """Test if the argument for a role is the name of a column.

    Propensities may also be a list with one number per level.
    """
    return column is not None and not isinstance(column, list | tuple) and np.ndim(column) == 0


def read_role_columns(check: TableChecker, spec: RoleSpec) -> Log:
    """Read the columns with a role into a log, and collect all problems in the checker."""
    named, levels, features, shares = spec.named, spec.levels, spec.features, spec.shares
    check.check_roles(named, levels, features)
    known = set(check.table.column_names)
    present = {role: column for role, column in named.items() if column in known}
    rows = len(check.table)
    codes, outcome = np.zeros(rows, dtype=np.int64), np.zeros(rows)
    if "level" in present:
        codes, levels = check.read_level(present["level"], levels)
    if "response" in present:
        outcome = check.read_response(present["response"], may_be_constant=spec.absent)
    levels = check.mark_observed_costs(levels, "cost_column" in named)
    paid = check.read_observed_costs(present["cost_column"], outcome) if "cost_column" in present else None
    policy = check.read_groups(present["logger"], "logger") if "logger" in present else None
    groups = check.read_groups(present["cluster"], "cluster") if "cluster" in present else None
    weights = check.read_weight(present["weight"]) if "weight" in present else None
    ids = None
    if "customer" in present:
        ids = check.read_ids(present["customer"], repeats="cluster" in named or not spec.absent)
        # Rows of one customer depend on each other.
        if "cluster" not in named and not check.problems and len(ids.unique()) < rows:
            groups = check.read_groups(present["customer"], "customer")
    costs = check.read_costs(levels) if known.issuperset(levels.cost_columns or ()) else None
    listed = None if features is None else [name for name in features if name in known]
    taken = {column for role, column in named.items() if role != "propensity_strata"}
    used = check.select_features(listed, taken | {*(levels.cost_columns or ()), *spec.protected})
    check.check_protected(spec.protected, named)
    if not spec.absent:
        for column in spec.known_before:
            check.require_column(column, "known_before")
        check.check_rows_per_level(codes, outcome, levels, weights)
    propensity = _read_propensity(check, present, shares, codes, levels)
    if propensity is not None:
        name = (
            f"the propensity {present['propensity']!r}" if "propensity" in present else "the propensity of the levels"
        )
        choices = GivenPropensities(codes, propensity, levels.labels, weights, groups)
        if shares is not None and not check.problems:
            check.problems += find_share_mismatches(shares, choices)
        if not check.problems:
            check.problems += find_propensity_problems(choices, name)
    name, notes = named["response"], tuple(check.notes)
    log = Log(used, codes, outcome, levels, propensity, policy, groups, weights, ids, costs, notes, name, paid)
    if check.problems:
        return log
    skip = {named[role] for role in OUTCOME_ROLES if role in named} | {*(levels.cost_columns or ())}
    unit = find_assignment_unit(check.table, codes, skip, used.column_names, named.get("cluster"))
    protected = check.table.select(spec.protected) if spec.protected else None
    return replace(log, known_before=spec.known_before, accepted=spec.accepted, unit=unit, protected=protected)


def _read_propensity(
    check: TableChecker, present: dict[str, str], shares: Sequence[float] | None, codes: Array, levels: Levels
) -> Array | None:
    """Return the propensities (n,) of the rows, given by row, by level or by stratum; None if not given."""
    if sum((shares is not None, "propensity" in present, "propensity_strata" in present)) > 1:
        check.add_problem("propensities are given in two ways", "name a column, or strata, or one for each level")
        return None
    if shares is not None:
        check.problems += (wrong := find_invalid_level_propensities(shares, len(levels)))
        return None if wrong else np.asarray(shares, dtype=np.float64)[np.maximum(codes, 0)]
    if "propensity_strata" in present:
        strata = check.read_groups(present["propensity_strata"], "propensity_strata")
        return None if strata.min() < 0 else compute_stratum_propensities(strata, codes, len(levels))
    return check.read_propensity(present["propensity"]) if "propensity" in present else None


def _find_argument_problems(levels: Any, roles: Mapping[str, Any]) -> list[Problem]:
    """Return a problem for each unknown, missing or wrongly typed argument of `read_log`."""
    problems = [
        Problem(f"there is no argument {role!r}", suggest(role, ("levels", *LISTS, *ROLES)))
        for role in roles
        if role not in (*ROLES, *LISTS, "absent")
    ]
    problems += [
        Problem(f"the {role} column is not named", f"give {role}= the name of the column with {ROLES[role]}")
        for role in ("level", "response")
        if roles.get(role) is None
    ]
    if not isinstance(levels, Levels):
        problems.append(
            Problem(f"levels is not Levels but {repr_short(levels)}", "give levels=Levels(costs=[0, 5, 10])")
        )
    if roles.get("parse") is not None:
        problems += find_parse_setting_problems(roles["parse"])
    problems += [
        Problem(f"{role} is {repr_short(column)}", "give the name of one column")
        for role, column in roles.items()
        if role in COLUMN_ROLES and role != "propensity" and column is not None and not _is_column_name(column)
    ]
    for word in ("features", "known_before", "accepted", "protected"):
        names = roles.get(word)
        if isinstance(names, str):
            problems.append(Problem(f"{word} is the text {names!r}", f"give a list: {word}=[{names!r}]"))
        elif names is not None and not isinstance(names, list | tuple) and np.ndim(names) != 1:
            problems.append(Problem(f"{word} is {repr_short(names)}", "give a list of the names of columns"))
    return problems
