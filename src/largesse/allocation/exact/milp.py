"""Customers and the levels they may still get as a mixed-integer programme, solved by HiGHS through SciPy.

HiGHS works to tolerances: a budget may be overdrawn by a millionth. So each of its plans is checked in exact arithmetic;
one that breaks a budget is cut off, together with every plan that is at least as dear to each customer.
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

from largesse.allocation.rules.multipliers import Problem, broken, rooms
from largesse.records import Array

RANGE = 1e4  # HiGHS stops within a millionth of the best: objectives are made this large first
SECONDS = 60.0  # for one programme; then what is not proven stays open, and is told
CUTS = 200  # plans that only fit by rounding


@dataclass(frozen=True, eq=False)
class Rule:
    """One rule over the columns (m,) of a model: low ≤ weight · choice ≤ high."""

    kind: str  # budget, segment, cap or share
    which: int  # segment or level
    weight: Array
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Model:
    """The choice among some levels of some customers, while all others keep theirs."""

    problem: Problem
    base: Array  # (n,) the levels that the others keep
    row: Array  # (m,) customers, rising
    level: Array  # (m,) levels they may get
    paid: Array  # (m,) what these cost
    net: Array  # (m,) what these are worth, less the least return on their cost
    customer: Array  # (c,) the customers
    place: Array  # (m,) the place of each row among them
    rules: tuple[Rule, ...]


@dataclass(frozen=True, eq=False)
class Answer:
    """The best levels (n,) a model has, or none; and the total net value of a model that no choice exceeds."""

    levels: Array | None
    bound: float
    proven: bool  # that there is no better choice, or none at all


def modelled(problem: Problem, base: Array, choice: Array) -> Model:
    """Return the model in which customers may get the levels marked in `choice` (n, K); those with none keep theirs."""
    row, level = np.nonzero(choice)
    paid = problem.costs[row if len(problem.costs) > 1 else 0, level].astype(np.float64)
    net = problem.curves[row, level].astype(np.float64) - problem.rules.least_return * paid
    customer, place = np.unique(row, return_inverse=True)
    kept = np.ones(len(base), dtype=bool)
    kept[customer] = False
    return Model(problem, base, row, level, paid, net, customer, place, _rules(problem, base, kept, row, level, paid))


def _rules(problem: Problem, base: Array, kept: Array, row: Array, level: Array, paid: Array) -> tuple[Rule, ...]:
    """Return what the rules leave for the customers who are not kept."""
    rules, K = problem.rules, problem.curves.shape[1]
    others = np.flatnonzero(kept)
    cost = problem.costs[others if len(problem.costs) > 1 else 0, base[others]].astype(np.float64)
    cost = np.broadcast_to(cost, others.shape)
    count = np.bincount(base[others], minlength=K)
    found = []
    for s, limit in enumerate([*rules.limits.tolist(), rules.limit]):
        if limit == math.inf:
            continue
        whole = s == len(rules.limits)
        mine, theirs = (1.0, slice(None)) if whole else (rules.segment[row] == s, rules.segment[others] == s)
        left = float(Fraction(limit) - Fraction(math.fsum(cost[theirs].tolist())))
        found.append(Rule("budget" if whole else "segment", s, paid * mine, -math.inf, left))
    for k in rules.ruled:
        at = (level == k).astype(np.float64)
        if rules.most[k] < math.inf:
            found.append(Rule("cap", int(k), at, -math.inf, float(rules.most[k] - count[k])))
        if rules.least[k] > 0:
            found.append(Rule("share", int(k), at, float(rules.least[k] - count[k]), math.inf))
    return tuple(found)


def solved(model: Model, close: float = 0.0, seconds: float = SECONDS) -> Answer:
    """Return the best choice, up to `close` (relative), as far as it is found in some seconds."""
    if not len(model.row):
        here = _with(model.problem, model.base)
        count = np.bincount(model.base, minlength=model.problem.curves.shape[1])
        if broken(model.problem.rules, rooms(here), count):
            return Answer(None, -math.inf, True)
        return Answer(model.base, _worth(model, np.zeros(0), 0.0), True)
    top = np.full(len(model.customer), -math.inf)
    np.maximum.at(top, model.place, model.net)
    below = top[model.place] - model.net
    scale = RANGE / max(float(below.max(initial=0.0)), 1e-300)
    cuts: list[Rule] = []
    until = time.monotonic() + seconds
    for _ in range(CUTS):
        found = _highs(model, below * scale, cuts, until - time.monotonic(), close)
        if found.x is None:
            return Answer(None, -math.inf if found.status == 2 else math.inf, found.status == 2)
        levels = _read(model, found.x)
        left = rooms(_with(model.problem, levels))
        if (left >= 0).all():
            lost = found.fun if found.mip_dual_bound is None else min(found.mip_dual_bound, found.fun)
            return Answer(levels, _worth(model, top, lost / scale), found.status == 0)
        cuts += [_cut(model, levels, int(s)) for s in np.flatnonzero(left < 0)]
    return Answer(None, math.inf, False)


def _worth(model: Model, top: Array, lost: float) -> float:
    """Return the total net value of all customers when those of the model lose so much on their best levels."""
    problem = model.problem
    kept = np.ones(len(model.base), dtype=bool)
    kept[model.customer] = False
    others = np.flatnonzero(kept)
    return math.fsum([*top.tolist(), *nets(problem, others, model.base[others]).tolist(), -lost])


def nets(problem: Problem, rows: Array, levels: Array) -> Array:
    """Return what levels of some rows are worth, less the least return on their cost."""
    paid = problem.costs[rows if len(problem.costs) > 1 else 0, levels].astype(np.float64)
    return np.asarray(problem.curves[rows, levels].astype(np.float64) - problem.rules.least_return * paid)


def _with(problem: Problem, levels: Array) -> Problem:
    return Problem(problem.curves, problem.costs, problem.rules, levels, problem.weight, problem.close)


def _read(model: Model, x: Array) -> Array:
    """Return the levels (n,) of a solution: each customer's largest entry."""
    order = np.lexsort((x[: len(model.row)], model.place))
    last = np.append(np.flatnonzero(np.diff(model.place[order])), len(order) - 1)
    levels = model.base.copy()
    levels[model.customer] = model.level[order[last]]
    return levels


