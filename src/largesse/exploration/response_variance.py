"""Variance of responses around their expectation, which determines the precision of a future log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.evaluation import predict_out_of_fold
from largesse.records import Array, Log

VARIANCE_GROUPS = 20  # of rows of about the same expectation
MIN_GROUP_ROWS = 50


@dataclass(frozen=True)
class ResponseVariance:
    """Variance of a response as a function of its expectation."""

    expected: tuple[float, ...] = ()  # rising
    variance: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.expected) != len(self.variance) or not np.isfinite([*self.expected, *self.variance]).all():
            raise ValueError("the points of the variance of responses do not match or are not finite")
        if (np.diff(self.expected) < 0).any() or min(self.variance, default=0.0) < 0:
            raise ValueError("the variance of responses is negative, or its expectations do not rise")

    def at(self, curves: Array) -> Array:
        """Return the response variance (n, K) for expected responses (n, K)."""
        if not self.expected:
            inside = np.clip(curves, 0.0, 1.0)
            return np.asarray(inside * (1.0 - inside))
        return np.interp(curves, self.expected, self.variance)


def measure_response_variance(log: Log, curves: Array) -> ResponseVariance:
    """Measure the variance of a log's responses around given out-of-fold curves (n, K).

    >>> from largesse.worlds import simulate
    >>> sim = simulate("averaged", n=300, seed=1)
    >>> measure_response_variance(sim.log, sim.truth).at(np.array([[0.5]]))
    array([[0.25]])
    """
    if log.binary:
        return ResponseVariance()
    expected = curves[np.arange(len(log)), log.level]
    order = np.argsort(expected, kind="stable")
    groups = np.array_split(order, max(min(VARIANCE_GROUPS, len(order) // MIN_GROUP_ROWS), 1))
    squares, weight = (log.response - expected) ** 2, log.weights
    points = sorted(
        (
            float(np.average(expected[rows], weights=weight[rows])),
            float(np.average(squares[rows], weights=weight[rows])),
        )
        for rows in groups
        if weight[rows].sum() > 0
    )
    return ResponseVariance(tuple(at for at, _ in points), tuple(variance for _, variance in points))


def estimate_response_variance(log: Log, model: object, seed: int = 0) -> ResponseVariance:
    """Fit copies of a model out of fold, and measure the variance of responses around their predictions."""
    if log.binary:
        return ResponseVariance()
    seen = log.seen
    return measure_response_variance(seen, predict_out_of_fold(seen, model, folds=3, seed=seed).curves)
