"""Parallel processes that each measure a part of an experiment's repeats.

A single process leaves a GPU idle while it plans, predicts and judges; a few together keep it busy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO

from largesse.errors import OutputError, Problem
from largesse.io import atomic_file
from largesse.records import Progress
from largesse_lab.runner.experiment_request import Request

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
POLL_SECONDS = 0.5


def run_experiment_parts(
    name: str, parts: Sequence[Request], folder: Path, progress: Progress, one_thread: bool = False
) -> None:
    """Run one process per part of an experiment, and gather all records in one file.

    With `one_thread`, numerical libraries use one thread in each process. Each file starts with all records of
    the whole, so that no process repeats a measurement.
    """
    gather_part_records(folder, name)
    whole = folder / f"{name}.jsonl"
    known = whole.read_text(encoding="utf-8") if whole.exists() else ""
    files = [make_part_path(folder, name, (i, len(parts))) for i in range(len(parts))]
    for file in files:
        write_text(file, known)
    commands = [
        make_largesse_command(["experiment", name, *part.list_command_options(file)])
        for part, file in zip(parts, files, strict=True)
    ]
    run_commands(commands, files, progress, *([ONE_THREAD] if one_thread else []))
    gather_part_records(folder, name)


def make_part_path(folder: Path, name: str, part: tuple[int, int]) -> Path:
    """Return the path of the records of one part of an experiment."""
    return folder / f"{name}.{part[0]}-of-{part[1]}.jsonl"


def gather_part_records(folder: Path, name: str) -> None:
    """Append the records of all part files to the experiment's file, without duplicates."""
    parts = sorted(folder.glob(f"{name}.*-of-*.jsonl"))
    if not parts:
        return
    whole = folder / f"{name}.jsonl"
    known = whole.read_text(encoding="utf-8").splitlines() if whole.exists() else []
    lines = [line for part in parts for line in part.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()]
    write_text(whole, "".join(line + "\n" for line in dict.fromkeys([*known, *lines])))


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def make_largesse_command(words: Sequence[str]) -> list[str]:
    """Return the command that runs `largesse` with the given words.

    >>> make_largesse_command(["experiment", "rates"])[-2:]
    ['experiment', 'rates']
    """
    return [sys.executable, "-m", "largesse", *words]


def run_commands(
    commands: Sequence[Sequence[str]],
    files: Sequence[Path],
    progress: Progress,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Run commands in parallel until all have ended, and report the number of records as progress.

    If any of them fails, raise an error with the end of each failed command's output.
    """
    # Processes that share a GPU must not each reserve all of its memory.
    variables = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", **environment}
    with ExitStack() as open_files:
        errors = [open_files.enter_context(tempfile.TemporaryFile("w+")) for _ in commands]
        running = [
            subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=stream)  # noqa: S603 — this very program
            for command, stream in zip(commands, errors, strict=True)
        ]
        _assign_cores(running)
        try:
            while any(process.poll() is None for process in running):
                progress(f"{len(running)} processes, {sum(_count_lines(file) for file in files):,} results", 0.0)
                time.sleep(POLL_SECONDS)
        finally:
            for process in running:
                process.kill()  # does nothing to a process that has ended
        problems = [
            Problem(
                f"part {i} failed: {_read_last_characters(stream)}", "run it alone with --part for the whole output"
            )
            for i, (process, stream) in enumerate(zip(running, errors, strict=True))
            if process.returncode
        ]
    if problems:
        raise OutputError("experiment", problems)


def _assign_cores(running: Sequence[subprocess.Popen[bytes]]) -> None:
    """Restrict each running process to its own CPU cores."""
    if not hasattr(os, "sched_setaffinity"):
        return
    for process, cores in zip(running, divide_cores(sorted(os.sched_getaffinity(0)), len(running)), strict=True):
        with suppress(ProcessLookupError):  # it has already failed, which is reported later
            os.sched_setaffinity(process.pid, cores)


def divide_cores(cores: Sequence[int], processes: int) -> list[list[int]]:
    """Return a list of CPU cores per process, shared only if there are more processes than cores.

    >>> divide_cores([0, 1, 2, 3, 4], 2), divide_cores([0, 1], 3)
    ([[0, 2, 4], [1, 3]], [[0], [1], [0]])
    """
    return [list(cores[i % len(cores) :: processes]) for i in range(processes)]


def _read_last_characters(stream: IO[str]) -> str:
    stream.seek(0)
    return stream.read().strip()[-500:]


def _count_lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0
