"""Estimates of the value and spend of policies and their references: all are means of scores.

A policy is levels (n,), or probabilities (n, K) or (K,), for the rows of the log. Every estimator averages the influence of
each row, so differences are paired and clusters are respected everywhere.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from largesse.allocation import mix_two_levels
from largesse.evaluation.bootstrap import bootstrap_interval
from largesse.evaluation.estimators import ESTIMATORS, Judged, Terms, judge_cost, judge_response, weighted_mean
from largesse.evaluation.influence import (
    Carriers,
    Influence,
    carry,
    find_carriers,
    find_tail,
    join_intervals,
    measure_rows,
)
from largesse.levels import Levels
from largesse.records import FEW_ROWS, Array, Comparison, Estimate, Reference, Scores
from largesse.stats import count_few

RATIO_BUYERS = 50
RATIO_CLUSTERS = 20  # with 12 to 16, 95 % intervals of ratios covered .91 to .93, with 20 and more .94 to .97
INTERVALS = ("influence", "bootstrap")
BLOCK = 1 << 18  # rows
SEEN = 0.005  # a smaller share of a mix is not named


def estimate_value(
    scores: Scores, policy: Array, estimator: str = "dr", interval: str = "influence", seed: int = 0
) -> tuple[Estimate, Estimate]:
    """Estimate value and spend of a policy, with intervals from the influence of rows or by resampling.

    No log drawn from the log has a larger purchase than its largest, so resampling alone would promise too much: its
    intervals include those of the influence.
    """
    value, spend = (_mean(scores, part) for part in score_policy(scores, policy, estimator))
    if interval != "bootstrap":
        return value, spend
    drawn = [
        bootstrap_interval(terms, scores.weight, scores.cluster, seed=seed)
        for terms in make_terms(scores, policy, estimator)
    ]
    return join_intervals(drawn[0], value), join_intervals(drawn[1], spend)


def make_terms(scores: Scores, policy: Array, estimator: str = "dr") -> tuple[Terms, Terms]:
    """Return the terms of the estimates of value and spend."""
    if estimator == "dr":  # its scores are already there
        return Terms(_average(scores.gamma, policy)), Terms(_average(scores.costs, policy))
    found = ESTIMATORS[estimator].terms
    return found(judge_response(scores, policy)), _spend_terms(judge_cost(scores, policy), estimator)


def _average(scores: Array, policy: Array) -> Array:
    """Return the mean (n,) of scores (n, K) under a policy's probabilities, block by block."""
    out = np.empty(len(scores))
    for start in range(0, len(out), BLOCK):
        rows = slice(start, start + BLOCK)
        if policy.ndim == 1 and np.issubdtype(policy.dtype, np.integer):
            out[rows] = scores[np.arange(start, min(rows.stop, len(out))), policy[rows]]
        else:
            out[rows] = ((policy[rows] if policy.ndim == 2 else policy) * scores[rows]).sum(axis=1)
    return out


def _spend_terms(rows: Judged, estimator: str) -> Terms:
    """Return the terms of the spend; known costs need no estimator."""
    return ESTIMATORS[estimator].terms(rows) if rows.residual.any() else Terms(rows.direct)


def score_policy(scores: Scores, policy: Array, estimator: str = "dr") -> tuple[Influence, Influence]:
    """Return the influence of each row on the estimates of value and spend."""
    carriers, spend = find_carriers(scores.response), score_spend(scores, policy, estimator)
    if estimator != "dr":
        return measure_rows(judge_response(scores, policy), estimator, carriers), spend
    return carry(_average(scores.gamma, policy), _weigh_rows(scores, policy, scores.response), carriers), spend


def score_spend(scores: Scores, policy: Array, estimator: str = "dr") -> Influence:
    """Return the influence of each row on the estimate of the spend."""
    uncertain = not _are_known(scores)
    payers = _find_payers(scores, find_carriers(scores.response)) if uncertain else None
    if estimator == "dr":
        spend = _average(scores.costs, policy)
        if payers is None or np.ptp(spend) == 0:  # a plan that costs nobody anything needs no payers to be sure of
            return Influence(spend)
        return carry(spend, _weigh_rows(scores, policy, scores.paid), payers)
    paid = judge_cost(scores, policy)
    return measure_rows(paid, estimator, payers) if uncertain else Influence(paid.direct)


def _are_known(scores: Scores) -> bool:
    """Whether every row cost what its level was expected to cost."""
    for start in range(0, len(scores.level), BLOCK):
        rows = slice(start, start + BLOCK)
        level = scores.level[rows]
        if (scores.paid[rows] != scores.expected_costs[rows][np.arange(len(level)), level]).any():
            return False
    return True


def _weigh_rows(scores: Scores, policy: Array, outcome: Array) -> Judged:
    """Return what carriers need to know of rows: by how much a policy weights their outcomes; nothing of the curves."""
    if policy.ndim == 1 and np.issubdtype(policy.dtype, np.integer):
        ratio = (policy == scores.level) / scores.propensity
    elif policy.ndim == 1:
        ratio = policy[scores.level] / scores.propensity
    else:
        ratio = _average(policy, scores.level) / scores.propensity
    nothing = np.empty(0)
    return Judged(nothing, ratio, nothing, outcome, scores.weight)


