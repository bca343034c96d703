"""Check of a new log against a run's plan, and sample size of a test of the plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.allocation import add_cheapest_level
from largesse.campaign import Campaign, read_campaign
from largesse.data import read_table
from largesse.errors import LargesseError, Problem, fail, refuse
from largesse.evaluation import (
    FoldPlanner,
    compute_scores,
    measure_spend_by_price,
    plan_each_fold,
    restrict_scores_to_support,
)
from largesse.exploration import ResponseVariance, measure_response_variance
from largesse.monitoring import (
    CUSTOMER,
    PROPENSITY,
    REQUEST,
    PowerSettings,
    TrainingLogResiduals,
    add_prediction_errors,
    broadcast_probabilities,
    check_campaign,
    check_incumbent,
    compute_test_sizes,
    find_budget_price,
    has_unique_ids,
    make_test_arms,
    make_text_ids,
    match_decisions,
    predict_plan_for_log,
)
from largesse.pipeline import run_folder as files
from largesse.pipeline.commands import LOCAL_ENGINE, load_scores, show_no_progress
from largesse.pipeline.engine_protocol import Engine
from largesse.pipeline.next_log import OLD_ROLES
from largesse.pipeline.out_of_fold_cache import make_cache_key, read_scores
from largesse.pipeline.scored_customer_plan import make_fold_planner
from largesse.policy import Policy
from largesse.propensity import mark_supported_levels
from largesse.records import CampaignCheck, Log, PowerAnalysis, Progress, Scores
from largesse.report import make_campaign_check_numbers, render_campaign_check

if TYPE_CHECKING:
    import pyarrow as pa


def check(
    folder: str | Path,
    log: Any,
    *,
    decisions: pa.Table | None = None,
    out: str | Path | None = None,
    progress: Progress = show_no_progress,
    engine: Engine = LOCAL_ENGINE,
) -> tuple[CampaignCheck, dict[str, Any]]:
    """Check a new log against the plan of a run folder, and return the findings with their figures.

    Rows are matched with the plan by the customer's id, or with the `decisions` of a service; without ids the policy decides
    again. With `out`, the page is written there.
    """
    with files.read_run_folder(folder) as home:
        campaign, policy = read_campaign(home), Policy.load(home / files.POLICY_FILE)
        planned, served = files.read_step(home, files.PLANNING_STEP), decisions is not None
        if decisions is None and (home / files.PLAN_FILE).is_file():  # not a plan in parts
            decisions = read_table(home / files.PLAN_FILE, what="plan", plain=[CUSTOMER])
        files.check_output_file(out, log if isinstance(log, str) else None, campaign.log, campaign.customers)
        progress("reading the new log", 0.0)
        new = _read_new_log(log, campaign, policy, decisions, served, engine)
        progress("reading the old log", 0.0)
        old, scores, planner = _read_old_log_and_scores(home, campaign, policy, engine, planned["customers"])
        progress("comparing", 0.0)
        budget: float | None = planned["budget"]["average"]
        prediction = predict_plan_for_log(policy, new, budget)
        if new.customer is not None and decisions is not None and (served or campaign.roles.get("customer")):
            new, prediction = match_decisions(prediction, new, decisions, served=served)
        if scores is not None and budget is not None:
            # Of the log's own customers, whom the model saw, the plan predicts more than held-out models do.
            seen = campaign.customers is None and prediction.joined is not None and not served
            value = planned["planned"]["value"] if seen else None
            confidence = campaign.planning.budget_confidence
            prediction = add_prediction_errors(prediction, scores, budget, confidence, value, planner)
        if budget is not None and not campaign.planning.constrained and policy.price:
            price = find_budget_price(policy, new, budget, planned["customers"], campaign.seed)
            prediction = replace(prediction, price=policy.price, price_now=price)
        result = check_campaign(new, prediction, old, campaign.seed)
    units = {"unit": campaign.unit, "response_unit": campaign.response_unit}
    numbers = make_campaign_check_numbers(result, new, title=campaign.title, **units)
    if out is not None:
        files.write_text(Path(out), render_campaign_check(numbers))
    return result, numbers


def _read_new_log(
    log: Any, campaign: Campaign, policy: Policy, decisions: pa.Table | None, served: bool, engine: Engine
) -> Log:
    """Read the new log by the campaign's column roles; ignore old logging-policy roles without a column."""
    parse = campaign.roles.get("parse") or {}
    key = campaign.columns.get("customer", CUSTOMER)
    # Only text must be known as such from the start; the log's own reader parses the rest, once.
    texts = {name: way for name, way in parse.items() if way == "text"}
    table = read_table(log, what="new log", plain=[key, REQUEST], parse=texts)
    if served and decisions is not None:
        table = _make_decision_ids(decisions, table, key)
    roles: Any = {
        role: column
        for role, column in campaign.roles.items()
        if role not in OLD_ROLES or (isinstance(column, str) and column in table.column_names)
    }
    drawn = decisions is not None and PROPENSITY in decisions.column_names
    if drawn and "propensity" not in roles and PROPENSITY in table.column_names:
        roles["propensity"] = PROPENSITY
    if served:
        roles["customer"] = key
    if roles.get("customer") not in (None, *table.column_names):
        del roles["customer"]
    roles["protected"] = [name for name in roles.get("protected") or () if name in table.column_names]
    roles["absent"] = True  # a plan need not use every level
    new = engine.read_log(replace(campaign, levels=policy.levels, roles=roles, propensities=None), table).seen
    unusable = [
        Problem(
            f"the feature {name!r} cannot be used: the new log holds it as {table[name].type}",
            "write it as in the log that the model learnt from",
        )
        for name in policy.model.encoder_.features
        if name not in new.features.column_names and name in table.column_names
    ]
    refuse("check", unusable)
    return new


