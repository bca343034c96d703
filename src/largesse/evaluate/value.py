"""From scores to the value and spend of a policy, and to what it is compared with. All of it are means of scores."""

from __future__ import annotations

import numpy as np

from largesse.allocate import allocate, steps
from largesse.errors import BudgetError
from largesse.evaluate.estimate import mean_estimate
from largesse.records import Array, Estimate, Levels, Reference, Scores


def policy_value(scores: Scores, policy: Array) -> tuple[Estimate, Estimate]:
    """Return value and spend of a policy: levels (n,) or probabilities (n, K) or (K,) for the rows of the log."""
    value, spend = policy_scores(scores, policy)
    return _mean(scores, value), _mean(scores, spend)


def policy_scores(scores: Scores, policy: Array) -> tuple[Array, Array]:
    """Return each row's scores of response and cost under a policy: two arrays (n,)."""
    if policy.ndim == 1 and np.issubdtype(policy.dtype, np.integer):
        rows = np.arange(len(policy))
        return scores.gamma[rows, policy], scores.costs[rows, policy]
    chances = np.broadcast_to(policy, scores.gamma.shape)
    return (chances * scores.gamma).sum(axis=1), (chances * scores.costs).sum(axis=1)


def uniform_values(scores: Scores) -> list[tuple[Estimate, Estimate]]:
    """Return value and spend of giving everybody level k, for each k."""
    return [
        (_mean(scores, scores.gamma[:, k]), _mean(scores, scores.costs[:, k])) for k in range(scores.gamma.shape[1])
    ]


def learnt_levels(scores: Scores, budget: float) -> Array:
    """Return the levels (n,) that policies learnt on the other folds give each row at an average budget.

    Each fold is planned for like a fresh set of customers: curves from models that never saw it, price from those
    curves. A row of weight two is planned for like two customers.
    """
    levels = np.empty(len(scores.level), dtype=np.int64)
    for f in np.unique(scores.fold):
        rows = scores.fold == f
        try:
            levels[rows] = allocate(*weighted(scores, rows), budget).levels
        except BudgetError:
            allocate(*weighted(scores, np.arange(len(levels))), budget)  # refuses a budget too small for the whole log
            levels[rows] = steps(*weighted(scores, rows)).start  # this part alone is dear: its cheapest plan
    return levels


def weighted(scores: Scores, rows: Array) -> tuple[Array, Array]:
    """Return the curves and expected costs of some rows, times their weights, so that plain sums count every row right."""
    weight = (scores.weight[rows] / scores.weight[rows].mean())[:, None]
    return weight * scores.curves[rows], weight * scores.expected_costs[rows]


def references(scores: Scores, policy: Array, levels: Levels) -> tuple[Reference, ...]:
    """Compare a policy with the best uniform mix at the same spend, and with what was done before."""
    value, spend = policy_scores(scores, policy)
    mix = best_mix(scores, float(scores.weight @ spend / scores.weight.sum()))
    uniform_value, uniform_spend = policy_scores(scores, mix)
    return (
        Reference(
            "everyone the same",
            describe_mix(mix, levels),
            _mean(scores, uniform_value),
            _mean(scores, uniform_spend),
            _mean(scores, value - uniform_value),
        ),
        Reference(
            "what was done before",
            "the levels in the log",
            _mean(scores, scores.response),
            _mean(scores, scores.paid),
            _mean(scores, value - scores.response),
        ),
    )


def best_mix(scores: Scores, spend: float) -> Array:
    """Return the chances (K,), the same for everybody, with the largest value at an average spend."""
    weight = scores.weight / scores.weight.sum()
    value, cost = weight @ scores.gamma, np.maximum(weight @ scores.costs, 0.0)
    path = steps(value[None, :], cost[None, :])
    mix = np.zeros(len(value))
    at, left = int(path.start[0]), spend - path.base_cost
    for level, extra in zip(path.level, path.cost, strict=True):
        if extra > left:
            share = max(left, 0.0) / extra
            mix[at], mix[level] = 1.0 - share, share
            return mix
        at, left = int(level), left - extra
    mix[at] = 1.0
    return mix


def describe_mix(mix: Array, levels: Levels) -> str:
    """Say in words who gets what: everybody one level, or two shares."""
    parts = [f"{share:.0%} get {levels.labels[k]!r}" for k, share in enumerate(mix) if share >= 0.005]
    return f"all get {levels.labels[int(np.argmax(mix))]!r}" if len(parts) == 1 else ", ".join(parts)


def _mean(scores: Scores, values: Array) -> Estimate:
    return mean_estimate(values, scores.weight, scores.cluster)
