"""Simulated customer streams, paced by several methods and compared with the offline optimum.

A seed draws the length of the period, the traffic of its days, bursts, how far the number of customers is off the forecast,
how their mix and their responses drift, and how promises are redeemed. The plan knows customers as they are at the start,
their expected number, and in half of the streams the season.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from largesse.exploration import ExplorationRule
from largesse.records import Array
from largesse.serve.ledger.amounts_and_times import DAY_MICROS, MICROS, convert_days_to_micros, convert_to_units
from largesse.serve.ledger.ledger_records import LedgerTerms, Reason
from largesse.serve.pacing.controller import ControllerGains, PacingPlan, plan_pace
from largesse.serve.pacing.population import Population, make_prepaid_population, make_redeemed_population
from largesse.serve.pacing.price_forecast import DualPlan, find_promise_points, solve_dual_prices
from largesse.worlds import draw_world

START_2027 = 1_798_761_600_000_000  # a Friday
STREAM_POOL_CUSTOMERS = 4000
OFFLINE_POINTS = 48  # in time
PACING_METHODS = ("pace", "fixed", "daily")
EXPLORATION_SEED = 71  # the same for all methods


@dataclass(frozen=True)
class StreamTraits:
    """Random traits of a simulated stream of arriving customers: length, traffic, drifts, promises and budget."""

    days: int
    foreseen: float  # expected customers
    volume: float  # customers who come, relative to the expected ones
    volume_drift: float  # of the traffic until the end, as a logarithm
    season: float  # standard deviation of the logarithm of the traffic over the days of a week
    season_known: bool
    bursts: int
    mix_drift: float  # of the mix of customers, in standard deviations of their gain
    response_drift: float  # of the responses until the end, as a logarithm
    model_error: float  # of the responses at the start, as a logarithm
    path: str  # of drifts: line, step, walk
    on_redemption: bool
    valid: float  # days that a promise stands
    delay: float  # mean days until a redemption
    budget: float  # share of the customers' cost at a price of zero

    def as_dict(self) -> dict[str, Any]:
        """Return the traits by name."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Stream:
    """Stream of arriving customers: times, costs, true responses, and the population that planning uses."""

    traits: StreamTraits
    terms: LedgerTerms
    population: Population  # that the plan knows
    season: tuple[float, ...] | None  # that the plan knows
    times: Array  # (n,) days since the start, rising
    customers: Population  # (n, K) as the model sees them
    truth: Array  # (n, K) expected responses
    redeems: Array  # (n, K) expected share of the face values that is redeemed
    chance: Array  # (n,) a promise is redeemed where this is below `redeems`
    delay: Array  # (n,) days until the redemption

    def __len__(self) -> int:
        return len(self.times)


def draw_traits(seed: int, on_redemption: bool | None = None) -> StreamTraits:
    """Draw the random traits of a customer stream; the trait `on_redemption` is drawn unless given."""
    rng = np.random.default_rng([seed, 1])
    later = bool(rng.random() < 0.5)
    return StreamTraits(
        days=int(rng.integers(28, 92)),
        foreseen=float(np.exp(rng.uniform(math.log(20_000), math.log(100_000)))),
        volume=float(np.exp(rng.normal(0, 0.15))),
        volume_drift=float(rng.normal(0, 0.3)),
        season=float(rng.uniform(0.0, 0.6)),
        season_known=bool(rng.random() < 0.5),
        bursts=int(rng.poisson(2.0)),
        mix_drift=float(rng.normal(0, 0.5)),
        response_drift=float(rng.normal(0, 0.15)),
        model_error=float(rng.normal(0, 0.1)),
        path=str(rng.choice(["line", "step", "walk"])),
        on_redemption=later if on_redemption is None else on_redemption,
        valid=float(rng.integers(2, 15)),
        delay=float(np.exp(rng.uniform(math.log(0.3), math.log(6.0)))),
        budget=float(rng.uniform(0.1, 0.7)),
    )


def draw_stream(seed: int, on_redemption: bool | None = None) -> Stream:
    """Draw a stream of arriving customers by a seed, from a random simulated population.

    >>> stream = draw_stream(0)
    >>> len(stream) == len(stream.truth), bool((np.diff(stream.times) >= 0).all())
    (True, True)
    """
    traits = draw_traits(seed, on_redemption)
    rng = np.random.default_rng([seed, 2])
    world = int(rng.integers(0, 1_000_000))
    while traits.on_redemption and draw_world(world).traits.response != "yes/no":
        world += 1  # a redemption is a yes
    fresh = draw_world(world).draw_fresh(STREAM_POOL_CUSTOMERS)
    if not traits.on_redemption:
        return draw_stream_from_pool(make_prepaid_population(fresh.truth, fresh.costs), traits, seed)
    return draw_stream_from_pool(make_redeemed_population(fresh.truth, fresh.costs, fresh.truth), traits, seed)


