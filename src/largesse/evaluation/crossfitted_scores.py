"""Cross-fitted doubly robust scores of a log: each row's model was fitted without that row.

Γ_ik = f̂(x_i, k) + 1{y_i = k} / ρ(y_i | x_i) · (r_i − f̂(x_i, k)). Averaged over rows this is right if either the curves
f̂ or the propensities ρ are, and their errors enter only as a product.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from largesse.allocation import (
    copy_supported_values,
    expected_costs,
    map_to_supported_levels,
    penalise_unsupported_levels,
)
from largesse.propensity import compute_doubly_robust_scores, estimate_propensities
from largesse.records import Array, HeldOutPredictions, Log, Progress, Propensities, Scores
from largesse.response import Linear, WithCosts, predict_held_out
from largesse.stats import assign_folds


def crossfit_scores(
    log: Log,
    model: Any = None,
    *,
    folds: int = 5,
    seed: int = 0,
    propensities: Propensities | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Compute cross-fitted doubly robust scores of a log under a response model.

    The default outcome model is `Linear`. Observed costs have a model of their own, that of `WithCosts` or its default.
    Known propensities are not estimated again.
    """
    held = predict_out_of_fold(log, model, folds=folds, seed=seed, progress=progress)
    return compute_scores(log, held, propensities or estimate_propensities(log, held.fold, seed))


def predict_out_of_fold(
    log: Log, model: Any = None, *, folds: int = 5, seed: int = 0, progress: Progress | None = None
) -> HeldOutPredictions:
    """Predict the responses and costs of a log's rows by models fitted to the other folds."""
    fold = assign_folds(log, folds, seed)
    model = Linear(seed=seed) if model is None else model
    of_costs = None
    if isinstance(model, WithCosts):
        model, of_costs = model.unfitted_models
    held = predict_held_out(model, log, fold, progress)
    if not log.levels.observed:
        return held
    of_costs = WithCosts(seed=seed).unfitted_models[1] if of_costs is None else of_costs
    costs = predict_held_out(of_costs, log.of_costs, fold).curves
    return replace(held, costs=np.maximum(costs, 0.0))


def compute_scores(log: Log, held: HeldOutPredictions, propensities: Propensities) -> Scores:
    """Compute doubly robust scores from out-of-fold predictions and propensities."""
    levels, propensity, curves, costs = log.levels, propensities.own, held.curves, held.costs
    expected = np.broadcast_to(expected_costs(levels, curves, log.costs if costs is None else costs), curves.shape)
    paid = compute_paid_costs(log)
    return Scores(
        curves=curves,
        gamma=compute_doubly_robust_scores(curves, log.level, log.response, propensity),
        # A cost on redemption, or an observed one, is an outcome like the response, and scored like it.
        costs=expected if levels.certain else compute_doubly_robust_scores(expected, log.level, paid, propensity),
        expected_costs=expected,
        propensity=propensity,
        fold=held.fold,
        level=log.level,
        response=log.response,
        paid=paid,
        weight=log.weights,
        cluster=log.cluster,
        face=_select_listed_costs(log) if levels.on_redemption else None,
        paid_as="observed" if levels.observed else "redeemed" if levels.on_redemption else "listed",
    )


def restrict_scores_to_support(scores: Scores, allowed: Array | None) -> Scores:
    """Replace the scores of each row's unsupported levels by the scores of supported levels."""
    if allowed is None or allowed.all():
        return scores
    supported = map_to_supported_levels(allowed)
    curves, expected_costs = penalise_unsupported_levels(scores.curves, scores.expected_costs, allowed)
    gamma, costs = (copy_supported_values(table, supported) for table in (scores.gamma, scores.costs))
    return replace(scores, curves=curves, gamma=gamma, costs=costs, expected_costs=expected_costs, allowed=allowed)


def compute_paid_costs(log: Log) -> Array:
    """Return the cost (n,) that each logged row incurred."""
    if log.paid is not None:
        return log.paid
    paid = _select_listed_costs(log) * (np.maximum(log.response, 0.0) if log.levels.on_redemption else 1.0)
    return paid + np.where(log.level > 0, log.levels.contact_cost, 0.0)


def _select_listed_costs(log: Log) -> Array:
    """Return the listed cost (n,) of each row's logged level."""
    face = log.costs if log.costs is not None else log.levels.common_costs
    assert face is not None  # a log is read with its costs
    logged: Array = np.broadcast_to(face, (len(log), len(log.levels)))[np.arange(len(log)), log.level]
    return logged
