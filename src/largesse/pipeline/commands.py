"""The commands of a campaign: read → fit → plan → judge → report, in one go (`run`) or step by step through a run folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from largesse.campaign import Campaign, Spent, read_campaign
from largesse.errors import Problem, fail, suggest
from largesse.evaluation import (
    ESTIMATORS,
    examine_held_out,
    measure_spending,
    study_scores,
    summarise_jointly,
)
from largesse.exploration import ResponseVariance, measure_variance
from largesse.io import read_record, to_json, write_together
from largesse.pipeline import folder as files
from largesse.pipeline.customers import choose_customers
from largesse.pipeline.engine import Engine, ScoredCustomers
from largesse.pipeline.planner import make_plan
from largesse.pipeline.scores_cache import make_key, read_scores
from largesse.pipeline.scoring import Local
from largesse.policy import Policy
from largesse.progress import report_to, start_stage
from largesse.records import (
    Checkup,
    Finding,
    HeldOut,
    Log,
    PlanSummary,
    Progress,
    Propensities,
    Scores,
    Study,
    StudySummary,
)
from largesse.report import Heading, join_parts, name_day
from largesse.response import ResponseModel, WithCosts, check_model_name, learn_held_out, make_model
from largesse.stats import assign_folds, count_folds

LOCAL = Local()


def silent(_stage: str, _done: float, /) -> None:
    """Show no progress."""


@dataclass(frozen=True, eq=False)
class LogScores:
    """Out-of-fold curves, doubly robust scores and checks of one log; the input of every evaluation."""

    held: HeldOut
    scores: Scores
    checkup: Checkup


# -- the whole way ----------------------------------------------------------------------------------------------------


def run(
    campaign: Campaign, out: str | Path, progress: Progress = silent, *, table: Any = None, engine: Engine = LOCAL
) -> dict[str, Any]:
    """Fit, plan, judge and report; leave a run folder and return the numbers of the report.

    `table` replaces the campaign's log: the folder keeps it under the name that the campaign gives. A Parquet file may be named by
    its path, and is linked or copied.
    """
    check_model_name(campaign.model)
    campaign = campaign.spending()
    files.check_output(campaign, out, own_log=table is not None)
    with report_to(None if progress is silent else progress) as heard:
        heard("reading", 0.0)
        log = engine.read_log(campaign, table)
        campaign = _fix_sample(campaign, log)
        customers = choose_customers(campaign, log, engine)
        with files.replace_run_folder(out) as folder:
            if table is not None:
                files.write_log(folder / campaign.log, table)
            files.write_campaign(folder, campaign)

            model, held = fit_model(campaign, log, heard)
            log_scores = score_log(campaign, log, held, heard)
            learnt = files.write_fit(folder, model, log)
            files.write_scores(folder, campaign, log, held, log_scores.checkup.propensity)

            # The log's own customers are planned by models that did not see them: a model knows too well whether its own rows
            # will pay.
            own = None if campaign.customers is not None or log.levels.certain else log_scores.scores
            explores = campaign.planning.aimed
            variance = measure_variance(log, log_scores.scores.curves) if explores else ResponseVariance()
            spending = measure_spending(log_scores.scores)
            policy = Policy(model, log.levels, spending=None if spending is None else spending.whole)
            with engine.score(policy, customers, folder, heard, own) as scored:
                planned = files.write_plan(folder, make_plan(campaign, policy, scored, heard, variance), scored, heard)
                budget = campaign.planning.average(scored.n)

            study = judge_plan(campaign, log, log_scores, budget)
            judged = files.write_study(folder, study)

            heard("writing the report", 0.0)
            shown = join_numbers(campaign, learnt, planned, judged, str(out))
            files.write_report(folder, shown)
            return shown


# -- steps ------------------------------------------------------------------------------------------------------------


def fit_model(campaign: Campaign, log: Log, progress: Progress) -> tuple[ResponseModel, HeldOut]:
    """Fit the campaign's model to the log; return it and its out-of-fold predictions. Observed costs get a model of their own."""
    model = make_model(campaign.model, campaign.seed)
    if campaign.levels.observed:
        model = WithCosts(model, seed=campaign.seed)
    with report_to(progress):
        start_stage("learning the response", len(log.seen))
        return model, learn_held_out(model, log, assign_folds(log, count_folds(len(log.seen)), campaign.seed))


def score_log(
    campaign: Campaign, log: Log, held: HeldOut, progress: Progress, propensities: Propensities | None = None
) -> LogScores:
    """Score the log's rows by models that did not see them, and check the log. Scores do not depend on the budget."""
    scores, checkup = examine_held_out(log, held, campaign.seed, progress, propensities)
    return LogScores(held, scores, checkup)


