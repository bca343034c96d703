"""Overspending of plans whose costs are paid on redemption, on simulations with a known truth.

Before: plans use the model's expected costs, for the log's own customers those of the model that was fitted to them. After: expected
costs are corrected by the costs of held-out rows, and the log's own customers are planned by models that did not see them. Sure:
the same, with a budget to be kept with 95 % confidence.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from largesse.allocation import allocate, expected_costs, find_cost_correction
from largesse.evaluation import crossfit_scores, measure_spend_by_price
from largesse.levels import Levels
from largesse.records import Progress
from largesse.response import make_model
from largesse.worlds import RandomLog, Simulation, draw_world, simulate
from largesse_lab.experiments.experiment_definition import table_experiment
from largesse_lab.pages.markdown import format_table
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress
from largesse_lab.runner.record_cache import RecordCache

LOG_ROWS, FRESH_ROWS = 2000, 20_000
RANDOMISED = {"averaged": 0.5, "unit": 0.5, "confounded": 0.2, "literal": 0.5}  # share of each simulation's log
WORLDS, FIRST_SEED = "random worlds", 1000
OVERSPEND_MODELS = ("linear", "boosting")
OVERSPEND_BUDGET_SHARE = 0.3  # of the dearest level's cost
CONFIDENCES = {"before": None, "after": 0.5, "sure": 0.95}  # that the budget is kept
OVERSPEND_TOLERANCE = 0.01  # of the budget: a larger excess is called overspending


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per problem, log and model: the true spend above the budget, relative to the budget."""
    logs = 20 if request.repeats is None else request.repeats
    problems = [*RANDOMISED, WORLDS] if request.problems is None else request.problems
    models = OVERSPEND_MODELS if request.models is None else request.models
    keys = [(problem, log, model) for log in range(logs) for problem in problems for model in models]
    return RecordCache(request.out, ("problem", "log", "model")).measure_each(keys, _measure_overspend, progress)


def _measure_overspend(problem: str, number: int, model: str) -> dict[str, Any]:
    drawn, fresh = _draw_log_and_fresh_customers(problem, number)
    levels = Levels(costs=drawn.costs, on_redemption=True)
    log = replace(drawn.log, levels=levels)
    true_costs = {"own": drawn.costs * drawn.truth, "new": drawn.costs * fresh.truth}
    budget = OVERSPEND_BUDGET_SHARE * float(true_costs["new"][:, -1].mean())
    scores, fitted = crossfit_scores(log, make_model(model, number), seed=number), make_model(model, number).fit(log)
    measured = measure_spend_by_price(scores)
    assert measured is not None
    in_sample = fitted.predict(log)
    new = fitted.predict(fresh.table if isinstance(fresh, RandomLog) else fresh.features)
    record: dict[str, Any] = {"problem": problem, "log": number, "model": model}
    for stage, confidence in CONFIDENCES.items():
        spending = None if confidence is None else measured.curve_of_all_folds
        for customers, curves in (("own", in_sample if confidence is None else scores.curves), ("new", new)):
            costs = expected_costs(levels, curves)
            scale = find_cost_correction(curves, costs, budget, spending, confidence or 0.5).scale
            plan = allocate(curves, costs * scale, budget).levels
            spend = float(true_costs[customers][np.arange(len(plan)), plan].mean())
            record[f"{customers} {stage}"] = spend / budget - 1
    return record


def _draw_log_and_fresh_customers(problem: str, number: int) -> tuple[Simulation | RandomLog, Simulation | RandomLog]:
    """Return a log, and customers outside the log from the same simulated population."""
    if problem in RANDOMISED:
        sim = simulate(problem, n=LOG_ROWS, seed=number, mix=RANDOMISED[problem])
        return sim, sim.draw(FRESH_ROWS, number)
    world = draw_world(_find_binary_world_seed(number))
    return world.draw_log(LOG_ROWS), world.draw_fresh(FRESH_ROWS)


@cache
def _find_binary_world_seed(number: int) -> int:
    """Return the seed of the n-th random simulated world with yes/no responses."""
    first = _find_binary_world_seed(number - 1) + 1 if number else FIRST_SEED
    return next(seed for seed in count(first) if draw_world(seed).traits.response == "yes/no")


def tabulate(records: Records) -> str:
    """Return a Markdown table of mean overspending, and of the share of logs above one per cent."""
    body = []
    for problem in dict.fromkeys(record["problem"] for record in records):
        logs = [record for record in records if record["problem"] == problem]
        for customers, title in (("own", "of the log"), ("new", "new")):
            cells = [_write_overspend([record[f"{customers} {stage}"] for record in logs]) for stage in CONFIDENCES]
            body.append([problem, title, str(len(logs)), *cells])
    head = f"True spend above the budget: mean (root mean square); share of logs with more than {OVERSPEND_TOLERANCE:.0%}.\n\n"
    return head + format_table(["logs", "customers", "number", *CONFIDENCES], body, text_columns=2)


def _write_overspend(values: list[float]) -> str:
    excess = np.array(values)
    return f"{excess.mean():+.1%} ({np.sqrt(np.mean(excess**2)):.1%}); {np.mean(excess > OVERSPEND_TOLERANCE):.0%}"


OVERSPEND_SETUP = (
    f"Logs of {LOG_ROWS:,} rows; costs are face values, paid on redemption; the budget is {OVERSPEND_BUDGET_SHARE:.0%} of the dearest "
    "cost. *Before*: plans use the model's expected costs. *After*: these are corrected by the costs of held-out rows. *Sure*: the "
    "same, with a budget to be kept with 95 % confidence."
)
OVERSPEND_EXPERIMENT = table_experiment(
    "overspend", "Budgets of costs paid on redemption", measure, tabulate, setup=OVERSPEND_SETUP, parallel=False
)
