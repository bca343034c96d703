"""The common ladder: what each level adds for everybody, averaged over the shapes that it may have.

Plans are made of the steps between levels. A log of a few thousand rows hardly shows them, and what they are shrunk to
decides the plan: equal steps make every level equally efficient, and the plan gambles; steps as they were measured follow
the noise. So the ladder is a posterior mean. A priori it is amplitude × shape + a random walk, the shape one of a list:
in proportion to the dose or to the number of the level, saturating early or late, a power of the dose, S-shaped, or all at
one level. The effects of the levels are measured with a covariance; every shape, amplitude and roughness gets the weight
with which it explains them. A log that says little leaves a mean of all shapes, which has diminishing steps and spreads the
money. With more rows one shape wins, and with many the random walk follows the rows themselves.
"""

from __future__ import annotations

import numpy as np

from largesse.levels import Levels
from largesse.records import Array
from largesse.response.monotone import isotonic
from largesse.stats import sigmoid

TYPICAL_LOGIT = 0.3  # what the dearest level usually adds to a logit
TYPICAL_SHARE = 0.075  # and to an amount, in standard deviations of the response
AMPLITUDES = np.exp(np.linspace(np.log(0.002), np.log(64.0), 42))  # tried, as multiples of the typical one
ROUGHNESSES = (0.02, 0.1)  # of the random walk, as shares of the amplitude


def dose_shares(levels: Levels) -> Array:
    """Return the doses (K,) of levels as shares of the largest; costs stand in for them, or the numbers of the levels.

    >>> dose_shares(Levels(costs=[0, 1, 2], doses=[0, 5, 20]))
    array([0.  , 0.25, 1.  ])
    """
    K = len(levels)
    given = levels.common_costs if levels.doses is None else np.asarray(levels.doses, dtype=np.float64)
    if K == 1 or given is None or not given[-1] > given[0] or (np.diff(given) < 0).any():
        return np.arange(K) / max(K - 1, 1)
    return (given - given[0]) / (given[-1] - given[0])


def list_shapes(doses: Array) -> tuple[Array, Array]:
    """Return the shapes (S, K−1) that a ladder may have, each 1 at the dearest level, and their prior weights (S,)."""
    K = len(doses)
    place = np.arange(K) / (K - 1)
    groups: list[tuple[float, list[Array]]] = [
        (0.30, [1.0 - np.exp(-a * doses) for a in (1.0, 2.0, 4.0, 8.0, 16.0)]),
        (0.15, [1.0 - np.exp(-a * place) for a in (1.0, 2.0, 4.0, 8.0)]),
        (0.12, [doses]),
        (0.15, [place]),
        (0.10, [doses**power for power in (0.25, 0.5)]),
        (0.08, [_rise(doses, middle, steep) for middle in (0.25, 0.5, 0.75) for steep in (6.0, 14.0)]),
        (0.08, [(np.arange(K) >= first).astype(np.float64) for first in range(1, K)]),
    ]
    shapes = np.array([shape[1:] / shape[-1] for _, group in groups for shape in group])
    weights = np.array([share / len(group) for share, group in groups for _ in group])
    return shapes, weights / weights.sum()


def _rise(doses: Array, middle: float, steep: float) -> Array:
    rise = sigmoid(steep * (doses - middle))
    return rise - rise[0]


def average_ladder(effects: Array, covariance: Array, doses: Array, typical: float) -> Array:
    """Return the ladder (K,), from 0 up and never falling: the posterior mean of what the levels add.

    Parameters
    ----------
    effects
        What each level but the first was measured to add (K−1,), in scores.
    covariance
        Of these measurements (K−1, K−1).
    doses
        Of all levels, as shares of the largest (K,).
    typical
        The amplitude of a usual ladder.

    >>> exact = average_ladder(np.array([0.5, 0.6]), 1e-8 * np.eye(2), np.array([0.0, 0.5, 1.0]), 0.3)
    >>> exact.round(3)
    array([0. , 0.5, 0.6])
    >>> vague = average_ladder(np.array([0.0, 2.0]), 100.0 * np.eye(2), np.array([0.0, 0.5, 1.0]), 0.3)
    >>> bool(vague[1] > vague[2] - vague[1])
    True
    """
    if not len(effects):
        return np.zeros(1)
    shapes, prior = list_shapes(doses)
    walk = _walk(len(effects))
    chance = np.exp(-0.5 * np.log(AMPLITUDES) ** 2)
    logs, means = [], []
    for roughness in ROUGHNESSES:
        for amplitude, weight in zip(typical * AMPLITUDES, chance / chance.sum(), strict=True):
            own = (amplitude * roughness) ** 2 * walk
            inverse = np.linalg.inv(covariance + own)
            apart = effects - amplitude * shapes
            fit = -0.5 * np.einsum("si,ij,sj->s", apart, inverse, apart)
            fit -= 0.5 * np.linalg.slogdet(covariance + own)[1]
            logs.append(fit + np.log(prior) + np.log(weight))
            means.append(amplitude * shapes + apart @ inverse @ own)
    weights = np.exp(np.array(logs) - np.max(logs))
    ladder = np.einsum("as,ask->k", weights / weights.sum(), np.array(means))
    rising = isotonic(np.concatenate([[0.0], ladder])[None])[0]
    return rising - rising[0]


def _walk(steps: int) -> Array:
    """Return the covariance of a random walk over the levels, with a little noise of each level's own."""
    place = np.arange(1, steps + 1) / steps
    return np.minimum.outer(place, place) + 0.1 * np.eye(steps)
