"""Paths that the studio may read and write: names inside its folder, and tables that were sent to it. Links are not followed."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import shutil
import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from largesse.data import is_table
from largesse.errors import make_visible
from largesse.pipeline import FILES, MARKS
from largesse.serve import RequestError

MAX_RUN_NAME = 80  # letters
MAX_TABLE_NAME = 255
MAX_LISTED_TABLES = 500
MAX_TABLES, MAX_UPLOADS = 10, 4  # that are held, and that are sent at once
MAX_UPLOAD_BYTES = 4 << 30
FREE_BYTES = 256 << 20  # of the disk, which stay free
CHUNK_BYTES = 1 << 20
DEVICES = {"con", "prn", "aux", "nul", *(f"{word}{k}" for word in ("com", "lpt") for k in range(1, 10))}
ENDINGS = (".csv.gz", ".tsv.gz", ".txt.gz", ".csv", ".tsv", ".txt", ".parquet", ".pq", ".arrow", ".feather", ".ipc")
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Place:
    """The studio's folder, and the private one inside it that goes when the studio stops."""

    folder: Path
    private: Path

    def list_runs(self) -> list[Path]:
        """Return the run folders."""
        return [path for path in self._list() if is_run(path)]

    def list_tables(self) -> list[Path]:
        """Return the tables that can be picked."""
        found = (path for path in self._list() if is_table(path) and _is_regular(path))
        return sorted(found, key=lambda path: path.name)[:MAX_LISTED_TABLES]

    def find_run(self, name: str) -> Path:
        """Return a run folder by its name."""
        path = self.folder / check_component(name)
        if not is_run(path):
            raise RequestError(404, f"there is no run {name!r} here", "reload the page to see which there are")
        return path

    def find_table(self, name: str) -> Path:
        """Return a table by its name."""
        path = self.folder / check_component(name)
        if not (_is_regular(path) and is_table(path)):
            raise RequestError(404, f"there is no table {name!r} here", "reload the page to see which there are")
        return path

    def new_run(self, name: object) -> Path:
        """Return the path of a run that is not there yet; whatever has this name already is left alone."""
        path = self.folder / check_name(name)
        if os.path.lexists(path):
            raise RequestError(409, f"{path.name!r} is there already", "choose another name: nothing is replaced")
        return path

    def _list(self) -> list[Path]:
        with os.scandir(self.folder) as entries:
            return [Path(entry.path) for entry in entries if not entry.name.startswith(".")]


def is_run(path: Path) -> bool:
    """Whether a path is that of a run folder, and no link."""
    try:
        folder = stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False
    return folder and all(_is_regular(path / mark) for mark in MARKS)


def list_parts(run: Path) -> list[str]:
    """Return the files of a run that can be looked at, in the order of their names."""
    return sorted(name for name in FILES if _is_regular(run / name))


