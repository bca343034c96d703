"""Plans for customers who are never all in one place: batches of curves and costs are asked, and their answers added.

A `Question` turns a batch (row numbers, curves, costs) into a small answer. Answers are added, and neither the order nor the
batches change the sum: all that is added is whole numbers. Whatever holds the customers, the memory of one machine, a file or
a cluster, fulfils `Scored`, and gets the same plan.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from largesse.allocation.checks import check_task, too_small, total_limit
from largesse.allocation.passes.gather import Gather, Settled, settle
from largesse.allocation.passes.look import Look, Tally
from largesse.allocation.passes.sums import units_of
from largesse.allocation.price.search import ROUNDING
from largesse.records import Array, Plan

Batch = tuple[Array, Array, Array]  # row numbers (n,), curves (n, K), cost rows (1, K) or (n, K)
Answer = TypeVar("Answer")
AnswerOut = TypeVar("AnswerOut", covariant=True)


class Question(Protocol[AnswerOut]):
    """What can be asked of customers: a frozen record of plain numbers, whose answers can be added."""

    def of(self, rows: Array, curves: Array, costs: Array, /) -> AnswerOut:
        """Return the answer of row numbers (n,), curves (n, K) and cost rows (1, K) or (n, K)."""


class Scored(Protocol):
    """Customers with their curves and costs, wherever they are."""

    @property
    def n(self) -> int:
        """How many customers there are."""

    def ask(self, question: Question[Answer], /) -> Answer:
        """Return the sum of the answers of all batches; there is at least one."""


@dataclass(frozen=True, eq=False)
class ScoredBatches:
    """Customers of one machine: `batches` gives them again and again, in checked batches."""

    n: int
    batches: Callable[[], Iterable[Batch]]

    def ask(self, question: Question[Answer], /) -> Answer:
        """Return the sum of the answers of all batches."""
        answers: Iterable[Any] = (question.of(*batch) for batch in self.batches())
        total: Answer = functools.reduce(operator.add, answers)
        return total


@dataclass(frozen=True, eq=False)
class PricedPlan:
    """A plan without a list of levels: the price, exact sums, and the levels of the few whom the price leaves open.

    Its value is proven to be within `bound` − `value` of the best there is, as that of `allocate`.
    """

    n: int
    value: float  # averages per customer, as in `Plan`
    spend: float
    price: float
    bound: float
    budget: float
    settled: Settled

    def decide(self, rows: Array, curves: Array, costs: Array) -> Array:
        """Return the levels (n,) of some of the customers: row numbers (n,), curves (n, K), cost rows (1, K) or (n, K)."""
        return self.settled.decide(rows, curves, costs)

    def with_levels(self, levels: Array) -> Plan:
        """Return the plan of all customers, whose levels are these."""
        return Plan(levels, self.value, self.spend, self.price, self.bound, self.budget)


def check_batch(curves: Any, costs: Any, first: int = 0) -> Batch:
    """Return a batch whose rows are numbered from `first` on; refuse what `allocate` refuses."""
    curves, costs = check_task(curves, costs)
    return np.arange(first, first + len(curves)), curves, costs


def hold_scores(curves: Any, costs: Any) -> ScoredBatches:
    """Return customers whose curves (n, K) and costs (K,) or (n, K) are in memory, as one batch."""
    batch = check_batch(curves, costs)
    return ScoredBatches(len(batch[0]), lambda: [batch])


def price_plan(
    scored: Scored, budget: float | None = None, *, total: float | None = None, seen: Tally | None = None
) -> PricedPlan:
    """Plan within an average or a total budget, whatever holds the customers.

    All steps up the hulls stand in one order, the steepest first, of equal ones that of the earlier row, and are bought as
    long as they fit. So price, levels and bound do not depend on how customers were cut into batches. Two or three looks at
    all customers find where the budget ends; `seen` is the answer to `Look()`, if that was asked before.

    >>> scored = hold_scores([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]], [0, 1, 2])
    >>> plan = price_plan(scored, budget=1.5)
    >>> plan.price, plan.spend, plan.decide(*next(iter(scored.batches())))
    (0.09999999999999998, 1.5, array([1, 2]))
    """
    n = scored.n
    limit = total_limit(n, budget, total)
    average = limit / n if budget is None else float(budget)
    look = Look()
    while not look.closing:
        tally = scored.ask(look) if seen is None else seen
        if look == Look() and limit < np.inf and tally.spent > units_of(limit * (1 + ROUNDING)):
            raise too_small(tally.spend, limit, n, total is not None)
        look, seen = look.closer(tally, limit), None
    found = settle(look, scored.ask(Gather(look)), limit)
    value, spend, bound = (float(part) / n for part in (found.value, found.spend, found.bound))
    # The exact mean is within the budget; spend / n is rounded and may be a bit above it.
    return PricedPlan(n, value, min(spend, average), found.price, bound, average, found)
