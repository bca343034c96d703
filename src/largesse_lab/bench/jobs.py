"""Several processes share the repeats of an experiment: each runs a part, and what they leave is put together afterwards.

One process keeps a GPU waiting while it plans, predicts and measures; a few together keep it busy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from largesse.errors import OutputError, Problem

LOOK = 0.5  # seconds between two looks at how far they are


def command_of(words: Sequence[str]) -> list[str]:
    """Return the command that runs this very program.

    >>> command_of(["experiment", "rates"])[-2:]
    ['experiment', 'rates']
    """
    return [sys.executable, "-m", "largesse.cli", *words]


def run_all(commands: Sequence[Sequence[str]], files: Sequence[Path], tell: Callable[[str, float], None]) -> None:
    """Run commands side by side until all have ended, and tell how many lines their files have. What failed is told."""
    # Processes that share a GPU may not each take all of its memory at once.
    surroundings = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    with ExitStack() as open_files:
        told = [open_files.enter_context(tempfile.TemporaryFile("w+")) for _ in commands]
        running = [
            subprocess.Popen(command, env=surroundings, stdout=subprocess.DEVNULL, stderr=words)  # noqa: S603 — this very program
            for command, words in zip(commands, told, strict=True)
        ]
        _give_cores(running)
        try:
            while any(process.poll() is None for process in running):
                tell(f"{len(running)} processes, {sum(_lines(file) for file in files):,} results", 0.0)
                time.sleep(LOOK)
        finally:
            for process in running:
                process.kill()  # of one that has ended, nothing is left to kill
        problems = [
            Problem(f"part {i} failed: {_end(words)}", "run it alone, with --part, to see more")
            for i, (process, words) in enumerate(zip(running, told, strict=True))
            if process.returncode
        ]
    if problems:
        raise OutputError("experiment", problems)


def _give_cores(running: Sequence[subprocess.Popen[bytes]]) -> None:
    """Give processes cores of their own, as far as there are any: each would start threads for all of them."""
    if not hasattr(os, "sched_setaffinity"):
        return
    for process, cores in zip(running, shared(sorted(os.sched_getaffinity(0)), len(running)), strict=True):
        with suppress(ProcessLookupError):  # it has failed already, and will be told of
            os.sched_setaffinity(process.pid, cores)


def shared(cores: Sequence[int], processes: int) -> list[list[int]]:
    """Return the cores of each of several processes.

    >>> shared([0, 1, 2, 3, 4], 2), shared([0, 1], 3)
    ([[0, 2, 4], [1, 3]], [[0], [1], [0]])
    """
    return [list(cores[i % len(cores) :: processes]) for i in range(processes)]


def _end(words: IO[str]) -> str:
    words.seek(0)
    return words.read().strip()[-500:]


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0
