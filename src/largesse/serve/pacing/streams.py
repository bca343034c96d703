"""Streams of customers whose truth is known: when they come, who they are, how they respond, and when they redeem.

A seed draws how long the period is, how busy its days are, bursts, how many more or fewer customers come than were foreseen,
how their mix and their responses drift from what the plan knew, and how promises are paid. The plan knows customers as they
are at the start, how many were foreseen, and in half of the streams the season.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from largesse.records import Array
from largesse.serve.ledger.money import MICROS
from largesse.serve.ledger.terms import DAY, Terms, count_time
from largesse.serve.pacing.customers import Population, known_costs, redeemed_costs
from largesse.worlds import draw_world

START = 1_798_761_600_000_000  # the first of January 2027, a Friday
POOL = 4000  # customers that a world's stream is drawn from


@dataclass(frozen=True)
class StreamTraits:
    """What a seed drew for a stream."""

    days: int
    foreseen: float  # customers
    volume: float  # how many come for each one foreseen
    volume_drift: float  # how the traffic changes until the end, as a logarithm
    season: float  # how uneven the days of a week are: standard deviation of the logarithm
    season_known: bool
    bursts: int
    mix_drift: float  # how far the mix of customers moves: standard deviations of how much they gain
    response_drift: float  # how far responses move until the end, as a logarithm
    model_error: float  # how far they are off at the start
    path: str  # of drifts: line, step, walk
    on_redemption: bool
    valid: float  # days that a promise stands
    delay: float  # mean days until a redemption
    budget: float  # share of what customers would cost at a price of zero

    def as_dict(self) -> dict[str, Any]:
        """Return the traits by name."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Stream:
    """A stream: what the plan knows of it, what is seen when each customer comes, and what only the truth knows."""

    traits: StreamTraits
    terms: Terms
    population: Population  # known beforehand
    season: tuple[float, ...] | None  # known beforehand
    times: Array  # (n,) days since the start, rising
    customers: Population  # (n, K) as the model sees them
    truth: Array  # (n, K) expected responses
    redeems: Array  # (n, K) share of the face values that is redeemed, in the mean
    chance: Array  # (n,) a promise is redeemed where this is below `redeems`
    delay: Array  # (n,) days until it is

    def __len__(self) -> int:
        return len(self.times)

    @property
    def true_costs(self) -> Array:
        """Costs (n, K) in units that count at the end: expected ones, or faces where a promise is kept and outlasts the period."""
        late = (self.terms.kept & (self.times + self.terms.stands > self.terms.days))[:, None]
        face = self.customers.face * np.where(late, 1.0, self.redeems)
        return np.asarray((self.customers.at_once + face) / MICROS)


def draw_traits(seed: int, on_redemption: bool | None = None) -> StreamTraits:
    """Return what a seed draws; with `on_redemption` as given, if it is."""
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
    """Draw the stream of a seed, with customers of a random world.

    >>> stream = draw_stream(0)
    >>> len(stream) == len(stream.truth), bool((np.diff(stream.times) >= 0).all())
    (True, True)
    """
    traits = draw_traits(seed, on_redemption)
    rng = np.random.default_rng([seed, 2])
    at = int(rng.integers(0, 1_000_000))
    while traits.on_redemption and draw_world(at).traits.response != "yes/no":
        at += 1  # what is paid on redemption is paid by those who say yes
    fresh = draw_world(at).draw_fresh(POOL)
    if not traits.on_redemption:
        return fill_stream(known_costs(fresh.truth, fresh.costs), traits, seed)
    return fill_stream(redeemed_costs(fresh.truth, fresh.costs, fresh.truth), traits, seed)


def fill_stream(pool: Population, traits: StreamTraits, seed: int, total: float | None = None) -> Stream:
    """Draw a stream of customers like those of a pool; `total` in units, else the share that the traits say."""
    rng = np.random.default_rng([seed, 3])
    week = np.exp(traits.season * rng.normal(size=7))
    week /= week.mean()
    times = _draw_times(traits, week, rng)
    path = _draw_path(traits, rng)
    at = np.interp(times, np.linspace(0, traits.days, len(path)), path)
    rows = _draw_customers(pool, traits, times, path, rng)
    customers = pool.take(rows)
    moved = np.exp(traits.model_error + traits.response_drift * at)[:, None]
    shares = np.divide(customers.expected, customers.face, out=np.zeros(customers.face.shape), where=customers.face > 0)
    truth = customers.responses * moved
    if traits.on_redemption:
        truth = np.minimum(truth, np.maximum(customers.responses, 1.0))
    terms = _draw_terms(pool, traits, total)
    valid = math.inf if terms.valid is None else terms.valid / DAY
    delay = np.minimum(rng.exponential(traits.delay, len(times)), 0.999 * valid)
    return Stream(
        traits=traits,
        terms=terms,
        population=pool,
        season=tuple((week * np.exp(0.1 * rng.normal(size=7))).tolist()) if traits.season_known else None,
        times=times,
        customers=customers,
        truth=truth,
        redeems=np.clip(shares * moved, 0.0, 1.0),
        chance=rng.random(len(times)),
        delay=delay,
    )


def _draw_terms(pool: Population, traits: StreamTraits, total: float | None) -> Terms:
    if total is None:
        best = np.argmax(pool.responses, axis=1)
        each = float(pool.early[np.arange(len(pool)), best].mean())
        total = traits.budget * each * traits.foreseen
    valid = count_time(traits.valid) if traits.on_redemption else None
    return Terms(int(total * 100) * (MICROS // 100), START, START + traits.days * DAY, valid)


def _draw_times(traits: StreamTraits, week: Array, rng: np.random.Generator) -> Array:
    """Return when customers come: by weekday, hour of day and drift, with bursts of a few hours."""
    hours = np.arange(24 * traits.days)
    first = (START // DAY + 3) % 7
    busy = week[(hours // 24 + first) % 7] * (1.0 - 0.7 * np.cos(2 * np.pi * (hours % 24 - 3) / 24))
    busy = busy / busy.sum()
    busy = busy * np.exp(traits.volume_drift * (hours / len(hours) - 0.5))
    busy = busy * traits.volume / busy.sum()
    for _ in range(traits.bursts):
        begin, long = int(rng.integers(0, len(hours))), int(rng.integers(1, 13))
        busy[begin : begin + long] *= rng.uniform(2.0, 10.0)
    counts = rng.poisson(busy * traits.foreseen)
    return np.sort(np.repeat(hours, counts) + rng.random(counts.sum())) / 24


def _draw_path(traits: StreamTraits, rng: np.random.Generator) -> Array:
    """Return a drift (days + 1,) that begins at 0 and has moved by about 1 at the end."""
    share = np.linspace(0, 1, traits.days + 1)
    if traits.path == "step":
        return (share >= rng.uniform(0.1, 0.9)).astype(np.float64)
    if traits.path == "walk":
        return np.concatenate([[0.0], np.cumsum(rng.normal(size=traits.days)) / math.sqrt(traits.days)])
    return share


def _draw_customers(
    pool: Population, traits: StreamTraits, times: Array, path: Array, rng: np.random.Generator
) -> Array:
    """Return the customers (n,) who come: day by day, more and more of those who gain much, or little."""
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
