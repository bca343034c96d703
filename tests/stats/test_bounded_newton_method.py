"""Newton's method against SciPy's general solver, with and without bounds."""

import numpy as np
import pytest
from scipy.optimize import minimize

from largesse.records import Array
from largesse.stats.bounded_newton_method import minimise
from largesse.stats.link_functions import compute_loss, compute_loss_curvature, compute_loss_slope


class Ridge:
    """A ridge regression of random rows: log loss or half the squared error, plus a penalty."""

    def __init__(self, seed: int, binary: bool, q: int = 6) -> None:
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(80, q)) @ rng.normal(size=(q, q))  # correlated columns: bounds interact
        self.r = rng.integers(0, 2, 80).astype(float) if binary else rng.normal(size=80)
        self.binary, self.penalty = binary, 10.0 ** rng.uniform(-4, 0)
        self.lower = np.where(rng.random(q) < 0.5, rng.normal(size=q), -np.inf)

    def loss(self, z: Array) -> float:
        return float(compute_loss(self.X @ z, self.r, self.binary).mean() + 0.5 * self.penalty * z @ z)

    def slope(self, z: Array) -> Array:
        return self.X.T @ compute_loss_slope(self.X @ z, self.r, self.binary) / len(self.r) + self.penalty * z

    def derivatives(self, z: Array) -> tuple[Array, Array]:
        weight = compute_loss_curvature(self.X @ z, self.binary)
        return self.slope(z), self.X.T * weight @ self.X / len(self.r) + self.penalty * np.eye(len(z))


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("binary", [False, True])
def test_no_other_solver_finds_less(binary: bool, bounded: bool) -> None:
    for seed in range(30):
        made = Ridge(seed, binary)
        lower = made.lower if bounded else None
        start = np.full(6, 2.0) if lower is None else np.maximum(lower, 2.0)
        here = minimise(made.loss, made.derivatives, start, lower=lower, tolerance=1e-14)
        found = minimize(
            made.loss,
            start,
            jac=made.slope,
            method="L-BFGS-B",
            bounds=None if lower is None else [(low, None) for low in lower],
            options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000},
        )
        assert made.loss(here) <= found.fun + 1e-10
        # The conditions of a minimum: no slope where it is free, and only uphill from a bound.
        slope = made.slope(here)
        at_bound = np.zeros(6, dtype=bool) if lower is None else here <= lower
        assert np.abs(slope[~at_bound]).max(initial=0.0) < 1e-5
        assert slope[at_bound].min(initial=0.0) > -1e-5
        assert lower is None or (here >= lower).all()


def test_a_quadratic_takes_one_step() -> None:
    made = Ridge(0, binary=False)
    here = minimise(made.loss, made.derivatives, np.zeros(6), steps=1)
    np.testing.assert_allclose(made.slope(here), 0, atol=1e-12)


def test_a_step_that_overshoots_is_halved() -> None:
    # log cosh is flat far out: the first full Newton step from 2 goes to −11 and would diverge.
    def derivatives(z: Array) -> tuple[Array, Array]:
        return np.tanh(z), np.diag(1 / np.cosh(z) ** 2)

    here = minimise(lambda z: float(np.log(np.cosh(z)).sum()), derivatives, np.array([2.0]))
    assert abs(here[0]) < 1e-5


def test_a_start_outside_the_bounds_is_moved_onto_them() -> None:
    here = minimise(lambda z: float(z @ z) / 2, lambda z: (z, np.eye(2)), np.array([-5.0, 5.0]), lower=np.ones(2))
    assert here.tolist() == [1, 1]


def test_a_start_at_the_minimum_stays() -> None:
    here = minimise(lambda z: float(z @ z), lambda z: (2 * z, 2 * np.eye(3)), np.zeros(3))
    assert here.tolist() == [0, 0, 0]
