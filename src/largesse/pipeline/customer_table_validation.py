"""Validation of customer tables: columns, ids, costs, memory and repeated ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from largesse.campaign import PlanSettings
from largesse.data import (
    check_column_names,
    convert_to_floats,
    find_feature_kind,
    format_size,
    make_checked_customers,
    read_memory_limit,
    require_customer_columns,
)
from largesse.errors import Problem, fail, refuse, suggest
from largesse.levels import Levels
from largesse.records import Array, Customers

if TYPE_CHECKING:
    import pyarrow as pa


BYTES_PER_VALUE = 32  # of memory for each column and level of a customer; measured: 23
MEMORY_SHARE = 0.8  # of the machine's memory


def find_suspicious_rows(table: pa.Table, customer: str | None, costs: Sequence[str]) -> Array:
    """Return the mask (n,) of rows with a missing id or with invalid costs.

    Costs are invalid if missing, infinite, negative or falling.
    """
    suspect = np.zeros(len(table), dtype=bool)
    if customer in table.column_names:
        suspect |= np.asarray(table.column(customer).is_null(nan_is_null=True))
    columns = [table.column(name) for name in costs if name in table.column_names]
    if not all(find_feature_kind(column.type) == "number" for column in columns):
        return np.ones(len(table), dtype=bool)
    if columns:
        paid = np.column_stack([convert_to_floats(column) for column in columns])
        suspect |= ~(np.isfinite(paid) & (paid >= 0)).all(axis=1) | (np.diff(paid, axis=1) < 0).any(axis=1)
    return suspect


def list_settings_needing_memory(planning: PlanSettings) -> list[Problem]:
    """Return the plan settings that need all customers in memory at once, each with an alternative."""
    reasons = []
    if planning.constrained:
        reasons.append(Problem("constraints", "plan without constraints"))
    if planning.exact:
        reasons.append(Problem("exact = true", "set exact = false: the plan then states its gap"))
    if planning.explores_for_goal:
        reasons.append(Problem(f"exploration for {planning.explore_for}", 'set explore_for = "random"'))
    return reasons


def check_memory(rows: int, columns: int, levels: int, reasons: Sequence[Problem]) -> None:
    """Raise an error if customers that must be in memory do not fit into it."""
    size, limit = rows * (columns + levels) * BYTES_PER_VALUE, MEMORY_SHARE * read_memory_limit()
    if reasons and size > limit:
        needed = " and ".join(reason.what for reason in reasons)
        got = f"{needed}: all customers are needed in memory at once; {rows:,} customers take about {format_size(size)}"
        hints = [*(reason.hint for reason in reasons), "use a machine with more memory"]
        fail("customers", Problem(f"{got}, and {format_size(limit)} can be used", ", or ".join(hints)))


def check_customer_table(table: pa.Table, levels: Levels, customer: str | None, features: Sequence[str]) -> Customers:
    """Return the customers of a table after checks of its columns, ids and costs."""
    named = find_id_column(table.column_names, customer, features)
    customers = make_checked_customers(table, levels=levels, customer=named)
    _refuse_missing_columns(features, customers.features.column_names)
    return customers


def check_customer_columns(
    schema: pa.Schema, levels: Levels, customer: str | None, features: Sequence[str]
) -> str | None:
    """Check the columns of a customer table before its rows are read, and return the id column or None."""
    named, costs = find_id_column(schema.names, customer, features), levels.cost_columns or ()
    check_column_names(schema.names, 1, "customers")
    require_customer_columns(schema.names, [*([named] if named else []), *costs])
    _refuse_missing_columns(features, [name for name in schema.names if name != named and name not in costs])
    return named


def find_id_column(names: Sequence[str], customer: str | None, features: Sequence[str]) -> str | None:
    """Return the name of the id column, or None if no column matches.

    A near miss returns the wanted name, so that reading it raises the error.
    """
    others = [name for name in names if name not in features]
    misspelt = customer is not None and suggest(customer, others).startswith("did you mean")
    return customer if customer in names or misspelt else None


def _refuse_missing_columns(features: Sequence[str], known: Sequence[str]) -> None:
    missing = [
        Problem(f"the feature {name!r} is not in the table", suggest(name, known))
        for name in features
        if name not in known
    ]
    refuse("customers", missing)


def hash_customers(ids: pa.Array) -> Array:
    """Return the hashes of customer ids, without missing ids."""
    import pyarrow as pa

    if pa.types.is_integer(ids.type):
        return np.asarray(ids.drop_null().cast(pa.int64(), safe=False)).view(np.uint64)
    from largesse.pipeline.id_hashes import hash_ids

    return hash_ids(ids.drop_null())


def find_repeated_hashes(hashes: Array) -> Array:
    """Return the hashes that occur more than once, after sorting in place."""
    if (hashes[1:] > hashes[:-1]).all():  # many tables are in the order of their ids
        return hashes[:0]
    hashes.sort()
    return np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
