"""What plans at other budgets would be, for readers who play with the budget: exact at a few dozen of them.

At a price, every step up a hull is taken that brings at least the price. What that costs is a budget, and the plan for this
very budget takes the same steps: nothing is left over. So prices are chosen whose budgets lie about evenly, and customers are
asked once what they cost and bring at all of them. Who gets what is counted step by step, not price by price: a step belongs
to the first price that takes it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from largesse.allocation.explore import mix_levels
from largesse.allocation.passes.questions import Average, SpendAt, Sums
from largesse.allocation.passes.sums import CHUNKS, carry
from largesse.allocation.scored import Scored
from largesse.allocation.spending import EVEN, budget_at, correct
from largesse.records import Array, Spending
from largesse.stats import draw_rows_levels

COUNT = 60  # stops, at most
TRIED = 2000  # prices, of which those are kept whose budgets lie about evenly
ROOM = 1e-10  # relative: a budget that is rounded down would be too small for the last step
FAR = 1e4  # the steepest steps bring this many times what steps bring on average, the flattest that much less
DIGITS = 30  # binary digits of the mean cost that counts of costs keep


@dataclass(frozen=True)
class Stop:
    """The plan at one budget: averages per customer, as in `Plan`."""

    budget: float
    spend: float
    value: float
    price: float
    at: float = (
        math.nan
    )  # steps that bring at least this are taken, by costs as they are expected; NaN: no price makes it
    ratio: float = 1.0  # what expected costs are multiplied by to be what is really paid
    pays: bool = False  # whether it takes every step that brings what it costs, and no other


@dataclass(frozen=True)
class PlansAt:
    """Asks for what plans at several prices cost and bring."""

    prices: tuple[float, ...]  # falling

    def of(self, rows: Array, curves: Array, costs: Array) -> Sums:
        """Return the sums of the cheapest costs and of what comes on top at each price, then the same of responses."""
        from largesse.allocation.passes.kernels import plans_at

        sums = np.zeros((2, len(self.prices) + 1, CHUNKS), dtype=np.int64)
        plans_at(curves, costs, np.array(self.prices, dtype=np.float64), sums[0], sums[1])
        return Sums(len(rows), carry(sums.reshape(-1, CHUNKS)))


def find_stops(
    scored: Scored,
    spending: Spending | None = None,
    confidence: float = EVEN,
    *,
    explore: float = 0.0,
    worth: float | None = None,
    count: int = COUNT,
) -> tuple[Stop, ...]:
    """Return plans at up to `count` budgets, the smallest first: each is the plan that `price_plan` makes at its budget.

    Where costs are expected, not known, budgets are those for which `correct_scored` and `price_plan` make this plan. With
    what one unit of response is `worth`, the plan is among them that takes every step which brings what it costs.

    >>> from largesse.allocation.scored import hold_scores
    >>> scored = hold_scores([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]], [0, 1, 2])
    >>> [(round(stop.budget, 6), round(stop.value, 3)) for stop in find_stops(scored)]
    [(0.0, 0.15), (1.0, 0.5), (1.5, 0.65), (2.0, 0.7)]
    """
    _, *each = scored.ask(Average()).means
    listed, expected = np.array(each[: len(each) // 2]), np.array(each[len(each) // 2 :])
    paid = None if spending is None else np.cumsum(scored.ask(SpendAt(spending.price)).means)

    def scale(spend: float) -> float:
        """Return what a plan's expected costs are multiplied by."""
        if spending is None or paid is None:
            return 1.0
        return correct(paid, budget_at(paid, spend, spending, confidence), spending, confidence).scale

    prices, break_even = _choose_prices(scored, listed, expected, count, worth, scale)
    steps = np.array(scored.ask(PlansAt(prices[1:])).means).reshape(2, len(prices))
    found: dict[tuple[float, float], Stop] = {}
    for price, cost, value in zip(prices, *np.cumsum(steps, axis=1).tolist(), strict=True):
        spend = (1 - explore) * cost + explore * float(listed.mean())
        stop = Stop(spend, spend, (1 - explore) * value + explore * float(expected.mean()), price, price)
        corrected = stop if spending is None or paid is None else _correct_stop(stop, paid, spending, confidence)
        if corrected is not None:  # of prices that make one plan, the last stands
            same = found.get((stop.spend, stop.value))
            pays = price == break_even or (same is not None and same.pays)
            found[stop.spend, stop.value] = replace(corrected, budget=corrected.budget * (1 + ROOM), pays=pays)
    return tuple(found.values())


