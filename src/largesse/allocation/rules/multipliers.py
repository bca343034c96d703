"""A plan under a budget and further rules: prices for budgets, tolls for levels, repair, and a certificate.

Every rule has a multiplier: what one more unit of it would bring. Given them all, each customer's best level stands
alone, and the sum of what these are worth bounds every plan (Lagrangian duality). The multipliers are found on a sample,
one kind at a time, each exactly: the price of every segment at once, the price of the whole budget, the toll of each
level. The levels they stand for nearly keep the rules; those that lose least are changed until they all do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from largesse.allocation.constraints import Rules
from largesse.allocation.price.hull import as_rows
from largesse.records import Array, Plan

SAMPLE = 32768  # customers on whom multipliers are found
SWEEPS, HALVINGS, CORRECTIONS = 9, 40, 2
SETTLED = 1e-4  # relative; multipliers that move less are done
ROUNDS, FILL_ROUNDS = 12, 2  # of repair, and of spending what is left
SWAPPERS, SWAPS = 1000, 200  # customers among whom pairs are looked for, and how many are swapped
BATCH = 65536  # changes that are looked at in one round
ROUNDING = 1e-12  # relative; the bound is a sum of many rounded numbers


def plan_under(curves: Array, costs: Array, rules: Rules, average: float, exact: bool = False) -> Plan:
    """Return the plan for checked curves (n, K), cost rows and rules; refuse rules that no plan can keep.

    With `exact`, the best whole plan, proven as far as a core of choices can be solved.
    """
    from largesse.allocation.exact.under_rules import any_plan, prove, small
    from largesse.allocation.rules.infeasible import impossible, not_found, smallest_changes

    impossible(costs, rules, curves.shape)
    problem = posed(curves, costs, rules)
    found = _found(problem)
    bound, needed = certify(problem, found), 0.0
    room, count = repair(problem, found)
    if broken(rules, room, count):
        room, count, needed = _cheaply(problem, found)
    kept = not broken(rules, room, count)
    if not kept and small(problem):
        answer = any_plan(problem)
        if answer.levels is not None:
            kept, bound, problem.levels[:] = True, min(bound, answer.bound), answer.levels
        elif answer.proven:
            raise smallest_changes(problem)
    if exact:
        kept, found, bound = prove(problem, found, bound, kept)
    if not kept:
        raise not_found(rules, room, count, needed, len(curves))
    return _made(problem, found, bound, average)


def _cheaply(problem: Problem, found: Multipliers) -> tuple[Array, Array, float]:
    """Start again from cheap plans, first one with the budgets in mind, then one without; return what is left to mend.

    Also a total cost below which no plan keeps the rules that are not budgets.
    """
    rules = problem.rules
    saving = as_rows(-np.ascontiguousarray(np.broadcast_to(problem.costs, problem.curves.shape)), problem.costs)
    free = replace(rules, limits=np.full(len(rules.limits), math.inf), limit=math.inf)
    needed = math.inf
    for kept in (rules, free):
        cheap = posed(*saving, replace(kept, least_return=0.0))
        low = _found(cheap)
        needed = -certify(cheap, low)
        repair(cheap, low)
        problem.levels[:] = cheap.levels
        room, count = repair(problem, found)
        if not broken(rules, room, count):
            break
    return room, count, needed


def broken(rules: Rules, room: Array, count: Array) -> bool:
    """Whether a budget is overdrawn, or a level has too many or too few customers."""
    return bool((room < 0).any() or (count > rules.most).any() or (count < rules.least).any())


def _made(problem: Problem, found: Multipliers, bound: float, average: float) -> Plan:
    rules, n = problem.rules, len(problem.levels)
    rows = np.arange(n)
    value = float(problem.curves[rows, problem.levels].sum(dtype=np.float64))
    paid = problem.costs[rows if len(problem.costs) > 1 else 0, problem.levels]
    spend = float(paid.sum(dtype=np.float64))
    gap = max(bound - (value - rules.least_return * spend), 0.0)
    shadow = {"budget": found.whole}
    shadow |= {
        f"segment {s}": float(v)
        for s, v, b in zip(rules.names, found.segment, rules.limits, strict=True)
        if b < math.inf
    }
    shadow |= {f"cap of level {k}": max(float(found.toll[k]), 0.0) for k in rules.ruled if rules.most[k] < math.inf}
    shadow |= {f"share of level {k}": max(-float(found.toll[k]), 0.0) for k in rules.ruled if rules.least[k] > 0}
    price = rules.least_return + found.whole
    return Plan(problem.levels, value / n, min(spend / n, average), price, (value + gap) / n, average, shadow=shadow)


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Prices of the segments' budgets and the whole one's, and tolls of the levels (below zero where more must get it)."""

    whole: float
    segment: Array  # (S,)
    toll: Array  # (K,)

    def prices(self, rules: Rules) -> Array:
        """Return what a unit of cost must bring in each segment (S,)."""
        return rules.least_return + self.whole + self.segment

    def dues(self, rules: Rules) -> float:
        """Return the multipliers times what the rules allow."""
        held = self.segment > 0
        due = math.fsum((self.segment[held] * rules.limits[held]).tolist()) + (
            self.whole * rules.limit if self.whole > 0 else 0.0
        )
        up, down = np.maximum(self.toll, 0.0), np.maximum(-self.toll, 0.0)
        return due + float(up[up > 0] @ rules.most[up > 0] - down @ rules.least)


