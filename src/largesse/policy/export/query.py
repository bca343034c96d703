"""The query of a policy, after a look at whether the database can have such a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from largesse.errors import Problem, refuse, repr_short
from largesse.policy.export.dialects import Dialect, find_dialect
from largesse.policy.export.layers import OUTPUT
from largesse.policy.export.rule import write_rule
from largesse.policy.export.sql import write_sql


def policy_sql(policy: Any, price: float, dialect: str, table: str | Sequence[str], customer: str | None) -> str:
    """Return one SELECT that decides like a policy at a price."""
    known = find_dialect(dialect)
    names = [*policy.model.encoder_.features, *(policy.levels.cost_columns or ())]
    path = check_names(known, table, customer, names)
    return write_sql(write_rule(policy, price), known, path, customer)


def _is_name(given: Any) -> bool:
    """Whether a database can have such a name: some text, without NUL or half a letter."""
    return isinstance(given, str) and given != "" and not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in given)


def check_names(dialect: Dialect, table: Any, customer: Any, columns: Collection[str]) -> list[str]:
    """Return the parts of a table's name; refuse names that the database cannot have side by side."""
    path = table.split(".") if isinstance(table, str) else list(table) if isinstance(table, Sequence) else []
    problems = []
    if not path or not all(_is_name(part) for part in path):
        problems.append(
            Problem(f"the table is {repr_short(table)}", "name it: table='customers', or table='shop.customers'")
        )
    if customer is not None and not _is_name(customer):
        problems.append(Problem(f"the customer column is {repr_short(customer)}", "name it, or give None for none"))
    if isinstance(customer, str) and customer.casefold() in OUTPUT:
        problems.append(
            Problem(f"the customer column is called {customer!r}", "the query gives that name to its answer")
        )
    for name in columns:
        if not _is_name(name):
            got = f"no database can have a column of the name {repr_short(name)}"
            problems.append(Problem(got, "rename it in the log, and fit again"))
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name in {*columns}:
        alike[name.casefold()].append(name)
    for same in alike.values():
        if dialect.folds_case and len(same) > 1:
            got = f"features {', '.join(map(repr, sorted(same)))} have one name in {dialect.name}"
            problems.append(Problem(got, "rename one of them in the log, and fit again"))
    refuse("export", problems)
    return path
