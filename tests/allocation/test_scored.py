"""Plans by passes over batches: the same whatever the batches, and as good as `allocate` says a plan can be."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import KINDS, instances, linear_optimum, paid_by

from largesse.allocation import (
    Gather,
    Look,
    allocate,
    check_batch,
    correct_costs,
    correct_scored,
    exploring_budget,
    find_mixture,
    hold_scores,
    pack_answer,
    price_plan,
    unpack_answer,
)
from largesse.allocation.passes import look as looks
from largesse.allocation.scored import PricedPlan, ScoredBatches
from largesse.errors import BudgetError, InputError
from largesse.records import Array, Spending

laws = settings(max_examples=60, deadline=None, derandomize=True)


def cut(curves: Array, costs: Array, places: list[int], *, backwards: bool = False) -> ScoredBatches:
    """Return customers in batches that end at these places, the last batch first if backwards."""
    ends = sorted({0, len(curves), *(place % len(curves) for place in places)})
    spans = list(pairwise(ends))
    costs = np.asarray(costs)
    batches = [check_batch(curves[a:b], costs if costs.ndim == 1 else costs[a:b], a) for a, b in spans]
    return ScoredBatches(len(curves), lambda: batches[::-1] if backwards else batches)


def levels_of(scored: ScoredBatches, plan: PricedPlan) -> Array:
    levels = np.full(plan.n, -1)
    for rows, curves, costs in scored.batches():
        levels[rows] = plan.decide(rows, curves, costs)[0]
    return levels


@contextmanager
def few_open(most: int) -> Iterator[None]:
    """Let only so many steps be looked at one by one: then it takes many looks, at rows, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looks, "MOST_OPEN", most)
        yield


numbers = st.floats(0, 10, allow_nan=False, width=32).map(lambda x: round(x, 3))


