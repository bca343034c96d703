"""Random allocation problems, HiGHS as their judge, and the summary of a plan from arrays."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from largesse.allocation.constraints.constraint_types import Constraints
from largesse.allocation.plan_and_frontier import allocate
from largesse.allocation.price.upper_hulls import convert_to_kernel_arrays, find_cheapest_levels, find_hull_steps
from largesse.errors import BudgetError
from largesse.evaluation import choose_explaining_features, count_planned_levels, index_feature_groups, summarise_plan
from largesse.records import Array, Plan, PlanSummary


def whole_costs(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    return rng.random((n, K)), np.sort(rng.integers(0, 9, K)).astype(float)


def real_costs(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    return rng.random((n, K)), np.sort(rng.random(K) * 5)


def own_costs(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    return rng.random((n, K)), np.sort(rng.random((n, K)) * 5, axis=1)


def unsorted_own_costs(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    return rng.random((n, K)), rng.random((n, K)) * 5


def concave(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    rises = -np.sort(-rng.random((n, K)), axis=1)
    return np.cumsum(rises, axis=1), np.arange(K, dtype=float)


def ties(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    return (rng.integers(0, 4, (2, K)) / 10)[rng.integers(0, 2, n)], np.arange(K) / 10


def falling_responses(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    return -np.sort(-rng.normal(size=(n, K)), axis=1) + rng.random((n, K)), np.arange(K, dtype=float)


def free_levels(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    return rng.random((n, K)), np.sort(rng.integers(0, 3, K) * rng.random()).astype(float)


def equal_costs(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    return rng.random((n, K)), np.full(K, 0.7)


def one_level(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    return rng.random((n, 1)), rng.random(1)


def one_customer(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    return rng.random((1, K)), np.sort(rng.random(K))


KINDS = [
    whole_costs,
    real_costs,
    own_costs,
    unsorted_own_costs,
    concave,
    ties,
    falling_responses,
    free_levels,
    equal_costs,
    one_level,
    one_customer,
]


def instances(kind: Any, count: int) -> list[tuple[Array, Array, float]]:
    """Curves, costs and an average budget that the cheapest plan can meet."""
    made = []
    for seed in range(count):
        rng = np.random.default_rng([KINDS.index(kind), seed])
        curves, costs = kind(rng, int(rng.integers(1, 61)), int(rng.integers(1, 7)))
        n = len(curves)
        wide = np.broadcast_to(costs, curves.shape)
        low, high = wide.min(axis=1).sum() / n * (1 + 1e-14), wide.max(axis=1).sum() / n
        budget = low if seed < 5 else max(low, high) if seed < 10 else low + rng.random() * max(high - low, 0.0)
        made.append((curves, costs, float(budget)))
    return made


# ---------------------------------------------------------------------------------------------- oracles


@dataclass(frozen=True, eq=False)
class Path:
    """The cost of the cheapest plan, and every worthwhile step up from it, best first."""

    base_cost: float
    cost: Array
    gain: Array
    slope: Array


def full_path(curves: Array, costs: Array) -> Path:
    """Return every step of every customer, sorted."""
    curves, costs = convert_to_kernel_arrays(curves, np.asarray(costs))
    start, sums = find_cheapest_levels(curves, costs)
    steps = find_hull_steps(curves, costs, np.arange(len(curves)), start, 0.0)
    order = np.argsort(-steps.slope, kind="stable")
    slope, cost = steps.slope[order], steps.cost[order]
    return Path(float(sums[2] + sums[3]), cost, slope * cost, slope)


def problem(curves: Array, costs: Array) -> tuple[Array, Any, Array]:
    from scipy.sparse import eye, kron

    n, K = curves.shape
    return -curves.ravel(), kron(eye(n), np.ones((1, K))).tocsr(), np.broadcast_to(costs, curves.shape).ravel()


def linear_optimum(curves: Array, costs: Array, budget: float) -> float:
    from scipy.optimize import linprog

    objective, one_each, paid = problem(curves, costs)
    n = len(curves)
    found = linprog(
        objective, A_ub=paid[None, :], b_ub=[budget * n], A_eq=one_each, b_eq=np.ones(n), bounds=(0, 1), method="highs"
    )
    assert found.status == 0, found.message
    return -float(found.fun) / n


def whole_optimum(curves: Array, costs: Array, budget: float) -> float:
    from scipy.optimize import Bounds, LinearConstraint, milp

    objective, one_each, paid = problem(curves, costs)
    n = len(curves)
    found = milp(
        objective,
        integrality=np.ones(len(objective)),
        bounds=Bounds(0, 1),
        constraints=[LinearConstraint(one_each, 1, 1), LinearConstraint(paid[None, :], -np.inf, budget * n)],
        options={"mip_rel_gap": 0.0},
    )
    assert found.status == 0, found.message
    best = found.x.reshape(curves.shape).argmax(axis=1)
    return math.fsum(curves[np.arange(n), best]) / n


def paid_by(levels: Array, costs: Array, shape: tuple[int, ...]) -> float:
    wide = np.broadcast_to(costs, shape)
    return math.fsum(wide[np.arange(len(levels)), levels])


RULES = ["eligible", "caps", "shares", "segment_budgets", "segment_minimums", "least_return", "all"]


def ruled_instance(seed: int, only: str = "all") -> tuple[Array, Array, float, Constraints]:
    """Curves, costs, a total budget and rules of one kind, or some of every kind; not always possible to keep."""
    rng = np.random.default_rng([99, seed])
    kind = (whole_costs, real_costs, own_costs, concave, ties, falling_responses)[seed % 6]
    curves, costs = kind(rng, int(rng.integers(2, 61)), int(rng.integers(2, 7)))
    n, K = curves.shape
    wide, segment = np.broadcast_to(costs, curves.shape), rng.integers(0, 3, n)
    often = only != "all"  # a rule that stands alone should be there
    eligible = rng.random((n, K)) < (0.8 if rng.random() < 0.5 or often else 2.0)
    eligible[:, 0] |= ~eligible.any(axis=1)
    low, high = np.where(eligible, wide, np.inf).min(axis=1), wide.max(axis=1)

    def between(rows: Array) -> float:
        return float(low[rows].sum() + rng.random() * (high[rows].sum() - low[rows].sum()))

    rules = {
        "eligible": None if eligible.all() else eligible,
        "caps": {k: int(rng.integers(0, n + 1)) for k in range(K) if rng.random() < (0.6 if often else 0.3)},
        "shares": {k: float(rng.random() / 4) for k in range(K) if rng.random() < (0.5 if often else 0.2)},
        "segment": segment,
        "segment_budgets": {
            int(s): between(segment == s) for s in np.unique(segment) if rng.random() < (0.9 if often else 0.6)
        },
        "least_return": float(rng.random() / 20) * (4 if often else 1) if rng.random() < (1 if often else 0.3) else 0.0,
    }
    rules["segment_minimums"] = {
        int(s): rng.random() * between(segment == s)
        for s in np.unique(segment)
        if rng.random() < (0.6 if often else 0.2)
    }
    kept = {"all": list(rules), **{word: ["segment", word] for word in ("segment_budgets", "segment_minimums")}}.get(
        only, [only]
    )
    return curves, costs, between(np.ones(n, dtype=bool)), Constraints(**{name: rules[name] for name in kept})


def ruled_optimum(
    curves: Array, costs: Array, total: float, rules: Constraints, leeway: float = 0.0
) -> tuple[float, Array] | None:
    """Return the best average net value under the rules, and its levels; None when none keeps them.

    `leeway` is added to every budget. HiGHS leaves a millionth open: the objective is made larger.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    n, K = curves.shape
    wide = np.broadcast_to(costs, curves.shape)
    _, one_each, paid = problem(curves, costs)

    def at(k: int) -> Array:
        return np.tile(np.arange(K) == k, n).astype(float)

    held = [(paid, -np.inf, total + leeway)]
    held += [(at(k), -np.inf, cap) for k, cap in rules.caps.items()]
    held += [(at(k), math.ceil(share * n - 1e-9), np.inf) for k, share in rules.shares.items()]
    held += [
        ((wide * (rules.segment == s)[:, None]).ravel(), -np.inf, limit + leeway)
        for s, limit in rules.segment_budgets.items()
    ]
    held += [
        ((wide * (rules.segment == s)[:, None]).ravel(), least - leeway, np.inf)
        for s, least in rules.segment_minimums.items()
    ]
    may = np.ones(n * K) if rules.eligible is None else rules.eligible.ravel().astype(float)
    net = curves - rules.least_return * wide
    found = milp(
        -1e4 * net.ravel(),
        integrality=np.ones(n * K),
        bounds=Bounds(0, may),
        constraints=[LinearConstraint(one_each, 1, 1), *(LinearConstraint(a[None, :], lo, up) for a, lo, up in held)],
        options={"mip_rel_gap": 0.0, "time_limit": 60},
    )
    if found.status == 2:
        return None
    assert found.status == 0, found.message
    levels = found.x.reshape(n, K).argmax(axis=1)
    return math.fsum(net[np.arange(n), levels]) / n, levels


