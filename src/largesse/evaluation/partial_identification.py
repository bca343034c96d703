"""Bounds of a plan's value where the plan gives levels that the log does not support.

A customer's response at such a level is at least that at the nearest cheaper level with support, and at most that at the nearest
dearer one; without such a level, it is between the smallest and the largest response of the log. Intervals are widened to both ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from largesse.errors import percent
from largesse.evaluation.estimators import compute_weighted_mean, is_level_array, restrict_policy_to_support
from largesse.records import Array, Estimate, Evaluation, Finding, Reference, Scores


def widen_for_unsupported_levels(
    scores: Scores, policy: Array, evaluation: Evaluation, supported: Array | None
) -> Evaluation:
    """Widen the intervals of an evaluation by the bounds for unsupported levels.

    An evaluation of a policy that gives none of them is returned as it is.
    """
    if supported is None:
        return evaluation
    share = compute_weighted_mean(_find_unsupported_probabilities(scores, policy, supported).sum(axis=1), scores.weight)
    if share <= 0:
        return evaluation
    low, high = find_value_bounds(scores, policy, supported)
    text = (
        f"The plan gives {percent(share)} of the customers a level that their kind never got. Nothing says what it brings: the "
        "intervals reach from the response at the next cheaper level to that at the next dearer one, or to the ends of all responses."
    )
    return replace(
        evaluation,
        value_interval=(evaluation.value_interval[0] + low, evaluation.value_interval[1] + high),
        references=_widen_references(evaluation.references, low, high),
        uniform=_widen_references(evaluation.uniform, low, high),
        warnings=(Finding("support", "careful", text), *evaluation.warnings),
    )


def find_value_bounds(scores: Scores, policy: Array, supported: Array) -> tuple[float, float]:
    """Return the distances from a policy's value to its lower and upper bound, due to unsupported levels."""
    guessed = _find_unsupported_probabilities(scores, policy, supported)
    low, high = (
        compute_weighted_mean((guessed * (end - scores.gamma)).sum(axis=1), scores.weight)
        for end in _bound_unsupported_scores(scores, supported)
    )
    return min(low, 0.0), max(high, 0.0)


def _find_unsupported_probabilities(scores: Scores, policy: Array, supported: Array) -> Array:
    """Return a policy's probabilities (n, K) of unsupported levels, with zeros elsewhere."""
    policy = restrict_policy_to_support(scores, policy)
    K = supported.shape[1]
    probability = np.eye(K)[policy] if is_level_array(policy) else np.broadcast_to(policy, supported.shape)
    return np.asarray(probability * ~supported)


def _bound_unsupported_scores(scores: Scores, supported: Array) -> tuple[Array, Array]:
    """Return lower and upper bounds (n, K) of the scores of unsupported levels."""
    low, high = scores.gamma.copy(), scores.gamma.copy()
    least, most = float(scores.response.min()), float(scores.response.max())
    for k in range(low.shape[1]):
        below = low[:, k - 1] if k else least
        low[:, k] = np.where(supported[:, k], low[:, k], below)
    for k in reversed(range(high.shape[1])):
        above = high[:, k + 1] if k + 1 < high.shape[1] else most
        high[:, k] = np.where(supported[:, k], high[:, k], above)
    return low, high


def _widen_references(references: Sequence[Reference], low: float, high: float) -> tuple[Reference, ...]:
    def widen(estimate: Estimate) -> Estimate:
        return replace(estimate, low=estimate.low + low, high=estimate.high + high)

    return tuple(replace(reference, difference=widen(reference.difference)) for reference in references)
