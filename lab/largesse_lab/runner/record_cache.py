"""Cache of an experiment's records as JSON lines, from which a stopped run resumes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from largesse.records import Progress
from largesse_lab.runner.experiment_request import Records

Key = tuple[Any, ...]


class RecordCache:
    """Records in memory and in a file, identified by the values of their key fields."""

    def __init__(self, path: str | Path | None, key: Sequence[str]) -> None:
        self.path = None if path is None else Path(path)
        self.key = tuple(key)
        self.records: dict[Key, dict[str, Any]] = {}
        if self.path is not None and self.path.exists():
            # A run that is killed while it writes leaves half a line.
            complete = self.path.read_text(encoding="utf-8").rpartition("\n")[0]
            self.path.write_text(complete + "\n" if complete else "", encoding="utf-8")
            for record in map(json.loads, complete.splitlines()):
                self.records[tuple(record[name] for name in self.key)] = record

    def add(self, record: dict[str, Any]) -> None:
        """Append one record to the cache."""
        self.records[tuple(record[name] for name in self.key)] = record
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(record, ensure_ascii=False) + "\n")

    def select(self, keys: Iterable[Key]) -> Records:
        """Return the records of the given keys, in their order."""
        return [self.records[key] for key in keys]

    def measure_groups(
        self,
        groups: Sequence[Sequence[Key]],
        measure: Callable[[Sequence[Key]], Iterable[dict[str, Any]]],
        progress: Progress,
    ) -> Records:
        """Measure the keys without a record in groups, and return the records of all groups."""
        for i, group in enumerate(groups):
            progress(", ".join(map(str, group[0])), i / len(groups))
            missing = [key for key in group if key not in self.records]
            if missing:
                for record in measure(missing):
                    self.add(record)
        return self.select(chain.from_iterable(groups))

    def measure_each(self, keys: Iterable[Key], measure: Callable[..., dict[str, Any]], progress: Progress) -> Records:
        """Measure each key without a record by `measure(*key)`, and return the records of all keys."""
        return self.measure_groups([[key] for key in keys], lambda missing: [measure(*missing[0])], progress)
