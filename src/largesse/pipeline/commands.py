"""Commands of a campaign: run, or fit, plan, evaluate and report step by step through a run folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from largesse.campaign import Campaign, SpendingOverrides, read_campaign
from largesse.data import QueriedFile
from largesse.errors import LargesseError, Problem, fail, refuse, suggest
from largesse.evaluation import (
    ESTIMATORS,
    check_customer_shift,
    estimate_at_slider_budgets,
    make_study_from_scores,
    measure_spend_by_price,
    score_and_check_log,
    select_score_rows,
    weight_log_to_customers,
)
from largesse.exploration import ResponseVariance, find_confirmatory_exploration, measure_response_variance
from largesse.io import atomic_file, file_transaction, read_record, to_json
from largesse.pipeline import run_folder as files
from largesse.pipeline.customer_sources import open_planned_customers
from largesse.pipeline.engine_protocol import Engine, ScoredCustomers
from largesse.pipeline.local_engine import LocalEngine
from largesse.pipeline.out_of_fold_cache import make_cache_key, read_scores
from largesse.pipeline.scored_customer_plan import check_feasible, check_fixed_customers, make_fold_planner, make_plan
from largesse.pipeline.simpler_plan import check_simpler_plan_kind, make_simpler_plan
from largesse.policy import Policy
from largesse.progress import report_to, start_stage
from largesse.propensity import find_unsupported_cells
from largesse.records import (
    Checkup,
    Finding,
    HeldOutPredictions,
    Log,
    PlanSummary,
    Progress,
    Propensities,
    Scores,
    Study,
    StudySummary,
    UnsupportedCells,
)
from largesse.report import CampaignHeading, draw_slides, join_report_numbers, render_report, write_report_date
from largesse.response import ResponseModel, WithCosts, check_model_name, fit_out_of_fold, make_model
from largesse.stats import assign_folds, choose_fold_count

LOCAL_ENGINE = LocalEngine()


def show_no_progress(_stage: str, _done: float, /) -> None:
    """Ignore a report of progress."""


@dataclass(frozen=True, eq=False)
class LogScores:
    """Out-of-fold curves, doubly robust scores and checks of a log, the input of every evaluation."""

    held: HeldOutPredictions
    scores: Scores
    checkup: Checkup


# -- the whole way ----------------------------------------------------------------------------------------------------


def run(
    campaign: Campaign,
    out: str | Path,
    progress: Progress = show_no_progress,
    *,
    table: Any = None,
    engine: Engine = LOCAL_ENGINE,
    strict: bool = False,
) -> dict[str, Any]:
    """Fit, plan, evaluate and report a campaign into a run folder, and return the report's numbers.

    `table` replaces the campaign's log: the folder keeps it under the name that the campaign gives. A Parquet file may be named by
    its path, and is linked or copied. `strict` refuses to plan from a log that cannot answer.
    """
    check_model_name(campaign.model)
    campaign = campaign.spending()
    files.check_output_folder(campaign, out, own_log=table is not None)
    with report_to(None if progress is show_no_progress else progress) as report_progress:
        report_progress("reading", 0.0)
        log, campaign = _read_log(campaign, engine, table)
        customers = open_planned_customers(campaign, log, engine)
        check_feasible(campaign, customers)
        with files.replace_run_folder(out) as folder:
            if table is not None:
                files.write_log(folder / campaign.log, table)
            files.write_text(folder / files.CAMPAIGN_FILE, campaign.text)

            model, held = fit_model(campaign, log, report_progress)
            log_scores = score_log(campaign, log, held, report_progress)
            learnt = files.write_fit_summary(folder, model, log)
            files.write_scores(folder, campaign, log, held, log_scores.checkup.propensity)

            # The log's own customers are planned by models that did not see them: a model knows too well whether its own rows
            # will pay.
            held_out = None if campaign.customers is not None else select_customer_scores(log, log_scores.scores)
            explores = campaign.planning.explores_for_goal
            variance = measure_response_variance(log, log_scores.scores.curves) if explores else ResponseVariance()
            spending = measure_spend_by_price(log_scores.scores)
            policy = Policy(
                model,
                log.levels,
                spending=None if spending is None else spending.curve_of_all_folds,
                unsupported=log_scores.checkup.unsupported,
                bar_unsupported=campaign.planning.bars_unsupported_levels,
            )
            with engine.score_customer_table(policy, customers, folder, report_progress, held_out) as scored:
                warnings: Sequence[Finding] = ()
                if campaign.customers is not None:
                    log, log_scores, warnings = weight_scores_to_customers(campaign, policy, log, log_scores, scored)
                if strict:
                    refuse_unusable_log(log_scores.checkup.findings)
                result = make_plan(campaign, policy, scored, report_progress, variance)
                planned = files.write_plan(folder, result, scored, report_progress, customer_warnings=warnings)
                n_customers, budget = scored.n, campaign.planning.average_budget(scored.n)

            study = evaluate_plan(campaign, log, log_scores, budget, n_customers)
            judged = files.write_evaluation(folder, study)

            report_progress("writing the report", 0.0)
            numbers = join_step_numbers(campaign, learnt, planned, judged, str(out))
            files.write_text(folder / files.REPORT_FILE, render_report(numbers))
            return numbers


def _read_log(campaign: Campaign, engine: Engine, table: Any = None) -> tuple[Log, Campaign]:
    """Read the campaign's log, and return it and the campaign; the campaign gets the sample's row limit.

    Another machine must draw the same sample.
    """
    log = engine.read_log(campaign, table)
    known = {*campaign.columns.values(), *log.features.column_names, *campaign.levels.labels}
    unknown = [
        Problem(f"labels: there is no {name!r}", suggest(name, known)) for name in campaign.labels if name not in known
    ]
    refuse("campaign", unknown)
    return log, campaign if log.sample is None else replace(campaign, most_rows=log.sample.most)


# -- fit --------------------------------------------------------------------------------------------------------------


def fit(
    campaign: Campaign, out: str | Path, progress: Progress = show_no_progress, *, engine: Engine = LOCAL_ENGINE
) -> dict[str, Any]:
    """Fit the campaign's model into a run folder without a plan, and return the numbers of the fit."""
    check_model_name(campaign.model)
    files.check_output_folder(campaign, out)
    progress("reading", 0.0)
    log, campaign = _read_log(campaign, engine)
    with files.replace_run_folder(out) as folder:
        files.write_text(folder / files.CAMPAIGN_FILE, campaign.text)
        model, held = fit_model(campaign, log, progress)
        spending = propensities = None
        if not log.levels.certain:
            log_scores = score_log(campaign, log, held, progress)
            propensities, spending = log_scores.checkup.propensity, measure_spend_by_price(log_scores.scores)
            cells = log_scores.checkup.unsupported
        else:
            cells = find_unsupported_cells(log, campaign.seed)
        files.write_scores(folder, campaign, log, held, propensities)
        Policy(
            model, log.levels, spending=None if spending is None else spending.curve_of_all_folds, unsupported=cells
        ).save(folder / files.POLICY_FILE)
        return files.write_fit_summary(folder, model, log)


