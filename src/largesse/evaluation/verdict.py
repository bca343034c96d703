"""Verdict on a plan: gain over the best mix of levels for all customers, and probability of a positive gain.

Two measurements of the same gain are combined by their precision:

- *The model's.* The out-of-fold curves promise a gain. Draws of curves from their posterior (`response.fit_curve_posterior`), each
  compared with its own best mix, have a smaller mean gain, since the best mix of a draw is better than that of the mean curves.
  The expectation lies between the two. Its error has three parts: the spread of the draws; an error in proportion to the promise,
  since the common assumptions of all draws can be wrong; and a share of the log's standard error, since a log that shows little
  informs the model little. Errors have a t distribution of 1.25 degrees of freedom: where the posterior is wrong, it is very wrong.
- *The log's.* The doubly robust gain with its standard error.

Four numbers calibrate the first: `DRAW_SHARE`, the way from the promise to the mean of the draws, and the weights of the three parts,
`DRAW_FACTOR`, `PROMISE_ERROR` and `LOG_ERROR`. They were fitted on random worlds; see docs/results/verdicts.md. Where the two
measurements exclude each other, the log is believed.

The option with the largest expected gain is recommended if it is probable enough, else the mix. The logged policy is an option
if it costs no more. Every gain is over the best mix at the option's own spend, so options of different spends can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from largesse.allocation import copy_supported_values, expected_costs, map_to_supported_levels, mix_two_levels
from largesse.evaluation.estimators import is_level_array
from largesse.evaluation.one_column_rule import OneColumnRulesByFold
from largesse.evaluation.policy_estimates import (
    compare_with_best_mix,
    estimate_from_influence,
    estimate_level_means,
    measure_logged_influence,
)
from largesse.records import (
    MIN_LEVEL_ROWS,
    Array,
    Estimate,
    Finding,
    GainEvidence,
    Log,
    NeededRows,
    PolicyGainBounds,
    Scores,
    Verdict,
)
from largesse.response import fit_curve_posterior
from largesse.stats import limit_to_one_thread, sample_rows, t_quantile

N_CURVE_DRAWS = 100
MAX_DRAW_ROWS = 20_000  # rows whose curves are drawn
MAX_POSTERIOR_ROWS = 200_000  # rows that the posterior is fitted to
MIN_VERDICT_ROWS = 100
DRAW_SHARE, DRAW_FACTOR, PROMISE_ERROR, LOG_ERROR = 0.3, 0.4, 0.2, 0.06  # calibration of the model's gain; see above
MODEL_FREEDOM = 1.25  # degrees of freedom of the model's errors
ROUNDING = 1e-12  # smaller gains and standard errors are rounding errors
CONTRADICTION = 2.5  # standard errors of the difference between model and log
PROBABLE, IMPROBABLE = 0.6, 0.4  # between them there is no difference worth having
CERTAIN = 0.975  # a gain that the log shows is proved if the 95 % interval of both together lies above zero
VERY_PROBABLE = 0.8
PROBABILITY_RANGE = (0.01, 0.99)
SAME_SPEND = 0.01  # what was done before may cost this much more, relative to the plan
MANY_FREEDOM = 1e9  # degrees of freedom of a normal distribution
DETECTABLE_ERRORS = 1.96 + 0.84  # standard errors: a gain this far from zero is shown in four of five logs
MAX_LOG_MULTIPLE = 1000  # the rows of the log: no company has more
MUTE_TOPICS = ("support", "propensities", "order of levels", "training log")  # findings that leave nothing to say


def give_verdict(
    log: Log,
    scores: Scores,
    policy: Array,
    rules: OneColumnRulesByFold | None,
    safety: PolicyGainBounds,
    warnings: Sequence[Finding] = (),
    *,
    estimator: str = "dr",
    seed: int = 0,
) -> Verdict:
    """Combine the model's and the log's evidence on a policy's gain into a recommendation.

    Parameters
    ----------
    log, scores
        The log and its cross-fitted scores.
    policy
        Levels (n,) or probabilities (n, K) for the log's rows.
    rules
        Simple rules at the same spend; see `learn_one_column_rules`.
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
    reason = _explain_missing_verdict(log, plan_gain, warnings)
    if reason:
        return Verdict(None, "cannot say", reason=reason)
    policies = {"plan": policy}
    if rules is not None:
        policies["rule"] = rules.policy
    logged = measure_logged_influence(scores)
    before = estimate_from_influence(scores, logged.spend)
    if before.estimate <= safety.options[0].spend.estimate * (1 + SAME_SPEND):
        policies["before"] = log.level
    known = {name: option.gain for name, option in zip(("plan", "rule"), safety.options, strict=False)}
    if "before" in policies:
        known["before"] = estimate_from_influence(
            scores, compare_with_best_mix(scores, logged, estimator, estimate_level_means(scores))[2]
        )
    promises = predict_gains(log, scores, list(policies.values()), seed)
    options = tuple(
        combine_evidence(name, known[name], None if promises is None else promises[j])
        for j, name in enumerate(policies)
        if np.isfinite(known[name].low)
    )
    return _choose_recommendation(options, safety, len(log))


