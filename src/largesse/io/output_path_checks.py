"""Checks of paths to write to: links, types and permissions.

Devices, FIFOs, sockets, mount points and open files of a process (`/dev/stdout`) are refused: output replaces its target, and
these must stay.
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
FILE_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
}
MOUNT_TABLE = Path("/proc/self/mountinfo")
SQLITE_HEADER = b"SQLite format 3\0"
MAX_LINKS = 40
NEW_FILE_HINT = "give the name of a regular file, or an unused name, as --out"
NEW_FOLDER_HINT = "give the name of a run folder, or an unused name, as --out"


def check_output_path(target: Target) -> Path:
    """Convert a value to a path, and refuse invalid file names."""
    try:
        path = Path(target)
        os.fsencode(path)
    except (TypeError, UnicodeEncodeError) as error:
        raise _make_path_error(
            f"the path is {repr_short(target)}", "give the name of a file or folder as text"
        ) from error
    return path


def resolve_links(path: Target) -> Path:
    """Resolve the symbolic links of a path; return circular links unchanged."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError):  # RuntimeError: circular links, before Python 3.13
        return Path(path).absolute()


def resolve_output_file(target: Target) -> Path:
    """Resolve the path of a file to write; refuse a path that is not a writable regular file."""
    with wrap_os_error(target):
        path = _follow_links(target)
        kind = _check_kind(target, path, "a file", NEW_FILE_HINT)
        if kind is not None and _is_sqlite_database(path):
            raise _make_path_error(f"{target} is a database, perhaps a ledger: it is not written over", NEW_FILE_HINT)
        return path


def resolve_output_folder(target: Target) -> Path:
    """Resolve the path of a folder to write; refuse a path that is not a writable folder."""
    with wrap_os_error(target):
        path = _follow_links(target)
        _check_kind(target, path, "a folder", NEW_FOLDER_HINT)
        return path


def resolve_replaceable_folder(target: Target) -> Path:
    """Resolve the path of a folder to replace; refuse a folder that contains the current directory."""
    path = resolve_output_folder(target)
    with wrap_os_error(target):
        if path.exists() and Path.cwd().resolve().is_relative_to(path):
            raise _make_path_error(
                f"you are inside {path}, which is replaced as a whole", "leave it (cd ..) and try again"
            )
    return path


def _check_kind(target: Target, path: Path, wanted: str, hint: str) -> str | None:
    """Check the type and the permissions of an existing path, and return its type.

    A missing path has type None. Mount points are refused.
    """
    try:
        kind = FILE_KINDS.get(stat.S_IFMT(path.lstat().st_mode), "something unknown")
    except FileNotFoundError:
        return None
    if kind != wanted:
        raise _make_path_error(f"{target} is {kind}, not {wanted}", hint)
    if is_mount_point(path):
        raise _make_path_error(f"{target} is a mount point", hint)
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "read-only")
    return kind


def _follow_links(target: Target) -> Path:
    """Resolve the symbolic links of a path; refuse links to open files of a process."""
    path = Path.cwd() / check_output_path(target)
    for _ in range(MAX_LINKS):
        path = path.resolve() if path.name in ("", "..") else path.parent.resolve() / path.name
        if path.is_relative_to("/proc"):
            raise _make_path_error(f"{target} is a file that another process has open", NEW_FILE_HINT)
        if not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _is_sqlite_database(path: Path) -> bool:
    """Test if a file is an SQLite database, which must not be overwritten."""
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE_HEADER)) == SQLITE_HEADER
    except OSError:
        return False


def is_mount_point(path: Path) -> bool:
    """Test if a file or folder is a mount point."""
    if path.is_mount():
        return True
    try:
        lines = os.fsdecode(MOUNT_TABLE.read_bytes()).splitlines()
    except OSError:
        return False
    escaped = str(path).replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011").replace("\n", "\\012")
    return any(line.split(" ")[4:5] == [escaped] for line in lines)


def _make_path_error(what: str, hint: str) -> OutputError:
    return OutputError("output", [Problem(what, hint)])


@contextmanager
def wrap_os_error(target: Target) -> Iterator[None]:
    """Convert operating-system errors in a with-block to an `OutputError`."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError("output", [_diagnose_os_error(target, error)]) from error
    except ValueError as error:
        if "null" not in str(error):  # the system's error for a path with a null byte
            raise
        raise _make_path_error(f"{str(target)!r} contains a NUL character", "give another --out") from error


def _diagnose_os_error(path: Target, error: OSError) -> Problem:
    if error.errno == errno.ENOSPC or "No space left" in str(error):
        hint = "free some space; what was there before is untouched"
        return Problem(f"the disk is full; {path} was not written", hint)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Problem(f"{path} may not be written", "choose a folder you may write to with --out")
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return Problem(f"{path} cannot be created: a parent of it is a file", "give another --out")
    if error.errno == errno.ENAMETOOLONG:
        return Problem("the path to write to is too long", "give a shorter --out")
    return Problem(f"{path} could not be written: {error}", "what was there before is untouched")
