import numpy as np
import pytest

from largesse.allocation.constraints.constraint_types import Constraints
from largesse.allocation.plan_and_frontier import allocate
from largesse.errors import BudgetError
from support.plans import attempt, keeps, paid_by, ruled_instance, ruled_optimum


@pytest.mark.parametrize("count", [80, pytest.param(1000, marks=pytest.mark.slow)])
def test_plans_keep_their_rules_and_are_within_their_gap_and_only_impossible_rules_are_refused(count: int) -> None:
    for seed in range(count):
        curves, costs, total, rules = ruled_instance(seed)
        judged = ruled_optimum(curves, costs, total, rules)
        best = judged[0] if judged else None
        plan, words = attempt(curves, costs, total, rules)
        if plan is None:
            assert best is None, words
            continue
        assert best is not None
        keeps(plan, curves, costs, total, rules)
        net = plan.value - rules.least_return * paid_by(plan.levels, costs, curves.shape) / len(curves)
        assert best - net <= plan.gap + 1e-9


def many() -> tuple[np.ndarray, np.ndarray, Constraints]:
    rng = np.random.default_rng(0)
    n = 200_000
    curves = np.cumsum(rng.random((n, 5), dtype=np.float32), axis=1)
    segment = rng.integers(0, 20, n)
    budgets = {s: float(n / 20 * (0.8 + 0.8 * rng.random())) for s in range(20)}
    return curves, np.arange(5.0), Constraints(caps={4: 20_000}, segment=segment, segment_budgets=budgets)


def test_many_customers_are_planned_within_a_ten_thousandth_and_shadow_prices_are_what_one_more_unit_brings() -> None:
    curves, costs, rules = many()
    plan = allocate(curves, costs, 1.2, constraints=rules)
    keeps(plan, curves, costs, 1.2 * len(curves), rules)
    assert plan.gap <= 2e-4 * plan.value
    plan = allocate(curves, costs, 2.0, constraints=rules)
    assert plan.shadow["cap of level 4"] > 0
    more = Constraints(caps={4: 22_000}, segment=rules.segment, segment_budgets=rules.segment_budgets)
    gained = (allocate(curves, costs, 2.0, constraints=more).bound - plan.bound) * len(curves) / 2000
    assert gained == pytest.approx(plan.shadow["cap of level 4"], rel=0.5)
    richer = Constraints(
        rules.eligible, rules.caps, {}, rules.segment, {**rules.segment_budgets, 3: 1.05 * rules.segment_budgets[3]}
    )
    extra = 0.05 * rules.segment_budgets[3]
    gained = (allocate(curves, costs, 2.0, constraints=richer).bound - plan.bound) * len(curves) / extra
    assert gained == pytest.approx(plan.shadow["segment 3"], rel=0.3)


def test_nothing_is_spent_that_brings_less_than_the_least_return() -> None:
    rng = np.random.default_rng(1)
    curves = np.cumsum(np.sort(rng.random((500, 4)), axis=1)[:, ::-1], axis=1)
    plan = allocate(curves, np.arange(4.0), 3.0, constraints=Constraints(least_return=0.5))
    last = curves[np.arange(500), plan.levels] - curves[np.arange(500), np.maximum(plan.levels - 1, 0)]
    assert (last[plan.levels > 0] >= 0.5).all()
    assert plan.price == 0.5


def test_no_rules_give_the_plan_without_them() -> None:
    rng = np.random.default_rng(2)
    curves, costs = rng.random((300, 4)), np.array([0.0, 0.7, 1.1, 2.0])
    plain, ruled = allocate(curves, costs, 0.8), allocate(curves, costs, 0.8, constraints=Constraints())
    assert ruled.bound == pytest.approx(plain.bound, rel=1e-6)
    assert ruled.price == pytest.approx(plain.price, rel=1e-3)


CURVES, COSTS = np.tile([0.0, 0.5, 0.9], (10, 1)), np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("rules", "budget", "message"),
    [
        (Constraints(eligible=np.zeros((10, 3))), 3, "10 customers may get no level at all"),
        (
            Constraints(shares={2: 0.5}, caps={2: 3}),
            3,
            "5 customers must get level 2, but only 3 may\n.*lower its share to 0.3",
        ),
        (Constraints(shares={1: 0.7, 2: 0.7}), 3, "shares add up to 1.4"),
        (Constraints(caps={0: 3, 1: 2, 2: 1}), 3, "capped at 6\n.*raise the caps by 4"),
        (
            Constraints(eligible=np.tile([False, True, True], (10, 1)), caps={1: 4, 2: 3}),
            3,
            "raise the caps by 3 together",
        ),
        (
            Constraints(segment=["a", "b"] * 5, segment_budgets={"a": 4}),
            3,
            "segment 'a' is 4, .*cost 5\n.*raise it to 5",
        ),
        (Constraints(eligible=np.tile([False, True, True], (10, 1))), 1.5, "cheapest levels cost 20\n.*raise it to 20"),
        (
            Constraints(shares={2: 0.5}),
            1.5,
            "no plan keeps the budget and the share of level 2 at once\n"
            ".*raise the budget to 20 .2 per customer. or lower the share of level 2 to 0.2",
        ),
        (
            Constraints(shares={2: 0.5}, caps={0: 9}),
            1.5,
            "no plan keeps the budget and the share of level 2 together with the other rules",
        ),
    ],
)
def test_rules_that_cannot_be_kept_are_named_with_what_would_help(
    rules: Constraints, budget: float, message: str
) -> None:
    with pytest.raises(BudgetError, match=message):
        allocate(CURVES, COSTS, budget, constraints=rules)
