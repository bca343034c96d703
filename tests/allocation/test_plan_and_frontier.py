import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from largesse.allocation.plan_and_frontier import allocate, decide_at_price, frontier, split_ties_at_price
from largesse.errors import BudgetError
from largesse.records.array_type import Array
from support.plans import KINDS, concave, full_path, instances, linear_optimum, paid_by

# ---------------------------------------------------------------------------------------------- against HiGHS


@pytest.mark.parametrize("kind", KINDS)
def test_plans_keep_their_budget_exactly_and_certify_their_gap(kind: Any) -> None:
    for curves, costs, budget in instances(kind, 40):
        plan = allocate(curves, costs, budget)
        n, paid = len(curves), np.asarray(costs)
        assert plan.bound == pytest.approx(linear_optimum(curves, costs, budget), abs=1e-9)
        assert plan.value == math.fsum(curves[np.arange(n), plan.levels]) / n
        assert plan.gap <= full_path(curves, paid).gain.max(initial=0.0) / n + 1e-12  # one customer's step
        assert paid_by(plan.levels, costs, curves.shape) <= budget * n
        assert plan.spend <= budget == plan.budget
        total = allocate(curves, costs, total=budget * n)
        assert paid_by(total.levels, costs, curves.shape) <= budget * n
        # The price alone overspends by no more than one step.
        levels, step = decide_at_price(curves, paid, plan.price), np.ptp(np.broadcast_to(costs, curves.shape), axis=1)
        assert paid_by(levels, costs, curves.shape) <= budget * n + step.max() + 1e-9


def test_budgets_that_floats_cannot_write_are_kept_and_met() -> None:
    plan = allocate(np.tile([0.1, 0.5], (3, 1)), [0.1, 0.4], budget=0.1)
    assert plan.spend <= 0.1 == plan.budget
    dimes = allocate(np.tile([0.0, 1.0], (10, 1)), [0.0, 0.1], total=sum([0.1] * 10))  # 0.9999999999999999
    assert paid_by(dimes.levels, np.array([0.0, 0.1]), (10, 2)) <= sum([0.1] * 10)
    costs = np.array([[3.931862852], [3.055738491], [0.436795492]])
    assert allocate(np.ones((3, 1)), costs, float(np.mean(costs)) * (1 - 1e-15)).levels.tolist() == [0, 0, 0]
    assert frontier(np.full((6, 1), 0.5), [0.7]).at(0.7) == pytest.approx(0.5)


