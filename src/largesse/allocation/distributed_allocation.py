"""Allocation for customers in batches on several machines, which exchange only sums.

The price search is that of `allocate`, round by round: a sample brackets the price, every batch decides the customers who
get the same level at both ends, and adds up their costs. When few customers are undecided they are gathered, and the
search goes on with them in memory. So price, levels and bound are those of `allocate`.

`ask` runs a function for every batch (row numbers, curves, costs) in the order of rows, wherever it is, and gives
their results: dicts of small arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np

from largesse.allocation.input_checks import compute_total_budget, make_budget_error
from largesse.allocation.price.plan_rounding import PlanDraft, keep_within_budget, spend_remainder
from largesse.allocation.price.price_search import (
    NUDGE,
    PRICE_SAMPLE_SIZE,
    BudgetShortfall,
    PriceSearch,
    find_levels_at_price,
    search_price,
)
from largesse.allocation.price.upper_hulls import find_hull_steps
from largesse.records import Array

Bracket = tuple[float, float]
Result = dict[str, Array]
Task = Callable[[Array, Array, Array], Result]
Ask = Callable[[Task], Iterable[Result]]

MAX_GATHERED = 500_000  # customers that are decided in memory
TIE_WIDTH = 4 * NUDGE  # relative width of a bracket whose steps are taken for ties


@dataclass(frozen=True, eq=False)
class BatchLevelRule:
    """Rule for levels in batches: brackets of the shadow price, and listed levels of customers between the brackets."""

    brackets: tuple[Bracket, ...]
    rows: Array  # (m,) rising: the undecided customers whose levels were decided one by one
    levels: Array  # (m,)

    def decide(self, rows: Array, curves: Array, costs: Array) -> Array:
        """Return the levels (n,) of one batch of customers.

        Row numbers are (n,), curves (n, K) and cost rows (1, K) or (n, K).
        """
        levels, undecided, _ = apply_brackets(self.brackets, curves, costs)
        wanted = rows[undecided]
        if self.brackets and len(self.rows) and len(wanted) and wanted[0] < self.rows[0]:
            # Of customers who share a step but were too many to gather, those before the gathered ones take it.
            low = find_levels_at_price(curves, costs, self.brackets[-1][1])
            levels[undecided] = np.where(wanted < self.rows[0], low[undecided], levels[undecided])
        place = np.searchsorted(self.rows, wanted)
        known = np.flatnonzero(np.append(self.rows, -1)[place] == wanted)
        levels[undecided[known]] = self.levels[place[known]]
        return levels


@dataclass(frozen=True, eq=False)
class BatchPlan:
    """Plan for customers in batches: average value and cost, upper bound of the value, and levels of any batch."""

    n: int
    value: float  # averages per customer, as in `Plan`
    spend: float
    price: float
    bound: float
    budget: float
    decision: BatchLevelRule

    @property
    def gap(self) -> float:
        """Upper bound of the additional average value of a better plan."""
        return max(self.bound - self.value, 0.0)

    def __len__(self) -> int:
        return self.n

    def decide(self, rows: Array, curves: Array, costs: Array) -> Array:
        """Return the levels (n,) of one batch of customers.

        Row numbers are (n,), curves (n, K) and cost rows (1, K) or (n, K).
        """
        return self.decision.decide(rows, curves, costs)


def allocate_batches(
    ask: Ask, n: int, budget: float | None = None, *, total: float | None = None, gathered: int = MAX_GATHERED
) -> BatchPlan:
    """Allocate levels to n customers in batches, within an average or a total budget.

    At most `gathered` customers come to this machine.

    >>> batch = (np.arange(2), np.array([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]]), np.array([[0.0, 1.0, 2.0]]))
    >>> plan = allocate_batches(lambda task: [task(*batch)], 2, budget=1.5)
    >>> plan.price, plan.spend, plan.decision.decide(*batch)
    (0.09999999999999998, 1.5, array([1, 2]))
    """
    limit = compute_total_budget(n, budget, total)
    average = limit / n if budget is None else float(budget)
    search, batch_search = PriceSearch(limit, n), BatchPriceSearch(ask, gathered / n)
    ends = (0, n)
    while search.undecided > gathered:
        if search.parted:
            curves, costs = batch_search.fetch_customers(search.draw_sample())
            inside = search.estimate_bracket(curves, costs)
        elif search.ends[0] > search.ends[1] * (1 + TIE_WIDTH):
            inside = batch_search.narrow_bracket(search)
        else:
            ends = batch_search.split_ties(search)
            break
        short = batch_search.classify_customers(search, inside)
        if short is not None:
            raise make_budget_error(short.cheapest, limit, n, total is not None)
    rows, curves, costs = batch_search.fetch_customers_between(ends)
    solution = search_price(curves, costs, limit, search if batch_search.brackets else None)
    if isinstance(solution, BudgetShortfall):
        raise make_budget_error(solution.cheapest, limit, n, total is not None)
    value, spend = (sum(map(Fraction, parts), Fraction(0)) for parts in (solution.value, solution.spend))
    plan = PlanDraft(curves, costs, solution.levels, value, spend, limit)
    bound = float(value) + (solution.price * max(plan.remaining_budget, 0.0) if solution.price > 0 else 0.0)
    keep_within_budget(plan, solution.rows)
    spend_remainder(plan, solution.rows)
    total_value = float(plan.value)
    decision = BatchLevelRule(tuple(batch_search.brackets), rows, plan.levels)
    mean_spend = min(float(plan.spend) / n, average)
    return BatchPlan(n, total_value / n, mean_spend, solution.price, max(bound, total_value) / n, average, decision)


@dataclass(eq=False)
class BatchPriceSearch:
    """Search for the shadow price over batches of customers, by brackets of the price that become narrower."""

    ask: Ask
    share: float  # of its customers that a batch may send
    brackets: list[Bracket] = field(default_factory=list)
    firsts: Array = field(
        default_factory=lambda: np.zeros(1, dtype=np.int64)
    )  # (b,) row number of each batch's first row
    before: Array = field(
        default_factory=lambda: np.zeros(1, dtype=np.int64)
    )  # (b,) undecided customers before the batch
    ends: Array = field(default_factory=lambda: np.zeros((1, 2)))  # (b, 2) cost of its undecided at both ends
    sent: list[Result] | None = None  # the undecided of the last bracket, if every batch has sent its own

    def fetch_customers(self, places: Array) -> tuple[Array, Array]:
        """Fetch curves and costs of undecided customers, by their positions (m,) among all undecided customers.

        Their best level still depends on the price. The positions may stand in any order.
        """
        if not len(places):
            return np.zeros((0, 1)), np.zeros((1, 1))
        wanted, back = np.unique(places, return_inverse=True)
        _, curves, costs = _join_batches(
            self.ask(partial(_select_by_position, tuple(self.brackets), wanted, self.firsts, self.before))
        )
        return curves[back], costs[back] if len(costs) > 1 else costs

    def classify_customers(self, search: PriceSearch, inside: Bracket) -> BudgetShortfall | None:
        """Set the levels of the customers in every batch whose best level is the same in a new price bracket.

        It counts only if the price lies in it.
        """
        results = list(self.ask(partial(_classify_batch, (*self.brackets, inside), self.share)))
        counts, firsts = ([int(result[name]) for result in results] for name in ("undecided", "first"))
        sums = np.array([result["sums"] for result in results])  # (b, 6)
        accepted = search.accept_bracket(inside, sum(counts), _add_batch_sums(sums))
        if isinstance(accepted, BudgetShortfall):
            return accepted
        if accepted:
            order = np.argsort(firsts)
            self.brackets.append(inside)
            self.firsts, self.ends = np.array(firsts)[order], sums[order, 4:]
            self.before = np.cumsum([0, *np.array(counts)[order]])[:-1]
            self.sent = results if all("rows" in result for result in results) else None
        return None

    def narrow_bracket(self, search: PriceSearch) -> Bracket:
        """Return a narrower bracket of the shadow price, from a sample of steps on customers' upper hulls.

        It may lie around a step that many customers share.
        """
        size = min(PRICE_SAMPLE_SIZE, search.undecided)
        curves, costs = self.fetch_customers(search.rng.integers(0, search.undecided, size))
        steps = find_hull_steps(
            curves, costs, np.arange(size), find_levels_at_price(curves, costs, search.ends[0]), search.ends[1]
        )
        slope = np.unique(steps.slope)[::-1]
        inner = np.column_stack([slope * (1 + NUDGE), slope * (1 - NUDGE)]).ravel()
        prices = np.unique([*inner.clip(search.ends[1], min(search.ends[0], inner[0])), *search.ends])[::-1]
        spends = np.array(
            [result["cost"] for result in self.ask(partial(_sum_spend_by_price, tuple(self.brackets), prices))]
        )
        over = np.cumsum(spends.sum(axis=0)) > search.room
        k = int(np.argmax(over)) if over.any() else len(prices) - 1
        return float(prices[max(k - 1, 0)]), float(prices[max(k, 1)])

    def split_ties(self, search: PriceSearch) -> tuple[int, int]:
        """Give tied customers the higher level in row order, and find the batch in which the budget is used up.

        Returns the rows of this batch.
        """
        high, low = self.ends.T
        spent = np.cumsum(low) + np.cumsum(high[::-1])[::-1] - high  # up to each batch everyone takes the step
        k = min(int(np.searchsorted(spent, search.room, side="right")), len(self.firsts) - 1)
        last = int(self.firsts[k + 1]) if k + 1 < len(self.firsts) else np.iinfo(np.int64).max
        ends = int(self.firsts[k]), last
        others = np.array(
            [result["sums"] for result in self.ask(partial(_sum_tied_customers, tuple(self.brackets), ends))]
        )
        search.decided.append(_add_batch_sums(others))
        return ends

    def fetch_customers_between(self, ends: tuple[int, int]) -> tuple[Array, Array, Array]:
        """Fetch customers whose best level still depends on the price, between two row numbers."""
        return _join_batches(self.sent or self.ask(partial(_select_by_row_number, tuple(self.brackets), ends)))


def apply_brackets(brackets: Iterable[Bracket], curves: Array, costs: Array) -> tuple[Array, Array, Array]:
    """Set the levels of a batch's customers whose best level is the same within one of several price brackets.

    Returns levels (n,), undecided rows (m,) and the sums of the last round.

    The levels of the undecided are those at the high end of the last bracket.
    """
    from largesse.allocation.price.price_kernels import classify_rows

    n = len(curves)
    levels, rows, sums = np.empty(n, dtype=np.int64), None, np.zeros(6)
    for high, low in brackets:
        unsure = np.empty(n if rows is None else len(rows), dtype=np.int64)
        n_undecided, sums = classify_rows(
            curves, costs, levels if rows is None else rows, rows is None, high, low, levels, unsure
        )
        rows = unsure[:n_undecided]
    return levels, np.arange(n) if rows is None else rows, sums


# -- one task for each batch ----------------------------------------------------------------------------------------------


def _classify_batch(brackets: tuple[Bracket, ...], share: float, rows: Array, curves: Array, costs: Array) -> Result:
    """Set a batch's levels by price brackets; return sums, and the undecided customers if they are few."""
    _, undecided, sums = apply_brackets(brackets, curves, costs)
    few = _pack_customers(rows, curves, costs, undecided) if len(undecided) <= share * len(rows) else {}
    return {"first": rows[0], "undecided": np.array(len(undecided)), "sums": sums, **few}