def fit_model(campaign: Campaign, log: Log, progress: Progress) -> tuple[ResponseModel, HeldOutPredictions]:
    """Fit the campaign's model to a log, and return the model and its out-of-fold predictions.

    Observed costs get a model of their own.
    """
    model = make_model(campaign.model, campaign.seed)
    if campaign.levels.observed:
        model = WithCosts(model, seed=campaign.seed)
    with report_to(progress):
        start_stage("learning the response", len(log.seen))
        return model, fit_out_of_fold(model, log, assign_folds(log, choose_fold_count(len(log.seen)), campaign.seed))


def score_log(
    campaign: Campaign,
    log: Log,
    held: HeldOutPredictions,
    progress: Progress,
    propensities: Propensities | None = None,
    policy: Policy | None = None,
) -> LogScores:
    """Return the doubly robust scores and checks of a log, from out-of-fold predictions.

    Scores do not depend on the budget.

    Levels that the log of a `policy` does not support are barred, too.
    """
    cells = UnsupportedCells() if policy is None else policy.unsupported
    settings: dict[str, Any] = {"bar": campaign.planning.bars_unsupported_levels, "cells": cells}
    scores, checkup = score_and_check_log(log, held, campaign.seed, progress, propensities, **settings)
    return LogScores(held, scores, checkup)


