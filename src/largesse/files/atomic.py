"""Files and folders that are never half there: each is written to a temporary name beside its target, then renamed."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from largesse.errors import OutputError, Problem, some


@contextmanager
def atomic_file(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path to write to; it becomes `target` when the block ends well, and vanishes when it does not."""
    path = Path(target)
    with _explain(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.part"
        try:
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(
    target: str | os.PathLike[str], *, marks: Collection[str] = (), files: Collection[str] = ()
) -> Iterator[Path]:
    """Give a temporary folder to fill; it takes the place of `target` when the block ends well.

    An empty folder of that name is replaced, and one that holds all of the `marks` and nothing but `files`; any other
    folder is refused.
    """
    path = Path(target).resolve()  # not a link is replaced, but what it points to
    with _explain(path):
        _refuse_foreign(path, marks, files)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.part"
        part.mkdir()
        try:
            yield part
            _swap(part, path)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _refuse_foreign(path: Path, marks: Collection[str], files: Collection[str]) -> None:
    if path.is_file():
        raise OutputError("output", [Problem(f"{path} is a file, not a folder", "give another --out")])
    found = {inside.name for inside in path.iterdir()} if path.is_dir() else set()
    # A folder with all marks and nothing unknown was made by us; a user's own file among the known names proves nothing.
    other = sorted(found - {*files}) if marks and found.issuperset(marks) else sorted(found)
    if other:
        raise OutputError(
            "output",
            [
                Problem(
                    f"{path} holds other files and will not be replaced: {some(other)}", "give a new folder as --out"
                )
            ],
        )


def _swap(part: Path, path: Path) -> None:
    if not path.exists():
        part.replace(path)
        return
    old = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.old"
    path.replace(old)
    try:
        part.replace(path)
    finally:
        if not path.exists():  # whatever stopped it, even a signal: the earlier folder comes back
            old.replace(path)
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _explain(path: Path) -> Iterator[None]:
    """Turn an error of the system into a sentence."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError("output", [_diagnosis(path, error)]) from error


def _diagnosis(path: Path, error: OSError) -> Problem:
    if error.errno == errno.ENOSPC or "No space left" in str(error):
        return Problem(
            f"the disk is full; {path} was not written", "free some space; what was there before is untouched"
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Problem(f"{path} may not be written", "choose a folder you may write to with --out")
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return Problem(f"{path} cannot be made: a part of the path is a file", "give another --out")
    if error.errno == errno.EISDIR:
        return Problem(f"{path} is a folder, not a file", "give the name of a file as --out")
    return Problem(f"{path} could not be written: {error}", "what was there before is untouched")
