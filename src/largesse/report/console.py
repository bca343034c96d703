"""Terminal output of the commands: texts and tables made from the report's numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from largesse.errors import make_visible, plural
from largesse.records import PowerAnalysis, write_customer_count
from largesse.report.labels import apply_display_labels
from largesse.report.number_format import (
    THIN_SPACE,
    Numbers,
    NumberStyle,
    Units,
    finite_or_none,
    write_percent,
)
from largesse.report.pacing_page import list_stream_facts, view_pacing_method, write_figure_notes
from largesse.report.sentences import (
    classify_profit,
    select_note_warnings,
    select_urgent_warnings,
    write_best_budget,
    write_exploration_cost,
    write_gain_bounds,
    write_verdict_sentences,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

ANSWER_MARKS = {"no": "✗", "careful": "!", "fine": "✓", "note": "·"}
COLOURS = {"no": "red", "careful": "yellow", "fine": "green", "note": ""}
PACING_COLUMNS = {
    "name": "",
    "over": "overspent",
    "value": "value",
    "worst": "worst",
    "gain": "gain",
    "use": "budget spent",
    "short": "went short",
    "refused": "refused",
}


def print_error(text: str) -> None:
    """Print an error to the standard error."""
    from rich.console import Console

    Console(stderr=True).print(_make_terminal_text(f"largesse: {text}"), soft_wrap=True)


def print_run_result(numbers: Numbers, folder: Path) -> None:
    """Print a run's verdict, comparisons and warnings, and the path of its folder."""
    from rich.console import Console

    answer, console = numbers["answer"], Console()
    _print_line(console, f"\n{numbers['title']}\n", style="bold")
    _print_verdict(console, answer)
    print_warnings(answer["warnings"], console)
    _print_comparisons(console, numbers)
    for note in select_note_warnings(answer["warnings"]):
        _print_padded(console, f"{ANSWER_MARKS[note['answer']]} {note['text']}")
    _print_line(console, f"\nEverything is in {folder}/  —  open {folder / 'report.html'}\n")


def print_plan(numbers: Numbers, path: Path, folder: Path) -> None:
    """Print a plan's cost, levels and shadow price, and the path of its file.

    If the run folder had a report of another plan, which is removed, the commands for a new one are named.
    """
    from rich.console import Console

    numbers = apply_display_labels(numbers, numbers.get("labels", {}))
    units, planned, budget, console = Units.from_numbers(numbers), numbers["planned"], numbers["budget"], Console()
    style = units.money([planned["spend"], budget["average"]])
    limit = "" if budget["average"] is None else f", within a budget of {style.text(budget['average'])}"
    title = f"planned {plural(numbers['customers'], 'customer')} at {style.text(planned['spend'])} each{limit}\n"
    _print_line(console, title, style="bold")
    spends = units.money([row["spend"] for row in numbers["money"]["levels"]])
    rows = (
        (row["name"], f"{row['customers']:,}", write_percent(row["share"]), spends.text(row["spend"]))
        for row in numbers["money"]["levels"]
    )
    console.print(_make_table(("level", "customers", "share", "total spend"), rows))
    _print_line(console, f"\n{_write_price(units, finite_or_none(planned['price']))}")
    if planned["confidence"] is not None:
        _print_line(console, f"It keeps the budget with a probability of {write_percent(planned['confidence'])}.")
    if numbers["exploration"]:
        text = write_exploration_cost(numbers["exploration"], numbers["customers"], units)
        _print_line(console, f"It explores for {numbers['exploration']['goal']}. {text}")
    print_warnings(numbers["customer_warnings"], console)
    for note in select_note_warnings(numbers["customer_warnings"]):
        _print_padded(console, f"{ANSWER_MARKS[note['answer']]} {note['text']}")
    _print_line(console, f"Wrote {path}")
    if "report.html" in numbers.get("dropped", ()):
        steps = ("evaluate", "report") if "evaluation.json" in numbers["dropped"] else ("report",)
        commands = ", then ".join(f"largesse {step} {folder}" for step in steps)
        _print_line(console, f"The old report described another plan and was removed. To write a new one: {commands}")


def _write_price(units: Units, price: float | None) -> str:
    if price is None or price == 0:
        return "More budget would buy nothing more, the model expects." if price == 0 else "The price is not known."
    return f"At this budget, {units.write_price(price)}, the model expects (the price)."


def print_plan_evaluation(numbers: Numbers, path: Path) -> None:
    """Print the evaluation of a plan: verdict, warnings and comparisons, and the path of its file."""
    from rich.console import Console

    numbers = apply_display_labels(numbers, numbers.get("labels", {}))
    units, console = Units.from_numbers(numbers), Console()
    console.print()
    _print_verdict(console, write_verdict_sentences(units, numbers))
    print_warnings(numbers["warnings"], console)
    _print_comparisons(console, numbers)
    _print_line(console, f"Wrote {path}")


