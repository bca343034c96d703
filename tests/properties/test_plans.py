"""Plans and frontiers keep their claims on small hard problems: compared with every plan, in exact arithmetic."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import largesse as lg
from largesse.errors import BudgetError, make_below_cheapest_error
from largesse.records import Plan
from oracles.plans import Array, EveryPlan, best_value, to_whole_numbers
from support.examples import examples

Rng = np.random.Generator
ROUNDING = Fraction(1, 10**12)  # relative; promised for plans within one budget
CONSTRAINED_ROUNDING = Fraction(1, 10**9)  # relative; promised for plans under constraints
MAX_PLANS = 700  # of problems whose frontier is compared with every plan
MAX_CONSTRAINED_CUSTOMERS = {2: 10, 3: 6, 4: 5}  # by number of levels


def draw_shape(rng: Rng, n: int, K: int) -> Any:
    """Return the shape of costs: one row for everyone, or one per customer."""
    return (n, K) if rng.random() < 0.5 else K


def draw_random(rng: Rng, n: int, K: int) -> tuple[Any, Any]:
    return rng.normal(size=(n, K)).cumsum(axis=1), np.sort(rng.random(draw_shape(rng, n, K)) * 5, axis=-1)


def draw_nearly_proportional(rng: Rng, n: int, K: int) -> tuple[Any, Any]:
    costs = np.sort(rng.integers(0, 14, draw_shape(rng, n, K)), axis=-1).astype(float)
    noise = rng.choice([0.0, 1e-10, 1e-8, 1e-4, 0.1]) * rng.choice([-1, 0, 1, 2], (n, K))
    return rng.choice([0.1, 0.3, 1.0, 0.25]) * np.broadcast_to(costs, (n, K)) + noise, costs


def draw_ties(rng: Rng, n: int, K: int) -> tuple[Any, Any]:
    unit = rng.choice([1.0, 0.1, 0.25, 1 / 3])
    return rng.integers(-2, 5, (n, K)) * unit, rng.integers(0, 4, draw_shape(rng, n, K)) * unit


def draw_equal_steps(rng: Rng, n: int, K: int) -> tuple[Any, Any]:
    """Two levels with the same cost, or one rounding apart."""
    curves, costs = draw_random(rng, n, K)
    same = rng.integers(0, K, 2)
    costs[..., same[0]] = costs[..., same[1]]
    curves[:, same[0]] = np.where(rng.random(n) < 0.5, curves[:, same[1]], curves[:, same[0]])
    return curves, np.nextafter(costs, 9) if rng.random() < 0.3 else costs


def draw_equal_costs(rng: Rng, n: int, K: int) -> tuple[Any, Any]:
    return rng.normal(size=(n, K)), np.full(draw_shape(rng, n, K), rng.choice([0.0, 0.1, 3.0]))


def draw_scales(rng: Rng, n: int, K: int) -> tuple[Any, Any]:
    curves, costs = [draw_random, draw_ties, draw_nearly_proportional][rng.integers(3)](rng, n, K)
    return curves * 10.0 ** rng.integers(-120, 120), costs * 10.0 ** rng.integers(-120, 120)


def draw_mixed_scales(rng: Rng, n: int, K: int) -> tuple[Any, Any]:
    curves, costs = draw_random(rng, n, K)
    return curves * 10.0 ** rng.integers(-6, 7, (n, 1)), costs * 10.0 ** rng.integers(-6, 7, (n, 1))


def draw_negative(rng: Rng, n: int, K: int) -> tuple[Any, Any]:
    curves, costs = draw_random(rng, n, K)
    return curves - rng.choice([1, 10, 1e6]), costs


def draw_unsorted(rng: Rng, n: int, K: int) -> tuple[Any, Any]:
    return rng.random((n, K)), rng.random((n, K)) * rng.choice([1.0, 7.0])


def draw_duplicates(rng: Rng, n: int, K: int) -> tuple[Any, Any]:
    curves, costs = draw_random(rng, n, K)
    copies = rng.integers(0, max(n // 3, 1), n)
    return curves[copies], costs[copies] if costs.ndim == 2 else costs


def draw_single_precision(rng: Rng, n: int, K: int) -> tuple[Any, Any]:
    curves, costs = draw_random(rng, n, K)
    return curves.astype(np.float32), costs.astype(rng.choice([np.float32, np.float64]))


FAMILIES: tuple[Callable[[Rng, int, int], tuple[Any, Any]], ...] = (
    draw_random, draw_nearly_proportional, draw_ties, draw_equal_steps, draw_equal_costs, draw_scales, draw_mixed_scales,
    draw_negative, draw_unsorted, draw_duplicates, draw_single_precision,
)  # fmt: skip


def draw_total(rng: Rng, curves: Array, costs: Array) -> float:
    """Return a total budget: anywhere, zero, or the cost of some plan, exact or one rounding away."""
    paid = np.broadcast_to(costs, curves.shape).astype(float)
    cheapest, dearest = math.fsum(paid.min(axis=1)), math.fsum(paid.max(axis=1))
    kind = rng.integers(0, 10)
    if kind < 3:
        return float(cheapest + (dearest - cheapest) * rng.random())
    if kind < 7:
        return (0.0, cheapest, dearest, float(dearest * 1.5 + 1))[kind - 3]
    if kind == 7:
        levels = rng.integers(0, curves.shape[1], len(curves))
    else:  # the plan at a random price: a corner of the frontier
        slope = abs(float(rng.normal())) * (np.ptp(curves) / (np.ptp(paid) or 1.0))
        levels = np.argmax(curves - slope * paid, axis=1)
    cost = math.fsum(paid[np.arange(len(paid)), levels])
    return max(float(rng.choice([cost, np.nextafter(cost, 0), np.nextafter(cost, math.inf)])), 0.0)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Array, Array, float]:
    """Curves (n, K), costs (K,) or (n, K) and a total budget."""
    family, n, K = draw(st.sampled_from(FAMILIES)), draw(st.integers(1, 12)), draw(st.integers(2, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    curves, costs = family(rng, n, K)
    return curves, costs, draw_total(rng, curves, costs)


@examples(150)
@given(problems(), st.booleans(), st.booleans())
def test_a_plan_keeps_the_budget_and_its_gap_is_true(
    problem: tuple[Array, Array, float], exact: bool, averaged: bool
) -> None:
    curves, costs, total = problem
    n = len(curves)
    if averaged:  # a budget per customer times customers is rounded once: plans are held to that
        total = total / n * n
    whole = to_whole_numbers(curves, costs, total)
    best = best_value(whole)
    try:
        plan = lg.allocate(curves, costs, exact=exact, **({"budget": total / n} if averaged else {"total": total}))
    except BudgetError:
        assert best is None
        return
    value = sum(whole.values[i][k] for i, k in enumerate(plan.levels))
    cost = sum(whole.costs[i][k] for i, k in enumerate(plan.levels))
    if best is None:  # the budget is the rounded cost of the cheapest plan
        assert cost == sum(min(row) for row in whole.costs) <= whole.limit * (1 + ROUNDING)
        return
    assert cost <= whole.limit * (1 + Fraction(1, 10**15) * averaged)
    tolerance = Fraction(8, 2**53) * (abs(best) + 1)  # in units; a plan's figures are float totals over n
    assert abs(Fraction(plan.value) * n / whole.value_unit - value) <= tolerance
    assert Fraction(plan.bound) * n / whole.value_unit >= best - tolerance
    assert value + Fraction(plan.gap) * n / whole.value_unit >= best - tolerance
    slack = tolerance + ROUNDING * max(abs(x) for row in whole.values for x in row) * n
    assert not exact or value >= best - slack, "an exact plan is not the best"


@examples(100)
@given(problems())
def test_no_plan_lies_above_the_frontier(problem: tuple[Array, Array, float]) -> None:
    curves, costs, total = problem
    n, K = curves.shape
    n = min(n, int(math.log(MAX_PLANS) / math.log(K)))
    curves, costs = curves[:n], costs if costs.ndim == 1 else costs[:n]
    front, whole = lg.frontier(curves, costs), to_whole_numbers(curves, costs, total)
    spend = [Fraction(float(x)) * n / whole.cost_unit for x in front.spend]
    value = [Fraction(float(x)) * n / whole.value_unit for x in front.value]
    assert (np.diff(front.spend) > 0).all()
    assert (np.diff(front.price) < 0).all()
    value_slack = ROUNDING * max(abs(x) for row in whole.values for x in row) * n
    cost_slack = ROUNDING * max(max(row) for row in whole.costs) * n
    assert all(b >= a - value_slack for a, b in itertools.pairwise(value))
    corners = [Fraction(-(10**400))] * len(spend)
    for plan in itertools.product(range(K), repeat=n):
        cost = sum(whole.costs[i][k] for i, k in enumerate(plan))
        worth = sum(whole.values[i][k] for i, k in enumerate(plan))
        at = sum(1 for x in spend if x <= cost + cost_slack) - 1
        assert at >= 0, "the frontier begins above the cheapest plan"
        top = value[at]
        if at + 1 < len(spend):
            part = max((cost - spend[at]) / (spend[at + 1] - spend[at]), Fraction(0))
            top += part * (value[at + 1] - value[at])
        price = Fraction(min(float(front.price[at]), 1e300)) * whole.cost_unit / whole.value_unit
        assert worth <= top + value_slack + cost_slack * price
        if abs(cost - spend[at]) <= cost_slack:
            corners[at] = max(corners[at], Fraction(worth))
    assert all(found >= corner - value_slack for found, corner in zip(corners, value, strict=True))


# -- constraints --------------------------------------------------------------------------------------------------------


def draw_eligible(rng: Rng, n: int, K: int) -> Array:
    """Forbid some levels; some customers may get one level only, and a few may get none."""
    eligible = rng.random((n, K)) < 0.75
    for i in range(n):
        if rng.random() < 0.2:
            eligible[i] = np.arange(K) == rng.integers(K)
        elif not eligible[i].any() and rng.random() < 0.9:
            eligible[i, 0] = True
    return eligible


def draw_budget(rng: Rng, curves: Array, costs: Array, rows: Array) -> float:
    """Return a total budget for some customers: anywhere, or the cost of some plan, exact or one rounding away."""
    paid = np.broadcast_to(costs, curves.shape)[rows]
    if rng.random() < 0.6:
        low, high = float(paid.min(axis=1).sum()), float(paid.max(axis=1).sum())
        return max(low + float(rng.uniform(-0.1, 1.1)) * (high - low), 0.0)
    cost = math.fsum(paid[np.arange(len(paid)), rng.integers(0, paid.shape[1], len(paid))])
    return max(float(rng.choice([cost, np.nextafter(cost, 0), np.nextafter(cost, math.inf)])), 0.0)


@st.composite
def constrained_problems(draw: st.DrawFn) -> tuple[Array, Array, float, dict[str, Any]]:
    """Curves, costs, a total budget and settings of `Constraints` that may be impossible to keep."""
    K = draw(st.integers(2, 4))
    n = draw(st.integers(1, MAX_CONSTRAINED_CUSTOMERS[K]))
    names = draw(st.sets(st.sampled_from(["eligible", "caps", "shares", "segments", "least_return"])))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    curves = rng.normal(size=(n, K)).cumsum(axis=1) if rng.random() < 0.5 else np.round(rng.random((n, K)), 1)
    costs = np.sort(rng.uniform(0, 9, draw_shape(rng, n, K)), axis=-1)
    if rng.random() < 0.5:
        costs = np.round(costs, int(rng.integers(0, 2)))
    if rng.random() < 0.15:  # value nearly in proportion to cost
        curves = np.broadcast_to(costs, (n, K)) * 0.3 + rng.choice([0.0, 1e-3, 0.1]) * rng.integers(-1, 3, (n, K))
    rules: dict[str, Any] = {}
    if "eligible" in names:
        rules["eligible"] = draw_eligible(rng, n, K)
    if "caps" in names:
        rules["caps"] = {k: int(rng.integers(0, n + 1)) for k in range(K) if rng.random() < 0.5}
    if "shares" in names:
        rules["shares"] = {k: float(rng.choice([0, 0.1, 0.25, 1 / 3, 0.5, 1])) for k in range(K) if rng.random() < 0.3}
    if "segments" in names:
        segment = np.array(["north", "south", "west"])[rng.integers(0, 3, n)]
        budgets = {str(s): draw_budget(rng, curves, costs, segment == s) for s in set(segment) if rng.random() < 0.7}
        rules |= {"segment": segment, "segment_budgets": budgets}
    if "least_return" in names:
        rules["least_return"] = float(rng.choice([0.0, 0.05, 0.3, 5.0]))
    return curves, costs, draw_budget(rng, curves, costs, np.ones(n, dtype=bool)), rules


def check_constrained_plan(curves: Array, costs: Array, total: float, rules: dict[str, Any], exact: bool) -> None:
    """Compare a plan with every plan that keeps the rules: where there is none, planning must be refused."""
    every = EveryPlan(curves, costs, total, rules)
    allowed = [plan for plan in every.plans() if not every.broken(plan)]
    try:
        plan = lg.allocate(curves, costs, total=total, constraints=lg.Constraints(**rules), exact=exact)
    except BudgetError:
        assert not allowed, f"refused, but {allowed[0]} keeps every rule"
        return
    levels = tuple(int(k) for k in plan.levels)
    assert not (rule := every.broken(levels, ROUNDING)), f"{levels} breaks the {rule}"
    if not allowed:  # the budget is the rounded cost of a plan
        return
    slack = CONSTRAINED_ROUNDING * (max(abs(x) for row in every.worth for x in row) * every.n + 1)
    shortfall = max(map(every.net, allowed)) - every.net(levels)
    assert shortfall <= Fraction(plan.gap) * every.n + slack, "the gap is too small"
    assert not exact or shortfall <= slack, "an exact plan is not the best"
    worth = sum((every.worth[i][k] for i, k in enumerate(levels)), Fraction(0))
    assert abs(worth - Fraction(plan.value) * every.n) <= slack, "the value is not that of the levels"


@examples(60)
@given(constrained_problems(), st.booleans())
def test_a_plan_under_constraints_keeps_them_and_its_gap_is_true(
    problem: tuple[Array, Array, float, dict[str, Any]], exact: bool
) -> None:
    check_constrained_plan(*problem, exact=exact)


CURVES = np.array([[0.0, 1.0, 3.0], [0.0, 2.0, 2.5], [0.0, 1.0, 1.5]])
RULES = {"caps": {2: 1}, "eligible": np.array([[1, 1, 1], [1, 1, 1], [1, 1, 0]], dtype=bool)}


@pytest.mark.parametrize(("levels", "fault"), [
    ((2, 1, 1), ""),
    ((0, 0, 0), "gap"),
    ((2, 2, 0), "caps"),
    ((1, 1, 2), "eligible"),
    ((2, 2, 1), "budget"),
    (None, "refused"),
])  # fmt: skip
def test_the_comparison_finds_every_fault(
    monkeypatch: pytest.MonkeyPatch, levels: tuple[int, ...] | None, fault: str
) -> None:
    def plan(*_: Any, **__: Any) -> Plan:
        if levels is None:
            raise make_below_cheapest_error("allocate", 1, 2)
        value = sum(CURVES[i, k] for i, k in enumerate(levels)) / 3
        return Plan(np.array(levels), value, 0.0, 0.0, value, 4 / 3)

    monkeypatch.setattr(lg, "allocate", plan)
    if not fault:
        check_constrained_plan(CURVES, np.arange(3.0), 4.0, RULES, exact=True)
        return
    with pytest.raises(AssertionError, match=fault):
        check_constrained_plan(CURVES, np.arange(3.0), 4.0, RULES, exact=True)
