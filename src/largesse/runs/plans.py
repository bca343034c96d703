"""Planning: from scored customers, a budget and constraints to the price and the rule."""

from __future__ import annotations

from dataclasses import replace

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
from largesse.errors import Problem, nearest, refuse
from largesse.policy import Policy
from largesse.progress import begin, follow
from largesse.records import Customers, Plan, Progress
from largesse.runs.campaign import Campaign
from largesse.runs.planned import Planned, ScoredCustomers

MOST = 1_000_000  # customers; more are not asked again only so that a reader may play with the budget


def make_plan(campaign: Campaign, policy: Policy, scored: ScoredCustomers, progress: Progress) -> Planned:
    """Give every customer a level, within the campaign's budget and constraints."""
    how = campaign.planning
    with follow(progress):
        begin("planning", scored.n)
        fix = correct_scored(scored, how.average(scored.n), policy.spending, how.budget_confidence)
        scale = 1.0 if policy.spending is None else fix.scale
        made: PricedPlan | Plan
        stops = _find_stops(campaign, policy, scored)
        if how.constrained or how.exact:
            begin("planning with all customers in memory", scored.n)
            made, rule = _allocate(campaign, scored, scale)
        else:
            kept = scored if policy.spending is None else scored.scaled(scale)
            made = price_plan(kept, how.budget, total=how.total, explore=how.explore, seed=campaign.seed)
            rule = made.rule
    policy = replace(policy, price=rule.price, at_random=rule.explore, share=rule.share, scale=fix.scale)
    if policy.spending is None:
        return Planned(made, policy, scored, stops=stops)
    sure = fix.confidence(made.spend, made.budget)
    spend = made.spend / fix.scale * fix.ratio  # the margin that confidence takes is not spent
    return Planned(replace(made, spend=spend), policy, scored, scale, fix.ratio, sure, stops)


def _find_stops(campaign: Campaign, policy: Policy, scored: ScoredCustomers) -> tuple[Stop, ...]:
    """Return plans at other budgets; none where plans keep more than a budget, or customers are very many."""
    how = campaign.planning
    if how.constrained or how.exact or how.explore or scored.n > MOST:
        return ()
    return find_stops(scored, policy.spending, how.budget_confidence)


def _allocate(campaign: Campaign, scored: ScoredCustomers, scale: float) -> tuple[Plan, Mixture]:
    """Return the plan under the campaign's constraints, which need all customers at once, and the rule it stands for."""
    how = campaign.planning
    customers, curves, costs = scored.gather()
    costs = costs if scale == 1.0 else costs * scale
    rules = _constraints(campaign, customers) if how.constrained else None
    made = allocate(curves, costs, how.budget, total=how.total, constraints=rules, exact=how.exact)
    # A rule cannot keep constraints, so there is no budget that its ties should meet.
    return made, Mixture(made.price) if how.constrained else find_mixture(curves, costs, made.price, made.budget)


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
