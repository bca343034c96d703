"""Lines with their spread, in panels: one SVG that needs nothing else.

`draw_lines` takes rows with ``panel``, ``label``, ``x``, ``mean`` and ``sd``. A missing mean leaves a gap; where sd is missing
there is no band.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from largesse.errors import Problem, refuse
from largesse.report.charts.frame import FONT, Frame, draw_across_axis, draw_up_axis, split_runs, up_axis_width
from largesse.report.charts.marks import draw_band
from largesse.report.charts.pens import Pen
from largesse.report.charts.scales import Scale, fit_linear_scale, fit_log_scale
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
from largesse.report.numbers import finite

Series: TypeAlias = Sequence[Mapping[str, Any]]
Point: TypeAlias = tuple[float, float, float | None]  # x, mean, sd
KEYS = ("panel", "label", "x", "mean", "sd")
BESIDE = 16.0  # room that the whiskers at one place share
HEIGHTS = {1: 290.0, 2: 215.0, 3: 185.0}  # of a frame, by how many stand side by side


@dataclass(frozen=True)
class Look:
    """How lines are drawn.

    Parameters
    ----------
    log_across, log_up
        Whether an axis is logarithmic; a zero on the lower one stands apart on the left.
    bars
        Draw the spread as a bar at each point instead of a band, and no line between points.
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


def draw_lines(series: Series, caption: Caption, look: Look = Look()) -> str:  # noqa: B008 — frozen
    """Return the series as one SVG: a panel for each ``panel``, a line for each ``label``, drawn alike in every panel."""
    _check(series)
    labels = dict.fromkeys(row["label"] for row in series)
    plain = [label for label in labels if label not in look.references]
    pens = {name: Pen(plain.index(name)) if name in plain else Pen(0, reference=True) for name in labels}
    heading = draw_heading(caption, pens, lines=not look.bars)
    frames = _place_frames(series, caption, look, heading.bottom)
    panels = [_draw_panel(frame, [row for row in series if row["panel"] == frame.name], pens, look) for frame in frames]
    return draw_sheet(caption, frames, heading.svg, draw_axis_titles(frames, caption), *panels)


def _check(series: Series) -> None:
    problems = find_gaps(series, KEYS, "give one row per line, as an experiment's `series`")
    for i, row in enumerate(series):
        sizes = [len(row[key]) for key in ("x", "mean", "sd") if key in row]
        if len(sizes) == 3 and len(set(sizes)) > 1:
            sized = f"x, mean and sd of row {i} have {sizes[0]}, {sizes[1]} and {sizes[2]} numbers"
            problems.append(Problem(sized, "give as many of each"))
    refuse("figure", problems)


def _split_points(row: Mapping[str, Any]) -> list[list[Point]]:
    return split_runs(map(_as_point, row["x"], row["mean"], row["sd"]))


def _as_point(x: Any, mean: Any, sd: Any) -> Point | None:
    across, up = finite(x), finite(mean)
    return None if across is None or up is None else (across, up, finite(sd))


# -- where things lie --------------------------------------------------------------------------------------------------


def _place_frames(series: Series, caption: Caption, look: Look, top: float) -> list[Frame]:
    names = list(dict.fromkeys(row["panel"] for row in series))
    per_row = count_columns(len(names))
    own = [[row for row in series if row["panel"] == name] for name in names]
    ups = [_fit_up(series if look.shared else rows, look) for rows in own]
    across = _fit_across(series, look, per_row)
    margins = [max(up_axis_width(up) for up in ups[j::per_row]) for j in range(per_row)]
    turned = FONT * 1.5 if caption.up else 0.0  # the title that runs up, beside the first frame of a row
    box = (WIDTH - 2 * PAD - turned - sum(margins) - 14 * (per_row - 1)) / per_row
    lefts = [PAD + turned + sum(margins[: j + 1]) + (box + 14) * j for j in range(per_row)]
    tops = place_rows(len(names), top, HEIGHTS[per_row])
    return [
        Frame(lefts[i % per_row], tops[i], lefts[i % per_row] + box, tops[i] + HEIGHTS[per_row], across, ups[i], name)
        for i, name in enumerate(names)
    ]


def _fit_across(series: Series, look: Look, per_row: int) -> Scale:
    values = [x for row in series for x in row["x"]]
    return fit_log_scale(values) if look.log_across else fit_linear_scale(values, 9 // per_row, snug=True)


def _fit_up(series: Series, look: Look) -> Scale:
    points = [point for row in series for run in _split_points(row) for point in run]
    ends = [mean + sign * (sd or 0.0) for _, mean, sd in points for sign in (-1, 0, 1)]
    if look.log_up:
        return fit_log_scale([end for end in ends if end > 0], measured=False)
    return fit_linear_scale(ends, 5)


# -- what is drawn -----------------------------------------------------------------------------------------------------


def _draw_panel(frame: Frame, rows: Series, pens: Mapping[str, Pen], look: Look) -> str:
    parts = [draw_name(frame), draw_up_axis(frame), draw_across_axis(frame)]
    series = [(row, pens[row["label"]]) for row in rows]
    barred = [look.bars and not pen.reference for _, pen in series]
    for (row, pen), bars in zip(series, barred, strict=True):
        parts += [] if bars else [_draw_spread(frame, _joined(frame, run), pen) for run in _split_points(row)]
    for k, ((row, pen), bars) in enumerate(zip(series, barred, strict=True)):
        # whiskers at one place stand beside each other
        beside = min(4.0, BESIDE / len(rows)) * (k - (len(rows) - 1) / 2)
        parts += [] if bars else [_draw_line(frame, _joined(frame, run), pen) for run in _split_points(row)]
        points = [point for run in _split_points(row) for point in run]
        alone = [point for point in points if bars or (frame.across.zero is not None and point[0] == 0)]
        parts += [_draw_point(frame, point, pen, beside) for point in alone]
    return "".join(parts)


def _joined(frame: Frame, run: list[Point]) -> list[Point]:
    """Return the points that a line joins: all but a zero that stands apart."""
    return run if frame.across.zero is None else [point for point in run if point[0] > 0]


def _draw_spread(frame: Frame, run: list[Point], pen: Pen) -> str:
    spread = [(x, mean, sd) for x, mean, sd in run if sd is not None]
    if len(spread) < 2:
        return "".join(_draw_point(frame, point, pen, 0.0) for point in run)
    upper = [(frame.x(x), frame.y(mean + sd)) for x, mean, sd in spread]
    lower = [(frame.x(x), frame.y(mean - sd)) for x, mean, sd in spread]
    return draw_band(upper, lower, class_="band", fill=pen.colour)


def _draw_line(frame: Frame, run: list[Point], pen: Pen) -> str:
    places = [(frame.x(x), frame.y(mean)) for x, mean, _ in run]
    return (pen.draw_line(places) if len(places) > 1 else "") + "".join(pen.draw_mark(x, y) for x, y in places)


def _draw_point(frame: Frame, point: Point, pen: Pen, beside: float) -> str:
    """Return a mark with its spread as a bar."""
    x, mean, sd = point
    at = frame.x(x) + beside
    bar = "" if sd is None else pen.draw_whisker((at, frame.y(mean - sd)), (at, frame.y(mean + sd)))
    return bar + pen.draw_mark(at, frame.y(mean))
