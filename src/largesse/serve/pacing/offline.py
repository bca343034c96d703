"""The offline optimum of a stream: what a plan for all its customers at once, made afterwards, could have brought.

It keeps the ledger's rule in expectation: at no time is more spent and promised than the total. Where promises hold while
the budget lasts, nothing is reserved: what levels cost in the mean is all that counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from largesse.records import Array
from largesse.serve.ledger.money import MICROS
from largesse.serve.pacing.dual import place, solve_dual
from largesse.serve.pacing.streams import Stream

POINTS = 48  # in time, the end of the period among them


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
