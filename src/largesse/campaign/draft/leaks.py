"""Columns that follow from the response, seen by where they are filled: an order's size, a means of payment."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import TYPE_CHECKING

import numpy as np

from largesse.data import as_floats, as_plain, kind_of
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

BY_CHANCE = (
    1e-9  # the probability below which it is no coincidence that a column is filled only where there is a response
)
WHY = "is filled only where there was a response"


def find_consequences(table: pa.Table, roles: Mapping[str, str]) -> dict[str, str]:
    """Return the columns without a role that are neither zero nor missing only in rows that responded, each with the reason.

    They are known after the response, and would give it away to a model.
    """
    response = roles.get("response", "")
    if response not in table.column_names or kind_of(table.column(response).type) != "number":
        return {}
    responded = as_floats(table.column(response)) != 0
    share = float(responded.mean()) if len(responded) else 0.0
    if not 0 < share < 1:
        return {}
    found = {}
    for name in set(table.column_names).difference(roles.values()):
        filled = _find_filled(table.column(name))
        # Rows that are filled whatever the response all respond with the probability share^rows.
        if not filled[~responded].any() and filled.sum() * log(share) < log(BY_CHANCE):
            found[name] = WHY
    return {name: found[name] for name in table.column_names if name in found}


def _find_filled(column: pa.ChunkedArray) -> Array:
    """Return which rows (n,) hold more than nothing: no null, no zero, no empty text."""
    kind = kind_of(column.type)
    if kind == "number":
        values = as_floats(column)
        return np.isfinite(values) & (values != 0)
    if kind == "text":
        import pyarrow.compute as pc

        return np.asarray(pc.fill_null(pc.not_equal(as_plain(column), ""), False))
    return np.asarray(column.is_valid())
