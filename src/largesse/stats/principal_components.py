"""Principal axes of features, and standardised features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.records import Array

MIN_VARIANCE_SHARE = 1e-8  # of the largest variance
MIN_LARGEST_VARIANCE = 1e-9
GRAM_BLOCK_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """Coordinates Z = X V of features on their principal axes, in rising order of variance."""

    Z: Array  # (n, r) float32
    V: Array  # (p, r)
    size: Array  # (r,)


def principal_axes(X: Array, most: int | None = None) -> PrincipalAxes:
    """Project features (n, p) on at most `most` of their longest principal axes.

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
