"""Plan with exploration: drawn levels, their propensities, and the precision of the resulting log."""

from __future__ import annotations

import math
from collections.abc import Sized
from dataclasses import replace
from typing import Any

import numpy as np

from largesse.allocation import Constraints
from largesse.errors import (
    BudgetError,
    Problem,
    fail,
    find_integer_problems,
    join_some,
    number_or_none,
    refuse,
    repr_short,
    suggest,
)
from largesse.exploration.budget_constrained_draw import draw_levels_within_budget
from largesse.exploration.exploration_design import GOALS, ExplorationTask, design_exploration, make_exploration_task
from largesse.exploration.exploration_rule import ExplorationRule, find_exploration_rule
from largesse.exploration.response_variance import ResponseVariance
from largesse.records import (
    Array,
    ConfirmatoryExplorationSize,
    DesignPrecision,
    DrawnLevels,
    Exploration,
    Log,
    Scores,
    Verdict,
)
from largesse.stats import sample_rows

AT_RANDOM = "random"  # instead of a goal: a share of the customers gets random levels
DEFAULT_RATE = 0.05  # of exploration, where only its goal is given
NEXT_LOG_RATES = (0.1, 0.05, 0.02, 0.01)  # that are tried to settle a verdict
MAX_GIVEN_UP = 0.5  # of the expected gain, while a log settles it
MAX_DESIGN_ROWS = 20_000
PRECISION_NAMES = ("this exploration", "levels at random", "no exploration")
LIMITS_HINT = "exploration keeps a budget and eligible levels only: leave out one of them"


def check_exploration(goal: Any, rate: Any, seed: Any, log: Any = None, constraints: Any = None) -> None:
    """Check the goal, the rate, the seed and the constraints of an exploration."""
    problems = find_integer_problems(seed, "the seed")
    if not isinstance(log, Log | None):
        problems.append(Problem(f"the log is {repr_short(log)}", "read it first: read_log(…)"))
    if not isinstance(constraints, Constraints | None):
        problems.append(Problem(f"the constraints are {repr_short(constraints)}", "give Constraints(eligible=…)"))
    elif constraints is not None and (limits := _list_limiting_constraints(constraints)):
        problems.append(Problem(f"exploration and {join_some(limits)} were both requested", LIMITS_HINT))
    if not isinstance(goal, str) or goal not in GOALS:
        problems.append(Problem(f"the goal is {repr_short(goal)}", suggest(str(goal), GOALS)))
    number = number_or_none(rate)
    if number is None or not 0 < number <= 1:
        hint = "give the share of customers whose random levels would cost as much: above 0, at most 1"
        problems.append(Problem(f"the rate is {repr_short(rate)}", hint))
    refuse("explore", problems)


def _list_limiting_constraints(constraints: Constraints) -> list[str]:
    """Return the names of the constraints that are incompatible with exploration."""
    limits = {
        name: getattr(constraints, name)
        for name in ("caps", "shares", "segment_budgets", "segment_minimums", "least_return", "further")
    }
    return [name for name, value in limits.items() if (len(value) if isinstance(value, Sized) else value != 0)]


def convert_policy_probabilities(policy: Any, customers: Any, shape: tuple[int, ...]) -> Array:
    """Convert a policy of any form to level probabilities (n, K)."""
    probabilities = policy.probabilities(customers) if hasattr(policy, "probabilities") else np.asarray(policy)
    n, K = shape
    levels = (
        probabilities.shape == (n,)
        and probabilities.dtype.kind in "iu"
        and probabilities.min() >= 0
        and probabilities.max() < K
    )
    shares = probabilities.shape == (n, K) and probabilities.dtype.kind in "iuf" and probabilities.min() >= 0
    if not levels and not (shares and np.allclose(probabilities.sum(axis=1), 1)):
        hint = f"give levels ({n},) from 0 to {K - 1}, probabilities ({n}, {K}) or a policy"
        fail("explore", Problem(f"the incumbent has shape {probabilities.shape} and type {probabilities.dtype}", hint))
    return np.asarray(np.eye(K)[probabilities]) if levels else probabilities.astype(np.float64)


