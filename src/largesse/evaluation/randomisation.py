"""Permutation test of the independence of levels and features, by HSIC.

Two kernels on the features: linear, which detects shifted means, and random Fourier features of a Gaussian, which detect
any dependence. Levels are one-hot, each scaled by its share, so that a rare level counts as much as a common one. The
smaller of the two p-values is itself compared with permutations, so the test has the size it claims.
"""

from __future__ import annotations

import numpy as np

from largesse.records import Array, Dependence
from largesse.stats import one_thread, sample_rows, standardise

N_PERMUTATIONS = 499
MAX_TEST_ROWS = 5_000  # more would show only dependence too weak to matter
N_FOURIER_FEATURES = 128
PERMUTATIONS_PER_BLOCK = 50


def measure_dependence(
    X: Array, level: Array, cluster: Array | None = None, *, permutations: int = N_PERMUTATIONS, seed: int = 0
) -> Dependence:
    """Test the independence of features (n, p) and levels (n,), permuting clusters if levels were assigned to clusters."""
    rng = np.random.default_rng(seed)
    Z = standardise(X)
    kernels, of = [Z, _make_fourier(Z, rng)], "row"
    if cluster is not None:
        _, first, code = np.unique(cluster, return_index=True, return_inverse=True)
        if len(first) < len(level) and (level[first][code] == level).all():  # levels were assigned to whole clusters
            of, level, kernels = "cluster", level[first], [_average_clusters(kernel, code) for kernel in kernels]
    sampled = len(level) > MAX_TEST_ROWS
    if sampled:
        rows = sample_rows(len(level), MAX_TEST_ROWS, rng)
        kernels, level = [kernel[rows] for kernel in kernels], level[rows]
    if len(np.unique(level)) < 2 or Z.shape[1] == 0:
        return Dependence(1.0, 0.0, len(level), of, sampled)
    with one_thread():
        statistics = np.stack([_measure_permutations(kernel, level, permutations, seed) for kernel in kernels])
    # Values that differ only by rounding are ties, and a tie is no evidence.
    slack = 1e-9 * np.abs(statistics).max(axis=1)
    ranks = [(row[None, :] >= row[:, None] - s).sum(axis=1) for row, s in zip(statistics, slack, strict=True)]
    smallest = np.min(ranks, axis=0)
    p = float((smallest <= smallest[0]).mean())
    return Dependence(p, float(statistics[0, 0] / max(statistics[0, 1:].mean(), 1e-300)), len(level), of, sampled)


def _measure_permutations(Z: Array, level: Array, permutations: int, seed: int) -> Array:
    """Return HSIC of the levels as logged, then of each permutation: (1 + permutations,)."""
    rng = np.random.default_rng(seed)  # the same permutations for every kernel
    Z = (Z - Z.mean(axis=0)).astype(np.float32)
    _, code = np.unique(level, return_inverse=True)
    shares = np.bincount(code) / len(code)
    out = np.empty(1 + permutations)
    for start in range(0, len(out), PERMUTATIONS_PER_BLOCK):
        stop = min(start + PERMUTATIONS_PER_BLOCK, len(out))
        shuffled = [code if j == 0 else rng.permutation(code) for j in range(start, stop)]
        hot = np.concatenate([np.eye(len(shares), dtype=np.float32)[c] for c in shuffled], axis=1)
        sums = (Z.T @ hot).reshape(Z.shape[1], stop - start, len(shares))
        out[start:stop] = (sums.astype(np.float64) ** 2 / shares).sum(axis=(0, 2)) / len(code) ** 2
    return out


def _make_fourier(Z: Array, rng: np.random.Generator) -> Array:
    """Return random features (n, N_FOURIER_FEATURES) of a Gaussian kernel as wide as the median distance."""
    Z = Z.astype(np.float32)
    left, right = (Z[rng.integers(len(Z), size=1000)] for _ in range(2))
    width = float(np.median(np.sqrt(((left - right) ** 2).sum(axis=1)))) or 1.0
    frequencies = (rng.standard_normal((Z.shape[1], N_FOURIER_FEATURES)) / width).astype(np.float32)
    return np.cos(Z @ frequencies + rng.uniform(0, 2 * np.pi, N_FOURIER_FEATURES).astype(np.float32))


def _average_clusters(Z: Array, code: Array) -> Array:
    sizes = np.bincount(code)
    means = np.empty((len(sizes), Z.shape[1]))
    for column, values in enumerate(Z.T):
        means[:, column] = np.bincount(code, weights=values) / sizes
    return means
