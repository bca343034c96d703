"""The compiled steps of a simulated stream: customers and redemptions as they come. It brings numba with it."""

from __future__ import annotations

import math

from largesse.records import Array
from largesse.serve.pacing.kernels import (
    DAYS,
    FACTOR,
    LAST,
    LASTS,
    LATE_FACE,
    OPEN_EXPECTED,
    PARTS,
    PATH,
    PROMISED,
    SETTLED_EXPECTED,
    SETTLED_PAID,
    SETTLED_WAIT,
    SPENT,
    STANDS,
    TOTAL,
    compiled,
    decide_one,
    find_parts,
    foresee,
    price_levels,
    ratio,
    tick,
)

DAILY = 2000  # customers, the last ones, that a plan of the day is made from


@compiled
def settle(head: int, until: int, t: float, s: tuple[Array, ...], plan: Array, money: Array, levels: Array) -> int:
    """Release promises whose time is over at t, the oldest first; return the next one to look at."""
    times, face, expected, redeems, chance, delay, _, refused = s
    while head < until and times[head] + plan[STANDS] <= t:
        level = levels[head]
        value = face[head, level]
        if value > 0:
            paid = value if chance[head] < redeems[head, level] and not refused[head] else 0
            if not plan[LASTS]:  # what is redeemed changes nothing before: its face value is reserved
                money[PROMISED] -= value
                money[SPENT] += paid
            elif not paid:
                money[PROMISED] -= value
            money[SETTLED_PAID] += paid
            money[SETTLED_WAIT] += paid // 1000 * int(1000 * delay[head] / plan[STANDS])
            if plan[LASTS] or times[head] + plan[STANDS] <= plan[DAYS]:
                money[OPEN_EXPECTED] -= expected[head, level]
                money[SETTLED_EXPECTED] += expected[head, level]
            else:
                money[LATE_FACE] -= value
        head += 1
    return head


@compiled
def redeem(head: int, until: int, t: float, s: tuple[Array, ...], money: Array, levels: Array) -> int:
    """Pay redemptions until t that fit into the budget, and refuse the others; return the next one to look at.

    Customers from `until` on have no level yet, even if they redeem the moment they get it.
    """
    times, face, _, redeems, chance, delay, order, refused = s
    while head < len(order) and order[head] < until and times[order[head]] + delay[order[head]] <= t:
        i = order[head]
        value = face[i, levels[i]]
        if value > 0 and chance[i] < redeems[i, levels[i]]:
            if money[SPENT] + value > money[TOTAL]:
                refused[i] = True
            else:
                money[SPENT] += value
                money[PROMISED] -= value
        head += 1
    return head


@compiled
def cost_at(
    factor: float, paid: float, f: Array, at_once: Array, face: Array, expected: Array, plan: Array, state: Array
) -> float:
    """Return what customers cost on average, at the plan's prices, if they are decided at a factor of these."""
    parts, total = find_parts(plan, state[LAST]), 0.0
    for i in range(len(f)):
        cost = price_levels(at_once[i], face[i], expected[i], parts, paid, plan)
        best, spent = -math.inf, 0.0
        for j in range(f.shape[1]):
            worth = f[i, j] - factor * cost[j]
            if worth > best:
                best, spent = worth, cost[j]
        total += spent
    return total / max(len(f), 1)


@compiled
def plan_day(f: Array, at_once: Array, face: Array, expected: Array, plan: Array, state: Array, money: Array) -> None:
    """Set the price at which customers like these cost what each remaining one may cost."""
    J, part = int(plan[PARTS]), find_parts(plan, state[LAST])[0]
    paid = ratio(plan, state, money)
    room, _ = foresee(paid, plan, state, money)
    target = room * plan[PATH + 3 * J + 1 + part]
    low, high = 0.0, 1.0
    for _ in range(40):
        if cost_at(high, paid, f, at_once, face, expected, plan, state) <= target:
            break
        high *= 2.0
    for _ in range(25):
        middle = (low + high) / 2
        if cost_at(middle, paid, f, at_once, face, expected, plan, state) <= target:
            high = middle
        else:
            low = middle
    state[FACTOR] = high


@compiled
def run_stream(
    times: Array, customers: tuple[Array, ...], redemptions: tuple[Array, ...], plan: Array, state: Array, money: Array,
    pool: tuple[Array, ...], daily: bool, draws: Array, out: tuple[Array, ...],
) -> bool:  # fmt: skip
    """Decide for all customers of a stream; False as soon as anything is overspent.

    `redemptions`: the share of face values that is redeemed (n, K), who redeems if it is above this (n,), after how many days
    (n,), customers by when they redeem (n,), and who is refused, which is written (n,). `draws` (n,) are random numbers. Into
    `out` are written levels, prices, reasons and propensities, (n,) each.
    """
    levels, prices, reasons, propensity = out
    f, at_once, face, expected, variance = customers
    redeems, chance, delay, order, refused = redemptions
    seen = (times, face, expected, redeems, chance, delay, order, refused)
    head, next_, today = 0, 0, -1
    for i in range(len(times)):
        t = times[i]
        if plan[LASTS]:
            next_ = redeem(next_, i, t, seen, money, levels)
        head = settle(head, i, t, seen, plan, money, levels)
        if daily and int(t) > today:
            today = int(t)
            tick(plan, state, money, t)
            a = max(i - DAILY, 0)
            if i >= 200:
                plan_day(f[a:i], at_once[a:i], face[a:i], expected[a:i], plan, state, money)
            else:
                plan_day(pool[0], pool[1], pool[2], pool[3], plan, state, money)
        one = (f[i], at_once[i], face[i], expected[i], variance[i])
        level, propensity[i], price, reason = decide_one(*one, (t, draws[i]), plan, state, money)
        promised = 0 if plan[LASTS] else money[PROMISED]
        if level < 0 or money[SPENT] + promised > money[TOTAL]:
            return False
        levels[i], prices[i], reasons[i] = level, price, reason
    if plan[LASTS]:
        redeem(next_, len(times), math.inf, seen, money, levels)
    settle(head, len(times), math.inf, seen, plan, money, levels)
    return money[SPENT] <= money[TOTAL] and money[PROMISED] == 0
