"""Precision of off-policy evaluation on the next log, with planned exploration or random levels.

A model learns from a log of a drawn world and plans for customers of that world who are not in it. Their levels are drawn in
three ways, within one budget and at one expected cost: at random for a share of the customers, and by `Policy.explore` for
evaluation and for learning. Their responses follow from the truth. Then the new log is evaluated as any other: the plan's gain
over the best uniform mix, its value, and the gain of a policy learnt on the new log. Truths are means over the same customers,
whose expected responses are known.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from largesse.allocation import allocate, mix_two_levels
from largesse.errors import BudgetError, percent
from largesse.evaluation import (
    crossfit_scores,
    estimate_gain_over_mix,
    estimate_policy_difference,
    estimate_policy_value_and_spend,
    plan_each_fold,
)
from largesse.policy import Policy
from largesse.records import Array, Estimate, Exploration, Progress
from largesse.response import make_model
from largesse.worlds import RandomLog, RandomWorld, draw_world
from largesse_lab.experiments.experiment_definition import Experiment
from largesse_lab.pages.figures import FigureText, draw_lines
from largesse_lab.pages.markdown import Section, format_share, format_table
from largesse_lab.pages.method_comparison import Summary
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress, select_requested_seeds
from largesse_lab.runner.record_cache import RecordCache

LOG_ROWS, NEXT_ROWS = 5000, 5000
FIRST_SEED, N_WORLDS = 3000, 100  # worlds that were not used to choose settings
RATE = 0.05  # share of customers whose random levels would cost as much
NEXT_LOG_BUDGET_SHARE = 0.25  # of the dearest level's cost
NEXT_LOG_MODEL = "linear"
LOGGING_WAYS = ("random", "evaluation", "learning")
WIDTH_GRID = np.round(np.arange(0.0, 2.01, 0.05), 2)  # of the figure
NEXT_LOG_TITLES = {"gain": "gain over the mix", "plan": "value of the plan", "own": "gain of a newly learnt policy"}


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per simulated world and model: intervals from the next log, and the cost of exploring."""
    seeds = select_requested_seeds(request, FIRST_SEED, N_WORLDS)
    models = [NEXT_LOG_MODEL] if request.models is None else request.models
    sizes = [NEXT_ROWS] if request.sizes is None else request.sizes
    keys = [(seed, model, rows) for seed in seeds for model in models for rows in sizes]
    return RecordCache(request.out, ("seed", "model", "rows")).measure_each(keys, _measure_world, progress)


def _measure_world(seed: int, name: str, rows: int) -> dict[str, Any]:
    world = draw_world(seed)
    log = world.draw_log(LOG_ROWS).log
    policy = Policy(make_model(name, seed).fit(log), log.levels)
    budget, fresh = NEXT_LOG_BUDGET_SHARE * float(world.doses[-1]), world.draw_fresh(rows)
    record: dict[str, Any] = {"seed": seed, "model": name, "rows": rows, "traits": world.traits.regimes, "ways": {}}
    explorations: dict[str, Exploration] = {}
    for way in LOGGING_WAYS[1:]:
        try:
            explorations[way] = policy.explore(fresh.table, budget, goal=way, rate=RATE, log=log, seed=seed)
        except BudgetError as error:
            return record | {"refused": str(error)}
    plan = explorations["evaluation"].plan
    curves = policy.model.predict(fresh.table)
    spend = float(world.doses[plan].mean())
    mix = mix_two_levels(curves.mean(axis=0), world.doses, spend)
    designs = {way: explorations[way].probabilities for way in LOGGING_WAYS[1:]}
    designs["random"] = _mix_plan_with_random_levels(curves, world.doses, budget)
    predicted = dict(zip(("evaluation", "random"), explorations["evaluation"].precisions, strict=False))
    for way in LOGGING_WAYS:
        new = world.draw_next(rows, lambda _table, way=way: designs[way])  # type: ignore[misc]
        record["ways"][way] = _evaluate_next_log(world, new, plan, mix, budget, name) | {
            "given_up": fresh.value(plan) - float((designs[way] * fresh.truth).sum(axis=1).mean()),
            "spend": float((designs[way] * world.doses).sum(axis=1).mean()),
            "predicted": predicted[way].gain_se if way in predicted else None,
            "drawn": float(world.doses[new.level].mean()),
        }
    return record | {"plan_gain": fresh.value(plan) - float(fresh.truth.mean(axis=0) @ mix), "budget": budget}


