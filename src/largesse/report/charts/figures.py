"""The frontier: honest value at each budget with its interval, every uniform level, and the chosen plan.

Drawn twice, for a desk and for a phone, because text in a drawing that is scaled down shrinks with it; the style sheet
shows the one that fits. Colours are CSS variables, so that one drawing serves light, dark and paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from largesse.report.charts.marks import element, shorten, text, title
from largesse.report.charts.scales import Axis, axis
from largesse.report.formats import Units, finite

Rows: TypeAlias = Sequence[Mapping[str, Any]]
Box: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Size:
    """Width and height of a drawing, the size of its writing, and about how many ticks have room."""

    width: float
    height: float
    font: float
    across: int

    def wide(self, words: str) -> float:
        """Return about how wide some words are; generous, since fonts differ."""
        return 0.62 * self.font * len(words)


DESK = Size(900, 430, 13.5, 8)
PHONE = Size(340, 330, 12, 4)


@dataclass(frozen=True)
class Frame:
    """Where numbers lie in a drawing."""

    size: Size
    across: Axis
    up: Axis
    left: float
    top: float
    right: float
    bottom: float

    def x(self, value: float) -> float:
        """Return the horizontal place of a budget."""
        return self.left + self.across.place(value) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return the vertical place of a value."""
        return self.bottom - self.up.place(value) * (self.bottom - self.top)


@dataclass(frozen=True)
class Chart:
    """What the frontier figure shows.

    Parameters
    ----------
    frontier
        Rows with budget, value, low, high, promise, and where they are known band_low and band_high, which hold for
        all budgets together; `readouts` has one sentence for each.
    uniform
        Rows with spend, value, low, high; `marks` has the short label of each.
    chosen
        The plan: budget, value, low, high.
    """

    frontier: Rows
    readouts: Sequence[str]
    uniform: Rows
    marks: Sequence[str]
    tips: Sequence[str]
    chosen: Mapping[str, Any]
    summary: str
    across_title: str
    up_title: str
    units: Units


def point_marks(names: Sequence[str]) -> list[str]:
    """Return the labels written beside the uniform levels: their names, or numbers from 1 when these have no room.

    >>> point_marks(["none", "5 euro"]), point_marks(["none", "a coupon worth five euro"])
    (['none', '5 euro'], ['1', '2'])
    """
    if len(names) <= 6 and all(len(name) <= 14 for name in names):
        return list(names)
    return [str(k + 1) for k in range(len(names))]


def frontier_figure(chart: Chart, size: Size) -> str:
    """Return the frontier as one SVG of the given size."""
    frame = _frame(chart, size)
    return element(
        "svg",
        title(chart.summary),
        _axes(frame, chart),
        _band(frame, chart.frontier, "band_low", "band_high", "band outer"),
        _band(frame, chart.frontier, "low", "high", "band"),
        *_path(frame, chart.frontier, "promise", "promise"),
        *_path(frame, chart.frontier, "value", "curve"),
        element("line", x1=frame.left, x2=frame.left, y1=frame.top, y2=frame.bottom, class_="cursor"),
        *_stops(frame, chart),
        *_uniform(frame, chart),
        _chosen(frame, chart.chosen),
        _labels(frame, chart),
        class_="frontier",
        viewBox=f"0 0 {size.width:g} {size.height:g}",
        font_size=size.font,
        role="img",
        aria_label=chart.summary,
    )


def _frame(chart: Chart, size: Size) -> Frame:
    budgets = [row.get("budget") for row in chart.frontier] + [row.get("spend") for row in chart.uniform]
    across = axis([*budgets, chart.chosen.get("budget")], size.across)
    rows = [*chart.frontier, *chart.uniform, chart.chosen]
    keys = ("value", "low", "high", "promise", "band_low", "band_high")
    up = axis([row.get(key) for row in rows for key in keys], 6)
    ticks = chart.units.response(up.ticks, up.step, digits=1, short=True)
    left = max(size.wide(ticks.text(tick)) for tick in up.ticks) + 12
    return Frame(size, across, up, left, size.font * 2.4, size.width - 14, size.height - size.font * 3.6)


def _axes(frame: Frame, chart: Chart) -> str:
    size, units = frame.size, chart.units
    values = units.response(frame.up.ticks, frame.up.step, digits=1, short=True)
    budgets = Units("amount", "").money(frame.across.ticks, frame.across.step, digits=1, short=True)
    parts = [text(chart.up_title, x=0, y=size.font, class_="axis-title")]
    for tick in frame.up.ticks:
        y = frame.y(tick)
        parts.append(element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="grid"))
        parts.append(text(values.text(tick), x=frame.left - 7, y=y + size.font * 0.35, text_anchor="end"))
    for tick in frame.across.ticks:
        x, y = frame.x(tick), frame.bottom
        parts.append(element("line", x1=x, x2=x, y1=y, y2=y + 5, class_="tick"))
        parts.append(text(budgets.text(tick), x=x, y=y + size.font * 1.6, text_anchor="middle"))
    parts.append(element("line", x1=frame.left, x2=frame.right, y1=frame.bottom, y2=frame.bottom, class_="tick"))
    words = {"x": frame.right, "y": size.height - 4, "text_anchor": "end", "class_": "axis-title"}
    return "".join([*parts, text(chart.across_title, **words)])


