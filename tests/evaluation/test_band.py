from dataclasses import replace

import numpy as np
import pytest

from largesse.evaluation.band import POINTS, frontier_band, simultaneous_reach, usual_budgets
from largesse.evaluation.crossfitting import crossfit
from largesse.evaluation.value import learnt_levels, policy_value
from largesse.levels import Levels
from largesse.records import Array, Log, Scores
from largesse.worlds.simulation import simulate


def narrow(name: str, n: int) -> Log:
    """A simulated log with a few of its features: quicker to fit."""
    log = simulate(name, n=n, seed=2, mix=0.3).log
    return replace(log, features=log.features.select([f"x{j}" for j in range(6)]))


@pytest.fixture(scope="module")
def scores() -> Scores:
    return crossfit(narrow("confounded", 600))


def test_points_run_from_the_cheapest_to_the_dearest_plan(scores: Scores) -> None:
    band = frontier_band(scores)
    assert len(band) == POINTS
    assert [point.budget for point in band] == pytest.approx(np.linspace(0, 4, POINTS).tolist())
    assert (np.diff([point.budget for point in band]) > 0).all()
    assert (np.diff([point.promise for point in band]) > 0).all()
    assert (np.diff([point.price for point in band]) <= 0).all()
    assert (np.diff([point.spend.estimate for point in band]) > 0).all()
    assert band[-1].price == 0


def test_spend_stays_within_every_budget(scores: Scores) -> None:
    for point in frontier_band(scores):
        assert point.budget - 0.02 < point.spend.estimate <= point.budget + 1e-12
        assert point.value.low < point.value.estimate < point.value.high


def test_expected_spend_on_redemption_stays_within_every_budget() -> None:
    log = replace(narrow("averaged", 400), levels=Levels(costs=[0, 1, 2, 3, 4], on_redemption=True))
    scores = crossfit(log)
    for budget in usual_budgets(scores):
        levels = learnt_levels(scores, budget)
        assert scores.expected_costs[np.arange(400), levels].mean() <= budget * (1 + 1e-12)


def test_ends_are_uniform_policies(scores: Scores) -> None:
    band = frontier_band(scores, np.array([0.0, 4.0, 9.0]))
    for point, k in zip(band, (0, 4, 4), strict=True):
        assert point.value == policy_value(scores, np.full(600, k))[0]


def test_a_point_is_what_a_plan_for_its_budget_brings(scores: Scores) -> None:
    for point in frontier_band(scores, np.array([0.5, 1.5, 2.5])):
        value, _ = policy_value(scores, learnt_levels(scores, point.budget))
        assert point.value.estimate == pytest.approx(value.estimate, abs=0.02)  # plans also spend what rounding left


@pytest.mark.parametrize(("also", "there"), [(1.234, 1.234), (99.0, 4.0), (-1.0, 0.0)])
def test_the_budget_asked_about_is_one_of_the_points(scores: Scores, also: float, there: float) -> None:
    budgets = usual_budgets(scores, also)
    assert np.isclose(budgets, there).any()
    assert (np.diff(budgets) > 0).all()


def weighted_spend(scores: Scores, weight: Array) -> float:
    (point,) = frontier_band(replace(scores, weight=weight / weight.mean()), np.array([1.2]))
    return point.spend.estimate


def test_weighted_rows_keep_the_budget(scores: Scores) -> None:
    weight = np.where(scores.curves[:, 4] - scores.curves[:, 0] > 0.2, 5.0, 1.0)
    assert 1.1 < weighted_spend(scores, weight) <= 1.2 + 1e-9


# ---------------------------------------------------------------------------------------------- all budgets together


def test_the_simultaneous_band_is_wider_than_the_pointwise_one(scores: Scores) -> None:
    for point in frontier_band(scores):
        low, high = point.band
        assert low < point.value.low < point.value.high < high
        assert (point.value.estimate - low) / point.value.se < 3.5


def test_one_point_has_one_interval(scores: Scores) -> None:
    (point,) = frontier_band(scores, np.array([1.0]))
    assert point.band == pytest.approx(point.value.interval)


@pytest.mark.parametrize(("same", "reach"), [(1.0, 1.96), (0.0, 3.03)])
def test_the_reach_depends_on_how_alike_the_points_are(same: float, reach: float) -> None:
    """Points that err together need no more than one; 21 that err apart need the quantile of the largest of 21."""
    rng = np.random.default_rng(0)
    parts = np.sqrt(same) * rng.normal(size=(20_000, 1)) + np.sqrt(1 - same) * rng.normal(size=(20_000, 21))
    assert simultaneous_reach(parts) == pytest.approx(reach, abs=0.04)


def test_clusters_widen_the_band(scores: Scores) -> None:
    village = np.arange(600) // 30
    wide = frontier_band(replace(scores, cluster=village), np.array([1.0, 2.0, 3.0]))
    assert all(np.isfinite(point.band).all() for point in wide)
    assert wide[0].band[1] - wide[0].band[0] > (wide[0].value.high - wide[0].value.low) * 0.999


def test_another_estimator_may_be_asked(scores: Scores) -> None:
    one, other = (frontier_band(scores, np.array([2.0]), e)[0].value.estimate for e in ("dr", "direct"))
    assert one != other