def score_log(scores: Scores) -> tuple[Influence, Influence]:
    """Return the influence of each row on the value and spend of what was done."""
    carriers = find_carriers(scores.response)
    payers = None if _are_known(scores) else _find_payers(scores, carriers)
    once, none = np.ones(len(scores.response)), np.zeros(len(scores.response))
    rows, paid = (Judged(none, once, none, outcome, scores.weight) for outcome in (scores.response, scores.paid))
    return carry(scores.response, rows, carriers), carry(scores.paid, paid, payers)


def _find_payers(scores: Scores, carriers: Carriers | None) -> Carriers | None:
    """Return the carriers of the spend, where costs are not known."""
    if scores.paid_as == "observed":
        return find_carriers(scores.paid)
    return None if carriers is None else carriers.pay(scores.face)


def count_carriers(scores: Scores, policy: Array) -> int | None:
    """Return how many rows with a response carry the estimate of a policy, where they are too few; else None."""
    tail = find_tail(judge_response(scores, policy), find_carriers(scores.response))
    return None if tail is None else count_few(tail)


def estimate_difference(
    scores: Scores, policy: Array, other: Array, estimator: str = "dr", others: Scores | None = None
) -> Comparison:
    """Estimate by how much one policy brings more and costs more than another, paired row by row.

    The other policy may have its own scores of the same rows.
    """
    one = score_policy(scores, policy, estimator)
    two = score_policy(scores if others is None else others, other, estimator)
    return Comparison(_mean(scores, one[0] - two[0]), _mean(scores, one[1] - two[1]))


def estimate_per_spend(scores: Scores, policy: Array, estimator: str = "dr") -> tuple[Estimate, Estimate]:
    """Estimate value per unit spent, and the gain over the cheapest level for all per additional unit spent."""
    value, spend = score_policy(scores, policy, estimator)
    least, cheapest = score_policy(scores, _everyone(scores, 0), estimator)
    return estimate_ratio(scores, value, spend), estimate_ratio(scores, value - least, spend - cheapest)


def estimate_ratio(scores: Scores, top: Influence, bottom: Influence) -> Estimate:
    """Return the ratio of two estimates, its interval by the delta method; NaN if nothing is spent.

    With few clusters, or few buyers where spends have a long tail, too, the delta method promises too much: no interval.
    """
    whole = scores.weight.sum()
    under = float(scores.weight @ bottom.values / whole)
    if abs(under) <= 1e-12 * max(float(np.abs(bottom.values).max()), 1.0):
        return Estimate(float("nan"), float("nan"), float("nan"), float("nan"))
    share = float(scores.weight @ top.values / whole) / under
    rest = (top + bottom * -share) * (1 / under)
    found = _mean(scores, rest.shift(share))
    few = scores.cluster is not None and len(np.unique(scores.cluster)) < RATIO_CLUSTERS
    if bottom.tail is not None and rest.tail is not None:
        few |= bool(min(np.count_nonzero(rest.tail > 0), np.count_nonzero(rest.tail < 0)) < RATIO_BUYERS)
    return replace(found, low=float("nan"), high=float("nan")) if few else found


def estimate_uniform(scores: Scores, estimator: str = "dr") -> list[tuple[Estimate, Estimate]]:
    """Estimate value and spend of giving everybody level k, for each k."""
    return [estimate_value(scores, _everyone(scores, k), estimator) for k in range(scores.gamma.shape[1])]


def _everyone(scores: Scores, level: int) -> Array:
    """Return the policy that gives every row the same level."""
    return np.full(len(scores.level), level, dtype=np.int64)


def predict_value(curves: Array, policy: Array, weight: Array | None = None) -> float:
    """Return the mean response that curves (n, K) themselves promise under levels (n,) or probabilities (n, K)."""
    own = curves[np.arange(len(curves)), policy] if policy.ndim == 1 else (policy * curves).sum(axis=1)
    return weighted_mean(own, weight)


def compare_references(
    scores: Scores, policy: Array, levels: Levels, estimator: str = "dr", worth: float | None = None
) -> tuple[Reference, ...]:
    """Compare a policy with the best uniform mix at the same spend, and with what was done before.

    Where costs are not certain, the difference from the mix allows for errors of both spends; see `measure_gain`. With what
    one unit of response is worth, profits are compared, too: at the same spend they differ as values do.
    """
    value, spend = score_policy(scores, policy, estimator)
    mix = find_best_mix(scores, weighted_mean(spend.values, scores.weight))
    uniform, before = score_policy(scores, mix, estimator), score_log(scores)
    gain = _subtract_mix(scores, mix, value - uniform[0], spend - uniform[1])
    same = _refer(scores, (name_mix(mix), describe_mix(mix, levels)), uniform, gain)
    done = _refer(scores, ("what was done before", "the levels in the log"), before, value - before[0])
    if worth is None:
        return same, done
    more = (value - before[0]) * worth - (spend - before[1])
    return _add_profit(scores, same, uniform, gain * worth, worth), _add_profit(scores, done, before, more, worth)


