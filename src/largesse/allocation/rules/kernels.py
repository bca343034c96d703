"""The compiled loops of plans under rules: what customers choose at prices and tolls, and the changes that mend a plan.

Imported only when needed.
"""

from __future__ import annotations

import math

import numpy as np

from largesse.allocation.price.kernels import BLOCK, compiled, fill_block
from largesse.records import Array


@compiled
def respond(
    curves: Array, costs: Array, eligible: Array, segment: Array, price: Array, toll: Array, levels: Array
) -> tuple[Array, Array, Array]:
    """Write the best level of every row when each segment has a price and each level a toll; only eligible ones count.

    `eligible` is (n, K), or (0, K) when everybody may have everything. Returns per segment: the worth (S,), the
    spend (S,), and how many get each level (S, K).
    """
    n, K, S = len(levels), curves.shape[1], len(price)
    f, c = np.empty((K, BLOCK)), np.empty((K, BLOCK))
    at, best, due = np.empty(BLOCK, np.int64), np.empty(BLOCK), np.empty(BLOCK)
    worth, spend, count = np.zeros(S), np.zeros(S), np.zeros((S, K), np.int64)
    for k in range(K):
        c[k, :] = costs[0, k]
    for first in range(0, n, BLOCK):
        m = min(BLOCK, n - first)
        fill_block(curves, first, levels, True, f, m)
        if len(costs) > 1:
            fill_block(costs, first, levels, True, c, m)
        if len(eligible):
            for k in range(K):
                for b in range(m):
                    f[k, b] = f[k, b] if eligible[first + b, k] else -math.inf
        for b in range(m):
            due[b] = price[segment[first + b]]
        for b in range(m):
            best[b] = -math.inf
        for b in range(m):
            at[b] = 0
        for k in range(K):
            fk, ck, t = f[k], c[k], toll[k]
            for b in range(m):
                x = fk[b] - due[b] * ck[b] - t
                better = x > best[b]
                best[b] = x if better else best[b]
                at[b] = k if better else at[b]
        for b in range(m):
            i = first + b
            s = segment[i]
            levels[i] = at[b]
            worth[s] += best[b]
            spend[s] += c[at[b], b]
            count[s, at[b]] += 1
    return worth, spend, count


SAVE, SPEND, LEAVE, ENTER = range(4)


@compiled
def offers(
    curves: Array, costs: Array, eligible: Array, segment: Array, price: Array, toll: Array, levels: Array,
    way: int, wanted: Array, open_level: Array, which: int, floor: float, row: Array, to: Array, key: Array
) -> int:  # fmt: skip
    """List the best change of each row in one direction, and what it loses at the prices and tolls, as a key to sort by.

    SAVE and SPEND look at rows of wanted segments for a cheaper or dearer level (loss per unit of cost); LEAVE moves rows
    off level `which`, ENTER onto it. Changes lead only to open levels, and for SPEND only where each unit brings more than `floor`.
    """
    own = len(costs) > 1
    m = 0
    for i in range(len(levels)):
        j, s, now = i if own else 0, segment[i], levels[i]
        if (way == LEAVE and now != which) or (way == ENTER and now == which):
            continue
        if way <= SPEND and not wanted[s]:
            continue
        cost, value = np.float64(costs[j, now]), np.float64(curves[i, now])
        here = value - price[s] * cost - toll[now]
        best, level = math.inf, -1
        for k in range(curves.shape[1]):
            if k == now or not open_level[k] or (len(eligible) and not eligible[i, k]) or (way == ENTER and k != which):
                continue
            extra = np.float64(costs[j, k]) - cost
            lost = here - (np.float64(curves[i, k]) - price[s] * np.float64(costs[j, k]) - toll[k])
            if way <= SPEND:
                if (
                    (extra >= 0.0)
                    if way == SAVE
                    else (extra <= 0.0 or np.float64(curves[i, k]) - value <= floor * extra)
                ):
                    continue
                lost = lost / abs(extra)
            if lost < best:
                best, level = lost, k
        if level >= 0:
            row[m], to[m], key[m] = i, level, best
            m += 1
    return m


