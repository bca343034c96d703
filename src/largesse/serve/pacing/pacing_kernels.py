"""Compiled kernels of budget pacing: decisions at a shadow price, price control, and simulated streams.

The same function, `decide_customer`, serves live ledgers and simulated streams. It reads and changes three arrays: `plan` (the plan
that controls the price), `state` (of the price, kept in the ledger) and `money` (int64 millionths, as the ledger counts).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from largesse.exploration import load_exploration_kernel
from largesse.records import Array

compiled = njit(cache=True, nogil=True, error_model="numpy")

spread_row = load_exploration_kernel()

# Places in `plan`: floats. Times in days since the start, money in units.
PARTS, CUSTOMERS, DAYS, VALID, FIRST_DAY, AT_RANDOM = range(6)
WINDOW, GAIN, ENDING, VOLUME, VOLUME_PRIOR, RATIO_PRIOR = range(6, 12)
RATIO_SPAN, SEASON_PRIOR, SMOOTH, PROPORTIONAL, FIXED = range(12, 17)
# Whether promises hold while the budget lasts; their days; the standard deviations of their cost that are reserved.
LASTS, PROMISE_DAYS, MARGIN = range(17, 20)
RULE_LEVELS = 20  # the number of levels, if a rule draws them; else 0
# Then for each of the J parts of the period: the sum of the prices from it on (one more: 0), and averages of the customers who
# come in it: promised and paid at once, paid in the end, and both at their prices. Then the rule that draws levels, if any.
PATH = 21

# Places in `state`.
FACTOR, SEEN, EXPECTED_SEEN, LAST, SETTLED, PAID, LAST_SETTLED, LAST_PAID, TODAY, TODAY_SEEN = range(10)
WEEK = 10  # learnt weights of weekdays …
VISITS = WEEK + 7  # … and how often each was seen
OPEN = VISITS + 7  # for each part: face values promised in it, then the part of them that is expected to be paid
# Where promises hold while the budget lasts, and the period has one part: expected redemptions to come, their variance, those
# that were expected lately, those that came lately, and all that came.
DUE, VARIANCE, MATURED, REDEEMED, LAST_REDEEMED = range(OPEN + 2, OPEN + 7)
LASTING_PLACES = OPEN + 7

# Places in `money`.
TOTAL, SPENT, PROMISED, AT_ONCE, SETTLED_EXPECTED, SETTLED_PAID, OPEN_EXPECTED, LATE_FACE, SETTLED_WAIT = range(9)

VALUE_PRICE, LOWER, HIGHER, SHARED = range(4)  # places in the rule, `ExplorationRule.pack_for_pacing`

UNIT = 1e-6  # of a millionth, in units
RISE_FROM_ZERO = 0.05  # lets a price of zero rise again
MIN_RELATIVE_ROOM = 0.02  # relative to the plan
MAX_FACTOR = 100.0
# Until a redemption, as a share of a promise's time: before any is known, and at least.
USUAL_WAIT, MIN_WAIT = 0.3, 0.01
MAX_RISE = 0.1  # of the price by one customer, as a share of it
RECENT_CUSTOMERS = 2000  # that a plan of the day is made from


# -- exploration -----------------------------------------------------------------------------------------------------------


@compiled
def find_best_level(f: Array, cost: Array, factor: float) -> int:
    """Return the level with the highest net value at a factor of the shadow price, the cheapest if levels tie."""
    best, level = f[0] - factor * cost[0], 0
    for k in range(1, len(f)):
        net_value = f[k] - factor * cost[k]
        if net_value > best + 1e-12 * abs(best):
            best, level = net_value, k
    return level


@compiled
def find_level_probabilities(factor: float, f: Array, cost: Array, variance: Array, rule: Array) -> Array:
    """Return the exploration probabilities (K,) of a customer's levels at a factor of the shadow price."""
    levels = (
        find_best_level(f, cost, factor),
        find_best_level(f, cost, factor * rule[LOWER]),
        find_best_level(f, cost, factor * rule[HIGHER]),
    )
    lost, p = np.empty(len(f)), np.empty(len(f))
    for k in range(len(f)):
        lost[k] = rule[VALUE_PRICE] * (factor * cost[k] - f[k])
    if math.isfinite(lost.max() - lost.min()):
        spread_row(levels, lost, variance, rule[SHARED:], p)
    else:  # infinite responses: there is nothing to weigh
        p[:], p[levels[0]] = 0.0, 1.0
    return p