def _refer(
    scores: Scores, words: tuple[str, str], other: tuple[Influence, Influence], difference: Influence
) -> Reference:
    return Reference(*words, _mean(scores, other[0]), _mean(scores, other[1]), _mean(scores, difference))


def _add_profit(
    scores: Scores, found: Reference, other: tuple[Influence, Influence], difference: Influence, worth: float
) -> Reference:
    own = _mean(scores, other[0] * worth - other[1])
    return replace(found, profit=own, profit_difference=_mean(scores, difference))


def estimate_gain(scores: Scores, policy: Array, estimator: str = "dr") -> Estimate:
    """Estimate what a policy brings more than the best uniform mix at the same spend; see `measure_gain`."""
    return _mean(scores, measure_gain(scores, policy, estimator))


def measure_gain(scores: Scores, policy: Array, estimator: str = "dr") -> Influence:
    """Return the influence of rows on what a policy brings more than the best uniform mix at the same spend.

    Where costs are not certain, both spends are estimates: a policy that seems cheap by chance is compared with a mix that is
    too poor. The influence then allows for it.
    """
    value, spend = score_policy(scores, policy, estimator)
    mix = find_best_mix(scores, weighted_mean(spend.values, scores.weight))
    other, cost = score_policy(scores, mix, estimator)
    return _subtract_mix(scores, mix, value - other, spend - cost)


def _subtract_mix(scores: Scores, mix: Array, value: Influence, spend: Influence) -> Influence:
    """Return the influence on a gain over a mix, from those on the differences in value and spend."""
    return value if scores.certain else allow_for_spend(scores, mix, value, spend)


def allow_for_spend(scores: Scores, mix: Array, value: Influence, spend: Influence) -> Influence:
    """Return the influence on a difference in value from a mix of two levels, less what the difference in spend would buy.

    What a unit of money brings between the levels of the mix turns errors of spends into errors of value.
    """
    used = np.flatnonzero(mix)
    if len(used) < 2:  # a single level: more money buys nothing
        return value
    share = scores.weight / scores.weight.sum()
    worth, cost = share @ scores.gamma[:, used], share @ scores.costs[:, used]
    return value - spend * float((worth[-1] - worth[0]) / (cost[-1] - cost[0]))


def compare_uniform(
    scores: Scores, policy: Array, levels: Levels, estimator: str = "dr", worth: float | None = None
) -> tuple[Reference, ...]:
    """Compare a policy with every level given to everybody, whatever it costs; in profit, too, if that can be said."""
    value, spend = score_policy(scores, policy, estimator)
    found = []
    for k, label in enumerate(levels.titles):
        other = score_policy(scores, _everyone(scores, k), estimator)
        reference = _refer(scores, (label, f"all get {label!r}"), other, value - other[0])
        if worth is not None:
            more = (value - other[0]) * worth - (spend - other[1])
            reference = _add_profit(scores, reference, other, more, worth)
        found.append(reference)
    return tuple(found)


def find_best_mix(scores: Scores, spend: float) -> Array:
    """Return the probabilities (K,), the same for everybody, with the largest value at an average spend.

    Two levels suffice: one that costs no more, and one that costs no less. Levels with too few rows to be judged are not
    mixed where the others can spend as much: nobody should be advised to give them.
    """
    weight = scores.weight / scores.weight.sum()
    value, cost = weight @ scores.gamma, np.maximum(weight @ scores.costs, 0.0)
    known = np.flatnonzero(np.bincount(scores.level, minlength=len(cost)) >= FEW_ROWS)
    if not len(known) or not cost[known].min() <= spend <= cost[known].max():
        return mix_two_levels(value, cost, spend)
    mix = np.zeros(len(cost))
    mix[known] = mix_two_levels(value[known], cost[known], spend)
    return mix


def name_mix(mix: Array) -> str:
    """Return what a mix is called: only one of a single level treats everybody the same."""
    return "everyone the same" if _count_levels(mix) == 1 else "a random mix"


def describe_mix(mix: Array, levels: Levels) -> str:
    """Describe a mix in words: one level for everybody, or the shares of two."""
    if _count_levels(mix) == 1:
        return f"all get {levels.titles[int(np.argmax(mix))]!r}"
    return ", ".join(f"{100 * share:.0f} % get {levels.titles[k]!r}" for k, share in enumerate(mix) if share >= SEEN)


def _count_levels(mix: Array) -> int:
    """Return how many levels of a mix are more than a rounding error of its shares."""
    return int((mix >= SEEN).sum())


def take_scores(scores: Scores, rows: Array) -> Scores:
    """Return the scores of some rows (m,)."""
    each: dict[str, Any] = {field.name: getattr(scores, field.name) for field in fields(scores)}
    kept: dict[str, Any] = {name: part[rows] for name, part in each.items() if isinstance(part, np.ndarray)}
    return replace(scores, **kept)


def _mean(scores: Scores, influence: Influence) -> Estimate:
    return influence.estimate(scores.weight, scores.cluster)
