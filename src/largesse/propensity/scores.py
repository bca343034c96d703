"""Doubly robust scores of any curves."""

from __future__ import annotations

import numpy as np

from largesse.records import Array


def correct_curves(curves: Array, level: Array, outcome: Array, propensity: Array) -> Array:
    """Return Γ_ik = f̂(x_i, k) + 1{y_i = k} / ρ(y_i | x_i) · (r_i − f̂(x_i, k)) for out-of-fold curves f̂ (n, K).

    Averaged over rows, Γ is right if either the curves or the propensities are; their errors enter only as a product.

    >>> correct_curves(np.array([[0.5, 0.5]]), np.array([1]), np.array([1.0]), np.array([0.5]))
    array([[0.5, 1.5]])
    """
    rows = np.arange(len(curves))
    gamma = curves.copy()
    gamma[rows, level] += (outcome - curves[rows, level]) / propensity
    return gamma
