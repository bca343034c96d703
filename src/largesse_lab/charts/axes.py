"""Axes of the experiments' drawings: linear, or logarithmic with zero standing apart on the left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from largesse.report import Axis, axis, finite, style_for

APART = 0.2  # how far zero stands from the smallest number of a logarithmic axis, as a share of their stretch
MARGIN = 0.05  # left free at both ends
FEW = 8  # measured places up to this many get a tick each
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Scale:
    """Where numbers lie along a side, 0 to 1, and what is written there: `axis` is of the numbers' logarithms if `log`."""

    axis: Axis
    ticks: tuple[tuple[float, str], ...]
    log: bool = False
    zero: float | None = None  # where zero stands on the logarithmic axis, if it does

    def place(self, value: float) -> float:
        """Return where a number lies; what a logarithm cannot show lies at the low end."""
        if not self.log:
            return self.axis.place(value)
        if value > 0:
            return self.axis.place(max(math.log10(value), self.axis.low))
        return 0.0 if self.zero is None else self.axis.place(self.zero)

    @property
    def gap(self) -> float | None:
        """Where the axis is broken, between zero and the smallest number; None where it is not."""
        if self.zero is None:
            return None
        return 0.5 * (self.place(0.0) + self.axis.place(self.zero + APART * _length(self)))


def linear(values: Iterable[Any], target: int, *, snug: bool = False) -> Scale:
    """Return a linear scale with about `target` ticks; at least three."""
    kept = list(values)
    made = next(made for extra in range(9) if len((made := axis(kept, target + extra, snug)).ticks) > 2 or extra == 8)
    style = style_for(made.ticks, made.step, digits=1, short=True)
    return Scale(made, tuple((tick, style.text(tick)) for tick in made.ticks))


def logarithmic(values: Iterable[Any], *, measured: bool = True) -> Scale:
    """Return a logarithmic scale, with ticks at the `measured` places where these are few, else at round numbers."""
    numbers = sorted({number for number in map(finite, values) if number is not None and number >= 0})
    above = [number for number in numbers if number > 0] or [1.0]
    low, high = math.log10(above[0]), math.log10(above[-1])
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    margin = MARGIN * (high - low)
    zero = low - APART * (high - low) if len(above) < len(numbers) and measured else None
    ends = Axis((low if zero is None else zero) - margin, high + margin, ())
    ticks = above if measured and len(above) <= FEW else _round(ends.low if zero is None else low - margin, ends.high)
    kept = ([0.0] if zero is not None else []) + ticks
    return Scale(ends, tuple((tick, words(tick)) for tick in kept), log=True, zero=zero)


def words(value: float) -> str:
    """Write a number of any size shortly.

    >>> words(8000), words(0.25), words(1e-5), words(3e7)
    ('8,000', '0.25', '10⁻⁵', '3·10⁷')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:,.10g}"
    power = math.floor(math.log10(abs(value)) + 1e-9)
    digits = f"{value / 10.0**power:.3g}"
    return ("" if digits == "1" else f"{digits}·") + "10" + str(power).translate(RAISED)


def roomy(places: Sequence[float], widths: Sequence[float], *, first: bool = False, wish: int = 0) -> list[int]:
    """Return which ticks to write so that none touch: all, or else every second, third …; the `first` in any case.

    The one that is wished for is among them if it can be.

    >>> roomy([0, 10, 20, 30, 40], [8] * 5), roomy([0, 10, 20, 30, 40], [8] * 5, wish=1)
    ([0, 2, 4], [1, 3])
    """
    rest = list(range(1 if first else 0, len(places)))
    for stride in range(1, len(places) + 1):
        for some in sorted((rest[start::stride] for start in range(stride)), key=lambda some: wish not in some):
            kept = [0, *some] if first else some
            if all(places[j] - places[i] >= 0.5 * (widths[i] + widths[j]) + 4 for i, j in pairwise(kept)):
                return kept
    return rest[:1]


def _length(scale: Scale) -> float:
    """Return the logarithmic stretch of the numbers above zero: the axis less its margins and the place of zero."""
    return (scale.axis.high - scale.axis.low) / (1 + 2 * MARGIN + (APART if scale.zero is not None else 0.0))


def _round(low: float, high: float) -> list[float]:
    """Return powers of ten between two logarithms; also 2 and 5 times them where there would be few."""
    powers = range(math.floor(low), math.ceil(high) + 1)
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8)):
        found = [m * 10.0**p for p in powers for m in steps if low <= math.log10(m * 10.0**p) <= high]
        if len(found) >= 3:
            break
    return found
