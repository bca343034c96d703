"""A stream paced, and what it is compared with: the offline optimum, a fixed price, and a plan every day."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from largesse.exploration import ExplorationRule
from largesse.records import Array
from largesse.serve.ledger.money import MICROS, as_units
from largesse.serve.ledger.records import Reason
from largesse.serve.pacing.controller import Gains, PacePlan, plan_pace
from largesse.serve.pacing.dual import place, solve_dual
from largesse.serve.pacing.streams import Stream

POINTS = 48  # in time, of the offline optimum
WAYS = ("pace", "fixed", "daily")
DRAWS = 71  # the seed of what is drawn in a stream, whatever the way


@dataclass(frozen=True, eq=False)
class Paced:
    """A stream as one way of pacing decided it."""

    way: str
    levels: Array  # (n,)
    prices: Array  # (n,)
    reasons: Array  # (n,)
    propensity: Array  # (n,)
    value: float  # expected responses, by the truth
    base: float  # of these, what the cheapest levels would have brought
    spent: float  # in the end
    committed: float  # spent or promised at the end of the period
    total: float
    kept: bool  # whether it was never above the total
    redeemed: int  # redemptions, those that were refused among them
    refused: Array  # (n,) whose redemption no longer fitted: only where promises hold while the budget lasts

    @property
    def use(self) -> float:
        """The share of the budget that is spent in the end."""
        return self.spent / self.total if self.total else 0.0


def pace_stream(
    stream: Stream, way: str = "pace", *, plan: PacePlan | None = None, gains: Gains | None = None
) -> Paced:
    """Decide for all customers of a stream, as they come."""
    from largesse.serve.pacing import kernels as k
    from largesse.serve.pacing.stream_kernels import run_stream

    made = plan or make_plan(stream, gains=gains)
    made = made if way == "pace" else replace(made, gains=replace(made.gains, window=0.0))
    n = len(stream)
    levels, reasons = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    prices, propensity = np.zeros(n), np.ones(n)
    refused, order = np.zeros(n, dtype=np.bool_), np.argsort(stream.times + stream.delay, kind="stable")
    money = np.zeros(k.SETTLED_WAIT + 1, dtype=np.int64)
    money[k.TOTAL] = stream.terms.total
    draws = (
        np.ones(n)
        if made.exploration is None and not made.exploration_rate
        else np.random.default_rng([DRAWS, n]).random(n)
    )
    redemptions = (stream.redeems, stream.chance, stream.delay, order, refused)
    kept = run_stream(
        stream.times, stream.customers.parts, redemptions, made.pack(stream.terms), made.begin(stream.terms), money,
        stream.population.parts, way == "daily", draws, (levels, prices, reasons, propensity),
    )  # fmt: skip
    return _sum_up(stream, way, (levels, prices, reasons, propensity), kept, refused)


def make_plan(
    stream: Stream, exploration: ExplorationRule | None = None, rate: float = 0.0, gains: Gains | None = None
) -> PacePlan:
    """Return the plan that is made before a stream begins, from what is known then; see `plan_pace`."""
    how: Any = {
        "season": stream.season,
        "gains": gains or Gains(),
        "exploration": exploration,
        "exploration_rate": rate,
    }
    return plan_pace(stream.population, stream.terms, stream.traits.foreseen, **how)


def _sum_up(stream: Stream, way: str, found: tuple[Array, Array, Array, Array], kept: bool, refused: Array) -> Paced:
    levels, rows = found[0], np.arange(len(stream))
    face, at_once = stream.customers.face[rows, levels], stream.customers.at_once[rows, levels]
    redeemed = (stream.chance < stream.redeems[rows, levels]) & (face > 0)
    paid = np.where(redeemed & ~refused, face, 0)
    over = (stream.times + stream.terms.stands <= stream.terms.days) | (not stream.terms.kept)
    spent, committed = int(at_once.sum() + paid.sum()), int((at_once + np.where(over, paid, face)).sum())
    return Paced(
        way,
        *found,
        value=float(stream.truth[:, 0].sum() + count_gains(stream, levels, refused).sum()),
        base=float(stream.truth[:, 0].sum()),
        spent=as_units(spent),
        committed=as_units(committed),
        total=stream.terms.total / MICROS,
        kept=kept,
        redeemed=int(redeemed.sum()),
        refused=refused,
    )


def count_gains(stream: Stream, levels: Array, refused: Array | None = None) -> Array:
    """Return what levels (n,) bring beyond the cheapest ones, by the truth.

    Who is refused responds as to the cheapest level. Only those who redeem can be refused: theirs is the whole gain of the
    customers like them, so that each refusal loses the gain, divided by the share who redeem.
    """
    rows = np.arange(len(stream))
    gains = stream.truth[rows, levels] - stream.truth[:, 0]
    if refused is None or not refused.any():
        return np.asarray(gains)
    share = np.maximum(stream.redeems[rows, levels], 1e-12)
    return np.asarray(gains - np.where(refused, gains / share, 0.0))


def compare_offline(paced: Paced, offline: Offline) -> dict[str, Any]:
    """Return what a way of pacing brings, as shares of the offline optimum and of the budget; None of an optimum of zero."""
    gain = offline.value - paced.base
    return {
        "value": paced.value / offline.value if offline.value else None,
        "gain": (paced.value - paced.base) / gain if gain > 0 else None,
        "use": paced.use,
        "committed": paced.committed / paced.total if paced.total else 0.0,
        "short": float(np.mean(paced.reasons == Reason.BUDGET)),
        "kept": paced.kept,
        "redeemed": paced.redeemed,
        "refused": int(paced.refused.sum()),
    }


@dataclass(frozen=True, eq=False)
class Course:
    """How a stream went, at points in time: amounts since the start, in units."""

    days: Array  # (p,)
    price: Array  # (p,) the mean since the point before; NaN where nobody came
    spent: Array  # (p,)
    held: Array  # (p,) spent, or promised and neither redeemed nor over
    value: Array  # (p,) expected responses beyond what the cheapest levels bring


def trace_course(
    stream: Stream, levels: Array, prices: Array | None = None, *, refused: Array | None = None, points: int = 31
) -> Course:
    """Return how a stream went that was decided by these levels (n,); `refused` (n,) are not paid."""
    rows = np.arange(len(stream))
    at = np.linspace(0, stream.terms.days, points)
    valid = np.inf if stream.terms.valid is None else stream.terms.stands
    face, at_once = (part[rows, levels] / MICROS for part in (stream.customers.face, stream.customers.at_once))
    redeemed = stream.chance < stream.redeems[rows, levels]
    redeemed = redeemed if refused is None else redeemed & ~refused
    bought = stream.times + np.where(redeemed, stream.delay, np.inf)
    over = np.where(redeemed, np.inf, stream.times + valid)
    gain = count_gains(stream, levels, refused)
    promised = _add_up(stream.times, at_once + face, at)
    price = np.full(points, np.nan)
    if prices is not None:
        edges = np.searchsorted(stream.times, at)
        for i in range(1, points):
            price[i] = prices[edges[i - 1] : edges[i]].mean() if edges[i] > edges[i - 1] else np.nan
        price[0] = price[1]
    return Course(
        days=at,
        price=price,
        spent=_add_up(stream.times, at_once, at) + _add_up(bought, face, at),
        held=promised - _add_up(over, face, at),
        value=_add_up(stream.times, gain, at),
    )


def _add_up(times: Array, amounts: Array, at: Array) -> Array:
    """Return the sum of the amounts (n,) of times until each of some points (p,)."""
    order = np.argsort(times, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(amounts[order])])
    return np.asarray(sums[np.searchsorted(times[order], at, side="right")])


# -- the offline optimum: a plan for all customers at once, made afterwards -----------------------------------------------


@dataclass(frozen=True)
class Offline:
    """What the best plan for a whole stream would have brought, by the truth."""

    value: float  # with responses as the model sees them, and costs as they turned out
    bound: float  # with all true responses and costs: no way to decide is worth more
    price: float  # of one more unit of budget
    spend: float  # expected, in the end
    unreserved: float  # as `value`, for a plan that need not keep promised money at hand
    levels: Array  # (n,)


def plan_offline(stream: Stream) -> Offline:
    """Return the offline optimum of a stream."""
    later = stream.customers.on_redemption and stream.terms.kept
    many = POINTS if later else 1
    same, levels, price = _solve(stream, many, reserve=stream.terms.kept)
    knowing = _bound(stream, many)
    free = _solve(stream, 1, reserve=False)[0] if later else same
    rows = np.arange(len(stream))
    paid = (stream.customers.at_once + stream.customers.face * stream.redeems)[rows, levels] / MICROS
    return Offline(same, knowing, price, float(paid.sum()), free, levels)


def _solve(stream: Stream, many: int, *, reserve: bool = True) -> tuple[float, Array, float]:
    """Return the true value of the best plan by the model's responses and true costs, its levels and its price."""
    found = solve_dual(
        stream.customers, stream.redeems, _when(stream, many, reserve), many, stream.terms.total / MICROS
    )
    value = float(stream.truth[np.arange(len(stream)), found.levels].sum()) + found.slack
    return value, found.levels, float(found.prices.sum())


def _bound(stream: Stream, many: int) -> float:
    knowing = replace(stream.customers, responses=stream.truth)
    return solve_dual(
        knowing, stream.redeems, _when(stream, many, stream.terms.kept), many, stream.terms.total / MICROS
    ).bound


def _when(stream: Stream, many: int, reserve: bool) -> Array:
    return place(stream.times, stream.terms.stands if reserve else 0.0, stream.terms.days, many)
