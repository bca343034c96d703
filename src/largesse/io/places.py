"""Where output may go: to a regular file, a folder, or a name that is still free. Links are followed.

Devices, FIFOs, sockets, mount points and whatever a process has open (`/dev/stdout`) are refused: what is written takes
the place of what was there, and these must keep their place.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from largesse.errors import OutputError, Problem, repr_short

Target = str | os.PathLike[str]
KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
}
MOUNTS = Path("/proc/self/mountinfo")
SQLITE = b"SQLite format 3\0"  # how such files begin
NEW_FILE = "give the name of a regular file, or one that is still free, as --out"
NEW_FOLDER = "give the name of a run folder, or one that is still free, as --out"


def as_path(target: Target) -> Path:
    """Return a path; refuse what is none, or what no file can be called."""
    try:
        path = Path(target)
        os.fsencode(path)
    except (TypeError, UnicodeEncodeError) as error:
        raise _refusal(f"the path is {repr_short(target)}", "give the name of a file or folder as text") from error
    return path


def where_is(path: Target) -> Path:
    """Return where a path leads: behind all links, unless they lead in a circle."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError):  # RuntimeError: a circle, before Python 3.13
        return Path(path).absolute()


def resolve_file(target: Target) -> Path:
    """Return the file that a path names; refuse what is there and not a regular file that may be written."""
    with explain(target):
        path = _follow_links(target)
        kind = _kind_of(path)
        if kind == "a folder":
            raise IsADirectoryError(errno.EISDIR, "a folder")
        _refuse_others(target, path, kind, "a file", NEW_FILE)
        if kind is not None and _is_database(path):
            raise _refusal(f"{target} is a database, perhaps a ledger: it is not written over", NEW_FILE)
        return path


def resolve_folder(target: Target) -> Path:
    """Return the folder that a path names; refuse what is there and not a folder that may be written."""
    with explain(target):
        path = _follow_links(target)
        kind = _kind_of(path)
        if kind == "a file":
            raise _refusal(f"{target} is a file, not a folder", "give another --out")
        _refuse_others(target, path, kind, "a folder", NEW_FOLDER)
        return path


def resolve_replaceable(target: Target) -> Path:
    """Return the folder that a path names, as `resolve_folder` does; refuse the one where the command was called."""
    path = resolve_folder(target)
    with explain(target):
        if path.exists() and Path.cwd().resolve().is_relative_to(path):
            raise _refusal(f"you are inside {path}, which is replaced as a whole", "leave it (cd ..) and try again")
    return path


def _refuse_others(target: Target, path: Path, kind: str | None, wanted: str, hint: str) -> None:
    if kind is None:
        return
    if kind != wanted:
        raise _refusal(f"{target} is {kind}", hint)
    if is_mounted(path):
        raise _refusal(f"{target} is a mount point", hint)
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "read-only")


def _follow_links(target: Target) -> Path:
    """Return the path behind all links; refuse links that end in what a process has open."""
    path = Path.cwd() / as_path(target)
    for _ in range(40):
        path = path.resolve() if path.name in ("", "..") else path.parent.resolve() / path.name
        if path.is_relative_to("/proc"):
            raise _refusal(f"{target} is what a process has open, not a file of its own", NEW_FILE)
        if not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _kind_of(path: Path) -> str | None:
    """Return what lies at a path, links not followed; None if nothing does."""
    try:
        return KINDS.get(stat.S_IFMT(path.lstat().st_mode), "something unknown")
    except FileNotFoundError:
        return None


def _is_database(path: Path) -> bool:
    """Whether a file is one of SQLite: what others keep there cannot be made again."""
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


def is_mounted(path: Path) -> bool:
    """Whether a file or folder, links resolved, is itself a mount point."""
    if path.is_mount():
        return True
    try:
        lines = os.fsdecode(MOUNTS.read_bytes()).splitlines()
    except OSError:
        return False
    written = str(path).replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011").replace("\n", "\\012")
    return any(line.split(" ")[4:5] == [written] for line in lines)


def _refusal(what: str, hint: str) -> OutputError:
    return OutputError("output", [Problem(what, hint)])


@contextmanager
def explain(target: Target) -> Iterator[None]:
    """Turn an error of the system into a sentence."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError("output", [_diagnosis(target, error)]) from error
    except ValueError as error:
        if "null" not in str(error):  # the system's own word for a path that no file can have
            raise
        raise _refusal(f"{str(target)!r} holds a null character", "give another --out") from error


def _diagnosis(path: Target, error: OSError) -> Problem:
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
    if error.errno == errno.ENAMETOOLONG:
        return Problem("the path to write to is too long", "give a shorter --out")
    return Problem(f"{path} could not be written: {error}", "what was there before is untouched")
