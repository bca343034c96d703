"""Products of rows and coefficients, and principal axes of features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.records import Array

FLAT = 1e-8  # of the largest variance: directions that vary less are left out
SMALLEST = 1e-9
BLOCK = 65_536  # rows
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


@dataclass(frozen=True, eq=False)
class Axes:
    """Features on their longest principal axes: Z = X V, with the mean square of each axis, the shortest first."""

    Z: Array  # (n, r) float32
    V: Array  # (p, r)
    size: Array  # (r,)


def principal_axes(X: Array, most: int | None = None) -> Axes:
    """Return features (n, p) on at most `most` of their principal axes.

    A ridge penalty means the same on them, and the loss of a regression curves about equally along all: a fit to a thousand
    features takes a few dozen gradient steps, where Newton's method needs matrices of a thousand by a thousand.

    >>> X = np.random.default_rng(0).normal(size=(50, 3)) * [1, 10, 100]
    >>> found = principal_axes(X, most=2)
    >>> found.Z.shape, bool(np.allclose(found.Z, X @ found.V, rtol=1e-4)), bool(found.size[0] < found.size[1])
    ((50, 2), True, True)
    """
    n, p = X.shape
    blocks = [X[first : first + BLOCK] for first in range(0, n, BLOCK)]  # a long table is not copied whole
    if p <= n:
        square = np.zeros((p, p))
        for block in blocks:
            square += block.T.astype(np.float64) @ block
    else:
        square = X.astype(np.float64) @ X.T
    size, V = np.linalg.eigh(square / n)
    kept = np.flatnonzero(size > FLAT * max(float(size.max(initial=0.0)), SMALLEST))[-(most or p) :]
    size, V = size[kept], V[:, kept]
    if p > n:
        V = X.T @ (V / np.sqrt(n * size))
    return Axes(np.concatenate([(block @ V).astype(np.float32) for block in blocks]), V, size)
