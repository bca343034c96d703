"""Files that the studio may read and write: run folders and tables in its folder, and uploaded tables.

Links are not followed.
"""

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

from largesse.data import is_table_file
from largesse.errors import join_some, make_visible
from largesse.pipeline import RUN_FILES, RUN_FOLDER_MARKS
from largesse.serve import RequestError

MAX_RUN_NAME_LETTERS, MAX_TABLE_NAME_LETTERS = 80, 255
MAX_LISTED_TABLES = 500
MAX_KEPT_TABLES, MAX_UPLOADS_AT_ONCE = 10, 4
MAX_UPLOAD_BYTES = 4 << 30
MIN_FREE_BYTES = 256 << 20  # of the disk
WRITE_BYTES = 1 << 20
DEVICES = {"con", "prn", "aux", "nul", *(f"{word}{k}" for word in ("com", "lpt") for k in range(1, 10))}
UPLOAD_ENDINGS = (
    *(".csv.gz", ".tsv.gz", ".txt.gz", ".csv", ".tsv", ".txt"),
    *(".parquet", ".pq", ".arrow", ".feather", ".ipc"),
)
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class StudioFolder:
    """The studio's folder of runs and tables, with a private subfolder that is removed at the end."""

    path: Path
    private: Path

    def list_runs(self) -> list[Path]:
        """Return the paths of the run folders."""
        return [path for path in self._list_entries() if is_run_folder(path)]

    def list_tables(self) -> list[Path]:
        """Return the paths of the tables that the page offers."""
        tables = (path for path in self._list_entries() if is_table_file(path) and _is_regular_file(path))
        return sorted(tables, key=lambda path: path.name)[:MAX_LISTED_TABLES]

    def find_run(self, name: str) -> Path:
        """Return the path of a run folder by its name; refuse an unknown name."""
        path = self.path / check_file_name(name)
        if not is_run_folder(path):
            raise RequestError(404, f"there is no run {name!r} here", "reload the page to see which there are")
        return path

    def find_table(self, name: str) -> Path:
        """Return the path of a table by its name; refuse an unknown name."""
        path = self.path / check_file_name(name)
        if not (_is_regular_file(path) and is_table_file(path)):
            raise RequestError(404, f"there is no table {name!r} here", "reload the page to see which there are")
        return path

    def make_run_path(self, name: object) -> Path:
        """Return the path of a new run folder; refuse the name of an existing file or folder."""
        path = self.path / check_run_name(name)
        if os.path.lexists(path):
            raise RequestError(409, f"{path.name!r} is there already", "choose another name: nothing is replaced")
        return path

    def rename_run(self, path: Path, name: object) -> Path:
        """Rename a run folder, and return its new path; refuse the name of an existing file or folder."""
        renamed = self.make_run_path(name)
        path.rename(renamed)
        return renamed

    def move_run_to_private_folder(self, path: Path) -> Path:
        """Move a run folder to the private folder for deletion; refuse a folder with unknown files."""
        foreign = sorted(entry.name for entry in path.iterdir() if entry.name not in RUN_FILES)
        if foreign:
            problem = f"the folder of {path.name!r} also holds {join_some(foreign)}"
            raise RequestError(409, problem, "move them elsewhere, or delete the folder yourself")
        return path.rename(self.private / secrets.token_hex(8))

    def _list_entries(self) -> list[Path]:
        with os.scandir(self.path) as entries:
            return [Path(entry.path) for entry in entries if not entry.name.startswith(".")]


def is_run_folder(path: Path) -> bool:
    """Return True if a path is a run folder, and not a link to one."""
    try:
        folder = stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False
    return folder and all(_is_regular_file(path / mark) for mark in RUN_FOLDER_MARKS)


def list_run_files(run: Path) -> list[str]:
    """Return the names of a run's readable files, sorted."""
    return sorted(name for name in RUN_FILES if _is_regular_file(run / name))


