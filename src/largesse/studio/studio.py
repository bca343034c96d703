"""What a studio does when its page asks: tables, drafts, jobs, runs."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from largesse import pipeline
from largesse.errors import InputError, LargesseError, Problem
from largesse.response import list_models
from largesse.serve import RequestError
from largesse.studio import past
from largesse.studio.children import Child
from largesse.studio.jobs import Job, Jobs
from largesse.studio.places import Place
from largesse.studio.trials import Trials, read_rules
from largesse.studio.uploads import Table, Tables
from largesse.version import __version__

EXAMPLE = "thornton"
SAID = ("suggested_on_redemption", "suggested_unit", "suggested_title")  # by the example alone
LEVEL_WORDS = ("levels", "order_known", "suggested_costs", "suggested_budget")


@dataclass(frozen=True)
class Setting:
    """How a studio is opened."""

    place: Place
    open_run: str | None = None
    upload_bytes: int | None = None


class Studio:
    """The state of one studio: its tables, its jobs and the child that looks at tables."""

    def __init__(self, setting: Setting) -> None:
        self.place, self.setting = setting.place, setting
        limit = {} if setting.upload_bytes is None else {"most": setting.upload_bytes}
        self.tables = Tables(setting.place.private, **limit)
        self.jobs = Jobs(self._finish)
        self.looker = Child(("pyarrow.parquet", "pyarrow.csv", "pyarrow.compute"))
        self.trials = Trials(setting.place.private)
        self.over = asyncio.Event()
        self._columns: dict[tuple[Path, int], dict[str, Any]] = {}
        self._warming: set[asyncio.Task[None]] = set()

    # -- state -----------------------------------------------------------------------------------------------------------

    async def state(self) -> dict[str, Any]:
        """Return what a page needs first."""
        self._get_ready(self.looker)  # the page is there: a table may come next
        place, job = self.place, self.jobs.current
        listed, files = await asyncio.gather(self.runs(), asyncio.to_thread(place.list_tables))
        return {
            "version": __version__,
            "folder": str(place.folder),
            "open": self.setting.open_run,
            "runs": listed,
            "files": [{"name": path.name, "bytes": path.stat().st_size} for path in files if path.is_file()],
            "examples": [EXAMPLE] if _has_example() else [],
            "job": None if job is None else job.describe(),
            "limits": {"upload_bytes": self.tables.limit()},
            "models": [{"name": name, "sentence": entry.about} for name, entry in list_models().items()],
        }

    def _get_ready(self, child: Child | Jobs) -> None:
        """Start a child ahead of its first task, if nothing of the kind is under way."""
        if not self._warming and not self.over.is_set():
            task = asyncio.create_task(child.warm())
            self._warming.add(task)
            task.add_done_callback(self._warming.discard)

    async def stop(self) -> None:
        """Stop the children, and wait until what they did is put away."""
        self.over.set()
        await asyncio.gather(*self._warming)
        await asyncio.gather(self.jobs.stop(), self.looker.stop())

    # -- tables ----------------------------------------------------------------------------------------------------------

    async def receive(self, name: str, length: str | None, body: AsyncIterator[bytes]) -> dict[str, Any]:
        """Take in a table that is sent, and look at it."""
        return await self._look_first(await self.tables.receive(name, length, body), "look")

    async def pick(self, given: dict[str, Any]) -> dict[str, Any]:
        """Look at a table of the folder, or at the example."""
        if given.get("example") == EXAMPLE:
            return await self._look_first(self.tables.prepare("Thornton 2008", ".parquet"), "example")
        name = given.get("file")
        if not isinstance(name, str):
            raise RequestError(400, "no file is named", 'give {"file": "name"} or {"example": "thornton"}')
        path = await asyncio.to_thread(self.place.find_table, name)
        return await self._look_first(Table(path.name, path, own=False), "look")

    async def _look_first(self, table: Table, task: str) -> dict[str, Any]:
        self.tables.add(table)
        try:
            table.shown = await self.looker.ask({"task": task, "path": str(table.path)})
        except BaseException:
            self.tables.drop(table.id)
            raise
        return table.describe()

    async def look(self, key: str, given: dict[str, Any]) -> dict[str, Any]:
        """Look at a table again, with the roles that the page gives."""
        table, roles = self.tables.find(key), given.get("roles")
        if not isinstance(roles, dict):
            raise RequestError(400, "no roles are given", 'send {"roles": {…}}')
        shown = await self.looker.ask({"task": "look", "path": str(table.path), "roles": roles})
        table.shown = {**shown, **_carry(table.shown, shown)}
        return table.describe()

    # -- drafts and jobs -------------------------------------------------------------------------------------------------

    async def check(self, draft: dict[str, Any], *, checkup: bool = False) -> dict[str, Any]:
        """Return the campaign file of a draft, or what is wrong with it."""
        table = self.tables.find(draft.get("table"))
        task = {"task": "campaign", "path": str(table.path), "draft": draft, "own": table.own, "checkup": checkup}
        found: dict[str, Any] = await self.looker.ask(task)
        self._get_ready(self.jobs)
        return found

    async def _settle(self, draft: object, *, checkup: bool = False) -> tuple[Table, str]:
        if not isinstance(draft, dict):
            raise RequestError(400, "no draft is given", "send one as an object")
        found = await self.check(draft, checkup=checkup)
        if found["problems"]:
            raise InputError("draft", [Problem(one["what"], one["hint"]) for one in found["problems"]])
        return self.tables.find(draft["table"]), found["now"]

    async def examine(self, draft: dict[str, Any]) -> Job:
        """Start the checkup of a log."""
        self.jobs.check_free()
        _, toml = await self._settle(draft, checkup=True)
        return self.jobs.start("doctor", {"task": "doctor", "toml": toml})

    async def run(self, given: dict[str, Any]) -> Job:
        """Start a run."""
        self.jobs.check_free()
        out = await asyncio.to_thread(self.place.new_run, given.get("name"))
        table, toml = await self._settle(given.get("draft"))
        self.tables.home(table).mkdir(mode=0o700, exist_ok=True)
        task = {"task": "run", "toml": toml, "out": str(out), "private": str(self.tables.home(table)), "own": table.own}
        job = self.jobs.start("run", task)
        self.tables.busy = table.id
        return job

    def _finish(self, job: Job) -> None:
        """Take notice of a job that has ended well."""
        if job.kind == "what-if":
            self.trials.settle(job)

    # -- what-ifs --------------------------------------------------------------------------------------------------------

    async def what_if(self, name: str, given: dict[str, Any]) -> Job:
        """Start planning by other rules."""
        self.jobs.check_free()
        path = await asyncio.to_thread(self.place.find_run, name)
        rules, before = read_rules(given), await asyncio.to_thread(past.describe_run, path)
        if not before["kept"]:
            hint = "bring the table back, or run the campaign again"
            raise RequestError(409, f"the table that {name!r} was made from is gone", hint)
        trial = self.trials.begin(name, before)
        task = {"task": "what-if", "folder": str(path), "out": str(trial.folder), "rules": rules}
        try:
            return self.jobs.start("what-if", task, partial(self.trials.drop, trial.id), trial.id)
        except BaseException:
            self.trials.drop(trial.id)
            raise

    async def keep(self, name: str, key: str, given: dict[str, Any]) -> dict[str, Any]:
        """Make a run folder of a what-if; return the line about it."""
        self.jobs.check_free()
        path, trial = await asyncio.to_thread(self.place.find_run, name), self.trials.find(name, key)
        out = await asyncio.to_thread(self.place.new_run, given.get("name"))
        task = {"task": "keep", "folder": str(path), "tried": str(trial.folder), "out": str(out)}
        job = await self.jobs.wait(self.jobs.start("keep", task))
        if job.state == "cancelled":
            raise RequestError(409, "the run was not kept: it was cancelled", "keep it again")
        if job.error is not None:
            raise InputError("run", [Problem(one["what"], one["hint"]) for one in job.error["problems"]])
        return await asyncio.to_thread(past.describe_run, out)

    # -- runs ------------------------------------------------------------------------------------------------------------

    async def runs(self) -> list[dict[str, Any]]:
        """Return all runs, the newest first."""
        return await asyncio.to_thread(lambda: past.list_runs(self.place.list_runs()))

    async def describe(self, name: str) -> dict[str, Any]:
        """Return one run with its campaign file."""
        path = await asyncio.to_thread(self.place.find_run, name)
        line = await asyncio.to_thread(past.describe_run, path)
        more = await asyncio.to_thread(past.describe_rules, path)
        self._get_ready(self.jobs)
        return {
            **line,
            **more,
            **await self._find_columns(path, kept=line["kept"]),
            "toml": await asyncio.to_thread(past.read_text, path),
            "what_ifs": self.trials.list_of(name),
        }

    async def _find_columns(self, path: Path, *, kept: bool) -> dict[str, Any]:
        """Return which columns rules can name; none where the table is gone, or too large to look at for this."""
        key = (path, past.changed(path / pipeline.CAMPAIGN))
        if not kept:
            return {"columns": [], "segments": {}}
        if key not in self._columns:
            try:
                found = await self.looker.ask({"task": "describe", "folder": str(path)})
            except LargesseError:
                found = {"columns": [], "segments": {}}
            self._columns = {**dict(list(self._columns.items())[-50:]), key: found}
        return self._columns[key]


def _carry(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return the suggestions of an earlier look that still hold: what levels cost, as long as they are the same levels."""
    same = all(before["roles"][role] == now["roles"][role] for role in ("level", "response"))
    words = [*SAID, *(LEVEL_WORDS if same and now["suggested_costs"] is None else ())]
    return {word: before[word] for word in words}


def _has_example() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("causaldata", "pandas"))
