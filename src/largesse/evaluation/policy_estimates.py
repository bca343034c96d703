"""Off-policy estimates from a log's scores: a policy's value and spend, and comparisons with other policies.

A policy is levels (n,), or probabilities (n, K) or (K,), for the rows of the log. Every estimator averages the influence of
each row, so differences are paired and clusters are respected everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from largesse.allocation import mix_two_levels
from largesse.evaluation.bootstrap import bootstrap_estimate
from largesse.evaluation.estimators import (
    ESTIMATORS,
    EstimateTerms,
    EstimatorRows,
    compute_weighted_mean,
    is_level_array,
    make_cost_rows,
    make_response_rows,
    restrict_policy_to_support,
)
from largesse.evaluation.influence_functions import (
    Influence,
    NonzeroResponses,
    PolicyInfluence,
    find_nonzero_responses,
    make_estimator_influence,
    measure_estimator_influence,
    weigh_nonzero_outcomes,
)
from largesse.levels import Levels
from largesse.records import MIN_LEVEL_ROWS, Array, Comparison, Estimate, Reference, Scores
from largesse.stats import count_tail_rows_if_few

MIN_RATIO_BUYERS = 50
MAX_RATIO_DOUBLINGS = 12  # of the width by the delta method, beyond which an end counts as infinite
MIN_EXTRA_SPEND = 1e-9  # of the largest cost: less is a rounding error
MIN_RATIO_CLUSTERS = 20  # with 12 to 16, 95 % intervals of ratios covered .91 to .93, with 20 and more .94 to .97
INTERVAL_KINDS = ("influence", "bootstrap")
SCORE_BLOCK_ROWS = 1 << 18
MIN_NAMED_SHARE = 0.005  # a smaller share of a mix is a rounding error

# -- influence of rows ------------------------------------------------------------------------------------------------


def measure_policy_influence(scores: Scores, policy: Array, estimator: str = "dr") -> PolicyInfluence:
    """Return the rows' influence on a policy's estimated value and spend."""
    policy = restrict_policy_to_support(scores, policy)
    nonzero, known = find_nonzero_responses(scores.response), _are_costs_known(scores)
    nonzero_costs = None if known else _find_nonzero_costs(scores, nonzero)
    if estimator == "dr":  # its scores are already there
        value = make_estimator_influence(
            _average_scores(scores.gamma, policy), _weight_rows_without_curves(scores, policy, scores.response), nonzero
        )
        spend = _average_scores(scores.costs, policy)
        if (
            nonzero_costs is None or np.ptp(spend) == 0
        ):  # a plan that costs every customer the same needs no nonzero_costs
            return PolicyInfluence(value, Influence(spend))
        return PolicyInfluence(
            value,
            make_estimator_influence(spend, _weight_rows_without_curves(scores, policy, scores.paid), nonzero_costs),
        )
    value, paid = (
        measure_estimator_influence(make_response_rows(scores, policy), estimator, nonzero),
        make_cost_rows(scores, policy),
    )
    return PolicyInfluence(
        value, Influence(paid.direct) if known else measure_estimator_influence(paid, estimator, nonzero_costs)
    )


def measure_logged_influence(scores: Scores) -> PolicyInfluence:
    """Return the rows' influence on the logged policy's value and spend."""
    nonzero = find_nonzero_responses(scores.response)
    ones, unused = np.ones(len(scores.response)), np.zeros(len(scores.response))
    rows, paid = (
        EstimatorRows(unused, ones, unused, outcome, scores.weight) for outcome in (scores.response, scores.paid)
    )
    nonzero_costs = None if _are_costs_known(scores) else _find_nonzero_costs(scores, nonzero)
    return PolicyInfluence(
        make_estimator_influence(scores.response, rows, nonzero),
        make_estimator_influence(scores.paid, paid, nonzero_costs),
    )


def measure_level_influence(scores: Scores, level: int, estimator: str = "dr") -> PolicyInfluence:
    """Return the rows' influence on the value and the spend of one level for everyone."""
    return measure_policy_influence(scores, np.full(len(scores.level), level, dtype=np.int64), estimator)


def _average_scores(scores: Array, policy: Array) -> Array:
    """Return each row's mean score (n,) under a policy, given scores (n, K)."""
    out = np.empty(len(scores))
    for rows in _iterate_row_slices(len(out)):
        if is_level_array(policy):
            out[rows] = scores[np.arange(rows.start, rows.stop), policy[rows]]
        else:
            out[rows] = ((policy[rows] if policy.ndim == 2 else policy) * scores[rows]).sum(axis=1)
    return out


