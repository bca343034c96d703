"""Doubly robust scores, cross-fitted: no row is judged by a model that has seen its response.

Γ_ik = f̂(x_i, k) + 1{y_i = k} / ρ(y_i | x_i) · (r_i − f̂(x_i, k)). Averaged over rows this is right when either the
curves f̂ or the propensities ρ are; and their errors enter only as a product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from largesse.allocate import expected_costs
from largesse.data import Encoder
from largesse.evaluate.folds import folds as cut
from largesse.evaluate.outcome import fit_steps
from largesse.evaluate.propensity import propensities
from largesse.records import Array, Log, Propensities, Scores

Tell = Callable[[int, int], None]


def crossfit(log: Log, model: Any = None, *, folds: int = 5, seed: int = 0, tell: Tell | None = None) -> Scores:
    """Return the scores of a log under a model (anything with `fit(log)` and `predict(features)`), refitted per fold.

    `model` None is the plain regression of `outcome`. `tell(done, total)` is called as folds are finished.
    """
    fold = cut(log, folds, seed)
    parts = np.unique(fold)
    curves = np.empty((len(log), len(log.levels)))
    for done, f in enumerate(parts):
        if tell:
            tell(done, len(parts) + 1)
        test = fold == f
        train, held = log.take(~test), log.take(test)
        curves[test] = (
            _plain_curves(train, held, seed) if model is None else fresh(model).fit(train).predict(held.features)
        )
    if tell:
        tell(len(parts), len(parts) + 1)
    return scores(log, curves, fold, propensities(log, fold, seed))


def scores(log: Log, curves: Array, fold: Array, chances: Propensities) -> Scores:
    """Return the scores of out-of-fold curves (n, K)."""
    rows, propensity = np.arange(len(log)), chances.own
    gamma = curves.copy()
    gamma[rows, log.level] += (log.response - curves[rows, log.level]) / propensity
    face = log.costs if log.costs is not None else log.levels.common_costs
    assert face is not None  # a log is read with its costs
    face = np.broadcast_to(face, curves.shape)
    redeemed = log.levels.on_redemption
    paid = face[rows, log.level] * (np.maximum(log.response, 0.0) if redeemed else 1.0)
    paid = paid + np.where(log.level > 0, log.levels.contact_cost, 0.0)
    expected = np.broadcast_to(expected_costs(log.levels, curves, log.costs), curves.shape)
    costs = expected
    if redeemed:  # what was paid is an outcome like the response, and scored like it
        costs = expected.copy()
        costs[rows, log.level] += (paid - expected[rows, log.level]) / propensity
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


def fresh(model: Any) -> Any:
    """Return an unfitted copy of a model, its nested models copied too (what scikit-learn's `clone` does)."""
    parameters = {
        name: fresh(value) if hasattr(value, "get_params") and not isinstance(value, type) else value
        for name, value in model.get_params(deep=False).items()
    }
    return type(model)(**parameters)


def _plain_curves(train: Log, held: Log, seed: int) -> Array:
    encoder = Encoder()
    X = encoder.fit_transform(train.features, train.response, seed=seed)
    fit = fit_steps(
        X, train.level, train.response, K=len(train.levels), binary=train.binary, weight=train.weight, seed=seed
    )
    return fit.predict(encoder.transform(held.features))
