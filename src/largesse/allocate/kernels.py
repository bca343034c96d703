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
BLOCK = 512  # customers that are looked at abreast: their curves stay in the fastest memory


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


@inlined
def _fill(table: Array, first: int, rows: Array, whole: bool, out: Array, m: int) -> None:
    """Write m rows of a table into `out` (K, m), level by level, so that the loops over them run several abreast."""
    for k in range(table.shape[1]):
        line = out[k]
        if whole:
            block = table[first : first + m]
            for b in range(m):
                line[b] = block[b, k]
        else:
            for b in range(m):
                line[b] = table[rows[first + b], k]


@inlined
def _best_levels(f: Array, c: Array, price: float, best: Array, at: Array, m: int) -> None:
    """Write each customer's best level at a price, any one of them if they tie."""
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
def _end_levels(f: Array, c: Array, cheap: bool, at: Array, m: int) -> None:
    """Write each customer's cheapest level, the best of them if they tie; or the best, the cheapest if they tie."""
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
def _add(x: Array, total: Array, carry: Array, m: int) -> None:
    """Add to running sums, and what rounding lost to their carries (Knuth's two-sum)."""
    for b in range(m):
        s = total[b]
        t = s + x[b]
        d = t - s
        carry[b] += (s - (t - d)) + (x[b] - d)
        total[b] = t


@inlined
def _sum(total: Array, carry: Array) -> tuple[float, float]:
    """Return the sum of running sums, and its carry."""
    whole, lost = 0.0, 0.0
    for b in range(len(total)):
        t = whole + total[b]
        d = t - whole
        lost += (whole - (t - d)) + (total[b] - d) + carry[b]
        whole = t
    return whole, lost


@compiled
def classify(
    curves: Array, costs: Array, rows: Array, whole: bool, high: float, low: float, levels: Array, unsure: Array
) -> tuple[int, Array]:
    """Decide the rows whose level is the same at a high and a low price; list the others.

    `rows` are the rows to look at; all when `whole`. Writes the level at the high price into `levels`, and undecided
    rows into `unsure`. Returns how many are undecided, and sums: value and its carry, cost and its carry of the
    decided; cost of the undecided at the high and at the low price.
    """
    n, K = len(levels) if whole else len(rows), curves.shape[1]
    f, c = np.empty((K, BLOCK)), np.empty((K, BLOCK))
    at, down, best, most = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64), np.empty(BLOCK), np.empty(BLOCK)
    value, values, value_carry = np.empty(BLOCK), np.zeros(BLOCK), np.zeros(BLOCK)
    cost, paid, cost_carry = np.empty(BLOCK), np.zeros(BLOCK), np.zeros(BLOCK)
    found, cheap, dear = 0, 0.0, 0.0
    for k in range(K):
        c[k, :] = costs[0, k]
    for first in range(0, n, BLOCK):
        m = min(BLOCK, n - first)
        _fill(curves, first, rows, whole, f, m)
        if len(costs) > 1:
            _fill(costs, first, rows, whole, c, m)
        if 0.0 < high < math.inf:
            _best_levels(f, c, high, best, at, m)
        else:
            _end_levels(f, c, high > 0.0, at, m)
        if low < high:
            _best_levels(f, c, low, most, down, m)
        else:
            most[:m] = -math.inf
        for b in range(m):
            i = first + b if whole else rows[first + b]
            level = at[b]
            levels[i] = level
            x, y = f[level, b], c[level, b]
            if x - low * y < most[b]:
                unsure[found] = i
                found += 1
                cheap += y
                dear += c[down[b], b]
                x, y = 0.0, 0.0
            value[b], cost[b] = x, y
        _add(value, values, value_carry, m)
        _add(cost, paid, cost_carry, m)
    v, vc = _sum(values, value_carry)
    p, pc = _sum(paid, cost_carry)
    return found, np.array([v, vc, p, pc, cheap, dear])


