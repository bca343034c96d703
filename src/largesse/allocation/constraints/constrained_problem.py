"""Allocation problem under constraints as arrays: response curves, costs, groups of customers and limits.

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
from largesse.allocation.price.upper_hulls import convert_to_kernel_arrays
from largesse.records import Array

MULTIPLIER_SAMPLE_SIZE = 32768  # customers on whom multipliers are found
MIN_GROUP_SAMPLE = 50  # customers of a group in a sample that stands for it
TOLERANCE, SAMPLE_TOLERANCE = (
    1e-9,
    1e-5,
)  # relative; how close multipliers are searched for among all customers, and in a sample


@dataclass(frozen=True, eq=False)
class LimitRow:
    """One limit: a bound on the cost or the number of customers in some groups at some levels."""

    limit: Limit
    bound: float  # customers, or money
    money: bool
    sign: float  # 1 when the bound is the most, −1 when it is the least
    groups: Array  # (g,) codes of the groups, rising
    levels: Array  # (K,) bool

    def total(self, cells: Array) -> float:
        """Sum a table (groups, levels) over the groups and levels of the limit."""
        return float(cells[self.groups][:, self.levels].sum())

    def is_covered_by(self, other: LimitRow) -> bool:
        """Test if the limit covers only groups and levels that another limit covers too."""
        return bool((self.levels <= other.levels).all() and np.isin(self.groups, other.groups).all())


@dataclass(frozen=True, eq=False)
class LimitRows:
    """All limits of a problem, the budget first, with the allowed levels and the minimum return."""

    rows: tuple[LimitRow, ...]  # (R,)
    group: Array  # (n,) int64 code of each customer's group
    groups: int  # S
    allowed: Array  # (n, K) bool, or (0, K) when everybody may get everything
    floor: float  # response that a unit of cost must bring at least

    @cached_property
    def bounds(self) -> Array:
        """Bound of each limit (R,), as cost or as a number of customers."""
        return np.array([row.bound for row in self.rows])

    @cached_property
    def signs(self) -> Array:
        """Sign of each limit (R,): 1 for an upper limit, −1 for a lower limit."""
        return np.array([row.sign for row in self.rows])

    @cached_property
    def money(self) -> Array:
        """Mask (R,) of the limits on cost."""
        return np.array([row.money for row in self.rows])

    @cached_property
    def levels(self) -> Array:
        """Mask (R, K) of the levels that each limit covers."""
        return np.array([row.levels for row in self.rows])

    @cached_property
    def limits_by_group(self) -> tuple[Array, Array]:
        """Limits of each group as two arrays: start positions (S + 1,), and limit numbers sorted by group."""
        who = np.concatenate([row.groups for row in self.rows])
        which = np.repeat(np.arange(len(self.rows)), [len(row.groups) for row in self.rows])
        order = np.argsort(who, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(who, minlength=self.groups))])
        return first, which[order]

    def make_cell_prices(self, multiplier: Array) -> CellPrices:
        """Return the dual prices by group and level, from the multipliers (R,) of the limits."""
        shape = (self.groups, self.levels.shape[1])
        price, fee = np.full(shape, self.floor), np.zeros(shape)
        for row, value in zip(self.rows, multiplier.tolist(), strict=True):
            if value:
                table = price if row.money else fee
                table[np.ix_(row.groups, row.levels)] += row.sign * value
        return CellPrices(price, fee)

    def without_cost_limits(self) -> LimitRows:
        """Return the limits with infinite bounds on cost and without a minimum return."""
        rows = tuple(replace(row, bound=row.sign * math.inf) if row.money else row for row in self.rows)
        return replace(self, rows=rows, floor=0.0)


@dataclass(frozen=True, eq=False)
class CellPrices:
    """Dual prices by group and level (S, K): of a unit of cost, and of a customer."""

    cost: Array
    customer: Array


@dataclass(frozen=True, eq=False)
class CellTotals:
    """Totals of a plan: net value by group, and cost and number of customers by group and level."""

    worth: Array
    spend: Array
    count: Array

    def measure_use(self, row: LimitRow) -> float:
        """Return the cost or the number of customers that counts against a limit."""
        return row.total(self.spend if row.money else self.count)


@dataclass(frozen=True, eq=False)
class ConstrainedProblem:
    """Allocation problem under constraints: curves, costs, limits, and the levels of the current plan.

    Curves are (n, K), cost rows (1, K) or (n, K), levels (n,), which the solvers change.
    """

    curves: Array
    costs: Array
    rules: LimitRows
    levels: Array
    weight: Array  # (S,) how many customers each row of a group stands for
    close: float  # relative; how close multipliers are searched for

    def choose_levels(self, prices: CellPrices) -> CellTotals:
        """Set each customer's best level at dual prices, and return the plan's totals."""
        from largesse.allocation.constraints.repair_kernels import choose_levels

        rules = self.rules
        worth, spend, count = choose_levels(
            self.curves, self.costs, rules.allowed, rules.group, prices.cost, prices.customer, self.levels
        )
        return CellTotals(worth * self.weight, spend * self.weight[:, None], count * self.weight[:, None])

    def slack(self, levels: Array | None = None) -> Array:
        """Return the slack (R,) of each limit, negative if the plan violates the limit.

        The sign is exact.
        """
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

    def compute_net_values(self, rows: Array, levels: Array) -> Array:
        """Return the net values of customers at levels: response minus minimum return × cost."""
        return np.asarray(
            self.curves[rows, levels].astype(np.float64) - self.rules.floor * self.compute_costs(rows, levels)
        )

    def compute_costs(self, rows: Array, levels: Array) -> Array:
        """Return the costs of customers at levels."""
        paid = self.costs[rows if len(self.costs) > 1 else 0, levels].astype(np.float64)
        return np.broadcast_to(paid, np.shape(rows))

    def compute_total_net_value(self, levels: Array) -> float:
        """Return the total net value of a plan with levels (n,)."""
        return math.fsum(self.compute_net_values(np.arange(len(levels)), levels).tolist())

    @property
    def allowed(self) -> Array:
        """Mask (n, K) of the levels that customers may get."""
        return self.rules.allowed if len(self.rules.allowed) else np.ones(self.curves.shape, dtype=bool)


def arrange_constraints(limits: Sequence[Limit], rules: Sequence[Constraint], shape: tuple[int, int]) -> LimitRows:
    """Convert the constraints of n customers and K levels to arrays, the budget first."""
    n, K = shape
    bounds = [float(limit.limit(n)) for limit in limits]
    real = [r for r, bound in enumerate(bounds) if r == 0 or (bound > 0 if limits[r].at_least else bound < math.inf)]
    kinds = list({id(s): s for s in (limits[r].segments for r in real) if s is not None}.values())
    group, places = _combine_segmentations(kinds, n)
    rows = tuple(
        LimitRow(
            limits[r],
            bounds[r],
            limits[r].money,
            -1.0 if limits[r].at_least else 1.0,
            _find_limit_groups(limits[r], kinds, places),
            limits[r].covers(K),
        )
        for r in real
    )
    masks = [mask for mask in (rule.allowed(n, K) for rule in rules) if mask is not None]
    allowed = np.ascontiguousarray(np.logical_and.reduce(masks)) if masks else np.zeros((0, K), dtype=bool)
    return LimitRows(rows, group, len(places), allowed, max((rule.floor for rule in rules), default=0.0))


def _combine_segmentations(kinds: list[Segments], n: int) -> tuple[Array, Array]:
    """Group customers by their segments in all segmentations.

    Returns the group of each customer (n,), and each group's index (S, kinds) in every segmentation.
    """
    if not kinds:
        return np.zeros(n, dtype=np.int64), np.zeros((1, 0), dtype=np.int64)
    if len(kinds) == 1:
        return kinds[0].codes, np.arange(len(kinds[0].names))[:, None]
    places, group = np.unique(np.column_stack([kind.codes for kind in kinds]), axis=0, return_inverse=True)
    return group.reshape(-1).astype(np.int64), places


def _find_limit_groups(limit: Limit, kinds: list[Segments], places: Array) -> Array:
    if limit.segments is None:
        return np.arange(len(places))
    at = [kind is limit.segments for kind in kinds].index(True)
    return np.flatnonzero(places[:, at] == limit.segments.number_by_segment[limit.segment])


def make_constrained_problem(curves: Array, costs: Array, rules: LimitRows) -> ConstrainedProblem:
    """Return the allocation problem of all customers under their limits."""
    return ConstrainedProblem(
        curves, costs, rules, np.zeros(len(curves), dtype=np.int64), np.ones(rules.groups), TOLERANCE
    )


def sample_customers(instance: ConstrainedProblem) -> ConstrainedProblem:
    """Return the allocation problem of a random sample of customers, weighted by group.

    It is the whole problem if it or a group is small.
    """
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
    curves, costs = convert_to_kernel_arrays(instance.curves[rows], costs)
    # A sample cannot tell multipliers apart that are closer than this.
    return ConstrainedProblem(
        curves,
        costs,
        sampled,
        np.zeros(MULTIPLIER_SAMPLE_SIZE, dtype=np.int64),
        there / np.maximum(here, 1),
        SAMPLE_TOLERANCE,
    )
