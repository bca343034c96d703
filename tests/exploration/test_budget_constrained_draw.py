"""Draws within a budget: they keep it, are decided by the seed, and have the propensities that are stated."""

import numpy as np
import pytest

from largesse.exploration.budget_constrained_draw import (
    RESERVE,
    compute_cost_standard_deviation,
    draw_levels_within_budget,
    find_seed_within_budget,
)
from largesse.records import Array
from largesse.stats import draw_levels

COSTS = np.array([0.0, 5.0, 10.0])


def draw_probabilities(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Return probabilities (n, 3) as plans that explore have them, and costs (n, 3)."""
    rng = np.random.default_rng(seed)
    planned = np.eye(3)[rng.choice(3, n, p=[0.6, 0.25, 0.15])]
    rate = rng.uniform(0.05, 0.4, (n, 1))
    return (1 - rate) * planned + rate / 3, np.tile(COSTS, (n, 1))


@pytest.mark.parametrize("n", [20, 300, 3000])
def test_every_draw_is_within_the_budget_and_nearly_spends_it(n: int) -> None:
    probabilities, costs = draw_probabilities(n)
    deviation = compute_cost_standard_deviation(probabilities, costs)
    budget = (probabilities * costs).sum() + RESERVE * deviation
    totals = [COSTS[draw_levels_within_budget(probabilities, costs, budget, seed)].sum() for seed in range(30)]
    assert max(totals) <= budget
    assert min(totals) >= budget - 2 * RESERVE * deviation - 1e-9
    assert np.array_equal(
        draw_levels_within_budget(probabilities, costs, budget, 7),
        draw_levels_within_budget(probabilities, costs, budget, 7),
    )


def test_the_standard_deviation_is_that_of_the_total_cost_of_draws() -> None:
    probabilities, costs = draw_probabilities(200)
    totals = [COSTS[draw_levels(probabilities, seed)].sum() for seed in range(800)]
    assert compute_cost_standard_deviation(probabilities, costs) == pytest.approx(np.std(totals), rel=0.1)


def test_levels_are_drawn_as_often_as_their_propensities_say() -> None:
    probabilities, costs = draw_probabilities(60)
    budget = (probabilities * costs).sum() + RESERVE * compute_cost_standard_deviation(probabilities, costs)
    draws, counts = 3000, np.zeros(probabilities.shape)
    for seed in range(draws):
        counts[np.arange(60), draw_levels_within_budget(probabilities, costs, budget, seed)] += 1
    off = (counts / draws - probabilities) / np.sqrt(probabilities * (1 - probabilities) / draws)
    assert np.abs(off).max() < 4.5  # of 180 standard errors
    for k in range(3):  # together: neither cheap nor dear levels are favoured
        mean = counts[:, k].sum() / draws / probabilities[:, k].sum()
        assert mean == pytest.approx(1, abs=0.02)


def test_without_a_draw_in_the_window_the_cheapest_is_taken() -> None:
    seed, cost = find_seed_within_budget(lambda seeds: np.array([10.0 + number % 3 for number in seeds]), 5, 8.0, 9.0)
    assert (seed % 3, cost) == (0, 10.0)
