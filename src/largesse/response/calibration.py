"""Calibration of the mean of fold models by a slope on the customers' base scores.

Two things make the mean of several models vary too little or too much. Each model may itself do so: held-out rows tell, by
the slope with which its bases fit their responses. And a mean of models that disagree varies less than any one of them:
with the same covariance with the truth and less variance, its own best slope is larger by the ratio of the variances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.records import Array
from largesse.stats import minimise, score_curvature, score_loss, score_slope

MIN_SLOPE, MAX_SLOPE = 0.5, 2.0  # a slope beyond these is noise, or a model that should not be used
MIN_CALIBRATION_SPREAD = 1e-6  # bases that vary less are the same for all
CALIBRATION_RIDGE = 1e-6  # decides where rows do not: a level without rows, or responses that a base separates
CALIBRATION_TOLERANCE = 1e-13  # of the mean loss


@dataclass(frozen=True)
class Calibration:
    """Calibration that multiplies the base score (mean over levels) by `slope` around `middle`."""

    slope: float = 1.0
    middle: float = 0.0

    def __call__(self, scores: Array) -> Array:
        """Return scores (…, K) with calibrated bases; the increments between levels are unchanged."""
        if self.slope == 1.0:
            return scores
        return scores + (self.slope - 1.0) * (scores.mean(axis=-1, keepdims=True) - self.middle)


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Out-of-fold scores of rows, and their responses."""

    held: Array  # (n, K) scores
    place: Array  # (n, K) one at the row's level, or shares of two neighbouring knots of a dose
    response: Array  # (n,)
    binary: bool  # whether scores are logits
    weight: Array  # (n,)


def calibrate(rows: HeldOutScores, together: Array) -> Calibration:
    """Return the calibration of the mean of fold models, given its scores (n, K) of the same rows."""
    base, mean = rows.held.mean(axis=1), together.mean(axis=1)
    if base.std() < MIN_CALIBRATION_SPREAD or mean.std() < MIN_CALIBRATION_SPREAD:
        return Calibration()
    slope = fit_slope(rows) * base.var() / mean.var()
    return Calibration(float(np.clip(slope, MIN_SLOPE, MAX_SLOPE)), float(mean.mean()))


def fit_slope(rows: HeldOutScores) -> float:
    """Return the slope of responses on held-out bases, fitted together with the mean score of every level."""
    K = rows.held.shape[1]
    base = rows.held.mean(axis=1)
    design = np.column_stack([base - base.mean(), rows.place])
    own = (rows.held * rows.place).sum(axis=1)
    weight = rows.weight / rows.weight.sum()

    def objective(change: Array) -> float:
        loss = score_loss(own + design @ change, rows.response, rows.binary)
        return float(weight @ loss + 0.5 * CALIBRATION_RIDGE * change @ change)

    def derivatives(change: Array) -> tuple[Array, Array]:
        score = own + design @ change
        pull = weight * score_slope(score, rows.response, rows.binary)
        curve = weight * score_curvature(score, rows.binary)
        curvature = design.T @ (curve[:, None] * design) + CALIBRATION_RIDGE * np.eye(K + 1)
        return design.T @ pull + CALIBRATION_RIDGE * change, curvature

    return float(1.0 + minimise(objective, derivatives, np.zeros(K + 1), tolerance=CALIBRATION_TOLERANCE)[0])
