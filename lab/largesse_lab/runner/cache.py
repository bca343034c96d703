"""Records of a long experiment, one line of JSON each, appended as they are made, so that a stopped run can resume."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

from largesse.records import Progress
from largesse_lab.runner.request import Records

Key = tuple[Any, ...]


class Kept:
    """Records in memory and in a file; the fields `key` tell records apart."""

    def __init__(self, path: str | Path | None, key: Sequence[str]) -> None:
        self.path = None if path is None else Path(path)
        self.key = tuple(key)
        self.found: dict[tuple[Hashable, ...], dict[str, Any]] = {}
        if self.path is not None and self.path.exists():
            # A run that is killed while it writes leaves half a line.
            whole = self.path.read_text(encoding="utf-8").rpartition("\n")[0]
            self.path.write_text(whole + "\n" if whole else "", encoding="utf-8")
            for line in whole.splitlines():
                record = json.loads(line)
                self.found[self._key_of(record)] = record

    def _key_of(self, record: dict[str, Any]) -> tuple[Hashable, ...]:
        return tuple(record[name] for name in self.key)

    def add(self, record: dict[str, Any]) -> None:
        """Keep one more record."""
        self.found[self._key_of(record)] = record
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(record, ensure_ascii=False) + "\n")

    def take(self, keys: Iterable[Key]) -> Records:
        """Return the records of some keys, in their order."""
        return [self.found[key] for key in keys]

    def complete(
        self,
        groups: Sequence[Sequence[Key]],
        measure: Callable[[Sequence[Key]], Iterable[dict[str, Any]]],
        progress: Progress,
    ) -> None:
        """Measure the keys that have no record yet, one group after another."""
        for done, group in enumerate(groups):
            progress(", ".join(map(str, group[0])), done / len(groups))
            missing = [key for key in group if key not in self.found]
            if missing:
                for record in measure(missing):
                    self.add(record)
