import numpy as np
import pytest

from largesse.errors import InputError
from largesse_lab.runner.dynamic_programme import dynamic_programme
from support.plans import paid_by, whole_optimum


def test_the_dynamic_programme_is_the_best_whole_plan() -> None:
    rng = np.random.default_rng(0)
    for _ in range(15):
        n, K = int(rng.integers(1, 20)), int(rng.integers(1, 6))
        curves, costs = rng.random((n, K)), np.sort(rng.integers(0, 7, K)).astype(float)
        total = int(n * costs[0] + rng.integers(0, 40))
        levels = dynamic_programme(curves, costs, total)
        assert paid_by(levels, costs, curves.shape) <= total
        assert curves[np.arange(n), levels].mean() == pytest.approx(whole_optimum(curves, costs, total / n), abs=1e-9)


def test_the_dynamic_programme_refuses_what_it_cannot_do() -> None:
    with pytest.raises(InputError, match="whole numbers"):
        dynamic_programme(np.ones((2, 2)), np.array([0.0, 0.5]), 3)
    with pytest.raises(InputError, match="below the cheapest plan"):
        dynamic_programme(np.ones((2, 2)), np.array([2, 3]), 3)