def _make_decision_ids(decisions: pa.Table, table: pa.Table, key: str) -> pa.Table:
    """Return the new log with ids of decisions, which differ where a customer came several times."""
    if key not in table.column_names:
        hint = "largesse log RUN --ledger … writes a log with them"
        fail("check", Problem(f"the new log has no column {key!r}, which says whose decisions its rows are", hint))
    repeated = not has_unique_ids(decisions)
    if repeated and REQUEST not in table.column_names:
        hint = f"add the column {REQUEST!r}, with the ids of the requests: largesse log RUN --ledger … writes it"
        fail("check", Problem("customers came more than once, and the new log does not say with which request", hint))
    ids = make_text_ids(table, key, requests=repeated)
    named = table.set_column(table.column_names.index(key), key, ids)
    return named.drop_columns([REQUEST]) if REQUEST in named.column_names else named


def _read_old_log_and_scores(
    home: Path, campaign: Campaign, policy: Policy, engine: Engine, customers: int
) -> tuple[TrainingLogResiduals | None, Scores | None, FoldPlanner | None]:
    """Return the log that the model learnt from, its out-of-fold scores, and the function that plans its rows."""
    try:
        log = engine.read_log(campaign)
    except (LargesseError, OSError):
        return None, None, None
    cached, seen = read_scores(home / files.SCORES_FILE, make_cache_key(campaign, log), log), log.seen
    scores = None if cached is None or cached[1] is None else compute_scores(log, cached[0], cached[1])
    if scores is not None:
        scores = restrict_scores_to_support(
            scores, add_cheapest_level(mark_supported_levels(policy.options.cells, log))
        )
    curves = policy.model.predict(seen) if scores is None or log.sample is not None else scores.curves
    residual = seen.response - curves[np.arange(len(seen)), seen.level]
    old = TrainingLogResiduals(seen.features, residual, seen.cluster, seen.binary)
    return old, scores, None if scores is None else find_fold_planner(campaign, log, scores, customers)


def find_fold_planner(campaign: Campaign, log: Log, scores: Scores, customers: int) -> FoldPlanner | None:
    """Return the function that plans a log's rows under a campaign's constraints; None without constraints."""
    variance = (
        measure_response_variance(log, scores.curves) if campaign.planning.explores_for_goal else ResponseVariance()
    )
    try:
        return make_fold_planner(campaign, log, customers, variance, scores.allowed)
    except LargesseError:
        return None


def power(
    folder: str | Path,
    incumbent: str = "before",
    *,
    spec: PowerSettings = PowerSettings(),  # noqa: B008 — a frozen value
    progress: Progress = show_no_progress,
    engine: Engine = LOCAL_ENGINE,
) -> PowerAnalysis:
    """Estimate the sample size of a test that compares a run's plan with an incumbent.

    The plan is the one that the run's evaluation judges: on held-out rows, at the budget of the run. It is tested against the
    log's own policy ("before"), the best uniform mix ("uniform") or a level for everybody.
    """
    spec.refuse_invalid_settings()
    with files.read_run_folder(folder) as home:
        campaign = read_campaign(home)
        check_incumbent(incumbent, campaign.levels)
        planned = files.read_step(home, files.PLANNING_STEP)
        progress("reading", 0.0)
        log = engine.read_log(campaign)
        scores = load_scores(home, campaign, log, progress).scores
        budget = planned["budget"]["average"]
        budget = float("inf") if budget is None else budget
        planner = find_fold_planner(campaign, log, scores, planned["customers"])
        confidence = campaign.planning.budget_confidence
        held_out = plan_each_fold(scores, budget, measure_spend_by_price(scores), confidence, planner)
        plan = broadcast_probabilities(held_out.policy, scores)
        return compute_test_sizes(
            scores, make_test_arms(scores, plan, incumbent, log.levels), spec, log, planned["planned"]["price"]
        )
