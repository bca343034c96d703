"""Integral probability metrics of CFRNet: distances between two groups of rows in a representation.

Groups are given as masses over the same rows, so that shapes do not depend on who is in a batch. A group without mass has
distance zero from any other. All three metrics are as published, with groups of equal weight (`use_p_correction=0`).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

SIGMA = 0.1  # width of the Gaussian kernel
SHARPNESS = 10.0  # of the entropic transport: larger is closer to the exact distance
ITERATIONS = 10  # of Sinkhorn's algorithm
FLOOR = 1e-6  # added to the transport kernel
TINY = 1e-10  # least squared distance: the gradient of a root is infinite at zero


def distance(kind: str, z: jax.Array, one: jax.Array, other: jax.Array) -> jax.Array:
    """Return the distance between two groups with masses (n,), (n,) of the rows of z (n, width)."""
    return {"linear": linear, "rbf": rbf, "wasserstein": wasserstein}[kind](z, one, other)


def one_against_all(kind: str, z: jax.Array, level: jax.Array, weight: jax.Array) -> jax.Array:
    """Return Σ_k p_k · distance(level k, all others), p_k the share of level k; `level` (n, K) is one-hot.

    With two levels this is the distance between them, from level 1 to level 0.
    """
    mass = level * weight[:, None]
    if level.shape[1] == 2:
        return distance(kind, z, mass[:, 1], mass[:, 0])
    each = jax.vmap(lambda k: distance(kind, z, mass[:, k], weight - mass[:, k]))
    return each(jnp.arange(level.shape[1])) @ mass.sum(axis=0) / jnp.maximum(weight.sum(), 1e-9)


def linear(z: jax.Array, one: jax.Array, other: jax.Array) -> jax.Array:
    """Return the squared distance of the groups' means."""
    apart = one @ z / jnp.maximum(one.sum(), 1e-9) - other @ z / jnp.maximum(other.sum(), 1e-9)
    return _both(one, other) * jnp.sum(apart**2)


def rbf(z: jax.Array, one: jax.Array, other: jax.Array, sigma: float = SIGMA) -> jax.Array:
    """Return the unbiased squared MMD under exp(−d²/σ²), which may be negative; no row is compared with itself."""
    kernel = jnp.exp(-_squared(z) / sigma**2)
    kernel = kernel * (1 - jnp.eye(len(z)))

    def mean(a: jax.Array, b: jax.Array) -> jax.Array:
        return a @ kernel @ b / jnp.maximum(a.sum() * b.sum() - (a * b).sum(), 1e-9)

    return _both(one, other) * (mean(one, one) + mean(other, other) - 2 * mean(one, other))


def wasserstein(
    z: jax.Array,
    one: jax.Array,
    other: jax.Array,
    sharpness: float = SHARPNESS,
    iterations: int = ITERATIONS,
    floor: float = FLOOR,
) -> jax.Array:
    """Return the transport cost between the groups by Sinkhorn's algorithm, with gradients through the transport too.

    As published: the kernel is exp(−sharpness · distance / mean distance); each group has an extra bin, as heavy as the
    other group and as far from every row as the farthest pair; the cost is doubled, since each group weighs a half.
    """
    cost = jnp.sqrt(jnp.maximum(_squared(z), TINY))
    pairs = jnp.outer(one, other) > 0
    farthest = jax.lax.stop_gradient(jnp.max(jnp.where(pairs, cost, 0.0)))
    mean = jax.lax.stop_gradient((one @ cost @ other) / jnp.maximum(one.sum() * other.sum(), 1e-9))
    n = len(z)
    full = jnp.full((n + 1, n + 1), farthest).at[:n, :n].set(cost).at[n, n].set(0.0)
    a = jnp.append(0.5 * one / jnp.maximum(one.sum(), 1e-9), 0.5)
    b = jnp.append(0.5 * other / jnp.maximum(other.sum(), 1e-9), 0.5)
    kernel = jnp.exp(-sharpness / jnp.maximum(mean, 1e-9) * full) + floor

    def iterate(u: jax.Array, _: None) -> tuple[jax.Array, None]:
        return a / (kernel @ (b / (kernel.T @ u))), None

    u, _ = jax.lax.scan(iterate, jnp.ones(n + 1) * a, None, length=iterations)
    v = b / (kernel.T @ u)
    return _both(one, other) * 2 * jnp.sum(u[:, None] * kernel * v * full)


def _both(one: jax.Array, other: jax.Array) -> jax.Array:
    return ((one.sum() > 0) & (other.sum() > 0)).astype(jnp.float32)


def _squared(z: jax.Array) -> jax.Array:
    """Return squared distances (n, n) from inner products of centred rows."""
    z = z - z.mean(axis=0)
    size = (z**2).sum(axis=1)
    # Differences of large products: the coarse products of a GPU would leave noise.
    return jnp.maximum(size[:, None] + size - 2 * jnp.matmul(z, z.T, precision="highest"), 0.0)
