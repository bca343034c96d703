"""Compiled loops that choose levels at dual prices, and that repair plans that violate limits.

A cell is a group of customers and a level. `allowed` is (n, K), or (0, K) when everybody may get everything. Limits come
as arrays over rows: whether they are about money, their signs (1 at most, −1 at least), the levels they cover (R, K),
and each group's rows as `first` (S + 1,) and `which`. `slack` (R,) is the rest of each limit. Imported only when needed.
"""

from __future__ import annotations

import math

import numpy as np

from largesse.allocation.price.price_kernels import BLOCK, compiled, copy_rows_by_level, inlined
from largesse.records import Array


@compiled
def choose_levels(
    curves: Array, costs: Array, allowed: Array, group: Array, price: Array, fee: Array, levels: Array
) -> tuple[Array, Array, Array]:
    """Write each customer's best level at dual prices, and return sums by group and level.

    Returns the worth of each group (S,), and the spend and number of customers of each cell (S, K).
    """
    n, K, S = len(levels), curves.shape[1], len(price)
    f, c = np.empty((K, BLOCK)), np.empty((K, BLOCK))
    at, best, due, extra = np.empty(BLOCK, np.int64), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    worth, spend, count = np.zeros(S), np.zeros(S * K), np.zeros(S * K, np.int64)
    level_prices, group_fees = _find_price_variation(price, fee)
    for k in range(K):
        c[k, :] = costs[0, k]
    for first in range(0, n, BLOCK):
        m = min(BLOCK, n - first)
        copy_rows_by_level(curves, first, levels, True, f, m)
        if len(costs) > 1:
            copy_rows_by_level(costs, first, levels, True, c, m)
        if len(allowed):
            for k in range(K):
                for b in range(m):
                    f[k, b] = f[k, b] if allowed[first + b, k] else -math.inf
        for b in range(m):
            due[b] = price[group[first + b], 0]
        for b in range(m):
            best[b] = -math.inf
        for b in range(m):
            at[b] = 0
        for k in range(K):
            fk, ck, t = f[k], c[k], fee[0, k]
            if level_prices and k > 0:
                for b in range(m):
                    due[b] = price[group[first + b], k]
            if group_fees:
                for b in range(m):
                    extra[b] = fee[group[first + b], k]
                for b in range(m):
                    x = fk[b] - due[b] * ck[b] - extra[b]
                    better = x > best[b]
                    best[b] = x if better else best[b]
                    at[b] = k if better else at[b]
            else:
                for b in range(m):
                    x = fk[b] - due[b] * ck[b] - t
                    better = x > best[b]
                    best[b] = x if better else best[b]
                    at[b] = k if better else at[b]
        for b in range(m):
            i = first + b
            s = group[i]
            levels[i] = at[b]
            worth[s] += best[b]
            spend[s * K + at[b]] += c[at[b], b]
            count[s * K + at[b]] += 1
    return worth, spend.reshape(S, K), count.reshape(S, K)


@inlined
def _find_price_variation(price: Array, fee: Array) -> tuple[bool, bool]:
    """Test if dual prices of cost differ between levels, and if dual prices per customer differ between groups."""
    by_level, by_group = False, False
    for s in range(len(price)):
        for k in range(price.shape[1]):
            by_level |= price[s, k] != price[s, 0]
            by_group |= fee[s, k] != fee[0, k]
    return by_level, by_group


@inlined
def _measure_change(inside: Array, r: int, money: bool, costs: Array, j: int, now: int, to: int) -> float:
    """Return the change of a limit's cost or customer count if a customer's level changes from `now` to `to`."""
    if money:
        more = np.float64(costs[j, to]) if inside[r, to] else 0.0
        less = np.float64(costs[j, now]) if inside[r, now] else 0.0
        return more - less
    return np.float64(inside[r, to]) - np.float64(inside[r, now])


@compiled
def list_level_changes(
    curves: Array, costs: Array, allowed: Array, group: Array, price: Array, fee: Array, levels: Array,
    cells: Array, money: bool, sign: float, floor: float, is_open: Array, row: Array, to: Array, key: Array
) -> int:  # fmt: skip
    """List each customer's cheapest level change that raises or lowers a limit's cost or customer count.

    The sum over the `cells` (S, K) moves up (sign 1) or down (−1).

    The sum is of costs (`money`) or customers. The sort key is the loss of the change at the dual prices, per unit of
    the sum. Changes lead only to open cells (S, K), and spend money only where each unit brings more than `floor`.
    """
    per_customer = len(costs) > 1
    m = 0
    for i in range(len(levels)):
        j, s, now = i if per_customer else 0, group[i], levels[i]
        if (sign < 0.0 and not cells[s, now]) or (sign > 0.0 and not money and cells[s, now]):
            continue
        cost, value = np.float64(costs[j, now]), np.float64(curves[i, now])
        here = value - price[s, now] * cost - fee[s, now]
        best, level = math.inf, -1
        for k in range(curves.shape[1]):
            if k == now or not is_open[s, k] or (len(allowed) and not allowed[i, k]):
                continue
            moved = _measure_change(cells, s, money, costs, j, now, k)
            if moved * sign <= 0.0:
                continue
            if money and sign > 0.0 and np.float64(curves[i, k]) - value <= floor * moved:
                continue
            lost = here - (np.float64(curves[i, k]) - price[s, k] * np.float64(costs[j, k]) - fee[s, k])
            lost = lost / abs(moved)
            if lost < best:
                best, level = lost, k
        if level >= 0:
            row[m], to[m], key[m] = i, level, best
            m += 1
    return m


