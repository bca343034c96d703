"""Verdict on a plan: the probability that it beats the best uniform mix at the same spend, and its expected gain.

Two measurements of the same gain are combined by their precision:

- *The model's.* The out-of-fold curves promise a gain. Its uncertainty is the spread of the gain over draws of curves from their
  posterior (`response.fit_curve_posterior`), each draw compared with its own best mix.
- *The log's.* The doubly robust gain with its standard error. Fold models learn from a share of the rows, so the gain of the
  model of all rows is larger by a small part of the expected gain.

Three numbers calibrate the first: `MODEL_FACTOR` multiplies the promise, `DRAW_FACTOR` the spread of the draws, and
`HIDDEN_FACTOR` the variance that grows with promise and noise: what a log cannot show, its model does not promise either. They
were fitted on random worlds; see docs/results/verdicts.md. Where the two measurements exclude each other, the log is believed.

The option with the largest expected gain is recommended if it is probable enough, else the mix. What was done before is an option
if it costs no more. Every gain is over the best mix at the option's own spend, so options of different spends can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from largesse.allocation import copy_options, mix_two_levels, replace_options
from largesse.evaluation.estimators import gives_levels
from largesse.evaluation.one_column_rule import FoldRules
from largesse.evaluation.policy_estimates import average_levels, compare_mix, score_log, take_mean
from largesse.records import (
    MIN_LEVEL_ROWS,
    Array,
    Estimate,
    Finding,
    GainEvidence,
    Log,
    Recommendation,
    Scores,
    Verdict,
)
from largesse.response import fit_curve_posterior
from largesse.stats import one_thread, sample_rows

N_CURVE_DRAWS = 100
MAX_DRAW_ROWS = 20_000  # rows whose curves are drawn
MAX_POSTERIOR_ROWS = 200_000  # rows that the posterior is fitted to
MIN_VERDICT_ROWS = 100
MODEL_FACTOR, DRAW_FACTOR, HIDDEN_FACTOR = 1.15, 1.5, 0.4
ROUNDING = 1e-12  # smaller gains and standard errors are rounding errors
CONTRADICTION = 2.5  # standard errors of the difference between model and log
PROBABLE, IMPROBABLE = 0.6, 0.4  # between them there is no difference worth having
VERY_PROBABLE = 0.8
PROBABILITY_RANGE = (0.01, 0.99)
SAME_SPEND = 0.01  # what was done before may cost this much more, relative to the plan
Z95 = 1.959963984540054
DETECTABLE = Z95 + 0.84  # standard errors of a gain that four of five logs show
MUTE_TOPICS = ("support", "propensities", "order of levels", "training log")  # findings that leave nothing to say


def give_verdict(
    log: Log,
    scores: Scores,
    policy: Array,
    rules: FoldRules | None,
    safety: Recommendation,
    warnings: Sequence[Finding] = (),
    *,
    estimator: str = "dr",
    seed: int = 0,
) -> Verdict:
    """Return the verdict on a policy from a log and its cross-fitted scores.

    Parameters
    ----------
    log, scores
        The log and its cross-fitted scores.
    policy
        Levels (n,) or probabilities (n, K) for the log's rows.
    rules
        Simple rules at the same spend; see `learn_rules`.
    safety
        Lower bounds of the gains of the policy and of the rule.
    warnings
        Findings about the log; serious ones forbid any verdict.
    estimator
        The name of one of `ESTIMATORS`.
    seed
        Seed of the draws.
    """
    plan_gain = safety.options[0].gain
    reason = _find_obstacle(log, plan_gain, warnings)
    if reason:
        return Verdict(None, "cannot say", reason=reason)
    policies = {"plan": policy}
    if rules is not None:
        policies["rule"] = rules.policy
    logged = score_log(scores)
    before = take_mean(scores, logged.spend)
    if before.estimate <= safety.options[0].spend.estimate * (1 + SAME_SPEND):
        policies["before"] = log.level
    known = {name: option.gain for name, option in zip(("plan", "rule"), safety.options, strict=False)}
    if "before" in policies:
        known["before"] = take_mean(scores, compare_mix(scores, logged, estimator, average_levels(scores))[2])
    promises = promise_gains(log, scores, list(policies.values()), seed)
    options = tuple(
        combine_evidence(name, known[name], None if promises is None else promises[j])
        for j, name in enumerate(policies)
        if np.isfinite(known[name].low)
    )
    return _decide(options, safety, len(log))


def _find_obstacle(log: Log, gain: Estimate, warnings: Sequence[Finding]) -> str:
    """Return the reason why nothing can be said about a plan; empty if there is none."""
    serious = [finding for finding in warnings if finding.topic in MUTE_TOPICS and finding.answer == "no"]
    serious += [finding for finding in warnings if finding.topic == "training log"]
    if serious:
        return serious[0].text
    counts = np.bincount(log.level, minlength=len(log.levels))
    if (counts >= MIN_LEVEL_ROWS).sum() < 2:
        return f"Fewer than two levels have {MIN_LEVEL_ROWS} rows or more: there is nothing to compare."
    if len(log) < MIN_VERDICT_ROWS:
        return f"The log has {len(log)} rows; a verdict needs {MIN_VERDICT_ROWS} or more."
    if np.ptp(log.response) == 0:
        return "All responses are equal."
    if not (np.isfinite(gain.low) and np.isfinite(gain.se)):
        return "Too few customers with a response carry the estimate of the gain."
    return ""


# -- the model's expectation ------------------------------------------------------------------------------------------


def promise_gains(
    log: Log, scores: Scores, policies: Sequence[Array], seed: int = 0
) -> list[tuple[float, float]] | None:
    """Return the gain of each policy that the curves promise, and its standard deviation over draws of curves.

    None if the curves have no uncertainty.
    """
    n = len(scores.level)
    some = sample_rows(n, MAX_POSTERIOR_ROWS, seed)
    weight = scores.weight.copy()
    if scores.allowed is not None:  # the curve of a level without support is that of another level
        weight[~scores.allowed[np.arange(n), scores.level]] = 0.0
    places = sample_rows(len(some), MAX_DRAW_ROWS, seed)
    rows = some[places]
    posterior = fit_curve_posterior(log, scores.curves, scores.fold, weight, some)
    row_weight = scores.weight[rows] / (scores.weight[rows].sum() or 1.0)
    if posterior is None or not row_weight.any():
        return None
    shares = [_weigh_levels(policy[rows], row_weight, scores.curves.shape[1]) for policy in policies]
    supported = None if scores.allowed is None else replace_options(scores.allowed[rows])
    curves, costs = scores.curves[rows], scores.expected_costs[rows]
    with one_thread():
        promises = [_promise(curves, costs, share, row_weight) for share in shares]
        drawn = np.empty((N_CURVE_DRAWS, len(shares)))
        for b, draw in enumerate(posterior.draw(N_CURVE_DRAWS, places, seed)):
            copied = copy_options(draw, supported)
            paid = costs * (copied / np.maximum(curves, 1e-12)) if scores.paid_as == "redeemed" else costs
            drawn[b] = [_promise(copied, paid, share, row_weight) for share in shares]
    return [(promise, float(column.std(ddof=1))) for promise, column in zip(promises, drawn.T, strict=True)]


def _weigh_levels(policy: Array, weight: Array, K: int) -> Array:
    """Return the share (n, K) of each row and level in the mean over customers under a policy."""
    probabilities = np.eye(K)[policy] if gives_levels(policy) else np.broadcast_to(policy, (len(weight), K))
    return probabilities * weight[:, None]


def _promise(curves: Array, costs: Array, share: Array, weight: Array) -> float:
    """Return the gain of shares (n, K) over the best uniform mix at the same cost, by curves and costs (n, K)."""
    value, spend = float((share * curves).sum()), float((share * costs).sum())
    means = weight @ curves
    return value - float(mix_two_levels(means, weight @ costs, spend) @ means)


# -- both together ----------------------------------------------------------------------------------------------------


def combine_evidence(name: str, log: Estimate, promise: tuple[float, float] | None) -> GainEvidence:
    """Combine the log's estimate of a gain with the promised gain and its spread over draws."""
    if promise is None:
        return GainEvidence(name, log, _find_probability(log), None, log)
    gain, spread = promise
    expected = MODEL_FACTOR * gain
    se = math.sqrt((DRAW_FACTOR * spread) ** 2 + HIDDEN_FACTOR * abs(gain) * log.se)
    model = _as_estimate(expected, se)
    apart = log.estimate - expected
    if apart and abs(apart) > CONTRADICTION * math.hypot(se, log.se):
        return GainEvidence(name, log, _find_probability(log), model, log, contradiction=True)
    if log.se <= ROUNDING or se <= ROUNDING:
        both = log if log.se <= ROUNDING else model
    else:
        share = log.se**2 / (log.se**2 + se**2)  # of the model
        both = _as_estimate(share * expected + (1 - share) * log.estimate, math.sqrt(share) * se)
    return GainEvidence(name, both, _find_probability(both), model, log)


