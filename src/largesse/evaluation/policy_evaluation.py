"""Evaluation of one policy, and comparison of two policies, on a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from largesse.allocation import Constraints, add_cheapest_level
from largesse.errors import (
    Problem,
    fail,
    find_integer_problems,
    import_optional_package,
    percent,
    plural,
    refuse,
    repr_short,
    suggest,
)
from largesse.evaluation.crossfitted_scores import (
    compute_scores,
    crossfit_scores,
    predict_out_of_fold,
    restrict_scores_to_support,
)
from largesse.evaluation.estimators import ESTIMATORS
from largesse.evaluation.frontier_estimate import ConstrainedFoldPlanner, plan_each_fold
from largesse.evaluation.influence_functions import join_intervals
from largesse.evaluation.log_checks import (
    check_log,
    describe_unsupported_cells,
    encode_log_if_propensities_unknown,
    find_overlap_warnings,
)
from largesse.evaluation.one_column_rule import learn_one_column_rules
from largesse.evaluation.partial_identification import widen_for_unsupported_levels
from largesse.evaluation.policy_estimates import (
    INTERVAL_KINDS,
    bootstrap_value_and_spend,
    compare_references,
    compare_with_each_level,
    count_if_few_nonzero_responses,
    estimate_from_policy_influence,
    estimate_policy_difference,
    measure_level_influence,
    measure_policy_influence,
    predict_mean_response,
)
from largesse.evaluation.policy_gain_bounds import bound_policy_gains
from largesse.evaluation.profit_estimate import estimate_profit
from largesse.evaluation.verdict import give_verdict
from largesse.progress import report_to, start_stage, subrange
from largesse.propensity import estimate_propensities, find_unsupported_cells, mark_supported_levels
from largesse.records import (
    Array,
    Checkup,
    Comparison,
    Customers,
    Estimate,
    Evaluation,
    Finding,
    HeldOutPlan,
    HeldOutPredictions,
    Log,
    Progress,
    Propensities,
    Scores,
    UnsupportedCells,
)
from largesse.stats import assign_folds

MIN_UNSUPPORTED_SHARE = 0.001  # of the customers of a policy, at which levels without support are named


@dataclass(frozen=True, eq=False)
class PolicyToEvaluate:
    """Policy to evaluate on a log, with the model behind it."""

    policy: Array | None  # levels (n,) or probabilities (n, K) for the log's rows; None: to be learnt on this log
    model: Any = None  # response model whose curves the scores correct; None: the default outcome model
    budget: float | None = None
    promise: float | None = None  # the model's own prediction of the policy's value
    warnings: tuple[Finding, ...] = ()

    def with_held_out_plan(self, plan: HeldOutPlan, scores: Scores) -> PolicyToEvaluate:
        """Return the policy record with a held-out plan of the log as the policy."""
        return replace(
            self, policy=plan.policy, promise=predict_mean_response(scores.curves, plan.policy, scores.weight)
        )


def evaluate(
    log: Log,
    policy: Any,
    *,
    budget: float | None = None,
    constraints: Constraints | None = None,
    estimator: str = "dr",
    interval: str = "influence",
    folds: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Estimate the value and the spend of a policy from a log, with 95 % confidence intervals.

    The policy is compared with uniform policies and with the logged one. A policy that is learnt here never gives a level to
    a kind of customers who never got it in the log. Warnings name levels with too few rows; `doctor` runs all checks of the log.

    Parameters
    ----------
    log
        Past decisions and their outcomes.
    policy
        A `Policy` or a `BanditNet`; levels (n,) or probabilities (n, K) for the log's rows; a function of a dataframe of
        features that returns either, levels also by name; or, with `budget`, a response model: then the policy is learnt on this
        log and evaluated only on rows that did not train it.
    budget
        Average cost per customer, with a model.
    constraints
        Further rules of the plan for the log's rows, with a model: see `allocate`. Each fold is planned under its part of them.
    estimator
        "dr", cross-fitted doubly robust; or "direct", "ips", "snips", "sndr", "switch", "dros": see `ESTIMATORS`.
    interval
        "influence", from the influence of each row; or "bootstrap", by resampling. Both respect clusters.
    folds, seed
        The number of folds, and the seed of folds and resampling.
    progress
        Called with the name of a stage and the finished share of it.

    Examples
    --------
    >>> from largesse.worlds import simulate
    >>> log = simulate("averaged", n=1000, seed=1).log
    >>> everyone = np.full(len(log), 2)
    >>> result = evaluate(log, everyone)
    >>> result.spend, result.value_interval[0] < result.value < result.value_interval[1]
    (2.0, True)
    """
    check_estimator_and_interval(estimator, interval)
    check_log_and_folds(log, folds, seed)
    candidate = recognise_policy(log, policy, budget)
    if constraints is not None and candidate.policy is not None:
        hint = "give a model and a budget, or leave the constraints out"
        fail("evaluate", Problem("constraints are given for a policy that is already made", hint))
    constraints = None if constraints is None else constraints.number_levels(log.levels.labels)
    held = predict_out_of_fold(log, candidate.model, folds=folds, seed=seed, progress=progress)
    propensities = estimate_propensities(log, held.fold, seed)
    scores, learnt, cells = compute_scores(log, held, propensities), candidate.policy is None, propensities.unsupported
    cells = find_unsupported_cells(log, seed) if cells is None else cells
    supported = mark_supported_levels(cells, log)
    warnings = (
        *find_overlap_warnings(log, propensities),
        *_warn_of_unsupported_levels(log, candidate.policy, scores, cells, supported),
    )
    if learnt:
        allowed = add_cheapest_level(supported)
        scores = restrict_scores_to_support(scores, allowed)
        candidate = learn_policy_at_budget(candidate, scores, _restrict_eligible_levels(constraints, allowed))
    assert candidate.policy is not None
    options: Any = {"estimator": estimator, "seed": seed}
    evaluation = evaluate_from_scores(log, scores, candidate, propensities, warnings, interval=interval, **options)
    if learnt:
        evaluation = widen_for_unsupported_levels(scores, candidate.policy, evaluation, supported)
    rules = learn_one_column_rules(log, scores, candidate.policy) if constraints is None else None
    safety = bound_policy_gains(log, scores, candidate.policy, rules, estimator=estimator, learnt=learnt)
    verdict = give_verdict(log, scores, candidate.policy, rules, safety, evaluation.warnings, **options)
    return replace(evaluation, verdict=verdict)


