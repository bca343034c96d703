"""Axes with round ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from largesse.report.formats import finite


@dataclass(frozen=True)
class Axis:
    """A stretch of numbers and the round ones among them.

    >>> axis([0.0, 9.0]).ticks
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
        """Return where a number lies: 0 at the low end, 1 at the high end."""
        return (value - self.low) / (self.high - self.low)


def axis(values: Iterable[Any], target: int = 5, snug: bool = False) -> Axis:
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
    low, high = _stretch([number for number in map(finite, values) if number is not None])
    step = _round_step((high - low) / target)
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


def _stretch(numbers: list[float]) -> tuple[float, float]:
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
