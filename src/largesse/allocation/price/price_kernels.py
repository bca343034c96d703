"""Compiled loops over response curves: steps on upper hulls, best levels at a shadow price, and exact sums.

Imported inside functions only: it loads numba.

Every loop reads curves (n, K) in single or double precision as they are, and costs as rows: (1, K) when they are the
same for all customers, else (n, K). Arithmetic is in double precision; sums keep their rounding errors (two-sum).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from largesse.records import Array

compiled = njit(cache=True, nogil=True, error_model="numpy")
inlined = njit(cache=True, nogil=True, error_model="numpy", inline="always")
BLOCK = 512  # customers that are looked at abreast: their curves stay in the fastest memory


@inlined
def find_next_hull_step(curves: Array, costs: Array, i: int, j: int, at: int) -> tuple[int, float]:
    """Return the next level on a customer's upper hull, and its gain per unit of cost.

    The level is −1 on the last one.

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


@inlined
def copy_rows_by_level(
    table: Array, first: int, row_indices: Array, use_all_rows: bool, out: Array, n_rows: int
) -> None:
    """Copy some rows of a table (n, K) to an array (K, n_rows), so that loops vectorise."""
    for k in range(table.shape[1]):
        line = out[k]
        if use_all_rows:
            block = table[first : first + n_rows]
            for b in range(n_rows):
                line[b] = block[b, k]
        else:
            for b in range(n_rows):
                line[b] = table[row_indices[first + b], k]


@inlined
def _write_best_levels(f: Array, c: Array, price: float, best: Array, at: Array, m: int) -> None:
    """Write each customer's best level at a shadow price, any of the levels if several tie."""
    for b in range(m):
        best[b] = f[0, b] - price * c[0, b]
    for b in range(m):
        at[b] = 0
    for k in range(1, len(f)):
        fk, ck = f[k], c[k]
        for b in range(m):
            x = fk[b] - price * ck[b]
            better = x > best[b]
            best[b] = x if better else best[b]
            at[b] = k if better else at[b]


@inlined
def _write_extreme_levels(f: Array, c: Array, cheap: bool, at: Array, m: int) -> None:
    """Write each customer's cheapest level, or the level with the highest response.

    Ties go to the best and to the cheapest.
    """
    for b in range(m):
        here = 0
        for k in range(1, len(f)):
            more, dearer = f[k, b] - f[here, b], c[k, b] - c[here, b]
            if (
                (dearer < 0.0 or (dearer == 0.0 and more > 0.0))
                if cheap
                else (more > 0.0 or (more == 0.0 and dearer < 0.0))
            ):
                here = k
        at[b] = here


@inlined
def _add_with_carry(x: Array, total: Array, carry: Array, m: int) -> None:
    """Add numbers to running sums, and the rounding errors to carries (Knuth's two-sum)."""
    for b in range(m):
        s = total[b]
        t = s + x[b]
        d = t - s
        carry[b] += (s - (t - d)) + (x[b] - d)
        total[b] = t


@inlined
def _sum_with_carry(total: Array, carry: Array) -> tuple[float, float]:
    """Add up sums that are stored with rounding errors, and return the total with its rounding error."""
    whole, lost = 0.0, 0.0
    for b in range(len(total)):
        t = whole + total[b]
        d = t - whole
        lost += (whole - (t - d)) + (total[b] - d) + carry[b]
        whole = t
    return whole, lost


