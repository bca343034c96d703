"""Approximate posterior of response curves, from out-of-fold curves and the rows of a log.

On the scale of the link: s(x, k) = a + b·base(x) + ladder_k + t·z(x)·lift_k + c·deviation(x, k). The parts are those of the
out-of-fold curves: a customer's mean score, and the rest of a customer's score without it and without the mean increments
of the fold. The curves themselves are a = 0, b = c = 1, t = 0 and their own ladder. Rows that were not fitted measure all of
these together, in one Newton step from the curves. Each draw takes a ladder from its posterior over shapes and amplitudes, and
the other coefficients from their normal distribution given this ladder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from largesse.records import Array, Log
from largesse.response.level_effect_estimation import (
    MAX_MOVE,
    MIN_BASE_SPREAD,
    TYPICAL_LOGIT,
    TYPICAL_SHARE,
    WEAK_PRECISION,
    LevelEffectPosterior,
    Link,
    choose_link,
    compute_fisher_information,
    estimate_effect_correction,
    fit_level_effect_posterior,
    make_scored_rows,
    measure_slope_noise,
)

SLOPE_DEVIATION = 0.3  # prior standard deviation of the slope of base scores, around one
MISSED_TILT = 0.3  # of a tilt that the curves do not have, around zero
SHARE_DEVIATION = 1.0  # of the share of the curves' deviations, around one
MAX_BASE_DEVIATIONS = 2.5  # standard deviations of the base, beyond which a tilt does not grow
FIRST_EFFECT = 2  # the coefficients are: intercept, slope, K−1 effects, tilt, share


@dataclass(frozen=True, eq=False)
class _ScoreParts:
    """Parts of out-of-fold scores (n, K): mean over levels, common level effects, and customers' deviations."""

    base: Array  # (n,) mean scores over levels
    place: Array  # (n,) standardised and clipped
    ladder: Array  # (K,) mean increments from the first level
    lift: Array  # (K,) the same, around their mean in the log
    deviation: Array  # (n, K)

    def take(self, rows: Array) -> _ScoreParts:
        """Select rows of the score parts by their indices."""
        return _ScoreParts(self.base[rows], self.place[rows], self.ladder, self.lift, self.deviation[rows])


@dataclass(frozen=True, eq=False)
class CurvePosterior:
    """Approximate posterior distribution of customers' response curves."""

    link: Link
    ladder: LevelEffectPosterior
    mean: Array  # (K+3,) of the coefficients under a flat prior of the ladder
    covariance: Array  # (K+3, K+3)
    parts: _ScoreParts

    def draw_curves(self, count: int, places: Array, seed: int = 0) -> Iterator[Array]:
        """Yield random response curves (m, K) of some customers from the posterior, one array per draw.

        The customers are rows with indices `places` (m,) in the fit.
        """
        rng = np.random.default_rng(seed)
        ladders = self.ladder.draw_level_effects(count, rng)
        K = ladders.shape[1]
        effects = slice(FIRST_EFFECT, FIRST_EFFECT + K - 1)
        others = np.r_[0:FIRST_EFFECT, FIRST_EFFECT + K - 1 : len(self.mean)]
        carried = np.linalg.solve(self.covariance[effects, effects], self.covariance[effects][:, others])
        rest = self.covariance[np.ix_(others, others)] - self.covariance[others][:, effects] @ carried
        spread, turn = np.linalg.eigh((rest + rest.T) / 2)
        moves = rng.standard_normal((count, len(others))) @ (turn * np.sqrt(np.maximum(spread, 0.0))).T
        moves += self.mean[others] + (ladders[:, 1:] - self.mean[effects]) @ carried
        parts = self.parts.take(places)
        for ladder, (intercept, slope, tilt, share) in zip(ladders, moves, strict=True):
            scores = (intercept + slope * parts.base)[:, None] + ladder
            scores += (tilt * parts.place)[:, None] * parts.lift + share * parts.deviation
            yield self.link.to_responses(scores)


def fit_curve_posterior(log: Log, curves: Array, fold: Array, weight: Array, rows: Array) -> CurvePosterior | None:
    """Fit the posterior of response curves to rows of a log, given the rows' out-of-fold curves.

    None if there is a single level, or no row has any weight.

    Parameters
    ----------
    log, curves, fold
        The log, the out-of-fold curves (n, K) of its rows, and the fold (n,) of each row.
    weight
        The weight (n,) of each row; zero leaves the row out of the fit.
    rows
        Indices (m,) of the rows to fit to.
    """
    curves, fold, weight = curves[rows], fold[rows], weight[rows]
    K = curves.shape[1]
    if K < 2 or not weight.any():
        return None
    link = choose_link(log)
    scored = replace(make_scored_rows(log, link).take_rows(rows), weight=weight)
    parts = _split_scores(link.to_scores(curves), fold, weight, scored.level)
    deviation = parts.deviation[np.arange(len(rows)), scored.level]
    tilt = parts.place * parts.lift[scored.level]
    design = np.column_stack([np.ones(len(rows)), parts.base, scored.level_indicators(), tilt, deviation])
    start = np.concatenate([[0.0, 1.0], parts.ladder[1:], [0.0, 1.0]])
    score = design @ start
    precision = np.full(len(start), WEAK_PRECISION)
    precision[0], precision[1] = 1e-6, SLOPE_DEVIATION**-2
    precision[-2:] = MISSED_TILT**-2, SHARE_DEVIATION**-2
    noise = measure_slope_noise(scored, design[:, : K + 1], score)
    covariance = np.linalg.inv(compute_fisher_information(scored, design, score, noise) + np.diag(precision))
    move = -covariance @ (design.T @ scored.loss_slopes(score)) / noise
    mean = start + np.clip(move, -MAX_MOVE, MAX_MOVE)
    effects = slice(FIRST_EFFECT, FIRST_EFFECT + K - 1)
    change, spread = estimate_effect_correction(scored, design, score, noise, move, covariance, FIRST_EFFECT)
    mean[effects], covariance[effects, effects] = start[effects] + change, spread
    typical = TYPICAL_LOGIT if link.binary else TYPICAL_SHARE
    ladder = fit_level_effect_posterior(mean[effects], covariance[effects, effects], scored.doses, typical)
    return CurvePosterior(link, ladder, mean, covariance, parts)


def _split_scores(scores: Array, fold: Array, weight: Array, level: Array) -> _ScoreParts:
    """Split out-of-fold scores (n, K) into mean over levels, common level effects and customers' deviations.

    Each fold has its own mean increments.
    """
    base = scores.mean(axis=1)
    middle = float(weight @ base / weight.sum())
    spread = float(np.sqrt(weight @ (base - middle) ** 2 / weight.sum()))
    place = np.clip((base - middle) / max(spread, MIN_BASE_SPREAD), -MAX_BASE_DEVIATIONS, MAX_BASE_DEVIATIONS)
    _, part = np.unique(fold, return_inverse=True)
    deviation = scores - base[:, None]
    sums = np.bincount(part, weights=weight)
    totals = np.column_stack([np.bincount(part, weights=weight * column) for column in deviation.T])
    ladders = totals / np.where(sums > 0, sums, 1.0)[:, None]
    mean = np.average(ladders, axis=0, weights=sums)
    ladder = mean - mean[0]
    lift = ladder - float(weight @ ladder[level] / weight.sum())
    return _ScoreParts(base + mean[0], place, ladder, lift, deviation - ladders[part])
