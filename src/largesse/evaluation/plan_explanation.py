"""Explanation of a held-out plan: typical customers, sensitivity to the shadow price, feature importance.

*Changes.* The customers to whom the plan gives a level are chosen by features alone, so their gain has a doubly robust
estimate: the mean over all rows of (score of the plan's level − response) where the plan gives that level, else zero. Those of
all levels add up to the plan's value minus that of the logged levels.

The customers who *had* a level are not chosen by features alone. Rows tell how many move from one level to another; the gain of
such a move is the model's out-of-fold prediction.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from largesse.allocation import copy_supported_values, decide_at_price, expected_costs, map_to_supported_levels
from largesse.evaluation.estimators import is_level_array, restrict_policy_to_support
from largesse.evaluation.policy_estimates import (
    estimate_from_influence,
    estimate_from_policy_influence,
    estimate_policy_difference,
    measure_level_influence,
    measure_logged_influence,
    measure_policy_influence,
    select_score_rows,
)
from largesse.records import (
    Array,
    DecisionExample,
    DecisionReasons,
    FeatureDecisionImportance,
    HeldOutPlan,
    LevelGain,
    LevelTransition,
    Log,
    LoggedPolicyChanges,
    PriceSensitivity,
    Scores,
    ShuffledPredictions,
    ValueAndSpend,
    find_neighbouring_levels_and_prices,
)

MAX_EXPLAINED_ROWS = 50_000  # a systematic sample of larger logs
PRICE_CHANGES = (-0.25, -0.1, 0.1, 0.25)


def explain_decisions(
    log: Log, scores: Scores, plan: HeldOutPlan, shuffled: ShuffledPredictions | None = None
) -> DecisionReasons:
    """Explain a held-out plan by example customers, sensitivity to the shadow price, and feature importance.

    Curves are out-of-fold, and prices those of the fold's plan. `shuffled` holds the curves of
    rows with shuffled features; without it, no importance is measured.
    """
    movers = () if shuffled is None else measure_decision_importance(log, scores, plan, shuffled)
    rows = np.arange(0, len(scores.level), max(-(-len(scores.level) // MAX_EXPLAINED_ROWS), 1))
    known, price, scale = _select_fold_prices(scores, plan, rows)
    if not known.any():
        return DecisionReasons(movers=movers)
    rows = rows[known]
    curves, costs = scores.curves[rows], scores.expected_costs[rows] * scale[:, None]
    sample = select_score_rows(scores, rows)
    levels, weight = _choose_best_levels(sample, curves, costs, price), sample.weight
    examples = []
    for k in np.unique(levels):
        at_level = levels == k
        row = _find_typical_row(curves, np.flatnonzero(at_level), weight)
        share = float(weight[at_level].sum() / weight.sum())
        examples.append(_make_example(log, int(k), share, float(price[row]), curves[row], costs[row]))
    moves = tuple(
        PriceSensitivity(
            change,
            float(
                weight[_choose_best_levels(sample, curves, costs, price * (1 + change)) != levels].sum() / weight.sum()
            ),
        )
        for change in PRICE_CHANGES
        if price.any()
    )
    return DecisionReasons(tuple(examples), moves, movers)


def _select_fold_prices(scores: Scores, plan: HeldOutPlan, rows: Array) -> tuple[Array, Array, Array]:
    """Return a mask of the rows whose fold has a shadow price, with these rows' prices and cost corrections."""
    fold = np.unique(scores.fold, return_inverse=True)[1][rows]
    known = np.isfinite(plan.prices[fold])
    scale = np.ones(len(plan.prices)) if plan.scales is None else plan.scales
    return known, plan.prices[fold[known]], scale[fold[known]]


def _choose_best_levels(sample: Scores, curves: Array, costs: Array, price: Array) -> Array:
    """Return the best supported level (n,) of each row at the shadow price of the row's fold.

    A price is the value of a unit of cost: costs times prices are decided at a price of one.
    """
    return restrict_policy_to_support(sample, decide_at_price(curves, costs * price[:, None], 1.0))


def _find_typical_row(curves: Array, rows: Array, weight: Array) -> int:
    """Return the row whose response curve is nearest to the mean curve of some rows."""
    part = curves[rows]
    mean = np.average(part, axis=0, weights=weight[rows]) if weight[rows].any() else part.mean(axis=0)
    return int(rows[((part - mean) ** 2).sum(axis=1).argmin()])


