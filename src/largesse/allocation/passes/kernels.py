"""The compiled loops of passes over customers. Nothing imports this file until it is needed: it brings numba with it.

Curves are (n, K) in single or double precision, costs (1, K) or (n, K), as in `price.kernels`. `ends` says which steps
are open: (high, low) are slopes, (first, last) the rows that are open at a slope which is `high` and `low` at once.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from largesse.allocation.passes.sums import BITS, LOWEST
from largesse.allocation.price.kernels import least_worth, next_step
from largesse.records import Array

compiled = njit(cache=True, nogil=True, error_model="numpy")
inlined = njit(cache=True, nogil=True, error_model="numpy", inline="always")
MASK = (1 << BITS) - 1
TAKEN, OPEN, LEFT = 0, 1, 2


@inlined
def add_exactly(total: Array, x: float) -> None:
    """Add a float to a sum (CHUNKS,) without rounding."""
    if x != 0.0:
        part, exponent = math.frexp(abs(x))
        digits = np.int64(part * 9007199254740992.0)  # 2⁵³: a whole number now
        place = exponent - 53 + LOWEST
        chunk, shift = place >> 5, place & 31
        low, high = (digits & MASK) << shift, (digits >> BITS) << shift
        sign = -1 if x < 0.0 else 1
        total[chunk] += sign * (low & MASK)
        total[chunk + 1] += sign * ((low >> BITS) + (high & MASK))
        total[chunk + 2] += sign * (high >> BITS)


@inlined
def start_at(curves: Array, costs: Array, i: int, j: int) -> int:
    """Return a row's cheapest level, the best of them if they tie."""
    at = 0
    for k in range(1, curves.shape[1]):
        if costs[j, k] < costs[j, at] or (costs[j, k] == costs[j, at] and curves[i, k] > curves[i, at]):
            at = k
    return at


@inlined
def side_of(slope: float, row: int, slopes: Array, ends: Array) -> int:
    """Return whether a step is taken, open, or left, going by the ends of what is open."""
    if slope > slopes[0] or (slope == slopes[0] and row < ends[0]):
        return TAKEN
    return LEFT if slope < slopes[1] or (slope == slopes[1] and row >= ends[1]) else OPEN


@inlined
def first_taker(prices: Array, place: int, slope: float) -> int:
    """Return the first of falling prices, from a place on, at which a step is taken: the first that it brings at least."""
    low, high = place, len(prices)
    while low < high:
        middle = (low + high) // 2
        if prices[middle] > slope:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def count_steps(
    batch: tuple[Array, Array, Array],
    slopes: Array,
    ends: Array,
    shift: int,
    spent: Array,
    counts: Array,
    reach: Array,
    paid: Array,
) -> None:
    """Add a batch of rows, curves and costs to a tally.

    `spent` (CHUNKS,) gets the cost of every row at the steps that are taken; of open steps each cell gets the
    number (`counts`), the lowest and the highest place (`reach`, (cells, 2)), and the exact cost (`paid`). A step's place is
    that of its slope among floats, the steepest first; when all open steps share one slope, it is the row.
    """
    rows, curves, costs = batch
    own, by_row = len(costs) > 1, slopes[0] == slopes[1]
    slope, words = np.empty(2), np.empty(0, np.int64)
    words = slope.view(np.int64)
    slope[1] = slopes[0]
    top = ends[0] if by_row else words[1]
    for i in range(len(curves)):
        j = i if own else 0
        at = start_at(curves, costs, i, j)
        taken, before = at, math.inf
        while True:
            level, s = next_step(curves, costs, i, j, at)
            before = min(s, before)
            side = LEFT if level < 0 else side_of(before, rows[i], slopes, ends)
            if side == LEFT:
                break
            if side == TAKEN:
                taken = level
            else:
                slope[0] = before
                place = rows[i] - top if by_row else top - words[0]
                cell = place >> shift
                reach[cell, 0] = place if counts[cell] == 0 else min(place, reach[cell, 0])
                reach[cell, 1] = place if counts[cell] == 0 else max(place, reach[cell, 1])
                counts[cell] += 1
                add_exactly(paid[cell], np.float64(costs[j, level]))
                add_exactly(paid[cell], -np.float64(costs[j, at]))
            at = level
        add_exactly(spent, np.float64(costs[j, taken]))


