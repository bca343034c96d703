"""One mix of levels for everybody: the best that an average spend buys."""

from __future__ import annotations

import numpy as np

from largesse.records import Array


def mix_two_levels(value: Array, cost: Array, spend: float) -> Array:
    """Return the probabilities (K,) of the best mix of levels, by their mean values (K,) and costs (K,), at an average spend.

    Two levels suffice: one that costs no more, and one that costs no less.

    >>> mix_two_levels(np.array([0.0, 1.0, 1.2]), np.array([0.0, 1.0, 2.0]), 0.5)
    array([0.5, 0.5, 0. ])
    """
    within = np.flatnonzero(cost <= spend * (1 + 1e-12))
    best = int(within[np.argmax(value[within])]) if len(within) else int(np.argmin(cost))
    most, mix = float(value[best]) if len(within) else np.inf, np.eye(len(value))[best]
    for a in within:
        for b in np.flatnonzero(cost > spend * (1 + 1e-12)):
            share = (spend - cost[a]) / (cost[b] - cost[a])
            worth = (1 - share) * value[a] + share * value[b]
            if worth > most + 1e-12 * abs(most):
                most, mix = float(worth), (1 - share) * np.eye(len(value))[a] + share * np.eye(len(value))[b]
    return mix
