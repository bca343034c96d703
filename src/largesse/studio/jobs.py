"""Jobs: what takes a while. One at a time, each in a child process, watched and cancelled from the page."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from largesse.errors import LargesseError
from largesse.serve import RequestError, describe_error
from largesse.studio.children import Child

HEAVY = ("pyarrow.parquet", "pyarrow.compute", "scipy.optimize", "sklearn.linear_model", "numba")
NAMES = {"doctor": "checkup", "keep": "run"}  # what people call a job
KEPT = 50  # jobs that are remembered
LAST = ("done", "failed", "cancelled")
MOST_NOTES = 50

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Job:
    """One piece of work and how far it is."""

    kind: str
    clean: Callable[[], None]  # removes what an unfinished job left
    id: str
    state: str = "waiting"
    stage: str | None = None
    rows: int | None = None
    done: float = 0.0
    left: float | None = None
    notes: list[str] = field(default_factory=list)
    error: dict[str, Any] | None = None
    result: Any = None
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    stopping: bool = False

    def describe(self) -> dict[str, Any]:
        """Return the job as the page is told of it."""
        words = ("id", "kind", "state", "stage", "rows", "done", "left", "notes", "error", "result")
        seconds = (self.ended or time.monotonic()) - self.began
        return {**{word: getattr(self, word) for word in words}, "seconds": round(seconds, 1)}

    def hear(self, said: Mapping[str, Any]) -> None:
        """Take in what the child says."""
        if "note" in said and len(self.notes) < MOST_NOTES:
            self.notes.append(said["note"])
        if "moment" in said:
            moment = said["moment"]
            self.stage, self.rows, self.done, self.left = (moment[w] for w in ("stage", "rows", "done", "left"))

    def end(self, state: str) -> None:
        """Let the job be over."""
        self.state, self.left, self.ended = state, None, time.monotonic()
        if state == "done":
            self.done = 1.0


def new_key() -> str:
    """Return a name that nobody can guess."""
    return secrets.token_hex(8)


class Jobs:
    """The jobs of a studio."""

    def __init__(self, finished: Callable[[Job], None]) -> None:
        self._known: dict[str, Job] = {}
        self._child = Child(HEAVY)
        self._task: asyncio.Task[None] | None = None
        self._finished = finished
        self.current: Job | None = None

    def find(self, key: str) -> Job:
        """Return a job."""
        if key not in self._known:
            raise RequestError(404, "there is no such job", "reload the page")
        return self._known[key]

    def check_free(self) -> None:
        """Refuse a second job while one is under way."""
        if self.current is not None:
            raise RequestError(
                409, f"a {NAMES.get(self.current.kind, self.current.kind)} is under way", "wait for it, or cancel it"
            )

    def start(self, kind: str, task: Mapping[str, Any], clean: Callable[[], None] = lambda: None, key: str = "") -> Job:
        """Start a job, under a key that `new_key` gave, if any."""
        self.check_free()
        job = self.current = Job(kind, clean, key or new_key())
        self._known[job.id] = job
        for old in list(self._known)[:-KEPT]:
            del self._known[old]
        self._task = asyncio.create_task(self._work(job, task))
        return job

    async def _work(self, job: Job, task: Mapping[str, Any]) -> None:
        job.state = "running"
        try:
            job.result = await self._child.ask(task, job.hear)
            state = "done"
        except LargesseError as error:
            state, job.error = "failed", describe_error(error)
        except Exception as error:
            logger.error("a job failed", exc_info=error)
            state, job.error = "failed", describe_error(error)
        if job.stopping and state != "done":
            state, job.error = "cancelled", None
        if state == "cancelled":
            await self._child.stop()
        if state != "done":
            await asyncio.to_thread(self._tidy, job)
        if state == "done":
            self._finished(job)
        job.end(state)
        self.current = None

    @staticmethod
    def _tidy(job: Job) -> None:
        try:
            job.clean()
        except (LargesseError, OSError) as error:
            logger.error("a job failed", exc_info=error)

    async def cancel(self, key: str) -> Job:
        """Stop a job; one that has ended stays as it is."""
        job = self.find(key)
        if job is self.current and not job.stopping:
            job.stopping = True
            await self._child.stop()
        return job

    async def watch(self, key: str, over: asyncio.Event) -> AsyncIterator[dict[str, Any]]:
        """Give the job whenever it has changed, until it has ended or the studio stops."""
        job, last = self.find(key), None
        while not over.is_set():
            now = job.describe()
            if {**now, "seconds": 0} != last or job.state in LAST:
                yield now
            last = {**now, "seconds": 0}
            if job.state in LAST:
                return
            await asyncio.sleep(0.2)

    async def wait(self, job: Job) -> Job:
        """Return a job when it has ended."""
        while job.state not in LAST:
            await asyncio.sleep(0.05)
        return job

    async def warm(self) -> None:
        """Start the child ahead of the next job."""
        if self.current is None:
            await self._child.warm()

    async def stop(self) -> None:
        """Stop whatever is under way, and wait until it is put away."""
        if self.current is not None:
            await self.cancel(self.current.id)
        if self._task is not None:
            await asyncio.wait([self._task], timeout=20)
        await self._child.stop()
