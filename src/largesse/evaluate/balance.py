"""Propensities tilted until the weighted rows of each level look like all rows.

Held-out propensities are right on average and wrong in each direction by chance: what a feature still differs by between
levels after weighting is confounding left in. So each level's log-odds get a small linear correction, found by the loss
whose minimum balances exactly: at η = log-odds, Σ_own exp(−η) + Σ_others η has slope zero where Σ_own (1 + exp(−η)) x =
Σ_all x, and 1 + exp(−η) is the weight 1/ρ (Tan 2020; Zhao 2019). A ridge, larger the fewer rows there are per column,
keeps many features from making wild weights. Levels and features decide alone: no response is looked at.
"""

from __future__ import annotations

import numpy as np

from largesse.records import Array

RIDGE = 0.2  # times columns per row of the level
FEW = 30  # rows; a level with fewer is left as it is
INSIDE = 0.005  # chances are held this far from 0 and 1, so that their log-odds stay finite
NEWTON_STEPS = 30
TOLERANCE = 1e-9
FITTING_ROWS = 200_000


def balanced(own: Array, X: Array, level: Array, weight: Array, seed: int = 0) -> Array:
    """Return the propensities (n,) of the rows' own levels, corrected; X (n, p) are encoded features."""
    spread = X.std(axis=0)
    Z = np.column_stack([np.ones(len(X)), ((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))[:, spread > 0]])
    some = np.random.default_rng(seed).permutation(len(X))[:FITTING_ROWS]
    out = own.copy()
    for k in np.unique(level):
        taught, rows = some[level[some] == k], level == k
        if len(taught) < FEW or len(taught) == len(some):
            continue
        odds = _log_odds(own[rows])
        share = weight[some] / weight[some].sum()
        others = (share * (level[some] != k)) @ Z[some]
        tilt = _tilt(Z[taught], _log_odds(own[taught]), weight[taught] / weight[some].sum(), others)
        out[rows] = 1.0 / (1.0 + np.exp(-(odds + Z[rows] @ tilt)))
    return out


def _log_odds(chance: Array) -> Array:
    inside = np.clip(chance, INSIDE, 1.0 - INSIDE)
    return np.log(inside) - np.log1p(-inside)


def _tilt(Z: Array, odds: Array, share: Array, others: Array) -> Array:
    """Return the correction (q,) of a level's log-odds with the least loss: Newton's method, steps halved until they help."""
    ridge = np.full(Z.shape[1], RIDGE * Z.shape[1] / len(Z))
    ridge[0] = 1e-6

    def loss(tilt: Array) -> float:
        return float(share @ np.exp(-(odds + Z @ tilt)) + others @ tilt + 0.5 * ridge @ tilt**2)

    here = np.zeros(Z.shape[1])
    value = loss(here)
    for _ in range(NEWTON_STEPS):
        pull = share * np.exp(-(odds + Z @ here))
        slope = others - pull @ Z + ridge * here
        move = -np.linalg.solve((Z * pull[:, None]).T @ Z + np.diag(ridge), slope)
        before = value
        for halved in range(30):
            tried = here + 0.5**halved * move
            with np.errstate(over="ignore"):
                value = loss(tried)
            if value <= before:
                here = tried
                break
        if not value < before - TOLERANCE:
            break
    return here
