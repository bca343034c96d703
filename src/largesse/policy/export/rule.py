"""The decision as steps: expected responses and costs of a policy, and the level that its price chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.allocation import TIE
from largesse.policy.export.curves import write_curves
from largesse.policy.export.features import encode_features, number
from largesse.policy.export.values import (
    Value,
    columns_of,
    constant,
    join,
    larger,
    largest,
    smaller,
    take,
    where_less,
)
from largesse.records import Array
from largesse.response import WithCosts

BEYOND = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Rule:
    """What an exported policy gives for each customer, and what the table must hold beside the features."""

    level: Value  # (n, 1) a whole number
    response: Value  # (n, 1) expected at that level
    cost: Value  # (n, 1) expected at that level
    curves: Value  # (n, K)
    costs: Value  # (n, K)
    own_costs: tuple[Value, ...]  # columns of the table that must hold a cost: without one there is no level
    labels: tuple[str, ...]


def write_rule(policy: Any, price: float) -> Rule:
    """Return a policy's decision at a price as steps."""
    X = encode_features(policy.model.encoder_)
    curves = write_curves(policy.model, X)
    columns = tuple(number(name) for name in policy.levels.cost_columns or ())
    costs = _write_costs(policy, curves, X, columns)
    level = _decide(curves, costs, price)
    chosen = take(curves, level), take(costs, level)
    return Rule(level, *chosen, curves, costs, columns, policy.levels.labels)


def _write_costs(policy: Any, curves: Value, X: Value, columns: tuple[Value, ...]) -> Value:
    """Return expected costs (n, K), as `allocation.expected_costs` and the policy's scale make them."""
    levels = policy.levels
    if isinstance(policy.model, WithCosts):
        face = larger(write_curves(policy.model.costs_, X), 0.0)
    elif columns:
        face = join(columns)
    else:
        face = constant(np.asarray(levels.common_costs))
    paid = face * larger(curves, 0.0) if levels.on_redemption else face
    if levels.contact_cost:
        paid = paid + np.where(np.arange(len(levels)) > 0, levels.contact_cost, 0.0)
    return paid if policy.scale == 1.0 else paid * policy.scale


def _decide(curves: Value, costs: Value, price: float) -> Value:
    """Return the best level (n, 1) at a price: the cheapest of those that tie, as `allocation.decide_at_price` does."""
    charge = fold_constants(costs, price)
    worth = curves - charge
    size = largest(larger(curves, constant(0.0) - curves))
    enough = largest(worth) - (size + largest(charge)) * TIE
    # A level that is not worth enough costs more than any other.
    paid = columns_of(where_less(worth, enough, BEYOND, costs))
    level, cost = constant(0.0), paid[0]
    for k, own in enumerate(paid[1:], start=1):
        level, cost = where_less(own, cost, float(k), level), smaller(cost, own)
    return level


def fold_constants(costs: Value, price: float) -> Value:
    """Return price × costs: a constant where costs are."""
    if costs.step == "constant":
        row: Array = price * costs.facts["row"]
        return constant(row)
    return costs * price
