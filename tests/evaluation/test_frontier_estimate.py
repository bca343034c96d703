from dataclasses import replace

import numpy as np
import pytest

from largesse.evaluation.crossfitted_scores import crossfit_scores
from largesse.evaluation.frontier_estimate import (
    N_BUDGETS,
    _compute_trapezoid_weights,
    add_budget_to_grid,
    estimate_frontier,
    estimate_qini_curve,
    find_band_critical_value,
    make_budget_grid,
    plan_at_budgets,
    plan_each_fold,
)
from largesse.evaluation.policy_estimates import estimate_policy_value_and_spend
from largesse.levels import Levels
from largesse.records import Array, FrontierPoint, Log, QiniCurve, Scores
from largesse.worlds.paper_simulations import simulate


def narrow(name: str, n: int) -> Log:
    """A simulated log with a few of its features: quicker to fit."""
    log = simulate(name, n=n, seed=2, mix=0.3).log
    return replace(log, features=log.features.select([f"x{j}" for j in range(6)]))


@pytest.fixture(scope="module")
def scores() -> Scores:
    return crossfit_scores(narrow("confounded", 600))


@pytest.fixture(scope="module")
def front(scores: Scores) -> tuple[FrontierPoint, ...]:
    return estimate_frontier(scores, plan_at_budgets(scores, make_budget_grid(scores)))


def at(scores: Scores, *budgets: float, estimator: str = "dr") -> tuple[FrontierPoint, ...]:
    return estimate_frontier(scores, plan_at_budgets(scores, budgets), estimator)


def test_points_run_from_the_cheapest_to_the_dearest_plan(front: tuple[FrontierPoint, ...]) -> None:
    assert len(front) == N_BUDGETS
    assert [point.budget for point in front] == pytest.approx(np.linspace(0, 4, N_BUDGETS).tolist())
    assert (np.diff([point.budget for point in front]) > 0).all()
    assert (np.diff([point.promise for point in front]) > 0).all()
    assert (np.diff([point.price for point in front]) <= 0).all()
    assert (np.diff([point.spend.estimate for point in front]) > 0).all()
    assert front[-1].price == 0


def test_spend_stays_within_every_budget(front: tuple[FrontierPoint, ...]) -> None:
    for point in front:
        assert point.budget - 0.02 < point.spend.estimate <= point.budget + 1e-12
        assert point.value.low < point.value.estimate < point.value.high


def test_corrected_spend_on_redemption_stays_within_every_budget() -> None:
    log = replace(narrow("averaged", 400), levels=Levels(costs=[0, 1, 2, 3, 4], on_redemption=True))
    scores = crossfit_scores(log)
    for budget in make_budget_grid(scores):
        plan = plan_each_fold(scores, budget)
        assert plan.scales is not None
        costs = scores.expected_costs * plan.scales[scores.fold][:, None]
        assert costs[np.arange(400), plan.levels].mean() <= budget * (1 + 1e-12)


def test_ends_are_uniform_policies(scores: Scores) -> None:
    for point, k in zip(at(scores, 0.0, 4.0, 9.0), (0, 4, 4), strict=True):
        assert point.value == estimate_policy_value_and_spend(scores, np.full(600, k))[0]


def test_a_point_is_what_a_plan_for_its_budget_brings(scores: Scores) -> None:
    for point in at(scores, 0.5, 1.5, 2.5):
        value, _ = estimate_policy_value_and_spend(scores, plan_each_fold(scores, point.budget).levels)
        assert point.value.estimate == pytest.approx(value.estimate, abs=0.02)  # plans also spend what rounding left


@pytest.mark.parametrize(("also", "there"), [(1.234, 1.234), (99.0, 4.0), (-1.0, 0.0)])
def test_the_budget_asked_about_is_one_of_the_points(scores: Scores, also: float, there: float) -> None:
    budgets = add_budget_to_grid(make_budget_grid(scores), also)
    assert np.isclose(budgets, there).any()
    assert (np.diff(budgets) > 0).all()


def weighted_spend(scores: Scores, weight: Array) -> float:
    (point,) = at(replace(scores, weight=weight / weight.mean()), 1.2)
    return point.spend.estimate


def test_weighted_rows_keep_the_budget(scores: Scores) -> None:
    weight = np.where(scores.curves[:, 4] - scores.curves[:, 0] > 0.2, 5.0, 1.0)
    assert 1.1 < weighted_spend(scores, weight) <= 1.2 + 1e-9


# ---------------------------------------------------------------------------------------------- all budgets together


def test_the_simultaneous_band_is_wider_than_the_pointwise_one(front: tuple[FrontierPoint, ...]) -> None:
    for point in front:
        low, high = point.band
        assert low < point.value.low < point.value.high < high
        assert (point.value.estimate - low) / point.value.se < 3.5


def test_one_point_has_one_interval(scores: Scores) -> None:
    (point,) = at(scores, 1.0)
    assert point.band == pytest.approx(point.value.interval)


@pytest.mark.parametrize(("same", "critical_value"), [(1.0, 1.96), (0.0, 3.03)])
def test_the_critical_value_depends_on_the_correlation_of_the_points(same: float, critical_value: float) -> None:
    """Points that err together need no more than one; 21 that err apart need the quantile of the largest of 21."""
    rng = np.random.default_rng(0)
    parts = np.sqrt(same) * rng.normal(size=(20_000, 1)) + np.sqrt(1 - same) * rng.normal(size=(20_000, 21))
    assert find_band_critical_value(parts) == pytest.approx(critical_value, abs=0.04)


