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
from largesse.allocation.explore import Mixture, check_exploring, left_to_plan, mix_levels, split_ties
from largesse.allocation.passes.gather import Gather, Settled, settle
from largesse.allocation.passes.look import Look
from largesse.allocation.passes.questions import Average, SpendAt, Ties
from largesse.allocation.passes.sums import units_of
from largesse.allocation.price.search import ROUNDING
from largesse.allocation.spending import EVEN, Correction, correct
from largesse.records import Array, Spending
from largesse.stats import draw_rows_levels

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

    Its value is proven to be within `bound` − `value` of the best there is, as that of `allocate`. A plan that explores has
    expected values and spends.
    """

    n: int
    value: float  # averages per customer, as in `Plan`
    spend: float
    price: float
    bound: float
    budget: float
    settled: Settled
    rule: Mixture  # for customers not seen yet
    seed: int = 0  # of what is drawn at random

    @property
    def gap(self) -> float:
        """How much better the best plan could be at most."""
        return max(self.bound - self.value, 0.0)

    def __len__(self) -> int:
        return self.n

    def decide(self, rows: Array, curves: Array, costs: Array) -> tuple[Array, Array | None]:
        """Return the levels (n,) of some of the customers and, where the plan explores, their propensities (n,).

        Customers are row numbers (n,), curves (n, K) and cost rows (1, K) or (n, K), as in the batches that were asked.
        """
        levels, explore = self.settled.decide(rows, curves, costs), self.rule.explore
        if not explore:
            return levels, None
        probabilities = mix_levels(np.eye(curves.shape[1])[levels], explore)
        drawn = draw_rows_levels(probabilities, rows, self.seed)
        return drawn, probabilities[np.arange(len(rows)), drawn]


def check_batch(curves: Any, costs: Any, first: int = 0) -> Batch:
    """Return a batch whose rows are numbered from `first` on; refuse what `allocate` refuses."""
    curves, costs = check_task(curves, costs)
    return np.arange(first, first + len(curves)), curves, costs


def hold_scores(curves: Any, costs: Any) -> ScoredBatches:
    """Return customers whose curves (n, K) and costs (K,) or (n, K) are in memory, as one batch."""
    batch = check_batch(curves, costs)
    return ScoredBatches(len(batch[0]), lambda: [batch])


def price_plan(
    scored: Scored,
    budget: float | None = None,
    *,
    total: float | None = None,
    explore: float = 0.0,
    seed: int = 0,
) -> PricedPlan:
    """Plan within an average or a total budget, whatever holds the customers; a share of them explores.

    All steps up the hulls stand in one order, the steepest first, of equal ones that of the earlier row, and are bought as
    long as they fit. So price, levels and bound do not depend on how customers were cut into batches. Two or three looks at
    all customers find where the budget ends.

    >>> scored = hold_scores([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]], [0, 1, 2])
    >>> plan = price_plan(scored, budget=1.5)
    >>> plan.price, plan.spend, plan.decide(*next(iter(scored.batches())))[0]
    (0.09999999999999998, 1.5, array([1, 2]))
    """
    check_exploring(explore, seed)
    n = scored.n
    limit = total_limit(n, budget, total)
    average = limit / n if budget is None else float(budget)
    if not explore:
        found = _search(scored, limit, total is not None)
        value, spend, bound = (float(part) / n for part in (found.value, found.spend, found.bound))
        rule = split_ties(found.price, _ends(scored, found.price), average)
        # The exact mean is within the budget; spend / n is rounded and may be a bit above it.
        return PricedPlan(n, value, min(spend, average), found.price, bound, average, found, rule)
    cheapest, *each = scored.ask(Average()).means
    random, response = (sum(means) / len(means) for means in (each[: len(each) // 2], each[len(each) // 2 :]))
    rest = left_to_plan(cheapest, random, average, explore)
    found = _search(scored, rest * n, False)
    value, bound = ((1 - explore) * float(part) / n + explore * response for part in (found.value, found.bound))
    spend = (1 - explore) * min(float(found.spend) / n, rest) + explore * random
    rule = split_ties(found.price, _ends(scored, found.price), rest, explore)
    return PricedPlan(n, value, min(spend, average), found.price, bound, average, found, rule, seed)


def _search(scored: Scored, limit: float, total: bool) -> Settled:
    """Look closer and closer at all customers until few steps are open, then settle them."""
    look = Look()
    while not look.closing:
        tally = scored.ask(look)
        if look == Look() and limit < np.inf and tally.spent > units_of(limit * (1 + ROUNDING)):
            raise too_small(tally.spend, limit, scored.n, total)
        look = look.closer(tally, limit)
    return settle(look, scored.ask(Gather(look)), limit)


def _ends(scored: Scored, price: float) -> tuple[float, float]:
    """Return what customers cost at a price, the cheapest of equally good levels taken, or the dearest."""
    low, high = scored.ask(Ties(price)).means
    return low, high


def correct_scored(scored: Scored, budget: float, spending: Spending | None, confidence: float = EVEN) -> Correction:
    """Return the correction with which a plan for these customers really costs `budget` on average: see `correct_costs`."""
    if spending is None:
        return Correction()
    expected = scored.ask(SpendAt(spending.price))
    return correct(np.cumsum(expected.means), budget, spending, confidence)
