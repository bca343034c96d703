"""Separate processes for fits of other packages, with limits of processor time and memory."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from largesse.errors import LargesseError

MAX_SECONDS = 600  # of one core
MAX_GIGABYTES = 12
MAX_WALL_FACTOR = 5  # a process that waits for other processes for longer is stopped, too
PRELOADED = ["largesse_lab.runner.competitor_models"]


def run_in_limited_process(
    work: Callable[..., dict[str, Any]], *arguments: Any, seconds: int = MAX_SECONDS, gigabytes: float = MAX_GIGABYTES
) -> dict[str, Any]:
    """Return the record made by `work(*arguments)` in a separate process, with the peak memory in megabytes.

    The record is plain JSON. If the work fails, or exceeds a limit, the record has the reason as "failed".
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_record, args=(sender, work, arguments, seconds, gigabytes))
    process.start()
    sender.close()
    text = None
    with suppress(EOFError):
        if receiver.poll(seconds * MAX_WALL_FACTOR):
            text = receiver.recv_bytes()
        else:
            process.kill()
    process.join()
    receiver.close()
    if text is not None:
        record: dict[str, Any] = json.loads(text)
        return record
    if process.exitcode == -signal.SIGXCPU:
        return {"failed": f"more than {seconds:,} s of one core"}
    return {"failed": f"the process ended with exit code {process.exitcode}"}


def _send_record(
    sender: Connection, work: Callable[..., dict[str, Any]], arguments: tuple[Any, ...], seconds: int, gigabytes: float
) -> None:
    used = int(time.process_time())  # the first process of all has loaded the packages
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + used, seconds + used + 5))
    most = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    os.environ["LOKY_MAX_CPU_COUNT"] = "1"  # further processes of joblib would escape the limits
    try:
        record = work(*arguments)
    except MemoryError:
        record = {"failed": f"more than {gigabytes:g} GB of memory"}
    except Exception as error:
        record = {"failed": describe_error(error)}
    record["megabytes"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    sender.send_bytes(json.dumps(record, ensure_ascii=False).encode())
    sender.close()


def describe_error(error: Exception) -> str:
    """Return an error as one line, short enough for a table.

    >>> describe_error(ValueError("two levels only"))
    'ValueError: two levels only'
    """
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, LargesseError):
        text = "; ".join(f"{problem.what} ({problem.hint})" for problem in error.problems)
    return " ".join(text.split())[:160].replace("|", "/")
