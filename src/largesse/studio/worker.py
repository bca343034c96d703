"""The child process: reads tasks as lines of JSON, does one after the other, and says how far it is.

It stops when it is told to (SIGTERM) and when the studio is gone, which the end of its input says. Either way the work is left
by an exception, so that half-written folders are cleaned up.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from typing import IO, Any

from largesse.errors import InputError, LargesseError, Problem
from largesse.progress import Tracker, report_to
from largesse.serve import to_json
from largesse.studio.tasks import TASKS

TICK = 0.2  # seconds between two reports of progress
MUCH = 1 << 30  # bytes
LEARNING = ("doctor", "run", "what-if", "keep")
GRACE = 10.0  # seconds to leave the work when the studio is gone


def main() -> None:
    """Work until there is nothing left to do."""
    # What others print goes to the standard error: the standard output belongs to the answers.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tasks: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()
    voice = Voice(out)
    _get_ready(tasks, sys.argv[1:])
    while (line := tasks.get()) is not None:
        task = json.loads(line)
        last = task["task"] in LEARNING  # what a look has read is needed again
        answer = _do(task, voice)
        last = last and _took_much()
        voice.say({**answer, "last": last})
        if last:
            return


def _took_much() -> bool:
    """Whether the process has taken so much memory that the next task had better get a new one."""
    try:
        import resource
    except ImportError:  # a system that does not say
        return True
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit > MUCH


def _get_ready(tasks: queue.SimpleQueue[str | None], packages: list[str]) -> None:
    """Import what the work will need, as long as there is none yet."""
    for package in packages:
        if tasks.empty():
            with suppress(ImportError):
                importlib.import_module(package)


class Voice:
    """Writes lines of JSON; several threads may speak."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out, self._lock = out, threading.Lock()

    def say(self, words: dict[str, Any]) -> None:
        """Write a line; if nobody listens any more, nothing is lost."""
        line = memoryview(to_json(words) + b"\n")
        with self._lock, suppress(OSError):
            while line:
                line = line[self._out.write(line) or 0 :]

    def report(self, tracker: Tracker) -> None:
        """Send the news of a tracker: every new stage, and its progress at most every so often."""
        next_time = 0.0

        def send(stage: str, done: float) -> None:
            nonlocal next_time
            if done == 0.0 or time.monotonic() >= next_time:
                next_time = time.monotonic() + TICK
                self.say({"moment": {"stage": stage, "rows": tracker.rows, "done": done, "left": tracker.seconds_left}})

        tracker.listener = send


def _do(task: dict[str, Any], voice: Voice) -> dict[str, Any]:
    """Do a task; return its result, or what is wrong."""
    try:
        tracker = Tracker()
        voice.report(tracker)
        with report_to(tracker):
            return {"result": TASKS[task.pop("task")](**task)}
    except LargesseError as error:
        return {"error": _describe(error)}
    except MemoryError:
        problem = Problem("there is not enough memory for this", "use a smaller table, or fewer columns")
        return {"error": _describe(InputError("work", [problem]))}
    except OSError as error:
        problem = Problem(f"{error.filename or 'a file'}: {error.strerror or error}", "look at the disk and its rights")
        return {"error": _describe(InputError("work", [problem]))}
    except Exception:
        traceback.print_exc()
        problem = Problem("something went wrong here", "this is a mistake of ours: the terminal shows the details")
        return {"error": _describe(InputError("work", [problem]))}


def _describe(error: LargesseError) -> dict[str, Any]:
    return {"subject": error.subject, "problems": [{"what": one.what, "hint": one.hint} for one in error.problems]}


def _listen(tasks: queue.SimpleQueue[str | None]) -> None:
    """Hand over every line; at the end of the input, leave whatever is being done."""
    for line in sys.stdin:
        tasks.put(line)
    tasks.put(None)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


def _leave(*_: object) -> None:
    sys.unraisablehook = lambda _: None
    sys.exit(143)


if __name__ == "__main__":
    main()
