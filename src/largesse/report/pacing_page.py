"""The page of paced streams: a table of the ways to pace, and the course of the first stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from largesse.errors import make_visible
from largesse.report.charts.axes import (
    Frame,
    draw_across_axis,
    draw_up_axis,
    fit_axis,
    label_ticks,
    split_runs,
    up_axis_width,
)
from largesse.report.charts.svg import draw_path, element, text
from largesse.report.number_format import Units, choose_style, finite, write_count, write_percent
from largesse.report.section import Numbers, Part

NAMES = {"pace": "paced", "fixed": "fixed price", "daily": "new plan every day", "offline": "offline optimum"}


def view_pace(numbers: Numbers, units: Units) -> Part:
    """Return what the page shows: words, numbers as text, and figures."""
    first = numbers["first"]
    return {
        "ways": [view_way(row) for row in numbers["ways"]],
        "facts": view_facts(first["facts"], units),
        "notes": write_notes(numbers),
        "figures": [
            _view_price(first, units),
            _view_spend(first, units),
            _view_value(first["courses"], numbers["response"]["name"]),
        ],
    }


def view_way(row: Mapping[str, Any]) -> dict[str, str]:
    """Return a way to pace as text."""
    words = ("value", "worst", "gain", "use", "short")
    shares = {word: write_share(row[word]) for word in words}
    return {"name": row["name"], "over": write_count(row["over"]), **shares, "refused": write_refused(row["refused"])}


def write_refused(share: float) -> str:
    """Write the share of redemptions that were refused, in per cent: few are.

    >>> write_refused(0.0), write_refused(0.000004), write_refused(0.00064)
    ('0 %', 'below 0.001 %', '0.064 %')
    """
    if not share:
        return "0 %"
    return "below 0.001 %" if share < 1e-5 else f"{100 * share:.3f} %"


def write_share(share: Any) -> str:
    """Write a share in per cent with one digit: they are close to each other."""
    return "–" if share is None else f"{100 * share:.1f} %"


def view_facts(facts: Mapping[str, Any], units: Units) -> list[tuple[str, str]]:
    """Return what the first stream was, as pairs of words and text."""
    money = units.money([facts["total"], facts["spent"]])
    found = [
        ("customers who came", f"{write_count(facts['customers'])} ({write_count(round(facts['foreseen']))} foreseen)"),
        ("period", f"{write_count(facts['days'])} days" + (f" from {facts['starts']}" if facts["starts"] else "")),
        ("budget", money.text(facts["total"])),
        ("spent in the end", money.text(facts["spent"])),
    ]
    if facts["valid_days"] is not None:
        lasts = "" if facts["promises"] == "kept" else ", while the budget lasts"
        found.append(("a promise stands for", f"{facts['valid_days']:.3g} days{lasts}"))
    return found


def write_notes(numbers: Numbers) -> list[str]:
    """Return sentences that explain the figures of these streams."""
    notes = []
    if numbers["replayed"]:
        notes.append(
            "The table was replayed as its customers came. Responses and redemptions are those that the model expects."
        )
    else:
        notes.append(
            "The streams are simulated from the run's customers. Their season, bursts, volume, mix and responses differ from "
            "what the plan knew."
        )
    if numbers["explores_for"]:
        notes.append(
            f"The plan explores for {numbers['explores_for']}: levels are drawn around the price, but not in the offline optimum. "
            "What exploring gives up is part of the distance to it."
        )
    if numbers["at_random"]:
        notes.append(
            f"{write_percent(numbers['at_random'])} of the levels are drawn at random, but not in the offline optimum. What that gives "
            "up is part of the distance to it."
        )
    if numbers["lasts"]:
        own = numbers["ways"][0]
        notes.append(
            "Costs are paid on redemption, and promises hold while the budget lasts. The ledger reserves what open promises will "
            "probably cost, and refuses a redemption that no longer fits. Paced, "
            f"{write_refused(own['refused'])} of {write_count(own['redemptions'])} redemptions were refused, in "
            f"{write_count(own['streams_refused'])} of {write_count(numbers['streams'])} "
            f"{'stream' if numbers['streams'] == 1 else 'streams'}. A customer who is refused counts as if they had got the "
            "cheapest level. The offline optimum keeps to the budget in the mean."
        )
    if numbers["later"]:
        notes.append(
            "Costs are paid on redemption. The ledger reserves the face value of every promise until it is redeemed or over, "
            "so that nothing can be overspent; the offline optimum keeps that rule, too. Without the rule a plan would gain "
            f"more: with it, {write_percent(numbers['reserved'])} of that. Promises that stand for a shorter time reserve less."
        )
    if numbers["priced"] < numbers["streams"]:
        ample = numbers["streams"] - numbers["priced"]
        notes.append(
            f"In {write_count(ample)} of {write_count(numbers['streams'])} streams the budget was ample: not all of it was wanted."
        )
    return notes


# -- figures --------------------------------------------------------------------------------------------------------------

WIDTH, HEIGHT, FONT = 900.0, 340.0, 13.5
STROKES = (  # by place in a figure: told apart by dashes, too
    "stroke:var(--accent);stroke-width:2.5",
    "stroke:var(--choice);stroke-width:1.75;stroke-dasharray:9 4",
    "stroke:var(--ink);stroke-width:1.5;stroke-dasharray:2 3",
    "stroke:var(--mute);stroke-width:1.5;stroke-dasharray:6 2 2 2",
    "stroke:var(--ink);stroke-width:1",
)
Line = tuple[str, Sequence[Any], Sequence[Any]]  # name, days, numbers


def _view_figure(name: str, lines: Sequence[Line], up_title: str, note: str) -> Part:
    """Return the drawing of numbers over days, its legend and its note."""
    days = fit_axis([day for _, each, _ in lines for day in each], 8)
    axis = fit_axis([number for _, _, each in lines for number in each], 5)
    across, up = (label_ticks(one, choose_style(one.ticks, one.step, digits=1, short=True)) for one in (days, axis))
    frame = Frame(up_axis_width(up, FONT), FONT * 2.4, WIDTH - 14, HEIGHT - FONT * 3.6, across, up, font=FONT)
    paths, keys = [], []
    for (title, each, numbers), stroke in zip(lines, STROKES, strict=False):
        known = ((day, finite(number)) for day, number in zip(each, numbers, strict=True))
        runs = split_runs(None if number is None else (frame.x(day), frame.y(number)) for day, number in known)
        paths += [draw_path(run, style=f"fill:none;{stroke}") for run in runs if len(run) > 1]
        sample = element("path", d="M0 7H26", style=f"fill:none;{stroke}")
        keys.append({"sample": element("svg", sample, viewBox="0 0 26 14", aria_hidden="true"), "name": title})
    words = f"{name.capitalize()} over the days. {note}"
    end = {"x": frame.right, "y": HEIGHT - 4, "text_anchor": "end", "class_": "axis-title"}
    axes = text(up_title, x=0, y=FONT, class_="axis-title") + draw_up_axis(frame) + draw_across_axis(frame)
    box = {"viewBox": f"0 0 {WIDTH:g} {HEIGHT:g}", "font_size": FONT, "role": "img", "aria_label": words}
    svg = element("svg", axes, text("day", **end), *paths, class_="frontier", **box)
    return {"name": name, "title": name.capitalize(), "note": note, "svg": svg, "keys": keys}


def _line(title: str, course: Mapping[str, Any], word: str) -> Line:
    return title, course["day"], course[word]


def _view_price(first: Mapping[str, Any], units: Units) -> Part:
    lines = [_line(NAMES[way], first["courses"][way], "price") for way in ("pace", "daily", "fixed")]
    note = "What one more unit of budget is worth from then on."
    if first["facts"]["promises"] == "kept":
        note += " It falls when promises begin to outlast the period: from then on their face values count."
    return _view_figure("price", lines, f"response per {units.one}", note)


def _view_spend(first: Mapping[str, Any], units: Units) -> Part:
    courses, facts = first["courses"], first["facts"]
    lines = [_line("paced: spent", courses["pace"], "spent")]
    if facts["promises"] == "kept":
        lines.append(_line("paced: spent or promised", courses["pace"], "held"))
    lines += [_line("fixed price: spent", courses["fixed"], "spent")]
    lines += [_line("offline optimum: spent", courses["offline"], "spent")]
    days = courses["pace"]["day"]
    lines.append(("budget", days, [facts["total"]] * len(days)))
    open_promises = facts["promises"] == "while_it_lasts"
    note = "Pacing never exceeds the budget" + ("; promises may still be open at the end." if open_promises else ".")
    up = f"since the start, {units.currency}" if units.currency else "since the start"
    return _view_figure("spend", lines, up, note)


def _view_value(courses: Mapping[str, Any], response: str) -> Part:
    lines = [_line(NAMES[way], courses[way], "value") for way in ("pace", "daily", "fixed", "offline")]
    note = "Beyond what everyone's cheapest level would have brought."
    return _view_figure("value", lines, f"{response}, since the start", note)


# -- terminal -------------------------------------------------------------------------------------------------------------


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