def open_run_file(run: Path, name: str) -> tuple[IO[bytes], int]:
    """Open a regular file of a run for reading; return it with its size in bytes."""
    missing = RequestError(404, f"the run has no {name}", "run largesse again, or choose another file")
    if name not in RUN_FILES:
        raise missing
    try:
        file = os.open(run / name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise missing from error
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        os.close(file)
        raise missing
    return os.fdopen(file, "rb"), status.st_size


def check_run_name(name: object) -> str:
    """Return the name of a new run if it is valid; refuse it otherwise."""
    hint = f"use up to {MAX_RUN_NAME_LETTERS} letters, digits, spaces and - _ . and begin with a letter or digit"
    if not isinstance(name, str):
        raise RequestError(400, "the run has no name", hint)
    letters = all(letter.isalnum() or letter in "-_. " for letter in name)
    ends = name[:1].isalnum() and name[-1:] not in (".", " ") and name.split(".")[0].lower() not in DEVICES
    if not (0 < len(name) <= MAX_RUN_NAME_LETTERS and len(os.fsencode(name)) <= 200 and letters and ends):
        raise RequestError(400, f"{name[:MAX_RUN_NAME_LETTERS]!r} cannot be the name of a run", hint)
    return name


def check_file_name(name: str) -> str:
    """Return the name of one file or folder; refuse a path with several parts."""
    invalid = not name or name.startswith(".") or any(mark in name for mark in ("/", "\\", "\0", os.sep))
    if invalid or len(os.fsencode(name)) > 255 or Path(name).name != name:
        raise RequestError(404, f"{name[:MAX_RUN_NAME_LETTERS]!r} is not a name in this folder", "reload the page")
    return name


def _is_regular_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


# -- tables ------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class StudioTable:
    """A table that was chosen or uploaded on the page, with the result of its inspection."""

    name: str
    path: Path
    uploaded: bool  # uploaded tables lie in the private folder
    inspection: dict[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    def describe(self) -> dict[str, Any]:
        """Return the table's name, size and inspection as JSON types."""
        return {"id": self.id, "name": self.name, "bytes": self.path.stat().st_size, **self.inspection}


class TableStore:
    """Store of the tables chosen or uploaded on the page; each table has its own private folder."""

    def __init__(self, private: Path, max_bytes: int = MAX_UPLOAD_BYTES) -> None:
        self._private, self._max_bytes = private, max_bytes
        self._tables: dict[str, StudioTable] = {}
        self._n_uploads = 0
        self.busy: str | None = None  # the table of the run that was started last

    def find(self, key: object) -> StudioTable:
        """Return a table by its id; refuse an unknown id."""
        if not isinstance(key, str) or key not in self._tables:
            raise RequestError(404, "there is no such table any more", "choose it again")
        return self._tables[key]

    def replace_paths(self, text: str) -> str:
        """Replace the paths of tables in a message by the tables' names."""
        for table in self._tables.values():
            text = text.replace(str(table.path), table.name)
        return text

    def find_upload_limit(self) -> int:
        """Return the number of bytes that may be uploaded now; some disk space stays free."""
        return max(min(self._max_bytes, shutil.disk_usage(self._private).free - MIN_FREE_BYTES), 0)

    def find_folder(self, table: StudioTable) -> Path:
        """Return the private folder of a table."""
        return self._private / table.id

    def add(self, table: StudioTable) -> StudioTable:
        """Add a table; if there are too many, remove the oldest unused table."""
        self._tables[table.id] = table
        for old in [key for key in self._tables if key != self.busy][: max(len(self._tables) - MAX_KEPT_TABLES, 0)]:
            self.drop(old)
        return table

    def drop(self, key: str) -> None:
        """Remove a table from the store, and delete its file if it was uploaded."""
        table = self.find(key)
        del self._tables[key]
        shutil.rmtree(self.find_folder(table), ignore_errors=True)

    def prepare_table(self, name: str, ending: str) -> StudioTable:
        """Make the private folder of a new table, and return the table without its file."""
        if self._n_uploads >= MAX_UPLOADS_AT_ONCE:
            raise RequestError(409, f"{self._n_uploads} tables are being uploaded already", "wait for one of them")
        if not 0 < len(name) <= MAX_TABLE_NAME_LETTERS:
            hint = f"give one of 1 to {MAX_TABLE_NAME_LETTERS}"
            raise RequestError(400, f"the name of the table has {len(name)} letters", hint)
        if name.lower().endswith(SPREADSHEETS):
            hint = "save the sheet as CSV UTF-8 (File, Save as), and choose that file"
            raise RequestError(400, f"{make_visible(name)} is a spreadsheet", hint)
        # The name is only shown: it never becomes a path.
        table = StudioTable(make_visible(name).replace("\n", " "), Path(), uploaded=True)
        self.find_folder(table).mkdir(mode=0o700)
        table.path = self.find_folder(table) / f"table{ending}"
        return table

    async def receive_upload(self, name: str, length: str | None, body: AsyncIterator[bytes]) -> StudioTable:
        """Write an uploaded table to the disk; delete it if it is too large or incomplete."""
        limit = self.find_upload_limit()
        if length is not None and (not length.isdigit() or len(length) > 18 or int(length) > limit):
            raise _make_upload_size_error(limit)
        table = self.prepare_table(name, find_file_ending(name))
        self._n_uploads += 1
        try:
            with table.path.open("wb") as file:
                size = await self._write_pieces(file, body, limit)
            if size == 0:
                raise RequestError(400, f"{table.name} is empty (0 bytes)", "was the export interrupted?")
        except BaseException as error:
            shutil.rmtree(self.find_folder(table), ignore_errors=True)
            if isinstance(error, OSError) and error.errno in DISK_FULL:
                raise _make_upload_size_error(0) from error
            raise
        finally:
            self._n_uploads -= 1
        return table

    async def _write_pieces(self, file: IO[bytes], body: AsyncIterator[bytes], limit: int) -> int:
        """Write the byte blocks of an upload as they arrive; return their total size in bytes."""
        size, waiting, pieces = 0, 0, []
        async for piece in body:
            size += len(piece)
            if size > limit:
                raise _make_upload_size_error(limit)
            pieces.append(piece)
            waiting += len(piece)
            if waiting >= WRITE_BYTES:
                await asyncio.to_thread(file.writelines, pieces)
                waiting, pieces = 0, []
                if self.find_upload_limit() == 0:
                    raise _make_upload_size_error(size)
        await asyncio.to_thread(file.writelines, pieces)
        return size


def find_file_ending(name: str) -> str:
    """Return the ending of a table's file name (".csv", ".parquet", …); empty if unknown.

    >>> find_file_ending("Log 2026.CSV.gz"), find_file_ending("log")
    ('.csv.gz', '')
    """
    return next((ending for ending in UPLOAD_ENDINGS if name.lower().endswith(ending)), "")


def _make_upload_size_error(limit: int) -> RequestError:
    size = f"{limit / 1e9:,.1f} GB" if limit >= 1e9 else f"{limit / 1e6:,.1f} MB"
    hint = "put the file into the studio's folder and pick it there, or free some space on the disk"
    return RequestError(413, f"the table is larger than the {size} that can be uploaded now", hint)
