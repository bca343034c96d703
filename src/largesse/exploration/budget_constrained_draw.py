"""Random draws of levels, repeated until their total cost stays within a budget (rejection sampling).

Independent draws cost the budget on average, and more in every second draw. So the expected cost is a little below the budget,
and draws are repeated until the total lies in a window around its expectation that ends at the budget. A window that is open
below would favour cheap levels; one around the expectation moves the propensity of a level only by a share of the order of one
over the number of customers (Hájek 1964).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from largesse.records import Array
from largesse.stats import draw_levels

RESERVE = (
    0.15  # standard deviations of the total cost between its expectation and the budget: every eighth draw is kept
)
MAX_DRAWS, DRAWS_AT_ONCE = 512, 8
SUM_ROUNDING = 1e-12  # relative error of a total cost


def compute_cost_standard_deviation(probabilities: Array, costs: Array) -> float:
    """Return the standard deviation of the total cost of randomly drawn levels."""
    mean = (probabilities * costs).sum(axis=1)
    variance = (probabilities * costs**2).sum(axis=1) - mean**2
    return float(np.sqrt(np.maximum(variance, 0.0).sum()))


def find_seed_within_budget(
    cost_of: Callable[[Sequence[int]], Array], seed: int, expected: float, budget: float
) -> tuple[int, float]:
    """Find a random seed whose draw of levels costs about its expectation and stays within the budget.

    Also returns the cost of its draw. `cost_of` returns the total costs (m,) of the draws of m seeds. Without such a draw, the
    cheapest of all is taken.
    """
    seeds = [seed, *np.random.SeedSequence(seed).generate_state(MAX_DRAWS - 1).tolist()]
    totals, limit = np.zeros(0), budget * (1 + SUM_ROUNDING)
    for start in range(0, MAX_DRAWS, DRAWS_AT_ONCE):
        totals = np.concatenate([totals, cost_of(seeds[start : start + DRAWS_AT_ONCE])])
        inside = np.flatnonzero((totals <= limit) & (totals >= 2 * expected - limit))
        if len(inside):
            return seeds[inside[0]], float(totals[inside[0]])
    cheapest = int(np.argmin(totals))
    return seeds[cheapest], float(totals[cheapest])


def draw_levels_within_budget(probabilities: Array, costs: Array, budget: float, seed: int) -> Array:
    """Draw one level (n,) per row from probabilities (n, K), with a total cost within the budget.

    >>> drawn = draw_levels_within_budget(np.full((100, 2), 0.5), np.tile([0.0, 1.0], (100, 1)), 51.0, seed=0)
    >>> bool(49 <= drawn.sum() <= 51)
    True
    """
    rows = np.arange(len(probabilities))
    expected = float((probabilities * costs).sum())

    def cost_of(seeds: Sequence[int]) -> Array:
        return np.array([costs[rows, draw_levels(probabilities, number)].sum() for number in seeds])

    return draw_levels(probabilities, find_seed_within_budget(cost_of, seed, expected, budget)[0])
