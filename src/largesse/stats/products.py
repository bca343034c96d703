"""Products of features and coefficients that do not depend on who computes them."""

from __future__ import annotations

import numpy as np

from largesse.records import Array

ROWS_AT_ONCE = 8192  # whose float64 copy stays close to the processor


def dot_rows(X: Array, coef: Array) -> Array:
    """Return the products (n,) of rows (n, p) with coefficients (p,), summed in float64 whatever the rows are.

    In float32 the order of a sum decides its seventh digit. Customers who tie at a price would then be decided by which
    program added up: one export of a policy would give them another level than the policy itself.

    >>> dot_rows(np.ones((2, 3), dtype=np.float32), np.array([1.0, 2.0, 3.0]))
    array([6., 6.])
    """
    out, coef = np.empty(len(X)), coef.astype(np.float64)
    for first in range(0, len(X), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        out[rows] = X[rows].astype(np.float64, copy=False) @ coef
    return out
