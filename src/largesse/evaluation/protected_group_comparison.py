"""Comparison of a plan's spend and gain between the groups of protected attributes, such as sex."""

from __future__ import annotations

import numpy as np

from largesse.data import find_grouping_rule
from largesse.evaluation.influence_functions import Influence
from largesse.evaluation.policy_estimates import (
    compare_with_best_mix,
    measure_level_influence,
    measure_policy_influence,
)
from largesse.records import Array, Estimate, Log, ProtectedAttribute, ProtectedGroup, Scores

MAX_PROTECTED_GROUPS = 5  # of a number; of a text, the most frequent words and all others


def compare_protected_groups(
    log: Log, scores: Scores, policy: Array, estimator: str = "dr"
) -> tuple[ProtectedAttribute, ...]:
    """Estimate a policy's spend and gain in each group of the protected attributes.

    >>> import pyarrow as pa
    >>> from dataclasses import replace
    >>> from largesse.evaluation import crossfit_scores
    >>> from largesse.worlds import simulate
    >>> log = replace(simulate("averaged", n=500, seed=1).log, protected=pa.table({"sex": ["f", "m"] * 250}))
    >>> found, = compare_protected_groups(log, crossfit_scores(log), np.arange(500) % 2)
    >>> found.column, [(group.label, group.rows, group.spend.estimate) for group in found.groups]
    ('sex', [('f', 250, 0.0), ('m', 250, 1.0)])
    """
    seen = log.seen
    if seen.protected is None:
        return ()
    places = np.arange(len(scores.weight)) if log.sample is None else log.sample.rows
    weight = scores.weight[places] if log.sample is None else seen.weights
    own = measure_policy_influence(scores, policy, estimator)
    extra, gain = (
        own.value - measure_level_influence(scores, 0, estimator).value,
        compare_with_best_mix(scores, own, estimator)[2],
    )

    def estimate(influence: Influence, members: Array) -> Estimate:
        rows = places[members]
        cluster = None if scores.cluster is None else scores.cluster[rows]
        return influence.select_rows(rows).estimate(weight[members], cluster)

    attributes = []
    for column in seen.protected.column_names:
        grouping = find_grouping_rule(seen.protected.column(column), MAX_PROTECTED_GROUPS)
        code, groups = grouping.assign_groups(seen.protected.column(column)), []
        for k, label in enumerate(grouping.labels):
            members = np.flatnonzero(code == k)
            if len(members) and weight[members].sum() > 0:
                share = float(weight[members].sum() / weight.sum())
                parts = (estimate(influence, members) for influence in (own.spend, extra, gain))
                groups.append(ProtectedGroup(label, len(members), share, *parts))
        attributes.append(ProtectedAttribute(column, tuple(groups)))
    return tuple(attributes)
