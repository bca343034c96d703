"""Further questions to batches of customers, whose answers are exact sums: means, spends at prices, and ties at a price."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np

from largesse.allocation.passes.sums import CHUNKS, as_fraction, carry, from_units, in_units
from largesse.allocation.plan import TIE
from largesse.records import Array


@dataclass(frozen=True, eq=False)
class Sums:
    """Exact sums over customers. Added, neither their order nor batches matter."""

    n: int
    parts: Array  # (m, CHUNKS)

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.n + other.n, carry(self.parts + other.parts))

    @property
    def totals(self) -> list[float]:
        """The sums, rounded once."""
        return [float(as_fraction(part)) for part in self.parts]

    @property
    def means(self) -> list[float]:
        """The sums over the number of customers."""
        return [float(as_fraction(part) / self.n) for part in self.parts]


@dataclass(frozen=True)
class Average:
    """Asks for what customers cost at their cheapest levels, and what they cost and bring at every level."""

    def of(self, rows: Array, curves: Array, costs: Array) -> Sums:
        """Return the sums of cheapest costs, of the cost at each level, and of the response at each level."""
        wide = np.broadcast_to(costs, curves.shape)
        return Sums(len(rows), np.stack([add_up(values) for values in (wide.min(axis=1), *wide.T, *curves.T)]))


@dataclass(frozen=True)
class SpendAt:
    """Asks for what customers cost if every step is taken that brings at least a price, for each of several prices."""

    prices: tuple[float, ...]  # falling

    def of(self, rows: Array, curves: Array, costs: Array) -> Sums:
        """Return the sums of the cheapest costs, and of what comes on top at each price."""
        from largesse.allocation.passes.kernels import plans_at

        paid = np.zeros((len(self.prices) + 1, CHUNKS), dtype=np.int64)
        plans_at(curves, costs, np.array(self.prices, dtype=np.float64), paid, paid[:0])
        return Sums(len(rows), carry(paid))


@dataclass(frozen=True)
class Ties:
    """Asks for what customers cost at a price, the cheapest of equally good levels taken, or the dearest."""

    price: float

    def of(self, rows: Array, curves: Array, costs: Array) -> Sums:
        """Return the two sums."""
        from largesse.allocation.passes.kernels import add_ends

        paid = np.zeros((2, CHUNKS), dtype=np.int64)
        add_ends(curves, costs, float(self.price), TIE, paid)
        return Sums(len(rows), carry(paid))


def add_up(values: Array) -> Array:
    """Return the exact sum (CHUNKS,) of numbers of any shape."""
    from largesse.allocation.passes import kernels

    total = np.zeros(CHUNKS, dtype=np.int64)
    kernels.add_up(np.ascontiguousarray(values).ravel(), total)
    return carry(total)


def add_by_group(values: Array, codes: Array, groups: int) -> Array:
    """Return the exact sums (groups, CHUNKS) of numbers (n,), by their group (n,)."""
    from largesse.allocation.passes import kernels

    totals = np.zeros((groups, CHUNKS), dtype=np.int64)
    kernels.add_by_group(np.ascontiguousarray(values), codes, totals)
    return carry(totals)


def add_counted(counts: Array, values: Array) -> Array:
    """Return the exact sums (groups, CHUNKS) of numbers (K,), each as often as counts (groups, K) say."""
    units = in_units(values.tolist())
    return np.stack([from_units(sum(map(operator.mul, row, units))) for row in counts.tolist()])


def add_sums(first: Array, second: Array) -> Array:
    """Return the sums (…, CHUNKS) of exact sums."""
    return carry(first + second)


def total_of(part: Array) -> float:
    """Return an exact sum (CHUNKS,), rounded once."""
    return float(as_fraction(part))
