"""What the command line shows of paced streams."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from largesse.errors import make_visible
from largesse.report.numbers import Units
from largesse.report.pacing.view import view_facts, view_way, write_notes


def print_pace(shown: Mapping[str, Any], out: Path | None) -> None:
    """Print the ways to pace as a table, the first stream's facts, and where the page is."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console, units = Console(), Units.of(shown)
    console.print(Text(make_visible(f"\n{shown['headline']}\n"), style="bold"), soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    columns = {
        "name": "",
        "over": "overspent",
        "value": "value",
        "worst": "worst",
        "gain": "gain",
        "use": "budget spent",
    }
    columns |= {"short": "went short"} | ({"refused": "refused"} if shown["lasts"] else {})
    for word, title in columns.items():
        table.add_column(title, justify="left" if word == "name" else "right")
    for row in shown["ways"]:
        way = view_way(row)
        table.add_row(*(Text(way[word]) for word in columns))
    console.print(Padding(table, (0, 2)))
    console.print(Padding(Text("value and gain: shares of the offline optimum", style="dim"), (0, 2)))
    facts = "; ".join(f"{name} {text}" for name, text in view_facts(shown["first"]["facts"], units))
    first = f"\n{'' if shown['streams'] == 1 else 'The first stream: '}{facts}."
    last = f"\nWrote {out}" if out else "\nAdd --out pace.html to see price, spend and value over time."
    for line in (first, *write_notes(shown), last):
        console.print(Text(make_visible(line)), soft_wrap=True)
