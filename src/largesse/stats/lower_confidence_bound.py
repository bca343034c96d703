"""Finite-sample lower confidence bound of the mean of non-negative terms (logarithmic smoothing).

For terms Z ≥ 0 that are independent, E Π(1 + λ Z) ≤ (1 + λ v)^n with v the mean of their expectations. So the ratio of the two
exceeds 1/δ with a probability of at most δ (Markov), and v is at least the number that makes the ratio 1/δ: logarithmic
smoothing (Sakhi, Aouali, Alquier and Chopin 2024). Nothing is assumed about how large terms are or how many there are. The best λ
is not known: the ratio is averaged over a few.
"""

from __future__ import annotations

import numpy as np

from largesse.records import Array
from largesse.stats.binomial_intervals import COVERAGE

STEP_POWERS = np.arange(-3.0, 3.0)  # of two: λ, relative to the best one for terms whose mean square is one
BISECTION_STEPS = 60


def bound_mean_from_below(
    terms: Array,
    weight: Array | None = None,
    cluster: Array | None = None,
    *,
    coverage: float = COVERAGE,
    parts: int = 1,
) -> float:
    """Return a lower confidence bound of the weighted mean of non-negative terms (n,).

    Parameters
    ----------
    terms
        (n,) never negative, of the size of one: other sizes make the bound less tight, not wrong.
    weight, cluster
        (n,) of the rows. Rows of a cluster may depend on each other.
    coverage
        Minimum probability that the bound holds.
    parts
        Number of parts of the rows with independent terms inside each part only, as where each fold has a policy learnt
        on the others. A geometric mean of the parts' ratios is then used, whose expectation is at most one
        however they depend on each other (Hölder).

    Examples
    --------
    >>> bound_mean_from_below(np.ones(1000)) > 0.9, bound_mean_from_below(np.zeros(10))
    (True, 0.0)
    """
    weight = np.ones(len(terms)) if weight is None else weight
    sums: Array = weight * terms / weight.mean()
    if cluster is not None:
        _, unit = np.unique(cluster, return_inverse=True)
        summed = np.bincount(unit, weights=sums)
        sums = summed * (len(summed) / len(terms))
    units, sure = len(sums), float(np.log(1 / (1 - coverage)))
    steps = np.sqrt(2 * parts * sure / units) * 2**STEP_POWERS
    grown = np.array([float(np.log1p(step * sums).sum()) for step in steps])

    def passes(mean: float) -> bool:
        ratios = (grown - units * np.log1p(steps * mean)) / parts
        top = ratios.max()
        return bool(top + np.log(np.exp(ratios - top).mean()) >= sure)

    low, high = 0.0, float(sums.mean())
    if not passes(low):
        return 0.0
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low
