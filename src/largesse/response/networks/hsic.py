"""HSIC penalty: a kernel measure of the dependence between a representation and the level.

HSIC(z, y) is the squared norm of the covariance between features of z and features of the level; it is zero when the two
are independent (Gretton et al. 2005). A kernel stands for its features: "linear" and "rff" work with feature maps in time
linear in the rows, "rbf" with n × n kernel matrices.

Everything here works inside jit, vmap and grad. Everything is centred before it is multiplied: in float32 the textbook's
three-term sum loses all its digits once z is far from zero. Rows of weight zero must still hold finite numbers.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import stop_gradient

RANDOM_FEATURES = 256  # columns of a random feature map
MEDIAN_ROWS = 128  # rows whose pairs decide a bandwidth

# Tensor cores would round factors to ten bits: too coarse for distances.
_dot = functools.partial(jnp.matmul, precision="highest")


def median_distance(z: jax.Array, weight: jax.Array | None = None) -> jax.Array:
    """Return the median distance between rows of z (n, p), the usual bandwidth of a Gaussian kernel.

    Equal rows do not count.

    No gradient passes through it; it takes O(p).

    It uses at most 128 evenly spaced rows. Equal rows are left out, so that a representation most customers share does not
    make the bandwidth zero; it is 1 when all rows are equal.
    """
    z = stop_gradient(z)
    step = max(1, -(-len(z) // MEDIAN_ROWS))
    some = z[::step]
    squares = jnp.sum((some[:, None] - some[None]) ** 2, axis=-1)  # one fused loop under jit, never (128, 128, p)
    rounding = 8 * jnp.finfo(squares.dtype).eps * jnp.max(jnp.abs(some), initial=0)  # fused, not even z_i − z_i is 0
    use = squares > rounding**2 * z.shape[1]
    if weight is not None:
        here = weight[::step] > 0
        use &= here[:, None] & here[None]
    ordered = jnp.sort(jnp.where(use, squares, jnp.inf), axis=None)
    pairs = jnp.sum(use)
    return jnp.sqrt(jnp.where(pairs > 0, ordered[jnp.maximum(pairs - 1, 0) // 2], 1))


def rbf_kernel(z: jax.Array, weight: jax.Array | None = None, bandwidth: float | None = None) -> jax.Array:
    """Return the Gaussian kernel matrix (n, n) of z (n, p).

    It is exp(−‖z_i − z_j‖² / 2σ²).

    σ is the bandwidth, by default the median distance. It takes O(n²·p).
    """
    z = (z - _average_rows(z, _normalise_weights(z, weight))) / (
        median_distance(z, weight) if bandwidth is None else bandwidth
    )
    norm = jnp.sum(z**2, axis=1)
    squares = norm[:, None] + norm[None] - 2 * _dot(z, z.T)
    return jnp.exp(-jnp.maximum(squares, 0) / 2)


def random_fourier_features(
    z: jax.Array,
    key: jax.Array | None = None,
    features: int = RANDOM_FEATURES,
    weight: jax.Array | None = None,
    bandwidth: float | None = None,
) -> jax.Array:
    """Return random Fourier features (n, D) of z (n, p), which approximate a Gaussian kernel.

    Their inner products approximate `rbf_kernel(z)`.

    The error falls as D grows; D is even. It takes O(n·p·D).

    Cosines and sines come in pairs: the kernel of a row with itself is then exactly 1, and the error smaller than with
    randomly shifted cosines (Sutherland and Schneider 2015). Without a key the features are the same at every call.
    """
    key = jax.random.key(0) if key is None else key
    z = (z - _average_rows(z, _normalise_weights(z, weight))) / (
        median_distance(z, weight) if bandwidth is None else bandwidth
    )
    angles = _dot(z, jax.random.normal(key, (z.shape[1], features // 2), z.dtype))
    return jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1) / np.sqrt(features // 2)


class _HsicMoments(NamedTuple):
    """Moments of a batch from which HSIC estimates are computed."""

    cross: jax.Array  # () Σ_ij s_i s_j K_ij L_ij of the centred kernels: the biased HSIC
    own_z: jax.Array  # (n,) diagonal of the centred K; its mean is tr Cov(z)
    own_y: jax.Array  # (n,) diagonal of the centred L


def _compute_moments_from_features(Z: jax.Array, Y: jax.Array, share: jax.Array) -> _HsicMoments:
    Z, Y = _centre_rows(Z, share), _centre_rows(Y, share)
    cross = jnp.sum(_dot((share[:, None] * Z).T, Y) ** 2)
    return _HsicMoments(cross, jnp.sum(Z**2, axis=1), jnp.sum(Y**2, axis=1))


def _compute_moments_from_kernels(K: jax.Array, L: jax.Array, share: jax.Array) -> _HsicMoments:
    K, L = _centre_kernel(K, share), _centre_kernel(L, share)
    return _HsicMoments(jnp.sum(share[:, None] * share * K * L), jnp.diagonal(K), jnp.diagonal(L))


def _compute_unbiased_hsic(moments: _HsicMoments, share: jax.Array) -> jax.Array:
    """Return the unbiased HSIC estimate, from the biased one and the diagonals of the kernels.

    Song's statistic does not change when the kernels are centred first. Their rows then sum to zero, so that K̃1 = −diag(K), and
    tr(K̃L̃), 1ᵀK̃1 and 1ᵀK̃L̃1 are the biased HSIC and sums over the diagonals.
    """
    rows = jnp.sum(share > 0).astype(share.dtype)
    n = jnp.maximum(rows, 4)
    apart = jnp.sum(share * moments.own_z) * jnp.sum(share * moments.own_y)
    together = jnp.sum(share * moments.own_z * moments.own_y)
    value = n / (n - 3) * (moments.cross + apart / ((n - 1) * (n - 2)) - together / (n - 2))
    return jnp.where(rows < 4, 0, value)


def _compute_permutation_mean(moments: _HsicMoments, share: jax.Array) -> jax.Array:
    """Return the mean of the biased HSIC over random permutations of the levels.

    It is tr Cov(z)·tr Cov(y)/(n − 1).
    """
    alike = jnp.sum(share**2)  # 1/n; with sample weights 1/(effective number of rows)
    factor = alike / jnp.where(alike < 1, 1 - alike, 1)
    return factor * jnp.sum(share * moments.own_z) * jnp.sum(share * moments.own_y)


def hsic_penalty(
    z: jax.Array,
    Y: jax.Array,
    *,
    kernel: str = "linear",
    estimator: str = "biased",
    normalise: bool = True,
    weight: jax.Array | None = None,
    key: jax.Array | None = None,
) -> jax.Array:
    """Return the HSIC penalty, a scalar, of representations z (n, p) and level features Y (n, q).

    `kernel` of z: "linear", O(n·p·q); "rff", 256 random features (drawn with `key`), O(n·256·(p + q)); "rbf", O(n²·(p + q)).
    `weight` (n,): sample weights; "unbiased" only uses which of them are positive.

    With `normalise`, z is brought to unit mean square, and Gaussian kernels are as wide as the median distance. Gradients pass
    through the normalisation: z cannot lower the penalty by shrinking, and κ means the same at every scale. Without it, as in
    the paper, z is taken as it is, and the bandwidth is 1: a linear penalty grows with the square of z, and shrinks z.

    `estimator`:

    - "biased": the paper's. Without any dependence its mean is still tr Cov(z)·tr Cov(Y)/n on batches of n rows.
    - "unbiased": free of that bias (Song et al. 2012); may be negative, and is 0 with fewer than four rows.
    - "variance": that part alone, tr Cov(z)·tr Cov(Y)/(n − 1), blind to dependence: it tells how much of a gain is balance. On
      normalised z it would be constant, so there the scale of z is held fixed (no gradient passes through it). With a linear
      kernel its value is always p·tr Cov(Y)/(n − 1), and its gradient that of log tr Cov(z) times this value: it shrinks z.

    >>> Y = jax.nn.one_hot(jnp.array([0, 0, 1, 1]), 2)
    >>> float(hsic_penalty(jnp.array([[5.0], [5.0], [9.0], [9.0]]), Y))
    0.5
    >>> float(hsic_penalty(jnp.array([[5.0], [5.0], [9.0], [9.0]]), Y, normalise=False))
    2.0
    """
    share = _normalise_weights(z, _mark_positive_weights(weight) if estimator == "unbiased" else weight)
    bandwidth = None if normalise else 1.0
    if normalise:
        scale = _measure_root_mean_square(z, share)
        z = _centre_rows(z, share) / (stop_gradient(scale) if estimator == "variance" else scale)
    if kernel == "rbf":
        Y = _centre_rows(Y, share)
        moments = _compute_moments_from_kernels(rbf_kernel(z, weight, bandwidth), _dot(Y, Y.T), share)
    else:
        features = z if kernel == "linear" else random_fourier_features(z, key, weight=weight, bandwidth=bandwidth)
        moments = _compute_moments_from_features(features, Y, share)
    if estimator == "biased":
        return moments.cross
    return (_compute_unbiased_hsic if estimator == "unbiased" else _compute_permutation_mean)(moments, share)


def _normalise_weights(rows: jax.Array, weight: jax.Array | None) -> jax.Array:
    """Return weights (n,) that sum to one, or zeros if no row has a weight."""
    dtype = jnp.asarray(rows).dtype
    if weight is None:
        return jnp.full(len(rows), 1 / max(len(rows), 1), dtype)
    total = jnp.sum(weight)
    return (weight / jnp.where(total > 0, total, 1)).astype(dtype)


def _mark_positive_weights(weight: jax.Array | None) -> jax.Array | None:
    return None if weight is None else weight > 0


def _average_rows(z: jax.Array, share: jax.Array) -> jax.Array:
    return jnp.sum(share[:, None] * z, axis=0)  # not a matrix product: on tensor cores that would round


def _centre_rows(z: jax.Array, share: jax.Array) -> jax.Array:
    z = z - _average_rows(z, share)
    return z - _average_rows(z, share)  # again: what rounding of the first mean left over


def _centre_kernel(K: jax.Array, share: jax.Array) -> jax.Array:
    return _centre_rows(_centre_rows(K, share).T, share)


def _measure_root_mean_square(z: jax.Array, share: jax.Array) -> jax.Array:
    """Return the root mean square of centred z (n, p), or 1 if rows differ only by rounding."""
    there = (share > 0)[:, None]
    rounding = jnp.finfo(share.dtype).eps * jnp.max(jnp.abs(z) * there, initial=0)
    z = _centre_rows(z, share)
    peak = stop_gradient(jnp.max(jnp.abs(z) * there, initial=0))
    alive = peak > rounding
    peak = jnp.where(alive, peak, 1)  # taken out before squaring, which could under- or overflow
    square = jnp.sum(share[:, None] * (z / peak) ** 2) / max(z.shape[1], 1)
    return peak * jnp.sqrt(jnp.where(alive, square, 1))
