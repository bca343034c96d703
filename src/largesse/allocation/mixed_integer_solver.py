"""Proofs of the best plan under a budget and constraints by mixed-integer programmes (HiGHS).

At the multipliers a level's loss is its net value less than that of the customer's best level. No plan exceeds the bound less
the losses of its levels, so a level that loses more than the gap can be in no better plan. The remaining levels, the core, are
a mixed-integer programme, solved by HiGHS through SciPy. While the core is too large, the levels that lose least are taken for
it: their plan narrows the gap from below, and their linear relaxation, through its multipliers, from above.

HiGHS works to tolerances: a budget may be overdrawn by a millionth. So each of its plans is checked in exact arithmetic;
one that breaks a limit is cut off, together with every plan in which each customer uses at least as much of it.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from largesse.allocation.constraints.constrained_problem import ConstrainedProblem, LimitRow
from largesse.allocation.constraints.lagrange_multipliers import Multipliers, compute_dual_bound
from largesse.records import Array

MAX_CHOICES = 20_000  # choices that a core may have
CORE_SIZES = (400, 1000, 2500, 6000, MAX_CHOICES)  # of the cores that are tried while all that is open does not fit
RELAXATIONS = 3  # cores whose linear relaxation is solved
GAP_OF_ANY_PLAN = 1e-4  # relative; how close to the best a plan must be when any will do
SUM_PRECISION = 1e-12  # relative; what sums of many rounded numbers can tell apart
OBJECTIVE_RANGE = 1e4  # HiGHS stops within a millionth of the best: objectives are made this large first
TIME_LIMIT = 60.0  # for one programme; what is not proven by then remains in the gap
MAX_CUTS = 200  # plans that only fit by rounding


# -- the core -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OptimalityProof:
    """Result of a proof: feasibility of the plan, best multipliers, and upper bound of the net value."""

    kept: bool
    multipliers: Multipliers
    bound: float


@dataclass(frozen=True, eq=False)
class LevelLosses:
    """Loss of net value at each level (n, K) against the customer's best level at given multipliers.

    The loss is infinite if the level is not allowed.
    """

    loss: Array
    best: Array


@dataclass(frozen=True, eq=False)
class ProblemCore:
    """Levels (n, K) that a better plan may use, and a flag that no other level can occur in a better plan."""

    choice: Array
    complete: bool


def has_few_choices(instance: ConstrainedProblem) -> bool:
    """Test if a problem has few enough customers and levels for one mixed-integer programme."""
    return instance.curves.size <= MAX_CHOICES


def find_feasible_plan(instance: ConstrainedProblem) -> IntegerProgramSolution:
    """Search all plans of a small problem for a feasible one, or prove that none exists."""
    return solve_integer_program(build_integer_program(instance, instance.levels, instance.allowed), GAP_OF_ANY_PLAN)


def prove_optimum(instance: ConstrainedProblem, start: OptimalityProof) -> OptimalityProof:
    """Improve a plan to the optimum by mixed-integer programmes, and return the proof.

    The problem's levels change; `start.kept` is true if they keep the constraints.
    """
    best = instance.levels.copy() if start.kept else None
    worth = instance.compute_total_net_value(best) if best is not None else -math.inf
    multipliers, bound = _tighten_bound(instance, start, worth)
    for size in CORE_SIZES:
        if bound - worth <= SUM_PRECISION * abs(worth):
            break
        lost = compute_losses(instance, multipliers)
        core = _select_core(lost, bound - worth, size)
        program = build_integer_program(instance, lost.best, core.choice)
        answer = solve_integer_program(program, 0.0, TIME_LIMIT if core.complete else TIME_LIMIT / 10)
        if answer.levels is not None:
            now = instance.compute_total_net_value(answer.levels)
            if now > worth:
                best, worth = answer.levels, now
        if core.complete:  # a plan outside the core is no better than the one that was known
            bound = min(bound, max(answer.bound, worth))
            break
    if best is not None:
        instance.levels[:] = best
    return OptimalityProof(best is not None, multipliers, bound)


def compute_losses(instance: ConstrainedProblem, multipliers: Multipliers) -> LevelLosses:
    """Return the loss of net value of each customer's levels against the best level, at given multipliers."""
    rules, prices = instance.rules, multipliers.prices
    worth = instance.curves - prices.cost[rules.group] * instance.costs - prices.customer[rules.group]
    if len(rules.allowed):
        worth[~rules.allowed] = -math.inf
    best = worth.argmax(axis=1)
    return LevelLosses(worth[np.arange(len(best)), best][:, None] - worth, best)


