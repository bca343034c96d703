"""A typical customer of each level, and how many would get another level at another price: all on held-out rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from largesse.allocation import decide_at_price
from largesse.records import Array, Log, Mover, Study, find_changes
from largesse.report.plain import plain_estimate
from largesse.report.section import Part

ROWS = 50_000  # of the log that are looked at, if it has more
CHANGES = (-0.25, -0.1, 0.1, 0.25)  # of the price


def describe_why(log: Log, study: Study) -> Part:
    """Return one example for each level that is given, and the share of customers whom other prices would move.

    Curves are those of models that did not see the row, and prices those of its fold's plan.
    """
    scores, plan = study.scores, study.plan
    folds, place = np.unique(scores.fold, return_inverse=True)
    rows = np.arange(0, len(scores.level), max(-(-len(scores.level) // ROWS), 1))
    rows = rows[np.isfinite(plan.prices[place[rows]])]
    if not len(rows):
        return {"examples": [], "moves": [], "movers": []}
    price, place = plan.prices[place[rows]], place[rows]
    scale = np.ones(len(folds)) if plan.scales is None else plan.scales
    curves, costs = scores.curves[rows], scores.expected_costs[rows] * scale[place][:, None]
    # A price is what a unit of cost is worth: costs times prices are decided at a price of one.
    levels = _decide(curves, costs, price)
    weight = scores.weight[rows]
    labels = log.levels.titles
    examples = []
    for k in np.unique(levels):
        mine = levels == k
        row = _find_typical(curves, np.flatnonzero(mine), weight)
        examples.append(
            {
                "level": labels[k],
                "share": float(weight[mine].sum() / weight.sum()),
                "price": float(price[row]),
                "curve": curves[row].tolist(),
                "costs": costs[row].tolist(),
                **_describe_change(curves[row], costs[row], int(k), labels),
            }
        )
    moves = [
        {
            "change": change,
            "share": float(weight[_decide(curves, costs, price * (1 + change)) != levels].sum() / weight.sum()),
        }
        for change in CHANGES
        if price.any()
    ]
    return {"examples": examples, "moves": moves, "movers": [_describe_mover(mover) for mover in study.movers]}


def _describe_mover(mover: Mover) -> Part:
    return {"feature": mover.feature, "moved": mover.moved, "loss": plain_estimate(mover.loss)}


def _decide(curves: Array, costs: Array, price: Array) -> Array:
    """Return the best levels (n,) of customers who have a price (n,) each."""
    return decide_at_price(curves, costs * price[:, None], 1.0)


def _find_typical(curves: Array, rows: Array, weight: Array) -> int:
    """Return the row whose curve is nearest to the mean curve of some rows."""
    part = curves[rows]
    mean = np.average(part, axis=0, weights=weight[rows]) if weight[rows].any() else part.mean(axis=0)
    return int(rows[((part - mean) ** 2).sum(axis=1).argmin()])


def _describe_change(curve: Array, costs: Array, level: int, labels: tuple[str, ...]) -> dict[str, Any]:
    dearer, below, cheaper, above = (part[0] for part in find_changes(curve[None], costs[None], np.array([level])))
    return {
        "dearer": None if dearer < 0 else labels[int(dearer)],
        "below": None if math.isnan(below) else float(below),
        "cheaper": None if cheaper < 0 else labels[int(cheaper)],
        "above": None if math.isnan(above) else float(above),
    }
