"""What plans at other budgets would be, for readers who play with the budget: exact at a few dozen of them.

At a price, every step up a hull is taken that brings at least the price. What that costs is a budget, and the plan for this
very budget takes the same steps: nothing is left over. So prices are chosen whose budgets lie about evenly, and customers are
asked once what they cost and bring at all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from largesse.allocation.passes.questions import Average, SpendAt, Sums, add_up
from largesse.allocation.plan import decide_at_price
from largesse.allocation.scored import Scored
from largesse.allocation.spending import EVEN, budget_at, correct
from largesse.records import Array, Spending

COUNT = 60  # stops, at most
TRIED = 2000  # prices, of which those are kept whose budgets lie about evenly
ROOM = 1e-10  # relative: a budget that is rounded down would be too small for the last step
FAR = 1e4  # the steepest steps bring this many times what steps bring on average, the flattest that much less


@dataclass(frozen=True)
class Stop:
    """The plan at one budget: averages per customer, as in `Plan`, and how many customers get each level."""

    budget: float
    spend: float
    value: float
    price: float
    counts: tuple[int, ...]


@dataclass(frozen=True)
class PlansAt:
    """Asks for what plans at several prices cost and bring, and how many customers they give each level."""

    prices: tuple[float, ...]

    def of(self, rows: Array, curves: Array, costs: Array) -> Sums:
        """Return for each price the sums of costs and of responses, and the customers at each level."""
        wide, every, found = np.broadcast_to(costs, curves.shape), np.arange(len(curves)), []
        for price in self.prices:
            levels = decide_at_price(curves, costs, price)
            found += [add_up(wide[every, levels]), add_up(curves[every, levels])]
            counts = np.bincount(levels, minlength=curves.shape[1])
            found += [add_up(np.array([count], dtype=np.float64)) for count in counts]
        return Sums(len(rows), np.stack(found))


def find_stops(
    scored: Scored, spending: Spending | None = None, confidence: float = EVEN, count: int = COUNT
) -> tuple[Stop, ...]:
    """Return plans at up to `count` budgets, the smallest first: each is the plan that `price_plan` makes at its budget.

    Where costs are expected, not known, budgets are those for which `correct_scored` and `price_plan` make this plan.

    >>> from largesse.allocation.scored import hold_scores
    >>> [(round(stop.budget, 6), stop.counts) for stop in find_stops(hold_scores([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]], [0, 1, 2]))]
    [(0.0, (2, 0, 0)), (1.0, (1, 0, 1)), (1.5, (0, 1, 1)), (2.0, (0, 0, 2))]
    """
    prices = _choose_prices(scored, count)
    sums = np.array(scored.ask(PlansAt(prices)).totals).reshape(len(prices), -1).tolist()
    paid = None if spending is None else np.cumsum(scored.ask(SpendAt(spending.price)).means)
    found: dict[tuple[int, ...], Stop] = {}
    # Nothing is bought at the first price: it could be any higher one.
    for price, (cost, value, *counts) in zip((math.inf, *prices[1:]), sums, strict=True):
        stop = Stop(cost / scored.n, cost / scored.n, value / scored.n, price, tuple(int(each) for each in counts))
        corrected = stop if spending is None or paid is None else _correct_stop(stop, paid, spending, confidence)
        if corrected is not None:  # of prices that make one plan, the last stands
            found[stop.counts] = replace(corrected, budget=corrected.budget * (1 + ROOM))
    return tuple(found.values())


def _choose_prices(scored: Scored, count: int) -> tuple[float, ...]:
    """Return falling prices whose plans cost about evenly more from one to the next; the last is zero."""
    _, *each = scored.ask(Average()).means
    half = len(each) // 2
    costs, responses = np.array(each[:half]), np.array(each[half:])
    typical = float(np.ptp(responses) / np.ptp(costs)) if np.ptp(costs) > 0 and np.ptp(responses) > 0 else 1.0
    tried = (math.inf, *(typical * np.geomspace(FAR, 1 / FAR, TRIED)).tolist(), 0.0)
    spend = np.cumsum(scored.ask(SpendAt(tried[1:])).means)
    wanted = np.linspace(spend[0], spend[-1], count)
    near = np.searchsorted(spend, wanted, side="left").clip(0, len(spend) - 1)
    kept = sorted({0, len(tried) - 1, *near.tolist()})
    return tuple(tried[place] if place else typical * FAR * FAR for place in kept)


def _correct_stop(stop: Stop, paid: Array, spending: Spending, confidence: float) -> Stop | None:
    """Return a stop at the budget that makes its plan where costs are expected; None where no budget does."""
    budget = budget_at(paid, stop.spend, spending, confidence)
    fix = correct(paid, budget, spending, confidence)
    if not math.isclose(budget, stop.spend * fix.scale, rel_tol=1e-9):
        return None
    return Stop(budget, stop.spend * fix.ratio, stop.value, stop.price / fix.scale, stop.counts)
