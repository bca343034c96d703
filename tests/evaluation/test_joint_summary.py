"""Estimates at the slider's budgets, on lines between those that were judged, and the rows that an open gain needs."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from largesse.allocation import allocate
from largesse.data import log_from_arrays
from largesse.evaluation import estimate_at_slider_budgets, make_study, summarise_study
from largesse.evaluation.study_estimation import interpolate_at_budget, interpolate_estimate, interpolate_mix_value
from largesse.levels import Levels
from largesse.records import BudgetSlider, Estimate, PlanSummary, SliderPlan, StudySummary
from largesse.response import Linear
from support.plans import summarise

BUDGET = 0.8


def around(middle: float, half: float = 0.1) -> Estimate:
    return Estimate(middle, half / 1.96, middle - half, middle + half)


@pytest.fixture(scope="module")
def run() -> tuple[PlanSummary, StudySummary]:
    rng = np.random.default_rng(3)
    x, level = rng.normal(size=300), rng.integers(0, 3, 300)
    levels = Levels(costs=[0, 1, 2])
    response = level * (0.5 + x) + rng.normal(0, 0.5, 300)
    log = replace(log_from_arrays(pa.table({"x": x}), level, response, levels=levels), response_value=2.0)
    curves = Linear().fit(log).predict(log.features)
    costs = np.tile([0.0, 1.0, 2.0], (300, 1))
    plan = summarise(allocate(curves, costs, BUDGET), log.features, curves, costs, log.levels.labels)
    return plan, summarise_study(make_study(log, Linear(), BUDGET))


def test_at_judged_budgets_the_estimates_are_the_judged_ones(run: tuple[PlanSummary, StudySummary]) -> None:
    study = run[1]
    for point, qini in zip(study.frontier.points, study.targeting.points, strict=True):
        found = interpolate_at_budget(study, point.budget)
        assert found.judged
        assert found.value is not None
        assert (found.value.estimate, found.value.low) == pytest.approx((point.value.estimate, point.value.low))
        assert found.profit is not None
        assert point.profit is not None
        assert found.profit.estimate == pytest.approx(point.profit.estimate)
        if point is not study.frontier.points[0]:
            assert found.gain is not None
            assert (found.gain.estimate, found.gain.high) == pytest.approx(
                (qini.difference.estimate, qini.difference.high)
            )
    own = interpolate_at_budget(study, BUDGET)
    assert own.value is not None
    assert own.value.estimate == pytest.approx(study.value.estimate)
    assert own.gain is not None
    assert own.gain.estimate == pytest.approx(study.versus[0].difference.estimate)


def test_every_stop_has_estimates_or_none(run: tuple[PlanSummary, StudySummary]) -> None:
    plan, study = run
    a, b = (point.budget for point in study.frontier.points[3:5])
    stops = [SliderPlan(budget, budget, 0.0, 0.1, (), ()) for budget in ((a + b) / 2, 1e9, math.nan)]
    joint = estimate_at_slider_budgets(replace(plan, frontier=BudgetSlider(tuple(stops))), study)
    between, *beyond = joint.frontier.estimates
    left, right = (point.value.estimate for point in study.frontier.points[3:5])
    assert between.value is not None
    assert between.value.estimate == pytest.approx((left + right) / 2)
    for found in (between, *beyond):
        assert not found.judged
    for found in beyond:
        assert (found.value, found.gain, found.profit) == (None, None, None)


def test_an_estimate_lies_on_the_line_between_two() -> None:
    known = [(0.0, Estimate(0.1, 0.1, 0.0, 0.2)), (2.0, Estimate(0.3, 0.1, 0.2, 0.6))]
    found = interpolate_estimate(known, 0.5)
    assert found is not None
    assert (found.estimate, *found.interval) == pytest.approx((0.15, 0.05, 0.3))
    assert math.isnan(found.se)
    assert interpolate_estimate(known, 2.1) is None
    assert interpolate_estimate([known[0], (2.0, Estimate(0.3, 0.1, math.nan, math.nan))], 0.5) is None


def test_the_value_of_the_best_mix_lies_on_a_line_between_the_costs_of_levels(
    run: tuple[PlanSummary, StudySummary],
) -> None:
    targeting = run[1].targeting
    assert [mix.spend for mix in targeting.mixes] == [0.0, 1.0, 2.0]
    offset = interpolate_mix_value(targeting.mixes, targeting.points[0].spend)
    for point in targeting.points:
        assert interpolate_mix_value(targeting.mixes, point.spend) - offset == pytest.approx(point.uniform, abs=1e-9)
    assert interpolate_mix_value(targeting.mixes, 9.0) == targeting.mixes[-1].value
