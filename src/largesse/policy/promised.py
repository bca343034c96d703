"""What a policy promises the customers of a new log, and what its budget would buy among them today."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from largesse.allocation import allocate, correct_costs, decide_at_price
from largesse.policy.policy import Policy
from largesse.records import Array, Customers, Estimate, Log, Promise

RESAMPLES = 30
ROWS = 20_000  # customers that are enough for a price
LEAST_ERROR = 0.01  # of a price, as a share of it: between two customers it may jump


def promise_anew(policy: Policy, log: Log, budget: float | None = None) -> Promise:
    """Return what a policy gives the customers of a log, and what it expects of them, whatever was planned before."""
    customers = Customers(log.features, log.customer, log.costs)
    curves, costs = _expect(policy, customers)
    levels, rows = decide_at_price(curves, costs * policy.scale, policy.price or 0.0), np.arange(len(log))
    given = policy.probabilities(customers) if policy.draws else None
    expected = curves[rows, levels] if given is None else (given * curves).sum(axis=1)
    paid = costs * _find_ratio(policy, curves, costs, budget)
    spent = paid[rows, levels] if given is None else (given * paid).sum(axis=1)
    return Promise(levels, expected, spent, curves, None if given is None else given[rows, levels])


def _expect(policy: Policy, customers: Customers) -> tuple[Array, Array]:
    """Return responses and costs (n, K) that the model itself expects."""
    found = replace(policy, scale=1.0).expect(customers)
    return found.responses, np.ascontiguousarray(found.costs, dtype=np.float64)


def _find_ratio(policy: Policy, curves: Array, costs: Array, budget: float | None) -> float:
    """Return what expected costs are multiplied by to be what is really paid."""
    if policy.spending is None or budget is None:
        return 1.0
    return correct_costs(curves, costs, budget, policy.spending).ratio


def find_price(policy: Policy, log: Log, budget: float, planned: int, seed: int = 0) -> Estimate:
    """Return the price at which the customers of a log cost `budget` on average.

    Its standard error, by resampling, allows for the price of a plan for `planned` customers, too.
    """
    curves, costs = _expect(policy, Customers(log.features, log.customer, log.costs))
    costs = costs * policy.scale
    rng = np.random.default_rng(seed)
    n = len(curves)
    some = rng.permutation(n)[:ROWS]
    here = _price(curves[some], costs[some], budget)
    found = [_price(curves[rows], costs[rows], budget) for rows in rng.choice(some, (RESAMPLES, len(some)))]
    se = max(float(np.std(found)), LEAST_ERROR * here) * float(np.sqrt(1 + len(some) / max(planned, 1)))
    return Estimate(here, se, here - 1.96 * se, here + 1.96 * se)


def _price(curves: Array, costs: Array, budget: float) -> float:
    return allocate(curves, costs, max(budget, float(costs.min(axis=1).mean()))).price
