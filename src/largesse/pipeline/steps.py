"""The steps of a run: fit, judge, report. Each takes records and returns a record; none writes anything."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from largesse.campaign import Campaign
from largesse.data import kind_of
from largesse.errors import Problem, fail, suggest
from largesse.evaluation import ESTIMATORS
from largesse.levels import Levels
from largesse.pipeline.engine import Engine
from largesse.pipeline.own import LogCustomers
from largesse.progress import start_stage
from largesse.records import (
    Checkup,
    Choice,
    Customers,
    Finding,
    HeldOut,
    Log,
    Progress,
    Propensities,
    Scores,
    Study,
)
from largesse.report import Heading, join_parts, name_day
from largesse.response import ResponseModel, WithCosts, make_model


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was learnt from a log."""

    model: ResponseModel
    levels: Levels
    choices: tuple[Choice, ...]  # what the model tried and chose among
    held: HeldOut  # what models that did not see the log's rows expect of them


@dataclass(frozen=True, eq=False)
class Examined:
    """What the log says of itself under a model that did not see its rows: all that an evaluation is made from."""

    scores: Scores
    checkup: Checkup
    held: HeldOut


def choose_customers(campaign: Campaign, log: Log, engine: Engine) -> Any:
    """Return the customers to plan for: the campaign's table of customers, opened, or, without one, those of the log."""
    if campaign.customers is not None:
        kinds: dict[str, str] = {field.name: kind_of(field.type) for field in log.seen.features.schema}
        return engine.open_customers(campaign, campaign.customers, kinds)
    # Without clusters, no id comes twice: the log would have been refused.
    if log.customer is not None and log.cluster is not None and len(log.customer.unique()) < len(log):
        hint = 'name a table with one row per customer: customers = "customers.parquet"'
        fail("campaign", Problem("the log has some customers more than once, so it cannot be planned for itself", hint))
    if log.sample is not None:
        return LogCustomers(log, log.sample)
    return Customers(log.features, log.customer, log.costs)


def settle_rows(campaign: Campaign, log: Log) -> Campaign:
    """Return the campaign with the most rows that its log was read by: another machine must draw the same sample."""
    return campaign if log.sample is None else replace(campaign, most_rows=log.sample.most)


def fit(campaign: Campaign, log: Log, engine: Engine, progress: Progress) -> Fitted:
    """Fit the campaign's model to the log."""
    model, held = engine.fit(choose_model(campaign), log, seed=campaign.seed, progress=progress)
    return Fitted(model, log.levels, model.choices_, held)


def choose_model(campaign: Campaign) -> ResponseModel:
    """Return the campaign's model, unfitted; where costs are observed, with a model of them beside it."""
    model = make_model(campaign.model, campaign.seed)
    return WithCosts(model, seed=campaign.seed) if campaign.levels.observed else model


def examine(
    campaign: Campaign,
    log: Log,
    held: HeldOut,
    engine: Engine,
    progress: Progress,
    propensities: Propensities | None = None,
) -> Examined:
    """Score the log's held-out rows, and check the log.

    Scores do not depend on the budget. Where costs are not certain, they say what plans really cost. And then the log's own
    customers are planned by models that did not see them: a model knows too well whether its own rows will pay.
    """
    scores, checkup = engine.examine(log, held, seed=campaign.seed, progress=progress, propensities=propensities)
    return Examined(scores, checkup, held)


def judge(campaign: Campaign, log: Log, examined: Examined, budget: float, estimator: str, engine: Engine) -> Study:
    """Estimate what the campaign's model brings and costs at a budget, on rows that did not train it."""
    start_stage("judging the plan", len(log))
    sure, seed = campaign.planning.budget_confidence, campaign.seed
    study = engine.study(
        log,
        examined.scores,
        examined.checkup,
        budget,
        estimator=estimator,
        seed=seed,
        confidence=sure,
        shuffled=examined.held.shuffled,
    )
    warnings = (*_not_judged(campaign), *study.evaluation.warnings)
    return replace(study, evaluation=replace(study.evaluation, warnings=warnings))


def check_estimator(name: str) -> None:
    """Refuse an estimator that is not known."""
    if name not in ESTIMATORS:
        fail("evaluate", Problem(f"estimator {name!r} is not known", suggest(name, ESTIMATORS)))


def _not_judged(campaign: Campaign) -> tuple[Finding, ...]:
    """Return the warning for a plan that does more than the one that is judged."""
    how = campaign.planning
    if not how.constrained and not how.explore:
        return ()
    without = "your constraints" if how.constrained else "exploration"
    text = f"These estimates are for the plan without {without}, at the same budget. Expect your plan to bring at most this."
    return (Finding("constraints" if how.constrained else "exploration", "careful", text),)


def report(
    campaign: Campaign, fitted: dict[str, Any], planned: dict[str, Any], judged: dict[str, Any], folder: str
) -> dict[str, Any]:
    """Return the numbers of the report; `folder` is named in the hint if plan and evaluation do not fit together."""
    if not have_same_budget(planned, judged):
        average, budget = planned["budget"]["average"], judged["budget"]
        got = f"the plan is for a budget of {_write(average)}, the evaluation for {_write(budget)}"
        fail("run folder", Problem(got, f"run: largesse evaluate {folder} --budget {_write(average)}"))
    heading = Heading(campaign.title, campaign.unit, campaign.seed, name_day(), campaign.response_unit)
    return join_parts(heading, fitted, planned, judged)


def have_same_budget(planned: dict[str, Any], judged: dict[str, Any]) -> bool:
    """Whether a plan and an evaluation are for one budget, but for rounding."""
    average, budget = planned["budget"]["average"], judged["budget"]
    if average is None or budget is None:
        return average is budget
    return math.isclose(average, budget, rel_tol=1e-6)


def check_budget(planned: dict[str, Any], campaign: Campaign, folder: str) -> None:
    """Refuse to judge another budget than that of the plan: the two would not belong together."""
    asked = campaign.planning.budget
    if not have_same_budget(planned, {"budget": asked}):
        got = f"the plan in {folder} is for a budget of {_write(planned['budget']['average'])}, not {_write(asked)}"
        fail("budget", Problem(got, f"plan first: largesse plan {folder} --budget {_write(asked)}"))


def _write(budget: float | None) -> str:
    """Write a budget with enough digits that it is the same when it is read back."""
    return "…" if budget is None else f"{budget:.10g}"
