"""What-ifs: plans that were tried and not kept. They lie in the private folder and go with the studio."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from largesse.errors import Problem, refuse, repr_short, suggest
from largesse.serve import RequestError
from largesse.studio.jobs import Job, new_key

KEPT = 30  # what-ifs
ASKED = ("budget", "total", "plan", "fixed", "barred")
FILES = ("plan.csv", "plan.parquet", "campaign.toml")


@dataclass(eq=False)
class Trial:
    """A plan that was tried with a run."""

    run: str
    folder: Path
    before: dict[str, Any]  # what is said of the run's own plan
    id: str
    result: dict[str, Any] | None = None


@dataclass(eq=False)
class Trials:
    """The what-ifs of a studio."""

    private: Path
    _known: dict[str, Trial] = field(default_factory=dict)

    def begin(self, run: str, line: Mapping[str, Any]) -> Trial:
        """Return a what-if that is still to be computed."""
        key = new_key()
        planned = {**(line.get("planned") or {}), "budget": line["budget"]}
        trial = Trial(run, self.private / f"what-if-{key}", {"planned": planned, "levels": line.get("levels")}, key)
        self._known[key] = trial
        for old in list(self._known)[:-KEPT]:
            self.drop(old)
        return trial

    def settle(self, job: Job) -> None:
        """Complete the result of a job."""
        trial = self._known[job.id]
        job.result = trial.result = {"id": job.id, **job.result, "before": trial.before}

    def drop(self, key: str) -> None:
        """Forget a what-if."""
        trial = self._known.pop(key, None)
        if trial is not None:
            shutil.rmtree(trial.folder, ignore_errors=True)

    def find(self, run: str, key: str) -> Trial:
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
        Problem(f"{word!r} is not a part of a what-if", suggest(word, ASKED)) for word in given if word not in ASKED
    ]
    if not isinstance(plan, dict):
        problems.append(Problem(f"plan is {repr_short(plan)}", "give an object"))
    refuse("what-if", problems)
    more = {word: given[word] for word in ASKED if word != "plan" and given.get(word) is not None}
    return {**plan, **more}
