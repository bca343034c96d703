"""Exploration rule: level probabilities for new customers, from the dual prices of an exploration design.

Under a budget alone, the probabilities that make the next log most informative depend on each customer by themselves:

    p_k = max(least, s_k / √(a + h_k)),   h_k = −β f_k + λ c_k,   s_k² = weight_k · variance_k,   a such that Σ_k p_k = 1.

β and λ are the prices of value and of cost in the design of the plan's next log. The weight selects the levels to measure: that
of the plan at its price, those of plans at other prices, and those of the incumbent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from largesse.exploration.epsilon_greedy_price_rule import EpsilonGreedyPriceRule, fit_rule_at_price
from largesse.exploration.exploration_design import (
    GOALS,
    UNIFORM_SHARE,
    ExplorationDesign,
    ExplorationTask,
    solve_neyman_allocation,
    weigh_level_variances,
)
from largesse.exploration.response_variance import ResponseVariance
from largesse.records import Array, Plan

MAX_PRICE = 1e100  # sums and squares of prices and variances stay finite
MIN_VARIANCE = 1e-300


@dataclass(frozen=True)
class ExplorationRule:
    """Rule that gives a new customer's level probabilities in an exploration."""

    goal: str  # "evaluation" or "learning"
    rate: float  # it gives up as much as random levels for this share of customers
    plan: EpsilonGreedyPriceRule
    near: tuple[EpsilonGreedyPriceRule, ...]  # (2,) plans at other budgets, which the log measures, too
    incumbent: tuple[float, ...]  # (K,) probabilities of the uniform mix that the plan is compared with
    value_price: float  # β
    cost_price: float  # λ
    floor: float  # of the variances
    variance: ResponseVariance = field(default_factory=ResponseVariance)

    def __post_init__(self) -> None:
        prices = (self.value_price, self.cost_price, *(mixture.price for mixture in (self.plan, *self.near)))
        shares = (self.rate, *self.incumbent, *(mixture.tie_probability for mixture in (self.plan, *self.near)))
        sound = (
            self.goal in GOALS
            and len(self.near) == 2
            and all(0 <= price <= MAX_PRICE for price in prices)
            and all(0 <= share <= 1 for share in shares)
            and MIN_VARIANCE <= self.floor <= MAX_PRICE
            and math.isclose(sum(self.incumbent), 1.0, rel_tol=1e-6)
            and not any(mixture.exploration_rate for mixture in (self.plan, *self.near))
        )
        if not sound:
            raise ValueError("the numbers of the exploration rule are invalid")

    @property
    def min_probability(self) -> float:
        """Smallest probability of any level."""
        return UNIFORM_SHARE * self.rate / len(self.incumbent)

    def probabilities(self, curves: Array, costs: Array) -> Array:
        """Return the rule's level probabilities (n, K) for response curves (n, K) and costs (K,) or (n, K)."""
        from largesse.exploration.exploration_kernels import compute_exploration_probabilities

        spread = self.compute_weighted_deviations(curves, costs)
        terms = np.empty((2, *spread.shape))
        terms[0], terms[1] = -curves, costs
        prices, least = np.array([self.value_price, self.cost_price]), np.full(spread.shape, self.min_probability)
        out = np.empty(spread.shape)
        compute_exploration_probabilities(spread, terms, prices, least, out)
        return out

    def compute_weighted_deviations(self, curves: Array, costs: Array) -> Array:
        """Return each level's weighted standard deviation (n, K), to which the probabilities are proportional."""
        variance = np.maximum(np.ascontiguousarray(self.variance.at(curves), dtype=np.float64), self.floor)
        if self.goal == "learning":
            return np.sqrt(variance)
        planned, *near = (mixture.probabilities(curves, costs) for mixture in (self.plan, *self.near))
        return np.ascontiguousarray(np.sqrt(weigh_level_variances(planned, np.array(self.incumbent), near) * variance))

    def pack(self) -> Array:
        """Return the rule as an array of numbers for the compiled kernel."""
        return np.array([self.goal == "learning", self.min_probability, self.floor, *self.incumbent], dtype=np.float64)

    def pack_for_pacing(self) -> Array:
        """Return the rule as an array of numbers for pacing, with shadow prices relative to the plan's shadow price."""
        price = self.plan.price
        near = [mixture.price / price if price > 0 else 1.0 for mixture in self.near]
        return np.concatenate([[self.value_price, *near], self.pack()])


def find_exploration_rule(
    task: ExplorationTask, design: ExplorationDesign, rate: float, goal: str, variance: ResponseVariance
) -> ExplorationRule | None:
    """Find the rule for new customers that agrees with an exploration design; None if there is no such rule.

    None where there is no such rule: eligibility and an incumbent of each customer say nothing about other customers.
    """
    mix = task.incumbent[0]
    if not task.allowed.all() or not (task.incumbent == mix).all():
        return None

    def mixture(plan: Plan) -> EpsilonGreedyPriceRule:
        return fit_rule_at_price(task.curves, task.costs, plan.price, plan.spend)

    near = tuple(mixture(plan) for plan in task.near_plans)
    shared = (tuple(mix.tolist()), 0.0, 0.0, task.floor, variance)
    rule = ExplorationRule(goal, float(rate), mixture(task.plan), near, *shared)
    # Ties are split for each customer of the plan, but on average in the rule: its prices may be a little different.
    spread = rule.compute_weighted_deviations(task.curves, task.costs)
    terms, least = np.stack([-task.curves, task.costs]), np.full(spread.shape, rule.min_probability)
    value_price, cost_price = solve_neyman_allocation(spread, terms, design.limits, least, design.prices)[1].tolist()
    return replace(rule, value_price=value_price, cost_price=cost_price)


def load_exploration_kernel() -> Callable[..., None]:
    """Load the compiled kernel that computes one customer's level probabilities."""
    from largesse.exploration.exploration_kernels import compute_customer_probabilities

    return compute_customer_probabilities
