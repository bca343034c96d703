"""The worker process: one task after the other, in lines of JSON over standard input and output.

The studio starts it with `WorkerProcess` and can stop it at any time: it leaves its work by an exception, so that half-written
folders are cleaned up. It also stops when its input ends, because the studio is gone then.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from largesse.errors import InputError, LargesseError, Problem
from largesse.progress import Tracker, report_to
from largesse.serve import write_json

MAX_LINE_BYTES = 1 << 27
STOP_SECONDS = 8.0  # to leave the work, before the process is killed
REPORT_SECONDS = 0.2  # between two reports of progress

Listener = Callable[[dict[str, Any]], None]


# -- in the studio -------------------------------------------------------------------------------------------------------


class TaskError(LargesseError):
    """The problems of a task that was refused."""


class WorkerProcess:
    """A process that is started when it is needed, and can be stopped at any time.

    Parameters
    ----------
    packages
        Imported while the process waits for its first task.
    """

    def __init__(self, packages: Sequence[str] = ()) -> None:
        self._packages = packages
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def ask(self, task: Mapping[str, Any], on_event: Listener = lambda _: None) -> Any:
        """Return the result of a task; `on_event` gets its progress."""
        async with self._turn:
            process = await self._start()
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
                    problems = [Problem(one["what"], one["hint"]) for one in event["error"]["problems"]]
                    raise TaskError(event["error"]["subject"], problems)
                on_event(event)
            code = await process.wait()
        if code == -signal.SIGKILL:
            problem = Problem("the system stopped the work", "there may be too little memory for this table")
        else:
            problem = Problem(f"the work ended early, with code {code}", "the terminal may show why; try again")
        raise InputError("work", [problem])

    async def warm_up(self) -> None:
        """Start the process before its first task."""
        async with self._turn:
            await self._start()

    async def stop(self) -> None:
        """Stop the process: it may clean up first, but not for long."""
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

    async def _start(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            # -P: modules are not searched in the folder in which the studio was started.
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "largesse.studio.worker", *self._packages),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=MAX_LINE_BYTES,
                start_new_session=True,  # Ctrl-C in the terminal is for the studio, which stops its workers
            )
        return self._process


# -- in the process ------------------------------------------------------------------------------------------------------


def main() -> None:
    """Work until the input ends."""
    # Standard output belongs to the answers: what others print goes to standard error.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lock = threading.Lock()

    def send(event: dict[str, Any]) -> None:
        line = memoryview(write_json(event) + b"\n")
        with lock, suppress(OSError):
            while line:
                line = line[out.write(line) or 0 :]

    tasks: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()
    for package in sys.argv[1:]:
        if tasks.empty():
            with suppress(ImportError):
                importlib.import_module(package)
    while (line := tasks.get()) is not None:
        send(_run(json.loads(line), send))


def _run(task: dict[str, Any], send: Listener) -> dict[str, Any]:
    """Do a task; return its result, or its problems."""
    from largesse.studio.tasks import TASKS

    tracker, next_time = Tracker(), 0.0

    def report(stage: str, done: float) -> None:
        """Send every new stage, and its progress now and then."""
        nonlocal next_time
        if done == 0.0 or time.monotonic() >= next_time:
            next_time = time.monotonic() + REPORT_SECONDS
            send({"stage": stage, "rows": tracker.rows, "done": done, "left": tracker.seconds_left})

    tracker.listener = report
    try:
        with report_to(tracker):
            return {"result": TASKS[task.pop("task")](**task)}
    except LargesseError as error:
        subject, problems = error.subject, list(error.problems)
    except MemoryError:
        subject, problems = (
            "work",
            [Problem("there is not enough memory for this", "use a smaller table, or fewer columns")],
        )
    except OSError as error:
        got = f"{error.filename or 'a file'}: {error.strerror or error}"
        subject, problems = "work", [Problem(got, "look at the disk and its rights")]
    except Exception:
        traceback.print_exc()
        hint = "this is a mistake of ours: the terminal shows the details"
        subject, problems = "work", [Problem("something went wrong here", hint)]
    return {"error": {"subject": subject, "problems": [{"what": one.what, "hint": one.hint} for one in problems]}}


def _listen(tasks: queue.SimpleQueue[str | None]) -> None:
    """Queue every line; at the end of the input, leave the current task."""
    for line in sys.stdin:
        tasks.put(line)
    tasks.put(None)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_SECONDS)
    os._exit(1)


def _leave(*_: object) -> None:
    sys.unraisablehook = lambda _: None
    sys.exit(143)


if __name__ == "__main__":
    main()
