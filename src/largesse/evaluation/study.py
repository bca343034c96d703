"""Everything one run says about a model at a budget, each number computed once."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from largesse.allocation import EVEN
from largesse.evaluation.cost_calibration import measure_spending
from largesse.evaluation.decisions import explain_decisions
from largesse.evaluation.estimators import ESTIMATORS, judge_response
from largesse.evaluation.frontier_estimate import (
    add_budget,
    find_budget_at,
    plan_budgets,
    plan_held_out,
    spread_budgets,
    trace_cost_curve,
    trace_frontier,
)
from largesse.evaluation.group_curves import trace_features
from largesse.evaluation.influence import estimate_all
from largesse.evaluation.lower_bounds import weigh_options
from largesse.evaluation.policy_value import Candidate, check_choices, examine, judge_policy
from largesse.evaluation.profit import trace_profit
from largesse.evaluation.transitions import measure_changes
from largesse.records import (
    Checkup,
    Estimate,
    FrontierSummary,
    LevelCurve,
    Log,
    LogFacts,
    NamedEstimate,
    Progress,
    ResponseCurves,
    Scores,
    Shuffled,
    Study,
    StudyMethod,
    StudySummary,
    summarise_checkup,
)
from largesse.stats import one_thread


def make_study(
    log: Log,
    model: Any,
    budget: float,
    *,
    estimator: str = "dr",
    folds: int = 5,
    seed: int = 0,
    confidence: float = EVEN,
    progress: Progress | None = None,
) -> Study:
    """Judge a model at a budget, and at every other budget, on rows that did not train it.

    `evaluation` is what `evaluate(log, model, budget=budget)` returns, with the warnings of all checks. `confidence` is the
    probability with which a plan is to keep its budget, where costs are not certain.

    >>> from largesse.response import Linear
    >>> from largesse.worlds import simulate
    >>> study = make_study(simulate("averaged", n=500, seed=1).log, Linear(), 1.5)
    >>> study.evaluation.budget, len(study.frontier), len(study.cost_curve.points)
    (1.5, 22, 21)
    """
    check_choices(estimator)
    scores, checkup = examine(log, model, folds=folds, seed=seed, progress=progress)
    return study_scores(log, scores, checkup, budget, estimator=estimator, seed=seed, confidence=confidence)


@one_thread()  # sums over long tables gain nothing from the threads of BLAS, which wait for each other
def study_scores(
    log: Log,
    scores: Scores,
    checkup: Checkup,
    budget: float,
    *,
    estimator: str = "dr",
    seed: int = 0,
    confidence: float = EVEN,
    shuffled: Shuffled | None = None,
) -> Study:
    """Judge the model whose scores of a log these are, at a budget and at every other: nothing is fitted.

    `shuffled` holds held-out curves of rows whose features were shuffled: the importance of features is measured with it.
    """
    check_choices(estimator)
    spread, spending, worth = spread_budgets(scores), measure_spending(scores), log.response_value
    budgets = add_budget(spread, budget)
    if worth is not None:
        budgets = add_budget(budgets, find_budget_at(scores, 1 / worth))
    plans = plan_budgets(scores, budgets, spending, confidence)
    plan = next((plan for plan in plans if plan.budget == budget), None)
    plan = plan or plan_held_out(scores, budget, spending, confidence)
    candidate = Candidate(None, budget=budget).follow(plan, scores)
    points, best = trace_frontier(scores, plans, estimator), None
    if worth is not None:
        profits, best = trace_profit(scores, plans, worth, budget, estimator)
        points = tuple(replace(point, profit=own) for point, own in zip(points, profits, strict=True))
    return Study(
        scores=scores,
        plan=plan,
        plans=plans,
        evaluation=judge_policy(
            log, scores, candidate, checkup.propensity, checkup.warnings, estimator=estimator, seed=seed
        ),
        frontier=points,
        cost_curve=trace_cost_curve(scores, [plan for plan in plans if plan.budget in spread], estimator),
        estimates=estimate_all(judge_response(scores, plan.levels), log.cluster),
        mean_curve=scores.weight @ scores.curves / scores.weight.sum(),
        checkup=checkup,
        spending=None if spending is None else spending.whole,
        best=best,
        safety=weigh_options(log, scores, plan.levels, estimator=estimator, learnt=True),
        transitions=measure_changes(scores, plan.levels),
        why=explain_decisions(log, scores, plan, shuffled),
        groups=trace_features(log, scores, plan.levels),
    )


def summarise_study(study: Study) -> StudySummary:
    """Return the numbers of a study without its arrays."""
    found, checkup = study.evaluation, study.checkup
    return StudySummary(
        budget=found.budget if found.budget is not None and math.isfinite(found.budget) else None,
        log=LogFacts(found.rows, found.clusters, found.propensity, found.clipped, found.clipped_weight),
        estimator=found.estimator,
        value=Estimate(found.value, found.value_se, *found.value_interval),
        spend=Estimate(found.spend, found.spend_se, *found.spend_interval),
        promise=found.promise,
        per_spend=found.per_spend,
        gain_per_spend=found.gain_per_spend,
        profit=found.profit,
        best_budget=study.best,
        versus=found.references,
        uniform=found.uniform,
        warnings=found.warnings,
        curve=ResponseCurves(
            tuple(
                LevelCurve(label, float(model), raw)
                for label, model, raw in zip(checkup.labels, study.mean_curve, checkup.raw, strict=True)
            ),
            study.groups,
        ),
        frontier=FrontierSummary(study.frontier),
        method=StudyMethod(
            tuple(
                NamedEstimate(name, ESTIMATORS[name].description, one.estimate, one.se, one.low, one.high)
                for name, one in study.estimates.items()
            )
        ),
        support=summarise_checkup(checkup),
        targeting=study.cost_curve,
        safety=study.safety,
        why=study.why,
        changes=study.transitions,
    )
