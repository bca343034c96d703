"""Forecast of a budget's shadow prices over a period, and of customers' mean costs at these prices.

The prices are the dual of a plan that reserves promised money at every moment. A promise counts with its face value while it
stands, and with the part that is redeemed afterwards. There is one price for the budget at each of some points in time. Any
prices give a bound that no plan exceeds; the best prices give the plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from largesse.exploration import ExplorationRule
from largesse.records import Array
from largesse.serve.ledger.amounts_and_times import DAY_MICROS, MICROS
from largesse.serve.ledger.ledger_records import LedgerTerms
from largesse.serve.pacing.population import Population

MIN_FORECAST_CUSTOMERS = 20_000  # smaller populations are repeated
TIE_NOISE = 0.15  # standard deviation of the logarithm of a response
PARTS_PER_PROMISE, MIN_PARTS, MAX_PARTS = 4, 12, 72  # of the period
RULE_STEPS = 2  # in which prices allow for the cost of drawing by a rule
MAX_PRICE_FACTOR, VALUE_PRICE_HALVINGS = 1e6, 14  # of the rule's price of value
MIN_BUDGET_SHARE = 1e-6  # share of the budget that exploring leaves


@dataclass(frozen=True, eq=False)
class DualPlan:
    """Dual prices (J,) of a budget at points in time, with levels, dual bound and value of unspent budget."""

    prices: Array
    levels: Array  # (n,)
    bound: float
    slack: float  # value, at the prices, of the budget that the levels leave or exceed


def find_promise_points(times: Array, valid: float, days: float, n_points: int) -> Array:
    """Return the indices (n, 2) of the points in time at which each customer's promise begins and ends.

    Each is the first point at or after the time (n,), or at or after the promise's end.
    """
    width = days / n_points
    first = np.minimum((times / width).astype(np.int64), n_points - 1)
    last = np.maximum(np.ceil((times + valid) / width).astype(np.int64) - 1, 0)
    return np.stack([first, np.where(times + valid > days, n_points, np.minimum(last, n_points - 1))], axis=1)


def solve_dual_prices(customers: Population, redeems: Array, points: Array, n_points: int, total: float) -> DualPlan:
    """Find the dual-optimal prices of a budget at points in time, for customers with promises.

    `points` (n, 2) are those of `find_promise_points`; `redeems` (n, K) is the share of the face value that is
    redeemed.
    """
    from scipy.optimize import minimize

    from largesse.serve.pacing.pacing_kernels import compute_dual_objective

    responses = customers.responses
    levels, used = np.zeros(len(responses), dtype=np.int64), np.zeros(n_points + 1)
    arrays = (responses, customers.at_once, customers.face, redeems, points)
    gain = float((responses.max(axis=1) - responses[:, 0]).sum())
    unit = max(gain, 1e-300) / max(total, 1e-300)  # a price of the right order

    def compute_scaled_dual(scaled: Array) -> tuple[float, Array]:
        ahead = sum_remaining_prices(scaled) * unit
        inner = compute_dual_objective(*arrays, ahead, used, levels)
        slope = 1.0 - np.cumsum(used)[:-1] / max(total, 1e-300)
        return inner / (unit * total) + ahead[0] / unit if total > 0 else inner, slope

    start = np.zeros(n_points)
    start[-1] = 0.3
    bounds: Any = [(0.0, None)] * n_points
    options = {"maxiter": 300, "maxfun": 500}
    result = minimize(compute_scaled_dual, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
    best, slope = compute_scaled_dual(result.x)
    slack = float((result.x * slope).sum()) * unit * total
    return DualPlan(result.x * unit, levels, best * unit * total, slack)


def sum_remaining_prices(prices: Array) -> Array:
    """Sum the shadow prices of each part of the period and of all later parts (J + 1,); the last sum is 0."""
    return np.append(np.cumsum(prices[::-1])[::-1], 0.0)


def find_first_weekday(terms: LedgerTerms) -> int:
    """Return the weekday on which a ledger's period begins; Monday is 0."""
    return (terms.starts // DAY_MICROS + 3) % 7  # the first of January 1970 was a Thursday


class PriceForecast:
    """Shadow price forecast for a period, from a sample of customers spread over time by weekday traffic.

    `rate` and `rule` draw levels to explore.

    `solve` raises the rule's price of value where exploring would cost more than in the policy's own plan.
    """

    def __init__(
        self,
        population: Population,
        terms: LedgerTerms,
        week: tuple[float, ...],
        n_customers: float,
        rate: float,
        rule: ExplorationRule | None,
    ) -> None:
        self.n_parts, self.rate, self.rule, self._policy_rule = 1, rate, rule, rule
        if population.on_redemption and terms.keeps_promises:
            parts = math.ceil(PARTS_PER_PROMISE * terms.days / terms.promise_days)
            self.n_parts = int(min(max(parts, MIN_PARTS), MAX_PARTS))
        valid = (
            terms.promise_days if terms.keeps_promises else 0.0
        )  # nothing is reserved: a promise counts with its expected cost
        rng = np.random.default_rng(0)
        rows = rng.permutation(max(len(population), MIN_FORECAST_CUSTOMERS)) % len(population)
        # Where many customers tie, a price gives all of them the dearer level or none; a little noise splits them.
        drawn = population.take(rows)
        noise = np.exp(TIE_NOISE * rng.standard_normal((len(rows), 1)))
        self._customers, self._responses = replace(drawn, responses=drawn.responses * noise), drawn.responses
        self._points = find_promise_points(
            _spread_customer_times(len(rows), terms, week), valid, terms.days, self.n_parts
        )
        self._total = terms.total / MICROS * len(rows) / n_customers
        self._redeems = drawn.redeemed_share

    def solve_prices(self) -> Array:
        """Return the shadow prices (J,) of the period's equal parts at which the customers spend the budget."""
        customers, rate = self._customers, self.rate
        costs = np.where((self._points[:, 1] == self.n_parts)[:, None], customers.full_costs, customers.expected_costs)

        def solve_total(total: float) -> DualPlan:
            return solve_dual_prices(customers, self._redeems, self._points, self.n_parts, total)

        left = max(self._total - rate * float(costs.mean(axis=1).sum()), MIN_BUDGET_SHARE * self._total)
        plan = solve_total(left / max(1.0 - rate, MIN_BUDGET_SHARE))
        for _ in range(RULE_STEPS if self._policy_rule is not None else 0):
            prices = self._find_cost_prices(sum_remaining_prices(plan.prices))
            self._limit_exploration_loss(self._policy_rule, prices)  # type: ignore[arg-type]
            probabilities = self._compute_probabilities(self.rule, prices, 1.0, customers.responses)  # type: ignore[arg-type]
            # Drawing costs more than the best levels: that is part of the budget.
            drawing_cost = float((probabilities * costs).sum() - costs[np.arange(len(costs)), plan.levels].sum())
            plan = solve_total(max(self._total - drawing_cost, MIN_BUDGET_SHARE * self._total))
        return plan.prices

    def find_min_price(self) -> float:
        """Return the planned shadow price of an ample budget: 1 % of the mean gain per unit of cost."""
        customers = self._customers
        gain = float((customers.responses.max(axis=1) - customers.responses[:, 0]).mean())
        return max(0.01 * gain / max(float(customers.expected_costs.max(axis=1).mean()), 1e-9), 1e-300)

    def find_price_factor(self, ahead: Array, cost: float) -> float:
        """Return the factor of the shadow prices at which customers' total price × cost equals a given amount.

        The customers are those without the noise that breaks ties.
        """
        low, high = 0.0, 4.0
        for _ in range(30):
            middle = (low + high) / 2
            within = float(self.average_costs_by_period_part(ahead, middle, noise=False)[2].sum()) <= cost
            low, high = (low, middle) if within else (middle, high)
        return high

    def average_costs_by_period_part(
        self, ahead: Array, factor: float, *, noise: bool = True
    ) -> tuple[Array, Array, Array]:
        """Return customers' mean reserved cost, paid cost and price × cost in each part of the period, (J,) each."""
        from largesse.serve.pacing.pacing_kernels import compute_dual_objective

        customers, points, rate = self._customers, self._points, self.rate
        responses, prices = customers.responses if noise else self._responses, self._find_cost_prices(ahead)
        if self.rule is not None:
            probabilities = self._compute_probabilities(self.rule, prices, factor, responses)
            late, early = (
                (probabilities * customers.full_costs).sum(axis=1),
                (probabilities * customers.expected_costs).sum(axis=1),
            )
        else:
            rows = np.arange(len(responses))
            levels, used = np.zeros(len(rows), dtype=np.int64), np.zeros(self.n_parts + 1)
            arrays = (responses, customers.at_once, customers.face, self._redeems, points)
            compute_dual_objective(*arrays, ahead * factor, used, levels)
            late, early = (
                (1 - rate) * costs[rows, levels] + rate * costs.mean(axis=1)
                for costs in (customers.full_costs, customers.expected_costs)
            )
        priced = prices[:, 0] * late + prices[:, 1] * early
        count = np.maximum(np.bincount(points[:, 0], minlength=self.n_parts), 1)
        promised, paid, cost = (
            np.bincount(points[:, 0], amounts, self.n_parts) / count for amounts in (late, early, priced)
        )
        return promised, paid, cost

    def _limit_exploration_loss(self, rule: ExplorationRule, prices: Array) -> None:
        """Weaken the exploration rule until it loses at most the response lost at the policy's shadow price.

        A higher `value_price` weakens the rule.

        Promises that are kept make budget dear: without this, exploring would give up a large part of a small gain.
        """
        policy_prices = np.column_stack([np.zeros(len(prices)), np.full(len(prices), rule.plan.price)])
        max_loss = self._compute_exploration_loss(rule, policy_prices)
        low, high = 0.0, math.log(MAX_PRICE_FACTOR)
        for _ in range(VALUE_PRICE_HALVINGS):
            middle = (low + high) / 2
            dearer = replace(rule, value_price=rule.value_price * math.exp(middle))
            low, high = (low, middle) if self._compute_exploration_loss(dearer, prices) <= max_loss else (middle, high)
        self.rule = replace(rule, value_price=rule.value_price * math.exp(high))

    def _compute_exploration_loss(self, rule: ExplorationRule, prices: Array) -> float:
        """Return the expected response per customer that random levels lose at shadow prices (n, 2) of costs."""
        customers = self._customers
        score = customers.responses - prices[:, :1] * customers.full_costs - prices[:, 1:] * customers.expected_costs
        probabilities = self._compute_probabilities(rule, prices, 1.0, customers.responses)
        return float((score.max(axis=1) - (probabilities * score).sum(axis=1)).mean())

    def _find_cost_prices(self, ahead: Array) -> Array:
        """Return the budget's shadow prices (n, 2) that multiply each customer's face-value cost and expected cost.

        Full costs count where promises outlast the period.
        """
        after = ahead[self._points[:, 1]]
        return np.column_stack([ahead[self._points[:, 0]] - after, after])

    def _compute_probabilities(self, rule: ExplorationRule, prices: Array, factor: float, responses: Array) -> Array:
        """Return the exploration rule's level probabilities (n, K) at a factor of the shadow prices (n, 2)."""
        from largesse.serve.pacing.pacing_kernels import fill_level_probabilities

        customers, out = self._customers, np.empty(responses.shape)
        costs = (customers.full_costs, customers.expected_costs, prices, customers.variance, rule.pack_for_pacing())
        fill_level_probabilities(float(factor), responses, *costs, out)
        return out


def _spread_customer_times(n: int, terms: LedgerTerms, week: tuple[float, ...]) -> Array:
    """Return ascending arrival times (n,) in days, spread over the period by weekday traffic."""
    edges = np.minimum(np.arange(math.ceil(terms.days) + 1), terms.days)
    busy = np.diff(edges) * np.array(week)[(np.arange(len(edges) - 1) + find_first_weekday(terms)) % 7]
    elapsed = np.concatenate([[0.0], np.cumsum(busy)])
    return np.interp((np.arange(n) + 0.5) / n * elapsed[-1], elapsed, edges)
