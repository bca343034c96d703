"""Simpler plans than the policy's: by a simple rule, or by the best mix of levels for all customers."""

from __future__ import annotations

import numpy as np

from largesse.allocation import mix_two_levels
from largesse.campaign import Campaign
from largesse.data import find_grouping_rule
from largesse.errors import Problem, fail, suggest
from largesse.evaluation import RULE_GROUPS
from largesse.exploration import RESERVE, compute_cost_standard_deviation, draw_levels_within_budget
from largesse.pipeline.engine_protocol import Engine, PlanResult, ScoredCustomers
from largesse.policy import Policy
from largesse.records import Array, Customers, Plan, PlanSummary, RuleTable, StudySummary

PLAN_KINDS = ("plan", "rule", "mix")
SIMPLER = "A plan without the policy has no price, so there are no plans at other budgets."


def make_simpler_plan(
    kind: str,
    campaign: Campaign,
    planned: PlanSummary,
    study: StudySummary,
    policy: Policy,
    customers: ScoredCustomers,
    engine: Engine,
) -> PlanResult:
    """Draw levels by an evaluated simple "rule", or by one "mix" of levels for all customers, at the plan's spend.

    The draw costs no more than the budget, as the model expects it.
    """
    everyone, curves, costs = customers.collect()
    n, costs = len(curves), np.broadcast_to(costs, curves.shape)
    if kind == "mix":
        means = np.array([(level.value.estimate, level.spend.estimate) for level in study.uniform])
        probabilities = np.tile(mix_two_levels(means[:, 0], means[:, 1], planned.planned.spend), (n, 1))
    else:
        probabilities = _apply_rule(study.safety.rule, campaign, everyone, engine)
    budget = campaign.planning.average_budget(n)
    probabilities = _limit_to_budget(probabilities, costs, budget)
    levels = draw_levels_within_budget(probabilities, costs, n * budget, campaign.seed)
    rows = np.arange(n)
    value = float((probabilities * curves).sum(axis=1).mean())
    spend = float(costs[rows, levels].mean())
    plan = Plan(levels, value, spend, price=float("nan"), bound=value, budget=budget)
    return PlanResult(plan, policy, propensity=probabilities[rows, levels], excuse=SIMPLER)


def check_simpler_plan_kind(kind: str, campaign: Campaign, *, out: bool, spends: bool) -> None:
    """Raise an error for an unknown kind of plan, or for a simple rule or mix of levels that was not evaluated."""
    if kind not in PLAN_KINDS:
        fail("plan", Problem(f"--as {kind!r} is not known", suggest(kind, PLAN_KINDS)))
    if kind == "plan":
        return
    if not out:
        got = f"the plan of the {kind} needs a file of its own: the run folder keeps the plan of its policy"
        fail("plan", Problem(got, "add --out plan.csv"))
    if spends:
        hint = "leave them out, or plan and evaluate with them first"
        fail("plan", Problem(f"the {kind} belongs to the evaluation, and a budget or an exploration is given", hint))
    if campaign.planning.constrained:
        fail("plan", Problem(f"the {kind} keeps no rules, and the campaign has some", "take the plan: --as plan"))


def _apply_rule(rule: RuleTable | None, campaign: Campaign, customers: Customers, engine: Engine) -> Array:
    """Return the level probabilities (n, K) of customers under a simple rule."""
    if rule is None:
        fail("plan", Problem("the evaluation of this run has no simple rule", "take the mix: --as mix"))
    grouping = find_grouping_rule(engine.read_log(campaign).seen.features.column(rule.column), RULE_GROUPS)
    shares = dict(zip(rule.groups, rule.shares, strict=True))
    others = np.mean(rule.shares, axis=0)  # of groups that the log does not have
    table = np.array([shares.get(label, others) for label in grouping.labels])
    return np.asarray(table[grouping.assign_groups(customers.features.column(rule.column))])


def _limit_to_budget(probabilities: Array, costs: Array, budget: float) -> Array:
    """Shift level probabilities (n, K) towards the cheapest levels until their random draws keep the budget."""
    expected, reserve = (
        (probabilities * costs).sum(axis=1).mean(),
        RESERVE * compute_cost_standard_deviation(probabilities, costs),
    )
    cheapest = np.eye(costs.shape[1])[costs.argmin(axis=1)]
    least = float(costs.min(axis=1).mean())
    room, excess = expected - least, expected - (budget - reserve / len(costs))
    if excess <= 0 or room <= 0:
        return probabilities
    return np.asarray(probabilities + min(excess / room, 1.0) * (cheapest - probabilities))
