"""Rows whose scores are a base plus what their level adds: fitting the intercept, the slope of the base and the ladder."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from largesse.records import Array, Log
from largesse.response.ladder import TYPICAL_LOGIT, TYPICAL_SHARE, average_ladder, dose_shares
from largesse.response.links import Link
from largesse.stats import minimise, score_curvature, score_loss, score_slope

STEPS = 100
TOLERANCE = 1e-9  # of the summed loss over the number of rows
FLAT = 1e-6  # a base that varies less is the same for all
READINGS = 20  # of the rows around a ladder
ENOUGH = 0.01  # a ladder that moves by less between readings is final
FARTHEST = 2.0  # that one reading moves an effect
LOOSE = 1e-3  # precision that decides where rows do not: an empty level, or one at which all agree


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows of a log as regressions on scores see them; responses in units of the link."""

    link: Link
    level: Array  # (n,)
    response: Array  # (n,)
    weight: Array  # (n,)
    cluster: Array | None
    doses: Array  # (K,) shares of the largest

    def take(self, rows: Array) -> ScoredRows:
        """Return the given rows."""
        cluster = None if self.cluster is None else self.cluster[rows]
        return replace(
            self, level=self.level[rows], response=self.response[rows], weight=self.weight[rows], cluster=cluster
        )

    @property
    def mean_score(self) -> float:
        """The score of the mean response."""
        mean = float(self.weight @ self.response / (self.weight.sum() or 1.0))
        return float(Link(self.link.binary).to_scores(np.array([mean]))[0])

    def reached(self) -> Array:
        """Return which level but the first each row has: (n, K−1)."""
        return np.eye(len(self.doses))[self.level][:, 1:]

    def losses(self, score: Array) -> Array:
        """Return each row's loss (n,)."""
        return score_loss(score, self.response, self.link.binary)

    def slopes(self, score: Array) -> Array:
        """Return the weighted derivative of each row's loss in its score (n,)."""
        return self.weight * score_slope(score, self.response, self.link.binary)

    def curvatures(self, score: Array) -> Array:
        """Return the weighted second derivative of each row's loss in its score (n,)."""
        return self.weight * score_curvature(score, self.link.binary)


def scored_rows(log: Log, link: Link) -> ScoredRows:
    """Return the rows of a log; weights are scaled to a mean of one."""
    weight = log.weights / (log.weights.mean() or 1.0)
    return ScoredRows(link, log.level, log.response / link.unit, weight, log.cluster, dose_shares(log.levels))


@dataclass(frozen=True, eq=False)
class Prior:
    """Independent normal beliefs about coefficients (q,), and the least that each may be."""

    mean: Array
    precision: Array
    lower: Array


def fit_scores(rows: ScoredRows, design: Array, offset: Array, prior: Prior, noise: float) -> Array:
    """Return the coefficients (q,) of a design (n, q) with the largest posterior; `noise` divides the information."""
    weight = rows.weight / noise

    def objective(here: Array) -> float:
        apart = here - prior.mean
        return float(weight @ rows.losses(offset + design @ here) + 0.5 * apart @ (prior.precision * apart))

    def derivatives(here: Array) -> tuple[Array, Array]:
        score = offset + design @ here
        slope = design.T @ (rows.slopes(score) / noise) + prior.precision * (here - prior.mean)
        return slope, information(rows, design, score, noise) + np.diag(prior.precision + 1e-9)

    return minimise(
        objective, derivatives, prior.mean, lower=prior.lower, steps=STEPS, tolerance=TOLERANCE * len(rows.level)
    )


def information(rows: ScoredRows, design: Array, score: Array, noise: float) -> Array:
    """Return what rows tell about the coefficients of a design (n, q): (q, q)."""
    curve = rows.curvatures(score) / noise
    return design.T @ (curve[:, None] * design)


def measure_noise(rows: ScoredRows, design: Array, score: Array) -> float:
    """Return the variance of the rows' slopes over what the loss expects of it: 1 for independent yes and no.

    Weights, clusters and amounts that vary more than their mean all make rows worth less; one number says how much.
    """
    pull = design * rows.slopes(score)[:, None]
    if rows.cluster is not None:
        pull = np.array([np.bincount(rows.cluster, column) for column in pull.T]).T
    expected = (design**2 * rows.curvatures(score)[:, None]).sum(axis=0)
    told = expected > 1e-9
    if not told.any():
        return 1.0
    return max(float(np.mean((pull**2).sum(axis=0)[told] / expected[told])), 1e-6)


@dataclass(frozen=True, eq=False)
class Ladder:
    """Intercept, slope of the base, what levels add (K,), and how noisy the rows are."""

    intercept: float
    slope: float
    effects: Array
    noise: float


def fit_ladder(rows: ScoredRows, base: Array, *, slope: bool = True) -> Ladder:
    """Fit the common ladder to rows with a base (n,); its slope is 1 unless it is fitted, too."""
    moves = slope and bool(base.std() > FLAT)
    design = np.column_stack([np.ones(len(base)), *([base] if moves else []), rows.reached()])
    offset = np.zeros(len(base)) if moves else base
    first = 2 if moves else 1
    start = np.zeros(design.shape[1])
    start[0] = rows.mean_score - float(rows.weight @ base) / (rows.weight.sum() or 1.0)
    precision = np.full(len(start), LOOSE)
    precision[0] = 1e-6
    if moves:
        start[1] = 1.0
    found = fit_scores(rows, design, offset, Prior(start, precision, np.full(len(start), -np.inf)), 1.0)
    noise = measure_noise(rows, design, offset + design @ found)
    ladder = Ladder(float(found[0]), 1.0, np.zeros(1), noise)
    typical = TYPICAL_LOGIT if rows.link.binary else TYPICAL_SHARE
    # Where nearly all rows of a level agree, the curvature at the best fit says nothing of how sure they are. So the rows
    # are read again around the ladder itself: the effects that one Newton step leads to, and their covariance there.
    for _ in range(READINGS):
        score = offset + design @ found
        told = information(rows, design, score, noise) + np.diag(precision)
        step = np.linalg.solve(told, -design.T @ rows.slopes(score) / noise - precision * (found - start))
        effects = found[first:] + np.clip(step[first:], -FARTHEST, FARTHEST)
        ladder = _settle(
            rows, base, average_ladder(effects, np.linalg.inv(told)[first:, first:], rows.doses, typical), noise, moves
        )
        there = np.array([ladder.intercept, *([ladder.slope] if moves else []), *ladder.effects[1:]])
        moved, found = np.abs(there - found).max(), there
        if not rows.link.binary or moved < ENOUGH:
            break
    return ladder


def _settle(rows: ScoredRows, base: Array, effects: Array, noise: float, moves: bool) -> Ladder:
    """Return the ladder with the intercept, and the slope of the base, that go with its effects."""
    offset = effects[rows.level] + (0.0 if moves else base)
    design = np.column_stack([np.ones(len(base)), *([base] if moves else [])])
    start = np.ones(design.shape[1])
    start[0] = rows.mean_score - float(rows.weight @ (offset + (base if moves else 0.0))) / (rows.weight.sum() or 1.0)
    lower = np.zeros(len(start))
    lower[0] = -np.inf
    precision = np.ones(len(start))
    precision[0] = 1e-6
    found = fit_scores(rows, design, offset, Prior(start, precision, lower), noise)
    return Ladder(float(found[0]), float(found[1]) if moves else 1.0, effects, noise)