def _explain_missing_verdict(log: Log, gain: Estimate, warnings: Sequence[Finding]) -> str:
    """Return the reason why no verdict is possible, or an empty text."""
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


@dataclass(frozen=True)
class PredictedGain:
    """Predicted gain of a policy, with mean and standard deviation over draws of the response curves."""

    promise: float
    mean: float
    deviation: float


def predict_gains(log: Log, scores: Scores, policies: Sequence[Array], seed: int = 0) -> list[PredictedGain] | None:
    """Predict each policy's gain from the response curves; None if the curves' errors cannot be estimated."""
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
    shares = [_compute_level_weights(policy[rows], row_weight, scores.curves.shape[1]) for policy in policies]
    supported = None if scores.allowed is None else map_to_supported_levels(scores.allowed[rows])
    curves, costs = scores.curves[rows], scores.expected_costs[rows]
    with limit_to_one_thread():
        promises = [_predict_gain_over_mix(curves, costs, share, row_weight) for share in shares]
        drawn = np.empty((N_CURVE_DRAWS, len(shares)))
        for b, draw in enumerate(posterior.draw_curves(N_CURVE_DRAWS, places, seed)):
            paid = costs
            if log.levels.on_redemption:
                face = None if log.costs is None else log.costs[rows]
                paid = copy_supported_values(
                    np.broadcast_to(expected_costs(log.levels, draw, face), draw.shape), supported
                )
            copied = copy_supported_values(draw, supported)
            drawn[b] = [_predict_gain_over_mix(copied, paid, share, row_weight) for share in shares]
    moments = zip(promises, drawn.mean(axis=0).tolist(), drawn.std(axis=0, ddof=1).tolist(), strict=True)
    return [PredictedGain(*three) for three in moments]


def _compute_level_weights(policy: Array, weight: Array, K: int) -> Array:
    """Return the weight (n, K) of each row and level in a policy's mean."""
    probabilities = np.eye(K)[policy] if is_level_array(policy) else np.broadcast_to(policy, (len(weight), K))
    return probabilities * weight[:, None]


def _predict_gain_over_mix(curves: Array, costs: Array, share: Array, weight: Array) -> float:
    """Return a policy's predicted gain over the best mix of levels for all customers at the same cost."""
    value, spend = float((share * curves).sum()), float((share * costs).sum())
    means = weight @ curves
    return value - float(mix_two_levels(means, weight @ costs, spend) @ means)


# -- both together ----------------------------------------------------------------------------------------------------