def _select_core(lost: LevelLosses, gap: float, most: int) -> ProblemCore:
    """Select the levels whose loss is at most the optimality gap; if too many, only those with the smallest loss.

    Customers with one level left have no choice, and none is marked.
    """
    rows = np.arange(len(lost.best))
    choice = np.isfinite(lost.loss) & (lost.loss <= gap * (1 + SUM_PRECISION))
    choice[rows, lost.best] = True
    choice[choice.sum(axis=1) == 1] = False
    if choice.sum() <= most:
        return ProblemCore(choice, True)
    other = choice.copy()
    other[rows, lost.best] = False
    choice &= lost.loss < np.partition(lost.loss[other], most // 2)[most // 2]
    choice[choice.sum(axis=1) == 1] = False
    return ProblemCore(choice, False)


def _tighten_bound(instance: ConstrainedProblem, start: OptimalityProof, worth: float) -> tuple[Multipliers, float]:
    """Lower the upper bound by linear relaxations, and return the bound with its multipliers.

    The known ones are returned if no relaxation has a lower bound.
    """
    multipliers, bound = start.multipliers, start.bound
    for _ in range(RELAXATIONS):
        lost = compute_losses(instance, multipliers)
        core = _select_core(lost, bound - worth, MAX_CHOICES)
        if not core.choice.any():
            break
        values = find_relaxation_multipliers(build_integer_program(instance, lost.best, core.choice))
        if values is None:
            break
        other = Multipliers(instance.rules, values)
        least = compute_dual_bound(instance, other)
        if least >= bound:
            break
        multipliers, bound = other, least
        if core.complete:
            break
    return multipliers, bound


# -- mixed-integer programmes -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class IntegerProgram:
    """Mixed-integer programme: choice among some levels of some customers, with all other levels fixed."""

    instance: ConstrainedProblem
    base: Array  # (n,) the levels that the others keep
    row: Array  # (m,) customers, rising
    level: Array  # (m,) levels they may get
    net: Array  # (m,) what these are worth, less the least return on their cost
    customer: Array  # (c,) the customers
    place: Array  # (m,) the place of each row among them
    limits: tuple[int, ...]  # (R,) the rows of the instance that limit something
    uses: Array  # (R, m) what a choice uses of each of them
    left: Array  # (R,) what the others leave of each of them

    @property
    def signs(self) -> Array:
        """Sign of each limit (R,): 1 for an upper limit, −1 for a lower limit."""
        return self.instance.rules.signs[list(self.limits)]


@dataclass(frozen=True, eq=False)
class IntegerProgramSolution:
    """Solution of a mixed-integer programme: levels (n,), if any, and upper bound of the net value."""

    levels: Array | None
    bound: float
    proven: bool  # that there is no better choice, or none at all


@dataclass(frozen=True, eq=False)
class CuttingPlane:
    """Linear inequality that excludes choices of levels: the sum of their weights (m,) is at most `most`."""

    weight: Array
    most: float


def build_integer_program(instance: ConstrainedProblem, base: Array, choice: Array) -> IntegerProgram:
    """Build the mixed-integer programme in which customers may get the levels marked in `choice` (n, K).

    Unmarked customers keep theirs.
    """
    row, level = np.nonzero(choice)
    customer, place = np.unique(row, return_inverse=True)
    others = np.setdiff1d(np.arange(len(base)), customer, assume_unique=True)
    limits = tuple(r for r, bound in enumerate(instance.rules.bounds) if math.isfinite(bound))
    rows = [instance.rules.rows[r] for r in limits]
    uses = np.array([measure_limit_use(instance, limit, row, level) for limit in rows]).reshape(len(rows), len(row))
    left = [
        Fraction(limit.bound) - Fraction(math.fsum(measure_limit_use(instance, limit, others, base[others])))
        for limit in rows
    ]
    net = instance.compute_net_values(row, level)
    return IntegerProgram(
        instance,
        base,
        row,
        level,
        net,
        customer,
        place,
        limits,
        uses,
        np.array([float(remainder) for remainder in left]),
    )


def measure_limit_use(instance: ConstrainedProblem, limit: LimitRow, rows: Array, levels: Array) -> Array:
    """Return each customer's amount in a limit at its level: the cost, or 1 for a limit on customers."""
    there = np.zeros(instance.rules.groups, dtype=bool)
    there[limit.groups] = True
    covered = there[instance.rules.group[rows]] & limit.levels[levels]
    return covered * (instance.compute_costs(rows, levels) if limit.money else 1.0)


def solve_integer_program(
    program: IntegerProgram, close: float = 0.0, seconds: float = TIME_LIMIT
) -> IntegerProgramSolution:
    """Solve a mixed-integer programme within a time limit and a relative gap `close`."""
    instance = program.instance
    if not len(program.row):
        if (instance.slack(program.base) < 0).any():
            return IntegerProgramSolution(None, -math.inf, True)
        return IntegerProgramSolution(program.base, _compute_total_value(program, np.zeros(0), 0.0), True)
    top = np.full(len(program.customer), -math.inf)
    np.maximum.at(top, program.place, program.net)
    below = top[program.place] - program.net
    scale = OBJECTIVE_RANGE / max(float(below.max(initial=0.0)), 1e-300)
    cuts: list[CuttingPlane] = []
    until = time.monotonic() + seconds
    for _ in range(MAX_CUTS):
        answer = _run_highs(program, below * scale, cuts, until - time.monotonic(), close)
        if answer.x is None:
            return IntegerProgramSolution(None, -math.inf if answer.status == 2 else math.inf, answer.status == 2)
        levels = _extract_levels(program, answer.x)
        slack = instance.slack(levels)
        if (slack >= 0).all():
            lost = answer.fun if answer.mip_dual_bound is None else min(answer.mip_dual_bound, answer.fun)
            return IntegerProgramSolution(levels, _compute_total_value(program, top, lost / scale), answer.status == 0)
        cuts += [_make_cutting_plane(program, levels, r) for r in program.limits if slack[r] < 0]
    return IntegerProgramSolution(None, math.inf, False)


def _compute_total_value(program: IntegerProgram, top: Array, lost: float) -> float:
    """Return the total net value of all customers, given the programme's loss against their best levels."""
    others = np.setdiff1d(np.arange(len(program.base)), program.customer, assume_unique=True)
    return math.fsum(
        [*top.tolist(), *program.instance.compute_net_values(others, program.base[others]).tolist(), -lost]
    )


def _extract_levels(program: IntegerProgram, x: Array) -> Array:
    """Convert the solver's solution vector to levels (n,): each customer's largest entry."""
    order = np.lexsort((x[: len(program.row)], program.place))
    last = np.append(np.flatnonzero(np.diff(program.place[order])), len(order) - 1)
    levels = program.base.copy()
    levels[program.customer] = program.level[order[last]]
    return levels


def _make_cutting_plane(program: IntegerProgram, levels: Array, r: int) -> CuttingPlane:
    """Return the inequality that excludes all choices that violate a limit at least as much as some levels."""
    limit, at = program.instance.rules.rows[r], program.limits.index(r)
    now = measure_limit_use(program.instance, limit, program.row, levels[program.row])
    held = np.isin(program.instance.rules.group[program.row], limit.groups)
    worse = limit.sign * (program.uses[at] - now) >= 0
    return CuttingPlane((held & worse).astype(np.float64), len(set(program.row[held])) - 1.0)


def _run_highs(
    program: IntegerProgram,
    objective: Array,
    cuts: list[CuttingPlane],
    seconds: float,
    close: float = 0.0,
    penalty: Array | None = None,
) -> Any:
    """Minimise a linear objective (m,) over the choices of a programme with HiGHS.

    `penalty` (R,) adds the cost per unit of a broken limit.

    Slack follows the choices as further columns, one per limit; an infinite penalty keeps the limit.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, hstack

    m, count = len(program.row), len(program.limits) + len(cuts)
    each = csr_array((np.ones(m), (program.place, np.arange(m))), shape=(len(program.customer), m))
    table = csr_array(np.array([*program.uses, *(cut.weight for cut in cuts)]).reshape(count, m))
    most = program.signs > 0
    low = np.append(np.where(most, -math.inf, program.left), np.full(len(cuts), -math.inf))
    high = np.append(np.where(most, program.left, math.inf), [cut.most for cut in cuts])
    whole, upper = np.ones(m), np.ones(m)
    if penalty is not None:
        loose = np.append(np.isfinite(penalty), np.zeros(len(cuts), dtype=bool))
        price = np.append(penalty, np.zeros(len(cuts)))
        objective = np.concatenate([objective, np.where(loose, price, 0.0)])
        upper = np.concatenate([upper, np.where(loose, math.inf, 0.0)])
        customers = ~program.instance.rules.money[list(program.limits)]
        whole = np.concatenate([whole, customers.astype(np.float64), np.zeros(len(cuts))])
        each = hstack([each, csr_array((len(program.customer), count))]).tocsr()
        table = hstack([table, csr_array(np.diag(np.append(-program.signs, -np.ones(len(cuts)))))]).tocsr()
    size = np.maximum(np.abs(table).max(axis=1).toarray().ravel(), 1e-300) if count else np.ones(0)
    held = [LinearConstraint(each, 1.0, 1.0)]
    if count:  # rows of like size, so that one tolerance fits all
        held.append(LinearConstraint(csr_array(table / size[:, None]), low / size, high / size))
    with _hide_solver_output():
        return milp(
            objective,
            integrality=whole,
            bounds=Bounds(0.0, upper),
            constraints=held,
            options={"mip_rel_gap": close, "time_limit": max(seconds, 0.0)},
        )


@contextmanager
def _hide_solver_output() -> Iterator[None]:
    """Hide the output that HiGHS writes to the process's standard output."""
    sys.stdout.flush()
    try:
        standard_output = os.dup(1)
    except OSError:  # there is no standard output to keep clean
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(standard_output, 1)
        os.close(standard_output)
        os.close(nowhere)


def find_relaxation_multipliers(program: IntegerProgram) -> Array | None:
    """Return the multipliers (R,) of all limits in the linear relaxation of a programme, or None."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    m, sign = len(program.row), program.signs
    each = csr_array((np.ones(m), (program.place, np.arange(m))), shape=(len(program.customer), m))
    solution = linprog(
        -program.net, A_ub=csr_array(program.uses * sign[:, None]), b_ub=program.left * sign, A_eq=each,
        b_eq=np.ones(len(program.customer)), bounds=(0, None), method="highs",
    )  # fmt: skip
    if solution.status != 0:
        return None
    multipliers = np.zeros(len(program.instance.rules.rows))
    multipliers[list(program.limits)] = np.maximum(-solution.ineqlin.marginals, 0.0)
    return multipliers


def minimise_violations(program: IntegerProgram, penalty: Array) -> Array | None:
    """Return the smallest possible violations (R,) of the limits, weighted by penalties, or None.

    `penalty` (R,) is the cost of a unit; where it is infinite, the limit is kept.
    """
    cuts: list[CuttingPlane] = []
    hard = [r for r, price in zip(program.limits, penalty, strict=True) if math.isinf(price)]
    for _ in range(MAX_CUTS):
        answer = _run_highs(program, np.zeros(len(program.row)), cuts, TIME_LIMIT, penalty=penalty)
        if answer.x is None:
            return None
        levels = _extract_levels(program, answer.x)
        slack = program.instance.slack(levels)
        over = [r for r in hard if slack[r] < 0]
        if not over:
            return np.maximum(-slack[list(program.limits)], 0.0)
        cuts += [_make_cutting_plane(program, levels, r) for r in over]
    return None