@compiled
def classify_rows(
    curves: Array, costs: Array, rows: Array, whole: bool, high: float, low: float, levels: Array, unsure: Array
) -> tuple[int, Array]:
    """Set the level of customers who get the same level at a high and at a low price, and list all others.

    `rows` are the rows to look at; all when `whole`. Writes the level at the high price into `levels`, and undecided
    rows into `unsure`. Returns how many are undecided, and sums: value and its carry, cost and its carry of the
    decided; cost of the undecided at the high and at the low price.
    """
    n, K = len(levels) if whole else len(rows), curves.shape[1]
    f, c = np.empty((K, BLOCK)), np.empty((K, BLOCK))
    at, down, best, most = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64), np.empty(BLOCK), np.empty(BLOCK)
    value, values, value_carry = np.empty(BLOCK), np.zeros(BLOCK), np.zeros(BLOCK)
    cost, paid, cost_carry = np.empty(BLOCK), np.zeros(BLOCK), np.zeros(BLOCK)
    n_undecided, cheap, dear = 0, 0.0, 0.0
    for k in range(K):
        c[k, :] = costs[0, k]
    for first in range(0, n, BLOCK):
        m = min(BLOCK, n - first)
        copy_rows_by_level(curves, first, rows, whole, f, m)
        if len(costs) > 1:
            copy_rows_by_level(costs, first, rows, whole, c, m)
        if 0.0 < high < math.inf:
            _write_best_levels(f, c, high, best, at, m)
        else:
            _write_extreme_levels(f, c, high > 0.0, at, m)
        if low < high:
            _write_best_levels(f, c, low, most, down, m)
        else:
            most[:m] = -math.inf
        for b in range(m):
            i = first + b if whole else rows[first + b]
            level = at[b]
            levels[i] = level
            x, y = f[level, b], c[level, b]
            if x - low * y < most[b]:
                unsure[n_undecided] = i
                n_undecided += 1
                cheap += y
                dear += c[down[b], b]
                x, y = 0.0, 0.0
            value[b], cost[b] = x, y
        _add_with_carry(value, values, value_carry, m)
        _add_with_carry(cost, paid, cost_carry, m)
    v, vc = _sum_with_carry(values, value_carry)
    p, pc = _sum_with_carry(paid, cost_carry)
    return n_undecided, np.array([v, vc, p, pc, cheap, dear])


@compiled
def list_hull_steps(
    curves: Array,
    costs: Array,
    rows: Array,
    levels: Array,
    low: float,
    who: Array,
    to: Array,
    slope: Array,
    cost: Array,
) -> int:
    """List the steps on customers' upper hulls with a gain of at least `low` per unit of cost.

    They start at `levels`.

    Writes for each step whose it is (the place in `rows`), the level it leads to, its slope and its cost. A row's
    slopes never rise, not even by rounding. Returns how many steps there are.
    """
    per_customer = len(costs) > 1
    m = 0
    for r in range(len(rows)):
        i = rows[r]
        j = i if per_customer else 0
        at, before = levels[i], math.inf
        while True:
            level, s = find_next_hull_step(curves, costs, i, j, at)
            if level < 0 or s < low:
                break
            before = min(s, before)
            who[m], to[m], slope[m] = r, level, before
            cost[m] = np.float64(costs[j, level]) - np.float64(costs[j, at])
            m += 1
            at = level
    return m


