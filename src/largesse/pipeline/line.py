"""The straight line: read → fit → plan → judge → report, in one go (`run`) or step by step through a run folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from largesse.campaign import Campaign, Spent, read_campaign
from largesse.errors import Problem, fail
from largesse.evaluation import measure_spending
from largesse.exploration import ResponseVariance, measure_variance
from largesse.io import write_together
from largesse.pipeline import folder as files
from largesse.pipeline import steps
from largesse.pipeline.engine import Engine
from largesse.pipeline.kept import key_of, read_kept
from largesse.pipeline.local import Local
from largesse.pipeline.planned import ScoredCustomers
from largesse.pipeline.plans import make_plan
from largesse.policy import Policy
from largesse.progress import report_to
from largesse.records import Log, Progress
from largesse.response import check_model_name

LOCAL = Local()


def silent(_stage: str, _done: float, /) -> None:
    """Show no progress."""


def run(
    campaign: Campaign,
    out: str | Path,
    progress: Progress = silent,
    *,
    table: Any = None,
    engine: Engine = LOCAL,
) -> dict[str, Any]:
    """Fit, plan, judge and report; leave a run folder and return the numbers of the report.

    With `table`, the log is that table, and the folder keeps it under the name that the campaign gives; a path of one is that
    of a Parquet file, which the folder keeps as it is.
    """
    check_model_name(campaign.model)
    campaign = campaign.spending()
    files.check_output(campaign, out, own_log=table is not None)
    with _heard_by(progress) as heard:
        heard("reading", 0.0)
        log = engine.read_log(campaign, table)
        campaign = steps.settle_rows(campaign, log)
        customers = steps.choose_customers(campaign, log, engine)
        with files.replace_run_folder(out) as folder:
            if table is not None:
                files.write_log(folder / campaign.log, table, engine)
            files.write_campaign(folder, campaign)
            fitted = steps.fit(campaign, log, engine, heard)
            examined = steps.examine(campaign, log, fitted.held, engine, heard)
            learnt = files.write_fit(folder, fitted, log)
            files.write_scores(folder, campaign, log, examined, engine)
            policy = Policy(fitted.model, fitted.levels)
            own = None if campaign.customers is not None or log.levels.certain else examined.scores
            with engine.score_customers(policy, customers, folder, heard, own) as scored:
                study = steps.judge(campaign, log, examined, campaign.planning.average(scored.n), "dr", engine)
                variance = (
                    measure_variance(log, examined.scores.curves) if campaign.planning.aimed else ResponseVariance()
                )
                planned = make_plan(campaign, replace(policy, spending=study.spending), scored, heard, variance)
                planning = files.write_plan(folder, planned, engine, heard)
            evaluation = files.write_study(folder, study, engine)
            heard("writing the report", 0.0)
            shown = steps.report(campaign, learnt, planning, evaluation, str(out))
            files.write_report(folder, shown)
            return shown


def _heard_by(progress: Progress) -> AbstractContextManager[Progress]:
    """Let what happens inside the block be heard by `progress`, or by whoever listens already."""
    return report_to(None if progress is silent else progress)


def fit(campaign: Campaign, out: str | Path, progress: Progress = silent, *, engine: Engine = LOCAL) -> dict[str, Any]:
    """Learn from the log and leave a run folder with the policy, still without a price; return what was learnt."""
    check_model_name(campaign.model)
    files.check_output(campaign, out)
    progress("reading", 0.0)
    log = engine.read_log(campaign)
    campaign = steps.settle_rows(campaign, log)
    with files.replace_run_folder(out) as folder:
        files.write_campaign(folder, campaign)
        fitted = steps.fit(campaign, log, engine, progress)
        known = None
        if log.levels.certain:
            files.write_scores(folder, campaign, log, fitted.held, engine)
        else:
            examined = steps.examine(campaign, log, fitted.held, engine, progress)
            files.write_scores(folder, campaign, log, examined, engine)
            spending = measure_spending(examined.scores)
            known = None if spending is None else spending.whole
        Policy(fitted.model, fitted.levels, spending=known).save(folder / files.POLICY)
        return files.write_fit(folder, fitted, log)


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

    `budget`, `total` and `confidence` replace what the campaign says of them.
    The folder holds the plan afterwards, and `out` too, if given; what else was there stays if it belongs to this plan.
    In a CSV file text that would begin a formula gets an apostrophe before it, unless ids are wanted raw.
    """
    files.check_table(out, customers)
    with files.hold_run_folder(folder) as home:
        before = read_campaign(home)
        campaign = before.spending(**spending)
        source = customers or campaign.customers
        files.check_table(out, source, campaign.log)
        with open_scored(home, campaign, source, engine, progress) as (policy, scored):
            variance = find_variance(home, campaign, policy, engine, progress)
            planned = make_plan(campaign, policy, scored, progress, variance)
            with write_together() as batch:
                new = files.renew_run_folder(batch, home)
                copy = batch.add_file(out) if out else None
                shown = files.write_plan(new, planned, engine, progress, copy, raw_ids=raw_ids)
                files.write_campaign(new, campaign)
                surer = campaign.planning.budget_confidence != before.planning.budget_confidence
                dropped = files.drop_outdated(new, home, apart=surer and not policy.levels.certain)
        return {**shown, "dropped": dropped}


