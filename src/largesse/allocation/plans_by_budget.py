"""Best plans at up to 60 budgets for the report, and the best mix of two levels for all customers.

At a price, every step up a hull is taken that brings at least the price. `allocate` makes this very plan if the budget is
its cost: nothing is left over. So prices are chosen whose budgets are evenly spaced, and one pass over the customers gives
cost and value at all of them. It needs only `PriceSums` and counts of levels, which add up over batches.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from largesse.allocation.cost_calibration import BUDGET_CONFIDENCE, correct_expected_costs, find_budget_for_spend
from largesse.records import Array, SpendingCurve
from largesse.stats import draw_levels_for_rows

MAX_GRID_BUDGETS = 60  # budgets at most
TRIED_PRICES = 2000  # those whose budgets are evenly spaced are kept
BUDGET_MARGIN = 1e-10  # relative: a budget that is rounded down would be too small for the last step
SLOPE_RANGE = 1e4  # the steepest steps bring this many times as much as steps on average, the flattest that much less


@dataclass(frozen=True, eq=False)
class PriceSums:
    """Total cost and response of plans at decreasing shadow prices, and of each level for everyone.

    The sums of batches can be added.
    """

    n: int
    spend: Array  # (m + 1,) at the cheapest levels, and what comes on top at each price
    value: Array  # (m + 1,)
    level_costs: Array  # (K,) if everyone gets the level
    level_responses: Array  # (K,)

    def __add__(self, other: PriceSums) -> PriceSums:
        return PriceSums(
            self.n + other.n,
            self.spend + other.spend,
            self.value + other.value,
            self.level_costs + other.level_costs,
            self.level_responses + other.level_responses,
        )

    @property
    def mean_spend(self) -> Array:
        """Average cost per customer (m + 1,) of the cheapest plan and of the plan at each shadow price."""
        return np.asarray(np.cumsum(self.spend) / self.n)

    @property
    def mean_value(self) -> Array:
        """Average response per customer (m + 1,) of the cheapest plan and of the plan at each shadow price."""
        return np.asarray(np.cumsum(self.value) / self.n)


@dataclass(frozen=True)
class BudgetPoint:
    """Plan at one budget: average cost and response per customer, and the budget's shadow price."""

    budget: float
    spend: float
    value: float
    price: float
    # Steps that bring at least this are taken, by costs as they are expected; NaN: no price makes the plan.
    threshold: float = math.nan
    ratio: float = 1.0  # what expected costs are multiplied by to be what is really paid
    breaks_even: bool = False  # whether it takes every step that brings what it costs, and no other


def sum_plans_at_prices(curves: Array, costs: Array, prices: Sequence[float]) -> PriceSums:
    """Sum the costs and responses of the plans at decreasing shadow prices (m,).

    Curves are (n, K), cost rows (1, K) or (n, K).
    """
    from largesse.allocation.price_grid_kernels import add_costs_and_values

    spend, value = np.zeros(len(prices) + 1), np.zeros(len(prices) + 1)
    add_costs_and_values(curves, costs, np.array(prices, dtype=np.float64), spend, value)
    level_costs = costs.sum(axis=0, dtype=np.float64) * (len(curves) / len(costs))
    return PriceSums(len(curves), spend, value, level_costs, curves.sum(axis=0, dtype=np.float64))