def weight_scores_to_customers(
    campaign: Campaign, policy: Policy, log: Log, log_scores: LogScores, customers: ScoredCustomers
) -> tuple[Log, LogScores, Sequence[Finding]]:
    """Weight a log's scores to represent the customers of a plan, and return scores and findings.

    The findings are added to the checkup, too.

    Of a log that is larger than memory, the scores are those of its sample, which is returned with them.
    """
    start_stage("comparing customers with the log", len(log.seen))
    scores, held = log_scores.scores, log_scores.held
    if log.sample is not None:
        scores, held = select_score_rows(scores, log.sample.rows), replace(held, shuffled=None)
        log = log.sample.log
    # Of rows and customers, the same model predicts the curves: held-out curves would tell them apart.
    curves = policy.expect(log).responses
    weight, shift = weight_log_to_customers(log, curves, customers.draw_customer_sample(), campaign.seed)
    findings = check_customer_shift(shift)
    return log, LogScores(held, replace(scores, weight=weight), log_scores.checkup.add(findings)), findings


def select_customer_scores(log: Log, scores: Scores) -> Scores | None:
    """Return the scores of each customer's last logged row if costs depend on responses, else None."""
    if log.levels.certain:
        return None
    return scores if log.last_rows is None else select_score_rows(scores, log.last_rows)


def refuse_unusable_log(findings: Iterable[Finding]) -> None:
    """Raise an error with all reasons if a log cannot support an evaluation."""
    hint = "run without --strict for a report that says so"
    refuse("log", [Problem(f"{finding.topic}: {finding.text}", hint) for finding in findings if finding.answer == "no"])


def load_scores(
    home: Path,
    campaign: Campaign,
    log: Log,
    progress: Progress,
    *,
    refit: bool = True,
    policy: Policy | None = None,
) -> LogScores:
    """Return the scores of a log under a run's model, from the run folder's cache or a new fit.

    Of a log that is not the campaign's own, give the `policy`; see `score_log`.
    """
    cached = read_scores(home / files.SCORES_FILE, make_cache_key(campaign, log), log)
    if cached is None and not refit:
        got = "the log is not the one that the run has learnt from, or the run folder has lost its scores"
        fail("run folder", Problem(got, "run the campaign again"))
    held, propensities = cached or (fit_model(campaign, log, progress)[1], None)
    return score_log(campaign, log, held, progress, propensities, policy)


# -- plan -------------------------------------------------------------------------------------------------------------


