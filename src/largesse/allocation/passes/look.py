"""Looks at all customers' steps up their hulls, each closer than the one before, until few are open.

Steps stand in one order, whatever the batches: the steepest first, of equal ones that of the earlier row. The budget buys
them one after the other up to the first that does not fit. A look counts the open steps in cells of this order and adds up
their costs exactly; the next one looks into the cell where the budget ends. The first look has a cell for every power of
two, so it needs to know neither the range of slopes nor the budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from largesse.allocation.passes.sums import CHUNKS, as_fraction, as_units, carry, units_of
from largesse.records import Array

CELLS = 2048  # of a look
EXPONENT = 52  # floats whose bits differ only below this one lie within one power of two
MOST_OPEN = 1 << 16  # steps that are looked at one by one
LAST = 1 << 62  # beyond every row
FARTHEST = (1 << 63) - 1  # place of a step


@dataclass(frozen=True)
class Look:
    """Which steps are open: slopes from `high` down to `low`; where these are equal, rows from `first` up to `last`.

    Steps before them are taken, those after them are not.
    """

    high: float = math.inf
    low: float = 0.0
    first: int = 0
    last: int = LAST  # not included
    closing: bool = False  # few steps are open now: it is time to gather them
    whole: bool = True  # no step comes after the open ones

    @property
    def slopes(self) -> Array:
        """The slopes (2,) of the open steps, from high to low."""
        return np.array([self.high, self.low])

    @property
    def ends(self) -> Array:
        """The rows (2,) of the open steps."""
        return np.array([self.first, self.last], dtype=np.int64)

    @property
    def shift(self) -> int:
        """How many of the last bits of a step's place do not count for its cell."""
        by_row = self.high == self.low
        width = self.last - self.first - 1 if by_row else bits_of(self.high) - bits_of(self.low)
        return EXPONENT if self.high == math.inf else max(width.bit_length() - (CELLS - 1).bit_length(), 0)

    def of(self, rows: Array, curves: Array, costs: Array) -> Tally:
        """Count the steps of customers: row numbers (n,), curves (n, K) and cost rows (1, K) or (n, K)."""
        from largesse.allocation.passes.kernels import count_steps

        spent, paid = np.zeros(CHUNKS, np.int64), np.zeros((CELLS, CHUNKS), np.int64)
        counts, reach = np.zeros(CELLS, np.int64), np.zeros((CELLS, 2), np.int64)
        count_steps((rows, curves, costs), self.slopes, self.ends, self.shift, spent, counts, reach, paid)
        cells = np.flatnonzero(counts)
        last = int(rows.max(initial=-1)) + 1
        return Tally(len(rows), last, carry(spent), cells, counts[cells], reach[cells], carry(paid[cells]))

    def closer(self, tally: Tally, limit: float) -> Look:
        """Return the next look, into the cell where a total budget of `limit` ends, going by the tally of this one."""
        if tally.counts.sum() <= MOST_OPEN:
            return replace(self, closing=True)
        place = min(tally.count_bought(limit), len(tally.cells) - 1)
        few = bool(tally.counts[place] <= MOST_OPEN)
        low, high = _widen(tally.counts, place) if few else (place, place)
        whole = self.whole and high == len(tally.cells) - 1
        nearest, farthest = int(tally.reach[low, 0]), int(tally.reach[high, 1])
        if self.high == self.low:
            return replace(self, first=self.first + nearest, last=self.first + farthest + 1, closing=few, whole=whole)
        top = bits_of(self.high)
        # Once all open steps have one slope, their rows tell them apart.
        return Look(float_of(top - nearest), float_of(top - farthest), 0, tally.last, few, whole)


@dataclass(frozen=True, eq=False)
class Tally:
    """What a look found in some customers. Tallies are added; neither order nor batches change the sum."""

    n: int
    last: int  # the highest row number + 1
    taken: Array  # (CHUNKS,) cost of all customers with the steps that are taken
    cells: Array  # (m,) those with open steps, the best first
    counts: Array  # (m,) open steps
    reach: Array  # (m, 2) the nearest and the farthest place of an open step
    paid: Array  # (m, CHUNKS) what the open steps cost

    @property
    def spent(self) -> int:
        """What all customers cost with the steps that are taken, in whole units."""
        return as_units(self.taken)

    @property
    def spend(self) -> float:
        """The same, rounded."""
        return float(as_fraction(self.taken))

    def count_bought(self, limit: float) -> int:
        """Return how many cells a total budget buys as a whole."""
        room = math.inf if limit == math.inf else units_of(limit)
        spent = self.spent
        for place, cost in enumerate(map(as_units, self.paid)):
            spent += cost
            if spent > room:
                return place
        return len(self.cells)

    def __add__(self, other: Tally) -> Tally:
        cells, place = np.unique(np.concatenate([self.cells, other.cells]), return_inverse=True)
        mine, others = place[: len(self.cells)], place[len(self.cells) :]
        counts, paid = np.zeros(len(cells), np.int64), np.zeros((len(cells), CHUNKS), np.int64)
        reach = np.tile(np.array([FARTHEST, -1]), (len(cells), 1))
        for tally, at in ((self, mine), (other, others)):
            counts[at] += tally.counts
            paid[at] += tally.paid
            reach[at, 0] = np.minimum(reach[at, 0], tally.reach[:, 0])
            reach[at, 1] = np.maximum(reach[at, 1], tally.reach[:, 1])
        last = max(self.last, other.last)
        return Tally(self.n + other.n, last, carry(self.taken + other.taken), cells, counts, reach, carry(paid))


def _widen(counts: Array, place: int) -> tuple[int, int]:
    """Return the first and last cell around a place that together hold few enough steps, as many up as down."""
    half = (MOST_OPEN - int(counts[place])) // 2
    up = int(np.searchsorted(np.cumsum(counts[:place][::-1]), half, side="right"))
    down = int(np.searchsorted(np.cumsum(counts[place + 1 :]), half, side="right"))
    return place - up, place + down


def bits_of(slope: float) -> int:
    """Return the bits of a float: those of positive floats rise with them."""
    return int(np.float64(slope).view(np.int64))


def float_of(bits: int) -> float:
    """Return the float that has these bits."""
    return float(np.int64(bits).view(np.float64))