@compiled
def draw_level(p: Array, u: float) -> int:
    """Draw a level by its probabilities (K,) with a uniform random number from 0 to 1."""
    below, last = 0.0, 0
    for k in range(len(p)):
        if p[k] > 0.0:
            below, last = below + p[k], k
            if u < below:
                return k
    return last  # rounding may end the sum short of one


@compiled
def fill_level_probabilities(
    factor: float, f: Array, late: Array, early: Array, prices: Array, variance: Array, rule: Array, out: Array
) -> None:
    """Write exploration probabilities (n, K) into `out`, at shadow prices of face-value and expected costs.

    The `prices` (n, 2) multiply the face-value costs `late` (n, K) and the expected costs `early` (n, K).
    """
    cost = np.empty(f.shape[1])
    for i in range(len(f)):
        for k in range(f.shape[1]):
            cost[k] = prices[i, 0] * late[i, k] + prices[i, 1] * early[i, k]
        out[i] = find_level_probabilities(factor, f[i], cost, variance[i], rule)


# -- forecast ------------------------------------------------------------------------------------------------------------


@compiled
def count_weighted_days(plan: Array, state: Array, t: float, until: float) -> float:
    """Return the days between two times, weighted by the traffic of each weekday."""
    left, day = 0.0, math.floor(t)
    weeks = max(math.floor((until - day - 1.0) / 7.0), 0)
    if weeks > 0:  # whole weeks at once, after the first day, which may be partly over
        share = day + 1.0 - t
        left += share * state[WEEK + (int(plan[FIRST_DAY]) + int(day)) % 7] + weeks * state[WEEK : WEEK + 7].sum()
        day += 1 + 7 * weeks
    while day < until:
        share = min(day + 1.0, until) - max(float(day), t)
        left += max(share, 0.0) * state[WEEK + (int(plan[FIRST_DAY]) + int(day)) % 7]
        day += 1
    return left


@compiled
def measure_arrival_ratio(plan: Array, state: Array) -> float:
    """Return the ratio of recent to forecast customer arrivals."""
    prior = plan[VOLUME_PRIOR] * plan[CUSTOMERS]
    return (state[SEEN] + prior) / (state[EXPECTED_SEEN] + prior)


@compiled
def measure_cost_ratio(plan: Array, state: Array, money: Array) -> float:
    """Return the ratio of actual to expected cost of promises.

    It is learnt from promises whose time is over. Where promises hold while the budget lasts, it is learnt sooner: from
    redemptions of open ones, relative to those expected by now.
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
def update_weekday_weight(plan: Array, state: Array, day: int) -> None:
    """Update the traffic weight of a weekday from the arrivals of the day that has ended."""
    ended = int(state[TODAY])
    if day <= ended:
        return
    place = (int(plan[FIRST_DAY]) + ended) % 7
    usual = plan[CUSTOMERS] / count_weighted_days(plan, state, 0.0, plan[DAYS]) * measure_arrival_ratio(plan, state)
    weight = state[WEEK + place]
    if usual > 0.0 and day == ended + 1:
        seen = min(max(state[TODAY_SEEN] / usual, 0.4 * weight), 2.5 * weight)  # a burst is not a season
        state[VISITS + place] += 1.0
        state[WEEK + place] += (seen - weight) / (state[VISITS + place] + plan[SEASON_PRIOR])
    state[TODAY], state[TODAY_SEEN] = float(day), 0.0


@compiled
def advance_state(plan: Array, state: Array, money: Array, t: float) -> None:
    """Advance the price controller's state to time t: expected arrivals, and costs of expired promises."""
    update_weekday_weight(plan, state, int(t))
    if t > state[LAST]:
        per_day = plan[CUSTOMERS] / count_weighted_days(plan, state, 0.0, plan[DAYS])
        due = per_day * count_weighted_days(plan, state, state[LAST], t)
        keep = math.exp(-due / (plan[VOLUME] * plan[CUSTOMERS]))
        state[SEEN] *= keep
        state[EXPECTED_SEEN] = state[EXPECTED_SEEN] * keep + due
        if plan[LASTS]:
            advance_expected_redemptions(t - state[LAST], plan, state, money)
        state[LAST] = t
    settled, paid = money[SETTLED_EXPECTED] * UNIT, money[SETTLED_PAID] * UNIT
    if settled > state[LAST_SETTLED]:
        newly_settled = settled - state[LAST_SETTLED]
        keep = math.exp(-newly_settled / plan[RATIO_SPAN])
        state[SETTLED] = state[SETTLED] * keep + newly_settled
        state[PAID] = state[PAID] * keep + max(paid - state[LAST_PAID], 0.0)
        state[LAST_SETTLED], state[LAST_PAID] = settled, paid


