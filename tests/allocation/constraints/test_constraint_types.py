"""A kind of constraint is one class: kinds made here, outside the package, are planned under like those inside."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from largesse.allocation import Constraint, Constraints, Limit, Segments, allocate
from largesse.errors import BudgetError, InputError, Problem
from largesse.records import Array


@dataclass(frozen=True, eq=False)
class SegmentCap(Limit):
    """At most so many customers of a segment get a level above some level."""

    most: int
    above: int
    segments: Segments | None
    segment: Any

    @property
    def name(self) -> str:
        return f"the cap of segment {self.segment!r} above level {self.above}"

    @property
    def key(self) -> str:
        return f"cap of segment {self.segment}"

    def check(self, _n: int, _levels: int, /) -> list[Problem]:
        return [Problem(f"most is {self.most}")] if self.most < 0 else []

    def limit(self, _n: int, /) -> float:
        return float(self.most)

    def covers(self, levels: int, /) -> Array:
        return np.arange(levels) > self.above


@dataclass(frozen=True, eq=False)
class LevelBudget(Limit):
    """One level costs at most so much."""

    level: int
    most: float
    money = True
    name = "the budget of a level"
    key = "budget of a level"

    def check(self, _n: int, _levels: int, /) -> list[Problem]:
        return []

    def limit(self, _n: int, /) -> float:
        return self.most

    def covers(self, levels: int, /) -> Array:
        return np.arange(levels) == self.level


@dataclass(frozen=True, eq=False)
class SegmentSpend(Limit):
    """At least so much is spent on a segment."""

    least: float
    segments: Segments | None
    segment: Any
    money = True
    at_least = True
    name = "the spend on a segment"
    key = "spend on a segment"

    def check(self, _n: int, _levels: int, /) -> list[Problem]:
        return []

    def limit(self, _n: int, /) -> float:
        return self.least


@dataclass(frozen=True, eq=False)
class NotAbove(Constraint):
    """Nobody of a segment gets a level above some level."""

    above: int
    there: Array

    def check(self, _n: int, _levels: int, /) -> list[Problem]:
        return []

    def allowed(self, _n: int, levels: int, /) -> Array:
        return ~(self.there[:, None] & (np.arange(levels) > self.above))


def instance(seed: int) -> tuple[Array, Array, float, Constraints]:
    rng = np.random.default_rng([7, seed])
    n, K = int(rng.integers(2, 7)), int(rng.integers(2, 4))
    curves = rng.random((n, K))
    costs = np.sort(rng.random((n, K) if seed % 2 else K) * 3, axis=-1)
    region, age = Segments(rng.integers(0, 2, n)), Segments(np.array(["old", "young"])[rng.integers(0, 2, n)])
    wide = np.broadcast_to(costs, curves.shape)
    made: list[Constraint] = [
        SegmentCap(int(rng.integers(0, n)), 0, region, region.names[0]),
        LevelBudget(K - 1, float(rng.random() * wide[:, -1].sum() / 2)),
        SegmentSpend(float(rng.random() * wide[age.codes == 0].mean(axis=1).sum()), age, age.names[0]),
        NotAbove(0, rng.random(n) < 0.2),
    ]
    chosen = [rule for rule in made if rng.random() < 0.6]
    caps = {0: int(rng.integers(1, n + 1))} if rng.random() < 0.3 else {}
    low = wide.min(axis=1).sum()
    total = float(low + rng.random() * (wide.max(axis=1).sum() - low))
    return curves, costs, total, Constraints(caps=caps, further=chosen)


def keeps(levels: Array, costs: Array, total: float, rules: Constraints) -> bool:
    """Whether levels keep everything, in exact arithmetic."""
    n, K = len(levels), costs.shape[1]
    paid = [Fraction(float(costs[i, k])) for i, k in enumerate(levels)]
    if sum(paid) > Fraction(total) or any((levels == k).sum() > cap for k, cap in rules.caps.items()):
        return False
    for rule in rules.further:
        allowed = rule.allowed(n, K)
        if allowed is not None and not allowed[np.arange(n), levels].all():
            return False
        if isinstance(rule, Limit):
            there = np.ones(n, dtype=bool)
            if rule.segments is not None:
                there = np.asarray(rule.segments.values) == rule.segment
            uses = [paid[i] if rule.money else 1 for i in range(n) if there[i] and rule.covers(K)[levels[i]]]
            limit = Fraction(rule.limit(n))
            if sum(uses) < limit if rule.at_least else sum(uses) > limit:
                return False
    return True


def best_value(curves: Array, costs: Array, total: float, rules: Constraints) -> float:
    plans = (np.array(levels) for levels in product(range(curves.shape[1]), repeat=len(curves)))
    rows = np.arange(len(curves))
    return max((math.fsum(curves[rows, p]) for p in plans if keeps(p, costs, total, rules)), default=-math.inf)


@pytest.mark.parametrize("exact", [False, True])
def test_kinds_from_outside_are_planned_like_brute_force(exact: bool) -> None:
    planned = refused = 0
    for seed in range(60):
        curves, costs, total, rules = instance(seed)
        wide = np.broadcast_to(costs, curves.shape)
        best = best_value(curves, wide, total, rules)
        try:
            plan = allocate(curves, costs, total=total, constraints=rules, exact=exact)
        except BudgetError:
            assert best == -math.inf, seed
            refused += 1
            continue
        planned += 1
        assert keeps(plan.levels, wide, total, rules), seed
        assert best - plan.value * len(curves) <= (1e-9 if exact else plan.gap * len(curves) + 1e-9), seed
        assert plan.gap <= 1e-9 or not exact
    assert planned > 30
    assert refused > 3


def test_a_kind_from_outside_has_a_shadow_price_and_words() -> None:
    rng = np.random.default_rng(0)
    curves, costs = np.cumsum(rng.random((2000, 3)), axis=1), np.array([0.0, 1.0, 2.0])
    region = Segments(rng.integers(0, 2, 2000))
    rule = SegmentCap(100, 0, region, 1)
    plan = allocate(curves, costs, 1.5, constraints=Constraints(further=[rule]))
    assert ((plan.levels > 0) & (region.codes == 1)).sum() == 100
    assert plan.shadow["cap of segment 1"] > 0
    assert plan.gap <= 1e-2 * plan.value


def test_an_impossible_kind_from_outside_is_named_with_what_would_help() -> None:
    curves, costs, everybody = np.zeros((10, 3)), np.array([0.0, 1.0, 2.0]), Segments(["a"] * 10)
    too_much = Constraints(further=[SegmentSpend(21.0, everybody, "a")])
    with pytest.raises(BudgetError, match=r"the spend on a segment .*21.* 20"):
        allocate(curves, costs, 3.0, constraints=too_much)
    clash = Constraints(caps={1: 9, 2: 0}, further=[SegmentSpend(9.5, everybody, "a")])
    with pytest.raises(BudgetError, match=r"\n.*the spend on a segment to 9$"):
        allocate(curves, costs, 3.0, constraints=clash)
    region = Segments([0, 1] * 5)
    with pytest.raises(InputError, match="most is -1"):
        allocate(curves, costs, 1.5, constraints=Constraints(further=[SegmentCap(-1, 0, region, 1)]))
