from dataclasses import replace

import numpy as np
import pytest

from largesse.evaluation.crossfitting import crossfit
from largesse.evaluation.qini import _trapezoid, qini
from largesse.levels import Levels
from largesse.records import Scores
from largesse.worlds.simulation import simulate


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
        propensity_source="given",
    )


def test_choosing_pays_where_curves_know_whom_to_choose() -> None:
    found = qini(knowing())
    # Up to half the customers the learnt curve rises twice as fast: the gap grows from 0 to .2.
    assert found.area.estimate == pytest.approx(0.1, abs=0.02)
    assert found.area.low > 0.05
    middle = min(found.points, key=lambda point: abs(point.spend - 0.5))
    assert middle.difference.estimate == pytest.approx(0.2, abs=0.04)


def test_choosing_blindly_gains_nothing() -> None:
    areas = [qini(knowing(seed, 500, blind=True)).area for seed in range(25)]
    assert np.mean([area.low <= 0 <= area.high for area in areas]) > 0.8
    assert abs(np.mean([area.estimate for area in areas])) < 0.01


def test_both_curves_start_at_the_cheapest_plan() -> None:
    first = qini(knowing()).points[0]
    assert (first.spend, first.gain.estimate) == (0, 0)
    assert (first.uniform, first.difference.estimate) == pytest.approx((0, 0), abs=1e-12)


def test_spends_that_are_estimated_are_put_on_one_level() -> None:
    sim = simulate("averaged", n=1000, seed=3, mix=0.5)
    log = replace(sim.log, levels=Levels(costs=[0, 1, 2, 3, 4], on_redemption=True))
    log = replace(log, features=log.features.select([f"x{j}" for j in range(6)]))
    found = qini(crossfit(log))
    assert found.area.low < 0.02
    assert found.area.high > -0.02


def test_shares_of_the_area_sum_to_one() -> None:
    assert _trapezoid(np.array([0.0, 1.0, 3.0])).tolist() == pytest.approx([1 / 6, 1 / 2, 1 / 3])
    assert _trapezoid(np.array([2.0, 2.0])).tolist() == [0.5, 0.5]