def compare(
    log: Log,
    policy: Any,
    other: Any,
    *,
    budget: float | None = None,
    estimator: str = "dr",
    folds: int = 5,
    seed: int = 0,
) -> Comparison:
    """Estimate the paired differences in value and spend between two policies, with 95 % confidence intervals.

    Both are given as in `evaluate`. They are evaluated on the same rows and folds, each with its own curves.

    >>> from largesse.worlds import simulate
    >>> log = simulate("averaged", n=1000, seed=1).log
    >>> value, spend = compare(log, np.full(1000, 4), np.full(1000, 0))
    >>> value.low > 0, spend.estimate
    (True, 4.0)
    """
    check_estimator_and_interval(estimator)
    check_log_and_folds(log, folds, seed)
    candidate, rival = recognise_policy(log, policy, budget), recognise_policy(log, other, budget)
    propensities = estimate_propensities(log, assign_folds(log, folds, seed), seed)
    scores = rival_scores = crossfit_scores(log, candidate.model, folds=folds, seed=seed, propensities=propensities)
    if rival.model is not candidate.model:
        rival_scores = crossfit_scores(log, rival.model, folds=folds, seed=seed, propensities=propensities)
    left, right = learn_policy_at_budget(candidate, scores).policy, learn_policy_at_budget(rival, rival_scores).policy
    assert left is not None
    assert right is not None
    return estimate_policy_difference(scores, left, right, estimator, rival_scores)


def score_and_check_log(
    log: Log,
    held: HeldOutPredictions,
    seed: int = 0,
    progress: Progress | None = None,
    propensities: Propensities | None = None,
    *,
    bar: bool = True,
    cells: UnsupportedCells = UnsupportedCells(),  # noqa: B008 - a frozen value
) -> tuple[Scores, Checkup]:
    """Compute the doubly robust scores and the checks of a log from its out-of-fold predictions.

    Known propensities are not estimated again. With `bar`, the scores are within the support of the log, and outside of further
    `cells`: those of the log that the policy was learnt from, if it is another one.
    """
    with report_to(progress):
        if progress is not None:
            start_stage("examining the log", len(log))
        features = encode_log_if_propensities_unknown(log, seed, held.fold)
        with subrange(0.0, 0.8):
            propensities = propensities or estimate_propensities(log, held.fold, seed, features)
        scores, checkup = compute_scores(log, held, propensities), check_log(log, propensities, features, seed)
        if bar:
            scores = restrict_scores_to_support(
                scores, add_cheapest_level(mark_supported_levels(checkup.unsupported.join(cells), log))
            )
        return scores, checkup


