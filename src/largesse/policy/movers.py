"""Permutation importance of features for the decisions of a policy, on rows that did not train it.

One feature at a time is shuffled among held-out customers and the policy decides again, at the same price. The share of
customers whose level changes measures how much the policy uses the feature; the loss of value − price × spend, estimated by
doubly robust scores of the same rows, measures what the feature is worth. Correlated features share importance, so each looks small.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from largesse.evaluation import estimate_difference
from largesse.policy.held_out import Decide, hold_out_policy
from largesse.records import Array, Customers, Log, Mover
from largesse.response import ResponseModel

REPEATS = 3  # shuffles of each feature, averaged


def measure_movers(model: ResponseModel, decide: Decide, price: float, log: Log, folds: int, seed: int) -> list[Mover]:
    """Return how each feature moves decisions on held-out rows of a log, the one that moves most first.

    `decide` gives the levels (n,) of customers under a model, and their curves (n, K).
    """
    held = hold_out_policy(model, decide, log, folds, seed)
    fold, scores, levels = held.scores.fold, held.scores, held.levels
    worth = replace(scores, gamma=scores.gamma - price * scores.costs)
    found = []
    for place, feature in enumerate(model.encoder_.features):
        rng = np.random.default_rng([seed, place])
        others = np.zeros(scores.gamma.shape)
        for _ in range(REPEATS):
            shuffled = _shuffle(held.customers, feature, fold, rng)
            others[np.arange(len(fold)), held.decide(shuffled)[0]] += 1 / REPEATS
        stayed = np.average(others[np.arange(len(fold)), levels], weights=scores.weight)
        loss = estimate_difference(worth, levels, others).value
        found.append(Mover(feature, float(np.clip(1 - stayed, 0.0, 1.0)), loss))
    return sorted(found, key=lambda mover: (-mover.moved, -mover.loss.estimate))


def _shuffle(customers: Customers, feature: str, fold: Array, rng: np.random.Generator) -> Customers:
    """Return customers with one feature shuffled among those of the same fold."""
    order = np.arange(len(fold))
    for f in np.unique(fold):
        rows = np.flatnonzero(fold == f)
        order[rows] = rng.permutation(rows)
    table = customers.features
    place = table.column_names.index(feature)
    shuffled = table.set_column(place, table.schema.field(place), table.column(place).take(order))
    return replace(customers, features=shuffled)