def _iterate_row_slices(rows: int) -> Iterator[slice]:
    return (slice(start, min(start + SCORE_BLOCK_ROWS, rows)) for start in range(0, rows, SCORE_BLOCK_ROWS))


def _are_costs_known(scores: Scores) -> bool:
    """Test if the cost of every row equals the expected cost of its level."""
    for rows in _iterate_row_slices(len(scores.level)):
        level = scores.level[rows]
        place = np.arange(len(level))
        differs = scores.paid[rows] != scores.expected_costs[rows][place, level]
        if scores.allowed is not None:  # a logged level without support has the costs of another
            differs &= scores.allowed[rows][place, level]
        if differs.any():
            return False
    return True


def _weight_rows_without_curves(scores: Scores, policy: Array, outcome: Array) -> EstimatorRows:
    """Compute the rows' importance ratios under a policy, without predictions."""
    if is_level_array(policy):
        ratio = (policy == scores.level) / scores.propensity
    elif policy.ndim == 1:
        ratio = policy[scores.level] / scores.propensity
    else:
        ratio = _average_scores(policy, scores.level) / scores.propensity
    unused = np.empty(0)
    return EstimatorRows(unused, ratio, unused, outcome, scores.weight)


def _find_nonzero_costs(scores: Scores, nonzero: NonzeroResponses | None) -> NonzeroResponses | None:
    """Return the rows with nonzero costs, if costs depend on responses."""
    if scores.paid_as == "observed":
        return find_nonzero_responses(scores.paid)
    return None if nonzero is None else nonzero.convert_to_costs(scores.face)


def count_if_few_nonzero_responses(scores: Scores, policy: Array) -> int | None:
    """Return the number of nonzero responses behind a policy's estimate if it is too small; otherwise None."""
    tail = weigh_nonzero_outcomes(make_response_rows(scores, policy), find_nonzero_responses(scores.response))
    return None if tail is None else count_tail_rows_if_few(tail)


# -- estimates --------------------------------------------------------------------------------------------------------


def estimate_from_influence(scores: Scores, influence: Influence) -> Estimate:
    """Convert influence values of a log's rows to the estimate with its interval."""
    return influence.estimate(scores.weight, scores.cluster)


def estimate_from_policy_influence(scores: Scores, influence: PolicyInfluence) -> tuple[Estimate, Estimate]:
    """Convert influence values of a log's rows to the estimates of value and spend, with intervals."""
    return estimate_from_influence(scores, influence.value), estimate_from_influence(scores, influence.spend)


def estimate_policy_value_and_spend(scores: Scores, policy: Array, estimator: str = "dr") -> tuple[Estimate, Estimate]:
    """Estimate a policy's value and spend, with confidence intervals."""
    return estimate_from_policy_influence(scores, measure_policy_influence(scores, policy, estimator))


def bootstrap_value_and_spend(
    scores: Scores, policy: Array, estimator: str = "dr", response_value: float | None = None, seed: int = 0
) -> tuple[Estimate, ...]:
    """Estimate a policy's value, spend and profit, with bootstrap intervals."""
    if estimator == "dr":
        terms = [
            EstimateTerms(_average_scores(scores.gamma, policy)),
            EstimateTerms(_average_scores(scores.costs, policy)),
        ]
    else:
        paid = make_cost_rows(scores, policy)
        make_terms = ESTIMATORS[estimator].terms
        # Known costs need no estimator.
        spend = make_terms(paid) if paid.residual.any() else EstimateTerms(paid.direct)
        terms = [make_terms(make_response_rows(scores, policy)), spend]
    if response_value is not None:
        value, spend = terms
        terms.append(
            EstimateTerms(
                _subtract_spend(value.plain, spend.plain, response_value),
                _subtract_spend(value.top, spend.top, response_value),
                value.bottom if value.bottom is not None else spend.bottom,  # the weights are the same for both
            )
        )
    return tuple(bootstrap_estimate(part, scores.weight, scores.cluster, seed=seed) for part in terms)


def _subtract_spend(value: Array | None, spend: Array | None, response_value: float) -> Array | None:
    if value is None:
        return None if spend is None else -spend
    return response_value * value if spend is None else response_value * value - spend


def estimate_policy_difference(
    scores: Scores, policy: Array, other: Array, estimator: str = "dr", other_scores: Scores | None = None
) -> Comparison:
    """Estimate the paired differences in value and spend between two policies.

    The other policy may have its own scores of the same rows.
    """
    other_influence = measure_policy_influence(scores if other_scores is None else other_scores, other, estimator)
    return Comparison(
        *estimate_from_policy_influence(
            scores, measure_policy_influence(scores, policy, estimator).minus(other_influence)
        )
    )


