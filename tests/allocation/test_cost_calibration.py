"""Expected costs, corrected so that a plan really costs its budget."""

from dataclasses import replace

import numpy as np
import pytest

from largesse.allocation.cost_calibration import CostCorrection, find_cost_correction
from largesse.allocation.plan_and_frontier import allocate, decide_at_price, frontier
from largesse.errors import find_confidence_problems
from largesse.records import Array, SpendingCurve


def make(n: int = 400, K: int = 4, seed: int = 0) -> tuple[Array, Array]:
    """Return rising curves and face values paid as far as customers respond."""
    rng = np.random.default_rng(seed)
    curves = np.sort(rng.uniform(0, 1, (n, K)), axis=1)
    return curves, curves * np.arange(K)


def follow(curves: Array, costs: Array, ratio: float, error: float = 0.0) -> SpendingCurve:
    """Return the spending curve of customers who really cost `ratio` times what is expected."""
    front = frontier(curves, costs)
    prices = [
        2 * front.price[1],
        *(front.price_at(s) for s in np.linspace(front.spend[0], front.spend[-1], 15)[1:-1]),
        0.0,
    ]
    rows = np.arange(len(curves))
    spent = [float(costs[rows, decide_at_price(curves, costs, price)].mean()) for price in prices]
    return SpendingCurve(
        tuple(map(float, prices)), tuple(spent), tuple(ratio * s for s in spent), tuple(error * s for s in spent)
    )


@pytest.mark.parametrize("ratio", [0.7, 1.0, 1.3])
@pytest.mark.parametrize("budget", [0.2, 0.8, 1.1])
def test_the_plan_really_costs_its_budget(ratio: float, budget: float) -> None:
    curves, costs = make()
    found = find_cost_correction(curves, costs, budget, follow(curves, costs, ratio), 0.5)
    assert found.scale == pytest.approx(ratio, rel=0.02)
    plan = allocate(curves, costs * found.scale, budget)
    really = ratio * costs[np.arange(len(curves)), plan.levels].mean()
    assert really == pytest.approx(budget, rel=0.02)


def test_known_costs_are_left_alone() -> None:
    curves, costs = make()
    assert find_cost_correction(curves, costs, 1.0, None) == CostCorrection(1.0, 0.0, 1.0)
    assert CostCorrection().confidence(1.0, 1.0) == 1.0


def test_customers_whose_costs_differ_from_the_logs_are_corrected_by_the_same_ratio() -> None:
    curves, costs = make()
    other, dear = make(n=300, seed=5)
    dear = 1.5 * dear
    assert find_cost_correction(other, dear, 0.9, follow(curves, costs, 1.2)).scale == pytest.approx(1.2, rel=0.02)


def test_an_uncertain_ratio_counts_less_than_a_certain_one() -> None:
    curves, costs = make()
    spendings = [follow(curves, costs, 1.3, error) for error in (0.0, 0.1, 0.5)]
    scales = [find_cost_correction(curves, costs, 0.8, spending, 0.5).scale for spending in spendings]
    assert scales[0] > scales[1] > scales[2] > 1.0
    assert scales[1] == pytest.approx(1.15, rel=0.01)  # as sure of the model as of the log
    few = replace(follow(curves, costs, 1.3, 0.1), noise=0.2)  # hardly any row of the log cost anything
    assert find_cost_correction(curves, costs, 0.8, few, 0.5).scale > 1.27


def test_more_confidence_costs_a_larger_margin_and_is_what_the_plan_then_has() -> None:
    curves, costs = make()
    spending, scales = follow(curves, costs, 1.1, 0.05), []
    for confidence in (0.5, 0.8, 0.95, 0.99):
        found = find_cost_correction(curves, costs, 0.8, spending, confidence)
        plan = allocate(curves, costs * found.scale, 0.8)
        assert found.confidence(plan.spend, 0.8) == pytest.approx(confidence, abs=0.02)
        scales.append(found.scale)
    assert scales == sorted(scales)


def test_a_budget_for_everything_is_kept_for_sure() -> None:
    curves, costs = make()
    found = find_cost_correction(curves, costs, 100.0, follow(curves, costs, 1.1, 0.05))
    plan = allocate(curves, costs * found.scale, 100.0)
    assert found.confidence(plan.spend, 100.0) > 0.999


def test_a_noisy_curve_gives_a_correction_within_reason() -> None:
    curves, costs = make()
    sure, rng = follow(curves, costs, 1.0), np.random.default_rng(0)
    for _ in range(20):
        noisy = SpendingCurve(
            sure.price,
            sure.expected,
            tuple(float(rng.normal(s, 3)) for s in sure.honest),
            tuple(3.0 for _ in sure.honest),
        )
        for budget in (0.0, 1e-9, 0.5, 1e9, np.inf):
            assert 0.5 < find_cost_correction(curves, costs, budget, noisy).scale < 2


@pytest.mark.parametrize("given", [0.4, 1, 1.0, "0.9", True, None, float("nan")])
def test_only_probabilities_from_one_half_are_confidences(given: object) -> None:
    assert find_confidence_problems(given, "confidence")
    assert not find_confidence_problems(0.5, "confidence")