def plan(
    folder: str | Path,
    customers: str | None = None,
    *,
    kind: str = "plan",
    out: str | Path | None = None,
    raw_ids: bool = False,
    progress: Progress = show_no_progress,
    engine: Engine = LOCAL_ENGINE,
    **spending: Unpack[SpendingOverrides],
) -> dict[str, Any]:
    """Plan for a table of customers with a run's model, and return the plan's numbers.

    `budget`, `total` and `confidence` replace those of the campaign. The folder holds the plan afterwards; its other files stay if
    they belong to this plan. A `kind` other than "plan" is the simple "rule" or the "mix" of the folder's evaluation: it goes to `out`
    alone. With `out`, a folder that has a plan stays as it is, and the new plan is in `out` alone. CSV files get
    an apostrophe before text that would begin a formula, unless `raw_ids`.
    """
    files.check_table_path(out, customers)
    with files.hold_run_folder(folder) as home:
        before = read_campaign(home)
        campaign = before.spending(**spending)
        elsewhere = out is not None and files.differs_from_plan_file(out, home)
        check_simpler_plan_kind(
            kind, campaign, out=elsewhere, spends=any(value is not None for value in spending.values())
        )
        source = customers or campaign.customers_source
        files.check_table_path(out, customers or campaign.customers, campaign.log)
        if customers is not None:
            campaign = replace(campaign, customers=str(Path(customers).absolute()), customers_query="")
        with open_scored_customers(home, campaign, source, engine, progress) as (policy, variance, scored):
            warnings = compare_customers_with_log(campaign, policy, engine, scored) if source else ()
            if kind == "plan":
                result = make_plan(campaign, policy, scored, progress, variance)
            else:
                planned = read_record(PlanSummary, files.read_step(home, files.PLANNING_STEP))
                study = read_record(StudySummary, files.read_step(home, files.EVALUATION_STEP))
                result = make_simpler_plan(kind, campaign, planned, study, policy, scored, engine)
            with file_transaction() as batch:
                new = files.copy_run_folder(batch, home)
                if elsewhere and (home / files.PLANNING_STEP.file).exists():
                    batch.discard(home)
                copy = batch.add_file(out) if out else None
                made = files.write_plan(
                    new, result, scored, progress, copy, raw_ids=raw_ids, customer_warnings=warnings
                )
                files.write_text(new / files.CAMPAIGN_FILE, campaign.text)
                surer = campaign.planning.budget_confidence != before.planning.budget_confidence
                other_plan = (surer and not policy.levels.certain) or campaign.customers != before.customers
                dropped = files.remove_outdated_results(new, home, other_plan=other_plan)
        return {**made, "dropped": [name for name in dropped if not (home / name).exists()]}


def compare_customers_with_log(
    campaign: Campaign, policy: Policy, engine: Engine, customers: ScoredCustomers
) -> Sequence[Finding]:
    """Return findings about plan customers who differ from the customers of the campaign's log."""
    try:
        log = engine.read_log(campaign).seen
    except (LargesseError, OSError):
        return ()
    return check_customer_shift(
        weight_log_to_customers(log, policy.expect(log).responses, customers.draw_customer_sample(), campaign.seed)[1]
    )


@contextmanager
def open_scored_customers(
    home: Path,
    campaign: Campaign,
    source: str | QueriedFile | None,
    engine: Engine,
    progress: Progress,
    *,
    refit: bool = True,
) -> Iterator[tuple[Policy, ResponseVariance, ScoredCustomers]]:
    """Yield the policy of a run folder, the variance of responses, and the scored customers of a table or the log.

    Without `refit`, a log that has changed since is refused where a plan would need its scores.
    """
    policy = replace(Policy.load(home / files.POLICY_FILE), bar_unsupported=campaign.planning.bars_unsupported_levels)
    progress("reading", 0.0)
    held_out, variance = None, ResponseVariance()
    # Only responses that are not yes or no have a variance that does not follow from their mean.
    explores = campaign.planning.explores_for_goal and not policy.model.binary_
    if source:
        kinds: dict[str, str] = {column.name: column.kind for column in policy.model.encoder_.columns}
        customers = engine.open_customers(campaign, source, kinds)
    if not source or explores:
        log = engine.read_log(campaign)
        if not source:
            customers = open_planned_customers(campaign, log, engine)
        if explores or not log.levels.certain:
            scores = load_scores(home, campaign, log, progress, refit=refit).scores
            held_out = None if source else select_customer_scores(log, scores)
            variance = measure_response_variance(log, scores.curves) if explores else variance
    with engine.score_customer_table(policy, customers, home.resolve().parent, progress, held_out) as scored:
        yield policy, variance, scored


# -- judge ------------------------------------------------------------------------------------------------------------


