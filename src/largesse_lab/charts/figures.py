"""Figures of the experiments: lines with their spread in panels, as SVG that needs nothing else.

`line_figure` takes what an experiment's `series` returns: rows with ``panel``, ``label``, ``x``, ``mean`` and ``sd``. A
missing mean leaves a gap, a missing sd no band. `dot_figure` (see `dots`) draws differences with their intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from largesse.errors import Problem, refuse
from largesse.report import element, finite
from largesse_lab.charts.axes import Scale, linear, logarithmic
from largesse_lab.charts.dots import dot_figure as dot_figure
from largesse_lab.charts.ink import Pen
from largesse_lab.charts.sheet import (
    FONT,
    PAD,
    WIDTH,
    Panel,
    Words,
    across_axis,
    axis_titles,
    columns,
    foot,
    grid_tops,
    heading,
    panel_name,
    sheet,
    up_axis,
    up_room,
)

Series: TypeAlias = Sequence[Mapping[str, Any]]
Point: TypeAlias = tuple[float, float, float | None]  # x, mean, sd
KEYS = ("panel", "label", "x", "mean", "sd")
BESIDE = 16.0
HEIGHTS = {1: 290.0, 2: 215.0, 3: 185.0}  # of a panel's box, by how many stand side by side


@dataclass(frozen=True)
class Look:
    """How lines are drawn.

    Parameters
    ----------
    log_across, log_up
        Whether an axis is logarithmic; a zero on the lower one stands apart on the left.
    bars
        Draw the spread as a bar at each point, instead of a band; and no line between points.
    shared
        One vertical scale for all panels.
    references
        Labels that are drawn as grey lines without marks: bounds, promises, what is known.
    """

    log_across: bool = False
    log_up: bool = False
    bars: bool = False
    shared: bool = False
    references: tuple[str, ...] = ()


def line_figure(series: Series, words: Words, look: Look = Look()) -> str:  # noqa: B008 — frozen
    """Return the series as one SVG, a panel for each ``panel``, a line for each ``label``, the same one in every panel."""
    _check(series)
    labels = dict.fromkeys(row["label"] for row in series)
    plain = [label for label in labels if label not in look.references]
    pens = {name: Pen(plain.index(name)) if name in plain else Pen(0, reference=True) for name in labels}
    top, reach = heading(words, pens, lines=not look.bars)
    panels = _panels(series, words, look, reach)
    drawn = [_panel(panel, [row for row in series if row["panel"] == panel.name], pens, look) for panel in panels]
    return sheet(words, foot(panels), top, axis_titles(panels, words), *drawn)


def _check(series: Series) -> None:
    problems = (
        [] if series else [Problem("there is nothing to draw", "give one row per line, as an experiment's `series`")]
    )
    for i, row in enumerate(series):
        missing = [key for key in KEYS if key not in row]
        if missing:
            problems.append(Problem(f"row {i} has no {' and no '.join(missing)}", f"every row needs {', '.join(KEYS)}"))
        elif not len(row["x"]) == len(row["mean"]) == len(row["sd"]):
            sizes = f"{len(row['x'])}, {len(row['mean'])} and {len(row['sd'])}"
            problems.append(Problem(f"x, mean and sd of row {i} have {sizes} numbers", "give as many of each"))
    refuse("figure", problems)


def points_of(row: Mapping[str, Any]) -> list[list[Point]]:
    """Return a row's points in pieces: a missing number ends a piece, so that nothing is drawn across a gap."""
    runs: list[list[Point]] = [[]]
    for x, mean, sd in zip(row["x"], row["mean"], row["sd"], strict=True):
        across, up = finite(x), finite(mean)
        if across is not None and up is not None:
            runs[-1].append((across, up, finite(sd)))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


# -- where things lie --------------------------------------------------------------------------------------------------


