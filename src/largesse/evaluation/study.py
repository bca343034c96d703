"""Everything one run says about a model at a budget, each number computed once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from largesse.allocation import EVEN
from largesse.evaluation.cost_calibration import measure_spending
from largesse.evaluation.estimators import judge_response
from largesse.evaluation.frontier_estimate import (
    add_budget,
    find_budget_at,
    plan_budgets,
    plan_held_out,
    spread_budgets,
    trace_cost_curve,
    trace_frontier,
)
from largesse.evaluation.influence import estimate_all
from largesse.evaluation.policy_value import Candidate, check_choices, examine, judge_policy
from largesse.evaluation.profit import trace_profit
from largesse.records import Checkup, Log, Progress, Scores, Study
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

    `evaluation` is what `evaluate(log, model, budget=budget)` returns. With which `confidence` a plan is to keep its budget
    matters where costs are not certain.

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
) -> Study:
    """Judge the model whose scores of a log these are, at a budget and at every other: nothing is fitted."""
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
        evaluation=judge_policy(log, scores, candidate, checkup, estimator=estimator, seed=seed),
        frontier=points,
        cost_curve=trace_cost_curve(scores, [plan for plan in plans if plan.budget in spread], estimator),
        estimates=estimate_all(judge_response(scores, plan.levels), log.cluster),
        mean_curve=scores.weight @ scores.curves / scores.weight.sum(),
        checkup=checkup,
        spending=None if spending is None else spending.whole,
        best=best,
    )