@compiled
def find_marginal_slope(slope: Array, cost: Array, room: float) -> float:
    """Return the gain per unit of cost of the first step that the remaining budget cannot pay.

    Steps are taken from the steepest; 0 if all fit.

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
def take_hull_steps(
    curves: Array, costs: Array, rows: Array, levels: Array, price: float, room: float
) -> tuple[float, float]:
    """Raise levels by all hull steps that gain more than the shadow price, then by tied steps within the budget.

    Ties bring exactly the price, and are taken row by row.

    Changes `levels`. Returns the room left before the ties were split, and after.
    """
    per_customer = len(costs) > 1
    for r in range(len(rows)):
        i = rows[r]
        j = i if per_customer else 0
        at, before = levels[i], math.inf
        while True:
            level, s = find_next_hull_step(curves, costs, i, j, at)
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
            j = i if per_customer else 0
            at = levels[i]
            while True:
                level, s = find_next_hull_step(curves, costs, i, j, at)
                extra = np.float64(costs[j, level]) - np.float64(costs[j, at]) if level >= 0 else 0.0
                if level < 0 or s < price or extra > left:
                    break
                left -= extra
                at = level
            levels[i] = at
    return room, left


@compiled
def sum_value_and_cost(curves: Array, costs: Array, rows: Array, levels: Array) -> Array:
    """Sum the responses and the costs of customers at their levels, with rounding errors."""
    per_customer = len(costs) > 1
    value = value_carry = cost = cost_carry = 0.0
    for r in range(len(rows)):
        i = rows[r]
        x = np.float64(curves[i, levels[i]])
        t = value + x
        b = t - value
        value_carry += (value - (t - b)) + (x - b)
        value = t
        x = np.float64(costs[i if per_customer else 0, levels[i]])
        t = cost + x
        b = t - cost
        cost_carry += (cost - (t - b)) + (x - b)
        cost = t
    return np.array([value, value_carry, cost, cost_carry])


@compiled
def find_best_change(curves: Array, costs: Array, rows: Array, levels: Array, room: float) -> tuple[int, int, float]:
    """Find the change of one customer's level that adds most value for an added cost of at most `room`.

    Returns row, level and gain.

    With a negative room: the change that saves as much and loses least. −1 without one.
    """
    per_customer = len(costs) > 1
    row, to, most = -1, -1, 0.0 if room >= 0.0 else -math.inf
    for r in range(len(rows)):
        i = rows[r]
        j = i if per_customer else 0
        f, c = np.float64(curves[i, levels[i]]), np.float64(costs[j, levels[i]])
        for k in range(curves.shape[1]):
            gain = np.float64(curves[i, k]) - f
            if gain > most and np.float64(costs[j, k]) - c <= room:
                row, to, most = i, k, gain
    return row, to, most


@compiled
def find_lowest_tied_worth(curve: Array, costs: Array, price: float, tie: float) -> float:
    """Return the lowest net value, at a shadow price, that counts as a tie with a customer's best level.

    Values tie up to `tie` (relative).
    """
    best, size, dear = -math.inf, 0.0, 0.0
    for k in range(len(curve)):
        f, c = np.float64(curve[k]), np.float64(costs[k])
        best, size, dear = max(best, f - price * c), max(size, abs(f)), max(dear, c)
    return best - tie * (size + price * dear)


@compiled
def write_levels_at_price(curves: Array, costs: Array, price: float, tie: float, dearest: bool, levels: Array) -> None:
    """Write each customer's best level at a shadow price; of tied levels, the cheapest or the dearest.

    Levels tie up to `tie` (relative).
    """
    per_customer = len(costs) > 1
    K = curves.shape[1]
    for i in range(len(curves)):
        j = i if per_customer else 0
        enough = find_lowest_tied_worth(curves[i], costs[j], price, tie)
        level, cost = 0, math.inf
        for k in range(K):
            c = -np.float64(costs[j, k]) if dearest else np.float64(costs[j, k])
            if c < cost and np.float64(curves[i, k]) - price * np.float64(costs[j, k]) >= enough:
                level, cost = k, c
        levels[i] = level


@compiled
def write_tie_probabilities(curves: Array, costs: Array, price: float, tie: float, share: float, out: Array) -> None:
    """Write level probabilities at a shadow price, split between the cheapest and the dearest best level.

    The dearest gets `share`, the cheapest the rest.

    `out` (n, K) holds zeros.
    """
    per_customer = len(costs) > 1
    for i in range(len(curves)):
        j = i if per_customer else 0
        enough = find_lowest_tied_worth(curves[i], costs[j], price, tie)
        low, high, least, most = 0, 0, math.inf, -math.inf
        for k in range(curves.shape[1]):
            c = np.float64(costs[j, k])
            if np.float64(curves[i, k]) - price * c >= enough:
                if c < least:
                    low, least = k, c
                if c > most:
                    high, most = k, c
        out[i, low] = 1.0 - share
        out[i, high] += share