@contextmanager
def open_scored(
    home: Path, campaign: Campaign, source: str | None, engine: Engine, progress: Progress, *, refit: bool = True
) -> Iterator[tuple[Policy, ScoredCustomers]]:
    """Give the policy of a run folder, and customers with what is expected of them: of a table, or those of the log.

    Without `refit`, a log that has changed since is refused where a plan would need its scores.
    """
    policy = Policy.load(home / files.POLICY)
    progress("reading", 0.0)
    scores = None
    if source:
        kinds: dict[str, str] = {learnt.name: learnt.kind for learnt in policy.model.encoder_.columns}
        found = engine.open_customers(campaign, source, kinds)
    else:
        log = engine.read_log(campaign)
        found = steps.choose_customers(campaign, log, engine)
        if not log.levels.certain:
            scores = recall(home, campaign, log, engine, progress, refit=refit).scores
    with engine.score_customers(policy, found, home.resolve().parent, progress, scores) as scored:
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
    """Judge the model of a run folder at the budget of its plan on a log, by default the campaign's own.

    Return the evaluation. Without a plan any budget will do.
    """
    steps.check_estimator(estimator)
    with files.hold_run_folder(folder) as home:
        campaign = read_campaign(home)
        planned = files.read_part(home, files.PLAN_PART) if (home / files.PLAN_PART.file).exists() else None
        if budget is None and campaign.planning.total is not None:
            budget = (planned or files.read_part(home, files.PLAN_PART))["budget"]["average"]
        campaign = campaign.spending(budget=budget)
        if planned is not None:
            steps.check_budget(planned, campaign, str(folder))
        progress("reading", 0.0)
        read = engine.read_log(campaign, log)
        examined = recall(home, campaign, read, engine, progress)
        study = steps.judge(campaign, read, examined, campaign.planning.average(len(read)), estimator, engine)
        with write_together() as batch:
            new = files.renew_run_folder(batch, home)
            if log is None:
                files.write_scores(new, campaign, read, examined, engine)
            shown = files.write_study(new, study, engine)
            files.drop_outdated(new, home)
        return shown


def recall(
    home: Path, campaign: Campaign, log: Log, engine: Engine, progress: Progress, *, refit: bool = True
) -> steps.Examined:
    """Return what a log says under the campaign's model: as the run folder keeps it, or fitted where it does not."""
    kept = read_kept(home / files.SCORES, key_of(campaign, log), log)
    if kept is None and not refit:
        got = "the log is not the one that the run has learnt from, or the run folder has lost its scores"
        fail("run folder", Problem(got, "run the campaign again"))
    if kept is None:
        held, known = steps.fit(campaign, log, engine, progress).held, None
    else:
        held, known = kept
    return steps.examine(campaign, log, held, engine, progress, known)


def find_variance(
    home: Path, campaign: Campaign, policy: Policy, engine: Engine, progress: Progress
) -> ResponseVariance:
    """Return how much the log's responses vary about what is expected of them, where a plan needs to know."""
    if not campaign.planning.aimed or policy.model.binary_:
        return ResponseVariance()
    log = engine.read_log(campaign)
    return measure_variance(log, recall(home, campaign, log, engine, progress).scores.curves)


def describe_run(folder: str | Path) -> dict[str, Any]:
    """Return what a run folder is about: its title, the units, the response and the levels."""
    with files.look_into_run_folder(folder) as home, files.expect_numbers(home):
        campaign = read_campaign(home)
        told = {word: getattr(campaign, word) for word in ("title", "unit", "response_unit")}
        return {**files.read_part(home, files.FIT_PART), **told}


def report(folder: str | Path, out: str | Path | None = None) -> dict[str, Any]:
    """Write the report of a run folder from what its steps left there; return its numbers."""
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


def gather_numbers(home: Path, folder: str | Path) -> dict[str, Any]:
    """Return the numbers of the report of a run folder."""
    learnt, planning, evaluation = (files.read_part(home, part) for part in files.PARTS)
    return steps.report(read_campaign(home), learnt, planning, evaluation, str(folder))
