"""Lower confidence bounds, from the log alone, of a policy's and a simple rule's gains over a mix of levels.

The gain of an option is measured against the best uniform mix at the option's own spend. With 95 % confidence the gains of *all*
options lie above their bounds, so the bound of the chosen one holds after choosing (PoLeCe, arXiv 2502.10653). A bound
reaches q standard errors below the estimate, q the 95 % quantile of the largest of the options' correlated errors, drawn by a
multiplier bootstrap over rows or clusters. It never lies above the lower end of the option's own 95 % interval, which also
allows for long tails: bound and interval agree. The mix of each fold is chosen on the other folds, as the plan and the rule
are, so that none of them is judged by the rows that chose it. Where costs are not certain, gains allow for errors of the spends.

The *guaranteed value* needs no approximation at all: see `stats.bound_mean_from_below`. It exists where the log gives its propensities
and responses lie between 0 and 1.
"""

from __future__ import annotations

import numpy as np

from largesse.evaluation.estimators import compute_weighted_mean, make_response_rows
from largesse.evaluation.frontier_estimate import find_band_critical_value, sum_by_unit
from largesse.evaluation.one_column_rule import OneColumnRulesByFold
from largesse.evaluation.policy_estimates import (
    compare_with_best_mix,
    estimate_from_influence,
    estimate_from_policy_influence,
    estimate_level_means,
    measure_policy_influence,
)
from largesse.records import Array, Estimate, Log, PolicyGainBounds, PolicyOption, Scores
from largesse.stats import COVERAGE, bound_mean_from_below


def bound_policy_gains(
    log: Log,
    scores: Scores,
    policy: Array,
    rules: OneColumnRulesByFold | None,
    *,
    estimator: str = "dr",
    learnt: bool = False,
) -> PolicyGainBounds:
    """Find lower bounds, from the log alone, of a policy's and a simple rule's gains over the best mix of levels.

    Parameters
    ----------
    log, scores
        The log and its cross-fitted scores.
    policy
        Levels (n,) or probabilities (n, K) for the log's rows.
    rules
        Simple rules at the same spend, from `learn_one_column_rules`, or None.
    estimator
        The name of one of `ESTIMATORS`.
    learnt
        Whether the policy was learnt on this log, each fold on the others.
    """
    folds = len(np.unique(scores.fold))
    names, policies = [("this plan", "a level for every customer")], [policy]
    if rules is not None:
        names.append(("a simple rule", rules.whole.describe(log.levels)))
        policies.append(rules.policy)
    influences = [measure_policy_influence(scores, option, estimator) for option in policies]
    means = estimate_level_means(scores)
    compared = [compare_with_best_mix(scores, influence, estimator, means) for influence in influences]
    gains = [gain for *_, gain in compared]
    contributions = [
        sum_by_unit(scores, gain.values - compute_weighted_mean(gain.values, scores.weight)) for gain in gains
    ]
    critical_value = find_band_critical_value(np.stack(contributions, axis=1), one_sided=True)
    reason = _explain_no_guarantee(log)
    options = []
    for name, option, influence, influence_of_gain in zip(names, policies, influences, gains, strict=True):
        gain = estimate_from_influence(scores, influence_of_gain)
        policy_folds = folds if learnt or option is not policy else 1
        profit = (
            None
            if log.response_value is None
            else estimate_from_influence(scores, influence.measure_profit_influence(log.response_value))
        )
        guaranteed = None if reason else _bound_value_from_below(scores, option, policy_folds, len(policies))
        bound = _bound_gain(gain, critical_value)
        options.append(
            PolicyOption(*name, *estimate_from_policy_influence(scores, influence), gain, bound, guaranteed, profit)
        )
    table = None if rules is None else rules.whole.tabulate()
    return PolicyGainBounds(tuple(options), critical_value, reason, table)


def _explain_no_guarantee(log: Log) -> str:
    if log.propensity is None:
        return "There is no guaranteed value: it needs the propensities, and the log does not give them."
    if log.response.min() < 0 or log.response.max() > 1:
        return "There is no guaranteed value: it needs responses with a largest possible value, such as yes or no."
    return ""


def _bound_gain(gain: Estimate, critical_value: float) -> float | None:
    return float(min(gain.low, gain.estimate - critical_value * gain.se)) if np.isfinite(gain.low) else None


def _bound_value_from_below(scores: Scores, policy: Array, parts: int, options: int) -> float:
    """Return a lower confidence bound of a policy's value from importance-weighted responses."""
    rows = make_response_rows(scores, policy)
    terms = np.maximum(rows.ratio * rows.outcome, 0.0)
    return bound_mean_from_below(
        terms, scores.weight, scores.cluster, coverage=1 - (1 - COVERAGE) / options, parts=parts
    )
