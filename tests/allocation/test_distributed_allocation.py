"""Customers in batches get the plan of `allocate`, whatever the batches, the ties and the number that may be gathered."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from largesse.allocation import allocate
from largesse.allocation.distributed_allocation import allocate_batches
from largesse.errors import BudgetError
from largesse.records import Array

KINDS = ("smooth", "few curves", "rounded", "own costs")


def draw_customers(kind: str, n: int, K: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    curves, costs = np.cumsum(rng.random((n, K)), axis=1) * rng.random((n, 1)), np.arange(float(K))
    if kind == "few curves":
        curves = curves[rng.integers(0, min(5, n), n)]
    elif kind == "rounded":
        curves = np.round(curves, 1)
    elif kind == "own costs":
        costs = np.cumsum(rng.random((n, K)), axis=1)
    return curves, costs


def cut(curves: Array, costs: Array, size: int) -> list[tuple[Array, Array, Array]]:
    n, rows = len(curves), np.atleast_2d(costs)
    return [
        (np.arange(at, min(at + size, n)), curves[at : at + size], rows[at : at + size] if len(rows) > 1 else rows)
        for at in range(0, n, size)
    ]


def ask_of(batches: list[tuple[Array, Array, Array]]) -> Callable[[Any], Iterator[Any]]:
    return lambda task: (task(*batch) for batch in batches)


def budget_between(curves: Array, costs: Array, share: float) -> float:
    wide = np.broadcast_to(costs, curves.shape)
    low, high = wide.min(axis=1).mean(), wide.max(axis=1).mean()
    return float(low + share * (high - low))


@settings(max_examples=60, deadline=None)
@example(kind="rounded", n=20_000, K=3, size=1_000, gathered=5_000, share=0.75, seed=0)
@given(
    kind=st.sampled_from(KINDS),
    n=st.sampled_from([1, 7, 300, 20_000]),
    K=st.integers(2, 5),
    size=st.sampled_from([1_000, 4_096]),
    gathered=st.sampled_from([5_000, 100_000]),
    share=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_the_plan_is_that_of_all_customers_in_memory(
    kind: str, n: int, K: int, size: int, gathered: int, share: float, seed: int
) -> None:
    curves, costs = draw_customers(kind, n, K, seed)
    budget = budget_between(curves, costs, share)
    batches = cut(curves, costs, size)
    plan, expected = allocate_batches(ask_of(batches), n, budget, gathered=gathered), allocate(curves, costs, budget)
    assert (plan.price, plan.value, plan.spend, plan.bound) == pytest.approx(
        (expected.price, expected.value, expected.spend, expected.bound), rel=1e-12
    )
    levels = np.concatenate([plan.decision.decide(*batch) for batch in batches])
    # Customers may differ whose two levels are tied at the price, if more share the tie, to rounding, than are gathered.
    other = np.flatnonzero(levels != expected.levels)
    assert not len(other) or n > gathered
    net = curves - expected.price * costs
    np.testing.assert_allclose(net[other, levels[other]], net[other, expected.levels[other]], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_steps_that_more_customers_share_than_can_be_gathered_are_taken_in_the_order_of_rows(
    kind: str, share: float
) -> None:
    curves, costs = draw_customers(kind, 50_000, 4, 1)
    budget = budget_between(curves, costs, share)
    batches = cut(curves, costs, 1_000)
    plan, expected = allocate_batches(ask_of(batches), 50_000, budget, gathered=10), allocate(curves, costs, budget)
    levels = np.concatenate([plan.decision.decide(*batch) for batch in batches])
    rows = np.arange(len(curves))
    assert plan.price == pytest.approx(expected.price, rel=1e-9)
    assert plan.value == pytest.approx(curves[rows, levels].mean(), rel=1e-12)
    assert plan.spend == pytest.approx(np.broadcast_to(costs, curves.shape)[rows, levels].mean(), rel=1e-12)
    assert plan.spend <= budget
    assert plan.value <= expected.bound * (1 + 1e-12)
    assert plan.bound == pytest.approx(expected.bound, rel=1e-9)
    assert plan.gap < 1e-4


def test_a_budget_below_the_cheapest_plan_is_refused_and_one_without_end_gives_the_best_levels() -> None:
    curves, costs = draw_customers("smooth", 20_000, 3, 2)
    ask = ask_of(cut(curves, costs + 1, 4_096))
    for gathered in (5_000, 50_000):
        with pytest.raises(BudgetError) as found:
            allocate_batches(ask, 20_000, 0.5, gathered=gathered)
        with pytest.raises(BudgetError) as expected:
            allocate(curves, costs + 1, 0.5)
        assert str(found.value) == str(expected.value)
        plan = allocate_batches(ask, 20_000, float("inf"), gathered=gathered)
        assert (plan.price, plan.value) == (0.0, pytest.approx(curves.max(axis=1).mean(), rel=1e-12))