def keeps(plan: Plan, curves: np.ndarray, costs: np.ndarray, total: float, rules: Constraints) -> None:
    n, K = curves.shape
    paid = np.broadcast_to(costs, curves.shape)[np.arange(n), plan.levels]
    count = np.bincount(plan.levels, minlength=K)
    assert math.fsum(paid) <= total
    assert all(math.fsum(paid[rules.segment == s]) <= limit for s, limit in rules.segment_budgets.items())
    assert all(math.fsum(paid[rules.segment == s]) >= least for s, least in rules.segment_minimums.items())
    assert all(count[k] <= cap for k, cap in rules.caps.items())
    assert all(count[k] >= share * n - 1e-9 for k, share in rules.shares.items())
    assert rules.eligible is None or rules.eligible[np.arange(n), plan.levels].all()


def attempt(
    curves: np.ndarray, costs: np.ndarray, total: float, rules: Constraints, exact: bool = False
) -> tuple[Plan | None, str]:
    try:
        return allocate(curves, costs, total=total, constraints=rules, exact=exact), ""
    except BudgetError as error:
        return None, str(error)


def summarise(
    plan: Plan, features: pa.Table, curves: Array, costs: Array, labels: Any, sample: slice = slice(None)
) -> PlanSummary:
    """Return who gets what; features are chosen on a sample of the customers."""
    rows = range(len(plan))[sample]
    shown = choose_explaining_features(features.take(list(rows)), plan.levels[sample])
    batch = (np.arange(len(plan)), curves, np.atleast_2d(costs))
    counts = count_planned_levels(shown, index_feature_groups(shown, features), plan.levels, batch)
    return summarise_plan(plan, labels, counts, shadow=plan.shadow)
