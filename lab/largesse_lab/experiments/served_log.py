"""Does a log that a service draws tell as much as one that a plan draws? New customers of random worlds, at the same rate.

A model learns from a log of a drawn world, and a policy that explores for evaluation is calibrated on customers who are not in
it. Then others come. Their levels are drawn in four ways: by a plan that is made for them and explores (they must all be there), by
the policy one by one, by a ledger around the price of the moment, and by a plan that gives a share of them a level at random.
Every log is evaluated as any other: what the plan, or the policy, gains over one mix of levels.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from typing import Any

import numpy as np

from largesse.allocation import allocate, mix_two_levels
from largesse.errors import BudgetError, percent
from largesse.evaluation import crossfit, estimate_difference
from largesse.policy import Policy
from largesse.records import Array, Progress
from largesse.response import make_model
from largesse.serve import DAY, LedgerTerms, Pacer, make_offers, make_population, open_ledger, plan_pace
from largesse.worlds import RandomLog, RandomWorld, draw_world
from largesse_lab.experiments.base import Experiment
from largesse_lab.page.sections import Chapter
from largesse_lab.page.tables import write_table
from largesse_lab.runner.cache import Kept
from largesse_lab.runner.request import Records, Request, ignore_progress, take_seeds

ROWS = 5000  # of the log, of the customers that a policy is calibrated on, and of those who come
FIRST, WORLDS = 7000, 30
RATE, SHARE, MODEL = 0.05, 0.25, "linear"  # as in `next_log`
WAYS = {"plan": "a plan for these customers", "served": "a service", "ledger": "a ledger", "random": "at random"}
MAX_CUSTOMERS, DAYS = 100, 30  # customers of a request to the ledger, and days of its period


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per world: intervals of the gain, whether they cover, and what levels cost beside the budget."""
    todo = [(seed,) for seed in take_seeds(request, FIRST, WORLDS)]
    kept = Kept(request.out, ("seed",))
    kept.complete([[key] for key in todo], lambda keys: [_measure_world(*keys[0])], progress)
    return kept.take(todo)


def _measure_world(seed: int) -> dict[str, Any]:
    world = draw_world(seed)
    log, known, new = world.draw_log(ROWS).log, world.draw_fresh(ROWS), world.draw_fresh(ROWS, 1)
    budget, policy = SHARE * float(world.doses[-1]), Policy(make_model(MODEL, seed).fit(log), log.levels)
    try:
        plan = policy.explore(new.table, budget, rate=RATE, log=log, seed=seed)
        policy = policy.calibrate(known.table, budget, explore=RATE, explore_for="evaluation", log=log)
    except BudgetError as error:
        return {"seed": seed, "refused": str(error)}
    curves, served = policy.model.predict(new.table), policy.decide(new.table)
    mix = mix_two_levels(curves.mean(axis=0), world.doses, float(world.doses[plan.plan].mean()))
    rest = (budget - RATE * float(world.doses.mean())) / (1 - RATE)
    alike = (1 - RATE) * np.eye(len(mix))[allocate(curves, world.doses, rest).levels] + RATE / len(mix)
    drawn = {
        way: (world.draw_next(ROWS, lambda _, given=given: given, 1), float((given @ world.doses).mean()))  # type: ignore[misc]
        for way, given in (("plan", plan.probabilities), ("served", policy.probabilities(new.table)), ("random", alike))
    }
    drawn["ledger"] = _draw_by_ledger(world, policy, known, new, budget)
    ways = {}
    for way in WAYS:
        levels = served if way in ("served", "ledger") else plan.plan
        ways[way] = _judge(world, drawn[way][0], levels, mix) | {"spend": drawn[way][1] / budget}
    return {"seed": seed, "ways": ways}