def _mix_plan_with_random_levels(curves: Array, costs: Array, budget: float) -> Array:
    """Return level probabilities (n, K) of a plan with a share of uniformly random levels, at the same budget."""
    remaining = (budget - RATE * float(costs.mean())) / (1 - RATE)
    levels = allocate(curves, costs, remaining).levels
    return (1 - RATE) * np.eye(len(costs))[levels] + RATE / len(costs)


def _evaluate_next_log(
    world: RandomWorld, new: RandomLog, plan: Array, mix: Array, budget: float, name: str
) -> dict[str, Any]:
    """Evaluate the next log: return intervals of the plan's gain, its value, and a newly learnt policy's gain."""
    scores = crossfit_scores(new.log, make_model(name, world.seed), seed=world.seed)
    gain = estimate_policy_difference(scores, plan, mix).value
    value = estimate_policy_value_and_spend(scores, plan)[0]
    relearnt = estimate_gain_over_mix(scores, plan_each_fold(scores, budget).levels)
    truth = new.value(plan)
    return {
        "gain": _record_interval(gain, truth - float(new.truth.mean(axis=0) @ mix)),
        "plan": _record_interval(value, truth),
        "own": _record_interval(relearnt, None),
    }


def _record_interval(estimate: Estimate, truth: float | None) -> dict[str, Any]:
    """Return an estimate's error and interval width, and a flag for an interval that contains the truth."""
    # A plan that equals the mix has no gain, and its interval no width.
    testable = truth is not None and np.isfinite(estimate.low) and estimate.se > 0
    inside = bool(estimate.low <= truth <= estimate.high) if testable and truth is not None else None
    width = estimate.high - estimate.low
    error = None if truth is None else estimate.estimate - truth
    return {"width": float(width) if np.isfinite(width) else None, "inside": inside, "error": error, "se": estimate.se}


def summarise(records: Records) -> dict[str, Any]:
    """Return interval widths relative to random levels, coverage, and the value lost by exploring."""
    explored = [record for record in records if "refused" not in record]
    rows = []
    for key, title in NEXT_LOG_TITLES.items():
        for way in LOGGING_WAYS:
            widths = summarise_widths(explored, key, way)
            rows += [{"key": key, "interval": title, "way": way, **widths}] if widths["worlds"] else []
    gains = sum(abs(record["plan_gain"]) for record in explored)
    lost = {way: sum(record["ways"][way]["given_up"] for record in explored) for way in LOGGING_WAYS}
    return {
        "rows": rows,
        "given_up": {way: total / max(gains, 1e-300) for way, total in lost.items()},
        "refused": len(records) - len(explored),
        "equal": sum(not record["ways"]["random"]["gain"]["se"] > 0 for record in explored),
        "widths": {
            way: _tabulate_width_distribution(list_width_ratios(explored, "gain", way)) for way in LOGGING_WAYS[1:]
        },
    }


def list_width_ratios(records: Records, key: str, way: str) -> Array:
    """Return interval widths relative to those with random levels, one per simulated world."""
    pairs = [(record["ways"][way][key]["width"], record["ways"]["random"][key]["width"]) for record in records]
    return np.array([width / random_width for width, random_width in pairs if width and random_width])


