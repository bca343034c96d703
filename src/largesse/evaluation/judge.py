"""The verb: what a policy will bring and cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from largesse.errors import Problem, fail, nearest, refuse
from largesse.evaluation.budgets import plan_held_out
from largesse.evaluation.crossfitting import Tell, crossfit
from largesse.evaluation.estimators import ESTIMATORS
from largesse.evaluation.findings import findings
from largesse.evaluation.overlap import measure_overlap
from largesse.evaluation.value import (
    INTERVALS,
    compare_references,
    compare_uniform,
    estimate_difference,
    estimate_per_spend,
    estimate_value,
    predict_value,
)
from largesse.records import Array, Customers, Estimate, Evaluation, Finding, Log, Overlap, Scores


def evaluate(
    log: Log,
    policy: Any,
    *,
    budget: float | None = None,
    estimator: str = "dr",
    interval: str = "influence",
    folds: int = 5,
    seed: int = 0,
    tell: Tell | None = None,
) -> Evaluation:
    """Estimate the value and spend of a policy from a log, each with a 95 % interval.

    Parameters
    ----------
    log
        What was done and what happened.
    policy
        A `Policy` or a `BanditNet`; levels (n,) or probabilities (n, K) for the log's rows; or, with `budget`, a
        response model: then the policy is learnt on this log and judged only on rows that did not train it.
    budget
        Average cost per customer, with a model.
    estimator
        "dr", cross-fitted doubly robust; or "direct", "ips", "snips", "sndr", "switch", "dros": see `estimators`.
    interval
        "influence", from the influence of each row; or "bootstrap", by resampling. Both respect clusters.
    folds, seed
        How the log is cut, and what is resampled.

    >>> from largesse.worlds import simulate
    >>> log = simulate("averaged", n=1000, seed=1).log
    >>> everyone = np.full(len(log), 2)
    >>> result = evaluate(log, everyone)
    >>> result.spend, result.value_interval[0] < result.value < result.value_interval[1]
    (2.0, True)
    """
    _check(estimator, interval)
    scores, chances, more = _scored(log, policy, budget, folds, seed, tell)
    return evaluate_scores(log, scores, chances, estimator=estimator, interval=interval, seed=seed, **more)


def compare(
    log: Log,
    policy: Any,
    other: Any,
    *,
    budget: float | None = None,
    estimator: str = "dr",
    folds: int = 5,
    seed: int = 0,
) -> tuple[Estimate, Estimate]:
    """Return by how much `policy` brings more and costs more than `other`, paired, each with a 95 % interval.

    Both are given as in `evaluate`; they are judged on the same rows, by the same folds, each with its own curves.

    >>> from largesse.worlds import simulate
    >>> log = simulate("averaged", n=1000, seed=1).log
    >>> value, spend = compare(log, np.full(1000, 4), np.full(1000, 0))
    >>> value.low > 0, spend.estimate
    (True, 4.0)
    """
    _check(estimator, INTERVALS[0])
    scores, chances, _ = _scored(log, policy, budget, folds, seed, None)
    if hasattr(policy, "predict") or hasattr(policy, "decide") or hasattr(other, "predict") or hasattr(other, "decide"):
        others, against, _ = _scored(log, other, budget, folds, seed, None)
    else:  # neither brings a model: the same curves serve both
        others, against = scores, _checked_policy(other, log)
    return estimate_difference(scores, chances, against, estimator, others)


def evaluate_scores(
    log: Log,
    scores: Scores,
    policy: Array,
    *,
    budget: float | None = None,
    promise: float | None = None,
    also: tuple[Finding, ...] = (),
    seen: Overlap | None = None,
    estimator: str = "dr",
    interval: str = "influence",
    seed: int = 0,
) -> Evaluation:
    """Judge levels (n,) or probabilities (n, K) by scores that are already there."""
    seen = measure_overlap(log, scores.propensity) if seen is None else seen
    value, spend = estimate_value(scores, policy, estimator, interval, seed)
    each, more = estimate_per_spend(scores, policy, estimator)
    warned = findings(seen, scores, log.levels, log.notes)
    return Evaluation(
        value=value.estimate,
        value_interval=value.interval,
        value_se=value.se,
        spend=spend.estimate,
        spend_interval=spend.interval,
        spend_se=spend.se,
        estimator=estimator,
        rows=len(log),
        clusters=None if log.cluster is None else len(np.unique(log.cluster)),
        propensity=scores.propensity_source,
        clipped=scores.clipped,
        budget=budget,
        promise=promise,
        references=compare_references(scores, policy, log.levels, estimator),
        warnings=(*also, *warned),
        uniform=compare_uniform(scores, policy, log.levels, estimator),
        per_spend=each,
        gain_per_spend=more,
        clipped_weight=scores.clipped_weight,
        interval=interval,
    )


def _scored(
    log: Log, policy: Any, budget: float | None, folds: int, seed: int, tell: Tell | None
) -> tuple[Scores, Array, dict[str, Any]]:
    """Return the scores to judge a policy by, the policy on the log's rows, and what else there is to say of it."""
    also: tuple[Finding, ...] = ()
    if hasattr(policy, "probabilities") and not hasattr(policy, "model"):  # it has no response model, such as BanditNet
        also = _seen(policy, log, "Judge it by a log that it did not learn from.")
        policy = policy.probabilities(log)
    if hasattr(policy, "decide"):
        return _of_policy(log, policy, folds, seed, tell)
    if hasattr(policy, "predict"):
        return _of_model(log, policy, budget, folds, seed, tell)
    chances = _checked_policy(policy, log)
    return crossfit(log, None, folds=folds, seed=seed, tell=tell), chances, {"also": also}


