"""Section on changes: gains over the logged policy by level, and customers who change levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeAlias

from largesse.report.charts.axes import Axis, fit_axis
from largesse.report.charts.row_charts import draw_tick_strip, draw_value_strip, draw_waterfall_strip
from largesse.report.comparison_rows import FigureRow, FigureRows
from largesse.report.number_format import (
    MISSING_DASH,
    Numbers,
    NumberStyle,
    Units,
    View,
    add_interval_label,
    finite_or_none,
    list_estimate_and_ends,
    write_count,
    write_percent,
)

MAX_SHOWN_MOVES = 12
MAX_TINT = 45  # per cent of the accent's colour; words on more of it would be hard to read
ChooseStyle: TypeAlias = Callable[[Numbers], NumberStyle]


def view_level_changes(numbers: Numbers, units: Units) -> View | None:
    """Return the template values of the level changes; None if the past levels are unknown."""
    changes = numbers["changes"]
    names = [level["name"] for level in numbers["levels"]]
    moves = [row for row in changes["moves"] if max(row["before"], row["after"]) < len(names)]
    if not moves:
        return None
    value_styles, spend_styles = (units.value_style, units.gain_style), (units.spend_style, units.spend_style)
    return {
        "falls": [
            {
                "title": "Share of customers who respond" if units.has_binary_response else "Mean response",
                "figure": view_waterfall(changes, "value", names, value_styles, units.response, units.response_bounds),
            },
            {
                "title": "Spend per customer",
                "figure": view_waterfall(changes, "spend", names, spend_styles, units.money),
            },
        ],
        "table": [_view_level_change(row, names, units) for row in changes["levels"]],
        "summary": write_moved_share(moves),
        "matrix": view_transition_matrix(moves, names),
        **_view_largest_moves(moves, names, units),
    }


def view_waterfall(
    changes: Numbers,
    key: str,
    names: Sequence[str],
    styles: tuple[ChooseStyle, ChooseStyle],
    choose_ticks: Callable[..., NumberStyle],
    bounds: tuple[float, float] | None = None,
) -> FigureRows:
    """Return waterfall figure rows from the logged policy to the plan, with one change per level.

    `styles` are those of the ends and of the steps.
    """
    before, after, levels = changes["before"][key], changes["after"][key], changes["levels"]
    steps = [finite_or_none(row[key]["estimate"]) or 0.0 for row in levels]
    totals = list(accumulate(steps, initial=finite_or_none(before["estimate"]) or 0.0))
    whiskers = []  # each step's estimate, as one of the total where it ends
    for row, total in zip(levels, totals, strict=False):
        known = {end: finite_or_none(row[key].get(end)) for end in ("estimate", "low", "high")}
        whiskers.append({end: None if number is None else number + total for end, number in known.items()})
    ends = [number for row in (before, after, *whiskers) for number in list_estimate_and_ends(row)]
    axis = fit_axis([*ends, *totals], 4, snug=True, bounds=bounds)
    rows = [_view_waterfall_end("What was done", axis, before, styles[0])]
    for row, total, whisker in zip(levels, totals, whiskers, strict=False):
        style, name = styles[1](row[key]), f"Those who get {names[row['level']]}"
        step, interval = style.text(row[key]["estimate"], signed=True), style.interval(row[key], signed=True)
        figure = draw_waterfall_strip(
            axis, total, whisker, row["level"], f"{name}: {step}, {add_interval_label(interval)}"
        )
        rows.append(FigureRow(name, figure, step, f"{write_percent(row['share'])} of customers", interval))
    rows.append(_view_waterfall_end("This plan", axis, after, styles[0]))
    return FigureRows(rows, draw_tick_strip(axis, choose_ticks(axis.ticks, axis.step, digits=1, short=True)))


def _view_waterfall_end(name: str, axis: Axis, estimate: Numbers, choose: ChooseStyle) -> FigureRow:
    style = choose(estimate)
    number, interval = style.text(estimate["estimate"]), style.interval(estimate)
    figure = draw_value_strip(axis, estimate, f"{name}: {number}, {add_interval_label(interval)}")
    return FigureRow(name, figure, number, sub=interval)


def _view_level_change(row: Numbers, names: Sequence[str], units: Units) -> dict[str, str]:
    gain, spend = units.gain_style(row["value"]), units.spend_style(row["spend"])
    return {
        "name": names[row["level"]],
        "share": write_percent(row["share"]),
        "value": gain.text(row["value"]["estimate"], signed=True),
        "value_interval": gain.interval(row["value"], signed=True),
        "spend": spend.text(row["spend"]["estimate"], signed=True),
        "spend_interval": spend.interval(row["spend"], signed=True),
    }


# -- moves between levels ----------------------------------------------------------------------------------------------


def write_moved_share(moves: Sequence[Numbers]) -> str:
    """Write the share of customers whose planned level differs from their past level.

    >>> write_moved_share([{"before": 0, "after": 1, "share": 0.25}, {"before": 1, "after": 1, "share": 0.75}])
    '25\u202f% of the log’s customers would get another level than they had: 25\u202f% a higher one, 0\u202f% a lower one.'
    """
    higher, lower = (
        sum(finite_or_none(row["share"]) or 0.0 for row in moves if sign * (row["after"] - row["before"]) > 0)
        for sign in (1, -1)
    )
    parts = f"{write_percent(higher)} a higher one, {write_percent(lower)} a lower one"
    return f"{write_percent(higher + lower)} of the log’s customers would get another level than they had: {parts}."


def view_transition_matrix(moves: Sequence[Numbers], names: Sequence[str]) -> View:
    """Return the table of customer shares by past level (rows) and planned level (columns)."""
    shares = {(row["before"], row["after"]): finite_or_none(row["share"]) or 0.0 for row in moves}
    largest = max(shares.values(), default=0.0) or 1.0
    had, gets = sorted({k for k, _ in shares}), sorted({j for _, j in shares})
    rows = []
    for k in had:
        cells = [
            {"text": write_percent(share) if share else "", "tint": round(MAX_TINT * share / largest), "same": k == j}
            for j in gets
            for share in (shares.get((k, j), 0.0),)
        ]
        rows.append({"name": names[k], "cells": cells})
    return {"names": [names[j] for j in gets], "rows": rows}


def _view_largest_moves(moves: Sequence[Numbers], names: Sequence[str], units: Units) -> View:
    """Return the most frequent level changes, and a sentence about all less frequent changes."""
    changed = [row for row in moves if row["before"] != row["after"]]
    changed.sort(key=lambda row: -(finite_or_none(row["share"]) or 0.0))
    largest, others = changed[:MAX_SHOWN_MOVES], changed[MAX_SHOWN_MOVES:]
    values, rest = (
        units.difference([row["value"] for row in largest]),
        sum(finite_or_none(row["share"]) or 0.0 for row in others),
    )
    views = []
    for row in largest:
        value, spend = finite_or_none(row["value"]) or 0.0, finite_or_none(row["spend"]) or 0.0
        views.append(
            {
                "name": f"{names[row['before']]} → {names[row['after']]}",
                "rows": write_count(row["rows"]),
                "share": write_percent(row["share"]),
                "value": values.text(row["value"], signed=True),
                "spend": units.money([row["spend"]]).text(row["spend"], signed=True),
                "cost_per_extra": units.write_cost(spend / value) if value > 0 and spend > 0 else MISSING_DASH,
            }
        )
    text = f"{len(others)} smaller moves of {write_percent(rest)} of customers are not listed." if rest else ""
    return {"moves": views, "rest": text}
