import functools
import itertools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.errors import InputError
from largesse.records import Array
from largesse.response.networks import hsic as h

KEY = jax.random.key(7, impl="rbg")  # compiles faster than the default
hsic_of_features = jax.jit(h.hsic_of_features)
hsic_of_kernels = jax.jit(h.hsic_of_kernels)
unbiased_of_features = jax.jit(h.unbiased_of_features)
unbiased_of_kernels = jax.jit(h.unbiased_of_kernels)


@pytest.fixture
def double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def batch(n: int, p: int = 3, K: int = 4, seed: int = 0, pull: float = 1.0) -> tuple[Array, Array]:
    """z (n, p) that depends on the level (n,) when pull is not zero."""
    rng = np.random.default_rng(seed)
    level = rng.choice(K, n, p=np.arange(1, K + 1) / np.arange(1, K + 1).sum())
    return rng.normal(size=(n, p)) + pull * np.sin(level)[:, None], level


def penalties(z: jax.Array, Y: jax.Array, weight: jax.Array | None = None, *, kernel: str = "linear") -> jax.Array:
    """The penalty by every estimator, (3,): compiled together to save time."""
    how = {"kernel": kernel, "key": KEY, "weight": weight}
    return jnp.stack([h.hsic_penalty(z, Y, estimator=estimator, **how) for estimator in h.ESTIMATORS])


@functools.partial(jax.jit, static_argnames="kernel")
def penalties_and_slopes(
    z: jax.Array, Y: jax.Array, weight: jax.Array | None = None, *, kernel: str = "linear"
) -> tuple[jax.Array, jax.Array]:
    def twice(z: jax.Array) -> tuple[jax.Array, jax.Array]:
        values = penalties(z, Y, weight, kernel=kernel)
        return values, values

    slopes, values = jax.jacrev(twice, has_aux=True)(z)
    return values, slopes


