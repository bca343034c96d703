"""Files without a name: they are gone when the command ends, however it ends. And folders for those who share a disk."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from largesse.files import system
from largesse.files.places import explain


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
