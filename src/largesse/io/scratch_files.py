"""Temporary files without names, and private temporary folders.

A private folder belongs to a long-running command: it is removed with the command, or, if that was killed, by the next one that is
started there.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from largesse.io.atomic_replacement import hold_path_lock
from largesse.io.output_path_checks import wrap_os_error


@dataclass(frozen=True, eq=False)
class ScratchFile:
    """Open temporary file whose write errors become an `OutputError`."""

    file: IO[bytes]
    near: Path

    def append(self, content: memoryview | bytes) -> None:
        """Append bytes to the file."""
        with wrap_os_error(self.near):
            self.file.write(content)

    def finish(self) -> None:
        """Flush all written bytes to the file."""
        with wrap_os_error(self.near):
            self.file.flush()


@contextmanager
def scratch_file(near: Path) -> Iterator[ScratchFile]:
    """Yield an unnamed temporary file on the disk of a folder."""
    with wrap_os_error(near):
        file = tempfile.TemporaryFile(dir=near)  # noqa: SIM115
    with file:
        yield ScratchFile(file, near)


@contextmanager
def private_folder(near: Path, word: str) -> Iterator[Path]:
    """Yield a private temporary folder, and remove it at the end.

    Folders of killed commands are removed; folders of running commands are locked and stay.
    """
    from filelock import FileLock

    with wrap_os_error(near):
        near.stat()  # the lock would create a missing folder
    with wrap_os_error(near), hold_path_lock(near.absolute() / word):  # one command at a time removes and makes folders
        for left in near.iterdir():
            if (
                re.fullmatch(rf"\.{re.escape(word)}-[a-z0-9_]{{8}}", left.name)
                and left.is_dir()
                and not left.is_symlink()
            ):
                _remove_unused_folder(left)
        folder = Path(tempfile.mkdtemp(prefix=f".{word}-", dir=near.absolute()))
        lock = FileLock(folder / "lock")
        lock.acquire()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def _remove_unused_folder(folder: Path) -> None:
    from filelock import FileLock, Timeout

    with suppress(OSError, Timeout), FileLock(folder / "lock", timeout=0):
        shutil.rmtree(folder, ignore_errors=True)
