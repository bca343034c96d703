"""Chart axes with round ticks, and chart frames with two axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from largesse.report.charts.svg import estimate_text_width, make_element, make_text_element
from largesse.report.number_format import NumberStyle, finite_or_none

Point = TypeVar("Point")


@dataclass(frozen=True)
class Axis:
    """Range of a chart axis and its round tick values.

    >>> fit_axis([0.0, 9.0]).ticks
    (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    bounds: tuple[float, float] = (-math.inf, math.inf)  # of the numbers: others are placed at their end

    @property
    def step(self) -> float:
        """Distance between neighbouring ticks of the axis."""
        return self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else self.high - self.low

    def place(self, value: float) -> float:
        """Return the relative position of a number on the axis: 0 at the low end, 1 at the high end."""
        return (min(max(value, self.bounds[0]), self.bounds[1]) - self.low) / (self.high - self.low)


def fit_axis(
    values: Iterable[Any], target: int = 5, snug: bool = False, bounds: tuple[float, float] | None = None
) -> Axis:
    """Return an axis with round ticks that contains all given numbers.

    Parameters
    ----------
    values
        The numbers that must fit.
    target
        The approximate number of ticks.
    snug
        End close to the data instead of at the next tick; at least three ticks.
    bounds
        The smallest and largest number that is possible.
    """
    least, most = bounds = bounds or (-math.inf, math.inf)
    known = [min(max(number, least), most) for number in map(finite_or_none, values) if number is not None]
    low, high = _find_value_range(known)
    rough = (high - low) / target
    step = _round_tick_step(rough)
    while snug and math.floor(high / step) - math.ceil(low / step) < 2:
        rough = 0.5 * rough
        step = _round_tick_step(rough)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if snug:
        margin = (high - low) * 0.02
        low, high = low - margin, high + margin
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    else:
        low, high = first * step, last * step
    # rounding removes the tails of binary fractions, so that 3 × 0.1 is 0.3
    decimals = max(0, 2 - math.floor(math.log10(step)))
    ticks = (round(i * step, decimals) for i in range(first, last + 1))
    return Axis(low, high, tuple(tick for tick in ticks if least <= tick <= most), bounds)


def _find_value_range(numbers: list[float]) -> tuple[float, float]:
    """Return the smallest and the largest number, slightly widened if both are equal."""
    if not numbers:
        return 0.0, 1.0
    low, high = min(numbers), max(numbers)
    if high - low > 1e-9 * max(abs(low), abs(high)):
        return low, high
    margin = abs(low) * 0.1 or 1.0
    return low - margin, high + margin


def _round_tick_step(rough: float) -> float:
    """Round a tick step up to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * m for m in (1.0, 2.0, 5.0, 10.0) if power * m >= rough * 0.999)


def select_tick_labels(places: Sequence[float], widths: Sequence[float], *, keep: int = 0) -> list[int]:
    """Return the indices of tick labels that can be written without touching each other.

    All of them, or every second, third and so on; tick `keep` if possible.

    >>> select_tick_labels([0, 10, 20, 30, 40], [8] * 5), select_tick_labels([0, 10, 20, 30, 40], [8] * 5, keep=1)
    ([0, 2, 4], [1, 3])
    """
    ticks = list(range(len(places)))
    for stride in range(1, len(places) + 1):
        choices = (ticks[start::stride] for start in range(stride))
        for choice in sorted(choices, key=lambda choice: keep not in choice):
            if all(places[j] - places[i] >= 0.5 * (widths[i] + widths[j]) + 4 for i, j in pairwise(choice)):
                return choice
    return ticks[:1]


def split_at_missing_points(points: Iterable[Point | None]) -> list[list[Point]]:
    """Split a line's points into segments without missing points.

    >>> split_at_missing_points([1, None, None, 2, 3])
    [[1], [2, 3]]
    """
    runs: list[list[Point]] = [[]]
    for point in points:
        if point is not None:
            runs[-1].append(point)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


# -- frames ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """Rectangle of a chart with a labelled axis at the bottom and one on the left."""

    left: float
    top: float
    right: float
    bottom: float
    across: Axis
    up: Axis
    across_labels: Sequence[str]
    up_labels: Sequence[str]
    font: float

    def x(self, value: float) -> float:
        """Return the horizontal pixel position of a number."""
        return self.left + self.across.place(value) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return the vertical pixel position of a number."""
        return self.bottom - self.up.place(value) * (self.bottom - self.top)


def fit_frame(width: float, height: float, font: float, across: Axis, up: Axis, *styles: NumberStyle) -> Frame:
    """Return the largest chart frame that leaves space for axis titles and tick labels."""
    across_labels, up_labels = (
        [style.text(tick) for tick in axis.ticks] for axis, style in zip((across, up), styles, strict=True)
    )
    left = max((estimate_text_width(label, font) for label in up_labels), default=0.0) + 10
    return Frame(left, font * 2.4, width - 14, height - font * 3.6, across, up, across_labels, up_labels, font)


def draw_axes(frame: Frame, across_title: str, up_title: str) -> str:
    """Draw the grid lines, tick labels and titles of a chart's two axes as SVG."""
    parts = [make_text_element(up_title, x=0, y=frame.font, class_="axis-title")]
    for tick, label in zip(frame.up.ticks, frame.up_labels, strict=True):
        y = frame.y(tick)
        parts.append(make_element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="grid"))
        parts.append(make_text_element(label, x=frame.left - 6, y=y + frame.font * 0.35, text_anchor="end"))
    y, ticks, labels = frame.bottom, frame.across.ticks, frame.across_labels
    places = [frame.x(tick) for tick in ticks]
    parts += [make_element("line", x1=x, x2=x, y1=y, y2=y + 5, class_="rule") for x in places]
    zero = ticks.index(0) if 0 in ticks else 0
    for i in select_tick_labels(places, [estimate_text_width(label, frame.font) for label in labels], keep=zero):
        parts.append(make_text_element(labels[i], x=places[i], y=y + frame.font * 1.55, text_anchor="middle"))
    parts.append(make_element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="rule"))
    title_y = frame.bottom + frame.font * 3.6 - 4
    parts.append(make_text_element(across_title, x=frame.right, y=title_y, text_anchor="end", class_="axis-title"))
    return "".join(parts)
