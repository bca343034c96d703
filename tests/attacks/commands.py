"""The command line, called in this process, and what its exit code and its words say."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import FINE, Outcome, describe, judge_message


@dataclass(frozen=True)
class Answer:
    """What a command said: its exit code, what it printed, and the error that got past it."""

    code: int
    shown: str
    error: BaseException | None = None


def call(*words: Any) -> Answer:
    """Run one command."""
    from largesse import cli

    before, handler = sys.argv, signal.getsignal(signal.SIGTERM)
    shown = io.BytesIO()  # both streams, as Python opens them where the locale is UTF-8
    out, err = (
        io.TextIOWrapper(shown, "utf-8", errors, write_through=True) for errors in ("strict", "backslashreplace")
    )
    sys.argv = ["largesse", *(str(word) for word in words)]
    code, error = 0, None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
    except Exception as escaped:
        code, error = 1, escaped
    finally:
        sys.argv = before
        signal.signal(signal.SIGTERM, handler)
    return Answer(code, shown.getvalue().decode("utf-8", "replace"), error)


def judge(answer: Answer, *words: Any) -> Outcome:
    """Say what came of a command: fine, or refused with exit code 2 and words that can be printed."""
    name = " ".join(str(word)[:60] for word in words)
    if answer.error is not None:
        return Outcome("traceback", f"{name}: {describe(answer.error)}")
    if "Traceback" in answer.shown or answer.code not in (0, 2):
        return Outcome("traceback", f"{name}: exit code {answer.code}: {answer.shown[-300:]}")
    said = judge_message(answer.shown)
    if answer.code == 0 and (said.kind == "refused" or not answer.shown.strip()):
        return FINE
    return said if said.kind == "refused" else Outcome(said.kind, f"{name}: {said.detail}")


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """Work in a folder of one's own."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def list_files(folder: Path) -> set[str]:
    """Return everything in a folder, hidden names too."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def try_command(folder: Path, *words: Any) -> Outcome:
    """Run a command in a folder; one that is refused leaves the folder as it was."""
    before = list_files(folder)
    found = judge(call(*words), *words)
    if found.kind == "refused" and (left := list_files(folder) - before):
        return Outcome("half-written", f"{' '.join(str(word)[:60] for word in words)}: {sorted(left)[:5]}")
    return found
