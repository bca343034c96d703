"""Tables that wait to be used: files that were sent, and files of the folder that were picked."""

from __future__ import annotations

import asyncio
import errno
import secrets
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from largesse.errors import make_visible
from largesse.serve import RequestError

UPLOAD = 4 << 30  # bytes that a table may have
MARGIN = 256 << 20  # bytes of the disk that stay free
MOST_TABLES, MOST_COMING = 10, 4
ENDINGS = (".csv.gz", ".tsv.gz", ".txt.gz", ".csv", ".tsv", ".txt", ".parquet", ".pq", ".arrow", ".feather", ".ipc")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
CHUNK = 1 << 20  # bytes that are gathered before they are written
LONGEST = 255  # letters of the name of a table


@dataclass(eq=False)
class Table:
    """A table and what a look at it showed."""

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

    def __init__(self, private: Path, most: int = UPLOAD) -> None:
        self._private, self._most = private, most
        self._known: dict[str, Table] = {}
        self._coming = 0
        self.busy: str | None = None  # the table of the run that was started last

    def find(self, key: object) -> Table:
        """Return a table."""
        if not isinstance(key, str) or key not in self._known:
            raise RequestError(404, "there is no such table any more", "choose it again")
        return self._known[key]

    def limit(self) -> int:
        """Return how many bytes may be sent now: a few less than the disk has room for."""
        return max(min(self._most, shutil.disk_usage(self._private).free - MARGIN), 0)

    def home(self, table: Table) -> Path:
        """Return the folder of a table inside the private one."""
        return self._private / table.id

    def add(self, table: Table) -> Table:
        """Keep a table in mind; of too many, the oldest that is not being learnt from is forgotten."""
        self._known[table.id] = table
        for old in [key for key in self._known if key != self.busy][: max(len(self._known) - MOST_TABLES, 0)]:
            self.drop(old)
        return table

    def drop(self, key: str) -> None:
        """Forget a table, and remove it if it was sent."""
        table = self.find(key)
        del self._known[key]
        shutil.rmtree(self.home(table), ignore_errors=True)

    def prepare(self, name: str, ending: str) -> Table:
        """Return a table whose file is still to be written."""
        if self._coming >= MOST_COMING:
            raise RequestError(409, f"{self._coming} tables are coming in already", "wait for one of them")
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
        self._coming += 1
        try:
            with table.path.open("wb") as file:
                got = await _write(file, body, most, self.limit)
            if got == 0:
                raise RequestError(400, f"{table.name} is empty (0 bytes)", "was the export interrupted?")
        except BaseException as error:
            shutil.rmtree(self.home(table), ignore_errors=True)
            if isinstance(error, OSError) and error.errno in FULL:
                raise _too_large(0) from error
            raise
        finally:
            self._coming -= 1
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
        if held >= CHUNK:
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
    if not 0 < len(name) <= LONGEST:
        raise RequestError(400, f"the name of the table has {len(name)} letters", f"give one of 1 to {LONGEST}")
    return make_visible(name).replace("\n", " ")


def _too_large(most: int) -> RequestError:
    room = f"{most / 1e9:,.1f} GB" if most >= 1e9 else f"{most / 1e6:,.1f} MB"
    hint = "put the file into the studio's folder and pick it there, or free some space on the disk"
    return RequestError(413, f"the table is larger than the {room} that can be sent now", hint)