def find_budget_points(
    sums_at: Callable[[Sequence[float]], PriceSums],
    spending: SpendingCurve | None = None,
    confidence: float = BUDGET_CONFIDENCE,
    *,
    explore: float = 0.0,
    worth: float | None = None,
) -> tuple[BudgetPoint, ...]:
    """Find the best plans at up to `MAX_GRID_BUDGETS` budgets, in ascending order of budget.

    They are the plans that `allocate` makes.

    `sums_at` returns the sums of all customers at falling prices. Where costs are expected, not known, budgets are those for
    which their correction and `allocate` make this plan. With the `worth` of one unit of response, the plan is among them that
    takes every step worth its cost.

    >>> curves, costs = np.array([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]]), np.array([[0.0, 1.0, 2.0]])
    >>> points = find_budget_points(lambda prices: sum_plans_at_prices(curves, costs, prices))
    >>> [(round(point.budget, 6), round(point.value, 3)) for point in points]
    [(0.0, 0.15), (1.0, 0.5), (1.5, 0.65), (2.0, 0.7)]
    """
    sums = sums_at(() if spending is None else spending.price)
    level_costs, level_responses = sums.level_costs / sums.n, sums.level_responses / sums.n
    paid = None if spending is None else sums.mean_spend

    def scale(spend: float) -> float:
        """Return the factor that corrects a plan's expected costs."""
        if spending is None or paid is None:
            return 1.0
        return correct_expected_costs(
            paid, find_budget_for_spend(paid, spend, spending, confidence), spending, confidence
        ).scale

    tried = _list_candidate_prices(level_costs, level_responses, worth)
    at_prices = sums_at(tried[1:])
    places, even_place = _choose_prices(tried, at_prices.mean_spend, worth, scale)
    points: dict[tuple[float, float], BudgetPoint] = {}
    for place in places:
        price, cost, value = tried[place], float(at_prices.mean_spend[place]), float(at_prices.mean_value[place])
        spend = (1 - explore) * cost + explore * float(level_costs.mean())
        expected = (1 - explore) * value + explore * float(level_responses.mean())
        point = BudgetPoint(spend, spend, expected, price, price)
        corrected = (
            point if spending is None or paid is None else _correct_budget_point(point, paid, spending, confidence)
        )
        if corrected is not None:  # of prices that make one plan, the last stands
            same = points.get((point.spend, point.value))
            even = place == even_place or (same is not None and same.breaks_even)
            budget = corrected.budget * (1 + BUDGET_MARGIN)
            points[point.spend, point.value] = replace(corrected, budget=budget, breaks_even=even)
    return tuple(points.values())


def _list_candidate_prices(level_costs: Array, level_responses: Array, worth: float | None) -> tuple[float, ...]:
    """Return decreasing shadow prices, from one that buys nothing to one that buys every useful level increase.

    `level_costs` and `level_responses` (K,) are averages.
    """
    more, gain = float(np.ptp(level_costs)), float(np.ptp(level_responses))
    typical = gain / more if more > 0 and gain > 0 else 1.0
    slopes = typical * np.geomspace(SLOPE_RANGE, 1 / SLOPE_RANGE, TRIED_PRICES)
    return math.inf, *sorted([*slopes.tolist(), *([] if worth is None else [1 / worth])], reverse=True), 0.0


def _choose_prices(
    tried: Sequence[float], spend: Array, worth: float | None, scale: Callable[[float], float]
) -> tuple[list[int], int | None]:
    """Choose shadow prices whose plans have about evenly spaced costs, and find the break-even price.

    Returns their places among the tried prices, by the spend (m,) at each.

    Where a unit of response is `worth` something, the lowest price at which a unit of cost, times its scale, still brings its
    worth is among the prices, and comes second.
    """
    wanted = np.linspace(spend[0], spend[-1], MAX_GRID_BUDGETS)
    near = np.searchsorted(spend, wanted, side="left").clip(0, len(spend) - 1)
    chosen, last = {0, len(tried) - 1, *near.tolist()}, None
    if worth is not None:
        short = bisect_left(
            range(len(tried)), True, key=lambda k: tried[k] < (1 - BUDGET_MARGIN) * scale(float(spend[k])) / worth
        )
        last = max(short - 1, 0)
        chosen.add(last)
    return sorted(chosen), last