@st.composite
def tasks(draw: st.DrawFn) -> tuple[Array, Array, float]:
    """Curves, some of them often, costs for all or for each, and a budget."""
    n, K, kinds = draw(st.integers(1, 40)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    rows = st.lists(numbers, min_size=K, max_size=K)
    kind = draw(st.lists(st.integers(0, kinds - 1), min_size=n, max_size=n))
    curves = np.array(draw(st.lists(rows, min_size=kinds, max_size=kinds)))[kind]
    if draw(st.booleans()):
        return curves, np.array(draw(st.lists(rows, min_size=kinds, max_size=kinds)))[kind], draw(numbers)
    return curves, np.array(draw(rows)), draw(numbers)


def possible(curves: Array, costs: Array, budget: float) -> bool:
    return bool(np.broadcast_to(costs, curves.shape).min(axis=1).mean() <= budget * (1 - 1e-9))


# ---------------------------------------------------------------------------------------------- the same plan


@laws
@given(tasks(), st.lists(st.integers(0, 99), max_size=6), st.sampled_from([4, 9, 1 << 16]), st.booleans())
def test_batches_change_nothing(task: Any, places: list[int], most: int, backwards: bool) -> None:
    curves, costs, budget = task
    assume(possible(curves, costs, budget))
    with few_open(most):
        whole, parts = hold_scores(curves, costs), cut(curves, costs, places, backwards=backwards)
        one, other = price_plan(whole, budget), price_plan(parts, budget)
        assert (one.price, one.value, one.spend, one.bound) == (other.price, other.value, other.spend, other.bound)
        assert np.array_equal(levels_of(whole, one), levels_of(parts, other))
        assert one.settled.look == other.settled.look


@laws
@given(tasks(), st.sampled_from([4, 9, 1 << 16]))
def test_price_and_bound_do_not_hang_on_how_many_looks_it_takes(task: Any, most: int) -> None:
    curves, costs, budget = task
    assume(possible(curves, costs, budget))
    scored = hold_scores(curves, costs)
    plan = price_plan(scored, budget)
    with few_open(most):
        closer = price_plan(scored, budget)
    # The price of a budget that only rounding keeps from a further step lies outside of what was looked at.
    dear = price_plan(scored, budget * (1 - 1e-11)).price
    assert closer.price in (plan.price, dear)
    assert closer.bound == pytest.approx(plan.bound, abs=1e-12)
    assert closer.bound - closer.value <= np.ptp(curves, axis=1).max() / len(curves) + 1e-12


@laws
@given(tasks(), st.sampled_from([4, 1 << 16]))
def test_the_plan_is_what_it_says_and_as_good_as_one_in_memory(task: Any, most: int) -> None:
    curves, costs, budget = task
    assume(possible(curves, costs, budget))
    n, other = len(curves), allocate(curves, costs, budget)
    with few_open(most):
        scored = hold_scores(curves, costs)
        plan = price_plan(scored, budget)
        levels = levels_of(scored, plan)
    assert plan.value == math.fsum(curves[np.arange(n), levels]) / n
    assert paid_by(levels, costs, curves.shape) <= budget * n
    assert plan.spend <= budget == plan.budget
    assert plan.bound == pytest.approx(other.bound, abs=1e-12)
    assert other.value - plan.value <= plan.bound - plan.value + 1e-12
    assert plan.value <= plan.bound


@pytest.mark.parametrize("kind", KINDS)
def test_bound_is_the_linear_optimum_and_the_gap_one_step_at_most(kind: Any) -> None:
    for curves, costs, budget in instances(kind, 20):
        plan, other = price_plan(hold_scores(curves, costs), budget), allocate(curves, costs, budget)
        assert plan.bound == pytest.approx(linear_optimum(curves, costs, budget), abs=1e-9)
        assert plan.price == pytest.approx(other.price, rel=1e-9, abs=1e-12)
        assert plan.bound - plan.value <= np.ptp(curves, axis=1).max() / len(curves) + 1e-12


# ---------------------------------------------------------------------------------------------- many customers

N = 30_000


def crowd(name: str) -> tuple[Array, Array]:
    rng = np.random.default_rng(3)
    curves, costs = rng.random((N, 5)), np.array([0.0, 1.0, 2.0, 3.5, 4.0])
    return {
        "common": (np.cumsum(curves, axis=1), costs),
        "own": (curves, rng.random((N, 5)) * 4),
        "single": (curves.astype(np.float32), rng.random((N, 5), dtype=np.float32)),
        "heavy": (curves, np.sort(rng.pareto(1.1, (N, 5)), axis=1)),
        "ten curves": (np.cumsum(rng.random((10, 5)), axis=1)[rng.integers(0, 10, N)], costs),
        "one curve": (np.tile([0.0, 0.1, 0.2, 0.35, 0.4], (N, 1)), costs),
        "flat": (np.full((N, 5), 0.5), costs),
        "free": (curves, np.array([0.0, 0.0, 1.0, 1.0, 2.0])),
    }[name]


@pytest.mark.parametrize("name", ["common", "own", "single", "heavy", "ten curves", "one curve", "flat", "free"])
@pytest.mark.parametrize("most", [64, 1 << 16])
def test_large_tables_are_planned_as_in_memory(name: str, most: int) -> None:
    curves, costs = crowd(name)
    wide = np.broadcast_to(costs, curves.shape)
    low, high = wide.min(axis=1).astype(float).mean(), wide.max(axis=1).astype(float).mean()
    with few_open(most):
        scored = cut(curves, costs, [1, 7000, 7001, 20_000])
        for part in (1e-9, 1e-4, 0.3, 0.5, 0.999, 1.5):
            budget = float(low + part * (high - low))
            plan, other = price_plan(scored, budget), allocate(curves, costs, budget)
            levels = levels_of(scored, plan)
            assert len(plan.settled.rows) <= most
            assert plan.price == pytest.approx(other.price, rel=1e-9, abs=1e-12)
            assert plan.bound == pytest.approx(other.bound, rel=1e-12)
            assert plan.value >= other.value - np.ptp(curves, axis=1).max() / N
            assert paid_by(levels, costs, curves.shape) <= budget * N
            assert plan.value == math.fsum(curves[np.arange(N), levels]) / N


def test_rows_need_not_follow_each_other() -> None:
    curves, costs = crowd("one curve")
    rows = np.arange(N) * 8589934592 + 5  # as a cluster numbers them
    scored = ScoredBatches(N, lambda: [(rows, *check_batch(curves, costs)[1:])])
    with few_open(64):
        plan, same = price_plan(scored, 1.7), price_plan(hold_scores(curves, costs), 1.7)
        assert np.array_equal(
            levels_of(hold_scores(curves, costs), same), plan.decide(*next(iter(scored.batches())))[0]
        )
        assert (plan.price, plan.value, plan.bound) == (same.price, same.value, same.bound)


# ---------------------------------------------------------------------------------------------- ends and breakpoints


@pytest.mark.parametrize("most", [1, 1 << 16])
@pytest.mark.parametrize("unit", [0.125, 0.1])
def test_a_budget_at_a_breakpoint_is_spent(most: int, unit: float) -> None:
    curves, costs = np.repeat([[0.0, 1.0, 1.5], [0.0, 0.8, 1.0]], [50, 50], axis=0), np.array([0.0, unit, 2 * unit])
    with few_open(most):
        scored = cut(curves, costs, [13, 77])
        for steps, before, after in ((50, 1.0, 0.8), (100, 0.8, 0.5), (150, 0.5, 0.2), (200, 0.2, 0.0)):
            plan = price_plan(scored, total=steps * unit)
            left = 0.0 if unit == 0.125 else unit  # the sum of a hundred dimes is a bit above ten
            assert steps * unit - left <= plan.spend * 100 + 1e-12
            # Where a budget buys just so much, one unit less would have brought `before`, one more brings `after`.
            assert plan.price * unit == pytest.approx(after) or (
                most == 1 and plan.price * unit == pytest.approx(before)
            )


def test_price_is_zero_when_everything_is_affordable() -> None:
    scored = hold_scores([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]], [0, 1, 2])
    for budget in (2.0, 7.0, math.inf):
        plan = price_plan(scored, budget)
        assert (plan.price, levels_of(scored, plan).tolist()) == (0.0, [2, 2])
    dimes = hold_scores(np.tile([0.0, 1.0], (10, 1)), [0.0, 0.1])
    assert price_plan(dimes, total=sum([0.1] * 10)).price == 0.0  # 0.9999999999999999: one less than everybody


