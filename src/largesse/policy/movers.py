"""Which features move the decisions of a policy, measured on rows that did not train it.

One feature at a time is shuffled among held-out customers and the policy decides again, at the same price. The share of
customers whose level changes says how much the policy looks at the feature; the loss of value − price × spend, judged by
doubly robust scores of the same rows, says whether that looking pays. A feature may move many and bring nothing. Of two
features that say the same, each seems to matter little: the other one still speaks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from largesse.evaluation import estimate_difference, score_rows
from largesse.propensity import estimate_propensities
from largesse.records import Array, Customers, HeldOut, Log, Mover
from largesse.response import ResponseModel, fresh, own_costs
from largesse.stats import assign_folds

REPEATS = 3  # shuffles of each feature, averaged

Decide = Callable[[ResponseModel, Customers], tuple[Array, Array]]


def measure_movers(model: ResponseModel, decide: Decide, price: float, log: Log, folds: int, seed: int) -> list[Mover]:
    """Return how each feature moves decisions on held-out rows of a log, the one that moves most first.

    `decide` gives the levels (n,) of customers under a model, and their curves (n, K). A model that has seen the log is
    fitted anew without each fold; one that has not is taken as it is.
    """
    seen = model.fingerprint_ in (log.fingerprint, log.seen.fingerprint)
    log = log.seen
    fold = assign_folds(log, folds, seed)
    models = {f: fresh(model).fit(log.take(fold != f)) if seen else model for f in np.unique(fold)}
    everyone = Customers(log.features, None, log.costs)
    levels, curves = _by_fold(models, fold, everyone, decide)
    held = HeldOut(curves, fold, _observed_costs(models, fold, everyone) if log.levels.observed else None)
    scores = score_rows(log, held, estimate_propensities(log, fold, seed))
    worth = replace(scores, gamma=scores.gamma - price * scores.costs)
    found = []
    for place, feature in enumerate(model.encoder_.features):
        rng = np.random.default_rng([seed, place])
        others = np.zeros(curves.shape)
        for _ in range(REPEATS):
            shuffled = _shuffle(everyone, feature, fold, rng)
            others[np.arange(len(log)), _by_fold(models, fold, shuffled, decide)[0]] += 1 / REPEATS
        stayed = np.average(others[np.arange(len(log)), levels], weights=scores.weight)
        loss = estimate_difference(worth, levels, others).value
        found.append(Mover(feature, float(np.clip(1 - stayed, 0.0, 1.0)), loss))
    return sorted(found, key=lambda mover: (-mover.moved, -mover.loss.estimate))


def _by_fold(
    models: dict[Any, ResponseModel], fold: Array, customers: Customers, decide: Decide
) -> tuple[Array, Array]:
    """Return levels (n,) and curves (n, K) of customers, each fold by its own model."""
    parts = [(fold == f, *decide(model, _take(customers, fold == f))) for f, model in models.items()]
    levels, curves = np.empty(len(fold), dtype=np.int64), np.empty((len(fold), parts[0][2].shape[1]))
    for rows, chosen, expected in parts:
        levels[rows], curves[rows] = chosen, expected
    return levels, curves


def _observed_costs(models: dict[Any, ResponseModel], fold: Array, customers: Customers) -> Array:
    """Return what levels are expected to cost (n, K), where that is observed."""
    costs = np.empty((len(fold), next(iter(models.values())).levels_))
    for f, model in models.items():
        costs[fold == f] = own_costs(model, _take(customers, fold == f))
    return costs


def _take(customers: Customers, rows: Array) -> Customers:
    costs = None if customers.costs is None else customers.costs[rows]
    return Customers(customers.features.filter(rows), None, costs)


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
