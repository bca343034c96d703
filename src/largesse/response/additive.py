"""Additive response model: a piecewise linear function of each feature, plus common effects of the levels.

s(x, k) = b + Σ_j g_j(x_j) + θ_1 + … + θ_k on the logit scale for 0/1 responses, on the plain scale for amounts. A g_j is a
line plus hinges at quantiles of its feature, each less its own least-squares line; a ridge penalty shrinks the lines, and
the hinges `scale` times less or more. With a scale of 0 this is `Linear`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, final

import numpy as np

from largesse.io import ArraySpec
from largesse.records import Array, Log
from largesse.response.linear import (
    LINEAR_PENALTIES,
    FittedRegression,
    compute_penalty_losses,
    fit_regression,
    fit_regression_by_fold,
    make_regression_rows,
)
from largesse.response.responder_amounts import (
    ResponderAmounts,
    fit_responder_amounts_by_fold,
    mark_responders,
    multiply_by_amounts,
    split_off_responder_amounts,
    suits_hurdle_model,
)
from largesse.response.response_model import ResponseModel, take_rows
from largesse.stats import assign_folds, choose_by_one_standard_error, find_chosen_index, sample_rows

HINGE_SCALES = (0.0, 0.5, 2.0)
MAX_ADDITIVE_ROWS = 400_000  # rows that determine a few hundred coefficients well enough
ADDITIVE_SEARCH_ROWS = 20_000  # rows on which settings are chosen
ADDITIVE_FOLDS = 5
HINGE_BLOCK_ROWS = 65_536  # rows whose hinges are in memory at once when predicting
MAX_WORK = 40_000_000_000  # limit of rows × columns², the work of a fit
MAX_HINGES = 1500  # more hinges are not used at all: the work of a fit grows with their number cubed
QUANTILE_ROWS = 20_000  # rows, spread over the table, from which quantiles are taken


@dataclass(frozen=True, eq=False)
class Hinges:
    """Hinge functions max(x − knot, 0) of some features, with their linear trends removed.

    There are q features with m knots each.
    """

    columns: Annotated[Array, ArraySpec("q", dtype="int64")]  # indices of the features with hinges
    knots: Annotated[Array, ArraySpec("m", "q")]
    intercept: Annotated[Array, ArraySpec("m", "q")]  # of the least-squares line that is subtracted
    slope: Annotated[Array, ArraySpec("m", "q")]

    def __call__(self, X: Array) -> Array:
        """Return the values (n, m·q) of all hinge functions at features (n, p)."""
        x = X[:, self.columns]
        kind = x.dtype.type
        parts = [
            np.maximum(x - knot.astype(kind), 0) - (intercept.astype(kind) + slope.astype(kind) * x)
            for knot, intercept, slope in zip(self.knots, self.intercept, self.slope, strict=True)
        ]
        return np.concatenate(parts, axis=1) if parts else x[:, :0]


def place_hinges(X: Array, knots: int) -> Hinges:
    """Place the knots of hinge functions at quantiles of features with enough distinct values.

    Features are (n, p).
    """
    X = X[:: -(-len(X) // QUANTILE_ROWS) or 1].astype(np.float64)
    places = np.quantile(X, np.arange(1, knots + 1) / (knots + 1), axis=0) if len(X) else np.zeros((knots, X.shape[1]))
    ends = np.concatenate([X.min(axis=0)[None], places, X.max(axis=0)[None]])
    columns = np.flatnonzero((np.diff(ends, axis=0) > 0).all(axis=0))
    x, at = X[:, columns], places[:, columns]
    middle, spread = x.mean(axis=0), x.var(axis=0)
    hinges = np.maximum(x - at[:, None], 0)  # (m, n, q)
    height = hinges.mean(axis=1)
    slope = ((hinges - height[:, None]) * (x - middle)).mean(axis=1) / spread
    return Hinges(columns, at, height - slope * middle, slope)


@dataclass(frozen=True, eq=False)
class HingeColumns:
    """Design matrix of an additive model: the features, and their hinge functions times a scale factor."""

    hinges: Hinges
    scale: float  # of the hinges; 0 leaves straight lines

    def make_design_matrix(self, X: Array) -> Array:
        """Return the design matrix (n, q) of features (n, p): the features and their scaled hinge functions."""
        return np.concatenate([X, X.dtype.type(self.scale) * self.hinges(X)], axis=1) if self.scale else X


@final
class Additive(ResponseModel):
    """Additive response model: piecewise linear functions of the features, plus effects of the levels.

    Parameters
    ----------
    knots
        Hinges per feature, at its quantiles; features of fewer distinct values keep a straight line, and all do when
        there are more than a few hundred.
    hinge_scales
        The scales of hinges that are tried, relative to the lines; 0 (straight lines) is always among them. The
        straightest is chosen that is worse than the best by no more than one standard error of the rows' paired losses.
    seed
        Seed of the folds on which the scale is chosen.

    Attributes
    ----------
    choices_
        The scales that were tried, with their held-out losses and differences from the best.
    shape_, fit_
        The hinges and their chosen scale, and the regression on lines and hinges.
    amounts_
        The amounts of responders, for responses that look two-part (`suits_hurdle_model`); `fit_` is then of 0/1 responses.

    Examples
    --------
    >>> from largesse.worlds import simulate
    >>> sim = simulate("unit", n=500)
    >>> model = Additive().fit(sim.log)
    >>> model.shape_.scale > 0, model.predict(sim.features[:2]).shape
    (True, (2, 5))
    """

    threads = True
    shape_: HingeColumns
    fit_: FittedRegression
    amounts_: ResponderAmounts | None

    def __init__(self, *, knots: int = 5, hinge_scales: Sequence[float] = HINGE_SCALES, seed: int = 0) -> None:
        self.knots = knots
        self.hinge_scales = hinge_scales
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        log, self.amounts_ = split_off_responder_amounts(X, log, self.encoder_, self.seed)
        few, some = take_rows(X, log, sample_rows(len(log), ADDITIVE_SEARCH_ROWS, self.seed))
        penalty, _ = self._choose_scale_and_penalty(
            self._place_hinges(X), few, some, assign_folds(some, ADDITIVE_FOLDS, self.seed)
        )
        X, log = take_rows(X, log, sample_rows(len(log), _compute_max_rows(self.shape_, X.shape[1]), self.seed))
        self.fit_ = fit_regression(make_regression_rows(self.shape_.make_design_matrix(X), log), penalty=penalty)

    def fold_models(self, X: Array, log: Log, fold: Array) -> list[ResponseModel]:
        """Return one model per fold, fitted to the encoded features (n, p) of all other folds.

        Settings are chosen once, for all folds.
        """
        two = suits_hurdle_model(log)
        amounts = (
            fit_responder_amounts_by_fold(X, log, fold, self.encoder_, "auto", self.seed)
            if two
            else [None] * len(np.unique(fold))
        )
        log = mark_responders(log) if two else log
        hinges = self._place_hinges(X)
        sampled = sample_rows(len(log), ADDITIVE_SEARCH_ROWS, self.seed)
        penalty, fits = self._choose_scale_and_penalty(hinges, *take_rows(X, log, sampled), fold[sampled])
        if len(X) > ADDITIVE_SEARCH_ROWS:
            sampled = sample_rows(len(log), _compute_max_rows(self.shape_, X.shape[1]), self.seed)
            rows = make_regression_rows(self.shape_.make_design_matrix(X[sampled]), log.bare.take(sampled))
            fits = fit_regression_by_fold(rows, fold[sampled], penalty)
        return [self._copy_with(fit_=fit, amounts_=mean) for fit, mean in zip(fits, amounts, strict=True)]

    def _place_hinges(self, X: Array) -> Hinges:
        return place_hinges(X if X.shape[1] * self.knots <= MAX_HINGES else X[:, :0], self.knots)

    def _choose_scale_and_penalty(
        self, hinges: Hinges, X: Array, log: Log, fold: Array
    ) -> tuple[float, list[FittedRegression]]:
        """Choose the scale factor of hinge functions and the ridge penalty by losses of held-out rows.

        Returns the penalty and the regressions without each fold.
        """
        rows = make_regression_rows(X, log)
        tried: list[tuple[HingeColumns, float]] = []  # shapes with their best penalties
        losses: list[Array] = []
        for scale in sorted({0.0, *self.hinge_scales}) if len(hinges.columns) else [0.0]:
            shape = HingeColumns(hinges, scale)
            penalty_losses = compute_penalty_losses(replace(rows, X=shape.make_design_matrix(X)), fold)
            best = int(np.argmin(np.average(penalty_losses, axis=1, weights=log.weight)))
            tried.append((shape, LINEAR_PENALTIES[best]))
            losses.append(penalty_losses[best])
        names = [f"hinges × {shape.scale:g}" if shape.scale else "straight lines" for shape, _ in tried]
        choices = choose_by_one_standard_error(
            names, np.array(losses), log.weight, log.cluster, of="Additive: shapes of features"
        )
        shape, penalty = tried[find_chosen_index(choices)]
        self.shape_, self.choices_ = shape, choices
        return penalty, fit_regression_by_fold(replace(rows, X=shape.make_design_matrix(X)), fold, penalty)

    def _curves(self, X: Array) -> Array:
        curves = np.empty((len(X), self.levels_))
        for first in range(0, len(X), HINGE_BLOCK_ROWS):
            rows = slice(first, first + HINGE_BLOCK_ROWS)
            curves[rows] = self.fit_.predict(self.shape_.make_design_matrix(X[rows].astype(np.float64)))
        return multiply_by_amounts(curves, self.amounts_, X)

    @property
    def penalty_(self) -> float:
        """Ridge penalty chosen by cross-validation."""
        return self.fit_.penalty

    def _check_learnt(self) -> None:
        hinges, p = self.shape_.hinges, len(self.encoder_.names)
        columns = p + (hinges.knots.size if self.shape_.scale else 0)
        if len(self.fit_.coef) != columns or not ((hinges.columns >= 0) & (hinges.columns < p)).all():
            raise ValueError(f"{len(self.fit_.coef)} coefficients of {columns} lines and hinges")


def _compute_max_rows(shape: HingeColumns, features: int) -> int:
    """Return the maximum number of rows to fit, which falls with the number of columns."""
    columns = features + (shape.hinges.knots.size if shape.scale else 0)
    return int(min(MAX_ADDITIVE_ROWS, max(MAX_WORK // max(columns, 1) ** 2, ADDITIVE_SEARCH_ROWS)))