def judge_plan(campaign: Campaign, log: Log, log_scores: LogScores, budget: float, estimator: str = "dr") -> Study:
    """Estimate what the campaign's model brings and costs at a budget, on rows that did not train it."""
    start_stage("judging the plan", len(log))
    settings = campaign.planning
    study = study_scores(
        log,
        log_scores.scores,
        log_scores.checkup,
        budget,
        estimator=estimator,
        seed=campaign.seed,
        confidence=settings.budget_confidence,
        shuffled=log_scores.held.shuffled,
    )
    warnings = study.evaluation.warnings
    if settings.constrained or settings.explore:
        topic, name = ("constraints", "your constraints") if settings.constrained else ("exploration", "exploration")
        text = f"These estimates are for the plan without {name}, at the same budget. Expect your plan to bring at most this."
        warnings = (Finding(topic, "careful", text), *warnings)
    return replace(study, evaluation=replace(study.evaluation, warnings=warnings))


def join_numbers(
    campaign: Campaign, fitted: dict[str, Any], planned: dict[str, Any], judged: dict[str, Any], folder: str
) -> dict[str, Any]:
    """Return the numbers of the report; `folder` is named in the hint if plan and evaluation do not fit together."""
    if not files.have_same_budget(planned, judged):
        average, budget = planned["budget"]["average"], judged["budget"]
        got = f"the plan is for a budget of {_write(average)}, the evaluation for {_write(budget)}"
        fail("run folder", Problem(got, f"run: largesse evaluate {folder} --budget {_write(average)}"))
    heading = Heading(campaign.title, campaign.unit, campaign.seed, name_day(), campaign.response_unit)
    joint = summarise_jointly(read_record(PlanSummary, planned), read_record(StudySummary, judged))
    return join_parts(heading, fitted, planned, judged, to_json(joint))


def _fix_sample(campaign: Campaign, log: Log) -> Campaign:
    """Return the campaign with the row limit that its log was read by: another machine must draw the same sample."""
    return campaign if log.sample is None else replace(campaign, most_rows=log.sample.most)


# -- step by step -----------------------------------------------------------------------------------------------------


def fit(campaign: Campaign, out: str | Path, progress: Progress = silent, *, engine: Engine = LOCAL) -> dict[str, Any]:
    """Learn from the log and leave a run folder with the policy, still without a price; return what was learnt."""
    check_model_name(campaign.model)
    files.check_output(campaign, out)
    progress("reading", 0.0)
    log = engine.read_log(campaign)
    campaign = _fix_sample(campaign, log)
    with files.replace_run_folder(out) as folder:
        files.write_campaign(folder, campaign)
        model, held = fit_model(campaign, log, progress)
        spending = propensities = None
        if not log.levels.certain:
            log_scores = score_log(campaign, log, held, progress)
            propensities, spending = log_scores.checkup.propensity, measure_spending(log_scores.scores)
        files.write_scores(folder, campaign, log, held, propensities)
        Policy(model, log.levels, spending=None if spending is None else spending.whole).save(folder / files.POLICY)
        return files.write_fit(folder, model, log)


def plan(
    folder: str | Path,
    customers: str | None = None,
    *,
    out: str | Path | None = None,
    raw_ids: bool = False,
    progress: Progress = silent,
    engine: Engine = LOCAL,
    **spending: Unpack[Spent],
) -> dict[str, Any]:
    """Plan for a table of customers with the model of a run folder; return the numbers of the plan.

    `budget`, `total` and `confidence` replace those of the campaign. The folder holds the plan afterwards, and `out` too, if given;
    other files of the folder stay if they belong to this plan. CSV files get an apostrophe before text that would begin a formula,
    unless `raw_ids`.
    """
    files.check_table(out, customers)
    with files.hold_run_folder(folder) as home:
        before = read_campaign(home)
        campaign = before.spending(**spending)
        source = customers or campaign.customers
        files.check_table(out, source, campaign.log)
        with open_scored(home, campaign, source, engine, progress) as (policy, scored):
            variance = find_variance(home, campaign, policy, engine, progress)
            result = make_plan(campaign, policy, scored, progress, variance)
            with write_together() as batch:
                new = files.renew_run_folder(batch, home)
                copy = batch.add_file(out) if out else None
                shown = files.write_plan(new, result, scored, progress, copy, raw_ids=raw_ids)
                files.write_campaign(new, campaign)
                surer = campaign.planning.budget_confidence != before.planning.budget_confidence
                dropped = files.drop_outdated(new, home, apart=surer and not policy.levels.certain)
        return {**shown, "dropped": dropped}


@contextmanager
def open_scored(
    home: Path, campaign: Campaign, source: str | None, engine: Engine, progress: Progress, *, refit: bool = True
) -> Iterator[tuple[Policy, ScoredCustomers]]:
    """Yield the policy of a run folder, and scored customers: of a table, or those of the log.

    Without `refit`, a log that has changed since is refused where a plan would need its scores.
    """
    policy = Policy.load(home / files.POLICY)
    progress("reading", 0.0)
    scores = None
    if source:
        kinds: dict[str, str] = {learnt.name: learnt.kind for learnt in policy.model.encoder_.columns}
        customers = engine.open_customers(campaign, source, kinds)
    else:
        log = engine.read_log(campaign)
        customers = choose_customers(campaign, log, engine)
        if not log.levels.certain:
            scores = recall(home, campaign, log, progress, refit=refit).scores
    with engine.score(policy, customers, home.resolve().parent, progress, scores) as scored:
        yield policy, scored


