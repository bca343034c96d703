"""The compiled loops of the price, of exploration around it, and of the plan over time. Importing this module loads numba.

One function, `decide_one`, serves a live ledger and a simulated stream alike. It reads and changes three arrays: `plan` (what
the price is controlled by), `state` (of the price, kept in the ledger) and `money` (int64 millionths, as the ledger counts).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from largesse.exploration import load_spread
from largesse.records import Array

compiled = njit(cache=True, nogil=True, error_model="numpy")

spread_row = load_spread()

# Places in `plan`: floats. Times in days since the start, money in units.
PARTS, CUSTOMERS, DAYS, VALID, FIRST_DAY, AT_RANDOM = range(6)
WINDOW, GAIN, ENDING, VOLUME, VOLUME_PRIOR, RATIO_PRIOR = range(6, 12)
RATIO_SPAN, SEASON_PRIOR, SMOOTH, PROPORTIONAL, FIXED = range(12, 17)
# Whether promises hold while the budget lasts; for how many days; how many standard deviations are kept back for them.
LASTS, STANDS, MARGIN = range(17, 20)
AIMED = 20  # the number of levels, where they are drawn for a purpose; else 0
# Then for each of the J parts of the period: the price of budget from its end on (one more: 0), and for customers who come
# in it, on average: what is promised and paid at once, what is paid in the end, and both at their prices. Then the rule by which
# levels are drawn, if there is one.
PATH = 21

# Places in `state`.
FACTOR, SEEN, FORESEEN, LAST, SETTLED, PAID, LAST_SETTLED, LAST_PAID, TODAY, TODAY_SEEN = range(10)
WEEK = 10  # learnt weights of weekdays …
VISITS = WEEK + 7  # … and how many of each were seen
OPEN = VISITS + 7  # for each part: face values promised in it, then what is expected of them
# Where promises hold while the budget lasts, and the period has one part: what is expected of promises and still to come, the
# variance of that, what was expected to be redeemed lately and what was, and all that was redeemed.
DUE, VARIANCE, MATURED, REDEEMED, LAST_REDEEMED = range(OPEN + 2, OPEN + 7)
LASTING = OPEN + 7  # places, then

# Places in `money`.
TOTAL, SPENT, PROMISED, AT_ONCE, SETTLED_EXPECTED, SETTLED_PAID, OPEN_EXPECTED, LATE_FACE, SETTLED_WAIT = range(9)

UNIT = 1e-6  # of a millionth, in units
FLAT = 0.05  # lets a price of zero rise again
LEAST = 0.02  # room beside the plan
HIGHEST = 100.0  # the price, beside the plan's
# Until a redemption, as a share of a promise's time: before any is known, and at least.
USUAL_WAIT, LEAST_WAIT = 0.3, 0.01
BOLDEST = 0.1  # the most by which one customer raises the price, as a share of it


VALUE_PRICE, LOWER, HIGHER, SHARED = range(4)  # places in the rule, `ExplorationRule.pack_for_pacing`


# -- exploration -----------------------------------------------------------------------------------------------------------


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


# -- what is foreseen ----------------------------------------------------------------------------------------------------


@compiled
def path_left(plan: Array, state: Array, t: float, until: float) -> float:
    """Return the weighted days from t until a later time: days of the week count as they are busy."""
    left, day = 0.0, math.floor(t)
    weeks = max(math.floor((until - day - 1.0) / 7.0), 0)
    if weeks > 0:  # whole weeks at once, after the first day, of which a part may be over
        share = day + 1.0 - t
        left += share * state[WEEK + (int(plan[FIRST_DAY]) + int(day)) % 7] + weeks * state[WEEK : WEEK + 7].sum()
        day += 1 + 7 * weeks
    while day < until:
        share = min(day + 1.0, until) - max(float(day), t)
        left += max(share, 0.0) * state[WEEK + (int(plan[FIRST_DAY]) + int(day)) % 7]
        day += 1
    return left


@compiled
def volume(plan: Array, state: Array) -> float:
    """Return how many customers come for each one that was foreseen, lately."""
    prior = plan[VOLUME_PRIOR] * plan[CUSTOMERS]
    return (state[SEEN] + prior) / (state[FORESEEN] + prior)


@compiled
def ratio(plan: Array, state: Array, money: Array) -> float:
    """Return what promises really cost for each unit that was expected.

    Promises whose time is over tell it. Where promises hold while the budget lasts, redemptions of open ones tell it sooner,
    beside what was expected to be redeemed by now.
    """
    prior = plan[RATIO_PRIOR]
    if prior <= 0.0:
        return 1.0
    if plan[LASTS]:
        settled = money[SETTLED_EXPECTED] * UNIT
        sure = settled / (settled + prior)  # of how long redemptions take
        return (sure * state[REDEEMED] + prior) / (sure * state[MATURED] + prior)
    return (state[PAID] + prior) / (state[SETTLED] + prior)


@compiled
def learn_week(plan: Array, state: Array, day: int) -> None:
    """Close a day: learn how busy its weekday is, beside the level of traffic."""
    ended = int(state[TODAY])
    if day <= ended:
        return
    place = (int(plan[FIRST_DAY]) + ended) % 7
    usual = plan[CUSTOMERS] / path_left(plan, state, 0.0, plan[DAYS]) * volume(plan, state)
    weight = state[WEEK + place]
    if usual > 0.0 and day == ended + 1:
        seen = min(max(state[TODAY_SEEN] / usual, 0.4 * weight), 2.5 * weight)  # a burst is not a season
        state[VISITS + place] += 1.0
        state[WEEK + place] += (seen - weight) / (state[VISITS + place] + plan[SEASON_PRIOR])
    state[TODAY], state[TODAY_SEEN] = float(day), 0.0


@compiled
def tick(plan: Array, state: Array, money: Array, t: float) -> None:
    """Bring the state up to time t: what was foreseen to come until now, and what promises turned out to cost."""
    learn_week(plan, state, int(t))
    if t > state[LAST]:
        per_day = plan[CUSTOMERS] / path_left(plan, state, 0.0, plan[DAYS])
        due = per_day * path_left(plan, state, state[LAST], t)
        keep = math.exp(-due / (plan[VOLUME] * plan[CUSTOMERS]))
        state[SEEN] *= keep
        state[FORESEEN] = state[FORESEEN] * keep + due
        if plan[LASTS]:
            await_redemptions(t - state[LAST], plan, state, money)
        state[LAST] = t
    settled, paid = money[SETTLED_EXPECTED] * UNIT, money[SETTLED_PAID] * UNIT
    if settled > state[LAST_SETTLED]:
        more = settled - state[LAST_SETTLED]
        keep = math.exp(-more / plan[RATIO_SPAN])
        state[SETTLED] = state[SETTLED] * keep + more
        state[PAID] = state[PAID] * keep + max(paid - state[LAST_PAID], 0.0)
        state[LAST_SETTLED], state[LAST_PAID] = settled, paid


@compiled
def await_redemptions(days: float, plan: Array, state: Array, money: Array) -> None:
    """Let days pass: what is due fades as fast as redemptions took on average, of promises whose time is over."""
    prior = plan[RATIO_PRIOR] / UNIT
    known = money[SETTLED_PAID] + prior
    wait = (money[SETTLED_WAIT] + USUAL_WAIT * prior) / known if known > 0.0 else USUAL_WAIT
    fade = math.exp(-days / (min(max(wait, LEAST_WAIT), 1.0) * plan[STANDS]))
    came, redeemed = state[DUE] * (1.0 - fade), (money[SPENT] - money[AT_ONCE]) * UNIT
    keep = math.exp(-came / plan[RATIO_SPAN])
    state[MATURED] = state[MATURED] * keep + came
    state[REDEEMED] = state[REDEEMED] * keep + max(redeemed - state[LAST_REDEEMED], 0.0)
    state[LAST_REDEEMED] = redeemed
    state[DUE] *= fade
    state[VARIANCE] *= fade


@compiled
def reserve(paid: float, plan: Array, state: Array) -> float:
    """Return what is kept back for open promises that hold while the budget lasts: what they will cost, and a margin."""
    return paid * state[DUE] + plan[MARGIN] * math.sqrt(paid * state[VARIANCE])


@compiled
def find_parts(plan: Array, t: float) -> tuple[int, int]:
    """Return the part of the period in which t lies, and that at whose end a promise of t is over; J: after the period."""
    J = int(plan[PARTS])
    wide = plan[DAYS] / J
    last = J if t + plan[VALID] > plan[DAYS] else max(int(np.ceil((t + plan[VALID]) / wide)) - 1, 0)
    return min(int(t / wide), J - 1), last


@compiled
def foresee(paid: float, plan: Array, state: Array, money: Array) -> tuple[float, float]:
    """Return how much customers to come may cost beside the plan, and how many they are.

    At the end of each part, what is spent or promised then must fit into the total: what is gone, promises of the past that
    still stand, and what the plan foresees for customers until then. What is spare or short counts at the parts' prices.
    """
    J, t = int(plan[PARTS]), state[LAST]
    wide = plan[DAYS] / J
    now, _ = find_parts(plan, t)
    gone = money[AT_ONCE] + money[SETTLED_PAID] + paid * money[OPEN_EXPECTED] + money[LATE_FACE]
    left = (money[TOTAL] - gone) * UNIT
    if plan[LASTS]:
        left = (money[TOTAL] - money[SPENT]) * UNIT - reserve(paid, plan, state)
    daily = plan[CUSTOMERS] / path_left(plan, state, 0.0, plan[DAYS]) * volume(plan, state)
    come, over = np.zeros(J), np.zeros(J, dtype=np.int64)
    for b in range(J):
        over[b] = find_parts(plan, min((b + 0.5) * wide, plan[DAYS]))[1]
        if b >= now:
            come[b] = daily * path_left(plan, state, max(b * wide, t), (b + 1) * wide)
    whole, many = 0.0, 0.0
    for b in range(now, J):
        whole += come[b] * plan[PATH + J + 1 + b + (0 if over[b] == J else J)]
        many += come[b]
    slow = min(plan[SMOOTH] * money[TOTAL] * UNIT, whole)  # over which a deviation is corrected
    spare, due = 0.0, 0.0
    for j in range(now, J):
        held, planned = 0.0, 0.0
        for b in range(j + 1):
            if over[b] > j and over[b] < J and b <= now:
                held += max(state[OPEN + b] - paid * state[OPEN + J + b], 0.0)
            if b >= now:
                planned += come[b] * plan[PATH + J + 1 + b + (0 if over[b] > j else J)]
        price = plan[PATH + j] - plan[PATH + j + 1]
        spare += price * (left - held - planned)
        due += price * max(planned, slow)
    room = 1.0 + spare / due if due > 0.0 else 1.0
    return min(max(room, LEAST), 1.0 / LEAST), many


@compiled
def follow(room: float, plan: Array, state: Array) -> float:
    """Return the factor of prices: the tracked one, moved at once by how much room there is beside the plan."""
    return state[FACTOR] * min(max(room, 0.2), 5.0) ** (-plan[PROPORTIONAL] * plan[GAIN])


# -- one customer --------------------------------------------------------------------------------------------------------


@compiled
def pick(f: Array, cost: Array, factor: float, dear: Array, room: int) -> int:
    """Return the best level that fits, the cheapest of equals; −1 if none fits."""
    best, level = -math.inf, -1
    for k in range(len(f)):
        if dear[k] > room:
            continue
        worth = f[k] - factor * cost[k]
        if level < 0 or worth > best + 1e-12 * abs(best):
            best, level = worth, k
    return level


@compiled
def price_levels(
    at_once: Array, face: Array, expected: Array, parts: tuple[int, int], paid: float, plan: Array
) -> Array:
    """Return what the levels (K,) cost at the plan's prices: held while a promise stands, and paid afterwards."""
    after = plan[PATH + parts[1]]
    held = plan[PATH + parts[0]] - after
    cost = np.empty(len(face))
    for k in range(len(face)):
        cost[k] = (held * (at_once[k] + face[k]) + after * (at_once[k] + paid * expected[k])) * UNIT
    return cost


