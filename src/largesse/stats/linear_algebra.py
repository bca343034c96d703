"""Linear algebra of feature matrices: row products in float64, principal axes and standardised columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.records import Array

MAX_COPIED_ROWS = 8192  # a float64 copy of this size stays in the processor's cache
MIN_VARIANCE_SHARE = 1e-8  # of the largest variance
MIN_LARGEST_VARIANCE = 1e-9
GRAM_BLOCK_ROWS = 65_536


def dot_rows(X: Array, coef: Array) -> Array:
    """Multiply each row of features (n, p) by coefficients (p,), in float64, and return the products (n,).

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


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """Principal axes of features, and the features' coordinates on these axes, in ascending order of variance."""

    Z: Array  # (n, r) float32
    V: Array  # (p, r)
    size: Array  # (r,)


def principal_axes(X: Array, most: int | None = None) -> PrincipalAxes:
    """Project features (n, p) on their principal axes with the largest variance.

    A ridge penalty means the same on them, and the loss of a regression curves about equally along all: a fit to a thousand
    features takes a few dozen gradient steps, where Newton's method needs matrices of a thousand by a thousand.

    >>> X = np.random.default_rng(0).normal(size=(50, 3)) * [1, 10, 100]
    >>> found = principal_axes(X, most=2)
    >>> found.Z.shape, bool(np.allclose(found.Z, X @ found.V, rtol=1e-4)), bool(found.size[0] < found.size[1])
    ((50, 2), True, True)
    """
    n, p = X.shape
    blocks = [
        X[first : first + GRAM_BLOCK_ROWS] for first in range(0, n, GRAM_BLOCK_ROWS)
    ]  # a long table is not copied whole
    if p <= n:
        square = np.zeros((p, p))
        for block in blocks:
            square += block.T.astype(np.float64) @ block
    else:
        square = X.astype(np.float64) @ X.T
    size, V = np.linalg.eigh(square / n)
    axes = np.flatnonzero(size > MIN_VARIANCE_SHARE * max(float(size.max(initial=0.0)), MIN_LARGEST_VARIANCE))[
        -(most or p) :
    ]
    size, V = size[axes], V[:, axes]
    if p > n:
        V = X.T @ (V / np.sqrt(n * size))
    return PrincipalAxes(np.concatenate([(block @ V).astype(np.float32) for block in blocks]), V, size)


def standardise(X: Array) -> Array:
    """Return the varying columns of X (n, p), each with mean 0 and standard deviation 1."""
    spread = X.std(axis=0)
    return ((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))[:, spread > 0]
