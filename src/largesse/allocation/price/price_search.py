"""Search for the shadow price of a budget: the value of one more unit of cost.

A sample of customers brackets the price. One pass over all customers permanently decides those who get the same level at
both ends of the bracket, which is nearly everybody; the others are sampled again until few are left, and among their
steps up the hull the price is selected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from largesse.allocation.price.upper_hulls import find_hull_steps
from largesse.records import Array

PRICE_SAMPLE_SIZE = 4096  # customers that bracket the price, and no more than an eighth of them
MAX_SORTED = 4096  # customers whose steps are looked at one by one
BRACKET_WIDTH = 4.0  # standard errors of the sample's spend on either side
MAX_WIDTH = 100.0  # then the bracket of the round before is taken instead
NUDGE = 1e-9  # relative; many customers may share a slope, and must all lie inside the bracket
SPEND_ROUNDING = 1e-12  # relative; running sums are rounded, the final check of a plan is exact


@dataclass(frozen=True, eq=False)
class PriceSolution:
    """Result of a shadow price search: price, level of each customer, totals, and customers close to a tie."""

    levels: Array  # (n,) ties split as far as the budget goes
    price: float
    value: list[float]  # its sum, and that of the spend, is exact to far more digits than a number holds
    spend: list[float]
    rows: Array  # (m,) the customers whose level hangs on the price


@dataclass(frozen=True)
class BudgetShortfall:
    """Cost of the cheapest plan if it exceeds the budget."""

    cheapest: float


@dataclass(eq=False)
class PriceSearch:
    """State of a shadow price search: bracket of the price, customers without a final level, and sums of all others.

    Whatever holds the customers, one array or a cluster, the same rounds lead to the same price: `draw_sample` of the
    undecided, `estimate_bracket`, classify all of the undecided by it, and `accept_bracket`.
    """

    limit: float
    undecided: int  # customers
    ends: tuple[float, float] = (math.inf, 0.0)
    known: float | None = None  # cost of the undecided at the high end
    width: float = BRACKET_WIDTH
    parted: bool = True  # whether the last bracket decided a good share of the customers
    decided: list[Array] = field(default_factory=list)
    room: float = field(init=False)  # of the budget, for the undecided
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def __post_init__(self) -> None:
        self.room = self.limit * (1 + SPEND_ROUNDING)

    def draw_sample(self) -> Array:
        """Draw the positions (size,) of a sample of customers whose best level still depends on the price.

        It is empty if there is no bracket to find.
        """
        if self.undecided > MAX_SORTED and self.width < MAX_WIDTH and self.limit < math.inf:
            return self.rng.integers(0, self.undecided, min(PRICE_SAMPLE_SIZE, self.undecided // 8))
        return np.zeros(0, dtype=np.int64)

    def estimate_bracket(self, curves: Array, costs: Array) -> tuple[float, float]:
        """Estimate a high and a low bound of the budget's shadow price, from a sample of customers.

        Between them the undecided customers spend the remaining budget.
        """
        size, m = len(curves), self.undecided
        if self.limit == math.inf:
            return 0.0, 0.0
        if not size:
            return self.ends
        start = find_levels_at_price(curves, costs, self.ends[0])
        steps = find_hull_steps(curves, costs, np.arange(size), start, self.ends[1])
        slope, cost = steps.slope, steps.cost
        # Once the cost at the high end is known, chance plays only in what comes on top.
        wide = np.broadcast_to(costs, curves.shape)
        base = wide[np.arange(size), start] if self.known is None else np.full(size, self.known / m)
        order = np.argsort(-slope)
        spent, goal = base.mean() + np.cumsum(cost[order]) / size, self.room / m
        taken = order[: np.searchsorted(spent, goal, side="right")]
        each = base + np.bincount(steps.place[taken], cost[taken], minlength=size)
        margin = self.width * (float(each.std()) + NUDGE * goal) / math.sqrt(size)
        above = int(np.searchsorted(spent, goal - margin, side="left"))
        below = int(np.searchsorted(spent, goal + margin, side="right"))
        ends = self.ends
        high = slope[order[above]] * (1 + NUDGE) if above < len(slope) and goal - margin > base.mean() else ends[0]
        low = slope[order[below]] * (1 - NUDGE) if below < len(slope) else ends[1]
        return float(min(high, ends[0])), float(max(low, ends[1]))

    def accept_bracket(self, inside: tuple[float, float], n_undecided: int, sums: Array) -> bool | BudgetShortfall:
        """Update the search by the sums at a price bracket; reject a bracket that excludes the budget's shadow price.

        The sums are those of `classify_rows`. False: the bracket must widen.
        """
        rest = self.room - sums[2]
        if sums[4] > rest and inside[0] == math.inf:
            return BudgetShortfall(float(sums[2] + sums[4]))
        if (sums[4] > rest and inside[0] < self.ends[0]) or (sums[5] <= rest and inside[1] > self.ends[1]):
            self.width *= 4
            return False
        self.decided.append(sums[:4])
        self.parted = n_undecided <= 0.7 * self.undecided  # else many customers share one curve: no bracket parts them
        self.undecided, self.ends, self.room, self.known = n_undecided, inside, rest, float(sums[4])
        return True


def search_price(
    curves: Array, costs: Array, limit: float, search: PriceSearch | None = None
) -> PriceSolution | BudgetShortfall:
    """Find the shadow price at which customers' best levels cost a total of `limit`.

    Curves are (n, K), cost rows (1, K) or (n, K).

    With a `search` that others have begun, these are the customers it has left undecided.
    """
    from largesse.allocation.price.price_kernels import classify_rows

    rows: Array | None = None  # the undecided; None is everybody
    if search is None:
        search, levels = PriceSearch(limit, len(curves)), np.empty(len(curves), dtype=np.int64)
    else:
        rows, levels = np.arange(len(curves)), find_levels_at_price(curves, costs, search.ends[0])
    while rows is None or (len(rows) > MAX_SORTED and search.parted):
        places = search.draw_sample()
        sample = places if rows is None else rows[places]
        inside = search.estimate_bracket(curves[sample], costs[sample] if len(costs) > 1 else costs)
        unsure = np.empty(search.undecided, dtype=np.int64)  # memory is touched only as far as it is filled
        n_undecided, sums = classify_rows(
            curves, costs, levels if rows is None else rows, rows is None, *inside, levels, unsure
        )
        accepted = search.accept_bracket(inside, n_undecided, sums)
        if isinstance(accepted, BudgetShortfall):
            return accepted
        if accepted:
            rows = unsure[:n_undecided]
    return _finish_search(curves, costs, rows, levels, search.ends[1], search.decided, limit)


def find_levels_at_price(curves: Array, costs: Array, price: float) -> Array:
    """Return the best levels (n,) at a shadow price, the cheapest if levels tie.

    At an infinite price they are the cheapest levels.
    """
    from largesse.allocation.price.price_kernels import classify_rows

    levels = np.empty(len(curves), dtype=np.int64)
    classify_rows(curves, costs, levels, True, price, price, levels, levels)
    return levels


def _finish_search(
    curves: Array, costs: Array, rows: Array, levels: Array, low: float, decided: list[Array], limit: float
) -> PriceSolution:
    """Select the shadow price among the remaining hull steps, and set the levels of the remaining customers."""
    from largesse.allocation.price.price_kernels import find_marginal_slope, sum_value_and_cost, take_hull_steps

    steps = find_hull_steps(curves, costs, rows, levels, low)
    before = sum_value_and_cost(curves, costs, rows, levels)
    room = limit * (1 + SPEND_ROUNDING) - math.fsum([*(s for sums in decided for s in sums[2:]), *before[2:]])
    price = find_marginal_slope(steps.slope, steps.cost, room)
    take_hull_steps(curves, costs, rows, levels, price, room)
    sums = [*decided, sum_value_and_cost(curves, costs, rows, levels)]
    value, spend = ([float(s) for terms in sums for s in terms[at : at + 2]] for at in (0, 2))
    return PriceSolution(levels, price, value, spend, rows)
