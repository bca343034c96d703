"""How precise is the next log's evaluation? Exploring for it against levels at random that give up as much, on random worlds.

A model learns from a log of a drawn world and plans for customers of that world who are not in it. Their levels are drawn in
three ways, within one budget and at one expected cost: at random for a share of the customers, and by `Policy.explore` for
evaluation and for learning. Their responses follow from the truth. Then the new log is evaluated as any other: the plan's gain
over the best uniform mix, its value, and what a policy learnt on the new log gains. Truths are means over the same customers,
whose expected responses are known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from largesse.allocation import allocate, mix_two_levels
from largesse.errors import BudgetError, percent
from largesse.evaluation import crossfit, estimate_difference, estimate_gain, estimate_value, plan_held_out
from largesse.policy import Policy
from largesse.records import Array, Estimate, Exploration, Progress
from largesse.response import make_model
from largesse.worlds import RandomLog, RandomWorld, draw_world
from largesse_lab.experiments.base import Experiment
from largesse_lab.page.campaign_loop import fill_next_log, tabulate_next_log
from largesse_lab.page.sections import Chapter
from largesse_lab.runner.cache import Kept
from largesse_lab.runner.request import Records, Request, ignore_progress, take_seeds

ROWS, NEXT = 5000, 5000
FIRST = 3000  # the first seed: worlds nobody looked at while choosing
WORLDS = 100
RATE = 0.05  # customers whose random levels would cost as much
SHARE = 0.25  # the budget, as a share of the dearest level
MODEL = "linear"
WAYS = ("random", "evaluation", "learning")
GRID = np.round(np.arange(0.0, 2.01, 0.05), 2)  # where the distribution of widths is drawn
TITLES = {"gain": "gain over the mix", "plan": "value of the plan", "own": "gain of a policy learnt anew"}


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per world and model: intervals of the next log, whether they cover, and what exploring gave up."""
    seeds = take_seeds(request, FIRST, WORLDS)
    models = [MODEL] if request.rows is None else request.rows
    sizes = [NEXT] if request.sizes is None else request.sizes
    todo = [(seed, model, rows) for seed in seeds for model in models for rows in sizes]
    kept = Kept(request.out, ("seed", "model", "rows"))
    kept.complete([[key] for key in todo], lambda keys: [_measure_world(*keys[0])], progress)
    return kept.take(todo)


def _measure_world(seed: int, name: str, rows: int) -> dict[str, Any]:
    world = draw_world(seed)
    log = world.draw_log(ROWS).log
    policy = Policy(make_model(name, seed).fit(log), log.levels)
    budget, fresh = SHARE * float(world.doses[-1]), world.draw_fresh(rows)
    record: dict[str, Any] = {"seed": seed, "model": name, "rows": rows, "traits": world.traits.regimes, "ways": {}}
    found: dict[str, Exploration] = {}
    for way in WAYS[1:]:
        try:
            found[way] = policy.explore(fresh.table, budget, goal=way, rate=RATE, log=log, seed=seed)
        except BudgetError as error:
            return record | {"refused": str(error)}
    plan = found["evaluation"].plan
    curves = policy.model.predict(fresh.table)
    spend = float(world.doses[plan].mean())
    mix = mix_two_levels(curves.mean(axis=0), world.doses, spend)
    designs = {way: found[way].probabilities for way in WAYS[1:]}
    designs["random"] = _explore_at_random(curves, world.doses, budget)
    predicted = dict(zip(("evaluation", "random"), found["evaluation"].precisions, strict=False))
    for way in WAYS:
        new = world.draw_next(rows, lambda _table, way=way: designs[way])  # type: ignore[misc]
        record["ways"][way] = _judge(world, new, plan, mix, budget, name) | {
            "given_up": fresh.value(plan) - float((designs[way] * fresh.truth).sum(axis=1).mean()),
            "spend": float((designs[way] * world.doses).sum(axis=1).mean()),
            "predicted": predicted[way].gain_se if way in predicted else None,
            "drawn": float(world.doses[new.level].mean()),
        }
    return record | {"plan_gain": fresh.value(plan) - float(fresh.truth.mean(axis=0) @ mix), "budget": budget}


def _explore_at_random(curves: Array, costs: Array, budget: float) -> Array:
    """Return the probabilities (n, K) of giving a share of customers a level at random, the others a plan for the rest."""
    rest = (budget - RATE * float(costs.mean())) / (1 - RATE)
    levels = allocate(curves, costs, rest).levels
    return (1 - RATE) * np.eye(len(costs))[levels] + RATE / len(costs)


