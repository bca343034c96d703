"""Chart of value by budget: a curve with its interval, single points, and the chosen plan.

Each chart is drawn twice, for a desk and for a phone, because text in a drawing that is scaled down shrinks with it; the style
sheet shows the one that fits. Colours are CSS variables: one drawing serves light, dark and paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from largesse.report.charts.axes import Frame, draw_axes, fit_axis, fit_frame, split_at_missing_points
from largesse.report.charts.svg import (
    Place,
    draw_band,
    draw_path,
    estimate_text_width,
    make_element,
    make_text_element,
    make_tooltip,
    shorten_text,
)
from largesse.report.number_format import Numbers, Units, finite_or_none, list_estimate_and_ends

Box: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class ChartSize:
    """Width, height, font size and number of ticks of a chart."""

    width: float
    height: float
    font: float
    ticks: int


DESK = ChartSize(720, 330, 12.5, 8)
PHONE = ChartSize(340, 330, 12, 4)


@dataclass(frozen=True)
class CurvePoint:
    """Point of a chart: budget, estimate with interval, and a sentence for its tooltip."""

    across: Any  # budget or spend
    value: Numbers
    words: str
    label: str = ""
    band: Numbers = field(default_factory=dict)  # low and high of a band that holds for all points together
    dashed: Any = None  # value of the dashed curve


@dataclass(frozen=True)
class CurveChart:
    """Contents of a chart: curve, single points, chosen plan and titles."""

    curve: Sequence[CurvePoint]
    summary: str
    across_title: str
    up_title: str
    units: Units
    squares: Sequence[CurvePoint] = ()
    chosen: CurvePoint | None = None
    gains: bool = False  # values are differences of responses

    @property
    def labelled_points(self) -> list[CurvePoint]:
        """Points with a label: the chosen plan first, then the single points."""
        return [*([] if self.chosen is None else [self.chosen]), *self.squares]


def choose_point_labels(names: Sequence[str]) -> list[str]:
    """Return the labels of a chart's single points: their names, or numbers if a name is too long.

    >>> choose_point_labels(["none", "5 euro"]), choose_point_labels(["none", "a coupon worth five euro"])
    (['none', '5 euro'], ['1', '2'])
    """
    if all(len(name) <= (14 if len(names) <= 6 else 5) for name in names):
        return list(names)
    return [str(k + 1) for k in range(len(names))]


def draw_desktop_and_phone_charts(chart: CurveChart | None) -> dict[str, str]:
    """Draw a chart once for wide and once for narrow screens; both are empty without a chart."""
    sizes = {"desk": DESK, "phone": PHONE}
    return {name: "" if chart is None else draw_curve_chart(chart, size) for name, size in sizes.items()}


def draw_curve_chart(chart: CurveChart, size: ChartSize) -> str:
    """Draw a chart of value by budget as SVG of the given size."""
    frame = _fit_frame(chart, size)
    line = {"x1": frame.left, "x2": frame.left}
    return make_element(
        "svg",
        make_tooltip(chart.summary),
        draw_axes(frame, chart.across_title, chart.up_title),
        *_draw_bands(frame, [(point.across, point.band) for point in chart.curve], "band outer"),
        *_draw_bands(frame, [(point.across, point.value) for point in chart.curve], "band"),
        *_draw_curve(frame, [(point.across, point.dashed) for point in chart.curve], "promise"),
        *_draw_curve(frame, [(point.across, point.value.get("estimate")) for point in chart.curve], "curve"),
        make_element("line", **line, y1=frame.top, y2=frame.bottom, class_="cursor"),
        # The budget slider moves these: a line at the budget, and the value there with its interval.
        make_element("line", **line, y1=frame.top, y2=frame.bottom, class_="slide"),
        make_element("line", **line, y1=frame.bottom, y2=frame.bottom, class_="slide-bar"),
        make_element("circle", cx=frame.left, cy=frame.bottom, r=7, class_="slide-dot"),
        *_draw_budget_dots(frame, chart.curve),
        *(_draw_square_point(frame, point) for point in chart.squares),
        _draw_chosen_plan(frame, chart.chosen),
        _draw_point_labels(frame, chart, size),
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
    points = [*chart.curve, *chart.labelled_points]
    across = fit_axis([point.across for point in points], size.ticks)
    values = [
        number
        for point in points
        for number in (*list_estimate_and_ends(point.value), *list_estimate_and_ends(point.band), point.dashed)
    ]
    up = fit_axis(values, 6, bounds=None if chart.gains else chart.units.response_bounds)
    write = chart.units.difference if chart.gains else chart.units.response
    budgets = Units("amount", "").money(across.ticks, across.step, digits=1, short=True)
    values_style = write(up.ticks, up.step, digits=1, short=True)
    return fit_frame(size.width, size.height, size.font, across, up, budgets, values_style)


def _locate(frame: Frame, across: Any, up: Any) -> Place | None:
    x, y = finite_or_none(across), finite_or_none(up)
    return None if x is None or y is None else (frame.x(x), frame.y(y))


def _locate_point(frame: Frame, point: CurvePoint) -> Place | None:
    return _locate(frame, point.across, point.value.get("estimate"))


def _locate_interval(frame: Frame, across: Any, interval: Numbers) -> tuple[Place, Place] | None:
    low, high = _locate(frame, across, interval.get("low")), _locate(frame, across, interval.get("high"))
    return None if low is None or high is None else (low, high)


def _draw_curve(frame: Frame, rows: Iterable[tuple[Any, Any]], kind: str) -> list[str]:
    runs = split_at_missing_points(_locate(frame, across, up) for across, up in rows)
    return [draw_path(run, class_=kind) for run in runs if len(run) > 1]


def _draw_bands(frame: Frame, rows: Iterable[tuple[Any, Numbers]], kind: str) -> list[str]:
    bands = []
    for run in split_at_missing_points(_locate_interval(frame, across, interval) for across, interval in rows):
        if len(run) == 1:
            bands.append(_draw_vertical_bar(*run[0], "band-line"))
        else:
            bands.append(draw_band([high for _, high in run], [low for low, _ in run], class_=kind))
    return bands


def _draw_budget_dots(frame: Frame, curve: Iterable[CurvePoint]) -> list[str]:
    """Draw a small dot per budget with its sentence as tooltip."""
    placed = [(_locate_point(frame, point), point.words) for point in curve]
    return [
        make_element("circle", make_tooltip(words), cx=place[0], cy=place[1], r=3, class_="stop", data_readout=words)
        for place, words in placed
        if place is not None
    ]


def _draw_square_point(frame: Frame, point: CurvePoint) -> str:
    place = _locate_point(frame, point)
    if place is None:
        return ""
    x, y = place
    square = make_element("rect", make_tooltip(point.words), x=x - 5, y=y - 5, width=10, height=10, class_="uniform")
    return _draw_interval(frame, point, "uniform-bar") + square


def _draw_chosen_plan(frame: Frame, chosen: CurvePoint | None) -> str:
    place = None if chosen is None else _locate_point(frame, chosen)
    if chosen is None or place is None:
        return ""
    dot = make_element("circle", make_tooltip(chosen.label), cx=place[0], cy=place[1], r=8, class_="chosen")
    return _draw_interval(frame, chosen, "chosen-bar") + dot


def _draw_interval(frame: Frame, point: CurvePoint, kind: str) -> str:
    ends = _locate_interval(frame, point.across, point.value)
    return "" if ends is None else _draw_vertical_bar(*ends, kind)


def _draw_vertical_bar(low: Place, high: Place, kind: str) -> str:
    return make_element("line", x1=low[0], x2=high[0], y1=low[1], y2=high[1], class_=kind)


# -- labels ------------------------------------------------------------------------------------------------------------


def _draw_point_labels(frame: Frame, chart: CurveChart, size: ChartSize) -> str:
    """Draw the labels of the plan and the single points where they cover as little as possible."""
    taken = _list_label_obstacles(frame, chart)
    written = []
    for point in chart.labelled_points:
        place, words = _locate_point(frame, point), shorten_text(point.label, 14)
        if place is None:
            continue
        box = min(
            _list_label_boxes(frame, place, words),
            key=lambda candidate: _measure_covered_area(frame, size, candidate, taken),
        )
        taken.append(box)
        kind = "chosen-label" if point is chart.chosen else "uniform-label"
        written.append(make_text_element(words, x=box[0] + 2, y=box[3] - frame.font * 0.25, class_=kind))
    return "".join(written)


def _list_label_obstacles(frame: Frame, chart: CurveChart) -> list[Box]:
    """Return the boxes of points, intervals and curve that labels should not cover."""
    boxes: list[Box] = []
    for run in split_at_missing_points(_locate_point(frame, point) for point in chart.curve):
        boxes += [_make_box_around(x, y, 5) for x, y in run]
        for (x, y), (x2, y2) in pairwise(run):
            steps = max(int((x2 - x) / 8), 1)
            boxes += [_make_box_around(x + (x2 - x) * i / steps, y + (y2 - y) * i / steps, 3) for i in range(steps + 1)]
    for point in chart.labelled_points:
        place, ends = _locate_point(frame, point), _locate_interval(frame, point.across, point.value)
        if place is not None:
            boxes.append(_make_box_around(*place, 9))
            boxes += [] if ends is None else [(place[0] - 2, ends[1][1], place[0] + 2, ends[0][1])]
    return boxes


def _make_box_around(x: float, y: float, r: float) -> Box:
    return (x - r, y - r, x + r, y + r)


def _list_label_boxes(frame: Frame, place: Place, words: str) -> Iterable[Box]:
    """Yield possible boxes for a label next to its point, the preferred box first."""
    x, y = place
    width, height = estimate_text_width(words, frame.font) + 4, frame.font * 1.2
    for shift in (0.0, 0.9, -0.9, 1.8, -1.8, 2.8, -2.8):
        top = y - height / 2 + shift * height
        yield (x + 11, top, x + 11 + width, top + height)
        yield (x - 11 - width, top, x - 11, top + height)


def _measure_covered_area(frame: Frame, size: ChartSize, box: Box, taken: Iterable[Box]) -> float:
    """Return the area of obstacles that a label's box would cover, with a penalty outside the drawing."""
    left, top, right, bottom = box
    outside = max(frame.left - left, 0) + max(right - size.width, 0)
    outside += max(frame.top - top, 0) + max(bottom - frame.bottom, 0)
    covered = 0.0
    for other in taken:
        width = min(right, other[2]) - max(left, other[0])
        covered += max(width, 0.0) * max(min(bottom, other[3]) - max(top, other[1]), 0.0)
    return covered + 1e3 * outside
