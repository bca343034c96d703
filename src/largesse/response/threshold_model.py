"""Threshold response model: a multinomial logit of the cheapest level to which a customer responds.

A customer who responds at one level responds at every dearer one, so a customer is described by the first of these levels,
the threshold: 0, 1, … K−1, or never. P(begins at j | x) is a softmax of K+1 straight lines, and f(x, k) = P(begins at k or
before). A row of the log shows on which side of its level the threshold lies, no more. A ridge penalty, chosen on held-out
rows, shrinks the lines. It is the same in all directions, so the lines are fitted on principal axes, where every direction
can be scaled by its length beforehand and a few dozen steps are enough, even for a thousand features. Amounts are fitted as
shares of their range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from largesse.io import ArraySpec
from largesse.records import Array, Log
from largesse.response.response_model import ResponseModel, check_auto_setting, take_rows
from largesse.stats import (
    PrincipalAxes,
    assign_folds,
    choose_lowest_loss,
    find_chosen_index,
    limit_to_one_thread,
    principal_axes,
    sample_rows,
    softmax,
)

THRESHOLD_PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # per row; the most shrunk first
THRESHOLD_SEARCH_ROWS = 20_000  # rows on which the penalty is chosen
MAX_THRESHOLD_ROWS = 100_000  # rows to which the coefficients are fitted
THRESHOLD_FOLDS = 5
MAX_AXES = 400  # the longest ones; a ridge penalty shrinks the others to almost nothing
MAX_THRESHOLD_STEPS = 200
THRESHOLD_TOLERANCE = 1e-7  # of the mean loss
THRESHOLD_STIFFNESS = 0.01  # shrinks the lines' heights to the usual thresholds
MIN_THRESHOLD_PROBABILITY = 0.005  # the usual probability of any threshold, at least
THRESHOLD_BLOCK_ROWS = 65_536
TINY_PROBABILITY = 1e-300  # zero below: an exported policy cannot compute smaller ones
MANY_FEATURES = 100  # with more, `Stack` and `SIRE` by default give every level coefficients of its own
MIN_PROBABILITY = 1e-9  # a probability whose logarithm is taken


@dataclass(frozen=True, eq=False)
class ThresholdScores:
    """Fitted linear scores of the K+1 possible thresholds; their softmax gives a customer's probabilities."""

    coef: Annotated[Array, ArraySpec("p", "K+1")]
    intercept: Annotated[Array, ArraySpec("K+1")]

    def predict_curves(self, X: Array) -> Array:
        """Return response curves (n, K) of features (n, p): the probability that the threshold is at most each level."""
        # A plain sum, not a matrix product: a row's curve must not depend on which rows come with it.
        score = np.einsum("ij,jk->ik", X.astype(np.float64), self.coef) + self.intercept
        probability = softmax(score)[:, :-1]
        probability[probability < TINY_PROBABILITY] = 0.0
        return np.minimum(np.cumsum(probability, axis=1), 1.0)


