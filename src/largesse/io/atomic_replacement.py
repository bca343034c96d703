"""Atomic replacement of files and folders, with recovery after killed commands.

New content is written under a temporary name next to its target, flushed to the disk, and exchanged with the target. A kill at
any instant leaves the old or the new content, and perhaps a temporary name, which the next command for the same target removes.
One lock file per target keeps other commands away; other files in a folder come along. New files and folders are private: logs
and plans hold customers. Those that replace others keep their rights.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from largesse.errors import OutputError, Problem, join_some
from largesse.io.output_path_checks import (
    Target,
    check_output_path,
    resolve_output_file,
    resolve_output_folder,
    resolve_replaceable_folder,
    wrap_os_error,
)

MAX_LOCK_SECONDS = 10.0
SYSTEM_FILES = ("Thumbs.db", "ehthumbs.db", "desktop.ini")  # other programs create them, like hidden files
TEMPORARY = r"[0-9a-f]{8}\.(part|old)(\.\w+)?"
MAX_STEM_BYTES = 200  # systems allow names of 255 bytes, suffixes included
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # constants of renameat2
UNSUPPORTED_ERRORS = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


@contextmanager
def atomic_file(target: Target) -> Iterator[Path]:
    """Yield a temporary file path that replaces the target if the with-block succeeds."""
    path = check_output_path(target)
    if is_temporary_name(path.name) or is_temporary_name(
        path.parent.name
    ):  # part of a replacement that is not published yet
        with wrap_os_error(path):
            if is_temporary_name(path.parent.name):
                path.unlink(missing_ok=True)  # it may be a hard link to the published file
            yield path
        return
    with file_transaction() as batch:
        temporary = batch.add_file(target)
        with wrap_os_error(target):
            yield temporary


@contextmanager
def atomic_folder(target: Target, *, marks: Collection[str] = (), files: Collection[str] = ()) -> Iterator[Path]:
    """Yield a temporary folder that replaces the target folder if the with-block succeeds.

    An empty folder of that name is replaced, and a folder with all `marks` that holds only `files`; any other folder is
    refused. Hidden files do not count, and stay.
    """
    refuse_foreign_folder(target, marks, files)
    with hold_folder(target):
        refuse_foreign_folder(target, marks, files)  # it may be another folder after the wait
        with file_transaction() as batch:
            temporary = batch.add_folder(target, files)
            with wrap_os_error(target):
                yield temporary


def refuse_foreign_folder(target: Target, marks: Collection[str], files: Collection[str]) -> None:
    """Refuse to replace a folder that largesse did not write.

    A folder of largesse holds all `marks` and no visible files except `files`. An empty folder may be replaced, too.
    """
    path = resolve_replaceable_folder(target)
    with wrap_os_error(target):
        names = {child.name for child in path.iterdir() if not _is_hidden_file(child)} if path.is_dir() else set()
    # A folder with all marks and nothing unknown was made by us; a user's own file among the known names proves nothing.
    other = sorted(names - {*files}) if marks and names.issuperset(marks) else sorted(names)
    if other:
        message = f"{path} holds other files and will not be replaced: {join_some(other)}"
        raise OutputError("output", [Problem(message, "give a new folder as --out")])


def _is_hidden_file(path: Path) -> bool:
    """Test if a file is hidden or temporary."""
    hidden = path.name.startswith(".") or path.name in SYSTEM_FILES
    return is_temporary_name(path.name) or (hidden and path.is_file() and not path.is_symlink())


# -- replacements --------------------------------------------------------------------------------------------------------


@contextmanager
def file_transaction() -> Iterator[FileTransaction]:
    """Yield a transaction that replaces all files and folders, or none if the with-block fails."""
    with ExitStack() as stack:
        batch = FileTransaction(stack)
        yield batch
        batch.publish()


class FileTransaction:
    """Files and folders that are replaced together, with rollback if one replacement fails."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._items: list[_Replacement] = []

    def add_file(self, target: Target) -> Path:
        """Return a temporary path for the new content of a file."""
        path = resolve_output_file(target)
        with wrap_os_error(target):
            for item in self._items:
                if item.files is not None and path.is_relative_to(item.path):
                    inside = item.temporary / path.relative_to(item.path)
                    inside.parent.mkdir(parents=True, exist_ok=True)
                    return inside
            self._stack.enter_context(_make_parent_folders(path))
            self._stack.enter_context(hold_path_lock(path))
            temporary = self._add(path, f"part{path.suffix}", None)
            temporary.touch(mode=0o600, exist_ok=False)
        return temporary

    def add_folder(self, target: Target, files: Collection[str], *, renew: bool = False) -> Path:
        """Return a temporary folder for the new content of a folder.

        With `renew` it starts with the `files` of the old folder.
        The caller holds the lock of the folder. All other content of the old folder is taken over at the end.
        """
        path = resolve_replaceable_folder(target)
        with wrap_os_error(target):
            temporary = self._add(path, "part", frozenset(files))
            temporary.mkdir(mode=0o700)
            if renew:
                _copy_missing_files(path, temporary, lambda name: name in files)
        return temporary

    def discard(self, target: Target) -> None:
        """Cancel the replacement of a folder, whose old content stays.

        New content, which may be written already, is removed at the end.
        """
        path = resolve_replaceable_folder(target)
        self._items = [item for item in self._items if item.path != path]

    def _add(self, path: Path, ending: str, files: frozenset[str] | None) -> Path:
        temporary = make_temporary_name(path, ending)
        self._items.append(_Replacement(path, temporary, files))
        self._stack.callback(
            _remove_temporary, temporary
        )  # the new content if something fails, the old one after it was exchanged
        return temporary

    def publish(self) -> None:
        """Replace all target files and folders by their new content."""
        items = sorted(self._items, key=lambda item: item.files is None)  # a file cannot go back
        for item in items:
            with wrap_os_error(item.path):
                item.complete()
        published: list[tuple[_Replacement, bool]] = []
        try:
            for item in items:
                with wrap_os_error(item.path):
                    published.append((item, item.publish()))
        except BaseException:
            for item, had_old in reversed(published):
                item.roll_back(had_old)
            raise
        for item in items:
            _flush_folder_to_disk(item.path.parent)


