"""Bootstrap intervals: the estimate is repeated on resampled clusters (or rows) of the log.

An estimate needs only sums over each cluster, so rows are summed once and a replicate is one weighted sum over clusters.
Counts of drawn clusters are multinomial. With very many clusters each count is drawn separately, from 0 to 5, by a Poisson
law rounded to 256 parts with mean and variance exactly one: one byte each, an eighth of the work.
"""

from __future__ import annotations

import numpy as np

from largesse.evaluation.estimators import EstimateTerms
from largesse.records import Array, Estimate
from largesse.stats import COVERAGE

N_REPLICATES = 1000
MAX_MULTINOMIAL_CLUSTERS = 20_000
POISSON_PARTS = (94, 95, 46, 16, 4, 1)  # of 256: frequencies of 0, 1, … 5
_POISSON_CHANGES = np.repeat(np.arange(len(POISSON_PARTS), dtype=np.float32), POISSON_PARTS) - 1


def bootstrap_estimate(
    terms: EstimateTerms,
    weight: Array | None = None,
    cluster: Array | None = None,
    *,
    replicates: int = N_REPLICATES,
    seed: int = 0,
) -> Estimate:
    """Return an estimate with its bootstrap standard error and its central 95 % bootstrap interval."""
    first = terms.plain if terms.plain is not None else terms.top
    assert first is not None
    weight = np.ones(len(first)) if weight is None else weight
    sums = sum_clusters([terms.plain, terms.top, terms.bottom], weight, cluster)
    estimate = _compute_replicates(sums.sum(axis=0)[None])[0]
    replicated = _compute_replicates(resample_cluster_sums(sums, replicates, seed))
    low, high = np.quantile(replicated, [0.5 - COVERAGE / 2, 0.5 + COVERAGE / 2])
    return Estimate(float(estimate), float(np.std(replicated, ddof=1)), float(low), float(high))


def sum_clusters(columns: list[Array | None], weight: Array, cluster: Array | None) -> Array:
    """Return each cluster's sum of the weights and of the weighted columns (clusters, 1 + columns)."""
    weighted = [weight, *(np.zeros(len(weight)) if column is None else weight * column for column in columns)]
    if cluster is not None:
        _, code = np.unique(cluster, return_inverse=True)
        weighted = [np.bincount(code, weights=column) for column in weighted]
    return np.column_stack(weighted)


def resample_cluster_sums(sums: Array, replicates: int, seed: int = 0) -> Array:
    """Return the sums (replicates, m) over resampled clusters, given the sums (clusters, m) of all clusters."""
    rng = np.random.default_rng(seed)
    used = np.flatnonzero(sums.any(axis=0))
    # Only the changes of a draw are summed: they are small compared with the sums, so single precision suffices.
    columns = np.ascontiguousarray(sums[:, used].T, dtype=np.float32)
    out = np.tile(sums.sum(axis=0), (replicates, 1))
    for j in range(replicates):
        out[j, used] += columns @ _draw_cluster_counts(len(sums), rng)
    return out


def _draw_cluster_counts(clusters: int, rng: np.random.Generator) -> Array:
    """Return the number of draws of each cluster in one bootstrap replicate, minus one (clusters,)."""
    if clusters <= MAX_MULTINOMIAL_CLUSTERS:
        return (np.bincount(rng.integers(clusters, size=clusters), minlength=clusters) - 1).astype(np.float32)
    return _POISSON_CHANGES[np.frombuffer(rng.bytes(clusters), dtype=np.uint8)]


def _compute_replicates(sums: Array) -> Array:
    """Return the estimate of each bootstrap replicate (replicates,) from its sums (replicates, 4)."""
    whole, plain, top, bottom = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        return plain / whole + np.where(bottom == 0, 0.0, top / bottom)
