"""Summaries of run folders for the studio's page, and what-if plans of a run under changed constraints."""

from __future__ import annotations

import secrets
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from largesse import pipeline
from largesse.campaign import Campaign, read_campaign
from largesse.data import find_files
from largesse.errors import LargesseError, Problem, refuse, repr_short, suggest
from largesse.levels import Levels
from largesse.serve import RequestError
from largesse.studio.draft_json import describe_problems
from largesse.studio.studio_files import list_run_files

NUMBER_FILES = ("fit.json", "plan.json", "evaluation.json")
NUMBER_KEYS = ("headline", "verdict", "spend", "value", "value_interval", "customers")
MAX_SHOWN_BYTES = 1 << 20  # of a campaign file
MAX_WHAT_IFS = 30
WHAT_IF_KEYS = ("budget", "total", "plan", "fixed", "barred")
WHAT_IF_FILES = ("plan.csv", "plan.parquet", "campaign.toml")


def list_runs(paths: list[Path]) -> list[dict[str, Any]]:
    """Describe run folders as JSON types, the newest run first."""
    return sorted(map(describe_listed_run, paths), key=lambda run: (run["made"], run["name"]), reverse=True)


def describe_listed_run(path: Path) -> dict[str, Any]:
    """Describe a run folder as JSON types; missing or damaged numbers are None."""
    files = list_run_files(path)
    times = tuple(read_change_time(path / name) for name in (pipeline.CAMPAIGN_FILE, *NUMBER_FILES))
    return {**_read_run(path, times), "files": sorted([*files, "plan.csv"]) if pipeline.PLAN_FILE in files else files}


def read_change_time(path: Path) -> int:
    """Return the time of a file's last change, in nanoseconds; 0 if it is missing."""
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=512)
def _read_run(path: Path, times: tuple[int, ...]) -> dict[str, Any]:
    made = datetime.fromtimestamp(max(times) / 1e9, tz=UTC).isoformat(timespec="seconds")
    run: dict[str, Any] = {"name": path.name, "made": made, "problems": [], "kept": False}
    run |= dict.fromkeys(("title", "budget", "unit", "model", *NUMBER_KEYS))
    try:
        campaign = read_campaign(path)
        run |= {key: getattr(campaign, key) for key in ("title", "unit", "model", "response_unit")}
        run |= {"budget": campaign.planning.budget, "kept": _has_input_tables(campaign)}
        numbers = pipeline.read_report_numbers(path)
        value, spend, profit = (numbers[key] for key in ("value", "spend", "profit"))
        run |= {
            "headline": numbers["answer"]["headline"],
            "verdict": numbers["answer"]["verdict"],
            "budget": numbers["budget"]["average"],
            "spend": spend["estimate"],
            "value": value["estimate"],
            "value_interval": [value["low"], value["high"]],
            "customers": numbers["customers"],
            "response": numbers["response"]["name"],
            "response_kind": numbers["response"]["kind"],
            "model": numbers["model"]["name"],
            "planned": {key: numbers["planned"][key] for key in ("spend", "value", "price")},
            "levels": list_level_shares(numbers, campaign.levels),
            "profit": profit["own"] if profit else None,
            "recommended": numbers["verdict"]["recommended"],
            "simpler": list_simpler_plans(numbers, campaign),
        }
    except LargesseError as error:
        run["problems"] = describe_problems(error.problems)
    except Exception:  # numbers of the right kind that do not fit together; no run may hide the others
        run["problems"] = [{"what": f"the numbers in {path.name} do not fit together", "hint": "run it again"}]
    return run


def list_simpler_plans(numbers: Mapping[str, Any], campaign: Campaign) -> list[str]:
    """Return the simpler plans that a run can write: "rule" (simple rule) and "mix" (one mix of levels for all).

    A campaign with constraints has none.
    """
    if campaign.planning.constrained:
        return []
    return [*(["rule"] if numbers["safety"]["rule"] is not None else []), *(["mix"] if numbers["versus"] else [])]


