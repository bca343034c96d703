"""What the command line shows at the end: the answer as a table. Plain dicts of the report come in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from largesse.errors import make_visible
from largesse.report.formats import Units
from largesse.report.words import brief_urgent, select_notes, write_bound, write_gain, write_interval, write_value

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

MARKS = {"no": "✗", "careful": "!", "fine": "✓", "note": "·"}
COLOURS = {"no": "red", "careful": "yellow", "fine": "green", "note": ""}


def print_error(text: str) -> None:
    """Print an error as it stands, to the standard error."""
    from rich.console import Console

    Console(stderr=True).print(_text(f"largesse: {text}"), soft_wrap=True)


def print_answer(shown: dict[str, Any], folder: Path) -> None:
    """Print the answer of a run, what it is compared with, the warnings, and where everything is."""
    from rich.console import Console
    from rich.padding import Padding

    units = Units.of(shown)
    answer = shown["answer"]
    console = Console()
    console.print(_text(f"\n{shown['title']}\n", style="bold"))
    console.print(Padding(_text(answer["headline"], style="bold"), (0, 2, 1, 2)))
    console.print(Padding(_text(answer["verdict"]), (0, 2, 1, 2)))
    print_warnings(answer["warnings"], console)
    table = _table({"": "left", "value": "right", "95 % interval": "left", "spend": "right"})
    table.add_row("this plan", *_cells(units, shown), style="bold")
    for other in (*shown["safety"]["options"][1:], *shown["versus"]):
        table.add_row(_text(other["name"]), *_cells(units, other))
    console.print(table)
    for other in shown["versus"]:
        against = f"against {other['name']}: {write_gain(units, other['difference'])}"
        console.print(Padding(_text(against, style="dim"), (0, 2)))
    console.print()
    for note in select_notes(answer["warnings"]):
        console.print(Padding(_text(f"{MARKS[note['answer']]} {note['text']}"), (0, 2)))
    console.print(_text(f"\nEverything is in {folder}/  —  open {folder / 'report.html'}\n"), soft_wrap=True)


def print_bound(safety: Mapping[str, Any]) -> None:
    """Print what the recommended option gains at least, in plain numbers."""
    from rich.console import Console
    from rich.padding import Padding

    Console().print(Padding(_text(write_bound(Units("amount", ""), safety)), (0, 2, 1, 2)))


def print_warnings(warnings: Sequence[Mapping[str, Any]], console: Console | None = None) -> None:
    """Print every "no" and then every "careful", one sentence each; nothing where there are none."""
    from rich.console import Console
    from rich.padding import Padding

    urgent = brief_urgent(warnings)
    console = console or Console()
    for warning in urgent:
        text = f"{MARKS[warning['answer']]} {warning['answer']}: {warning['text']}"
        console.print(Padding(_text(text, style=COLOURS[warning["answer"]]), (0, 2)))
    if urgent:
        console.print()


def print_checkup(shown: dict[str, Any], out: Path | None) -> None:
    """Print the checks of a log, what each level brought, and where the page is."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table

    console = Console()
    console.print(_text(f"\n{shown['title']}: {shown['headline']}\n", style="bold"))
    checks = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), show_header=False)
    for check in shown["support"]["checks"]:
        mark = _text(MARKS[check["answer"]], style=COLOURS[check["answer"]])
        checks.add_row(mark, _text(check["topic"]), _text(check["text"]))
    console.print(checks)
    console.print()
    console.print(_level_table(shown))
    for note in shown["notes"]:
        console.print(Padding(_text("· " + note), (1, 2, 0, 2)))
    last = "--out page.html writes this as a page." if out is None else f"Wrote {out}"
    console.print(_text(f"\n{last}\n"), soft_wrap=True)


def _level_table(shown: dict[str, Any]) -> Table:
    units = Units.of(shown)
    sides = {"level": "left", "95 % interval": "left"}
    names = ("level", "rows", "effective", "least ρ", "mean", "95 % interval")
    table = _table({name: sides.get(name, "right") for name in names})
    for row, seen in zip(shown["curve"]["levels"], shown["support"]["overlap"], strict=True):
        counts = (f"{row['rows']:,}", f"{seen['effective']:,.0f}", f"{seen['smallest']:.3g}")
        table.add_row(
            _text(row["name"]), *counts, write_value(units, row["value"]), write_interval(units, row["value"])
        )
    return table


def _text(text: str, style: str = "") -> Text:
    """Return text for the terminal; what it holds cannot move the cursor, set a title or colour what follows."""
    from rich.text import Text

    return Text(make_visible(text), style=style)


def _table(columns: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 2))
    for name, side in columns.items():
        table.add_column(name, no_wrap=True, justify=side)
    return table


def _cells(units: Units, row: dict[str, Any]) -> tuple[str, str, str]:
    return write_value(units, row["value"]), write_interval(units, row["value"]), units.cost(row["spend"]["estimate"])