def _as_estimate(mean: float, se: float) -> Estimate:
    return Estimate(mean, se, mean - Z95 * se, mean + Z95 * se)


def _find_probability(gain: Estimate) -> float:
    """Return the probability of a gain above zero, kept away from 0 and 1."""
    if abs(gain.estimate) <= ROUNDING and gain.se <= ROUNDING:
        return 0.5
    probability = 0.5 * math.erfc(-gain.estimate / max(gain.se, ROUNDING) / math.sqrt(2))
    return min(max(probability, PROBABILITY_RANGE[0]), PROBABILITY_RANGE[1])


# -- the decision -----------------------------------------------------------------------------------------------------


def _decide(options: tuple[GainEvidence, ...], safety: Recommendation, rows: int) -> Verdict:
    plan, bounds = options[0], {"plan": safety.options[0].at_least}
    if len(safety.options) > 1:
        bounds["rule"] = safety.options[1].at_least
    better = [option for option in options if option.probability >= PROBABLE and option.gain.estimate > 0]
    best = max(better, key=lambda option: option.gain.estimate, default=None)
    judged = best if best is not None and best.name == "rule" else plan
    verdict = Verdict(
        recommended="mix" if best is None else best.name,
        grade=_grade(judged, bounds[judged.name]),
        options=options,
        at_least=bounds["plan"],
        needed_rows=_count_needed_rows(judged, rows),
    )
    if judged.contradiction:
        text = "The model expects another gain than the log shows; the verdict follows the log alone."
        return replace(verdict, reason=text)
    return verdict


def _grade(option: GainEvidence, at_least: float | None) -> str:
    if at_least is not None and at_least > 0:
        return "proved"
    if option.probability >= VERY_PROBABLE:
        return "best bet"
    if option.probability >= PROBABLE:
        return "slightly better"
    return "no difference" if option.probability > IMPROBABLE else "rather not"


def _count_needed_rows(option: GainEvidence, rows: int) -> float | None:
    """Return the rows of a log like this one that alone shows the expected gain, in four of five cases."""
    gain = option.gain.estimate
    return rows * (DETECTABLE * option.log.se / gain) ** 2 if gain > 0 and option.log.se > 0 else None
