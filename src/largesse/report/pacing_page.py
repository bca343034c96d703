"""Page of simulated pacing: a table of pacing methods, and the course of the first customer stream over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from largesse.report.charts.axes import draw_axes, fit_axis, fit_frame, split_at_missing_points
from largesse.report.charts.svg import draw_path, make_element
from largesse.report.number_format import (
    MISSING_DASH,
    Numbers,
    Units,
    View,
    choose_style,
    finite_or_none,
    write_count,
    write_percent,
)

METHOD_TITLES = {"pace": "paced", "fixed": "fixed price", "daily": "new plan every day", "offline": "offline optimum"}
WIDTH, HEIGHT, FONT = 900.0, 340.0, 13.5
STROKES = (  # by place in a figure; they differ in their dashes, not only in colour
    "stroke:var(--accent);stroke-width:2.5",
    "stroke:var(--choice);stroke-width:1.75;stroke-dasharray:9 4",
    "stroke:var(--ink);stroke-width:1.5;stroke-dasharray:2 3",
    "stroke:var(--mute);stroke-width:1.5;stroke-dasharray:6 2 2 2",
    "stroke:var(--ink);stroke-width:1",
)
Line: TypeAlias = tuple[str, Sequence[Any], Sequence[Any]]  # name, days, numbers


def view_pacing_page(numbers: Numbers, units: Units) -> View:
    """Return the template values of the pacing page: texts and figures."""
    first = numbers["first"]
    return {
        "methods": [view_pacing_method(row) for row in numbers["ways"]],
        "facts": list_stream_facts(first["facts"], units),
        "notes": write_figure_notes(numbers),
        "figures": [
            _view_price(first, units),
            _view_spend(first, units),
            _view_value(first["courses"], numbers["response"]["name"]),
        ],
    }


def view_pacing_method(row: Numbers) -> dict[str, str]:
    """Return the results of one pacing method as text."""
    shares = {
        key: MISSING_DASH if row[key] is None else f"{100 * row[key]:.1f} %"
        for key in ("value", "worst", "gain", "use", "short")
    }
    return {
        "name": row["name"],
        "over": write_count(row["over"]),
        **shares,
        "refused": write_refused_share(row["refused"]),
    }


def write_refused_share(share: float) -> str:
    """Format the share of refused redemptions.

    >>> write_refused_share(0.0), write_refused_share(0.000004), write_refused_share(0.00064)
    ('0 %', 'below 0.001 %', '0.064 %')
    """
    if not share:
        return "0 %"
    return "below 0.001 %" if share < 1e-5 else f"{100 * share:.3f} %"


def list_stream_facts(facts: Numbers, units: Units) -> list[tuple[str, str]]:
    """Return facts of the first simulated customer stream (customers, period, budget) as pairs of name and text."""
    money = units.money([facts["total"], facts["spent"]])
    expected = write_count(round(facts["foreseen"]))
    rows = [
        ("customers who came", f"{write_count(facts['customers'])} ({expected} foreseen)"),
        ("period", f"{write_count(facts['days'])} days" + (f" from {facts['starts']}" if facts["starts"] else "")),
        ("budget", money.text(facts["total"])),
        ("spent in the end", money.text(facts["spent"])),
    ]
    if facts["valid_days"] is not None:
        limit = "" if facts["promises"] == "kept" else ", while the budget lasts"
        rows.append(("a promise is valid for", f"{facts['valid_days']:.3g} days{limit}"))
    return rows


def write_figure_notes(numbers: Numbers) -> list[str]:
    """Return sentences that explain the figures of the pacing page."""
    if numbers["replayed"]:
        notes = ["The table was replayed in the order of arrival. The model predicted responses and redemptions."]
    else:
        notes = [
            "The streams are simulated from the run's customers. Their season, bursts, volume, mix and responses differ from "
            "what the plan knew."
        ]
    if numbers["explores_for"]:
        notes.append(
            f"The plan explores for {numbers['explores_for']}: it draws levels at random around the price. The offline optimum does "
            "not explore, so its lead includes the cost of exploration."
        )
    if numbers["at_random"]:
        notes.append(
            f"{write_percent(numbers['at_random'])} of the levels are drawn at random. The offline optimum draws none, so its lead "
            "includes the cost of these draws."
        )
    if numbers["lasts"]:
        paced, streams = numbers["ways"][0], numbers["streams"]
        notes.append(
            "Costs are paid on redemption, and promises hold while the budget lasts. The ledger reserves what open promises will "
            "probably cost, and refuses a redemption that no longer fits. Paced, "
            f"{write_refused_share(paced['refused'])} of {write_count(paced['redemptions'])} redemptions were refused, in "
            f"{write_count(paced['streams_refused'])} of {write_count(streams)} {'stream' if streams == 1 else 'streams'}. "
            "A refused customer counts as one who got the cheapest level. The offline optimum keeps to the budget on average."
        )
    if numbers["later"]:
        notes.append(
            "Costs are paid on redemption. The ledger reserves the face value of every promise until it is redeemed or expires, "
            "so nothing can be overspent; the offline optimum keeps that rule, too. With the rule a plan gains "
            f"{write_percent(numbers['reserved'])} of what it would gain without. Shorter promises reserve less."
        )
    if numbers["priced"] < numbers["streams"]:
        ample = write_count(numbers["streams"] - numbers["priced"])
        notes.append(f"In {ample} of {write_count(numbers['streams'])} streams the budget was larger than needed.")
    return notes


# -- figures -----------------------------------------------------------------------------------------------------------


def _view_figure(name: str, lines: Sequence[Line], up_title: str, note: str) -> View:
    """Return the template values of a figure of numbers over days: drawing, legend and note."""
    days = fit_axis([day for _, each, _ in lines for day in each], 8)
    up = fit_axis([number for _, _, each in lines for number in each], 5)
    styles = (choose_style(axis.ticks, axis.step, digits=1, short=True) for axis in (days, up))
    frame = fit_frame(WIDTH, HEIGHT, FONT, days, up, *styles)
    paths, keys = [], []
    for (line, each, numbers), stroke in zip(lines, STROKES, strict=False):
        known = ((day, finite_or_none(number)) for day, number in zip(each, numbers, strict=True))
        runs = split_at_missing_points(
            None if number is None else (frame.x(day), frame.y(number)) for day, number in known
        )
        paths += [draw_path(run, style=f"fill:none;{stroke}") for run in runs if len(run) > 1]
        sample = make_element("path", d="M0 7H26", style=f"fill:none;{stroke}")
        keys.append({"sample": make_element("svg", sample, viewBox="0 0 26 14", aria_hidden="true"), "name": line})
    title = name.capitalize()
    box = {"viewBox": f"0 0 {WIDTH:g} {HEIGHT:g}", "font_size": FONT, "role": "img"}
    box["aria_label"] = f"{title} over the days. {note}"
    svg = make_element("svg", draw_axes(frame, "day", up_title), *paths, class_="frontier", **box)
    return {"name": name, "title": title, "note": note, "svg": svg, "keys": keys}


def _make_line(course: Numbers, key: str, name: str) -> Line:
    return name, course["day"], course[key]


def _view_price(first: Numbers, units: Units) -> View:
    lines = [_make_line(first["courses"][way], "price", METHOD_TITLES[way]) for way in ("pace", "daily", "fixed")]
    note = "The response that one more unit of budget brings from then on."
    if first["facts"]["promises"] == "kept":
        note += " The price falls when promises outlast the period, because then their face values count."
    return _view_figure("price", lines, f"response per {units.budget_unit_text}", note)


def _view_spend(first: Numbers, units: Units) -> View:
    courses, facts = first["courses"], first["facts"]
    lines = [_make_line(courses["pace"], "spent", "paced: spent")]
    if facts["promises"] == "kept":
        lines.append(_make_line(courses["pace"], "held", "paced: spent or promised"))
    lines += [_make_line(courses[way], "spent", f"{METHOD_TITLES[way]}: spent") for way in ("fixed", "offline")]
    days = courses["pace"]["day"]
    lines.append(("budget", days, [facts["total"]] * len(days)))
    open_promises = facts["promises"] == "while_it_lasts"
    note = "Pacing never exceeds the budget" + ("; promises may still be open at the end." if open_promises else ".")
    up = f"since the start, {units.currency}" if units.currency else "since the start"
    return _view_figure("spend", lines, up, note)


def _view_value(courses: Numbers, response: str) -> View:
    lines = [_make_line(courses[way], "value", METHOD_TITLES[way]) for way in ("pace", "daily", "fixed", "offline")]
    note = "The response beyond that of giving everyone the cheapest level."
    return _view_figure("value", lines, f"{response}, since the start", note)