def _select_by_position(
    brackets: tuple[Bracket, ...],
    places: Array,
    firsts: Array,
    before: Array,
    rows: Array,
    curves: Array,
    costs: Array,
) -> Result:
    """Return undecided customers of a batch, by their positions among the undecided customers of all batches."""
    undecided = apply_brackets(brackets, curves, costs)[1]
    k = int(np.searchsorted(firsts, rows[0], side="right")) - 1
    start = int(before[k]) + (0 if brackets else int(rows[0]))
    mine = places[slice(*np.searchsorted(places, [start, start + len(undecided)]))] - start
    return _pack_customers(rows, curves, costs, undecided[mine])


def _select_by_row_number(
    brackets: tuple[Bracket, ...], ends: tuple[int, int], rows: Array, curves: Array, costs: Array
) -> Result:
    """Return customers of a batch whose level still depends on the price, between two row numbers."""
    undecided = apply_brackets(brackets, curves, costs)[1]
    inside = (rows[undecided] >= ends[0]) & (rows[undecided] < ends[1])
    return _pack_customers(rows, curves, costs, undecided[inside])


def _sum_spend_by_price(
    brackets: tuple[Bracket, ...], prices: Array, rows: Array, curves: Array, costs: Array
) -> Result:
    """Sum the costs of a batch's customers without a final level at each of several decreasing shadow prices (m,)."""
    del rows
    levels, undecided, _ = apply_brackets(brackets, curves, costs)
    steps = find_hull_steps(curves, costs, undecided, levels, float(prices[-1]))
    cell = np.searchsorted(-prices, -steps.slope)  # the first price that takes the step
    cost = np.bincount(cell, steps.cost, minlength=len(prices))
    cost[0] += np.broadcast_to(costs, curves.shape)[undecided, levels[undecided]].sum()
    return {"cost": cost}


