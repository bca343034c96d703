"""Explanations of decisions: response curves, shadow prices at which levels change, and feature importance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from largesse.errors import Problem, fail, percent
from largesse.records.array_type import Array
from largesse.records.display import Card, DisplayMixin
from largesse.records.evaluation import Estimate

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class FeatureDecisionImportance:
    """Permutation importance of one feature for the decisions on held-out customers."""

    feature: str
    moved: float  # share of customers who get another level once the feature is shuffled
    loss: Estimate  # of value − price × spend per customer, doubly robust on held-out rows


@dataclass(frozen=True, eq=False)
class Explanation(DisplayMixin):
    """Explanation of each customer's level: response curve, and shadow prices at which the level would change.

    A level of −1 means that no such level exists.

    `movers` ranks features by the share of decisions that they change; it is empty without a log.
    """

    curves: Array  # (n, K) expected responses
    costs: Array  # (n, K) expected costs, as decided with
    price: float
    levels: Array  # (n,) int64
    dearer: Array  # (n,) int64: the best level at a lower price
    below: Array  # (n,) price below which `dearer` is best; NaN without such a level
    cheaper: Array  # (n,) int64: the best level at a higher price
    above: Array  # (n,) price above which `cheaper` is best; NaN without such a level
    labels: tuple[str, ...]  # (K,) names of the levels
    customer: pa.Array | None = None
    movers: tuple[FeatureDecisionImportance, ...] = ()
    rows: int = 0  # held-out rows that `movers` are measured on

    def __len__(self) -> int:
        return len(self.levels)

    def __repr__(self) -> str:
        first = f", moved most by {self.movers[0].feature}" if self.movers else ""
        return f"Explanation({len(self):,} customers at price={self.price:.4g}{first})"

    def card(self) -> Card:
        """Return a notebook table of explained decisions and feature importance."""
        rows = [
            (mover.feature, percent(mover.moved, 1), mover.loss.estimate, mover.loss.low, mover.loss.high)
            for mover in self.movers
        ]
        head = ("feature, shuffled", "get another level", "loss per customer", "95 % from", "to")
        moved = Card(f"What moves decisions, on {self.rows:,} held-out rows", head, rows) if rows else None
        return Card(repr(self), lines=[f"{row}: {self.words(row)}" for row in range(min(len(self), 5))], below=moved)

    def to_arrow(self) -> pa.Table:
        """Return a table with the level, value, cost, decision thresholds and curve of each customer."""
        import pyarrow as pa

        rows = np.arange(len(self))
        names = pa.array([*self.labels, None])

        def name(levels: Array) -> pa.Array:
            return names.take(pa.array(np.where(levels < 0, len(self.labels), levels)))

        return pa.table(
            {
                "customer": rows if self.customer is None else self.customer,
                "level": name(self.levels),
                "level_number": self.levels,
                "expected_response": self.curves[rows, self.levels],
                "expected_cost": self.costs[rows, self.levels],
                "dearer": name(self.dearer),
                "if_price_below": pa.array(self.below, from_pandas=True),
                "cheaper": name(self.cheaper),
                "if_price_above": pa.array(self.above, from_pandas=True),
                "curve": pa.array(list(self.curves), pa.list_(pa.float64())),
            }
        )

    @property
    def worth(self) -> Array:
        """Net value of each level (n, K): response − shadow price × cost."""
        return self.curves - self.price * self.costs

    def words(self, row: int) -> str:
        """Describe a customer's level, and the shadow prices that would change the level, in one or two sentences."""
        if not -len(self) <= row < len(self):
            fail("explain", Problem(f"there is no customer {row} among {len(self):,}", "rows are numbered from 0"))
        level = int(self.levels[row])
        got, cost = self.curves[row, level], self.costs[row, level]
        first = (
            f"Gets {self.labels[level]}: expected response {got:.3g} at a cost of {cost:.3g}, "
            f"the best at a price of {self.price:.3g}."
        )
        changes = [
            f"{self.labels[int(there[row])]} if the price of budget {way} {limit[row]:.3g}"
            for there, limit, way in ((self.dearer, self.below, "fell below"), (self.cheaper, self.above, "rose above"))
            if there[row] >= 0
        ]
        return (
            f"{first} Would get {', and '.join(changes)}." if changes else f"{first} No other price would change that."
        )


def find_neighbouring_levels_and_prices(
    curves: Array, costs: Array, levels: Array
) -> tuple[Array, Array, Array, Array]:
    """Find each customer's next dearer and next cheaper level, and the shadow prices at which levels change.

    Returns the next dearer levels (n,), the prices (n,) below which they are best, the next cheaper levels (n,), and
    the prices (n,) above which they are best.

    Curves and costs are (n, K), `levels` (n,) the best ones at some price. Without a next level there is −1 and NaN.

    >>> next_levels = find_neighbouring_levels_and_prices(np.array([[0.0, 3.0, 4.0]]), np.array([[0.0, 1.0, 2.0]]), np.array([1]))
    >>> [array.tolist() for array in next_levels]
    [[2], [1.0], [0], [3.0]]
    """
    rows = np.arange(len(levels))
    gained = curves - curves[rows, levels][:, None]
    paid = costs - costs[rows, levels][:, None]
    with np.errstate(all="ignore"):
        slope = gained / paid
    # No price falls below zero, and at price zero no level with a smaller response is best.
    up = np.where((paid > 0) & (slope > 0), slope, -np.inf)
    down = np.where(paid < 0, np.maximum(slope, 0.0), np.inf)
    below, above = up.max(axis=1), down.min(axis=1)
    # Where two levels become best at the same price, the further one is taken.
    dearer = np.where(up == below[:, None], paid, -np.inf).argmax(axis=1)
    cheaper = np.where(down == above[:, None], paid, np.inf).argmin(axis=1)
    none, never = np.isneginf(below), np.isposinf(above)
    return (
        np.where(none, -1, dearer),
        np.where(none, np.nan, below),
        np.where(never, -1, cheaper),
        np.where(never, np.nan, above),
    )
