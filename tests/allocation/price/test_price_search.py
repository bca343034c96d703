"""More customers than are looked at one by one: the bracket and the selection must agree with a plain sort."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.allocation.plan_and_frontier import allocate, frontier
from largesse.allocation.price import price_search
from largesse.errors import BudgetError
from largesse.records import Array
from support.plans import full_path, paid_by

N = 30_000


def task(name: str) -> tuple[Array, Array]:
    rng = np.random.default_rng(3)
    curves, costs = rng.random((N, 5)), np.array([0.0, 1.0, 2.0, 3.5, 4.0])
    return {
        "common": (np.cumsum(curves, axis=1), costs),
        "own": (curves, np.sort(rng.random((N, 5)) * 4, axis=1)),
        "own, unsorted": (curves, rng.random((N, 5)) * 4),
        "single": (np.cumsum(curves, axis=1).astype(np.float32), costs),
        "single own": (curves.astype(np.float32), rng.random((N, 5), dtype=np.float32)),
        "heavy": (curves, np.sort(rng.pareto(1.1, (N, 5)), axis=1)),
        "ten curves": (np.cumsum(rng.random((10, 5)), axis=1)[rng.integers(0, 10, N)], costs),
        "one curve": (np.tile([0.0, 0.1, 0.2, 0.35, 0.4], (N, 1)), costs),
        "sorted": (np.sort(curves, axis=0), costs),
        "flat": (np.full((N, 5), 0.5), costs),
        "free": (curves, np.array([0.0, 0.0, 1.0, 1.0, 2.0])),
    }[name]


NAMES = (
    *("common", "own", "own, unsorted", "single", "single own", "heavy"),
    *("ten curves", "one curve", "sorted", "flat", "free"),
)


@pytest.mark.parametrize("name", NAMES)
def test_price_and_bound_are_those_of_a_full_sort_also_mapped_from_a_file(name: str, tmp_path: Path) -> None:
    curves, costs = task(name)
    curves.tofile(tmp_path / "curves")
    mapped = np.memmap(tmp_path / "curves", dtype=curves.dtype, mode="r", shape=curves.shape)
    path, front = full_path(curves, costs), frontier(curves, costs)
    spent = path.base_cost + np.cumsum(path.cost)
    most = path.base_cost + path.cost.sum()
    for part in (0.0, 1e-9, 1e-4, 0.3, 0.7, 0.999, 1.5):
        total = path.base_cost + part * (most - path.base_cost) + 1e-6 * (part == 0)
        plan, other = allocate(curves, costs, total=total), allocate(mapped, costs, total=total)
        taken = int(np.searchsorted(spent, total * (1 + 1e-12), side="right"))
        price = path.slope[taken] if taken < len(path.slope) else 0.0
        assert plan.price == pytest.approx(price, rel=1e-6, abs=1e-12)
        assert plan.bound == pytest.approx(front.at(total / N), rel=1e-10)
        assert plan.gap <= path.gain.max(initial=0.0) / N + 1e-12
        assert plan.value == math.fsum(curves[np.arange(N), plan.levels]) / N
        assert paid_by(plan.levels, costs, curves.shape) <= total
        assert np.array_equal(plan.levels, other.levels)
        assert (plan.value, plan.price, plan.bound) == (other.value, other.price, other.bound)


def test_ties_are_split_and_the_budget_is_spent() -> None:
    curves, costs = task("ten curves")
    for budget in (0.3, 1.234, 2.5):
        plan = allocate(curves, costs, budget)
        assert budget - plan.spend <= 4.0 / N
        assert plan.gap <= 1e-5 * (plan.value - curves[:, 0].mean())


@pytest.mark.parametrize("name", ["common", "own", "ten curves"])
def test_the_order_of_many_customers_changes_nothing_of_value(name: str) -> None:
    curves, costs = task(name)
    order = np.random.default_rng(1).permutation(N)
    plan = allocate(curves, costs, 1.0)
    other = allocate(curves[order], costs[order] if costs.ndim == 2 else costs, 1.0)
    assert other.price == pytest.approx(plan.price, rel=1e-9)
    assert other.bound == pytest.approx(plan.bound, rel=1e-12)


def test_a_bracket_that_misses_the_price_is_widened(monkeypatch: Any) -> None:
    curves, costs = task("common")
    expected = allocate(curves, costs, 1.0)
    monkeypatch.setattr(price_search, "BRACKET_WIDTH", 1e-6)
    plan = allocate(curves, costs, 1.0)
    assert (plan.price, plan.value) == (expected.price, expected.value)


def test_many_customers_with_no_limit_get_the_best_and_with_too_little_are_refused() -> None:
    curves, costs = task("own")
    plan = allocate(curves, costs, math.inf)
    assert np.array_equal(plan.levels, curves.argmax(axis=1))
    with pytest.raises(BudgetError, match="cheapest"):
        allocate(curves, costs, float(costs.min(axis=1).mean()) * 0.99)


def test_the_budget_at_a_price_is_where_the_price_falls_below_it() -> None:
    front = frontier(*task("common"))
    for price in (0.2, 0.5, 0.9):
        budget = front.budget_at(price)
        assert front.price_at(budget * (1 + 1e-9)) < price <= front.price_at(budget * (1 - 1e-9))
    assert front.budget_at(math.inf) == front.spend[0]
    assert front.budget_at(0.0) == front.spend[-1]