@dataclass(frozen=True)
class _Replacement:
    """Temporary path with new content, and the target path to replace."""

    path: Path
    temporary: Path
    files: frozenset[str] | None  # of a folder: the names that are replaced; None: a file

    def complete(self) -> None:
        """Copy permissions and unrelated files from the old content, and flush the new content to the disk."""
        if self.files is None:
            if self.path.exists():
                _copy_owner_and_mode(self.path, self.temporary)
            _flush_to_disk(self.temporary)
            return
        for new in self.temporary.iterdir():
            old = self.path / new.name
            if new.is_symlink():
                continue
            if not old.is_file() or old.is_symlink():
                new.chmod(0o700 if new.is_dir() else 0o600)
            elif not old.samefile(new):
                _copy_owner_and_mode(old, new)
        if self.path.is_dir():
            _copy_missing_files(
                self.path, self.temporary, lambda name: name not in (self.files or ()) and not is_temporary_name(name)
            )
            _copy_owner_and_mode(self.path, self.temporary)
        for folder, _, names in os.walk(self.temporary):
            for name in names:
                if stat.S_ISREG((Path(folder) / name).lstat().st_mode):
                    _flush_to_disk(Path(folder) / name)
            _flush_folder_to_disk(Path(folder))

    def publish(self) -> bool:
        """Exchange new and old content; return True if there was old content.

        The old content then has the temporary name.
        """
        had_old = os.path.lexists(self.path)
        if self.files is None:
            self.temporary.replace(self.path)
        elif had_old:
            exchange_folders(self.temporary, self.path)
        else:
            self.temporary.rename(self.path)
        return had_old

    def roll_back(self, had_old: bool) -> None:
        """Restore the old content after `publish`."""
        if had_old:
            exchange_folders(self.temporary, self.path)
        else:
            self.path.rename(self.temporary)


def _copy_missing_files(source: Path, target: Path, wanted: Callable[[str], bool]) -> None:
    """Link or copy selected files from the old folder to the new folder."""
    for old in [*source.iterdir()]:
        new = target / old.name
        if not wanted(old.name) or os.path.lexists(new):
            continue
        if old.is_dir() and not old.is_symlink():
            shutil.copytree(old, new, symlinks=True, copy_function=_link_or_copy)
        else:
            with suppress(FileNotFoundError):  # removed in the meantime
                _link_or_copy(old, new)


def _link_or_copy(source: Any, target: Any) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, one without hard links, or a file of another user
        shutil.copy2(source, target, follow_symlinks=False)


def _copy_owner_and_mode(source: Path, target: Path) -> None:
    """Copy owner and mode from one file or folder to another, as far as permitted."""
    wanted = source.stat()
    with suppress(OSError, AttributeError):
        os.chown(target, wanted.st_uid, wanted.st_gid)
    target.chmod(stat.S_IMODE(wanted.st_mode))


def _flush_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_folder_to_disk(path: Path) -> None:
    """Flush the entries of a folder to the disk (fsync)."""
    with suppress(OSError):
        _flush_to_disk(path)


