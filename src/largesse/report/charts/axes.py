"""Axes with round ticks, and frames with axes along their sides."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from largesse.report.charts.svg import element, measure, text
from largesse.report.number_format import Style, finite

FONT = 12.5
Point = TypeVar("Point")


@dataclass(frozen=True)
class Axis:
    """A range of numbers and the round ones among them.

    >>> fit_axis([0.0, 9.0]).ticks
    (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)
    """

    low: float
    high: float
    ticks: tuple[float, ...]

    @property
    def step(self) -> float:
        """The distance between ticks."""
        return self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else self.high - self.low

    def place(self, value: float) -> float:
        """Return the position of a number: 0 at the low end, 1 at the high end."""
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class Scale:
    """An axis with labelled ticks."""

    axis: Axis
    ticks: tuple[tuple[float, str], ...]

    def place(self, value: float) -> float:
        """Return the position of a number, 0 to 1."""
        return self.axis.place(value)


def fit_axis(values: Iterable[Any], target: int = 5, snug: bool = False) -> Axis:
    """Return an axis that holds all given numbers; missing ones are ignored.

    Parameters
    ----------
    values
        What must fit.
    target
        About how many ticks.
    snug
        End close to the data instead of at the next tick.
    """
    low, high = _find_range([number for number in map(finite, values) if number is not None])
    rough = (high - low) / target
    step = _round_step(rough)
    while snug and math.floor(high / step) - math.ceil(low / step) < 2:  # fewer than three ticks say little
        rough = 0.5 * rough
        step = _round_step(rough)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if snug:
        margin = (high - low) * 0.02
        low, high = low - margin, high + margin
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    else:
        low, high = first * step, last * step
    # rounding removes the tails of binary fractions, so that 3 × 0.1 is 0.3
    decimals = max(0, 2 - math.floor(math.log10(step)))
    return Axis(low, high, tuple(round(i * step, decimals) for i in range(first, last + 1)))


def label_ticks(axis: Axis, style: Style) -> Scale:
    """Return a linear scale whose ticks are written in one style."""
    return Scale(axis, tuple((tick, style.text(tick)) for tick in axis.ticks))


def thin_ticks(places: Sequence[float], widths: Sequence[float], *, wish: int = 0) -> list[int]:
    """Return the tick labels to write so that no two touch: all, or every second, third and so on.

    The one wished for is kept where that is possible.

    >>> thin_ticks([0, 10, 20, 30, 40], [8] * 5), thin_ticks([0, 10, 20, 30, 40], [8] * 5, wish=1)
    ([0, 2, 4], [1, 3])
    """
    rest = list(range(len(places)))
    for stride in range(1, len(places) + 1):
        for some in sorted((rest[start::stride] for start in range(stride)), key=lambda some: wish not in some):
            if all(places[j] - places[i] >= 0.5 * (widths[i] + widths[j]) + 4 for i, j in pairwise(some)):
                return some
    return rest[:1]


def _find_range(numbers: list[float]) -> tuple[float, float]:
    """Return the smallest and largest number, pulled apart when they are equal."""
    if not numbers:
        return 0.0, 1.0
    low, high = min(numbers), max(numbers)
    if high - low > 1e-9 * max(abs(low), abs(high)):
        return low, high
    room = abs(low) * 0.1 or 1.0
    return low - room, high + room


def _round_step(rough: float) -> float:
    """Return the nearest of 1, 2, 5 × a power of ten that is not smaller."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * m for m in (1.0, 2.0, 5.0, 10.0) if power * m >= rough * 0.999)


# -- frames ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """A box in a drawing and the scales along its sides."""

    left: float
    top: float
    right: float
    bottom: float
    across: Scale
    up: Scale | None = None
    font: float = FONT

    def x(self, value: float) -> float:
        """Return the horizontal place of a number."""
        return self.left + self.across.place(value) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return the vertical place of a number; without a scale the number is the place."""
        return value if self.up is None else self.bottom - self.up.place(value) * (self.bottom - self.top)


def split_runs(points: Iterable[Point | None]) -> list[list[Point]]:
    """Return the points in runs: a missing one ends a run, so that nothing is drawn across a gap.

    >>> split_runs([1, None, None, 2, 3])
    [[1], [2, 3]]
    """
    runs: list[list[Point]] = [[]]
    for point in points:
        if point is not None:
            runs[-1].append(point)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def draw_across_axis(frame: Frame) -> str:
    """Return the lower side with its ticks."""
    y, ticks = frame.bottom, frame.across.ticks
    places = [frame.x(tick) for tick, _ in ticks]
    widths = [measure(name, frame.font) for _, name in ticks]
    zero = next((i for i, (tick, _) in enumerate(ticks) if tick == 0), 0)
    kept = thin_ticks(places, widths, wish=zero)
    parts = [element("line", x1=x, x2=x, y1=y, y2=y + 5, class_="rule") for x in places]
    parts += [text(ticks[i][1], x=places[i], y=y + frame.font * 1.55, text_anchor="middle") for i in kept]
    base = element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="rule")
    return "".join([*parts, base])


def draw_up_axis(frame: Frame) -> str:
    """Return the grid with its numbers."""
    parts = []
    for tick, name in frame.up.ticks if frame.up is not None else ():
        y = frame.y(tick)
        parts.append(element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="grid"))
        parts.append(text(name, x=frame.left - 6, y=y + frame.font * 0.35, text_anchor="end"))
    return "".join(parts)


def up_axis_width(scale: Scale, font: float = FONT) -> float:
    """Return how much room the numbers of a vertical axis need."""
    return max((measure(name, font) for _, name in scale.ticks), default=0.0) + 10
