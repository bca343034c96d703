"""Compiled steps that draw levels around the current price by an exploration rule.

Importing it loads numba. `rule` is `ExplorationRule.pack_for_pacing`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from largesse.exploration import load_spread
from largesse.records import Array

compiled = njit(cache=True, nogil=True, error_model="numpy")
VALUE_PRICE, LOWER, HIGHER, SHARED = range(4)  # places in `rule`

spread_row = load_spread()


@compiled
def best_at(f: Array, cost: Array, factor: float) -> int:
    """Return the best level (of K) at a factor of prices, the cheapest of equals."""
    best, level = f[0] - factor * cost[0], 0
    for k in range(1, len(f)):
        worth = f[k] - factor * cost[k]
        if worth > best + 1e-12 * abs(best):
            best, level = worth, k
    return level


@compiled
def spread_at(factor: float, f: Array, cost: Array, variance: Array, rule: Array) -> Array:
    """Return the probabilities (K,) of one customer's levels at a factor of prices, what levels cost at these being `cost` (K,)."""
    levels = (
        best_at(f, cost, factor),
        best_at(f, cost, factor * rule[LOWER]),
        best_at(f, cost, factor * rule[HIGHER]),
    )
    lost, p = np.empty(len(f)), np.empty(len(f))
    for k in range(len(f)):
        lost[k] = rule[VALUE_PRICE] * (factor * cost[k] - f[k])
    if math.isfinite(lost.max() - lost.min()):
        spread_row(levels, lost, variance, rule[SHARED:], p)
    else:  # responses beyond all measure: there is nothing to weigh
        p[:], p[levels[0]] = 0.0, 1.0
    return p


@compiled
def draw_level(p: Array, u: float) -> int:
    """Return the level that a random number from 0 to 1 draws: never one whose probability is zero."""
    below, last = 0.0, 0
    for k in range(len(p)):
        if p[k] > 0.0:
            below, last = below + p[k], k
            if u < below:
                return k
    return last  # rounding may end the sum short of one


@compiled
def spread_people(
    factor: float, f: Array, late: Array, early: Array, prices: Array, variance: Array, rule: Array, out: Array
) -> None:
    """Write the probabilities (n, K) of customers; their costs `late` and `early` (n, K) count at `prices` (n, 2)."""
    cost = np.empty(f.shape[1])
    for i in range(len(f)):
        for k in range(f.shape[1]):
            cost[k] = prices[i, 0] * late[i, k] + prices[i, 1] * early[i, k]
        out[i] = spread_at(factor, f[i], cost, variance[i], rule)