def combine_evidence(name: str, log: Estimate, model: PredictedGain | None) -> GainEvidence:
    """Combine the log's and the model's estimates of a gain, weighted by their precision."""
    if model is None:
        return GainEvidence(name, log, compute_probability_above_zero(log.estimate, log.se), None, log)
    expected = model.promise + DRAW_SHARE * (model.mean - model.promise)
    spread = math.hypot(DRAW_FACTOR * model.deviation, LOG_ERROR * log.se)
    se = math.hypot(spread, PROMISE_ERROR * model.promise)
    alone = _make_t_estimate(expected, se, MODEL_FREEDOM)
    if log.se <= ROUNDING:  # a policy that gives everyone the same: the mix itself
        return GainEvidence(name, log, compute_probability_above_zero(log.estimate, log.se), alone, log)
    # Of a normal interval as long as the model's; a large promise is no excuse for a contradiction.
    wide = spread * t_quantile(MODEL_FREEDOM) / t_quantile(MANY_FREEDOM)
    if abs(log.estimate - expected) > CONTRADICTION * math.hypot(wide, log.se):
        return GainEvidence(
            name, log, compute_probability_above_zero(log.estimate, log.se), alone, log, contradiction=True
        )
    share = log.se**2 / (log.se**2 + se**2)  # of the model
    mean, both = share * expected + (1 - share) * log.estimate, math.sqrt(share) * se
    freedom = MODEL_FREEDOM / share**2  # Welch–Satterthwaite: the log's errors are normal
    return GainEvidence(
        name, _make_t_estimate(mean, both, freedom), compute_probability_above_zero(mean, both, freedom), alone, log
    )


def _make_t_estimate(mean: float, se: float, freedom: float) -> Estimate:
    half = t_quantile(freedom) * se
    return Estimate(mean, se, mean - half, mean + half)


def compute_probability_above_zero(mean: float, se: float, freedom: float = math.inf) -> float:
    """Return the probability of a positive gain, given the gain's estimate and standard error.

    >>> compute_probability_above_zero(0.0, 1.0), compute_probability_above_zero(9.0, 1.0)
    (0.5, 0.99)
    """
    from scipy.special import stdtr

    if abs(mean) <= ROUNDING and se <= ROUNDING:
        return 0.5
    probability = float(stdtr(min(freedom, MANY_FREEDOM), mean / max(se, ROUNDING)))
    return min(max(probability, PROBABILITY_RANGE[0]), PROBABILITY_RANGE[1])


# -- the decision -----------------------------------------------------------------------------------------------------


def _choose_recommendation(options: tuple[GainEvidence, ...], safety: PolicyGainBounds, rows: int) -> Verdict:
    plan, bounds = options[0], {"plan": safety.options[0].at_least}
    if len(safety.options) > 1:
        bounds["rule"] = safety.options[1].at_least
    # A simpler choice than the plan is not made on evidence that contradicts itself.
    sound = [option for option in options if option.name == "plan" or not option.contradiction]
    better = [option for option in sound if option.probability >= PROBABLE and option.gain.estimate > 0]
    best = max(better, key=lambda option: option.gain.estimate, default=None)
    judged = best if best is not None and best.name == "rule" else plan
    needed = count_needed_rows(rows, replace(judged.log, estimate=judged.gain.estimate))
    verdict = Verdict(
        recommended="mix" if best is None else best.name,
        grade=_grade_evidence(judged, bounds[judged.name]),
        options=options,
        at_least=bounds["plan"],
        needed_rows=None if needed is None or judged.gain.estimate <= 0 else needed.rows,
    )
    if judged.contradiction:
        text = "The model expects another gain than the log shows; the verdict follows the log alone."
        return replace(verdict, reason=text)
    return verdict


def _grade_evidence(option: GainEvidence, at_least: float | None) -> str:
    shown = at_least is not None and at_least > 0 and option.probability >= CERTAIN
    if shown and not option.contradiction:  # of four wrong proofs in 135, two contradict the model
        return "proved"
    if option.probability >= VERY_PROBABLE:
        return "best bet"
    if option.probability >= PROBABLE:
        return "slightly better"
    return "no difference" if option.probability > IMPROBABLE else "rather not"


def count_needed_rows(rows: int, gain: Estimate) -> NeededRows | None:
    """Return the number of log rows that would confirm a gain; None if the estimate or its error is zero.

    >>> count_needed_rows(1000, Estimate(0.02, 0.02, -0.02, 0.06))
    NeededRows(times=7.839999999999999, rows=7839.999999999999)
    """
    if not (gain.estimate and gain.se and math.isfinite(gain.estimate) and math.isfinite(gain.se)):
        return None
    times = (DETECTABLE_ERRORS * gain.se / abs(gain.estimate)) ** 2
    return NeededRows(times, rows * times if times <= MAX_LOG_MULTIPLE else None)
