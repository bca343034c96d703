"""Customers to plan for: the rules that their table must keep, whichever engine reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from largesse.data import as_floats, check_customers, check_names, kind_of, require_columns
from largesse.errors import Problem, refuse, suggest
from largesse.levels import Levels
from largesse.records import Array, Customers

if TYPE_CHECKING:
    import pyarrow as pa


def check_planned(table: pa.Table, levels: Levels, customer: str | None, features: Sequence[str]) -> Customers:
    """Check a table of customers that must have these features, and their id if it has that column at all.

    A table without the id column is numbered by its rows.
    """
    named = find_ids(table.column_names, customer, features)
    customers = check_customers(table, levels=levels, customer=named)
    _refuse_missing(features, customers.features.column_names)
    return customers


def check_schema(schema: pa.Schema, levels: Levels, customer: str | None, features: Sequence[str]) -> str | None:
    """Check the columns of a table of customers before its rows are read; return the one with the ids, if there is one."""
    named, costs = find_ids(schema.names, customer, features), levels.cost_columns or ()
    check_names(_one_row(schema), "customers")
    require_columns(schema.names, [*([named] if named else []), *costs])
    _refuse_missing(features, [name for name in schema.names if name != named and name not in costs])
    return named


def _one_row(schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_arrays([pa.nulls(1, field.type) for field in schema], names=schema.names)


def find_ids(names: Sequence[str], customer: str | None, features: Sequence[str]) -> str | None:
    """Return the column with the ids: None where there is none, and none that looks like it under a wrong name."""
    others = [name for name in names if name not in features]
    return customer if customer in names or _misspelt(customer, others) else None


def _refuse_missing(features: Sequence[str], known: Sequence[str]) -> None:
    missing = [name for name in features if name not in known]
    refuse(
        "customers", [Problem(f"the feature {name!r} is not in the table", suggest(name, known)) for name in missing]
    )


def may_be_wrong(table: pa.Table, customer: str | None, costs: Sequence[str]) -> Array:
    """Return which rows (n,) have no id, or costs that are missing, infinite, negative or fall as levels rise."""
    odd = np.zeros(len(table), dtype=bool)
    if customer in table.column_names:
        odd |= np.asarray(table.column(customer).is_null(nan_is_null=True))
    columns = [table.column(name) for name in costs if name in table.column_names]
    if not all(kind_of(column.type) == "number" for column in columns):
        return np.ones(len(table), dtype=bool)
    if columns:
        paid = np.column_stack([as_floats(column) for column in columns])
        odd |= ~(np.isfinite(paid) & (paid >= 0)).all(axis=1) | (np.diff(paid, axis=1) < 0).any(axis=1)
    return odd


def _misspelt(name: str | None, others: list[str]) -> bool:
    """Whether another column looks like the id column under a slightly wrong name: reading it then says so."""
    return name is not None and suggest(name, others).startswith("did you mean")
