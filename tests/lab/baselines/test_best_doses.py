from itertools import pairwise

import numpy as np
import pytest

from largesse.errors import BudgetError, InputError
from largesse_lab.baselines.doses import best_doses


def test_doses_of_concave_curves_reach_the_bound() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        n, knots = int(rng.integers(1, 30)), np.cumsum(rng.random(5) + 0.1)
        rises = -np.sort(-rng.random((n, 5)) / np.diff(knots, prepend=0.0), axis=1) * np.diff(knots, prepend=0.0)
        budget = knots[0] + rng.random() * (knots[-1] - knots[0])
        curves = np.cumsum(rises, axis=1)
        slopes = np.diff(curves, axis=1) / np.diff(knots)
        made = best_doses(curves, knots, budget)
        value = np.mean([np.interp(d, knots, c) for d, c in zip(made.doses, curves, strict=True)])
        assert made.value == pytest.approx(value, abs=1e-12)
        assert made.doses.mean() <= budget * (1 + 1e-12)
        if (np.diff(slopes, axis=1) <= 1e-12).all():
            assert made.gap < 1e-9


def test_doses_beat_every_grid_of_levels() -> None:
    rng = np.random.default_rng(1)
    knots, curves = np.array([0.0, 1.0, 2.0, 4.0]), np.sort(rng.random((6, 4)), axis=1)
    made = best_doses(curves, knots, 1.7)
    fine = np.unique(np.concatenate([np.linspace(a, b, 5) for a, b in pairwise(knots)]))
    from largesse.allocation.plan import allocate

    grid = np.array([np.interp(fine, knots, c) for c in curves])
    assert made.value >= allocate(grid, fine, 1.7, exact=True).value - made.gap - 1e-12
    assert made.value <= made.bound + 1e-12


def test_a_skipped_knot_is_not_taken_for_the_hull() -> None:
    made = best_doses([[0.0, 0.1, 1.0]], [0, 1, 2], 1.5)  # the hull runs from 0 to 2 and passes over the knot at 1
    assert made.doses.tolist() == [1.5]
    assert made.value == pytest.approx(0.55)
    assert made.bound == pytest.approx(0.75)


def test_a_step_rounds_the_dose_down() -> None:
    made = best_doses([[0.0, 1.0]], [0, 10], 3.37, step=0.25)
    assert made.doses.tolist() == [3.25]
    assert 0 < made.gap <= 0.025


def test_doses_refuse_what_makes_no_sense() -> None:
    with pytest.raises(InputError, match="knots do not rise"):
        best_doses([[0.0, 1.0]], [1, 0], 1)
    with pytest.raises(InputError, match="step is -1"):
        best_doses([[0.0, 1.0]], [0, 1], 1, step=-1)
    for knots in (["a", "b"], [[0], [1, 2]]):
        with pytest.raises(InputError, match="not tables of numbers"):
            best_doses([[0.0, 1.0]], knots, 1)
    with pytest.raises(BudgetError, match="cheapest plan"):
        best_doses([[0.0, 1.0]], [1, 2], 0.5)
