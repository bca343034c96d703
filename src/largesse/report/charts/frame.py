"""A frame: a box in a drawing, the scales along its sides, and its axes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from largesse.report.charts.marks import element, measure, text
from largesse.report.charts.scales import Scale, thin_ticks

FONT = 12.5
Point = TypeVar("Point")


@dataclass(frozen=True)
class Frame:
    """A box in a drawing and the scales along its sides."""

    left: float
    top: float
    right: float
    bottom: float
    across: Scale
    up: Scale | None = None
    name: str = ""
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
    """Return the lower side with its ticks, and a break where zero stands apart."""
    y, ticks = frame.bottom, frame.across.ticks
    places = [frame.x(tick) for tick, _ in ticks]
    widths = [measure(name, frame.font) for _, name in ticks]
    zero = next((i for i, (tick, _) in enumerate(ticks) if tick == 0), 0)
    kept = thin_ticks(places, widths, first=frame.across.zero is not None, wish=zero)
    parts = [element("line", x1=x, x2=x, y1=y, y2=y + 5, class_="rule") for x in places]
    parts += [text(ticks[i][1], x=places[i], y=y + frame.font * 1.55, text_anchor="middle") for i in kept]
    return "".join([*parts, *_draw_base(frame)])


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


def _draw_base(frame: Frame) -> Iterable[str]:
    y, gap = frame.bottom, frame.across.gap
    if gap is None:
        return [element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="rule")]
    x = frame.left + gap * (frame.right - frame.left)
    ends = [(frame.left, x - 3), (x + 3, frame.right)]
    lines = [element("line", x1=a, x2=b, y1=y, y2=y, class_="rule") for a, b in ends]
    return lines + [element("path", d=f"M{x + s - 2:.1f},{y + 5:.1f} l4,-10", class_="rule") for s in (-3, 3)]