def _print_verdict(console: Console, sentences: Mapping[str, str]) -> None:
    _print_padded(console, sentences["headline"], below=1, style="bold")
    _print_padded(console, sentences["verdict"], below=1)


def _print_comparisons(console: Console, numbers: Numbers) -> None:
    """Print a table of value and spend of the plan and its alternatives, with the plan's gains."""
    units, profit = Units.from_numbers(numbers), numbers["profit"]
    plan = {**numbers, "name": "this plan", "profit": profit["own"] if profit else None}
    rows = [plan, *numbers["safety"]["options"][1:], *numbers["versus"]]
    spends = units.money([row["spend"]["estimate"] for row in rows])
    columns = ("", "value", "95 % interval", "spend", *(("profit",) if profit else ()))
    cells = ((row["name"], *_list_comparison_cells(units, row, spends)) for row in rows)
    console.print(_make_table(columns, cells, left=("", "95 % interval"), bold_first=True))
    for row in numbers["versus"]:
        gain = f"against {row['name']}: {units.write_gain(row['difference'])}"
        if row["profit_difference"]:
            gain += f"; after costs {units.profit.write_gain(row['profit_difference'])}"
        _print_padded(console, gain, style="dim")
    _print_padded(console, write_gain_bounds(units, numbers["safety"]), above=1)
    if profit and classify_profit(numbers) != "loses":  # otherwise it is in the verdict
        _print_padded(console, write_best_budget(units, numbers), above=1)
    console.print()


def _list_comparison_cells(units: Units, row: Numbers, spends: NumberStyle) -> list[str]:
    cells = [*_write_response(units, row["value"]), spends.text(row["spend"]["estimate"])]
    return [*cells, _write_response(units.profit, row["profit"])[0]] if row.get("profit") else cells


def _write_response(units: Units, value: Numbers) -> tuple[str, str]:
    """Return an estimated response and its interval as two table cells."""
    style = units.value_style(value)
    return style.text(value["estimate"]), style.interval(value).removeprefix("no interval: ")


def print_warnings(warnings: Sequence[Numbers], console: Console | None = None, *, to_stderr: bool = False) -> None:
    """Print the first sentence of every urgent warning, the most serious warning first."""
    from rich.console import Console

    urgent, console = select_urgent_warnings(warnings), console or Console(stderr=to_stderr)
    for warning in urgent:
        answer = warning["answer"]
        _print_padded(console, f"{ANSWER_MARKS[answer]} {answer}: {warning['text']}", style=COLOURS[answer])
    if urgent:
        console.print()


def print_campaign_check(numbers: Numbers, out: Path | None) -> None:
    """Print the findings of a campaign check, predicted and actual value, and the path of the page."""
    from rich.console import Console

    console, units = Console(), Units.from_numbers(numbers)
    _print_line(console, f"\n{numbers['title']}: {numbers['headline']}\n", style="bold")
    _print_findings(console, numbers["checks"])
    rows = (
        (row["name"], f"{row['planned']:,}", f"{row['given']:,}", write_percent(row["followed"]))
        for row in numbers["levels"]
    )
    console.print(_make_table(("", "planned for", "given to", "got it"), rows))
    promised, realised = (_write_response(units, numbers["value"][key])[0] for key in ("promised", "realised"))
    value = f"value {promised} promised, {realised} realised"
    promised, realised = (units.write_cost(numbers["spend"][key]["estimate"]) for key in ("promised", "realised"))
    spend = f"spend {promised} promised, {realised} realised"
    _print_line(console, f"\nPer customer: {value}; {spend}.")
    _print_page_path(console, out)


def _print_findings(console: Console, findings: Sequence[Numbers]) -> None:
    from rich.table import Table

    checks = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), show_header=False)
    for check in findings:
        mark = _make_terminal_text(ANSWER_MARKS[check["answer"]], style=COLOURS[check["answer"]])
        checks.add_row(mark, _make_terminal_text(check["topic"]), _make_terminal_text(check["text"]))
    console.print(checks)
    console.print()


