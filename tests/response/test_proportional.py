"""Costs: features scale the whole curve, every level has a size of its own."""

from dataclasses import replace

import numpy as np
import pytest

from largesse.data.log import log_from_arrays
from largesse.errors import InputError
from largesse.records import Array
from largesse.response.cost_model import REACH, Proportional

SIZES = np.array([0.0, 2.0, 5.0])
COEF = np.array([0.6, -0.3])


def draw(n: int, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """Return features, levels, costs and the true mean costs (n, K)."""
    rng = np.random.default_rng(seed)
    x, level = rng.normal(size=(n, 2)), rng.integers(0, 3, n)
    truth = np.exp(x @ COEF)[:, None] * SIZES
    # Many pay nothing, and some pay a lot: nothing like a Poisson distribution, but the mean is right.
    paid = truth[np.arange(n), level] * rng.exponential(size=n) * (rng.random(n) < 0.5) * 2
    return x, level, paid, truth


def test_true_costs_are_found() -> None:
    x, level, paid, truth = draw(8000)
    found = Proportional().fit(x, level, paid).predict(x)
    assert found[:, 0].max() == 0.0  # a level that never cost anything
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.2 * truth.std()


def test_totals_of_every_level_are_those_of_the_log_with_weights_too() -> None:
    x, level, paid, _ = draw(500)
    weight = np.random.default_rng(1).uniform(0.5, 2, 500)
    for given in (None, weight):
        curves = Proportional(penalty=0.1).fit(x, level, paid, weight=given).predict(x)
        for k in range(3):
            own, w = level == k, np.ones(500) if given is None else given
            assert w[own] @ curves[own, k] == pytest.approx(w[own] @ paid[own])


def test_the_coefficients_minimise_the_penalised_loss() -> None:
    x, level, paid, _ = draw(300)
    model = Proportional(penalty=0.05).fit(x, level, paid)
    X, share = model.encode(x).astype(np.float64), paid / paid.sum()

    def loss(coef: Array) -> float:
        mass = [np.exp(X[level == k] @ coef).sum() for k in range(3)]
        sizes = [share[level == k].sum() for k in range(3)]
        return float(np.dot(sizes, np.log(mass)) - share @ X @ coef + 0.025 * coef @ coef)

    best = model.fit_.coef
    for j in range(len(best)):
        for step in (-1e-3, 1e-3):
            assert loss(best) < loss(best + step * np.eye(len(best))[j])


def test_sizes_may_fall_and_scales_beyond_the_log_are_not_believed() -> None:
    x, level, paid, _ = draw(400)
    model = Proportional().fit(x, 2 - level, paid)
    assert model.fit_.sizes[0] > model.fit_.sizes[1] > model.fit_.sizes[2] == 0
    far = model.predict(x * 1000)
    assert far.max() <= model.predict(x).max() * (1 + 1e-9)
    assert model.fit_.high < REACH


def test_costs_below_zero_are_refused() -> None:
    x, level, paid, _ = draw(100)
    with pytest.raises(InputError, match="negative in 1 row"):
        Proportional().fit(x, level, np.where(np.arange(100) == 3, -1.0, paid))


def test_a_part_of_a_log_without_costs_is_expected_to_cost_nothing() -> None:
    x, level, paid, _ = draw(100)
    log = log_from_arrays(x, level, paid)
    free = replace(log, response=np.zeros(100))
    assert not Proportional().fit(free).predict(x).any()
