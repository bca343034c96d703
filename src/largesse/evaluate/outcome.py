"""The plain regression: a linear base in the features plus a common, never falling step for each level.

On the logit scale for 0/1 responses, on the plain scale for amounts: s(x, k) = b + x·β + θ_1 + … + θ_k with θ ≥ 0.
A ridge penalty holds β; a stiffness holds the steps to their mean, since plans are made of steps and their noise costs
more than their shape is worth until the data clearly show it. Both are chosen on held-out rows.
It is what `response.Linear` fits, and the outcome model of a doubly robust score when no other model is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from largesse.data.threads import one_thread
from largesse.evaluate.estimate import mean_estimate
from largesse.records import Array

PENALTIES = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
STIFFNESSES = (10.0, 0.1, 0.0)  # equal steps, in between, free
CHOOSING_ROWS = 20_000  # more rows than this do not make the choice of a penalty better, only slower
CHOOSING_FOLDS = 5
NEWTON_STEPS = 50
TOLERANCE = 1e-10  # of the mean loss
BLOCK = 65_536  # rows


@dataclass(frozen=True, eq=False)
class StepFit:
    """What was learnt: base coefficients (p,), an intercept, and the K−1 steps between levels."""

    coef: Array
    intercept: float
    steps: Array
    binary: bool
    penalty: float

    def predict(self, X: Array) -> Array:
        """Return curves (n, K) of features (n, p)."""
        base = X @ self.coef.astype(X.dtype) + X.dtype.type(self.intercept)
        score = base.astype(np.float64)[:, None] + np.concatenate([[0.0], np.cumsum(self.steps)])
        return sigmoid(score) if self.binary else score


def sigmoid(score: Array) -> Array:
    """Return 1 / (1 + exp(−score)) without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * score))


def softmax(scores: Array) -> Array:
    """Return chances (n, K) in proportion to exp(scores)."""
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class _Rows:
    """What the regression is fitted to."""

    X: Array  # (n, p)
    level: Array  # (n,)
    response: Array  # (n,)
    weight: Array  # (n,)
    K: int
    binary: bool

    def take(self, rows: Array) -> _Rows:
        return _Rows(self.X[rows], self.level[rows], self.response[rows], self.weight[rows], self.K, self.binary)


def fit_steps(
    X: Array,
    level: Array,
    response: Array,
    *,
    K: int,
    binary: bool,
    weight: Array | None = None,
    penalty: float | None = None,
    stiffness: float | None = None,
    seed: int = 0,
) -> StepFit:
    """Fit the regression to features (n, p), levels and responses (n,).

    A `penalty` of None is chosen by cross-validation, and so is the stiffness, unless both are given.
    """
    scale = 1.0 if binary else float(np.std(response)) or 1.0
    weight = np.ones(len(level)) if weight is None else weight
    rows = _Rows(X, level, response / scale, weight, K, binary)
    with one_thread():
        if penalty is None or stiffness is None:
            penalty, stiffness = _chosen(rows, penalty, seed)
        found = _minimum(rows, penalty, stiffness)
    return _fit_of(found, X.shape[1], scale, binary, penalty)


def fold_fits(
    X: Array,
    level: Array,
    response: Array,
    fold: Array,
    settings: Sequence[tuple[float, float]],
    *,
    K: int,
    binary: bool,
    weight: Array | None = None,
) -> tuple[list[list[StepFit]], Array]:
    """Fit every (penalty, stiffness) without each fold in turn.

    Return the fits, settings × folds, and every row's loss (settings, n) under the fit that did not see it: amounts in
    units of their spread.
    """
    scale = 1.0 if binary else float(np.std(response)) or 1.0
    weight = np.ones(len(level)) if weight is None else weight
    rows = _Rows(X, level, response / scale, weight, K, binary)
    with one_thread():
        found, losses = _without_folds(rows, fold, settings)
    p = X.shape[1]
    fits = [
        [_fit_of(one, p, scale, binary, penalty) for one in each]
        for each, (penalty, _) in zip(found, settings, strict=True)
    ]
    return fits, losses


def _fit_of(found: Array, p: int, scale: float, binary: bool, penalty: float) -> StepFit:
    return StepFit(found[:p] * scale, float(found[-1]) * scale, found[p:-1] * scale, binary, penalty)


def _chosen(rows: _Rows, penalty: float | None, seed: int) -> tuple[float, float]:
    """Choose the penalty by mean held-out loss, then the stiffness: the stiffest within one paired standard error."""
    shuffled = np.random.default_rng(seed).permutation(len(rows.level))[:CHOOSING_ROWS]
    rows = rows.take(shuffled)
    fold = np.arange(len(shuffled)) % CHOOSING_FOLDS
    if penalty is None:
        losses = _held_out(rows, fold, [(p, STIFFNESSES[1]) for p in PENALTIES])
        penalty = PENALTIES[int(np.argmin(losses @ rows.weight))]
    losses = _held_out(rows, fold, [(penalty, s) for s in STIFFNESSES])
    best = int(np.argmin(losses @ rows.weight))
    for stiffness, row in zip(STIFFNESSES, losses, strict=True):
        worse = mean_estimate(row - losses[best], rows.weight)
        if worse.estimate <= worse.se:
            return penalty, stiffness
    return penalty, STIFFNESSES[best]


def _held_out(rows: _Rows, fold: Array, settings: list[tuple[float, float]]) -> Array:
    """Return the loss of every row (settings, n) under fits that did not see it."""
    return _without_folds(rows, fold, settings)[1]


