"""Files and folders that are never half there.

Everything is written under a temporary name beside its target, brought to the disk, and then takes the target's place in
one step. A kill leaves the old or the new one, and perhaps a temporary name, which the next command removes. What takes
the place of something has its owner and mode. A folder is locked while a command works on it; files in it that are
not ours come along.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from largesse.errors import OutputError, Problem, join_some
from largesse.io import system
from largesse.io.places import Target, as_path, explain, resolve_file, resolve_folder, resolve_replaceable

JUNK = ("Thumbs.db", "ehthumbs.db", "desktop.ini")  # like all hidden files: other programs leave them
UNLINKED = (errno.EPERM, errno.EACCES, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


@contextmanager
def atomic_file(target: Target) -> Iterator[Path]:
    """Give a temporary path to write to; it becomes `target` when the block ends well, and vanishes when it does not."""
    path = as_path(target)
    if system.is_temporary(path.name) or system.is_temporary(path.parent.name):  # nobody's yet
        with explain(path):
            if system.is_temporary(path.parent.name):
                path.unlink(missing_ok=True)  # it may be a second name of a file that others still see
            yield path
        return
    with write_together() as batch:
        part = batch.add_file(target)
        with explain(target):
            yield part


@contextmanager
def atomic_folder(target: Target, *, marks: Collection[str] = (), files: Collection[str] = ()) -> Iterator[Path]:
    """Give a temporary folder to fill; it takes the place of `target` when the block ends well.

    An empty folder of that name is replaced, and one that holds all of the `marks` and nothing but `files`; any other
    folder is refused. Hidden files do not count, and stay.
    """
    refuse_foreign(target, marks, files)
    with hold_folder(target, files), fill_folder(target, marks=marks, files=files) as part:
        yield part


@contextmanager
def fill_folder(target: Target, *, marks: Collection[str] = (), files: Collection[str] = ()) -> Iterator[Path]:
    """Do what `atomic_folder` does for a folder that the caller holds."""
    refuse_foreign(target, marks, files)
    with write_together() as batch:
        part = batch.add_folder(target, files)
        with explain(target):
            yield part


@contextmanager
def write_together() -> Iterator[Batch]:
    """Let several files and folders appear together when the block ends well, and none when it does not."""
    with ExitStack() as stack:
        batch = Batch(stack)
        yield batch
        batch.publish()


class Batch:
    """What will appear together: folders first, then files; if one cannot, those before it go back."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._files: list[_File] = []
        self._folders: list[_Folder] = []

    def add_file(self, target: Target) -> Path:
        """Return a temporary path, with the ending of `target`, that will take its place."""
        path = resolve_file(target)
        with explain(target):
            for folder in self._folders:
                if path.is_relative_to(folder.path):
                    inside = folder.part / path.relative_to(folder.path)
                    inside.parent.mkdir(parents=True, exist_ok=True)
                    return inside
            self._stack.enter_context(_make_parents(path))
            _sweep_files(path)
            file = _File(path, system.name_beside(path, f"part{path.suffix}"))
            self._stack.callback(file.discard)
            file.start()
        self._files.append(file)
        return file.part

    def add_folder(self, target: Target, files: Collection[str], *, renew: bool = False) -> Path:
        """Return a temporary folder that will take the place of `target`; `renew` starts with those `files` it holds.

        The caller holds the folder. Whatever is in it and not one of `files` is taken over at the end.
        """
        path = resolve_replaceable(target)
        with explain(target):
            folder = _Folder(path, system.name_beside(path, "part"), frozenset(files))
            self._stack.callback(folder.discard)
            folder.start(renew)
        self._folders.append(folder)
        return folder.part

    def publish(self) -> None:
        """Let everything take its place."""
        pending: list[_File | _Folder] = [*self._folders, *self._files]
        for one in pending:
            with explain(one.path):
                one.finish()
        with system.delay_signals():
            done: list[_File | _Folder] = []
            try:
                for one in pending:
                    with explain(one.path):
                        one.take_place()
                    done.append(one)
            except BaseException:
                for one in reversed(done):
                    one.go_back()
                raise
            for one in pending:
                with suppress(OSError):
                    system.sync_folder(one.path.parent)
                one.discard()