def test_no_budget_buys_only_what_is_free() -> None:
    scored = hold_scores([[0.1, 0.3, 0.9], [0.2, 0.1, 0.9]], [0, 0, 1])
    plan = price_plan(scored, budget=0)
    assert levels_of(scored, plan).tolist() == [1, 0]
    assert (plan.spend, plan.price) == (0.0, 0.7)


@pytest.mark.parametrize("most", [2, 1 << 16])
def test_ties_are_split_in_the_order_of_the_rows(most: int) -> None:
    with few_open(most):
        scored = cut(np.tile([0.0, 0.5], (1000, 1)), np.array([0.0, 1.0]), [300, 301])
        levels = levels_of(scored, price_plan(scored, total=640))
    assert levels.tolist() == [1] * 640 + [0] * 360


def test_a_budget_below_the_cheapest_plan_is_refused_in_its_own_unit() -> None:
    with pytest.raises(BudgetError, match=r"budget of 0\.5 is below the cheapest plan, which costs 1 per customer"):
        price_plan(hold_scores([[0.1, 0.4], [0.2, 0.3]], [1, 2]), 0.5)


@pytest.mark.parametrize(
    ("curves", "costs", "message"),
    [
        ([[0.1, math.nan]], [0, 1], "curves hold missing or infinite"),
        ([[0.1, 0.4]], [0, -1], "costs hold negative"),
        (np.zeros((0, 2)), [0, 1], r"curves have shape \(0, 2\)"),
    ],
)
def test_batches_are_refused_as_tables_are(curves: Any, costs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_batch(curves, costs)


# ---------------------------------------------------------------------------------------------- rules, exploring, spending


@laws
@given(tasks(), st.lists(st.integers(0, 99), max_size=6), st.sampled_from([0.0, 0.2, 1.0]))
def test_rules_and_exploring_are_those_in_memory(task: Any, places: list[int], explore: float) -> None:
    curves, costs, budget = task
    random = float(np.broadcast_to(costs, curves.shape).mean())
    assume(possible(curves, costs, budget))
    assume(explore == 0 or possible(curves, costs, (budget - explore * random) / max(1 - explore, 1e-9)))
    parts = cut(curves, costs, places)
    plan = price_plan(parts, budget, explore=explore, seed=7)
    if not explore:
        rule = find_mixture(curves, costs, plan.price, budget)
        assert (plan.rule.price, plan.rule.explore) == (rule.price, 0.0)
        assert plan.rule.share == pytest.approx(rule.share, abs=1e-9)
        return
    made = allocate(curves, costs, exploring_budget(np.broadcast_to(costs, curves.shape), budget, explore))
    value = (1 - explore) * made.value + explore * float(curves.mean())
    spend = (1 - explore) * made.spend + explore * random
    assert (plan.value, plan.spend) == pytest.approx((value, min(spend, budget)), abs=1e-9)
    assert plan.rule.explore == explore


def test_what_is_drawn_does_not_hang_on_batches() -> None:
    curves, costs = crowd("common")
    whole, parts = hold_scores(curves, costs), cut(curves, costs, [1, 7000, 7001, 20_000])
    one, other = (price_plan(scored, 1.5, explore=0.3, seed=3) for scored in (whole, parts))
    drawn = [other.decide(*batch) for batch in parts.batches()]
    levels, chances = one.decide(*next(iter(whole.batches())))
    assert np.array_equal(levels, np.concatenate([part for part, _ in drawn]))
    assert np.array_equal(chances, np.concatenate([part for _, part in drawn if part is not None]))
    planned = one.settled.decide(*next(iter(whole.batches())))
    assert 0.22 < np.mean(levels != planned) < 0.26  # one of five who explore draws what was planned


@pytest.mark.parametrize("confidence", [0.5, 0.9])
@pytest.mark.parametrize("name", ["common", "own", "ten curves"])
def test_costs_are_corrected_as_in_memory(name: str, confidence: float) -> None:
    curves, costs = crowd(name)
    prices = (2.0, 0.5, 0.1, 0.0)
    spending = Spending(prices, (0.1, 0.5, 1.0, 2.0), (0.2, 0.6, 1.3, 2.1), (0.01, 0.02, 0.1, 0.1))
    known = correct_costs(curves, costs, 1.2, spending, confidence)
    found = correct_scored(cut(curves, costs, [5, 700]), 1.2, spending, confidence)
    assert (found.scale, found.error, found.ratio) == pytest.approx((known.scale, known.error, known.ratio), rel=1e-9)
    assert correct_scored(hold_scores(curves, costs), 1.2, None).scale == 1.0


# ---------------------------------------------------------------------------------------------- tallies


def test_answers_travel_as_bytes() -> None:
    rows, curves, costs = check_batch(*crowd("own"))
    for question in (Look(), Look(0.6, 0.5), Look(0.5, 0.5, 3, 900), Gather(Look(0.6, 0.59))):
        answer: Any = question.of(rows, curves, costs)
        packed = pack_answer(answer)
        assert len(packed) < 100_000
        again = unpack_answer(type(answer), packed)
        for name, part in vars(answer).items():
            assert np.array_equal(getattr(again, name), part)


def test_a_batch_without_rows_adds_nothing() -> None:
    rows, curves, costs = check_batch(*crowd("common"))
    tally = Look().of(rows, curves, costs)
    both = tally + Look().of(rows[:0], curves[:0], costs)
    assert (both.n, both.last, both.spent) == (tally.n, tally.last, tally.spent)
    assert np.array_equal(both.paid, tally.paid)
