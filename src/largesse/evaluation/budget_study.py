"""Study of a model at a budget and at every other budget, each number computed once; and the summaries of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from largesse.allocation import BUDGET_CONFIDENCE
from largesse.evaluation.crossfitted_scores import hold_out_rows
from largesse.evaluation.estimators import ESTIMATORS, weight_responses
from largesse.evaluation.frontier_estimate import (
    FoldPlanner,
    add_budget,
    find_budget_at,
    plan_at_budgets,
    plan_each_fold,
    spread_budgets,
    trace_cost_curve,
    trace_frontier,
)
from largesse.evaluation.influence_functions import estimate_all
from largesse.evaluation.level_mean_responses import trace_features
from largesse.evaluation.one_column_rule import learn_rules
from largesse.evaluation.partial_identification import bound_unsupported
from largesse.evaluation.plan_explanation import explain_decisions, measure_changes
from largesse.evaluation.policy_evaluation import Candidate, check_choices, evaluate_scores, examine_held_out
from largesse.evaluation.policy_gain_bounds import bound_policy_gains
from largesse.evaluation.profit_estimate import trace_profit
from largesse.evaluation.protected_attributes import compare_protected
from largesse.evaluation.spend_by_price import measure_spending
from largesse.evaluation.verdict import give_verdict
from largesse.propensity import mark_supported_levels
from largesse.records import (
    Checkup,
    Estimate,
    EvaluationLogSummary,
    FrontierSummary,
    LevelResponse,
    Log,
    NamedEstimate,
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
    """Study a model at a budget, and at every other budget, on rows that did not train it.

    `evaluation` is that of `evaluate(log, model, budget=budget)`, with the warnings of all checks. `confidence` is the
    probability with which a plan keeps its budget, where costs are not certain.

    >>> from largesse.response import Linear
    >>> from largesse.worlds import simulate
    >>> study = make_study(simulate("averaged", n=500, seed=1).log, Linear(), 1.5)
    >>> study.evaluation.budget, len(study.frontier), len(study.cost_curve.points)
    (1.5, 22, 22)
    """
    held = hold_out_rows(log, model, folds=folds, seed=seed, progress=progress)
    scores, checkup = examine_held_out(log, held, seed, progress)
    return study_scores(log, scores, checkup, budget, estimator=estimator, seed=seed, confidence=confidence)


@limit_to_one_thread()  # sums over long tables gain nothing from the threads of BLAS, which wait for each other
def study_scores(
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
    """Study a model from its scores of a log, at a budget and at every other budget: no model is fitted.

    `shuffled` holds out-of-fold curves of rows with shuffled features, for the importance of features. With a `planner`, all
    plans are made by it, under the rules of a campaign.
    """
    check_choices(estimator)
    spread, spending, response_value = spread_budgets(scores), measure_spending(scores), log.response_value
    budgets = add_budget(spread if planner is None else spread[::RULED_BUDGET_STEP], budget)
    if response_value is not None:
        budgets = add_budget(budgets, find_budget_at(scores, 1 / response_value))
    plans = plan_at_budgets(scores, budgets, spending, confidence, planner)
    plan = next((plan for plan in plans if plan.budget == budget), None)
    plan = plan or plan_each_fold(scores, budget, spending, confidence, planner)
    plans = plans or (plan,)
    candidate = Candidate(None, budget=budget).follow(plan, scores)
    rules = learn_rules(log, scores, plan.policy) if planner is None else None  # simple rules keep no constraints
    safety = bound_policy_gains(log, scores, plan.policy, rules, estimator=estimator, learnt=True)
    options: Any = {"estimator": estimator, "seed": seed}
    evaluation = evaluate_scores(log, scores, candidate, checkup.propensity, checkup.warnings, **options)
    evaluation = bound_unsupported(scores, plan.policy, evaluation, mark_supported_levels(checkup.unsupported, log))
    verdict = give_verdict(log, scores, plan.policy, rules, safety, evaluation.warnings, **options)
    points, best = trace_frontier(scores, plans, estimator), None
    if response_value is not None:
        profits, best = trace_profit(scores, plans, response_value, budget, estimator)
        points = tuple(replace(point, profit=profit) for point, profit in zip(points, profits, strict=True))
    return Study(
        scores=scores,
        plan=plan,
        plans=plans,
        evaluation=replace(evaluation, verdict=verdict),
        frontier=points,
        cost_curve=trace_cost_curve(scores, plans, [point.spend.estimate for point in points], estimator),
        estimates=estimate_all(weight_responses(scores, plan.policy), log.cluster),
        mean_curve=scores.weight @ scores.curves / scores.weight.sum(),
        checkup=checkup,
        spending=None if spending is None else spending.whole,
        best=best,
        safety=safety,
        transitions=measure_changes(scores, plan.policy),
        why=explain_decisions(log, scores, plan, shuffled),
        groups=trace_features(log, scores, plan.levels),
        protected=compare_protected(log, scores, plan.policy, estimator),
    )


def summarise_study(study: Study) -> StudySummary:
    """Return the numbers of a study without its arrays."""
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
                LevelResponse(label, float(model), raw)
                for label, model, raw in zip(checkup.labels, study.mean_curve, checkup.raw, strict=True)
            ),
            study.groups,
        ),
        frontier=FrontierSummary(study.frontier),
        method=ValueByEstimator(
            tuple(
                NamedEstimate(name, ESTIMATORS[name].description, value.estimate, value.se, *value.interval)
                for name, value in study.estimates.items()
            )
        ),
        support=summarise_checkup(checkup),
        targeting=study.cost_curve,
        safety=study.safety,
        why=study.why,
        changes=study.transitions,
        verdict=_take_verdict(study),
        next_log=study.next_log,
        protected=study.protected,
    )


def _take_verdict(study: Study) -> Verdict:
    assert study.evaluation.verdict is not None  # every study has one
    return study.evaluation.verdict


def summarise_jointly(plan: PlanSummary, study: StudySummary) -> SliderSummary:
    """Summarise the estimates at all budgets of the slider, from a plan and its evaluation."""
    return SliderSummary(
        frontier=SliderEstimates(tuple(estimate_at(study, stop.budget) for stop in plan.frontier.stops)),
    )


def estimate_at(study: StudySummary, budget: float) -> SliderEstimate:
    """Interpolate value, gain and profit between the budgets of an evaluation; a mixture of two plans lies on the straight line."""
    points = study.frontier.points
    value = interpolate([(point.budget, point.value) for point in points], budget)
    spend = interpolate([(point.budget, point.spend) for point in points], budget)
    return SliderEstimate(
        value,
        _interpolate_gain(study, budget, value, spend),
        interpolate([(point.budget, point.profit) for point in points if point.profit is not None], budget),
        any(math.isclose(point.budget, budget, rel_tol=1e-9) for point in points if math.isfinite(point.budget)),
    )


def interpolate(known: Sequence[tuple[float, Estimate]], budget: float) -> Estimate | None:
    """Return the estimate at a budget between two known ones; None beyond their ends."""
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
    """Return the gain over the best uniform mix at the same spend; its standard error is the mean of the nearest budgets'.

    The value of the best mix bends where it reaches a level, so it is computed at the spend itself, not on a line.
    """
    points, mixes = study.targeting.points, study.targeting.mixes
    nearest = interpolate([(point.budget, point.difference) for point in points], budget)
    if value is None or spend is None or nearest is None or not mixes:
        return None
    ends = [point for point in points if math.isfinite(point.budget)]
    budgets, at_ends = [point.budget for point in ends], [value_mix(mixes, point.spend) for point in ends]
    move = float(np.interp(budget, budgets, at_ends)) - value_mix(mixes, spend.estimate)
    return replace(nearest, estimate=nearest.estimate + move, low=nearest.low + move, high=nearest.high + move)


def value_mix(mixes: Sequence[UniformMixValue], spend: float) -> float:
    """Return the value of the best uniform mix at an average spend, from its values at the costs of levels."""
    return float(np.interp(spend, [mix.spend for mix in mixes], [mix.value for mix in mixes]))
