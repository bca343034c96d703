"""A policy on rows that did not train it: each fold of a log is decided by a model that never saw it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.evaluation import score_rows
from largesse.propensity import estimate_propensities
from largesse.records import Array, Customers, HeldOut, Log, Scores
from largesse.response import ResponseModel, fresh, own_costs
from largesse.stats import assign_folds

Decide = Callable[[ResponseModel, Customers], tuple[Array, Array]]  # levels (n,) and curves (n, K) by a model


@dataclass(frozen=True, eq=False)
class HeldOutPolicy:
    """What a policy decides for the held-out rows of a log, and what the log says of every level there."""

    customers: Customers
    levels: Array  # (n,)
    scores: Scores
    models: dict[Any, ResponseModel]  # of each fold
    decide_by: Decide

    def decide(self, customers: Customers) -> tuple[Array, Array]:
        """Return levels (n,) and curves (n, K) of customers, each by the model of the same row's fold."""
        return _decide_by_fold(self.models, self.scores.fold, customers, self.decide_by)


def hold_out_policy(model: ResponseModel, decide: Decide, log: Log, folds: int, seed: int) -> HeldOutPolicy:
    """Return a policy's decisions on held-out rows of a log.

    A model that has seen the log is fitted anew without each fold; one that has not is taken as it is.
    """
    seen = model.fingerprint_ in (log.fingerprint, log.seen.fingerprint)
    log = log.seen
    fold = assign_folds(log, folds, seed)
    models = {f: fresh(model).fit(log.take(fold != f)) if seen else model for f in np.unique(fold)}
    everyone = Customers(log.features, None, log.costs)
    levels, curves = _decide_by_fold(models, fold, everyone, decide)
    held = HeldOut(curves, fold, _observed_costs(models, fold, everyone) if log.levels.observed else None)
    scores = score_rows(log, held, estimate_propensities(log, fold, seed))
    return HeldOutPolicy(everyone, levels, scores, models, decide)


def _decide_by_fold(
    models: dict[Any, ResponseModel], fold: Array, customers: Customers, decide: Decide
) -> tuple[Array, Array]:
    """Return levels (n,) and curves (n, K) of customers, each fold by its own model."""
    parts = [(fold == f, *decide(model, take_customers(customers, fold == f))) for f, model in models.items()]
    levels, curves = np.empty(len(fold), dtype=np.int64), np.empty((len(fold), parts[0][2].shape[1]))
    for rows, chosen, expected in parts:
        levels[rows], curves[rows] = chosen, expected
    return levels, curves


def _observed_costs(models: dict[Any, ResponseModel], fold: Array, customers: Customers) -> Array:
    """Return what levels are expected to cost (n, K), where that is observed."""
    costs = np.empty((len(fold), next(iter(models.values())).levels_))
    for f, model in models.items():
        costs[fold == f] = own_costs(model, take_customers(customers, fold == f))
    return costs


def take_customers(customers: Customers, rows: Array) -> Customers:
    """Return some customers, given by a mask (n,)."""
    costs = None if customers.costs is None else customers.costs[rows]
    return Customers(customers.features.filter(rows), None, costs)