def _make_example(log: Log, level: int, share: float, price: float, curve: Array, costs: Array) -> DecisionExample:
    labels = log.levels.titles
    dearer, below, cheaper, above = (
        part[0] for part in find_neighbouring_levels_and_prices(curve[None], costs[None], np.array([level]))
    )
    return DecisionExample(
        level=labels[level],
        share=share,
        price=price,
        curve=tuple(curve.tolist()),
        costs=tuple(costs.tolist()),
        dearer=None if dearer < 0 else labels[int(dearer)],
        below=None if math.isnan(below) else float(below),
        cheaper=None if cheaper < 0 else labels[int(cheaper)],
        above=None if math.isnan(above) else float(above),
    )


def measure_decision_importance(
    log: Log, scores: Scores, plan: HeldOutPlan, shuffled: ShuffledPredictions
) -> tuple[FeatureDecisionImportance, ...]:
    """Measure each feature's permutation importance for the decisions of a held-out plan.

    Rows are decided at the price of their fold's plan. Where costs are observed, their expectations are not shuffled.
    """
    known, price, scale = _select_fold_prices(scores, plan, shuffled.rows)
    rows = shuffled.rows[known]
    if not len(rows):
        return ()
    sample = select_score_rows(scores, rows)
    worth = replace(sample, gamma=sample.gamma - price[:, None] * sample.costs)

    supported = None if sample.allowed is None else map_to_supported_levels(sample.allowed)

    def decide(curves: Array) -> Array:
        curves, costs = curves.astype(np.float64), sample.expected_costs
        if not log.levels.observed:
            own = None if log.costs is None else log.costs[rows]
            costs = np.broadcast_to(expected_costs(log.levels, curves, own), curves.shape)
            costs = copy_supported_values(costs, supported)
        return _choose_best_levels(sample, copy_supported_values(curves, supported), costs * scale[:, None], price)

    levels, movers = decide(sample.curves.astype(np.float32)), []
    for feature, curves in zip(shuffled.features, shuffled.curves[:, known], strict=True):
        others = decide(curves)
        moved = float(np.average(others != levels, weights=sample.weight)) if sample.weight.any() else 0.0
        movers.append(
            FeatureDecisionImportance(feature, moved, estimate_policy_difference(worth, levels, others).value)
        )
    return tuple(sorted(movers, key=lambda mover: (-mover.moved, -mover.loss.estimate)))


# -- changes from the logged levels -----------------------------------------------------------------------------------


def measure_changes_from_logged_levels(scores: Scores, policy: Array) -> LoggedPolicyChanges:
    """Estimate the change in value and spend from the logged levels to a policy, by level.

    >>> from largesse.evaluation import crossfit_scores
    >>> from largesse.worlds import simulate
    >>> log = simulate("averaged", n=500, seed=1).log
    >>> changes = measure_changes_from_logged_levels(crossfit_scores(log), np.full(500, 3))
    >>> [change.level for change in changes.levels], sum(move.rows for move in changes.moves)
    ([3], 500)
    """
    after, before = measure_policy_influence(scores, policy), measure_logged_influence(scores)
    levels = policy if is_level_array(policy) else np.argmax(policy, axis=1)
    whole, changes = float(scores.weight.sum()), []
    for level in range(scores.curves.shape[1]):
        probability = (levels == level).astype(np.float64) if levels is policy else policy[:, level]
        if probability.any():
            more = measure_level_influence(scores, level).minus(before)
            value, spend = (estimate_from_influence(scores, part.mask_other_rows(probability)) for part in more)
            changes.append(LevelGain(level, float(scores.weight @ probability) / whole, value, spend))
    start, end = (ValueAndSpend(*estimate_from_policy_influence(scores, policy)) for policy in (before, after))
    return LoggedPolicyChanges(start, end, tuple(changes), _list_level_transitions(scores, levels))


def _list_level_transitions(scores: Scores, levels: Array) -> tuple[LevelTransition, ...]:
    """Return the number of customers for each change of level, with their expected gain and cost."""
    K, rows, weight = scores.curves.shape[1], np.arange(len(levels)), scores.weight
    cell = scores.level.astype(np.int64) * K + levels
    counts = np.bincount(cell, minlength=K * K)
    sizes = np.bincount(cell, weights=weight, minlength=K * K)
    means = []
    for table in (scores.curves, scores.expected_costs):
        gained = table[rows, levels] - table[rows, scores.level]
        means.append(np.bincount(cell, weights=weight * gained, minlength=K * K) / np.maximum(sizes, 1e-300))
    return tuple(
        LevelTransition(
            k // K, k % K, int(counts[k]), float(sizes[k] / weight.sum()), float(means[0][k]), float(means[1][k])
        )
        for k in np.flatnonzero(counts).tolist()
    )