def judge(
    folder: str | Path,
    log: str | None = None,
    *,
    budget: float | None = None,
    estimator: str = "dr",
    progress: Progress = show_no_progress,
    engine: Engine = LOCAL_ENGINE,
) -> dict[str, Any]:
    """Evaluate a run's plan on a log (by default the campaign's log), and return the evaluation's numbers.

    `budget` may be chosen freely if the run has no plan.
    """
    if estimator not in ESTIMATORS:
        fail("evaluate", Problem(f"estimator {estimator!r} is not known", suggest(estimator, ESTIMATORS)))
    with files.hold_run_folder(folder) as home:
        campaign = read_campaign(home)
        planned = files.read_step(home, files.PLANNING_STEP) if (home / files.PLANNING_STEP.file).exists() else None
        if budget is None and campaign.planning.total is not None:
            budget = (planned or files.read_step(home, files.PLANNING_STEP))["budget"]["average"]
        campaign = campaign.spending(budget=budget)
        average = campaign.planning.budget
        if planned is not None and not files.have_same_budget(planned, {"budget": average}):
            budgets = _write_exact_budget(planned["budget"]["average"]), _write_exact_budget(average)
            got = f"the plan in {folder} is for a budget of {budgets[0]}, not {budgets[1]}"
            fail("budget", Problem(got, f"plan first: largesse plan {folder} --budget {budgets[1]}"))
        progress("reading", 0.0)
        judged_log = engine.read_log(campaign, log)
        policy = None if log is None else Policy.load(home / files.POLICY_FILE)
        recalled = log_scores = load_scores(home, campaign, judged_log, progress, policy=policy)
        n_customers, scored_log = judged_log.customers if planned is None else planned["customers"], judged_log
        if log is None and campaign.customers is not None:
            with open_scored_customers(home, campaign, campaign.customers_source, engine, progress) as (
                fitted,
                _,
                customers,
            ):
                scored_log, log_scores, _ = weight_scores_to_customers(
                    campaign, fitted, judged_log, log_scores, customers
                )
        budget = campaign.planning.average_budget(n_customers)
        study = evaluate_plan(campaign, scored_log, log_scores, budget, n_customers, estimator)
        with file_transaction() as batch:
            new = files.copy_run_folder(batch, home)
            if log is None:
                files.write_scores(new, campaign, judged_log, recalled.held, recalled.checkup.propensity)
            judged = files.write_evaluation(new, study)
            files.remove_outdated_results(new, home)
        return judged


def evaluate_plan(
    campaign: Campaign, log: Log, log_scores: LogScores, budget: float, customers: int, estimator: str = "dr"
) -> Study:
    """Estimate the value and cost of a campaign's plan from out-of-fold scores.

    Each fold is planned under the campaign's rules. Rules that the log cannot judge are named in a warning, and the estimates are
    for the plan without them.
    """
    start_stage("judging the plan", len(log))
    settings, scores = campaign.planning, log_scores.scores
    study_at: Any = partial(
        make_study_from_scores,
        log,
        scores,
        log_scores.checkup,
        budget,
        estimator=estimator,
        seed=campaign.seed,
        confidence=settings.budget_confidence,
        shuffled=log_scores.held.shuffled,
    )
    variance = measure_response_variance(log, scores.curves) if settings.explores_for_goal else ResponseVariance()
    try:
        unseen = check_fixed_customers(campaign, log, customers)
        study: Study = study_at(planner=make_fold_planner(campaign, log, customers, variance, scores.allowed))
    except LargesseError as error:
        if not settings.constrained and not settings.explore:
            raise
        reason = "; ".join(problem.what for problem in error.problems)
        text = f"The log cannot judge your rules ({reason}). The estimates are for the plan without them, which brings more."
        study, unseen = study_at(), [Finding("constraints", "no", text)]
    if unseen:
        warnings = (*unseen, *study.evaluation.warnings)
        study = replace(study, evaluation=replace(study.evaluation, warnings=warnings))
    if settings.constrained or settings.explore or settings.exact or study.evaluation.verdict is None:
        return study
    verdict, seen = study.evaluation.verdict, measure_response_variance(log, scores.curves)
    return replace(
        study, next_log=find_confirmatory_exploration(scores, verdict, len(log), budget, seen, campaign.seed)
    )