def open_part(run: Path, name: str) -> tuple[IO[bytes], int]:
    """Return an open file of a run, never one that a link leads to, and its size."""
    missing = RequestError(404, f"the run has no {name}", "run largesse again, or choose another file")
    if name not in FILES:
        raise missing
    try:
        file = os.open(run / name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise missing from error
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        os.close(file)
        raise missing
    return os.fdopen(file, "rb"), found.st_size


def check_name(name: object) -> str:
    """Return the name of a new run, if it is one: letters, digits, - _ . and spaces, and not too long."""
    hint = f"use up to {MAX_RUN_NAME} letters, digits, spaces and - _ . and begin with a letter or digit"
    if not isinstance(name, str):
        raise RequestError(400, "the run has no name", hint)
    fine = all(letter.isalnum() or letter in "-_. " for letter in name)
    named = name[:1].isalnum() and name[-1:] not in (".", " ") and name.split(".")[0].lower() not in DEVICES
    if not (0 < len(name) <= MAX_RUN_NAME and len(os.fsencode(name)) <= 200 and fine and named):
        raise RequestError(400, f"{name[:MAX_RUN_NAME]!r} cannot be the name of a run", hint)
    return name


def check_component(name: str) -> str:
    """Return a name that stands for one thing in one folder; refuse paths."""
    wrong = not name or name.startswith(".") or any(mark in name for mark in ("/", "\\", "\0", os.sep))
    if wrong or len(os.fsencode(name)) > 255 or Path(name).name != name:
        raise RequestError(404, f"{name[:MAX_RUN_NAME]!r} is not a name in this folder", "reload the page")
    return name


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


# -- tables --------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Table:
    """A table and the result of its inspection."""

    name: str
    path: Path
    own: bool  # it was sent: it lies in the private folder
    shown: dict[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    def describe(self) -> dict[str, Any]:
        """Return the table as the page is told of it."""
        return {"id": self.id, "name": self.name, "bytes": self.path.stat().st_size, **self.shown}


class Tables:
    """The tables of a studio. Those that were sent lie in its private folder, each in one of its own."""

    def __init__(self, private: Path, max_bytes: int = MAX_UPLOAD_BYTES) -> None:
        self._private, self._max_bytes = private, max_bytes
        self._known: dict[str, Table] = {}
        self._n_uploads = 0
        self.busy: str | None = None  # the table of the run that was started last

    def find(self, key: object) -> Table:
        """Return a table."""
        if not isinstance(key, str) or key not in self._known:
            raise RequestError(404, "there is no such table any more", "choose it again")
        return self._known[key]

    def limit(self) -> int:
        """Return how many bytes may be sent now: a few less than the disk has room for."""
        return max(min(self._max_bytes, shutil.disk_usage(self._private).free - FREE_BYTES), 0)

    def home(self, table: Table) -> Path:
        """Return the folder of a table inside the private one."""
        return self._private / table.id

    def add(self, table: Table) -> Table:
        """Keep a table in mind; of too many, the oldest that is not being learnt from is forgotten."""
        self._known[table.id] = table
        for old in [key for key in self._known if key != self.busy][: max(len(self._known) - MAX_TABLES, 0)]:
            self.drop(old)
        return table

    def drop(self, key: str) -> None:
        """Forget a table, and remove it if it was sent."""
        table = self.find(key)
        del self._known[key]
        shutil.rmtree(self.home(table), ignore_errors=True)

    def prepare(self, name: str, ending: str) -> Table:
        """Return a table whose file is still to be written."""
        if self._n_uploads >= MAX_UPLOADS:
            raise RequestError(409, f"{self._n_uploads} tables are coming in already", "wait for one of them")
        table = Table(check_file_name(name), Path(), own=True)
        self.home(table).mkdir(mode=0o700)
        table.path = self.home(table) / f"table{ending}"
        return table

    async def receive(self, name: str, length: str | None, body: AsyncIterator[bytes]) -> Table:
        """Write what is sent to the disk, piece by piece; nothing of it stays if it is too large or breaks off."""
        most = self.limit()
        if length is not None and (not length.isdigit() or len(length) > 18 or int(length) > most):
            raise _too_large(most)
        table = self.prepare(name, find_ending(name))
        self._n_uploads += 1
        try:
            with table.path.open("wb") as file:
                got = await _write(file, body, most, self.limit)
            if got == 0:
                raise RequestError(400, f"{table.name} is empty (0 bytes)", "was the export interrupted?")
        except BaseException as error:
            shutil.rmtree(self.home(table), ignore_errors=True)
            if isinstance(error, OSError) and error.errno in DISK_FULL:
                raise _too_large(0) from error
            raise
        finally:
            self._n_uploads -= 1
        return table


async def _write(file: IO[bytes], body: AsyncIterator[bytes], most: int, limit: Any) -> int:
    """Write pieces as they come; return how many bytes there were."""
    got, held, pieces = 0, 0, []
    async for piece in body:
        got += len(piece)
        if got > most:
            raise _too_large(most)
        pieces.append(piece)
        held += len(piece)
        if held >= CHUNK_BYTES:
            await asyncio.to_thread(file.writelines, pieces)
            held, pieces = 0, []
            if limit() == 0:
                raise _too_large(got)
    await asyncio.to_thread(file.writelines, pieces)
    return got


def find_ending(name: str) -> str:
    """Return the ending of a table's name, which says how it is written; none if it does not.

    >>> find_ending("Log 2026.CSV.gz"), find_ending("log")
    ('.csv.gz', '')
    """
    return next((ending for ending in ENDINGS if name.lower().endswith(ending)), "")


def check_file_name(name: str) -> str:
    """Return the name of a table, to be shown; it never becomes a path."""
    if not 0 < len(name) <= MAX_TABLE_NAME:
        raise RequestError(400, f"the name of the table has {len(name)} letters", f"give one of 1 to {MAX_TABLE_NAME}")
    return make_visible(name).replace("\n", " ")


def _too_large(most: int) -> RequestError:
    room = f"{most / 1e9:,.1f} GB" if most >= 1e9 else f"{most / 1e6:,.1f} MB"
    hint = "put the file into the studio's folder and pick it there, or free some space on the disk"
    return RequestError(413, f"the table is larger than the {room} that can be sent now", hint)
