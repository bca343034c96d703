"""The work folder: what a command has finished and would lose if it were stopped.

It lies beside the target under a hidden name, belongs to the user who runs the command, and is never a part of the target.
Whoever uses it holds the target. It goes when the command succeeds or is refused; a command that is stopped leaves it, and the
next one uses it or makes a new one. What is inside lies in a folder whose name is the fingerprint of all that it depends on.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from largesse.errors import LargesseError, OutputError, Problem
from largesse.io import system
from largesse.io.places import Target, explain, resolve_replaceable


@contextmanager
def keep_work(target: Target, *, resume: bool = False) -> Iterator[Path]:
    """Give the path of the work folder of a target, which need not exist; without `resume` an earlier one is removed.

    The caller holds the target. The folder goes when the block ends well, and when there is nothing in it. A mistake or a
    full disk leaves what was there before: an error changes nothing.
    """
    path = find_work(target)
    with explain(target):
        _refuse_others(path)
        if not resume:
            _remove(path)
    before = path.exists()
    try:
        yield path
    except (LargesseError, OSError):
        if not before:
            _remove(path)
        raise
    except BaseException:
        _remove_empty(path)
        raise
    _remove(path)


def find_work(target: Target) -> Path:
    """Return the path of the work folder of a target."""
    return system.name_work(resolve_replaceable(target))


def open_work(path: Path, key: str) -> Path:
    """Return the folder of a fingerprint inside a work folder, made if it is missing; those of others are removed."""
    path.mkdir(mode=0o700, exist_ok=True)
    for entry in system.list_folder(path):
        if entry.name != key:
            _remove(Path(entry.path))
    mine = path / key
    mine.mkdir(mode=0o700, exist_ok=True)
    return mine


def _refuse_others(path: Path) -> None:
    """Refuse a work folder that is none, or that another user made: what is in it is read back and trusted."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    mine = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
    if not stat.S_ISDIR(found.st_mode) or not mine:
        what = f"{path} is in the way: it is no folder of yours"
        raise OutputError("output", [Problem(what, "remove it, or give another --out")])


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _remove_empty(path: Path) -> None:
    with suppress(OSError):
        for inner in (*path.glob("*/"), path):
            inner.rmdir()
