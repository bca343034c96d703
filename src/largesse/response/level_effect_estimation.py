"""Estimation of level effects that are common to all customers, from a prior and the rows of a log."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.stats import compute_loss, compute_loss_curvature, compute_loss_slope, logit, minimise, sigmoid


@dataclass(frozen=True)
class Link:
    """Link function that converts between expected responses and scores."""

    binary: bool  # scores are logits; else responses in units
    unit: float = 1.0

    def to_scores(self, curves: Array) -> Array:
        """Convert expected responses to scores."""
        return logit(curves) if self.binary else curves / self.unit

    def to_responses(self, scores: Array) -> Array:
        """Convert scores to expected responses."""
        return sigmoid(scores) if self.binary else self.unit * scores


def choose_link(log: Log) -> Link:
    """Choose the link function for the responses of a log: logit for binary responses, else the identity."""
    return Link(True) if log.binary else Link(False, float(np.std(log.response)) or 1.0)


# -- curves that never fall ---------------------------------------------------------------------------------------------


def make_monotone(curves: Array) -> Array:
    """Make curves (n, K) non-decreasing by isotonic regression.

    >>> make_monotone(np.array([[0.0, 3.0, 1.0], [0.0, 1.0, 2.0]]))
    array([[0., 2., 2.],
           [0., 1., 2.]])
    """
    falls = (np.diff(curves, axis=1) < 0).any(axis=1)
    if not falls.any():
        return curves
    out, falling = curves.copy(), curves[falls]
    K = falling.shape[1]
    sums = np.concatenate([np.zeros((len(falling), 1)), np.cumsum(falling, axis=1)], axis=1)
    best = np.full(falling.shape, -np.inf)
    # max over first ≤ k of min over last ≥ k of the mean from first to last: K²/2 passes, each over all customers.
    for first in range(K):
        means = (sums[:, first + 1 :] - sums[:, [first]]) / np.arange(1, K - first + 1)
        lowest = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
        best[:, first:] = np.maximum(best[:, first:], lowest)
    out[falls] = np.maximum.accumulate(best, axis=1)  # equal values may differ by rounding
    return out


# -- ladders --------------------------------------------------------------------------------------------------------------

TYPICAL_LOGIT = 0.3  # usual effect of the dearest level on a logit
TYPICAL_SHARE = 0.075  # the same on an amount, in standard deviations of the response
AMPLITUDES = np.exp(np.linspace(np.log(0.002), np.log(64.0), 42))  # of the prior, as multiples of the typical amplitude
ROUGHNESSES = (0.02, 0.1)  # of the random walk, as shares of the amplitude


def scale_doses(levels: Levels) -> Array:
    """Return the doses (K,) of the levels, scaled to 0–1.

    Costs, or level numbers, take the place of missing doses.

    >>> scale_doses(Levels(costs=[0, 1, 2], doses=[0, 5, 20]))
    array([0.  , 0.25, 1.  ])
    """
    K = len(levels)
    doses = levels.common_costs if levels.doses is None else np.asarray(levels.doses, dtype=np.float64)
    if K == 1 or doses is None or not doses[-1] > doses[0] or (np.diff(doses) < 0).any():
        return np.arange(K) / max(K - 1, 1)
    return (doses - doses[0]) / (doses[-1] - doses[0])


def list_level_effect_shapes(doses: Array) -> tuple[Array, Array]:
    """Return candidate shapes (S, K−1) of the level effects, and the shapes' prior weights (S,).

    They are scaled to 1 at the dearest level.
    """
    K = len(doses)
    place = np.arange(K) / (K - 1)
    groups: list[tuple[float, list[Array]]] = [
        (0.30, [1.0 - np.exp(-a * doses) for a in (1.0, 2.0, 4.0, 8.0, 16.0)]),
        (0.15, [1.0 - np.exp(-a * place) for a in (1.0, 2.0, 4.0, 8.0)]),
        (0.12, [doses]),
        (0.15, [place]),
        (0.10, [doses**power for power in (0.25, 0.5)]),
        (0.08, [_make_logistic_curve(doses, middle, steep) for middle in (0.25, 0.5, 0.75) for steep in (6.0, 14.0)]),
        (0.08, [(np.arange(K) >= first).astype(np.float64) for first in range(1, K)]),
    ]
    shapes = np.array([shape[1:] / shape[-1] for _, group in groups for shape in group])
    weights = np.array([share / len(group) for share, group in groups for _ in group])
    return shapes, weights / weights.sum()


def _make_logistic_curve(doses: Array, middle: float, steep: float) -> Array:
    """Return a logistic curve over doses (K,), shifted to start at 0."""
    rise = sigmoid(steep * (doses - middle))
    return rise - rise[0]


def average_level_effects(effects: Array, covariance: Array, doses: Array, typical: float) -> Array:
    """Return the posterior mean (K,) of the level effects, non-decreasing from 0.

    Parameters
    ----------
    effects
        The measured effect (K−1,) of each level but the first, in scores.
    covariance
        The covariance (K−1, K−1) of these measurements.
    doses
        The doses (K,) of all levels, as shares of the largest.
    typical
        The amplitude of a usual ladder.

    Examples
    --------
    >>> exact = average_level_effects(np.array([0.5, 0.6]), 1e-8 * np.eye(2), np.array([0.0, 0.5, 1.0]), 0.3)
    >>> exact.round(3)
    array([0. , 0.5, 0.6])
    >>> vague = average_level_effects(np.array([0.0, 2.0]), 100.0 * np.eye(2), np.array([0.0, 0.5, 1.0]), 0.3)
    >>> bool(vague[1] > vague[2] - vague[1])
    True
    """
    if not len(effects):
        return np.zeros(1)
    posterior = fit_level_effect_posterior(effects, covariance, doses, typical)
    ladder = np.einsum("as,ask->k", posterior.weights, posterior.means)
    rising = make_monotone(np.concatenate([[0.0], ladder])[None])[0]
    return rising - rising[0]


@dataclass(frozen=True, eq=False)
class LevelEffectPosterior:
    """Posterior of the level effects: a mixture of normal distributions over A amplitudes and S shapes."""

    weights: Array  # (A, S), of sum one
    means: Array  # (A, S, K−1)
    covariances: Array  # (A, K−1, K−1)

    def draw_level_effects(self, count: int, rng: np.random.Generator) -> Array:
        """Draw non-decreasing level effects (count, K) at random from the posterior."""
        A, S = self.weights.shape
        steps = self.means.shape[2]
        place, shape = np.divmod(rng.choice(A * S, size=count, p=self.weights.ravel()), S)
        drawn = np.zeros((count, steps + 1))
        for a in np.unique(place):
            mine = place == a
            spread, turn = np.linalg.eigh(self.covariances[a])
            root = turn * np.sqrt(np.maximum(spread, 0.0))
            drawn[mine, 1:] = self.means[a, shape[mine]] + rng.standard_normal((mine.sum(), steps)) @ root.T
        rising = make_monotone(drawn)
        return rising - rising[:, :1]


def fit_level_effect_posterior(effects: Array, covariance: Array, doses: Array, typical: float) -> LevelEffectPosterior:
    """Return the posterior of the level effects, given one noisy measurement of each effect."""
    shapes, prior = list_level_effect_shapes(doses)
    walk = _make_random_walk_covariance(len(effects))
    chance = np.exp(-0.5 * np.log(AMPLITUDES) ** 2)
    logs, means, covariances = [], [], []
    for roughness in ROUGHNESSES:
        for amplitude, weight in zip(typical * AMPLITUDES, chance / chance.sum(), strict=True):
            deviation_covariance = (amplitude * roughness) ** 2 * walk
            inverse = np.linalg.inv(covariance + deviation_covariance)
            apart = effects - amplitude * shapes
            fit = -0.5 * np.einsum("si,ij,sj->s", apart, inverse, apart)
            fit -= 0.5 * np.linalg.slogdet(covariance + deviation_covariance)[1]
            logs.append(fit + np.log(prior) + np.log(weight))
            means.append(amplitude * shapes + apart @ inverse @ deviation_covariance)
            covariances.append(deviation_covariance - deviation_covariance @ inverse @ deviation_covariance)
    weights = np.exp(np.array(logs) - np.max(logs))
    return LevelEffectPosterior(weights / weights.sum(), np.array(means), np.array(covariances))


def _make_random_walk_covariance(steps: int) -> Array:
    """Return the covariance of a random walk over the levels, plus independent noise."""
    place = np.arange(1, steps + 1) / steps
    return np.minimum.outer(place, place) + 0.1 * np.eye(steps)


MAX_LADDER_STEPS = 100
LADDER_TOLERANCE = 1e-9  # of the summed loss over the number of rows
MIN_BASE_SPREAD = 1e-6  # base scores that vary less are taken as equal
MAX_READINGS = 20  # Newton steps around the averaged ladder
READING_TOLERANCE = 0.01  # a ladder that moves by less between two readings is final
MAX_MOVE = 2.0  # largest change of an effect in one reading
MAX_INVERSE_WEIGHT = 5.0  # larger weights would let an effect follow single responses
WEAK_PRECISION = 1e-3  # of the prior; it matters for levels without rows, or where all rows agree


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows of a log for regressions on the scale of the link function: levels, responses and weights."""

    link: Link
    level: Array  # (n,)
    response: Array  # (n,)
    weight: Array  # (n,)
    cluster: Array | None
    doses: Array  # (K,) shares of the largest
    propensity: Array | None = None  # (n,) of the rows' levels, if it is known or estimated

    def take_rows(self, rows: Array) -> ScoredRows:
        """Select rows by their indices."""
        cluster, propensity = (None if part is None else part[rows] for part in (self.cluster, self.propensity))
        return replace(
            self,
            level=self.level[rows],
            response=self.response[rows],
            weight=self.weight[rows],
            cluster=cluster,
            propensity=propensity,
        )

    @property
    def score_of_mean_response(self) -> float:
        """Score of the mean response, on the scale of the link function."""
        mean = float(self.weight @ self.response / (self.weight.sum() or 1.0))
        return float(Link(self.link.binary).to_scores(np.array([mean]))[0])

    def level_indicators(self) -> Array:
        """Return indicators (n, K−1) of each row's level; rows of the first level have zeros only."""
        return np.eye(len(self.doses))[self.level][:, 1:]

    def inverse_weights(self) -> Array:
        """Return the stabilised and limited inverse propensities (n,) of the rows, or ones without propensities."""
        if self.propensity is None:
            return np.ones(len(self.level))
        share = np.bincount(self.level, weights=self.weight) / (self.weight.sum() or 1.0)
        return np.minimum(share[self.level] / self.propensity, MAX_INVERSE_WEIGHT)

    def row_losses(self, score: Array) -> Array:
        """Return the loss (n,) of each row at its score (n,)."""
        return compute_loss(score, self.response, self.link.binary)

    def loss_slopes(self, score: Array) -> Array:
        """Return the weighted first derivative (n,) of each row's loss with respect to its score (n,)."""
        return self.weight * compute_loss_slope(score, self.response, self.link.binary)

    def loss_curvatures(self, score: Array) -> Array:
        """Return the weighted second derivative (n,) of each row's loss with respect to its score (n,)."""
        return self.weight * compute_loss_curvature(score, self.link.binary)


