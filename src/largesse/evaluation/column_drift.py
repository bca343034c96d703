"""Drift of columns between two tables: population stability index and two-sample tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from largesse.data import convert_to_floats, find_feature_kind, find_grouping_rule
from largesse.records import Array, ColumnDrift
from largesse.stats import sample_rows

if TYPE_CHECKING:
    import pyarrow as pa

N_GROUPS = 10
MAX_DRIFT_ROWS = 100_000  # more rows would only show changes too small to matter


def measure_column_drifts(
    before: pa.Table, after: pa.Table, clusters: tuple[Array | None, Array | None] = (None, None), seed: int = 0
) -> tuple[ColumnDrift, ...]:
    """Measure the drift of every common column of two tables, sorted by size.

    Rows of one cluster (n,) are not independent: one row of each is used. The p-value of a column is that of its groups (χ²) or, for
    numbers, twice the smaller one of χ² and Kolmogorov-Smirnov; all are multiplied by the number of columns (Bonferroni).
    """
    before, after = (
        _sample_one_row_per_cluster(table, cluster, seed)
        for table, cluster in zip((before, after), clusters, strict=True)
    )
    names = [name for name in before.column_names if name in after.column_names]
    drifts = []
    for name in names:
        psi, p = _compare_columns(before.column(name), after.column(name))
        drifts.append(ColumnDrift(name, psi, min(p * len(names), 1.0)))
    return tuple(sorted(drifts, key=lambda drift: (-drift.psi, drift.column)))


def _sample_one_row_per_cluster(table: pa.Table, cluster: Array | None, seed: int) -> pa.Table:
    """Return one row per cluster, or a random sample of a large table."""
    rows = np.arange(len(table))
    if cluster is not None:
        order = np.random.default_rng(seed).permutation(len(table))
        _, first = np.unique(cluster[order], return_index=True)
        rows = np.sort(order[first])
    rows = rows[sample_rows(len(rows), MAX_DRIFT_ROWS, seed)]
    return table if len(rows) == len(table) else table.take(rows)


def _compare_columns(before: pa.ChunkedArray, after: pa.ChunkedArray) -> tuple[float, float]:
    """Return a column's population stability index between two tables, and the p-value of equal distributions."""
    if find_feature_kind(before.type) != find_feature_kind(after.type):
        return float("inf"), 0.0
    grouping = find_grouping_rule(before, N_GROUPS)
    codes = grouping.assign_groups(before), grouping.assign_groups(after)
    counts = np.stack([np.bincount(code, minlength=len(grouping.labels)) for code in codes])
    counts = counts[:, counts.sum(axis=0) > 0]
    p = _test_equal_distribution(counts)
    if find_feature_kind(before.type) == "number":
        from scipy.stats import ks_2samp

        old, new = (values[np.isfinite(values)] for values in map(convert_to_floats, (before, after)))
        if len(old) and len(new):
            p = min(2 * min(p, float(ks_2samp(old, new, method="asymp").pvalue)), 1.0)
    return _measure_psi(counts), p


def _test_equal_distribution(counts: Array) -> float:
    """Return the p-value of equal distributions, given group counts (2, groups) of two samples."""
    from scipy.special import chdtrc

    if counts.shape[1] < 2:
        return 1.0
    # The χ² distribution needs groups of some size: small ones are merged.
    few = counts.sum(axis=0) < 10
    if few.any():
        counts = np.column_stack([counts[:, ~few], counts[:, few].sum(axis=1)])
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    statistic = float(((counts - expected) ** 2 / np.maximum(expected, 1e-300)).sum())
    return float(chdtrc(max(counts.shape[1] - 1, 1), statistic)) if counts.shape[1] > 1 else 1.0


def _measure_psi(counts: Array) -> float:
    """Return the population stability index of group counts, minus its expectation without a change."""
    shares = (counts + 0.5) / (counts.sum(axis=1, keepdims=True) + 0.5 * counts.shape[1])
    raw = float(((shares[1] - shares[0]) * np.log(shares[1] / shares[0])).sum())
    return max(raw - (counts.shape[1] - 1) * float((1 / counts.sum(axis=1)).sum()), 0.0)
