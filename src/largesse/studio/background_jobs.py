"""Background jobs of the studio: one long task at a time in a worker process, with progress and cancellation."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from largesse.errors import InputError, LargesseError, Problem
from largesse.serve import RequestError, describe_error

JOB_PACKAGES = ("pyarrow.parquet", "pyarrow.compute", "scipy.optimize", "sklearn.linear_model", "numba")
JOB_NAMES = {"doctor": "checkup", "keep": "run"}  # for people
MAX_REMEMBERED_JOBS = 50
ENDED = ("done", "failed", "cancelled")
MAX_LINE_BYTES = 1 << 27
STOP_SECONDS = 8.0  # for a process to clean up before it is killed

logger = logging.getLogger(__name__)


# -- the worker process, seen from the studio --------------------------------------------------------------------------


class TaskError(LargesseError):
    """Error of a worker process that refused a task, with the task's problems."""


class WorkerProcess:
    """Worker process of the studio, started on its first task and restarted after a stop.

    Parameters
    ----------
    packages
        Imported while the process waits for its first task.
    show
        Makes texts of problems readable for people.
    """

    def __init__(self, packages: Sequence[str] = (), show: Callable[[str], str] = lambda text: text) -> None:
        self._packages, self._show = packages, show
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def send_task(
        self, task: Mapping[str, Any], on_event: Callable[[dict[str, Any]], None] = lambda _: None
    ) -> Any:
        """Send a task to the worker process, and return its result; `on_event` gets the progress."""
        async with self._turn:
            process = await self._start_process()
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(ConnectionError):
                process.stdin.write(json.dumps(task).encode() + b"\n")
                await process.stdin.drain()
            while line := await process.stdout.readline():
                event = json.loads(line)
                if "result" in event:
                    return event["result"]
                if "error" in event:
                    problems = [
                        Problem(self._show(problem.what), self._show(problem.hint))
                        for problem in decode_problems(event["error"]["problems"])
                    ]
                    raise TaskError(event["error"]["subject"], problems)
                on_event(event)
            code = await process.wait()
        if code == -signal.SIGKILL:
            problem = Problem("the system stopped the work", "there may be too little memory for this table")
        else:
            problem = Problem(f"the work ended early, with code {code}", "the terminal may show why; try again")
        raise InputError("work", [problem])

    async def warm_up(self) -> None:
        """Start the worker process before its first task."""
        async with self._turn:
            await self._start_process()

    async def stop(self) -> None:
        """Stop the worker process; it gets a few seconds to remove unfinished files."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _start_process(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            # -P: modules are not searched in the folder in which the studio was started.
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "largesse.studio.worker_process", *self._packages),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=MAX_LINE_BYTES,
                start_new_session=True,  # Ctrl-C in the terminal is for the studio, which stops its workers
            )
        return self._process


def decode_problems(problems: Sequence[Mapping[str, str]]) -> list[Problem]:
    """Convert problems from their JSON form to `Problem` records."""
    return [Problem(problem["what"], problem["hint"]) for problem in problems]


# -- jobs --------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Job:
    """Background job: a long task with its state, progress and result."""

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
    paths: frozenset[str] = frozenset()  # run folders that are read or written

    def describe(self) -> dict[str, Any]:
        """Return the job's state, progress and result as JSON types."""
        words = ("id", "kind", "state", "stage", "rows", "done", "left", "error", "result")
        seconds = (self.ended or time.monotonic()) - self.began
        return {**{word: getattr(self, word) for word in words}, "seconds": round(seconds, 1)}

    def update(self, event: Mapping[str, Any]) -> None:
        """Record the progress that the worker process reports."""
        self.stage, self.rows, self.done, self.left = (event[word] for word in ("stage", "rows", "done", "left"))


class JobManager:
    """Manager of the studio's background jobs, one at a time; `on_done` is called with each job that succeeds."""

    def __init__(self, on_done: Callable[[Job], None], show: Callable[[str], str]) -> None:
        self.worker = WorkerProcess(JOB_PACKAGES, show)
        self.current: Job | None = None
        self._jobs: dict[str, Job] = {}
        self._task: asyncio.Task[None] | None = None
        self._on_done = on_done

    def find(self, key: str) -> Job:
        """Return a job by its id."""
        if key not in self._jobs:
            raise RequestError(404, "there is no such job", "reload the page")
        return self._jobs[key]

    def check_no_job_is_running(self) -> None:
        """Refuse a new background job while another job runs."""
        if self.current is not None:
            name = JOB_NAMES.get(self.current.kind, self.current.kind)
            raise RequestError(409, f"a {name} is under way", "wait for it, or cancel it")

    def check_run_folder_unused(self, path: Path) -> None:
        """Refuse a change of a run folder that the current background job reads or writes."""
        if self.current is not None and str(path) in self.current.paths:
            raise RequestError(409, f"{path.name!r} is in use", "wait until the work on it has ended, or cancel it")

    def start(self, kind: str, task: Mapping[str, Any], clean: Callable[[], None] = lambda: None, key: str = "") -> Job:
        """Start a background job for a task, and return the job; `key` is its id, by default a random id."""
        self.check_no_job_is_running()
        paths = frozenset(task[word] for word in ("folder", "out") if word in task)
        job = self.current = Job(kind, clean, key or secrets.token_hex(8), paths=paths)
        self._jobs[job.id] = job
        for old in list(self._jobs)[:-MAX_REMEMBERED_JOBS]:
            del self._jobs[old]
        self._task = asyncio.create_task(self._run_job(job, task))
        return job

    async def _run_job(self, job: Job, task: Mapping[str, Any]) -> None:
        job.state = "running"
        try:
            job.result = await self.worker.send_task(task, job.update)
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
        """Cancel a job that has not ended, and return it."""
        job = self.find(key)
        if job is self.current and not job.stopping:
            job.stopping = True
            await self.worker.stop()
        return job

    async def watch(self, key: str, closing: asyncio.Event) -> AsyncIterator[dict[str, Any]]:
        """Yield a job's state after every change, until the job ends or the studio stops."""
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
        """Wait until a job has ended, and return it."""
        while job.state not in ENDED:
            await asyncio.sleep(0.05)
        return job

    async def stop(self) -> None:
        """Cancel the current job, and wait until its unfinished files are removed."""
        if self.current is not None:
            await self.cancel(self.current.id)
        if self._task is not None:
            await asyncio.wait([self._task], timeout=20)
        await self.worker.stop()