def make_scored_rows(log: Log, link: Link) -> ScoredRows:
    """Convert a log to rows for regressions on the scale of the link function.

    Weights are scaled to mean one.
    """
    weight = log.weights / (log.weights.mean() or 1.0)
    doses = scale_doses(log.levels)
    return ScoredRows(link, log.level, log.response / link.unit, weight, log.cluster, doses, log.propensity)


@dataclass(frozen=True, eq=False)
class CoefficientPrior:
    """Independent normal priors of q regression coefficients, with lower bounds of the coefficients."""

    mean: Array
    precision: Array
    lower: Array


def fit_coefficients(rows: ScoredRows, design: Array, offset: Array, prior: CoefficientPrior, noise: float) -> Array:
    """Fit the coefficients (q,) of a design matrix (n, q) to rows, as the posterior mode under a normal prior.

    `noise` divides the information of the rows.
    """
    weight = rows.weight / noise

    def objective(here: Array) -> float:
        apart = here - prior.mean
        return float(weight @ rows.row_losses(offset + design @ here) + 0.5 * apart @ (prior.precision * apart))

    def derivatives(here: Array) -> tuple[Array, Array]:
        score = offset + design @ here
        slope = design.T @ (rows.loss_slopes(score) / noise) + prior.precision * (here - prior.mean)
        return slope, compute_fisher_information(rows, design, score, noise) + np.diag(prior.precision + 1e-9)

    return minimise(
        objective,
        derivatives,
        prior.mean,
        lower=prior.lower,
        steps=MAX_LADDER_STEPS,
        tolerance=LADDER_TOLERANCE * len(rows.level),
    )


