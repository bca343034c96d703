"""Calibration of the mean prediction of several fold models by one slope.

Two things make the mean of several models vary too little or too much. Each model may itself do so: held-out rows tell, by
the slope with which its bases fit their responses. And a mean of models that disagree varies less than any one of them:
with the same covariance with the truth and less variance, its own best slope is larger by the ratio of the variances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.records import Array
from largesse.stats import compute_loss, compute_loss_curvature, compute_loss_slope, minimise

MIN_SLOPE, MAX_SLOPE = 0.5, 2.0  # slopes beyond these come from noise, or from a model that should not be used
MIN_CALIBRATION_SPREAD = 1e-6  # base scores that vary less are taken as equal
CALIBRATION_RIDGE = 1e-6  # for levels without rows, and for responses that a base score separates
CALIBRATION_TOLERANCE = 1e-13  # of the mean loss


@dataclass(frozen=True)
class ScoreCalibration:
    """Linear calibration of a customer's base score, which is the mean of the customer's scores over all levels.

    The distance of the base score from `middle` is multiplied by `slope`.
    """

    slope: float = 1.0
    middle: float = 0.0

    def __call__(self, scores: Array) -> Array:
        """Return calibrated scores (…, K), with unchanged differences between levels."""
        if self.slope == 1.0:
            return scores
        return scores + (self.slope - 1.0) * (scores.mean(axis=-1, keepdims=True) - self.middle)


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Out-of-fold scores of logged rows, with the rows' levels, responses and weights."""

    held: Array  # (n, K) scores
    place: Array  # (n, K) one at the row's level, or shares of two neighbouring knots of a dose
    response: Array  # (n,)
    binary: bool  # True if scores are logits
    weight: Array  # (n,)


def fit_score_calibration(rows: HeldOutScores, together: Array) -> ScoreCalibration:
    """Fit the calibration of the fold models' mean score to held-out rows.

    `together` (n, K) are the scores of the same rows by that mean.
    """
    base, mean = rows.held.mean(axis=1), together.mean(axis=1)
    if base.std() < MIN_CALIBRATION_SPREAD or mean.std() < MIN_CALIBRATION_SPREAD:
        return ScoreCalibration()
    slope = fit_calibration_slope(rows) * base.var() / mean.var()
    return ScoreCalibration(float(np.clip(slope, MIN_SLOPE, MAX_SLOPE)), float(mean.mean()))


def fit_calibration_slope(rows: HeldOutScores) -> float:
    """Fit the slope of responses on out-of-fold base scores (mean scores over all levels).

    The mean score of every level is fitted together with it.
    """
    K = rows.held.shape[1]
    base = rows.held.mean(axis=1)
    design = np.column_stack([base - base.mean(), rows.place])
    score_at_level = (rows.held * rows.place).sum(axis=1)
    weight = rows.weight / rows.weight.sum()

    def objective(change: Array) -> float:
        loss = compute_loss(score_at_level + design @ change, rows.response, rows.binary)
        return float(weight @ loss + 0.5 * CALIBRATION_RIDGE * change @ change)

    def derivatives(change: Array) -> tuple[Array, Array]:
        score = score_at_level + design @ change
        pull = weight * compute_loss_slope(score, rows.response, rows.binary)
        curve = weight * compute_loss_curvature(score, rows.binary)
        curvature = design.T @ (curve[:, None] * design) + CALIBRATION_RIDGE * np.eye(K + 1)
        return design.T @ pull + CALIBRATION_RIDGE * change, curvature

    return float(1.0 + minimise(objective, derivatives, np.zeros(K + 1), tolerance=CALIBRATION_TOLERANCE)[0])
