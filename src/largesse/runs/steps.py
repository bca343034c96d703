"""The steps of a run: fit, plan, judge, report. Each takes records and returns a record; none writes anything."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.allocation import (
    Constraints,
    Mixture,
    allocate,
    correct_costs,
    expected_costs,
    explore_plan,
    find_mixture,
)
from largesse.errors import Problem, fail, nearest, refuse
from largesse.evaluation import ESTIMATORS
from largesse.levels import Levels
from largesse.policy import Policy
from largesse.records import (
    Array,
    Checkup,
    Choice,
    Customers,
    Finding,
    HeldOut,
    Log,
    Plan,
    Progress,
    Propensities,
    Scores,
    Study,
)
from largesse.report import Heading, join_parts
from largesse.response import ResponseModel, WithCosts, make_model
from largesse.runs.campaign import Campaign
from largesse.runs.engine import Engine

if TYPE_CHECKING:
    import pyarrow as pa


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


@dataclass(frozen=True, eq=False)
class Planned:
    """A plan for customers, and the policy that makes it."""

    plan: Plan
    policy: Policy
    customers: Customers
    curves: Array  # (n, K) expected responses
    costs: Array  # (n, K) expected costs
    propensity: Array | None  # (n,) of each customer's level, where the plan explores
    confidence: float | None = None  # probability that the plan keeps its budget; None: it is certain to

    @property
    def spend(self) -> Array:
        """The expected cost (n,) of each customer's level."""
        spend: Array = self.costs[np.arange(len(self.plan)), self.plan.levels]
        return spend

    @property
    def table(self) -> pa.Table:
        """One row per customer: id, level, expected response, expected cost and, where the plan explores, propensity."""
        import pyarrow as pa

        levels, rows = self.plan.levels, np.arange(len(self.plan))
        names = pa.DictionaryArray.from_arrays(pa.array(levels.astype(np.int32)), pa.array(self.policy.levels.labels))
        columns = {
            "customer": pa.array(rows) if self.customers.customer is None else self.customers.customer,
            "level": names.cast(pa.string()),
            "level_number": levels.astype(np.int32),
            "expected_response": self.curves[rows, levels],
            "expected_cost": np.ascontiguousarray(self.spend),
        }
        return pa.table(columns if self.propensity is None else columns | {"propensity": self.propensity})


def choose_customers(campaign: Campaign, log: Log, engine: Engine) -> Customers:
    """Return the customers to plan for: the campaign's table of customers or, without one, those of the log."""
    if campaign.customers is not None:
        return engine.read_customers(campaign, campaign.customers, log.features.column_names)
    if log.customer is not None and len(log.customer.unique()) < len(log):
        hint = 'name a table with one row per customer: customers = "customers.parquet"'
        fail("campaign", Problem("the log has some customers more than once, so it cannot be planned for itself", hint))
    return Customers(log.features, log.customer, log.costs)


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


def plan(
    campaign: Campaign,
    policy: Policy,
    customers: Customers,
    engine: Engine,
    progress: Progress,
    own: Scores | None = None,
) -> Planned:
    """Give every customer a level, within the campaign's budget and constraints.

    `own` are the scores of the log whose own customers are planned, where costs are not certain.
    """
    progress("planning", 0.0)
    how, propensity = campaign.planning, None
    curves = engine.predict(policy.model, customers) if own is None else own.curves
    costs = own.expected_costs if own is not None else _expect_costs(policy, customers, curves, engine)
    fix = correct_costs(curves, costs, how.average(len(customers)), policy.spending, how.budget_confidence)
    kept = costs if policy.spending is None else costs * fix.scale
    if how.explore:
        explored = explore_plan(curves, kept, how.budget, how.explore, total=how.total, seed=campaign.seed)
        made, rule, propensity = explored.plan, explored.rule, explored.decisions.propensity
    else:
        made = _allocate(campaign, customers, curves, kept)
        # A rule cannot keep constraints, so there is no budget that its ties should meet.
        rule = Mixture(made.price) if how.constrained else find_mixture(curves, kept, made.price, made.budget)
    policy = replace(policy, price=rule.price, explore=rule.explore, share=rule.share, scale=fix.scale)
    if policy.spending is None:
        return Planned(made, policy, customers, curves, np.broadcast_to(costs, curves.shape), propensity)
    sure = fix.confidence(made.spend, made.budget)
    made = replace(made, spend=made.spend / fix.scale * fix.ratio)  # the margin that confidence takes is not spent
    return Planned(made, policy, customers, curves, costs * fix.ratio, propensity, sure)


def _expect_costs(policy: Policy, customers: Customers, curves: Array, engine: Engine) -> Array:
    """Return what levels are expected to cost customers: (K,), or (n, K) where that differs."""
    own = engine.predict_costs(policy.model, customers) if policy.levels.observed else customers.costs
    return expected_costs(policy.levels, curves, own)


def _allocate(campaign: Campaign, customers: Customers, curves: Array, costs: Array) -> Plan:
    """Return the plan within the campaign's budget and constraints."""
    how = campaign.planning
    rules = _constraints(campaign, customers) if how.constrained else None
    return allocate(curves, costs, how.budget, total=how.total, constraints=rules, exact=how.exact)


def _constraints(campaign: Campaign, customers: Customers) -> Constraints:
    """Return the campaign's constraints for these customers."""
    how, table = campaign.planning, customers.features
    named = [*([how.segment] if how.segment else []), *(name for names in how.columns.values() for name in names)]
    refuse(
        "customers",
        [
            Problem(f"the column {name!r}, which [plan] names, is not in the table", nearest(name, table.column_names))
            for name in named
            if name not in table.column_names
        ],
    )
    per_level = {
        word: np.column_stack([[bool(value) for value in table.column(name).to_pylist()] for name in names])
        for word, names in how.columns.items()
    }
    segment = np.array([str(v) for v in table.column(how.segment).to_pylist()]) if how.segment else None
    return Constraints(**{"segment": segment, **how.constraints, **per_level})


def judge(campaign: Campaign, log: Log, examined: Examined, budget: float, estimator: str, engine: Engine) -> Study:
    """Estimate what the campaign's model brings and costs at a budget, on rows that did not train it."""
    sure, seed = campaign.planning.budget_confidence, campaign.seed
    study = engine.study(
        log, examined.scores, examined.checkup, budget, estimator=estimator, seed=seed, confidence=sure
    )
    found = study.evaluation
    return replace(study, evaluation=replace(found, warnings=(*_not_judged(campaign), *found.warnings)))


def check_estimator(name: str) -> None:
    """Refuse an estimator that is not known."""
    if name not in ESTIMATORS:
        fail("evaluate", Problem(f"estimator {name!r} is not known", nearest(name, ESTIMATORS)))


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
    return join_parts(Heading(campaign.title, campaign.unit, campaign.seed), fitted, planned, judged)


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
