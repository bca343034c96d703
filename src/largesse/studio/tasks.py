"""Tasks of the worker process; each calls the functions of the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from largesse import pipeline
from largesse.campaign import TableProfile, campaign_from, inspect_table, read_campaign
from largesse.errors import InputError
from largesse.progress import report_to, start_stage
from largesse.studio.campaign_form import (
    assign_roles,
    describe_inspection,
    draft_campaign,
    list_problems,
    list_segments,
)
from largesse.studio.runs import name_levels

MOST_BYTES = 1 << 27  # of a table that is read only to offer its columns for rules


@lru_cache(maxsize=1)
def _inspect_cached(path: str, _size: int, _changed: int) -> TableProfile:
    return inspect_table(path)


def load_profile(path: str) -> TableProfile:
    """Inspect a table; the last one is cached, because a page asks for it several times."""
    found = Path(path).stat()
    return _inspect_cached(path, found.st_size, found.st_mtime_ns)


def inspect(path: str, roles: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Inspect a table: guess the roles of its columns, or take the given ones."""
    start_stage("looking at the table")
    profile = load_profile(path)
    if roles is not None:
        return describe_inspection(*assign_roles(profile, roles))
    found = profile.guess()
    return describe_inspection(found, found.features)


def example(path: str) -> dict[str, Any]:
    """Write the demo's log to a path and inspect it, with all that the demo's campaign knows."""
    import pyarrow.parquet as pq

    campaign, table = pipeline.demo_campaign()
    pq.write_table(table, path)
    found = inspect(path, {**campaign.columns, "features": list(campaign.roles.get("features") or ())})
    order = {level["name"]: level for level in found["levels"]}
    return found | {
        "levels": [order[label] for label in campaign.levels.labels],
        "order_known": True,
        "suggested_costs": list(campaign.levels.costs),
        "suggested_budget": campaign.planning.budget,
        "suggested_on_redemption": bool(campaign.levels.on_redemption),
        "suggested_unit": campaign.unit,
        "suggested_title": campaign.title,
    }


def campaign(path: str, draft: dict[str, Any], own: bool, checkup: bool = False) -> dict[str, Any]:
    """Check a draft; return the campaign file, if nothing is wrong: as it would be kept, and as it is now."""
    try:
        found = draft_campaign(draft, load_profile(path), path, checkup=checkup)
    except InputError as error:
        return {"toml": None, "now": None, "problems": list_problems(error)}
    kept = replace(found, log=pipeline.LOG) if own else found
    return {"toml": kept.text, "now": found.text, "problems": []}


def doctor(toml: str) -> dict[str, Any]:
    """Check whether a log can answer the question."""
    with report_to(None) as heard:
        shown = pipeline.examine(campaign_from(tomllib.loads(toml)), progress=heard)
    findings = [
        {"verdict": check["answer"], "title": check["topic"], "text": check["text"], "hint": ""}
        for check in shown["support"]["checks"]
    ]
    levels = [
        {"name": level["name"], "rows": level["rows"], "response": level["raw"]["estimate"]}
        | {"interval": [level["raw"]["low"], level["raw"]["high"]]}
        for level in shown["curve"]["levels"]
    ]
    return {
        "verdict": shown["answer"],
        "headline": shown["headline"],
        "findings": findings,
        "levels": levels,
        "notes": shown["notes"],
    }


def run(toml: str, out: str, private: str, own: bool) -> dict[str, Any]:
    """Run a campaign; with its `own` log, which the run folder then keeps."""
    found = campaign_from(tomllib.loads(toml))
    pipeline.refuse_existing(Path(out))
    if not own:
        pipeline.run(found, out)
        return {"run": Path(out).name}
    log = pipeline.convert_log(found, Path(private) / pipeline.LOG)
    pipeline.refuse_existing(Path(out))
    pipeline.run(replace(found, log=pipeline.LOG), out, table=log)
    return {"run": Path(out).name}


def describe(folder: str) -> dict[str, Any]:
    """Return what rules about a run's customers can name: the columns of their table, and values where these are few."""
    campaign = read_campaign(Path(folder))
    path = Path(campaign.customers or campaign.log)
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        return {"columns": [], "segments": {}}
    table = load_profile(str(path))
    # Of a log, only features are known to a plan.
    usable = list(campaign.roles.get("features") or ()) if campaign.customers is None else None
    taken = {*campaign.columns.values(), *(campaign.levels.cost_columns or ())}
    names = [name for name in table.columns if name not in taken and (not usable or name in usable)]
    return {"columns": names, "segments": list_segments(table, names)}


def what_if(folder: str, out: str, rules: dict[str, Any]) -> dict[str, Any]:
    """Plan by other rules with what a run has learnt."""
    with report_to(None) as heard:
        shown = pipeline.try_plan(folder, Path(out), rules, progress=heard)
    made = read_campaign(Path(out))
    log = Path(folder) / pipeline.LOG
    kept = replace(made, log=pipeline.LOG) if Path(made.log) == log.absolute() else made
    return {
        "planned": {**shown["planned"], "budget": shown["budget"]["average"], "total": shown["budget"]["total"]},
        "levels": name_levels(shown, made.levels),
        "segments": shown["segments"],
        "shadow": shown.get("shadow", {}),
        "customers": shown["customers"],
        "toml": kept.text,
    }


def keep(folder: str, tried: str, out: str) -> dict[str, Any]:
    """Make a run folder of a plan that was tried."""
    with report_to(None) as heard:
        pipeline.keep_plan(folder, Path(tried), Path(out), progress=heard)
    return {"run": Path(out).name}


TASKS: dict[str, Callable[..., Any]] = {
    "inspect": inspect,
    "example": example,
    "campaign": campaign,
    "doctor": doctor,
    "run": run,
    "what-if": what_if,
    "keep": keep,
    "describe": describe,
}
