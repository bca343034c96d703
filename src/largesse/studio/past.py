"""Past runs as the page lists them, read from their folders."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from largesse import pipeline
from largesse.campaign import Campaign, read_campaign
from largesse.data import find_files
from largesse.errors import LargesseError
from largesse.levels import Levels
from largesse.studio.places import list_parts

NUMBERS = ("fit.json", "plan.json", "evaluation.json")
MOST_BYTES = 1 << 20  # of a campaign file that is shown


def describe_run(path: Path) -> dict[str, Any]:
    """Return a line about a run; what its folder does not hold, or holds damaged, is missing in it."""
    times = tuple(changed(path / name) for name in (pipeline.CAMPAIGN, *NUMBERS))
    line = dict(_read(path, times))
    return {**line, "files": _list_files(path)}


def describe_rules(path: Path) -> dict[str, Any]:
    """Return what a run's campaign says of levels and plans; nothing if its file is damaged."""
    try:
        campaign = read_campaign(path)
    except LargesseError:
        return {"plan": {}, "costs": None, "most": None}
    costs = campaign.levels.common_costs
    return {
        "plan": tomllib.loads(campaign.text)["plan"],
        "costs": None if costs is None else costs.tolist(),
        "most": None if costs is None else float(costs.max() + campaign.levels.contact_cost),
    }


def changed(path: Path) -> int:
    """Return when a file was changed, in nanoseconds; 0 if it is not there."""
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=512)
def _read(path: Path, times: tuple[int, ...]) -> dict[str, Any]:
    made = datetime.fromtimestamp(max(times) / 1e9, tz=UTC).isoformat(timespec="seconds")
    line: dict[str, Any] = {"name": path.name, "made": made, "problems": []}
    line |= dict.fromkeys(
        ("title", "headline", "verdict", "budget", "unit", "spend", "value", "value_interval", "customers", "model")
    )
    line["kept"] = False
    try:
        campaign = read_campaign(path)
        line |= {"title": campaign.title, "unit": campaign.unit, "model": campaign.model}
        line["response_unit"] = campaign.response_unit
        line |= {"budget": campaign.planning.budget, "kept": _is_kept(campaign)}
        shown = pipeline.read_numbers(path)
        line |= {
            "headline": shown["answer"]["headline"],
            "verdict": shown["answer"]["verdict"],
            "budget": shown["budget"]["average"],
            "spend": shown["spend"]["estimate"],
            "value": shown["value"]["estimate"],
            "value_interval": [shown["value"]["low"], shown["value"]["high"]],
            "customers": shown["customers"],
            "response": shown["response"]["name"],
            "response_kind": shown["response"]["kind"],
            "model": shown["model"]["name"],
            "planned": {word: shown["planned"][word] for word in ("spend", "value", "price")},
            "levels": name_levels(shown, campaign.levels),
            "profit": shown["profit"]["own"] if shown["profit"] else None,
        }
    except LargesseError as error:
        line["problems"] = [{"what": problem.what, "hint": problem.hint} for problem in error.problems]
    except Exception:  # numbers of the right kind that do not fit together; no run may hide the others
        line["problems"] = [{"what": f"the numbers in {path.name} do not fit together", "hint": "run it again"}]
    return line


def name_levels(shown: dict[str, Any], levels: Levels) -> list[dict[str, Any]]:
    """Return what each level gets, under the name that rules use and the title that people read."""
    return [
        {"name": label, "title": level["name"], "share": level["share"], "customers": level["customers"]}
        for label, level in zip(levels.labels, shown["money"]["levels"], strict=True)
    ]


def _is_kept(campaign: Campaign) -> bool:
    """Whether the tables that a new plan needs are still there."""
    try:
        return all(find_files(source, "table") for source in (campaign.log, campaign.customers) if source is not None)
    except LargesseError:
        return False


def _list_files(path: Path) -> list[str]:
    found = list_parts(path)
    return sorted([*found, "plan.csv"]) if pipeline.PLAN in found else found


def list_runs(paths: list[Path]) -> list[dict[str, Any]]:
    """Return lines about runs, the newest first."""
    return sorted(map(describe_run, paths), key=lambda line: (line["made"], line["name"]), reverse=True)


def read_text(path: Path) -> str:
    """Return the campaign file of a run, as it stands."""
    with (path / pipeline.CAMPAIGN).open("rb") as file:
        return file.read(MOST_BYTES).decode("utf-8", "replace")
