"""Precision of gain estimates from the log of a decision service, compared with the log of a plan.

A model learns from a log of a drawn world, and a policy that explores for evaluation is calibrated on customers who are not in
it. Then others come. Their levels are drawn in four ways: by an exploring plan for just these customers, by the policy one by one, by
a ledger around its current price, and by a plan that gives a share of them a random level. Every log is evaluated as any
other: the gain of the plan, or of the policy, over one mix of levels.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from typing import Any

import numpy as np

from largesse.allocation import allocate, mix_two_levels
from largesse.errors import BudgetError, percent
from largesse.evaluation import crossfit_scores, estimate_policy_difference
from largesse.policy import Policy
from largesse.records import Array, Progress
from largesse.response import make_model
from largesse.serve import DAY_MICROS, LedgerTerms, Pacer, make_offers, make_population, open_ledger, plan_pace
from largesse.worlds import RandomLog, RandomWorld, draw_world
from largesse_lab.experiments.experiment_definition import table_experiment
from largesse_lab.pages.markdown import format_table
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress, select_requested_seeds
from largesse_lab.runner.record_cache import RecordCache

SERVED_LOG_ROWS = 5000  # also the number of customers that a policy is calibrated on, and of new customers
FIRST_SEED, N_WORLDS = 7000, 30
RATE, BUDGET_SHARE, MODEL = 0.05, 0.25, "linear"  # as in `next_log`
SERVING_WAYS = {
    "plan": "a plan for these customers",
    "served": "a service",
    "ledger": "a ledger",
    "random": "at random",
}
MAX_CUSTOMERS, DAYS = 100, 30  # customers of a request to the ledger, and days of its period


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per simulated world: the gain's interval width, its coverage, and the spend."""
    keys = [(seed,) for seed in select_requested_seeds(request, FIRST_SEED, N_WORLDS)]
    return RecordCache(request.out, ("seed",)).measure_each(keys, _measure_world, progress)


def _measure_world(seed: int) -> dict[str, Any]:
    world = draw_world(seed)
    log, known, new = (
        world.draw_log(SERVED_LOG_ROWS).log,
        world.draw_fresh(SERVED_LOG_ROWS),
        world.draw_fresh(SERVED_LOG_ROWS, 1),
    )
    budget, policy = BUDGET_SHARE * float(world.doses[-1]), Policy(make_model(MODEL, seed).fit(log), log.levels)
    try:
        plan = policy.explore(new.table, budget, rate=RATE, log=log, seed=seed)
        policy = policy.calibrate(known.table, budget, explore=RATE, explore_for="evaluation", log=log)
    except BudgetError as error:
        return {"seed": seed, "refused": str(error)}
    curves, served = policy.model.predict(new.table), policy.decide(new.table)
    mix = mix_two_levels(curves.mean(axis=0), world.doses, float(world.doses[plan.plan].mean()))
    remaining = (budget - RATE * float(world.doses.mean())) / (1 - RATE)
    random = (1 - RATE) * np.eye(len(mix))[allocate(curves, world.doses, remaining).levels] + RATE / len(mix)
    designs = {"plan": plan.probabilities, "served": policy.probabilities(new.table), "random": random}
    drawn = {
        way: (world.draw_next(SERVED_LOG_ROWS, lambda _, p=p: p, 1), float((p @ world.doses).mean()))  # type: ignore[misc]
        for way, p in designs.items()
    }
    drawn["ledger"] = _draw_log_by_ledger(world, policy, known, new, budget)
    ways = {}
    for way in SERVING_WAYS:
        levels = served if way in ("served", "ledger") else plan.plan
        ways[way] = _record_gain_interval(world, drawn[way][0], levels, mix) | {"spend": drawn[way][1] / budget}
    return {"seed": seed, "ways": ways}