@compiled
def accept(
    costs: Array, segment: Array, row: Array, to: Array, levels: Array,
    room: Array, count: Array, least: Array, most: Array, way: int, which: int
) -> int:  # fmt: skip
    """Take changes in their order as far as they are needed and break no further rule; return how many were taken.

    `room` (S + 1,) is what is left of each segment's budget and, last, of the whole; `count` (K,) how many customers have
    each level; both are kept up to date. SAVE takes changes where a budget is overdrawn, SPEND what fits; LEAVE and
    ENTER go on until the level keeps its rule.
    """
    own = len(costs) > 1
    S, taken = len(room) - 1, 0
    for r in range(len(row)):
        i, k = row[r], to[r]
        s, now = segment[i], levels[i]
        if way == LEAVE and count[which] <= most[which]:
            break
        if way == ENTER and count[which] >= least[which]:
            break
        extra = np.float64(costs[i if own else 0, k]) - np.float64(costs[i if own else 0, now])
        if way == SAVE and room[s] >= 0.0 and room[S] >= 0.0:
            continue
        if way == SPEND and (extra > room[s] or extra > room[S]):
            continue
        if count[k] + 1 > most[k] or (count[now] - 1 < least[now] and way != LEAVE):
            continue
        levels[i] = k
        count[k] += 1
        count[now] -= 1
        room[s] -= extra
        room[S] -= extra
        taken += 1
    return taken


@compiled
def spent(costs: Array, segment: Array, levels: Array, segments: int) -> tuple[Array, Array]:
    """Return each segment's cost (S,), and what rounding lost of it (S,)."""
    own = len(costs) > 1
    total, carry = np.zeros(segments), np.zeros(segments)
    for i in range(len(levels)):
        x, s = np.float64(costs[i if own else 0, levels[i]]), segment[i]
        t = total[s] + x
        d = t - total[s]
        carry[s] += (total[s] - (t - d)) + (x - d)
        total[s] = t
    return total, carry


@compiled
def swap(
    costs: Array, eligible: Array, segment: Array, rows: Array, levels: Array,
    room: Array, count: Array, least: Array, most: Array
) -> bool:  # fmt: skip
    """Let one row of an overdrawn segment take a cheaper level that is full, and a row that has it leave for another.

    Takes the pair that saves most where saving is due, and keeps `room` and `count` up to date; false when there is none.
    """
    own = len(costs) > 1
    K, S = costs.shape[1], len(room) - 1
    best = np.float64(0.0)
    bi, bk, bj, bl = -1, -1, -1, -1
    for i in rows:
        s, now = segment[i], levels[i]
        if room[s] >= 0.0 and room[S] >= 0.0:
            continue
        ci = costs[i if own else 0]
        for k in range(K):
            first = np.float64(ci[k]) - np.float64(ci[now])
            if k == now or first >= 0.0 or (len(eligible) and not eligible[i, k]):
                continue
            for j in rows:
                if levels[j] != k or j == i:
                    continue
                cj, t = costs[j if own else 0], segment[j]
                for l in range(K):  # noqa: E741
                    if l == k or (len(eligible) and not eligible[j, l]):
                        continue
                    if l != now and (count[l] + 1 > most[l] or count[now] - 1 < least[now]):
                        continue
                    second = np.float64(cj[l]) - np.float64(cj[k])
                    if t != s and second > max(room[t], 0.0) and second > 0.0:
                        continue
                    both = first + second
                    due = both if t == s else first
                    if room[s] >= 0.0 or room[S] < 0.0:  # the whole budget is overdrawn: only what both save counts
                        due = both
                    elif both > room[S]:
                        continue
                    if due < best:
                        best, bi, bk, bj, bl = due, i, k, j, l
    if bi < 0:
        return False
    for i, k in ((bi, bk), (bj, bl)):
        extra = np.float64(costs[i if own else 0, k]) - np.float64(costs[i if own else 0, levels[i]])
        room[segment[i]] -= extra
        room[S] -= extra
        count[levels[i]] -= 1
        count[k] += 1
        levels[i] = k
    return True
