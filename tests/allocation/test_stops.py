"""Plans at other budgets: each stop is the plan that is made at its budget, and so is who gets what."""

from typing import Any

import numpy as np
import pytest

from largesse.allocation import (
    Stop,
    choose_unit,
    correct_scored,
    count_levels,
    count_stops,
    find_stops,
    hold_scores,
    price_plan,
)
from largesse.allocation.scored import ScoredBatches, check_batch
from largesse.records import Array, Spending

SPENDING = Spending((3.0, 0.3, 0.1, 0.0), (0.0, 0.4, 1.2, 2.5), (0.0, 0.5, 1.3, 2.9), (0.0, 0.05, 0.08, 0.1))


def make_task(n: int = 3000, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    curves = np.cumsum(rng.exponential(0.1, (n, 4)), axis=1)
    return curves, np.array([0.0, 1.0, 2.0, 4.0]) * (curves if seed else 1.0)


def make_groups(n: int) -> Array:
    """Return two features, of three and of two groups, and everyone."""
    rows = np.arange(n)
    return np.column_stack([rows % 3, 3 + rows // (n // 2 + 1), np.full(n, 5)])


def plan_at(curves: Array, costs: Array, stop: Stop, scale: float = 1.0, **how: Any) -> tuple[Any, Array]:
    scored = hold_scores(curves, costs * scale)
    plan = price_plan(scored, stop.budget, **how)
    return plan, plan.decide(*next(iter(scored.batches())))[0]


def count_plainly(levels: Array, curves: Array, costs: Array, groups: Array) -> tuple[Array, Array]:
    """Return the customers (groups, K) at each level and what the groups cost, one customer after the other."""
    counts, paid = np.zeros((6, curves.shape[1]), dtype=np.int64), np.zeros(6)
    wide = np.broadcast_to(costs, curves.shape)
    for row, level in enumerate(levels):
        for group in groups[row]:
            counts[group, level] += 1
            paid[group] += wide[row, level]
    return counts, paid


@pytest.mark.parametrize(("seed", "explore"), [(0, 0.0), (1, 0.0), (0, 0.2), (1, 0.2)])
def test_twenty_stops_are_the_plans_at_their_budgets_and_so_is_who_gets_what(seed: int, explore: float) -> None:
    curves, costs = make_task(seed=seed)
    scored, groups = hold_scores(curves, costs), make_groups(len(curves))
    stops = find_stops(scored, explore=explore)
    assert len(stops) > 40
    counted = count_stops(stops, next(iter(scored.batches())), groups, 6, explore, 7)
    prices = [stop.price for stop in stops]
    for k in np.linspace(1, len(stops) - 2, 20).astype(int):
        plan, levels = plan_at(curves, costs, stops[k], explore=explore, seed=7)
        assert (plan.spend, plan.value) == pytest.approx((stops[k].spend, stops[k].value), rel=1e-9)
        assert prices[k + 1] <= plan.price <= prices[k - 1]
        counts, paid = count_plainly(levels, curves, costs, groups)
        assert (counted[k, :, :-1] == counts).all()
        assert counted[k, :, -1] * choose_unit(stops) == pytest.approx(paid, rel=1e-6)


def test_stops_allow_for_what_plans_really_cost() -> None:
    curves, costs = make_task(seed=1)
    scored, groups = hold_scores(curves, costs), make_groups(len(curves))
    stops = find_stops(scored, SPENDING, 0.9)
    assert len(stops) > 20
    counted = count_stops(stops, next(iter(scored.batches())), groups, 6, 0.0, 0)
    for k in range(1, len(stops) - 1, 3):
        stop = stops[k]
        fix = correct_scored(scored, stop.budget, SPENDING, 0.9)
        plan, levels = plan_at(curves, costs, stop, fix.scale)
        assert (counted[k, :, :-1] == count_plainly(levels, curves, costs, groups)[0]).all()
        assert plan.value == pytest.approx(stop.value, rel=1e-12)
        assert plan.spend / fix.scale * fix.ratio == pytest.approx(stop.spend, rel=1e-9)
        assert stop.ratio == pytest.approx(fix.ratio, rel=1e-9)


def test_stops_and_counts_do_not_depend_on_batches_and_rise() -> None:
    curves, costs = make_task(500, seed=1)
    groups = make_groups(500)
    cut = [check_batch(curves[at : at + 130], costs[at : at + 130], at) for at in range(0, 500, 130)]
    stops = find_stops(hold_scores(curves, costs))
    assert find_stops(ScoredBatches(500, lambda: cut)) == stops
    assert (np.diff([stop.budget for stop in stops]) > 0).all()
    whole = count_stops(stops, check_batch(curves, costs), groups, 6, 0.3, 1)
    parts = [count_stops(stops, batch, groups[batch[0]], 6, 0.3, 1) for batch in cut]
    assert (sum(parts) == whole).all()
    assert (whole[:, 5, :-1].sum(axis=1) == 500).all()


def test_levels_that_are_listed_are_counted_alike() -> None:
    curves, costs = make_task(300, seed=1)
    stops, groups = find_stops(hold_scores(curves, costs)), make_groups(300)
    levels = np.stack([plan_at(curves, costs, stop)[1] for stop in stops])
    listed = count_levels(stops, levels, curves, costs, groups, 6)
    assert (listed == count_stops(stops, check_batch(curves, costs), groups, 6, 0.0, 0)).all()


def test_customers_for_whom_nothing_pays_have_one_stop() -> None:
    (stop,) = find_stops(hold_scores(np.full((5, 3), 0.2), [0, 1, 2]))
    assert (stop.budget, stop.value) == (0.0, pytest.approx(0.2))


def test_without_stops_nothing_is_counted() -> None:
    curves, costs = make_task(10)
    assert count_stops((), check_batch(curves, costs), make_groups(10), 6, 0.0, 0).shape == (0, 6, 5)


@pytest.mark.parametrize(("seed", "spending"), [(0, None), (1, None), (1, SPENDING)])
@pytest.mark.parametrize("worth", [2.0, 8.0, 50.0, 1e-6])
def test_one_stop_takes_every_step_that_brings_what_it_costs(
    seed: int, spending: Spending | None, worth: float
) -> None:
    curves, costs = make_task(400, seed=seed)
    stops = find_stops(hold_scores(curves, costs), spending, worth=worth)
    (stop,) = [stop for stop in stops if stop.pays]
    scale = correct_scored(hold_scores(curves, costs), stop.budget, spending).scale
    plan, levels = plan_at(curves, costs, stop, scale)
    assert plan.value == pytest.approx(stop.value)
    paid = np.broadcast_to(costs * scale, curves.shape)
    own = (worth * curves - paid)[np.arange(400), levels]
    if spending is None:  # nobody could do better for what a response is worth
        assert own == pytest.approx((worth * curves - paid).max(axis=1), abs=1e-12)
    else:  # the scale of costs changes with the budget: prices are met to a hundredth
        assert own.mean() == pytest.approx((worth * curves - paid).max(axis=1).mean(), rel=1e-3, abs=1e-9)
    assert not any(other.pays for other in find_stops(hold_scores(curves, costs), spending))
