"""The compiled loops of exact plans: who is near the price, and lists of partial plans. Imported only when needed."""

from __future__ import annotations

import math

import numpy as np

from largesse.allocation.price.kernels import compiled
from largesse.records import Array

SLIGHT = 1e-15  # relative; what a difference can be off by


@compiled
def near(
    curves: Array, costs: Array, levels: Array, among: Array, whole: bool, price: float, gap: float, rows: Array
) -> int:
    """List the rows, all or `among` some, with a level of another cost that loses less than `gap` on theirs at a price.

    Differences are compared, as they are rounded least; what rounding leaves open is listed, and so is a better level.
    """
    own = len(costs) > 1
    m, most = 0, gap * (1.0 + SLIGHT)
    for r in range(len(levels) if whole else len(among)):
        i = r if whole else among[r]
        j = i if own else 0
        value, cost = np.float64(curves[i, levels[i]]), np.float64(costs[j, levels[i]])
        close = 0
        for k in range(curves.shape[1]):
            c = np.float64(costs[j, k])
            gain, extra = np.float64(curves[i, k]) - value, price * (c - cost)
            close += (extra - gain < most + SLIGHT * (abs(extra) + abs(gain))) & ((c != cost) | (gain > 0.0))
        rows[m] = i
        m += close > 0
    return m


@compiled
def settle_ties(curves: Array, costs: Array, levels: Array, rows: Array, price: float, to: Array) -> None:
    """Write the best levels of some rows at a price, where the difference between levels shows what their worths hid."""
    own = len(costs) > 1
    for r in range(len(rows)):
        i = rows[r]
        j, here = i if own else 0, levels[i]
        for k in range(curves.shape[1]):
            gain = np.float64(curves[i, k]) - np.float64(curves[i, here])
            extra = np.float64(costs[j, k]) - np.float64(costs[j, here])
            more = gain - price * extra
            if more > SLIGHT * (abs(gain) + price * abs(extra)) or (gain >= 0.0 and extra < 0.0):
                here = k
        to[r] = here


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