# -- report -----------------------------------------------------------------------------------------------------------


def report(folder: str | Path, out: str | Path | None = None, *, short: bool = False) -> dict[str, Any]:
    """Write the report of a run folder, and return the report's numbers.

    With `short`, it is the summary alone, one page of A4, which needs an `out`: the folder keeps its report.
    """
    files.check_output_file(out, own="" if short else files.REPORT_FILE)
    if out is not None:
        numbers = read_report_numbers(folder)
        with files.refuse_contradicting_numbers(Path(folder)):
            files.write_text(Path(out), render_report(numbers, short=short))
        return numbers
    with files.hold_run_folder(folder) as home, files.refuse_contradicting_numbers(home):
        numbers = _read_step_numbers(home)
        with file_transaction() as batch:
            files.write_text(files.copy_run_folder(batch, home) / files.REPORT_FILE, render_report(numbers))
        return numbers


def write_slides(folder: str | Path, out: str | Path) -> list[Path]:
    """Write the figures of a run's report as PNG pictures into a folder, and return their paths."""
    target = Path(out)
    if target.exists() and not target.is_dir():
        fail("output", Problem(f"{out} is not a folder", "give the name of a folder for the pictures"))
    numbers = read_report_numbers(folder)
    with files.refuse_contradicting_numbers(Path(folder)):
        slides = draw_slides(numbers)
    for name in slides:
        files.check_output_file(target / name)
    target.mkdir(parents=True, exist_ok=True)
    for name, picture in slides.items():
        with atomic_file(target / name) as unfinished:
            unfinished.write_bytes(picture)
    return [target / name for name in slides]


def read_report_numbers(folder: str | Path) -> dict[str, Any]:
    """Return the numbers of a run folder's report."""
    with files.read_run_folder(folder) as home, files.refuse_contradicting_numbers(home):
        return _read_step_numbers(home)


def describe_run_folder(folder: str | Path) -> dict[str, Any]:
    """Return the title, units, response, levels and labels of a run folder."""
    with files.read_run_folder(folder) as home, files.refuse_contradicting_numbers(home):
        campaign = read_campaign(home)
        words = {word: getattr(campaign, word) for word in ("title", "unit", "response_unit")}
        return {**files.read_step(home, files.FIT_STEP), **words, "labels": campaign.page_labels}


def _read_step_numbers(home: Path) -> dict[str, Any]:
    learnt, planned, judged = (files.read_step(home, step) for step in files.RUN_STEPS)
    return join_step_numbers(read_campaign(home), learnt, planned, judged, str(home))


def join_step_numbers(
    campaign: Campaign, fitted: dict[str, Any], planned: dict[str, Any], judged: dict[str, Any], folder: str
) -> dict[str, Any]:
    """Join the numbers of a run's steps into the numbers of the report."""
    if not files.have_same_budget(planned, judged):
        average, budget = planned["budget"]["average"], judged["budget"]
        got = f"the plan is for a budget of {_write_exact_budget(average)}, the evaluation for {_write_exact_budget(budget)}"
        fail("run folder", Problem(got, f"run: largesse evaluate {folder} --budget {_write_exact_budget(average)}"))
    heading = CampaignHeading(campaign.title, campaign.unit, campaign.seed, write_report_date(), campaign.response_unit)
    joint = estimate_at_slider_budgets(read_record(PlanSummary, planned), read_record(StudySummary, judged))
    return join_report_numbers(heading, fitted, planned, judged, to_json(joint), campaign.page_labels)


def _write_exact_budget(budget: float | None) -> str:
    """Format a budget with enough digits that reading it gives the same number."""
    return "…" if budget is None else f"{budget:.10g}"