def summarise_widths(records: Records, key: str, way: str) -> dict[str, Any]:
    """Return the mean width, relative to random levels, and the coverage of intervals."""
    ratios = list_width_ratios(records, key, way)
    if not len(ratios):
        return {"worlds": 0}
    intervals = [record["ways"][way][key] for record in records]
    inside = [i["inside"] for i in intervals if i["inside"] is not None and i["se"] > 0]
    return {
        "worlds": len(ratios),
        "mean": float(np.exp(np.log(ratios).mean())),
        "median": float(np.median(ratios)),
        "half": float((ratios <= 0.5).mean()),
        "wider": float((ratios > 1).mean()),
        "inside": float(np.mean(inside)) if inside else None,
        "judged": len(inside),
    }


def _tabulate_width_distribution(ratios: Array) -> dict[str, list[float]]:
    """Return the cumulative distribution of widths relative to random levels, on a grid."""
    shares = np.searchsorted(np.sort(ratios), WIDTH_GRID + 1e-9, side="right") / max(len(ratios), 1)
    return {"x": WIDTH_GRID.tolist(), "share": shares.round(4).tolist()}


# -- the page ----------------------------------------------------------------------------------------------------------


def fill(section: Section, summary: Summary) -> None:
    """Add the table and the figure of interval widths to the result section."""
    body = []
    for row in summary["rows"]:
        widths = [f"{row['mean']:.2f}", f"{row['median']:.2f}", percent(row["half"]), percent(row["wider"])]
        body.append(
            [
                NEXT_LOG_TITLES[row["key"]],
                row["way"],
                str(row["worlds"]),
                *widths,
                format_share(row["inside"], row["judged"]),
            ]
        )
    widths = ["width (geometric mean)", "median", "at most half", "wider"]
    head = ["interval of", "levels drawn", "worlds", *widths, "contains the truth (95 % interval)"]
    lost = ", ".join(f"{way} {percent(share, 1)}" for way, share in summary["given_up"].items())
    notes = [f"True loss by exploring, as a share of the plan's gain over the mix, in all worlds together: {lost}."]
    if summary["refused"]:
        notes.append(f"In {summary['refused']} worlds the budget leaves no room to explore.")
    if summary["equal"]:
        notes.append(f"In {summary['equal']} worlds the plan is the mix itself, so that there is no gain.")
    section.add("Widths of 95 % intervals are relative to those of random levels.")
    section.add(format_table(head, body, text_columns=2), " ".join(notes))
    text = FigureText(
        "Width of the next log's interval of the gain",
        "width, relative to that of random levels",
        "share of worlds",
        "Share of worlds with at most this width. Higher lines are better.",
    )
    series = [{"label": way, "x": d["x"], "mean": d["share"]} for way, d in summary["widths"].items()]
    series.append({"label": "random", "x": [0.0, 1.0, 1.0, WIDTH_GRID[-1]], "mean": [0.0, 0.0, 1.0, 1.0]})
    section.add_figure(partial(draw_lines, series, text, references=["random"]), text.title)


NEXT_LOG_SETUP = f"""\
In each of many random worlds, a {NEXT_LOG_MODEL} model learns from {LOG_ROWS:,} rows and plans for {NEXT_ROWS:,} other customers. The
budget is {percent(NEXT_LOG_BUDGET_SHARE)} of the dearest level's cost. Levels are drawn in three ways: at random for {percent(RATE)} of
the customers, and by `Policy.explore` for evaluation and for learning. All three keep the budget and have the same expected loss of value.
Then the new log is evaluated as any other, doubly robust and cross-fitted.

- **Gain over the mix** is the plan's value minus that of the best uniform mix of levels at the same spend.
- **Gain of a newly learnt policy** is that of a policy that is learnt on the new log.
- **Contains the truth** is the share of worlds whose interval does. Truths are means over the same customers, whose expected responses are
  known. Worlds whose plan is the mix itself are not counted."""
NEXT_LOG_EXPERIMENT = Experiment(
    "next_log",
    "Exploring for the next evaluation",
    measure,
    summarise,
    fill,
    setup=NEXT_LOG_SETUP,
    random_worlds=True,
    one_thread=True,
)
