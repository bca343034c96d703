"""Planning: from scored customers, a budget and constraints to the price and the rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from largesse.allocation import (
    BudgetPoint,
    Constraints,
    Correction,
    allocate,
    correct,
    find_budget_points,
)
from largesse.campaign import Campaign, Planning, find_eligible
from largesse.errors import BudgetError, Problem, refuse, suggest
from largesse.exploration import Mixture, ResponseVariance, remaining_budget, split_ties
from largesse.pipeline.engine import PlanResult, PricedPlan, ScoredCustomers
from largesse.pipeline.exploration import explore_plan
from largesse.policy import Policy
from largesse.progress import report_to, start_stage
from largesse.records import Array, Customers, Plan, Progress

YES_OR_NO = ResponseVariance()  # follows from the probability
OTHER_BUDGETS = 20  # under constraints, each made for itself
MAX_CHOICES = 200_000  # customers × levels for whom these are made
TOO_MANY = (
    "Under constraints, each budget needs a plan of its own, and there are too many customers to make them beforehand."
)
TOO_LONG = "Plans that are proven under constraints take too long to make one for each budget beforehand."
EXPLORED = "Where a plan explores for a purpose, each budget needs probabilities of its own."
Correct = Callable[[float], Correction]  # budget → what expected costs are multiplied by


@dataclass(frozen=True, eq=False)
class Task:
    """All customers in memory, and the campaign's constraints for them."""

    curves: Array  # (n, K)
    costs: Array  # (K,) or (n, K), as expected
    constraints: Constraints | None


def make_plan(
    campaign: Campaign,
    policy: Policy,
    customers: ScoredCustomers,
    progress: Progress,
    variance: ResponseVariance = YES_OR_NO,
) -> PlanResult:
    """Give every customer a level, within the campaign's budget and constraints.

    The variance of responses is used if the plan explores for evaluation or learning.
    """
    settings, n, spending = campaign.planning, customers.n, policy.spending
    with report_to(progress):
        start_stage("planning", n)
        expected = None if spending is None else customers.sums_at(spending.price).mean_spend

        def correct_for(budget: float) -> Correction:
            """Return the correction with which a plan really costs this budget: see `allocation.correct_costs`."""
            if spending is None or expected is None:
                return Correction()
            return correct(expected, budget, spending, settings.budget_confidence)

        correction = correct_for(settings.average(n))
        scale, aimed = correction.scale, None
        plan: Any  # `PricedPlan`, a dataclass
        extras: dict[str, Any] = {}
        if settings.aimed or settings.constrained or settings.exact:
            start_stage("planning with all customers in memory", n)
            task = _collect(campaign, customers)
            scaled = task.costs if scale == 1.0 else task.costs * scale
        if settings.aimed:
            explored = explore_plan(settings, task.curves, scaled, task.constraints, variance, campaign.seed)
            plan, aimed = explored.plan, explored.rule
            rule = Mixture(plan.price) if aimed is None else aimed.plan
            extras = {"excuse": EXPLORED, "propensity": explored.propensity, "exploration": explored.numbers}
        else:
            points = _find_points(campaign, policy, customers)
            if settings.constrained:
                plan = _allocate(settings, task, scaled)
                rule = Mixture(
                    plan.price
                )  # it cannot keep constraints, so there is no budget that its ties should meet
                extras = _plan_others(settings, task, [point.budget for point in points], correct_for)
            elif settings.exact:
                plan, extras = _allocate(settings, task, scaled), {"points": points}
                rule = split_ties(plan.price, customers.mean_costs(plan.price, scale=scale), plan.budget)
            else:
                plan, rule = _plan_within_budget(customers, settings, scale)
                extras = {"points": points, "explore": settings.explore, "seed": campaign.seed}
    facts: Any = {
        "price": rule.price,
        "exploration_rate": rule.exploration_rate,
        "tie_probability": rule.tie_probability,
        "scale": scale,
    }
    policy = replace(policy, **facts, exploration=aimed)
    if spending is None:
        return PlanResult(plan, policy, **extras)
    confidence = correction.confidence(plan.spend, plan.budget)
    plan = replace(plan, spend=plan.spend / scale * correction.ratio)  # the margin that confidence takes is not spent
    return PlanResult(plan, policy, scale, correction.ratio, confidence, **extras)


def _collect(campaign: Campaign, customers: ScoredCustomers) -> Task:
    """Return all customers, who are needed at once by constraints, proofs and exploration for a goal."""
    collected, curves, costs = customers.collect()
    return Task(curves, costs, _make_constraints(campaign, collected) if campaign.planning.constrained else None)


def _allocate(settings: Planning, task: Task, costs: Array) -> Plan:
    """Return the plan under the campaign's constraints, or the proven one."""
    return allocate(
        task.curves, costs, settings.budget, total=settings.total, constraints=task.constraints, exact=settings.exact
    )


def _plan_within_budget(customers: ScoredCustomers, settings: Planning, scale: float) -> tuple[PricedPlan, Mixture]:
    """Return the best plan within the budget, all costs times `scale`, and its rule; a share of customers may explore.

    The value and spend of a plan that explores are expected ones.
    """
    explore, n = settings.explore, customers.n
    plan: Any
    if not explore:
        plan = customers.allocate(settings.budget, total=settings.total, scale=scale)
        return plan, split_ties(plan.price, customers.mean_costs(plan.price, scale=scale), plan.budget)
    sums, budget = customers.sums_at(()), settings.average(n)
    random_cost = float(sums.level_costs.mean()) / n * scale
    random_response = float(sums.level_responses.mean()) / n
    rest = remaining_budget(float(sums.mean_spend[0]) * scale, random_cost, budget, explore)
    plan = customers.allocate(rest, scale=scale)
    rule = split_ties(plan.price, customers.mean_costs(plan.price, scale=scale), rest, explore)
    value, bound = ((1 - explore) * part + explore * random_response for part in (plan.value, plan.bound))
    spend = (1 - explore) * plan.spend + explore * random_cost
    return replace(plan, value=value, bound=bound, spend=min(spend, budget), budget=budget), rule


def _find_points(campaign: Campaign, policy: Policy, customers: ScoredCustomers) -> tuple[BudgetPoint, ...]:
    """Return plans at other budgets."""
    settings = campaign.planning
    return find_budget_points(
        customers.sums_at,
        policy.spending,
        settings.budget_confidence,
        explore=settings.explore,
        worth=campaign.response_value,
    )


def _plan_others(settings: Planning, task: Task, budgets: Sequence[float], correct_for: Correct) -> dict[str, Any]:
    """Return plans under constraints at some of the budgets, their levels (points, n), or why there are none."""
    if settings.exact or task.curves.size > MAX_CHOICES:
        return {"excuse": TOO_LONG if settings.exact else TOO_MANY}
    points, levels = [], []
    places = np.linspace(0, len(budgets) - 1, OTHER_BUDGETS)
    for budget in sorted({budgets[round(k)] for k in places}, reverse=True):
        correction = correct_for(budget)
        try:
            plan = allocate(task.curves, task.costs * correction.scale, budget, constraints=task.constraints)
        except BudgetError:  # no smaller budget can keep the constraints
            break
        spend = plan.spend / correction.scale * correction.ratio
        points.append(BudgetPoint(budget, spend, plan.value, plan.price, ratio=correction.ratio))
        levels.append(plan.levels.astype(np.min_scalar_type(-task.curves.shape[1])))
    return {"points": tuple(points[::-1]), "listed": np.stack(levels[::-1]) if levels else None}


def _make_constraints(campaign: Campaign, customers: Customers) -> Constraints:
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
