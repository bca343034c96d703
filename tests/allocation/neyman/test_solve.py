import numpy as np
import pytest
from scipy.optimize import minimize

from largesse.allocation.neyman.solve import spread_probabilities


def _draw_task(seed: int, n: int = 4, K: int = 3):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    spread = rng.uniform(0.2, 1.0, (n, K))
    curves = np.sort(rng.uniform(0, 1, (n, K)), axis=1)
    costs = np.sort(rng.uniform(0, 1, (n, K)), axis=1)
    return spread, np.stack([-curves, costs]), np.full((n, K), 0.01)


@pytest.mark.parametrize("seed", range(5))
def test_probabilities_are_as_good_as_a_general_solver_finds(seed: int) -> None:
    spread, terms, least = _draw_task(seed)
    n, K = spread.shape
    free = spread / spread.sum(axis=1, keepdims=True)
    start = (terms * free).sum(axis=2).mean(axis=1)
    limits = start - 0.05 * np.ptp(terms, axis=2).mean(axis=1)  # both bind, or nearly

    def objective(p: np.ndarray) -> float:
        return float((spread.ravel() ** 2 / p).sum() / n)

    rules = [{"type": "eq", "fun": lambda p: p.reshape(n, K).sum(axis=1) - 1}]
    rules += [
        {"type": "ineq", "fun": lambda p, j=j: limits[j] - (terms[j] * p.reshape(n, K)).sum() / n} for j in range(2)
    ]
    plain = minimize(objective, free.ravel(), bounds=[(0.01, 1)] * (n * K), constraints=rules, tol=1e-12)
    found = spread_probabilities(spread, terms, limits, least, np.ones(2))
    if not plain.success:  # the two limits cannot both be kept
        assert found.broken > 1e-6
        return
    assert found.broken < 1e-8
    assert np.allclose(found.probabilities.sum(axis=1), 1)
    assert found.probabilities.min() >= 0.01 - 1e-12
    assert objective(found.probabilities.ravel()) == pytest.approx(plain.fun, rel=1e-5)


def test_without_limits_that_bind_probabilities_follow_the_spreads() -> None:
    spread, terms, _ = _draw_task(0)
    found = spread_probabilities(spread, terms, np.full(2, 10.0), np.zeros(spread.shape), np.zeros(2))
    assert np.allclose(found.probabilities, spread / spread.sum(axis=1, keepdims=True))
    assert (found.prices == 0).all()


def test_a_level_that_nobody_asks_about_gets_what_is_least() -> None:
    spread, terms, least = _draw_task(1)
    spread[:, 1] = 0
    found = spread_probabilities(spread, terms, np.full(2, 10.0), least, np.zeros(2))
    assert np.allclose(found.probabilities[:, 1], 0.01)


def test_limits_that_contradict_each_other_are_seen() -> None:
    spread, terms, least = _draw_task(2)
    assert spread_probabilities(spread, terms, np.array([-5.0, 0.1]), least, np.ones(2)).broken > 0.01
