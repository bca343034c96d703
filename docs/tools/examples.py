"""Run the code of a page and compare what it prints: Python examples (``>>>``) and commands (``$``), in one folder, in order.

A block is compared with the freedom of doctest: `…` on a line of its own, or `...`, stands for anything; white space does not
count.
"""

from __future__ import annotations

import doctest
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

FREE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ANSWERED = (0, 10)  # exit codes of commands that ended well: fine, or careful
COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n?)*)", re.MULTILINE)


class MismatchError(AssertionError):
    """A page states another output than its code prints."""


def read_blocks(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield language, code and line of every runnable block."""
    for block in BLOCK.finditer(text):
        kind, code = block.group(1), block.group(2)
        if kind == "console" or ">>>" in code:
            yield kind, code, text.count("\n", 0, block.start()) + 1


def run_page(page: Path, folder: Path) -> int:
    """Run a page in a folder and return the number of its blocks; raise at the first that prints something else."""
    names: dict[str, object] = {}
    count = 0
    groups: list[int] = []
    before = Path.cwd()
    os.chdir(folder)
    try:
        for kind, code, line in read_blocks(page.read_text(encoding="utf-8")):
            if kind == "console":
                _run_console(code, groups, f"{page.name}:{line}")
            else:
                _run_python(code, names, f"{page.name}:{line}")
            count += 1
    finally:
        os.chdir(before)
        for group in groups:  # background processes of the page
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGTERM)
    return count


def _run_python(code: str, names: dict[str, object], where: str) -> None:
    test = doctest.DocTestParser().get_doctest(code, names, where, where, 0)
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FREE)
    runner.run(test, out=printed.append, clear_globs=False)
    names.update(test.globs)
    if runner.failures:
        raise MismatchError(f"{where}\n{''.join(printed)}")


def _run_console(code: str, groups: list[int], where: str) -> None:
    for line in COMMAND.finditer(code):
        command, expected = line.group(1), line.group(2).replace("…", "...")
        scripts = Path(sys.executable).parent
        path = os.pathsep.join([str(scripts), os.environ.get("PATH", "")])
        environment = {**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
        pipe = subprocess.PIPE
        with subprocess.Popen(  # noqa: S602 — the commands of our own pages
            command, shell=True, stdout=pipe, stderr=pipe, text=True, env=environment, start_new_session=True
        ) as process:
            groups.append(process.pid)
            output, errors = process.communicate()
        if process.returncode not in ANSWERED:
            raise MismatchError(f"{where}: {command} ended with {process.returncode}\n{output}{errors}")
        if expected.strip() and not doctest.OutputChecker().check_output(expected, output, FREE):
            raise MismatchError(f"{where}: {command}\nexpected:\n{expected}\ngot:\n{output}")
