"""Faults at every step that a command takes on the disk: kills, signals and errors of the system.

Every call that changes the disk is counted, and the fault strikes just before the i-th of them; a fault "mid-write" strikes
inside the i-th write to a file, when half of its bytes are on the disk. Whatever the command writes must then be wholly old or
wholly new, an exit code of 2 must mean that nothing changed, and the same command, called again, must succeed and leave no
temporary name. Each command runs in a fork of a process without threads: this module is run as a program that answers lines of
JSON, `[command, fault]` by the number of steps and `[command, fault, at]` by the problem that was found, or "".
"""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from support.commands import run_command as call
from support.shops import write_shop

COLUMNS = "--level coupon --response bought --customer id --costs 0,5,10 --model linear"
COMMANDS = {
    "init": "init log.parquet --out first.toml --force",
    "doctor": "doctor campaign.toml --out checkup.html",
    "fit": f"fit log.parquet {COLUMNS} --out R",
    "run": "run campaign.toml --budget 1 --out R",
    "run into a new folder": "run campaign.toml --out new/deep/R",
    "plan": "plan R --budget 1",
    "plan --out": "plan R --budget 1 --out x.csv",
    "plan --out new": "plan R --budget 1 --out new/y.parquet",
    "evaluate": "evaluate R --estimator snips",
    "report": "report R",
    "report --out": "report R --out page.html",
    "export --out": "export R --to sql --out policy.sql",
    "log --out": "log R --join log.parquet --out next.csv",
}
ERRORS = {"full": errno.ENOSPC, "read-only": errno.EROFS, "forbidden": errno.EACCES, "broken": errno.EIO}
SIGNALS = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM}
KILLS = ("kill", "kill where nothing can be exchanged")
MID_WRITE = " mid-write"
FAULTS = (*KILLS, *ERRORS, *SIGNALS, *(fault + MID_WRITE for fault in ("kill", "full", "interrupt")))
KILLED, SECONDS = 137, 120.0
OLD, NEW, MOVED = "old", "new", "moved"


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, its words and how many steps it took."""

    code: int
    steps: int
    words: str


# -- the command, in a fork ---------------------------------------------------------------------------------------------


class Steps:
    """Counts the calls that change the disk, or the writes to files, and lets the one numbered `at` go wrong."""

    def __init__(self, fault: str, at: int, process: int) -> None:
        self.fault, self.at, self.process = fault.removesuffix(MID_WRITE), at, process
        self.mid_write = fault.endswith(MID_WRITE)
        self.count = 0

    def take(self) -> None:
        if os.getpid() == self.process:
            self.count += 1
            if self.count == self.at:
                self.go_wrong()

    def go_wrong(self) -> None:
        if self.fault in KILLS:
            os._exit(KILLED)
        if self.fault in SIGNALS:
            os.kill(os.getpid(), SIGNALS[self.fault])
            return
        number = ERRORS[self.fault]
        raise OSError(number, os.strerror(number))

    def watch(self, owner: Any, name: str, counts: Callable[..., bool] = lambda *_, **__: True) -> None:
        work = getattr(owner, name)

        def counted(*given: Any, **named: Any) -> Any:
            if not counts(*given, **named):
                return work(*given, **named)
            if not self.mid_write:
                self.take()
            done = work(*given, **named)
            return WatchedFile(done, self) if self.mid_write and counts is writes else done

        setattr(owner, name, counted)


class WatchedFile:
    """An open file whose writes are steps: half of the bytes are on the disk when a step goes wrong."""

    def __init__(self, file: Any, steps: Steps) -> None:
        self._file, self._steps = file, steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> WatchedFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.__exit__(*error)

    def write(self, content: Any) -> int:
        half = len(content) // 2
        self._file.write(content[:half])
        if self._steps.count + 1 == self._steps.at:
            self._file.flush()
        self._steps.take()
        self._file.write(content[half:])
        return len(content)


def writes(_path: Any, mode: Any = "r", *_: Any, **__: Any) -> bool:
    return isinstance(mode, str) and any(letter in mode for letter in "wax+")


def creates(_path: Any, flags: int = 0, *_: Any, **__: Any) -> bool:
    return bool(flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR))


def watch_everything(steps: Steps) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    from largesse.io import atomic_replacement

    for name in ("rename", "replace", "link", "fsync", "mkdir", "unlink", "rmdir", "chmod", "chown"):
        steps.watch(os, name)
    steps.watch(os, "open", creates)
    steps.watch(io, "open", writes)
    steps.watch(builtins, "open", writes)
    steps.watch(shutil, "rmtree")
    steps.watch(pyarrow.csv, "write_csv")
    steps.watch(pyarrow.parquet, "write_table")
    if steps.fault.endswith("exchanged"):
        atomic_replacement._find_renameat2 = lambda: None  # type: ignore[assignment]
    else:
        steps.watch(atomic_replacement, "exchange_folders")


def run_command(work: Path, command: str, fault: str = "", at: int = 0) -> Ended:
    """Run a command in a fork, where its step `at` goes wrong."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the child of a process with threads
        child = os.fork()
    if not child:
        os._exit(_act(work, command, Steps(fault, at, os.getpid()), writer))
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8", errors="replace") as stream:
        said = stream.read()
    code = os.waitstatus_to_exitcode(_wait(child))
    steps = said.rpartition("\n#")[2].strip()
    return Ended(code, int(steps) if steps.isdigit() else 0, said)


