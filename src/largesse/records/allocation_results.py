"""Results of an allocation: plans, randomised decisions, frontiers and spending curves."""

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
    """Level of each customer, with the expected response, the expected cost and the budget's shadow price."""

    levels: Array  # (n,) int64
    value: float  # average response
    spend: float  # average cost, never above the budget
    price: float  # value of one more unit of budget (λ)
    bound: float  # upper bound on the value of every plan within the budget
    budget: float  # average per customer
    shadow: dict[str, float] = field(default_factory=dict)  # rule → value of one more unit of its limit
    labels: tuple[str, ...] | None = None  # (K,) names of the levels for tables, if known
    curves: Array | None = field(default=None, repr=False)  # (n, K) expected responses that it was made from
    costs: Array | None = field(default=None, repr=False)  # (1, K) or (n, K)

    @property
    def gap(self) -> float:
        """Upper limit on the value that the plan loses against the best plan."""
        return max(self.bound - self.value, 0.0)

    def decide(self, rows: Array, _curves: Array | None = None, _costs: Array | None = None, /) -> Array:
        """Return the planned levels (m,) of customers, given their row numbers (m,)."""
        return np.asarray(self.levels[rows])

    def __len__(self) -> int:
        return len(self.levels)

    def __repr__(self) -> str:
        return (
            f"Plan({len(self):,} customers, value={self.value:.6g}, spend={self.spend:.6g} of {self.budget:.6g}, "
            f"price={self.price:.4g}, gap={self.gap:.2g})"
        )

    def card(self) -> Card:
        """Return a notebook table of the plan's expected response, its cost and the number of customers per level."""
        facts = [("value", self.value), ("spend", self.spend), ("budget", self.budget), ("price", self.price)]
        facts += [("gap at most", self.gap), *((f"one more of {rule}", worth) for rule, worth in self.shadow.items())]
        return Card(
            f"Plan for {len(self):,} customers",
            ("", "per customer"),
            facts,
            below=_tabulate_level_counts(self.levels, self.labels),
        )

    def to_arrow(self) -> pa.Table:
        """Return a table of each customer's row number, level, expected response and expected cost."""
        import pyarrow as pa

        columns = {
            "customer": np.arange(len(self)),
            **make_level_name_column(self.levels, self.labels),
            "level_number": self.levels,
        }
        for name, table in (("expected_response", self.curves), ("expected_cost", self.costs)):
            if table is not None:
                rows = np.arange(len(self)) if len(table) > 1 else 0
                columns[name] = np.asarray(table[rows, self.levels], dtype=np.float64)
        return pa.table(columns)


@dataclass(frozen=True, eq=False)
class DrawnLevels(DisplayMixin):
    """A randomly drawn level and its probability for each customer of the next log."""

    levels: Array  # (n,) int64
    propensity: Array  # (n,) float64
    labels: tuple[str, ...] | None = None  # names of the levels in tables

    def __len__(self) -> int:
        return len(self.levels)

    def card(self) -> Card:
        """Return a notebook table of customers per level."""
        return _tabulate_level_counts(self.levels, self.labels)

    def to_arrow(self) -> pa.Table:
        """Return a table of row number, level number and propensity of each customer."""
        import pyarrow as pa

        columns = {
            "customer": np.arange(len(self)),
            **make_level_name_column(self.levels, self.labels),
            "level_number": self.levels,
        }
        return pa.table(columns | {"propensity": self.propensity})


def make_level_name_column(levels: Array, labels: tuple[str, ...] | None) -> dict[str, pa.Array]:
    """Return the level names of customers as a table column; without names, return no column."""
    import pyarrow as pa

    return {} if labels is None else {"level": pa.array(labels).take(pa.array(levels))}


def _tabulate_level_counts(levels: Array, labels: tuple[str, ...] | None) -> Card:
    """Return a notebook table of the number and the share of customers at each level."""
    numbers, counts = np.unique(levels, return_counts=True)
    names = [str(k) if labels is None else labels[k] for k in numbers]
    rows = [(name, int(count), percent(count / len(levels), 1)) for name, count in zip(names, counts, strict=True)]
    return Card("Who gets what", ("level", "customers", "share"), rows)


@dataclass(frozen=True, eq=False)
class Frontier(DisplayMixin):
    """Largest expected response for every budget, as the breakpoints of a concave piecewise linear curve."""

    spend: Array  # (m,) rising
    value: Array  # (m,) rising
    price: Array  # (m,) falling: slope of the piece that ends at the breakpoint; infinite at the first

    def at(self, budget: float) -> float:
        """Return the largest expected response for a budget.

        One customer may be split between two levels.
        """
        if budget < self.spend[0] * (1 - 1e-12):  # the mean of equal costs may be rounded up
            return float("nan")
        return float(np.interp(budget, self.spend, self.value))

    def price_at(self, budget: float) -> float:
        """Return the shadow price at a budget: the expected response that one more unit of budget gains."""
        place = int(np.searchsorted(self.spend, budget, side="right"))
        return float(self.price[place]) if place < len(self.price) else 0.0

    def budget_at(self, price: float) -> float:
        """Return the largest budget with a shadow price of at least `price`.

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
        """Return a notebook table of the largest expected response at eleven budgets."""
        budgets = np.unique(np.linspace(float(self.spend[0]), float(self.spend[-1]), 11))
        rows = [(budget, self.at(budget), self.price_at(budget)) for budget in budgets]
        return Card(repr(self), ("budget", "value", "what one more unit brings"), rows)

    def to_arrow(self) -> pa.Table:
        """Return a table of spend, value and shadow price at all breakpoints of the frontier."""
        import pyarrow as pa

        return pa.table({"spend": self.spend, "value": self.value, "price": self.price})


@dataclass(frozen=True)
class SpendingCurve:
    """Predicted and actual costs of plans (spending curve), from the cheapest to the most expensive plan.

    Where a cost depends on the response, a plan selects levels whose cost the model underestimates. Held-out rows of the log
    measure the error: `honest` is the doubly robust estimate of the spend of the plan at a price.
    """

    price: tuple[float, ...]  # (m,) falling
    expected: tuple[float, ...]  # (m,) average cost, as the model expects it
    honest: tuple[float, ...]  # (m,) average cost, estimated from the log
    reach: tuple[float, ...]  # (m,) standard error of `honest`; larger where its interval is wider than a normal one
    noise: float = 0.0  # relative standard error of the mean logged cost

    def __post_init__(self) -> None:
        if not self.noise >= 0:
            raise ValueError(f"the noise of a spending curve is {self.noise}")
        sizes = {len(points) for points in (self.price, self.expected, self.honest, self.reach)}
        if len(sizes) != 1 or not sizes.pop():
            raise ValueError("the points of a spending curve do not match")
