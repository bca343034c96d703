"""Sums without rounding: whole numbers, so that no order of adding, and no cut into batches, changes them.

A float is a whole number times a power of two. A sum holds whole numbers (CHUNKS,), each counting one power of 2³²; adding a
float changes three of them. Sums of batches are added place by place. After R. Neal, Fast exact summation (2015).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from largesse.records import Array

BITS = 32  # of a chunk; what it counts beyond is carried to the next one
LOWEST = 1126  # the lowest chunk counts units of 2^−1126: the smallest float, written with 53 digits
CHUNKS = 70  # a chunk has room for 2³⁰ floats before what is beyond 32 bits must be carried


def carry(sums: Array) -> Array:
    """Return the same sums (…, CHUNKS) with every chunk but the last from 0 to 2³² − 1: each sum has one such form."""
    found = np.array(sums, dtype=np.int64)
    used = np.flatnonzero(found.reshape(-1, CHUNKS).any(axis=0))
    for k in range(used[0] if len(used) else CHUNKS, CHUNKS - 1):
        if k > used[-1] and not found[..., k].any():
            break
        beyond = found[..., k] >> BITS
        found[..., k] -= beyond << BITS
        found[..., k + 1] += beyond
    return found


def as_units(total: Array) -> int:
    """Return a sum (CHUNKS,) as a whole number of the smallest units."""
    return sum(int(part) << (BITS * k) for k, part in enumerate(total.tolist()) if part)


def as_fraction(total: Array) -> Fraction:
    """Return a sum (CHUNKS,) as the exact number it is."""
    return Fraction(as_units(total), 1 << LOWEST)


def in_units(numbers: Iterable[float]) -> list[int]:
    """Return floats as whole numbers of the smallest units."""
    ratios = (float(number).as_integer_ratio() for number in numbers)
    return [top << (LOWEST + 1 - bottom.bit_length()) for top, bottom in ratios]


def units_of(number: float | Fraction) -> int:
    """Return a number as whole units, rounded down."""
    exact = Fraction(number)
    return (exact.numerator << LOWEST) // exact.denominator


def from_units(units: int) -> Array:
    """Return the sum (CHUNKS,) of so many of the smallest units."""
    total = np.zeros(CHUNKS, dtype=np.int64)
    for k in range(CHUNKS - 1):
        total[k] = units & ((1 << BITS) - 1)
        units >>= BITS
    total[-1] = units
    return total
