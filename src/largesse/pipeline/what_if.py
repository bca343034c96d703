"""What-if plans under another budget or other constraints, without changes to the run folder."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from largesse.campaign import Campaign, parse_campaign, read_campaign
from largesse.data import read_table
from largesse.errors import OutputError, Problem
from largesse.io import resolve_links
from largesse.pipeline import run_folder as files
from largesse.pipeline.commands import (
    LOCAL_ENGINE,
    evaluate_plan,
    join_step_numbers,
    load_scores,
    open_scored_customers,
    show_no_progress,
    weight_scores_to_customers,
)
from largesse.pipeline.engine_protocol import Engine, ScoredCustomers
from largesse.pipeline.scored_customer_plan import make_plan
from largesse.progress import start_stage
from largesse.records import Progress
from largesse.report import render_report

BUDGET_SETTINGS = ("budget", "total")
MAX_SEGMENT_CHOICES = 100  # that are listed


def change_plan_settings(campaign: Campaign, rules: Mapping[str, Any]) -> Campaign:
    """Return a campaign with other plan settings by name; None removes a setting."""
    content = tomllib.loads(campaign.text)
    settings = {**content.get("plan", {}), **rules}
    if any(rules.get(word) is not None for word in BUDGET_SETTINGS):
        settings |= {word: rules.get(word) for word in BUDGET_SETTINGS}
    for word in ("segment_budgets", "segment_minimums"):
        if "segment" in rules and word not in rules:
            settings.pop(word, None)  # of another segment
    content["plan"] = {word: value for word, value in settings.items() if value is not None}
    return parse_campaign(content).spending()


def try_plan(
    folder: str | Path,
    out: Path,
    rules: Mapping[str, Any],
    *,
    progress: Progress = show_no_progress,
    engine: Engine = LOCAL_ENGINE,
) -> dict[str, Any]:
    """Plan with a run's model under other settings, and return the plan's numbers.

    Nothing is fitted, and the run folder is only read. `out`, a new folder, gets the plan, its numbers, its policy and the
    campaign file that makes it.
    """
    with files.read_run_folder(folder) as home:
        campaign = change_plan_settings(read_campaign(home), rules)
        opened = open_scored_customers(home, campaign, campaign.customers_source, engine, progress, refit=False)
        with opened as (policy, variance, scored):
            result = make_plan(campaign, policy, scored, progress, variance)
            out.mkdir()
            try:
                planned = files.write_plan(out, result, scored, progress)
                files.write_text(out / files.CAMPAIGN_FILE, campaign.text)
                return planned | {"segments": _summarise_segments(campaign, scored, out)}
            except BaseException:
                shutil.rmtree(out, ignore_errors=True)
                raise


def _summarise_segments(campaign: Campaign, scored: ScoredCustomers, out: Path) -> list[dict[str, Any]] | None:
    """Return customers, spend and value by segment, the largest first; None without segments."""
    column = campaign.planning.segment
    if column is None or not campaign.planning.constrained:
        return None
    import pyarrow as pa

    customers, _, _ = scored.collect()
    plan = read_table(out / files.PLAN_FILE, what="plan")
    names = pa.array([str(value) for value in customers.features.column(column).to_pylist()])
    table = pa.table({"name": names, "spend": plan["expected_cost"], "value": plan["expected_response"]})
    segments = table.group_by("name").aggregate([("name", "count"), ("spend", "sum"), ("value", "sum")])
    segments = segments.rename_columns(["name", "customers", "spend", "value"]).to_pylist()
    return sorted(segments, key=lambda segment: -segment["customers"])[:MAX_SEGMENT_CHOICES]


def save_tried_plan(
    folder: str | Path, tried: Path, out: Path, *, progress: Progress = show_no_progress, engine: Engine = LOCAL_ENGINE
) -> dict[str, Any]:
    """Make a run folder of a what-if plan with an evaluation and a report, and return the report's numbers.

    Nothing is fitted, and nothing that is there already is replaced.
    """
    refuse_existing_path(out)
    with files.read_run_folder(folder) as home, files.replace_run_folder(out) as new:
        refuse_existing_path(out)
        campaign, log_copy = read_campaign(tried), home / files.LOG_FILE
        for name in (files.FIT_STEP.file, files.SCORES_FILE):
            _link_or_copy_file(home / name, new / name)
        for name in (files.PLAN_FILE, files.PLANNING_STEP.file, files.POLICY_FILE):
            _link_or_copy_file(tried / name, new / name)
        holds_log = log_copy.is_file() and resolve_links(campaign.log) == resolve_links(log_copy)
        if holds_log:
            _link_or_copy_file(log_copy, new / files.LOG_FILE)
        files.write_text(new / files.CAMPAIGN_FILE, (campaign.with_log(files.LOG_FILE) if holds_log else campaign).text)
        learnt, planned = files.read_step(new, files.FIT_STEP), files.read_step(new, files.PLANNING_STEP)
        progress("reading", 0.0)
        log = engine.read_log(campaign)
        log_scores = load_scores(home, campaign, log, progress, refit=False)
        if campaign.customers is not None:
            with open_scored_customers(
                home, campaign, campaign.customers_source, engine, progress, refit=False
            ) as opened:
                policy, _, customers = opened
                log, log_scores, _ = weight_scores_to_customers(campaign, policy, log, log_scores, customers)
        study = evaluate_plan(campaign, log, log_scores, planned["budget"]["average"], planned["customers"])
        judged = files.write_evaluation(new, study)
        start_stage("writing the report")
        numbers = join_step_numbers(campaign, learnt, planned, judged, str(out))
        files.write_text(new / files.REPORT_FILE, render_report(numbers))
        return numbers


def refuse_existing_path(out: Path) -> None:
    """Raise an error if a path already exists."""
    if os.path.lexists(out):
        hint = "choose another name: nothing is replaced"
        raise OutputError("run", [Problem(f"{out.name!r} is there already", hint)])


def _link_or_copy_file(source: Path, target: Path) -> None:
    """Link a file to a new path, or copy it if links are impossible."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copyfile(source, target, follow_symlinks=False)
