"""Propensities tilted until the weighted rows of each level look like all rows.

Held-out propensities are right on average but err at random in each direction: whatever a feature still differs by between
levels after weighting is confounding that remains. So each level's logits get a small linear correction, found by the loss
whose minimum balances exactly: at η = logit, Σ_own exp(−η) + Σ_others η has slope zero where Σ_own (1 + exp(−η)) x =
Σ_all x, and 1 + exp(−η) is the weight 1/ρ (Tan 2020; Zhao 2019). A ridge, larger the fewer rows there are per column,
keeps many features from making extreme weights. The correction uses levels and features only, never a response.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from largesse.records import Array
from largesse.stats import logit, minimise, shuffle_rows, sigmoid

RIDGE = 0.2  # times columns per row of the level
FEW = 30  # rows, after weighting; a level with fewer is left as it is
INSIDE = 0.005  # propensities are held this far from 0 and 1, so that their logits stay finite
NEWTON_STEPS = 30
TOLERANCE = 1e-9
FITTING_ROWS = 200_000


@dataclass(frozen=True, eq=False)
class Tilts:
    """What is added to the logits of propensities: a line in the standardised features for each level that needs one."""

    centre: Array  # (p,)
    spread: Array  # (p,) zero where a feature does not vary
    levels: Array  # (L,) int64 that need a line
    lines: Array  # (L, 1 + features that vary)

    def apply(self, own: Array, Z: Array, level: Array) -> Array:
        """Return the propensities (n,) of the rows' own levels, corrected; Z (n, q) are standardised features."""
        out = own.copy()
        for k, line in zip(self.levels, self.lines, strict=True):
            rows = level == k
            out[rows] = sigmoid(logit(own[rows], INSIDE) + Z[rows] @ line)
        return out

    def apply_all(self, found: Array, X: Array) -> Array:
        """Return the probabilities (n, K) of all levels, each corrected as if it were the own one; X (n, p) are encoded."""
        Z, out = self.standardise(X), found.copy()
        for k, line in zip(self.levels, self.lines, strict=True):
            out[:, k] = sigmoid(logit(found[:, k], INSIDE) + Z @ line)
        return out

    def standardise(self, X: Array) -> Array:
        """Return what lines are in: ones, and the features that vary, with mean 0 and standard deviation 1 in the log."""
        varies = self.spread > 0
        scaled = ((X - self.centre) / np.where(varies, self.spread, 1.0))[:, varies]
        return np.column_stack([np.ones(len(X)), scaled])


def balance_propensities(own: Array, X: Array, level: Array, weight: Array, seed: int = 0) -> Array:
    """Return the propensities (n,) of the rows' own levels, corrected; X (n, p) are encoded features."""
    return learn_tilts(own, X, level, weight, seed)[1]


def learn_tilts(own: Array, X: Array, level: Array, weight: Array, seed: int = 0) -> tuple[Tilts, Array]:
    """Return what corrects propensities (n,), and these corrected; X (n, p) are encoded features."""
    empty = Tilts(X.mean(axis=0), X.std(axis=0), np.zeros(0, dtype=np.int64), np.zeros((0, 0)))
    Z = empty.standardise(X)
    lines = {}
    some = shuffle_rows(len(X), FITTING_ROWS, seed)
    for k in np.unique(level):
        taught = some[level[some] == k]
        if _effective(weight[taught]) < FEW or len(taught) == len(some):
            continue
        share = weight[some] / weight[some].sum()
        others = (share * (level[some] != k)) @ Z[some]
        lines[int(k)] = _tilt(Z[taught], logit(own[taught], INSIDE), weight[taught] / weight[some].sum(), others)
    learnt = np.array(list(lines.values())).reshape(len(lines), Z.shape[1])
    tilts = replace(empty, levels=np.array(list(lines), dtype=np.int64), lines=learnt)
    return tilts, tilts.apply(own, Z, level)


def _effective(weight: Array) -> float:
    """Return how many equally weighted rows carry as much information (Kish)."""
    squares = float(weight @ weight)
    return float(weight.sum()) ** 2 / squares if squares > 0 else 0.0


def _tilt(Z: Array, logits: Array, share: Array, others: Array) -> Array:
    """Return the correction (q,) of a level's logits with the least loss."""
    ridge = np.full(Z.shape[1], RIDGE * Z.shape[1] / len(Z))
    ridge[0] = 1e-6

    def loss(tilt: Array) -> float:
        return float(share @ np.exp(-(logits + Z @ tilt)) + others @ tilt + 0.5 * ridge @ tilt**2)

    def derivatives(tilt: Array) -> tuple[Array, Array]:
        pull = share * np.exp(-(logits + Z @ tilt))
        return others - pull @ Z + ridge * tilt, (Z * pull[:, None]).T @ Z + np.diag(ridge)

    return minimise(loss, derivatives, np.zeros(Z.shape[1]), steps=NEWTON_STEPS, tolerance=TOLERANCE)
