"""HSIC: how much a representation z still tells about the level, as a penalty, as a number and as a test.

HSIC(z, y) is the squared norm of the covariance between features of z and features of the level; it is zero when the two are
independent. A kernel stands for its features, so every estimator here comes in two forms that agree: from feature maps in time
linear in the rows (n), and from n × n kernel matrices.

Penalise z with `hsic_penalty` against the columns of `level_kernel`; ask whether a dependence is there at all with `hsic_test`.
Everything but `hsic_test` works inside jit, vmap and grad. Everything is centred before it is multiplied: in float32 the
textbook's three-term sum loses all its digits once z is far from zero. Rows of weight zero must still hold finite numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import stop_gradient

from largesse.errors import Problem, nearest, refuse

LEVEL_KERNELS = ("onehot", "ordinal", "linear", "continuous")
KERNELS = ("linear", "rbf", "rff")
ESTIMATORS = ("biased", "unbiased", "variance")
FEATURES = 256  # columns of a random feature map
MEDIAN_ROWS = 128  # rows whose pairs decide a bandwidth

# Tensor cores would round factors to ten bits: too coarse for distances.
_dot = functools.partial(jnp.matmul, precision="highest")


# ---------------------------------------------------------------------------------------------- features and kernels


def level_kernel(
    level: jax.Array, K: int, kind: str = "onehot", dose: jax.Array | None = None, *, key: jax.Array | None = None
) -> jax.Array:
    """Return features Y (n, q) of levels (n,) in 0..K−1 whose inner products are the wanted kernel; O(n·q).

    - "onehot", q = K: 1 for the same level, else 0. Sees every difference between levels, knows no order.
    - "ordinal", q = K − 1: min(level, level'), from the columns 1{level ≥ k}. Levels far apart count more.
    - "linear", q = 1: the level's number, or `dose` (n,) in its own unit. Sees only a linear trend.
    - "continuous", q = 256: a Gaussian kernel on `dose` (n,), or on the level's number, through random features.
      Without a `key` the features are the same at every call.

    >>> Y = level_kernel(jnp.array([0, 2, 1]), K=3, kind="ordinal")
    >>> (Y @ Y.T).astype(int).tolist()
    [[0, 0, 0], [0, 2, 1], [0, 1, 1]]
    """
    _known(kind, LEVEL_KERNELS, "kind of level kernel")
    level = jnp.asarray(level)
    if kind == "onehot":
        return jax.nn.one_hot(level, K)
    if kind == "ordinal":
        return (level[:, None] >= jnp.arange(1, K)).astype(float)
    column = jnp.asarray(level if dose is None else dose).astype(float)[:, None]
    if kind == "linear":
        return column
    return random_features(column, jax.random.key(0) if key is None else key)


def median_distance(z: jax.Array, weight: jax.Array | None = None) -> jax.Array:
    """Return the median distance between rows of z (n, p) that differ: the usual bandwidth; no gradient; O(p).

    At most 128 rows, evenly spaced, are looked at. Equal rows are left out, so that a dose most customers share does not make the
    bandwidth zero; 1 when all rows are equal.
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


def rbf_kernel(z: jax.Array, weight: jax.Array | None = None) -> jax.Array:
    """Return exp(−‖z_i − z_j‖² / 2σ²) (n, n) for z (n, p), σ the median distance; O(n²·p)."""
    z = (z - _mean(z, _share(z, weight))) / median_distance(z, weight)
    norm = jnp.sum(z**2, axis=1)
    squares = norm[:, None] + norm[None] - 2 * _dot(z, z.T)
    return jnp.exp(-jnp.maximum(squares, 0) / 2)


def random_features(
    z: jax.Array, key: jax.Array, features: int = FEATURES, weight: jax.Array | None = None
) -> jax.Array:
    """Return random Fourier features (n, D), D even, whose inner products approach `rbf_kernel(z)` as D grows; O(n·p·D).

    Cosines and sines come in pairs: the kernel of a row with itself is then exactly 1, and the error smaller than with
    randomly shifted cosines (Sutherland and Schneider 2015).
    """
    z = (z - _mean(z, _share(z, weight))) / median_distance(z, weight)
    angles = _dot(z, jax.random.normal(key, (z.shape[1], features // 2), z.dtype))
    return jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1) / np.sqrt(features // 2)


# ---------------------------------------------------------------------------------------------- estimators


def hsic_of_features(Z: jax.Array, Y: jax.Array, weight: jax.Array | None = None) -> jax.Array:
    """Return the biased HSIC ‖Z_cᵀY_c/n‖² of feature maps Z (n, p) and Y (n, q); O(n·p·q).

    With weights (n,), a 0/1 mask or sample weights, means and covariance are weighted.

    >>> float(hsic_of_features(jnp.array([[0.0], [2.0]]), jnp.array([[0.0], [1.0]])))
    0.25
    """
    return _from_features(Z, Y, _share(Z, weight)).cross


def hsic_of_kernels(K: jax.Array, L: jax.Array, weight: jax.Array | None = None) -> jax.Array:
    """Return the biased HSIC, the mean of HKH∘HLH, of kernel matrices (n, n); O(n²). Weights as in `hsic_of_features`."""
    return _from_kernels(K, L, _share(K, weight)).cross


def unbiased_of_features(Z: jax.Array, Y: jax.Array, weight: jax.Array | None = None) -> jax.Array:
    """Return the unbiased HSIC (Song et al. 2012) of feature maps Z (n, p) and Y (n, q); O(n·p·q).

    It is below zero about half the time when there is no dependence. Fewer than four rows say nothing: 0. Weights only tell which
    rows are there: all rows of positive weight count the same.
    """
    share = _share(Z, _mask(weight))
    return _unbiased(_from_features(Z, Y, share), share)


def unbiased_of_kernels(K: jax.Array, L: jax.Array, weight: jax.Array | None = None) -> jax.Array:
    """Return the unbiased HSIC of kernel matrices (n, n); O(n²). Otherwise as `unbiased_of_features`."""
    share = _share(K, _mask(weight))
    return _unbiased(_from_kernels(K, L, share), share)


class _Moments(NamedTuple):
    """All that any estimator needs to know about a batch."""

    cross: jax.Array  # () Σ_ij s_i s_j K_ij L_ij of the centred kernels: the biased HSIC
    own_z: jax.Array  # (n,) diagonal of the centred K; its mean is tr Cov(z)
    own_y: jax.Array  # (n,) diagonal of the centred L


def _from_features(Z: jax.Array, Y: jax.Array, share: jax.Array) -> _Moments:
    Z, Y = _centred(Z, share), _centred(Y, share)
    cross = jnp.sum(_dot((share[:, None] * Z).T, Y) ** 2)
    return _Moments(cross, jnp.sum(Z**2, axis=1), jnp.sum(Y**2, axis=1))


def _from_kernels(K: jax.Array, L: jax.Array, share: jax.Array) -> _Moments:
    K, L = _centred_both_ways(K, share), _centred_both_ways(L, share)
    return _Moments(jnp.sum(share[:, None] * share * K * L), jnp.diagonal(K), jnp.diagonal(L))


def _unbiased(moments: _Moments, share: jax.Array) -> jax.Array:
    """Correct the biased HSIC for its diagonal.

    Song's statistic does not change when the kernels are centred first. Their rows then sum to zero, so that K̃1 = −diag(K), and
    tr(K̃L̃), 1ᵀK̃1 and 1ᵀK̃L̃1 are the biased HSIC and sums over the diagonals.
    """
    rows = jnp.sum(share > 0).astype(share.dtype)
    n = jnp.maximum(rows, 4)
    apart = jnp.sum(share * moments.own_z) * jnp.sum(share * moments.own_y)
    together = jnp.sum(share * moments.own_z * moments.own_y)
    value = n / (n - 3) * (moments.cross + apart / ((n - 1) * (n - 2)) - together / (n - 2))
    return jnp.where(rows < 4, 0, value)


def _variance(moments: _Moments, share: jax.Array) -> jax.Array:
    """Return tr Cov(z)·tr Cov(y)/(n − 1): the mean of the biased HSIC over all orders of the levels."""
    alike = jnp.sum(share**2)  # 1/n; with sample weights 1/(effective number of rows)
    factor = alike / jnp.where(alike < 1, 1 - alike, 1)
    return factor * jnp.sum(share * moments.own_z) * jnp.sum(share * moments.own_y)


# ---------------------------------------------------------------------------------------------- the penalty


def normalised(z: jax.Array, weight: jax.Array | None = None) -> jax.Array:
    """Return z (n, p) centred and divided by one number, so that its mean square is 1 per unit: tr Cov(z)/p = 1; O(n·p).

    Gradients pass through the mean and the scale. Whatever is computed from the result does not change when z is shifted or
    scaled: a network cannot buy a small HSIC by shrinking z, and a κ means the same whatever the scale of z. Rows that are all
    equal become zero.

    >>> normalised(jnp.array([[1001.0], [1003.0]])).tolist()
    [[-1.0], [1.0]]
    """
    share = _share(z, weight)
    return _centred(z, share) / _scale(z, share)


def hsic_penalty(
    z: jax.Array,
    Y: jax.Array,
    *,
    kernel: str = "linear",
    estimator: str = "biased",
    key: jax.Array | None = None,
    weight: jax.Array | None = None,
) -> jax.Array:
    """Return the balance penalty () of a batch z (n, p), normalised here, and level features Y (n, q).

    `kernel` of z: "linear", O(n·p·q); "rff", 256 random features drawn with `key`, O(n·256·(p + q)); "rbf", O(n²·(p + q)).
    `weight` (n,): a 0/1 mask of the rows that are there, or sample weights (see `unbiased_of_features` for what becomes of them).

    `estimator`:

    - "biased": the paper's. Without any dependence its mean is still tr Cov(z)·tr Cov(Y)/n on batches of n rows.
    - "unbiased": free of that; may be negative.
    - "variance": that part alone, tr Cov(z)·tr Cov(Y)/(n − 1), blind to dependence: it tells how much of a gain is balance. On
      normalised z it would be constant, so here the scale of z is held fixed (no gradient passes through it). With a linear
      kernel its value is always p·tr Cov(Y)/(n − 1), and its gradient that of log tr Cov(z) times this value: it shrinks z.

    >>> Y = level_kernel(jnp.array([0, 0, 1, 1]), K=2)
    >>> float(hsic_penalty(jnp.array([[5.0], [5.0], [9.0], [9.0]]), Y))
    0.5
    """
    _known(kernel, KERNELS, "kernel")
    _known(estimator, ESTIMATORS, "estimator")
    share = _share(z, _mask(weight) if estimator == "unbiased" else weight)
    scale = _scale(z, share)
    z = _centred(z, share) / (stop_gradient(scale) if estimator == "variance" else scale)
    if kernel == "rbf":
        Y = _centred(Y, share)
        moments = _from_kernels(rbf_kernel(z, weight), _dot(Y, Y.T), share)
    else:
        moments = _from_features(_feature_map(z, kernel, key, weight), Y, share)
    if estimator == "biased":
        return moments.cross
    return (_unbiased if estimator == "unbiased" else _variance)(moments, share)


# ---------------------------------------------------------------------------------------------- two levels


def mmd(
    z0: jax.Array,
    z1: jax.Array,
    *,
    kernel: str = "linear",
    key: jax.Array | None = None,
    weight0: jax.Array | None = None,
    weight1: jax.Array | None = None,
) -> jax.Array:
    """Return the squared distance (biased MMD²) between the mean features of z0 (n0, p) and z1 (n1, p).

    Kernels and their times as in `hsic_penalty`, on all n0 + n1 rows, with one bandwidth. z is taken as it is: normalise both
    together first. Inside jit, where groups cannot be cut out, give z twice with the groups' masks as weights. 0 when a group
    is empty.

    >>> float(mmd(jnp.array([[0.0], [2.0]]), jnp.array([[4.0]])))
    9.0
    """
    _known(kernel, KERNELS, "kernel")
    share0, share1 = _share(z0, weight0), _share(z1, weight1)
    sign = jnp.concatenate([share0, -share1])
    there = jnp.abs(sign)
    z = jnp.concatenate([z0, z1])
    z = _centred(z, _share(z, there))
    if kernel == "rbf":
        value = jnp.maximum(jnp.sum(sign[:, None] * sign * rbf_kernel(z, there)), 0)
    else:
        value = jnp.sum(jnp.sum(sign[:, None] * _feature_map(z, kernel, key, there), axis=0) ** 2)
    return jnp.where((jnp.sum(share0) > 0) & (jnp.sum(share1) > 0), value, 0)


def hsic_of_two(p: Any, mmd2: Any) -> Any:
    """Return the HSIC of z and a level in {0, 1}, from the share p of level 1 and the MMD² between the two levels.

    HSIC = p²(1 − p)²·MMD² for the "linear" (or "ordinal") level kernel; twice that for "onehot", which counts both levels.

    >>> hsic_of_two(0.5, 4.0)
    0.25
    """
    return (p * (1 - p)) ** 2 * mmd2


# ---------------------------------------------------------------------------------------------- the test


class HsicTest(NamedTuple):
    """What a permutation test found."""

    statistic: float  # biased HSIC
    p_value: float  # chance of a statistic at least as large if z and level were independent


def hsic_test(z: Any, level: Any, *, permutations: int = 200, key: jax.Array) -> HsicTest:
    """Test whether rows z (n, p) and levels (n,) depend on each other, by permuting the levels.

    z is standardised column by column and goes through 256 random features; levels are one-hot. It sees shifted means about as
    well as a linear kernel does, and differences of spread or shape, to which a linear kernel (and the sum of both) is all but
    blind. O(n·256·(p + K·permutations)); not for use inside jit.

    >>> level = np.arange(60) % 3
    >>> z = np.random.default_rng(1).normal(size=(60, 2))
    >>> hsic_test(z, level, key=jax.random.key(0)).p_value > 0.05
    True
    >>> hsic_test(z + level[:, None], level, key=jax.random.key(0)).p_value < 0.05
    True
    """
    _, codes = np.unique(np.asarray(level), return_inverse=True)
    Y = jax.nn.one_hot(codes, int(codes.max()) + 1)
    statistic, null = _permuted(jnp.asarray(_standardised(z), Y.dtype), Y, key, permutations)
    at_least = int(np.sum(np.asarray(null) >= float(statistic) * (1 - 1e-5)))  # equal up to rounding counts as equal
    return HsicTest(float(statistic), (1 + at_least) / (1 + permutations))


def _standardised(z: Any) -> np.ndarray[Any, Any]:
    """Standardise columns in float64, before float32 could swallow the spread of a large number; constants become 0."""
    z = np.asarray(z, dtype=np.float64)
    spread = z.std(axis=0)
    alive = spread > 1e-12 * np.abs(z).max(axis=0)
    return np.where(alive, z - z.mean(axis=0), 0) / np.where(alive, spread, 1)


@functools.partial(jax.jit, static_argnames="permutations")
def _permuted(z: jax.Array, Y: jax.Array, key: jax.Array, permutations: int) -> tuple[jax.Array, jax.Array]:
    """Return the statistic () and its values (permutations,) with the levels permuted."""
    draw, shuffle = jax.random.split(key)
    share = _share(z, None)
    Z, Y = _centred(random_features(z, draw), share), _centred(Y, share)

    def statistic(Y: jax.Array) -> jax.Array:
        return jnp.sum((_dot(Z.T, Y) / len(Z)) ** 2)

    keys = jax.random.split(shuffle, permutations)
    return statistic(Y), jax.lax.map(lambda key: statistic(jax.random.permutation(key, Y)), keys)


# ---------------------------------------------------------------------------------------------- small parts


def _known(name: str, known: Sequence[str], what: str) -> None:
    if name not in known:
        refuse("HSIC", [Problem(f"{name!r} is no {what}", nearest(name, known))])


def _feature_map(z: jax.Array, kernel: str, key: jax.Array | None, weight: jax.Array | None) -> jax.Array:
    if kernel == "linear":
        return z
    if key is None:
        refuse("HSIC", [Problem("random features were asked for without a key", "pass key=jax.random.key(0)")])
    return random_features(z, key, weight=weight)


def _share(rows: jax.Array, weight: jax.Array | None) -> jax.Array:
    """Return weights (n,) that sum to one; all zero when no row has a weight."""
    dtype = jnp.asarray(rows).dtype
    if weight is None:
        return jnp.full(len(rows), 1 / max(len(rows), 1), dtype)
    total = jnp.sum(weight)
    return (weight / jnp.where(total > 0, total, 1)).astype(dtype)


def _mask(weight: jax.Array | None) -> jax.Array | None:
    return None if weight is None else weight > 0


def _mean(z: jax.Array, share: jax.Array) -> jax.Array:
    return jnp.sum(share[:, None] * z, axis=0)  # not a matrix product: on tensor cores that would round


def _centred(z: jax.Array, share: jax.Array) -> jax.Array:
    z = z - _mean(z, share)
    return z - _mean(z, share)  # what the first mean's rounding left over


def _centred_both_ways(K: jax.Array, share: jax.Array) -> jax.Array:
    return _centred(_centred(K, share).T, share)


def _scale(z: jax.Array, share: jax.Array) -> jax.Array:
    """Return the root mean square () of centred z per unit; 1 when no row differs from another by more than rounding."""
    there = (share > 0)[:, None]
    rounding = jnp.finfo(share.dtype).eps * jnp.max(jnp.abs(z) * there, initial=0)
    z = _centred(z, share)
    peak = stop_gradient(jnp.max(jnp.abs(z) * there, initial=0))
    alive = peak > rounding
    peak = jnp.where(alive, peak, 1)  # taken out before squaring, which could under- or overflow
    square = jnp.sum(share[:, None] * (z / peak) ** 2) / max(z.shape[1], 1)
    return peak * jnp.sqrt(jnp.where(alive, square, 1))
