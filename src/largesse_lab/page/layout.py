"""What a table of methods shows, and how records become its summary and its Markdown: one way for all the paper's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from largesse_lab.page import summaries
from largesse_lab.page.orderings import CLAIMS, OURS, pairs

KEY = ("simulation", "repeat", "row")


@dataclass(frozen=True)
class Layout:
    """Rows in their order, columns and their headings, the row that differences are from, what the paper printed."""

    simulations: Sequence[str]
    rows: Mapping[str, Any]
    columns: Mapping[str, str]
    paper: summaries.Paper
    base: str = "CCPOvSIRE"

    def in_order(self, records: summaries.Records) -> list[dict[str, Any]]:
        """Return the records of rows, each simulation, repeat and row once (the latest), in the order of the table."""
        mine = [r for r in summaries.latest(records, KEY) if r["row"] in self.rows]
        names, rows = list(self.simulations), list(self.rows)
        return sorted(mine, key=lambda r: (names.index(r["simulation"]), rows.index(r["row"]), r["repeat"]))

    def summary(self, records: summaries.Records) -> dict[str, Any]:
        """Return means, deviations and paired differences: from the base row, and of the rows that are to be ordered."""
        told, columns = self.in_order(records), list(self.columns)
        by = {name: [r for r in told if r["simulation"] == name] for name in summaries.names(told, "simulation")}
        rivals = [(ours, row) for ours in OURS for row in self.paper]
        return {
            "base": self.base,
            "simulations": {name: summaries.by_row(mine, columns, self.base) for name, mine in by.items()},
            "pairs": pairs(told, columns, [*CLAIMS, *rivals]),
            "paper": {row: {column: list(pair) for column, pair in cells.items()} for row, cells in self.paper.items()},
            "small": sum(bool(record.get("small")) for record in told),  # records of networks that had no GPU
        }

    def table(self, summary: Mapping[str, Any]) -> str:
        """Return a summary as Markdown: a table for each simulation, the paper's own numbers beside, and the notes."""
        text: list[str] = []
        for name, rows in summary["simulations"].items():
            repeats = max((cell["n"] for row in rows.values() for cell in row["cells"].values() if cell), default=0)
            text += [f"### {name}, {repeats} repeats", "", *summaries.lines(rows, self.columns, self.paper), ""]
        return "\n".join([*text, *(f"- {note}" for note in summary["notes"])]) + "\n"