@dataclass(eq=False)
class Problem:
    """Curves (n, K), cost rows, rules, and levels (n,); `weight` (S,) says how many customers each row stands for."""

    curves: Array
    costs: Array
    rules: Rules
    levels: Array
    weight: Array
    close: float  # how close, relative, to look for multipliers

    def ask(self, price: Array, toll: Array) -> tuple[Array, Array, Array]:
        """Write the best levels at prices and tolls; return their worth (S,), spend (S,) and counts (K,)."""
        from largesse.allocation.rules.kernels import respond

        r = self.rules
        worth, spend, count = respond(self.curves, self.costs, r.eligible, r.segment, price, toll, self.levels)
        return worth * self.weight, spend * self.weight, self.weight @ count


def posed(curves: Array, costs: Array, rules: Rules) -> Problem:
    """Return the problem of all customers."""
    return Problem(curves, costs, rules, np.zeros(len(curves), dtype=np.int64), np.ones(len(rules.names)), 1e-9)


def sampled(problem: Problem) -> Problem:
    """Return the problem of a sample of the customers, each segment's share in it known; all of them if they are few."""
    rules, n, S = problem.rules, len(problem.levels), len(problem.rules.names)
    if n <= 2 * SAMPLE:
        return problem
    rows = np.random.default_rng(0).integers(0, n, SAMPLE)
    there, here = np.bincount(rules.segment, minlength=S), np.bincount(rules.segment[rows], minlength=S)
    if (here < np.minimum(there, 50)).any():  # a segment too small for the sample
        return problem
    eligible = rules.eligible[rows] if len(rules.eligible) else rules.eligible
    part = replace(rules, eligible=eligible, segment=rules.segment[rows])
    costs = problem.costs[rows] if len(problem.costs) > 1 else problem.costs
    curves, costs = as_rows(problem.curves[rows], costs)
    # A sample cannot tell multipliers apart that are closer than this.
    return Problem(curves, costs, part, np.zeros(SAMPLE, dtype=np.int64), there / np.maximum(here, 1), 1e-5)


def _found(problem: Problem) -> Multipliers:
    """Return multipliers found on a sample, and mended twice by what it gets wrong about all customers."""
    part = sampled(problem)
    found = multipliers(part)
    for _ in range(CORRECTIONS if part is not problem else 0):
        prices = found.prices(problem.rules)
        (_, spend, count), (_, all_spend, all_count) = (p.ask(prices, found.toll) for p in (part, problem))
        held, off, miss = problem.rules, spend - all_spend, count - all_count
        shifted = replace(
            held,
            limits=np.maximum(held.limits + off, 0.0),
            limit=max(held.limit + float(off.sum()), 0.0),
            most=held.most + miss,
            least=np.where(held.least > 0, held.least + miss, 0.0),
            eligible=part.rules.eligible,
            segment=part.rules.segment,
        )
        found = multipliers(replace(part, rules=shifted), found)
    return found


