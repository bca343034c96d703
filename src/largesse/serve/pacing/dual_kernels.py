"""The compiled loop of a plan over time. Nothing imports this file until it is needed: it brings numba with it."""

from __future__ import annotations

import math

from largesse.records import Array
from largesse.serve.pacing.kernels import UNIT, compiled


@compiled
def lagrangian(
    f: Array, at_once: Array, face: Array, redeems: Array, when: Array, ahead: Array, used: Array, levels: Array
) -> float:
    """Return Σ max (f − cost) at prices of the budget at points in time; write levels, and what they use at each point.

    `when` (n, 2): the first point at or after a customer comes, and the first at or after their promise ends.
    `ahead` (J + 1,): the sum of the prices of a point and of all later ones.
    """
    total = 0.0
    used[:] = 0.0
    for i in range(len(f)):
        first, last = when[i, 0], when[i, 1]
        held, after = ahead[first] - ahead[last], ahead[last]
        best, level, most, least = -math.inf, 0, 0.0, 0.0
        for j in range(f.shape[1]):
            now = (at_once[i, j] + face[i, j]) * UNIT
            then = (at_once[i, j] + redeems[i, j] * face[i, j]) * UNIT
            worth = f[i, j] - now * held - then * after
            if worth > best:
                best, level, most, least = worth, j, now, then
        total += best
        levels[i] = level
        # Differences: what is used from point `first` on, and how that changes from `last` on.
        used[first] += most
        used[last] += least - most
    return total
