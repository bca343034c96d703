"""The default plan and the frontier, against every plan there is, in exact arithmetic."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from harness import FINE, Outcome

Array = np.ndarray[Any, Any]
CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Instance:
    """Curves (n, K), costs (K,) or (n, K), and every plan's cost and value as fractions."""

    curves: Array
    costs: Array
    plans: list[tuple[Fraction, Fraction]]  # cost, value


def attack(seed: int) -> Outcome:
    """Plan at a few budgets and trace the frontier of a small instance."""
    rng = np.random.default_rng(seed)
    case = make_instance(rng)
    return check_frontier(case) or check_plans(case, rng) or FINE


def make_instance(rng: np.random.Generator) -> Instance:
    """Draw a small instance: ties, plateaus, falling curves and equal costs are common."""
    K = int(rng.integers(2, 5))
    n = int(rng.integers(1, {2: 9, 3: 6, 4: 5}[K]))
    curves = rng.random((n, K))
    style = rng.integers(5)
    if style == 1:
        curves = np.round(curves, 1)
    elif style == 2:
        curves = np.repeat(curves[:1], n, axis=0)
    elif style == 3:
        curves = curves * 10.0 ** rng.integers(-9, 9) - rng.integers(0, 2)
    costs = np.sort(rng.uniform(0, 10, (n, K) if rng.random() < 0.5 else K), axis=-1)
    if rng.random() < 0.5:
        costs = np.round(costs)
    if rng.random() < 0.5:
        costs[..., 0] = 0
    if style == 4:  # value nearly in proportion to cost
        curves = np.broadcast_to(costs, (n, K)) * 0.1 + rng.random((n, K)) * 1e-9
    return Instance(curves, costs, list_plans(curves, costs))


def list_plans(curves: Array, costs: Array) -> list[tuple[Fraction, Fraction]]:
    n, K = curves.shape
    face = np.broadcast_to(costs, (n, K))
    paid = [[Fraction(float(cost)) for cost in row] for row in face]
    worth = [[Fraction(float(value)) for value in row] for row in curves]
    return [
        (sum(paid[i][k] for i, k in enumerate(plan)), sum(worth[i][k] for i, k in enumerate(plan)))  # type: ignore[misc]
        for plan in itertools.product(range(K), repeat=n)
    ]


def check_frontier(case: Instance) -> Outcome | None:
    """The frontier rises, bends down, lies on or above every plan, and its corners are plans."""
    from largesse import frontier

    front, n = frontier(case.curves, case.costs), len(case.curves)
    size = max(float(np.abs(case.curves).max()), 1e-300)
    if (np.diff(front.spend) <= 0).any() or (np.diff(front.value) < -CLOSE * size).any():
        return Outcome("wrong", "the frontier does not rise")
    if (np.diff(front.price) >= 0).any():
        return Outcome("wrong", "the frontier's price does not fall")
    for cost, value in case.plans:
        at = front.at(float(cost / n))
        if not at >= float(value / n) - CLOSE * size:
            return Outcome("wrong", f"a plan of cost {float(cost / n)} is worth {float(value / n)}, the frontier {at}")
    for spend, value in zip(front.spend, front.value, strict=True):
        near = [float(v / n) for c, v in case.plans if abs(float(c / n) - spend) <= CLOSE * max(spend, 1.0)]
        if not near or max(near) < value - CLOSE * size:
            return Outcome("wrong", f"no plan is worth the frontier's {value} at {spend}")
    return None


def check_plans(case: Instance, rng: np.random.Generator) -> Outcome | None:
    """Plan at budgets between, on, just below and just above what plans cost."""
    costs = sorted({cost for cost, _ in case.plans})
    for _ in range(4):
        total = float(rng.choice([float(c) for c in costs])) if rng.random() < 0.6 else float(rng.uniform(0, 12))
        total = float(rng.choice([total, np.nextafter(total, -1), np.nextafter(total, np.inf)]))
        if found := check_plan(
            case, max(total, 0.0), exact=bool(rng.random() < 0.5), averaged=bool(rng.random() < 0.3)
        ):
            return found
    return None


def check_plan(case: Instance, total: float, *, exact: bool, averaged: bool) -> Outcome | None:
    """Compare one plan with the best of all; a budget below the cheapest plan is refused."""
    from largesse import allocate
    from largesse.errors import BudgetError

    n = len(case.curves)
    # A budget per customer times customers is rounded to a float once: that is the limit which plans are held to.
    limit = Fraction(total / n * n) if averaged else Fraction(total)
    within = [value for cost, value in case.plans if cost <= limit]
    where = f"{case.curves.tolist()}, {case.costs.tolist()}, total={total!r}, exact={exact}, averaged={averaged}"
    try:
        given = {"budget": total / n} if averaged else {"total": total}
        plan = allocate(case.curves, case.costs, exact=exact, **given)  # type: ignore[arg-type]
    except BudgetError:
        return Outcome("wrong", f"refused, but there is a plan: {where}") if within else None
    face = np.broadcast_to(case.costs, case.curves.shape)
    rows = range(n)
    paid = sum((Fraction(float(face[i, plan.levels[i]])) for i in rows), Fraction(0))
    worth = sum((Fraction(float(case.curves[i, plan.levels[i]])) for i in rows), Fraction(0))
    if paid > limit * (1 + Fraction(1, 10**15)):
        return Outcome("over budget", f"by {float(paid - limit)!r}: {where}")
    if not within:  # a budget that is the rounded cost of the cheapest plan
        return None
    best, slack = max(within), CLOSE * max(float(np.abs(case.curves).max()), 1e-300)
    if float(best - worth) > plan.gap * n + slack or plan.bound * n < float(best) - slack:
        return Outcome("false proof", f"gap {plan.gap * n}, but {float(best - worth)} short: {where}")
    if abs(float(worth) - plan.value * n) > slack * n:
        return Outcome("wrong", f"says {plan.value * n}, is worth {float(worth)}: {where}")
    if exact and float(best - worth) > 1e-7 * slack / CLOSE:
        return Outcome("false proof", f"exact, but {float(best - worth)} short: {where}")
    return None