def multipliers(problem: Problem, near: Multipliers | None = None) -> Multipliers:
    """Return multipliers at which plans keep the rules, found one kind at a time; `near` is where to begin."""
    rules = problem.rules
    S, K = len(rules.names), problem.curves.shape[1]
    floor = rules.least_return
    unit = _unit(problem)
    own, whole, toll = np.full(S, floor), floor, np.zeros(K)
    if near is not None:
        own, whole, toll = np.where(near.segment > 0, near.prices(rules), floor), floor + near.whole, near.toll.copy()
    for _ in range(SWEEPS if near is None else SWEEPS // 3):
        before = np.concatenate([np.maximum(own, whole), toll])
        if np.isfinite(rules.limits).any():
            own = _least(_segments_fit(problem, toll), np.full(S, floor), own, unit, problem.close)
        if math.isfinite(rules.limit):
            fits = _all_fit(problem, own, toll)
            whole = float(_least(fits, np.array([floor]), np.array([whole]), unit, problem.close)[0])
        price = np.maximum(own, whole)
        for k in rules.ruled:
            toll[k] = _toll(problem, price, toll, int(k), unit)
        after = np.concatenate([price, toll])
        if np.abs(after - before).max() <= SETTLED * np.abs(after).max(initial=1e-300):
            break
    return Multipliers(whole - floor, np.maximum(own - whole, 0.0), toll)


def _segments_fit(problem: Problem, toll: Array) -> Callable[[Array], Array]:
    """Return whether prices (S,) keep each segment within its budget."""
    return lambda price: problem.ask(price, toll)[1] <= problem.rules.limits


def _all_fit(problem: Problem, own: Array, toll: Array) -> Callable[[Array], Array]:
    """Return whether a price (1,), or a segment's own where it is higher, keeps all within the whole budget."""
    return lambda price: np.array([problem.ask(np.maximum(own, price), toll)[1].sum() <= problem.rules.limit])


def _unit(problem: Problem) -> float:
    """Return a price or toll of the usual size: what the whole range of responses costs."""
    some = problem.curves[:1000].astype(np.float64)
    cost = np.abs(problem.costs[: 1000 if len(problem.costs) > 1 else 1]).max(initial=0.0)
    return float(np.ptp(some)) / max(float(cost), 1e-300) or 1e-6


def _least(fits: Callable[[Array], Array], low: Array, guess: Array, unit: float, close: float) -> Array:
    """Return the least numbers (s,) from `low` up at which each of `fits` holds; each falls with its own number."""
    high = np.maximum(guess, low)
    done = fits(low)
    if done.all():
        return low
    step, reach = unit * 1e-3, high.copy()
    bottom = low.copy()
    for _ in range(60):
        good = fits(reach) | done
        if good.all():
            break
        bottom = np.where(good, bottom, reach)
        reach = np.where(good, reach, reach + step)
        step *= 4
    bottom = np.where(reach <= bottom, low, bottom)
    if (guess > low).any():  # a guess is often close
        nearly = reach - 0.03 * (reach - low)
        bottom = np.where(fits(nearly), bottom, np.maximum(bottom, nearly))
    for _ in range(HALVINGS):
        middle = (bottom + reach) / 2
        good = fits(middle)
        reach, bottom = np.where(good, middle, reach), np.where(good, bottom, middle)
        if (reach - bottom <= close * np.maximum(reach, unit)).all():
            break
    return np.where(done, low, reach)


def _toll(problem: Problem, price: Array, toll: Array, k: int, unit: float) -> float:
    """Return the toll of level k, the others as they are, at which neither too many nor too few want it."""

    def wanted(t: float) -> float:
        other = toll.copy()
        other[k] = t
        return float(problem.ask(price, other)[2][k])

    rules, now = problem.rules, wanted(0.0)
    if rules.least[k] <= now <= rules.most[k]:
        return 0.0
    sign = 1.0 if now > rules.most[k] else -1.0
    found = _least(
        lambda t: np.array([wanted(sign * t[0]) <= rules.most[k] if sign > 0 else wanted(sign * t[0]) >= rules.least[k]]),
        np.zeros(1), np.array([max(sign * toll[k], 0.0)]), unit, problem.close,
    )  # fmt: skip
    return sign * float(found[0])


def certify(problem: Problem, found: Multipliers) -> float:
    """Write everybody's level at the multipliers; return the total net value that no plan under the rules exceeds."""
    worth, _, _ = problem.ask(found.prices(problem.rules), found.toll)
    dues = found.dues(problem.rules)
    return math.fsum(worth.tolist()) + dues + ROUNDING * (math.fsum(np.abs(worth).tolist()) + abs(dues))


def rooms(problem: Problem) -> Array:
    """Return what is left of each segment's budget and, last, of the whole (S + 1,): its sign is exact."""
    from largesse.allocation.rules.kernels import spent

    rules = problem.rules
    total, carry = spent(problem.costs, rules.segment, problem.levels, len(rules.names))
    paid = [Fraction(float(t)) + Fraction(float(c)) for t, c in zip(total, carry, strict=True)]
    limits = [*rules.limits.tolist(), rules.limit]
    return np.array(
        [math.inf if math.isinf(b) else float(Fraction(b) - p) for b, p in zip(limits, [*paid, sum(paid)], strict=True)]
    )


def repair(problem: Problem, found: Multipliers) -> tuple[Array, Array]:
    """Change the levels that lose least until the rules are kept, then spend what is left.

    Returns what is left of the budgets (S + 1,) and how many have each level (K,): rules that could not be kept show.
    """
    rules, K = problem.rules, problem.curves.shape[1]
    count = np.bincount(problem.levels, minlength=K).astype(np.float64)
    from largesse.allocation.rules.kernels import ENTER, LEAVE, SAVE, SPEND

    for _ in range(ROUNDS):
        room = rooms(problem)
        low, high = np.flatnonzero(count < rules.least), np.flatnonzero(count > rules.most)
        if not len(low) and not len(high) and (room >= 0).all():
            break
        taken = sum(_change(problem, found, room, count, ENTER, int(k)) for k in low)
        taken += sum(_change(problem, found, room, count, LEAVE, int(k)) for k in high)
        if (room < 0).any():
            taken += _change(problem, found, room, count, SAVE, -1)
        if not taken and not _swapped(problem, room, count):
            return room, count
    for _ in range(FILL_ROUNDS):
        room = rooms(problem)
        if (room < 0).any() or not _change(problem, found, room, count, SPEND, -1):
            break
    room = rooms(problem)
    while (room < 0).any() and _change(problem, found, room, count, SAVE, -1):
        room = rooms(problem)
    return room, count


def _swapped(problem: Problem, room: Array, count: Array) -> bool:
    """Swap levels between customers, a pair at a time, as long as it saves where saving is due."""
    from largesse.allocation.rules.kernels import swap

    rules, some = problem.rules, False
    rows = np.arange(min(len(problem.levels), SWAPPERS))
    for _ in range(SWAPS):
        if (room >= 0).all() or not swap(
            problem.costs, rules.eligible, rules.segment, rows, problem.levels, room, count, rules.least, rules.most
        ):
            break
        some = True
    return some


def _change(problem: Problem, found: Multipliers, room: Array, count: Array, way: int, which: int) -> int:
    """Make the best changes of one kind; return how many there were."""
    from largesse.allocation.rules.kernels import ENTER, SAVE, accept, offers

    rules, n = problem.rules, len(problem.levels)
    short = room[:-1] < 0
    wanted = (short | (room[-1] < 0)) if way == SAVE else (room[:-1] > 0) & (room[-1] > 0)
    is_open = (count < rules.most) | (way == ENTER)
    row, to, key = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n)
    m = offers(
        problem.curves, problem.costs, rules.eligible, rules.segment, found.prices(rules), found.toll, problem.levels,
        way, wanted, is_open, which, rules.least_return, row, to, key,
    )  # fmt: skip
    first = np.argpartition(key[:m], BATCH)[:BATCH] if m > BATCH else np.arange(m)
    order = first[np.argsort(key[first], kind="stable")]
    return accept(
        problem.costs, rules.segment, row[order], to[order], problem.levels, room, count, rules.least, rules.most,
        way, which,
    )  # fmt: skip
