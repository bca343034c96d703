"""Bounds of the value of a plan that gives levels without support, about which the log is silent.

A customer's response at such a level is at least that at the nearest supported level, which costs no more, and at most the largest
response of the log. Intervals are widened to both ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from largesse.allocation import copy_options, replace_options
from largesse.errors import percent
from largesse.evaluation.estimators import gives_levels, weighted_mean
from largesse.records import Array, Estimate, Evaluation, Finding, Reference, Scores


def bound_unsupported(scores: Scores, policy: Array, evaluation: Evaluation, supported: Array | None) -> Evaluation:
    """Return an evaluation whose intervals allow for levels without support, by a mask (n, K) of the supported ones.

    An evaluation of a policy that gives none of them is returned as it is.
    """
    if supported is None or scores.allowed is not None:
        return evaluation
    probability = (
        np.eye(scores.gamma.shape[1])[policy] if gives_levels(policy) else np.broadcast_to(policy, supported.shape)
    )
    guessed = probability * ~supported
    share = weighted_mean(guessed.sum(axis=1), scores.weight)
    if share <= 0:
        return evaluation
    lowest = copy_options(scores.gamma, replace_options(supported))
    ends = (lowest, np.broadcast_to(scores.response.max(), lowest.shape))
    low, high = (weighted_mean((guessed * (end - scores.gamma)).sum(axis=1), scores.weight) for end in ends)
    low, high = min(low, 0.0), max(high, 0.0)
    text = (
        f"The plan gives {percent(share)} of the customers levels that their kind never got. Nothing says what these bring: the "
        f"intervals reach from no more than a supported level brings to the largest response of the log."
    )
    return replace(
        evaluation,
        value_interval=(evaluation.value_interval[0] + low, evaluation.value_interval[1] + high),
        references=_widen(evaluation.references, low, high),
        uniform=_widen(evaluation.uniform, low, high),
        warnings=(Finding("support", "careful", text), *evaluation.warnings),
    )


def _widen(references: Sequence[Reference], low: float, high: float) -> tuple[Reference, ...]:
    def widen(estimate: Estimate) -> Estimate:
        return replace(estimate, low=estimate.low + low, high=estimate.high + high)

    return tuple(replace(reference, difference=widen(reference.difference)) for reference in references)