def _choose_prices(
    scored: Scored,
    listed: Array,
    expected: Array,
    count: int,
    worth: float | None,
    scale: Callable[[float], float],
) -> tuple[tuple[float, ...], float | None]:
    """Return falling prices whose plans cost about evenly more from one to the next; nothing is bought at the first.

    `listed` and `expected` (K,) are what levels cost and bring on average. Where a unit of response is `worth` something, the
    lowest price at which a unit of cost, times its scale, still brings its worth is among them, and comes second.
    """
    typical = float(np.ptp(expected) / np.ptp(listed)) if np.ptp(listed) > 0 and np.ptp(expected) > 0 else 1.0
    inner = [*(typical * np.geomspace(FAR, 1 / FAR, TRIED)).tolist(), *([] if worth is None else [1 / worth])]
    tried = (math.inf, *sorted(inner, reverse=True), 0.0)
    spend = np.cumsum(scored.ask(SpendAt(tried[1:])).means)
    wanted = np.linspace(spend[0], spend[-1], count)
    near = np.searchsorted(spend, wanted, side="left").clip(0, len(spend) - 1)
    kept, last = {0, len(tried) - 1, *near.tolist()}, None
    if worth is not None:
        short = bisect_left(
            range(len(tried)), True, key=lambda k: tried[k] < (1 - ROOM) * scale(float(spend[k])) / worth
        )
        last = max(short - 1, 0)
        kept.add(last)
    return tuple(tried[place] for place in sorted(kept)), None if last is None else tried[last]


def _correct_stop(stop: Stop, paid: Array, spending: Spending, confidence: float) -> Stop | None:
    """Return a stop at the budget that makes its plan where costs are expected; None where no budget does."""
    budget = budget_at(paid, stop.spend, spending, confidence)
    fix = correct(paid, budget, spending, confidence)
    if not math.isclose(budget, stop.spend * fix.scale, rel_tol=1e-9):
        return None
    return Stop(budget, stop.spend * fix.ratio, stop.value, stop.price / fix.scale, stop.at, fix.ratio)


# -- who gets what ----------------------------------------------------------------------------------------------------


def choose_unit(stops: Sequence[Stop]) -> float:
    """Return the unit in which costs are counted at stops: whole numbers of it are added, so batches change nothing."""
    most = max((stop.spend for stop in stops), default=0.0)
    return 2.0 ** (math.frexp(most)[1] - DIGITS) if 0 < most < math.inf else 1.0


def count_stops(
    stops: Sequence[Stop], batch: tuple[Array, Array, Array], groups: Array, many: int, explore: float, seed: int
) -> Array:
    """Count who gets what at each stop, in a batch of customers: row numbers (n,), curves (n, K) and costs as expected.

    `groups` (n, g) are the groups of each customer, of which there are `many`. Returns (stops, many, K + 1): the customers at
    each level and, in the last column, what they are expected to cost, in units of `choose_unit`. Where a share explores,
    these are the levels that a plan with this seed draws.
    """
    from largesse.allocation.passes.kernels import count_at

    rows, curves, costs = batch
    K = curves.shape[1]
    counts = np.zeros((len(stops), many, K + 1), dtype=np.int64)
    if not stops:
        return counts
    drawn = np.zeros((0, K), dtype=np.int64)
    if explore:
        every = [np.broadcast_to(mix_levels(np.eye(K)[k : k + 1], explore), curves.shape) for k in range(K)]
        drawn = np.column_stack([draw_rows_levels(each, rows, seed) for each in every])
    prices = np.array([stop.at for stop in stops])
    count_at(curves, costs, prices, drawn, np.ascontiguousarray(groups), choose_unit(stops), counts)
    return np.cumsum(counts, axis=0)


def count_levels(stops: Sequence[Stop], levels: Array, curves: Array, costs: Array, groups: Array, many: int) -> Array:
    """Count as `count_stops` does where the levels (stops, n) of plans at all stops are known."""
    K, unit, wide = curves.shape[1], choose_unit(stops), np.broadcast_to(costs, curves.shape)
    counts = np.zeros((len(stops), many, K + 1), dtype=np.int64)
    for place, given in enumerate(levels):
        paid = np.rint(wide[np.arange(len(given)), given] / unit).astype(np.int64)
        for own in groups.T:
            np.add.at(counts[place], (own, given), 1)
            np.add.at(counts[place, :, K], own, paid)
    return counts
