"""The plain regression: a linear base in the features plus a common, never falling step for each level.

On the logit scale for 0/1 responses, on the plain scale for amounts: s(x, k) = b + x·β + θ_1 + … + θ_k with θ ≥ 0.
A ridge penalty holds β; a stiffness holds the steps to their mean, since plans are made of steps and their noise costs
more than their shape is worth until the data clearly show it. Both are chosen on held-out rows.
It is what `response.Linear` fits, and the outcome model of a doubly robust score when no other model is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from largesse.records import Array
from largesse.response.archive import Shaped
from largesse.stats import Axes, chosen, one_standard_error, one_thread, principal_axes, sigmoid

PENALTIES = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
STIFFNESSES = (10.0, 0.1, 0.0)  # equal steps, in between, free
CHOOSING_ROWS = 20_000  # more rows than this do not make the choice of a penalty better, only slower
CHOOSING_FOLDS = 5
NEWTON_STEPS = 50
TOLERANCE = 1e-10  # of the mean loss
BLOCK = 65_536  # rows
WIDE = 300  # features, beyond which Newton's matrices cost more than gradients on principal axes
GRADIENTS = 500


@dataclass(frozen=True, eq=False)
class StepFit:
    """What was learnt: base coefficients (p,), an intercept, and the K−1 steps between levels."""

    coef: Annotated[Array, Shaped("q")]
    intercept: float
    steps: Annotated[Array, Shaped("K-1")]
    binary: bool
    penalty: float

    def predict(self, X: Array) -> Array:
        """Return curves (n, K) of features (n, p)."""
        base = X @ self.coef.astype(X.dtype) + X.dtype.type(self.intercept)
        score = base.astype(np.float64)[:, None] + np.concatenate([[0.0], np.cumsum(self.steps)])
        return sigmoid(score) if self.binary else score


@dataclass(frozen=True, eq=False)
class _Rows:
    """What the regression is fitted to."""

    X: Array  # (n, p)
    level: Array  # (n,)
    response: Array  # (n,)
    weight: Array  # (n,)
    K: int
    binary: bool
    size: Array | None = None  # (p,) mean squares of the features, where these are principal axes

    def take(self, rows: Array) -> _Rows:
        return replace(
            self, X=self.X[rows], level=self.level[rows], response=self.response[rows], weight=self.weight[rows]
        )


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
        rows, axes = _turned(rows)
        if penalty is None or stiffness is None:
            penalty, stiffness = _chosen(rows, penalty, seed)
        found = _minimum(rows, penalty, stiffness)
    return _fit_of(found, axes, rows, scale, penalty)


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
        rows, axes = _turned(rows)
        found, losses = _without_folds(rows, fold, settings)
    fits = [
        [_fit_of(one, axes, rows, scale, penalty) for one in each]
        for each, (penalty, _) in zip(found, settings, strict=True)
    ]
    return fits, losses


def _turned(rows: _Rows) -> tuple[_Rows, Axes | None]:
    """Return rows with many features on their principal axes: the ridge penalty knows no directions."""
    if rows.X.shape[1] <= WIDE:
        return rows, None
    axes = principal_axes(rows.X)
    return replace(rows, X=axes.Z, size=axes.size), axes


def _fit_of(found: Array, axes: Axes | None, rows: _Rows, scale: float, penalty: float) -> StepFit:
    p = rows.X.shape[1]
    coef = found[:p] if axes is None else axes.V @ found[:p]
    return StepFit(coef * scale, float(found[-1]) * scale, found[p:-1] * scale, rows.binary, penalty)


def _chosen(rows: _Rows, penalty: float | None, seed: int) -> tuple[float, float]:
    """Choose the penalty by mean held-out loss, then the stiffness: the stiffest within one paired standard error."""
    shuffled = np.random.default_rng(seed).permutation(len(rows.level))[:CHOOSING_ROWS]
    rows = rows.take(shuffled)
    fold = np.arange(len(shuffled)) % CHOOSING_FOLDS
    if penalty is None:
        losses = _held_out(rows, fold, [(p, STIFFNESSES[1]) for p in PENALTIES])
        penalty = PENALTIES[int(np.argmin(losses @ rows.weight))]
    losses = _held_out(rows, fold, [(penalty, s) for s in STIFFNESSES])
    return penalty, STIFFNESSES[chosen(one_standard_error([f"{s:g}" for s in STIFFNESSES], losses, rows.weight))]


def _held_out(rows: _Rows, fold: Array, settings: list[tuple[float, float]]) -> Array:
    """Return the loss of every row (settings, n) under fits that did not see it."""
    return _without_folds(rows, fold, settings)[1]


def _without_folds(
    rows: _Rows, fold: Array, settings: Sequence[tuple[float, float]]
) -> tuple[list[list[Array]], Array]:
    """Return the parameters, settings × folds, of fits without each fold, and rows' losses (settings, n) under them.

    Fits to many features of ever smaller penalty, the last of the settings being the largest, take ever longer: once two in
    a row have brought nothing, the rest are not made, and their losses are infinite.
    """
    parts = np.unique(fold)
    found: list[list[Array]] = [[] for _ in settings]
    losses = np.full((len(settings), len(fold)), np.inf)
    starts: list[Array | None] = [None] * len(parts)  # each fit starts where the one before it ended
    means: list[float] = []
    for j, (penalty, stiffness) in reversed(list(enumerate(settings))):
        for i, f in enumerate(parts):
            here = _minimum(rows.take(fold != f), penalty, stiffness, starts[i])
            test = rows.take(fold == f)
            losses[j, fold == f] = _losses(_scores(here, test), test.response, test.binary)[0]
            found[j].append(here)
            starts[i] = here
        means.append(float(rows.weight @ losses[j]))
        smaller = penalty < settings[-1][0] and rows.size is not None
        if smaller and len(means) > 2 and min(means[-2:]) > min(means):
            break
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
    """Return the parameters with the least penalised loss: coefficients (p,), steps (K−1,), intercept."""
    p, K = rows.X.shape[1], rows.K
    low = np.concatenate([np.full(p, -np.inf), np.zeros(K - 1), [-np.inf]])
    if start is None:
        start = np.zeros(p + K)
        start[-1] = _flat_score(float(rows.weight @ rows.response / rows.weight.sum()), rows.binary)
    if rows.size is not None:
        return _by_gradients(rows, penalty, stiffness, start, low)
    return _by_newton(rows, _ridge(p, K, penalty, stiffness), start, low)


def _by_newton(rows: _Rows, ridge: Array, start: Array, low: Array) -> Array:
    """Return the minimum by Newton's method: steps that would fall below zero are held there (Bertsekas 1982)."""
    here, value = start, _objective(start, rows, ridge)
    for _ in range(NEWTON_STEPS):
        slope, curvature = _derivatives(here, rows, ridge)
        free = ~((here <= low) & (slope > 0))
        move = np.zeros(len(here))
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