def _draw_log_by_ledger(
    world: RandomWorld, policy: Policy, known: RandomLog, new: RandomLog, budget: float
) -> tuple[RandomLog, float]:
    """Return the log of customers whose levels a ledger chose in order of arrival, and their mean cost."""
    assert policy.exploration is not None
    terms = LedgerTerms(int(budget * SERVED_LOG_ROWS * 1e6), 0, DAYS * DAY_MICROS)
    plan = plan_pace(make_population(policy, known.table), terms, SERVED_LOG_ROWS, exploration=policy.exploration)
    names, pacer, decisions = [f"c{i}" for i in range(SERVED_LOG_ROWS)], Pacer(world.seed), []
    with (
        tempfile.TemporaryDirectory() as folder,
        open_ledger(f"sqlite:///{folder}/x.db", terms, plan=plan.as_dict()) as ledger,
    ):
        for first in range(0, SERVED_LOG_ROWS, MAX_CUSTOMERS):
            batch = new.table.slice(first, MAX_CUSTOMERS)
            offers = make_offers(policy, batch, names[first : first + len(batch)])
            now = int((first + len(batch) / 2) / SERVED_LOG_ROWS * DAYS * DAY_MICROS)
            decisions.append(ledger.decide(f"r{first}", offers, pacer, now=now))
        spent = ledger.standing(now=DAYS * DAY_MICROS - 1).spent / 1e6 / SERVED_LOG_ROWS
    levels = np.concatenate([decision.levels for decision in decisions])
    propensity = np.concatenate([decision.propensity for decision in decisions])
    certain = np.eye(len(world.doses))[levels]
    log = world.draw_next(SERVED_LOG_ROWS, lambda _: certain, 1)
    return replace(log, propensities=certain * propensity[:, None]), spent


def _record_gain_interval(world: RandomWorld, new: RandomLog, levels: Array, mix: Array) -> dict[str, Any]:
    scores = crossfit_scores(new.log, make_model(MODEL, world.seed), seed=world.seed)
    gain = estimate_policy_difference(scores, levels, mix).value
    truth = new.value(levels) - float(new.truth.mean(axis=0) @ mix)
    width = gain.high - gain.low
    testable = bool(np.isfinite(width) and gain.se > 0)  # a plan that equals the mix has no gain
    return {
        "width": float(width) if testable else None,
        "inside": bool(gain.low <= truth <= gain.high) if testable else None,
    }


def tabulate(records: Records) -> str:
    """Return a Markdown table of interval widths relative to those with a plan, coverage and spend."""
    ways_of_worlds = [record["ways"] for record in records if "ways" in record]
    worlds = [ways for ways in ways_of_worlds if all(way["width"] is not None for way in ways.values())]
    body = []
    for way, title in SERVING_WAYS.items() if worlds else ():
        ratios = np.log([ways[way]["width"] / ways["plan"]["width"] for ways in worlds])
        spend = np.array([ways[way]["spend"] for ways in worlds])
        mean, se = float(np.exp(ratios.mean())), float(np.exp(ratios.mean()) * ratios.std() / np.sqrt(len(worlds)))
        widths = [f"{mean:.2f} ± {se:.2f}", f"{float(np.exp(np.median(ratios))):.2f}"]
        inside = percent(float(np.mean([ways[way]["inside"] for ways in worlds])), 1)
        costs = f"{spend.mean():.3f} ({spend.min():.3f} to {spend.max():.3f})"
        body.append([title, str(len(worlds)), *widths, inside, costs])
    widths = ["width (geometric mean ± se)", "median", "contains the truth", "spend / budget"]
    excluded = f"{len(records) - len(worlds)} of {len(records)} worlds are excluded: no room to explore, or no gain."
    return f"{format_table(['levels drawn by', 'worlds', *widths], body)}\n\n{excluded}"


SERVED_LOG_SETUP = f"""\
In each of many random worlds, a {MODEL} model learns from {SERVED_LOG_ROWS:,} rows. A policy that explores for evaluation, at a rate of
{percent(RATE)}, is calibrated on {SERVED_LOG_ROWS:,} other customers at a budget of {percent(BUDGET_SHARE)} of the dearest level's
cost. Then {SERVED_LOG_ROWS:,} more customers come.
Widths of 95 % intervals of the gain are relative to those of a plan that is made for just these customers
and explores at the same rate."""
SERVED_LOG_EXPERIMENT = table_experiment(
    "served_log", "The log of a service", measure, tabulate, setup=SERVED_LOG_SETUP, random_worlds=True, one_thread=True
)
