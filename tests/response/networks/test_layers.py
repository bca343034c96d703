"""Heads keep their shape by construction: whatever the parameters, whoever the customer."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from largesse.records import Array
from largesse.response.networks.layers import head_scores, initial_head_parameters
from largesse.response.networks.network_settings import HEAD_KINDS, MONOTONE, NetworkShape
from largesse.stats.link_functions import sigmoid

WIDTH, K, ROWS = 8, 5, 20_000  # one number of rows for all: every head is compiled once
SCALES = [pytest.param(True, id="bounded"), pytest.param(False, id="amounts")]
Params = dict[str, jax.Array]
_scores = jax.jit(head_scores, static_argnums=0)


def shape(head: str, bounded: bool, levels: int = K) -> NetworkShape:
    return NetworkShape(3, levels, head, WIDTH, bounded=bounded)


def allowed(head: str, bounded: bool) -> bool:
    return bounded or head != "cdf"  # thresholds are for responses in [0, 1]


def wild(head: str, bounded: bool, size: float, seed: int = 0, levels: int = K) -> Params:
    """Parameters of the right shapes, all drawn at random."""
    names = initial_head_parameters(shape(head, bounded, levels), jax.random.key(0), WIDTH)
    rng = np.random.default_rng(seed)
    return {name: jnp.asarray(size * rng.normal(size=value.shape), jnp.float32) for name, value in names.items()}


def drawn() -> tuple[jax.Array, jax.Array]:
    rng = np.random.default_rng(1)
    return jnp.asarray(rng.normal(size=(ROWS, WIDTH)), jnp.float32), jnp.asarray(rng.normal(size=ROWS), jnp.float32)


def score(
    head: str, params: Params, z: jax.Array, base: jax.Array, bounded: bool, gate: float = 1.0, levels: int = K
) -> Array:
    return np.asarray(_scores(shape(head, bounded, levels), params, z, base, gate)[0], dtype=np.float64)


def curves(score: Array, bounded: bool) -> Array:
    return sigmoid(score) if bounded else score


# ---------------------------------------------------------------------------------------------- shape


@pytest.mark.parametrize("bounded", SCALES)
@pytest.mark.parametrize("size", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("head", MONOTONE)
def test_curves_never_fall_in_the_level(head: str, size: float, bounded: bool) -> None:
    if not allowed(head, bounded):
        pytest.skip("not a head for amounts")
    found = score(head, wild(head, bounded, size), *drawn(), bounded)
    assert found.shape == (ROWS, K)
    assert np.isfinite(found).all()
    fall = -np.diff(curves(found, bounded), axis=1)
    assert fall.max() <= 1e-6 * (1 if bounded else np.abs(found).max())


@pytest.mark.parametrize("bounded", SCALES)
@pytest.mark.parametrize("size", [0.3, 3.0, 30.0])
def test_concave_increments_never_grow_on_the_scale_of_the_response(size: float, bounded: bool) -> None:
    found = curves(score("concave", wild("concave", bounded, size), *drawn(), bounded), bounded)
    growth = np.diff(found, n=2, axis=1)
    assert growth.max() <= 1e-6 * (1 if bounded else np.abs(found).max())
    assert np.diff(found, axis=1).max() > 0.01  # and they are not simply flat


def test_free_curves_can_fall() -> None:
    assert np.diff(score("free", wild("free", True, 1.0), *drawn(), True), axis=1).min() < -0.1


@pytest.mark.parametrize("head", HEAD_KINDS)
def test_two_levels_are_enough(head: str) -> None:
    found = score(head, wild(head, True, 1.0, levels=2), *drawn(), True, levels=2)
    assert found.shape == (ROWS, 2)
    assert head == "free" or np.diff(curves(found, True), axis=1).min() >= -1e-6


# ---------------------------------------------------------------------------------------------- increments


@pytest.mark.parametrize("bounded", SCALES)
@pytest.mark.parametrize("head", ["shrunk", "elastic"])
def test_a_gate_of_zero_gives_all_customers_the_common_increments(head: str, bounded: bool) -> None:
    params = wild(head, bounded, 1.0)
    z, base = drawn()
    found, deviation = _scores(shape(head, bounded), params, z, base, 0.0)
    common = np.log1p(np.exp(np.asarray(params["steps"], dtype=np.float64)))
    np.testing.assert_allclose(np.diff(found, axis=1), np.tile(common, (ROWS, 1)), atol=3e-6)
    assert not np.asarray(deviation).any()
    assert np.ptp(np.diff(score(head, params, z, base, bounded), axis=1), axis=0).min() > 0.1  # with a gate they differ


@pytest.mark.parametrize("head", ["shrunk", "elastic"])
def test_own_increments_start_from_the_common_ones(head: str) -> None:
    params = initial_head_parameters(shape(head, True), jax.random.key(3), WIDTH)
    steps = np.diff(score(head, params, *drawn(), True), axis=1)
    np.testing.assert_allclose(steps, 0.2, atol=1e-5)


def test_elastic_increments_are_the_common_ones_times_one_number_per_customer() -> None:
    steps = np.diff(score("elastic", wild("elastic", True, 0.3), *drawn(), True), axis=1)
    ratio = steps / steps[:1]
    np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones(K - 1), rtol=1e-4)


@pytest.mark.parametrize("bounded", SCALES)
@pytest.mark.parametrize("head", HEAD_KINDS)
def test_the_base_shifts_every_level_equally(head: str, bounded: bool) -> None:
    if not allowed(head, bounded):
        pytest.skip("not a head for amounts")
    params, (z, base) = wild(head, bounded, 0.5), drawn()
    with_base = score(head, params, z, base, bounded)
    without = score(head, params, z, jnp.zeros_like(base), bounded)
    if head == "concave" and bounded:  # an equal shift of logits would not stay concave
        assert ((with_base - without) * np.sign(np.asarray(base))[:, None]).min() >= -1e-5
        assert np.diff(sigmoid(with_base), n=2, axis=1).max() <= 1e-6
    else:
        np.testing.assert_allclose(with_base - without, np.tile(base[:, None], (1, K)), atol=2e-5)


# ---------------------------------------------------------------------------------------------- against plain code


@pytest.mark.parametrize("size", [0.5, 5.0])
def test_cdf_is_the_share_of_thresholds_at_or_below_the_level(size: float) -> None:
    params, (z, _) = wild("cdf", True, size), drawn()
    logits = np.asarray(z, np.float64) @ np.asarray(params["head_w"], np.float64) + np.asarray(params["head_b"])
    share = np.exp(logits - logits.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    assert share.shape == (ROWS, K + 1)  # the last: those who respond at no level
    found = sigmoid(score("cdf", params, z, jnp.zeros(ROWS), True))
    np.testing.assert_allclose(found, np.cumsum(share, axis=1)[:, :K], atol=3e-6 * max(size, 1))
    shares = np.diff(found, axis=1, prepend=0, append=1)
    np.testing.assert_allclose(shares, share, atol=3e-6 * max(size, 1))
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_cdf_keeps_its_digits_in_both_tails() -> None:
    """A plain float32 sum of shares would round 1 − 1e−12 to 1."""
    params = {"head_w": jnp.zeros((WIDTH, K + 1)), "head_b": jnp.asarray([30.0, 0, 0, 0, 0, 2.0])}
    found = score("cdf", params, jnp.zeros((ROWS, WIDTH)), jnp.zeros(ROWS), True)[0]
    shares = np.exp([30.0, 0, 0, 0, 0, 2.0])
    plain = [np.log(shares[: k + 1].sum()) - np.log(shares[k + 1 :].sum()) for k in range(K)]
    np.testing.assert_allclose(found, plain, rtol=1e-6)


def test_minmax_is_a_layer_with_positive_weights_from_the_level_to_the_output() -> None:
    params, (z, base) = wild("minmax", True, 0.7), drawn()
    p = {name: np.asarray(value, dtype=np.float64) for name, value in params.items()}
    expected = np.empty((20, K))
    for i in range(20):
        for k in range(K):
            total = float(p["out_b"]) + float(base[i])
            for unit in range(WIDTH):
                inner = p["head_b"][unit] + abs(p["level_w"][unit]) * (k + 1)
                inner += sum(float(z[i, j]) * p["head_w"][j, unit] for j in range(WIDTH))
                total += abs(p["out_w"][unit]) * (inner if inner > 0 else np.expm1(inner))
            expected[i, k] = total
    np.testing.assert_allclose(score("minmax", params, z, base, True)[:20], expected, rtol=1e-4, atol=1e-4)


def test_concave_shares_spread_their_mass_evenly_over_the_steps_before_them() -> None:
    params, (z, _) = wild("concave", True, 0.5), drawn()
    logits = np.asarray(z, np.float64) @ np.asarray(params["head_w"], np.float64) + np.asarray(params["head_b"])
    share = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = share[:, [0]] + sum(share[:, [j]] * np.minimum(np.arange(K), j) / j for j in range(1, K))
    np.testing.assert_allclose(sigmoid(score("concave", params, z, jnp.zeros(ROWS), True)), expected, atol=3e-6)


# ---------------------------------------------------------------------------------------------- slopes


@functools.partial(jax.jit, static_argnums=(1, 4))
@jax.value_and_grad
def _slope(params: Params, head: str, z: jax.Array, base: jax.Array, bounded: bool) -> jax.Array:
    found, deviation = head_scores(shape(head, bounded), params, z, base, 1.0)
    row = jax.nn.softplus(found) - 0.3 * found if bounded else 0.5 * (found - 0.3) ** 2
    return row.mean() + (deviation**2).mean()


@pytest.mark.parametrize("bounded", SCALES)
@pytest.mark.parametrize("size", [1.0, 1e3])
@pytest.mark.parametrize("head", HEAD_KINDS)
def test_slopes_are_finite_at_extreme_inputs(head: str, size: float, bounded: bool) -> None:
    if not allowed(head, bounded):
        pytest.skip("not a head for amounts")
    z, base = (part[:200] for part in drawn())
    value, slope = _slope(wild(head, bounded, 3.0), head, size * z, size * base, bounded)
    assert np.isfinite(value)
    assert all(np.isfinite(part).all() for part in slope.values())
