"""What the command line shows at the end: the answer as a table. Plain dicts of the report come in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from largesse.errors import make_visible, plural
from largesse.records import PowerAnalysis, write_size
from largesse.report.number_format import THIN, Style, Units, finite, write_percent
from largesse.report.sentences import (
    brief_urgent,
    judge_profit,
    select_notes,
    write_best,
    write_bound,
    write_explored,
    write_gain,
    write_interval,
    write_sentences,
    write_value,
)

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

    answer, console = shown["answer"], Console()
    console.print(_text(f"\n{shown['title']}\n", style="bold"))
    _print_verdict(console, answer)
    print_warnings(answer["warnings"], console)
    _print_comparisons(console, shown)
    for note in select_notes(answer["warnings"]):
        console.print(Padding(_text(f"{MARKS[note['answer']]} {note['text']}"), (0, 2)))
    console.print(_text(f"\nEverything is in {folder}/  —  open {folder / 'report.html'}\n"), soft_wrap=True)


def print_plan(shown: Mapping[str, Any], path: Path, folder: Path) -> None:
    """Print what a plan costs, who gets what, what more budget would buy, and where the plan is.

    A report of another plan that was in the run folder is gone: how to make a new one is said.
    """
    from rich.console import Console

    units, planned, budget, console = Units.of(shown), shown["planned"], shown["budget"], Console()
    style = units.money([planned["spend"], budget["average"]])
    each = f"{style.text(planned['spend'])} each"
    within = "" if budget["average"] is None else f", within a budget of {style.text(budget['average'])}"
    console.print(_text(f"planned {plural(shown['customers'], 'customer')} at {each}{within}\n", style="bold"))
    table = _table({"level": "left", "customers": "right", "share": "right", "spend in all": "right"})
    spends = units.money([row["spend"] for row in shown["money"]["levels"]])
    for row in shown["money"]["levels"]:
        cells = (f"{row['customers']:,}", write_percent(row["share"]), spends.text(row["spend"]))
        table.add_row(_text(row["name"]), *cells)
    console.print(table)
    console.print(_text(f"\n{_write_price(units, shown)}"), soft_wrap=True)
    if planned["confidence"] is not None:
        sure = write_percent(planned["confidence"])
        console.print(_text(f"It keeps the budget with a probability of {sure}."), soft_wrap=True)
    if shown["exploration"]:
        told = write_explored(shown["exploration"], shown["customers"], units)
        console.print(_text(f"It explores for {shown['exploration']['goal']}. {told}"), soft_wrap=True)
    console.print(_text(f"Wrote {path}"), soft_wrap=True)
    if "report.html" in shown.get("dropped", ()):
        told = "The report described the plan before and was removed. To make a new one: "
        steps = ("evaluate", "report") if "evaluation.json" in shown["dropped"] else ("report",)
        console.print(_text(told + ", then ".join(f"largesse {step} {folder}" for step in steps)), soft_wrap=True)


def _write_price(units: Units, shown: Mapping[str, Any]) -> str:
    """Say what one more unit of budget would buy, as the model expects."""
    price = finite(shown["planned"]["price"])
    if price is None or price == 0:
        return "More budget would buy nothing more, the model expects." if price == 0 else "The price is not known."
    bought = units.rate(price)
    if not units.binary and not units.response_unit:
        bought += " of response"
    more = units.one_more
    return f"{more[0].upper()}{more[1:]} would buy {bought}, the model expects (the price)."


def print_judgement(shown: Mapping[str, Any], path: Path) -> None:
    """Print what a plan will bring and cost, judged from the log, what it is compared with, and the warnings."""
    from rich.console import Console
    from rich.padding import Padding

    units, console = Units.of(shown), Console()
    console.print()
    _print_verdict(console, write_sentences(units, shown))
    print_warnings(shown["warnings"], console)
    _print_comparisons(console, shown)
    console.print(Padding(_text(write_bound(units, shown["safety"])), (0, 2, 1, 2)))
    console.print(_text(f"Wrote {path}"), soft_wrap=True)


def _print_verdict(console: Console, answer: Mapping[str, str]) -> None:
    from rich.padding import Padding

    console.print(Padding(_text(answer["headline"], style="bold"), (0, 2, 1, 2)))
    console.print(Padding(_text(answer["verdict"]), (0, 2, 1, 2)))


def _print_comparisons(console: Console, shown: Mapping[str, Any]) -> None:
    """Print value and spend of the plan and of all that it is compared with, and what it gains."""
    from rich.padding import Padding

    units = Units.of(shown)
    left = {"profit": "right"} if shown["profit"] else {}
    table = _table({"": "left", "value": "right", "95 % interval": "left", "spend": "right", **left})
    plan = {**shown, "profit": shown["profit"]["own"]} if left else shown
    rows = [(other["name"], other) for other in (*shown["safety"]["options"][1:], *shown["versus"])]
    spends = units.money([row["spend"]["estimate"] for _, row in (("", plan), *rows)])
    for k, (name, row) in enumerate((("this plan", plan), *rows)):
        table.add_row(_text(name), *_cells(units, row, spends), style="" if k else "bold")
    console.print(table)
    for name, other in rows[len(rows) - len(shown["versus"]) :]:
        against = f"against {name}: {write_gain(units, other['difference'])}"
        if other["profit_difference"]:
            against += f"; after costs {write_gain(units.profit, other['profit_difference'])}"
        console.print(Padding(_text(against, style="dim"), (0, 2)))
    if left and judge_profit(shown) != "loses":  # else the verdict has said it
        console.print(Padding(_text(write_best(units, shown)), (1, 2, 0, 2)))
    console.print()


def print_warnings(
    warnings: Sequence[Mapping[str, Any]], console: Console | None = None, *, to_stderr: bool = False
) -> None:
    """Print every "no" and then every "careful", one sentence each; nothing where there are none."""
    from rich.console import Console
    from rich.padding import Padding

    urgent = brief_urgent(warnings)
    console = console or Console(stderr=to_stderr)
    for warning in urgent:
        text = f"{MARKS[warning['answer']]} {warning['answer']}: {warning['text']}"
        console.print(Padding(_text(text, style=COLOURS[warning["answer"]]), (0, 2)))
    if urgent:
        console.print()


def print_check(shown: dict[str, Any], out: Path | None) -> None:
    """Print what a check of a campaign found, promise against result, and where the page is."""
    from rich.console import Console

    console, units = Console(), Units.of(shown)
    console.print(_text(f"\n{shown['title']}: {shown['headline']}\n", style="bold"))
    _print_findings(console, shown["checks"])
    sides = {"": "left", "planned for": "right", "given to": "right", "got it": "right"}
    table = _table(sides)
    for row in shown["levels"]:
        got = finite(row["followed"])
        cells = (f"{row['planned']:,}", f"{row['given']:,}", "–" if got is None else write_percent(got))
        table.add_row(_text(row["name"]), *cells)
    console.print(table)
    value, spend = shown["value"], shown["spend"]
    told = f"value {write_value(units, value['promised'])} promised, {write_value(units, value['realised'])} realised"
    paid = f"spend {units.cost(spend['promised']['estimate'])} promised, {units.cost(spend['realised']['estimate'])} realised"
    console.print(_text(f"\nPer customer: {told}; {paid}."), soft_wrap=True)
    last = "--out page.html writes this as a page." if out is None else f"Wrote {out}"
    console.print(_text(f"\n{last}\n"), soft_wrap=True)


def _print_findings(console: Console, findings: Sequence[Mapping[str, Any]]) -> None:
    from rich.table import Table

    checks = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), show_header=False)
    for check in findings:
        mark = _text(MARKS[check["answer"]], style=COLOURS[check["answer"]])
        checks.add_row(mark, _text(check["topic"]), _text(check["text"]))
    console.print(checks)
    console.print()


def print_power(found: PowerAnalysis) -> None:
    """Print how many customers tests of a plan need."""
    from rich.console import Console
    from rich.padding import Padding

    console = Console()
    many = write_percent(found.switchers)
    head = f"A test against {found.incumbent}: {many} of the customers are switchers, who would get another level"
    console.print(_text(f"\n{head}\n", style="bold"), soft_wrap=True)
    right = ("gain each", "switchers", "customers", "if all tested", *(["days"] if found.per_day else []))
    table = _table({"test of": "left", **dict.fromkeys(right, "right")})
    for column in table.columns:
        column.no_wrap, column.overflow = False, "fold"  # a narrow terminal takes more lines; nothing is cut
    table.padding = (0, 1, 0, 1)
    for case in found.cases:
        for words, size in ((case.name, case.expected), ("  lower end", case.least)):
            cells = [
                f"{size.gain:.3g}".replace("-", "−"),
                *map(write_size, (size.switchers, size.traffic, size.diluted)),
            ]
            cells += [write_size(size.days or 0.0)] if found.per_day else []
            table.add_row(_text(words), *cells)
    console.print(table)
    told = "The first line of each is for the gain as it seems, the second for the lower end of its interval. "
    told += "Customers: so many must come by until enough of them are switchers; "
    told += f"power {write_percent(found.power)}, coverage {write_percent(found.coverage)}, both arms together."
    console.print(Padding(_text(told), (1, 2)))
    for case in found.cases:
        best = f"; smallest with {write_percent(case.best_share)} in the plan's arm"
        console.print(Padding(_text(f"· {case.name}: {case.detail}{best}"), (0, 2)))
    for note in found.notes:
        console.print(Padding(_text(f"! {note}"), (0, 2)))
    console.print()


def print_checkup(shown: dict[str, Any], out: Path | None) -> None:
    """Print the checks of a log, what each level brought, and where the page is."""
    from rich.console import Console
    from rich.padding import Padding

    console = Console()
    console.print(_text(f"\n{shown['title']}: {shown['headline']}\n", style="bold"))
    _print_findings(console, shown["support"]["checks"])
    console.print(_level_table(shown))
    for note in shown["notes"]:
        console.print(Padding(_text("· " + note), (1, 2, 0, 2)))
    last = "--out page.html writes this as a page." if out is None else f"Wrote {out}"
    console.print(_text(f"\n{last}\n"), soft_wrap=True)


def _level_table(shown: dict[str, Any]) -> Table:
    units = Units.of(shown)
    sides = {"level": "left", "95 % interval": "left"}
    names = ("level", "rows", "worth", "propensity from", "mean", "95 % interval")
    table = _table({name: sides.get(name, "right") for name in names})
    table.columns[0].no_wrap = False  # a long name takes two lines; no number is ever cut
    table.columns[0].overflow = "fold"
    for row, seen in zip(shown["curve"]["levels"], shown["support"]["overlap"], strict=True):
        counts = (f"{row['rows']:,}", f"{seen['effective']:,.0f}", f"{seen['smallest']:.3g}")
        table.add_row(_text(row["name"]), *counts, write_value(units, row["value"]), _between(units, row["value"]))
    # However long the other cells are, the level can be read.
    table.columns[0].min_width = min(8, max(len(row["name"]) for row in shown["curve"]["levels"]))
    return table


def _text(text: str, style: str = "") -> Text:
    """Return text for the terminal; what it holds cannot move the cursor, set a title or colour what follows."""
    from rich.text import Text

    together = re.sub(r"(?<=\d) %", f"{THIN}%", text)  # a number and its sign stay on one line
    return Text(make_visible(together), style=style)


def _table(columns: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2))
    for name, side in columns.items():
        table.add_column(name, no_wrap=True, justify=side)
    return table


def _cells(units: Units, row: Mapping[str, Any], spends: Style) -> tuple[str, ...]:
    value = row["value"]
    found = write_value(units, value), _between(units, value), spends.text(row["spend"]["estimate"])
    return (*found, write_value(units.profit, row["profit"])) if row.get("profit") else found


def _between(units: Units, value: Mapping[str, Any]) -> str:
    """Return an interval for a column that is called so: the title need not be said again where there is none."""
    return write_interval(units, value).removeprefix("no interval: ")
