"""Plan of scored customers under a budget and constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from largesse.allocation import (
    BudgetPoint,
    Constraints,
    CostCorrection,
    allocate,
    correct_expected_costs,
    expected_costs,
    find_budget_points,
)
from largesse.campaign import Campaign, PlanSettings, find_eligible_levels
from largesse.errors import BudgetError, Problem, join_some, plural, refuse, suggest
from largesse.evaluation import MAX_UNKNOWN_SHARE, ConstrainedFoldPlanner, FoldPlan, FoldPlanner
from largesse.exploration import (
    RESERVE,
    EpsilonGreedyPriceRule,
    ResponseVariance,
    compute_remaining_budget,
    find_seed_within_budget,
    fit_rule_to_budget,
    make_rule_from_tie_costs,
    plan_exploration,
)
from largesse.pipeline.engine_protocol import PlanResult, PricedPlan, ScoredCustomers
from largesse.policy import Policy
from largesse.progress import report_to, start_stage
from largesse.records import Array, Customers, ExplorationPrecision, ExplorationSummary, Finding, Log, Plan, Progress

BINARY_VARIANCE = ResponseVariance()  # of yes or no: it follows from the probability
N_TRIED_SEEDS = 16  # of random levels, for the standard deviation of their total cost
MAX_OTHER_BUDGETS = 20  # under constraints, each with a plan of its own
MAX_CELLS_OF_OTHER_PLANS = 200_000  # customers × levels for which these are made
TOO_MANY = (
    "Under constraints, each budget needs a plan of its own, and there are too many customers to make them beforehand."
)
TOO_LONG = "Plans that are proven under constraints take too long to make one for each budget beforehand."
EXPLORED = "Where a plan explores for a purpose, each budget needs probabilities of its own."


def make_plan(
    campaign: Campaign,
    policy: Policy,
    customers: ScoredCustomers,
    progress: Progress,
    variance: ResponseVariance = BINARY_VARIANCE,
) -> PlanResult:
    """Return the plan of scored customers within a campaign's budget and constraints.

    The variance of responses is used if the plan explores for evaluation or learning.
    """
    settings, n, spending = campaign.planning, customers.n, policy.spending
    with report_to(progress):
        start_stage("planning", n)
        expected = None if spending is None else customers.sum_plans_at_prices(spending.price).mean_spend

        def find_cost_correction(budget: float) -> CostCorrection:
            """Return the cost correction with which a plan's actual cost equals this budget.

            See `allocation.correct_expected_costs`.
            """
            if spending is None or expected is None:
                return CostCorrection()
            return correct_expected_costs(expected, budget, spending, settings.budget_confidence)

        correction = find_cost_correction(settings.average_budget(n))
        scale, rule = correction.scale, None
        plan: Any  # `PricedPlan`, a dataclass
        extras: dict[str, Any] = {}
        constraints = None
        if settings.explores_for_goal or settings.constrained or settings.exact:
            start_stage("planning with all customers in memory", n)
            everyone, curves, costs = customers.collect()
            allowed = policy.options.mark_allowed(everyone.features)
            constraints = _make_constraints(campaign, everyone, allowed) if settings.constrained else None
            scaled = costs if scale == 1.0 else costs * scale
        if settings.explores_for_goal:
            exploration, rule = plan_exploration(
                curves,
                scaled,
                settings.average_budget(n),
                variance,
                goal=settings.explore_for,
                rate=settings.explore,
                constraints=constraints,
                seed=campaign.seed,
            )
            drawn = exploration.decisions.levels
            paid = np.broadcast_to(scaled, curves.shape)[np.arange(n), drawn]
            plan = Plan(
                levels=drawn,
                value=exploration.value,
                spend=min(float(paid.mean()), exploration.budget),
                price=exploration.price,
                bound=exploration.value + exploration.given_up,  # the value of the plan without exploration
                budget=exploration.budget,
            )
            mixture = EpsilonGreedyPriceRule(plan.price) if rule is None else rule.plan
            ways = (
                ExplorationPrecision(way.name, way.given_up, way.plan_se, way.gain_se) for way in exploration.precisions
            )
            summary = ExplorationSummary(
                exploration.goal, exploration.rate, exploration.given_up, exploration.this.money, tuple(ways)
            )
            extras = {"propensity": exploration.decisions.propensity, "exploration": summary, "excuse": EXPLORED}
        else:
            points = find_budget_points(
                customers.sum_plans_at_prices,
                spending,
                settings.budget_confidence,
                explore=settings.explore,
                worth=campaign.response_value,
            )
            if settings.constrained or settings.exact:
                limits: Any = {"total": settings.total, "constraints": constraints, "exact": settings.exact}
                plan = allocate(curves, scaled, settings.budget, **limits)
                # A price cannot keep constraints, so no budget has to be met by its ties.
                mixture = EpsilonGreedyPriceRule(plan.price)
                if not settings.constrained:
                    mixture = make_rule_from_tie_costs(
                        plan.price, customers.find_mean_cost_range(plan.price, scale=scale), plan.budget
                    )
                    extras = {"points": points}
                elif settings.exact or curves.size > MAX_CELLS_OF_OTHER_PLANS:
                    extras = {"excuse": TOO_LONG if settings.exact else TOO_MANY}
                else:
                    extras = _plan_other_budgets(curves, costs, constraints, points, find_cost_correction)
            else:
                plan, mixture, seed = _plan_within_budget(campaign, policy, customers, scale)
                extras = {"points": points, "explore": settings.explore, "seed": seed}
    policy = replace(
        policy,
        price=mixture.price,
        exploration_rate=mixture.exploration_rate,
        tie_probability=mixture.tie_probability,
        scale=scale,
        exploration=rule,
    )
    if spending is None:
        return PlanResult(plan, policy, **extras)
    confidence = correction.confidence(plan.spend, plan.budget)
    plan = replace(plan, spend=plan.spend / scale * correction.ratio)  # the margin that confidence takes is not spent
    return PlanResult(plan, policy, scale, correction.ratio, confidence, **extras)


def check_feasible(campaign: Campaign, customers: Any) -> None:
    """Raise an error if the listed costs alone prove that no plan keeps the budget and the constraints.

    Where costs depend on responses, only that of a contact is certain. Customers who are not in memory are not checked.
    """
    if not isinstance(customers, Customers):
        return
    settings, levels = campaign.planning, campaign.levels
    nothing = np.zeros((len(customers), len(levels)))
    costs = np.zeros(len(levels)) if levels.observed else expected_costs(levels, nothing, customers.costs)
    constraints = None
    if settings.constrained:
        constraints = replace(_make_constraints(campaign, customers, None), least_return=0.0)
    allocate(nothing, costs, settings.budget, total=settings.total, constraints=constraints)
    if settings.explore:
        wide = np.broadcast_to(costs, nothing.shape)
        compute_remaining_budget(
            float(wide.min(axis=1).mean()),
            float(wide.mean()),
            settings.average_budget(len(customers)),
            settings.explore,
        )


def _plan_within_budget(
    campaign: Campaign, policy: Policy, customers: ScoredCustomers, scale: float
) -> tuple[PricedPlan, EpsilonGreedyPriceRule, int]:
    """Return the best plan within the budget, its exploration rule and its random seed.

    All costs are multiplied by `scale`.

    The levels that the seed draws for the share of customers who explore keep the budget, too.
    """
    settings, n, seed = campaign.planning, customers.n, campaign.seed
    explore = settings.explore
    plan: Any
    if not explore:
        plan = customers.allocate(settings.budget, total=settings.total, scale=scale)
        return (
            plan,
            make_rule_from_tie_costs(plan.price, customers.find_mean_cost_range(plan.price, scale=scale), plan.budget),
            seed,
        )
    sums, budget = customers.sum_plans_at_prices(()), settings.average_budget(n)
    random_cost = float(sums.level_costs.mean()) / n * scale
    random_response = float(sums.level_responses.mean()) / n
    cheapest = float(sums.mean_spend[0]) * scale
    rest = compute_remaining_budget(cheapest, random_cost, budget, explore)

    def plan_for(rest: float) -> tuple[PricedPlan, Callable[[Sequence[int]], Array], float]:
        """Return the plan within a budget, a function from seeds to total costs with exploration, and expected cost."""
        plan = customers.allocate(rest, scale=scale)
        cost_of = partial(customers.draw_costs, PlanResult(plan, policy, scale, explore=explore))
        return plan, cost_of, n * ((1 - explore) * plan.spend + explore * random_cost)

    plan, cost_of, expected = plan_for(rest)
    deviation = float(np.sqrt(np.mean((cost_of(range(N_TRIED_SEEDS)) - expected) ** 2)))
    if explore < 1:
        reserve = RESERVE * deviation / n / (1 - explore)
        plan, cost_of, expected = plan_for(max(rest - reserve, cheapest))
    seed, spent = find_seed_within_budget(cost_of, seed, expected, n * budget)
    mixture = make_rule_from_tie_costs(
        plan.price, customers.find_mean_cost_range(plan.price, scale=scale), rest, explore
    )
    value, bound = ((1 - explore) * planned + explore * random_response for planned in (plan.value, plan.bound))
    return replace(plan, value=value, bound=bound, spend=min(spent / n, budget), budget=budget), mixture, seed


def _plan_other_budgets(
    curves: Array,
    costs: Array,
    constraints: Constraints | None,
    points: tuple[BudgetPoint, ...],
    find_cost_correction: Callable[[float], CostCorrection],
) -> dict[str, Any]:
    """Return the plans under constraints at other budgets with their levels (budgets, n)."""
    constrained, levels = [], []
    places = np.linspace(0, len(points) - 1, MAX_OTHER_BUDGETS)
    for budget in sorted({points[round(k)].budget for k in places}, reverse=True):
        correction = find_cost_correction(budget)
        try:
            plan = allocate(curves, costs * correction.scale, budget, constraints=constraints)
        except BudgetError:  # no smaller budget can keep the constraints
            break
        spend = plan.spend / correction.scale * correction.ratio
        constrained.append(BudgetPoint(budget, spend, plan.value, plan.price, ratio=correction.ratio))
        levels.append(plan.levels.astype(np.min_scalar_type(-curves.shape[1])))
    return {"points": tuple(constrained[::-1]), "listed": np.stack(levels[::-1]) if levels else None}


def _make_constraints(campaign: Campaign, customers: Customers, allowed: Array | None) -> Constraints:
    """Return the campaign's constraints for customers, limited to allowed levels (n, K)."""
    settings, table = campaign.planning, customers.features
    refuse("customers", _find_missing_columns(settings, table.column_names))
    eligible = _combine_eligible_and_allowed(find_eligible_levels(customers, campaign.levels, settings), allowed)
    return Constraints(**{**settings.constraints, "segment": _read_segments(settings, customers), "eligible": eligible})


