"""Files without a name: they are gone when the command ends, however it ends. And folders for those who share a disk.

A private folder is one of a command that goes on for long: it goes with the command, and where that was killed, with the
next one that is started there.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from largesse.io import system
from largesse.io.places import explain


@dataclass(frozen=True, eq=False)
class Scratch:
    """An open file; what cannot be written is an error for people."""

    file: IO[bytes]
    near: Path

    def append(self, content: memoryview | bytes) -> None:
        """Write at the end."""
        with explain(self.near):
            self.file.write(content)

    def read(self, start: int, size: int) -> bytes:
        """Return some bytes of a finished file; several threads may read at once."""
        parts = []
        while size and (part := os.pread(self.file.fileno(), size, start)):
            parts.append(part)
            start, size = start + len(part), size - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def finish(self) -> None:
        """Let all that was written be read."""
        with explain(self.near):
            self.file.flush()


@contextmanager
def scratch_file(near: Path) -> Iterator[Scratch]:
    """Give a file without a name on the disk of the folder `near`."""
    with explain(near):
        file = tempfile.TemporaryFile(dir=near)  # noqa: SIM115
    with file:
        yield Scratch(file, near)


@contextmanager
def scratch_folder(near: Path) -> Iterator[Path]:
    """Give a folder with a hidden name in the folder `near`, where other processes can write, too; it goes at the end."""
    with explain(near):
        folder = system.name_beside(near.absolute() / "spool", "part")
        folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


LOCK = "lock"
YOUNG = 60.0  # seconds for which a private folder without a lock may still get one


@contextmanager
def private_folder(near: Path, word: str) -> Iterator[Path]:
    """Give a hidden folder in the folder `near` that only this user can read; it goes at the end.

    It is locked. Those that killed commands left are removed; those of commands that still run are left alone.
    """
    with explain(near):
        _sweep(near, word)
        folder = near.absolute() / f".{word}-{uuid.uuid4().hex[:8]}"
        folder.mkdir(mode=0o700)
    descriptor = -1
    try:
        with explain(near):
            waiting = folder / f"{LOCK}.new"
            descriptor = os.open(waiting, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            system.try_lock(descriptor)
            waiting.rename(folder / LOCK)  # whoever sees it finds it locked
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if descriptor >= 0:
            os.close(descriptor)


def _sweep(near: Path, word: str) -> None:
    """Remove private folders that nobody holds any more."""
    for entry in system.list_folder(near):
        if not re.fullmatch(rf"\.{re.escape(word)}-[0-9a-f]{{8}}", entry.name) or not entry.is_dir(
            follow_symlinks=False
        ):
            continue
        with suppress(OSError):
            if _is_left(Path(entry.path)):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return time.time() - folder.lstat().st_mtime > YOUNG
    try:
        return system.try_lock(descriptor)
    finally:
        os.close(descriptor)
