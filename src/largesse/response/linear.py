"""Linear response model: a linear function of the features, plus common effects of the levels.

The score is s(x, k) = b + x·β + θ_1 + … + θ_k with θ ≥ 0: a logit for 0/1 responses, the response itself for amounts.
A ridge penalty, chosen on held-out rows, shrinks β. The increments are those of the averaged ladder (see `level_effect_estimation`),
because plans depend on increments, and their prior decides where a log has little information.
It is also the outcome model of a doubly robust score where no other model is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, final

import numpy as np

from largesse.io import ArraySpec
from largesse.records import Array, Log
from largesse.response.level_effect_estimation import Link, ScoredRows, fit_level_effects, scale_doses
from largesse.response.regression_grid import (
    RegressionGrid,
    RegressionRows,
    fit_all_penalties,
    level_design_matrix,
    score_penalty_grid,
)
from largesse.response.responder_amounts import ResponderAmounts, multiply_by_amounts, split_off_responder_amounts
from largesse.response.response_model import ResponseModel, check_auto_setting
from largesse.stats import (
    PrincipalAxes,
    compute_loss,
    compute_loss_curvature,
    compute_loss_slope,
    dot_rows,
    limit_to_one_thread,
    logit,
    minimise,
    principal_axes,
    shuffle_rows,
    sigmoid,
)

LINEAR_PENALTIES = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
INCREMENT_STIFFNESS = 0.1  # holds increments together while coefficients are fitted; the ladder replaces them
LINEAR_SEARCH_ROWS = 20_000  # more rows make the choice of a penalty slower, not better
LINEAR_SEARCH_FOLDS = 5
LINEAR_TOLERANCE = 1e-10  # of the mean loss
COMPARISON_TOLERANCE = 1e-8  # of the mean loss, where penalties are only compared
START_TOLERANCE = 1e-4  # of the mean loss, where a fit is only the start of others
LINEAR_BLOCK_ROWS = 65_536  # rows
MAX_NEWTON_FEATURES = 800  # with more, Newton's matrices cost more than gradients on principal axes
MAX_GRADIENT_STEPS = 500


@dataclass(frozen=True, eq=False)
class FittedRegression:
    """Fitted linear regression: coefficients of the features, intercept, and increments between levels."""

    coef: Annotated[Array, ArraySpec("q")]
    intercept: float
    increments: Annotated[Array, ArraySpec("K-1")]
    binary: bool
    penalty: float

    @cached_property
    def level_effects(self) -> Array:
        """Effect (K,) of each level on the score: the cumulative sum of the increments between levels."""
        return np.concatenate([[0.0], np.cumsum(self.increments)])

    def predict(self, X: Array) -> Array:
        """Predict response curves (n, K) from features (n, q)."""
        score = (dot_rows(X, self.coef) + self.intercept)[:, None] + self.level_effects
        return sigmoid(score) if self.binary else score


@final
class Linear(ResponseModel):
    """Linear response model: a linear function of the features, plus level effects common to all customers.

    Parameters
    ----------
    penalty
        Ridge penalty on the features' coefficients (per row), or "auto": chosen by cross-validation.
    seed
        For that cross-validation.

    Attributes
    ----------
    fit_
        Coefficients (p,), intercept, the K−1 increments (on the logit scale for 0/1 responses), and the penalty used.
    amounts_
        The amounts of responders, for responses that look two-part (`suits_hurdle_model`); `fit_` is then of 0/1 responses.

    Examples
    --------
    >>> from largesse.worlds import simulate
    >>> sim = simulate("averaged", n=500)
    >>> Linear().fit(sim.log).predict(sim.features[:2]).shape
    (2, 5)
    """

    fit_: FittedRegression
    amounts_: ResponderAmounts | None

    def __init__(self, *, penalty: float | str = "auto", seed: int = 0) -> None:
        self.penalty = penalty
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        check_auto_setting(self, "penalty")
        log, self.amounts_ = split_off_responder_amounts(X, log, self.encoder_, self.seed)
        self.fit_ = fit_regression(make_regression_rows(X, log), penalty=self.penalty, seed=self.seed)

    def _curves(self, X: Array) -> Array:
        return multiply_by_amounts(self.fit_.predict(X), self.amounts_, X)

    @property
    def penalty_(self) -> float:
        """Ridge penalty chosen by cross-validation."""
        return self.fit_.penalty

    def _check_learnt(self) -> None:
        if len(self.fit_.coef) != len(self.encoder_.names):
            raise ValueError(f"{len(self.fit_.coef)} coefficients of {len(self.encoder_.names)} features")


# -- the solver ---------------------------------------------------------------------------------------------------------


def make_regression_rows(X: Array, log: Log) -> RegressionRows:
    """Combine encoded features (n, p) and a log to the rows of a regression."""
    levels = log.levels
    return RegressionRows(
        X, log.level, log.response, log.weights, len(levels), log.binary, scale_doses(levels), log.cluster
    )


def fit_regression(rows: RegressionRows, *, penalty: float | str = "auto", seed: int = 0) -> FittedRegression:
    """Fit a linear regression to rows, with a given or cross-validated ridge penalty.

    "auto" is chosen by cross-validation.
    """
    scale = rows.response_unit
    with limit_to_one_thread():
        rows, axes = _rotate_to_principal_axes(replace(rows, response=rows.response / scale))
        if isinstance(penalty, str):
            penalty = _choose_penalty(rows, seed)
        params = _replace_increments(_minimise_penalised_loss(rows, penalty, INCREMENT_STIFFNESS), rows)
    return _make_fitted_regression(params, axes, rows, scale, penalty)


def fit_regression_by_fold(rows: RegressionRows, fold: Array, penalty: float) -> list[FittedRegression]:
    """Fit one linear regression per fold, without the rows of the fold."""
    scale = rows.response_unit
    with limit_to_one_thread():
        rows, axes = _rotate_to_principal_axes(replace(rows, response=rows.response / scale))
        (fold_params,), _ = _fit_without_folds(rows, fold, [penalty], LINEAR_TOLERANCE)
        settled = [
            _replace_increments(params, rows.take_rows(fold != f))
            for params, f in zip(fold_params, np.unique(fold), strict=True)
        ]
    return [_make_fitted_regression(params, axes, rows, scale, penalty) for params in settled]


def compute_penalty_losses(rows: RegressionRows, fold: Array) -> Array:
    """Return the out-of-fold losses (penalties, n) of all rows under each ridge penalty.

    Amounts are in units of their spread, and every fit has increments of its own.
    """
    with limit_to_one_thread():
        rows, _ = _rotate_to_principal_axes(replace(rows, response=rows.response / rows.response_unit))
        return _fit_without_folds(rows, fold, LINEAR_PENALTIES, COMPARISON_TOLERANCE)[1]


def _replace_increments(params: Array, rows: RegressionRows) -> Array:
    """Replace the fitted increments between levels by shrunken increments, and refit the intercept.

    They are those of the averaged ladder.
    """
    p = rows.X.shape[1]
    base = (rows.X @ params[:p].astype(rows.X.dtype)).astype(np.float64)
    weight = rows.weight / (rows.weight.mean() or 1.0)
    scored = ScoredRows(Link(rows.binary), rows.level, rows.response, weight, rows.cluster, rows.doses)
    ladder = fit_level_effects(scored, base, slope=False)
    return np.concatenate([params[:p], np.diff(ladder.effects), [ladder.intercept]])


def _rotate_to_principal_axes(rows: RegressionRows) -> tuple[RegressionRows, PrincipalAxes | None]:
    """Rotate features to their principal axes if there are many features.

    The ridge penalty is the same in all directions, so the fit does not change.
    """
    if rows.X.shape[1] <= MAX_NEWTON_FEATURES:
        return rows, None
    axes = principal_axes(rows.X)
    return replace(rows, X=axes.Z, size=axes.size), axes


def _make_fitted_regression(
    params: Array, axes: PrincipalAxes | None, rows: RegressionRows, scale: float, penalty: float
) -> FittedRegression:
    p = rows.X.shape[1]
    coef = params[:p] if axes is None else axes.V @ params[:p]
    return FittedRegression(coef * scale, float(params[-1]) * scale, params[p:-1] * scale, rows.binary, penalty)


def _choose_penalty(rows: RegressionRows, seed: int) -> float:
    """Choose the ridge penalty with the lowest mean held-out loss."""
    shuffled = shuffle_rows(len(rows.level), LINEAR_SEARCH_ROWS, seed)
    if len(shuffled) < 2:
        return LINEAR_PENALTIES[-1]  # there is nothing to hold out
    rows = rows.take_rows(shuffled)
    _, losses = _fit_without_folds(
        rows, np.arange(len(shuffled)) % LINEAR_SEARCH_FOLDS, LINEAR_PENALTIES, COMPARISON_TOLERANCE
    )
    return LINEAR_PENALTIES[int(np.argmin(losses @ rows.weight))]


def _fit_without_folds(
    rows: RegressionRows, fold: Array, penalties: Sequence[float], tolerance: float
) -> tuple[Array, Array]:
    """Fit regressions without each fold, for each ridge penalty.

    Returns the parameters (penalties, folds, q) and the held-out losses (penalties, n) of the rows.
    """
    if rows.size is not None:
        return _fit_without_folds_on_axes(rows, fold, penalties)
    p, K = rows.X.shape[1], rows.K
    place = np.unique(fold, return_inverse=True)[1]
    ridges = np.stack([_make_penalty_matrix(p, K, penalty, INCREMENT_STIFFNESS) for penalty in penalties])
    if not rows.weight.any():
        rows = replace(rows, weight=np.ones(len(place)))
    first = _minimise_penalised_loss(
        rows, penalties[len(penalties) // 2], INCREMENT_STIFFNESS, tolerance=START_TOLERANCE
    )
    task = RegressionGrid(rows, place, ridges)
    params = fit_all_penalties(task, first, _make_lower_bounds(p, K), tolerance)
    return params, compute_loss(score_penalty_grid(task, params), rows.response, rows.binary)


def _fit_without_folds_on_axes(rows: RegressionRows, fold: Array, penalties: Sequence[float]) -> tuple[Array, Array]:
    """Fit regressions on principal axes without each fold, for each ridge penalty.

    The last penalty is the largest, and smaller ones take longer: once two in a row have brought no gain, the rest are not
    fitted, and their losses are infinite.
    """
    parts = np.unique(fold)
    params = np.zeros((len(penalties), len(parts), rows.X.shape[1] + rows.K))
    losses = np.full((len(penalties), len(fold)), np.inf)
    starts: list[Array | None] = [None] * len(parts)  # each fit starts where the one before it ended
    means: list[float] = []
    for j, penalty in reversed(list(enumerate(penalties))):
        for i, f in enumerate(parts):
            starts[i] = params[j, i] = _minimise_penalised_loss(
                rows.take_rows(fold != f), penalty, INCREMENT_STIFFNESS, starts[i]
            )
            test = rows.take_rows(fold == f)
            losses[j, fold == f] = compute_loss(_compute_scores(params[j, i], test), test.response, test.binary)
        means.append(float(rows.weight @ losses[j]))
        if len(means) > 2 and min(means[-2:]) > min(means):
            break
    return params, losses


def _compute_scores(parameters: Array, rows: RegressionRows) -> Array:
    p = rows.X.shape[1]
    effects = np.concatenate([[0.0], np.cumsum(parameters[p : p + rows.K - 1])])
    return (rows.X @ parameters[:p].astype(rows.X.dtype)).astype(np.float64) + effects[rows.level] + parameters[-1]


def _make_lower_bounds(p: int, K: int) -> Array:
    """Return the lower bounds (q,) of the parameters: zero for increments, −∞ for all others."""
    return np.concatenate([np.full(p, -np.inf), np.zeros(K - 1), [-np.inf]])


def _minimise_penalised_loss(
    rows: RegressionRows,
    penalty: float,
    stiffness: float,
    start: Array | None = None,
    tolerance: float = LINEAR_TOLERANCE,
) -> Array:
    """Return the parameters with the lowest penalised loss: coefficients (p,), increments (K−1,) and intercept."""
    p, K = rows.X.shape[1], rows.K
    lower = _make_lower_bounds(p, K)
    if start is None:
        start = np.zeros(p + K)
        mean = rows.weight @ rows.response / rows.weight.sum()
        start[-1] = logit(mean) if rows.binary else mean
    if rows.size is not None:
        return _minimise_loss_on_axes(rows, penalty, stiffness, start, lower)
    ridge = _make_penalty_matrix(p, K, penalty, stiffness)
    return minimise(
        lambda here: _compute_penalised_loss(here, rows, ridge),
        lambda here: _differentiate_penalised_loss(here, rows, ridge),
        start,
        lower=lower,
        tolerance=tolerance,
    )


def _minimise_loss_on_axes(rows: RegressionRows, penalty: float, stiffness: float, start: Array, lower: Array) -> Array:
    """Return the parameters with the lowest penalised loss for features on principal axes.

    Parameters are scaled so that all directions are about equally steep.
    """
    from scipy.optimize import minimize

    assert rows.size is not None
    p, K, whole = rows.X.shape[1], rows.K, rows.weight.sum()
    mean = float(rows.weight @ rows.response / whole)
    curvature = max(mean * (1.0 - mean), 0.01) if rows.binary else 1.0
    scale = 1.0 / np.sqrt(np.concatenate([curvature * rows.size + penalty, np.full(K, curvature)]))
    reached = level_design_matrix(K)

    def objective(scaled: Array) -> tuple[float, Array]:
        here = scale * scaled
        score = _compute_scores(here, rows)
        coef, increments = here[:p], here[p : p + K - 1]
        pull = rows.weight * compute_loss_slope(score, rows.response, rows.binary) / whole
        away = increments - increments.mean() if K > 1 else increments
        loss = rows.weight @ compute_loss(score, rows.response, rows.binary) / whole
        value = loss + 0.5 * penalty * coef @ coef + 0.5 * stiffness * away @ away
        rest = np.bincount(rows.level, pull, K) @ reached
        rest[: K - 1] += stiffness * away
        slope = np.concatenate([(pull.astype(rows.X.dtype) @ rows.X).astype(np.float64) + penalty * coef, rest])
        return float(value), scale * slope

    bounds = [(None if end == -np.inf else end, None) for end in (lower / scale).tolist()]
    options = {"maxiter": MAX_GRADIENT_STEPS, "ftol": LINEAR_TOLERANCE, "gtol": 1e-6}
    return scale * minimize(objective, start / scale, method="L-BFGS-B", jac=True, bounds=bounds, options=options).x


def _make_penalty_matrix(p: int, K: int, penalty: float, stiffness: float) -> Array:
    """Return the matrix (q, q) of the quadratic penalty on the parameters.

    It shrinks β to zero, increments to their mean, and the intercept not at all.
    """
    ridge = np.zeros((p + K, p + K))
    ridge[:p, :p] = penalty * np.eye(p)
    if K > 1:
        ridge[p : p + K - 1, p : p + K - 1] = stiffness * (np.eye(K - 1) - 1.0 / (K - 1))
    return ridge


def _compute_penalised_loss(parameters: Array, rows: RegressionRows, ridge: Array) -> float:
    loss = compute_loss(_compute_scores(parameters, rows), rows.response, rows.binary)
    return float(rows.weight @ loss / rows.weight.sum() + 0.5 * parameters @ ridge @ parameters)


def _differentiate_penalised_loss(parameters: Array, rows: RegressionRows, ridge: Array) -> tuple[Array, Array]:
    """Return the gradient (q,) and the Hessian (q, q) of the penalised loss.

    q = p + K.
    """
    X, level, K, whole = rows.X, rows.level, rows.K, rows.weight.sum()
    score = _compute_scores(parameters, rows)
    pull = rows.weight * compute_loss_slope(score, rows.response, rows.binary) / whole
    curve = rows.weight * compute_loss_curvature(score, rows.binary) / whole
    reached = level_design_matrix(K)
    slope = np.concatenate([(pull.astype(X.dtype) @ X).astype(np.float64), np.bincount(level, pull, K) @ reached])
    square, cross = _sum_weighted_products(X, level, curve, K)
    rest = reached.T @ np.diag(np.bincount(level, curve, K)) @ reached
    across = cross.T @ reached  # (p, K)
    curvature = np.block([[square, across], [across.T, rest]]) + ridge
    # A level without rows, or a feature that repeats another, must not make the system singular.
    return slope + ridge @ parameters, curvature + 1e-9 * np.eye(len(curvature))


def _sum_weighted_products(X: Array, level: Array, curve: Array, K: int) -> tuple[Array, Array]:
    """Return the weighted sums of x·xᵀ (p, p) over all rows, and of x (K, p) over the rows of each level.

    The weights are `curve`.

    The rows are summed in blocks that fit into the cache.
    """
    p = X.shape[1]
    square, cross = np.zeros((p, p)), np.zeros((K, p))
    for first in range(0, len(X), LINEAR_BLOCK_ROWS):
        block, code = X[first : first + LINEAR_BLOCK_ROWS], level[first : first + LINEAR_BLOCK_ROWS]
        weighted = block * curve[first : first + LINEAR_BLOCK_ROWS, None].astype(X.dtype) * X.dtype.type(len(X))
        square += block.T @ weighted
        for k in range(K):
            cross[k] += weighted[code == k].sum(axis=0)
    return square / len(X), cross / len(X)