def _by_gradients(rows: _Rows, penalty: float, stiffness: float, start: Array, low: Array) -> Array:
    """Return the minimum for features on principal axes: scaled by their size, all directions are about as steep."""
    from scipy.optimize import minimize

    assert rows.size is not None
    p, K, whole = rows.X.shape[1], rows.K, rows.weight.sum()
    mean = float(rows.weight @ rows.response / whole)
    bend = max(mean * (1.0 - mean), 0.01) if rows.binary else 1.0
    scale = 1.0 / np.sqrt(np.concatenate([bend * rows.size + penalty, np.full(K, bend)]))
    climb = _climb(K)

    def objective(scaled: Array) -> tuple[float, Array]:
        here = scale * scaled
        loss, pull = _losses(_scores(here, rows), rows.response, rows.binary)
        coef, steps = here[:p], here[p : p + K - 1]
        pull = rows.weight * pull / whole
        away = steps - steps.mean() if K > 1 else steps
        value = rows.weight @ loss / whole + 0.5 * penalty * coef @ coef + 0.5 * stiffness * away @ away
        rest = np.bincount(rows.level, pull, K) @ climb
        rest[: K - 1] += stiffness * away
        slope = np.concatenate([(pull.astype(rows.X.dtype) @ rows.X).astype(np.float64) + penalty * coef, rest])
        return float(value), scale * slope

    bounds = [(None if end == -np.inf else end, None) for end in (low / scale).tolist()]
    options = {"maxiter": GRADIENTS, "ftol": TOLERANCE, "gtol": 1e-6}
    return scale * minimize(objective, start / scale, method="L-BFGS-B", jac=True, bounds=bounds, options=options).x


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