def _draw_by_ledger(
    world: RandomWorld, policy: Policy, known: RandomLog, new: RandomLog, budget: float
) -> tuple[RandomLog, float]:
    """Return the log of customers who come one after the other and are decided by a ledger, and what they cost on average."""
    assert policy.exploration is not None
    terms = LedgerTerms(int(budget * ROWS * 1e6), 0, DAYS * DAY)
    plan = plan_pace(make_population(policy, known.table), terms, ROWS, exploration=policy.exploration)
    names, pacer, found = [f"c{i}" for i in range(ROWS)], Pacer(world.seed), []
    with (
        tempfile.TemporaryDirectory() as folder,
        open_ledger(f"sqlite:///{folder}/x.db", terms, plan=plan.as_dict()) as ledger,
    ):
        for first in range(0, ROWS, MAX_CUSTOMERS):
            some = new.table.slice(first, MAX_CUSTOMERS)
            offers = make_offers(policy, some, names[first : first + len(some)])
            now = int((first + len(some) / 2) / ROWS * DAYS * DAY)
            found.append(ledger.decide(f"r{first}", offers, pacer, now=now))
        spent = ledger.standing(now=DAYS * DAY - 1).spent / 1e6 / ROWS
    levels, propensity = (np.concatenate([getattr(one, word) for one in found]) for word in ("levels", "propensity"))
    given = np.eye(len(world.doses))[levels]
    log = world.draw_next(ROWS, lambda _: given, 1)
    return replace(log, propensities=given * propensity[:, None]), spent


def _judge(world: RandomWorld, new: RandomLog, levels: Array, mix: Array) -> dict[str, Any]:
    scores = crossfit(new.log, make_model(MODEL, world.seed), seed=world.seed)
    found = estimate_difference(scores, levels, mix).value
    truth = new.value(levels) - float(new.truth.mean(axis=0) @ mix)
    wide = found.high - found.low
    usable = bool(np.isfinite(wide) and found.se > 0)  # a plan that is the mix has no gain to miss
    return {
        "width": float(wide) if usable else None,
        "inside": bool(found.low <= truth <= found.high) if usable else None,
    }


def tabulate(records: Records) -> str:
    """Return widths beside those of the plan's own log, how often intervals contain the truth, and the spend, as Markdown."""
    some = [record["ways"] for record in records if "ways" in record]
    some = [ways for ways in some if all(way["width"] is not None for way in ways.values())]
    body = []
    for way, title in WAYS.items() if some else ():
        ratios = np.log([ways[way]["width"] / ways["plan"]["width"] for ways in some])
        spend = np.array([ways[way]["spend"] for ways in some])
        mean, se = float(np.exp(ratios.mean())), float(np.exp(ratios.mean()) * ratios.std() / np.sqrt(len(some)))
        shape = [f"{mean:.2f} ± {se:.2f}", f"{float(np.exp(np.median(ratios))):.2f}"]
        inside = percent(float(np.mean([ways[way]["inside"] for ways in some])), 1)
        costs = f"{spend.mean():.3f} ({spend.min():.3f} to {spend.max():.3f})"
        body.append([title, str(len(some)), *shape, inside, costs])
    shape = ["width (geometric mean ± se)", "median", "contains the truth", "spend of the budget"]
    left = f"{len(records) - len(some)} of {len(records)} worlds left out: no room to explore, or nothing to gain.\n"
    return f"{write_table(['levels drawn by', 'worlds', *shape], body)}\n\n{left}"


SETUP = f"""\
In each of many random worlds, a {MODEL} model learns from {ROWS:,} rows. A policy that explores for evaluation, at a rate of
{percent(RATE)}, is calibrated on {ROWS:,} other customers at a budget of {percent(SHARE)} of the dearest level. Then {ROWS:,} more
come. Widths of 95 % intervals of the gain are relative to those of a plan that is made for just these customers and explores at
the same rate."""

EXPERIMENT = Experiment(
    "served_log", measure, tabulate, Chapter("The log of a service", SETUP), drawn=True, one_thread=True
)
