"""The compiled loops of allocation. Nothing imports this file until it is needed: it brings numba with it.

Every loop reads curves (n, K) in single or double precision as they are, and costs as rows: (1, K) when they are the
same for everybody, else (n, K). Arithmetic is in double precision; sums carry what rounding lost along (two-sum).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from largesse.records import Array

compiled = njit(cache=True, nogil=True, error_model="numpy")
inlined = njit(cache=True, nogil=True, error_model="numpy", inline="always")


@inlined
def _cheapest(curves: Array, costs: Array, i: int, j: int) -> int:
    """Return the cheapest level of row i, the best of them if several cost the same, then the lowest."""
    level, cost, worth = 0, np.float64(costs[j, 0]), np.float64(curves[i, 0])
    for k in range(1, curves.shape[1]):
        c, f = np.float64(costs[j, k]), np.float64(curves[i, k])
        if c < cost or (c == cost and f > worth):
            level, cost, worth = k, c, f
    return level


@inlined
def _best(curves: Array, costs: Array, i: int, j: int, price: float) -> int:
    """Return the best level of row i at a price, the cheapest if they tie, then the lowest."""
    level, cost = 0, np.float64(costs[j, 0])
    best = np.float64(curves[i, 0]) - price * cost
    for k in range(1, curves.shape[1]):
        c = np.float64(costs[j, k])
        worth = np.float64(curves[i, k]) - price * c
        if worth > best or (worth == best and c < cost):
            level, cost, best = k, c, worth
    return level


@inlined
def _next(curves: Array, costs: Array, i: int, j: int, at: int) -> tuple[int, float]:
    """Return the next level up the hull of row i, and its gain per unit of cost; −1 when there is none.

    Of levels on one straight piece the nearest comes first: they are the finer steps that a whole plan can take.
    """
    f, c = np.float64(curves[i, at]), np.float64(costs[j, at])
    level, slope, nearest = -1, 0.0, math.inf
    for k in range(curves.shape[1]):
        gain, extra = np.float64(curves[i, k]) - f, np.float64(costs[j, k]) - c
        if gain > 0.0 and extra > 0.0:
            s = gain / extra
            if s > slope or (s == slope and extra < nearest):
                level, slope, nearest = k, s, extra
    return level, slope


@compiled
def classify(
    curves: Array, costs: Array, rows: Array, whole: bool, high: float, low: float, levels: Array, open_rows: Array
) -> tuple[int, Array]:
    """Decide the rows whose level is the same at a high and a low price; list the others.

    `rows` are the rows to look at; all when `whole`. Writes the level at the high price into `levels`, and undecided
    rows into `open_rows` (which may be `rows` itself). Returns how many are undecided, and sums: value and its
    carry, cost and its carry of the decided; cost of the undecided at the high and at the low price.
    """
    m = len(levels) if whole else len(rows)
    own = len(costs) > 1
    one_price = high == low
    found = 0
    value = value_carry = cost = cost_carry = dear = cheap = 0.0
    for r in range(m):
        i = r if whole else rows[r]
        j = i if own else 0
        up = _cheapest(curves, costs, i, j) if high == math.inf else _best(curves, costs, i, j, high)
        down = up if one_price else _best(curves, costs, i, j, low)
        levels[i] = up
        if up == down:
            x = np.float64(curves[i, up])
            t = value + x
            b = t - value
            value_carry += (value - (t - b)) + (x - b)
            value = t
            x = np.float64(costs[j, up])
            t = cost + x
            b = t - cost
            cost_carry += (cost - (t - b)) + (x - b)
            cost = t
        else:
            cheap += costs[j, up]
            dear += costs[j, down]
            open_rows[found] = i
            found += 1
    return found, np.array([value, value_carry, cost, cost_carry, cheap, dear])


@compiled
def walk(
    curves: Array, costs: Array, rows: Array, levels: Array, low: float, who: Array, to: Array, slope: Array, cost: Array
) -> int:
    """List the steps up the hull of some rows from `levels`, as long as they bring more than `low` per unit of cost.

    Writes for each step whose it is (the place in `rows`), the level it leads to, its slope and its cost. A row's
    slopes never rise, not even by rounding. Returns how many steps there are.
    """
    own = len(costs) > 1
    m = 0
    for r in range(len(rows)):
        i = rows[r]
        j = i if own else 0
        at, before = levels[i], math.inf
        while True:
            level, s = _next(curves, costs, i, j, at)
            if level < 0 or s < low:
                break
            before = min(s, before)
            who[m], to[m], slope[m] = r, level, before
            cost[m] = np.float64(costs[j, level]) - np.float64(costs[j, at])
            m += 1
            at = level
    return m


@compiled
def select(slope: Array, cost: Array, room: float) -> float:
    """Return the slope of the first step that does not fit, taking the steepest first; 0 when all of them fit.

    A selection: the two arrays are reordered in place as far as needed, never sorted.
    """
    first, last = 0, len(slope)
    while first < last:
        a, b, c = slope[first], slope[(first + last) // 2], slope[last - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        above, same, at, below = 0.0, 0.0, first, last
        place = first  # [first, place) above the pivot, [place, at) equal, [below, last) less
        while at < below:
            s = slope[at]
            if s > pivot:
                above += cost[at]
                slope[at], slope[place] = slope[place], s
                cost[at], cost[place] = cost[place], cost[at]
                place += 1
                at += 1
            elif s == pivot:
                same += cost[at]
                at += 1
            else:
                below -= 1
                slope[at], slope[below] = slope[below], s
                cost[at], cost[below] = cost[below], cost[at]
        if above > room:
            last = place
        elif above + same > room:
            return pivot
        else:
            room -= above + same
            first = below
    return 0.0


@compiled
def settle(curves: Array, costs: Array, rows: Array, levels: Array, price: float, room: float) -> tuple[float, float]:
    """Take every step that brings more than the price, then those that bring just that, row by row, as they fit.

    Changes `levels`. Returns the room left before the ties were split, and after.
    """
    own = len(costs) > 1
    for r in range(len(rows)):
        i = rows[r]
        j = i if own else 0
        at, before = levels[i], math.inf
        while True:
            level, s = _next(curves, costs, i, j, at)
            before = min(s, before)
            if level < 0 or before <= price:
                break
            room -= np.float64(costs[j, level]) - np.float64(costs[j, at])
            at = level
        levels[i] = at
    left = room
    if price > 0.0:
        for r in range(len(rows)):
            i = rows[r]
            j = i if own else 0
            at = levels[i]
            while True:
                level, s = _next(curves, costs, i, j, at)
                extra = np.float64(costs[j, level]) - np.float64(costs[j, at]) if level >= 0 else 0.0
                if level < 0 or s < price or extra > left:
                    break
                left -= extra
                at = level
            levels[i] = at
    return room, left


@compiled
def totals(curves: Array, costs: Array, rows: Array, levels: Array) -> Array:
    """Return the value and its carry, the cost and its carry, of some rows at their levels."""
    own = len(costs) > 1
    value = value_carry = cost = cost_carry = 0.0
    for r in range(len(rows)):
        i = rows[r]
        x = np.float64(curves[i, levels[i]])
        t = value + x
        b = t - value
        value_carry += (value - (t - b)) + (x - b)
        value = t
        x = np.float64(costs[i if own else 0, levels[i]])
        t = cost + x
        b = t - cost
        cost_carry += (cost - (t - b)) + (x - b)
        cost = t
    return np.array([value, value_carry, cost, cost_carry])


@compiled
def best_change(curves: Array, costs: Array, rows: Array, levels: Array, room: float) -> tuple[int, int, float]:
    """Return the one change of a row's level that adds at most `room` of cost and is worth most: row, level, gain.

    With a negative room: the change that saves as much and loses least. −1 when there is none.
    """
    own = len(costs) > 1
    row, to, most = -1, -1, 0.0 if room >= 0.0 else -math.inf
    for r in range(len(rows)):
        i = rows[r]
        j = i if own else 0
        f, c = np.float64(curves[i, levels[i]]), np.float64(costs[j, levels[i]])
        for k in range(curves.shape[1]):
            gain = np.float64(curves[i, k]) - f
            if gain > most and np.float64(costs[j, k]) - c <= room:
                row, to, most = i, k, gain
    return row, to, most


@compiled
def decide(curves: Array, costs: Array, price: float, tie: float, levels: Array) -> None:
    """Write each row's best level at a price; of levels worth the same up to `tie` (relative), the cheapest."""
    own = len(costs) > 1
    K = curves.shape[1]
    for i in range(len(curves)):
        j = i if own else 0
        best, size, dear = -math.inf, 0.0, 0.0
        for k in range(K):
            f, c = np.float64(curves[i, k]), np.float64(costs[j, k])
            best, size, dear = max(best, f - price * c), max(size, abs(f)), max(dear, c)
        enough = best - tie * (size + price * dear)
        level, cost = 0, math.inf
        for k in range(K):
            c = np.float64(costs[j, k])
            if c < cost and np.float64(curves[i, k]) - price * c >= enough:
                level, cost = k, c
        levels[i] = level
