"""Runs as the page lists them, read from their folders, and what-ifs: plans that were tried and not kept."""

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
from largesse.studio.sandbox import list_parts

NUMBERS = ("fit.json", "plan.json", "evaluation.json")
MAX_SHOWN_BYTES = 1 << 20  # of a campaign file
MAX_WHAT_IFS = 30
WHAT_IF_KEYS = ("budget", "total", "plan", "fixed", "barred")
WHAT_IF_FILES = ("plan.csv", "plan.parquet", "campaign.toml")


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
        return file.read(MAX_SHOWN_BYTES).decode("utf-8", "replace")


# -- what-ifs ------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class WhatIf:
    """A plan that was tried with a run."""

    run: str
    folder: Path
    before: dict[str, Any]  # what is said of the run's own plan
    id: str
    result: dict[str, Any] | None = None


@dataclass(eq=False)
class WhatIfs:
    """The what-ifs of a studio."""

    private: Path
    _known: dict[str, WhatIf] = field(default_factory=dict)

    def begin(self, run: str, line: Mapping[str, Any]) -> WhatIf:
        """Return a what-if that is still to be computed."""
        key = secrets.token_hex(8)
        planned = {**(line.get("planned") or {}), "budget": line["budget"]}
        trial = WhatIf(run, self.private / f"what-if-{key}", {"planned": planned, "levels": line.get("levels")}, key)
        self._known[key] = trial
        for old in list(self._known)[:-MAX_WHAT_IFS]:
            self.drop(old)
        return trial

    def complete(self, key: str, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a what-if with its id, and the run's own plan to compare it with."""
        trial = self._known[key]
        trial.result = {"id": key, **result, "before": trial.before}
        return trial.result

    def drop(self, key: str) -> None:
        """Forget a what-if."""
        trial = self._known.pop(key, None)
        if trial is not None:
            shutil.rmtree(trial.folder, ignore_errors=True)

    def find(self, run: str, key: str) -> WhatIf:
        """Return a what-if of a run that was computed."""
        trial = self._known.get(key)
        if trial is None or trial.run != run or trial.result is None:
            raise RequestError(404, "there is no such plan any more", "plan again")
        return trial

    def list_of(self, run: str) -> list[dict[str, Any]]:
        """Return the what-ifs of a run, the newest first."""
        return [
            trial.result for trial in reversed(self._known.values()) if trial.run == run and trial.result is not None
        ]


def read_rules(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page asks for as settings of [plan]."""
    plan: Any = {} if given.get("plan") is None else given["plan"]
    problems = [
        Problem(f"{word!r} is not a part of a what-if", suggest(word, WHAT_IF_KEYS))
        for word in given
        if word not in WHAT_IF_KEYS
    ]
    if not isinstance(plan, dict):
        problems.append(Problem(f"plan is {repr_short(plan)}", "give an object"))
    refuse("what-if", problems)
    more = {word: given[word] for word in WHAT_IF_KEYS if word != "plan" and given.get(word) is not None}
    return {**plan, **more}