def test_clusters_widen_the_band(scores: Scores) -> None:
    village = np.arange(600) // 30
    wide = at(replace(scores, cluster=village), 1.0, 2.0, 3.0)
    assert all(np.isfinite(point.band).all() for point in wide)
    assert wide[0].band[1] - wide[0].band[0] > (wide[0].value.high - wide[0].value.low) * 0.999


def test_another_estimator_may_be_asked(scores: Scores) -> None:
    one, other = (at(scores, 2.0, estimator=e)[0].value.estimate for e in ("dr", "direct"))
    assert one != other


# ---------------------------------------------------------------------------------------------- cost curve


def cost_curve(scores: Scores) -> QiniCurve:
    plans = plan_at_budgets(scores, make_budget_grid(scores))
    return estimate_qini_curve(scores, plans, [point.spend.estimate for point in estimate_frontier(scores, plans)])


def knowing(seed: int = 0, n: int = 2000, *, blind: bool = False) -> Scores:
    """Half of the customers respond only to a level, half respond anyway; the curves know it, or know nothing."""
    rng = np.random.default_rng(seed)
    moved = rng.random(n) < 0.5
    truth = np.column_stack([np.where(moved, 0.0, 0.8), np.full(n, 0.8)])
    gamma = truth + rng.normal(scale=0.3, size=truth.shape)
    shares = np.tile(truth.mean(axis=0), (n, 1)) + rng.normal(scale=1e-3, size=truth.shape)
    curves = shares if blind else truth
    costs = np.broadcast_to([0.0, 1.0], gamma.shape)
    level = np.arange(n) % 2
    return Scores(
        curves=curves,
        gamma=gamma,
        costs=costs,
        expected_costs=costs,
        propensity=np.full(n, 0.5),
        fold=np.arange(n) % 5,
        level=level,
        response=truth[np.arange(n), level],
        paid=level * 1.0,
        weight=np.ones(n),
        cluster=None,
    )


def test_choosing_pays_where_curves_know_whom_to_choose() -> None:
    found = cost_curve(knowing())
    # Up to half the customers the learnt curve rises twice as fast: the gap grows from 0 to .2.
    assert found.area.estimate == pytest.approx(0.1, abs=0.02)
    assert found.area.low > 0.05
    middle = min(found.points, key=lambda point: abs(point.spend - 0.5))
    assert middle.difference.estimate == pytest.approx(0.2, abs=0.04)


def test_choosing_blindly_gains_nothing() -> None:
    areas = [cost_curve(knowing(seed, 500, blind=True)).area for seed in range(25)]
    assert np.mean([area.low <= 0 <= area.high for area in areas]) > 0.8
    assert abs(np.mean([area.estimate for area in areas])) < 0.01


def test_both_curves_start_at_the_cheapest_plan() -> None:
    first = cost_curve(knowing()).points[0]
    assert (first.spend, first.gain.estimate) == (0, 0)
    assert (first.uniform, first.difference.estimate) == pytest.approx((0, 0), abs=1e-12)


def test_spends_that_are_estimated_are_put_on_one_level() -> None:
    sim = simulate("averaged", n=1000, seed=3, mix=0.5)
    log = replace(sim.log, levels=Levels(costs=[0, 1, 2, 3, 4], on_redemption=True))
    log = replace(log, features=log.features.select([f"x{j}" for j in range(6)]))
    found = cost_curve(crossfit_scores(log))
    assert found.area.low < 0.02
    assert found.area.high > -0.02


def test_shares_of_the_area_sum_to_one() -> None:
    assert _compute_trapezoid_weights(np.array([0.0, 1.0, 3.0])).tolist() == pytest.approx([1 / 6, 1 / 2, 1 / 3])
    assert _compute_trapezoid_weights(np.array([2.0, 2.0])).tolist() == [0.5, 0.5]


# ---------------------------------------------------------------------------------------------- plans


def test_plans_keep_the_budget_in_every_fold(scores: Scores) -> None:
    for budget in (0.0, 0.7, 1.5, 4.0, 9.0):
        levels = plan_each_fold(scores, budget).levels
        for f in range(5):
            assert levels[scores.fold == f].mean() <= budget


def test_plans_keep_a_weighted_budget(scores: Scores) -> None:
    weight = np.where(scores.curves[:, 0] > np.median(scores.curves[:, 0]), 3.0, 0.5)
    scores = replace(scores, weight=weight / weight.mean())
    levels = plan_each_fold(scores, 1.2).levels
    for f in range(5):
        rows = scores.fold == f
        assert 1.1 < np.average(levels[rows], weights=weight[rows]) <= 1.2 * (1 + 1e-12)


def test_a_part_whose_cheapest_plan_is_over_the_budget_gets_that_plan() -> None:
    curves = np.tile([0.1, 0.5, 0.6], (6, 1))
    costs = np.where(np.arange(6)[:, None] % 2 == 0, [0.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    scores = replace(
        knowing(n=6), curves=curves, expected_costs=costs, fold=np.arange(6) % 2
    )  # fold 1 costs at least 1
    levels = plan_each_fold(scores, 0.7).levels
    assert (levels[scores.fold == 1] == 0).all()
    assert costs[np.arange(6), levels][scores.fold == 0].mean() <= 0.7


def test_a_fold_without_weight_is_planned_all_the_same() -> None:
    log = narrow("averaged", 300)
    scores = crossfit_scores(log)
    weight = np.where(scores.fold == 2, 0.0, 1.25)
    plan = plan_each_fold(replace(scores, weight=weight), 1.5)
    assert set(np.unique(plan.levels)) <= set(range(len(log.levels)))
