"""The distances between groups, against plain float64 formulas and an exact transport."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from largesse.records import Array
from largesse_lab.baselines import cfrnet

IPMS = cfrnet.OPTIONS["ipm"]
NARROW = 7  # rows this much closer together: the published kernel is narrow
distance = jax.jit(lambda kind, z, *masses: cfrnet.distance(kind, z / NARROW, *masses), static_argnums=0)
one_against_all = jax.jit(lambda kind, z, *rest: cfrnet.one_against_all(kind, z / NARROW, *rest), static_argnums=0)
linear, rbf = jax.jit(cfrnet.linear), jax.jit(cfrnet.rbf)
wasserstein = jax.jit(cfrnet.wasserstein, static_argnums=(3, 4, 5))


def groups(seed: int = 0, n: int = 14, width: int = 3) -> tuple[Array, Array, Array]:
    """Rows, and masses of two groups; two rows are in neither."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, width)) + 1.0
    who = np.arange(n) % 3
    who[:2] = 2
    z[who == 1] += 0.5
    return z, (who == 0).astype(float), (who == 1).astype(float)


def transport(a: Array, b: Array) -> float:
    """The exact cost of moving one group onto the other, both of mass one: a linear program."""
    cost = np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=2))
    m, n = cost.shape
    out = np.kron(np.eye(m), np.ones(n))
    into = np.kron(np.ones(m), np.eye(n))
    found = linprog(cost.ravel(), A_eq=np.vstack([out, into]), b_eq=np.r_[np.full(m, 1 / m), np.full(n, 1 / n)])
    return float(found.fun)


def plain_sinkhorn(a: Array, b: Array, sharpness: float, iterations: int) -> float:
    """The published iterations on two groups of rows, in float64, with a bin beside each group."""
    cost = np.sqrt(np.maximum(((a[:, None] - b[None]) ** 2).sum(axis=2), 1e-10))
    m, n = cost.shape
    full = np.zeros((m + 1, n + 1))
    full[:m, :n], full[m, :n], full[:m, n] = cost, cost.max(), cost.max()
    left, right = np.r_[np.full(m, 0.5 / m), 0.5], np.r_[np.full(n, 0.5 / n), 0.5]
    kernel = np.exp(-sharpness / cost.mean() * full) + 1e-6
    u = left.copy()
    for _ in range(iterations):
        u = 1 / ((kernel / left[:, None]) @ (right / (kernel.T @ u)))
    v = right / (kernel.T @ u)
    return float(2 * (u[:, None] * kernel * v * full).sum())


# ---------------------------------------------------------------------------------------------- against plain formulas


def test_the_linear_distance_is_that_of_the_means() -> None:
    z, one, other = groups()
    expected = ((z[one > 0].mean(axis=0) - z[other > 0].mean(axis=0)) ** 2).sum()
    assert float(linear(jnp.asarray(z), jnp.asarray(one), jnp.asarray(other))) == pytest.approx(expected, rel=1e-5)


def test_the_rbf_distance_is_the_unbiased_one() -> None:
    z, one, other = groups()
    a, b = z[one > 0], z[other > 0]

    def k(p: Array, q: Array) -> float:
        return float(np.exp(-((p - q) ** 2).sum() / 0.7**2))

    within = [np.mean([k(g[i], g[j]) for i in range(len(g)) for j in range(len(g)) if i != j]) for g in (a, b)]
    between = np.mean([k(p, q) for p in a for q in b])
    found = float(rbf(jnp.asarray(z), jnp.asarray(one), jnp.asarray(other), 0.7))
    assert found == pytest.approx(sum(within) - 2 * between, abs=1e-5)


def test_the_rbf_distance_of_one_distribution_is_zero_on_average() -> None:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(200):
        z = rng.normal(size=(12, 2))
        one = (np.arange(12) < 6).astype(float)
        found.append(float(rbf(jnp.asarray(z), jnp.asarray(one), jnp.asarray(1 - one), 1.0)))
    assert abs(np.mean(found)) < 3 * np.std(found) / np.sqrt(200)
    assert min(found) < 0  # a biased one would never be