def estimate_ratio(scores: Scores, top: Influence, bottom: Influence) -> Estimate:
    """Return the ratio of two estimates with Fieller's interval; NaN if the denominator is zero.

    The interval holds every ratio r for which the interval of top − r × bottom includes zero. An end that is not bounded,
    because the denominator may be zero, is infinite. Where clusters are few, or buyers are few and spends have a long tail, there
    is no interval.
    """
    whole = scores.weight.sum()
    under = float(scores.weight @ bottom.values / whole)
    if abs(under) <= 1e-12 * max(float(np.abs(bottom.values).max()), 1.0):
        return Estimate(float("nan"), float("nan"), float("nan"), float("nan"))
    share = float(scores.weight @ top.values / whole) / under
    rest = (top + bottom * -share) * (1 / under)
    ratio = estimate_from_influence(scores, rest.shift(share))
    few = scores.cluster is not None and len(np.unique(scores.cluster)) < MIN_RATIO_CLUSTERS
    if bottom.tail is not None and rest.tail is not None:
        few |= bool(min(np.count_nonzero(rest.tail > 0), np.count_nonzero(rest.tail < 0)) < MIN_RATIO_BUYERS)
    if few or not np.isfinite(ratio.high - ratio.low):
        return replace(ratio, low=float("nan"), high=float("nan"))
    if ratio.high == ratio.low:
        return ratio
    sign = float(np.sign(under))
    return replace(ratio, **_find_ratio_ends(scores, top * sign, bottom * sign, ratio))


def _find_ratio_ends(scores: Scores, top: Influence, bottom: Influence, ratio: Estimate) -> dict[str, float]:
    """Return both ends of Fieller's interval around an estimated ratio.

    The mean of `bottom` is above zero, so that the difference falls in r.
    """
    from scipy.optimize import brentq

    ends, middle, width = {}, ratio.estimate, (ratio.high - ratio.low) / 2
    for name, opposite, side in (("low", "low", -1.0), ("high", "high", 1.0)):

        def difference_end(r: float, end: str = opposite) -> float:
            return float(getattr(estimate_from_influence(scores, top + bottom * -r), end))

        beyond = [middle + side * width * 2.0**k for k in range(MAX_RATIO_DOUBLINGS)]
        if middle * side < 0:  # a ratio of zero asks for the numerator alone, whatever the denominator is
            beyond.insert(0, 0.0)
        outside = next((r for r in beyond if side * difference_end(r) < 0), None)
        ends[name] = side * np.inf if outside is None else float(brentq(difference_end, outside, middle, rtol=1e-4))
    return ends


def estimate_cost_per_extra(scores: Scores, change: PolicyInfluence) -> Estimate | None:
    """Estimate the cost of one additional response, from the differences between two policies.

    None if the policy spends no more, or brings no more. Where it may bring no more, the interval has no upper end.
    """
    value, spend = estimate_from_policy_influence(scores, change)
    if not (value.estimate > 0 and spend.estimate > MIN_EXTRA_SPEND * max(float(np.abs(scores.paid).max()), 1e-300)):
        return None
    return estimate_ratio(scores, change.spend, change.value)


def estimate_each_level(scores: Scores, estimator: str = "dr") -> list[tuple[Estimate, Estimate]]:
    """Estimate value and spend of giving everyone the same level, for each level."""
    return [
        estimate_from_policy_influence(scores, measure_level_influence(scores, k, estimator))
        for k in range(scores.gamma.shape[1])
    ]


def predict_mean_response(curves: Array, policy: Array, weight: Array | None = None) -> float:
    """Return a policy's mean response as predicted by response curves (n, K)."""
    predicted = curves[np.arange(len(curves)), policy] if policy.ndim == 1 else (policy * curves).sum(axis=1)
    return compute_weighted_mean(predicted, weight)


# -- comparisons ------------------------------------------------------------------------------------------------------


def compare_references(
    scores: Scores, policy: PolicyInfluence, levels: Levels, estimator: str = "dr", response_value: float | None = None
) -> tuple[Reference, Reference]:
    """Compare a policy with the logged policy, and with the best mix of levels for all customers at its spend.

    Where costs are not certain, the difference from the mix allows for errors of both spends; see `measure_gain_influence`.
    """
    mixes, mixed, gain = compare_with_best_mix(scores, policy, estimator)
    name = (choose_mix_name(mixes.mean), describe_mix(mixes.mean, levels))
    logged = ("what was done before", "the levels in the log")
    return (
        _make_reference(scores, name, mixed, policy, response_value, gain),
        _make_reference(scores, logged, measure_logged_influence(scores), policy, response_value, priced=True),
    )


