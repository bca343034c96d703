"""Each customer's own threshold: the cheapest level that they respond to, its chances linear in the features.

A customer who responds at one level responds at every dearer one, so what there is to know about them is where they begin:
at level 0, 1, … K−1, or never. P(begins at j | x) is a softmax of K+1 straight lines, and f(x, k) = P(begins at k or
before). A row of the log tells on which side of its level the threshold lies, no more. A ridge penalty, chosen on held-out
rows, holds the lines; it knows no directions, so it is fitted on principal axes, where steps of very different lengths can
be scaled beforehand and a few dozen steps are enough, for a thousand features too. Amounts are fitted as shares of their range.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from largesse.records import Array, Log
from largesse.response.archive import Shaped
from largesse.response.base import ResponseModel
from largesse.stats import Axes, assign_folds, least_loss, one_thread, principal_axes, softmax

PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # per row; the most shrunk first
CHOOSING_ROWS = 20_000  # tell which penalty
ROWS = 100_000  # tell a few hundred coefficients
FOLDS = 5
AXES = 400  # the longest: of the others a ridge penalty leaves next to nothing
STEPS = 200
TOLERANCE = 1e-7  # of the mean loss
STIFFNESS = 0.01  # holds the lines' heights to the usual thresholds
LEAST = 0.005  # the usual chance of any threshold
ROWS_AT_ONCE = 65_536
MANY = 100  # features, beyond which lines of every level are asked for unasked: embeddings have more, tables fewer
SMALLEST = 1e-9  # a chance whose logarithm is taken


@dataclass(frozen=True, eq=False)
class Lines:
    """K+1 straight lines: what softmax turns into the chances of thresholds."""

    coef: Annotated[Array, Shaped("p", "K+1")]
    intercept: Annotated[Array, Shaped("K+1")]

    def curves(self, X: Array) -> Array:
        """Return P(threshold ≤ k) (n, K) of features (n, p)."""
        # A plain sum, not a matrix product: a row's curve must not depend on which rows come with it.
        score = np.einsum("ij,jk->ik", X.astype(np.float64), self.coef) + self.intercept
        return np.minimum(np.cumsum(softmax(score)[:, :-1], axis=1), 1.0)


@final
class Thresholds(ResponseModel):
    """Where each customer begins to respond: a softmax of straight lines over levels, and never.

    Unlike `Linear`, every level has coefficients of its own, so that curves of customers differ in shape; the ridge
    penalty keeps that affordable with many correlated features, such as embeddings of images or text.

    Parameters
    ----------
    penalty
        Ridge penalty on the coefficients (per row); None chooses it on held-out rows.
    seed
        How the log is cut to choose.

    Attributes
    ----------
    choices_
        What was tried, with its held-out loss and its difference from the best.
    penalty_, lines_
        The penalty used, and the lines.

    >>> from largesse.worlds import simulate
    >>> sim = simulate("averaged", n=500)
    >>> curves = Thresholds().fit(sim.log).predict(sim.features)
    >>> bool((np.diff(curves, axis=1) >= 0).all())
    True
    """

    shrinks = True  # the ridge holds own increments as much as all else
    whole = True  # a mean of lines is a line: it has nothing to gain from a mean

    lines_: Lines
    penalty_: float
    range_: tuple[float, float]  # of the responses

    def __init__(self, *, penalty: float | None = None, seed: int = 0) -> None:
        self.penalty = penalty
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        X, log, _ = _some(X, log, ROWS, self.seed)
        few, some, _ = _some(X, log, CHOOSING_ROWS, self.seed)
        self._choose(few, some, assign_folds(some, FOLDS, self.seed))
        self.lines_ = fit_lines(X, self._told(log), len(log.levels), self.penalty_)

    def fold_models(self, X: Array, log: Log, fold: Array) -> list[ResponseModel]:
        """Return one fitted model per fold of encoded features (n, p), each trained without it; the penalty chosen for all."""
        few, some, kept = _some(X, log, CHOOSING_ROWS, self.seed)
        lines = self._choose(few, some, fold[kept])
        if len(X) > CHOOSING_ROWS:
            lines = []
            for f in np.unique(fold):
                mine, part, _ = _some(X[fold != f], log.take(fold != f), ROWS, self.seed)
                lines.append(fit_lines(mine, self._told(part), len(log.levels), self.penalty_))
        return [self._single(one) for one in lines]

    def _told(self, log: Log) -> tuple[Array, Array, Array]:
        """Return levels, responses as shares of their range, and weights that sum to one."""
        weight = np.ones(len(log)) if log.weight is None else log.weight
        low, high = self.range_
        return log.level, (log.response - low) / (high - low), weight / weight.sum()

    def _choose(self, X: Array, log: Log, fold: Array) -> list[Lines]:
        """Choose the penalty on held-out rows; return the chosen lines of all folds."""
        low, high = (0.0, 1.0) if log.binary else (float(log.response.min()), float(log.response.max()))
        self.range_ = (low, high if high > low else low + 1.0)
        tried = PENALTIES if self.penalty is None else (float(self.penalty),)
        found, losses = fold_lines(X, self._told(log), len(log.levels), fold, tried)
        names = [f"{penalty:g}" for penalty in tried[: len(found)]]
        self.choices_ = least_loss(names, losses, log.weight, log.cluster, of="Thresholds: lines held by")
        kept = next(i for i, choice in enumerate(self.choices_) if choice.chosen)
        self.penalty_ = tried[kept]
        return found[kept]

    def _single(self, lines: Lines) -> ResponseModel:
        """Return a copy of this model with other lines."""
        one = copy.copy(self)
        one.lines_ = lines
        return one

    def _curves(self, X: Array) -> Array:
        low, high = self.range_
        curves = np.empty((len(X), self.levels_))
        for first in range(0, len(X), ROWS_AT_ONCE):
            curves[first : first + ROWS_AT_ONCE] = self.lines_.curves(X[first : first + ROWS_AT_ONCE])
        return low + (high - low) * curves


# -- fitting ---------------------------------------------------------------------------------------------------------


def fold_lines(
    X: Array, told: tuple[Array, Array, Array], K: int, fold: Array, penalties: Sequence[float]
) -> tuple[list[list[Lines]], Array]:
    """Fit falling penalties without each fold in turn, until two in a row have brought nothing.

    `told` are levels, responses in [0, 1] and weights (n,). Return the lines, penalties × folds, and every row's loss
    (penalties, n) under lines that did not see it.
    """
    parts = np.unique(fold)
    found: list[list[Lines]] = []
    losses: list[Array] = []
    with one_thread():
        axes = principal_axes(X, AXES)
        paths = [_Path(axes, fold != f, told, K) for f in parts]
        for penalty in penalties:
            found.append([path.fit(penalty) for path in paths])
            losses.append(_held_out(found[-1], X, told, fold))
            means = [told[2] @ row for row in losses]
            if len(means) > 2 and min(means[-2:]) > min(means):
                break
    return found, np.array(losses)


def _held_out(lines: Sequence[Lines], X: Array, told: tuple[Array, Array, Array], fold: Array) -> Array:
    losses = np.empty(len(fold))
    for one, f in zip(lines, np.unique(fold), strict=True):
        test = np.flatnonzero(fold == f)
        losses[test] = _row_losses(one.curves(X[test])[np.arange(len(test)), told[0][test]], told[1][test])
    return losses


def fit_lines(X: Array, told: tuple[Array, Array, Array], K: int, penalty: float) -> Lines:
    """Return the lines for features (n, p), and levels, responses in [0, 1] and weights (n,)."""
    with one_thread():
        return _Path(principal_axes(X, AXES), np.ones(len(X), dtype=bool), told, K).fit(penalty)


class _Path:
    """Lines of falling penalties for some rows, each started where the one before it ended."""

    def __init__(self, axes: Axes, rows: Array, told: tuple[Array, Array, Array], K: int) -> None:
        self.axes, self.K, self.Z = axes, K, axes.Z[rows]
        self.level, self.share, weight = (part[rows] for part in told)
        self.weight = weight / (weight.sum() or 1.0)
        self.usual = np.log(_usual(self.level, self.share, self.weight, K))
        self.B, self.rest = np.zeros((len(axes.size), K + 1)), self.usual.copy()

    def fit(self, penalty: float) -> Lines:
        """Return the lines with the least penalised loss."""
        from scipy.optimize import minimize

        mean = float(np.clip(self.weight @ self.share, 0.01, 0.99))
        # On these axes the curvature is nearly diagonal: scaled by its size, all directions are about as steep.
        scale = 1.0 / np.sqrt(0.5 * mean * (1.0 - mean) * self.axes.size + penalty)[:, None]
        start = np.concatenate([(self.B / scale).ravel(), self.rest])
        options = {"maxiter": STEPS, "ftol": TOLERANCE}
        end = minimize(self._objective, start, (scale, penalty), "L-BFGS-B", jac=True, options=options).x
        self.B, self.rest = self._parts(end, scale)
        return Lines(self.axes.V @ self.B, self.rest)

    def _parts(self, flat: Array, scale: Array) -> tuple[Array, Array]:
        return scale * flat[: -(self.K + 1)].reshape(-1, self.K + 1), flat[-(self.K + 1) :].copy()

    def _objective(self, flat: Array, scale: Array, penalty: float) -> tuple[float, Array]:
        """Return the penalised loss and its slope."""
        B, rest = self._parts(flat, scale)
        value, slope = self._loss(B, rest)
        away = rest - self.usual
        away = np.append(away[:-1] - away[:-1].mean(), 0.0)  # how many respond at all is left to the rows
        value += 0.5 * penalty * float((B * B).sum()) + 0.5 * STIFFNESS * float(away @ away)
        pull = (self.Z.T @ slope.astype(self.Z.dtype)).astype(np.float64) + penalty * B
        return value, np.concatenate([(scale * pull).ravel(), slope.sum(axis=0) + STIFFNESS * away])

    def _loss(self, B: Array, rest: Array) -> tuple[float, Array]:
        """Return the mean log loss and its slope (n, K+1) in the scores."""
        chance = softmax((self.Z @ B.astype(self.Z.dtype)).astype(np.float64) + rest)
        before = np.arange(self.K + 1) <= self.level[:, None]
        at = np.clip((chance * before).sum(axis=1), SMALLEST, 1.0 - SMALLEST)
        pull = (1.0 - self.share) / (1.0 - at) - self.share / at  # of the loss in f
        slope = (self.weight * pull)[:, None] * chance * (before - at[:, None])
        return float(self.weight @ _row_losses(at, self.share)), slope


def _usual(level: Array, share: Array, weight: Array, K: int) -> Array:
    """Return the chances (K+1,) of thresholds before anything is known of a customer: none is left out.

    A straight line through the mean responses tells them: its height at the first level, and equal rises. Rises of the
    means themselves are noise, and a level that happens to bring nothing would be lost for everybody, since what has no
    chance has no slope to come back by.
    """
    mean, middle = float(weight @ share), float(weight @ level)
    spread = float(weight @ (level - middle) ** 2)
    rise = float(weight @ ((level - middle) * (share - mean))) / spread if spread > 0 else 0.0
    rise = float(np.clip(rise, LEAST, (1.0 - mean) / K))
    chances = np.concatenate([[max(mean - rise * middle, rise, LEAST)], np.full(K - 1, rise)])
    never = max(1.0 - float(chances.sum()), LEAST)
    return np.append(chances, never) / (chances.sum() + never)


def _row_losses(at: Array, share: Array) -> Array:
    at = np.clip(at, SMALLEST, 1.0 - SMALLEST)
    return -(share * np.log(at) + (1.0 - share) * np.log1p(-at))


def _some(X: Array, log: Log, rows: int, seed: int) -> tuple[Array, Log, Array]:
    """Return at most so many rows of features and log, and which they are, taken at random and left in their order."""
    if len(X) <= rows:
        return X, log, np.arange(len(X))
    kept = np.sort(np.random.default_rng(seed).permutation(len(X))[:rows])
    return X[kept], log.take(kept), kept
