"""Jobs: one long task at a time, in a worker process, watched and cancelled from the page."""

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
from largesse.studio.worker import WorkerProcess

PACKAGES = ("pyarrow.parquet", "pyarrow.compute", "scipy.optimize", "sklearn.linear_model", "numba")
NAMES = {"doctor": "checkup", "keep": "run"}  # for people
MAX_JOBS = 50  # that are remembered
ENDED = ("done", "failed", "cancelled")

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Job:
    """A long task and its progress."""

    kind: str
    clean: Callable[[], None]  # removes the leftovers of an unfinished job
    id: str
    state: str = "waiting"
    stage: str | None = None
    rows: int | None = None
    done: float = 0.0
    left: float | None = None
    error: dict[str, Any] | None = None
    result: Any = None
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    stopping: bool = False

    def describe(self) -> dict[str, Any]:
        """Return the job as JSON types."""
        words = ("id", "kind", "state", "stage", "rows", "done", "left", "error", "result")
        seconds = (self.ended or time.monotonic()) - self.began
        return {**{word: getattr(self, word) for word in words}, "seconds": round(seconds, 1)}

    def update(self, event: Mapping[str, Any]) -> None:
        """Record the progress of the worker."""
        self.stage, self.rows, self.done, self.left = (event[word] for word in ("stage", "rows", "done", "left"))


class Jobs:
    """The jobs of a studio; `on_done` is called with each that succeeds."""

    def __init__(self, on_done: Callable[[Job], None]) -> None:
        self.worker = WorkerProcess(PACKAGES)
        self.current: Job | None = None
        self._jobs: dict[str, Job] = {}
        self._task: asyncio.Task[None] | None = None
        self._on_done = on_done

    def find(self, key: str) -> Job:
        """Return a job."""
        if key not in self._jobs:
            raise RequestError(404, "there is no such job", "reload the page")
        return self._jobs[key]

    def check_free(self) -> None:
        """Refuse a second job while one is under way."""
        if self.current is not None:
            name = NAMES.get(self.current.kind, self.current.kind)
            raise RequestError(409, f"a {name} is under way", "wait for it, or cancel it")

    def start(self, kind: str, task: Mapping[str, Any], clean: Callable[[], None] = lambda: None, key: str = "") -> Job:
        """Start a job, under an id if one is given."""
        self.check_free()
        job = self.current = Job(kind, clean, key or secrets.token_hex(8))
        self._jobs[job.id] = job
        for old in list(self._jobs)[:-MAX_JOBS]:
            del self._jobs[old]
        self._task = asyncio.create_task(self._work(job, task))
        return job

    async def _work(self, job: Job, task: Mapping[str, Any]) -> None:
        job.state = "running"
        try:
            job.result = await self.worker.ask(task, job.update)
            state = "done"
        except Exception as error:
            if not isinstance(error, LargesseError):
                logger.error("a job failed", exc_info=error)
            state, job.error = "failed", describe_error(error)
        if job.stopping and state != "done":
            state, job.error = "cancelled", None
        if state == "cancelled" or job.kind in ("doctor", "run"):
            await self.worker.stop()  # its memory goes back to the system; the next process starts when a job is near
        if state == "done":
            self._on_done(job)
            job.done = 1.0
        else:
            try:
                await asyncio.to_thread(job.clean)
            except (LargesseError, OSError) as error:
                logger.error("the leftovers of a job stay", exc_info=error)
        job.state, job.left, job.ended = state, None, time.monotonic()
        self.current = None

    async def cancel(self, key: str) -> Job:
        """Stop a job; one that has ended stays as it is."""
        job = self.find(key)
        if job is self.current and not job.stopping:
            job.stopping = True
            await self.worker.stop()
        return job

    async def watch(self, key: str, closing: asyncio.Event) -> AsyncIterator[dict[str, Any]]:
        """Yield a job whenever it has changed, until it has ended or the studio stops."""
        job, last = self.find(key), None
        while not closing.is_set():
            now = job.describe()
            if {**now, "seconds": 0} != last or job.state in ENDED:
                yield now
            last = {**now, "seconds": 0}
            if job.state in ENDED:
                return
            await asyncio.sleep(0.2)

    async def wait(self, job: Job) -> Job:
        """Return a job when it has ended."""
        while job.state not in ENDED:
            await asyncio.sleep(0.05)
        return job

    async def stop(self) -> None:
        """Stop the current job, and wait until it is cleaned up."""
        if self.current is not None:
            await self.cancel(self.current.id)
        if self._task is not None:
            await asyncio.wait([self._task], timeout=20)
        await self.worker.stop()
