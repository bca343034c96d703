"""How far apart customers lie: what a mean of fold models is stretched by.

Two things make the mean of several models too timid or too bold. Each model may itself be so: rows it did not see tell, by
the slope with which its bases fit their responses. And a mean of models that disagree is tamer than any one of them: with
the same covariance with the truth and less variance, its own best slope is larger by the ratio of the variances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.records import Array
from largesse.stats import sigmoid

STEPS = 20
LEAST, MOST = 0.5, 2.0  # a slope beyond these is noise, or a model that should not be used
FLAT = 1e-6  # bases that vary less are the same for all


@dataclass(frozen=True)
class Tilt:
    """Scores whose base (mean over levels) is stretched by `slope` around `middle`."""

    slope: float = 1.0
    middle: float = 0.0

    def __call__(self, scores: Array) -> Array:
        """Return scores (…, K) with their bases stretched, the steps between levels left as they are."""
        if self.slope == 1.0:
            return scores
        return scores + (self.slope - 1.0) * (scores.mean(axis=-1, keepdims=True) - self.middle)


def tilt(
    held: Array, together: Array, place: Array, response: Array, *, bounded: bool, weight: Array | None = None
) -> Tilt:
    """Return how the mean of fold models is to be stretched.

    Parameters
    ----------
    held
        Scores (n, K) of rows, each from the model that did not see it.
    together
        Scores (n, K) of the same rows from the mean of all models.
    place, response, weight
        Where on the ladder rows stood (n, K), what they answered (n,), and what they count (n,).
    bounded
        Whether scores are logits.
    """
    base, mean = held.mean(axis=1), together.mean(axis=1)
    if base.std() < FLAT or mean.std() < FLAT:
        return Tilt()
    slope = held_out_slope(held, place, response, bounded=bounded, weight=weight)
    return Tilt(float(np.clip(slope * base.var() / mean.var(), LEAST, MOST)), float(mean.mean()))


def held_out_slope(held: Array, place: Array, response: Array, *, bounded: bool, weight: Array | None = None) -> float:
    """Return the slope of responses in held-out bases, the ladder fitted along with it: Newton's method."""
    n, K = held.shape
    base = held.mean(axis=1)
    design = np.column_stack([base - base.mean(), place])
    own = (held * place).sum(axis=1)
    weight = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    change = np.zeros(K + 1)  # from what the models say
    for _ in range(STEPS if bounded else 1):
        score = own + design @ change
        fitted = sigmoid(score) if bounded else score
        bend = weight * (fitted * (1.0 - fitted) if bounded else 1.0)
        # The small diagonal decides where rows do not: a level without rows, or responses that a base tells apart.
        curvature = design.T @ (bend[:, None] * design) + 1e-6 * np.eye(K + 1)
        move = np.linalg.solve(curvature, design.T @ (weight * (response - fitted)) - 1e-6 * change)
        change = change + np.clip(move, -1.0, 1.0)
        if np.abs(move).max() < 1e-8:
            break
    return float(1.0 + change[0])
