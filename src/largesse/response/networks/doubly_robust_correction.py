"""Correction of network curves by a doubly robust regression of held-out residuals on the representation.

The doubly robust scores Γ_ik = f̂(x_i, k) + 1{y_i = k}/ρ_i · (r_i − f̂(x_i, k)) differ from the curves only at the logged level.
Regressing Γ − f̂ on [1, z(x)] is therefore a regression of the rows' own residuals with weights 1/ρ_i. The overlap weight
ρ/(ρ + τ) turns these into 1/(ρ_i + τ) ≤ 1/τ, so that levels that were hardly ever given do not dominate. In this form a row
with another level contributes nothing, instead of a zero that a few huge values must balance.

Each fold's network is corrected from the rows it was not trained on, with its representation frozen; corrections are
averaged as the networks are. The kind of correction (none; a constant per level; a ridge regression on z; one whose slope
also changes with the level) is chosen for all folds by leave-one-out losses: the smallest within one standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from largesse.io import ArraySpec
from largesse.records import Array, CandidateLoss, Log
from largesse.response.networks.network_settings import NetworkShape
from largesse.stats import choose_by_one_standard_error, find_chosen_index

TAU = 0.1  # propensities well above it are hardly changed
RIDGES = (1.0, 0.1, 0.01)  # of the ridge, per row and standardised column
# (terms, strength): the smallest correction first
CANDIDATES = (("none", 0.0), ("levels", 0.0), *(("base", s) for s in RIDGES), *(("slope", s) for s in RIDGES))
CORRECTION_BLOCK_ROWS = 16_384  # rows corrected at a time


@dataclass(frozen=True, eq=False)
class CurveCorrection:
    """Fitted corrections of response curves: a ridge regression on the representation for each of M networks."""

    terms: str  # of CANDIDATES
    coef: Annotated[Array, ArraySpec("M", "q")]  # K constants, then width slopes of z, then width slopes of z × level
    centre: Annotated[Array, ArraySpec("M", "width")]  # of z
    scale: Annotated[Array, ArraySpec("M", "width")]

    def mean_corrections(self, z: Array, K: int) -> Array:
        """Return the corrections (n, K) at representations z (M, n, width), averaged over the M networks."""
        total = np.zeros((z.shape[1], K))
        for z_of_model, coef, centre, scale in zip(z, self.coef, self.centre, self.scale, strict=True):
            total += _compute_corrections((z_of_model - centre) / scale, coef, K)
        return total / len(z)


class ChosenCorrection(NamedTuple):
    """Chosen correction of response curves, if any, and the losses of all candidate corrections."""

    correction: CurveCorrection | None
    choices: tuple[CandidateLoss, ...]


def fit_correction(
    z: Sequence[Array], curves: Sequence[Array], logs: Sequence[Log], propensities: Sequence[Array]
) -> ChosenCorrection:
    """Fit the candidate corrections of response curves, and choose one by its leave-one-out loss.

    Every argument has one item per fold model, about the rows it was not trained on: its representations (m, width), its
    curves (m, K), the log of those rows, and their propensities (m,).
    """
    moments = [
        (z_of_model.mean(axis=0), np.where(z_of_model.std(axis=0) > 1e-6, z_of_model.std(axis=0), 1.0))
        for z_of_model in z
    ]
    stages = [
        _ResidualRegression((z_of_model - centre) / scale, curve, log, rho)
        for z_of_model, (centre, scale), curve, log, rho in zip(z, moments, curves, logs, propensities, strict=True)
    ]
    fits = [[stage.fit(*candidate) for stage in stages] for candidate in CANDIDATES]
    losses = np.array([np.concatenate([loss for _, loss in row]) for row in fits])
    weight, cluster = (_concatenate_known([getattr(log, name) for log in logs]) for name in ("weight", "cluster"))
    choices = choose_by_one_standard_error(
        [_name_candidate(*candidate) for candidate in CANDIDATES], losses, weight, cluster
    )
    best = find_chosen_index(choices)
    if CANDIDATES[best][0] == "none":
        return ChosenCorrection(None, choices)
    coef = np.array([coef for coef, _ in fits[best]])
    centre, scale = (np.array(items) for items in zip(*moments, strict=True))
    return ChosenCorrection(CurveCorrection(CANDIDATES[best][0], coef, centre, scale), choices)


def _name_candidate(terms: str, strength: float) -> str:
    return f"{terms} {strength:g}" if strength else terms


def _concatenate_known(parts: Sequence[Array | None]) -> Array | None:
    there = [array for array in parts if array is not None]
    return np.concatenate(there) if there else None


class _ResidualRegression:
    """Weighted ridge regression of one network's held-out residuals on the representation."""

    def __init__(self, z: Array, curves: Array, log: Log, propensity: Array) -> None:
        self.z, self.level, self.K = z, log.level, curves.shape[1]
        self.residual = log.response - curves[np.arange(len(log)), log.level]
        self.overlap = 1.0 / (propensity + TAU)  # 1/ρ × the overlap weight ρ/(ρ + τ)
        weight = np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean()
        self.weight = weight * self.overlap / self.overlap.mean()

    def fit(self, terms: str, strength: float) -> tuple[Array, Array]:
        """Return the coefficients (q,) and the leave-one-out losses (m,) of one candidate correction.

        Without correction these are no coefficients and the losses of the residuals.
        """
        if terms == "none":
            return np.zeros(0), self.overlap * self.residual**2
        design = _make_design_matrix(self.z, self.level, self.K, terms)
        ridge = np.full(design.shape[1], strength * len(design))
        ridge[: self.K] = 1.0  # as one more row at zero: a level with a single row is then not followed blindly
        inverse = np.linalg.inv(design.T @ (self.weight[:, None] * design) + np.diag(ridge))
        coef = inverse @ (design.T @ (self.weight * self.residual))
        leverage = self.weight * np.einsum("ij,jk,ik->i", design, inverse, design, optimize=True)
        left_out = (self.residual - design @ coef) / np.maximum(1.0 - leverage, 1e-3)
        return coef, self.overlap * left_out**2


