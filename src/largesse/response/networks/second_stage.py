"""A doubly robust second stage on the learnt representation: what held-out rows say is still wrong about the curves.

The scores Γ_ik = f̂(x_i, k) + 1{y_i = k}/ρ_i · (r_i − f̂(x_i, k)) differ from the curves only at the logged level, so
regressing Γ − f̂ on [1, z(x)] is a regression of the rows' own residuals with weights 1/ρ_i, and with the overlap weight
ρ/(ρ + τ), which lets the corners go where a level was hardly ever given, with weights 1/(ρ_i + τ) ≤ 1/τ. In this form a row
that was given another level adds nothing, instead of a zero that has to be averaged out by a few huge values.

Each fold's model is corrected from the rows it was not trained on, its representation frozen; the corrections are
averaged as the models are. How much is corrected (nothing; a constant per level; a ridge regression on z; one that
also tilts with the level) is chosen for all folds by leave-one-out losses: the least that is within one standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from largesse.records import Array, Log
from largesse.stats import chosen, one_standard_error

TAU = 0.1  # propensities well above it count as they are
STRENGTHS = (1.0, 0.1, 0.01)  # of the ridge, per row and standardised column
# (terms, strength): the least correction first
TRIED = (("none", 0.0), ("levels", 0.0), *(("base", s) for s in STRENGTHS), *(("tilt", s) for s in STRENGTHS))
AT_ONCE = 16_384  # rows


@dataclass(frozen=True, eq=False)
class Correction:
    """What is added to curves, on the scale of the response: one ridge regression for each of M fold models."""

    terms: str  # of TRIED
    coef: Array  # (M, q): K constants, then width slopes of z, then width of z × tilt; those not used are left out
    centre: Array  # (M, width) of z
    scale: Array  # (M, width)

    def of(self, z: Array, K: int) -> Array:
        """Return what to add (n, K) for representations z (M, n, width)."""
        total = np.zeros((z.shape[1], K))
        for one, coef, centre, scale in zip(z, self.coef, self.centre, self.scale, strict=True):
            total += _added((one - centre) / scale, coef, K)
        return total / len(z)


def correction(z: Sequence[Array], curves: Sequence[Array], logs: Sequence[Log], propensities: Sequence[Array]) -> Any:
    """Return the chosen `Correction`, None for no correction, and what was tried.

    Every argument has one item per fold model, about the rows it was not trained on: its representations (m, width), its
    curves (m, K), the log of those rows, and their propensities (m,).
    """
    K = curves[0].shape[1]
    moments = [(one.mean(axis=0), np.where(one.std(axis=0) > 1e-6, one.std(axis=0), 1.0)) for one in z]
    stages = [
        _Stage((one - centre) / scale, curve, log, rho)
        for one, (centre, scale), curve, log, rho in zip(z, moments, curves, logs, propensities, strict=True)
    ]
    fits = [[stage.fit(*tried) for stage in stages] for tried in TRIED]
    losses = np.array([np.concatenate([loss for _, loss in row]) for row in fits])
    rows = _joined(logs)
    choices = one_standard_error([_name(*tried) for tried in TRIED], losses, rows.weight, rows.cluster)
    kept = chosen(choices)
    if TRIED[kept][0] == "none":
        return None, choices
    coef = np.array([coef for coef, _ in fits[kept]])
    assert coef.shape[1] >= K
    centre, scale = (np.array(part) for part in zip(*moments, strict=True))
    return Correction(TRIED[kept][0], coef, centre, scale), choices


def _name(terms: str, strength: float) -> str:
    return f"{terms} {strength:g}" if strength else terms


@dataclass(frozen=True, eq=False)
class _Weighing:
    """As much of a log as choosing needs: several logs' rows, one after another."""

    weight: Array | None
    cluster: Array | None


def _joined(logs: Sequence[Log]) -> Any:
    def all_rows(name: str) -> Array | None:
        parts = [getattr(log, name) for log in logs]
        return None if parts[0] is None else np.concatenate(parts)

    return _Weighing(all_rows("weight"), all_rows("cluster"))


