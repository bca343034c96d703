"""Rule that decides levels at a shadow price, with randomised ties and epsilon-greedy exploration.

The price decides: the best of response − price × cost. Where two levels tie at the price, the dearer one is given with
probability τ, so that the budget is spent in expectation. With the exploration rate ε a customer gets any level with equal
probability; the budget pays for that, and the next log is informative. The probability of level k is then

    π(k) = ε / K + (1 − ε) · ((1 − τ) · 1[k cheapest of the best] + τ · 1[k dearest of the best]).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.allocation import allocate, decide_at_price, split_ties_at_price
from largesse.errors import BudgetError, Problem
from largesse.records import Array

MIXTURE_ROUNDING = 1e-12  # relative; the cheapest plan may exceed the remaining budget by rounding


@dataclass(frozen=True)
class EpsilonGreedyPriceRule:
    """Shadow price, probability of the dearer level in a tie, and share of customers with a random level."""

    price: float
    tie_probability: float = 0.0
    exploration_rate: float = 0.0

    def probabilities(self, curves: Array, costs: Array) -> Array:
        """Return the rule's level probabilities (n, K) for response curves (n, K) and costs (K,) or (n, K)."""
        return mix_in_uniform_levels(
            split_ties_at_price(curves, costs, self.price, self.tie_probability), self.exploration_rate
        )


def mix_in_uniform_levels(probabilities: Array, rate: float) -> Array:
    """Add a share of uniformly random levels to level probabilities (n, K)."""
    return rate / probabilities.shape[1] + (1 - rate) * probabilities if rate else probabilities


def compute_remaining_budget(cheapest: float, random: float, budget: float, rate: float) -> float:
    """Return the budget per customer without exploration; refuse a budget that is too small.

    `cheapest` and `random` are the average costs of the cheapest level and of a random one.
    """
    rest = budget - rate * random
    if rest < (1 - rate) * cheapest * (1 - MIXTURE_ROUNDING):
        most = max(budget - cheapest, 0.0) / (random - cheapest) if random > cheapest else 0.0
        got = f"exploring with {rate:g} leaves less than the cheapest plan costs"
        raise BudgetError("explore", [Problem(got, f"raise the budget, or explore with {most:.3g} at most")])
    return rest / (1 - rate) if rate < 1 else budget


def make_rule_from_tie_costs(
    price: float, ends: tuple[float, float], budget: float, rate: float = 0.0
) -> EpsilonGreedyPriceRule:
    """Return the rule at a shadow price whose tie probability makes the average cost equal the budget.

    `ends` are their average costs with the cheapest and with the dearest of equally good levels.
    """
    low, high = ends
    share = min(max((budget - low) / (high - low), 0.0), 1.0) if high > low and price > 0 else 0.0
    return EpsilonGreedyPriceRule(price, share, rate)


def fit_rule_to_budget(curves: Array, costs: Array, budget: float, rate: float = 0.0) -> EpsilonGreedyPriceRule:
    """Fit a rule with randomised ties whose average cost, including exploration, equals the budget.

    >>> fit_rule_to_budget(np.tile([0.0, 1.0], (10, 1)), np.array([0.0, 1.0]), budget=0.3)
    EpsilonGreedyPriceRule(price=1.0, tie_probability=0.3, exploration_rate=0.0)
    """
    wide = np.broadcast_to(costs, np.shape(curves))
    rest = compute_remaining_budget(float(wide.min(axis=1).mean()), float(wide.mean()), budget, rate)
    if rate == 1:
        return EpsilonGreedyPriceRule(0.0, exploration_rate=rate)
    return fit_rule_at_price(curves, costs, allocate(curves, costs, rest).price, rest, rate)


def fit_rule_at_price(
    curves: Array, costs: Array, price: float, budget: float, rate: float = 0.0
) -> EpsilonGreedyPriceRule:
    """Fit the tie probability of a rule at a shadow price, so that the average cost equals the budget."""
    wide, rows = np.broadcast_to(costs, np.shape(curves)), np.arange(len(curves))
    low, high = (
        float(wide[rows, decide_at_price(curves, costs, price, dearest=dearest)].mean()) for dearest in (False, True)
    )
    return make_rule_from_tie_costs(price, (low, high), budget, rate)