@compiled
def walk(
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
def decide(curves: Array, costs: Array, price: float, tie: float, dearest: bool, levels: Array) -> None:
    """Write each row's best level at a price; of levels worth the same up to `tie` (relative), the cheapest or dearest."""
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
            c = -np.float64(costs[j, k]) if dearest else np.float64(costs[j, k])
            if c < cost and np.float64(curves[i, k]) - price * np.float64(costs[j, k]) >= enough:
                level, cost = k, c
        levels[i] = level


@compiled
def near(curves: Array, costs: Array, levels: Array, price: float, gap: float, rows: Array) -> int:
    """List the rows with a level of another cost that is worth less than `gap` less than their own, at a price."""
    own = len(costs) > 1
    m = 0
    for i in range(len(levels)):
        j = i if own else 0
        cost = np.float64(costs[j, levels[i]])
        enough = np.float64(curves[i, levels[i]]) - price * cost - gap
        close = 0
        for k in range(curves.shape[1]):
            c = np.float64(costs[j, k])
            close += (np.float64(curves[i, k]) - price * c > enough) & (c != cost)
        rows[m] = i
        m += close > 0
    return m


@compiled
def _extend_by_one(
    extra: Array, loss: Array, step: float, drop: float, price: float, room: float,
    up: float, down: float, further: float, gap: float, whole: float, same: float
) -> tuple[Array, Array, Array, Array, float]:  # fmt: skip
    """Do what `extend` does, for a customer with one other level: merge the plans that stay with the few that can change."""
    S = len(extra)
    who = np.empty(S, np.int32)
    able, least_drop = 0, math.inf
    for s in range(S):
        lost = loss[s] + drop
        who[able] = s
        able += lost < gap
        least_drop = min(least_drop, lost if lost >= gap else math.inf)
    missed = max(whole - least_drop, 0.0)
    x, y = np.empty(S + able), np.empty(S + able)
    parent, option = np.empty(S + able, np.int32), np.empty(S + able, np.int16)
    slope = min(price, up)
    m, top, last = 0, -math.inf, -math.inf
    stay, go = 0, 0
    coming, going = (extra[who[0]] + step, loss[who[0]] + drop) if able else (math.inf, 0.0)
    while stay < S or go < able:
        if stay < S and (extra[stay] < coming or (extra[stay] == coming and loss[stay] <= going)):
            cost, lost, at, pick = extra[stay], loss[stay], stay, 0
            stay += 1
        else:
            cost, lost, at, pick = coming, going, int(who[go]), 1
            go += 1
            coming, going = (extra[who[go]] + step, loss[who[go]] + drop) if go < able else (math.inf, 0.0)
        worth = price * cost - lost
        if worth <= top:
            continue
        top = worth
        least = lost + (slope * (room - cost) if cost <= room else down * (cost - room))
        if pick == 0:
            least = max(least, lost + further)
        if least >= gap:
            missed = max(missed, whole - least)
            continue
        m -= cost - last <= same
        x[m], y[m], parent[m], option[m] = cost, lost, at, pick
        m += 1
        last = cost
    return x[:m], y[:m], parent[:m].copy(), option[:m].copy(), missed


@compiled
def extend(
    extra: Array, loss: Array, more: Array, worse: Array, price: float, room: float,
    up: float, down: float, further: float, gap: float, whole: float, same: float
) -> tuple[Array, Array, Array, Array, float]:  # fmt: skip
    """Extend partial plans, cheapest first, by each level of one more customer; keep those that none beats.

    Levels cost `more` and lose `worse`; the first changes nothing. A partial plan is dropped when another one costs
    no more and brings as much, or when its loss, and what it takes at the least to spend the room (`up` per unit, or
    leaving it) or to get back into it (`down` per unit), is not below the gap; a plan that is not changed was looked at
    before, and must bear the least `further` loss of the customers to come. Returns extra costs, losses, the
    plan each extends, the level; and how much of the `whole` gap could have been closed by those within rounding.
    Costs that differ by less than `same` count as equal: the same sum in another order is rounded differently.
    """
    S, L = len(extra), len(more)
    if L == 2:  # nearly always: one other level
        return _extend_by_one(extra, loss, more[1], worse[1], price, room, up, down, further, gap, whole, same)
    x, y = np.empty(S * L), np.empty(S * L)
    parent, option = np.empty(S * L, np.int32), np.empty(S * L, np.int16)
    next_up = np.zeros(L, np.int64)
    coming, going = more.copy(), worse.copy()  # what each level's next plan costs and loses
    coming += extra[0]
    going += loss[0]
    m, top, missed = 0, -math.inf, 0.0
    for _ in range(S * L):
        pick, cost, lost = 0, coming[0], going[0]
        for o in range(1, L):
            if coming[o] < cost or (coming[o] == cost and going[o] < lost):
                pick, cost, lost = o, coming[o], going[o]
        at = next_up[pick]
        next_up[pick] += 1
        if at + 1 < S:
            coming[pick], going[pick] = extra[at + 1] + more[pick], loss[at + 1] + worse[pick]
        else:
            coming[pick] = math.inf
        worth = price * cost - lost
        if worth <= top:
            continue
        top = worth
        least = lost + (min(price, up) * (room - cost) if cost <= room else down * (cost - room))
        if pick == 0:
            least = max(least, lost + further)
        if least >= gap:
            missed = max(missed, whole - least)
            continue
        if m > 0 and cost - x[m - 1] <= same:
            m -= 1
        x[m], y[m], parent[m], option[m] = cost, lost, at, pick
        m += 1
    return x[:m].copy(), y[:m].copy(), parent[:m].copy(), option[:m].copy(), missed


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
        _fill(curves, first, levels, True, f, m)
        if len(costs) > 1:
            _fill(costs, first, levels, True, c, m)
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