def _judge(world: RandomWorld, new: RandomLog, plan: Array, mix: Array, budget: float, name: str) -> dict[str, Any]:
    """Return the new log's intervals of the plan's gain and value, and of the gain of a policy that is learnt on it."""
    scores = crossfit(new.log, make_model(name, world.seed), seed=world.seed)
    gain = estimate_difference(scores, plan, mix).value
    value = estimate_value(scores, plan)[0]
    own = estimate_gain(scores, plan_held_out(scores, budget).levels)
    truth = new.value(plan)
    return {
        "gain": _describe(gain, truth - float(new.truth.mean(axis=0) @ mix)),
        "plan": _describe(value, truth),
        "own": _describe(own, None),
    }


def _describe(found: Estimate, truth: float | None) -> dict[str, Any]:
    """Return an interval's width, and whether it contains the truth where that is known."""
    known = truth is not None and np.isfinite(found.low) and found.se > 0  # a plan that is the mix has no gain to miss
    inside = bool(found.low <= truth <= found.high) if known and truth is not None else None
    wide = found.high - found.low
    error = None if truth is None else found.estimate - truth
    return {"width": float(wide) if np.isfinite(wide) else None, "inside": inside, "error": error, "se": found.se}


def summarise(records: Records) -> dict[str, Any]:
    """Return widths of intervals relative to levels at random, how often they contain the truth, and what exploring gave up."""
    some = [record for record in records if "refused" not in record]
    rows = []
    for key, title in TITLES.items():
        for way in WAYS:
            found = summarise_widths(some, key, way)
            rows += [{"key": key, "interval": title, "way": way, **found}] if found["worlds"] else []
    gains = sum(abs(record["plan_gain"]) for record in some)
    lost = {way: sum(record["ways"][way]["given_up"] for record in some) for way in WAYS}
    return {
        "rows": rows,
        "given_up": {way: total / max(gains, 1e-300) for way, total in lost.items()},
        "refused": len(records) - len(some),
        "equal": sum(not record["ways"]["random"]["gain"]["se"] > 0 for record in some),
        "widths": {way: _distribute(find_ratios(some, "gain", way)) for way in WAYS[1:]},
    }


def find_ratios(records: Records, key: str, way: str) -> Array:
    """Return the widths of intervals relative to those of levels at random, where both have a width."""
    pairs = [(record["ways"][way][key]["width"], record["ways"]["random"][key]["width"]) for record in records]
    return np.array([one / other for one, other in pairs if one and other])


def summarise_widths(records: Records, key: str, way: str) -> dict[str, Any]:
    """Return the widths of intervals relative to those of levels at random, and how often intervals contain the truth."""
    ratios = find_ratios(records, key, way)
    found = [record["ways"][way][key] for record in records]
    # A plan that is the mix has no gain to miss.
    inside = [one["inside"] for one in found if one["inside"] is not None and one["se"] > 0]
    if not len(ratios):
        return {"worlds": 0}
    return {
        "worlds": len(ratios),
        "mean": float(np.exp(np.log(ratios).mean())),
        "median": float(np.median(ratios)),
        "half": float((ratios <= 0.5).mean()),
        "wider": float((ratios > 1).mean()),
        "inside": float(np.mean(inside)) if inside else None,
        "judged": len(inside),
    }


def _distribute(ratios: Array) -> dict[str, list[float]]:
    """Return the share of worlds whose width is at most each value of the grid."""
    ratios = np.sort(ratios)
    share = np.searchsorted(ratios, GRID + 1e-9, side="right") / max(len(ratios), 1)
    return {"x": GRID.tolist(), "share": share.round(4).tolist()}


def tabulate(records: Records) -> str:
    """Return widths relative to levels at random, coverage, and what exploring gave up, as Markdown."""
    return tabulate_next_log(summarise(records))


SETUP = f"""\
In each of many random worlds, a {MODEL} model learns from {ROWS:,} rows and plans for {NEXT:,} other customers at a budget of
{percent(SHARE)} of the dearest level. Their levels are drawn in three ways: at random for {percent(RATE)} of them, and by
`Policy.explore` for evaluation and for learning. All three keep the budget and are expected to give up the same value.
Then the new log is evaluated as any other, doubly robust and cross-fitted.

- **Gain over the mix** is what the plan brings more than the best uniform mix of levels at the same spend.
- **Gain of a policy learnt anew** is that of a policy that is learnt on the new log.
- **Contains the truth** is the share of worlds whose interval does. Truths are means over the same customers, whose expected responses are
  known; a plan that is the mix itself has no gain to miss, and is not counted."""


EXPERIMENT = Experiment(
    "next_log",
    measure,
    tabulate,
    Chapter("Exploring for the next evaluation", SETUP, fill=fill_next_log),
    summarise,
    drawn=True,
    one_thread=True,
)
