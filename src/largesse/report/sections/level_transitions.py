"""Section with the gains over the logged policy by level, and the transitions between levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from largesse.report.charts.axes import fit_axis
from largesse.report.charts.row_charts import draw_fall_strip, draw_tick_strip, draw_value_strip
from largesse.report.figure_rows import Row, Rows
from largesse.report.number_format import DASH, Style, Units, finite, label_interval, parts, write_count, write_percent
from largesse.report.section import Numbers, Part, Section

SHOWN = 12  # moves that have a row of their own
TINT = 45  # per cent: words on more of the accent's colour would be hard to read
Choose = Callable[[Mapping[str, Any]], Style]


def view_changes(numbers: Numbers, units: Units) -> Part | None:
    """Return both waterfalls, the table of moves and the largest of them; None where nothing is known of what was done."""
    found = numbers["changes"]
    names = [level["name"] for level in numbers["levels"]]
    moves = [row for row in found["moves"] if max(row["before"], row["after"]) < len(names)]
    if not moves:
        return None
    return {
        "falls": [
            {
                "title": "Mean response" if not units.binary else "Share of customers who respond",
                "figure": view_fall(found, "value", names, (units.value_style, units.gain_style), units.response),
            },
            {
                "title": "Spend per customer",
                "figure": view_fall(found, "spend", names, (units.spend_style, units.spend_style), units.money),
            },
        ],
        "table": [_view_level(row, names, units) for row in found["levels"]],
        "summary": write_moved(moves),
        "matrix": view_matrix(moves, names),
        **_view_moves(moves, names, units),
    }


def view_fall(
    found: Numbers, key: str, names: Sequence[str], styles: tuple[Choose, Choose], ticks: Callable[..., Style]
) -> Rows:
    """Return the rows of a waterfall: what was done, what each level of the plan adds, and the plan."""
    before, after, levels = found["before"][key], found["after"][key], found["levels"]
    steps = [finite(row[key]["estimate"]) or 0.0 for row in levels]
    start = finite(before["estimate"]) or 0.0
    totals = list(accumulate(steps, initial=start))
    whiskers = [_shift(row[key], total) for row, total in zip(levels, totals, strict=False)]
    ends = [number for row in (before, after, *whiskers) for number in parts(row)]
    across = fit_axis([*ends, *totals], 4, snug=True)
    rows = [_view_end("What was done", across, before, styles[0])]
    for row, total, whisker in zip(levels, totals, whiskers, strict=False):
        style, who = styles[1](row[key]), f"Those who get {names[row['level']]}"
        big, between = style.text(row[key]["estimate"], signed=True), style.interval(row[key], signed=True)
        label = f"{who}: {big}, {label_interval(between)}"
        figure = draw_fall_strip(across, total, whisker, row["level"], label)
        detail = f"{write_percent(row['share'])} of customers"
        rows.append(Row(who, figure, big, detail=detail, sub=between))
    rows.append(_view_end("This plan", across, after, styles[0]))
    return Rows(rows, draw_tick_strip(across, ticks(across.ticks, across.step, digits=1, short=True)))


def _view_end(name: str, across: Any, estimate: Mapping[str, Any], choose: Choose) -> Row:
    style = choose(estimate)
    big, between = style.text(estimate["estimate"]), style.interval(estimate)
    figure = draw_value_strip(across, estimate, f"{name}: {big}, {label_interval(between)}")
    return Row(name, figure, big, sub=between)


def _shift(estimate: Mapping[str, Any], by: float) -> dict[str, float | None]:
    """Return an estimate of a step as one of where it ends."""
    known = {end: finite(estimate.get(end)) for end in ("estimate", "low", "high")}
    return {end: None if number is None else number + by for end, number in known.items()}


def _view_level(row: Mapping[str, Any], names: Sequence[str], units: Units) -> dict[str, str]:
    gain, spend = units.gain_style(row["value"]), units.spend_style(row["spend"])
    return {
        "name": names[row["level"]],
        "share": write_percent(row["share"]),
        "value": gain.text(row["value"]["estimate"], signed=True),
        "value_interval": gain.interval(row["value"], signed=True),
        "spend": spend.text(row["spend"]["estimate"], signed=True),
        "spend_interval": spend.interval(row["spend"], signed=True),
    }


# -- who moves -----------------------------------------------------------------------------------------------------------


def write_moved(moves: Sequence[Mapping[str, Any]]) -> str:
    """Say how many customers would get another level than they had.

    >>> write_moved([{"before": 0, "after": 1, "share": 0.25}, {"before": 1, "after": 1, "share": 0.75}])
    '25\u202f% of the log’s customers would get another level than they had: 25\u202f% a higher one, 0\u202f% a lower one.'
    """
    higher, lower = (
        sum(finite(row["share"]) or 0.0 for row in moves if sign * (row["after"] - row["before"]) > 0)
        for sign in (1, -1)
    )
    ways = f"{write_percent(higher)} a higher one, {write_percent(lower)} a lower one"
    return f"{write_percent(higher + lower)} of the log’s customers would get another level than they had: {ways}."


def view_matrix(moves: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Part:
    """Return a row for each level that customers had: shares of all customers by the level they would get."""
    shares = {(row["before"], row["after"]): finite(row["share"]) or 0.0 for row in moves}
    most = max(shares.values(), default=0.0) or 1.0
    had, gets = sorted({k for k, _ in shares}), sorted({j for _, j in shares})
    rows = [{"name": names[k], "cells": [_view_cell(shares.get((k, j)), most, k == j) for j in gets]} for k in had]
    return {"names": [names[j] for j in gets], "rows": rows}


def _view_cell(share: float | None, most: float, same: bool) -> Part:
    """Return a cell of the table of moves; its tint is a percentage of the accent's colour."""
    return {"text": write_percent(share) if share else "", "tint": round(TINT * (share or 0.0) / most), "same": same}


def _view_moves(moves: Sequence[Mapping[str, Any]], names: Sequence[str], units: Units) -> Part:
    """Return the largest moves, and how many customers all others are."""
    moved = sorted(
        (row for row in moves if row["before"] != row["after"]), key=lambda row: -(finite(row["share"]) or 0.0)
    )
    values = units.difference([row["value"] for row in moved[:SHOWN]])
    rest = sum(finite(row["share"]) or 0.0 for row in moved[SHOWN:])
    return {
        "moves": [
            {
                "name": f"{names[row['before']]} → {names[row['after']]}",
                "rows": write_count(row["rows"]),
                "share": write_percent(row["share"]),
                "value": values.text(row["value"], signed=True),
                "spend": units.money([row["spend"]]).text(row["spend"], signed=True),
                "each": _write_each(row, units),
            }
            for row in moved[:SHOWN]
        ],
        "rest": f"{len(moved) - SHOWN} smaller moves of {write_percent(rest)} of customers are not listed."
        if rest
        else "",
    }


def _write_each(row: Mapping[str, Any], units: Units) -> str:
    """Write what a move costs for each response more, where it brings more and costs more."""
    value, spend = finite(row["value"]) or 0.0, finite(row["spend"]) or 0.0
    return units.cost(spend / value) if value > 0 and spend > 0 else DASH


SECTION = Section("level_transitions", view_changes, "What changes")
