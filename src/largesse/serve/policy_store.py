"""The policy that is served: loaded once, and again when its file changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from largesse.data import Row, RowEncoder, read_customers
from largesse.errors import LargesseError, Problem, fail, repr_short
from largesse.serve.opened import OpenedPolicy, find_policy, open_policy
from largesse.serve.telling import hush

LOOK = 1.0  # seconds between two looks at the file
USUAL = "customer"  # the key that holds a customer's id, where the campaign names none
Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Served:
    """A policy, ready to decide for rows of JSON."""

    opened: OpenedPolicy
    rows: RowEncoder

    @property
    def version(self) -> str:
        """Other policies have other versions."""
        return self.opened.version

    @property
    def labels(self) -> tuple[str, ...]:
        """How the levels are called."""
        return self.opened.policy.levels.labels

    @property
    def key(self) -> str:
        """Where a row says who the customer is."""
        return self.opened.customer or USUAL

    def prepare(self, rows: Sequence[Row]) -> Any:
        """Return rows' customers as the policy takes them; refuse rows that the log's rules do not allow."""
        policy = self.opened.policy
        encoded = self.rows.encode(rows)
        if not policy.levels.cost_columns:
            return encoded
        names = (*policy.model.encoder_.features, *policy.levels.cost_columns)
        table = {name: [row.get(name) for row in rows] for name in dict.fromkeys(names)}
        return read_customers(table, levels=policy.levels, parse=self.opened.parse)

    def name(self, rows: Sequence[Row], needed: bool) -> list[Any]:
        """Return the ids of rows as they are given; where none is needed, missing ones are None."""
        key = self.key
        ids = [row.get(key) for row in rows]
        if set(map(type, ids)) == {str}:
            return ids
        for at, found in enumerate(ids):
            if isinstance(found, bool) or not isinstance(found, str | int | None) or (needed and found is None):
                got = f"customer {at + 1} of {len(ids)} has the id {repr_short(found)}"
                fail("customers", Problem(got, f"give {self.key!r} as text or a whole number"))
        return ids


def load_served(source: Path) -> Served:
    """Load the policy of a run folder or a file."""
    opened = open_policy(source)
    return Served(opened, RowEncoder(opened.policy.model.encoder_, opened.parse))


class Watched:
    """The current policy of a run folder; once `keep_up` is called, a new one takes its place when its file changes.

    Parameters
    ----------
    source
        The run folder, or the policy file.
    accept
        Refuses a policy that must not take the place of the current one.
    say, warn
        Are told when another policy decides, and when a new one cannot.
    """

    def __init__(
        self, source: Path, accept: Callable[[Served], None] = lambda _: None, say: Tell = hush, warn: Tell = hush
    ) -> None:
        self._source, self._accept, self._say, self._warn = source, accept, say, warn
        self._mark = self._look()
        self.current = load_served(source)
        self.reloads = 0
        self.problem: str | None = None  # why the newest policy is not served

    def keep_up(self) -> None:
        """Look at the file from now on, in a thread of its own."""

        def look() -> None:
            while True:
                time.sleep(LOOK)
                self.refresh()

        threading.Thread(target=look, daemon=True).start()

    def refresh(self) -> None:
        """Load the policy again if its file has changed. Until it is loaded, and where it cannot be, the old one decides."""
        mark = self._look()
        if mark is None or mark == self._mark:
            return
        self._mark = mark
        try:
            found = load_served(self._source)
            self._accept(found)
        except Exception as error:  # whatever is wrong with it, the old policy goes on
            self.problem = str(error) if isinstance(error, LargesseError | OSError) else repr(error)
            self._warn(f"policy {self.current.version} goes on, for the new one cannot be served\n{self.problem}")
            return
        before, self.current, self.problem = self.current, found, None
        self.reloads += 1
        if found.version != before.version:
            self._say(f"Policy {found.version} decides now.")

    def _look(self) -> tuple[int, int, int] | None:
        """Return what tells one version of the file from another; None while it is not there."""
        try:
            found = find_policy(self._source).stat()
        except (LargesseError, OSError):
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size
