"""Costs and other amounts of zero or more: features scale the whole curve, and every level has a size of its own.

E[amount | x, k] = m_k · exp(x·β), by the Poisson likelihood, which needs no Poisson amounts: it asks only that the mean has
this form, and gives a few large amounts less say than least squares would. At any β the best m_k make the model's total at
each level the one in the log, so only β is searched for: −Σ y x·β + Σ_k Y_k log Σ_{i at k} exp(x_i·β), a convex function. A
level that never cost anything costs nothing; sizes may fall as levels rise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from largesse.errors import Problem, fail, plural
from largesse.records import Array, Log
from largesse.response.archive import Shaped
from largesse.response.base import ResponseModel, check_auto
from largesse.stats import assign_folds, dot_rows, minimise, one_thread, sample_rows

PENALTIES = (1.0, 0.1, 0.03, 0.01, 1e-3, 1e-4)  # in units of the mean amount, the strongest first
CHOOSING_ROWS = 20_000  # more rows do not make the choice of a penalty better, only slower
CHOOSING_FOLDS = 5
REACH = 30.0  # exp of more is no size of an amount


@dataclass(frozen=True, eq=False)
class Scaling:
    """A fitted model: coefficients of the scale, the size of every level, and the scales that the log has shown."""

    coef: Annotated[Array, Shaped("p")]
    sizes: Annotated[Array, Shaped("K")]
    low: float  # logarithms
    high: float
    penalty: float

    def predict(self, X: Array) -> Array:
        """Return amounts (n, K) of features (n, p); scales beyond those of the log are not believed."""
        return np.exp(np.clip(dot_rows(X, self.coef), self.low, self.high))[:, None] * self.sizes


@final
class Proportional(ResponseModel):
    """Features scale the whole curve, each level has its own size: for costs and other amounts of zero or more.

    Parameters
    ----------
    penalty
        Ridge penalty on the coefficients (per row), or "auto": chosen by cross-validation.
    seed
        For that cross-validation.

    >>> rng = np.random.default_rng(0)
    >>> x, level = rng.normal(size=(400, 1)), rng.integers(0, 2, 400)
    >>> costs = level * np.exp(x[:, 0]) * rng.exponential(size=400)
    >>> curves = Proportional().fit(x, level, costs).predict(x)
    >>> float(curves[:, 0].max()), bool((curves[:, 1] > 0).all())
    (0.0, True)
    """

    fit_: Scaling

    def __init__(self, *, penalty: float | str = "auto", seed: int = 0) -> None:
        self.penalty = penalty
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        check_auto(self, "penalty")
        below = int((log.response < 0).sum())
        if below:
            hint = "amounts are zero or more: use another model, such as Boosting()"
            fail("Proportional", Problem(f"the response is negative in {plural(below, 'row')}", hint))
        with one_thread(X.size):
            penalty = _choose_penalty(X, log, self.seed) if isinstance(self.penalty, str) else float(self.penalty)
            self.fit_ = _fit(X, log, (penalty,))[0]

    def _curves(self, X: Array) -> Array:
        return self.fit_.predict(X)

    def _check_learnt(self) -> None:
        if not self.fit_.low <= self.fit_.high <= 2 * REACH or self.fit_.low < -2 * REACH:
            raise ValueError(f"scales from {self.fit_.low} to {self.fit_.high}")


def _choose_penalty(X: Array, log: Log, seed: int) -> float:
    """Return the penalty with the least held-out Poisson loss."""
    some = sample_rows(len(log), CHOOSING_ROWS, seed) if len(log) > CHOOSING_ROWS else np.arange(len(log))
    X, log = X[some], log.take(some)
    fold, loss = assign_folds(log, CHOOSING_FOLDS, seed), np.zeros(len(PENALTIES))
    for f in np.unique(fold):
        test = fold == f
        held, own = log.take(test), np.arange(int(test.sum()))
        for j, fitted in enumerate(_fit(X[~test], log.take(~test), PENALTIES)):
            # A level without costs in the other folds would make any cost here impossible: it has a little.
            least = max(1e-6 * float(fitted.sizes.max(initial=0.0)), 1e-300)
            mean = np.maximum(fitted.predict(X[test])[own, held.level], least)
            loss[j] += float(held.weights @ (mean - held.response * np.log(mean)))
    return PENALTIES[int(np.argmin(loss))]


def _fit(X: Array, log: Log, penalties: tuple[float, ...]) -> list[Scaling]:
    """Return one fit for each penalty; each starts where the one before it ended."""
    K, X = len(log.levels), X.astype(np.float64)
    paid = log.weights * log.response
    total, whole = np.bincount(log.level, weights=paid, minlength=K), float(paid.sum())
    found, coef = [], np.zeros(X.shape[1])
    for penalty in penalties:
        if whole > 0:
            coef = _search(X, log, paid / whole, penalty, coef)
        score = np.clip(X @ coef, -REACH, REACH)
        mass = np.bincount(log.level, weights=log.weights * np.exp(score), minlength=K)
        sizes = np.divide(total, mass, out=np.zeros(K), where=mass > 0)
        found.append(Scaling(coef, sizes, float(score.min()), float(score.max()), penalty))
    return found


def _search(X: Array, log: Log, share: Array, penalty: float, start: Array) -> Array:
    """Return the coefficients (p,) with the least penalised loss; `share` (n,) is each row's share of all that was paid."""
    K, pull = len(log.levels), X.T @ share
    size = np.bincount(log.level, weights=share, minlength=K)

    def scales(coef: Array) -> tuple[Array, Array]:
        """Return the scale of every row (n,) as a share of its level's, and the logarithm of the latter (K,)."""
        score = X @ coef
        most = float(score.max())
        scale = log.weights * np.exp(score - most)
        mass = np.maximum(np.bincount(log.level, weights=scale, minlength=K), 1e-300)
        return scale / mass[log.level], np.log(mass) + most

    def objective(coef: Array) -> float:
        return float(size @ scales(coef)[1] - pull @ coef + penalty / 2 * (coef @ coef))

    def derivatives(coef: Array) -> tuple[Array, Array]:
        part = scales(coef)[0]
        means = np.stack(
            [X[log.level == k].T @ part[log.level == k] for k in range(K)]
        )  # (K, p) mean features, by scale
        slope = size @ means - pull + penalty * coef
        curvature = (X * (size[log.level] * part)[:, None]).T @ X - (means * size[:, None]).T @ means
        return slope, curvature + (penalty + 1e-9) * np.eye(len(coef))

    return minimise(objective, derivatives, start)