def _wait(child: int) -> int:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _act(work: Path, command: str, steps: Steps, writer: int) -> int:
    """Be the command; return its exit code."""
    from largesse import cli

    os.dup2(writer, 1)
    os.dup2(writer, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    sys.argv = ["largesse", *command.split()]
    os.chdir(work)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 0
    try:
        watch_everything(steps)
        cli.main()
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else 1
    except BaseException as error:
        code = 1
        sys.stderr.write(f"Traceback: {type(error).__name__}: {error}")
    steps.at = 0
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(writer, f"\n#{steps.count}\n".encode())
    return code


# -- the place where it works -------------------------------------------------------------------------------------------


class Place:
    """A folder with a log, customers and a run folder that can be restored."""

    def __init__(self, home: Path) -> None:
        self.work = home / "work"
        self._kept = home / "kept"

    def prepare(self, make: Callable[[Path], object]) -> None:
        """Fill the folder by `make`, then run the campaign."""
        self.work.mkdir()
        make(self.work)
        here = Path.cwd()
        os.chdir(self.work)
        try:
            for command in ("run campaign.toml --out R", "init log.parquet --out first.toml"):
                assert call(*command.split())[0] in (0, 20)  # in this process: its forks find everything loaded
        finally:
            os.chdir(here)
        (self.work / "first.toml").unlink()
        (self.work / "R" / ".DS_Store").write_text("hidden")
        (self.work / "R").chmod(0o750)
        (self.work / "R" / "plan.parquet").chmod(0o640)
        (self.work / "x.csv").write_text("old")
        (self.work / "x.csv").chmod(0o600)
        self.work.rename(self._kept)

    def renew(self, command: str) -> None:
        """Bring the folder back to what it was before the command."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self._kept, self.work)
        if command == "report":
            (self.work / "R" / "report.html").unlink()

    def read(self) -> dict[str, dict[str, Any]]:
        """Return what lies in the folder, thing by thing: each file's content and mode; hidden names apart."""
        found: dict[str, dict[str, Any]] = {}
        for path in sorted(self.work.rglob("*")):
            name, state = path.relative_to(self.work).as_posix(), path.lstat()
            hidden = path.name.startswith(".") or any(part.startswith(".") for part in name.split("/"))
            thing = "hidden" if hidden and path.name != ".DS_Store" else name.split("/")[0]
            content = path.read_bytes() if path.is_file() else b""
            if path.is_file() or thing == "hidden" or path.name == "R":
                found.setdefault(thing, {})[name] = (stat.S_IMODE(state.st_mode), content)
        return found

    @cache  # noqa: B019  one place lasts as long as the process
    def plain(self, command: str, mid_write: bool) -> tuple[int, dict[str, Any], dict[str, Any]]:
        """Return the number of steps (or writes) of a command, and the content of the folder before and after it."""
        self.renew(command)
        before = self.read()
        done = run_command(self.work, COMMANDS[command], fault=f"none{MID_WRITE * mid_write}")
        assert done.code in (0, 20), done.words
        assert "hidden" not in self.read(), self.read()["hidden"].keys()
        return done.steps, before, self.read()


def find_problem(place: Place, command: str, fault: str, at: int) -> str:
    """Let a command go wrong at one step; return the problem, or ""."""
    _, before, after = place.plain(command, fault.endswith(MID_WRITE))
    place.renew(command)
    ended = run_command(place.work, COMMANDS[command], fault, at)
    states = compare_states(place.read(), before, after)
    told = f"exit code {ended.code}, {states}: {ended.words[-300:]}"
    if ended.code not in (0, 2, 20, 130, 143, KILLED) or "Traceback" in ended.words:
        return f"an unexpected end: {told}"
    if not set(states.values()) <= {OLD, NEW, *([MOVED] if fault == KILLS[1] else [])}:
        return f"old and new are mixed: {told}"
    if ended.code in (0, 2, 20) and set(states.values()) != {OLD if ended.code == 2 else NEW}:
        return f"the exit code is wrong: {told}"
    again = run_command(place.work, COMMANDS[command])
    if again.code not in (0, 20) or place.read() != after:
        return f"called again: {again.code}, {sorted(place.read().get('hidden', {}))}: {again.words[-300:]}"
    return ""


def compare_states(found: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> dict[str, str]:
    """Say of each thing that the command changes whether it is the old or the new one."""
    states = {}
    for thing in before.keys() | after.keys():
        if before.get(thing) != after.get(thing):
            is_old, is_new = found.get(thing) == before.get(thing), found.get(thing) == after.get(thing)
            states[thing] = OLD if is_old else NEW if is_new else "mixed" if thing in found else MOVED
        elif found.get(thing) != before.get(thing):
            states[thing] = "touched"
    return states


# -- the program ---------------------------------------------------------------------------------------------------------


@contextmanager
def run_program() -> Iterator[Callable[..., Any]]:
    """Run this module in a process of its own; yield a function that asks it."""
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    command, pipe = [sys.executable, "-m", "support.faults"], subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        questions, answers = program.stdin, program.stdout

        def ask(*words: Any) -> Any:
            questions.write(json.dumps(words) + "\n")
            questions.flush()
            return json.loads(answers.readline())

        try:
            yield ask
        finally:
            questions.close()


def answer_questions() -> None:
    """Answer the lines of standard input."""
    with tempfile.TemporaryDirectory(prefix="largesse-faults-", ignore_cleanup_errors=True) as home:
        place = Place(Path(home))
        place.prepare(write_shop)
        for line in sys.stdin:
            command, fault, *at = json.loads(line)
            answer = find_problem(place, command, fault, *at) if at else place.plain(command, MID_WRITE in fault)[0]
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    answer_questions()
