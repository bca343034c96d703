"""Mean amounts of responders at each level: the second part of a hurdle model.

It is for responses with many zeros and a long tail.

Of such amounts a mean is E[response | x, k] = P(response > 0 | x, k) · E[response | response > 0, x, k]. The first factor is
a matter of 0/1 responses, where every model of this package is at home. `ResponderAmounts` is the second,

    exp(intercept + slope · m(x) + effect_k),

m a model of the logarithms of responders' amounts. A logarithm has no long tail, so a few large purchases do not decide;
but the exponential of a mean logarithm is not a mean. So the intercept is fitted to held-out rows such that predicted and
actual amounts have the same sum (Duan's smearing), which asks nothing of the shape of the tail. The slope, also from
held-out rows, undoes the part of m that was learnt from noise. Levels mostly change whether a customer responds: their effects on
how much are held to zero by a prior, which only many responders outweigh.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from largesse.data import Encoder
from largesse.io import ONE_LEVEL, ArraySpec
from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.response.boosting import Boosting
from largesse.response.response_model import ResponseModel, fit_copy
from largesse.stats import assign_folds, minimise, sample_rows

MIN_SHARE_OF_ZEROS = 0.1  # with a smaller share of zeros, the response has one part
MIN_RESPONDERS = 30  # with fewer responders, all have one mean amount
AMOUNT_FOLDS = 5
MAX_RESPONDER_ROWS = 50_000  # from which the model of amounts learns
OUTLIER_DEVIATIONS = 3.0  # robust standard deviations at which logarithms of amounts are winsorised
PRIOR_ROWS = 10.0  # weight, in rows, of the prior that features do not explain amounts
EFFECT_DEVIATION = 0.2  # standard deviation of the prior of the dearest level's effect on the logarithm of amounts
MAX_SLOPE = 2.0  # a larger slope is noise


@dataclass(frozen=True, eq=False)
class ResponderAmounts:
    """Fitted mean amount that a responding customer spends, at each level."""

    model: Annotated[ResponseModel, ONE_LEVEL] | None  # of the logarithm of amounts; None: one mean for all
    slope: float
    intercept: float
    effects: Annotated[Array, ArraySpec("K")]  # of the levels, on the logarithm; the first is 0, and they never fall
    low: float  # smallest held-out prediction of the model; new predictions are clipped to low … high
    high: float

    def __call__(self, X: Array) -> Array:
        """Return the mean amounts (n, K) of customers with encoded features (n, p), if they respond."""
        said = np.zeros(len(X)) if self.model is None else self.model._curves(X)[:, 0]
        base = self.intercept + self.slope * np.clip(said, self.low, self.high)
        return np.exp(base[:, None] + self.effects)


def has_zeros_and_amounts(log: Log) -> bool:
    """Test if responses consist of zeros and positive amounts, and are not binary."""
    return not log.binary and bool((log.response >= 0).all() and (log.response == 0).any() and (log.response > 0).any())


def suits_hurdle_model(log: Log) -> bool:
    """Test if responses have many zeros and right-skewed positive amounts.

    >>> from largesse.data import log_from_arrays
    >>> X, level = np.zeros((6, 1)), np.array([0, 1, 0, 1, 0, 1])
    >>> suits_hurdle_model(log_from_arrays(X, level, [0, 0, 0, 5.0, 7.0, 90.0]))
    True
    >>> suits_hurdle_model(log_from_arrays(X, level, [4.0, 3.0, 0, 5.0, -7.0, 9.0]))
    False
    """
    if not has_zeros_and_amounts(log):
        return False
    weight, positive = log.weights, log.response > 0
    amounts = log.response[positive]
    tail = np.average(amounts, weights=weight[positive] + 1e-300) >= np.median(amounts)
    return bool(tail and weight[~positive].sum() >= MIN_SHARE_OF_ZEROS * weight.sum())


def mark_responders(log: Log) -> Log:
    """Return the log with binary responses, which are 1 for every amount above zero."""
    return replace(log, response=(log.response > 0).astype(np.float64))


def split_off_responder_amounts(X: Array, log: Log, encoder: Encoder, seed: int) -> tuple[Log, ResponderAmounts | None]:
    """Split a log of amounts into a log of binary responses and the fitted amounts of responders.

    A log that does not look two-part is returned unchanged, with None for the amounts.
    """
    if not suits_hurdle_model(log):
        return log, None
    return mark_responders(log), fit_responder_amounts(X, log, encoder, "auto", seed)


def fit_responder_amounts_by_fold(
    X: Array, log: Log, fold: Array, encoder: Encoder, model: ResponseModel | str, seed: int
) -> list[ResponderAmounts]:
    """Fit the mean amounts of responders without each fold."""
    parts = [fold != f for f in np.unique(fold)]
    return [fit_responder_amounts(X[mine], log.bare.take(mine), encoder, model, seed) for mine in parts]


def multiply_by_amounts(curves: Array, amounts: ResponderAmounts | None, X: Array) -> Array:
    """Multiply response probabilities (n, K) by the mean amounts of responders, if amounts are given."""
    # Neither amounts nor their product with chances that never fall can fall in the level.
    return curves if amounts is None else curves * amounts(X)


def fit_responder_amounts(
    X: Array, log: Log, encoder: Encoder, model: ResponseModel | str, seed: int
) -> ResponderAmounts:
    """Fit the mean amounts of responders to encoded features (n, p) and the responses of a log.

    The "auto" model is small boosted trees.
    """
    rows = np.flatnonzero(log.response > 0)
    rows = rows[sample_rows(len(rows), MAX_RESPONDER_ROWS, seed)]
    if not len(rows):
        return ResponderAmounts(
            None, 0.0, 0.0, np.zeros(len(log.levels)), 0.0, 0.0
        )  # without responders, any amount will do
    X, log = X[rows], log.bare.take(rows)
    if isinstance(model, str):
        model = Boosting(rounds=120, leaves=4, penalty=5.0, seed=seed)
    weight = log.weights if log.weights.sum() > 0 else np.ones(len(log))
    target = _winsorise(np.log(log.response))
    middle = float(np.average(target, weights=weight))
    fitted, held, slope = None, np.zeros(len(log)), 0.0
    if len(log) >= MIN_RESPONDERS and (log.cluster is None or np.ptp(log.cluster) > 0):
        amounts = replace(log, response=target, level=np.zeros_like(log.level), levels=Levels(costs=[0.0]), costs=None)
        fitted, held = _fit_held_out(X, amounts, encoder, model, seed)
        slope = _fit_slope(held, target, weight)
    rest = target - middle - slope * (held - np.average(held, weights=weight))
    effects = _fit_amount_level_effects(rest, log.level, weight, len(log.levels))
    beyond = np.log(log.response) - slope * held - effects[log.level]
    intercept = beyond.max() + np.log(np.average(np.exp(beyond - beyond.max()), weights=weight))
    return ResponderAmounts(fitted, slope, float(intercept), effects, float(held.min()), float(held.max()))


def _winsorise(target: Array) -> Array:
    """Winsorise logarithms of amounts, so that very small or large payments have little influence."""
    middle = np.median(target)
    spread = 1.4826 * float(np.median(np.abs(target - middle))) or float(target.std())
    return np.clip(target, middle - OUTLIER_DEVIATIONS * spread, middle + OUTLIER_DEVIATIONS * spread)


def _fit_held_out(X: Array, log: Log, encoder: Encoder, model: ResponseModel, seed: int) -> tuple[ResponseModel, Array]:
    """Fit a model to all rows, and return the model with out-of-fold predictions (n,)."""
    fold = assign_folds(log, AMOUNT_FOLDS, seed)
    held = np.empty(len(log))
    for f in np.unique(fold):
        mine = fold != f
        held[~mine] = fit_copy(model, X[mine], log.take(mine), encoder)._curves(X[~mine])[:, 0]
    return fit_copy(model, X, log, encoder), held


def _fit_slope(held: Array, target: Array, weight: Array) -> float:
    """Fit the slope of log amounts (n,) on held-out predictions (n,), shrunk and never negative."""
    apart = held - np.average(held, weights=weight)
    square = float(weight @ apart**2) * (1.0 + PRIOR_ROWS / len(held))
    return float(np.clip(weight @ (apart * target) / square, 0.0, MAX_SLOPE)) if square > 1e-12 * weight.sum() else 0.0


def _fit_amount_level_effects(rest: Array, level: Array, weight: Array, K: int) -> Array:
    """Fit the effects (K,) of the levels on the logarithm of amounts.

    Increments between levels are shrunk to zero and never negative.
    """
    if K == 1:
        return np.zeros(1)
    reached = np.tril(np.ones((K, K)))  # first the intercept, then the increments that a row at each level has
    weight = weight * (weight.sum() / (weight @ weight))  # weights sum to the rows that they are worth
    noise = float(np.average(rest**2, weights=weight))
    prior = np.append(0.0, np.full(K - 1, noise * (K - 1) / EFFECT_DEVIATION**2)) + 1e-9
    square = reached.T @ np.diag(np.bincount(level, weight, K)) @ reached + np.diag(prior)
    pull = reached.T @ np.bincount(level, weight * rest, K)
    increments = minimise(
        lambda here: float(0.5 * here @ square @ here - pull @ here),
        lambda here: (square @ here - pull, square),
        np.zeros(K),
        lower=np.append(-np.inf, np.zeros(K - 1)),
    )
    return np.concatenate([[0.0], np.cumsum(increments[1:])])