class _File:
    """A file that is being written under a temporary name, locked, so that nobody sweeps it away."""

    def __init__(self, path: Path, part: Path) -> None:
        self.path = path
        self.part = part
        self._descriptor = -1

    def start(self) -> None:
        mode = 0o600 if self.path.exists() else 0o666
        self._descriptor = os.open(self.part, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        system.try_lock(self._descriptor)

    def finish(self) -> None:
        if self.path.exists():
            system.copy_rights(self.path, self.part)
        os.fsync(self._descriptor)

    def take_place(self) -> None:
        self._close()
        self.part.replace(self.path)

    def go_back(self) -> None:
        """Do nothing: files come last, and at most one of them."""

    def discard(self) -> None:
        self._close()
        with suppress(OSError):
            self.part.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class _Folder:
    """A folder that is being filled under a temporary name."""

    def __init__(self, path: Path, part: Path, files: frozenset[str]) -> None:
        self.path = path
        self.part = part
        self._files = files
        self._swapped: _Swapped | None = None

    def start(self, renew: bool) -> None:
        self.part.mkdir(mode=0o700 if self.path.is_dir() else 0o777)
        if renew:
            _carry(self.path, self.part, lambda name: name in self._files)

    def finish(self) -> None:
        if self.path.is_dir():
            for new in self.part.iterdir():
                _copy_earlier_rights(new, self.path, self._files)
            _carry(self.path, self.part, self._is_foreign)
            system.copy_rights(self.path, self.part)
        for inside in self.part.rglob("*"):
            if inside.is_file() and not inside.is_symlink():
                system.sync_file(inside)
        for folder in (self.part, *(one for one in self.part.rglob("*") if one.is_dir() and not one.is_symlink())):
            system.sync_folder(folder)

    def take_place(self) -> None:
        self._swapped = _Swapped(system.swap(self.part, self.path))

    def go_back(self) -> None:
        if self._swapped is not None:
            system.swap_back(self.part, self.path, self._swapped.old)
            self._swapped = None

    def discard(self) -> None:
        if self._swapped is None:
            shutil.rmtree(self.part, ignore_errors=True)
        elif self._swapped.old is not None:
            _discard_folder(self._swapped.old, self.path, self._is_foreign)

    def _is_foreign(self, name: str) -> bool:
        return name not in self._files and not system.is_temporary(name)


@dataclass(frozen=True)
class _Swapped:
    """Where the earlier folder is, if there was one."""

    old: Path | None


# -- holding ------------------------------------------------------------------------------------------------------------


@contextmanager
def hold_folder(target: Target, files: Collection[str] = ()) -> Iterator[None]:
    """Keep other commands away from a folder, which need not exist yet, and put right what a killed one left."""
    path = resolve_replaceable(target)
    with ExitStack() as stack:
        with explain(target):
            stack.enter_context(_make_parents(path))
            if stack.enter_context(system.hold(path)):
                _recover(path, frozenset(files))
        yield


def can_recover(target: Target) -> bool:
    """Whether a folder is missing because a command was killed, and `hold_folder` will bring it back."""
    path = resolve_folder(target)
    return not path.exists() and any(left.name.endswith(".old") for left in system.find_leftovers(path))


def _recover(path: Path, files: frozenset[str]) -> None:
    """Bring back a folder that a killed command had moved away, and remove what others left."""
    left = [one for one in system.find_leftovers(path) if one.is_dir() and not one.is_symlink()]
    if not os.path.lexists(path):
        for old in [one for one in left if one.name.endswith(".old")][-1:]:
            old.rename(path)
            left.remove(old)
    for one in left:
        _discard_folder(one, path, lambda name: bool(files) and name not in files and not system.is_temporary(name))


def _sweep_files(path: Path) -> None:
    """Remove temporary files that were to become `path` and that no process holds any more."""
    for left in system.find_leftovers(path):
        if left.is_symlink() or not left.is_file():
            continue
        with suppress(OSError):
            descriptor = os.open(left, os.O_RDWR)
            try:
                if system.try_lock(descriptor):
                    left.unlink()
            finally:
                os.close(descriptor)


@contextmanager
def _make_parents(path: Path) -> Iterator[None]:
    """Make the folders above a path; remove those again if the block fails."""
    made = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        raise


# -- what is in a folder ------------------------------------------------------------------------------------------------


def refuse_foreign(target: Target, marks: Collection[str], files: Collection[str]) -> None:
    """Refuse to replace a folder that holds anything but hidden files, unless it has all marks and only `files`."""
    path = resolve_replaceable(target)
    with explain(target):
        found = {entry.name for entry in system.list_folder(path) if not _is_stray(entry)} if path.is_dir() else set()
    # A folder with all marks and nothing unknown was made by us; a user's own file among the known names proves nothing.
    other = sorted(found - {*files}) if marks and found.issuperset(marks) else sorted(found)
    if other:
        what = f"{path} holds other files and will not be replaced: {join_some(other)}"
        raise OutputError("output", [Problem(what, "give a new folder as --out")])


def _is_stray(entry: os.DirEntry[str]) -> bool:
    """Whether it is a hidden file, such as systems and killed commands leave."""
    if system.is_temporary(entry.name):
        return True
    return (entry.name.startswith(".") or entry.name in JUNK) and entry.is_file(follow_symlinks=False)


def _carry(source: Path, target: Path, wanted: Callable[[str], bool]) -> None:
    """Let `target` hold, too, what is wanted of `source` and not there yet: the same files by a second name."""
    for entry in system.list_folder(source):
        there = target / entry.name
        if not wanted(entry.name) or os.path.lexists(there):
            continue
        if entry.is_dir(follow_symlinks=False):
            there.mkdir(mode=0o700)
            _carry(Path(entry.path), there, lambda _: True)
            system.copy_rights(Path(entry.path), there)
        else:
            with suppress(FileNotFoundError):  # gone in the meantime
                _link(Path(entry.path), there)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in UNLINKED or not (source.is_symlink() or source.is_file()):
            raise
        shutil.copy2(source, target, follow_symlinks=False)
        if not target.is_symlink():
            system.copy_rights(source, target)


def _copy_earlier_rights(new: Path, folder: Path, files: frozenset[str]) -> None:
    """Give a file the rights of the one that it replaces; if it replaces none, those of the first of our others."""
    for name in (new.name, *sorted(files)):
        model = folder / name
        if model.is_file() and not model.is_symlink():
            if not model.samefile(new):
                system.copy_rights(model, new)
            return


def _discard_folder(old: Path, path: Path, is_foreign: Callable[[str], bool]) -> None:
    """Remove a folder; what is not ours, and is not in `path` yet, goes there first."""
    with suppress(OSError):
        if path.is_dir():
            _rescue(old, path, is_foreign)
        shutil.rmtree(old, ignore_errors=True)


def _rescue(old: Path, path: Path, is_foreign: Callable[[str], bool]) -> None:
    for entry in system.list_folder(old):
        there = path / entry.name
        if not is_foreign(entry.name):
            continue
        if not os.path.lexists(there):
            Path(entry.path).rename(there)
        elif entry.is_dir(follow_symlinks=False) and there.is_dir():
            _rescue(Path(entry.path), there, lambda _: True)