def _runs(frame: Frame, rows: Rows, *keys: str) -> list[list[tuple[float, ...]]]:
    """Return the places (x, y of each key) in pieces: a missing number ends a piece, so nothing is drawn across a gap."""
    runs: list[list[tuple[float, ...]]] = [[]]
    for row in rows:
        found = [finite(row.get(key)) for key in ("budget", *keys)]
        numbers = [number for number in found if number is not None]
        if len(numbers) == len(found):
            runs[-1].append((frame.x(numbers[0]), *(frame.y(number) for number in numbers[1:])))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _path(frame: Frame, rows: Rows, key: str, kind: str) -> list[str]:
    runs = [run for run in _runs(frame, rows, key) if len(run) > 1]
    return [element("path", d="M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in run), class_=kind) for run in runs]


def _band(frame: Frame, rows: Rows, low_key: str, high_key: str, kind: str) -> str:
    bands = []
    for run in _runs(frame, rows, low_key, high_key):
        if len(run) == 1:
            x, low, high = run[0]
            bands.append(element("line", x1=x, x2=x, y1=low, y2=high, class_="band-line"))
            continue
        there = [f"{x:.1f},{high:.1f}" for x, _, high in run]
        back = [f"{x:.1f},{low:.1f}" for x, low, _ in reversed(run)]
        bands.append(element("path", d=f"M{' L'.join(there + back)} Z", class_=kind))
    return "".join(bands)


def _stops(frame: Frame, chart: Chart) -> list[str]:
    """Return a small dot per budget, with its sentence: shown on hover, and read by the script."""
    dots = []
    for row, words in zip(chart.frontier, chart.readouts, strict=True):
        budget, value = finite(row.get("budget")), finite(row.get("value"))
        if budget is not None and value is not None:
            place = {"cx": frame.x(budget), "cy": frame.y(value)}
            dots.append(element("circle", title(words), **place, r=3, class_="stop", data_readout=words))
    return dots


def _uniform(frame: Frame, chart: Chart) -> list[str]:
    marks = []
    for row, tip in zip(chart.uniform, chart.tips, strict=True):
        place = _place(frame, row, "spend")
        if place is not None:
            x, y = place
            square = element("rect", title(tip), x=x - 5, y=y - 5, width=10, height=10, class_="uniform")
            marks.append(_bar(frame, row, x, "uniform-bar") + square)
    return marks


def _chosen(frame: Frame, chosen: Mapping[str, Any]) -> str:
    place = _place(frame, chosen, "budget")
    if place is None:
        return ""
    x, y = place
    dot = element("circle", title("this plan"), cx=x, cy=y, r=8, class_="chosen")
    return _bar(frame, chosen, x, "chosen-bar") + dot


def _bar(frame: Frame, row: Mapping[str, Any], x: float, kind: str) -> str:
    low, high = finite(row.get("low")), finite(row.get("high"))
    if low is None or high is None:
        return ""
    return element("line", x1=x, x2=x, y1=frame.y(low), y2=frame.y(high), class_=kind)


def _place(frame: Frame, row: Mapping[str, Any], across: str) -> tuple[float, float] | None:
    budget, value = finite(row.get(across)), finite(row.get("value"))
    return None if budget is None or value is None else (frame.x(budget), frame.y(value))


def _labels(frame: Frame, chart: Chart) -> str:
    """Write the labels of the plan and the uniform levels where they cover as little as possible."""
    wanted = [(_place(frame, chart.chosen, "budget"), "this plan", "chosen-label")]
    for row, mark in zip(chart.uniform, chart.marks, strict=True):
        wanted.append((_place(frame, row, "spend"), shorten(mark, 14), "uniform-label"))
    taken = _obstacles(frame, chart)
    written = []
    for place, words, kind in wanted:
        if place is None:
            continue
        box = min(_candidates(frame, place, words), key=lambda candidate: _cover(frame, candidate, taken))
        taken.append(box)
        written.append(text(words, x=box[0] + 2, y=box[3] - frame.size.font * 0.25, class_=kind))
    return "".join(written)


def _obstacles(frame: Frame, chart: Chart) -> list[Box]:
    """Return what labels should not cover: points, whiskers and the curve, as small boxes."""
    boxes: list[Box] = []
    for run in _runs(frame, chart.frontier, "value"):
        boxes += [_around(x, y, 5) for x, y in run]
        for (x, y), (x2, y2) in pairwise(run):
            steps = max(int((x2 - x) / 8), 1)
            boxes += [_around(x + (x2 - x) * i / steps, y + (y2 - y) * i / steps, 3) for i in range(steps + 1)]
    for row, key in [*((row, "spend") for row in chart.uniform), (chart.chosen, "budget")]:
        place, low, high = _place(frame, row, key), finite(row.get("low")), finite(row.get("high"))
        if place is None:
            continue
        boxes.append(_around(*place, 9))
        if low is not None and high is not None:
            boxes.append((place[0] - 2, frame.y(high), place[0] + 2, frame.y(low)))
    return boxes


def _around(x: float, y: float, r: float) -> Box:
    return (x - r, y - r, x + r, y + r)


def _candidates(frame: Frame, place: tuple[float, float], words: str) -> Iterable[Box]:
    """Yield boxes for a label beside its point, the preferred one first."""
    x, y = place
    wide, tall = frame.size.wide(words) + 4, frame.size.font * 1.2
    for away in (0.0, 0.9, 1.8, 2.8):
        for down in (away, -away):
            top = y - tall / 2 + down * tall
            yield (x + 11, top, x + 11 + wide, top + tall)
            yield (x - 11 - wide, top, x - 11, top + tall)


def _cover(frame: Frame, box: Box, taken: Iterable[Box]) -> float:
    """Return the area of other things a box would cover; leaving the drawing counts as covering very much."""
    left, top, right, bottom = box
    outside = max(frame.left - left, 0) + max(right - frame.size.width, 0)
    outside += max(frame.top - top, 0) + max(bottom - frame.bottom, 0)
    covered = 0.0
    for other in taken:
        across = min(right, other[2]) - max(left, other[0])
        covered += max(across, 0.0) * max(min(bottom, other[3]) - max(top, other[1]), 0.0)
    return covered + 1e3 * outside
