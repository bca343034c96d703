"""Does choosing who gets what pay, over all budgets at once? The cost curve of learnt policies against the best uniform mix.

At every budget the learnt policy is compared with the best mixture of levels, the same for everybody, at the same
spend. The area between the two curves, divided by the range of spends, is what choosing gains on average over all
budgets: the Qini measure for several levels with costs.
"""

from __future__ import annotations

import numpy as np

from largesse.evaluation.band import usual_budgets
from largesse.evaluation.value import best_mix, learnt_levels, policy_scores
from largesse.records import Array, Qini, QiniPoint, Scores
from largesse.stats import mean_estimate


def qini(scores: Scores, budgets: Array | None = None, estimator: str = "dr") -> Qini:
    """Return gains over the cheapest plan at each spend, learnt and uniform, and the area between them."""
    budgets = usual_budgets(scores) if budgets is None else budgets
    weight, cluster = scores.weight, scores.cluster
    start = policy_scores(scores, learnt_levels(scores, float(budgets[0])), estimator)
    points, gaps = [], []
    for budget in budgets:
        value, spend = policy_scores(scores, learnt_levels(scores, float(budget)), estimator)
        paid = float(weight @ spend / weight.sum())
        mix = best_mix(scores, paid)
        other, cost = policy_scores(scores, mix, estimator)
        # At the same spend: where spends are themselves estimated, what the difference between them would buy is taken off.
        gap = value - other - _slope(scores, mix) * (spend - cost)
        gain = mean_estimate(value - start[0], weight, cluster)
        mixed = mean_estimate(other - start[0], weight, cluster)
        points.append(
            QiniPoint(float(budget), paid, gain, mixed.estimate, mean_estimate(gap, weight, cluster)),
        )
        gaps.append(gap)
    share = _trapezoid(np.array([point.spend for point in points]))
    area = mean_estimate(
        sum((s * gap for s, gap in zip(share, gaps, strict=True)), np.zeros(len(weight))), weight, cluster
    )
    return Qini(tuple(points), area)


def _slope(scores: Scores, mix: Array) -> float:
    """Return what one more unit of spend brings along the uniform mix; 0 where it is a single level."""
    used = np.flatnonzero(mix)
    if len(used) < 2:
        return 0.0
    weight = scores.weight / scores.weight.sum()
    value, cost = weight @ scores.gamma[:, used], weight @ scores.costs[:, used]
    return float((value[-1] - value[0]) / (cost[-1] - cost[0]))


def _trapezoid(spend: Array) -> Array:
    """Return the share of each point in the mean over the range of spends, by the trapezoidal rule."""
    steps = np.maximum(np.diff(spend), 0.0)
    if steps.sum() == 0:
        return np.full(len(spend), 1.0 / len(spend))
    share: Array = (np.append(steps, 0.0) + np.insert(steps, 0, 0.0)) / 2
    return share / steps.sum()
