"""What if: another budget, other rules. A plan from what a run has learnt, beside the run folder, which stays as it is."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from largesse.campaign import Campaign, campaign_from, read_campaign
from largesse.data import read_table
from largesse.errors import OutputError, Problem
from largesse.io import where_is
from largesse.pipeline import folder as files
from largesse.pipeline.commands import LOCAL, find_variance, join_numbers, judge_plan, open_scored, recall, silent
from largesse.pipeline.engine import Engine, ScoredCustomers
from largesse.pipeline.planner import make_plan
from largesse.pipeline.write import escape_formulas
from largesse.progress import start_stage
from largesse.records import Progress

if TYPE_CHECKING:
    import pyarrow as pa

BUDGETS = ("budget", "total")
MOST_SEGMENTS = 100
ROWS = 1 << 16  # of a plan that are written to CSV at a time


def change_plan(campaign: Campaign, rules: Mapping[str, Any]) -> Campaign:
    """Return a campaign with other settings under [plan]: those that are given, by their names; None takes one away."""
    given = tomllib.loads(campaign.text)
    kept = given.get("plan", {})
    if any(rules.get(word) is not None for word in BUDGETS):
        kept = {word: value for word, value in kept.items() if word not in BUDGETS}
    if "segment" in rules and "segment_budgets" not in rules:
        kept.pop("segment_budgets", None)  # of another segment
    asked = {**kept, **rules}
    given["plan"] = {word: value for word, value in asked.items() if value is not None}
    return campaign_from(given).spending()


def try_plan(
    folder: str | Path, out: Path, rules: Mapping[str, Any], *, progress: Progress = silent, engine: Engine = LOCAL
) -> dict[str, Any]:
    """Plan with the model of a run folder under other `rules`; return the numbers of the plan.

    Nothing is fitted, and the run folder is only read. `out`, a new folder, gets the plan, its numbers, its policy and the
    campaign file that makes it.
    """
    with files.look_into_run_folder(folder) as home:
        campaign = change_plan(read_campaign(home), rules)
        with open_scored(home, campaign, campaign.customers, engine, progress, refit=False) as (policy, scored):
            variance = find_variance(home, campaign, policy, engine, progress)
            result = make_plan(campaign, policy, scored, progress, variance)
            out.mkdir()
            try:
                shown = files.write_plan(out, result, scored, progress)
                files.write_campaign(out, campaign)
                shown["segments"] = _count_segments(campaign, scored, out)
            except BaseException:
                shutil.rmtree(out, ignore_errors=True)
                raise
    return shown


def _count_segments(campaign: Campaign, scored: ScoredCustomers, out: Path) -> list[dict[str, Any]] | None:
    """Return customers, spend and value of each segment, the largest first; None if the plan has no segments."""
    column = campaign.planning.segment
    if column is None or not campaign.planning.constrained:
        return None
    import pyarrow as pa

    customers, _, _ = scored.collect()
    plan = read_table(out / files.PLAN, what="plan")
    words = pa.array([str(value) for value in customers.features.column(column).to_pylist()])
    table = pa.table({"name": words, "cost": plan["expected_cost"], "response": plan["expected_response"]})
    found = table.group_by("name").aggregate([("name", "count"), ("cost", "sum"), ("response", "sum")]).to_pylist()
    found.sort(key=lambda one: -one["name_count"])
    return [
        {"name": one["name"], "customers": one["name_count"], "spend": one["cost_sum"], "value": one["response_sum"]}
        for one in found[:MOST_SEGMENTS]
    ]


def keep_plan(
    folder: str | Path, tried: Path, out: Path, *, progress: Progress = silent, engine: Engine = LOCAL
) -> dict[str, Any]:
    """Make a run folder of a plan that `try_plan` made, with an evaluation and a report; return the report's numbers.

    Nothing is fitted, and nothing that is there already is replaced.
    """
    refuse_existing(out)
    with files.look_into_run_folder(folder) as home, files.replace_run_folder(out) as new:
        refuse_existing(out)
        campaign, own = read_campaign(tried), home / files.LOG
        for name in (files.FIT_PART.file, files.SCORES):
            _copy(home / name, new / name)
        for name in (files.PLAN, files.PLAN_PART.file, files.POLICY):
            _copy(tried / name, new / name)
        is_own = own.is_file() and where_is(campaign.log) == where_is(own)
        if is_own:
            _copy(own, new / files.LOG)
        files.write_campaign(new, replace(campaign, log=files.LOG) if is_own else campaign)
        learnt, planning = files.read_part(new, files.FIT_PART), files.read_part(new, files.PLAN_PART)
        progress("reading", 0.0)
        log = engine.read_log(campaign)
        log_scores = recall(home, campaign, log, progress, refit=False)
        study = judge_plan(campaign, log, log_scores, planning["budget"]["average"])
        evaluation = files.write_study(new, study)
        start_stage("writing the report")
        shown = join_numbers(campaign, learnt, planning, evaluation, str(out))
        files.write_report(new, shown)
        return shown


def refuse_existing(out: Path) -> None:
    """Refuse a name that something has already."""
    if os.path.lexists(out):
        raise OutputError(
            "run", [Problem(f"{out.name!r} is there already", "choose another name: nothing is replaced")]
        )


def _copy(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where that is not possible; links are not followed."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copyfile(source, target, follow_symlinks=False)


def write_csv(plan: IO[bytes], sink: IO[bytes]) -> None:
    """Write a plan that is Parquet as CSV, for spreadsheets: text that would begin a formula there is escaped."""
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    with pq.ParquetFile(plan) as opened:
        schema = escape_formulas(_as_text(opened.schema_arrow.empty_table())).schema
        with csv.CSVWriter(sink, schema) as writer:
            for batch in opened.iter_batches(ROWS):
                writer.write_table(escape_formulas(_as_text(pa.Table.from_batches([batch]))))


def _as_text(table: pa.Table) -> pa.Table:
    """Return a table whose words are plain text: CSV knows no dictionaries."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(field.type.value_type))
    return table
