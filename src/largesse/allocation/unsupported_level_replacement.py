"""Levels with enough logged rows for each customer (support), and replacement of unsupported levels.

An option k of a customer means: the nearest supported level at or below k, else the nearest one above. Plans, mixes and policies
choose among all K options, and unsupported options have the response and the cost of the level that replaces them. So budgets
stay exact, and no number is infinite.
"""

from __future__ import annotations

import numpy as np

from largesse.records import Array

COPY_DISADVANTAGE = 1e-6  # relative, of the response of a copied option: above the rounding of single precision


def add_cheapest_level(supported: Array | None) -> Array | None:
    """Return the mask (n, K) of levels that a plan may give: supported levels and the cheapest level.

    No budget forbids the cheapest.

    None: all.
    """
    if supported is None:
        return None
    allowed = supported.copy()
    allowed[:, 0] = True
    return allowed


def map_to_supported_levels(supported: Array) -> Array:
    """Return the supported level (n, K) that replaces each level of each customer.

    A row without supported levels keeps all options.

    >>> map_to_supported_levels(np.array([[True, False, True, False], [False, False, True, True], [False, False, False, False]]))
    array([[0, 0, 2, 2],
           [2, 2, 2, 3],
           [0, 1, 2, 3]])
    """
    options = np.arange(supported.shape[1])
    below = np.maximum.accumulate(np.where(supported, options, -1), axis=1)
    above = np.minimum.accumulate(np.where(supported, options, len(options))[:, ::-1], axis=1)[:, ::-1]
    nearest = np.where(below >= 0, below, above)
    return np.where(supported.any(axis=1, keepdims=True), nearest, options)


def copy_supported_values(table: Array, supported: Array | None) -> Array:
    """Replace the values (n, K) of unsupported levels by the values of their supported replacements.

    A table (K,) holds for all rows. It is unchanged without a mask.
    """
    if supported is None:
        return table
    return np.take_along_axis(np.broadcast_to(table, supported.shape), supported, axis=1)


def penalise_unsupported_levels(curves: Array, costs: Array, allowed: Array) -> tuple[Array, Array]:
    """Change curves and costs so that no plan chooses a level without support.

    `allowed` is the mask (n, K) of the other levels.

    An unsupported option has the cost and the response of the level that replaces it, less a hair: sums over all options stay
    meaningful, and the level itself is always the better choice.

    >>> penalise_unsupported_levels(np.array([[0.1, 0.5, 0.9]]), np.array([0.0, 1.0, 2.0]), np.array([[True, True, False]]))[1]
    array([[0., 1., 1.]])
    """
    if allowed.all():
        return curves, costs
    supported = map_to_supported_levels(allowed)
    copied, paid = copy_supported_values(curves, supported), copy_supported_values(costs, supported)
    size = np.abs(copied).max(axis=1, keepdims=True)
    hair = COPY_DISADVANTAGE * np.maximum(size, COPY_DISADVANTAGE * size.max(initial=0.0))
    return copied - np.where(supported != np.arange(copied.shape[1]), hair, 0).astype(copied.dtype), paid


def replace_unsupported_levels(levels: Array, supported: Array | None) -> Array:
    """Replace levels (n,) without support by supported levels.

    They are unchanged without a mask.
    """
    if supported is None:
        return levels
    return supported[np.arange(len(levels)), levels].astype(levels.dtype, copy=False)


def replace_unsupported_probabilities(probabilities: Array, supported: Array | None) -> Array:
    """Move the probabilities (n, K) of unsupported levels to the supported levels that replace these levels.

    Probabilities may be (K,). They are unchanged without a mask.

    >>> replace_unsupported_probabilities(np.array([0.2, 0.3, 0.5]), np.array([[0, 0, 2]]))
    array([[0.5, 0. , 0.5]])
    """
    if supported is None:
        return probabilities
    rows, moved = np.arange(len(supported)), np.zeros(supported.shape)
    for option, column in enumerate(np.broadcast_to(probabilities, supported.shape).T):
        moved[rows, supported[:, option]] += column  # of one option, each row comes once
    return moved
