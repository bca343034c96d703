"""Small line charts that stand beside each other: one for each group of customers, its levels from left to right.

As in `strips`, horizontal places are percentages and everything else is pixels, so text keeps its size at any width. Levels are
named by their colours below the line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from largesse.report.charts.axes import Axis
from largesse.report.charts.svg import element, text, title
from largesse.report.number_format import Style, finite

TOP, BOTTOM, HEIGHT = 8, 118, 138
LEFT = 25.0  # per cent, for the numbers of the axis
SWATCH = 10


def draw_panel(axis: Axis, style: Style, points: Sequence[Mapping[str, Any]], label: str) -> str:
    """Draw a group's curve: the model's line, dashed where few rows had a level, and estimates with intervals at the others.

    `points` have ``model``, ``value`` with ``estimate``, ``low`` and ``high``, and ``few``: one for each level.
    """
    places = [_across(k, len(points)) for k in range(len(points))]
    marks = [*_draw_grid(axis, style), *_draw_line(axis, points, places)]
    for k, (point, x) in enumerate(zip(points, places, strict=True)):
        marks += [] if point["few"] else _draw_estimate(axis, point["value"], x)
        marks.append(_draw_level(k, x))
    box = {"class_": "panel strip", "width": "100%", "height": HEIGHT, "role": "img", "aria_label": label}
    return element("svg", title(label), *marks, **box)


def _across(place: int, many: int) -> float:
    """Return the horizontal place of a level, in per cent."""
    return LEFT + (100 - LEFT) * (place + 0.5) / max(many, 1)


def _up(axis: Axis, value: float) -> float:
    return BOTTOM - axis.place(value) * (BOTTOM - TOP)


def _draw_grid(axis: Axis, style: Style) -> list[str]:
    found = []
    for tick in axis.ticks:
        y = _up(axis, tick)
        found.append(element("line", x1=f"{LEFT}%", x2="100%", y1=y, y2=y, class_="grid"))
        found.append(text(style.text(tick), x=0, y=y + 4))
    return found


def _draw_line(axis: Axis, points: Sequence[Mapping[str, Any]], places: Sequence[float]) -> list[str]:
    """Return the pieces of the model's line between levels: a piece with too few rows at either end is dashed."""
    found = []
    for (left, x1), (right, x2) in pairwise(zip(points, places, strict=True)):
        a, b = finite(left["model"]), finite(right["model"])
        if a is not None and b is not None:
            kind = "curve few" if left["few"] or right["few"] else "curve"
            ends = {"x1": f"{x1:.2f}%", "x2": f"{x2:.2f}%", "y1": _up(axis, a), "y2": _up(axis, b)}
            found.append(element("line", **ends, class_=kind))
    return found


def _draw_estimate(axis: Axis, value: Mapping[str, Any], x: float) -> list[str]:
    estimate, low, high = (finite(value.get(end)) for end in ("estimate", "low", "high"))
    at, found = f"{x:.2f}%", []
    if low is not None and high is not None:
        found.append(element("line", x1=at, x2=at, y1=_up(axis, low), y2=_up(axis, high), class_="whisker honest"))
    if estimate is not None:
        found.append(element("circle", cx=at, cy=_up(axis, estimate), r=4.5, class_="dot honest"))
    return found


def _draw_level(level: int, x: float) -> str:
    """Return the square of a level, below its place; the nested svg lets pixels stand at a percentage."""
    square = {"x": -SWATCH / 2, "width": SWATCH, "height": SWATCH, "rx": 2, "style": f"fill:var(--level-{level})"}
    return element("svg", element("rect", **square, class_="square"), x=f"{x:.2f}%", y=BOTTOM + 8, overflow="visible")