@compiled
def advance_expected_redemptions(days: float, plan: Array, state: Array, money: Array) -> None:
    """Advance the expected redemptions of open promises by a number of days.

    The rate is the average one of promises that have ended.
    """
    prior = plan[RATIO_PRIOR] / UNIT
    paid_amount = money[SETTLED_PAID] + prior
    wait = (money[SETTLED_WAIT] + USUAL_WAIT * prior) / paid_amount if paid_amount > 0.0 else USUAL_WAIT
    fade = math.exp(-days / (min(max(wait, MIN_WAIT), 1.0) * plan[PROMISE_DAYS]))
    came, redeemed = state[DUE] * (1.0 - fade), (money[SPENT] - money[AT_ONCE]) * UNIT
    keep = math.exp(-came / plan[RATIO_SPAN])
    state[MATURED] = state[MATURED] * keep + came
    state[REDEEMED] = state[REDEEMED] * keep + max(redeemed - state[LAST_REDEEMED], 0.0)
    state[LAST_REDEEMED] = redeemed
    state[DUE] *= fade
    state[VARIANCE] *= fade


@compiled
def compute_reserved_amount(paid: float, plan: Array, state: Array) -> float:
    """Return the amount reserved for open promises that are not guaranteed: expected cost plus a margin."""
    return paid * state[DUE] + plan[MARGIN] * math.sqrt(paid * state[VARIANCE])


@compiled
def find_period_parts(plan: Array, t: float) -> tuple[int, int]:
    """Return the indices of the period's equal parts with time t and with the expiry of a promise made at t.

    The second index is J if the promise outlasts the period.
    """
    J = int(plan[PARTS])
    wide = plan[DAYS] / J
    last = J if t + plan[VALID] > plan[DAYS] else max(int(np.ceil((t + plan[VALID]) / wide)) - 1, 0)
    return min(int(t / wide), J - 1), last


@compiled
def forecast_budget_ratio(paid: float, plan: Array, state: Array, money: Array) -> tuple[float, float]:
    """Forecast the ratio of remaining to planned budget, and the number of customers until the period's end.

    At the end of each part, the money spent or promised must fit into the total: the money gone, earlier promises that still
    stand, and the plan's cost of customers until then. Money that is spare or short counts at the parts' prices.
    """
    J, t = int(plan[PARTS]), state[LAST]
    wide = plan[DAYS] / J
    now, _ = find_period_parts(plan, t)
    gone = money[AT_ONCE] + money[SETTLED_PAID] + paid * money[OPEN_EXPECTED] + money[LATE_FACE]
    left = (money[TOTAL] - gone) * UNIT
    if plan[LASTS]:
        left = (money[TOTAL] - money[SPENT]) * UNIT - compute_reserved_amount(paid, plan, state)
    daily = plan[CUSTOMERS] / count_weighted_days(plan, state, 0.0, plan[DAYS]) * measure_arrival_ratio(plan, state)
    arrivals, last_parts = np.zeros(J), np.zeros(J, dtype=np.int64)
    for b in range(J):
        last_parts[b] = find_period_parts(plan, min((b + 0.5) * wide, plan[DAYS]))[1]
        if b >= now:
            arrivals[b] = daily * count_weighted_days(plan, state, max(b * wide, t), (b + 1) * wide)
    planned_cost, n_to_come = 0.0, 0.0
    for b in range(now, J):
        planned_cost += arrivals[b] * plan[PATH + J + 1 + b + (0 if last_parts[b] == J else J)]
        n_to_come += arrivals[b]
    slow = min(plan[SMOOTH] * money[TOTAL] * UNIT, planned_cost)  # over which a deviation is corrected
    spare, due = 0.0, 0.0
    for j in range(now, J):
        held, planned = 0.0, 0.0
        for b in range(j + 1):
            if last_parts[b] > j and last_parts[b] < J and b <= now:
                held += max(state[OPEN + b] - paid * state[OPEN + J + b], 0.0)
            if b >= now:
                planned += arrivals[b] * plan[PATH + J + 1 + b + (0 if last_parts[b] > j else J)]
        price = plan[PATH + j] - plan[PATH + j + 1]
        spare += price * (left - held - planned)
        due += price * max(planned, slow)
    room = 1.0 + spare / due if due > 0.0 else 1.0
    return min(max(room, MIN_RELATIVE_ROOM), 1.0 / MIN_RELATIVE_ROOM), n_to_come


