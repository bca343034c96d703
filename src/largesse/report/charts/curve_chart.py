"""Value against budget: an estimated curve with its interval, points beside it, and the chosen plan.

Drawn twice, for a desk and for a phone, because text in a drawing that is scaled down shrinks with it; the style sheet
shows the one that fits. Colours are CSS variables, so that one drawing serves light, dark and paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from largesse.report.charts.axes import (
    Frame,
    draw_across_axis,
    draw_up_axis,
    fit_axis,
    label_ticks,
    split_runs,
    up_axis_width,
)
from largesse.report.charts.svg import Place, draw_band, draw_path, element, measure, shorten, text, title
from largesse.report.number_format import Units, finite, parts

Box: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Size:
    """Width and height of a drawing, its font size, and about how many ticks have room."""

    width: float
    height: float
    font: float
    across: int


DESK = Size(900, 430, 13.5, 8)
PHONE = Size(340, 330, 12, 4)


@dataclass(frozen=True)
class Point:
    """A point of the chart: where it stands, its estimate with interval, and a sentence about it.

    Parameters
    ----------
    across
        Budget or spend; may be missing.
    value
        ``estimate``, ``low`` and ``high``; any may be missing.
    words
        What to say about the point.
    label
        What to write beside it.
    band
        ``low`` and ``high`` of a band that holds for all points together.
    beside
        A second value at the same place, for the dashed curve.
    """

    across: Any
    value: Mapping[str, Any]
    words: str
    label: str = ""
    band: Mapping[str, Any] = field(default_factory=dict)
    beside: Any = None


@dataclass(frozen=True)
class Chart:
    """What the figure shows: a curve, squares beside it, the chosen plan if there is one, and its words."""

    curve: Sequence[Point]
    summary: str
    across_title: str
    up_title: str
    units: Units
    squares: Sequence[Point] = ()
    chosen: Point | None = None
    gains: bool = False  # values are differences of responses

    @property
    def marked(self) -> list[Point]:
        """The points with a label: the plan first, then the squares."""
        return [*([] if self.chosen is None else [self.chosen]), *self.squares]


def choose_labels(names: Sequence[str]) -> list[str]:
    """Return the labels written beside the squares: their names, or numbers from 1 when these have no room.

    >>> choose_labels(["none", "5 euro"]), choose_labels(["none", "a coupon worth five euro"])
    (['none', '5 euro'], ['1', '2'])
    """
    if all(len(name) <= (14 if len(names) <= 6 else 5) for name in names):
        return list(names)
    return [str(k + 1) for k in range(len(names))]


def draw_frontier(chart: Chart, size: Size) -> str:
    """Return the chart as one SVG of the given size."""
    frame = _fit_frame(chart, size)
    up = frame.across.axis if frame.up is None else frame.up.axis
    return element(
        "svg",
        title(chart.summary),
        _draw_axes(frame, chart, size),
        *_draw_bands(frame, [(point.across, point.band) for point in chart.curve], "band outer"),
        *_draw_bands(frame, [(point.across, point.value) for point in chart.curve], "band"),
        *_draw_curve(frame, [(point.across, point.beside) for point in chart.curve], "promise"),
        *_draw_curve(frame, [(point.across, point.value.get("estimate")) for point in chart.curve], "curve"),
        element("line", x1=frame.left, x2=frame.left, y1=frame.top, y2=frame.bottom, class_="cursor"),
        *_draw_slide(frame),
        *_draw_stops(frame, chart.curve),
        *(_draw_square(frame, point) for point in chart.squares),
        _draw_chosen(frame, chart.chosen),
        _draw_labels(frame, chart, size),
        class_="frontier",
        viewBox=f"0 0 {size.width:g} {size.height:g}",
        font_size=size.font,
        role="img",
        aria_label=chart.summary,
        data_left=frame.left,
        data_right=frame.right,
        data_low=frame.across.axis.low,
        data_high=frame.across.axis.high,
        data_top=frame.top,
        data_bottom=frame.bottom,
        data_floor=up.low,
        data_ceiling=up.high,
    )


def _draw_slide(frame: Frame) -> list[str]:
    """Return what the budget slider moves: a line at the budget, and the value there with its interval."""
    x, y = {"x1": frame.left, "x2": frame.left}, frame.bottom
    return [
        element("line", **x, y1=frame.top, y2=frame.bottom, class_="slide"),
        element("line", **x, y1=y, y2=y, class_="slide-bar"),
        element("circle", cx=frame.left, cy=y, r=7, class_="slide-dot"),
    ]


# -- where things lie --------------------------------------------------------------------------------------------------


def _fit_frame(chart: Chart, size: Size) -> Frame:
    points = [*chart.curve, *chart.marked]
    across = fit_axis([point.across for point in points], size.across)
    values = [number for point in points for number in (*parts(point.value), *parts(point.band), point.beside)]
    up = fit_axis(values, 6)
    kind = chart.units.difference if chart.gains else chart.units.response
    scale = label_ticks(up, kind(up.ticks, up.step, digits=1, short=True))
    budgets = Units("amount", "").money(across.ticks, across.step, digits=1, short=True)
    left = up_axis_width(scale, size.font)
    right, bottom = size.width - 14, size.height - size.font * 3.6
    return Frame(left, size.font * 2.4, right, bottom, label_ticks(across, budgets), scale, font=size.font)


def _place(frame: Frame, across: Any, up: Any) -> Place | None:
    x, y = finite(across), finite(up)
    return None if x is None or y is None else (frame.x(x), frame.y(y))


def _place_point(frame: Frame, point: Point) -> Place | None:
    return _place(frame, point.across, point.value.get("estimate"))


def _place_interval(frame: Frame, across: Any, interval: Mapping[str, Any]) -> tuple[Place, Place] | None:
    low, high = _place(frame, across, interval.get("low")), _place(frame, across, interval.get("high"))
    return None if low is None or high is None else (low, high)


# -- what is drawn -----------------------------------------------------------------------------------------------------


def _draw_axes(frame: Frame, chart: Chart, size: Size) -> str:
    up = text(chart.up_title, x=0, y=size.font, class_="axis-title")
    words = {"x": frame.right, "y": size.height - 4, "text_anchor": "end", "class_": "axis-title"}
    return up + draw_up_axis(frame) + draw_across_axis(frame) + text(chart.across_title, **words)


def _draw_curve(frame: Frame, rows: Iterable[tuple[Any, Any]], kind: str) -> list[str]:
    runs = split_runs(_place(frame, across, up) for across, up in rows)
    return [draw_path(run, class_=kind) for run in runs if len(run) > 1]


def _draw_bands(frame: Frame, rows: Iterable[tuple[Any, Mapping[str, Any]]], kind: str) -> list[str]:
    bands = []
    for run in split_runs(_place_interval(frame, across, interval) for across, interval in rows):
        if len(run) == 1:
            bands.append(_draw_bar(*run[0], "band-line"))
        else:
            bands.append(draw_band([high for _, high in run], [low for low, _ in run], class_=kind))
    return bands


def _draw_stops(frame: Frame, curve: Iterable[Point]) -> list[str]:
    """Return a small dot per budget, with its sentence: shown on hover, and read by the script."""
    placed = [(_place_point(frame, point), point.words) for point in curve]
    return [
        element("circle", title(words), cx=place[0], cy=place[1], r=3, class_="stop", data_readout=words)
        for place, words in placed
        if place is not None
    ]


def _draw_square(frame: Frame, point: Point) -> str:
    place = _place_point(frame, point)
    if place is None:
        return ""
    x, y = place
    square = element("rect", title(point.words), x=x - 5, y=y - 5, width=10, height=10, class_="uniform")
    return _draw_interval(frame, point, "uniform-bar") + square


def _draw_chosen(frame: Frame, chosen: Point | None) -> str:
    place = None if chosen is None else _place_point(frame, chosen)
    if chosen is None or place is None:
        return ""
    dot = element("circle", title(chosen.label), cx=place[0], cy=place[1], r=8, class_="chosen")
    return _draw_interval(frame, chosen, "chosen-bar") + dot


def _draw_interval(frame: Frame, point: Point, kind: str) -> str:
    ends = _place_interval(frame, point.across, point.value)
    return "" if ends is None else _draw_bar(*ends, kind)


def _draw_bar(low: Place, high: Place, kind: str) -> str:
    return element("line", x1=low[0], x2=high[0], y1=low[1], y2=high[1], class_=kind)


# -- labels ------------------------------------------------------------------------------------------------------------


def _draw_labels(frame: Frame, chart: Chart, size: Size) -> str:
    """Write the labels of the plan and the squares where they cover as little as possible."""
    taken = _find_obstacles(frame, chart)
    written = []
    for point in chart.marked:
        place, words = _place_point(frame, point), shorten(point.label, 14)
        if place is None:
            continue
        box = min(_offer_boxes(frame, place, words), key=lambda candidate: _cover(frame, size, candidate, taken))
        taken.append(box)
        kind = "chosen-label" if point is chart.chosen else "uniform-label"
        written.append(text(words, x=box[0] + 2, y=box[3] - frame.font * 0.25, class_=kind))
    return "".join(written)


def _find_obstacles(frame: Frame, chart: Chart) -> list[Box]:
    """Return what labels should not cover: points, whiskers and the curve, as small boxes."""
    boxes: list[Box] = []
    for run in split_runs(_place_point(frame, point) for point in chart.curve):
        boxes += [_surround(x, y, 5) for x, y in run]
        for (x, y), (x2, y2) in pairwise(run):
            steps = max(int((x2 - x) / 8), 1)
            boxes += [_surround(x + (x2 - x) * i / steps, y + (y2 - y) * i / steps, 3) for i in range(steps + 1)]
    for point in chart.marked:
        place, ends = _place_point(frame, point), _place_interval(frame, point.across, point.value)
        if place is not None:
            boxes.append(_surround(*place, 9))
            boxes += [] if ends is None else [(place[0] - 2, ends[1][1], place[0] + 2, ends[0][1])]
    return boxes


def _surround(x: float, y: float, r: float) -> Box:
    return (x - r, y - r, x + r, y + r)


def _offer_boxes(frame: Frame, place: Place, words: str) -> Iterable[Box]:
    """Yield boxes for a label beside its point, the preferred one first."""
    x, y = place
    width, height = measure(words, frame.font) + 4, frame.font * 1.2
    for away in (0.0, 0.9, 1.8, 2.8):
        for down in (away, -away):
            top = y - height / 2 + down * height
            yield (x + 11, top, x + 11 + width, top + height)
            yield (x - 11 - width, top, x - 11, top + height)


def _cover(frame: Frame, size: Size, box: Box, taken: Iterable[Box]) -> float:
    """Return the area of other things a box would cover; leaving the drawing counts as covering very much."""
    left, top, right, bottom = box
    outside = max(frame.left - left, 0) + max(right - size.width, 0)
    outside += max(frame.top - top, 0) + max(bottom - frame.bottom, 0)
    covered = 0.0
    for other in taken:
        across = min(right, other[2]) - max(left, other[0])
        covered += max(across, 0.0) * max(min(bottom, other[3]) - max(top, other[1]), 0.0)
    return covered + 1e3 * outside