def evaluate_from_scores(
    log: Log,
    scores: Scores,
    candidate: PolicyToEvaluate,
    propensities: Propensities,
    warnings: tuple[Finding, ...],
    *,
    estimator: str = "dr",
    interval: str = "influence",
    seed: int = 0,
) -> Evaluation:
    """Estimate the value and the spend of a policy from existing scores of a log."""
    policy, response_value = candidate.policy, log.response_value
    assert policy is not None  # learnt by now
    own, cheapest = measure_policy_influence(scores, policy, estimator), measure_level_influence(scores, 0, estimator)
    value, spend = estimate_from_policy_influence(scores, own)
    profit = None if response_value is None else estimate_profit(scores, own, cheapest, response_value)
    if interval == "bootstrap":
        # No resampled log has a larger purchase than the largest, so resampling alone would promise too much.
        drawn = bootstrap_value_and_spend(scores, policy, estimator, response_value, seed)
        value, spend = join_intervals(drawn[0], value), join_intervals(drawn[1], spend)
        profit = None if profit is None else replace(profit, own=join_intervals(drawn[2], profit.own))
    return Evaluation(
        value=value.estimate,
        value_interval=value.interval,
        value_se=value.se,
        spend=spend.estimate,
        spend_interval=spend.interval,
        spend_se=spend.se,
        estimator=estimator,
        rows=len(log),
        clusters=log.clusters,
        propensity=propensities.source,
        clipped=propensities.clipped,
        budget=candidate.budget,
        promise=candidate.promise,
        references=compare_references(scores, own, log.levels, estimator, response_value),
        warnings=(*candidate.warnings, *_warn_of_few_responses(scores, policy, value, spend), *warnings),
        uniform=compare_with_each_level(scores, own, cheapest, log.levels, estimator, response_value),
        clipped_weight=propensities.clipped_weight,
        interval=interval,
        profit=profit,
    )


def _warn_of_few_responses(scores: Scores, policy: Array, *estimates: Estimate) -> tuple[Finding, ...]:
    """Return a warning if too few nonzero responses leave an estimate without an interval."""
    missing = any(np.isfinite(part.estimate) and not np.isfinite(part.high) for part in estimates)
    few = count_if_few_nonzero_responses(scores, policy) if missing else None
    if few is None:
        return ()
    text = f"Only {plural(few, 'customer')} with a non-zero response {'carries' if few == 1 else 'carry'} this estimate"
    return (Finding("interval", "careful", f"{text}: too few for an interval."),)


# -- policies in any form ---------------------------------------------------------------------------------------------


def recognise_policy(log: Log, policy: Any, budget: float | None = None) -> PolicyToEvaluate:
    """Convert a policy of any form (`Policy`, levels, probabilities, model with a budget) to one record."""
    if hasattr(policy, "decide") and hasattr(policy, "model"):
        return _apply_policy_model(log, policy)
    if hasattr(policy, "decide"):  # a policy without a response model, such as BanditNet
        warnings = _warn_if_trained_on_log(policy, log, "Evaluate it on a log that it was not trained on.")
        return PolicyToEvaluate(_check_policy_array(policy.probabilities(log), log), warnings=warnings)
    if callable(policy) and not hasattr(policy, "predict"):
        return PolicyToEvaluate(_check_policy_array(_call_policy_function(policy, log), log))
    if not hasattr(policy, "predict"):
        return PolicyToEvaluate(_check_policy_array(policy, log))
    if budget is None:
        hint = "give the budget too: evaluate(log, model, budget=1.7)"
        fail("evaluate", Problem("a model alone does not say who gets what", hint))
    return PolicyToEvaluate(None, policy, budget)


def _call_policy_function(policy: Callable[[Any], Any], log: Log) -> Any:
    """Call a policy function on a log's features, and return its levels or probabilities."""
    pandas = import_optional_package(
        "pandas", "", "evaluate", hint="pip install pandas: a function gets a dataframe of features"
    )
    chosen = np.asarray(policy(log.features.to_pandas()))
    numbers = {label: number for number, label in enumerate(log.levels.labels)}
    if chosen.dtype.kind in "OU" and chosen.ndim == 1:
        unknown = [str(name) for name in pandas.unique(chosen) if str(name) not in numbers]
        refuse(
            "evaluate", [Problem(f"the function gives the level {name!r}", suggest(name, numbers)) for name in unknown]
        )
        return np.array([numbers[str(name)] for name in chosen])
    return chosen


def _apply_policy_model(log: Log, policy: Any) -> PolicyToEvaluate:
    """Apply a policy with a response model, such as `Policy`, to a log's rows."""
    if len(policy.levels) != len(log.levels):
        got = f"the policy chooses among {len(policy.levels)} levels, the log has {len(log.levels)}"
        fail("evaluate", Problem(got, "evaluate a policy on a log with the same levels"))
    probabilities = policy.probabilities(Customers(log.features, None, log.costs))
    promise = predict_mean_response(policy.model.predict(log.features), probabilities, log.weight)
    hint = "evaluate(log, model, budget=…) evaluates each row with models that never saw it."
    return PolicyToEvaluate(
        probabilities, policy.model, promise=promise, warnings=_warn_if_trained_on_log(policy.model, log, hint)
    )


