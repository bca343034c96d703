"""Error messages for infeasible constraints, with the smallest change that makes a plan possible."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from largesse.allocation.constraints.constrained_problem import ConstrainedProblem, LimitRow
from largesse.allocation.constraints.constraint_types import Budget
from largesse.allocation.mixed_integer_solver import IntegerProgram, build_integer_program, minimise_violations
from largesse.allocation.price.price_search import SPEND_ROUNDING
from largesse.errors import BudgetError, Problem
from largesse.records import Array


def refuse_infeasible(instance: ConstrainedProblem) -> None:
    """Raise an error for limits that counts or sums prove to be infeasible, without a search for plans."""
    rules, (n, K) = instance.rules, instance.curves.shape
    problems: list[Problem] = []
    if len(rules.allowed):
        without = int((~rules.allowed.any(axis=1)).sum())
        if without:
            problems.append(Problem(f"{without:,} customers may get no level at all", "let each have at least one"))
    least = sorted((row for row in rules.rows if row.sign < 0), key=lambda row: int(row.levels.argmax()))
    problems += _list_unreachable_limits(instance, least)
    kinds = {type(row.limit): None for row in sorted(rules.rows, key=lambda row: row.sign)}
    for kind in kinds:
        same = [row.limit for row in rules.rows if type(row.limit) is kind]
        problems += kind.find_clash_problems(same, (n, K), rules.allowed)
    if not problems:
        most = [*rules.rows[1:], rules.rows[0]]
        problems = _list_unreachable_limits(instance, [row for row in most if row.sign > 0])
    if problems:
        raise BudgetError("constraints", problems)


def _list_unreachable_limits(instance: ConstrainedProblem, rows: list[LimitRow]) -> list[Problem]:
    """Return the problems of limits that no choice of levels can satisfy."""
    problems, n = [], len(instance.levels)
    extremes: dict[tuple[bool, bytes], Array] = {}  # by what is summed up: many limits differ in their groups alone
    for row in rows:
        key = (row.money, row.levels.tobytes())
        if key not in extremes:
            extremes[key] = _sum_extreme_use(instance, row)
        extreme = float(extremes[key][row.groups].sum())
        if row.sign < 0:  # others may hold it back as well
            extreme = min([extreme, *(other.bound for other in instance.rules.rows if _caps_limit(other, row))])
        if row.sign * extreme > row.sign * row.bound + SPEND_ROUNDING * abs(row.bound) * row.money:
            problems.append(row.limit.make_unreachable_problem(extreme, n))
    return problems


def _sum_extreme_use(instance: ConstrainedProblem, row: LimitRow) -> Array:
    """Return the minimum cost or number of customers (S,) that counts against a limit in each group.

    For a lower limit it is the maximum.
    """
    rules = instance.rules
    uses = row.sign * np.where(row.levels, instance.costs if row.money else 1.0, 0.0)
    if len(rules.allowed):
        uses = np.where(rules.allowed, uses, math.inf)
    each = np.broadcast_to(uses.min(axis=-1), len(instance.levels))
    return row.sign * np.bincount(rules.group, each, minlength=rules.groups)


def _caps_limit(other: LimitRow, row: LimitRow) -> bool:
    return other.sign > 0 and other.money == row.money and row.is_covered_by(other)


def make_infeasible_error(instance: ConstrainedProblem) -> BudgetError:
    """Return the error for a small problem that is proven to be infeasible.

    It names the smallest change of each limit that would help alone; if none would, the changes that would together.
    """
    program = build_integer_program(instance, instance.levels, instance.allowed)
    rows, hints, helping = _list_program_limits(program), [], []
    for r, row in enumerate(rows):
        over = minimise_violations(program, np.where(np.arange(len(rows)) == r, 1.0, math.inf))
        if over is not None:
            hints.append(_describe_needed_change(row, over[r], instance))
            helping.append(row.limit.name)
    names = [row.limit.name for row in rows]
    if hints:
        others = " together with the other rules" if len(helping) < len(rows) else " at once"
        what = f"no plan keeps {_join_with_commas(helping, 'and')}{others}"
        return BudgetError("constraints", [Problem(what, _join_with_commas(hints, "or"))])
    size = np.maximum(program.left, 1.0)
    over = minimise_violations(program, 1.0 / size)
    by = np.zeros(len(rows)) if over is None else over
    hints = [_describe_needed_change(row, change, instance) for row, change in zip(rows, by, strict=True) if change > 0]
    return BudgetError(
        "constraints",
        [Problem(f"no plan keeps {_join_with_commas(names, 'and')} at once", _join_with_commas(hints, "and"))],
    )


def _list_program_limits(program: IntegerProgram) -> list[LimitRow]:
    return [program.instance.rules.rows[r] for r in program.limits]


def _describe_needed_change(row: LimitRow, by: float, instance: ConstrainedProblem) -> str:
    """Write the advice to change a limit, which is violated by an amount, to a feasible value."""
    return row.limit.write_feasible_limit_advice(row.bound + row.sign * by, len(instance.levels))


def _join_with_commas(parts: list[str], last: str) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def make_violated_limits_error(instance: ConstrainedProblem, slack: Array, needed: float) -> BudgetError:
    """Return the error that lists the limits violated by the best plan found.

    `needed` is a total cost below which no plan keeps the other rules.
    """
    rows, n = instance.rules.rows, len(instance.levels)
    budget = cast(Budget, rows[0].limit)
    if needed > budget.total * (1 + SPEND_ROUNDING):
        return BudgetError("constraints", [budget.too_small(needed, n)])
    broken = [(row, left) for row, left in zip(rows, slack, strict=True) if left < 0]
    return BudgetError("constraints", [row.limit.make_violation_problem(-float(left), n) for row, left in broken])
