"""Weights of several bases and a ladder of levels, fitted to rows whose scores are given: a small convex problem.

Minimise the mean loss of s = offset + Σ_m v_m base_m + a + θ_1 + … + θ_level over v ≥ 0, a, and θ ≥ 0: log loss for 0/1
responses, half the squared error for amounts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from largesse.records import Array
from largesse.stats import sigmoid

NEWTON_STEPS = 100
TOLERANCE = 1e-11  # of the mean loss


@dataclass(frozen=True, eq=False)
class Rows:
    """Held-out rows: what a ladder is fitted to, amounts in units of their spread."""

    bases: Array  # (n, M)
    offset: Array  # (n,) added to every score
    level: Array  # (n,)
    response: Array  # (n,)
    weight: Array  # (n,) sums to one
    K: int
    binary: bool

    def take(self, rows: Array) -> Rows:
        """Return the given rows, their weights summing to one again."""
        weight = self.weight[rows] / (self.weight[rows].sum() or 1.0)  # a part may hold only rows that do not count
        return replace(
            self,
            bases=self.bases[rows],
            offset=self.offset[rows],
            level=self.level[rows],
            response=self.response[rows],
            weight=weight,
        )

    def design(self) -> Array:
        """Return the matrix (n, M + K) that turns weights, intercept and steps into scores, less the offset."""
        return np.column_stack([self.bases, np.tril(np.ones((self.K, self.K)))[self.level]])

    def losses(self, score: Array) -> Array:
        """Return each row's loss (n,)."""
        if self.binary:
            return np.logaddexp(0.0, score) - self.response * score
        return 0.5 * (score - self.response) ** 2


def fit_ladder(rows: Rows, stiffness: float) -> Array:
    """Return weights (M,), intercept and steps (K−1,) with the least mean loss; `stiffness` holds steps to their mean.

    Neither weights nor steps are negative. Newton's method with an active set: a move ends at the first bound it meets,
    which is then held until the slope pulls away from it. A handful of passes over the rows.
    """
    M, K = rows.bases.shape[1], rows.K
    design, ridge = rows.design(), np.zeros((M + K, M + K))
    ridge[M + 1 :, M + 1 :] = stiffness * (np.eye(K - 1) - 1.0 / (K - 1))
    bounded = np.arange(M + K) != M
    here = _start(rows)
    held = np.zeros(M + K, dtype=bool)
    value = _objective(here, design, rows, ridge)
    for _ in range(NEWTON_STEPS):
        slope, curvature = _derivatives(here, design, rows, ridge)
        move, pull = _newton_move(slope, curvature, held)
        released = held & (pull < -TOLERANCE)
        if released.any():  # one at a time, the most eager first: two together may block each other
            held[np.argmin(np.where(released, pull, 0.0))] = False
            move, _ = _newton_move(slope, curvature, held)
        reach, blocker = _reach(here, move, bounded & ~held)
        here, after, whole = _downhill(here, reach * move, value, lambda z: _objective(z, design, rows, ridge))
        if whole and blocker is not None:
            here[blocker], held[blocker] = 0.0, True
        elif not after < value - TOLERANCE:
            break
        value = after
    return here


def _start(rows: Rows) -> Array:
    M = rows.bases.shape[1]
    return np.concatenate([np.full(M, 1.0 / max(M, 1)), [0.0], np.full(rows.K - 1, 0.1)])


def _objective(here: Array, design: Array, rows: Rows, ridge: Array) -> float:
    return float(rows.weight @ rows.losses(rows.offset + design @ here) + 0.5 * here @ ridge @ here)


def _derivatives(here: Array, design: Array, rows: Rows, ridge: Array) -> tuple[Array, Array]:
    """Return slope (M + K,) and curvature (M + K, M + K) of the objective."""
    score = rows.offset + design @ here
    fitted = sigmoid(score) if rows.binary else score
    bend = rows.weight * fitted * (1.0 - fitted) if rows.binary else rows.weight
    slope = design.T @ (rows.weight * (fitted - rows.response)) + ridge @ here
    # The small diagonal decides where rows do not: two equal members, or a level without rows.
    return slope, design.T @ (bend[:, None] * design) + ridge + 1e-9 * np.eye(len(here))


def _newton_move(slope: Array, curvature: Array, held: Array) -> tuple[Array, Array]:
    """Return Newton's move of what is not held, and the slopes it leaves."""
    free = np.flatnonzero(~held)
    move = np.zeros(len(slope))
    move[free] = np.linalg.solve(curvature[np.ix_(free, free)], -slope[free])
    return move, slope + curvature @ move


def _reach(here: Array, move: Array, bounded: Array) -> tuple[float, int | None]:
    """Return how much of a move can be made before a bounded parameter meets zero, and which one meets it."""
    falling = np.flatnonzero(bounded & (here + move < 0))
    if not len(falling):
        return 1.0, None
    room = here[falling] / -move[falling]
    return float(room.min()), int(falling[np.argmin(room)])


def _downhill(here: Array, move: Array, value: float, objective: Callable[[Array], float]) -> tuple[Array, float, bool]:
    """Make the move, or the first of its halves that does not lead uphill; return where, how high, and if all was made."""
    for halved in range(30):
        there = here + 0.5**halved * move
        after = objective(there)
        if after <= value:
            return there, after, halved == 0
    return here, value, False
