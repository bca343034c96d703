"""Rules of a plan about who gets what: levels that some customers may not get, and customers whose level is fixed.

They are written with the names of levels, and turned into one table of what each customer may get.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.campaign.write import to_toml
from largesse.errors import Problem, join_some, refuse, repr_short, suggest
from largesse.levels import Levels
from largesse.records import Array, Customers

if TYPE_CHECKING:
    import pyarrow as pa

Barred = dict[str, dict[str, tuple[int, ...]]]  # column → value → levels


# -- reading and writing ---------------------------------------------------------------------------------------------


def number_levels(table: dict[str, Any], word: str, levels: Levels | None, problems: list[Problem]) -> dict[int, Any]:
    """Return a table with the numbers of levels instead of their names."""
    if levels is None:
        return {}
    found: dict[int, Any] = {}
    for name, value in table.items():
        meant = {k for names in _spellings(levels) for k, known in enumerate(names) if known == name}
        if len(meant) == 1:
            found[meant.pop()] = value
        elif meant:
            hint = "give the levels names under [levels], and use those"
            problems.append(Problem(f"plan.{word}.{name} is ambiguous: a level's number or its cost", hint))
        else:
            problems.append(Problem(f"plan.{word} names the level {name!r}", suggest(name, levels.labels)))
    return found


def _spellings(levels: Levels) -> list[tuple[str, ...]]:
    """Return the accepted spellings of the levels: their names or doses; without those, numbers or costs, as in a log."""
    costs = levels.common_costs
    if levels.names is not None or levels.doses is not None or costs is None:
        return [levels.labels]
    return [levels.labels, tuple(f"{cost:g}" for cost in costs)]


def read_fixed(section: Mapping[str, Any], levels: Levels | None, problems: list[Problem]) -> dict[str, int]:
    """Read [plan.fixed]: customer -> level."""
    given = section.get("fixed", {})
    if not (isinstance(given, dict) and all(isinstance(name, str | int) for name in given.values())):
        problems.append(
            Problem(f"plan.fixed is {repr_short(given)}", 'write [plan.fixed] and for each customer: id = "level"')
        )
        return {}
    names = dict.fromkeys(map(str, given.values()))
    known = {name: level for name in names for level in number_levels({name: 0}, "fixed", levels, problems)}
    return {customer: known[str(name)] for customer, name in given.items() if str(name) in known}


def read_barred(section: Mapping[str, Any], levels: Levels | None, problems: list[Problem]) -> Barred:
    """Read [plan.barred]: column -> value -> the levels that customers with this value may not get."""
    given = section.get("barred", {})
    if not (isinstance(given, dict) and all(_is_list_of_names(values) for values in given.values())):
        hint = 'write [plan.barred.COLUMN] and for each value the levels: value = ["20"]'
        problems.append(Problem(f"plan.barred is {repr_short(given)}", hint))
        return {}
    return {
        column: {
            value: tuple(number_levels(dict.fromkeys(map(str, names)), "barred", levels, problems))
            for value, names in values.items()
        }
        for column, values in given.items()
    }


def _is_list_of_names(values: Any) -> bool:
    return isinstance(values, dict) and all(
        isinstance(names, list) and all(isinstance(name, str | int) for name in names) for names in values.values()
    )


def write_personal(barred: Barred, fixed: Mapping[str, int], levels: Levels) -> list[str]:
    """Return these rules as lines of TOML."""
    lines = []
    for column, values in barred.items():
        lines += ["", f"[plan.barred.{to_toml(column)}]"]
        lines += [f"{to_toml(value)} = {to_toml([levels.labels[k] for k in own])}" for value, own in values.items()]
    if fixed:
        lines += ["", "[plan.fixed]"]
        lines += [f"{to_toml(customer)} = {to_toml(levels.labels[k])}" for customer, k in fixed.items()]
    return lines


# -- for given customers ---------------------------------------------------------------------------------------------


def find_eligible(
    customers: Customers, levels: Levels, columns: Sequence[str], barred: Barred, fixed: Mapping[str, int]
) -> Array | None:
    """Return the levels (n, K) that each customer may get, or None without rules.

    `columns`, one for each level, hold true where the customer may get it.
    """
    if not (columns or barred or fixed):
        return None
    table, problems = customers.features, []
    allowed = np.ones((len(customers), len(levels)), dtype=bool)
    for level, name in enumerate(columns):
        allowed[:, level] = [bool(value) for value in table.column(name).to_pylist()]
    for column, values in barred.items():
        words = _as_words(table.column(column))
        for value, own in values.items():
            rows = words == value
            if not rows.any():
                hint = suggest(value, dict.fromkeys(words.tolist()))
                problems.append(Problem(f"plan.barred.{column} names {value!r}, which no customer has", hint))
            allowed[np.ix_(rows, own)] = False
    problems += _fix(customers, levels, fixed, allowed)
    nothing = np.flatnonzero(~allowed.any(axis=1))
    if len(nothing):
        ids = [_list_ids(customers)[row] for row in nothing[:3]]
        got = f"{len(nothing):,} customers may get no level at all, such as {join_some(ids)}"
        problems.append(Problem(got, "let them get one, at least the cheapest"))
    refuse("plan", problems)
    return allowed


def _fix(customers: Customers, levels: Levels, fixed: Mapping[str, int], allowed: Array) -> list[Problem]:
    """Restrict fixed customers to their level; return the conflicts with other rules."""
    if not fixed:
        return []
    rows = {word: row for row, word in enumerate(_list_ids(customers)) if word in fixed}
    missing = [customer for customer in fixed if customer not in rows]
    problems = []
    if missing:
        got = f"plan.fixed names customers who are not planned for: {join_some(missing)}"
        problems.append(Problem(got, "use the ids that the plan shows in its column customer"))
    for customer, row in rows.items():
        level = fixed[customer]
        if not allowed[row, level]:
            got = f"the customer {customer} is fixed to {levels.labels[level]!r}, which other rules forbid"
            problems.append(Problem(got, "change one of the two"))
        allowed[row] = np.arange(len(levels)) == level
    return problems[:20]


def _list_ids(customers: Customers) -> list[str]:
    """Return the ids that a plan shows: those of the table, or the numbers of its rows."""
    ids = range(len(customers)) if customers.customer is None else customers.customer.to_pylist()
    return [str(one) for one in ids]


def _as_words(column: pa.ChunkedArray) -> Array:
    return np.array([str(value) for value in column.to_pylist()], dtype=object)
