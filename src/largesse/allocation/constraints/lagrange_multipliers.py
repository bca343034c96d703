"""Lagrange multipliers of a plan's budget and limits, and the upper bound of the plan's value.

Every limit has a multiplier: the value of one more unit of it. Given them all, each customer's best level stands
alone, and the sum of their worths, plus the multipliers times the limits, bounds every plan (Lagrangian
duality). The multipliers are found on a sample, one block at a time, each exactly: the budgets of disjoint segments all at
once, the overall budget, then each further set of cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from largesse.allocation.constraints.constrained_problem import (
    CellPrices,
    ConstrainedProblem,
    LimitRow,
    LimitRows,
    sample_customers,
)
from largesse.records import Array

SWEEPS, HALVINGS, CORRECTIONS = 9, 40, 2
MULTIPLIER_TOLERANCE = 1e-4  # relative; multipliers that move less are done
BOUND_ROUNDING = 1e-12  # relative; the bound is a sum of many rounded numbers


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Lagrange multipliers of the limits (R,), zero or more."""

    rules: LimitRows
    of_row: Array

    @property
    def prices(self) -> CellPrices:
        """Dual prices of cost and of customers, by group and level."""
        return self.rules.make_cell_prices(self.of_row)

    @property
    def dual_term(self) -> float:
        """Sum of multiplier × limit over all limits."""
        held = self.of_row > 0
        return math.fsum((self.rules.signs[held] * self.of_row[held] * self.rules.bounds[held]).tolist())

    @property
    def shadow(self) -> dict[str, float]:
        """Shadow price of each limit: the value of one more unit of the limit."""
        return {row.limit.key: float(value) for row, value in zip(self.rules.rows, self.of_row, strict=True)}


@dataclass(frozen=True, eq=False)
class DualVariable:
    """Signed multiplier of an upper and a lower limit on the same groups and levels.

    Positive values price row `most`, negative ones row `least` (−1: no such row).
    """

    cells: LimitRow
    most: int
    least: int


@dataclass(frozen=True, eq=False)
class DualBlocks:
    """Blocks of limits whose multipliers are optimised block by block.

    Row 0, the overall budget, is a block of its own.
    """

    own: tuple[int, ...]  # (B,) budgets of disjoint sets of groups, at all levels
    owner: Array  # (S,) which of them a group belongs to, or −1
    variables: tuple[DualVariable, ...]

    def group_prices(self, segment_prices: Array, floor: float) -> Array:
        """Return the shadow price of cost in each group (S,) from the shadow prices of the segment budgets (B,)."""
        return np.append(segment_prices, floor)[self.owner]


def split_dual_blocks(rules: LimitRows) -> DualBlocks:
    """Split the limits into blocks whose multipliers are optimised separately.

    Rows over the same cells form one variable.
    """
    owner = np.full(rules.groups, -1)
    segment_budgets: list[int] = []
    same: dict[tuple[bool, bytes, bytes], list[int]] = {}
    for r, row in enumerate(rules.rows[1:], start=1):
        if row.money and row.sign > 0 and row.levels.all() and (owner[row.groups] < 0).all():
            owner[row.groups] = len(segment_budgets)
            segment_budgets.append(r)
        else:
            same.setdefault((row.money, row.groups.tobytes(), row.levels.tobytes()), []).append(r)
    variables = [
        DualVariable(
            rules.rows[rows[0]],
            min((r for r in rows if rules.rows[r].sign > 0), key=lambda r: rules.rows[r].bound, default=-1),
            max((r for r in rows if rules.rows[r].sign < 0), key=lambda r: rules.rows[r].bound, default=-1),
        )
        for rows in same.values()
    ]
    return DualBlocks(
        tuple(segment_budgets), owner, tuple(sorted(variables, key=lambda v: int(v.cells.levels.argmax())))
    )