@compiled
def apply_level_changes(
    costs: Array, group: Array, row: Array, to: Array, levels: Array, slack: Array, first: Array, which: Array,
    money: Array, signs: Array, inside: Array, target: Array, careful: bool
) -> int:  # fmt: skip
    """Apply listed level changes that reduce violations and break no limit, and count the changes.

    A change is needed while it helps a broken `target` row (R,); without targets, always. Limits on customers are never
    broken, those on money only if not `careful`. Keeps `slack` up to date.
    """
    per_customer = len(costs) > 1
    always, taken = not target.any(), 0
    for r in range(len(row)):
        i, k = row[r], to[r]
        j, s, now = i if per_customer else 0, group[i], levels[i]
        needed, fits = always, True
        for at in range(first[s], first[s + 1]):
            q = which[at]
            uses = signs[q] * _measure_change(inside, q, money[q], costs, j, now, k)
            if target[q] and slack[q] < 0.0 and uses < 0.0:
                needed = True
            if uses > 0.0 and uses > slack[q] and (careful or not money[q]):
                fits = False
        if not (needed and fits):
            continue
        levels[i] = k
        for at in range(first[s], first[s + 1]):
            q = which[at]
            slack[q] -= signs[q] * _measure_change(inside, q, money[q], costs, j, now, k)
        taken += 1
    return taken


@compiled
def sum_cells(costs: Array, group: Array, levels: Array, groups: int) -> tuple[Array, Array, Array]:
    """Sum the costs and count the customers of a plan by group and level."""
    per_customer = len(costs) > 1
    K = costs.shape[1]
    total, carry, count = np.zeros((groups, K)), np.zeros((groups, K)), np.zeros((groups, K), np.int64)
    for i in range(len(levels)):
        s, k = group[i], levels[i]
        x = np.float64(costs[i if per_customer else 0, k])
        t = total[s, k] + x
        d = t - total[s, k]
        carry[s, k] += (total[s, k] - (t - d)) + (x - d)
        total[s, k] = t
        count[s, k] += 1
    return total, carry, count


@inlined
def _find_broken_cost_limit(slack: Array, first: Array, which: Array, money: Array, s: int) -> int:
    """Return the first violated limit on cost that applies to a group, or −1."""
    for at in range(first[s], first[s + 1]):
        if money[which[at]] and slack[which[at]] < 0.0:
            return int(which[at])
    return -1


@inlined
def _limit_applies(first: Array, which: Array, s: int, q: int) -> bool:
    """Test if a limit applies to a group of customers."""
    applies = False
    for at in range(first[s], first[s + 1]):
        applies |= which[at] == q
    return applies


@compiled
def _pair_keeps_limits(
    moves: tuple[tuple[int, int, int], tuple[int, int, int]], costs: Array, group: Array, slack: Array,
    first: Array, which: Array, money: Array, signs: Array, inside: Array, but: int
) -> bool:  # fmt: skip
    """Test if two changes of levels together violate no limit, except the limit `but`.

    A move is (row, from, to).
    """
    per_customer = len(costs) > 1
    (i, now, k), (j, there, l) = moves  # noqa: E741
    s, t = group[i], group[j]
    ci, cj = (i, j) if per_customer else (0, 0)
    for turn in range(2):
        g, other = (s, t) if turn == 0 else (t, s)
        for at in range(first[g], first[g + 1]):
            q = which[at]
            shared = _limit_applies(first, which, other, q)
            if q == but or (turn == 1 and shared):
                continue
            uses = 0.0
            if turn == 0 or shared:
                uses += _measure_change(inside, q, money[q], costs, ci, now, k)
            if turn == 1 or shared:
                uses += _measure_change(inside, q, money[q], costs, cj, there, l)
            uses *= signs[q]
            if uses > 0.0 and uses > max(slack[q], 0.0):
                return False
    return True


@compiled
def swap_levels(
    costs: Array, allowed: Array, group: Array, rows: Array, levels: Array, slack: Array, first: Array, which: Array,
    money: Array, signs: Array, inside: Array
) -> bool:  # fmt: skip
    """Change the levels of the two customers who together most reduce a violated limit on cost.

    One takes a level that the other leaves for a third.

    Takes the pair that saves most of the limit, and keeps `slack` up to date; false without such a pair.
    """
    per_customer = len(costs) > 1
    K = costs.shape[1]
    best = np.float64(0.0)
    bi, bk, bj, bl = -1, -1, -1, -1
    for i in rows:
        s, now = group[i], levels[i]
        target = _find_broken_cost_limit(slack, first, which, money, s)
        if target < 0:
            continue
        ci = i if per_customer else 0
        for k in range(K):
            saved = signs[target] * _measure_change(inside, target, True, costs, ci, now, k)
            if k == now or saved >= 0.0 or (len(allowed) and not allowed[i, k]):
                continue
            for j in rows:
                if levels[j] != k or j == i:
                    continue
                cj, both = j if per_customer else 0, _limit_applies(first, which, group[j], target)
                for l in range(K):  # noqa: E741
                    if l == k or (len(allowed) and not allowed[j, l]):
                        continue
                    due = saved + (
                        signs[target] * _measure_change(inside, target, True, costs, cj, k, l) if both else 0.0
                    )
                    if due < best and _pair_keeps_limits(
                        ((i, now, k), (j, k, l)), costs, group, slack, first, which, money, signs, inside, target
                    ):
                        best, bi, bk, bj, bl = due, i, k, j, l
    if bi < 0:
        return False
    for i, k in ((bi, bk), (bj, bl)):
        s, now = group[i], levels[i]
        for at in range(first[s], first[s + 1]):
            q = which[at]
            slack[q] -= signs[q] * _measure_change(inside, q, money[q], costs, i if per_customer else 0, now, k)
        levels[i] = k
    return True
