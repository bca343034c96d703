"""Numbers that need both the plan of a run and its evaluation: estimates at the slider's budgets, and the rows still needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from largesse.allocation import mix_two_levels
from largesse.records import (
    Estimate,
    JointSummary,
    NeededRows,
    PlanSummary,
    Reference,
    SliderEstimates,
    StopEstimate,
    StudySummary,
)

NEEDED = 1.96 + 0.84  # standard errors: a gain this far from zero is shown in four of five logs
MOST = 1000  # times the rows of the log: nobody has more


def summarise_jointly(plan: PlanSummary, study: StudySummary) -> JointSummary:
    """Return the numbers of a plan and an evaluation for the same budget."""
    return JointSummary(
        frontier=SliderEstimates(tuple(estimate_at(study, stop.budget) for stop in plan.frontier.stops)),
        needed_rows=count_needed_rows(study.log.rows, study.versus[0].difference) if study.versus else None,
    )


def estimate_at(study: StudySummary, budget: float) -> StopEstimate:
    """Return value, gain and profit at a budget: on the lines between the budgets of an evaluation, as a mix of two plans brings."""
    points = study.frontier.points
    value = interpolate([(point.budget, point.value) for point in points], budget)
    spend = interpolate([(point.budget, point.spend) for point in points], budget)
    return StopEstimate(
        value,
        _estimate_gain(study, budget, value, spend),
        interpolate([(point.budget, point.profit) for point in points if point.profit is not None], budget),
        any(math.isclose(point.budget, budget, rel_tol=1e-9) for point in points if math.isfinite(point.budget)),
    )


def interpolate(known: Sequence[tuple[float, Estimate]], budget: float) -> Estimate | None:
    """Return the estimate at a budget between two of those with a known one; None beyond their ends."""
    for (a, left), (b, right) in pairwise(known):
        if not (math.isfinite(a) and math.isfinite(b) and a <= budget <= b * (1 + 1e-9) and a != b):
            continue
        part = min((budget - a) / (b - a), 1.0)
        ends = [(left.estimate, right.estimate), (left.low, right.low), (left.high, right.high)]
        middle, low, high = (start + part * (end - start) for start, end in ends)
        return Estimate(middle, math.nan, low, high) if math.isfinite(middle + low + high) else None
    return None


def _estimate_gain(
    study: StudySummary, budget: float, value: Estimate | None, spend: Estimate | None
) -> Estimate | None:
    """Return the value less that of the best uniform mix at the same spend; as uncertain as at the budgets beside it.

    The value of the best mix bends where it reaches a level, so it is computed at the spend itself, not on a line.
    """
    beside = interpolate([(point.budget, point.difference) for point in study.targeting.points], budget)
    mix = None if spend is None else value_best_mix(study.uniform, spend.estimate)
    if value is None or mix is None or beside is None:
        return None
    gain = value.estimate - mix
    move = gain - beside.estimate
    return replace(beside, estimate=gain, low=beside.low + move, high=beside.high + move)


def value_best_mix(uniform: Sequence[Reference], spend: float) -> float | None:
    """Return the largest value of a random mix of levels, the same for everybody, at an average spend."""
    both = np.array([(row.value.estimate, row.spend.estimate) for row in uniform]).reshape(-1, 2)
    value, cost = both[np.isfinite(both).all(axis=1)].T
    return float(mix_two_levels(value, np.maximum(cost, 0.0), spend) @ value) if len(value) else None


def count_needed_rows(rows: int, gain: Estimate) -> NeededRows | None:
    """Return how many rows show a gain that a log of `rows` rows leaves open; None where estimate or standard error is zero.

    >>> count_needed_rows(1000, Estimate(0.02, 0.02, -0.02, 0.06))
    NeededRows(times=7.839999999999999, rows=7839.999999999999)
    """
    if not (gain.estimate and gain.se and math.isfinite(gain.estimate) and math.isfinite(gain.se)):
        return None
    times = (NEEDED * gain.se / abs(gain.estimate)) ** 2
    return NeededRows(times, rows * times if times <= MOST else None)
