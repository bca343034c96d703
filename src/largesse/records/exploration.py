"""Records of an exploration: probabilities of levels, their cost, and the precision of the next log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from largesse.records.allocation_results import DrawnLevels
from largesse.records.array_type import Array
from largesse.records.display import Card, DisplayMixin

if TYPE_CHECKING:
    import pyarrow as pa

Z_95 = 1.96  # standard errors from an estimate to an end of its 95 % interval


@dataclass(frozen=True)
class DesignPrecision:
    """Cost per customer of one exploration design, and precision of the estimates from its log."""

    name: str
    value: float  # expected response
    spend: float
    given_up: float  # expected response below that of the plan
    money: float  # budget with the same value: given up / price; NaN at price zero
    plan_se: float  # standard error of the plan's value; infinite where the log cannot give it
    gain_se: float  # standard error of the plan's gain over its alternative


@dataclass(frozen=True)
class ConfirmatoryExplorationSize:
    """Size and cost of an exploration whose log would confirm the plan's expected gain with a power of 0.8."""

    rate: float  # exploration rate
    customers: float  # that its log needs
    given_up: float  # expected loss of response per customer
    money: float | None  # its worth in budget, at the plan's price


@dataclass(frozen=True, eq=False)
class Exploration(DisplayMixin):
    """Randomised plan that makes the next log as informative as possible for a given loss of response."""

    probabilities: Array  # (n, K)
    decisions: DrawnLevels  # the levels that were drawn, and the probability of each
    plan: Array  # (n,) int64: the levels of the plan that is explored around
    goal: str  # "evaluation" or "learning"
    rate: float  # exploration rate: it gives up as much as random levels for this share of customers
    budget: float  # average per customer
    price: float  # of the plan's budget
    precisions: tuple[
        DesignPrecision, ...
    ]  # of this exploration, of random levels with the same loss, and of no exploration

    @property
    def this(self) -> DesignPrecision:
        """Cost and precision of this exploration."""
        return self.precisions[0]

    @property
    def value(self) -> float:
        """Expected response per customer."""
        return self.this.value

    @property
    def spend(self) -> float:
        """Expected cost per customer."""
        return self.this.spend

    @property
    def given_up(self) -> float:
        """Expected loss of response per customer, compared with the plan without exploration."""
        return self.this.given_up

    def __len__(self) -> int:
        return len(self.plan)

    def __repr__(self) -> str:
        this, random = self.precisions[:2]
        return (
            f"Exploration({len(self):,} customers, for {self.goal}, spend={this.spend:.4g} of {self.budget:.4g}, gives up "
            f"{this.given_up:.3g} of {this.value + this.given_up:.4g}; gain ± {Z_95 * this.gain_se:.2g}, "
            f"at random ± {Z_95 * random.gain_se:.2g})"
        )

    def card(self) -> Card:
        """Return a notebook table of cost and precision, for this exploration and for its alternatives."""
        head = ("", "value", "spend", "gives up", "worth in budget", "value ±", "gain ±")
        lines = ["± is half of the 95 % interval that the next log is expected to give."]
        title = f"Exploration for {self.goal}: {len(self):,} customers"
        return Card(title, head, [_make_precision_row(row) for row in self.precisions], lines)

    def to_arrow(self) -> pa.Table:
        """Return a table of row number, drawn level, its probability and the planned level of each customer."""
        return self.decisions.to_arrow().append_column("planned_level", [self.plan])


def _make_precision_row(row: DesignPrecision) -> tuple[object, ...]:
    """Return the cost and the precision of one exploration design as a table row."""
    reach = [Z_95 * se if np.isfinite(se) else None for se in (row.plan_se, row.gain_se)]
    return (row.name, row.value, row.spend, row.given_up, row.money, *reach)
