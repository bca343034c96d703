"""Everything one run says about a model at a budget, each number computed once."""

from __future__ import annotations

from typing import Any

from largesse.evaluation.budgets import (
    add_budget,
    plan_budgets,
    plan_held_out,
    spread_budgets,
    trace_cost_curve,
    trace_frontier,
)
from largesse.evaluation.crossfitting import crossfit, used_propensities
from largesse.evaluation.doctor import doctor
from largesse.evaluation.estimators import estimate_all, judge_response
from largesse.evaluation.judge import evaluate_scores
from largesse.evaluation.value import predict_value
from largesse.records import Finding, Log, Progress, Study


def make_study(
    log: Log,
    model: Any,
    budget: float,
    *,
    estimator: str = "dr",
    folds: int = 5,
    seed: int = 0,
    also: tuple[Finding, ...] = (),
    progress: Progress = lambda _stage, _done: None,
) -> Study:
    """Judge a model at a budget, and at every other budget, on rows that did not train it.

    `evaluation` is what `evaluate(log, model, budget=budget)` returns; `also` are warnings that the caller adds to it.

    >>> from largesse.response import Linear
    >>> from largesse.worlds import simulate
    >>> study = make_study(simulate("averaged", n=500, seed=1).log, Linear(), 1.5)
    >>> study.evaluation.budget, len(study.frontier), len(study.cost_curve.points)
    (1.5, 22, 21)
    """
    stage = "judging it on held-out rows"
    scores = crossfit(log, model, folds=folds, seed=seed, tell=lambda done, total: progress(stage, done / total))
    progress(stage, 1.0)
    spread = spread_budgets(scores)
    plans = plan_budgets(scores, add_budget(spread, budget))
    plan = next((plan for plan in plans if plan.budget == budget), None) or plan_held_out(scores, budget)
    progress("examining the log", 0.0)
    checkup = doctor(log, seed=seed, chances=used_propensities(scores))
    return Study(
        scores=scores,
        plan=plan,
        plans=plans,
        evaluation=evaluate_scores(
            log,
            scores,
            plan.levels,
            budget=budget,
            promise=predict_value(scores.curves, plan.levels, scores.weight),
            also=also,
            seen=checkup.overlap,
            estimator=estimator,
        ),
        frontier=trace_frontier(scores, plans, estimator),
        cost_curve=trace_cost_curve(scores, [plan for plan in plans if plan.budget in spread], estimator),
        estimates=estimate_all(judge_response(scores, plan.levels), log.cluster),
        mean_curve=scores.weight @ scores.curves / scores.weight.sum(),
        checkup=checkup,
    )
