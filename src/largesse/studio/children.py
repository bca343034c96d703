"""A child process that works for the studio: one task after the other, in lines of JSON."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from largesse.errors import InputError, LargesseError, Problem

LINE = 1 << 27  # bytes of an answer
PATIENCE = 8.0  # seconds that a child has to put things away before it is killed


class TaskError(LargesseError):
    """A task that was refused; the problems are those that the child found."""


class Child:
    """A process that is started when it is needed, and can be stopped at any time."""

    def __init__(self, packages: Sequence[str] = ()) -> None:
        self._packages = packages  # that it imports while it waits for its first task
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def ask(self, task: Mapping[str, Any], hear: Callable[[dict[str, Any]], None] | None = None) -> Any:
        """Return the result of a task; `hear` gets what the child says until then."""
        async with self._turn:
            process = await self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(ConnectionError):
                process.stdin.write(json.dumps(task).encode() + b"\n")
                await process.stdin.drain()
            while line := await process.stdout.readline():
                said = json.loads(line)
                if said.get("last") and self._process is process:
                    self._process = None  # it ends now
                if "result" in said:
                    return said["result"]
                if "error" in said:
                    raise _failure(said["error"])
                if hear is not None:
                    hear(said)
            raise _explain_end(await process.wait())

    async def warm(self) -> None:
        """Start the process ahead of its first task."""
        async with self._turn:
            await self._start()

    async def stop(self) -> None:
        """Stop the process: it may put things away first, but not for long."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), PATIENCE)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _start(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            # -P: the folder in which the studio was started is not searched for modules.
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "largesse.studio.worker", *self._packages),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=LINE,
                start_new_session=True,  # an interrupt from the terminal is for the studio, which stops its children
            )
        return self._process


def _failure(said: Mapping[str, Any]) -> LargesseError:
    return TaskError(said["subject"], [Problem(one["what"], one["hint"]) for one in said["problems"]])


def _explain_end(code: int) -> LargesseError:
    """Return why a child ended without an answer."""
    if code == -signal.SIGKILL:
        return InputError(
            "work", [Problem("the system stopped the work", "there may be too little memory for this table")]
        )
    return InputError(
        "work", [Problem(f"the work ended early, with code {code}", "the terminal may show why; try again")]
    )
