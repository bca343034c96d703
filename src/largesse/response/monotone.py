"""Isotonic regression of curves, one customer at a time (pool adjacent violators)."""

from __future__ import annotations

import numpy as np

from largesse.records import Array


def isotonic(curves: Array) -> Array:
    """Return the non-falling curves (n, K) nearest to the given ones in squared distance; rising ones as they are.

    >>> isotonic(np.array([[0.0, 3.0, 1.0], [0.0, 1.0, 2.0]]))
    array([[0., 2., 2.],
           [0., 1., 2.]])
    """
    falls = (np.diff(curves, axis=1) < 0).any(axis=1)
    if not falls.any():
        return curves
    out, part = curves.copy(), curves[falls]
    K = part.shape[1]
    sums = np.concatenate([np.zeros((len(part), 1)), np.cumsum(part, axis=1)], axis=1)
    best = np.full(part.shape, -np.inf)
    # max over first ≤ k of min over last ≥ k of the mean from first to last: K²/2 passes, each over all customers.
    for first in range(K):
        means = (sums[:, first + 1 :] - sums[:, [first]]) / np.arange(1, K - first + 1)
        lowest = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
        best[:, first:] = np.maximum(best[:, first:], lowest)
    out[falls] = np.maximum.accumulate(best, axis=1)  # equal values may differ by rounding
    return out