def compute_fisher_information(rows: ScoredRows, design: Array, score: Array, noise: float) -> Array:
    """Return the Fisher information (q, q) of the rows about the coefficients of a design matrix (n, q)."""
    curve = rows.loss_curvatures(score) / noise
    return design.T @ (curve[:, None] * design)


def measure_slope_noise(rows: ScoredRows, design: Array, score: Array) -> float:
    """Return the ratio of the observed variance of loss slopes to the variance under the model.

    It is 1 for independent 0/1 responses.

    Weights, clusters and amounts with a large variance lower the information of the rows; this is the common factor.
    """
    pull = design * rows.loss_slopes(score)[:, None]
    if rows.cluster is not None:
        pull = np.array([np.bincount(rows.cluster, column) for column in pull.T]).T
    expected = (design**2 * rows.loss_curvatures(score)[:, None]).sum(axis=0)
    informed = expected > 1e-9
    if not informed.any():
        return 1.0
    return max(float(np.mean((pull**2).sum(axis=0)[informed] / expected[informed])), 1e-6)


# -- confounding that base scores miss ----------------------------------------------------------------------------------

UNBIASED_PROBABILITY = 0.3  # prior probability that the base scores hold all that levels were chosen by
BIASES = (0.0, 1 / 6, 1 / 3, 2 / 3, 4 / 3, 8 / 3)  # standard deviations at the dearest level, in typical amplitudes
ROUGH_BIAS = 0.05  # variance of a random walk, relative to that of a bias proportional to the level's number
JITTER_VARIANCE = 1e-9


