"""Study of a response model: estimates at the planned budget and at all other budgets, with their summaries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from largesse.allocation import BUDGET_CONFIDENCE
from largesse.evaluation.crossfitted_scores import predict_out_of_fold
from largesse.evaluation.estimators import ESTIMATORS, make_response_rows
from largesse.evaluation.frontier_estimate import (
    FoldPlanner,
    add_budget_to_grid,
    estimate_frontier,
    estimate_qini_curve,
    find_budget_at_price,
    make_budget_grid,
    plan_at_budgets,
    plan_each_fold,
)
from largesse.evaluation.influence_functions import estimate_with_every_estimator
from largesse.evaluation.level_mean_responses import estimate_curves_by_feature
from largesse.evaluation.one_column_rule import learn_one_column_rules
from largesse.evaluation.partial_identification import widen_for_unsupported_levels
from largesse.evaluation.plan_explanation import explain_decisions, measure_changes_from_logged_levels
from largesse.evaluation.policy_evaluation import (
    PolicyToEvaluate,
    check_estimator_and_interval,
    evaluate_from_scores,
    score_and_check_log,
)
from largesse.evaluation.policy_gain_bounds import bound_policy_gains
from largesse.evaluation.profit_estimate import estimate_profit_by_budget
from largesse.evaluation.protected_group_comparison import compare_protected_groups
from largesse.evaluation.spend_by_price import measure_spend_by_price
from largesse.evaluation.verdict import give_verdict
from largesse.propensity import mark_supported_levels
from largesse.records import (
    Checkup,
    Estimate,
    EstimatorValue,
    EvaluationLogSummary,
    FrontierSummary,
    LevelResponse,
    Log,
    PlanSummary,
    Progress,
    ResponseCurves,
    Scores,
    ShuffledPredictions,
    SliderEstimate,
    SliderEstimates,
    SliderSummary,
    Study,
    StudySummary,
    UniformMixValue,
    ValueByEstimator,
    Verdict,
    summarise_checkup,
)
from largesse.stats import limit_to_one_thread

RULED_BUDGET_STEP = (
    3  # of the budgets of a frontier, every third has a plan under rules: each takes a search of its own
)


def make_study(
    log: Log,
    model: Any,
    budget: float,
    *,
    estimator: str = "dr",
    folds: int = 5,
    seed: int = 0,
    confidence: float = BUDGET_CONFIDENCE,
    progress: Progress | None = None,
) -> Study:
    """Evaluate a model's plans at one budget, and at a grid of other budgets, on held-out rows of a log.

    `evaluation` is that of `evaluate(log, model, budget=budget)`, with the warnings of all checks. `confidence` is the
    probability with which a plan keeps its budget, where costs are not certain.

    >>> from largesse.response import Linear
    >>> from largesse.worlds import simulate
    >>> study = make_study(simulate("averaged", n=500, seed=1).log, Linear(), 1.5)
    >>> study.evaluation.budget, len(study.frontier), len(study.cost_curve.points)
    (1.5, 22, 22)
    """
    held = predict_out_of_fold(log, model, folds=folds, seed=seed, progress=progress)
    scores, checkup = score_and_check_log(log, held, seed, progress)
    return make_study_from_scores(log, scores, checkup, budget, estimator=estimator, seed=seed, confidence=confidence)


@limit_to_one_thread()  # sums over long tables gain nothing from the threads of BLAS, which wait for each other
def make_study_from_scores(
    log: Log,
    scores: Scores,
    checkup: Checkup,
    budget: float,
    *,
    estimator: str = "dr",
    seed: int = 0,
    confidence: float = BUDGET_CONFIDENCE,
    shuffled: ShuffledPredictions | None = None,
    planner: FoldPlanner | None = None,
) -> Study:
    """Evaluate a model's plans at all budgets from existing out-of-fold scores, without fitting a model.

    `shuffled` holds out-of-fold curves of rows with shuffled features, for the importance of features. With a `planner`, all
    plans are made by it, under the rules of a campaign.
    """
    check_estimator_and_interval(estimator)
    spread, spending, response_value = make_budget_grid(scores), measure_spend_by_price(scores), log.response_value
    budgets = add_budget_to_grid(spread if planner is None else spread[::RULED_BUDGET_STEP], budget)
    if response_value is not None:
        budgets = add_budget_to_grid(budgets, find_budget_at_price(scores, 1 / response_value))
    plans = plan_at_budgets(scores, budgets, spending, confidence, planner)
    plan = next((plan for plan in plans if plan.budget == budget), None)
    plan = plan or plan_each_fold(scores, budget, spending, confidence, planner)
    plans = plans or (plan,)
    candidate = PolicyToEvaluate(None, budget=budget).with_held_out_plan(plan, scores)
    rules = (
        learn_one_column_rules(log, scores, plan.policy) if planner is None else None
    )  # simple rules keep no constraints
    safety = bound_policy_gains(log, scores, plan.policy, rules, estimator=estimator, learnt=True)
    options: Any = {"estimator": estimator, "seed": seed}
    evaluation = evaluate_from_scores(log, scores, candidate, checkup.propensity, checkup.warnings, **options)
    evaluation = widen_for_unsupported_levels(
        scores, plan.policy, evaluation, mark_supported_levels(checkup.unsupported, log)
    )
    verdict = give_verdict(log, scores, plan.policy, rules, safety, evaluation.warnings, **options)
    points, best = estimate_frontier(scores, plans, estimator), None
    if response_value is not None:
        profits, best = estimate_profit_by_budget(scores, plans, response_value, budget, estimator)
        points = tuple(replace(point, profit=profit) for point, profit in zip(points, profits, strict=True))
    return Study(
        scores=scores,
        plan=plan,
        plans=plans,
        evaluation=replace(evaluation, verdict=verdict),
        frontier=points,
        cost_curve=estimate_qini_curve(scores, plans, [point.spend.estimate for point in points], estimator),
        estimates=estimate_with_every_estimator(make_response_rows(scores, plan.policy), log.cluster),
        mean_curve=scores.weight @ scores.curves / scores.weight.sum(),
        checkup=checkup,
        spending=None if spending is None else spending.curve_of_all_folds,
        best=best,
        safety=safety,
        transitions=measure_changes_from_logged_levels(scores, plan.policy),
        why=explain_decisions(log, scores, plan, shuffled),
        groups=estimate_curves_by_feature(log, scores, plan.levels),
        protected=compare_protected_groups(log, scores, plan.policy, estimator),
    )


def summarise_study(study: Study) -> StudySummary:
    """Convert a study to a summary without arrays, for a file and the report."""
    evaluation, checkup = study.evaluation, study.checkup
    return StudySummary(
        budget=evaluation.budget if evaluation.budget is not None and math.isfinite(evaluation.budget) else None,
        log=EvaluationLogSummary(
            evaluation.rows,
            evaluation.clusters,
            evaluation.propensity,
            evaluation.clipped,
            evaluation.clipped_weight,
            checkup.customers,
        ),
        estimator=evaluation.estimator,
        value=Estimate(evaluation.value, evaluation.value_se, *evaluation.value_interval),
        spend=Estimate(evaluation.spend, evaluation.spend_se, *evaluation.spend_interval),
        promise=evaluation.promise,
        profit=evaluation.profit,
        best_budget=study.best,
        versus=evaluation.references,
        uniform=evaluation.uniform,
        warnings=evaluation.warnings,
        curve=ResponseCurves(
            tuple(
                LevelResponse(label, value, raw, float(model))
                for label, value, raw, model in zip(
                    checkup.labels, checkup.weighted, checkup.raw, study.mean_curve, strict=True
                )
            ),
            study.groups,
        ),
        frontier=FrontierSummary(study.frontier),
        method=ValueByEstimator(
            tuple(
                EstimatorValue(name, ESTIMATORS[name].description, value.estimate, value.se, *value.interval)
                for name, value in study.estimates.items()
            )
        ),
        support=summarise_checkup(checkup),
        targeting=study.cost_curve,
        safety=study.safety,
        why=study.why,
        changes=study.transitions,
        verdict=_require_verdict(study),
        next_log=study.next_log,
        protected=study.protected,
    )


def _require_verdict(study: Study) -> Verdict:
    assert study.evaluation.verdict is not None  # every study has one
    return study.evaluation.verdict


def estimate_at_slider_budgets(plan: PlanSummary, study: StudySummary) -> SliderSummary:
    """Estimate the plan's value, gain and profit at every budget of the report's slider."""
    return SliderSummary(
        frontier=SliderEstimates(tuple(interpolate_at_budget(study, stop.budget) for stop in plan.frontier.stops)),
    )


def interpolate_at_budget(study: StudySummary, budget: float) -> SliderEstimate:
    """Estimate value, gain and profit at a budget by linear interpolation between evaluated budgets."""
    points = study.frontier.points
    value = interpolate_estimate([(point.budget, point.value) for point in points], budget)
    spend = interpolate_estimate([(point.budget, point.spend) for point in points], budget)
    return SliderEstimate(
        value,
        _interpolate_gain(study, budget, value, spend),
        interpolate_estimate([(point.budget, point.profit) for point in points if point.profit is not None], budget),
        any(math.isclose(point.budget, budget, rel_tol=1e-9) for point in points if math.isfinite(point.budget)),
    )


def interpolate_estimate(known: Sequence[tuple[float, Estimate]], budget: float) -> Estimate | None:
    """Interpolate an estimate linearly between known budgets; return None outside their range."""
    for (a, left), (b, right) in pairwise(known):
        if not (math.isfinite(a) and math.isfinite(b) and a <= budget <= b * (1 + 1e-9) and a != b):
            continue
        share = min((budget - a) / (b - a), 1.0)
        ends = [(left.estimate, right.estimate), (left.low, right.low), (left.high, right.high)]
        middle, low, high = (start + share * (end - start) for start, end in ends)
        return Estimate(middle, math.nan, low, high) if math.isfinite(middle + low + high) else None
    return None


def _interpolate_gain(
    study: StudySummary, budget: float, value: Estimate | None, spend: Estimate | None
) -> Estimate | None:
    """Interpolate a plan's gain over the best mix of levels for all customers at the same spend.

    The value of the best mix bends where it reaches a level, so it is computed at the spend itself, not on a line.
    """
    points, mixes = study.targeting.points, study.targeting.mixes
    nearest = interpolate_estimate([(point.budget, point.difference) for point in points], budget)
    if value is None or spend is None or nearest is None or not mixes:
        return None
    ends = [point for point in points if math.isfinite(point.budget)]
    budgets, at_ends = [point.budget for point in ends], [interpolate_mix_value(mixes, point.spend) for point in ends]
    move = float(np.interp(budget, budgets, at_ends)) - interpolate_mix_value(mixes, spend.estimate)
    return replace(nearest, estimate=nearest.estimate + move, low=nearest.low + move, high=nearest.high + move)


def interpolate_mix_value(mixes: Sequence[UniformMixValue], spend: float) -> float:
    """Interpolate the value of the best mix of levels for all customers at a spend."""
    return float(np.interp(spend, [mix.spend for mix in mixes], [mix.value for mix in mixes]))
