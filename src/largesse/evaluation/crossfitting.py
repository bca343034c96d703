"""Doubly robust scores, cross-fitted: no row is judged by a model that has seen its response.

Γ_ik = f̂(x_i, k) + 1{y_i = k} / ρ(y_i | x_i) · (r_i − f̂(x_i, k)). Averaged over rows this is right when either the
curves f̂ or the propensities ρ are; and their errors enter only as a product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from largesse.allocation import expected_costs
from largesse.propensity import correct_curves, estimate_propensities
from largesse.records import Array, Log, Propensities, Scores
from largesse.response import Linear, out_of_fold_curves
from largesse.stats import assign_folds

Tell = Callable[[int, int], None]


def crossfit(log: Log, model: Any = None, *, folds: int = 5, seed: int = 0, tell: Tell | None = None) -> Scores:
    """Return the scores of a log under a model (anything with `fit(log)` and `predict(features)`), refitted per fold.

    The default outcome model is `Linear`. `tell(done, total)` is called as folds are finished.
    """
    fold = assign_folds(log, folds, seed)
    curves = out_of_fold_curves(Linear(seed=seed) if model is None else model, log, fold, tell)
    return score_rows(log, curves, fold, estimate_propensities(log, fold, seed))


def score_rows(log: Log, curves: Array, fold: Array, chances: Propensities) -> Scores:
    """Return the scores of out-of-fold curves (n, K)."""
    rows, propensity = np.arange(len(log)), chances.own
    gamma = correct_curves(curves, log.level, log.response, propensity)
    face = log.costs if log.costs is not None else log.levels.common_costs
    assert face is not None  # a log is read with its costs
    face = np.broadcast_to(face, curves.shape)
    redeemed = log.levels.on_redemption
    paid = face[rows, log.level] * (np.maximum(log.response, 0.0) if redeemed else 1.0)
    paid = paid + np.where(log.level > 0, log.levels.contact_cost, 0.0)
    expected = np.broadcast_to(expected_costs(log.levels, curves, log.costs), curves.shape)
    # What was paid is an outcome like the response, and scored like it.
    costs = correct_curves(expected, log.level, paid, propensity) if redeemed else expected
    weight = np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean()
    return Scores(
        curves=curves,
        gamma=gamma,
        costs=costs,
        expected_costs=expected,
        propensity=propensity,
        fold=fold,
        level=log.level,
        response=log.response,
        paid=paid,
        weight=weight,
        cluster=log.cluster,
        propensity_source=chances.source,
        clipped=chances.clipped,
        clipped_weight=chances.clipped_weight,
    )


def used_propensities(made: Scores) -> Propensities:
    """Return the propensities that scores were made with."""
    return Propensities(made.propensity, made.propensity_source, "", made.clipped, made.clipped_weight)
