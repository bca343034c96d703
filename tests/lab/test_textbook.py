import numpy as np
import pytest
from instances import concave, paid_by, whole_optimum

from largesse.allocation.plan import allocate
from largesse.errors import InputError
from largesse_lab.bench.textbook import binary_search, dynamic_programme, price_list


def test_the_dynamic_programme_is_the_best_whole_plan() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        n, K = int(rng.integers(1, 20)), int(rng.integers(1, 6))
        curves, costs = rng.random((n, K)), np.sort(rng.integers(0, 7, K)).astype(float)
        total = int(n * costs[0] + rng.integers(0, 40))
        levels = dynamic_programme(curves, costs, total)
        assert paid_by(levels, costs, curves.shape) <= total
        assert curves[np.arange(n), levels].mean() == pytest.approx(whole_optimum(curves, costs, total / n), abs=1e-9)


def test_the_binary_search_stays_within_the_budget_and_one_step_of_the_best() -> None:
    rng = np.random.default_rng(1)
    curves, costs = concave(rng, 200, 5)
    for total in (0, 100, 333.3, 5000):
        levels = binary_search(curves, costs, total)
        assert paid_by(levels, costs, curves.shape) <= total
        assert curves[np.arange(200), levels].mean() >= allocate(curves, costs, total=total).bound - 1 / 200


def test_a_list_of_prices_takes_the_best_that_fits() -> None:
    curves, costs = np.array([[0.0, 5.0, 6.0], [0.0, 1.5, 9.0]]), np.array([0.0, 1.0, 2.0])
    assert price_list(curves, costs, total=3).tolist() == [1, 2]
    assert price_list(curves / 100, costs, total=3).tolist() == [
        0,
        0,
    ]  # the paper's prices never pay responses below one
    assert price_list(curves / 100, costs, total=3, prices=np.array([0.02])).tolist() == [1, 2]


def test_the_dynamic_programme_refuses_what_it_cannot_do() -> None:
    with pytest.raises(InputError, match="whole numbers"):
        dynamic_programme(np.ones((2, 2)), np.array([0.0, 0.5]), 3)
    with pytest.raises(InputError, match="below the cheapest plan"):
        dynamic_programme(np.ones((2, 2)), np.array([2, 3]), 3)