@compiled
def decide_one(
    f: Array,
    at_once: Array,
    face: Array,
    expected: Array,
    variance: Array,
    when: tuple[float, float],
    plan: Array,
    state: Array,
    money: Array,
) -> tuple[int, float, float, int]:
    """Return level, propensity, price and reason of one customer, and count them; level −1 where nothing fits.

    `when` holds the time, in days since the start, and a random number from 0 to 1. Without a variance of responses (K,),
    nothing is drawn for a purpose.
    """
    t, u = when
    dear = at_once + face
    if not 0.0 <= t < plan[DAYS]:
        return pick(f, dear * UNIT, state[FACTOR], dear, 0), 1.0, state[FACTOR] * plan[PATH], 2
    K, room, share = len(f), money[TOTAL] - money[SPENT] - money[PROMISED], plan[AT_RANDOM]
    tick(plan, state, money, t)
    parts, paid = find_parts(plan, t), ratio(plan, state, money)
    if plan[LASTS]:
        room = max(money[TOTAL] - money[SPENT] - math.ceil(reserve(paid, plan, state) / UNIT), 0)
        for k in range(K):
            dear[k] = at_once[k] + math.ceil(paid * expected[k])
    space, many = (1.0, 1.0) if plan[FIXED] else foresee(paid, plan, state, money)
    factor = follow(space, plan, state)
    cost = price_levels(at_once, face, expected, parts, paid, plan)
    price = factor * plan[PATH + parts[0]]
    wanted = pick(f, cost, factor, dear, money[TOTAL])
    instead = pick(f, cost, factor, dear, room)
    if instead < 0:
        return -1, 1.0, price, 1
    aimed = plan[AIMED] == K and len(variance) == K
    p, mean = cost, cost[wanted]
    if aimed:
        p = spread_at(factor, f, cost, variance, plan[PATH + 4 * int(plan[PARTS]) + 1 :])
        mean = (p * cost).sum()
        drawn = draw_level(p, u)
    else:
        drawn = min(int(u / share * K), K - 1) if u < share else wanted
    level = drawn if dear[drawn] <= room else instead
    propensity = 0.0
    for k in range(K):  # every way that leads to this level
        if (k if dear[k] <= room else instead) == level:
            propensity += p[k] if aimed else share / K + (1.0 - share if k == wanted else 0.0)
    count_one(at_once[level], face[level], expected[level], parts, plan, state, money)
    control(mean, parts[0], space, many, plan, state)
    return level, propensity, price, 0 if level == drawn else 1