def list_level_shares(numbers: Mapping[str, Any], levels: Levels) -> list[dict[str, Any]]:
    """Return the number and share of customers at each level of a plan, with the level's name and title."""
    return [
        {"name": label, "title": level["name"], "share": level["share"], "customers": level["customers"]}
        for label, level in zip(levels.labels, numbers["money"]["levels"], strict=True)
    ]


def _has_input_tables(campaign: Campaign) -> bool:
    """Return True if the log and the customer table of a campaign still exist."""
    try:
        return all(find_files(source, "table") for source in (campaign.log, campaign.customers) if source is not None)
    except LargesseError:
        return False


def find_run_log(path: Path) -> Path:
    """Return the path of a run's log; refuse a log that is missing or in several files."""
    campaign = read_campaign(path)
    try:
        files = find_files(campaign.log, "table")
    except LargesseError:
        files = []
    if len(files) != 1:
        raise RequestError(409, f"the log of {path.name!r} is gone, or in several files", "choose the table itself")
    return Path(files[0])


def describe_campaign_rules(path: Path) -> dict[str, Any]:
    """Return the constraints and level costs of a run's campaign; empty if the campaign file is damaged."""
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


def read_campaign_text(path: Path) -> str:
    """Read the text of a run's campaign file."""
    with (path / pipeline.CAMPAIGN_FILE).open("rb") as file:
        return file.read(MAX_SHOWN_BYTES).decode("utf-8", "replace")


# -- what-ifs ----------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class WhatIf:
    """What-if plan of a run: changed constraints, a folder for its files, and its result."""

    run: str
    folder: Path
    before: dict[str, Any]  # the run's own plan
    id: str
    result: dict[str, Any] | None = None


@dataclass(eq=False)
class WhatIfStore:
    """Store of the studio's what-if plans, removed when the studio stops."""

    private: Path
    _trials: dict[str, WhatIf] = field(default_factory=dict)

    def begin(self, run: str, described: Mapping[str, Any]) -> WhatIf:
        """Add a what-if plan of a run that is still to be computed, and return it."""
        key = secrets.token_hex(8)
        planned = {**(described.get("planned") or {}), "budget": described["budget"]}
        before = {"planned": planned, "levels": described.get("levels")}
        trial = self._trials[key] = WhatIf(run, self.private / f"what-if-{key}", before, key)
        for old in list(self._trials)[:-MAX_WHAT_IFS]:
            self.drop(old)
        return trial

    def complete(self, key: str, result: dict[str, Any]) -> dict[str, Any]:
        """Store the result of a what-if plan; return it with the run's own plan for comparison."""
        trial = self._trials[key]
        trial.result = {"id": key, **result, "before": trial.before}
        return trial.result

    def drop(self, key: str) -> None:
        """Remove a what-if plan and its files."""
        trial = self._trials.pop(key, None)
        if trial is not None:
            shutil.rmtree(trial.folder, ignore_errors=True)

    def drop_run(self, run: str) -> None:
        """Remove all what-if plans of a run."""
        for key in [key for key, trial in self._trials.items() if trial.run == run]:
            self.drop(key)

    def find(self, run: str, key: str) -> WhatIf:
        """Return a computed what-if plan of a run by its id."""
        trial = self._trials.get(key)
        if trial is None or trial.run != run or trial.result is None:
            raise RequestError(404, "there is no such plan any more", "plan again")
        return trial

    def list_results(self, run: str) -> list[dict[str, Any]]:
        """Return the results of a run's what-if plans, the newest first."""
        trials = (trial for trial in reversed(self._trials.values()) if trial.run == run)
        return [trial.result for trial in trials if trial.result is not None]


def parse_what_if_rules(request: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a what-if request to settings of the campaign section [plan]."""
    plan: Any = {} if request.get("plan") is None else request["plan"]
    problems = [
        Problem(f"{key!r} is not a part of a what-if", suggest(key, WHAT_IF_KEYS))
        for key in request
        if key not in WHAT_IF_KEYS
    ]
    if not isinstance(plan, dict):
        problems.append(Problem(f"plan is {repr_short(plan)}", "give an object"))
    refuse("what-if", problems)
    more = {key: request[key] for key in WHAT_IF_KEYS if key != "plan" and request.get(key) is not None}
    return {**plan, **more}
