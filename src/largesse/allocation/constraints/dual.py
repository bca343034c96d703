"""Lagrange multipliers of all limits, and the upper bound that they prove.

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

from largesse.allocation.constraints.problem import (
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
        """The prices of cells that follow from the multipliers."""
        return self.rules.tables(self.of_row)

    @property
    def dual_term(self) -> float:
        """The sum of multiplier × limit."""
        held = self.of_row > 0
        return math.fsum((self.rules.signs[held] * self.of_row[held] * self.rules.bounds[held]).tolist())

    @property
    def shadow(self) -> dict[str, float]:
        """The shadow price of each limit: the value of one more unit of it."""
        return {row.limit.key: float(value) for row, value in zip(self.rules.rows, self.of_row, strict=True)}


@dataclass(frozen=True, eq=False)
class DualVariable:
    """Dual variable that is optimised alone: positive values price row `most`, negative ones row `least` (−1: no such row)."""

    cells: LimitRow
    most: int
    least: int


@dataclass(frozen=True, eq=False)
class DualBlocks:
    """Rows in blocks that are searched one after the other; row 0, the overall budget, is a block of its own."""

    own: tuple[int, ...]  # (B,) budgets of disjoint sets of groups, at all levels
    owner: Array  # (S,) which of them a group belongs to, or −1
    variables: tuple[DualVariable, ...]

    def group_prices(self, segment_prices: Array, floor: float) -> Array:
        """Return the price of each group (S,) from the prices of the segment budgets (B,)."""
        return np.append(segment_prices, floor)[self.owner]


def split_blocks(rules: LimitRows) -> DualBlocks:
    """Return the blocks; rows over the same cells form one variable."""
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
    """Return multipliers from a sample, corrected twice by its errors on all customers."""
    sample, rules = sample_customers(instance), instance.rules
    multipliers = find_multipliers(sample)
    for _ in range(CORRECTIONS if sample is not instance else 0):
        prices = multipliers.prices
        there, here = sample.choose_levels(prices), instance.choose_levels(prices)
        rows = []
        for row in rules.rows:
            bound = row.bound + there.used(row) - here.used(row)
            rows.append(replace(row, bound=max(bound, 0.0) if row.sign > 0 else bound))
        shifted = replace(sample.rules, rows=tuple(rows))
        multipliers = replace(find_multipliers(replace(sample, rules=shifted), multipliers), rules=rules)
    return replace(multipliers, rules=rules)


def find_multipliers(instance: ConstrainedProblem, near: Multipliers | None = None) -> Multipliers:
    """Return multipliers at which plans nearly keep the limits, one block at a time, starting at `near`."""
    rules, floor, unit = instance.rules, instance.rules.floor, _unit(instance)
    blocks = split_blocks(rules)
    segment_prices, whole, single = np.full(len(blocks.own), floor), floor, np.zeros(len(blocks.variables))
    if near is not None:
        segment_prices, whole, single = _begin(near, blocks, floor)
    for _ in range(SWEEPS if near is None else SWEEPS // 3):
        before = np.concatenate([np.maximum(blocks.group_prices(segment_prices, floor), whole), single])
        if len(blocks.own):
            fits = _own_fit(instance, blocks, single)
            segment_prices = _least(fits, np.full(len(segment_prices), floor), segment_prices, unit, instance.close)
        if math.isfinite(rules.rows[0].bound):
            fits = _all_fit(instance, blocks, single, segment_prices)
            whole = float(_least(fits, np.array([floor]), np.array([whole]), unit, instance.close)[0])
        price = np.maximum(blocks.group_prices(segment_prices, floor), whole)
        for v in range(len(single)):
            single[v] = _search_variable(instance, blocks, price, single, v, unit)
        after = np.concatenate([price, single])
        if np.abs(after - before).max() <= MULTIPLIER_TOLERANCE * np.abs(after).max(initial=1e-300):
            break
    of_row = np.zeros(len(rules.rows))
    of_row[0], of_row[list(blocks.own)] = whole - floor, np.maximum(segment_prices - whole, 0.0)
    for variable, value in zip(blocks.variables, single, strict=True):
        if value:
            of_row[variable.most if value > 0 else variable.least] = abs(value)
    return Multipliers(rules, of_row)


def _begin(near: Multipliers, blocks: DualBlocks, floor: float) -> tuple[Array, float, Array]:
    """Return the prices of the segment budgets, the overall price and the further variables of some multipliers."""
    whole, extra = floor + float(near.of_row[0]), near.of_row[list(blocks.own)]
    value = np.append(near.of_row, 0.0)  # row −1 is none
    single = np.array([value[v.most] - value[v.least] for v in blocks.variables])
    return np.where(extra > 0, whole + extra, floor), whole, single


def _tables(rules: LimitRows, blocks: DualBlocks, price: Array, single: Array) -> CellPrices:
    """Return the prices of cells from the prices of the groups (S,) and the further variables (V,)."""
    shape = (rules.groups, rules.levels.shape[1])
    cost, customer = np.repeat(price[:, None], shape[1], axis=1), np.zeros(shape)
    for variable, value in zip(blocks.variables, single.tolist(), strict=True):
        if value:
            table = cost if variable.cells.money else customer
            table[np.ix_(variable.cells.groups, variable.cells.levels)] += value
    return CellPrices(cost, customer)


def _own_fit(instance: ConstrainedProblem, blocks: DualBlocks, single: Array) -> Callable[[Array], Array]:
    """Return a function that tests if prices (B,) keep each segment budget."""
    limits = instance.rules.bounds[list(blocks.own)]

    def fits(segment_prices: Array) -> Array:
        price = blocks.group_prices(segment_prices, instance.rules.floor)
        spend = instance.choose_levels(_tables(instance.rules, blocks, price, single)).spend.sum(axis=1)
        return np.bincount(blocks.owner + 1, spend, minlength=len(segment_prices) + 1)[1:] <= limits

    return fits


def _all_fit(
    instance: ConstrainedProblem, blocks: DualBlocks, single: Array, segment_prices: Array
) -> Callable[[Array], Array]:
    """Return a function that tests if a price (1,), or a group's own higher price, keeps the overall budget."""
    above, rules = blocks.group_prices(segment_prices, instance.rules.floor), instance.rules

    def fits(whole: Array) -> Array:
        response = instance.choose_levels(_tables(rules, blocks, np.maximum(above, whole), single))
        return np.array([response.spend.sum() <= rules.rows[0].bound])

    return fits