@compiled
def count_one(
    at_once: int, face: int, expected: int, parts: tuple[int, int], plan: Array, state: Array, money: Array
) -> None:
    """Count a decision as the ledger does, and the promise in its part of the period."""
    J = int(plan[PARTS])
    money[SPENT] += at_once
    money[AT_ONCE] += at_once
    money[PROMISED] += face
    if parts[1] == J:
        money[LATE_FACE] += face
    elif face > 0:
        money[OPEN_EXPECTED] += expected
    if plan[LASTS] and face > 0:
        state[DUE] += expected * UNIT
        state[VARIANCE] += expected * UNIT * (face - expected) * UNIT
    state[OPEN + parts[0]] += face * UNIT
    state[OPEN + J + parts[0]] += expected * UNIT
    state[SEEN] += 1.0
    state[TODAY_SEEN] += 1.0


@compiled
def control(cost: float, part: int, space: float, many: float, plan: Array, state: Array) -> None:
    """Take one step of mirror descent: the price rises where a customer costs more than is left for each."""
    if plan[FIXED]:
        return
    J = int(plan[PARTS])
    usual = plan[PATH + 3 * J + 1 : PATH + 4 * J + 1]
    target = space * max(usual[part], 0.1 * usual.mean(), 1e-300)
    step = plan[GAIN] / min(plan[WINDOW], max(plan[ENDING] * many, 20.0))
    off = min(step * (cost / target - 1.0), BOLDEST)
    state[FACTOR] = min(max(state[FACTOR] + (state[FACTOR] + FLAT) * off, 0.0), HIGHEST)


