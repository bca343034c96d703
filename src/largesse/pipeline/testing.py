"""How many customers a test of a run's plan needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from largesse.campaign import read_campaign
from largesse.evaluation import (
    Asked,
    check_asked,
    check_incumbent,
    measure_spending,
    meet_incumbent,
    plan_held_out,
    size_test,
    spread_levels,
)
from largesse.pipeline import folder as files
from largesse.pipeline.engine import Engine
from largesse.pipeline.line import LOCAL, recall, silent
from largesse.records import PowerAnalysis, Progress


def power(
    folder: str | Path,
    incumbent: str = "before",
    *,
    asked: Asked = Asked(),  # noqa: B008 — a frozen value
    progress: Progress = silent,
    engine: Engine = LOCAL,
) -> PowerAnalysis:
    """Say how many customers a test of the plan of a run folder needs against what was done before, a mix or a level.

    The plan is the one that the run's evaluation judges: on held-out rows, at the budget of the run.
    """
    check_asked(asked)
    with files.look_into_run_folder(folder) as home:
        campaign = read_campaign(home)
        check_incumbent(incumbent, campaign.levels)
        planned = files.read_part(home, files.PLAN_PART)
        progress("reading", 0.0)
        log = engine.read_log(campaign)
        scores = recall(home, campaign, log, engine, progress).scores
        budget = planned["budget"]["average"]
        found = plan_held_out(
            scores,
            float("inf") if budget is None else budget,
            measure_spending(scores),
            campaign.planning.budget_confidence,
        )
        plan = spread_levels(found.levels.astype("int64"), scores)
        rivals = meet_incumbent(scores, plan, incumbent, log.levels)
        return size_test(scores, rivals, asked, log, planned["planned"]["price"])


def describe_power(found: PowerAnalysis) -> dict[str, Any]:
    """Return an analysis as JSON types; a number of customers that no test reaches is None."""
    return {
        "incumbent": found.incumbent,
        "switchers": found.switchers,
        "power": found.power,
        "coverage": found.coverage,
        "per_day": found.per_day,
        "rows": found.rows,
        "notes": list(found.notes),
        "cases": [
            {
                "name": case.name,
                "detail": case.detail,
                "gain": _plain(vars(case.gain)),
                "sd": list(case.sd),
                "best_share": case.best_share,
                "expected": _plain(vars(case.expected)),
                "least": _plain(vars(case.least)),
            }
            for case in found.cases
        ],
    }


def _plain(facts: dict[str, float | None]) -> dict[str, float | None]:
    return {
        name: None if value is None or abs(value) == float("inf") or value != value else value
        for name, value in facts.items()
    }
