"""Allocation problem under constraints, in the form that the solvers use.

Customers fall into S groups such that all customers of a group stand under the same limits. A limit is then a set of
groups times a set of levels, and whatever a plan uses of it is a sum over cells (group, level).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from largesse.allocation.constraints.constraint_types import Constraint, Limit, Segments
from largesse.allocation.price.hull import as_rows
from largesse.records import Array

MULTIPLIER_SAMPLE_SIZE = 32768  # customers on whom multipliers are found
MIN_GROUP_SAMPLE = 50  # customers of a group in a sample that stands for it
TOLERANCE, SAMPLE_TOLERANCE = (
    1e-9,
    1e-5,
)  # relative; how close multipliers are searched for among all customers, and in a sample


@dataclass(frozen=True, eq=False)
class LimitRow:
    """One limit over groups and levels."""

    limit: Limit
    bound: float  # customers, or money
    money: bool
    sign: float  # 1 when the bound is the most, −1 when it is the least
    groups: Array  # (g,) codes of the groups, rising
    levels: Array  # (K,) bool

    def total(self, cells: Array) -> float:
        """Return the sum of cells (S, K) that the row covers."""
        return float(cells[self.groups][:, self.levels].sum())

    def within(self, other: LimitRow) -> bool:
        """Test if this row covers only cells that the other row covers."""
        return bool((self.levels <= other.levels).all() and np.isin(self.groups, other.groups).all())


@dataclass(frozen=True, eq=False)
class LimitRows:
    """All limits, the overall budget first, with the allowed levels and the minimum return."""

    rows: tuple[LimitRow, ...]  # (R,)
    group: Array  # (n,) int64 code of each customer's group
    groups: int  # S
    allowed: Array  # (n, K) bool, or (0, K) when everybody may get everything
    floor: float  # response that a unit of cost must bring at least

    @cached_property
    def bounds(self) -> Array:
        """The bound of each limit (R,)."""
        return np.array([row.bound for row in self.rows])

    @cached_property
    def signs(self) -> Array:
        """The sign of each limit (R,)."""
        return np.array([row.sign for row in self.rows])

    @cached_property
    def money(self) -> Array:
        """The mask (R,) of limits on cost."""
        return np.array([row.money for row in self.rows])

    @cached_property
    def levels(self) -> Array:
        """The mask (R, K) of the levels of each limit."""
        return np.array([row.levels for row in self.rows])

    @cached_property
    def of_group(self) -> tuple[Array, Array]:
        """The start (S + 1,) of each group's rows, and the rows of all groups, group by group, in rising order."""
        who = np.concatenate([row.groups for row in self.rows])
        which = np.repeat(np.arange(len(self.rows)), [len(row.groups) for row in self.rows])
        order = np.argsort(who, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(who, minlength=self.groups))])
        return first, which[order]

    def tables(self, multiplier: Array) -> CellPrices:
        """Return the prices of cells that follow from the multipliers (R,) of the rows."""
        shape = (self.groups, self.levels.shape[1])
        price, fee = np.full(shape, self.floor), np.zeros(shape)
        for row, value in zip(self.rows, multiplier.tolist(), strict=True):
            if value:
                table = price if row.money else fee
                table[np.ix_(row.groups, row.levels)] += row.sign * value
        return CellPrices(price, fee)

    def without_money(self) -> LimitRows:
        """Return the rows without limits on cost and without a minimum return."""
        rows = tuple(replace(row, bound=row.sign * math.inf) if row.money else row for row in self.rows)
        return replace(self, rows=rows, floor=0.0)


@dataclass(frozen=True, eq=False)
class CellPrices:
    """Dual prices of cells: of a unit of cost (S, K), and of a customer (S, K)."""

    cost: Array
    customer: Array


@dataclass(frozen=True, eq=False)
class CellTotals:
    """Totals of the best levels at prices: net value (S,), and cost and number of customers of each cell (S, K)."""

    worth: Array
    spend: Array
    count: Array

    def used(self, row: LimitRow) -> float:
        """Return the used amount of a limit."""
        return row.total(self.spend if row.money else self.count)