def _panels(series: Series, words: Words, look: Look, top: float) -> list[Panel]:
    names = list(dict.fromkeys(row["panel"] for row in series))
    per_row = columns(len(names))
    mine = [[row for row in series if row["panel"] == name] for name in names]
    ups = [_up(series if look.shared else rows, look) for rows in mine]
    across = _across(series, look, per_row)
    margins = [max(up_room(up) for up in ups[j::per_row]) for j in range(per_row)]
    turned = FONT * 1.5 if words.up else 0.0  # the title that runs up, beside the first panel of a row
    box = (WIDTH - 2 * PAD - turned - sum(margins) - 14 * (per_row - 1)) / per_row
    lefts = [PAD + turned + sum(margins[: j + 1]) + (box + 14) * j for j in range(per_row)]
    tops = grid_tops(len(names), top, HEIGHTS[per_row])
    return [
        Panel(name, lefts[i % per_row], tops[i], lefts[i % per_row] + box, tops[i] + HEIGHTS[per_row], across, ups[i])
        for i, name in enumerate(names)
    ]


def _across(series: Series, look: Look, per_row: int) -> Scale:
    values = [x for row in series for x in row["x"]]
    return logarithmic(values) if look.log_across else linear(values, 9 // per_row, snug=True)


def _up(series: Series, look: Look) -> Scale:
    points = [point for row in series for run in points_of(row) for point in run]
    ends = [mean + sign * (sd or 0.0) for _, mean, sd in points for sign in (-1, 0, 1)]
    if look.log_up:
        return logarithmic([end for end in ends if end > 0], measured=False)
    return linear(ends, 5)


# -- what is drawn -----------------------------------------------------------------------------------------------------


def _panel(panel: Panel, rows: Series, pens: Mapping[str, Pen], look: Look) -> str:
    parts = [panel_name(panel), up_axis(panel), across_axis(panel)]
    drawn = [(row, pens[row["label"]]) for row in rows]
    barred = [look.bars and not pen.reference for _, pen in drawn]
    for (row, pen), bars in zip(drawn, barred, strict=True):
        parts += [] if bars else [_band(panel, _joined(panel, run), pen) for run in points_of(row)]
    for k, ((row, pen), bars) in enumerate(zip(drawn, barred, strict=True)):
        # whiskers at one place stand beside each other
        beside = min(4.0, BESIDE / len(rows)) * (k - (len(rows) - 1) / 2)
        parts += [] if bars else [_line(panel, _joined(panel, run), pen) for run in points_of(row)]
        points = [point for run in points_of(row) for point in run]
        parts += [
            _pointed(panel, p, pen, beside) for p in points if bars or (panel.across.zero is not None and p[0] == 0)
        ]
    return "".join(parts)


def _joined(panel: Panel, run: list[Point]) -> list[Point]:
    """Return the points that lines join: a zero that stands apart is none of them."""
    return run if panel.across.zero is None else [point for point in run if point[0] > 0]


def _band(panel: Panel, run: list[Point], pen: Pen) -> str:
    spread = [(x, mean, sd) for x, mean, sd in run if sd is not None]
    if len(spread) < 2:
        return "".join(_pointed(panel, point, pen, 0.0) for point in run)
    there = [f"{panel.x(x):.1f},{panel.y(mean + sd):.1f}" for x, mean, sd in spread]
    back = [f"{panel.x(x):.1f},{panel.y(mean - sd):.1f}" for x, mean, sd in reversed(spread)]
    return element("path", d=f"M{' L'.join(there + back)} Z", class_="band", fill=pen.colour)


def _line(panel: Panel, run: list[Point], pen: Pen) -> str:
    places = [(panel.x(x), panel.y(mean)) for x, mean, _ in run]
    return (pen.stroke(places) if len(places) > 1 else "") + "".join(pen.mark(x, y) for x, y in places)


def _pointed(panel: Panel, point: Point, pen: Pen, beside: float) -> str:
    """Return a mark with its spread as a bar."""
    x, mean, sd = point
    at = panel.x(x) + beside
    bar = "" if sd is None else pen.whisker(at, panel.y(mean - sd), at, panel.y(mean + sd))
    return bar + pen.mark(at, panel.y(mean))