def _seen(learnt: Any, log: Log, instead: str) -> tuple[Finding, ...]:
    """Warn of what learnt from this log being judged by it."""
    if getattr(learnt, "fingerprint_", None) != log.fingerprint:
        return ()
    return (Finding("careful", f"This policy was learnt on this very log, so its value here is too good. {instead}"),)


def _of_policy(log: Log, policy: Any, folds: int, seed: int, tell: Tell | None) -> tuple[Scores, Array, dict[str, Any]]:
    if len(policy.levels) != len(log.levels):
        got = f"the policy chooses among {len(policy.levels)} levels, the log has {len(log.levels)}"
        refuse("evaluate", [Problem(got, "a policy can be judged only by a log of the same levels")])
    customers = Customers(log.features, None, log.costs)
    curves = policy.model.predict(log.features)
    draws = getattr(policy, "explore", 0.0) or getattr(policy, "share", 0.0)
    done = policy.probabilities(customers) if draws else policy.decide(customers)
    promise = predict_value(curves, done, log.weight)
    also = _seen(policy.model, log, "evaluate(log, model, budget=…) judges each row by models that never saw it.")
    scores = crossfit(log, policy.model, folds=folds, seed=seed, tell=tell)
    return scores, done, {"promise": promise, "also": also}


def _of_model(
    log: Log, model: Any, budget: float | None, folds: int, seed: int, tell: Tell | None
) -> tuple[Scores, Array, dict[str, Any]]:
    if budget is None:
        hint = "give the budget too: evaluate(log, model, budget=1.7)"
        fail("evaluate", Problem("a model alone does not say who gets what", hint))
    scores = crossfit(log, model, folds=folds, seed=seed, tell=tell)
    levels = plan_held_out(scores, budget).levels
    return scores, levels, {"budget": budget, "promise": predict_value(scores.curves, levels, scores.weight)}


def _check(estimator: str, interval: str) -> None:
    problems = []
    if estimator not in ESTIMATORS:
        problems.append(Problem(f"estimator {estimator!r} is not known", nearest(str(estimator), ESTIMATORS)))
    if interval not in INTERVALS:
        problems.append(Problem(f"interval {interval!r} is not known", nearest(str(interval), INTERVALS)))
    refuse("evaluate", problems)


def _checked_policy(policy: Any, log: Log) -> Array:
    given = np.asarray(policy)
    n, K = len(log), len(log.levels)
    problems = []
    if given.shape == (n,):
        whole = np.issubdtype(given.dtype, np.number) and np.all(np.equal(np.mod(given, 1), 0))
        if not whole or given.min() < 0 or given.max() >= K:
            problems.append(
                Problem("the policy's levels are not whole numbers from 0 to K−1", f"this log has levels 0 to {K - 1}")
            )
        refuse("evaluate", problems)
        return given.astype(np.int64)
    if given.shape != (n, K):
        problems.append(
            Problem(
                f"the policy has shape {given.shape}",
                f"give levels ({n},) or probabilities ({n}, {K}) for the log's rows",
            )
        )
    elif (
        not np.issubdtype(given.dtype, np.number)
        or (given < 0).any()
        or not np.allclose(given.sum(axis=1), 1.0, atol=1e-6)
    ):
        problems.append(
            Problem("the policy's rows are not probabilities", "each row must be zero or more and sum to one")
        )
    refuse("evaluate", problems)
    return given.astype(np.float64)