@compiled
def decide_batch(
    f: Array,
    at_once: Array,
    face: Array,
    expected: Array,
    variance: Array,
    when: Array,
    plan: Array,
    state: Array,
    money: Array,
    out: Array,
) -> bool:
    """Decide for customers one after the other; `out` (n, 4) gets level, propensity, price, reason. False: none fits."""
    for i in range(len(f)):
        level, propensity, price, reason = decide_one(
            f[i], at_once[i], face[i], expected[i], variance[i], (when[i, 0], when[i, 1]), plan, state, money
        )
        if level < 0:
            return False
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = level, propensity, price, reason
    return True


# -- the plan over time ----------------------------------------------------------------------------------------------------


@compiled
def lagrangian(
    f: Array, at_once: Array, face: Array, redeems: Array, when: Array, ahead: Array, used: Array, levels: Array
) -> float:
    """Return Σ max (f − cost) at prices of the budget at points in time; write levels, and what they use at each point.

    `when` (n, 2): the first point at or after a customer comes, and the first at or after their promise ends.
    `ahead` (J + 1,): the sum of the prices of a point and of all later ones.
    """
    total = 0.0
    used[:] = 0.0
    for i in range(len(f)):
        first, last = when[i, 0], when[i, 1]
        held, after = ahead[first] - ahead[last], ahead[last]
        best, level, most, least = -math.inf, 0, 0.0, 0.0
        for j in range(f.shape[1]):
            now = (at_once[i, j] + face[i, j]) * UNIT
            then = (at_once[i, j] + redeems[i, j] * face[i, j]) * UNIT
            worth = f[i, j] - now * held - then * after
            if worth > best:
                best, level, most, least = worth, j, now, then
        total += best
        levels[i] = level
        # Differences: what is used from point `first` on, and how that changes from `last` on.
        used[first] += most
        used[last] += least - most
    return total
