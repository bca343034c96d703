"""The command line, called in this process, and checks of its exit codes, its words and the files it leaves."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from largesse import cli
from support.answers import check_message, read_strictly


class Called(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


Call = Callable[..., Called]


def make_call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Return a function that runs `largesse WORDS`."""

    def call(*words: str) -> Called:
        capsys.readouterr()
        code = 0
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["largesse", *words])
            try:
                cli.main()
            except SystemExit as stopped:
                code = int(stopped.code or 0)
        return Called(code, *capsys.readouterr())

    return call


def run_command(*words: Any) -> tuple[int, str]:
    """Return the exit code of a command and all that it prints, where the locale is UTF-8; an exception is not caught."""
    argv, handler = sys.argv, signal.getsignal(signal.SIGTERM)
    shown = io.BytesIO()
    out, err = (
        io.TextIOWrapper(shown, "utf-8", errors, write_through=True) for errors in ("strict", "backslashreplace")
    )
    sys.argv = ["largesse", *(str(word) for word in words)]
    code = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
    finally:
        sys.argv = argv
        signal.signal(signal.SIGTERM, handler)
    return code, shown.getvalue().decode("utf-8", "replace")


def check_answer(answer: tuple[int, str], *words: Any) -> bool:
    """Check the exit code and the words of a command; return whether it did its work.

    `check` also ends with 10 and 20, `run` and `doctor` with 20. The output of `--json` is read strictly.
    """
    code, shown = answer
    name = " ".join(str(word)[:60] for word in words)
    allowed = {0, 2} | {"check": {10, 20}, "run": {20}, "doctor": {20}}.get(str(words[0]) if words else "", set())
    assert code in allowed, f"{name}: exit code {code}: {shown[-300:]}"
    assert "Traceback" not in shown, f"{name}: {shown[-300:]}"
    if code == 2 or shown.strip():
        check_message(shown)
    if code != 2 and "--json" in words and "--help" not in words:
        read_strictly(shown)
    return code != 2


@contextlib.contextmanager
def working_folder() -> Iterator[Path]:
    """Work in a new folder."""
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


def read_tree(folder: Path) -> dict[str, Any]:
    """Return mode and content of everything in a folder; a pipe is not read."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = path.read_bytes() if stat.S_ISREG(mode) else bytes(path.readlink()) if path.is_symlink() else b""
        found[str(path.relative_to(folder))] = (mode, content)
    return found


def try_command(folder: Path, *words: Any, out: tuple[str, ...] = ()) -> bool:
    """Run a command and return whether it did its work: refused, it changes nothing; done, only what it writes."""
    before = read_tree(folder)
    done = check_answer(run_command(*words), *words)
    after = read_tree(folder)
    locks = {f"{path}-lock" for path in before}  # by which processes take turns at a ledger that is there
    changed = sorted(path for path in (before.keys() | after.keys()) - locks if before.get(path) != after.get(path))
    assert done or not changed, f"{words}: refused, and changed {changed[:5]}"
    own = {*out, *(str(word).rpartition("/")[2] for word in words if str(word).startswith("sqlite:"))}
    foreign = [
        path for path in changed
        if path in before and not any(one and (path == one or path.startswith((f"{one}/", f"{one}-"))) for one in own)
    ]  # fmt: skip
    assert not foreign, f"{words}: changed {foreign[:5]}"
    hidden = [path for path in after if Path(path).name.startswith(".") and path not in before]
    assert not hidden, f"{words}: left {hidden}"
    return done
