"""What the system is asked for: to keep others away, to let two folders change places, to bring bytes to the disk."""

from __future__ import annotations

import errno
import functools
import os
import re
import signal
import stat
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from largesse.errors import OutputError, Problem

WAIT = 10.0  # seconds until a command gives up waiting for another one
AT_CWD, EXCHANGE = -100, 2  # of renameat2
CANNOT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}
TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.(part|old)(\.\w+)?", re.DOTALL)
LONGEST = 200  # bytes of a name that others are made from; systems allow 255


# -- temporary names ----------------------------------------------------------------------------------------------------


def name_beside(path: Path, end: str) -> Path:
    """Return a new temporary name beside a path."""
    return path.parent / f".{_stem(path)}.{uuid.uuid4().hex[:8]}.{end}"


def is_temporary(name: str) -> bool:
    """Whether a name is one that only this package gives.

    >>> is_temporary(".plan.parquet.8f30e26a.part"), is_temporary("plan.parquet")
    (True, False)
    """
    return TEMPORARY.fullmatch(name) is not None


def list_folder(path: Path) -> list[os.DirEntry[str]]:
    """Return what a folder holds. The listing is closed before anything is done with it, which may fail half-way."""
    with os.scandir(path) as entries:
        return list(entries)


def find_leftovers(path: Path) -> list[Path]:
    """Return what has a temporary name made from that of `path`, oldest first: commands that were killed left it."""
    mine = re.compile(re.escape(f".{_stem(path)}.") + r"[0-9a-f]{8}\.(part|old)(\.\w+)?", re.DOTALL)
    try:
        found = [Path(entry.path) for entry in list_folder(path.parent) if mine.fullmatch(entry.name)]
        return sorted(found, key=lambda one: one.lstat().st_mtime_ns)
    except OSError:  # not there, not readable, or somebody else has just removed one
        return []


def _stem(path: Path) -> str:
    if len(os.fsencode(path.name)) <= LONGEST:
        return path.name
    return f"{path.name[: LONGEST // 8]}-{uuid.uuid5(uuid.NAMESPACE_URL, os.fsencode(path.name).hex()).hex}"


# -- locks --------------------------------------------------------------------------------------------------------------


@contextmanager
def hold(path: Path) -> Iterator[bool]:
    """Keep other commands away from a path by a lock file beside it; yield whether the system really does."""
    lock = path.parent / f".{_stem(path)}.largesse.lock"
    descriptor, held = _acquire(lock, path)
    try:
        yield held
    finally:
        with suppress(OSError):
            if held and os.fstat(descriptor).st_size == 0:
                lock.unlink()
        os.close(descriptor)


def _acquire(lock: Path, path: Path) -> tuple[int, bool]:
    """Return the open lock file and whether it is locked; wait a little for another command to end."""
    end = time.monotonic() + WAIT
    while True:
        descriptor = _open_lock(lock)
        try:
            held = try_lock(descriptor)
        except BlockingIOError as error:
            os.close(descriptor)
            if time.monotonic() > end:
                problem = Problem(f"{path} is in use by another largesse command", "wait for it to end, and try again")
                raise OutputError("output", [problem]) from error
            time.sleep(0.02)
            continue
        except BaseException:
            os.close(descriptor)
            raise
        if not held or _is_still(descriptor, lock):
            return descriptor, held
        os.close(descriptor)  # its last owner removed it while we waited


def _open_lock(lock: Path) -> int:
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except PermissionError:
        return os.open(lock, os.O_RDONLY)  # of another user; reading is enough to lock it


def try_lock(descriptor: int) -> bool:
    """Lock an open file, or raise BlockingIOError; return False where the system has no locks."""
    try:
        import fcntl
    except ImportError:  # a system without these locks
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno in CANNOT:
            return False
        raise
    return True


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


# -- changing places ----------------------------------------------------------------------------------------------------


def swap(part: Path, path: Path) -> Path | None:
    """Let `part` take the place of `path`; return where the earlier one is now, if there was one.

    Where the system cannot do it in one step there are two; a kill between them leaves the earlier one as `….old`.
    """
    if not os.path.lexists(path):
        part.rename(path)
        return None
    if exchange(part, path):
        return part
    old = name_beside(path, "old")
    path.rename(old)
    try:
        part.rename(path)
    except BaseException:
        old.rename(path)
        raise
    return old


def swap_back(part: Path, path: Path, old: Path | None) -> None:
    """Undo `swap`, which returned `old`."""
    if old != part:
        path.rename(part)
        if old is not None:
            old.rename(path)
    elif not exchange(part, path):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))


def exchange(first: Path, second: Path) -> bool:
    """Let two paths change places in one step; return False where the system cannot."""
    import ctypes

    rename = _find_renameat2()
    if rename is None:
        return False
    if rename(AT_CWD, os.fsencode(first), AT_CWD, os.fsencode(second), EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(second))


@functools.cache
def _find_renameat2() -> Callable[..., Any] | None:
    import ctypes

    try:
        found = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, TypeError, AttributeError):
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    found.restype = ctypes.c_int
    return found


@contextmanager
def delay_signals() -> Iterator[None]:
    """Let an interrupt wait until the block ends: there are moments that must not be cut in two."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are raised in the main thread alone
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, lambda got, _frame: came.append(got))
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


# -- bytes and rights ---------------------------------------------------------------------------------------------------


def sync_file(path: Path) -> None:
    """Bring a file's bytes to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Bring a folder's names to the disk, as far as the system can."""
    try:
        sync_file(path)
    except OSError as error:
        if error.errno not in {*CANNOT, errno.EBADF, errno.EISDIR, errno.EACCES}:
            raise


def copy_rights(source: Path, target: Path) -> None:
    """Give a file or folder the owner, mode and access lists of another, as far as this user may."""
    wanted, got = source.stat(), target.stat()
    if (wanted.st_uid, wanted.st_gid) != (got.st_uid, got.st_gid):
        with suppress(OSError, AttributeError):
            os.chown(target, -1, wanted.st_gid)
        with suppress(OSError, AttributeError):
            os.chown(target, wanted.st_uid, -1)
    target.chmod(stat.S_IMODE(wanted.st_mode))
    with suppress(OSError, AttributeError):
        for name in os.listxattr(source):
            os.setxattr(target, name, os.getxattr(source, name))
