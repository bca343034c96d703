"""Planning: from scored customers, a budget and constraints to the price and the rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from largesse.allocation import (
    Constraints,
    Mixture,
    PricedPlan,
    Stop,
    allocate,
    correct_scored,
    find_mixture,
    find_stops,
    price_plan,
)
from largesse.campaign import Campaign, find_eligible
from largesse.errors import BudgetError, Problem, refuse, suggest
from largesse.exploration import ResponseVariance
from largesse.pipeline.explored import explore_plan
from largesse.pipeline.planned import Planned, ScoredCustomers
from largesse.policy import Policy
from largesse.progress import report_to, start_stage
from largesse.records import Array, Customers, Plan, Progress

YES_OR_NO = ResponseVariance()  # follows from the probability
FEW = 20  # plans at other budgets under constraints, each made for itself
MOST = 200_000  # customers × levels for whom they are made
TOO_MANY = (
    "Under constraints, each budget needs a plan of its own, and there are too many customers to make them beforehand."
)
TOO_LONG = "Plans that are proven under constraints take too long to make one for each budget beforehand."
EXPLORED = "Where a plan explores for a purpose, each budget needs probabilities of its own."


@dataclass(frozen=True, eq=False)
class Task:
    """All customers in one place, and the campaign's constraints for them."""

    curves: Array  # (n, K)
    costs: Array  # (K,) or (n, K), as expected
    rules: Constraints | None


def make_plan(
    campaign: Campaign,
    policy: Policy,
    scored: ScoredCustomers,
    progress: Progress,
    variance: ResponseVariance = YES_OR_NO,
) -> Planned:
    """Give every customer a level, within the campaign's budget and constraints.

    The variance of responses is used if the plan explores for evaluation or learning.
    """
    how = campaign.planning
    with report_to(progress):
        start_stage("planning", scored.n)
        fix = correct_scored(scored, how.average(scored.n), policy.spending, how.budget_confidence)
        scale = 1.0 if policy.spending is None else fix.scale
        made: PricedPlan | Plan
        worth = campaign.response_value
        stops = find_stops(scored, policy.spending, how.budget_confidence, explore=how.explore, worth=worth)
        listed, excuse, explored, aimed = None, "", None, None
        if how.aimed:
            start_stage("planning with all customers in memory", scored.n)
            task = _gather(campaign, scored)
            explored = explore_plan(how, task.curves, task.costs * scale, task.rules, variance, campaign.seed)
            made, aimed = explored.plan, explored.rule
            rule = Mixture(made.price) if aimed is None else aimed.plan
            stops, excuse = (), EXPLORED
        elif how.constrained or how.exact:
            start_stage("planning with all customers in memory", scored.n)
            task = _gather(campaign, scored)
            made, rule = _allocate(campaign, task, scale)
            if how.constrained:
                stops, listed, excuse = _plan_others(campaign, policy, scored, task, [stop.budget for stop in stops])
        else:
            kept = scored if policy.spending is None else scored.scaled(scale)
            made = price_plan(kept, how.budget, total=how.total, explore=how.explore, seed=campaign.seed)
            rule = made.rule
    facts: Any = {
        "price": rule.price,
        "exploration_rate": rule.explore,
        "tie_probability": rule.share,
        "scale": fix.scale,
    }
    policy = replace(policy, **facts, exploration=aimed)
    planned = Planned(made, policy, scored, stops=stops, listed=listed, excuse=excuse)
    if explored is not None:
        planned = replace(planned, propensity=explored.propensity, exploration=explored.numbers)
    if policy.spending is None:
        return planned
    sure = fix.confidence(made.spend, made.budget)
    spend = made.spend / fix.scale * fix.ratio  # the margin that confidence takes is not spent
    return replace(planned, plan=replace(made, spend=spend), scale=scale, ratio=fix.ratio, confidence=sure)


def _gather(campaign: Campaign, scored: ScoredCustomers) -> Task:
    """Return all customers, who are needed at once by constraints and proofs."""
    customers, curves, costs = scored.gather()
    return Task(curves, costs, _constraints(campaign, customers) if campaign.planning.constrained else None)


def _allocate(campaign: Campaign, task: Task, scale: float) -> tuple[Plan, Mixture]:
    """Return the plan under the campaign's constraints, and the rule it stands for."""
    how, costs = campaign.planning, task.costs if scale == 1.0 else task.costs * scale
    made = allocate(task.curves, costs, how.budget, total=how.total, constraints=task.rules, exact=how.exact)
    # A rule cannot keep constraints, so there is no budget that its ties should meet.
    return made, Mixture(made.price) if how.constrained else find_mixture(task.curves, costs, made.price, made.budget)


def _plan_others(
    campaign: Campaign, policy: Policy, scored: ScoredCustomers, task: Task, budgets: Sequence[float]
) -> tuple[tuple[Stop, ...], Array | None, str]:
    """Return plans under constraints at some of the budgets, their levels (stops, n), and why there are none."""
    how = campaign.planning
    if how.exact or task.curves.size > MOST:
        return (), None, TOO_LONG if how.exact else TOO_MANY
    stops, levels = [], []
    for budget in sorted({budgets[round(k)] for k in np.linspace(0, len(budgets) - 1, FEW)}, reverse=True):
        fix = correct_scored(scored, budget, policy.spending, how.budget_confidence)
        try:
            made = allocate(task.curves, task.costs * fix.scale, budget, constraints=task.rules)
        except BudgetError:  # no smaller budget can keep the constraints
            break
        spend = made.spend / fix.scale * fix.ratio
        stops.append(Stop(budget, spend, made.value, made.price, ratio=fix.ratio))
        levels.append(made.levels.astype(np.min_scalar_type(-task.curves.shape[1])))
    return tuple(stops[::-1]), np.stack(levels[::-1]) if levels else None, ""


def _constraints(campaign: Campaign, customers: Customers) -> Constraints:
    """Return the campaign's constraints for these customers."""
    how, table = campaign.planning, customers.features
    columns = [name for names in how.columns.values() for name in names]
    named = [*([how.segment] if how.segment else []), *columns, *how.barred]
    refuse(
        "customers",
        [
            Problem(f"the column {name!r}, which [plan] names, is not in the table", suggest(name, table.column_names))
            for name in named
            if name not in table.column_names
        ],
    )
    eligible = find_eligible(customers, campaign.levels, columns, how.barred, how.fixed)
    segment = np.array([str(v) for v in table.column(how.segment).to_pylist()]) if how.segment else None
    return Constraints(**{**how.constraints, "segment": segment, "eligible": eligible})
