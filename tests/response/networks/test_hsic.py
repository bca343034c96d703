"""The balance penalty is HSIC: equal to the plain sums, blind to shift and, normalised, to scale of z, and finite at the edges."""

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from largesse.records import Array
from largesse.response.networks import hsic as h
from largesse.response.networks.network_settings import HSIC_ESTIMATORS, HSIC_KERNELS

KEY = jax.random.key(7, impl="rbg")  # compiles faster than the default


@pytest.fixture
def double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def batch(n: int, p: int = 3, K: int = 4, seed: int = 0, pull: float = 1.0) -> tuple[Array, Array]:
    """z (n, p) that depends on the level when pull is not zero, and one-hot levels (n, K)."""
    rng = np.random.default_rng(seed)
    level = rng.choice(K, n, p=np.arange(1, K + 1) / np.arange(1, K + 1).sum())
    return rng.normal(size=(n, p)) + pull * np.sin(level)[:, None], np.eye(K)[level]


def penalties(z: jax.Array, Y: jax.Array, weight: jax.Array | None = None, **settings: Any) -> jax.Array:
    """The penalty by every estimator, (3,): compiled together to save time."""
    how = {"key": KEY, "weight": weight, **settings}
    return jnp.stack([h.hsic_penalty(z, Y, estimator=estimator, **how) for estimator in HSIC_ESTIMATORS])


@functools.partial(jax.jit, static_argnames=("kernel", "normalise"))
def penalties_and_slopes(
    z: jax.Array, Y: jax.Array, weight: jax.Array | None = None, *, kernel: str = "linear", normalise: bool = True
) -> tuple[jax.Array, jax.Array]:
    def twice(z: jax.Array) -> tuple[jax.Array, jax.Array]:
        values = penalties(z, Y, weight, kernel=kernel, normalise=normalise)
        return values, values

    slopes, values = jax.jacrev(twice, has_aux=True)(z)
    return values, slopes


# -- plain NumPy --------------------------------------------------------------------------------------------------


def normalised(z: Array) -> Array:
    z = z - z.mean(axis=0)
    return z / np.sqrt((z**2).mean())


