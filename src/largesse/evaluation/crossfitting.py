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
from largesse.response import Linear, WithCosts, out_of_fold_curves
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

    The default outcome model is `Linear`. Observed costs have a model of their own, that of `WithCosts` or its default.
    Propensities that are known already need not be estimated again.
    """
    fold = assign_folds(log, folds, seed)
    model, costs = Linear(seed=seed) if model is None else model, None
    if isinstance(model, WithCosts) or log.levels.observed:
        both = model if isinstance(model, WithCosts) else WithCosts(model, seed=seed)
        model, of_costs = both.parts
        if log.levels.observed:
            costs = np.maximum(out_of_fold_curves(of_costs, log.of_costs, fold), 0.0)
    curves = out_of_fold_curves(model, log, fold, progress)
    return score_rows(log, curves, fold, propensities or estimate_propensities(log, fold, seed), costs)


def score_rows(log: Log, curves: Array, fold: Array, propensities: Propensities, costs: Array | None = None) -> Scores:
    """Return the scores of out-of-fold curves (n, K) and, where costs are observed, of their own curves (n, K)."""
    levels, propensity = log.levels, propensities.own
    expected = np.broadcast_to(expected_costs(levels, curves, log.costs if costs is None else costs), curves.shape)
    paid = _what_was_paid(log)
    return Scores(
        curves=curves,
        gamma=correct_curves(curves, log.level, log.response, propensity),
        # What was paid on redemption, or observed, is an outcome like the response, and scored like it.
        costs=expected if levels.certain else correct_curves(expected, log.level, paid, propensity),
        expected_costs=expected,
        propensity=propensity,
        fold=fold,
        level=log.level,
        response=log.response,
        paid=paid,
        weight=log.scaled_weights,
        cluster=log.cluster,
        face=_own_face(log) if levels.on_redemption else None,
        paid_as="observed" if levels.observed else "redeemed" if levels.on_redemption else "listed",
    )


def _what_was_paid(log: Log) -> Array:
    """Return what each row (n,) cost."""
    if log.paid is not None:
        return log.paid
    paid = _own_face(log) * (np.maximum(log.response, 0.0) if log.levels.on_redemption else 1.0)
    return paid + np.where(log.level > 0, log.levels.contact_cost, 0.0)


def _own_face(log: Log) -> Array:
    """Return the cost (n,) of each row's level, as it is listed."""
    face = log.costs if log.costs is not None else log.levels.common_costs
    assert face is not None  # a log is read with its costs
    own: Array = np.broadcast_to(face, (len(log), len(log.levels)))[np.arange(len(log)), log.level]
    return own