def _without_folds(
    rows: _Rows, fold: Array, settings: Sequence[tuple[float, float]]
) -> tuple[list[list[Array]], Array]:
    """Return the parameters, settings × folds, of fits without each fold, and rows' losses (settings, n) under them."""
    found: list[list[Array]] = [[] for _ in settings]
    losses = np.empty((len(settings), len(fold)))
    for f in np.unique(fold):
        train, test = rows.take(fold != f), rows.take(fold == f)
        start = None  # each fit starts where the one before it ended
        for j, (penalty, stiffness) in reversed(list(enumerate(settings))):
            start = _minimum(train, penalty, stiffness, start)
            losses[j, fold == f] = _losses(_scores(start, test), test.response, test.binary)[0]
            found[j].append(start)
    return found, losses


def _scores(parameters: Array, rows: _Rows) -> Array:
    p = rows.X.shape[1]
    ladder = np.concatenate([[0.0], np.cumsum(parameters[p : p + rows.K - 1])])
    return (rows.X @ parameters[:p].astype(rows.X.dtype)).astype(np.float64) + ladder[rows.level] + parameters[-1]


def _losses(score: Array, response: Array, binary: bool) -> tuple[Array, Array]:
    """Return the loss of each row and its slope in the score."""
    if binary:
        return np.logaddexp(0.0, score) - response * score, sigmoid(score) - response
    return 0.5 * (score - response) ** 2, score - response


def _minimum(rows: _Rows, penalty: float, stiffness: float, start: Array | None = None) -> Array:
    """Return the parameters with the least penalised loss: coefficients (p,), steps (K−1,), intercept.

    Newton's method; steps that would fall below zero are held there (Bertsekas 1982). A handful of passes over the rows.
    """
    p, K = rows.X.shape[1], rows.K
    ridge = _ridge(p, K, penalty, stiffness)
    low = np.concatenate([np.full(p, -np.inf), np.zeros(K - 1), [-np.inf]])
    if start is None:
        start = np.zeros(p + K)
        start[-1] = _flat_score(float(rows.weight @ rows.response / rows.weight.sum()), rows.binary)
    here, value = start, _objective(start, rows, ridge)
    for _ in range(NEWTON_STEPS):
        slope, curvature = _derivatives(here, rows, ridge)
        free = ~((here <= low) & (slope > 0))
        move = np.zeros(p + K)
        move[free] = np.linalg.solve(curvature[np.ix_(free, free)], -slope[free])
        before = value
        for shorter in range(20):
            tried = np.maximum(here + 0.5**shorter * move, low)
            value = _objective(tried, rows, ridge)
            if value <= before:
                here = tried
                break
        if not value < before - TOLERANCE:
            break
    return here


def _ridge(p: int, K: int, penalty: float, stiffness: float) -> Array:
    """Return the matrix of the penalties: β is held to zero, steps to their mean, the intercept not at all."""
    ridge = np.zeros((p + K, p + K))
    ridge[:p, :p] = penalty * np.eye(p)
    if K > 1:
        ridge[p : p + K - 1, p : p + K - 1] = stiffness * (np.eye(K - 1) - 1.0 / (K - 1))
    return ridge


def _objective(parameters: Array, rows: _Rows, ridge: Array) -> float:
    loss, _ = _losses(_scores(parameters, rows), rows.response, rows.binary)
    return float(rows.weight @ loss / rows.weight.sum() + 0.5 * parameters @ ridge @ parameters)


def _derivatives(parameters: Array, rows: _Rows, ridge: Array) -> tuple[Array, Array]:
    """Return slope (q,) and curvature (q, q) of the objective, q = p + K; steps and intercept via sums per level."""
    X, level, K, whole = rows.X, rows.level, rows.K, rows.weight.sum()
    score = _scores(parameters, rows)
    pull = rows.weight * _losses(score, rows.response, rows.binary)[1] / whole
    bend = rows.weight * (_bend(score) if rows.binary else 1.0) / whole
    climb = _climb(K)  # (K, K): which steps, and the intercept, a row at each level feels
    slope = np.concatenate([(pull.astype(X.dtype) @ X).astype(np.float64), np.bincount(level, pull, K) @ climb])
    square, cross = _moments(X, level, bend, K)
    rest = climb.T @ np.diag(np.bincount(level, bend, K)) @ climb
    across = cross.T @ climb  # (p, K)
    curvature = np.block([[square, across], [across.T, rest]]) + ridge
    # A level without rows, or a feature that repeats another, must not make the system singular.
    return slope + ridge @ parameters, curvature + 1e-9 * np.eye(len(curvature))


def _bend(score: Array) -> Array:
    chance = sigmoid(score)
    return chance * (1.0 - chance)


def _climb(K: int) -> Array:
    return np.column_stack([np.tril(np.ones((K, K)))[:, 1:], np.ones(K)])


def _moments(X: Array, level: Array, bend: Array, K: int) -> tuple[Array, Array]:
    """Return Σ bend·x·xᵀ (p, p) and its sums per level Σ bend·x (K, p), in blocks that fit the cache."""
    p = X.shape[1]
    square, cross = np.zeros((p, p)), np.zeros((K, p))
    for first in range(0, len(X), BLOCK):
        part, code = X[first : first + BLOCK], level[first : first + BLOCK]
        weighted = part * bend[first : first + BLOCK, None].astype(X.dtype) * X.dtype.type(len(X))
        square += part.T @ weighted
        for k in range(K):
            cross[k] += weighted[code == k].sum(axis=0)
    return square / len(X), cross / len(X)


def _flat_score(mean: float, binary: bool) -> float:
    if not binary:
        return mean
    inside = min(max(mean, 1e-6), 1 - 1e-6)
    return float(np.log(inside / (1 - inside)))