def learn_policy_at_budget(
    candidate: PolicyToEvaluate, scores: Scores, constraints: Constraints | None = None
) -> PolicyToEvaluate:
    """Learn a policy for the log's rows at a budget, unless the policy is given."""
    if candidate.policy is not None or candidate.budget is None:
        return candidate
    planner = None if constraints is None else ConstrainedFoldPlanner(constraints, len(scores.level))
    return candidate.with_held_out_plan(plan_each_fold(scores, candidate.budget, planner=planner), scores)


def _restrict_eligible_levels(constraints: Constraints | None, allowed: Array | None) -> Constraints | None:
    """Restrict the eligible levels of constraints to allowed levels (n, K)."""
    if constraints is None or allowed is None:
        return constraints
    eligible = allowed if constraints.eligible is None else np.asarray(constraints.eligible, dtype=bool)
    both = eligible & allowed
    return replace(constraints, eligible=np.where(both.any(axis=1, keepdims=True), both, eligible))


def _warn_of_unsupported_levels(
    log: Log, policy: Array | None, scores: Scores, cells: UnsupportedCells, supported: Array | None
) -> tuple[Finding, ...]:
    """Return a warning if a policy gives levels that the log does not support."""
    if policy is None or supported is None:
        return ()
    probability = np.eye(len(log.levels))[policy] if policy.ndim == 1 else policy
    share = float(scores.weight @ (probability * ~supported).sum(axis=1) / scores.weight.sum())
    if share < MIN_UNSUPPORTED_SHARE:
        return ()
    text = f"The policy gives levels that the log does not support to {percent(share)} of the customers, so this value is a guess."
    return (Finding("support", "no", f"{text} {describe_unsupported_cells(cells, log.levels.titles)}"),)


def _warn_if_trained_on_log(learnt: Any, log: Log, instead: str) -> tuple[Finding, ...]:
    if getattr(learnt, "fingerprint_", None) != log.fingerprint:
        return ()
    text = f"This policy was trained on this log, so the estimate is too optimistic. {instead}"
    return (Finding("training log", "careful", text),)


def check_log_and_folds(log: Any, folds: Any, seed: Any) -> None:
    """Refuse an invalid log, number of folds or seed."""
    problems = [] if isinstance(log, Log) else [Problem(f"the log is {repr_short(log)}", "read it first: read_log(…)")]
    problems += find_integer_problems(folds, "folds", least=2) + find_integer_problems(seed, "the seed", most=2**32 - 1)
    refuse("evaluate", problems)


def check_estimator_and_interval(estimator: str, interval: str = INTERVAL_KINDS[0]) -> None:
    """Refuse an unknown estimator, or an unknown kind of interval."""
    refuse(
        "evaluate",
        [
            Problem(f"{kind} {choice!r} is not known", suggest(str(choice), known))
            for kind, choice, known in (("estimator", estimator, ESTIMATORS), ("interval", interval, INTERVAL_KINDS))
            if not isinstance(choice, str) or choice not in known  # type: ignore[redundant-expr]
        ],
    )


def _check_policy_array(policy: Any, log: Log) -> Array:
    """Check an array of levels (n,) or probabilities (n, K), and return it as integers or floats."""
    n, K = len(log), len(log.levels)
    try:
        array = np.asarray(policy)
    except (TypeError, ValueError):
        hint = "give one level per row of the log, or one probability for each row and level"
        fail("evaluate", Problem(f"the policy is a {type(policy).__name__} that is no array of numbers", hint))
    numbers = np.issubdtype(array.dtype, np.number)
    if array.shape == (n,):
        if not (numbers and np.all(np.equal(np.mod(array, 1), 0))) or array.min() < 0 or array.max() >= K:
            hint = f"this log has levels 0 to {K - 1}"
            fail("evaluate", Problem("the policy's levels are not whole numbers from 0 to K−1", hint))
        return array.astype(np.int64)
    if array.shape != (n, K):
        hint = f"give levels ({n},) or probabilities ({n}, {K}) for the log's rows"
        fail("evaluate", Problem(f"the policy has shape {array.shape}", hint))
    if not numbers or (array < 0).any() or not np.allclose(array.sum(axis=1), 1.0, atol=1e-6):
        hint = "each row must be zero or more and sum to one"
        fail("evaluate", Problem("the policy's rows are not probabilities", hint))
    return array.astype(np.float64)