class _Stage:
    """The regression of one fold model's held-out residuals."""

    def __init__(self, z: Array, curves: Array, log: Log, propensity: Array) -> None:
        self.z, self.level, self.K = z, log.level, curves.shape[1]
        self.residual = log.response - curves[np.arange(len(log)), log.level]
        self.taming = 1.0 / (propensity + TAU)  # times propensity: what is left of a row's say
        own = np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean()
        self.weight = own * self.taming / self.taming.mean()

    def fit(self, terms: str, strength: float) -> tuple[Array, Array]:
        """Return coefficients (q,) and leave-one-out losses (m,); those of no correction are the residuals'."""
        if terms == "none":
            return np.zeros(0), self.taming * self.residual**2
        design = _design(self.z, self.level, self.K, terms)
        ridge = np.full(design.shape[1], strength * len(design))
        ridge[: self.K] = 1.0  # one row's worth: a level with a single row is then not followed blindly
        inverse = np.linalg.inv(design.T @ (self.weight[:, None] * design) + np.diag(ridge))
        coef = inverse @ (design.T @ (self.weight * self.residual))
        leverage = self.weight * np.einsum("ij,jk,ik->i", design, inverse, design, optimize=True)
        left_out = (self.residual - design @ coef) / np.maximum(1.0 - leverage, 1e-3)
        return coef, self.taming * left_out**2


def _tilt(K: int) -> Array:
    """Return levels (K,) with mean zero and mean square one."""
    steps = np.arange(K) - (K - 1) / 2
    return steps / max(float(np.sqrt((steps**2).mean())), 1e-9)


def _design(z: Array, level: Array, K: int, terms: str) -> Array:
    """Return columns (n, q): the level's constant, z, and z × the level's tilt."""
    columns = [np.eye(K)[level]]
    if terms != "levels":
        columns.append(z)
    if terms == "tilt":
        columns.append(z * _tilt(K)[level][:, None])
    return np.concatenate(columns, axis=1)


def _added(z: Array, coef: Array, K: int) -> Array:
    """Return what a regression adds (n, K) at every level for standardised z (n, width)."""
    width = z.shape[1]
    out = np.tile(coef[:K], (len(z), 1))
    # Sums along rows, not matrix products: a row's curve must not depend on which rows come with it.
    if len(coef) > K:
        out += (z * coef[K : K + width]).sum(axis=1, keepdims=True)
    if len(coef) > K + width:
        out += (z * coef[K + width :]).sum(axis=1, keepdims=True) * _tilt(K)
    return out


def representations(params: dict[str, Array], X: Array, shape: Any) -> Array:
    """Return z (M, n, width) of M models for encoded features (n, p)."""
    import jax.numpy as jnp

    return np.asarray(_program(shape)(params, jnp.asarray(X, jnp.float32)), dtype=np.float64)


@cache
def _program(shape: Any) -> Any:
    import jax

    from largesse.response.networks import network

    return jax.jit(jax.vmap(lambda params, x: network.forward(shape, params, x)[0], in_axes=(0, None)))


def corrected(made: Correction, curves: Array, params: dict[str, Array], X: Array, shape: Any) -> Array:
    """Return curves (n, K) with what a correction adds for features (n, p), some rows at a time."""
    out = curves.copy()
    for first in range(0, len(X), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        out[part] += made.of(representations(params, X[part], shape), curves.shape[1])
    return out


def keep_correction(made: Correction | None) -> dict[str, Array]:
    """Return the arrays of a correction."""
    if made is None:
        return {}
    return {"second_coef": made.coef, "second_centre": made.centre, "second_scale": made.scale}


def recall_correction(terms: str | None, arrays: dict[str, Array]) -> tuple[Correction | None, dict[str, Array]]:
    """Return what `keep_correction` kept, and the other arrays."""
    rest = {name: value for name, value in arrays.items() if not name.startswith("second_")}
    if terms is None:
        return None, rest
    return Correction(
        terms, *(np.asarray(arrays[f"second_{n}"], np.float64) for n in ("coef", "centre", "scale"))
    ), rest