def compare_with_each_level(
    scores: Scores,
    policy: PolicyInfluence,
    cheapest: PolicyInfluence,
    levels: Levels,
    estimator: str = "dr",
    response_value: float | None = None,
) -> tuple[Reference, ...]:
    """Compare a policy with giving everyone the same level, for each level."""
    references = []
    for k, label in enumerate(levels.titles):
        uniform = measure_level_influence(scores, k, estimator) if k else cheapest
        named = (label, f"all get {label!r}")
        references.append(_make_reference(scores, named, uniform, policy, response_value, priced=k == 0))
    return tuple(references)


def _make_reference(
    scores: Scores,
    name: tuple[str, str],
    other: PolicyInfluence,
    policy: PolicyInfluence,
    response_value: float | None,
    gain: Influence | None = None,
    *,
    priced: bool = False,
) -> Reference:
    """Build the record of a reference policy, with the plan's paired difference from it.

    `gain` is the influence on the difference in value where it is not the plain one.
    """
    change = policy.minus(other)
    reference = Reference(
        *name,
        *estimate_from_policy_influence(scores, other),
        estimate_from_influence(scores, gain or change.value),
        spend_difference=estimate_from_influence(scores, change.spend),
        cost_per_extra=estimate_cost_per_extra(scores, change) if priced else None,
    )
    if response_value is None:
        return reference
    # At the same spend, profits differ as values do.
    more = change.measure_profit_influence(response_value) if gain is None else gain * response_value
    profit = estimate_from_influence(scores, other.measure_profit_influence(response_value))
    return replace(reference, profit=profit, profit_difference=estimate_from_influence(scores, more))


def estimate_gain_over_mix(scores: Scores, policy: Array, estimator: str = "dr") -> Estimate:
    """Estimate a policy's gain over the best mix of levels for all customers at the same spend."""
    return estimate_from_influence(
        scores, measure_gain_influence(scores, measure_policy_influence(scores, policy, estimator), estimator)
    )


def measure_gain_influence(scores: Scores, policy: PolicyInfluence, estimator: str = "dr") -> Influence:
    """Return the rows' influence on a policy's gain over the best mix of levels for all customers.

    Where costs are not certain, both spends are estimates: a policy that seems cheap by chance is compared with a mix that is
    too poor. The influence then allows for it.
    """
    return compare_with_best_mix(scores, policy, estimator)[2]


def compare_with_best_mix(
    scores: Scores, policy: PolicyInfluence, estimator: str = "dr", means: FoldLevelMeans | None = None
) -> tuple[FoldMixes, PolicyInfluence, Influence]:
    """Return the best mix of levels for all customers at a policy's spend, and influences on its value and gain.

    The mix of a fold is chosen on the other folds: a mix that is chosen on the rows that judge it is too good by the noise of
    the level means, and the gain too small. Known `means` are not computed again.
    """
    mixes = find_best_mixes(scores, policy.spend.values, means)
    mixed = measure_policy_influence(scores, mixes.policy, estimator)
    change = policy.minus(mixed)
    # Errors of spends are errors of value, by the return on money between the levels of the mix.
    return mixes, mixed, change.value if scores.certain else change.value - change.spend * mixes.slopes[mixes.fold]


@dataclass(frozen=True, eq=False)
class FoldLevelMeans:
    """Mean value and cost of every level, estimated for each fold on the other folds."""

    fold: Array  # (n,) the fold of each row, as an index
    weight: Array  # (folds,) total weight of each fold
    value: Array  # (folds, K)
    cost: Array  # (folds, K) of the fold itself where costs are certain: they need no estimate
    has_rows: Array  # (K,) whether the log has enough rows of the level for an estimate


@dataclass(frozen=True, eq=False)
class FoldMixes:
    """Best mix of levels for all customers at one spend, chosen for each fold on the other folds."""

    fold: Array  # (n,) the fold of each row, as an index
    weight: Array  # (folds,) total weight of each fold
    shares: Array  # (folds, K) probabilities
    slopes: Array  # (folds,) return on money between the two levels of the mix; zero for a single level

    @property
    def policy(self) -> Array:
        """Level probabilities (n, K) of a log's rows under the mix of levels chosen for their fold."""
        return self.shares[0] if (self.shares == self.shares[0]).all() else self.shares[self.fold]

    @property
    def mean(self) -> Array:
        """Level probabilities (K,) of the mix of levels, averaged over folds."""
        return np.average(self.shares, axis=0, weights=self.weight)


