"""Were levels assigned without regard to the features? HSIC between the two, against permutations of the levels.

Two kernels on the features: linear, which detects shifted means, and random Fourier features of a Gaussian, which detect
any dependence. Levels are one-hot, each scaled by its share, so that a rare level counts as much as a common one. The
smaller of the two p-values is itself compared with permutations, so the test has the size it claims.
"""

from __future__ import annotations

import numpy as np

from largesse.records import Array, Dependence
from largesse.stats import one_thread, sample_rows, standardise

PERMUTATIONS = 499
ROWS = 5_000  # rows beyond these would show only dependence too weak to matter
FOURIER = 128
BLOCK = 50  # permutations at a time


def measure_dependence(
    X: Array, level: Array, cluster: Array | None = None, *, permutations: int = PERMUTATIONS, seed: int = 0
) -> Dependence:
    """Test the independence of features (n, p) and levels (n,), permuting clusters if levels were assigned to clusters."""
    rng = np.random.default_rng(seed)
    Z = standardise(X)
    kernels, of = [Z, _fourier(Z, rng)], "row"
    if cluster is not None and _given_whole(level, cluster):
        of = "cluster"
        _, first, own = np.unique(cluster, return_index=True, return_inverse=True)
        kernels, level = [_means(kernel, own) for kernel in kernels], level[first]
    sampled = len(level) > ROWS
    if sampled:
        rows = sample_rows(len(level), ROWS, rng)
        kernels, level = [kernel[rows] for kernel in kernels], level[rows]
    if len(np.unique(level)) < 2 or Z.shape[1] == 0:
        return Dependence(1.0, 0.0, len(level), of, sampled)
    with one_thread():
        found = np.stack(
            [_statistics(kernel, level, permutations, seed) for kernel in kernels]
        )  # (2, 1 + permutations)
    p = _smallest_p(found)
    return Dependence(p, float(found[0, 0] / max(found[0, 1:].mean(), 1e-300)), len(level), of, sampled)


def _statistics(Z: Array, level: Array, permutations: int, seed: int) -> Array:
    """Return HSIC of the levels as logged, then of each permutation: (1 + permutations,)."""
    rng = np.random.default_rng(seed)  # the same permutations for every kernel
    Z = (Z - Z.mean(axis=0)).astype(np.float32)
    _, code = np.unique(level, return_inverse=True)
    shares = np.bincount(code) / len(code)
    out = np.empty(1 + permutations)
    for start in range(0, len(out), BLOCK):
        stop = min(start + BLOCK, len(out))
        shuffled = [code if j == 0 else rng.permutation(code) for j in range(start, stop)]
        hot = np.concatenate([np.eye(len(shares), dtype=np.float32)[c] for c in shuffled], axis=1)
        sums = (Z.T @ hot).reshape(Z.shape[1], stop - start, len(shares))
        out[start:stop] = (sums.astype(np.float64) ** 2 / shares).sum(axis=(0, 2)) / len(code) ** 2
    return out


def _smallest_p(found: Array) -> float:
    """Return the p-value of the smaller of several p-values, each statistic ranked among all of its own."""
    slack = (
        1e-9 * np.abs(found).max(axis=1)[:, None]
    )  # values that differ only by rounding are ties, and a tie is no evidence
    ranks = np.stack([(row[None, :] >= row[:, None] - one).sum(axis=1) for row, one in zip(found, slack, strict=True)])
    least = ranks.min(axis=0)
    return float((least <= least[0]).mean())


def _fourier(Z: Array, rng: np.random.Generator) -> Array:
    """Return random features (n, FOURIER) of a Gaussian kernel as wide as the median distance."""
    Z = Z.astype(np.float32)
    one, two = (Z[rng.integers(len(Z), size=1000)] for _ in range(2))
    width = float(np.median(np.sqrt(((one - two) ** 2).sum(axis=1)))) or 1.0
    turns = (rng.standard_normal((Z.shape[1], FOURIER)) / width).astype(np.float32)
    return np.cos(Z @ turns + rng.uniform(0, 2 * np.pi, FOURIER).astype(np.float32))


def _given_whole(level: Array, cluster: Array) -> bool:
    """Whether all rows of a cluster always got the same level, and some cluster has several rows."""
    _, first, own = np.unique(cluster, return_index=True, return_inverse=True)
    return len(first) < len(level) and bool((level[first][own] == level).all())


def _means(Z: Array, own: Array) -> Array:
    sizes = np.bincount(own)
    return np.stack([np.bincount(own, weights=column) / sizes for column in Z.T], axis=1)
