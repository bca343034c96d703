"""Axes with round ticks: linear, or logarithmic with zero set apart on the left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from largesse.report.numbers import Style, choose_style, finite

APART = 0.2  # distance of zero from the smallest number of a logarithmic axis, as a share of the numbers' range
MARGIN = 0.05  # share of a logarithmic axis left free at both ends
FEW = 8  # up to this many measured values get a tick each
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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
    """An axis with labelled ticks; with `log` the axis is of the numbers' logarithms."""

    axis: Axis
    ticks: tuple[tuple[float, str], ...]
    log: bool = False
    zero: float | None = None  # position of zero on the logarithmic axis, if zero is shown

    def place(self, value: float) -> float:
        """Return the position of a number, 0 to 1; what has no logarithm stands at the low end."""
        if not self.log:
            return self.axis.place(value)
        if value > 0:
            return self.axis.place(max(math.log10(value), self.axis.low))
        return 0.0 if self.zero is None else self.axis.place(self.zero)

    @property
    def gap(self) -> float | None:
        """The position of the break between zero and the smallest number; None without a break."""
        if self.zero is None:
            return None
        # the range of the numbers above zero: the axis less its margins and the room of zero
        length = (self.axis.high - self.axis.low) / (1 + 2 * MARGIN + APART)
        return 0.5 * (self.place(0.0) + self.axis.place(self.zero + APART * length))


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


def fit_linear_scale(values: Iterable[Any], target: int, *, snug: bool = False) -> Scale:
    """Return a linear scale with about `target` ticks; at least three."""
    kept = list(values)
    axis = next(
        axis for extra in range(9) if len((axis := fit_axis(kept, target + extra, snug)).ticks) > 2 or extra == 8
    )
    return label_ticks(axis, choose_style(axis.ticks, axis.step, digits=1, short=True))


def fit_log_scale(values: Iterable[Any], *, measured: bool = True) -> Scale:
    """Return a logarithmic scale with ticks at the `measured` values where these are few, else at round numbers."""
    numbers = sorted({number for number in map(finite, values) if number is not None and number >= 0})
    above = [number for number in numbers if number > 0] or [1.0]
    low, high = math.log10(above[0]), math.log10(above[-1])
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    margin = MARGIN * (high - low)
    zero = low - APART * (high - low) if len(above) < len(numbers) and measured else None
    axis = Axis((low if zero is None else zero) - margin, high + margin, ())
    ticks = (
        above
        if measured and len(above) <= FEW
        else _round_numbers(axis.low if zero is None else low - margin, axis.high)
    )
    kept = ([0.0] if zero is not None else []) + ticks
    return Scale(axis, tuple((tick, write_number(tick)) for tick in kept), log=True, zero=zero)


def write_number(value: float) -> str:
    """Write a number of any size in few characters.

    >>> write_number(8000), write_number(0.25), write_number(1e-5), write_number(3e7)
    ('8,000', '0.25', '10⁻⁵', '3·10⁷')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:,.10g}"
    power = math.floor(math.log10(abs(value)) + 1e-9)
    digits = f"{value / 10.0**power:.3g}"
    return ("" if digits == "1" else f"{digits}·") + "10" + str(power).translate(SUPERSCRIPTS)


def thin_ticks(places: Sequence[float], widths: Sequence[float], *, first: bool = False, wish: int = 0) -> list[int]:
    """Return which tick labels to write so that no two touch: all, or every second, third and so on.

    `first` keeps the first one in any case; the one wished for is kept where that is possible.

    >>> thin_ticks([0, 10, 20, 30, 40], [8] * 5), thin_ticks([0, 10, 20, 30, 40], [8] * 5, wish=1)
    ([0, 2, 4], [1, 3])
    """
    rest = list(range(1 if first else 0, len(places)))
    for stride in range(1, len(places) + 1):
        for some in sorted((rest[start::stride] for start in range(stride)), key=lambda some: wish not in some):
            kept = [0, *some] if first else some
            if all(places[j] - places[i] >= 0.5 * (widths[i] + widths[j]) + 4 for i, j in pairwise(kept)):
                return kept
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


def _round_numbers(low: float, high: float) -> list[float]:
    """Return powers of ten between two logarithms; where they are fewer than three, multiples of them too."""
    powers = range(math.floor(low), math.ceil(high) + 1)
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8)):
        found = [m * 10.0**p for p in powers for m in steps if low <= math.log10(m * 10.0**p) <= high]
        if len(found) >= 3:
            break
    return found