def plan_exploration(
    curves: Array,
    costs: Array,
    budget: float,
    variance: ResponseVariance,
    *,
    goal: str = GOALS[0],
    rate: float = DEFAULT_RATE,
    incumbent: Array | None = None,
    constraints: Constraints | None = None,
    seed: int = 0,
) -> tuple[Exploration, ExplorationRule | None]:
    """Plan within the budget, design an exploration around the plan, and draw the levels.

    Curves are (n, K), costs (K,) or (n, K), the incumbent's probabilities (n, K), by default those of the best uniform mix.
    Also returns the rule for customers who are not in the plan, if there is one.
    """
    eligible = None if constraints is None else constraints.eligible
    task = make_exploration_task(curves, costs, variance.at(curves), budget, incumbent, eligible)
    design = design_exploration(task, rate, goal)
    levels = draw_levels_within_budget(design.probabilities, task.costs, task.plan.budget * len(task.costs), seed)
    propensity = design.probabilities[np.arange(len(levels)), levels]
    drawn, random, none = (
        _measure_precision(name, task, probabilities)
        for name, probabilities in zip(
            PRECISION_NAMES, (design.probabilities, design.random, task.planned), strict=True
        )
    )
    exploration = Exploration(
        design.probabilities,
        DrawnLevels(levels, propensity),
        task.plan.levels,
        goal,
        float(rate),
        task.plan.budget,
        task.plan.price,
        # Where all levels cost the budget, their sum is the budget up to rounding.
        (replace(drawn, spend=min(drawn.spend, task.plan.budget)), random, none),
    )
    # Eligible levels that happen to be all of them for these customers may be fewer for others.
    return exploration, find_exploration_rule(task, design, rate, goal, variance) if constraints is None else None


def find_confirmatory_exploration(
    scores: Scores, verdict: Verdict, rows: int, budget: float, variance: ResponseVariance, seed: int = 0
) -> ConfirmatoryExplorationSize | None:
    """Find an exploration of small loss, and the size of its log that would confirm the plan's expected gain.

    The rate is the largest that gives up at most a part of the expected gain. None if the verdict is settled or favours
    another option, or if exploring does not fit within the budget.
    """
    plan = verdict.plan
    if plan is None or verdict.recommended != "plan" or verdict.grade == "proved" or verdict.needed_rows is None:
        return None
    places = sample_rows(len(scores.level), MAX_DESIGN_ROWS, seed)
    curves, costs = scores.curves[places], scores.expected_costs[places]
    eligible = None if scores.allowed is None else Constraints(eligible=scores.allowed[places])
    for rate in NEXT_LOG_RATES:
        try:
            options: Any = {"rate": rate, "constraints": eligible, "seed": seed}
            found = plan_exploration(curves, costs, budget, variance, **options)[0].this
        except BudgetError:
            continue
        if found.given_up <= MAX_GIVEN_UP * plan.gain.estimate or rate == NEXT_LOG_RATES[-1]:
            log_se = plan.log.se * math.sqrt(rows / len(places))  # of as many rows as those of the design
            customers = verdict.needed_rows * (found.gain_se / log_se) ** 2
            money = found.money if math.isfinite(found.money) else None
            return (
                ConfirmatoryExplorationSize(rate, customers, found.given_up, money)
                if math.isfinite(customers)
                else None
            )
    return None


def _measure_precision(name: str, task: ExplorationTask, probabilities: Array) -> DesignPrecision:
    """Return the cost of level probabilities (n, K), and the precision of the resulting log."""
    value = task.compute_mean_response(probabilities)
    lost = max(task.plan.value - value, 0.0)
    money = lost / task.plan.price if task.plan.price > 0 else float("nan")
    errors = [task.predict_se(part, probabilities) for part in (task.planned, task.planned - task.incumbent)]
    return DesignPrecision(name, value, task.compute_mean_cost(probabilities), lost, money, *errors)