def draw_stream_from_pool(pool: Population, traits: StreamTraits, seed: int, total: float | None = None) -> Stream:
    """Draw a stream of arriving customers from a pool of customers, with a given or drawn total budget."""
    rng = np.random.default_rng([seed, 3])
    week = np.exp(traits.season * rng.normal(size=7))
    week /= week.mean()
    times = _draw_times(traits, week, rng)
    path = _draw_drift_path(traits, rng)
    drift = np.interp(times, np.linspace(0, traits.days, len(path)), path)
    customers = pool.take(_draw_customers(pool, traits, times, path, rng))
    moved = np.exp(traits.model_error + traits.response_drift * drift)[:, None]
    truth = customers.responses * moved
    if traits.on_redemption:
        truth = np.minimum(truth, np.maximum(customers.responses, 1.0))
    if total is None:
        best = np.argmax(pool.responses, axis=1)
        total = traits.budget * float(pool.expected_costs[np.arange(len(pool)), best].mean()) * traits.foreseen
    valid = convert_days_to_micros(traits.valid) if traits.on_redemption else None
    terms = LedgerTerms(int(total * 100) * (MICROS // 100), START_2027, START_2027 + traits.days * DAY_MICROS, valid)
    delay = rng.exponential(traits.delay, len(times))
    return Stream(
        traits=traits,
        terms=terms,
        population=pool,
        season=tuple((week * np.exp(0.1 * rng.normal(size=7))).tolist()) if traits.season_known else None,
        times=times,
        customers=customers,
        truth=truth,
        redeems=np.clip(customers.redeemed_share * moved, 0.0, 1.0),
        chance=rng.random(len(times)),
        delay=np.minimum(delay, 0.999 * (math.inf if valid is None else valid / DAY_MICROS)),
    )


def _draw_times(traits: StreamTraits, week: Array, rng: np.random.Generator) -> Array:
    """Draw the arrival times of customers, by weekday, hour of day and drift, with random bursts."""
    hours = np.arange(24 * traits.days)
    first = (START_2027 // DAY_MICROS + 3) % 7
    busy = week[(hours // 24 + first) % 7] * (1.0 - 0.7 * np.cos(2 * np.pi * (hours % 24 - 3) / 24))
    busy = busy / busy.sum()
    busy = busy * np.exp(traits.volume_drift * (hours / len(hours) - 0.5))
    busy = busy * traits.volume / busy.sum()
    for _ in range(traits.bursts):
        begin, length = int(rng.integers(0, len(hours))), int(rng.integers(1, 13))
        busy[begin : begin + length] *= rng.uniform(2.0, 10.0)
    counts = rng.poisson(busy * traits.foreseen)
    return np.sort(np.repeat(hours, counts) + rng.random(counts.sum())) / 24


def _draw_drift_path(traits: StreamTraits, rng: np.random.Generator) -> Array:
    """Draw a random path of a drift (days + 1,) that starts at 0 and changes by about 1 in total."""
    share = np.linspace(0, 1, traits.days + 1)
    if traits.path == "step":
        return (share >= rng.uniform(0.1, 0.9)).astype(np.float64)
    if traits.path == "walk":
        return np.concatenate([[0.0], np.cumsum(rng.normal(size=traits.days)) / math.sqrt(traits.days)])
    return share


def _draw_customers(
    pool: Population, traits: StreamTraits, times: Array, path: Array, rng: np.random.Generator
) -> Array:
    """Draw the customers (n,) of each day; the share of customers with a large gain drifts over time."""
    gain = pool.responses.max(axis=1) - pool.responses[:, 0]
    ranks = np.argsort(np.argsort(gain)) / len(pool)
    score = math.sqrt(0.5) * (math.sqrt(12) * (ranks - 0.5) + rng.normal(size=len(pool)))
    rows = np.empty(len(times), dtype=np.int64)
    edges = np.searchsorted(times, np.arange(traits.days + 1))
    for day in range(traits.days):
        first, last = edges[day], edges[day + 1]
        weights = np.cumsum(np.exp(traits.mix_drift * path[day] * score))
        rows[first:last] = np.searchsorted(weights, rng.random(last - first) * weights[-1])
    return np.minimum(rows, len(pool) - 1)


# -- pacing ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PacedStream:
    """Decisions of a pacing method on a customer stream, with their true value and cost."""

    method: str
    levels: Array  # (n,)
    prices: Array  # (n,)
    reasons: Array  # (n,)
    propensity: Array  # (n,)
    value: float  # responses
    base: float  # responses if all got the cheapest level
    spent: float  # in the end
    committed: float  # spent or promised at the end of the period
    total: float
    within_budget: bool  # at any time
    redeemed: int  # redemptions, refused ones included
    refused: Array  # (n,) redemptions that no longer fitted: only where promises hold while the budget lasts

    @property
    def budget_use(self) -> float:
        """Share of the total budget that was spent at the end."""
        return self.spent / self.total if self.total else 0.0


def plan_stream(
    stream: Stream, exploration: ExplorationRule | None = None, rate: float = 0.0, gains: ControllerGains | None = None
) -> PacingPlan:
    """Plan the pacing of a customer stream from the information that is available at its start."""
    return plan_pace(
        stream.population,
        stream.terms,
        stream.traits.foreseen,
        season=stream.season,
        gains=gains or ControllerGains(),
        exploration=exploration,
        exploration_rate=rate,
    )


def pace_stream(
    stream: Stream,
    method: str = PACING_METHODS[0],
    *,
    plan: PacingPlan | None = None,
) -> PacedStream:
    """Simulate a pacing method on a customer stream: decide for all customers in the order of arrival."""
    from largesse.serve.pacing import pacing_kernels as k

    plan = plan or plan_stream(stream)
    if method != "pace":
        plan = replace(plan, gains=replace(plan.gains, window=0.0))
    n, rows = len(stream), np.arange(len(stream))
    levels, reasons, prices, propensity = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n), np.ones(n)
    refused, order = np.zeros(n, dtype=np.bool_), np.argsort(stream.times + stream.delay, kind="stable")
    money = np.zeros(k.SETTLED_WAIT + 1, dtype=np.int64)
    money[k.TOTAL] = stream.terms.total
    explores = plan.exploration is not None or plan.exploration_rate
    draws = np.random.default_rng([EXPLORATION_SEED, n]).random(n) if explores else np.ones(n)
    redemptions = (stream.redeems, stream.chance, stream.delay, order, refused)
    packed_plan, state = plan.pack_for_kernels(stream.terms), plan.make_first_state(stream.terms)
    within_budget = k.simulate_stream(
        *(stream.times, stream.customers.kernel_arrays, redemptions, packed_plan, state, money),
        *(stream.population.kernel_arrays, method == "daily", draws, (levels, prices, reasons, propensity)),
    )
    face, at_once = stream.customers.face[rows, levels], stream.customers.at_once[rows, levels]
    redeemed = (stream.chance < stream.redeems[rows, levels]) & (face > 0)
    paid = np.where(redeemed & ~refused, face, 0)
    is_settled = (stream.times + stream.terms.promise_days <= stream.terms.days) | (not stream.terms.keeps_promises)
    base = float(stream.truth[:, 0].sum())
    return PacedStream(
        *(method, levels, prices, reasons, propensity),
        value=base + float(compute_true_gains(stream, levels, refused).sum()),
        base=base,
        spent=convert_to_units(int(at_once.sum() + paid.sum())),
        committed=convert_to_units(int((at_once + np.where(is_settled, paid, face)).sum())),
        total=stream.terms.total / MICROS,
        within_budget=within_budget,
        redeemed=int(redeemed.sum()),
        refused=refused,
    )


def compute_true_gains(stream: Stream, levels: Array, refused: Array | None = None) -> Array:
    """Return each customer's true response gain (n,) over the cheapest level, for given levels (n,).

    A customer who is refused responds as to the cheapest level. Only those who redeem can be refused, and theirs is the whole
    gain of the customers like them: each refusal loses the gain, divided by the share who redeem.
    """
    rows = np.arange(len(stream))
    gains = np.asarray(stream.truth[rows, levels] - stream.truth[:, 0])
    if refused is None or not refused.any():
        return gains
    return np.asarray(gains - np.where(refused, gains / np.maximum(stream.redeems[rows, levels], 1e-12), 0.0))


def compare_with_offline_plan(paced: PacedStream, offline: OfflinePlan) -> dict[str, Any]:
    """Return a paced customer stream's value, gain and cost relative to the offline optimum and the budget.

    A share is None if the optimum is zero.
    """
    gain = offline.value - paced.base
    return {
        "value": paced.value / offline.value if offline.value else None,
        "gain": (paced.value - paced.base) / gain if gain > 0 else None,
        "use": paced.budget_use,
        "committed": paced.committed / paced.total if paced.total else 0.0,
        "short": float(np.mean(paced.reasons == Reason.BUDGET)),
        "kept": paced.within_budget,
        "redeemed": paced.redeemed,
        "refused": int(paced.refused.sum()),
    }


@dataclass(frozen=True, eq=False)
class StreamCourse:
    """Course of a paced customer stream over time: shadow price, and cumulative spend, reserved money and value."""

    days: Array  # (p,)
    price: Array  # (p,) mean since the point before; NaN if no customer came
    spent: Array  # (p,)
    held: Array  # (p,) spent, or promised and neither redeemed nor over
    value: Array  # (p,) expected responses beyond those to the cheapest levels


def trace_course(
    stream: Stream, levels: Array, prices: Array | None = None, *, refused: Array | None = None, points: int = 31
) -> StreamCourse:
    """Compute a customer stream's spend and value over time at levels (n,); `refused` (n,) promises cost nothing."""
    rows, times = np.arange(len(stream)), stream.times
    days = np.linspace(0, stream.terms.days, points)
    valid = np.inf if stream.terms.valid is None else stream.terms.promise_days
    face, at_once = (amounts[rows, levels] / MICROS for amounts in (stream.customers.face, stream.customers.at_once))
    redeemed = stream.chance < stream.redeems[rows, levels]
    redeemed = redeemed if refused is None else redeemed & ~refused

    def sum_until(at: Array, amounts: Array) -> Array:
        """Return the sum of the amounts (n,) until each of the days (p,)."""
        order = np.argsort(at, kind="stable")
        sums = np.concatenate([[0.0], np.cumsum(amounts[order])])
        return np.asarray(sums[np.searchsorted(at[order], days, side="right")])

    price = np.full(points, np.nan)
    if prices is not None:
        edges = np.searchsorted(times, days)
        for i in range(1, points):
            price[i] = prices[edges[i - 1] : edges[i]].mean() if edges[i] > edges[i - 1] else np.nan
        price[0] = price[1]
    return StreamCourse(
        days=days,
        price=price,
        spent=sum_until(times, at_once) + sum_until(times + np.where(redeemed, stream.delay, np.inf), face),
        held=sum_until(times, at_once + face) - sum_until(np.where(redeemed, np.inf, times + valid), face),
        value=sum_until(times, compute_true_gains(stream, levels, refused)),
    )


# -- the offline optimum: a plan for all customers at once, made afterwards -----------------------------------------------


@dataclass(frozen=True)
class OfflinePlan:
    """Optimal plan for a whole customer stream with hindsight: levels, value, shadow price and spend."""

    value: float  # with responses as the model sees them, and true costs
    bound: float  # with true responses and costs: no way of pacing is worth more
    price: float  # of one more unit of budget
    spend: float  # expected, in the end
    unreserved: float  # as `value`, for a plan that need not reserve promised money
    levels: Array  # (n,)


def plan_offline(stream: Stream) -> OfflinePlan:
    """Find the optimal plan for a whole customer stream, with all customers known in advance."""
    terms, rows, total = stream.terms, np.arange(len(stream)), stream.terms.total / MICROS
    reserves = stream.customers.on_redemption and terms.keeps_promises
    n_points = OFFLINE_POINTS if reserves else 1

    def solve_plan(customers: Population, n_points: int, days: float) -> DualPlan:
        points = find_promise_points(stream.times, days, terms.days, n_points)
        return solve_dual_prices(customers, stream.redeems, points, n_points, total)

    def value_plan(plan: DualPlan) -> float:
        return float(stream.truth[rows, plan.levels].sum()) + plan.slack

    days = terms.promise_days if terms.keeps_promises else 0.0
    plan = solve_plan(stream.customers, n_points, days)
    paid = (stream.customers.at_once + stream.customers.face * stream.redeems)[rows, plan.levels] / MICROS
    return OfflinePlan(
        value=value_plan(plan),
        bound=solve_plan(replace(stream.customers, responses=stream.truth), n_points, days).bound,
        price=float(plan.prices.sum()),
        spend=float(paid.sum()),
        unreserved=value_plan(solve_plan(stream.customers, 1, 0.0) if reserves else plan),
        levels=plan.levels,
    )