@compiled
def part_rows(
    batch: tuple[Array, Array, Array], slopes: Array, ends: Array, levels: Array, sums: Array, unsure: Array
) -> int:
    """Write the level of every row at the steps that are taken, and the rows with open steps into `unsure`.

    `sums` (2, CHUNKS) get value and cost of every row at that level; with (0, CHUNKS) nothing is added up. Returns how many
    rows have open steps.
    """
    rows, curves, costs = batch
    own, found = len(costs) > 1, 0
    for i in range(len(curves)):
        j = i if own else 0
        at, before, side = start_at(curves, costs, i, j), math.inf, TAKEN
        while side == TAKEN:
            level, s = next_step(curves, costs, i, j, at)
            before = min(s, before)
            side = LEFT if level < 0 else side_of(before, rows[i], slopes, ends)
            at = level if side == TAKEN else at
        if side == OPEN:
            unsure[found] = i
            found += 1
        levels[i] = at
        if len(sums):
            add_exactly(sums[0], np.float64(curves[i, at]))
            add_exactly(sums[1], np.float64(costs[j, at]))
    return found


@compiled
def plans_at(curves: Array, costs: Array, prices: Array, paid: Array, value: Array) -> None:
    """Add to `paid` (m + 1, CHUNKS) what rows cost at their cheapest level, and what comes on top at each falling price.

    `value` gets what these steps bring, unless it is empty.
    """
    own = len(costs) > 1
    for i in range(len(curves)):
        j = i if own else 0
        at = start_at(curves, costs, i, j)
        add_exactly(paid[0], np.float64(costs[j, at]))
        if len(value):
            add_exactly(value[0], np.float64(curves[i, at]))
        before, place = math.inf, 0
        while True:
            level, s = next_step(curves, costs, i, j, at)
            before = min(s, before)
            place = first_taker(prices, place, before)
            if level < 0 or place == len(prices):
                break
            add_exactly(paid[place + 1], np.float64(costs[j, level]))
            add_exactly(paid[place + 1], -np.float64(costs[j, at]))
            if len(value):
                add_exactly(value[place + 1], np.float64(curves[i, level]))
                add_exactly(value[place + 1], -np.float64(curves[i, at]))
            at = level


@compiled
def count_at(
    curves: Array, costs: Array, prices: Array, drawn: Array, groups: Array, unit: float, counts: Array
) -> None:
    """Add to `counts` (m, groups, K + 1) who gets what at each falling price, beyond the price before it.

    A row counts in each of its groups (n, g): at its level, and in the last column with what it costs, in whole units.
    Where `drawn` (n, K) is given, a row whose best level is k gets level drawn[i, k].
    """
    own, K, exploring = len(costs) > 1, curves.shape[1], len(drawn) > 0
    for i in range(len(curves)):
        j = i if own else 0
        at, before, place, last = start_at(curves, costs, i, j), math.inf, 0, -1
        while True:
            level, s = next_step(curves, costs, i, j, at)
            before = min(s, before)
            given = drawn[i, at] if exploring else at
            if given != last:
                more = np.int64(np.rint(np.float64(costs[j, given]) / unit))
                if last >= 0:
                    more -= np.int64(np.rint(np.float64(costs[j, last]) / unit))
                for g in range(groups.shape[1]):
                    cell = counts[place, groups[i, g]]
                    cell[given] += 1
                    cell[K] += more
                    if last >= 0:
                        cell[last] -= 1
                last = given
            place = first_taker(prices, place, before)
            if level < 0 or place == len(prices):
                break
            at = level


@compiled
def add_ends(curves: Array, costs: Array, price: float, tie: float, paid: Array) -> None:
    """Add to `paid` (2, CHUNKS) what rows cost at a price: at the cheapest of their best levels, and at the dearest.

    Levels are worth the same up to `tie`, as in `price.kernels.decide`.
    """
    own, K = len(costs) > 1, curves.shape[1]
    for i in range(len(curves)):
        j = i if own else 0
        enough = least_worth(curves[i], costs[j], price, tie)
        low, high = math.inf, -math.inf
        for k in range(K):
            c = np.float64(costs[j, k])
            if np.float64(curves[i, k]) - price * c >= enough:
                low, high = min(low, c), max(high, c)
        add_exactly(paid[0], low)
        add_exactly(paid[1], high)


@compiled
def add_up(values: Array, total: Array) -> None:
    """Add numbers (n,) to a sum (CHUNKS,)."""
    for i in range(len(values)):
        add_exactly(total, np.float64(values[i]))


@compiled
def add_by_group(values: Array, codes: Array, totals: Array) -> None:
    """Add numbers (n,) to the sums (groups, CHUNKS) of their groups (n,)."""
    for i in range(len(values)):
        add_exactly(totals[codes[i]], np.float64(values[i]))
