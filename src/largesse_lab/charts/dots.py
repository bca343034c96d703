"""Differences with their intervals: one row per method, panels side by side, a line at zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, TypeAlias

from largesse.errors import Problem, refuse
from largesse.report import element, finite, shorten, text, title
from largesse_lab.charts.axes import linear
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
    wide,
)

Rows: TypeAlias = Sequence[Mapping[str, Any]]
ROW, GAP = 24.0, 38.0
BEYOND = 3.0  # a row this many times as far out as the middle one is not given room
KEYS = ("panel", "label", "estimate", "low", "high")


def dot_figure(rows: Rows, words: Words) -> str:
    """Return estimates with intervals as one SVG: a row per ``label``, a panel per ``panel``.

    A full dot has an interval without zero, a hollow one an interval that holds it; a row without estimate stays empty.
    A few rows that lie far beyond all others are arrows with their number, so that the others can be told apart. Methods are
    what runs up: `words.up` is not written.
    """
    _check(rows)
    if any(_far(_of_panel(rows, row["panel"])) for row in rows):
        words = replace(words, note=f"{words.note} Arrows: beyond the panel.".strip())
    labels = [*dict.fromkeys(row["label"] for row in rows)]
    top, reach = heading(words, {})
    panels = _panels(rows, labels, reach)
    first = {panel.left for panel in panels[:1]}
    names = [_names(panel, labels) for panel in panels if panel.left in first]
    drawn = [_panel(panel, _of_panel(rows, panel.name), labels) for panel in panels]
    return sheet(words, foot(panels), top, axis_titles(panels, replace(words, up="")), *names, *drawn)


def _check(rows: Rows) -> None:
    problems = [] if rows else [Problem("there is nothing to draw", "give one row per method and panel")]
    for i, row in enumerate(rows):
        missing = [key for key in KEYS if key not in row]
        if missing:
            problems.append(Problem(f"row {i} has no {' and no '.join(missing)}", f"every row needs {', '.join(KEYS)}"))
    refuse("figure", problems)


def _of_panel(rows: Rows, panel: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["panel"] == panel]


def _far(rows: Rows) -> set[str]:
    """Return the labels of a panel's rows that lie far beyond the others: none where they are more than a third."""
    ends = [(row["label"], [finite(row[key]) for key in ("estimate", "low", "high")]) for row in rows]
    reach = {label: max(abs(end) for end in three if end is not None) for label, three in ends if three[0] is not None}
    limit = BEYOND * median(reach.values()) if reach else 0.0
    far = {label for label, three in ends if three[0] is not None and abs(three[0]) > limit}
    return far if 3 * len(far) <= len(reach) else set()


def _panels(rows: Rows, labels: Sequence[str], top: float) -> list[Panel]:
    names = list(dict.fromkeys(row["panel"] for row in rows))
    per_row = columns(len(names))
    left = PAD + min(max(wide(label) for label in labels), 0.3 * WIDTH) + 12
    box = (WIDTH - PAD - left - GAP * (per_row - 1)) / per_row
    tall = ROW * len(labels) + 8
    tops = grid_tops(len(names), top, tall)
    panels = []
    for i, name in enumerate(names):
        far = _far(_of_panel(rows, name))
        mine = [row for row in _of_panel(rows, name) if row["label"] not in far]
        across = linear(
            [0.0, *(row[key] for row in mine for key in ("estimate", "low", "high"))], 8 // per_row, snug=True
        )
        x = left + (box + GAP) * (i % per_row)
        panels.append(Panel(name, x, tops[i], x + box, tops[i] + tall, across))
    return panels


def _heights(panel: Panel, labels: Sequence[str]) -> dict[str, float]:
    return {label: panel.top + 4 + ROW * (k + 0.5) for k, label in enumerate(labels)}


def _panel(panel: Panel, rows: Rows, labels: Sequence[str]) -> str:
    heights, zero = _heights(panel, labels), panel.x(0.0)
    parts = [element("line", x1=panel.left, x2=panel.right, y1=y, y2=y, class_="grid") for y in heights.values()]
    parts.append(element("line", x1=zero, x2=zero, y1=panel.top, y2=panel.bottom, class_="zero"))
    parts += [panel_name(panel), across_axis(panel)]
    far = _far(rows)
    return "".join(
        [*parts, *((_arrow if row["label"] in far else _dot)(panel, row, heights[row["label"]]) for row in rows)]
    )


def _names(panel: Panel, labels: Sequence[str]) -> str:
    """Return the labels, left of a panel, cut to the room there."""
    room = panel.left - PAD - 10
    parts = []
    for label, y in _heights(panel, labels).items():
        limit = max(k for k in range(2, len(label) + 2) if k == 2 or wide(shorten(label, k)) <= room)
        parts.append(text(shorten(label, limit), x=panel.left - 10, y=y + FONT * 0.35, text_anchor="end"))
    return "".join(parts)


def _dot(panel: Panel, row: Mapping[str, Any], y: float) -> str:
    estimate, low, high = (finite(row[key]) for key in ("estimate", "low", "high"))
    if estimate is None:
        return ""
    pen, parts, sure = Pen(0), [], False
    if low is not None and high is not None:
        parts.append(pen.whisker(panel.x(low), y, panel.x(high), y))
        sure = low > 0 or high < 0
    return element("g", title(_told(row)), *parts, pen.mark(panel.x(estimate), y, hollow=not sure))


def _arrow(panel: Panel, row: Mapping[str, Any], y: float) -> str:
    """Return a row that lies beyond the panel: an arrow at the side where it would be, and its number."""
    right = row["estimate"] > 0
    side, sign = (panel.right, -1) if right else (panel.left, 1)
    head = f"M{side:.1f},{y:.1f} l{sign * 8},-5 v10 Z"
    number = f"{row['estimate']:+.2g}".replace("-", "−")
    words = text(number, x=side + sign * 13, y=y + FONT * 0.35, text_anchor="end" if right else "start", class_="halo")
    return element("g", title(_told(row)), element("path", d=head, fill=Pen(0).colour), words)


def _told(row: Mapping[str, Any]) -> str:
    numbers = [finite(row[key]) for key in ("estimate", "low", "high")]
    estimate, low, high = ("–" if number is None else f"{number:+.4f}".replace("-", "−") for number in numbers)
    return f"{row['label']}, {row['panel']}: {estimate} ({low} to {high})"
