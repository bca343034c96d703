"""Permutation importance of features for the decisions of a policy, on held-out rows.

One feature at a time is shuffled among customers of a fold, and the policy decides again at the same price. The share of changed
levels measures how much the policy uses the feature; the loss of value − price × spend, by doubly robust scores, measures the
feature's worth. Correlated features share importance, so each looks less important.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from largesse.evaluation import compute_scores, estimate_policy_difference
from largesse.propensity import estimate_propensities
from largesse.records import Array, Customers, FeatureDecisionImportance, HeldOutPredictions, Log, Scores
from largesse.response import ResponseModel, copy_unfitted, get_customer_costs
from largesse.stats import assign_folds

SHUFFLES = 3  # of each feature, averaged
Decide = Callable[[ResponseModel, Customers], tuple[Array, Array]]  # levels (n,) and curves (n, K) by a model


@dataclass(frozen=True, eq=False)
class OutOfFoldPolicy:
    """Out-of-fold decisions of a policy for the rows of a log, with doubly robust scores."""

    customers: Customers
    levels: Array  # (n,)
    scores: Scores
    models: dict[Any, ResponseModel]  # of each fold
    decide_by: Decide

    def decide(self, customers: Customers) -> tuple[Array, Array]:
        """Return levels (n,) and curves (n, K) of customers, predicted by the model of each row's fold."""
        return _decide_by_fold(self.models, self.scores.fold, customers, self.decide_by)


def decide_out_of_fold(model: ResponseModel, decide: Decide, log: Log, folds: int, seed: int) -> OutOfFoldPolicy:
    """Decide the levels of a log's rows out of fold, by a policy with this model.

    A model that was trained on the log is fitted again without each fold.
    """
    seen = model.fingerprint_ in (log.fingerprint, log.seen.fingerprint)
    log = log.seen
    fold = assign_folds(log, folds, seed)
    models = {f: copy_unfitted(model).fit(log.take(fold != f)) if seen else model for f in np.unique(fold)}
    customers = Customers(log.features, None, log.costs)
    levels, curves = _decide_by_fold(models, fold, customers, decide)
    costs = None
    if log.levels.observed:
        costs = np.empty(curves.shape)
        for f, fold_model in models.items():
            costs[fold == f] = get_customer_costs(fold_model, _select_customers(customers, fold == f))
    scores = compute_scores(log, HeldOutPredictions(curves, fold, costs), estimate_propensities(log, fold, seed))
    return OutOfFoldPolicy(customers, levels, scores, models, decide)


def measure_feature_importance(
    model: ResponseModel, decide: Decide, price: float, log: Log, folds: int, seed: int
) -> list[FeatureDecisionImportance]:
    """Measure the permutation importance of each feature for decisions on held-out rows of a log.

    The most important feature comes first.
    """
    held_out = decide_out_of_fold(model, decide, log, folds, seed)
    fold, scores, levels = held_out.scores.fold, held_out.scores, held_out.levels
    net, rows = replace(scores, gamma=scores.gamma - price * scores.costs), np.arange(len(fold))
    movers = []
    for place, feature in enumerate(model.encoder_.features):
        rng = np.random.default_rng([seed, place])
        probabilities = np.zeros(scores.gamma.shape)  # of levels when the feature is shuffled
        for _ in range(SHUFFLES):
            shuffled = _shuffle_feature(held_out.customers, feature, fold, rng)
            probabilities[rows, held_out.decide(shuffled)[0]] += 1 / SHUFFLES
        stayed = np.average(probabilities[rows, levels], weights=scores.weight)
        loss = estimate_policy_difference(net, levels, probabilities).value
        movers.append(FeatureDecisionImportance(feature, float(np.clip(1 - stayed, 0.0, 1.0)), loss))
    return sorted(movers, key=lambda mover: (-mover.moved, -mover.loss.estimate))


def _decide_by_fold(
    models: dict[Any, ResponseModel], fold: Array, customers: Customers, decide: Decide
) -> tuple[Array, Array]:
    """Return levels (n,) and curves (n, K) of customers, with a separate model for each fold."""
    parts = [(fold == f, *decide(model, _select_customers(customers, fold == f))) for f, model in models.items()]
    levels, curves = np.empty(len(fold), dtype=np.int64), np.empty((len(fold), parts[0][2].shape[1]))
    for rows, chosen, expected in parts:
        levels[rows], curves[rows] = chosen, expected
    return levels, curves


def _select_customers(customers: Customers, rows: Array) -> Customers:
    """Return the customers that a mask (n,) selects."""
    costs = None if customers.costs is None else customers.costs[rows]
    return Customers(customers.features.filter(rows), None, costs)


def _shuffle_feature(customers: Customers, feature: str, fold: Array, rng: np.random.Generator) -> Customers:
    """Shuffle the values of one feature among the customers of the same fold."""
    order = np.arange(len(fold))
    for f in np.unique(fold):
        rows = np.flatnonzero(fold == f)
        order[rows] = rng.permutation(rows)
    table = customers.features
    place = table.column_names.index(feature)
    shuffled = table.set_column(place, table.schema.field(place), table.column(place).take(order))
    return replace(customers, features=shuffled)