def print_test_sizes(analysis: PowerAnalysis) -> None:
    """Print the numbers of customers that tests of a plan need."""
    from rich.console import Console

    console = Console()
    switchers = write_percent(analysis.switchers)
    title = (
        f"A test against {analysis.incumbent}: {switchers} of the customers are switchers, who would get another level"
    )
    _print_line(console, f"\n{title}\n", style="bold")
    days = analysis.per_day is not None
    rows = [
        (
            name,
            f"{size.gain:.3g}".replace("-", "−"),
            *map(write_customer_count, (size.switchers, size.traffic, size.diluted)),
            *([write_customer_count(size.days or 0.0)] if days else []),
        )
        for case in analysis.cases
        for name, size in ((case.name, case.expected), ("  lower end", case.least))
    ]
    titles = ("test of", "gain each", "switchers", "customers", "if all tested", *(["days"] if days else []))
    table = _make_table(titles, rows)
    for column in table.columns:
        column.no_wrap, column.overflow = False, "fold"  # a narrow terminal takes more lines; nothing is cut
    table.padding = (0, 1, 0, 1)
    console.print(table)
    text = (
        "The first line of each test is for the estimated gain, the second for the lower end of its interval. "
        "Customers: the number who must arrive before enough of them are switchers; "
        f"power {write_percent(analysis.power)}, coverage {write_percent(analysis.coverage)}, both arms together."
    )
    _print_padded(console, text, above=1, below=1)
    for case in analysis.cases:
        best = f"; smallest with {write_percent(case.best_share)} in the plan's arm"
        _print_padded(console, f"· {case.name}: {case.detail}{best}")
    for note in analysis.notes:
        _print_padded(console, f"! {note}")
    console.print()


def print_log_checkup(numbers: Numbers, out: Path | None) -> None:
    """Print the checks of a log, the mean response at each level, and the path of the page."""
    from rich.console import Console

    console, units = Console(), Units.from_numbers(numbers)
    _print_line(console, f"\n{numbers['title']}: {numbers['headline']}\n", style="bold")
    _print_findings(console, numbers["support"]["checks"])
    both = list(zip(numbers["curve"]["levels"], numbers["support"]["overlap"], strict=True))
    counts = ((f"{row['rows']:,}", f"{seen['effective']:,.0f}", f"{seen['smallest']:.3g}") for row, seen in both)
    rows = ((row["name"], *n, *_write_response(units, row["value"])) for (row, _), n in zip(both, counts, strict=True))
    titles = ("level", "rows", "worth", "propensity from", "mean", "95 % interval")
    table = _make_table(titles, rows, left=("level", "95 % interval"))
    # A long name takes two lines and stays readable; no number is cut.
    table.columns[0].no_wrap, table.columns[0].overflow = False, "fold"
    table.columns[0].min_width = min(8, max(len(row["name"]) for row, _ in both))
    console.print(table)
    for note in numbers["notes"]:
        _print_padded(console, f"· {note}", above=1)
    _print_page_path(console, out)


def print_pacing_results(numbers: Numbers, out: Path | None) -> None:
    """Print a table of pacing methods, the facts of the first customer stream, and the path of the page."""
    from rich.console import Console

    console, units = Console(), Units.from_numbers(numbers)
    _print_line(console, f"\n{numbers['headline']}\n", style="bold")
    columns = {key: title for key, title in PACING_COLUMNS.items() if key != "refused" or numbers["lasts"]}
    table = _make_table(
        columns.values(), ([view_pacing_method(row)[key] for key in columns] for row in numbers["ways"])
    )
    table.padding = (0, 1, 0, 1)
    console.print(table)
    _print_padded(console, "value and gain: shares of the offline optimum", style="dim")
    facts = "; ".join(f"{name} {text}" for name, text in list_stream_facts(numbers["first"]["facts"], units))
    first = f"\n{'' if numbers['streams'] == 1 else 'The first stream: '}{facts}."
    last = f"\nWrote {out}" if out else "\nAdd --out pace.html to see price, spend and value over time."
    for line in (first, *write_figure_notes(numbers), last):
        _print_line(console, line)


# -- text and tables ---------------------------------------------------------------------------------------------------


def _make_terminal_text(text: str, style: str = "") -> Text:
    """Return text for the terminal with escaped control characters."""
    from rich.text import Text

    together = re.sub(r"(?<=\d) %", f"{THIN_SPACE}%", text)  # a number and its sign stay on one line
    return Text(make_visible(together), style=style)


def _print_line(console: Console, text: str, style: str = "") -> None:
    console.print(_make_terminal_text(text, style), soft_wrap=True)


def _print_padded(console: Console, text: str, *, above: int = 0, below: int = 0, style: str = "") -> None:
    from rich.padding import Padding

    console.print(Padding(_make_terminal_text(text, style), (above, 2, below, 2)))


def _print_page_path(console: Console, out: Path | None) -> None:
    _print_line(console, "\n--out page.html writes this as a page.\n" if out is None else f"\nWrote {out}\n")


def _make_table(
    titles: Iterable[str], rows: Iterable[Sequence[str]], *, left: Sequence[str] = (), bold_first: bool = False
) -> Table:
    """Return a terminal table; its first column and the columns in `left` are left-aligned."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2))
    for place, title in enumerate(titles):
        side: Any = "left" if place == 0 or title in left else "right"
        table.add_column(title, no_wrap=True, justify=side)
    for place, row in enumerate(rows):
        table.add_row(*map(_make_terminal_text, row), style="bold" if bold_first and place == 0 else "")
    return table
