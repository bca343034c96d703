"""Permutation test of independence between levels and features, by HSIC.

Two kernels on the features: linear, which detects shifted means, and random Fourier features of a Gaussian, which detect
any dependence. Levels are one-hot, each scaled by its share, so that a rare level counts as much as a common one. The
smaller of the two p-values is itself compared with permutations, so the test has the size it claims. Within strata, levels are
permuted within them: a column whose strata leave no dependence may be the one within which levels were drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from largesse.data import group_column_values
from largesse.records import Array, IndependenceTest, RandomisedStrata
from largesse.stats import limit_to_one_thread, sample_rows, standardise

if TYPE_CHECKING:
    import pyarrow as pa

N_PERMUTATIONS = 499
MAX_TEST_ROWS = 5_000  # more would show only dependence too weak to matter
N_FOURIER_FEATURES = 128
PERMUTATIONS_PER_BLOCK = 50
MAX_STRATA, MIN_STRATUM_UNITS = 200, 10  # values of a column, and rows or units of each
MIN_STRATA_SCORE = 4.0  # of the dependence of levels on strata, in standard deviations
MAX_TESTED_STRATA = 3  # columns
MIN_STRATA_P = 0.05  # of independence within strata
MIN_UNIT_LEVEL_SHARE = 0.98  # of the rows, with the most frequent level of their unit: a few may be recorded wrongly


def run_independence_test(
    X: Array,
    level: Array,
    cluster: Array | None = None,
    *,
    strata: Array | None = None,
    permutations: int = N_PERMUTATIONS,
    seed: int = 0,
) -> IndependenceTest:
    """Test the independence of features (n, p) and levels (n,) by random permutation of rows or clusters.

    With `strata` (n,) it is the independence within strata.
    """
    rng = np.random.default_rng(seed)
    Z = standardise(X)
    kernels, of = [Z, _make_fourier_features(Z, rng)], "row"
    if (unit := find_randomised_units(level, cluster)) is not None:  # levels were assigned to whole clusters
        of, level = "cluster", _find_modal_values(level, unit)
        strata = None if strata is None else _find_modal_values(strata, unit)
        kernels = [_average_clusters(kernel, unit) for kernel in kernels]
    strata = np.zeros(len(level), dtype=np.int64) if strata is None else strata
    sampled = len(level) > MAX_TEST_ROWS
    if sampled:
        rows = sample_rows(len(level), MAX_TEST_ROWS, rng)
        kernels, level, strata = [kernel[rows] for kernel in kernels], level[rows], strata[rows]
    if len(np.unique(level)) < 2 or Z.shape[1] == 0:
        return IndependenceTest(1.0, 0.0, len(level), of, sampled)
    with limit_to_one_thread():
        statistics = np.stack([_compute_permuted_hsic(kernel, level, strata, permutations, seed) for kernel in kernels])
    # Values that differ only by rounding are ties, and a tie is no evidence.
    slack = 1e-9 * np.abs(statistics).max(axis=1)
    ranks = [(row[None, :] >= row[:, None] - s).sum(axis=1) for row, s in zip(statistics, slack, strict=True)]
    smallest = np.min(ranks, axis=0)
    p = float((smallest <= smallest[0]).mean())
    return IndependenceTest(p, float(statistics[0, 0] / max(statistics[0, 1:].mean(), 1e-300)), len(level), of, sampled)


def find_randomised_units(level: Array, group: Array | None) -> Array | None:
    """Return the index (n,) of the group to which each level was assigned; None if levels vary within groups.

    >>> find_randomised_units(np.array([1, 1, 0]), np.array([7, 7, 3])), find_randomised_units(np.array([1, 0, 0]), np.array([7, 7, 3]))
    (array([1, 1, 0]), None)
    """
    if group is None:
        return None
    _, unit = np.unique(group, return_inverse=True)
    constant = (_find_modal_values(level, unit)[unit] == level).mean() >= MIN_UNIT_LEVEL_SHARE
    return unit if constant and int(unit.max()) + 1 < len(unit) else None


def _find_modal_values(values: Array, unit: Array) -> Array:
    """Return each unit's most frequent value (units,), given values (n,) and unit numbers (n,)."""
    K, units = int(values.max()) + 1, int(unit.max()) + 1
    return np.bincount(unit * K + values, minlength=units * K).reshape(units, K).argmax(axis=1)