@pytest.mark.parametrize("seed", range(3))
def test_sinkhorn_is_as_published(seed: int) -> None:
    z, one, other = groups(seed)
    expected = plain_sinkhorn(z[one > 0], z[other > 0], 10.0, 10)
    found = float(wasserstein(jnp.asarray(z), jnp.asarray(one), jnp.asarray(other), 10.0, 10))
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_sinkhorn_approaches_the_exact_transport(seed: int) -> None:
    z, one, other = groups(seed)
    exact = transport(z[one > 0], z[other > 0])
    arrays = jnp.asarray(z), jnp.asarray(one), jnp.asarray(other)
    rough = float(wasserstein(*arrays, 10.0, 10))
    fine = float(wasserstein(*arrays, 40.0, 1000, 0.0))
    assert fine == pytest.approx(exact, rel=0.01)
    assert rough == pytest.approx(exact, rel=0.15)


# ---------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("kind", IPMS)
def test_rows_without_mass_do_not_count(kind: str) -> None:
    z, one, other = groups()
    kept = (one + other) > 0
    whole = distance(kind, jnp.asarray(z), jnp.asarray(one), jnp.asarray(other))
    moved = np.where(kept[:, None], z, z + 0.3)
    part = distance(kind, jnp.asarray(z[kept]), jnp.asarray(one[kept]), jnp.asarray(other[kept]))
    shifted = distance(kind, jnp.asarray(moved), jnp.asarray(one), jnp.asarray(other))
    assert float(whole) == pytest.approx(float(part), rel=1e-4, abs=1e-6)
    assert float(whole) == pytest.approx(float(shifted), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("kind", IPMS)
def test_a_group_without_rows_is_at_no_distance_and_has_no_slope(kind: str) -> None:
    z, one, _ = groups()
    value, slope = jax.jit(jax.value_and_grad(lambda q: distance(kind, q, jnp.asarray(one), jnp.zeros(len(z)))))(
        jnp.asarray(z)
    )
    assert float(value) == 0.0
    assert np.isfinite(np.asarray(slope)).all()
    assert not np.asarray(slope).any()


@pytest.mark.parametrize("kind", IPMS)
def test_one_against_all_weighs_each_level_by_its_share(kind: str) -> None:
    z, _, _ = groups()
    place, weight = np.eye(3)[np.minimum(np.arange(len(z)) % 4, 2)], np.linspace(0.5, 1.5, len(z))
    mass = place * weight[:, None]
    expected = sum(
        mass[:, k].sum() / weight.sum() * float(distance(kind, *map(jnp.asarray, (z, m, weight - m))))
        for k, m in enumerate(mass.T)
    )
    found = one_against_all(kind, jnp.asarray(z), jnp.asarray(place), jnp.asarray(weight))
    assert float(found) == pytest.approx(expected, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("kind", IPMS)
def test_with_two_levels_one_against_all_is_the_distance_between_them(kind: str) -> None:
    z, _, _ = groups()
    place = np.eye(2)[np.arange(len(z)) % 2]
    between = distance(kind, jnp.asarray(z), jnp.asarray(place[:, 1]), jnp.asarray(place[:, 0]))
    found = one_against_all(kind, jnp.asarray(z), jnp.asarray(place), jnp.ones(len(z)))
    assert float(found) == pytest.approx(float(between), rel=1e-6)
    both_ways = one_against_all(kind, jnp.asarray(z), jnp.asarray(np.c_[place, np.zeros(len(z))]), jnp.ones(len(z)))
    assert float(both_ways) == pytest.approx(float(between), rel=0.02)  # ten iterations of Sinkhorn see two sides


@pytest.mark.parametrize("kind", IPMS)
def test_following_the_slope_brings_groups_together(kind: str) -> None:
    z, one, other = (jnp.asarray(part) for part in groups())
    far = distance(kind, z, one, other)
    slope = jax.jit(jax.grad(lambda q: distance(kind, q, one, other)))(z)
    assert np.isfinite(np.asarray(slope)).all()
    assert float(distance(kind, z - 0.1 * slope, one, other)) < float(far)


@given(seed=st.integers(0, 10_000), scale=st.floats(0.1, 10.0))
@settings(max_examples=5, deadline=None)
def test_transport_scales_with_distance_and_is_symmetric(seed: int, scale: float) -> None:
    z, one, other = (jnp.asarray(part) for part in groups(seed))
    there, back = wasserstein(z, one, other, 10.0, 50), wasserstein(z, other, one, 10.0, 50)
    assert float(there) == pytest.approx(float(back), rel=0.02)
    assert float(wasserstein(scale * z, one, other, 10.0, 50)) == pytest.approx(scale * float(there), rel=1e-3)
