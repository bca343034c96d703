"""What the variance of each level counts, where the next log is to judge a plan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from largesse.records import Array

NEIGHBOURS = (0.75, 1.333)  # budgets beside the plan's, as shares of it: plans that the next evaluation may find better
NEIGHBOUR_WEIGHT, PLAN_WEIGHT = 0.25, 0.25  # beside 1 for the plan against what it is compared with
LEAST_WEIGHT = 0.01  # of any level: what nobody plans may be asked about, too


def weigh_levels(planned: Array, incumbent: Array, near: Sequence[Array]) -> Array:
    """Return how much the variance (n, K) of each level counts.

    Probabilities (n, K) of levels: in the plan, in what it is compared with, and in plans nearby. Where levels tie, the plan
    gives one or the other, and what counts is the mean over both.
    """
    rest = 1 - planned
    weight = planned * (1 - incumbent) ** 2 + rest * incumbent**2 + PLAN_WEIGHT * planned
    for other in near:
        weight += NEIGHBOUR_WEIGHT * (planned * (1 - other) + rest * other)
    return np.maximum(weight, LEAST_WEIGHT)
