"""Design of an exploration: level probabilities that make the next log's estimates most precise.

A doubly robust estimate of the mean of Σ_k Δ_k r_k over customers has the variance

    (1/n) (Var(Σ_k Δ_k f_k) + mean_i Σ_k Δ_ik² σ_ik² / p_ik),

where p is the probability with which the log gives a level. Under limits on the mean value and the mean cost the best
probabilities are p_k ∝ Δ_k σ_k / √(α + β · (value given up at k)): Neyman allocation with costs. A part of the exploration goes to
all levels equally, so that the log can also evaluate other policies. The dual has one price for each limit; it is concave and
smooth, its gradient is the excess over each limit, and Newton finds the prices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np

from largesse.allocation import Constraints, allocate, mix_two_levels
from largesse.errors import BudgetError, Problem
from largesse.exploration.budget_constrained_draw import RESERVE, compute_cost_standard_deviation
from largesse.exploration.epsilon_greedy_price_rule import compute_remaining_budget, mix_in_uniform_levels
from largesse.records import Array, Plan

GOALS = ("evaluation", "learning")
UNIFORM_SHARE = 0.1  # of the exploration rate: it goes to all levels equally
VARIANCE_FLOOR = 1e-3  # as a share of the mean variance: a model that is sure may be wrong
MAX_EXCESS = 1e-6  # over a limit, relative to its scale
MAX_MOVED = 0.5  # of the probabilities, to keep the budget: rounding needs far less
NEAR_BUDGETS = (0.75, 1.333)  # as shares of the plan's budget: the next evaluation may prefer these plans
NEWTON_STEPS, HALVINGS = 100, 30
DUAL_ROUNDING = 1e-12
DESIGN_TOLERANCE = 1e-9  # of a limit's own scale
MIN_RISE = 1e-4  # of the rise that the gradient predicts
ZERO_PRICE = 1e-12  # a price below this share of the largest is zero if its limit is kept


@dataclass(frozen=True, eq=False)
class ExplorationTask:
    """Input of an exploration design: response curves, costs, variances, plan and incumbent policy."""

    curves: Array  # (n, K)
    costs: Array  # (n, K)
    variance: Array  # (n, K) of a response around its curve
    plan: Plan
    incumbent: Array  # (n, K) probabilities
    allowed: Array  # (n, K) bool
    floor: float  # of the variances

    @property
    def planned(self) -> Array:
        """Level probabilities (n, K) of the plan: zeros and ones."""
        return np.eye(self.curves.shape[1])[self.plan.levels]

    @cached_property
    def net_value(self) -> Array:
        """Net value (n, K) of each level: response − shadow price × cost."""
        return np.asarray(self.curves - self.plan.price * self.costs)

    @cached_property
    def near_plans(self) -> tuple[Plan, ...]:
        """Plans at a lower and at a higher budget, whose values the next log also estimates."""
        least = float(self.costs.min(axis=1).mean())
        return tuple(allocate(self.curves, self.costs, max(share * self.plan.budget, least)) for share in NEAR_BUDGETS)

    def predict_se(self, contrast: Array, probabilities: Array) -> float:
        """Predict the standard error of a contrast (n, K) in a log drawn with given level probabilities."""
        effect = (contrast * self.curves).sum(axis=1)
        needed = np.abs(contrast) > 1e-12
        if (needed & (probabilities <= 0)).any():
            return float("inf")
        noise = np.divide(contrast**2 * self.variance, probabilities, out=np.zeros(contrast.shape), where=needed)
        return float(np.sqrt((effect.var() + noise.sum(axis=1).mean()) / len(effect)))

    def compute_mean_response(self, probabilities: Array) -> float:
        """Return the expected response per customer under level probabilities (n, K)."""
        return float((probabilities * self.curves).sum(axis=1).mean())

    def compute_mean_cost(self, probabilities: Array) -> float:
        """Return the expected cost per customer under level probabilities (n, K)."""
        return float((probabilities * self.costs).sum(axis=1).mean())


@dataclass(frozen=True, eq=False)
class ExplorationDesign:
    """Level probabilities of the next log, and those of uniform exploration with the same loss of response."""

    probabilities: Array  # (n, K)
    random: Array  # (n, K)
    limits: Array  # (2,) of mean Σ_k p_k x_k, x = (−curves, costs)
    prices: Array  # (2,) of these limits


def make_exploration_task(
    curves: Array,
    costs: Array,
    variance: Array,
    budget: float,
    incumbent: Array | None = None,
    eligible: Array | None = None,
) -> ExplorationTask:
    """Plan within the budget, and prepare the input of an exploration design around the plan."""
    shape = n, K = curves.shape
    costs = np.ascontiguousarray(np.broadcast_to(costs, shape), dtype=np.float64)
    curves = np.asarray(curves, dtype=np.float64)
    plan = allocate(curves, costs, budget, constraints=None if eligible is None else Constraints(eligible=eligible))
    allowed = np.ones(shape, dtype=bool) if eligible is None else np.asarray(eligible, dtype=bool)
    if incumbent is None:
        weight = mix_two_levels(curves.mean(axis=0), costs.mean(axis=0), plan.spend)
        incumbent = np.tile(weight, (n, 1))
    # A customer who may get none of the incumbent's levels gets the plan's.
    incumbent = np.where(allowed, incumbent, 0.0)
    total = incumbent.sum(axis=1, keepdims=True)
    incumbent = np.where(total > 0, incumbent / np.where(total > 0, total, 1.0), np.eye(K)[plan.levels])
    floor = VARIANCE_FLOOR * float(variance.mean()) + 1e-300
    return ExplorationTask(curves, costs, np.maximum(variance, floor), plan, incumbent, allowed, floor)


def design_exploration(task: ExplorationTask, rate: float, goal: str = "evaluation") -> ExplorationDesign:
    """Find the level probabilities (n, K) that make the next log's estimates most precise.

    They cost no more than the plan's budget and give up no more expected response than giving a share `rate` of the customers
    a level at random, within the same budget.
    """
    random, loss = _explore_at_random(task, rate)
    n_allowed = task.allowed.sum(axis=1, keepdims=True)
    least = np.where(task.allowed, np.where(n_allowed == 1, 1.0, UNIFORM_SHARE * rate / n_allowed), 0.0)
    weight = np.ones(task.curves.shape)
    if goal != "learning":
        eye = np.eye(task.curves.shape[1])
        weight = weigh_level_variances(task.planned, task.incumbent, [eye[plan.levels] for plan in task.near_plans])
    spread = np.sqrt(weight * task.variance) * task.allowed
    terms = np.stack([-task.curves, task.costs])
    # The drawn levels cost more or less than expected: a reserve keeps them within the budget.
    reserve = RESERVE * compute_cost_standard_deviation(random, task.costs) / len(random)
    # The prices that are right where little is explored.
    lost = np.maximum((task.planned * task.net_value).sum(axis=1, keepdims=True) - task.net_value, 0.0)
    price = (float((spread * np.sqrt(lost)).sum(axis=1).mean()) / loss) ** 2 if loss > 0 else 0.0
    start = np.array([price, price * task.plan.price])
    for budget in (task.plan.budget - reserve, task.plan.budget):
        limits = np.array([loss - task.plan.value, min(budget, float(task.costs.max()))])
        probabilities, prices, excess = solve_neyman_allocation(spread, terms, limits, least, start)
        if excess <= MAX_EXCESS:
            break
    else:
        _refuse_small_budget()
    return ExplorationDesign(_reduce_to_budget(probabilities, task, budget), random, limits, prices)


def weigh_level_variances(planned: Array, incumbent: Array, near: Sequence[Array]) -> Array:
    """Return the weight (n, K) of each level's variance in the estimates from the next log.

    Arguments are probabilities (n, K) of levels: in the plan, in the incumbent, and in plans at other budgets. Where levels
    tie, the plan gives one or the other, and the weight is the mean over both.
    """
    from largesse.exploration.exploration_kernels import MIN_WEIGHT, NEAR_WEIGHT, PLAN_WEIGHT

    rest = 1 - planned
    weight = planned * (1 - incumbent) ** 2 + rest * incumbent**2 + PLAN_WEIGHT * planned
    for other in near:
        weight += NEAR_WEIGHT * (planned * (1 - other) + rest * other)
    return np.maximum(weight, MIN_WEIGHT)


def _explore_at_random(task: ExplorationTask, rate: float) -> tuple[Array, float]:
    """Return the level probabilities (n, K) of uniform exploration, and its expected loss of response."""
    if not task.allowed.all():
        uniform = task.allowed / task.allowed.sum(axis=1, keepdims=True)
        mixed = (1 - rate) * task.planned + rate * uniform
        return mixed, max(float(((task.planned - mixed) * task.net_value).sum(axis=1).mean()), 0.0)
    cheapest, random = float(task.costs.min(axis=1).mean()), float(task.costs.mean())
    rest = compute_remaining_budget(cheapest, random, task.plan.budget, rate)
    levels = allocate(task.curves, task.costs, rest).levels
    mixed = mix_in_uniform_levels(np.eye(task.curves.shape[1])[levels], rate)
    return mixed, max(task.plan.value - task.compute_mean_response(mixed), 0.0)


def _reduce_to_budget(probabilities: Array, task: ExplorationTask, budget: float) -> Array:
    """Reduce the expected cost of level probabilities (n, K) to a budget.

    The solver stops within its accuracy, on either side of a limit; the excess moves to the cheapest level. Where levels cost
    the same, nothing can be lowered, and the sum is the budget up to rounding.
    """
    K = probabilities.shape[1]
    cheapest = np.eye(K)[np.where(task.allowed, task.costs, np.inf).argmin(axis=1)]
    rounding = (probabilities.size + 8) * np.finfo(np.float64).eps  # two sums of as many floats differ by no more
    spend = task.compute_mean_cost(probabilities)
    room = spend - task.compute_mean_cost(cheapest)
    if spend <= budget * (1 - rounding) or room <= rounding * spend:
        return probabilities
    share = (spend - budget * (1 - 2 * rounding)) / room
    if share > MAX_MOVED:
        _refuse_small_budget()
    return np.where(
        (task.costs != 0).any(axis=1, keepdims=True), probabilities + share * (cheapest - probabilities), probabilities
    )


def _refuse_small_budget() -> NoReturn:
    hint = "explore with a smaller rate, or raise the budget"
    raise BudgetError("explore", [Problem("exploring does not fit within the budget", hint)])


def solve_neyman_allocation(
    spread: Array, terms: Array, limits: Array, least: Array, start: Array
) -> tuple[Array, Array, float]:
    """Minimise the mean of Σ_k s²/p over level probabilities p (Neyman allocation), under limits on means.

    Returns p (n, K), the prices (m,) of the limits, and the largest excess over a limit, relative to its scale.

    Parameters
    ----------
    spread
        s (n, K): standard deviations, times the root of the level's weight; at least one of each row is above 0.
    terms, limits
        x (m, n, K) and t (m,).
    least
        (n, K) the smallest probability of each level.
    start
        (m,) prices to begin with.
    """
    from largesse.exploration.exploration_kernels import compute_exploration_probabilities

    n = len(spread)
    spread, least = np.ascontiguousarray(spread), np.ascontiguousarray(least)
    out = np.empty(spread.shape)
    scale = np.maximum(np.abs(terms).mean(axis=(1, 2)), 1e-300)

    def evaluate_dual(prices: Array) -> tuple[Array, Array, float]:
        sums, curvature, dual = compute_exploration_probabilities(spread, terms, prices, least, out)
        return (sums / n - limits) / scale, curvature / n / np.outer(scale, scale), dual / n - float(prices @ limits)

    # All prices are in units of the limits' own scales.
    prices = np.maximum(start, 0.0) * scale
    slack, curvature, dual = evaluate_dual(prices / scale)
    for _ in range(NEWTON_STEPS):
        free = (prices > ZERO_PRICE * prices.max(initial=0.0)) | (slack > 0)
        prices = np.where(free, prices, 0.0)
        if np.abs(slack[free]).max(initial=0.0) < DESIGN_TOLERANCE:
            break
        step = np.zeros(len(prices))
        block = curvature[np.ix_(free, free)]
        step[free] = np.linalg.solve(block + 1e-12 * (np.trace(block) + 1e-300) * np.eye(len(block)), slack[free])
        noise = DUAL_ROUNDING * (abs(dual) + float(prices.sum()))  # of the dual, a difference of large numbers
        for halving in range(HALVINGS):
            tried = np.maximum(prices + step * 0.5**halving, 0.0)  # the projected Newton step of Bertsekas
            result = evaluate_dual(tried / scale)
            if result[2] >= dual + MIN_RISE * float(slack @ (tried - prices)) - noise:
                break
        else:
            break
        prices, (slack, curvature, dual) = tried, result
    evaluate_dual(prices / scale)
    return out, prices / scale, float(slack.max(initial=0.0))
