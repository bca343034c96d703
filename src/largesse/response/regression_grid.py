"""Batch fit of many regressions on the same rows, one for each penalty and left-out fold.

Their curvatures hardly differ, so one is enough: that of all rows around a first fit, less the part of the fold. Slopes are
exact, those of all regressions from one pass over the rows, so each ends at its own minimum. This is Newton's method with a
curvature that is kept: a few more steps, each of them hundreds of times cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from largesse.records import Array
from largesse.stats import compute_loss, compute_loss_curvature, compute_loss_slope

REGRESSION_BLOCK_ROWS = 65_536
MAX_REGRESSION_STEPS = 60
MAX_HALVINGS = 30
CURVATURE_STEPS = 6  # steps after which the curvature is measured again
MIN_CURVATURE = 1e-9  # keeps systems regular: a level may have no rows, a feature may repeat another


@dataclass(frozen=True, eq=False)
class RegressionRows:
    """Rows of a regression: features, levels, responses and weights."""

    X: Array  # (n, p)
    level: Array  # (n,)
    response: Array  # (n,)
    weight: Array  # (n,)
    K: int
    binary: bool
    doses: Array  # (K,) shares of the largest
    cluster: Array | None = None  # (n,)
    size: Array | None = None  # (p,) mean squares of the features, if these are principal axes

    def take_rows(self, rows: Array) -> RegressionRows:
        """Select rows by their indices or by a mask (n,)."""
        cluster = None if self.cluster is None else self.cluster[rows]
        parts = {name: getattr(self, name)[rows] for name in ("X", "level", "response", "weight")}
        if not parts["weight"].any():  # a part may hold only rows of weight zero; then all count equally
            parts["weight"] = np.ones(len(parts["weight"]))
        return replace(self, **parts, cluster=cluster)

    @property
    def response_unit(self) -> float:
        """Unit of responses: the standard deviation of amounts, or 1 for binary responses."""
        return 1.0 if self.binary else float(np.std(self.response)) or 1.0


@dataclass(frozen=True, eq=False)
class RegressionGrid:
    """Grid of regressions with q = p + K parameters, one for each penalty and left-out fold.

    Scores are X·β + increments up to the level + intercept.
    """

    rows: RegressionRows
    place: Array  # (n,) 0..F−1, the fold of each row
    ridges: Array  # (J, q, q) penalty matrices

    @cached_property
    def n_folds(self) -> int:
        """Number of cross-validation folds."""
        return int(self.place.max()) + 1

    @cached_property
    def training_weights(self) -> Array:
        """Sum (F,) of the row weights outside each fold.

        It is 0 if the sum is only a rounding error.
        """
        weight = self.rows.weight
        sums = weight.sum() - np.bincount(self.place, weight, self.n_folds)
        return np.where(sums > 1e-12 * weight.sum(), sums, 0.0)

    @cached_property
    def training_sizes(self) -> Array:
        """Number (F,) of rows outside each fold."""
        return len(self.place) - np.bincount(self.place, minlength=self.n_folds)

    def fold_weights(self, rows: slice) -> Array:
        """Return the weights (m, F) of m rows in the F regressions that are fitted without one fold.

        Rows of the fold get 0; the others count equally if all their weights are zero.
        """
        used, counts = self.place[rows, None] != np.arange(self.n_folds), self.training_weights > 0
        each = np.where(counts, self.rows.weight[rows, None], 1.0)
        return used * each / np.where(counts, self.training_weights, self.training_sizes)


def level_design_matrix(K: int) -> Array:
    """Return the design matrix (K, K) of the levels: cumulative increment indicators and an intercept.

    Indicators are those of the increments up to each level.
    """
    return np.column_stack([np.tril(np.ones((K, K)))[:, 1:], np.ones(K)])


def fit_all_penalties(task: RegressionGrid, start: Array, lower: Array, tolerance: float) -> Array:
    """Fit the regressions for J penalties and F left-out folds in one batch, and return parameters (J, F, q).

    All start at `start` (q,) and keep the lower bounds (q,).
    """
    J, F, q = len(task.ridges), task.n_folds, len(start)
    here = np.broadcast_to(np.maximum(start, lower), (J, F, q)).copy()
    curvature = _measure_curvatures(task, start)
    value, slope = _compute_losses_and_slopes(task, here)
    busy = np.ones((J, F), dtype=bool)
    for step in range(1, MAX_REGRESSION_STEPS + 1):
        move = _compute_newton_steps(here, slope, curvature, task.ridges, lower, busy)
        # Half the slope along a move is what it will bring; where that is nothing, rounding must not decide.
        busy &= -0.5 * np.einsum("jfq,jfq->jf", slope, move) > tolerance
        if not busy.any():
            break
        move[~busy] = 0.0
        before = value.copy()
        here, value, slope = _apply_newton_steps(task, here, value, slope, move, lower)
        busy &= value < before - tolerance
        if not busy.any():
            break
        if step % CURVATURE_STEPS == 0:
            curvature = _measure_curvatures(task, here[busy].mean(axis=0))
    return here


def score_penalty_grid(task: RegressionGrid, params: Array) -> Array:
    """Return the out-of-fold scores (J, n) of all rows under J penalties."""
    J, n = len(params), len(task.rows.level)
    scores = np.empty((J, n))
    for rows in _split_into_blocks(n):
        here = _compute_block_scores(task, rows, params.reshape(-1, params.shape[2])).reshape(-1, J, task.n_folds)
        scores[:, rows] = np.take_along_axis(here, task.place[rows, None, None], axis=2)[:, :, 0].T
    return scores


def _split_into_blocks(n: int) -> list[slice]:
    return [slice(first, min(first + REGRESSION_BLOCK_ROWS, n)) for first in range(0, n, REGRESSION_BLOCK_ROWS)]


def _compute_block_scores(task: RegressionGrid, rows: slice, parameters: Array) -> Array:
    """Return the scores (m, C) of m rows under C parameter vectors (C, q)."""
    X = task.rows.X[rows]
    p = X.shape[1]
    levels = level_design_matrix(task.rows.K) @ parameters[:, p:].T  # (K, C)
    scores: Array = (X @ parameters[:, :p].T.astype(X.dtype)).astype(np.float64) + levels[task.rows.level[rows]]
    return scores


def _compute_losses_and_slopes(task: RegressionGrid, here: Array) -> tuple[Array, Array]:
    """Return the penalised losses (J, F) and gradients (J, F, q) of all regressions at parameters (J, F, q)."""
    J, F, q = here.shape
    p, K = task.rows.X.shape[1], task.rows.K
    value, slope = np.zeros((J, F)), np.zeros((J * F, q))
    reached = level_design_matrix(K)
    for rows in _split_into_blocks(len(task.rows.level)):
        response, level = task.rows.response[rows, None], task.rows.level[rows]
        weight = np.tile(task.fold_weights(rows), (1, J))  # penalties outside, folds inside
        with np.errstate(over="ignore"):
            score = _compute_block_scores(task, rows, here.reshape(J * F, q))
            value += (weight * compute_loss(score, response, task.rows.binary)).sum(axis=0).reshape(J, F)
        pull = weight * compute_loss_slope(score, response, task.rows.binary)
        X = task.rows.X[rows]
        slope[:, :p] += (pull.T.astype(X.dtype) @ X).astype(np.float64)
        per_level = np.stack([pull[level == k].sum(axis=0) for k in range(K)])  # (K, C)
        slope[:, p:] += per_level.T @ reached
    bent = np.einsum("jab,jfb->jfa", task.ridges, here)
    value += 0.5 * np.einsum("jfa,jfa->jf", here, bent)
    return np.where(np.isfinite(value), value, np.inf), slope.reshape(J, F, q) + bent


def _measure_curvatures(task: RegressionGrid, at: Array) -> Array:
    """Return the Hessians (F, q, q) of the mean losses without each fold, at parameters (q,)."""
    p, K, F = task.rows.X.shape[1], task.rows.K, task.n_folds
    q, reached = p + K, level_design_matrix(K)
    parts = np.zeros((F, q, q))
    for rows in _split_into_blocks(len(task.rows.level)):
        curve = compute_loss_curvature(_compute_block_scores(task, rows, at[None])[:, 0], task.rows.binary)
        X, level, place = task.rows.X[rows], task.rows.level[rows], task.place[rows]
        for f in range(F):
            mine = place == f
            row_curvatures = curve[mine] * task.rows.weight[rows][mine]
            parts[f] += _sum_curvature(X[mine], level[mine], row_curvatures, K, reached)
    whole, left = parts.sum(axis=0), task.training_weights[:, None, None]
    # A fold with all the weight leaves nothing to measure: the curvature of all rows will do.
    curvatures = np.where(left > 0, (whole - parts) / np.where(left > 0, left, 1.0), whole / task.rows.weight.sum())
    return curvatures + MIN_CURVATURE * np.eye(q)


def _sum_curvature(X: Array, level: Array, curve: Array, K: int, reached: Array) -> Array:
    """Return the Hessian (q, q) of the loss: the weighted sum of z·zᵀ over the rows' design vectors z.

    z is a row's features, increments and intercept; the weight is `curve`.
    """
    weighted = X * curve[:, None].astype(X.dtype)
    cross = np.stack([weighted[level == k].sum(axis=0, dtype=np.float64) for k in range(K)])  # (K, p)
    across = cross.T @ reached
    rest = reached.T @ np.diag(np.bincount(level, curve, K)) @ reached
    return np.block([[(X.T @ weighted).astype(np.float64), across], [across.T, rest]])


def _compute_newton_steps(
    here: Array, slope: Array, curvature: Array, ridges: Array, lower: Array, busy: Array
) -> Array:
    """Return the Newton steps (J, F, q) of unfinished fits, zero for parameters at an active bound."""
    move = np.zeros_like(here)
    j, f = np.nonzero(busy)
    held = (here[j, f] <= lower) & (slope[j, f] > 0)
    matrix = curvature[f] + ridges[j]
    matrix[np.broadcast_to(held[:, :, None] | held[:, None, :], matrix.shape)] = 0.0
    each = np.arange(matrix.shape[1])
    matrix[:, each, each] += held
    goal = np.where(held, 0.0, -slope[j, f])
    move[j, f] = np.linalg.solve(matrix, goal[:, :, None])[:, :, 0]
    return move


def _apply_newton_steps(
    task: RegressionGrid, here: Array, value: Array, slope: Array, move: Array, lower: Array
) -> tuple[Array, Array, Array]:
    """Apply Newton steps, each halved until the loss does not rise.

    Returns the new parameters, losses and slopes.
    """
    share = np.ones(value.shape)
    there = here
    for _ in range(MAX_HALVINGS):
        there = np.maximum(here + share[:, :, None] * move, lower)
        losses, steep = _compute_losses_and_slopes(task, there)
        uphill = losses > value
        if not uphill.any():
            return there, losses, steep
        share = np.where(uphill, 0.5 * share, share)
    stay = uphill[:, :, None]
    return np.where(stay, here, there), np.where(uphill, value, losses), np.where(stay, slope, steep)