def solve_dual(instance: ConstrainedProblem) -> Multipliers:
    """Find the Lagrange multipliers of all limits from a sample of customers, corrected on all customers."""
    sample, rules = sample_customers(instance), instance.rules
    multipliers = find_multipliers(sample)
    for _ in range(CORRECTIONS if sample is not instance else 0):
        prices = multipliers.prices
        there, here = sample.choose_levels(prices), instance.choose_levels(prices)
        rows = []
        for row in rules.rows:
            bound = row.bound + there.measure_use(row) - here.measure_use(row)
            rows.append(replace(row, bound=max(bound, 0.0) if row.sign > 0 else bound))
        shifted = replace(sample.rules, rows=tuple(rows))
        multipliers = replace(find_multipliers(replace(sample, rules=shifted), multipliers), rules=rules)
    return replace(multipliers, rules=rules)


def find_multipliers(instance: ConstrainedProblem, near: Multipliers | None = None) -> Multipliers:
    """Find the Lagrange multipliers of all limits by coordinate search, one block at a time.

    Plans at them nearly keep the limits. The search starts at `near`.
    """
    rules, floor, unit = instance.rules, instance.rules.floor, _estimate_price_unit(instance)
    blocks = split_dual_blocks(rules)
    segment_prices, whole, single = np.full(len(blocks.own), floor), floor, np.zeros(len(blocks.variables))
    if near is not None:
        segment_prices, whole, single = _unpack_multipliers(near, blocks, floor)
    for _ in range(SWEEPS if near is None else SWEEPS // 3):
        before = np.concatenate([np.maximum(blocks.group_prices(segment_prices, floor), whole), single])
        if len(blocks.own):
            fits = _make_segment_budget_test(instance, blocks, single)
            segment_prices = _find_smallest_feasible(
                fits, np.full(len(segment_prices), floor), segment_prices, unit, instance.close
            )
        if math.isfinite(rules.rows[0].bound):
            fits = _make_total_budget_test(instance, blocks, single, segment_prices)
            whole = float(_find_smallest_feasible(fits, np.array([floor]), np.array([whole]), unit, instance.close)[0])
        price = np.maximum(blocks.group_prices(segment_prices, floor), whole)
        for v in range(len(single)):
            single[v] = _search_dual_variable(instance, blocks, price, single, v, unit)
        after = np.concatenate([price, single])
        if np.abs(after - before).max() <= MULTIPLIER_TOLERANCE * np.abs(after).max(initial=1e-300):
            break
    of_row = np.zeros(len(rules.rows))
    of_row[0], of_row[list(blocks.own)] = whole - floor, np.maximum(segment_prices - whole, 0.0)
    for variable, value in zip(blocks.variables, single, strict=True):
        if value:
            of_row[variable.most if value > 0 else variable.least] = abs(value)
    return Multipliers(rules, of_row)


def _unpack_multipliers(near: Multipliers, blocks: DualBlocks, floor: float) -> tuple[Array, float, Array]:
    """Split initial multipliers into shadow prices of segment budgets, of the total budget, and other multipliers."""
    whole, extra = floor + float(near.of_row[0]), near.of_row[list(blocks.own)]
    value = np.append(near.of_row, 0.0)  # row −1 is none
    single = np.array([value[v.most] - value[v.least] for v in blocks.variables])
    return np.where(extra > 0, whole + extra, floor), whole, single


def _make_cell_prices(rules: LimitRows, blocks: DualBlocks, price: Array, single: Array) -> CellPrices:
    """Return the dual prices by group and level, from group shadow prices (S,) and other multipliers (V,)."""
    shape = (rules.groups, rules.levels.shape[1])
    cost, customer = np.repeat(price[:, None], shape[1], axis=1), np.zeros(shape)
    for variable, value in zip(blocks.variables, single.tolist(), strict=True):
        if value:
            table = cost if variable.cells.money else customer
            table[np.ix_(variable.cells.groups, variable.cells.levels)] += value
    return CellPrices(cost, customer)


def _make_segment_budget_test(
    instance: ConstrainedProblem, blocks: DualBlocks, single: Array
) -> Callable[[Array], Array]:
    """Return a function that tests which segment budgets hold at given shadow prices (B,)."""
    limits = instance.rules.bounds[list(blocks.own)]

    def fits(segment_prices: Array) -> Array:
        price = blocks.group_prices(segment_prices, instance.rules.floor)
        spend = instance.choose_levels(_make_cell_prices(instance.rules, blocks, price, single)).spend.sum(axis=1)
        return np.bincount(blocks.owner + 1, spend, minlength=len(segment_prices) + 1)[1:] <= limits

    return fits


def _make_total_budget_test(
    instance: ConstrainedProblem, blocks: DualBlocks, single: Array, segment_prices: Array
) -> Callable[[Array], Array]:
    """Return a function that tests if the total budget holds at a given shadow price (1,).

    A group's own price applies where it is higher.
    """
    above, rules = blocks.group_prices(segment_prices, instance.rules.floor), instance.rules

    def fits(whole: Array) -> Array:
        response = instance.choose_levels(_make_cell_prices(rules, blocks, np.maximum(above, whole), single))
        return np.array([response.spend.sum() <= rules.rows[0].bound])

    return fits


def _estimate_price_unit(instance: ConstrainedProblem) -> float:
    """Return a shadow price of typical size: the range of responses divided by the largest cost."""
    some = instance.curves[:1000].astype(np.float64)
    cost = np.abs(instance.costs[: 1000 if len(instance.costs) > 1 else 1]).max(initial=0.0)
    return float(np.ptp(some)) / max(float(cost), 1e-300) or 1e-6


def _find_smallest_feasible(
    fits: Callable[[Array], Array], low: Array, guess: Array, unit: float, close: float
) -> Array:
    """Find the smallest numbers (s,) at which a test is true, by bisection.

    The search begins at `low`; the elements are independent.
    """
    high = np.maximum(guess, low)
    done = fits(low)
    if done.all():
        return low
    step, reach = unit * 1e-3, high.copy()
    bottom = low.copy()
    for _ in range(60):
        good = fits(reach) | done
        if good.all():
            break
        bottom = np.where(good, bottom, reach)
        reach = np.where(good, reach, reach + step)
        step *= 4
    bottom = np.where(reach <= bottom, low, bottom)
    if (guess > low).any():  # a guess is often close
        nearly = reach - 0.03 * (reach - low)
        bottom = np.where(fits(nearly), bottom, np.maximum(bottom, nearly))
    for _ in range(HALVINGS):
        middle = (bottom + reach) / 2
        good = fits(middle)
        reach, bottom = np.where(good, middle, reach), np.where(good, bottom, middle)
        if (reach - bottom <= close * np.maximum(reach, unit)).all():
            break
    return np.where(done, low, reach)


def _search_dual_variable(
    instance: ConstrainedProblem, blocks: DualBlocks, price: Array, single: Array, v: int, unit: float
) -> float:
    """Find the value of one multiplier at which its limits hold, with all other multipliers fixed."""
    variable, rows = blocks.variables[v], instance.rules.rows
    prices = _make_cell_prices(instance.rules, blocks, price, np.where(np.arange(len(single)) == v, 0.0, single))
    table = prices.cost if variable.cells.money else prices.customer
    cells = np.ix_(variable.cells.groups, variable.cells.levels)
    rest = table[cells]
    most = rows[variable.most].bound if variable.most >= 0 else math.inf
    least = rows[variable.least].bound if variable.least >= 0 else -math.inf

    def used(value: float) -> float:
        table[cells] = rest + value
        return instance.choose_levels(prices).measure_use(variable.cells)

    now = used(0.0)
    if least <= now <= most:
        return 0.0
    sign = 1.0 if now > most else -1.0
    multiplier = _find_smallest_feasible(
        lambda t: np.array([used(sign * t[0]) <= most if sign > 0 else used(sign * t[0]) >= least]),
        np.zeros(1), np.array([max(sign * single[v], 0.0)]), unit, instance.close,
    )  # fmt: skip
    return sign * float(multiplier[0])


def compute_dual_bound(instance: ConstrainedProblem, multipliers: Multipliers) -> float:
    """Return an upper bound of the net value of any plan under the constraints.

    Writes all customers' levels at the multipliers.
    """
    worth, term = instance.choose_levels(multipliers.prices).worth, multipliers.dual_term
    return math.fsum(worth.tolist()) + term + BOUND_ROUNDING * (math.fsum(np.abs(worth).tolist()) + abs(term))