def estimate_effect_correction(
    rows: ScoredRows, design: Array, score: Array, noise: float, step: Array, covariance: Array, first: int
) -> tuple[Array, Array]:
    """Estimate the level effects by a bias-corrected Newton step (K−1,), with its covariance.

    `step` (q,) and `covariance` (q, q) are a Newton step of the regression on a design matrix (n, q) and its covariance; the
    effects are its coefficients from `first` on.

    With propensities the regression's bias is removed. Base scores miss part of what levels were chosen by, and a regression
    adds this part to the effects. Rows weighted by inverse propensities have no such bias, and more noise. The bias has a
    normal prior of unknown size around zero, and the difference of both measurements tells how large it is. Where levels were
    assigned at random, both are the same.
    """
    K = len(rows.doses)
    effects = slice(first, first + K - 1)
    move, spread = np.clip(step[effects], -MAX_MOVE, MAX_MOVE), covariance[effects, effects]
    if rows.propensity is None or K < 2:
        return move, spread
    inverse, curvature = rows.inverse_weights(), rows.loss_curvatures(score)
    information = np.bincount(rows.level, weights=inverse * curvature, minlength=K) + WEAK_PRECISION * noise
    contrasts = np.vstack([-np.ones(K - 1), np.eye(K - 1)])
    weighted = (inverse / information[rows.level])[:, None] * contrasts[rows.level]  # (n, K−1) influence of each row
    apart = weighted - design @ covariance[:, effects] / noise
    difference = np.clip(-weighted.T @ rows.loss_slopes(score), -MAX_MOVE, MAX_MOVE) - move
    variance = noise * (apart.T @ (curvature[:, None] * apart)) + JITTER_VARIANCE * np.eye(K - 1)
    bias, uncertainty = _estimate_bias(difference, variance, TYPICAL_LOGIT if rows.link.binary else TYPICAL_SHARE)
    return move - bias, spread + uncertainty