@compiled
def adjust_price_factor(room: float, plan: Array, state: Array) -> float:
    """Return the factor of the planned shadow price, adjusted by the ratio of remaining to planned budget."""
    return state[FACTOR] * min(max(room, 0.2), 5.0) ** (-plan[PROPORTIONAL] * plan[GAIN])


# -- one customer --------------------------------------------------------------------------------------------------------


@compiled
def pick_affordable_level(f: Array, cost: Array, factor: float, dear: Array, room: int) -> int:
    """Return the best level whose cost fits into the remaining budget; −1 if no level fits."""
    best, level = -math.inf, -1
    for k in range(len(f)):
        if dear[k] > room:
            continue
        net_value = f[k] - factor * cost[k]
        if level < 0 or net_value > best + 1e-12 * abs(best):
            best, level = net_value, k
    return level


@compiled
def weight_costs_by_planned_prices(
    at_once: Array, face: Array, expected: Array, parts: tuple[int, int], paid: float, plan: Array
) -> Array:
    """Return each level's cost (K,), weighted by the planned shadow prices of reserved and of paid money."""
    after = plan[PATH + parts[1]]
    held = plan[PATH + parts[0]] - after
    cost = np.empty(len(face))
    for k in range(len(face)):
        cost[k] = (held * (at_once[k] + face[k]) + after * (at_once[k] + paid * expected[k])) * UNIT
    return cost


