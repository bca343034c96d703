"""Value against budget: an estimated curve with its interval, single points, and the chosen plan.

Each chart is drawn twice, for a desk and for a phone, because text in a drawing that is scaled down shrinks with it; the style
sheet shows the one that fits. Colours are CSS variables: one drawing serves light, dark and paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from largesse.report.charts.axes import Frame, draw_axes, fit_axis, fit_frame, split_runs
from largesse.report.charts.svg import Place, draw_band, draw_path, element, measure, shorten, text, title
from largesse.report.number_format import Numbers, Units, finite, list_ends

Box: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class ChartSize:
    """Width and height of a drawing, its font size, and the approximate number of ticks."""

    width: float
    height: float
    font: float
    ticks: int


DESK = ChartSize(720, 330, 12.5, 8)
PHONE = ChartSize(340, 330, 12, 4)


@dataclass(frozen=True)
class CurvePoint:
    """A point of the chart: its place, its estimate with interval, and a sentence about it."""

    across: Any  # budget or spend
    value: Numbers
    words: str
    label: str = ""
    band: Numbers = field(default_factory=dict)  # low and high of a band that holds for all points together
    dashed: Any = None  # value of the dashed curve


@dataclass(frozen=True)
class CurveChart:
    """A chart: a curve, squares, the chosen plan if there is one, and titles."""

    curve: Sequence[CurvePoint]
    summary: str
    across_title: str
    up_title: str
    units: Units
    squares: Sequence[CurvePoint] = ()
    chosen: CurvePoint | None = None
    gains: bool = False  # values are differences of responses

    @property
    def marked(self) -> list[CurvePoint]:
        """The points with a label: the plan first, then the squares."""
        return [*([] if self.chosen is None else [self.chosen]), *self.squares]


def choose_labels(names: Sequence[str]) -> list[str]:
    """Return the labels of the squares: their names, or numbers from 1 if a name is too long.

    >>> choose_labels(["none", "5 euro"]), choose_labels(["none", "a coupon worth five euro"])
    (['none', '5 euro'], ['1', '2'])
    """
    if all(len(name) <= (14 if len(names) <= 6 else 5) for name in names):
        return list(names)
    return [str(k + 1) for k in range(len(names))]


def draw_for_screens(chart: CurveChart | None) -> dict[str, str]:
    """Draw a chart for a desk and for a phone; without a chart, both are empty."""
    sizes = {"desk": DESK, "phone": PHONE}
    return {name: "" if chart is None else draw_curve_chart(chart, size) for name, size in sizes.items()}


def draw_curve_chart(chart: CurveChart, size: ChartSize) -> str:
    """Draw the chart as one SVG of the given size."""
    frame = _fit_frame(chart, size)
    line = {"x1": frame.left, "x2": frame.left}
    return element(
        "svg",
        title(chart.summary),
        draw_axes(frame, chart.across_title, chart.up_title),
        *_draw_bands(frame, [(point.across, point.band) for point in chart.curve], "band outer"),
        *_draw_bands(frame, [(point.across, point.value) for point in chart.curve], "band"),
        *_draw_curve(frame, [(point.across, point.dashed) for point in chart.curve], "promise"),
        *_draw_curve(frame, [(point.across, point.value.get("estimate")) for point in chart.curve], "curve"),
        element("line", **line, y1=frame.top, y2=frame.bottom, class_="cursor"),
        # The budget slider moves these: a line at the budget, and the value there with its interval.
        element("line", **line, y1=frame.top, y2=frame.bottom, class_="slide"),
        element("line", **line, y1=frame.bottom, y2=frame.bottom, class_="slide-bar"),
        element("circle", cx=frame.left, cy=frame.bottom, r=7, class_="slide-dot"),
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
        data_low=frame.across.low,
        data_high=frame.across.high,
        data_top=frame.top,
        data_bottom=frame.bottom,
        data_floor=frame.up.low,
        data_ceiling=frame.up.high,
    )


def _fit_frame(chart: CurveChart, size: ChartSize) -> Frame:
    points = [*chart.curve, *chart.marked]
    across = fit_axis([point.across for point in points], size.ticks)
    values = [number for point in points for number in (*list_ends(point.value), *list_ends(point.band), point.dashed)]
    up = fit_axis(values, 6, bounds=None if chart.gains else chart.units.bounds)
    write = chart.units.difference if chart.gains else chart.units.response
    budgets = Units("amount", "").money(across.ticks, across.step, digits=1, short=True)
    values_style = write(up.ticks, up.step, digits=1, short=True)
    return fit_frame(size.width, size.height, size.font, across, up, budgets, values_style)


def _place(frame: Frame, across: Any, up: Any) -> Place | None:
    x, y = finite(across), finite(up)
    return None if x is None or y is None else (frame.x(x), frame.y(y))


def _place_point(frame: Frame, point: CurvePoint) -> Place | None:
    return _place(frame, point.across, point.value.get("estimate"))


def _place_interval(frame: Frame, across: Any, interval: Numbers) -> tuple[Place, Place] | None:
    low, high = _place(frame, across, interval.get("low")), _place(frame, across, interval.get("high"))
    return None if low is None or high is None else (low, high)


def _draw_curve(frame: Frame, rows: Iterable[tuple[Any, Any]], kind: str) -> list[str]:
    runs = split_runs(_place(frame, across, up) for across, up in rows)
    return [draw_path(run, class_=kind) for run in runs if len(run) > 1]


def _draw_bands(frame: Frame, rows: Iterable[tuple[Any, Numbers]], kind: str) -> list[str]:
    bands = []
    for run in split_runs(_place_interval(frame, across, interval) for across, interval in rows):
        if len(run) == 1:
            bands.append(_draw_bar(*run[0], "band-line"))
        else:
            bands.append(draw_band([high for _, high in run], [low for low, _ in run], class_=kind))
    return bands


def _draw_stops(frame: Frame, curve: Iterable[CurvePoint]) -> list[str]:
    """Draw a small dot per budget, with its sentence: shown on hover, and read by the script."""
    placed = [(_place_point(frame, point), point.words) for point in curve]
    return [
        element("circle", title(words), cx=place[0], cy=place[1], r=3, class_="stop", data_readout=words)
        for place, words in placed
        if place is not None
    ]


def _draw_square(frame: Frame, point: CurvePoint) -> str:
    place = _place_point(frame, point)
    if place is None:
        return ""
    x, y = place
    square = element("rect", title(point.words), x=x - 5, y=y - 5, width=10, height=10, class_="uniform")
    return _draw_interval(frame, point, "uniform-bar") + square


def _draw_chosen(frame: Frame, chosen: CurvePoint | None) -> str:
    place = None if chosen is None else _place_point(frame, chosen)
    if chosen is None or place is None:
        return ""
    dot = element("circle", title(chosen.label), cx=place[0], cy=place[1], r=8, class_="chosen")
    return _draw_interval(frame, chosen, "chosen-bar") + dot


def _draw_interval(frame: Frame, point: CurvePoint, kind: str) -> str:
    ends = _place_interval(frame, point.across, point.value)
    return "" if ends is None else _draw_bar(*ends, kind)


def _draw_bar(low: Place, high: Place, kind: str) -> str:
    return element("line", x1=low[0], x2=high[0], y1=low[1], y2=high[1], class_=kind)


# -- labels ------------------------------------------------------------------------------------------------------------


def _draw_labels(frame: Frame, chart: CurveChart, size: ChartSize) -> str:
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


def _find_obstacles(frame: Frame, chart: CurveChart) -> list[Box]:
    """Return points, whiskers and the curve as small boxes, which labels should not cover."""
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
    """Yield boxes for a label next to its point, the preferred one first."""
    x, y = place
    width, height = measure(words, frame.font) + 4, frame.font * 1.2
    for shift in (0.0, 0.9, -0.9, 1.8, -1.8, 2.8, -2.8):
        top = y - height / 2 + shift * height
        yield (x + 11, top, x + 11 + width, top + height)
        yield (x - 11 - width, top, x - 11, top + height)


def _cover(frame: Frame, size: ChartSize, box: Box, taken: Iterable[Box]) -> float:
    """Return the area of other things that a box would cover; leaving the drawing costs very much."""
    left, top, right, bottom = box
    outside = max(frame.left - left, 0) + max(right - size.width, 0)
    outside += max(frame.top - top, 0) + max(bottom - frame.bottom, 0)
    covered = 0.0
    for other in taken:
        width = min(right, other[2]) - max(left, other[0])
        covered += max(width, 0.0) * max(min(bottom, other[3]) - max(top, other[1]), 0.0)
    return covered + 1e3 * outside
