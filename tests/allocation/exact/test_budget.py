import math
from typing import Any

import numpy as np
import pytest
from allocation_oracle import judge, make_task, run
from instances import KINDS, instances, paid_by, whole_optima

from largesse.allocation.plan import allocate
from largesse_lab.bench.textbook import dynamic_programme


def proves(kind: Any, count: int) -> None:
    for (curves, costs, budget), best in zip(instances(kind, count), whole_optima(kind, count), strict=True):
        n = len(curves)
        plan = allocate(curves, costs, budget, exact=True)
        assert plan.value == pytest.approx(best, abs=1e-9)
        assert plan.gap <= 1e-9
        assert paid_by(plan.levels, costs, curves.shape) <= budget * n
        assert plan.value == math.fsum(curves[np.arange(n), plan.levels]) / n


@pytest.mark.parametrize("kind", KINDS)
def test_exact_is_the_best_whole_plan(kind: Any) -> None:
    proves(kind, 40)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_exact_is_the_best_whole_plan_of_many(kind: Any) -> None:
    proves(kind, 500)


def test_exact_agrees_with_the_dynamic_programme_where_many_plans_are_close() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        curves, costs = np.cumsum(rng.random((150, 5)), axis=1), np.array([0, 2, 3, 7, 11])
        total = int(rng.integers(100, 1200))
        best = dynamic_programme(curves, costs, total)
        plan = allocate(curves, costs, total=total, exact=True)
        assert plan.value * 150 == pytest.approx(curves[np.arange(150), best].sum(), abs=1e-9)


@pytest.mark.parametrize("own", [False, True])
def test_exact_closes_the_gap_of_many_customers(own: bool) -> None:
    rng = np.random.default_rng(6)
    n, K = 30_000, 5
    curves, costs = rng.random((n, K)), np.sort(rng.random((n, K) if own else K) * 5, axis=-1)
    budget = float(costs.mean()) / 2
    plan, proven = allocate(curves, costs, budget), allocate(curves, costs, budget, exact=True)
    assert proven.value >= plan.value
    assert proven.gap <= 2e-12 * proven.value < plan.gap
    assert paid_by(proven.levels, costs, curves.shape) <= budget * n


@pytest.mark.parametrize(
    ("curves", "costs", "best"),
    [
        ([[0.50000001, 0.80000001], [0.7000000100000001, 1.10000001]], [[5, 8], [7, 11]], 1.60000002),
        (
            [[3e-10, 1.2, 2.4000000003], [0.6, 2.7000000002999998, 3.0000000003]],
            [[0, 4, 8], [2, 9, 10]],
            5.1000000006,
        ),
    ],
)
def test_the_best_levels_at_the_price_are_taken_where_they_are_the_best_plan(
    curves: list[list[float]], costs: list[list[float]], best: float
) -> None:
    plan = allocate(np.array(curves), np.array(costs, dtype=float), total=17, exact=True)
    assert plan.value * 2 == pytest.approx(best, abs=1e-12)
    assert plan.bound * 2 == pytest.approx(best, abs=1e-12)


# Instances of the oracle in which a plan that fits only by rounding hid the best one, or the budget was one rounding
# below the dearest plan.
@pytest.mark.parametrize(
    "seed", [63, 154, 1525, 1804, 2480, 4366, 4500, 4720, 4733, 4786, 5727, 6299, 6490, 7630, 7853]
)
def test_budgets_within_a_rounding_of_a_plan_are_decided_exactly(seed: int) -> None:
    assert judge(make_task(seed)) == []


@pytest.mark.parametrize("seed", [2811, 3163, 5451, 18365, 19113])
def test_no_plan_is_over_a_budget_where_costs_differ_by_orders_of_magnitude(seed: int) -> None:
    assert judge(make_task(seed)) == []


@pytest.mark.slow
def test_exact_is_the_best_plan_of_twenty_thousand() -> None:
    assert run(range(20_000)) == {"tried": 20_000}
