"""Doubly robust scores, cross-fitted: no row is scored by a model that has seen its response.

Γ_ik = f̂(x_i, k) + 1{y_i = k} / ρ(y_i | x_i) · (r_i − f̂(x_i, k)). Averaged over rows this is right if either the curves
f̂ or the propensities ρ are, and their errors enter only as a product.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from largesse.allocation import expected_costs
from largesse.propensity import correct_curves, estimate_propensities
from largesse.records import Array, Log, Progress, Propensities, Scores
from largesse.response import Linear, out_of_fold_curves
from largesse.stats import assign_folds


def crossfit(
    log: Log,
    model: Any = None,
    *,
    folds: int = 5,
    seed: int = 0,
    propensities: Propensities | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Return the scores of a log under a model (anything with `fit(log)` and `predict(features)`), refitted per fold.

    The default outcome model is `Linear`. Propensities that are known already need not be estimated again.
    """
    fold = assign_folds(log, folds, seed)
    curves = out_of_fold_curves(Linear(seed=seed) if model is None else model, log, fold, progress)
    return score_rows(log, curves, fold, propensities or estimate_propensities(log, fold, seed))


def score_rows(log: Log, curves: Array, fold: Array, propensities: Propensities) -> Scores:
    """Return the scores of out-of-fold curves (n, K)."""
    rows, propensity = np.arange(len(log)), propensities.own
    face = log.costs if log.costs is not None else log.levels.common_costs
    assert face is not None  # a log is read with its costs
    face = np.broadcast_to(face, curves.shape)
    redeemed = log.levels.on_redemption
    paid = face[rows, log.level] * (np.maximum(log.response, 0.0) if redeemed else 1.0)
    paid = paid + np.where(log.level > 0, log.levels.contact_cost, 0.0)
    expected = np.broadcast_to(expected_costs(log.levels, curves, log.costs), curves.shape)
    return Scores(
        curves=curves,
        gamma=correct_curves(curves, log.level, log.response, propensity),
        # What was paid on redemption is an outcome like the response, and scored like it.
        costs=correct_curves(expected, log.level, paid, propensity) if redeemed else expected,
        expected_costs=expected,
        propensity=propensity,
        fold=fold,
        level=log.level,
        response=log.response,
        paid=paid,
        weight=log.scaled_weights,
        cluster=log.cluster,
        face=face[rows, log.level] if redeemed else None,
    )