@final
class Thresholds(ResponseModel):
    """Threshold response model: a softmax of linear scores for the cheapest level that a customer responds to.

    Unlike `Linear`, every level has coefficients of its own, so that curves of customers differ in shape; the ridge
    penalty keeps that affordable with many correlated features, such as embeddings of images or text.

    Parameters
    ----------
    penalty
        Ridge penalty on the coefficients (per row), or "auto": chosen on held-out rows.
    seed
        How the log is cut to choose.

    Attributes
    ----------
    choices_
        The penalties that were tried, with their held-out losses and differences from the best.
    penalty_, lines_
        The penalty used, and the coefficients of the linear scores.

    Examples
    --------
    >>> from largesse.worlds import simulate
    >>> sim = simulate("averaged", n=500)
    >>> curves = Thresholds().fit(sim.log).predict(sim.features)
    >>> bool((np.diff(curves, axis=1) >= 0).all())
    True
    """

    shrinks = True  # the ridge shrinks increments as much as all else
    threads = True
    whole = True  # a mean of lines is a line: it has nothing to gain from a mean

    lines_: ThresholdScores
    penalty_: float
    range_: tuple[float, float]  # of the responses

    def __init__(self, *, penalty: float | str = "auto", seed: int = 0) -> None:
        self.penalty = penalty
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        X, log = take_rows(X, log, sample_rows(len(log), MAX_THRESHOLD_ROWS, self.seed))
        few, some = take_rows(X, log, sample_rows(len(log), THRESHOLD_SEARCH_ROWS, self.seed))
        self._choose_penalty(few, some, assign_folds(some, THRESHOLD_FOLDS, self.seed))
        self.lines_ = fit_thresholds(X, self._make_threshold_rows(log), self.penalty_)

    def fold_models(self, X: Array, log: Log, fold: Array) -> list[ResponseModel]:
        """Return one model per fold, fitted to the encoded features (n, p) of all other folds.

        The penalty is common to all folds.
        """
        sampled = sample_rows(len(log), THRESHOLD_SEARCH_ROWS, self.seed)
        lines = self._choose_penalty(*take_rows(X, log, sampled), fold[sampled])
        if len(X) > THRESHOLD_SEARCH_ROWS:
            lines = []
            for f in np.unique(fold):
                others = np.flatnonzero(fold != f)
                mine = others[sample_rows(len(others), MAX_THRESHOLD_ROWS, self.seed)]
                lines.append(fit_thresholds(X[mine], self._make_threshold_rows(log.bare.take(mine)), self.penalty_))
        return [self._copy_with(lines_=fold_lines) for fold_lines in lines]

    def _make_threshold_rows(self, log: Log) -> ThresholdRows:
        low, high = self.range_
        share = (log.response - low) / (high - low)
        return ThresholdRows(log.level, share, log.weights / log.weights.sum(), len(log.levels))

    def _choose_penalty(self, X: Array, log: Log, fold: Array) -> list[ThresholdScores]:
        """Choose the ridge penalty on held-out rows, and return the fitted coefficients of all folds."""
        check_auto_setting(self, "penalty")
        low, high = (0.0, 1.0) if log.binary else (float(log.response.min()), float(log.response.max()))
        self.range_ = (low, high if high > low else low + 1.0)
        tried = THRESHOLD_PENALTIES if isinstance(self.penalty, str) else (float(self.penalty),)
        fits, losses = fit_thresholds_by_fold(X, self._make_threshold_rows(log), fold, tried)
        names = [f"{penalty:g}" for penalty in tried[: len(fits)]]
        self.choices_ = choose_lowest_loss(names, losses, log.weight, log.cluster, of="Thresholds: penalty")
        best = find_chosen_index(self.choices_)
        self.penalty_ = tried[best]
        return fits[best]

    def _curves(self, X: Array) -> Array:
        low, high = self.range_
        curves = np.empty((len(X), self.levels_))
        for first in range(0, len(X), THRESHOLD_BLOCK_ROWS):
            curves[first : first + THRESHOLD_BLOCK_ROWS] = self.lines_.predict_curves(
                X[first : first + THRESHOLD_BLOCK_ROWS]
            )
        return low + (high - low) * curves


# -- fitting ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ThresholdRows:
    """Rows of a threshold model: levels, responses scaled to [0, 1], and weights."""

    level: Array  # (n,)
    share: Array  # (n,) responses in [0, 1]
    weight: Array  # (n,) sums to one
    K: int

    def take_rows(self, rows: Array) -> ThresholdRows:
        """Select rows by their indices, with weights that sum to one."""
        weight = self.weight[rows]
        return ThresholdRows(self.level[rows], self.share[rows], weight / (weight.sum() or 1.0), self.K)


def fit_thresholds_by_fold(
    X: Array, rows: ThresholdRows, fold: Array, penalties: Sequence[float]
) -> tuple[list[list[ThresholdScores]], Array]:
    """Fit the threshold model without each fold, for decreasing penalties until the held-out loss stops falling.

    It stops once two penalties in a row bring no gain.

    Returns the coefficients by penalty and fold, and the losses (penalties, n) of all rows by the fit without their fold.
    """
    parts = np.unique(fold)
    fits: list[list[ThresholdScores]] = []
    losses: list[Array] = []
    with limit_to_one_thread():
        axes = principal_axes(X, MAX_AXES)
        paths = [_RegularisationPath(axes, fold != f, rows) for f in parts]
        for penalty in penalties:
            fits.append([path.fit(penalty) for path in paths])
            losses.append(_compute_held_out_losses(fits[-1], X, rows, fold))
            means = [rows.weight @ row for row in losses]
            if len(means) > 2 and min(means[-2:]) > min(means):
                break
    return fits, np.array(losses)


def _compute_held_out_losses(lines: Sequence[ThresholdScores], X: Array, rows: ThresholdRows, fold: Array) -> Array:
    losses = np.empty(len(fold))
    for fit, f in zip(lines, np.unique(fold), strict=True):
        test = np.flatnonzero(fold == f)
        losses[test] = _compute_share_losses(
            fit.predict_curves(X[test])[np.arange(len(test)), rows.level[test]], rows.share[test]
        )
    return losses