def _correct_budget_point(
    point: BudgetPoint, paid: Array, spending: SpendingCurve, confidence: float
) -> BudgetPoint | None:
    """Return the plan at the corrected budget, or None if no budget leads to this plan."""
    budget = find_budget_for_spend(paid, point.spend, spending, confidence)
    fix = correct_expected_costs(paid, budget, spending, confidence)
    if not math.isclose(budget, point.spend * fix.scale, rel_tol=1e-9):
        return None
    price = point.price / fix.scale
    return BudgetPoint(budget, point.spend * fix.ratio, point.value, price, point.threshold, fix.ratio)


# -- counts of levels ----------------------------------------------------------------------------------------------------


def count_levels_at_budgets(
    points: Sequence[BudgetPoint],
    batch: tuple[Array, Array, Array],
    groups: Array,
    n_groups: int,
    explore: float = 0.0,
    seed: int = 0,
) -> tuple[Array, Array]:
    """Count a batch's customers by level and group at each budget, and sum their expected costs.

    `batch` holds row numbers (n,), curves (n, K) and expected cost rows.

    `groups` (n, g) are the groups of each customer, of which there are `n_groups`. Returns the customers of each group at each
    level (points, n_groups, K), and what each group is expected to cost (points, n_groups). Where a share explores, these are
    the levels of one draw with this seed; a plan that exceeds its budget is drawn again. Counts of batches are added.
    """
    from largesse.allocation.price_grid_kernels import count_level_changes

    rows, curves, costs = batch
    K = curves.shape[1]
    counts, spend = np.zeros((len(points), n_groups, K), dtype=np.int64), np.zeros((len(points), n_groups))
    if not points:
        return counts, spend
    drawn = np.zeros((0, K), dtype=np.int64)
    if explore:
        every = [np.broadcast_to(explore / K + (1 - explore) * best, curves.shape) for best in np.eye(K)]
        drawn = np.column_stack([draw_levels_for_rows(each, rows, seed) for each in every])
    prices = np.array([point.threshold for point in points])
    count_level_changes(curves, costs, prices, drawn, np.ascontiguousarray(groups), counts, spend)
    return np.cumsum(counts, axis=0), np.cumsum(spend, axis=0)


def count_levels_of_plans(
    levels: Array, batch: tuple[Array, Array, Array], groups: Array, n_groups: int
) -> tuple[Array, Array]:
    """Count a batch's customers by level and group in several plans (plans, n), and sum the plans' costs."""
    _, curves, costs = batch
    K, wide = curves.shape[1], np.broadcast_to(costs, curves.shape)
    counts, spend = np.zeros((len(levels), n_groups, K), dtype=np.int64), np.zeros((len(levels), n_groups))
    for place, chosen in enumerate(levels):
        paid = wide[np.arange(len(chosen)), chosen]
        for group in groups.T:
            counts[place] += np.bincount(group * K + chosen, minlength=n_groups * K).reshape(n_groups, K)
            spend[place] += np.bincount(group, paid, minlength=n_groups)
    return counts, spend


# -- one mix of levels for everybody ----------------------------------------------------------------------------------


def mix_two_levels(value: Array, cost: Array, spend: float) -> Array:
    """Return the probabilities (K,) of the best mix of two levels for all customers, at an average cost.

    `value` and `cost` (K,) are the levels' means.

    Two levels suffice: one that costs no more, and one that costs no less.

    >>> mix_two_levels(np.array([0.0, 1.0, 1.2]), np.array([0.0, 1.0, 2.0]), 0.5)
    array([0.5, 0.5, 0. ])
    """
    within = np.flatnonzero(cost <= spend * (1 + 1e-12))
    best = int(within[np.argmax(value[within])]) if len(within) else int(np.argmin(cost))
    most, mix = float(value[best]) if len(within) else np.inf, np.eye(len(value))[best]
    for a in within:
        for b in np.flatnonzero(cost > spend * (1 + 1e-12)):
            share = (spend - cost[a]) / (cost[b] - cost[a])
            worth = (1 - share) * value[a] + share * value[b]
            if worth > most + 1e-12 * abs(most):
                most, mix = float(worth), (1 - share) * np.eye(len(value))[a] + share * np.eye(len(value))[b]
    return mix
