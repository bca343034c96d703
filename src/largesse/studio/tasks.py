"""What a child process can be asked to do. Everything is what the command line does, through the same functions."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from largesse import runs
from largesse.errors import InputError, OutputError, Problem
from largesse.progress import begin, follow
from largesse.studio.drafts import draft_campaign, list_problems
from largesse.studio.tables import describe_look, look_again


@lru_cache(maxsize=1)
def _see(path: str, _size: int, _changed: int) -> runs.Seen:
    return runs.see(path)


def see_table(path: str) -> runs.Seen:
    """Read a table, or recall it: a page asks for the same one several times."""
    found = Path(path).stat()
    return _see(path, found.st_size, found.st_mtime_ns)


def look(path: str, roles: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Look at a table: guess what its columns are, or take the roles that are given."""
    begin("looking at the table")
    seen = see_table(path)
    if roles is not None:
        return describe_look(*look_again(seen, roles))
    found = runs.look_at(seen)
    return describe_look(found, found.features)


def example(path: str) -> dict[str, Any]:
    """Write the demo's log to a path and look at it, with all that the demo's campaign knows."""
    import pyarrow.parquet as pq

    campaign, table = runs.demo_campaign()
    pq.write_table(table, path)
    found = look(path, {**campaign.columns, "features": list(campaign.roles.get("features") or ())})
    order = {level["name"]: level for level in found["levels"]}
    return found | {
        "levels": [order[label] for label in campaign.levels.labels],
        "order_known": True,
        "suggested_costs": list(campaign.levels.costs),
        "suggested_budget": campaign.planning.budget,
        "suggested_on_redemption": campaign.levels.on_redemption,
        "suggested_unit": campaign.unit,
        "suggested_title": campaign.title,
    }


def campaign(path: str, draft: dict[str, Any], own: bool, checkup: bool = False) -> dict[str, Any]:
    """Check a draft; return the campaign file, if nothing is wrong: as it would be kept, and as it is now."""
    try:
        found = draft_campaign(draft, see_table(path), path, checkup=checkup)
    except InputError as error:
        return {"toml": None, "now": None, "problems": list_problems(error)}
    kept = replace(found, log=runs.LOG) if own else found
    return {"toml": kept.text, "now": found.text, "problems": []}


def doctor(toml: str) -> dict[str, Any]:
    """Check whether a log can answer the question."""
    with follow(None) as heard:
        shown = runs.examine(runs.campaign_from(tomllib.loads(toml)), progress=heard)
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
    found = runs.campaign_from(tomllib.loads(toml))
    _refuse_there(out)
    if not own:
        runs.run(found, out)
        return {"run": Path(out).name}
    log = runs.bring_log(found, Path(private) / runs.LOG)
    _refuse_there(out)
    runs.run(replace(found, log=runs.LOG), out, table=log)
    return {"run": Path(out).name}


def _refuse_there(out: str) -> None:
    """Refuse a name that something has meanwhile: nothing is ever replaced."""
    if os.path.lexists(out):
        raise OutputError("run", [Problem(f"{Path(out).name!r} is there already", "choose another name")])


TASKS: dict[str, Callable[..., Any]] = {
    "look": look,
    "example": example,
    "campaign": campaign,
    "doctor": doctor,
    "run": run,
}