def estimate_level_means(scores: Scores) -> FoldLevelMeans:
    """Estimate each level's mean value and cost, for each fold on the other folds."""
    _, fold = np.unique(scores.fold, return_inverse=True)
    weight = np.bincount(fold, weights=scores.weight)
    others = weight.sum() - weight
    alone = others <= 0  # no other fold has any weight

    def sum_folds(table: Array) -> Array:  # one column after the other: logs may be large
        return np.stack([np.bincount(fold, weights=scores.weight * column) for column in table.T], axis=1)

    def leave_out(sums: Array) -> Array:
        whole = sums.sum(axis=0)
        left = (whole - sums) / np.where(alone, 1.0, others)[:, None]
        return np.where(alone[:, None], whole / weight.sum(), left)

    if not scores.certain:
        cost = np.maximum(leave_out(sum_folds(scores.costs)), 0.0)
    elif scores.costs.strides[0] == 0:  # the same for everybody
        cost = np.broadcast_to(scores.costs[0], (len(weight), scores.costs.shape[1]))
    else:
        sums, empty = sum_folds(scores.costs), weight <= 0
        own = sums / np.where(empty, 1.0, weight)[:, None]
        cost = np.where(empty[:, None], sums.sum(axis=0) / weight.sum(), own)
    has_rows = np.bincount(scores.level, minlength=scores.gamma.shape[1]) >= MIN_LEVEL_ROWS
    return FoldLevelMeans(fold, weight, leave_out(sum_folds(scores.gamma)), cost, has_rows)


def find_best_mixes(scores: Scores, spend: float | Array, means: FoldLevelMeans | None = None) -> FoldMixes:
    """Find the mix of levels for all customers with the largest value at an average spend, for each fold.

    Two levels suffice: one that costs no more, and one that costs no less. Levels with too few rows for an estimate are left
    out where the others can spend as much: a mix is also a recommendation. A spend may be given by rows (n,): where costs are
    not certain, each fold takes the mean of the others, like everything else that its mix is chosen by.
    """
    means = means or estimate_level_means(scores)
    weight, total = means.weight, float(means.weight.sum())
    spends = np.full(
        len(weight), float(spend) if np.ndim(spend) == 0 else compute_weighted_mean(np.asarray(spend), scores.weight)
    )
    if np.ndim(spend) and not scores.certain:
        sums = np.bincount(means.fold, weights=scores.weight * spend)
        others = total - weight
        spends = np.where(others > 0, (sums.sum() - sums) / np.where(others > 0, others, 1.0), spends)
    shares, slopes = np.zeros(means.value.shape), np.zeros(len(weight))
    known = np.flatnonzero(means.has_rows)
    for f, (value, cost, amount) in enumerate(zip(means.value, means.cost, spends, strict=True)):
        covered = len(known) and cost[known].min() <= amount <= cost[known].max()
        among = known if covered else np.arange(len(cost))
        shares[f, among] = mix_two_levels(value[among], cost[among], float(amount))
        low, high = (used := np.flatnonzero(shares[f]))[[0, -1]]
        if len(used) > 1:  # of a single level, more money buys nothing
            slopes[f] = (value[high] - value[low]) / (cost[high] - cost[low])
    return FoldMixes(means.fold, weight, shares, slopes)


def choose_mix_name(mix: Array) -> str:
    """Name a mix of levels for the report: "everyone the same" or "a random mix"."""
    return "everyone the same" if _count_mixed_levels(mix) == 1 else "a random mix"


def describe_mix(mix: Array, levels: Levels) -> str:
    """Describe a mix of levels in words: one level for everyone, or the shares of two levels."""
    if _count_mixed_levels(mix) == 1:
        return f"all get {levels.titles[int(np.argmax(mix))]!r}"
    return ", ".join(
        f"{100 * share:.0f} % get {levels.titles[k]!r}" for k, share in enumerate(mix) if share >= MIN_NAMED_SHARE
    )


def _count_mixed_levels(mix: Array) -> int:
    return int((mix >= MIN_NAMED_SHARE).sum())


def select_score_rows(scores: Scores, rows: Array) -> Scores:
    """Return the doubly robust scores of selected log rows (m,)."""
    parts: dict[str, Any] = {field.name: getattr(scores, field.name) for field in fields(scores)}
    arrays: dict[str, Any] = {name: part[rows] for name, part in parts.items() if isinstance(part, np.ndarray)}
    return replace(scores, **arrays)