def _estimate_bias(difference: Array, variance: Array, typical: float) -> tuple[Array, Array]:
    """Estimate the bias (K−1,) of a regression's level effects, from their difference to unbiased effects.

    Returns its posterior mean and covariance. The difference is unbiased effects minus the regression's.

    `variance` (K−1, K−1) is that of the difference.
    """
    place = np.arange(1, len(difference) + 1) / len(difference)
    shape = np.outer(place, place) + ROUGH_BIAS * _make_random_walk_covariance(len(difference))
    logs, means, covariances = [], [], []
    for size in BIASES:
        prior = (size * typical) ** 2 * shape
        inverse = np.linalg.inv(variance + prior)
        means.append(-prior @ inverse @ difference)
        covariances.append(prior - prior @ inverse @ prior)
        chance = (1.0 - UNBIASED_PROBABILITY) / (len(BIASES) - 1) if size else UNBIASED_PROBABILITY
        logs.append(np.log(chance) - 0.5 * difference @ inverse @ difference + 0.5 * np.linalg.slogdet(inverse)[1])
    weights = np.exp(np.array(logs) - np.max(logs))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    within = np.tensordot(weights, np.array(covariances), axes=1)
    moves = np.array(means) - mean
    return mean, within + moves.T @ (weights[:, None] * moves)


# -- fits -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LevelEffects:
    """Fitted level effects (K,), with intercept, slope on the base score (mean over levels) and noise factor."""

    intercept: float
    slope: float
    effects: Array
    noise: float


def fit_level_effects(rows: ScoredRows, base: Array, *, slope: bool = True) -> LevelEffects:
    """Fit level effects common to all customers to rows with known mean scores over levels (n,).

    The slope of the base scores is fitted as well if `slope` is true; otherwise it is 1. Propensities correct the measured
    effects for confounding that the base scores miss.
    """
    moves = slope and bool(base.std() > MIN_BASE_SPREAD)
    design = np.column_stack([np.ones(len(base)), *([base] if moves else []), rows.level_indicators()])
    offset = np.zeros(len(base)) if moves else base
    first = 2 if moves else 1
    start = np.zeros(design.shape[1])
    start[0] = rows.score_of_mean_response - float(rows.weight @ base) / (rows.weight.sum() or 1.0)
    precision = np.full(len(start), WEAK_PRECISION)
    precision[0] = 1e-6
    if moves:
        start[1] = 1.0
    params = fit_coefficients(
        rows, design, offset, CoefficientPrior(start, precision, np.full(len(start), -np.inf)), 1.0
    )
    noise = measure_slope_noise(rows, design, offset + design @ params)
    ladder = LevelEffects(float(params[0]), 1.0, np.zeros(1), noise)
    typical = TYPICAL_LOGIT if rows.link.binary else TYPICAL_SHARE
    # Where nearly all rows of a level agree, the curvature at the best fit does not give their precision. So the rows
    # are read again around the ladder itself: the effects that one Newton step leads to, and their covariance there.
    for _ in range(MAX_READINGS):
        score = offset + design @ params
        precisions = compute_fisher_information(rows, design, score, noise) + np.diag(precision)
        step = np.linalg.solve(precisions, -design.T @ rows.loss_slopes(score) / noise - precision * (params - start))
        move, covariance = estimate_effect_correction(
            rows, design, score, noise, step, np.linalg.inv(precisions), first
        )
        effects = params[first:] + move
        ladder = _fit_intercept_and_slope(
            rows, base, average_level_effects(effects, covariance, rows.doses, typical), noise, moves
        )
        there = np.array([ladder.intercept, *([ladder.slope] if moves else []), *ladder.effects[1:]])
        moved, params = np.abs(there - params).max(), there
        if not rows.link.binary or moved < READING_TOLERANCE:
            break
    return ladder


def _fit_intercept_and_slope(rows: ScoredRows, base: Array, effects: Array, noise: float, moves: bool) -> LevelEffects:
    """Fit the intercept, and the slope of mean scores over levels (n,), given the level effects (K,)."""
    offset = effects[rows.level] + (0.0 if moves else base)
    design = np.column_stack([np.ones(len(base)), *([base] if moves else [])])
    start = np.ones(design.shape[1])
    start[0] = rows.score_of_mean_response - float(rows.weight @ (offset + (base if moves else 0.0))) / (
        rows.weight.sum() or 1.0
    )
    lower = np.zeros(len(start))
    lower[0] = -np.inf
    precision = np.ones(len(start))
    precision[0] = 1e-6
    params = fit_coefficients(rows, design, offset, CoefficientPrior(start, precision, lower), noise)
    return LevelEffects(float(params[0]), float(params[1]) if moves else 1.0, effects, noise)