def plain_rbf(z: Array) -> Array:
    squares = ((z[:, None] - z[None]) ** 2).sum(axis=-1)
    positive = np.sort(squares[squares > 0])
    return np.exp(-squares / (2 * positive[(len(positive) - 1) // 2]))


def plain_hsic(K: Array, L: Array) -> float:
    """The paper's appendix, term by term: sums over pairs, quadruples and triples."""
    rows = range(len(K))
    pairs = sum(K[i, j] * L[i, j] for i, j in itertools.product(rows, repeat=2))
    quads = sum(K[i, j] * L[k, m] for i, j, k, m in itertools.product(rows, repeat=4))
    triples = sum(K[i, j] * L[i, k] for i, j, k in itertools.product(rows, repeat=3))
    n = len(K)
    return pairs / n**2 + quads / n**4 - 2 * triples / n**3


def plain_unbiased(K: Array, L: Array) -> float:
    """The mean over distinct rows: the same three terms, none of which meets a row twice."""
    n = len(K)
    pairs = np.mean([K[i, j] * L[i, j] for i, j in itertools.permutations(range(n), 2)])
    quads = np.mean([K[i, j] * L[k, m] for i, j, k, m in itertools.permutations(range(n), 4)])
    triples = np.mean([K[i, j] * L[i, k] for i, j, k in itertools.permutations(range(n), 3)])
    return float(pairs + quads - 2 * triples)


# ---------------------------------------------------------------------------------------------- levels


def test_level_kernels_are_the_promised_ones(double: None) -> None:
    level = np.array([0, 1, 3, 1, 2])
    dose = np.array([0.0, 5.0, 20.0, 5.0, 10.0])
    pairs = np.ix_(range(5), range(5))

    def kernel(kind: str, **more: Array) -> Array:
        Y = np.asarray(h.level_kernel(level, 4, kind, **more))
        return (Y @ Y.T)[pairs]

    np.testing.assert_array_equal(kernel("onehot"), level[:, None] == level)
    np.testing.assert_array_equal(kernel("ordinal"), np.minimum(level[:, None], level))
    np.testing.assert_array_equal(kernel("linear"), level[:, None] * level)
    np.testing.assert_array_equal(kernel("linear", dose=dose), dose[:, None] * dose)
    np.testing.assert_allclose(kernel("continuous", dose=dose), plain_rbf(dose[:, None]), atol=0.15)


def test_continuous_levels_look_the_same_at_every_call_unless_a_key_is_given() -> None:
    level = np.arange(5)
    first, again = (h.level_kernel(level, 5, "continuous") for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, h.level_kernel(level, 5, "continuous", key=KEY))


def test_a_dose_most_customers_share_keeps_a_useful_bandwidth() -> None:
    assert float(h.median_distance(jnp.array([[0.0]] * 9 + [[5.0]]))) == 5
    assert float(h.median_distance(jnp.zeros((4, 2)))) == 1


def test_the_median_of_many_rows_is_near_the_median_of_all() -> None:
    z = np.random.default_rng(0).normal(size=(3000, 4))
    distance = np.sqrt(((z[:, None] - z[None, :500]) ** 2).sum(axis=-1))
    assert float(h.median_distance(jnp.asarray(z))) == pytest.approx(np.median(distance[distance > 0]), rel=0.05)


def test_one_level_has_no_features_that_vary() -> None:
    for kind in h.LEVEL_KERNELS:
        Y = h.level_kernel(jnp.zeros(6, int), 1, kind)
        assert float(hsic_of_features(jnp.arange(12.0).reshape(6, 2), Y)) == pytest.approx(0, abs=1e-12)


# ---------------------------------------------------------------------------------------------- estimators


@pytest.mark.parametrize("kind", ["onehot", "ordinal", "linear"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_both_estimators_are_the_plain_sums(double: None, kernel: str, kind: str) -> None:
    z, level = batch(7)
    Y = np.asarray(h.level_kernel(level, 4, kind))
    K, L = (z @ z.T if kernel == "linear" else plain_rbf(z)), Y @ Y.T
    H = np.eye(7) - 1 / 7
    assert float(hsic_of_kernels(K, L)) == pytest.approx(plain_hsic(K, L), rel=1e-10)
    assert float(hsic_of_kernels(K, L)) == pytest.approx(np.trace(K @ H @ L @ H) / 49, rel=1e-10)
    assert float(unbiased_of_kernels(K, L)) == pytest.approx(plain_unbiased(K, L), rel=1e-10)
    if kernel == "rbf":
        np.testing.assert_allclose(h.rbf_kernel(jnp.asarray(z)), K, rtol=1e-10)


@settings(max_examples=50, deadline=None)
@given(shape=st.sampled_from([(4, 1, 2), (5, 3, 3), (12, 4, 4)]), seed=st.integers(0, 1000), pull=st.floats(-3, 3))
def test_features_and_kernels_agree(shape: tuple[int, int, int], seed: int, pull: float) -> None:
    with jax.enable_x64(True):
        z, level = batch(*shape, seed, pull)
        Y = np.eye(shape[2])[level]
        for features, kernels in ((hsic_of_features, hsic_of_kernels), (unbiased_of_features, unbiased_of_kernels)):
            assert float(features(z, Y)) == pytest.approx(float(kernels(z @ z.T, Y @ Y.T)), abs=1e-12)


def test_the_unbiased_estimate_is_songs_formula(double: None) -> None:
    z, level = batch(30)
    Y = np.asarray(h.level_kernel(level, 4))
    n, K, L = 30, z @ z.T, Y @ Y.T
    np.fill_diagonal(K, 0)
    np.fill_diagonal(L, 0)
    song = np.trace(K @ L) + K.sum() * L.sum() / ((n - 1) * (n - 2)) - 2 * (K @ L).sum() / (n - 2)
    assert float(unbiased_of_features(z, Y)) == pytest.approx(song / (n * (n - 3)), rel=1e-10)


def test_onehot_hsic_matches_means_of_levels(double: None) -> None:
    z, level = batch(60)
    parts = [np.mean(level == k) ** 2 * np.sum((z[level == k].mean(0) - z.mean(0)) ** 2) for k in range(4)]
    assert float(hsic_of_features(z, h.level_kernel(level, 4))) == pytest.approx(sum(parts), rel=1e-10)


@pytest.mark.parametrize("kernel", h.KERNELS)
def test_hsic_of_two_levels_is_mmd(double: None, kernel: str) -> None:
    z, level = batch(40, K=2)
    order = np.argsort(level, kind="stable")
    z, level = jnp.asarray(z[order]), level[order]
    distance = h.mmd(z[level == 0], z[level == 1], kernel=kernel, key=KEY)
    K = {"linear": z @ z.T, "rbf": plain_rbf(np.asarray(z)), "rff": (f := h.random_features(z, KEY)) @ f.T}[kernel]
    expected = float(h.hsic_of_two(level.mean(), distance))
    for kind, times in {"linear": 1, "ordinal": 1, "onehot": 2}.items():
        Y = h.level_kernel(level, 2, kind)
        assert float(hsic_of_kernels(K, Y @ Y.T)) == pytest.approx(times * expected, rel=1e-9)


@pytest.mark.parametrize("kernel", h.KERNELS)
def test_mmd_by_masks_is_mmd_of_groups(double: None, kernel: str) -> None:
    z, level = batch(40, K=2)
    order = np.argsort(level, kind="stable")
    z, one = jnp.asarray(z[order]), jnp.asarray(level[order] == 1)
    cut = h.mmd(z[~one], z[one], kernel=kernel, key=KEY)
    masked = h.mmd(z, z, kernel=kernel, key=KEY, weight0=~one, weight1=one)
    assert float(masked) == pytest.approx(float(cut), rel=1e-9)
    assert float(h.mmd(z, z, kernel=kernel, key=KEY, weight0=one, weight1=one & False)) == 0


@pytest.mark.parametrize("kernel", h.KERNELS)
def test_float32_far_from_zero_keeps_its_digits(kernel: str) -> None:
    z, level = batch(64)
    Y = np.asarray(h.level_kernel(level, 4, "ordinal")) + 1000
    values, _ = penalties_and_slopes(jnp.float32(z + 1000), jnp.float32(Y), kernel=kernel)
    assert values.dtype == jnp.float32
    features = np.float64(h.random_features(h.normalised(jnp.float32(z)), KEY))
    with jax.enable_x64(True):
        scaled = np.asarray(h.normalised(jnp.asarray(z)))
        K = {"linear": scaled @ scaled.T, "rbf": plain_rbf(scaled), "rff": features @ features.T}[kernel]
        L, H = Y.astype(np.float64) @ Y.T, np.eye(64) - 1 / 64
        variance = np.trace(H @ K) * np.trace(H @ L) / (64**2 * 63)
        exact = [float(hsic_of_kernels(K, L)), float(unbiased_of_kernels(K, L)), variance]
    np.testing.assert_allclose(values, exact, rtol=1e-3)


def test_without_dependence_unbiased_is_zero_and_biased_as_predicted() -> None:
    B, p, K, draws = 32, 6, 4, 500
    rng = np.random.default_rng(1)
    z = jnp.asarray(rng.normal(size=(draws, B, p)))
    Y = jax.vmap(lambda level: h.level_kernel(level, K))(jnp.asarray(rng.integers(0, K, (draws, B))))
    unbiased = np.asarray(jax.vmap(unbiased_of_features)(z, Y))
    biased = np.asarray(jax.vmap(hsic_of_features)(z, Y))
    predicted = (1 / B) * (1 - 1 / B) * p * (1 - 1 / K)
    assert abs(unbiased.mean()) < 3 * unbiased.std() / np.sqrt(draws)
    assert abs(biased.mean() - predicted) < 3 * biased.std() / np.sqrt(draws)
    assert biased.mean() > 20 * biased.std() / np.sqrt(draws)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_small_batches_average_to_the_whole_for_the_unbiased_estimate(double: None, kernel: str) -> None:
    z, level = batch(9)
    Y = np.asarray(h.level_kernel(level, 4))
    K, L = (z @ z.T if kernel == "linear" else plain_rbf(z)), Y @ Y.T
    batches = np.array(list(itertools.combinations(range(9), 5)))  # every batch there is: no luck involved
    cut = jax.vmap(lambda rows: unbiased_of_kernels(jnp.asarray(K)[rows][:, rows], jnp.asarray(L)[rows][:, rows]))
    assert float(cut(batches).mean()) == pytest.approx(float(unbiased_of_kernels(K, L)), rel=1e-9)
    if kernel == "linear":
        sums = jax.vmap(lambda rows: unbiased_of_features(jnp.asarray(z)[rows], jnp.asarray(Y)[rows]))
        assert float(sums(batches).mean()) == pytest.approx(float(unbiased_of_features(z, Y)), rel=1e-9)


def test_random_features_approach_the_exact_kernel() -> None:
    z, level = batch(100)
    z, Y = jnp.asarray(z), h.level_kernel(level, 4)
    exact = float(hsic_of_kernels(h.rbf_kernel(z), Y @ Y.T))
    errors = []
    for D in (16, 128, 1024):
        keys = jax.random.split(jax.random.key(0), 20)
        maps = jax.lax.map(functools.partial(h.random_features, z, features=D), keys)
        np.testing.assert_allclose(jnp.sum(maps[0] ** 2, axis=1), 1, rtol=1e-5)
        found = jax.vmap(hsic_of_features, (0, None))(maps, Y)
        errors.append(float(np.mean(abs(found / exact - 1))))
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    assert errors[2] < 0.05


# ---------------------------------------------------------------------------------------------- the penalty


@pytest.mark.parametrize("scale", [1e-25, 1.0, 1e25])
def test_normalised_rows_have_mean_zero_and_mean_square_one(scale: float) -> None:
    z = h.normalised(jnp.float32(scale * batch(50)[0]))
    np.testing.assert_allclose(np.mean(z, axis=0), 0, atol=1e-6)
    assert float(jnp.mean(z**2)) == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("kernel", h.KERNELS)
def test_shift_and_scale_of_z_change_nothing(double: None, kernel: str) -> None:
    z, level = batch(40)
    Y = h.level_kernel(level, 4)
    plain, _ = penalties_and_slopes(z, Y, kernel=kernel)
    moved, slopes = penalties_and_slopes(-50 * z + 17, Y, kernel=kernel)
    np.testing.assert_allclose(moved, plain, rtol=1e-9)
    np.testing.assert_allclose(jnp.sum(slopes, axis=1), 0, atol=1e-10)  # moving all rows
    by_scale = np.sum(np.asarray(slopes) * z, axis=(1, 2))
    np.testing.assert_allclose(by_scale[:2], 0, atol=1e-10)
    assert by_scale[2] * -50 > 1e-3  # only the variance wants z smaller


def test_gradients_are_those_of_finite_differences(double: None) -> None:
    z, level = batch(40)
    Y = h.level_kernel(level, 4)
    step = np.random.default_rng(3).normal(size=z.shape)
    (ahead, _), (behind, _) = (penalties_and_slopes(z + far * step, Y) for far in (1e-5, -1e-5))
    analytic = np.sum(penalties_and_slopes(z, Y)[1] * step, axis=(1, 2))
    np.testing.assert_allclose(analytic[:2], (ahead - behind)[:2] / 2e-5, rtol=1e-6)


def test_variance_is_the_mean_of_biased_over_all_orders_of_the_levels(double: None) -> None:
    z, level = batch(6)
    Y = h.level_kernel(level, 4)
    orders = np.array(list(itertools.permutations(range(6))))
    mean = jax.vmap(lambda order: h.hsic_penalty(jnp.asarray(z), Y[order]))(orders).mean()
    assert float(h.hsic_penalty(z, Y, estimator="variance")) == pytest.approx(float(mean), rel=1e-9)


def test_variance_knows_no_dependence_but_shrinks_z(double: None) -> None:
    z, level = batch(20)
    Y = h.level_kernel(level, 4)

    value = z.shape[1] * float(jnp.sum(jnp.var(Y, axis=0))) / (len(z) - 1)
    values, slopes = penalties_and_slopes(z, Y)
    assert float(values[2]) == pytest.approx(value)
    assert float(penalties_and_slopes(z[::-1], Y)[0][2]) == pytest.approx(value)
    pull = value * jax.grad(lambda z: jnp.log(jnp.var(z, axis=0).sum()))(z)
    np.testing.assert_allclose(slopes[2], pull, rtol=1e-9)


@pytest.mark.parametrize("kernel", h.KERNELS)
def test_values_and_gradients_are_finite_at_the_edges(kernel: str) -> None:
    z, level = batch(8)
    z, Y, all_there = jnp.asarray(z), h.level_kernel(level, 4), jnp.ones(8)
    nothing_to_see = [
        (jnp.full((8, 3), 1000.1), Y, all_there),  # all rows equal, not a round number
        (jnp.zeros((8, 3)), Y, all_there),
        (z, Y[:1].repeat(8, axis=0), all_there),  # one level only
        (z, Y, jnp.zeros(8)),  # nobody there
    ]
    few = [(z, Y, (jnp.arange(8) < n).astype(float)) for n in (1, 2, 3)]
    cut = [(z[:n], Y[:n], None) for n in (1, 2, 3)] if kernel == "linear" else []
    for i, case in enumerate(nothing_to_see + few + cut):
        values, slopes = penalties_and_slopes(*case, kernel=kernel)
        assert np.isfinite(values).all()
        assert np.isfinite(slopes).all()
        if i < len(nothing_to_see):
            np.testing.assert_allclose(values, 0, atol=1e-8)


def test_fewer_than_four_rows_give_no_unbiased_estimate() -> None:
    z, level = batch(8)
    Y = h.level_kernel(level, 4)
    assert float(unbiased_of_features(jnp.asarray(z[:3]), Y[:3])) == 0
    assert float(unbiased_of_features(jnp.asarray(z), Y, jnp.arange(8) < 3)) == 0
    assert float(unbiased_of_features(jnp.asarray(z), Y, jnp.arange(8) < 4)) != 0


@pytest.mark.parametrize("kernel", h.KERNELS)
def test_a_mask_is_the_same_as_dropping_rows(double: None, kernel: str) -> None:
    z, level = batch(60)
    z[40:] = 1e6  # what padding holds does not matter
    Y = h.level_kernel(level, 4)
    values, slopes = penalties_and_slopes(z, Y, jnp.asarray(np.arange(60) < 40, float), kernel=kernel)
    cut_values, cut_slopes = penalties_and_slopes(z[:40], Y[:40], kernel=kernel)
    np.testing.assert_allclose(values, cut_values, rtol=1e-9)
    np.testing.assert_allclose(slopes[:, :40], cut_slopes, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(slopes[:, 40:], 0, atol=1e-12)


def test_whole_weights_are_the_same_as_repeating_rows(double: None) -> None:
    z, level = batch(12)
    times = np.random.default_rng(2).integers(0, 4, 12)
    Y = h.level_kernel(level, 4)
    again = np.repeat(np.arange(12), times)
    weighted = hsic_of_features(z, Y, jnp.asarray(times))
    assert float(weighted) == pytest.approx(float(hsic_of_features(z[again], Y[again])), rel=1e-10)
    kernels = hsic_of_kernels(z @ z.T, Y @ Y.T, jnp.asarray(times))
    assert float(kernels) == pytest.approx(float(weighted), rel=1e-10)
    np.testing.assert_allclose(h.normalised(z, times)[again], h.normalised(z[again]), rtol=1e-9)


@pytest.mark.parametrize("kernel", h.KERNELS)
def test_many_models_at_once_are_the_same_as_one_by_one(kernel: str) -> None:
    z = jnp.asarray(np.stack([batch(8, seed=s)[0] for s in range(3)]), jnp.float32)
    levels = jnp.asarray(np.stack([batch(8, seed=s)[1] for s in range(3)]))

    def model(z: jax.Array, level: jax.Array) -> tuple[jax.Array, jax.Array]:
        return penalties_and_slopes(z, h.level_kernel(level, 4), jnp.ones(8), kernel=kernel)

    together = jax.vmap(model)(z, levels)
    for i in range(3):
        for many, one in zip(together, model(z[i], levels[i]), strict=True):
            np.testing.assert_allclose(many[i], one, rtol=1e-3, atol=1e-6)


def test_descending_the_penalty_removes_the_dependence() -> None:
    z, level = batch(64, pull=2.0)
    z, Y = jnp.asarray(z, jnp.float32), h.level_kernel(level, 4)
    slope = jax.jit(jax.grad(h.hsic_penalty))
    before = float(h.hsic_penalty(z, Y))
    for _ in range(300):
        z = z - 3.0 * slope(z, Y)
    assert float(h.hsic_penalty(z, Y)) < 0.01 * before
    assert float(jnp.var(z, axis=0).sum()) > 0.1  # not by shrinking


def test_unknown_names_and_a_missing_key_are_refused_with_a_hint() -> None:
    z, level = batch(8)
    Y = h.level_kernel(level, 4)
    with pytest.raises(InputError, match=r"'onehto' is no kind of level kernel\s.*'onehot'"):
        h.level_kernel(level, 4, "onehto")
    with pytest.raises(InputError, match="'rbff' is no kernel"):
        h.hsic_penalty(z, Y, kernel="rbff")
    with pytest.raises(InputError, match="'bias' is no estimator"):
        h.hsic_penalty(z, Y, estimator="bias")
    with pytest.raises(InputError, match="without a key"):
        h.hsic_penalty(z, Y, kernel="rff")


# ---------------------------------------------------------------------------------------------- the test


def test_the_permutation_test_keeps_its_size() -> None:
    keys = jax.random.split(KEY, 200)
    found = [h.hsic_test(*batch(40, seed=i, pull=0.0), key=keys[i]).p_value for i in range(200)]
    assert np.mean(np.array(found) <= 0.05) <= 0.08
    assert np.mean(found) == pytest.approx(0.5, abs=0.07)


def test_the_permutation_test_finds_shifted_means_and_more() -> None:
    keys = jax.random.split(KEY, 20)
    shifted = [h.hsic_test(*batch(100, seed=i, pull=1.0), key=keys[i]).p_value for i in range(20)]
    assert np.mean(np.array(shifted) <= 0.05) >= 0.9
    wider = []
    for i in range(20):
        z, level = batch(300, seed=i, pull=0.0)
        wider.append(h.hsic_test(z * (1 + level[:, None]), level, key=keys[i]).p_value)  # same means
    assert np.mean(np.array(wider) <= 0.05) >= 0.9


def test_the_permutation_test_takes_what_a_log_may_hold() -> None:
    z, level = batch(60, pull=2.0)
    plain = h.hsic_test(z, level, key=KEY)
    moved = h.hsic_test(z * 1e-3 + 1.7e9 * 1e-3, level * 10 + 5, key=KEY)  # timestamps, levels by another name
    assert moved.statistic == pytest.approx(plain.statistic, rel=1e-3)
    assert moved.p_value == plain.p_value == 1 / 201
    assert h.hsic_test(np.full((60, 2), 0.1), level, key=KEY) == (0, 1)
    assert h.hsic_test(z, np.zeros(60), key=KEY).p_value == 1