def _find_missing_columns(settings: PlanSettings, names: Sequence[str]) -> list[Problem]:
    return [
        Problem(f"the column {name!r}, which [plan] names, is not in the table", suggest(name, names))
        for name in settings.rule_columns
        if name not in names
    ]


def _read_segments(settings: PlanSettings, customers: Customers) -> Array | None:
    """Return the budget segment (n,) of each customer as text; None without segments."""
    if not settings.segment:
        return None
    return np.array([str(value) for value in customers.features.column(settings.segment).to_pylist()])


def _combine_eligible_and_allowed(eligible: Array | None, allowed: Array | None) -> Array | None:
    """Return the mask (n, K) of levels that are both eligible and allowed.

    Customers without such a level keep the eligible ones.
    """
    if eligible is None or allowed is None:
        return allowed if eligible is None else eligible
    both = eligible & allowed
    return np.where(both.any(axis=1, keepdims=True), both, eligible)


# -- plans of the log's rows, for an evaluation ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ExploringPlanner:
    """Function that plans rows of a log under the campaign's constraints and exploration (a `FoldPlanner`)."""

    settings: PlanSettings
    eligible: Array | None  # (n, K) of the log's rows
    variance: ResponseVariance
    seed: int

    def __call__(self, rows: Array, curves: Array, costs: Array, budget: float, /) -> FoldPlan:
        """Return the level probabilities (m, K) of log rows under the campaign's plan."""
        settings = self.settings
        if not settings.explores_for_goal:
            mixture = fit_rule_to_budget(curves, costs, budget, settings.explore)
            return FoldPlan(mixture.probabilities(curves, costs), mixture.price)
        constraints = None if self.eligible is None else Constraints(eligible=self.eligible[rows])
        goal: dict[str, Any] = {"goal": settings.explore_for, "rate": settings.explore, "seed": self.seed}
        drawn, _ = plan_exploration(curves, costs, budget, self.variance, constraints=constraints, **goal)
        return FoldPlan(drawn.probabilities, drawn.price)


