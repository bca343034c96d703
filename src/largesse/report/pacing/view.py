"""The page of paced streams: a table of the ways to pace, and how the first stream went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from largesse.report.charts.lines import Look, draw_lines
from largesse.report.charts.sheet import Caption
from largesse.report.numbers import Units, write_count, write_percent
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
            {"name": name, "title": name.capitalize(), "svg": svg}
            for name, svg in (
                ("price", _draw_price(first, units)),
                ("spend", _draw_spend(first, units)),
                ("value", _draw_value(first["courses"], numbers["response"]["name"])),
            )
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


def _line(panel: str, label: str, course: Mapping[str, Any], word: str) -> dict[str, Any]:
    return {"panel": panel, "label": label, "x": course["day"], "mean": course[word], "sd": [None] * len(course["day"])}


def _draw_price(first: Mapping[str, Any], units: Units) -> str:
    rows = [_line("", NAMES[way], first["courses"][way], "price") for way in ("pace", "daily", "fixed")]
    note = "What one more unit of budget is worth from then on."
    if first["facts"]["promises"] == "kept":
        note += " It falls when promises begin to outlast the period: from then on their face values count."
    return draw_lines(rows, Caption("Price", "day", f"response per {units.one}", note))


def _draw_spend(first: Mapping[str, Any], units: Units) -> str:
    courses, total = first["courses"], first["facts"]["total"]
    days = courses["pace"]["day"]
    rows = [_line("", "paced: spent", courses["pace"], "spent")]
    if first["facts"]["promises"] == "kept":
        rows.append(_line("", "paced: spent or promised", courses["pace"], "held"))
    rows.append(_line("", "fixed price: spent", courses["fixed"], "spent"))
    rows.append(_line("", "offline optimum: spent", courses["offline"], "spent"))
    rows.append({"panel": "", "label": "budget", "x": days, "mean": [total] * len(days), "sd": [None] * len(days)})
    up = f"since the start, {units.currency}" if units.currency else "since the start"
    look = Look(references=("budget", "offline optimum: spent"))
    lasts = first["facts"]["promises"] == "while_it_lasts"
    note = (
        "Pacing never exceeds the budget; promises may still be open at the end."
        if lasts
        else "Never above the budget."
    )
    return draw_lines(rows, Caption("Spend", "day", up, note), look)


def _draw_value(courses: Mapping[str, Any], response: str) -> str:
    rows = [_line("", NAMES[way], courses[way], "value") for way in ("pace", "daily", "fixed", "offline")]
    note = "Beyond what everyone's cheapest level would have brought."
    return draw_lines(
        rows, Caption("Value", "day", f"{response}, since the start", note), Look(references=(NAMES["offline"],))
    )