def exchange_folders(temporary: Path, path: Path) -> None:
    """Exchange the names of two folders, atomically if the system supports it.

    A kill between the renames leaves the old folder as `….old`; `hold_folder` restores it.
    """
    import ctypes

    rename = _find_renameat2()
    if rename is not None:
        if rename(AT_FDCWD, os.fsencode(temporary), AT_FDCWD, os.fsencode(path), RENAME_EXCHANGE) == 0:
            return
        number = ctypes.get_errno()
        if number not in UNSUPPORTED_ERRORS:
            raise OSError(number, os.strerror(number), str(path))
    old = make_temporary_name(path, "old")
    path.rename(old)
    try:
        temporary.rename(path)
    except BaseException:
        if not path.exists():
            old.rename(path)
        raise
    old.rename(temporary)


@functools.cache
def _find_renameat2() -> Callable[..., Any] | None:
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, TypeError, AttributeError):
        return None
    rename.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    rename.restype = ctypes.c_int
    return rename


# -- locks and leftovers -------------------------------------------------------------------------------------------------


@contextmanager
def hold_folder(target: Target) -> Iterator[None]:
    """Hold the lock of a folder inside a with-block, after recovery from killed commands."""
    path = resolve_replaceable_folder(target)
    with ExitStack() as stack:
        with wrap_os_error(target):
            stack.enter_context(_make_parent_folders(path))
            stack.enter_context(hold_path_lock(path))
        yield


def can_recover_folder(target: Target) -> bool:
    """Test if a missing folder can be restored from the leftovers of a killed command."""
    path = resolve_output_folder(target)
    return not path.exists() and any(left.name.endswith(".old") for left in _find_leftovers(path))


@contextmanager
def hold_path_lock(path: Path) -> Iterator[None]:
    """Hold the lock file of a path inside a with-block, after removal of leftovers from killed commands.

    The old folder of a killed command is restored, and its temporary files are removed.
    """
    from filelock import FileLock, Timeout  # less code than fcntl.flock, and Windows has it, too

    lock = FileLock(path.parent / f".{_shorten_file_name(path)}.largesse.lock")
    try:
        lock.acquire(timeout=MAX_LOCK_SECONDS, poll_interval=0.02)
    except Timeout as error:
        problem = Problem(f"{path} is in use by another largesse command", "wait for it to end, and try again")
        raise OutputError("output", [problem]) from error
    try:
        leftovers = _find_leftovers(path)
        if not os.path.lexists(path):
            for old in [left for left in leftovers if left.name.endswith(".old")][-1:]:
                old.rename(path)
        for left in leftovers:
            _remove_temporary(left)
        yield
    finally:
        with suppress(OSError):  # before the release: a waiting command notices, and creates a new lock file
            Path(lock.lock_file).unlink()
        lock.release()


def is_temporary_name(name: str) -> bool:
    """Test if a file name is that of a temporary file or folder.

    >>> is_temporary_name(".plan.parquet.8f30e26a.part"), is_temporary_name("plan.parquet")
    (True, False)
    """
    return re.fullmatch(rf"\..+\.{TEMPORARY}", name, re.DOTALL) is not None


def make_temporary_name(path: Path, ending: str) -> Path:
    """Return a new temporary name in the folder of a path."""
    return path.parent / f".{_shorten_file_name(path)}.{uuid.uuid4().hex[:8]}.{ending}"


def _shorten_file_name(path: Path) -> str:
    """Shorten the file name of a path, so that a suffix can be added."""
    if len(os.fsencode(path.name)) <= MAX_STEM_BYTES:
        return path.name
    return f"{path.name[: MAX_STEM_BYTES // 8]}-{uuid.uuid5(uuid.NAMESPACE_URL, os.fsencode(path.name).hex()).hex}"


def _find_leftovers(path: Path) -> list[Path]:
    """Find the temporary files that killed commands left for a path, oldest first."""
    name = re.compile(rf"\.{re.escape(_shorten_file_name(path))}\.{TEMPORARY}", re.DOTALL)
    try:
        leftovers = [child for child in path.parent.iterdir() if name.fullmatch(child.name) and not child.is_symlink()]
        return sorted(leftovers, key=lambda child: child.lstat().st_mtime_ns)
    except OSError:  # the folder above is missing or not readable
        return []


def _remove_temporary(path: Path) -> None:
    """Remove a temporary file or folder, as far as possible."""
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def _make_parent_folders(path: Path) -> Iterator[None]:
    """Create the parent folders of a path, and remove them again if the with-block fails."""
    made = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        raise
