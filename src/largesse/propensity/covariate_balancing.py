"""Covariate balancing: corrections of propensities that equalise weighted feature means between levels.

Held-out propensities are right on average but err at random in each direction: a difference between the weighted feature
means of two levels is remaining confounding. So each level's logits get a small linear correction (a tilt), found by the loss
whose minimum balances exactly: at η = logit, Σ_own exp(−η) + Σ_others η has slope zero where Σ_own (1 + exp(−η)) x =
Σ_all x, and 1 + exp(−η) is the weight 1/ρ (Tan 2020; Zhao 2019). A ridge, larger the fewer rows there are per column,
keeps many features from making extreme weights; where whole groups got their levels together, it counts groups. The
correction uses levels and features only, never a response.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from largesse.records import Array
from largesse.stats import effective_sample_size, logit, minimise, shuffle_rows, sigmoid

BALANCE_RIDGE = 0.2  # multiplied by the columns per row, or per group of rows, of the level
MIN_BALANCED_ROWS = 30  # effective rows; levels with fewer are not corrected
LOGIT_MARGIN = 0.005  # distance of propensities from 0 and 1 at which logits are clipped
MAX_TILT_STEPS = 30
TILT_TOLERANCE = 1e-9
MAX_PROPENSITY_ROWS = 200_000  # further rows hardly change a propensity model


@dataclass(frozen=True, eq=False)
class LogitCorrections:
    """Linear corrections of the logits of propensities by features, for the levels that need one."""

    centre: Array  # (p,)
    spread: Array  # (p,) zero where a feature does not vary
    levels: Array  # (L,) int64, of the corrected levels
    coef: Array  # (L, 1 + varying features)

    def correct_logged_levels(self, propensity: Array, Z: Array, level: Array) -> Array:
        """Return the corrected propensities (n,) of the logged levels, from standardised features Z (n, q)."""
        out = propensity.copy()
        for k, tilt in zip(self.levels, self.coef, strict=True):
            rows = level == k
            out[rows] = sigmoid(logit(propensity[rows], LOGIT_MARGIN) + Z[rows] @ tilt)
        return out

    def correct_all_levels(self, probabilities: Array, X: Array) -> Array:
        """Return the corrected probabilities (n, K) of all levels, from encoded features X (n, p)."""
        Z, out = self.standardise(X), probabilities.copy()
        for k, tilt in zip(self.levels, self.coef, strict=True):
            out[:, k] = sigmoid(logit(probabilities[:, k], LOGIT_MARGIN) + Z @ tilt)
        return out

    def standardise(self, X: Array) -> Array:
        """Return a constant column and the varying features (n, q), standardised by means of the log."""
        varies = self.spread > 0
        scaled = ((X - self.centre) / np.where(varies, self.spread, 1.0))[:, varies]
        return np.column_stack([np.ones(len(X)), scaled])


def balance_propensities(
    propensity: Array,
    X: Array,
    level: Array,
    weight: Array,
    seed: int = 0,
    group: Array | None = None,
    supported: Array | None = None,
) -> Array:
    """Correct propensities (n,) until the weighted means of features X (n, p) are equal at all levels."""
    return fit_logit_corrections(propensity, X, level, weight, seed, group, supported)[1]


def fit_logit_corrections(
    propensity: Array,
    X: Array,
    level: Array,
    weight: Array,
    seed: int = 0,
    group: Array | None = None,
    supported: Array | None = None,
) -> tuple[LogitCorrections, Array]:
    """Fit corrections that balance features X (n, p), and return them with the corrected propensities (n,).

    Rows of a `group` (n,) got their levels together. A level is balanced over the rows that it is supported for, by a mask
    (n, K). Returns the corrections and the corrected propensities (n,).
    """
    empty = LogitCorrections(X.mean(axis=0), X.std(axis=0), np.zeros(0, dtype=np.int64), np.zeros((0, 0)))
    Z = empty.standardise(X)
    tilts_by_level = {}
    fitting_rows = shuffle_rows(len(X), MAX_PROPENSITY_ROWS, seed)
    for k in np.unique(level):
        rows = fitting_rows if supported is None else fitting_rows[supported[fitting_rows, k]]
        level_rows = rows[level[rows] == k]
        if effective_sample_size(weight[level_rows]) < MIN_BALANCED_ROWS or len(level_rows) == len(rows):
            continue
        share = weight[rows] / weight[rows].sum()
        other_means = (share * (level[rows] != k)) @ Z[rows]
        tilts_by_level[int(k)] = _fit_level_correction(
            Z[level_rows],
            logit(propensity[level_rows], LOGIT_MARGIN),
            weight[level_rows] / weight[rows].sum(),
            other_means,
            len(level_rows) if group is None else len(np.unique(group[level_rows])),
        )
    coef = np.array(list(tilts_by_level.values())).reshape(len(tilts_by_level), Z.shape[1])
    tilts = replace(empty, levels=np.array(list(tilts_by_level), dtype=np.int64), coef=coef)
    return tilts, tilts.correct_logged_levels(propensity, Z, level)


def _fit_level_correction(Z: Array, logits: Array, share: Array, other_means: Array, units: int) -> Array:
    """Fit the coefficients (q,) of the logit correction for one level.

    It takes the level's rows, the weighted feature sums (q,) of rows at other levels, and the number of rows or groups at the level.
    """
    ridge = np.full(Z.shape[1], BALANCE_RIDGE * Z.shape[1] / units)
    ridge[0] = 1e-6

    def loss(tilt: Array) -> float:
        return float(share @ np.exp(-(logits + Z @ tilt)) + other_means @ tilt + 0.5 * ridge @ tilt**2)

    def derivatives(tilt: Array) -> tuple[Array, Array]:
        row_slopes = share * np.exp(-(logits + Z @ tilt))
        return other_means - row_slopes @ Z + ridge * tilt, (Z * row_slopes[:, None]).T @ Z + np.diag(ridge)

    return minimise(loss, derivatives, np.zeros(Z.shape[1]), steps=MAX_TILT_STEPS, tolerance=TILT_TOLERANCE)
