"""How much responses vary about what is expected of them: what the precision of a further log depends on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.evaluation.crossfitting import hold_out_rows
from largesse.records import Array, Log

GROUPS = 20  # of rows of about the same expectation
FEWEST = 50  # rows of a group


@dataclass(frozen=True)
class Noise:
    """The variance of a response, by what is expected of it; that of a yes or no follows from its probability."""

    expected: tuple[float, ...] = ()  # rising
    variance: tuple[float, ...] = ()

    def of(self, curves: Array) -> Array:
        """Return the variance (n, K) of responses whose expectations are curves (n, K)."""
        if not self.expected:
            inside = np.clip(curves, 0.0, 1.0)
            return np.asarray(inside * (1.0 - inside))
        return np.interp(curves, self.expected, self.variance)


def measure_noise(log: Log, curves: Array) -> Noise:
    """Return the noise of a log's responses about curves (n, K) that were held out.

    >>> from largesse.worlds import simulate
    >>> made = simulate("averaged", n=300, seed=1)
    >>> measure_noise(made.log, made.truth).of(np.array([[0.5]]))
    array([[0.25]])
    """
    if log.binary:
        return Noise()
    own = curves[np.arange(len(log)), log.level]
    order = np.argsort(own, kind="stable")
    parts = np.array_split(order, max(min(GROUPS, len(order) // FEWEST), 1))
    squares, weight = (log.response - own) ** 2, log.weights
    found = sorted(
        (float(np.average(own[part], weights=weight[part])), float(np.average(squares[part], weights=weight[part])))
        for part in parts
        if weight[part].sum() > 0
    )
    return Noise(tuple(at for at, _ in found), tuple(variance for _, variance in found))


def learn_noise(log: Log, model: object, seed: int = 0) -> Noise:
    """Return the noise of a log's responses about what models like this one, which did not see a row, expect of it."""
    if log.binary:
        return Noise()
    seen = log.seen
    return measure_noise(seen, hold_out_rows(seen, model, folds=3, seed=seed).curves)