def _cut(model: Model, levels: Array, s: int) -> Rule:
    """Return the rule that not every customer of a budget gets a level as dear as these, which overdraw it."""
    problem, whole = model.problem, s == len(model.problem.rules.limits)
    now = problem.costs[model.row if len(problem.costs) > 1 else 0, levels[model.row]].astype(np.float64)
    held = np.ones(len(model.row), dtype=bool) if whole else problem.rules.segment[model.row] == s
    return Rule("cut", s, (held & (model.paid >= now)).astype(np.float64), -math.inf, len(set(model.row[held])) - 1.0)


def _highs(
    model: Model, objective: Array, cuts: list[Rule], seconds: float, close: float, slack: Array | None = None
) -> Any:
    """Minimise an objective (m,) over the choices; with `slack` (R,), what a broken rule costs per unit, instead.

    Slack follows the choices as further columns, one per rule; an infinite price keeps the rule.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, hstack

    m, rules = len(model.row), [*model.rules, *cuts]
    each = csr_array((np.ones(m), (model.place, np.arange(m))), shape=(len(model.customer), m))
    table = csr_array(np.array([r.weight for r in rules]).reshape(len(rules), m))
    low, high = np.array([r.low for r in rules]), np.array([r.high for r in rules])
    whole, upper = np.ones(m), np.ones(m)
    if slack is not None:
        signs = np.array([1.0 if r.kind == "share" else -1.0 for r in rules])
        loose = np.isfinite(slack)
        objective = np.concatenate([objective, np.where(loose, slack, 0.0)])
        upper = np.concatenate([upper, np.where(loose, math.inf, 0.0)])
        whole = np.concatenate([whole, [float(r.kind in ("cap", "share")) for r in rules]])
        each = hstack([each, csr_array((len(model.customer), len(rules)))]).tocsr()
        table = hstack([table, csr_array(np.diag(signs))]).tocsr()
    size = np.maximum(np.abs(table).max(axis=1).toarray().ravel(), 1e-300) if len(rules) else np.ones(0)
    held = [LinearConstraint(each, 1.0, 1.0)]
    if len(rules):  # rows of like size, so that one tolerance fits all
        held.append(LinearConstraint(csr_array(table / size[:, None]), low / size, high / size))
    with _quiet():
        return milp(
            objective,
            integrality=whole,
            bounds=Bounds(0.0, upper),
            constraints=held,
            options={"mip_rel_gap": close, "time_limit": max(seconds, 0.0)},
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the solver prints about its own workings out of what a command prints: it writes past Python."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # there is no standard output to keep clean
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def shadow(model: Model) -> dict[tuple[str, int], float] | None:
    """Return what one more unit of each rule would bring if customers could be split; none if that is impossible."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    m = len(model.row)
    sign = np.array([-1.0 if r.kind == "share" else 1.0 for r in model.rules])
    edge = np.array([r.low if r.kind == "share" else r.high for r in model.rules])
    table = csr_array(np.array([r.weight for r in model.rules]).reshape(len(sign), m) * sign[:, None])
    each = csr_array((np.ones(m), (model.place, np.arange(m))), shape=(len(model.customer), m))
    found = linprog(
        -model.net, A_ub=table, b_ub=edge * sign, A_eq=each, b_eq=np.ones(len(model.customer)), bounds=(0, None),
        method="highs",
    )  # fmt: skip
    if found.status != 0:
        return None
    return {(r.kind, r.which): -float(v) for r, v in zip(model.rules, found.ineqlin.marginals, strict=True)}


def broken_by(model: Model, prices: Array) -> list[float] | None:
    """Return by how much each rule is broken by the choice for which that costs least; none if no choice is found.

    `prices` (R,) is what a unit costs; where it is infinite, the rule is kept.
    """
    cuts: list[Rule] = []
    kept = ~np.isfinite(prices)
    budgets = {r.which: kept[i] for i, r in enumerate(model.rules) if r.kind in ("budget", "segment")}
    for _ in range(CUTS):
        slack = np.append(prices, np.full(len(cuts), math.inf))
        found = _highs(model, np.zeros(len(model.row)), cuts, SECONDS, 0.0, slack)
        if found.x is None:
            return None
        levels = _read(model, found.x)
        left, K = rooms(_with(model.problem, levels)), model.problem.curves.shape[1]
        over = [int(s) for s in np.flatnonzero(left < 0) if budgets[int(s)]]
        if not over:
            count = np.bincount(levels, minlength=K)
            rules = model.problem.rules
            past = {"cap": count - rules.most, "share": rules.least - count, "budget": -left, "segment": -left}
            return [max(float(past[r.kind][r.which]), 0.0) for r in model.rules]
        cuts += [_cut(model, levels, s) for s in over]
    return None
