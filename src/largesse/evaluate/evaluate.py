"""The verb: what a policy will bring and cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from largesse.errors import Problem, nearest, refuse
from largesse.evaluate.findings import findings
from largesse.evaluate.overlap import overlap
from largesse.evaluate.scores import Tell, crossfit
from largesse.evaluate.value import learnt_levels, policy_value, references
from largesse.records import Array, Customers, Evaluation, Finding, Log, Scores

ESTIMATORS = ("dr",)


def evaluate(
    log: Log,
    policy: Any,
    *,
    budget: float | None = None,
    estimator: str = "dr",
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
        A `Policy` or a `BanditNet`; levels (n,) or probabilities (n, K) for the log's rows; or, with `budget`, a response model: then
        the policy is learnt on this log and judged only on rows that did not train it.
    budget
        Average cost per customer, with a model.
    estimator
        "dr": cross-fitted doubly robust.
    folds, seed
        How the log is cut.

    >>> from largesse.data import simulate
    >>> log = simulate("averaged", n=1000, seed=1).log
    >>> everyone = np.full(len(log), 2)
    >>> result = evaluate(log, everyone)
    >>> result.spend, result.value_interval[0] < result.value < result.value_interval[1]
    (2.0, True)
    """
    _check(estimator)
    if hasattr(policy, "chances"):  # a policy that has no response model, such as BanditNet
        policy = policy.chances(log)
    if hasattr(policy, "decide"):
        return _of_policy(log, policy, folds, seed, tell)
    if hasattr(policy, "predict"):
        return _of_model(log, policy, budget, folds, seed, tell)
    chances = _checked_policy(policy, log)
    scores = crossfit(log, None, folds=folds, seed=seed, tell=tell)
    return evaluate_scores(log, scores, chances)


def evaluate_scores(
    log: Log,
    scores: Scores,
    policy: Array,
    *,
    budget: float | None = None,
    promise: float | None = None,
    also: tuple[Finding, ...] = (),
) -> Evaluation:
    """Judge levels (n,) or probabilities (n, K) by scores that are already there."""
    value, spend = policy_value(scores, policy)
    warned = findings(overlap(log, scores.propensity), scores, log.levels, log.notes)
    return Evaluation(
        value=value.estimate,
        value_interval=value.interval,
        value_se=value.se,
        spend=spend.estimate,
        spend_interval=spend.interval,
        spend_se=spend.se,
        estimator="dr",
        rows=len(log),
        clusters=None if log.cluster is None else len(np.unique(log.cluster)),
        propensity=scores.propensity_source,
        clipped=scores.clipped,
        budget=budget,
        promise=promise,
        references=references(scores, policy, log.levels),
        warnings=(*also, *warned),
    )


def _of_policy(log: Log, policy: Any, folds: int, seed: int, tell: Tell | None) -> Evaluation:
    if len(policy.levels) != len(log.levels):
        got = f"the policy chooses among {len(policy.levels)} levels, the log has {len(log.levels)}"
        refuse("evaluate", [Problem(got, "a policy can be judged only by a log of the same levels")])
    levels = policy.decide(Customers(log.features, None, log.costs))
    curves = policy.model.predict(log.features)
    promise = float(np.average(curves[np.arange(len(log)), levels], weights=log.weight))
    seen = getattr(policy.model, "fingerprint_", None) == log.fingerprint
    also: tuple[Finding, ...] = ()
    if seen:
        text = (
            "This policy was learnt on this very log, so its value here is too good. "
            "evaluate(log, model, budget=…) judges each row by models that never saw it."
        )
        also = (Finding("careful", text),)
    scores = crossfit(log, policy.model, folds=folds, seed=seed, tell=tell)
    return evaluate_scores(log, scores, levels, promise=promise, also=also)


def _of_model(log: Log, model: Any, budget: float | None, folds: int, seed: int, tell: Tell | None) -> Evaluation:
    if budget is None:
        refuse(
            "evaluate",
            [
                Problem(
                    "a model alone does not say who gets what", "give the budget too: evaluate(log, model, budget=1.7)"
                )
            ],
        )
        raise AssertionError
    scores = crossfit(log, model, folds=folds, seed=seed, tell=tell)
    levels = learnt_levels(scores, budget)
    promise = float(scores.weight @ scores.curves[np.arange(len(log)), levels] / scores.weight.sum())
    return evaluate_scores(log, scores, levels, budget=budget, promise=promise)


def _check(estimator: str) -> None:
    if estimator not in ESTIMATORS:
        refuse("evaluate", [Problem(f"estimator {estimator!r} is not known", nearest(estimator, ESTIMATORS))])


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