@compiled
def decide_customer(
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
    """Decide a customer's level: return level, propensity, shadow price and reason (level −1 if none fits).

    `when` holds the time, in days since the start, and a random number from 0 to 1. Without a variance of responses (K,),
    nothing is drawn by a rule.
    """
    t, u = when
    dear = at_once + face
    if not 0.0 <= t < plan[DAYS]:
        return pick_affordable_level(f, dear * UNIT, state[FACTOR], dear, 0), 1.0, state[FACTOR] * plan[PATH], 2
    K, room, share = len(f), money[TOTAL] - money[SPENT] - money[PROMISED], plan[AT_RANDOM]
    advance_state(plan, state, money, t)
    parts, paid = find_period_parts(plan, t), measure_cost_ratio(plan, state, money)
    if plan[LASTS]:
        room = max(money[TOTAL] - money[SPENT] - math.ceil(compute_reserved_amount(paid, plan, state) / UNIT), 0)
        for k in range(K):
            dear[k] = at_once[k] + math.ceil(paid * expected[k])
    room_share, n_to_come = (1.0, 1.0) if plan[FIXED] else forecast_budget_ratio(paid, plan, state, money)
    factor = adjust_price_factor(room_share, plan, state)
    cost = weight_costs_by_planned_prices(at_once, face, expected, parts, paid, plan)
    price = factor * plan[PATH + parts[0]]
    best = pick_affordable_level(f, cost, factor, dear, money[TOTAL])
    best_that_fits = pick_affordable_level(f, cost, factor, dear, room)
    if best_that_fits < 0:
        return -1, 1.0, price, 1
    by_rule = plan[RULE_LEVELS] == K and len(variance) == K
    p, mean = cost, cost[best]
    if by_rule:
        p = find_level_probabilities(factor, f, cost, variance, plan[PATH + 4 * int(plan[PARTS]) + 1 :])
        mean = (p * cost).sum()
        drawn = draw_level(p, u)
    else:
        drawn = min(int(u / share * K), K - 1) if u < share else best
    level = drawn if dear[drawn] <= room else best_that_fits
    propensity = 0.0
    for k in range(K):  # all ways that lead to this level
        if (k if dear[k] <= room else best_that_fits) == level:
            propensity += p[k] if by_rule else share / K + (1.0 - share if k == best else 0.0)
    add_decision_to_sums(at_once[level], face[level], expected[level], parts, plan, state, money)
    update_price(mean, parts[0], room_share, n_to_come, plan, state)
    return level, propensity, price, 0 if level == drawn else 1


@compiled
def add_decision_to_sums(
    at_once: int, face: int, expected: int, parts: tuple[int, int], plan: Array, state: Array, money: Array
) -> None:
    """Add a decision and its promise to the sums and the controller's state, by the ledger's rules."""
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
def update_price(cost: float, period_part: int, room_share: float, n_to_come: float, plan: Array, state: Array) -> None:
    """Update the shadow price by one step of mirror descent, from a customer's actual and planned cost."""
    if plan[FIXED]:
        return
    J = int(plan[PARTS])
    usual = plan[PATH + 3 * J + 1 : PATH + 4 * J + 1]
    target = room_share * max(usual[period_part], 0.1 * usual.mean(), 1e-300)
    step = plan[GAIN] / min(plan[WINDOW], max(plan[ENDING] * n_to_come, 20.0))
    off = min(step * (cost / target - 1.0), MAX_RISE)
    state[FACTOR] = min(max(state[FACTOR] + (state[FACTOR] + RISE_FROM_ZERO) * off, 0.0), MAX_FACTOR)


@compiled
def is_valid_state(state: Array, plan: Array) -> bool:
    """Return True for a valid state of the price controller; the other kernels do not check the state."""
    for k in range(len(state)):
        if not state[k] >= 0.0 or (WEEK <= k < WEEK + 7 and state[k] == 0.0):
            return False
    return bool(state[LAST] <= plan[DAYS] and state[TODAY] <= plan[DAYS])


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
    """Decide for customers in order, and write the decisions to `out` (n, 4); return False if no level fits.

    The columns of `out` are level, propensity, price and reason.
    """
    for i in range(len(f)):
        level, propensity, price, reason = decide_customer(
            f[i], at_once[i], face[i], expected[i], variance[i], (when[i, 0], when[i, 1]), plan, state, money
        )
        if level < 0:
            return False
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = level, propensity, price, reason
    return True


# -- the plan over time ----------------------------------------------------------------------------------------------------


@compiled
def compute_dual_objective(
    f: Array, at_once: Array, face: Array, redeems: Array, when: Array, ahead: Array, used: Array, levels: Array
) -> float:
    """Compute the dual objective Σ max(response − price × cost), and write the best levels and their budget use.

    `levels` gets the best levels, and `used` the changes over time of the budget in use.

    `when` (n, 2): the first point at or after a customer comes, and the first at or after their promise ends.
    `ahead` (J + 1,): the sum of the prices of a point and of all later ones.
    """
    total = 0.0
    used[:] = 0.0
    for i in range(len(f)):
        first, last = when[i, 0], when[i, 1]
        held, after = ahead[first] - ahead[last], ahead[last]
        best, level, full_cost, paid_cost = -math.inf, 0, 0.0, 0.0
        for j in range(f.shape[1]):
            now = (at_once[i, j] + face[i, j]) * UNIT
            then = (at_once[i, j] + redeems[i, j] * face[i, j]) * UNIT
            net_value = f[i, j] - now * held - then * after
            if net_value > best:
                best, level, full_cost, paid_cost = net_value, j, now, then
        total += best
        levels[i] = level
        # Differences: the budget used from point `first` on, and its change from `last` on.
        used[first] += full_cost
        used[last] += paid_cost - full_cost
    return total


# -- a simulated stream ----------------------------------------------------------------------------------------------------


@compiled
def release_promises(
    head: int, until: int, t: float, s: tuple[Array, ...], plan: Array, money: Array, levels: Array
) -> int:
    """Release the promises that have expired by time t, oldest first; return the next index to check."""
    times, face, expected, redeems, chance, delay, _, refused = s
    while head < until and times[head] + plan[PROMISE_DAYS] <= t:
        level = levels[head]
        value = face[head, level]
        if value > 0:
            paid = value if chance[head] < redeems[head, level] and not refused[head] else 0
            if not plan[LASTS]:  # a redemption changes nothing before: its face value is reserved
                money[PROMISED] -= value
                money[SPENT] += paid
            elif not paid:
                money[PROMISED] -= value
            money[SETTLED_PAID] += paid
            money[SETTLED_WAIT] += paid // 1000 * int(1000 * delay[head] / plan[PROMISE_DAYS])
            if plan[LASTS] or times[head] + plan[PROMISE_DAYS] <= plan[DAYS]:
                money[OPEN_EXPECTED] -= expected[head, level]
                money[SETTLED_EXPECTED] += expected[head, level]
            else:
                money[LATE_FACE] -= value
        head += 1
    return head


@compiled
def pay_redemptions(head: int, until: int, t: float, s: tuple[Array, ...], money: Array, levels: Array) -> int:
    """Pay the redemptions until time t that fit into the budget; return the next index to check.

    Redemptions that do not fit are refused.

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
def average_cost_at_factor(
    factor: float, paid: float, f: Array, at_once: Array, face: Array, expected: Array, plan: Array, state: Array
) -> float:
    """Return the mean cost of customers whose levels are chosen at a factor of the planned shadow prices."""
    parts, total = find_period_parts(plan, state[LAST]), 0.0
    for i in range(len(f)):
        cost = weight_costs_by_planned_prices(at_once[i], face[i], expected[i], parts, paid, plan)
        best, spent = -math.inf, 0.0
        for j in range(f.shape[1]):
            net_value = f[i, j] - factor * cost[j]
            if net_value > best:
                best, spent = net_value, cost[j]
        total += spent
    return total / max(len(f), 1)


@compiled
def reset_price_factor(
    f: Array, at_once: Array, face: Array, expected: Array, plan: Array, state: Array, money: Array
) -> None:
    """Set the factor of the planned shadow prices at which similar customers spend the remaining budget."""
    J, period_part = int(plan[PARTS]), find_period_parts(plan, state[LAST])[0]
    paid = measure_cost_ratio(plan, state, money)
    room, _ = forecast_budget_ratio(paid, plan, state, money)
    target = room * plan[PATH + 3 * J + 1 + period_part]
    low, high = 0.0, 1.0
    for _ in range(40):
        if average_cost_at_factor(high, paid, f, at_once, face, expected, plan, state) <= target:
            break
        high *= 2.0
    for _ in range(25):
        middle = (low + high) / 2
        if average_cost_at_factor(middle, paid, f, at_once, face, expected, plan, state) <= target:
            high = middle
        else:
            low = middle
    state[FACTOR] = high


@compiled
def simulate_stream(
    times: Array, customers: tuple[Array, ...], redemptions: tuple[Array, ...], plan: Array, state: Array, money: Array,
    pool: tuple[Array, ...], daily: bool, draws: Array, out: tuple[Array, ...],
) -> bool:  # fmt: skip
    """Decide for all customers of a simulated stream in order of arrival; return False if overspent.

    `redemptions`: the share of face values that is redeemed (n, K), who redeems if it is above this (n,), days until the redemption
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
            next_ = pay_redemptions(next_, i, t, seen, money, levels)
        head = release_promises(head, i, t, seen, plan, money, levels)
        if daily and int(t) > today:
            today = int(t)
            advance_state(plan, state, money, t)
            a = max(i - RECENT_CUSTOMERS, 0)
            if i >= 200:
                reset_price_factor(f[a:i], at_once[a:i], face[a:i], expected[a:i], plan, state, money)
            else:
                reset_price_factor(pool[0], pool[1], pool[2], pool[3], plan, state, money)
        level, propensity[i], price, reason = decide_customer(
            f[i], at_once[i], face[i], expected[i], variance[i], (t, draws[i]), plan, state, money
        )
        promised = 0 if plan[LASTS] else money[PROMISED]
        if level < 0 or money[SPENT] + promised > money[TOTAL]:
            return False
        levels[i], prices[i], reasons[i] = level, price, reason
    if plan[LASTS]:
        pay_redemptions(next_, len(times), math.inf, seen, money, levels)
    release_promises(head, len(times), math.inf, seen, plan, money, levels)
    return money[SPENT] <= money[TOTAL] and money[PROMISED] == 0
