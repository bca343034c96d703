"""Is the plan safe? It stands beside a simple rule and giving everyone the same, each with an honest value.

What an option gains over the best uniform mix at its own spend has a bound below: with 95 % confidence the gains of *all*
options lie above their bounds, so the bound of whichever is chosen holds after choosing (PoLeCe, arXiv 2502.10653). A bound
reaches q standard errors below the estimate, q the 95 % quantile of the largest of the options' correlated errors, drawn by a
multiplier bootstrap over rows or clusters. It never lies above the lower end of the option's own 95 % interval, which also
allows for long tails: what is said of a gain and what is shown of it agree. The mix is chosen by the same rows, in its own
favour, so the bound holds against every uniform mix. Where costs are not certain, gains allow for errors of the spends.

The option with the largest bound is recommended where that is above zero. Otherwise the best uniform mix is: it is simpler, and
nothing is shown to be better. As long as nothing is shown to gain, bounds tell more about noise than about plans: on random
worlds of 2,000 rows, a rule with the larger bound was the better option in one log of three.

The *guaranteed value* needs no approximation at all: see `stats.bound_mean`. It is there where the log gives its propensities
and responses lie between 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.evaluation.estimates import find_best_mix, measure_gain, name_mix, score_policy
from largesse.evaluation.estimators import judge_response
from largesse.evaluation.frontier_estimate import find_reach, sum_units
from largesse.evaluation.influence import Influence
from largesse.evaluation.profit import measure_profit
from largesse.evaluation.simple_rule import learn_rules
from largesse.records import Array, Estimate, Log, Option, Safety, Scores
from largesse.stats import COVERAGE, bound_mean

PLAN, RULE = "this plan", "a simple rule"


@dataclass(frozen=True, eq=False)
class _Entry:
    """An option before it is compared with the others."""

    name: str
    detail: str
    policy: Array
    parts: int  # folds that have a policy of their own, learnt on the others


def weigh_options(log: Log, scores: Scores, policy: Array, *, estimator: str = "dr", learnt: bool = False) -> Safety:
    """Compare a policy, and a simple rule for the same money, with giving everyone the same.

    Parameters
    ----------
    log, scores
        The log and its cross-fitted scores.
    policy
        Levels (n,) or probabilities (n, K) for the log's rows.
    estimator
        The name of one of `ESTIMATORS`.
    learnt
        Whether the policy was learnt on this log, each fold on the others.
    """
    folds = len(np.unique(scores.fold))
    entries = [_Entry(PLAN, "a level for every customer", policy, folds if learnt else 1)]
    rules = learn_rules(log, scores, policy)
    if rules is not None:
        entries.append(_Entry(RULE, rules.whole.describe(log.levels), rules.policy, folds))
    excuse = _find_excuse(log)
    gains = [measure_gain(scores, entry.policy, estimator) for entry in entries]
    reach = _find_joint_reach(scores, gains)
    together = None if excuse else len(entries)
    options = tuple(
        _make_option(scores, entry, gain, reach, estimator, together, log.response_value)
        for entry, gain in zip(entries, gains, strict=True)
    )
    sure = [option for option in reversed(options) if option.at_least is not None and option.at_least > 0]
    best = max(sure, key=lambda option: option.at_least or 0.0, default=None)  # of equal ones, the simpler
    alike = name_mix(find_best_mix(scores, options[0].spend.estimate))
    return Safety(options, alike if best is None else best.name, reach, excuse)


def _find_excuse(log: Log) -> str:
    if log.propensity is None:
        return "There is no guaranteed value: it needs the propensities, and the log does not give them."
    if log.response.min() < 0 or log.response.max() > 1:
        return "There is no guaranteed value: it needs responses with a largest possible value, such as yes or no."
    return ""


def _find_joint_reach(scores: Scores, gains: list[Influence]) -> float:
    """Return how many standard errors below the estimates all gains lie above, 95 % of the time."""
    means = [float(scores.weight @ gain.values / scores.weight.sum()) for gain in gains]
    parts = [sum_units(scores, gain.values - mean) for gain, mean in zip(gains, means, strict=True)]
    return find_reach(np.stack(parts, axis=1), one_sided=True)


def _make_option(
    scores: Scores,
    entry: _Entry,
    gain: Influence,
    reach: float,
    estimator: str,
    together: int | None,
    worth: float | None,
) -> Option:
    """Return an option with its bounds; `together` is how many guarantees must hold at once, None where there are none."""
    value, spend = (
        part.estimate(scores.weight, scores.cluster) for part in score_policy(scores, entry.policy, estimator)
    )
    found = gain.estimate(scores.weight, scores.cluster)
    return Option(
        name=entry.name,
        detail=entry.detail,
        value=value,
        spend=spend,
        gain=found,
        at_least=_bound_gain(found, reach),
        guaranteed=None if together is None else _guarantee(scores, entry, together),
        profit=None
        if worth is None
        else measure_profit(scores, entry.policy, worth, estimator).estimate(scores.weight, scores.cluster),
    )


def _bound_gain(found: Estimate, reach: float) -> float | None:
    if not np.isfinite(found.low):
        return None
    return float(min(found.low, found.estimate - reach * found.se))


def _guarantee(scores: Scores, entry: _Entry, together: int) -> float:
    """Return the value that an option has at least, by weighted responses alone."""
    rows = judge_response(scores, entry.policy)
    coverage = 1 - (1 - COVERAGE) / together
    terms = np.maximum(rows.ratio * rows.outcome, 0.0)
    return bound_mean(terms, scores.weight, scores.cluster, coverage=coverage, parts=entry.parts)