def test_unit_steps_and_concave_curves_leave_no_gap_at_whole_budgets() -> None:
    rng = np.random.default_rng(3)
    curves, costs = concave(rng, 20, 5)
    for total in range(81):
        assert allocate(curves, costs, total=total).gap < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_frontier_is_the_linear_optimum_at_every_budget_rises_and_bends_down(kind: Any) -> None:
    for place, (curves, costs, budget) in enumerate(instances(kind, 40)):
        front = frontier(curves, costs)
        assert (np.diff(front.spend) > 0).all()
        assert (np.diff(front.value) > 0).all()
        assert front.price[0] == math.inf
        assert (np.diff(front.price[1:]) < 0).all()
        slopes = np.diff(front.value) / np.diff(front.spend)
        np.testing.assert_allclose(slopes, front.price[1:], rtol=1e-6, atol=1e-9)
        budgets = [budget, *front.spend[:: max(len(front) // 3, 1)], *np.quantile(front.spend, (0.3, 0.8)), 99.0]
        for at in budgets if place < 15 else ():
            if at >= front.spend[0]:
                assert front.at(at) == pytest.approx(linear_optimum(curves, costs, at + 1e-12), abs=1e-9)


def test_frontier_says_what_lies_outside_it() -> None:
    front = frontier([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]], costs=[1, 2, 3])
    assert math.isnan(front.at(0.99))
    assert front.at(99) == front.value[-1]
    assert front.price_at(99) == 0
    assert front.price_at(1.5) == front.price[1]
    assert math.isinf(front.price_at(0.5))
    assert len(front) == 4


# ---------------------------------------------------------------------------------------------- the price


def test_customers_with_the_same_curve_do_not_overspend_together() -> None:
    # 0.7 / 1.1 is rounded, and 0.3 against 1.0 − price × 1.1 is a tie that rounding breaks upwards.
    curves, costs = np.tile([0.3, 0.4, 1.0], (1000, 1)), np.array([0.0, 0.3, 1.1])
    plan = allocate(curves, costs, budget=0.2)
    assert plan.spend == pytest.approx(0.2, abs=0.002)
    assert not decide_at_price(curves, costs, plan.price).any()


def test_price_picks_the_cheapest_of_equals_whatever_its_place() -> None:
    assert decide_at_price(np.array([[0.5, 0.5, 0.5]]), np.array([2.0, 1.0, 3.0]), 0.0) == [1]
    assert decide_at_price(np.array([[1.0, 2.0, 3.0]]), np.array([1.0, 2.0, 3.0]), 1.0) == [0]


@pytest.mark.parametrize("kind", KINDS)
def test_at_price_is_the_best_of_response_less_price_times_cost(kind: Any) -> None:
    for curves, costs, _ in instances(kind, 30):
        wide = np.broadcast_to(costs, curves.shape)
        for price in (0.0, 0.1, 0.5, 2.0):
            levels = decide_at_price(curves, np.asarray(costs), price)
            for i, level in enumerate(levels):
                worth = [curves[i, k] - price * wide[i, k] for k in range(curves.shape[1])]
                assert worth[level] >= max(worth) - 1e-11


def test_price_is_zero_when_everything_is_affordable() -> None:
    for budget in (2.0, 7.0, math.inf):
        plan = allocate([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]], [0, 1, 2], budget)
        assert (plan.price, plan.levels.tolist()) == (0.0, [2, 2])
        assert plan.gap < 1e-15


def test_no_budget_buys_only_what_is_free() -> None:
    plan = allocate([[0.1, 0.3, 0.9], [0.2, 0.1, 0.9]], [0, 0, 1], budget=0)
    assert plan.levels.tolist() == [1, 0]
    assert (plan.spend, plan.price) == (0.0, 0.7)


# ---------------------------------------------------------------------------------------------- laws

numbers = st.floats(0, 10, allow_nan=False, width=32).map(lambda x: round(x, 3))


@st.composite
def tasks(draw: st.DrawFn) -> tuple[Array, Array, float]:
    n, K = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    curves = draw(st.lists(st.lists(numbers, min_size=K, max_size=K), min_size=n, max_size=n))
    own = draw(st.booleans())
    rows = n if own else 1
    costs = np.array(draw(st.lists(st.lists(numbers, min_size=K, max_size=K), min_size=rows, max_size=rows)))
    costs = costs if own else costs[0]
    return np.array(curves), costs, draw(numbers)


def possible(curves: Array, costs: Array, budget: float) -> bool:
    return bool(np.broadcast_to(costs, curves.shape).min(axis=1).mean() <= budget * (1 - 1e-9))


laws = settings(max_examples=60, deadline=None, derandomize=True)


@laws
@given(tasks(), numbers)
def test_more_budget_never_brings_less_and_never_costs_more_at_the_margin(task: Any, more: float) -> None:
    curves, costs, budget = task
    assume(possible(curves, costs, budget))
    small, large = allocate(curves, costs, budget), allocate(curves, costs, budget + more)
    assert large.bound >= small.bound - 1e-12
    assert large.value >= small.value - small.gap - large.gap - 1e-12
    assert large.price <= small.price


@laws
@given(tasks(), st.sampled_from([0.25, 2.0, 1024.0]))
def test_the_units_of_response_and_money_scale_value_spend_and_price(task: Any, factor: float) -> None:
    curves, costs, budget = task
    assume(possible(curves, costs, budget))
    plan = allocate(curves, costs, budget)
    worth, money = allocate(curves * factor, costs, budget), allocate(curves, costs * factor, budget * factor)
    assert np.array_equal(plan.levels, worth.levels)
    assert (worth.value, worth.bound, worth.price) == (plan.value * factor, plan.bound * factor, plan.price * factor)
    assert np.array_equal(plan.levels, money.levels)
    assert (money.value, money.spend, money.price) == (plan.value, plan.spend * factor, plan.price / factor)


@laws
@given(tasks(), st.randoms(use_true_random=False))
def test_the_order_of_customers_changes_nothing_of_value(task: Any, random: Any) -> None:
    curves, costs, budget = task
    assume(possible(curves, costs, budget))
    order = list(range(len(curves)))
    random.shuffle(order)
    own = costs[order] if costs.ndim == 2 else costs
    plan, other = allocate(curves, costs, budget), allocate(curves[order], own, budget)
    assert other.bound == pytest.approx(plan.bound, abs=1e-12)
    assert other.price == plan.price
    assert abs(other.value - plan.value) <= max(plan.gap, other.gap) + 1e-12


@laws
@given(tasks())
def test_a_customer_who_gains_nothing_costs_nothing(task: Any) -> None:
    curves, costs, budget = task
    wide = np.vstack([np.broadcast_to(costs, curves.shape), np.linspace(0, 1, curves.shape[1])])
    assume(possible(curves, costs, budget))
    n = len(curves)
    plan = allocate(curves, costs, total=budget * n)
    more = allocate(np.vstack([curves, np.full(curves.shape[1], 0.5)]), wide, total=budget * n)
    assert np.array_equal(more.levels, [*plan.levels, 0])
    assert more.value * (n + 1) == pytest.approx(plan.value * n + 0.5)


@laws
@given(tasks())
def test_a_total_is_the_average_times_the_customers(task: Any) -> None:
    curves, costs, budget = task
    assume(possible(curves, costs, budget))
    n = len(curves)
    plan, same = allocate(curves, costs, budget), allocate(curves, costs, total=budget * n)
    assert np.array_equal(plan.levels, same.levels)
    assert (plan.value, plan.price, plan.bound) == (same.value, same.price, same.bound)


@laws
@given(tasks())
def test_single_precision_numbers_are_planned_like_the_same_double_ones(task: Any) -> None:
    curves, costs, budget = task
    single, paid = curves.astype(np.float32), costs.astype(np.float32)
    assume(possible(single.astype(float), paid.astype(float), budget))
    plan = allocate(single, paid, budget)
    same = allocate(single.astype(np.float64), paid.astype(np.float64), budget)
    assert np.array_equal(plan.levels, same.levels)
    assert (plan.value, plan.spend, plan.price, plan.bound) == (same.value, same.spend, same.price, same.bound)
    for price in (0.0, 0.1, plan.price):
        assert np.array_equal(
            decide_at_price(single, paid, price), decide_at_price(single.astype(float), paid.astype(float), price)
        )


def test_whole_numbers_and_lists_are_welcome() -> None:
    plan = allocate([[1, 2], [1, 5]], [0, 1], budget=0.5)
    assert plan.levels.tolist() == [0, 1]
    assert len(plan) == 2
    assert "2 customers" in repr(plan)


# ---------------------------------------------------------------------------------------------- many customers


@pytest.mark.parametrize("unit", [0.125, 0.1])
def test_a_budget_at_a_breakpoint_is_spent(unit: float) -> None:
    curves, costs = np.repeat([[0.0, 1.0, 1.5], [0.0, 0.8, 1.0]], [50, 50], axis=0), np.array([0.0, unit, 2 * unit])
    for steps, after in ((50, 0.8), (100, 0.5), (150, 0.2), (200, 0.0)):
        plan = allocate(curves, costs, total=steps * unit)
        left = 0.0 if unit == 0.125 else unit  # the sum of a hundred dimes is a bit above ten
        assert steps * unit - left <= plan.spend * 100 + 1e-12
        assert plan.price * unit == pytest.approx(after)


def test_ties_are_split_in_the_order_of_the_rows() -> None:
    levels = allocate(np.tile([0.0, 0.5], (1000, 1)), [0.0, 1.0], total=640).levels
    assert levels.tolist() == [1] * 640 + [0] * 360


# ---------------------------------------------------------------------------------------------- refusals

GOOD = [[0.1, 0.4], [0.2, 0.3]]


def test_a_budget_below_the_cheapest_plan_is_refused_in_its_own_unit() -> None:
    with pytest.raises(BudgetError, match=r" 0\.5 .* 1 per customer"):
        allocate(GOOD, [1, 2], 0.5)
    with pytest.raises(BudgetError, match=r" 1 .* 2\n"):
        allocate(GOOD, [1, 2], total=1)


@pytest.mark.parametrize("kind", KINDS)
def test_ties_at_a_price_are_split_between_the_cheapest_and_the_dearest_best_level(kind: Any) -> None:
    for curves, costs, budget in instances(kind, 10):
        paid = np.asarray(costs)
        price = allocate(curves, costs, budget).price
        ends = [decide_at_price(curves, paid, price, dearest=dearest) for dearest in (False, True)]
        expected, rows = np.zeros(curves.shape), np.arange(len(curves))
        for levels, share in zip(ends, (0.75, 0.25), strict=True):
            expected[rows, levels] += share
        assert np.array_equal(split_ties_at_price(curves, paid, price, 0.25), expected)
