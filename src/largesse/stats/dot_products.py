"""Products of feature rows with coefficients, summed in float64."""

from __future__ import annotations

import numpy as np

from largesse.records import Array

MAX_COPIED_ROWS = 8192  # a float64 copy of this size stays in the processor's cache


def dot_rows(X: Array, coef: Array) -> Array:
    """Return the products (n,) of rows (n, p) of any type with coefficients (p,), summed in float64.

    In float32 the order of a sum decides its seventh digit. Customers who tie at a price would then be decided by which
    program added up: one export of a policy would give them another level than the policy itself.

    >>> dot_rows(np.ones((2, 3), dtype=np.float32), np.array([1.0, 2.0, 3.0]))
    array([6., 6.])
    """
    out, coef = np.empty(len(X)), coef.astype(np.float64)
    for first in range(0, len(X), MAX_COPIED_ROWS):
        rows = slice(first, first + MAX_COPIED_ROWS)
        out[rows] = X[rows].astype(np.float64, copy=False) @ coef
    return out