def judge(
    folder: str | Path,
    log: str | None = None,
    *,
    budget: float | None = None,
    estimator: str = "dr",
    progress: Progress = silent,
    engine: Engine = LOCAL,
) -> dict[str, Any]:
    """Evaluate a run's model on a log (default: the campaign's log) at the planned budget; return the evaluation.

    Without a plan any budget will do.
    """
    if estimator not in ESTIMATORS:
        fail("evaluate", Problem(f"estimator {estimator!r} is not known", suggest(estimator, ESTIMATORS)))
    with files.hold_run_folder(folder) as home:
        campaign = read_campaign(home)
        planned = files.read_part(home, files.PLAN_PART) if (home / files.PLAN_PART.file).exists() else None
        if budget is None and campaign.planning.total is not None:
            budget = (planned or files.read_part(home, files.PLAN_PART))["budget"]["average"]
        campaign = campaign.spending(budget=budget)
        asked = campaign.planning.budget
        if planned is not None and not files.have_same_budget(planned, {"budget": asked}):
            got = f"the plan in {folder} is for a budget of {_write(planned['budget']['average'])}, not {_write(asked)}"
            fail("budget", Problem(got, f"plan first: largesse plan {folder} --budget {_write(asked)}"))
        progress("reading", 0.0)
        read = engine.read_log(campaign, log)
        log_scores = recall(home, campaign, read, progress)
        study = judge_plan(campaign, read, log_scores, campaign.planning.average(len(read)), estimator)
        with write_together() as batch:
            new = files.renew_run_folder(batch, home)
            if log is None:
                files.write_scores(new, campaign, read, log_scores.held, log_scores.checkup.propensity)
            shown = files.write_study(new, study)
            files.drop_outdated(new, home)
        return shown


def recall(home: Path, campaign: Campaign, log: Log, progress: Progress, *, refit: bool = True) -> LogScores:
    """Return the scores of a log under the campaign's model: from the run folder's cache, or fitted again."""
    cached = read_scores(home / files.SCORES, make_key(campaign, log), log)
    if cached is None and not refit:
        got = "the log is not the one that the run has learnt from, or the run folder has lost its scores"
        fail("run folder", Problem(got, "run the campaign again"))
    held, propensities = cached or (fit_model(campaign, log, progress)[1], None)
    return score_log(campaign, log, held, progress, propensities)


def find_variance(
    home: Path, campaign: Campaign, policy: Policy, engine: Engine, progress: Progress
) -> ResponseVariance:
    """Return the variance of the log's responses around their expectation, where a plan needs to know."""
    if not campaign.planning.aimed or policy.model.binary_:
        return ResponseVariance()
    log = engine.read_log(campaign)
    return measure_variance(log, recall(home, campaign, log, progress).scores.curves)


def report(folder: str | Path, out: str | Path | None = None) -> dict[str, Any]:
    """Write the report of a run folder from the numbers of its steps; return its numbers."""
    files.check_file(out, own=files.REPORT)
    if out is not None:
        with files.look_into_run_folder(folder) as home, files.expect_numbers(home):
            shown = gather_numbers(home, folder)
        with files.expect_numbers(home):
            files.write_report(home, shown, out)
        return shown
    with files.hold_run_folder(folder) as home, files.expect_numbers(home):
        shown = gather_numbers(home, folder)
        with write_together() as batch:
            files.write_report(files.renew_run_folder(batch, home), shown)
        return shown


def read_numbers(folder: str | Path) -> dict[str, Any]:
    """Return the numbers of the report of a run folder, which is only read."""
    with files.look_into_run_folder(folder) as home, files.expect_numbers(home):
        return gather_numbers(home, folder)


def describe_run(folder: str | Path) -> dict[str, Any]:
    """Return the title of a run folder, its units, its response and its levels."""
    with files.look_into_run_folder(folder) as home, files.expect_numbers(home):
        campaign = read_campaign(home)
        words = {word: getattr(campaign, word) for word in ("title", "unit", "response_unit")}
        return {**files.read_part(home, files.FIT_PART), **words}


def gather_numbers(home: Path, folder: str | Path) -> dict[str, Any]:
    """Return the numbers of the report of a run folder."""
    learnt, planned, judged = (files.read_part(home, part) for part in files.PARTS)
    return join_numbers(read_campaign(home), learnt, planned, judged, str(folder))


def _write(budget: float | None) -> str:
    """Write a budget with enough digits that it is the same when it is read back."""
    return "…" if budget is None else f"{budget:.10g}"
