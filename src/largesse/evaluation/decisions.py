"""The reasons of a held-out plan's decisions: typical customers, other prices, and the importance of features."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from largesse.allocation import decide_at_price, expected_costs
from largesse.evaluation.estimates import estimate_difference, take_scores
from largesse.records import (
    Array,
    DecisionExample,
    DecisionSummary,
    HeldOutPlan,
    Log,
    Mover,
    PriceMove,
    Scores,
    Shuffled,
    find_changes,
)

MAX_ROWS = 50_000  # a systematic sample of larger logs
PRICE_CHANGES = (-0.25, -0.1, 0.1, 0.25)


def explain_decisions(log: Log, scores: Scores, plan: HeldOutPlan, shuffled: Shuffled | None = None) -> DecisionSummary:
    """Explain a held-out plan: an example of each level, the effect of other prices, and the features that move decisions.

    Curves are those of models that did not see the row, and prices those of its fold's plan. `shuffled` holds the curves of
    rows whose features were shuffled; without it, no importance is measured.
    """
    movers = () if shuffled is None else measure_importance(log, scores, plan, shuffled)
    folds, place = np.unique(scores.fold, return_inverse=True)
    rows = np.arange(0, len(scores.level), max(-(-len(scores.level) // MAX_ROWS), 1))
    rows = rows[np.isfinite(plan.prices[place[rows]])]
    if not len(rows):
        return DecisionSummary(movers=movers)
    price, place = plan.prices[place[rows]], place[rows]
    scale = np.ones(len(folds)) if plan.scales is None else plan.scales
    curves, costs = scores.curves[rows], scores.expected_costs[rows] * scale[place][:, None]
    levels, weight = _decide(curves, costs, price), scores.weight[rows]
    examples = []
    for k in np.unique(levels):
        mine = levels == k
        row = _find_typical(curves, np.flatnonzero(mine), weight)
        share = float(weight[mine].sum() / weight.sum())
        examples.append(_make_example(log, int(k), share, float(price[row]), curves[row], costs[row]))
    moves = tuple(
        PriceMove(change, float(weight[_decide(curves, costs, price * (1 + change)) != levels].sum() / weight.sum()))
        for change in PRICE_CHANGES
        if price.any()
    )
    return DecisionSummary(tuple(examples), moves, movers)


def _decide(curves: Array, costs: Array, price: Array) -> Array:
    """Return the best levels (n,) of customers who have a price (n,) each.

    A price is the value of a unit of cost: costs times prices are decided at a price of one.
    """
    return decide_at_price(curves, costs * price[:, None], 1.0)


def _find_typical(curves: Array, rows: Array, weight: Array) -> int:
    """Return the row whose curve is nearest to the mean curve of some rows."""
    part = curves[rows]
    mean = np.average(part, axis=0, weights=weight[rows]) if weight[rows].any() else part.mean(axis=0)
    return int(rows[((part - mean) ** 2).sum(axis=1).argmin()])


def _make_example(log: Log, level: int, share: float, price: float, curve: Array, costs: Array) -> DecisionExample:
    labels = log.levels.titles
    dearer, below, cheaper, above = (part[0] for part in find_changes(curve[None], costs[None], np.array([level])))
    return DecisionExample(
        level=labels[level],
        share=share,
        price=price,
        curve=tuple(curve.tolist()),
        costs=tuple(costs.tolist()),
        dearer=None if dearer < 0 else labels[int(dearer)],
        below=None if math.isnan(below) else float(below),
        cheaper=None if cheaper < 0 else labels[int(cheaper)],
        above=None if math.isnan(above) else float(above),
    )


def measure_importance(log: Log, scores: Scores, plan: HeldOutPlan, shuffled: Shuffled) -> tuple[Mover, ...]:
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
