"""Bent lines, one per feature, plus common steps: what a straight line misses when each feature has its own shape.

s(x, k) = b + Σ_j g_j(x_j) + θ_1 + … + θ_k on the logit scale for 0/1 responses, on the plain scale for amounts. A g_j is a
line plus hinges at quantiles of its feature, made to say nothing that the line says; a ridge penalty holds the lines, and
the hinges `bend` times less or more. With no bend this is `Linear`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from largesse.records import Array, Log
from largesse.response.base import ResponseModel
from largesse.response.bends import Bends, bends
from largesse.response.regression import PENALTIES, STIFFNESSES, StepFit, fit_steps, fold_fits
from largesse.stats import assign_folds, chosen, one_standard_error

BENDS = (0.0, 0.5, 2.0)
ROWS = 100_000  # a few hundred coefficients are known well enough from these
CHOOSING_ROWS = 20_000  # and settings from these
FOLDS = 5
ROWS_AT_ONCE = 65_536  # whose hinges are held together when predicting
MOST_HINGES = 1500  # with more features than that allows, all keep straight lines: a fit costs their number cubed


@final
class Additive(ResponseModel):
    """Each feature's own bent line moves the whole curve; levels add common, never falling steps.

    Parameters
    ----------
    knots
        Hinges per feature, at its quantiles; features of fewer distinct values keep a straight line, and all do when
        there are more than a few hundred.
    bends
        How much freer the hinges are than the lines: what is tried; 0 (straight lines) is always among them. The
        straightest is chosen that is worse than the best by no more than one standard error of the rows' paired losses.
    seed
        How the log is cut to choose.

    Attributes
    ----------
    choices_
        What was tried, with its held-out loss and its difference from the best.
    bend_, penalty_
        What was chosen.

    >>> from largesse.worlds import simulate
    >>> sim = simulate("unit", n=500)
    >>> model = Additive().fit(sim.log)
    >>> model.bend_ > 0, model.predict(sim.features[:2]).shape
    (True, (2, 5))
    """

    bend_: float
    bends_: Bends
    fit_: StepFit

    def __init__(self, *, knots: int = 5, bends: Sequence[float] = BENDS, seed: int = 0) -> None:
        self.knots = knots
        self.bends = bends
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        X, log, _ = _some(X, log, ROWS, self.seed)
        few, some, _ = _some(X, log, CHOOSING_ROWS, self.seed)
        self._shape(X)
        penalty, stiffness, _ = self._choose(few, some, assign_folds(some, FOLDS, self.seed))
        self.fit_ = fit_steps(
            self._design(X),
            log.level,
            log.response,
            K=len(log.levels),
            binary=log.binary,
            weight=log.weight,
            penalty=penalty,
            stiffness=stiffness,
        )

    def fold_models(self, X: Array, log: Log, fold: Array) -> list[ResponseModel]:
        """Return one fitted model per fold of encoded features (n, p), each trained without it; settings chosen for all."""
        self._shape(X)
        few, some, kept = _some(X, log, CHOOSING_ROWS, self.seed)
        penalty, stiffness, fits = self._choose(few, some, fold[kept])
        if len(X) > CHOOSING_ROWS:
            fits = []
            for f in np.unique(fold):
                mine, part, _ = _some(X[fold != f], log.take(fold != f), ROWS, self.seed)
                known: dict[str, Any] = {"K": len(log.levels), "binary": log.binary, "weight": part.weight}
                design = self._design(mine)
                fits.append(fit_steps(design, part.level, part.response, **known, penalty=penalty, stiffness=stiffness))
        return [self._single(fit) for fit in fits]

    def _shape(self, X: Array) -> None:
        self.bends_ = bends(X if X.shape[1] * self.knots <= MOST_HINGES else X[:, :0], self.knots)

    def _design(self, X: Array, bend: float | None = None) -> Array:
        """Return lines and hinges (n, q) of encoded features (n, p), the hinges scaled by how free they are."""
        bend = self.bend_ if bend is None else bend
        return np.concatenate([X, X.dtype.type(bend) * self.bends_(X)], axis=1) if bend else X

    def _choose(self, X: Array, log: Log, fold: Array) -> tuple[float, float, list[StepFit]]:
        """Choose bend, penalty and stiffness on held-out rows; return the last two and the chosen fits of all folds."""
        K = len(log.levels)
        tried: list[tuple[float, float, Array]] = []  # bend, penalty, rows' losses
        for bend in sorted({0.0, *self.bends}) if len(self.bends_.columns) else [0.0]:
            settings = [(penalty, STIFFNESSES[1]) for penalty in PENALTIES]
            _, losses = fold_fits(
                self._design(X, bend),
                log.level,
                log.response,
                fold,
                settings,
                K=K,
                binary=log.binary,
                weight=log.weight,
            )
            best = int(np.argmin(np.average(losses, axis=1, weights=log.weight)))
            tried.append((bend, PENALTIES[best], losses[best]))
        self.choices_ = one_standard_error(
            [f"bend {bend:g}" for bend, _, _ in tried],
            np.array([row for _, _, row in tried]),
            log.weight,
            log.cluster,
            of="Additive: shapes of features",
        )
        self.bend_, penalty, _ = tried[chosen(self.choices_)]
        fits, losses = fold_fits(
            self._design(X),
            log.level,
            log.response,
            fold,
            [(penalty, stiffness) for stiffness in STIFFNESSES],
            K=K,
            binary=log.binary,
            weight=log.weight,
        )
        stiff = one_standard_error([f"{s:g}" for s in STIFFNESSES], losses, log.weight, log.cluster)
        kept = chosen(stiff)
        return penalty, STIFFNESSES[kept], fits[kept]

    def _single(self, fit: StepFit) -> ResponseModel:
        """Return a copy of this model with another fit."""
        one = copy.copy(self)
        one.fit_ = fit
        return one

    def _curves(self, X: Array) -> Array:
        curves = np.empty((len(X), self.levels_))
        for first in range(0, len(X), ROWS_AT_ONCE):
            curves[first : first + ROWS_AT_ONCE] = self.fit_.predict(self._design(X[first : first + ROWS_AT_ONCE]))
        return curves

    @property
    def penalty_(self) -> float:
        """The ridge penalty that was chosen."""
        return self.fit_.penalty

    def _check_learnt(self) -> None:
        p, hinges = len(self.encoder_.names), self.bends_.knots.size if self.bend_ else 0
        if len(self.fit_.coef) != p + hinges or not ((self.bends_.columns >= 0) & (self.bends_.columns < p)).all():
            raise ValueError(f"{len(self.fit_.coef)} coefficients of {p} features and {hinges} hinges")


def _some(X: Array, log: Log, rows: int, seed: int) -> tuple[Array, Log, Array]:
    """Return at most so many rows of features and log, and which they are, taken at random and left in their order."""
    if len(X) <= rows:
        return X, log, np.arange(len(X))
    kept = np.sort(np.random.default_rng(seed).permutation(len(X))[:rows])
    return X[kept], log.take(kept), kept