def _standardise_level_numbers(K: int) -> Array:
    """Return the level numbers (K,), standardised to mean zero and mean square one."""
    steps = np.arange(K) - (K - 1) / 2
    return steps / max(float(np.sqrt((steps**2).mean())), 1e-9)


def _make_design_matrix(z: Array, level: Array, K: int, terms: str) -> Array:
    """Return the design matrix (n, q): level indicators, representation z, and z times the level number.

    The level is standardised.
    """
    columns = [np.eye(K)[level]]
    if terms != "levels":
        columns.append(z)
    if terms == "slope":
        columns.append(z * _standardise_level_numbers(K)[level][:, None])
    return np.concatenate(columns, axis=1)


def _compute_corrections(z: Array, coef: Array, K: int) -> Array:
    """Return the corrections (n, K) of one network at standardised representations z (n, width)."""
    width = z.shape[1]
    out = np.tile(coef[:K], (len(z), 1))
    # Sums along rows, not matrix products: a row's curve must not depend on which rows come with it.
    if len(coef) > K:
        out += (z * coef[K : K + width]).sum(axis=1, keepdims=True)
    if len(coef) > K + width:
        out += (z * coef[K + width :]).sum(axis=1, keepdims=True) * _standardise_level_numbers(K)
    return out


def apply_correction(
    correction: CurveCorrection, curves: Array, params: dict[str, Array], X: Array, shape: NetworkShape
) -> Array:
    """Add the corrections to response curves (n, K) of customers with features (n, p).

    Rows are corrected in blocks.
    """
    from largesse.response.networks.sire_training import compute_representations

    out = curves.copy()
    for first in range(0, len(X), CORRECTION_BLOCK_ROWS):
        rows = slice(first, first + CORRECTION_BLOCK_ROWS)
        out[rows] += correction.mean_corrections(compute_representations(params, X[rows], shape), curves.shape[1])
    return out
