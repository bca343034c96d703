"""The next log: with which probability each customer gets each level, what that costs, and how precise it makes estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from largesse.records.array import Array
from largesse.records.display import Card, Shown
from largesse.records.plan import Decisions

if TYPE_CHECKING:
    import pyarrow as pa

REACH = 1.96  # standard errors from an estimate to an end of its 95 % interval


@dataclass(frozen=True)
class Precision:
    """What one way to draw the next log costs per customer, and how precise it is expected to make two estimates."""

    name: str
    value: float  # expected response
    spend: float
    given_up: float  # expected response below that of the plan
    money: float  # the budget that would bring as much: given up / price; NaN where money brings nothing
    plan_se: float  # standard error of the plan's value; infinite where the log cannot tell
    gain_se: float  # standard error of what the plan gains over what it is compared with


@dataclass(frozen=True, eq=False)
class Exploration(Shown):
    """A plan that explores: levels drawn with probabilities that make the next log tell most for what that costs."""

    probabilities: Array  # (n, K)
    decisions: Decisions  # the levels that were drawn, and the probability of each
    plan: Array  # (n,) int64: the levels of the plan that is explored around
    for_: str  # "evaluation" or "learning"
    rate: float  # it gives up as much as drawing the levels of this share of customers at random
    budget: float  # average per customer
    price: float  # of the plan's budget
    precisions: tuple[Precision, ...]  # of this exploration, of levels at random that give up as much, and of none
    steps: tuple[Precision, ...] = ()  # of exploring at a quarter of the rate, at half, the rate, twice and four times

    @property
    def this(self) -> Precision:
        """What this exploration costs, and how precise it makes estimates."""
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
        """Expected response per customer that the plan would bring more."""
        return self.this.given_up

    @property
    def narrowing(self) -> float:
        """By how much a further unit of money, spent on exploring, shortens the 95 % interval of the gain; NaN if unknown."""
        if len(self.steps) < 2:
            return float("nan")
        here, more = self.steps[len(self.steps) // 2], self.steps[len(self.steps) // 2 + 1]
        money = (more.money - here.money) * len(self)
        return 2 * REACH * (here.gain_se - more.gain_se) / money if money > 0 else float("nan")

    def __len__(self) -> int:
        return len(self.plan)

    def __repr__(self) -> str:
        this, random = self.precisions[:2]
        return (
            f"Exploration({len(self):,} customers, for {self.for_}, spend={this.spend:.4g} of {self.budget:.4g}, gives up "
            f"{this.given_up:.3g} of {this.value + this.given_up:.4g}; gain ± {REACH * this.gain_se:.2g}, "
            f"at random ± {REACH * random.gain_se:.2g})"
        )

    def card(self) -> Card:
        """Return what exploring costs and how precise it makes the next evaluation, beside other ways."""
        head = ("", "value", "spend", "gives up", "worth in budget", "value ±", "gain ±")
        below = (
            Card("More or less of it", head, [_write_precision(step) for step in self.steps]) if self.steps else None
        )
        lines = ["± is half of the 95 % interval that the next log is expected to give."]
        title = f"Exploration for {self.for_}: {len(self):,} customers"
        return Card(title, head, [_write_precision(one) for one in self.precisions], lines, below)

    def to_arrow(self) -> pa.Table:
        """Return each customer's row number, the number of their level, its probability, and the plan's level."""
        return self.decisions.to_arrow().append_column("planned_level", [self.plan])


def _write_precision(one: Precision) -> tuple[object, ...]:
    reach = [REACH * se if np.isfinite(se) else None for se in (one.plan_se, one.gain_se)]
    return (one.name, one.value, one.spend, one.given_up, one.money, *reach)
