"""Differences with their intervals: one row per method, panels side by side, a line at zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, TypeAlias

from largesse.errors import refuse
from largesse.report.charts.frame import FONT, Frame, draw_across_axis
from largesse.report.charts.marks import element, measure, shorten, text, title
from largesse.report.charts.pens import Pen
from largesse.report.charts.scales import fit_linear_scale
from largesse.report.charts.sheet import (
    PAD,
    WIDTH,
    Caption,
    count_columns,
    draw_axis_titles,
    draw_heading,
    draw_name,
    draw_sheet,
    find_gaps,
    place_rows,
)
from largesse.report.numbers import DASH, finite

Rows: TypeAlias = Sequence[Mapping[str, Any]]
ROW, GAP = 24.0, 38.0
BEYOND = 3.0  # the axis is not stretched for a row this many times as far out as the median one
ENDS = ("estimate", "low", "high")
KEYS = ("panel", "label", *ENDS)


def draw_dots(rows: Rows, caption: Caption) -> str:
    """Return estimates with intervals as one SVG: a row per ``label``, a panel per ``panel``.

    A full dot has an interval without zero, a hollow one an interval that holds it; a row without an estimate stays empty.
    A few rows that lie far beyond all others are drawn as arrows with their number, so that the others can be told apart.
    The labels run up the side, so `caption.up` is not written.
    """
    refuse("figure", find_gaps(rows, KEYS, "give one row per method and panel"))
    if any(_find_far(_select_panel(rows, row["panel"])) for row in rows):
        caption = replace(caption, note=f"{caption.note} Arrows: beyond the panel.".strip())
    labels = [*dict.fromkeys(row["label"] for row in rows)]
    heading = draw_heading(caption, {})
    frames = _place_frames(rows, labels, heading.bottom)
    first = {frame.left for frame in frames[:1]}
    names = [_draw_labels(frame, labels) for frame in frames if frame.left in first]
    panels = [_draw_panel(frame, _select_panel(rows, frame.name), labels) for frame in frames]
    return draw_sheet(caption, frames, heading.svg, draw_axis_titles(frames, replace(caption, up="")), *names, *panels)


def _select_panel(rows: Rows, panel: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["panel"] == panel]


def _find_far(rows: Rows) -> set[str]:
    """Return the labels of a panel's rows that lie far beyond the others; no label if they are more than a third."""
    ends = [(row["label"], [finite(row[key]) for key in ENDS]) for row in rows]
    reach = {label: max(abs(end) for end in three if end is not None) for label, three in ends if three[0] is not None}
    limit = BEYOND * median(reach.values()) if reach else 0.0
    far = {label for label, three in ends if three[0] is not None and abs(three[0]) > limit}
    return far if 3 * len(far) <= len(reach) else set()


def _place_frames(rows: Rows, labels: Sequence[str], top: float) -> list[Frame]:
    names = list(dict.fromkeys(row["panel"] for row in rows))
    per_row = count_columns(len(names))
    left = PAD + min(max(measure(label, FONT) for label in labels), 0.3 * WIDTH) + 12
    box = (WIDTH - PAD - left - GAP * (per_row - 1)) / per_row
    height = ROW * len(labels) + 8
    tops = place_rows(len(names), top, height)
    frames = []
    for i, name in enumerate(names):
        far = _find_far(_select_panel(rows, name))
        near = [row for row in _select_panel(rows, name) if row["label"] not in far]
        across = fit_linear_scale([0.0, *(row[key] for row in near for key in ENDS)], 8 // per_row, snug=True)
        x = left + (box + GAP) * (i % per_row)
        frames.append(Frame(x, tops[i], x + box, tops[i] + height, across, name=name))
    return frames


def _place_labels(frame: Frame, labels: Sequence[str]) -> dict[str, float]:
    return {label: frame.top + 4 + ROW * (k + 0.5) for k, label in enumerate(labels)}


def _draw_panel(frame: Frame, rows: Rows, labels: Sequence[str]) -> str:
    heights, zero = _place_labels(frame, labels), frame.x(0.0)
    parts = [element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="grid") for y in heights.values()]
    parts.append(element("line", x1=zero, x2=zero, y1=frame.top, y2=frame.bottom, class_="zero"))
    parts += [draw_name(frame), draw_across_axis(frame)]
    far = _find_far(rows)
    parts += [(_draw_arrow if row["label"] in far else _draw_dot)(frame, row, heights[row["label"]]) for row in rows]
    return "".join(parts)


def _draw_labels(frame: Frame, labels: Sequence[str]) -> str:
    """Return the labels, left of a frame, cut to the room there."""
    room = frame.left - PAD - 10
    parts = []
    for label, y in _place_labels(frame, labels).items():
        limit = max(k for k in range(2, len(label) + 2) if k == 2 or measure(shorten(label, k), FONT) <= room)
        parts.append(text(shorten(label, limit), x=frame.left - 10, y=y + FONT * 0.35, text_anchor="end"))
    return "".join(parts)


def _draw_dot(frame: Frame, row: Mapping[str, Any], y: float) -> str:
    estimate, low, high = (finite(row[key]) for key in ENDS)
    if estimate is None:
        return ""
    pen, parts, sure = Pen(0), [], False
    if low is not None and high is not None:
        parts.append(pen.draw_whisker((frame.x(low), y), (frame.x(high), y)))
        sure = low > 0 or high < 0
    return element("g", title(_describe(row)), *parts, pen.draw_mark(frame.x(estimate), y, hollow=not sure))


def _draw_arrow(frame: Frame, row: Mapping[str, Any], y: float) -> str:
    """Return a row that lies beyond the frame: an arrow at the side where it would be, and its number."""
    right = row["estimate"] > 0
    side, sign = (frame.right, -1) if right else (frame.left, 1)
    head = f"M{side:.1f},{y:.1f} l{sign * 8},-5 v10 Z"
    number = f"{row['estimate']:+.2g}".replace("-", "−")
    words = text(number, x=side + sign * 13, y=y + FONT * 0.35, text_anchor="end" if right else "start", class_="halo")
    return element("g", title(_describe(row)), element("path", d=head, fill=Pen(0).colour), words)


def _describe(row: Mapping[str, Any]) -> str:
    numbers = [finite(row[key]) for key in ENDS]
    estimate, low, high = (DASH if number is None else f"{number:+.4f}".replace("-", "−") for number in numbers)
    return f"{row['label']}, {row['panel']}: {estimate} ({low} to {high})"