def _unit(instance: ConstrainedProblem) -> float:
    """Return a price of typical size: the range of responses divided by the range of costs."""
    some = instance.curves[:1000].astype(np.float64)
    cost = np.abs(instance.costs[: 1000 if len(instance.costs) > 1 else 1]).max(initial=0.0)
    return float(np.ptp(some)) / max(float(cost), 1e-300) or 1e-6


def _least(fits: Callable[[Array], Array], low: Array, guess: Array, unit: float, close: float) -> Array:
    """Return the smallest numbers (s,) from `low` up at which each element of `fits` is true; the elements are independent."""
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


def _search_variable(
    instance: ConstrainedProblem, blocks: DualBlocks, price: Array, single: Array, v: int, unit: float
) -> float:
    """Return the value of variable v, with the others fixed, at which its limits are met."""
    variable, rows = blocks.variables[v], instance.rules.rows
    prices = _tables(instance.rules, blocks, price, np.where(np.arange(len(single)) == v, 0.0, single))
    table = prices.cost if variable.cells.money else prices.customer
    cells = np.ix_(variable.cells.groups, variable.cells.levels)
    rest = table[cells]
    most = rows[variable.most].bound if variable.most >= 0 else math.inf
    least = rows[variable.least].bound if variable.least >= 0 else -math.inf

    def used(value: float) -> float:
        table[cells] = rest + value
        return instance.choose_levels(prices).used(variable.cells)

    now = used(0.0)
    if least <= now <= most:
        return 0.0
    sign = 1.0 if now > most else -1.0
    multiplier = _least(
        lambda t: np.array([used(sign * t[0]) <= most if sign > 0 else used(sign * t[0]) >= least]),
        np.zeros(1), np.array([max(sign * single[v], 0.0)]), unit, instance.close,
    )  # fmt: skip
    return sign * float(multiplier[0])


def certify(instance: ConstrainedProblem, multipliers: Multipliers) -> float:
    """Write all customers' levels at the multipliers; return the total net value that no plan under the constraints exceeds."""
    worth, term = instance.choose_levels(multipliers.prices).worth, multipliers.dual_term
    return math.fsum(worth.tolist()) + term + BOUND_ROUNDING * (math.fsum(np.abs(worth).tolist()) + abs(term))
