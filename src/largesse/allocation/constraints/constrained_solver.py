"""Solver of allocation under constraints: Lagrange multipliers, repair of violations, proof of optimality."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from largesse.allocation.constraints.constrained_problem import ConstrainedProblem, LimitRows, make_constrained_problem
from largesse.allocation.constraints.infeasibility import (
    make_infeasible_error,
    make_violated_limits_error,
    refuse_infeasible,
)
from largesse.allocation.constraints.lagrange_multipliers import Multipliers, compute_dual_bound, solve_dual
from largesse.allocation.mixed_integer_solver import OptimalityProof, find_feasible_plan, has_few_choices, prove_optimum
from largesse.allocation.price.upper_hulls import convert_to_kernel_arrays
from largesse.records import Array, Plan

REPAIR_ROUNDS, FILL_ROUNDS = 12, 2  # of repair, and of spending what is left
SWAP_CUSTOMERS, MAX_SWAPS = 1000, 200  # customers among whom pairs are looked for, and how many are swapped
MAX_CHANGES = 65536  # changes that are looked at in one round


@dataclass(frozen=True, eq=False)
class CheapPlanRepair:
    """Result of a plan repair from cheap plans: slack of each limit (R,), and least cost without limits on cost."""

    slack: Array
    needed: float


def plan_under_constraints(curves: Array, costs: Array, rules: LimitRows, average: float, exact: bool = False) -> Plan:
    """Find the best plan under constraints, or raise an error for infeasible constraints.

    With `exact`, the best whole plan, proven as far as a core of choices can be solved.
    """
    instance = make_constrained_problem(curves, costs, rules)
    refuse_infeasible(instance)
    multipliers = solve_dual(instance)
    bound, needed = compute_dual_bound(instance, multipliers), 0.0
    slack = repair_plan(instance, multipliers)
    if (slack < 0).any():
        start = _repair_from_cheap_plans(instance, multipliers)
        slack, needed = start.slack, start.needed
    feasible = not (slack < 0).any()
    if not feasible and has_few_choices(instance):
        answer = find_feasible_plan(instance)
        if answer.levels is not None:
            feasible, bound, instance.levels[:] = True, min(bound, answer.bound), answer.levels
        elif answer.proven:
            raise make_infeasible_error(instance)
    proof = OptimalityProof(feasible, multipliers, bound)
    if exact:
        proof = prove_optimum(instance, proof)
    if not proof.kept:
        raise make_violated_limits_error(instance, slack, needed)
    return _make_plan(instance, proof, average)


def _repair_from_cheap_plans(instance: ConstrainedProblem, multipliers: Multipliers) -> CheapPlanRepair:
    """Repair the plan again from two cheap plans: one within the budgets, and one that ignores the budgets."""
    rules = instance.rules
    saving = convert_to_kernel_arrays(
        -np.ascontiguousarray(np.broadcast_to(instance.costs, instance.curves.shape)), instance.costs
    )
    needed = math.inf
    for limits in (replace(rules, floor=0.0), rules.without_cost_limits()):
        cheap = make_constrained_problem(*saving, limits)
        low = solve_dual(cheap)
        needed = -compute_dual_bound(cheap, low)
        repair_plan(cheap, low)
        instance.levels[:] = cheap.levels
        slack = repair_plan(instance, multipliers)
        if not (slack < 0).any():
            break
    return CheapPlanRepair(slack, needed)


def _make_plan(instance: ConstrainedProblem, proof: OptimalityProof, average: float) -> Plan:
    n, rules = len(instance.levels), instance.rules
    rows = np.arange(n)
    value = float(instance.curves[rows, instance.levels].sum(dtype=np.float64))
    spend = float(instance.compute_costs(rows, instance.levels).sum(dtype=np.float64))
    gap = max(proof.bound - (value - rules.floor * spend), 0.0)
    price, bound = rules.floor + float(proof.multipliers.of_row[0]), (value + gap) / n
    spent = min(spend / n, average)
    return Plan(instance.levels, value / n, spent, price, bound, average, shadow=proof.multipliers.shadow)


# -- repair -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LevelChangeSearch:
    """Search for level changes that raise or lower the cost, or the number of customers, of a limit.

    A cell is a group of customers and a level.
    """

    part: Array  # (S, K) bool
    money: bool
    sign: float  # 1 up, −1 down
    is_open: Array  # (S, K) bool, where changes may lead
    target: Array  # (R,) bool, the broken rows that changes are for; none when they are always welcome
    floor: float  # the least that a further unit of money must bring


def repair_plan(instance: ConstrainedProblem, multipliers: Multipliers) -> Array:
    """Change the levels that lose least until all limits hold, then spend the remaining budget.

    Returns the rest of each limit (R,), below zero where it could not be kept.
    """
    rules = instance.rules
    for _ in range(REPAIR_ROUNDS):
        slack = instance.slack()
        if (slack >= 0).all():
            break
        broken = np.flatnonzero((slack < 0) & ~rules.money)
        order = broken[np.lexsort((rules.levels[broken].argmax(axis=1), rules.signs[broken]))]  # least ones first
        taken = sum(_reduce_violations(instance, multipliers, slack, np.array([r])) for r in order)
        for sign in (1.0, -1.0):
            over = np.flatnonzero((slack < 0) & rules.money & (rules.signs == sign))
            taken += _reduce_violations(instance, multipliers, slack, over) if len(over) else 0
        if not taken and not _swap_pairs(instance, slack):
            return slack
    for _ in range(FILL_ROUNDS):
        slack = instance.slack()
        if (slack[rules.money] < 0).any() or not _spend_remaining_budget(instance, multipliers, slack):
            break
    slack = instance.slack()
    over = np.flatnonzero((slack < 0) & rules.money & (rules.signs > 0))
    while len(over) and _reduce_violations(instance, multipliers, slack, over):
        slack = instance.slack()
        over = np.flatnonzero((slack < 0) & rules.money & (rules.signs > 0))
    return slack


def _reduce_violations(instance: ConstrainedProblem, multipliers: Multipliers, slack: Array, broken: Array) -> int:
    """Apply level changes that reduce violations of limits of the same unit and sign, and count the changes.

    The limits have the same unit and sign.
    """
    rules = instance.rules
    money, sign = bool(rules.money[broken[0]]), float(-rules.signs[broken[0]])
    cells = _mark_cells(rules, broken)
    is_open = np.ones_like(cells)
    if money or sign < 0:
        is_open = ~_mark_cells(rules, np.flatnonzero((slack < 1) & ~rules.money & (rules.signs > 0)))
    if money:  # a spent limit on some levels only is no place to save at
        spent = (slack <= 0) & rules.money & (rules.signs > 0) & ~rules.levels.all(axis=1)
        spent[broken] = False
        is_open &= ~_mark_cells(rules, np.flatnonzero(spent))
    target = np.zeros(len(rules.rows), dtype=bool)
    target[broken] = True
    return _make_best_changes(
        instance, multipliers, slack, LevelChangeSearch(cells, money, sign, is_open, target, -math.inf)
    )


def _spend_remaining_budget(instance: ConstrainedProblem, multipliers: Multipliers, slack: Array) -> int:
    """Apply the level changes that gain most for the remaining budget, and count the changes."""
    rules = instance.rules
    full = (rules.signs > 0) & np.where(rules.money, slack <= 0, slack < 1)
    is_open = ~_mark_cells(rules, np.flatnonzero(full))
    target = np.zeros(len(rules.rows), dtype=bool)
    return _make_best_changes(
        instance, multipliers, slack, LevelChangeSearch(np.ones_like(is_open), True, 1.0, is_open, target, rules.floor)
    )


def _mark_cells(rules: LimitRows, which: Array) -> Array:
    """Return the mask (S, K) of the groups and levels that some limits cover."""
    cells = np.zeros((rules.groups, rules.levels.shape[1]), dtype=bool)
    for r in which:
        cells[np.ix_(rules.rows[r].groups, rules.rows[r].levels)] = True
    return cells


def _make_best_changes(
    instance: ConstrainedProblem, multipliers: Multipliers, slack: Array, way: LevelChangeSearch
) -> int:
    """Apply the best of the level changes that a search finds, and count the changes."""
    from largesse.allocation.constraints.repair_kernels import apply_level_changes, list_level_changes

    rules, n, prices = instance.rules, len(instance.levels), multipliers.prices
    row, to, key = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n)
    m = list_level_changes(
        instance.curves, instance.costs, rules.allowed, rules.group, prices.cost, prices.customer, instance.levels,
        way.part, way.money, way.sign, way.floor, way.is_open, row, to, key,
    )  # fmt: skip
    first = np.argpartition(key[:m], MAX_CHANGES)[:MAX_CHANGES] if m > MAX_CHANGES else np.arange(m)
    order = first[np.argsort(key[first], kind="stable")]
    return apply_level_changes(
        instance.costs, rules.group, row[order], to[order], instance.levels, slack, *rules.limits_by_group,
        rules.money, rules.signs, rules.levels, way.target, way.money,
    )  # fmt: skip


def _swap_pairs(instance: ConstrainedProblem, slack: Array) -> bool:
    """Swap levels between pairs of customers while this reduces violated limits on cost."""
    from largesse.allocation.constraints.repair_kernels import swap_levels

    rules, some = instance.rules, False
    rows = np.arange(min(len(instance.levels), SWAP_CUSTOMERS))
    for _ in range(MAX_SWAPS):
        if (slack[rules.money] >= 0).all() or not swap_levels(
            instance.costs, rules.allowed, rules.group, rows, instance.levels, slack, *rules.limits_by_group,
            rules.money, rules.signs, rules.levels,
        ):  # fmt: skip
            break
        some = True
    return some
