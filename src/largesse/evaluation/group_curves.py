"""Response curves of groups of customers, and the rows of the log behind them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from largesse.evaluation.estimates import score_policy
from largesse.evaluation.overlap import count_effective
from largesse.evaluation.targeting import SAMPLE, choose_features
from largesse.records import Array, FeatureCurves, GroupCurve, GroupPoint, Log, Scores

MAX_FEATURES = 2


def trace_features(log: Log, scores: Scores, levels: Array) -> tuple[FeatureCurves, ...]:
    """Return the curves of groups, by the features that planned levels (n,) go with most."""
    seen, step = log.seen, max(-(-len(log.seen) // SAMPLE), 1)
    places = np.arange(0, len(seen), step)
    rows, features = places, seen.features if step == 1 else seen.features.take(places)
    if log.sample is not None:  # rows of a sample have weights that make up for how they were drawn
        rows, weight = log.sample.rows[places], np.zeros(len(scores.weight))
        weight[log.sample.rows] = seen.weights
        scores = replace(scores, weight=weight)
    traced = []
    for shown in choose_features(features, levels[rows])[:MAX_FEATURES]:
        codes, labels = shown.grouping.code(features.column(shown.feature)), shown.grouping.labels
        curves, sizes = trace_groups(scores, rows, codes, len(labels)), np.bincount(codes, minlength=len(labels))
        groups = zip(labels, sizes.tolist(), curves, strict=True)
        traced.append(
            FeatureCurves(
                shown.feature, tuple(GroupCurve(label, n, tuple(points)) for label, n, points in groups if points)
            )
        )
    return tuple(traced)


def trace_groups(scores: Scores, rows: Array, groups: Array, many: int) -> list[list[GroupPoint]]:
    """Return the mean response at every level (K) in each of `many` groups.

    Parameters
    ----------
    scores
        Cross-fitted scores of a log.
    rows, groups
        (m,) rows of the log, and the group that each belongs to: numbers from zero.
    many
        How many groups there are. One that no row belongs to has no numbers.

    Examples
    --------
    >>> from largesse.evaluation import crossfit
    >>> from largesse.worlds import simulate
    >>> log = simulate("averaged", n=500, seed=1).log
    >>> found = trace_groups(crossfit(log), np.arange(500), np.arange(500) % 2, 2)
    >>> len(found), len(found[0]), sum(point.rows for group in found for point in group)
    (2, 5, 500)
    """
    K = scores.curves.shape[1]
    found: list[list[GroupPoint]] = [[] for _ in range(many)]
    for k in range(K):
        value, _ = score_policy(scores, np.full(len(scores.level), k, dtype=np.int64))
        for group in range(many):
            mine = rows[groups == group]
            weight, had = scores.weight[mine], mine[scores.level[mine] == k]
            cluster = None if scores.cluster is None else scores.cluster[mine]
            if len(mine) and weight.sum() > 0:
                model = float(weight @ scores.curves[mine, k] / weight.sum())
                estimate = value.among(mine).estimate(weight, cluster)
                effective = count_effective(scores.weight[had] / scores.propensity[had])
                found[group].append(GroupPoint(model, estimate, len(had), effective))
    return found
