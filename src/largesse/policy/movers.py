"""Which features move the decisions of a policy, measured on rows that did not train it.

One feature at a time is shuffled among held-out customers and the policy decides again, at the same price. The share of
customers whose level changes says how much the policy looks at the feature; the loss of value − price × spend, judged by
doubly robust scores of the same rows, says whether that looking pays. A feature may move many and bring nothing. Of two
features that say the same, each seems to matter little: the other one still speaks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from largesse.allocation import decide_at_price, expected_costs
from largesse.evaluation import estimate_difference, take_scores
from largesse.policy.held_out import Decide, hold_out_policy
from largesse.records import Array, Customers, HeldOutPlan, Log, Mover, Scores, Shuffled
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


def judge_shuffled(log: Log, scores: Scores, plan: HeldOutPlan, shuffled: Shuffled) -> tuple[Mover, ...]:
    """Return how each feature moves the decisions of a held-out plan, the one that moves most first: nothing is fitted.

    Rows are decided at the price of their fold's plan. Where costs are observed, what levels are expected to cost stays as it is.
    """
    place = np.unique(scores.fold, return_inverse=True)[1][shuffled.rows]
    known = np.isfinite(plan.prices[place])
    rows, place = shuffled.rows[known], place[known]
    if not len(rows):
        return ()
    scale = np.ones(len(plan.prices)) if plan.scales is None else plan.scales
    price, scale = plan.prices[place][:, None], scale[place][:, None]
    some = take_scores(scores, rows)
    worth = replace(some, gamma=some.gamma - price * some.costs)

    def decide(curves: Array) -> Array:
        curves, costs = curves.astype(np.float64), some.expected_costs
        if not log.levels.observed:
            own = None if log.costs is None else log.costs[rows]
            costs = np.broadcast_to(expected_costs(log.levels, curves, own), curves.shape)
        # A price is what a unit of cost is worth: costs times prices are decided at a price of one.
        return decide_at_price(curves, costs * (scale * price), 1.0)

    levels, found = decide(some.curves.astype(np.float32)), []
    for feature, curves in zip(shuffled.features, shuffled.curves[:, known], strict=True):
        others = decide(curves)
        moved = float(np.average(others != levels, weights=some.weight)) if some.weight.any() else 0.0
        found.append(Mover(feature, moved, estimate_difference(worth, levels, others).value))
    return tuple(sorted(found, key=lambda mover: (-mover.moved, -mover.loss.estimate)))


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