@dataclass(frozen=True, eq=False)
class ConstrainedProblem:
    """Curves (n, K), cost rows (1, K) or (n, K), constraints, and levels (n,), which the solvers change."""

    curves: Array
    costs: Array
    rules: LimitRows
    levels: Array
    weight: Array  # (S,) how many customers each row of a group stands for
    close: float  # relative; how close multipliers are searched for

    def choose_levels(self, prices: CellPrices) -> CellTotals:
        """Write the best levels at prices, and return their totals."""
        from largesse.allocation.constraints.repair_kernels import choose_levels

        rules = self.rules
        worth, spend, count = choose_levels(
            self.curves, self.costs, rules.allowed, rules.group, prices.cost, prices.customer, self.levels
        )
        return CellTotals(worth * self.weight, spend * self.weight[:, None], count * self.weight[:, None])

    def slack(self, levels: Array | None = None) -> Array:
        """Return the slack of each limit (R,), negative if it is broken; the sign is exact."""
        from largesse.allocation.constraints.repair_kernels import sum_cells

        chosen, rules = self.levels if levels is None else levels, self.rules
        total, carry, count = sum_cells(self.costs, rules.group, chosen, rules.groups)
        left = np.empty(len(rules.rows))
        for r, row in enumerate(rules.rows):
            if math.isinf(row.bound):
                left[r] = math.inf
            elif row.money:
                parts = [table[row.groups][:, row.levels].ravel() for table in (total, carry)]
                left[r] = row.sign * math.fsum([row.bound, *(-np.concatenate(parts)).tolist()])
            else:
                left[r] = row.sign * (row.bound - row.total(count))
        return left

    def net(self, rows: Array, levels: Array) -> Array:
        """Return the value of some rows' levels, minus the minimum return on their cost."""
        return np.asarray(self.curves[rows, levels].astype(np.float64) - self.rules.floor * self.paid(rows, levels))

    def paid(self, rows: Array, levels: Array) -> Array:
        """Return the cost of some rows' levels."""
        paid = self.costs[rows if len(self.costs) > 1 else 0, levels].astype(np.float64)
        return np.broadcast_to(paid, np.shape(rows))

    def worth(self, levels: Array) -> float:
        """Return the total net value of levels (n,)."""
        return math.fsum(self.net(np.arange(len(levels)), levels).tolist())

    @property
    def allowed(self) -> Array:
        """The mask (n, K) of the levels that customers may get."""
        return self.rules.allowed if len(self.rules.allowed) else np.ones(self.curves.shape, dtype=bool)


def arrange_constraints(limits: Sequence[Limit], rules: Sequence[Constraint], shape: tuple[int, int]) -> LimitRows:
    """Return constraints and limits, the overall budget first, for n customers and K levels."""
    n, K = shape
    bounds = [float(limit.limit(n)) for limit in limits]
    real = [r for r, bound in enumerate(bounds) if r == 0 or (bound > 0 if limits[r].at_least else bound < math.inf)]
    kinds = list({id(s): s for s in (limits[r].segments for r in real) if s is not None}.values())
    group, places = _cross(kinds, n)
    rows = tuple(
        LimitRow(
            limits[r],
            bounds[r],
            limits[r].money,
            -1.0 if limits[r].at_least else 1.0,
            _groups_of(limits[r], kinds, places),
            limits[r].covers(K),
        )
        for r in real
    )
    masks = [mask for mask in (rule.allowed(n, K) for rule in rules) if mask is not None]
    allowed = np.ascontiguousarray(np.logical_and.reduce(masks)) if masks else np.zeros((0, K), dtype=bool)
    return LimitRows(rows, group, len(places), allowed, max((rule.floor for rule in rules), default=0.0))


def _cross(kinds: list[Segments], n: int) -> tuple[Array, Array]:
    """Return the group of each customer (n,), and each group's index (S, kinds) in every segmentation."""
    if not kinds:
        return np.zeros(n, dtype=np.int64), np.zeros((1, 0), dtype=np.int64)
    if len(kinds) == 1:
        return kinds[0].codes, np.arange(len(kinds[0].names))[:, None]
    places, group = np.unique(np.column_stack([kind.codes for kind in kinds]), axis=0, return_inverse=True)
    return group.reshape(-1).astype(np.int64), places


def _groups_of(limit: Limit, kinds: list[Segments], places: Array) -> Array:
    if limit.segments is None:
        return np.arange(len(places))
    at = [kind is limit.segments for kind in kinds].index(True)
    return np.flatnonzero(places[:, at] == limit.segments.places[limit.segment])


def make_problem(curves: Array, costs: Array, rules: LimitRows) -> ConstrainedProblem:
    """Return the instance of all customers."""
    return ConstrainedProblem(
        curves, costs, rules, np.zeros(len(curves), dtype=np.int64), np.ones(rules.groups), TOLERANCE
    )


def sample_customers(instance: ConstrainedProblem) -> ConstrainedProblem:
    """Return the instance of a sample of customers, weighted by group; the whole instance if it or a group is small."""
    rules, n, S = instance.rules, len(instance.levels), instance.rules.groups
    if n <= 2 * MULTIPLIER_SAMPLE_SIZE:
        return instance
    rows = np.random.default_rng(0).integers(0, n, MULTIPLIER_SAMPLE_SIZE)
    there, here = np.bincount(rules.group, minlength=S), np.bincount(rules.group[rows], minlength=S)
    if (here < np.minimum(there, MIN_GROUP_SAMPLE)).any():
        return instance
    allowed = rules.allowed[rows] if len(rules.allowed) else rules.allowed
    sampled = replace(rules, allowed=allowed, group=rules.group[rows])
    costs = instance.costs[rows] if len(instance.costs) > 1 else instance.costs
    curves, costs = as_rows(instance.curves[rows], costs)
    # A sample cannot tell multipliers apart that are closer than this.
    return ConstrainedProblem(
        curves,
        costs,
        sampled,
        np.zeros(MULTIPLIER_SAMPLE_SIZE, dtype=np.int64),
        there / np.maximum(here, 1),
        SAMPLE_TOLERANCE,
    )
