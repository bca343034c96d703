"""Customers to plan for: the rules that their table must keep, whichever engine reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from largesse.data import check_customers
from largesse.errors import Problem, nearest, refuse
from largesse.levels import Levels
from largesse.records import Customers

if TYPE_CHECKING:
    import pyarrow as pa


def check_planned(table: pa.Table, levels: Levels, customer: str | None, features: Sequence[str]) -> Customers:
    """Check a table of customers that must have these features, and their id if it has that column at all.

    A table without the id column is numbered by its rows.
    """
    others = [name for name in table.column_names if name not in features]
    there = customer in table.column_names or _misspelt(customer, others)
    customers = check_customers(table, levels=levels, customer=customer if there else None)
    known = customers.features.column_names
    missing = [name for name in features if name not in known]
    refuse(
        "customers", [Problem(f"the feature {name!r} is not in the table", nearest(name, known)) for name in missing]
    )
    return customers


def _misspelt(name: str | None, others: list[str]) -> bool:
    """Whether another column looks like the id column under a slightly wrong name: reading it then says so."""
    return name is not None and nearest(name, others).startswith("did you mean")
