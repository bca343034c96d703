"""Plans at other budgets: each stop is the plan that is made at its budget."""

import numpy as np
import pytest

from largesse.allocation import Stop, correct_scored, find_stops, hold_scores, price_plan
from largesse.allocation.scored import ScoredBatches, check_batch
from largesse.records import Array, Spending

SPENDING = Spending((3.0, 0.3, 0.1, 0.0), (0.0, 0.4, 1.2, 2.5), (0.0, 0.5, 1.3, 2.9), (0.0, 0.05, 0.08, 0.1))


def make_task(n: int = 3000, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    curves = np.cumsum(rng.exponential(0.1, (n, 4)), axis=1)
    return curves, np.array([0.0, 1.0, 2.0, 4.0]) * (curves if seed else 1.0)


def count(curves: Array, costs: Array, stop: Stop, scale: float = 1.0) -> tuple[float, float, float, list[int]]:
    scored = hold_scores(curves, costs * scale)
    plan = price_plan(scored, stop.budget)
    levels, _ = plan.decide(*next(iter(scored.batches())))
    return plan.spend, plan.value, plan.price, np.bincount(levels, minlength=curves.shape[1]).tolist()


@pytest.mark.parametrize("seed", [0, 1])
def test_twenty_stops_are_the_plans_at_their_budgets(seed: int) -> None:
    curves, costs = make_task(seed=seed)
    stops = find_stops(hold_scores(curves, costs))
    assert len(stops) > 40
    prices = [stop.price for stop in stops]
    for k in np.linspace(1, len(stops) - 2, 20).astype(int):
        spend, value, price, counts = count(curves, costs, stops[k])
        assert (spend, value) == pytest.approx((stops[k].spend, stops[k].value), rel=1e-12)
        assert counts == list(stops[k].counts)
        assert prices[k + 1] <= price <= prices[k - 1]


def test_stops_allow_for_what_plans_really_cost() -> None:
    curves, costs = make_task(seed=1)
    scored = hold_scores(curves, costs)
    stops = find_stops(scored, SPENDING, 0.9)
    assert len(stops) > 20
    for stop in stops[1:-1:3]:
        fix = correct_scored(scored, stop.budget, SPENDING, 0.9)
        spend, value, _, counts = count(curves, costs, stop, fix.scale)
        assert counts == list(stop.counts)
        assert value == pytest.approx(stop.value, rel=1e-12)
        assert spend / fix.scale * fix.ratio == pytest.approx(stop.spend, rel=1e-9)


def test_stops_do_not_depend_on_batches_and_rise() -> None:
    curves, costs = make_task(500, seed=1)
    cut = [check_batch(curves[at : at + 130], costs[at : at + 130], at) for at in range(0, 500, 130)]
    stops = find_stops(hold_scores(curves, costs))
    assert find_stops(ScoredBatches(500, lambda: cut)) == stops
    assert (np.diff([stop.budget for stop in stops]) > 0).all()
    assert all(sum(stop.counts) == 500 for stop in stops)


def test_customers_for_whom_nothing_pays_have_one_stop() -> None:
    (stop,) = find_stops(hold_scores(np.full((5, 3), 0.2), [0, 1, 2]))
    assert (stop.budget, stop.counts) == (0.0, (5, 0, 0))
