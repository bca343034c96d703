"""Results of a long experiment, kept as they come: one line of JSON each, so that a run that was stopped goes on."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any


class Kept:
    """Results so far, in memory and in a file that grows by one line at a time; `key` names what tells them apart."""

    def __init__(self, path: str | Path | None, key: Sequence[str]) -> None:
        self.path = None if path is None else Path(path)
        self.key = tuple(key)
        self.found: dict[tuple[Hashable, ...], dict[str, Any]] = {}
        if self.path is not None and self.path.exists():
            # A run killed while writing leaves half a line.
            whole = self.path.read_text(encoding="utf-8").rpartition("\n")[0]
            self.path.write_text(whole + "\n" if whole else "", encoding="utf-8")
            for line in whole.splitlines():
                record = json.loads(line)
                self.found[self._of(record)] = record

    def _of(self, record: dict[str, Any]) -> tuple[Hashable, ...]:
        return tuple(record[name] for name in self.key)

    def add(self, record: dict[str, Any]) -> None:
        """Keep one more result."""
        self.found[self._of(record)] = record
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(record, ensure_ascii=False) + "\n")