def fit_thresholds(X: Array, rows: ThresholdRows, penalty: float) -> ThresholdScores:
    """Fit the coefficients of the threshold model to features (n, p) and responses."""
    with limit_to_one_thread():
        return _RegularisationPath(principal_axes(X, MAX_AXES), np.ones(len(X), dtype=bool), rows).fit(penalty)


class _RegularisationPath:
    """Fits of the threshold model for decreasing penalties, each started at the previous fit."""

    def __init__(self, axes: PrincipalAxes, mine: Array, rows: ThresholdRows) -> None:
        self.axes, self.K, self.Z = axes, rows.K, axes.Z[mine]
        self.rows = rows.take_rows(mine)
        self.usual = np.log(_estimate_marginal_probabilities(self.rows))
        self.B, self.heights = np.zeros((len(axes.size), self.K + 1)), self.usual.copy()

    def fit(self, penalty: float) -> ThresholdScores:
        """Fit the coefficients of the threshold model under a ridge penalty."""
        from scipy.optimize import minimize

        mean = float(np.clip(self.rows.weight @ self.rows.share, 0.01, 0.99))
        # On these axes the curvature is nearly diagonal: scaled by its size, all directions are about as steep.
        scale = 1.0 / np.sqrt(0.5 * mean * (1.0 - mean) * self.axes.size + penalty)[:, None]
        start = np.concatenate([(self.B / scale).ravel(), self.heights])
        options = {"maxiter": MAX_THRESHOLD_STEPS, "ftol": THRESHOLD_TOLERANCE}
        end = minimize(self._objective, start, (scale, penalty), "L-BFGS-B", jac=True, options=options).x
        self.B, self.heights = self._split_parameters(end, scale)
        return ThresholdScores(self.axes.V @ self.B, self.heights)

    def _split_parameters(self, flat: Array, scale: Array) -> tuple[Array, Array]:
        return scale * flat[: -(self.K + 1)].reshape(-1, self.K + 1), flat[-(self.K + 1) :].copy()

    def _objective(self, flat: Array, scale: Array, penalty: float) -> tuple[float, Array]:
        """Return the penalised loss and its gradient at flattened parameters."""
        B, heights = self._split_parameters(flat, scale)
        value, slope = self._loss(B, heights)
        away = heights - self.usual
        away = np.append(away[:-1] - away[:-1].mean(), 0.0)  # the number who respond at all is left to the rows
        value += 0.5 * penalty * float((B * B).sum()) + 0.5 * THRESHOLD_STIFFNESS * float(away @ away)
        pull = (self.Z.T @ slope.astype(self.Z.dtype)).astype(np.float64) + penalty * B
        return value, np.concatenate([(scale * pull).ravel(), slope.sum(axis=0) + THRESHOLD_STIFFNESS * away])

    def _loss(self, B: Array, heights: Array) -> tuple[float, Array]:
        """Return the mean log loss and its gradient (n, K+1) with respect to the scores."""
        level, share, weight = self.rows.level, self.rows.share, self.rows.weight
        probability = softmax((self.Z @ B.astype(self.Z.dtype)).astype(np.float64) + heights)
        before = np.arange(self.K + 1) <= level[:, None]
        at = np.clip((probability * before).sum(axis=1), MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
        pull = (1.0 - share) / (1.0 - at) - share / at  # of the loss in f
        slope = (weight * pull)[:, None] * probability * (before - at[:, None])
        return float(weight @ _compute_share_losses(at, share)), slope


def _estimate_marginal_probabilities(rows: ThresholdRows) -> Array:
    """Estimate the marginal probabilities (K+1,) of the thresholds, all positive.

    They come from a straight line through the mean responses: its height at the first level, and equal increments. The
    increments of the means themselves are noise, and a level that happens to bring nothing would be lost for everybody:
    a probability of zero has no slope by which it could grow again.
    """
    level, share, weight, K = rows.level, rows.share, rows.weight, rows.K
    mean, middle = float(weight @ share), float(weight @ level)
    spread = float(weight @ (level - middle) ** 2)
    slope = float(weight @ ((level - middle) * (share - mean))) / spread if spread > 0 else 0.0
    slope = float(np.clip(slope, MIN_THRESHOLD_PROBABILITY, (1.0 - mean) / K))
    begins = np.concatenate([[max(mean - slope * middle, slope, MIN_THRESHOLD_PROBABILITY)], np.full(K - 1, slope)])
    never = max(1.0 - float(begins.sum()), MIN_THRESHOLD_PROBABILITY)
    return np.append(begins, never) / (begins.sum() + never)


def _compute_share_losses(at: Array, share: Array) -> Array:
    """Return the log losses (n,) of predicted probabilities for responses between 0 and 1."""
    at = np.clip(at, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
    return -(share * np.log(at) + (1.0 - share) * np.log1p(-at))