def plain_rbf(z: Array) -> Array:
    squares = ((z[:, None] - z[None]) ** 2).sum(axis=-1)
    positive = np.sort(squares[squares > 0])
    return np.exp(-squares / (2 * positive[(len(positive) - 1) // 2]))


def plain_kernel(z: Array, kernel: str, bandwidth: float | None = None) -> Array:
    if kernel == "rbf" and bandwidth:
        return np.exp(-((z[:, None] - z[None]) ** 2).sum(axis=-1) / (2 * bandwidth**2))
    if kernel == "rff":
        z = np.asarray(h.random_fourier_features(jnp.asarray(z), KEY, bandwidth=bandwidth))
    return plain_rbf(z) if kernel == "rbf" else z @ z.T


def plain_hsic(K: Array, L: Array) -> float:
    """The paper's appendix, term by term: sums over pairs, quadruples and triples."""
    rows = range(len(K))
    pairs = sum(K[i, j] * L[i, j] for i, j in itertools.product(rows, repeat=2))
    quads = sum(K[i, j] * L[k, m] for i, j, k, m in itertools.product(rows, repeat=4))
    triples = sum(K[i, j] * L[i, k] for i, j, k in itertools.product(rows, repeat=3))
    n = len(K)
    return pairs / n**2 + quads / n**4 - 2 * triples / n**3


def plain_unbiased(K: Array, L: Array) -> float:
    """The mean over distinct rows: the same three terms, in none of which a row meets itself."""
    n = len(K)
    pairs = np.mean([K[i, j] * L[i, j] for i, j in itertools.permutations(range(n), 2)])
    quads = np.mean([K[i, j] * L[k, m] for i, j, k, m in itertools.permutations(range(n), 4)])
    triples = np.mean([K[i, j] * L[i, k] for i, j, k in itertools.permutations(range(n), 3)])
    return float(pairs + quads - 2 * triples)


def plain_variance(K: Array, L: Array) -> float:
    n = len(K)
    H = np.eye(n) - 1 / n
    return float(np.trace(H @ K) * np.trace(H @ L) / (n**2 * (n - 1)))


def songs_formula(K: Array, L: Array) -> float:
    n = len(K)
    K, L = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    total = np.trace(K @ L) + K.sum() * L.sum() / ((n - 1) * (n - 2)) - 2 * (K @ L).sum() / (n - 2)
    return float(total / (n * (n - 3)))


# -- estimators ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("kernel", HSIC_KERNELS)
def test_every_estimator_is_the_plain_sum(double: None, kernel: str, normalise: bool) -> None:
    z, Y = batch(7)
    K, L = plain_kernel(normalised(z) if normalise else z, kernel, bandwidth=None if normalise else 1.0), Y @ Y.T
    expected = [plain_hsic(K, L), plain_unbiased(K, L), plain_variance(K, L)]
    found, _ = penalties_and_slopes(z, Y, kernel=kernel, normalise=normalise)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", HSIC_KERNELS)
def test_float32_far_from_zero_keeps_its_digits(kernel: str) -> None:
    z, Y = batch(64)
    values, _ = penalties_and_slopes(jnp.float32(z + 1000), jnp.float32(Y + 1000), kernel=kernel)
    assert values.dtype == jnp.float32
    scaled, H = normalised(z), np.eye(64) - 1 / 64
    if kernel == "rff":
        features = np.float64(h.random_fourier_features(jnp.float32(scaled), KEY))
        K = features @ features.T
    else:
        K = plain_kernel(scaled, kernel)
    L = Y @ Y.T
    exact = [np.trace(K @ H @ L @ H) / 64**2, songs_formula(K, L), plain_variance(K, L)]
    np.testing.assert_allclose(values, exact, rtol=1e-3)


def test_without_dependence_unbiased_is_zero_and_biased_as_predicted() -> None:
    B, p, K, draws = 32, 6, 4, 500
    rng = np.random.default_rng(1)
    z = jnp.asarray(rng.normal(size=(draws, B, p)))
    Y = jnp.asarray(np.eye(K)[rng.integers(0, K, (draws, B))])
    biased, unbiased, _ = np.asarray(jax.jit(jax.vmap(penalties))(z, Y)).T
    predicted = (1 / B) * p * (1 - 1 / K)  # tr Cov(z) · tr Cov(Y) / n, up to the normalisation of each batch
    assert abs(unbiased.mean()) < 3 * unbiased.std() / np.sqrt(draws)
    assert biased.mean() == pytest.approx(predicted, rel=0.05)


def test_random_features_approach_the_exact_kernel() -> None:
    z = jnp.asarray(batch(100)[0])
    exact = plain_rbf(np.asarray(z))
    errors, draw = [], jax.jit(h.random_fourier_features, static_argnames="features")
    for D in (16, 128, 1024):
        maps = [draw(z, key, features=D) for key in jax.random.split(jax.random.key(0), 5)]
        np.testing.assert_allclose(jnp.sum(maps[0] ** 2, axis=1), 1, rtol=1e-5)
        errors.append(np.mean([np.abs(np.asarray(f @ f.T) - exact).mean() for f in maps]))
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    assert errors[2] < 0.05


def test_rows_that_most_customers_share_keep_a_useful_bandwidth() -> None:
    assert float(h.median_distance(jnp.array([[0.0]] * 9 + [[5.0]]))) == 5
    assert float(h.median_distance(jnp.zeros((4, 2)))) == 1


def test_the_median_of_many_rows_is_near_the_median_of_all() -> None:
    z = np.random.default_rng(0).normal(size=(3000, 4))
    distance = np.sqrt(((z[:, None] - z[None, :500]) ** 2).sum(axis=-1))
    assert float(h.median_distance(jnp.asarray(z))) == pytest.approx(np.median(distance[distance > 0]), rel=0.05)


# -- as a penalty -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", HSIC_KERNELS)
def test_shift_and_scale_of_z_change_nothing(double: None, kernel: str) -> None:
    z, Y = batch(40)
    plain, _ = penalties_and_slopes(z, Y, kernel=kernel)
    moved, slopes = penalties_and_slopes(-50 * z + 17, Y, kernel=kernel)
    np.testing.assert_allclose(moved, plain, rtol=1e-9)
    np.testing.assert_allclose(jnp.sum(slopes, axis=1), 0, atol=1e-10)  # moving all rows
    by_scale = np.sum(np.asarray(slopes) * z, axis=(1, 2))
    np.testing.assert_allclose(by_scale[:2], 0, atol=1e-10)
    assert by_scale[2] * -50 > 1e-3  # only the variance shrinks z


def test_without_normalising_the_penalty_grows_with_the_square_of_z_and_shrinks_it(double: None) -> None:
    z, Y = batch(40)
    plain, slopes = penalties_and_slopes(z, Y, normalise=False)
    larger, _ = penalties_and_slopes(-5 * z + 17, Y, normalise=False)
    np.testing.assert_allclose(larger, 25 * plain, rtol=1e-9)
    np.testing.assert_allclose(np.sum(np.asarray(slopes) * z, axis=(1, 2)), 2 * plain, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "rff"])
def test_without_normalising_a_gaussian_penalty_falls_as_z_shrinks(double: None, kernel: str) -> None:
    z, Y = batch(40)
    values = [
        float(penalties_and_slopes(size * z, Y, kernel=kernel, normalise=False)[0][0]) for size in (1, 0.3, 0.1, 0.01)
    ]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 1e-3 * values[0]


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_extreme_scales_neither_under_nor_overflow(scale: float) -> None:
    z, Y = batch(64)
    plain, extreme = (float(penalties_and_slopes(jnp.float32(size * z), jnp.float32(Y))[0][0]) for size in (1.0, scale))
    assert extreme == pytest.approx(plain, rel=1e-4)


@pytest.mark.parametrize("normalise", [True, False])
def test_gradients_are_those_of_finite_differences(double: None, normalise: bool) -> None:
    z, Y = batch(40)
    step = np.random.default_rng(3).normal(size=z.shape)
    (ahead, _), (behind, _) = (penalties_and_slopes(z + far * step, Y, normalise=normalise) for far in (1e-5, -1e-5))
    analytic = np.sum(penalties_and_slopes(z, Y, normalise=normalise)[1] * step, axis=(1, 2))
    fixed = 2 if normalise else 3  # the scale of normalised z is held fixed for the variance
    np.testing.assert_allclose(analytic[:fixed], (ahead - behind)[:fixed] / 2e-5, rtol=1e-6)


def test_variance_knows_no_dependence_but_shrinks_z(double: None) -> None:
    z, Y = batch(40)
    value = z.shape[1] * float(np.sum(np.var(Y, axis=0))) / (len(z) - 1)
    values, slopes = penalties_and_slopes(z, Y)
    assert float(values[2]) == pytest.approx(value)
    assert float(penalties_and_slopes(z[::-1].copy(), Y)[0][2]) == pytest.approx(value)
    pull = value * 2 * (z - z.mean(axis=0)) / (len(z) * z.var(axis=0).sum())  # the slope of log tr Cov(z)
    np.testing.assert_allclose(slopes[2], pull, rtol=1e-9)


@pytest.mark.parametrize("normalise", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kernel", HSIC_KERNELS)
def test_values_and_gradients_are_finite_at_the_edges(kernel: str, normalise: bool) -> None:
    z, Y = (jnp.asarray(part, jnp.float32) for part in batch(8))
    all_there = jnp.ones(8)
    nothing_to_see = [
        (jnp.full((8, 3), 1000.1), Y, all_there),  # all rows equal, not a round number
        (jnp.zeros((8, 3)), Y, all_there),
        (z, Y[:1].repeat(8, axis=0), all_there),  # one level only
        (z, Y, jnp.zeros(8)),  # nobody there
    ]
    few = [(z, Y, (jnp.arange(8) < n).astype(jnp.float32)) for n in (1, 2, 3)]
    for i, case in enumerate(nothing_to_see + few):
        values, slopes = penalties_and_slopes(*case, kernel=kernel, normalise=normalise)
        assert np.isfinite(values).all()
        assert np.isfinite(slopes).all()
        if i < len(nothing_to_see):
            np.testing.assert_allclose(values, 0, atol=1e-8)
        else:
            assert float(values[1]) == 0  # fewer than four rows give no unbiased estimate


@pytest.mark.parametrize(("kernel", "normalise"), [*((kernel, True) for kernel in HSIC_KERNELS), ("linear", False)])
def test_a_mask_is_the_same_as_dropping_rows(double: None, kernel: str, normalise: bool) -> None:
    z, Y = batch(60)
    z[40:] = 1e6  # what padding holds does not matter
    how: dict[str, Any] = {"kernel": kernel, "normalise": normalise}
    values, slopes = penalties_and_slopes(z, Y, jnp.asarray(np.arange(60) < 40, float), **how)
    cut_values, cut_slopes = penalties_and_slopes(z[:40], Y[:40], **how)
    np.testing.assert_allclose(values, cut_values, rtol=1e-9)
    np.testing.assert_allclose(slopes[:, :40], cut_slopes, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(slopes[:, 40:], 0, atol=1e-12)


def test_whole_weights_are_the_same_as_repeating_rows(double: None) -> None:
    z, Y = batch(60)
    times = np.random.default_rng(2).multinomial(40, np.full(60, 1 / 60))
    again = np.repeat(np.arange(60), times)
    (weighted, *_), _ = penalties_and_slopes(z, Y, jnp.asarray(times, float))
    assert float(weighted) == pytest.approx(float(penalties_and_slopes(z[again], Y[again])[0][0]), rel=1e-10)


def test_descending_the_penalty_removes_the_dependence() -> None:
    z, Y = (jnp.asarray(part, jnp.float32) for part in batch(64, pull=2.0))
    slope = jax.jit(jax.grad(h.hsic_penalty))
    before = float(h.hsic_penalty(z, Y))
    for _ in range(300):
        z = z - 3.0 * slope(z, Y)
    assert float(h.hsic_penalty(z, Y)) < 0.01 * before
    assert float(jnp.var(z, axis=0).sum()) > 0.1  # not by shrinking