def find_randomised_strata(
    features: pa.Table, X: Array, level: Array, group: Array | None = None, seed: int = 0
) -> RandomisedStrata | None:
    """Find a column within whose values the levels (n,) look randomised; return None without such a column.

    `features` and their encoding X (n, p) are those of the rows; rows of a `group` (n,) got their levels together.
    """
    unit = find_randomised_units(level, group)
    level_of = level if unit is None else _find_modal_values(level, unit)
    scored = []
    for name in features.column_names:
        grouping = group_column_values(features.column(name), MAX_STRATA)
        if (
            len(grouping.labels) > MAX_STRATA
            or not len(np.unique(grouping.code)) >= 2
            or _has_too_many_values(features.column(name))
        ):
            continue
        stratum = grouping.code if unit is None else _find_modal_values(grouping.code, unit)
        if unit is not None and (stratum[unit] != grouping.code).any():
            continue  # levels of whole units were drawn within strata of units
        score = _score_dependence(stratum, level_of)
        if score > MIN_STRATA_SCORE:
            scored.append((score, name, grouping.code))
    for _, name, code in sorted(scored, key=lambda item: -item[0])[:MAX_TESTED_STRATA]:
        within = run_independence_test(X, level, group, strata=code, seed=seed)
        if within.p >= MIN_STRATA_P:
            return RandomisedStrata(name, len(np.unique(code)), within.p)
    return None


def _has_too_many_values(column: pa.ChunkedArray) -> bool:
    """Test if a column has too many distinct values to define strata."""
    return len(column.unique()) > MAX_STRATA + 1


def _score_dependence(stratum: Array, level: Array) -> float:
    """Return the likelihood ratio of levels and strata, in standard deviations above its mean under independence.

    It is 0 if a stratum has few units, or one level alone.
    """
    K = int(level.max()) + 1
    counts = np.bincount(stratum * K + level, minlength=(int(stratum.max()) + 1) * K).reshape(-1, K).astype(np.float64)
    counts = counts[counts.sum(axis=1) > 0]
    if counts.sum(axis=1).min() < MIN_STRATUM_UNITS or (counts > 0).sum(axis=1).min() < 2:
        return 0.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    ratio = 2 * float(np.where(counts > 0, counts * np.log(np.maximum(counts, 1) / expected), 0.0).sum())
    freedom = max((len(counts) - 1) * (K - 1), 1)
    return float((ratio - freedom) / np.sqrt(2 * freedom))


def _compute_permuted_hsic(Z: Array, level: Array, strata: Array, permutations: int, seed: int) -> Array:
    """Return HSIC for the logged levels, then for each permutation within strata (1 + permutations,)."""
    rng = np.random.default_rng(seed)  # the same permutations for every kernel
    _, stratum = np.unique(strata, return_inverse=True)
    order = np.argsort(stratum, kind="stable")  # sorted by stratum, a permutation of all rows is one within strata
    Z, level, stratum = Z[order], level[order], stratum[order]
    Z = (Z - _average_clusters(Z, stratum)[stratum]).astype(np.float32)
    _, code = np.unique(level, return_inverse=True)
    shares = np.bincount(code) / len(code)
    out = np.empty(1 + permutations)
    for start in range(0, len(out), PERMUTATIONS_PER_BLOCK):
        stop = min(start + PERMUTATIONS_PER_BLOCK, len(out))
        shuffled = [code if j == 0 else _permute_within_strata(code, stratum, rng) for j in range(start, stop)]
        hot = np.concatenate([np.eye(len(shares), dtype=np.float32)[c] for c in shuffled], axis=1)
        sums = (Z.T @ hot).reshape(Z.shape[1], stop - start, len(shares))
        out[start:stop] = (sums.astype(np.float64) ** 2 / shares).sum(axis=(0, 2)) / len(code) ** 2
    return out


def _permute_within_strata(code: Array, stratum: Array, rng: np.random.Generator) -> Array:
    """Permute codes (n,) randomly within strata (n,)."""
    if stratum[0] == stratum[-1]:
        return rng.permutation(code)
    return np.asarray(code[np.lexsort((rng.random(len(code)), stratum))])


def _make_fourier_features(Z: Array, rng: np.random.Generator) -> Array:
    """Return random Fourier features of a Gaussian kernel."""
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
