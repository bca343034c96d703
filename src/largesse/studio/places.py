"""Where the studio may look and write: names inside its folder, and nothing else. Links are not followed."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from largesse.data import is_table
from largesse.pipeline import FILES, MARKS
from largesse.serve import RequestError

LONGEST = 80  # letters of the name of a run
MOST_FILES = 500  # tables that are offered
DEVICES = {"con", "prn", "aux", "nul", *(f"{word}{k}" for word in ("com", "lpt") for k in range(1, 10))}


@dataclass(frozen=True)
class Place:
    """The studio's folder, and the private one inside it that goes when the studio stops."""

    folder: Path
    private: Path

    def list_runs(self) -> list[Path]:
        """Return the run folders."""
        return [path for path in self._list() if is_run(path)]

    def list_tables(self) -> list[Path]:
        """Return the tables that can be picked."""
        found = (path for path in self._list() if is_table(path) and _is_regular(path))
        return sorted(found, key=lambda path: path.name)[:MOST_FILES]

    def find_run(self, name: str) -> Path:
        """Return a run folder by its name."""
        path = self.folder / check_component(name)
        if not is_run(path):
            raise RequestError(404, f"there is no run {name!r} here", "reload the page to see which there are")
        return path

    def find_table(self, name: str) -> Path:
        """Return a table by its name."""
        path = self.folder / check_component(name)
        if not (_is_regular(path) and is_table(path)):
            raise RequestError(404, f"there is no table {name!r} here", "reload the page to see which there are")
        return path

    def new_run(self, name: object) -> Path:
        """Return the path of a run that is not there yet; whatever has this name already is left alone."""
        path = self.folder / check_name(name)
        if os.path.lexists(path):
            raise RequestError(409, f"{path.name!r} is there already", "choose another name: nothing is replaced")
        return path

    def _list(self) -> list[Path]:
        with os.scandir(self.folder) as entries:
            return [Path(entry.path) for entry in entries if not entry.name.startswith(".")]


def is_run(path: Path) -> bool:
    """Whether a path is that of a run folder, and no link."""
    try:
        folder = stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False
    return folder and all(_is_regular(path / mark) for mark in MARKS)


def list_parts(run: Path) -> list[str]:
    """Return the files of a run that can be looked at, in the order of their names."""
    return sorted(name for name in FILES if _is_regular(run / name))


def open_part(run: Path, name: str) -> tuple[IO[bytes], int]:
    """Return an open file of a run, never one that a link leads to, and its size."""
    missing = RequestError(404, f"the run has no {name}", "run largesse again, or choose another file")
    if name not in FILES:
        raise missing
    try:
        file = os.open(run / name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise missing from error
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        os.close(file)
        raise missing
    return os.fdopen(file, "rb"), found.st_size


def check_name(name: object) -> str:
    """Return the name of a new run, if it is one: letters, digits, - _ . and spaces, and not too long."""
    hint = f"use up to {LONGEST} letters, digits, spaces and - _ . and begin with a letter or digit"
    if not isinstance(name, str):
        raise RequestError(400, "the run has no name", hint)
    fine = all(letter.isalnum() or letter in "-_. " for letter in name)
    named = name[:1].isalnum() and name[-1:] not in (".", " ") and name.split(".")[0].lower() not in DEVICES
    if not (0 < len(name) <= LONGEST and len(os.fsencode(name)) <= 200 and fine and named):
        raise RequestError(400, f"{name[:LONGEST]!r} cannot be the name of a run", hint)
    return name


def check_component(name: str) -> str:
    """Return a name that stands for one thing in one folder; refuse paths."""
    wrong = not name or name.startswith(".") or any(mark in name for mark in ("/", "\\", "\0", os.sep))
    if wrong or len(os.fsencode(name)) > 255 or Path(name).name != name:
        raise RequestError(404, f"{name[:LONGEST]!r} is not a name in this folder", "reload the page")
    return name


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False
