"""Plans under constraints against every plan there is, in rational numbers.

An instance is so small that all its plans can be listed. Those that keep every rule are the judge: where there is none, there
must be a refusal; where there is one, the plan keeps every rule, is as good as it says, and with `exact` is the best.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from harness import FINE, Outcome

Array = np.ndarray[Any, Any]
Plan = tuple[int, ...]
MOST_PLANS = {2: 10, 3: 6, 4: 5}  # levels: customers at most
CLOSE = Fraction(1, 10**9)  # relative: what plans under rules are promised to
ROUNDED = Fraction(1, 10**12)  # relative: a budget that is the cost of a plan, rounded


@dataclass(frozen=True, eq=False)
class Case:
    """Curves (n, K), costs (K,) or (n, K), a total budget and the settings of `Constraints`."""

    curves: Array
    costs: Array
    total: float
    rules: dict[str, Any]

    def __str__(self) -> str:
        rules = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in self.rules.items()}
        return f"{self.curves.tolist()}, {self.costs.tolist()}, total={self.total!r}, {rules}"


# ------------------------------------------------------------------------------------------------------ instances


def make_case(seed: int) -> Case:
    """Draw an instance: ties, equal costs, fixed customers and rules that nothing can keep are common."""
    rng = np.random.default_rng([41, seed])
    K = int(rng.integers(2, 5))
    n = int(rng.integers(1, MOST_PLANS[K] + 1))
    curves = rng.normal(size=(n, K)).cumsum(axis=1) if rng.random() < 0.5 else np.round(rng.random((n, K)), 1)
    costs = np.sort(rng.uniform(0, 9, (n, K) if rng.random() < 0.5 else K), axis=-1)
    if rng.random() < 0.5:
        costs = np.round(costs, int(rng.integers(0, 2)))
    if rng.random() < 0.15:  # value nearly in proportion to cost
        curves = np.broadcast_to(costs, (n, K)) * 0.3 + rng.choice([0.0, 1e-3, 0.1]) * rng.integers(-1, 3, (n, K))
    segment = np.array(["north", "south", "west"])[rng.integers(0, 3, n)]
    rules: dict[str, Any] = {}
    if rng.random() < 0.5:
        rules["eligible"] = draw_eligible(rng, n, K)
    if rng.random() < 0.5:
        rules["caps"] = {k: int(rng.integers(0, n + 1)) for k in range(K) if rng.random() < 0.5}
    if rng.random() < 0.3:
        rules["shares"] = {k: float(rng.choice([0, 0.1, 0.25, 1 / 3, 0.5, 1])) for k in range(K) if rng.random() < 0.3}
    if rng.random() < 0.4:
        budgets = {str(s): draw_total(rng, curves, costs, segment == s) for s in set(segment) if rng.random() < 0.7}
        rules |= {"segment": segment, "segment_budgets": budgets}
    if rng.random() < 0.3:
        rules["least_return"] = float(rng.choice([0.0, 0.05, 0.3, 5.0]))
    return Case(curves, costs, draw_total(rng, curves, costs, np.ones(n, dtype=bool)), rules)


def draw_eligible(rng: np.random.Generator, n: int, K: int) -> Array:
    """Forbid some levels; some customers may get one level only, and now and then one may get nothing."""
    may = rng.random((n, K)) < 0.75
    for i in range(n):
        if rng.random() < 0.2:
            may[i] = np.arange(K) == rng.integers(K)
        elif not may[i].any() and rng.random() < 0.9:
            may[i, 0] = True
    return may


def draw_total(rng: np.random.Generator, curves: Array, costs: Array, rows: Array) -> float:
    """Return a budget for some customers: anywhere, or what a plan costs them, one rounding more or less at times."""
    paid = np.broadcast_to(costs, curves.shape)[rows]
    if rng.random() < 0.6:
        low, high = float(paid.min(axis=1).sum()), float(paid.max(axis=1).sum())
        return max(low + float(rng.uniform(-0.1, 1.1)) * (high - low), 0.0)
    at = math.fsum(paid[np.arange(len(paid)), rng.integers(0, paid.shape[1], len(paid))])
    return max(float(rng.choice([at, np.nextafter(at, 0), np.nextafter(at, math.inf)])), 0.0)


# ------------------------------------------------------------------------------------------------------ the judge


class Judge:
    """Every plan of an instance in rational numbers, and what the rules say to it."""

    def __init__(self, case: Case) -> None:
        self.case, (self.n, self.K) = case, case.curves.shape
        face = np.broadcast_to(case.costs, case.curves.shape)
        self.paid = [[Fraction(float(cost)) for cost in row] for row in face]
        self.worth = [[Fraction(float(value)) for value in row] for row in case.curves]
        self.floor = Fraction(case.rules.get("least_return", 0.0))

    def plans(self) -> Iterable[Plan]:
        return itertools.product(range(self.K), repeat=self.n)

    def net(self, plan: Plan) -> Fraction:
        """What a plan is worth, less the least return on what it costs."""
        return sum((self.worth[i][k] - self.floor * self.paid[i][k] for i, k in enumerate(plan)), Fraction(0))

    def cost(self, plan: Plan, segment: str | None = None) -> Fraction:
        own = self.case.rules.get("segment")
        rows = [i for i in range(self.n) if segment is None or own[i] == segment]
        return sum((self.paid[i][plan[i]] for i in rows), Fraction(0))

    def broken(self, plan: Plan, leeway: Fraction = Fraction(0)) -> str:
        """Return the name of a rule that a plan breaks, if any; budgets may be overdrawn by a share `leeway`."""
        rules = self.case.rules
        if self.cost(plan) > Fraction(self.case.total) * (1 + leeway):
            return "budget"
        if "eligible" in rules and not all(rules["eligible"][i, k] for i, k in enumerate(plan)):
            return "eligible"
        if any(plan.count(k) > most for k, most in rules.get("caps", {}).items()):
            return "caps"
        if any(plan.count(k) < math.ceil(share * self.n - 1e-9) for k, share in rules.get("shares", {}).items()):
            return "shares"
        for name, total in rules.get("segment_budgets", {}).items():
            if self.cost(plan, name) > Fraction(total) * (1 + leeway):
                return f"budget of {name}"
        return ""


def check(case: Case, exact: bool) -> Outcome | None:
    """Plan under the rules and compare with all plans that keep them."""
    from largesse import Constraints, allocate
    from largesse.errors import BudgetError

    judge = Judge(case)
    where = f"exact={exact}, {case}"
    kept = [plan for plan in judge.plans() if not judge.broken(plan)]
    try:
        plan = allocate(case.curves, case.costs, total=case.total, constraints=Constraints(**case.rules), exact=exact)
    except BudgetError as error:
        return Outcome("wrong", f"refused, but {kept[0]} keeps every rule: {error} {where}") if kept else None
    levels = tuple(int(k) for k in plan.levels)
    if rule := judge.broken(levels, ROUNDED):
        return Outcome("over budget" if "budget" in rule else "wrong", f"{levels} breaks the {rule}: {where}")
    if not kept:  # a budget that is a plan's cost, rounded
        return None
    size = max(abs(x) for row in judge.worth for x in row) * judge.n + 1
    best, own = max(map(judge.net, kept)), judge.net(levels)
    if best - own > Fraction(plan.gap) * judge.n + CLOSE * size:
        return Outcome("false proof", f"gap {plan.gap * judge.n}, but {float(best - own)} short: {where}")
    if exact and best - own > CLOSE * size:
        return Outcome("false proof", f"exact, but {float(best - own)} short: {where}")
    worth = sum((judge.worth[i][k] for i, k in enumerate(levels)), Fraction(0))
    if abs(worth - Fraction(plan.value) * judge.n) > CLOSE * size:
        return Outcome("wrong", f"says {plan.value * judge.n}, is worth {float(worth)}: {where}")
    return None


def attack(seed: int) -> Outcome:
    """Judge the default plan and the exact one of a seed."""
    case = make_case(seed)
    return check(case, exact=False) or check(case, exact=True) or FINE


def run(seeds: Iterable[int]) -> Counter[str]:
    """Return how often each outcome came of these seeds."""
    return Counter(attack(seed).kind for seed in seeds)