def make_fold_planner(
    campaign: Campaign, log: Log, customers: int, variance: ResponseVariance, allowed: Array | None = None
) -> FoldPlanner | None:
    """Return the function that plans the rows of each fold under the campaign's constraints; None without any.

    Refuses rules about columns that the log does not have: their effect cannot be judged.
    """
    settings = campaign.planning
    if not settings.constrained and not settings.explore:
        return None
    names = log.seen.confounders.column_names
    refuse("log", _find_missing_columns(settings, names))
    columns = list(settings.rule_columns)
    import pyarrow as pa

    table = log.confounders if log.sample is None else pa.concat_tables(log.sample.batches(columns or names[:1]))
    rows = Customers(table, log.customer)
    eligible = _combine_eligible_and_allowed(
        find_eligible_levels(rows, campaign.levels, settings, others=True), allowed
    )
    if settings.explore:
        return ExploringPlanner(settings, eligible, variance, campaign.seed)
    parts: dict[str, Any] = {"segment": _read_segments(settings, rows), "eligible": eligible}
    return ConstrainedFoldPlanner(Constraints(**{**settings.constraints, **parts}), customers)


def check_fixed_customers(campaign: Campaign, log: Log, customers: int) -> list[Finding]:
    """Return a finding if customers with a fixed level are missing from the log, so that no estimate covers them.

    Raises an error if they are more than `MAX_UNKNOWN_SHARE` of the customers.
    """
    if log.customer is None or not campaign.planning.fixed:
        return []
    known = set(log.customer.cast("string").to_pylist())
    unseen = [name for name in campaign.planning.fixed if name not in known]
    text = (
        f"{plural(len(unseen), 'customer')} with a fixed level have no row in the log, such as {join_some(unseen[:3])}"
    )
    if len(unseen) > MAX_UNKNOWN_SHARE * customers:
        refuse("plan", [Problem(text, "judge a plan in which fewer customers are fixed")])
    return [Finding("fixed levels", "careful", f"{text}. The estimates are for the other customers.")] if unseen else []
