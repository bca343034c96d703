"""Do plans keep their budget where costs are paid on redemption? Simulations and random worlds, whose truth is known.

Before: plans go by what the model expects, the log's own customers by the model that was fitted to them. After: by what plans
cost held-out rows, the log's own customers by models that did not see them. Sure: the same, to be kept with 95 % confidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from largesse.allocation import allocate, correct_costs, expected_costs
from largesse.evaluation import crossfit, measure_spending
from largesse.levels import Levels
from largesse.records import Array, Progress, Spending
from largesse.response import make_model
from largesse.worlds import RandomLog, Simulation, draw_world, simulate
from largesse_lab.experiments.base import Experiment
from largesse_lab.page.sections import Chapter
from largesse_lab.page.tables import write_table
from largesse_lab.runner.cache import Kept
from largesse_lab.runner.request import Records, Request, ignore_progress

ROWS, FRESH = 2000, 20_000
SIMULATED = {
    "averaged": 0.5,
    "unit": 0.5,
    "confounded": 0.2,
    "literal": 0.5,
}  # name → share of the log that is randomised
WORLDS, FIRST = "random worlds", 1000  # the first seed
MODELS = ("linear", "boosting")
SHARE = 0.3  # of what the dearest level would cost
WAYS = {"before": None, "after": 0.5, "sure": 0.95}  # → the confidence with which the budget is to be kept
OVER = 0.01  # of the budget: what more than this is called overspending


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per problem, log and model: how far the true spend lies above the budget, as a share of it."""
    logs = 20 if request.repeats is None else request.repeats
    problems = [*SIMULATED, WORLDS] if request.problems is None else request.problems
    models = MODELS if request.rows is None else request.rows
    todo = [(problem, log, model) for log in range(logs) for problem in problems for model in models]
    kept = Kept(request.out, ("problem", "log", "model"))
    kept.complete([[key] for key in todo], lambda keys: [_measure_log(*keys[0])], progress)
    return kept.take(todo)


def _measure_log(problem: str, number: int, model: str) -> dict[str, Any]:
    drawn, fresh = _draw(problem, number)
    levels = Levels(costs=drawn.costs, on_redemption=True)
    log = replace(drawn.log, levels=levels)
    true = {"own": drawn.costs * drawn.truth, "new": drawn.costs * fresh.truth}
    budget = SHARE * float(true["new"][:, -1].mean())
    scores, fitted = crossfit(log, make_model(model, number), seed=number), make_model(model, number).fit(log)
    measured = measure_spending(scores)
    assert measured is not None
    table = fresh.table if isinstance(fresh, RandomLog) else fresh.features
    known, new = fitted.predict(log), fitted.predict(table)
    record: dict[str, Any] = {"problem": problem, "log": number, "model": model}
    for way, sure in WAYS.items():
        for who, curves in (("own", known if sure is None else scores.curves), ("new", new)):
            costs, spending = expected_costs(levels, curves), None if sure is None else measured.whole
            record[f"{who} {way}"] = _overspend(curves, costs, true[who], budget, spending, sure or 0.5) / budget - 1
    return record


def _draw(problem: str, number: int) -> tuple[Simulation | RandomLog, Simulation | RandomLog]:
    """Return a log and fresh customers of the same world; random worlds have yes/no responses."""
    if problem in SIMULATED:
        made = simulate(problem, n=ROWS, seed=number, mix=SIMULATED[problem])
        return made, made.draw(FRESH, number)
    world = draw_world(_find_seed(number))
    return world.draw_log(ROWS), world.draw_fresh(FRESH)


@cache
def _find_seed(number: int) -> int:
    """Return the seed of the world of yes/no responses with this number."""
    first = _find_seed(number - 1) + 1 if number else FIRST
    return next(seed for seed in count(first) if draw_world(seed).traits.response == "yes/no")


def _overspend(
    curves: Array, costs: Array, true: Array, budget: float, spending: Spending | None, sure: float
) -> float:
    """Return the true spend of the plan at a budget."""
    scale = correct_costs(curves, costs, budget, spending, sure).scale
    levels = allocate(curves, costs * scale, budget).levels
    return float(true[np.arange(len(levels)), levels].mean())


def tabulate(records: Records) -> str:
    """Return mean and spread of overspending, and the share of logs with more than one per cent, as Markdown."""
    body = []
    for problem in dict.fromkeys(record["problem"] for record in records):
        for who, words in (("own", "of the log"), ("new", "new")):
            mine = [record for record in records if record["problem"] == problem]
            body.append([problem, words, str(len(mine)), *(_write_cell(mine, f"{who} {way}") for way in WAYS)])
    head = f"True spend above the budget: mean (root mean square); share of logs with more than {OVER:.0%}.\n\n"
    return head + write_table(["logs", "customers", "number", *WAYS], body, words=2) + "\n"


def _write_cell(records: list[Mapping[str, Any]] | Records, key: str) -> str:
    found = np.array([record[key] for record in records])
    return f"{found.mean():+.1%} ({np.sqrt(np.mean(found**2)):.1%}); {np.mean(found > OVER):.0%}"


SETUP = (
    f"Logs of {ROWS:,} rows; costs are face values, paid on redemption; the budget is {SHARE:.0%} of what the dearest level "
    "would cost. *Before*: plans go by what the model expects. *After*: by what plans cost held-out rows. *Sure*: the same, to be "
    "kept with 95 % confidence."
)
EXPERIMENT = Experiment(
    "overspend", measure, tabulate, Chapter("Budgets of costs paid on redemption", SETUP), parts=False
)
