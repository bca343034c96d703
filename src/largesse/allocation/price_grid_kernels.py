"""Compiled loops that sum costs and count levels of plans at many shadow prices.

Imported inside functions only: it loads numba.

Curves are (n, K) in single or double precision, costs (1, K) or (n, K), as in `price.price_kernels`. At a price, every step up a
hull is taken that brings at least the price; a step belongs to the first of falling prices that takes it.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from largesse.allocation.price.price_kernels import find_next_hull_step
from largesse.records import Array

compiled = njit(cache=True, nogil=True, error_model="numpy")
inlined = njit(cache=True, nogil=True, error_model="numpy", inline="always")


@inlined
def find_cheapest_level(curves: Array, costs: Array, i: int, j: int) -> int:
    """Return a customer's cheapest level, the one with the highest response if levels tie."""
    at = 0
    for k in range(1, curves.shape[1]):
        if costs[j, k] < costs[j, at] or (costs[j, k] == costs[j, at] and curves[i, k] > curves[i, at]):
            at = k
    return at


@inlined
def find_first_taking_price(prices: Array, place: int, slope: float) -> int:
    """Return the index of the first of several decreasing shadow prices at which a hull step pays.

    The search begins at a place.
    """
    low, high = place, len(prices)
    while low < high:
        middle = (low + high) // 2
        if prices[middle] > slope:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def add_costs_and_values(curves: Array, costs: Array, prices: Array, spend: Array, value: Array) -> None:
    """Add customers' costs and responses at each of several decreasing shadow prices to arrays (m + 1,).

    First those at their cheapest level, then the increase at each falling price.
    """
    per_customer = len(costs) > 1
    for i in range(len(curves)):
        j = i if per_customer else 0
        at = find_cheapest_level(curves, costs, i, j)
        spend[0] += np.float64(costs[j, at])
        value[0] += np.float64(curves[i, at])
        before, place = math.inf, 0
        while True:
            level, s = find_next_hull_step(curves, costs, i, j, at)
            before = min(s, before)
            place = find_first_taking_price(prices, place, before)
            if level < 0 or place == len(prices):
                break
            spend[place + 1] += np.float64(costs[j, level]) - np.float64(costs[j, at])
            value[place + 1] += np.float64(curves[i, level]) - np.float64(curves[i, at])
            at = level


@compiled
def count_level_changes(
    curves: Array, costs: Array, prices: Array, drawn: Array, groups: Array, counts: Array, spend: Array
) -> None:
    """Count the level changes, and sum their costs, between neighbours in a list of decreasing shadow prices.

    They are added to `counts` (m, groups, K) and `spend` (m, groups).

    A row counts in each of its groups (n, g). Where `drawn` (n, K) is given, a row whose best level is k gets level drawn[i, k].
    """
    per_customer, exploring = len(costs) > 1, len(drawn) > 0
    for i in range(len(curves)):
        j = i if per_customer else 0
        at, before, place, last = find_cheapest_level(curves, costs, i, j), math.inf, 0, -1
        while True:
            level, s = find_next_hull_step(curves, costs, i, j, at)
            before = min(s, before)
            chosen = drawn[i, at] if exploring else at
            if chosen != last:
                more = np.float64(costs[j, chosen]) - (np.float64(costs[j, last]) if last >= 0 else 0.0)
                for g in range(groups.shape[1]):
                    group = groups[i, g]
                    counts[place, group, chosen] += 1
                    spend[place, group] += more
                    if last >= 0:
                        counts[place, group, last] -= 1
                last = chosen
            place = find_first_taking_price(prices, place, before)
            if level < 0 or place == len(prices):
                break
            at = level
