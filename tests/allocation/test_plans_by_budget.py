"""Plans at other budgets: each point is the plan that `allocate` makes at its budget, and so is who gets what."""

import operator
from functools import reduce
from typing import Any

import numpy as np
import pytest

from largesse.allocation import (
    BudgetPoint,
    PriceSums,
    allocate,
    count_levels_at_budgets,
    count_levels_of_plans,
    find_budget_points,
    find_cost_correction,
    sum_plans_at_prices,
)
from largesse.allocation.price.upper_hulls import convert_to_kernel_arrays
from largesse.records import Array, SpendingCurve
from largesse.stats import draw_levels_for_rows

SPENDING = SpendingCurve((3.0, 0.3, 0.1, 0.0), (0.0, 0.4, 1.2, 2.5), (0.0, 0.5, 1.3, 2.9), (0.0, 0.05, 0.08, 0.1))


def make_task(n: int = 3000, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    curves = np.cumsum(rng.exponential(0.1, (n, 4)), axis=1)
    return convert_to_kernel_arrays(curves, np.array([0.0, 1.0, 2.0, 4.0]) * (curves if seed else 1.0))


def make_groups(n: int) -> Array:
    """Return two features, of three and of two groups, and everyone."""
    rows = np.arange(n)
    return np.column_stack([rows % 3, 3 + rows // (n // 2 + 1), np.full(n, 5)])


def find_points(curves: Array, costs: Array, *args: Any, **settings: Any) -> tuple[BudgetPoint, ...]:
    return find_budget_points(lambda prices: sum_plans_at_prices(curves, costs, prices), *args, **settings)


def count(points: Any, curves: Array, costs: Array, explore: float = 0.0, seed: int = 0) -> tuple[Array, Array]:
    rows = np.arange(len(curves))
    return count_levels_at_budgets(points, (rows, curves, costs), make_groups(len(curves)), 6, explore, seed)


def count_plainly(levels: Array, curves: Array, costs: Array) -> tuple[Array, Array]:
    """Return the customers (groups, K) at each level and what the groups cost, one customer after the other."""
    counts, paid = np.zeros((6, curves.shape[1]), dtype=np.int64), np.zeros(6)
    wide = np.broadcast_to(costs, curves.shape)
    for row, level in enumerate(levels):
        for group in make_groups(len(curves))[row]:
            counts[group, level] += 1
            paid[group] += wide[row, level]
    return counts, paid


def plan_at(curves: Array, costs: Array, budget: float, scale: float = 1.0) -> Any:
    return allocate(curves, (costs if len(costs) > 1 else costs[0]) * scale, budget)


@pytest.mark.parametrize(("seed", "explore"), [(0, 0.0), (1, 0.0), (0, 0.2), (1, 0.2)])
def test_points_are_the_plans_at_their_budgets_and_so_is_who_gets_what(seed: int, explore: float) -> None:
    curves, costs = make_task(seed=seed)
    points = find_points(curves, costs, explore=explore)
    assert len(points) > 40
    counts, paid = count(points, curves, costs, explore, 7)
    random = float(np.broadcast_to(costs, curves.shape).mean())
    for k in np.linspace(1, len(points) - 2, 20).astype(int):
        rest = (points[k].budget - explore * random) / (1 - explore)
        plan = plan_at(curves, costs, rest)
        value = (1 - explore) * plan.value + explore * float(curves.mean())
        assert ((1 - explore) * plan.spend + explore * random, value) == pytest.approx(
            (points[k].spend, points[k].value), rel=1e-9
        )
        assert points[k + 1].price <= plan.price <= points[k - 1].price
        levels = plan.levels
        if explore:
            mixed = explore / 4 + (1 - explore) * np.eye(4)[levels]
            levels = draw_levels_for_rows(mixed, np.arange(len(levels)), 7)
        plain = count_plainly(levels, curves, costs)
        assert (counts[k] == plain[0]).all()
        assert paid[k] == pytest.approx(plain[1], rel=1e-9)


def test_points_allow_for_the_real_costs_of_plans() -> None:
    curves, costs = make_task(seed=1)
    points = find_points(curves, costs, SPENDING, 0.9)
    assert len(points) > 20
    counts, _ = count(points, curves, costs)
    for k in range(1, len(points) - 1, 3):
        point = points[k]
        fix = find_cost_correction(curves, costs, point.budget, SPENDING, 0.9)
        plan = plan_at(curves, costs, point.budget, fix.scale)
        assert (counts[k] == count_plainly(plan.levels, curves, costs)[0]).all()
        assert plan.value == pytest.approx(point.value, rel=1e-12)
        assert plan.spend / fix.scale * fix.ratio == pytest.approx(point.spend, rel=1e-9)
        assert point.ratio == pytest.approx(fix.ratio, rel=1e-9)


def test_sums_and_counts_of_batches_add_up() -> None:
    curves, costs = make_task(500, seed=1)
    cut = [slice(at, at + 130) for at in range(0, 500, 130)]

    def sums_at(prices: Any) -> PriceSums:
        return reduce(operator.add, [sum_plans_at_prices(curves[part], costs[part], prices) for part in cut])

    points = find_points(curves, costs)
    parts = find_budget_points(sums_at)
    assert [point.budget for point in parts] == pytest.approx([point.budget for point in points], rel=1e-12)
    assert (np.diff([point.budget for point in points]) > 0).all()
    whole, groups, rows = count(points, curves, costs, 0.3, 1), make_groups(500), np.arange(500)
    batches = [
        count_levels_at_budgets(points, (rows[part], curves[part], costs[part]), groups[part], 6, 0.3, 1)
        for part in cut
    ]
    assert (sum(counts for counts, _ in batches) == whole[0]).all()
    assert sum(paid for _, paid in batches) == pytest.approx(whole[1])
    assert (whole[0][:, 5].sum(axis=1) == 500).all()


def test_listed_levels_are_counted_like_those_of_prices() -> None:
    curves, costs = make_task(300, seed=1)
    points = find_points(curves, costs)
    levels = np.stack([plan_at(curves, costs, point.budget).levels for point in points])
    listed = count_levels_of_plans(levels, (np.arange(300), curves, costs), make_groups(300), 6)
    counts, paid = count(points, curves, costs)
    assert (listed[0] == counts).all()
    assert listed[1] == pytest.approx(paid)


def test_customers_for_whom_nothing_pays_have_one_point_and_no_point_counts_nothing() -> None:
    curves, costs = convert_to_kernel_arrays(np.full((5, 3), 0.2), np.array([0.0, 1.0, 2.0]))
    (point,) = find_points(curves, costs)
    assert (point.budget, point.value) == (0.0, pytest.approx(0.2))
    assert [part.shape for part in count((), *make_task(10))] == [(0, 6, 4), (0, 6)]


@pytest.mark.parametrize(("seed", "spending"), [(0, None), (1, None), (1, SPENDING)])
@pytest.mark.parametrize("worth", [2.0, 8.0, 50.0, 1e-6])
def test_one_point_takes_every_step_that_brings_what_it_costs(
    seed: int, spending: SpendingCurve | None, worth: float
) -> None:
    curves, costs = make_task(400, seed=seed)
    (point,) = [point for point in find_points(curves, costs, spending, worth=worth) if point.breaks_even]
    scale = find_cost_correction(curves, costs, point.budget, spending).scale
    plan = plan_at(curves, costs, point.budget, scale)
    assert plan.value == pytest.approx(point.value)
    net = worth * curves - np.broadcast_to(costs * scale, curves.shape)
    chosen = net[np.arange(400), plan.levels]
    if spending is None:  # nobody could do better for what a response is worth
        assert chosen == pytest.approx(net.max(axis=1), abs=1e-12)
    else:  # the scale of costs changes with the budget: prices are met to a hundredth
        assert chosen.mean() == pytest.approx(net.max(axis=1).mean(), rel=1e-3, abs=1e-9)
    assert not any(other.breaks_even for other in find_points(curves, costs, spending))
