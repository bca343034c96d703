"""Comparison of levels within customers who received several levels, and among all rows.

Customers who buy more may get more: then levels look effective though they change nothing. A regression of the response on the level
and the features, with an effect of each customer, compares rows of the same customer alone: whatever stays the same about a customer
falls out, recorded or not. Where nothing but the features decided the levels, it agrees with the weighted means of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.propensity import PropensityFeatures
from largesse.records import MIN_LEVEL_ROWS, Array, Estimate, Log, WithinCustomerComparison
from largesse.stats import effective_sample_size, t_quantile

MIN_SWITCHING_GROUPS = 30  # customers with several levels
MIN_WITHIN_VARIANCE = 1e-6  # of a feature's variance; others never change within customers
MAX_CONDITION = 1e10  # of the features: beyond it, some repeat others


@dataclass(frozen=True, eq=False)
class _RepeatedRows:
    """Rows of customers who have several rows: responses, level indicators, features and weights."""

    response: Array  # (m,)
    levels: Array  # (m, L) indicators
    X: Array  # (m, p)
    weight: Array  # (m,) divided by the propensity
    group: Array  # (m,) in 0..G−1, the customer
    cluster: Array  # (m,) in 0..C−1


def compare_levels_within_customers(
    log: Log, propensity: Array, features: PropensityFeatures
) -> WithinCustomerComparison | None:
    """Compare the levels within customers and among all rows; None if too few customers have several levels.

    `features` are those of the compared rows, with row numbers in the log. Without customers, rows are compared within clusters.
    """
    group = _number_customers_or_clusters(log)
    if group is None:
        return None
    group, level = group[features.rows], log.level[features.rows]
    several = np.bincount(group)[group] > 1
    if not several.any():
        return None
    chosen = features.rows[several]
    level, group = level[several], np.unique(group[several], return_inverse=True)[1]
    compared = [
        k
        for k in range(len(log.levels))
        if effective_sample_size((log.weights / propensity)[chosen][level == k]) >= MIN_LEVEL_ROWS
    ]
    if len(compared) < 2 or _count_groups_with_several_levels(group, level) < MIN_SWITCHING_GROUPS:
        return None
    kept = np.isin(level, compared)
    chosen, level, group = chosen[kept], level[kept], np.unique(group[kept], return_inverse=True)[1]
    share = np.bincount(level, minlength=len(log.levels)) / len(level)
    rows = _RepeatedRows(
        response=log.response[chosen],
        levels=(level[:, None] == compared[1:]).astype(np.float64),
        X=features.X[several][kept].astype(np.float64),
        weight=log.weights[chosen] * share[level] / propensity[chosen],
        group=group,
        cluster=group if log.cluster is None else np.unique(log.cluster[chosen], return_inverse=True)[1],
    )
    within, within_parts = _regress_within_groups(rows)
    among, among_parts = _compare_means_among_rows(rows)
    parts = among_parts - within_parts
    return WithinCustomerComparison(
        of="cluster" if log.last_rows is None else "customer",
        groups=_count_groups_with_several_levels(group, level),
        levels=tuple(compared),
        among=_estimate_level_effects(among, among_parts),
        within=_estimate_level_effects(within, within_parts),
        difference=_estimate_level_effects(among - within, parts),
        p=_test_zero_effects(among - within, parts),
    )


def _number_customers_or_clusters(log: Log) -> Array | None:
    """Return each row's customer number (n,), or its cluster number if no customer has several rows."""
    if log.last_rows is None:
        return log.cluster
    assert log.customer is not None
    return np.asarray(log.customer.dictionary_encode().indices, dtype=np.int64)


def _count_groups_with_several_levels(group: Array, level: Array) -> int:
    """Count the customers or clusters that received several levels."""
    pairs = np.unique(np.stack([group, level]), axis=1)
    return int((np.bincount(pairs[0]) > 1).sum())


def _regress_within_groups(rows: _RepeatedRows) -> tuple[Array, Array]:
    """Return the levels' effects (L,) within groups, and each cluster's influence (C, L) on the effects."""
    mass = np.bincount(rows.group, weights=rows.weight)

    def centre(values: Array) -> Array:
        sums = np.stack([np.bincount(rows.group, weights=rows.weight * column) for column in values.T], axis=1)
        return np.asarray(values - (sums / mass[:, None])[rows.group])

    D, y, X = centre(rows.levels), centre(rows.response[:, None])[:, 0], centre(rows.X)
    varies = (X**2).mean(axis=0) > MIN_WITHIN_VARIANCE * np.maximum(rows.X.var(axis=0), 1e-30)
    root = np.sqrt(rows.weight)[:, None]
    X = X[:, varies] / np.sqrt((X[:, varies] ** 2).mean(axis=0)) if varies.any() else X[:, :0]
    if X.shape[1]:  # the features are partialled out of levels and responses
        gram = (X * root**2).T @ X
        inverse = np.linalg.pinv(gram, rcond=1 / MAX_CONDITION, hermitian=True)
        D = D - X @ (inverse @ ((X * root**2).T @ D))
        y = y - X @ (inverse @ ((X * root**2).T @ y))
    bread = np.linalg.pinv((D * root**2).T @ D, rcond=1 / MAX_CONDITION, hermitian=True)
    effects = bread @ ((D * root**2).T @ y)
    return effects, _sum_influence_by_cluster((D * (rows.weight * (y - D @ effects))[:, None]) @ bread, rows.cluster)


def _compare_means_among_rows(rows: _RepeatedRows) -> tuple[Array, Array]:
    """Return the levels' weighted mean responses minus the first level's (L,), and each cluster's influence (C, L)."""
    first = 1 - rows.levels.sum(axis=1)
    scores, means = [], []
    for at_level in (first, *rows.levels.T):
        weight = rows.weight * at_level
        means.append(float(weight @ rows.response) / float(weight.sum()))
        scores.append(weight * (rows.response - means[-1]) / float(weight.sum()))
    parts = np.stack([score - scores[0] for score in scores[1:]], axis=1)
    return np.array(means[1:]) - means[0], _sum_influence_by_cluster(parts, rows.cluster)


def _sum_influence_by_cluster(parts: Array, cluster: Array) -> Array:
    return np.stack([np.bincount(cluster, weights=column) for column in parts.T], axis=1)


def _estimate_level_effects(effects: Array, parts: Array) -> tuple[Estimate, ...]:
    """Return the levels' effects (L,) with intervals, given each cluster's influence (C, L)."""
    clusters = len(parts)
    se = np.sqrt(clusters / (clusters - 1) * (parts**2).sum(axis=0))
    reach = t_quantile(clusters - 1) * se
    return tuple(
        Estimate(float(effect), float(s), float(effect - r), float(effect + r))
        for effect, s, r in zip(effects, se, reach, strict=True)
    )


def _test_zero_effects(effects: Array, parts: Array) -> float:
    """Return the p-value of Hotelling's test that all level effects (L,) are zero."""
    from scipy.stats import f

    clusters, L = parts.shape
    covariance = clusters / (clusters - 1) * parts.T @ parts
    statistic = float(effects @ np.linalg.pinv(covariance, hermitian=True) @ effects)
    freedom = clusters - L
    return float(f.sf(statistic * freedom / ((clusters - 1) * L), L, freedom)) if freedom > 0 else 1.0