def _sum_tied_customers(
    brackets: tuple[Bracket, ...], ends: tuple[int, int], rows: Array, curves: Array, costs: Array
) -> Result:
    """Sum value and cost of a batch's customers with tied levels, outside a range of row numbers.

    They take the step before the range, and not after it.
    """
    from largesse.allocation.price.price_kernels import sum_value_and_cost

    levels, undecided, _ = apply_brackets(brackets, curves, costs)
    outside = undecided[(rows[undecided] < ends[0]) | (rows[undecided] >= ends[1])]
    if len(outside) and rows[0] < ends[0]:
        levels = find_levels_at_price(curves, costs, brackets[-1][1])
    return {"sums": sum_value_and_cost(curves, costs, outside, levels)}


def _pack_customers(rows: Array, curves: Array, costs: Array, some: Array) -> Result:
    return {"rows": rows[some], "curves": curves[some], "costs": _select_costs(costs, some)}


def _select_costs(costs: Array, some: Array) -> Array:
    """Return the cost rows (1, K) or (m, K) of some customers."""
    return costs if len(costs) == 1 else costs[some]


def _join_batches(results: Iterable[Result]) -> tuple[Array, Array, Array]:
    """Concatenate the customers of all batches, in the order of their row numbers."""
    undecided = [result for result in results if "rows" in result]
    rows, curves = (np.concatenate([result[name] for result in undecided]) for name in ("rows", "curves"))
    per_customer = any(len(result["costs"]) != 1 for result in undecided)
    wide = [np.broadcast_to(result["costs"], result["curves"].shape) for result in undecided]
    costs = np.concatenate(wide) if per_customer else undecided[0]["costs"]
    order = np.argsort(rows)
    return rows[order], curves[order], costs[order] if per_customer else costs


def _add_batch_sums(sums: Array) -> Array:
    """Add up the sums (b, m) of batches, without rounding errors for sums that have a carry.

    Pairs of a sum and its carry come first.
    """
    pairs = sums[:, :4].reshape(len(sums), 2, 2)
    whole = [sum(map(Fraction, pairs[:, k].ravel().tolist()), Fraction(0)) for k in range(2)]
    carried = [term for total in whole for term in (float(total), float(total - Fraction(float(total))))]
    return np.array([*carried, *(math.fsum(column) for column in sums[:, 4:].T.tolist())])
