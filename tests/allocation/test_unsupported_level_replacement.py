import numpy as np
import pytest

from largesse.allocation import (
    allocate,
    copy_supported_values,
    frontier,
    map_to_supported_levels,
    replace_unsupported_levels,
    replace_unsupported_probabilities,
)


@pytest.mark.parametrize("seed", range(10))
def test_an_option_is_the_nearest_supported_level_below_else_above(seed: int) -> None:
    rng = np.random.default_rng(seed)
    allowed = rng.random((50, 5)) < 0.4
    supported = map_to_supported_levels(allowed)
    for mask, row in zip(allowed, supported, strict=True):
        levels = np.flatnonzero(mask)
        for option, level in enumerate(row):
            below, above = levels[levels <= option], levels[levels > option]
            expected = below[-1] if len(below) else above[0] if len(above) else option
            assert level == expected


@pytest.mark.parametrize("seed", range(10))
def test_a_plan_among_copied_options_is_the_best_among_supported_levels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    allowed = rng.random((40, 4)) < 0.6
    allowed[:, 1] |= ~allowed.any(axis=1)
    curves, costs = rng.random((40, 4)).cumsum(axis=1), rng.random((40, 4)).cumsum(axis=1)
    supported = map_to_supported_levels(allowed)
    own, paid = copy_supported_values(curves, supported), copy_supported_values(costs, supported)
    budget = float(paid.min(axis=1).mean()) + 0.5
    plan = allocate(own, paid, budget)
    levels, rows = replace_unsupported_levels(plan.levels, supported), np.arange(40)
    assert allowed[rows, levels].all()
    assert costs[rows, levels].mean() <= budget
    assert curves[rows, levels].mean() == pytest.approx(plan.value)
    barred = np.where(allowed, curves, -1e6)  # by brute force of a number that no plan pays
    dear = np.where(allowed, costs, 1e3)
    assert plan.value == pytest.approx(allocate(barred, dear, budget).value, abs=0.05)
    assert frontier(own, paid).at(budget) >= plan.value - 1e-9


def test_probabilities_of_options_become_those_of_levels() -> None:
    rng = np.random.default_rng(0)
    allowed = rng.random((30, 4)) < 0.5
    supported = map_to_supported_levels(allowed)
    probabilities = rng.dirichlet(np.ones(4), 30)
    moved = replace_unsupported_probabilities(probabilities, supported)
    assert moved.sum(axis=1) == pytest.approx(np.ones(30))
    some = allowed.any(axis=1)
    assert (moved[some][~allowed[some]] == 0).all()
    curves = rng.random((30, 4))
    assert (moved * curves).sum(axis=1) == pytest.approx(
        (probabilities * copy_supported_values(curves, supported)).sum(axis=1)
    )
    assert np.array_equal(replace_unsupported_probabilities(probabilities, None), probabilities)
