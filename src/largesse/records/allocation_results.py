"""What an allocation gives back: a plan, decisions, and the frontier of all budgets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from largesse.errors import percent
from largesse.records.array_type import Array
from largesse.records.display import Card, DisplayMixin

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Plan(DisplayMixin):
    """One level for each customer, what it costs, and how far from the best plan it can be at most."""

    levels: Array  # (n,) int64
    value: float  # average response
    spend: float  # average cost, never above the budget
    price: float  # response gained per further unit of budget (λ)
    bound: float  # no plan within the budget can be worth more than this
    budget: float  # average per customer
    shadow: dict[str, float] = field(default_factory=dict)  # rule → what one more unit of it would bring
    labels: tuple[str, ...] | None = None  # how tables write the levels, where they are known

    @property
    def gap(self) -> float:
        """How much better the best plan could be at most."""
        return max(self.bound - self.value, 0.0)

    def decide(self, rows: Array, _curves: Array | None = None, _costs: Array | None = None, /) -> Array:
        """Return the levels (m,) of some customers, by their row numbers (m,)."""
        return np.asarray(self.levels[rows])

    def __len__(self) -> int:
        return len(self.levels)

    def __repr__(self) -> str:
        return (
            f"Plan({len(self):,} customers, value={self.value:.6g}, spend={self.spend:.6g} of {self.budget:.6g}, "
            f"price={self.price:.4g}, gap={self.gap:.2g})"
        )

    def card(self) -> Card:
        """Return what the plan brings and costs, and how many customers get each level."""
        facts = [("value", self.value), ("spend", self.spend), ("budget", self.budget), ("price", self.price)]
        facts += [("gap at most", self.gap), *((f"one more of {rule}", worth) for rule, worth in self.shadow.items())]
        return Card(
            f"Plan for {len(self):,} customers",
            ("", "per customer"),
            facts,
            below=_count_levels(self.levels, self.labels),
        )

    def to_arrow(self) -> pa.Table:
        """Return each customer's row number and the number of their level, with its name where it is known."""
        import pyarrow as pa

        columns = {
            "customer": np.arange(len(self)),
            **name_levels(self.levels, self.labels),
            "level_number": self.levels,
        }
        return pa.table(columns)


@dataclass(frozen=True, eq=False)
class Decisions(DisplayMixin):
    """A level for each customer, and the probability with which it was chosen: what the next log should hold."""

    levels: Array  # (n,) int64
    propensity: Array  # (n,) float64
    labels: tuple[str, ...] | None = None  # how tables write the levels

    def __len__(self) -> int:
        return len(self.levels)

    def card(self) -> Card:
        """Return how many customers get each level."""
        return _count_levels(self.levels, self.labels)

    def to_arrow(self) -> pa.Table:
        """Return each customer's row number, the number of their level, and its probability."""
        import pyarrow as pa

        columns = {
            "customer": np.arange(len(self)),
            **name_levels(self.levels, self.labels),
            "level_number": self.levels,
        }
        return pa.table(columns | {"propensity": self.propensity})


def name_levels(levels: Array, labels: tuple[str, ...] | None) -> dict[str, pa.Array]:
    """Return a column with the names of levels; none where they have none."""
    import pyarrow as pa

    return {} if labels is None else {"level": pa.array(labels).take(pa.array(levels))}


def _count_levels(levels: Array, labels: tuple[str, ...] | None) -> Card:
    numbers, counts = np.unique(levels, return_counts=True)
    names = [str(k) if labels is None else labels[k] for k in numbers]
    rows = [(name, int(many), percent(many / len(levels), 1)) for name, many in zip(names, counts, strict=True)]
    return Card("Who gets what", ("level", "customers", "share"), rows)


@dataclass(frozen=True, eq=False)
class Frontier(DisplayMixin):
    """The best value at every budget: breakpoints of a concave, piecewise linear curve."""

    spend: Array  # (m,) rising
    value: Array  # (m,) rising
    price: Array  # (m,) falling: slope of the piece that ends at the breakpoint; infinite at the first

    def at(self, budget: float) -> float:
        """Return the best value at a budget (one customer may be split between two levels)."""
        if budget < self.spend[0] * (1 - 1e-12):  # the mean of equal costs may be rounded up
            return float("nan")
        return float(np.interp(budget, self.spend, self.value))

    def price_at(self, budget: float) -> float:
        """Return what one more unit of budget buys at this budget; 0 where nothing is left to buy."""
        place = int(np.searchsorted(self.spend, budget, side="right"))
        return float(self.price[place]) if place < len(self.price) else 0.0

    def budget_at(self, price: float) -> float:
        """Return the budget up to which every further unit still brings at least `price`.

        >>> Frontier(np.array([0.0, 1.0, 3.0]), np.array([0.0, 5.0, 7.0]), np.array([np.inf, 5.0, 1.0])).budget_at(2)
        1.0
        """
        return float(self.spend[np.count_nonzero(self.price >= price) - 1])

    def __len__(self) -> int:
        return len(self.spend)

    def __repr__(self) -> str:
        return (
            f"Frontier(spend {self.spend[0]:.4g} to {self.spend[-1]:.4g}, "
            f"value {self.value[0]:.4g} to {self.value[-1]:.4g}, {len(self):,} breakpoints)"
        )

    def card(self) -> Card:
        """Return the best value at budgets from the least to the most."""
        budgets = np.unique(np.linspace(float(self.spend[0]), float(self.spend[-1]), 11))
        rows = [(budget, self.at(budget), self.price_at(budget)) for budget in budgets]
        return Card(repr(self), ("budget", "value", "what one more unit brings"), rows)

    def to_arrow(self) -> pa.Table:
        """Return spend, value and price of all breakpoints."""
        import pyarrow as pa

        return pa.table({"spend": self.spend, "value": self.value, "price": self.price})


@dataclass(frozen=True)
class SpendingCurve:
    """What plans really cost beside what the model expects them to, from the cheapest plan to the dearest.

    Where a cost depends on what a customer does, a plan pays most where the model is most wrong. Held-out rows of the log
    tell by how much: `honest` is the doubly robust estimate of what the plan at a price costs them.
    """

    price: tuple[float, ...]  # (m,) falling
    expected: tuple[float, ...]  # (m,) average cost, as the model expects it
    honest: tuple[float, ...]  # (m,) average cost, estimated from the log
    reach: tuple[float, ...]  # (m,) standard error of `honest`; larger where its interval is wider than a normal one
    noise: float = 0.0  # standard error of the mean of what the log's rows cost, as a share of it

    def __post_init__(self) -> None:
        if not self.noise >= 0:
            raise ValueError(f"the noise of a spending curve is {self.noise}")
        sizes = {len(part) for part in (self.price, self.expected, self.honest, self.reach)}
        if len(sizes) != 1 or not sizes.pop():
            raise ValueError("the points of a spending curve do not match")
