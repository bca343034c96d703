"""Do intervals of profit contain the truth as often as those of value? Logs of random worlds say so.

Each log is drawn from a world of its own (`worlds.draw_world`), of yes/no responses or amounts; costs are always paid, or on
redemption. A response is worth about what it costs, between half of it and three times as much, so that the best budget is often
neither nothing nor everything. Two policies are judged with a linear model and the propensities that the log holds: a fixed one,
learnt on another log of the world, and plans learnt on the log itself, cross-fitted. The truth is that of fresh customers; for
learnt plans, the mean over folds. `set` is the share of logs in which the budgets that may be the best include the truly best of
those compared, `width` how wide they lie, as a share of all, and `best` the share in which the interval of the chosen budget's
profit contains what plans at that budget truly leave. `joint` is the width of the profit's interval as a share of that of two
intervals, of value and spend, added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from largesse.allocation import decide_at_price, expected_costs
from largesse.errors import Problem, refuse
from largesse.evaluation import (
    crossfit,
    estimate_profit,
    estimate_value,
    plan_budgets,
    score_level,
    score_policy,
    spread_budgets,
    trace_profit,
)
from largesse.levels import Levels
from largesse.records import Array, Estimate, HeldOutPlan, Progress, Scores
from largesse.response import Linear
from largesse.worlds import RandomLog, RandomWorld, draw_world
from largesse_lab.experiments.base import Experiment
from largesse_lab.experiments.coverage import Recorder
from largesse_lab.page.sections import Chapter
from largesse_lab.page.tables import write_table
from largesse_lab.runner.cache import Kept
from largesse_lab.runner.request import Records, Request, check_part, ignore_progress

ROWS, FRESH = 1500, 10_000
LOGS = 500
PENALTY = 0.03  # of the linear model: a fixed one, so that many logs can be judged
RATE = 0.3  # the largest share of an amount that is paid back on redemption
CASES = ("fixed", "learnt")
KINDS = ("value", "spend", "profit", "gain")


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per log: for either policy, on which side of each interval the truth lies, and the best budgets."""
    wrong = check_part(request.part)
    if request.problems is not None or request.rows is not None:
        wrong.append(Problem("profit draws its own worlds and has one model", "leave out --simulations and --models"))
    refuse("experiment", wrong)
    logs = range(LOGS if request.repeats is None else request.repeats)[request.part[0] :: request.part[1]]
    kept = Kept(request.out, ("log",))
    kept.complete([[(log,)] for log in logs], lambda keys: [_measure_log(*keys[0])], progress)
    return kept.take((log,) for log in logs)


@dataclass(frozen=True, eq=False)
class _Fresh:
    """Customers who are not in the log, and what a response is worth."""

    customers: RandomLog
    levels: Levels
    worth: float

    def judge(self, policies: Sequence[Array]) -> dict[str, float]:
        """Return the true value, spend and profit of levels (n,) for fresh customers, averaged over policies."""
        truth, rows = self.customers.truth, np.arange(len(self.customers))
        costs = expect_costs(self.levels, truth)
        value = float(np.mean([truth[rows, levels].mean() for levels in policies]))
        spend = float(np.mean([costs[rows, levels].mean() for levels in policies]))
        profit = self.worth * value - spend
        least = self.worth * float(truth[:, 0].mean()) - float(costs[:, 0].mean())
        return {"value": value, "spend": spend, "profit": profit, "gain": profit - least}


def expect_costs(levels: Levels, truth: Array) -> Array:
    """Return what levels cost customers (n, K) whose expected responses are known."""
    return np.broadcast_to(expected_costs(levels, truth), truth.shape)


def _draw(seed: int) -> tuple[RandomWorld, Levels]:
    """Return the world of a log, and its levels: every other world pays on redemption."""
    world = next(
        world for place in range(1000) if (world := draw_world(1000 * place + seed)).traits.response != "gaussian"
    )
    redeemed = seed % 2 == 1
    if not redeemed:
        return world, Levels(costs=world.doses)
    amounts = world.traits.response == "amounts"
    costs = (RATE if amounts else 1.0) * world.doses / world.doses[-1]
    return world, Levels(costs=costs, on_redemption="per unit" if amounts else True)


def _measure_log(seed: int) -> dict[str, Any]:
    world, levels = _draw(seed)
    customers = world.draw_fresh(FRESH)
    costs, truth = expect_costs(levels, customers.truth).mean(axis=0), customers.truth.mean(axis=0)
    share = float(np.exp(np.random.default_rng(seed).uniform(-0.7, 1.1)))
    worth = share * float((costs[-1] - costs[0]) / (truth[-1] - truth[0]))
    fresh = _Fresh(customers, levels, worth)
    log = replace(world.draw_log(ROWS).log, levels=levels, response_value=worth)
    model = Linear(penalty=PENALTY).fit(replace(world.draw_fresh(ROWS, 2).log, levels=levels))
    watched = Recorder(model=Linear(penalty=PENALTY), fresh=customers.table, seen=[])
    scores = crossfit(log, watched, seed=seed)
    fixed, elsewhere = (_decide(model.predict(table), levels, 1 / worth) for table in (log.features, customers.table))
    budgets = spread_budgets(scores)
    plans = plan_budgets(scores, budgets)
    middle = plans[len(plans) // 2]
    traits = world.traits
    return {
        "log": seed,
        "rows": ROWS,
        "response": traits.response,
        "way": traits.log,
        "paid": "on redemption" if levels.on_redemption else "always",
        "fixed": _judge(scores, fixed, worth, fresh.judge([elsewhere])),
        "learnt": _judge(scores, middle.levels, worth, fresh.judge(_follow(middle, watched.seen, levels))),
        **_judge_best(scores, plans, middle.budget, fresh, watched.seen),
    }


def _decide(curves: Array, levels: Levels, price: float) -> Array:
    return decide_at_price(curves, expect_costs(levels, curves), price)


def _follow(plan: HeldOutPlan, seen: Sequence[Array], levels: Levels) -> list[Array]:
    """Return the levels (n,) that each fold's model and price give fresh customers."""
    prices = plan.prices if plan.scales is None else plan.prices * plan.scales
    return [_decide(curves, levels, float(price)) for curves, price in zip(seen, prices, strict=True)]


def _judge(scores: Scores, policy: Array, worth: float, truth: dict[str, float]) -> dict[str, Any]:
    """Return for each estimate whether its interval contains the truth; None where there is no interval."""
    value, spend = estimate_value(scores, policy)
    profit = estimate_profit(scores, score_policy(scores, policy), score_level(scores, 0), worth)
    found = dict(zip(KINDS, (value, spend, profit.own, profit.gain), strict=True))
    apart = worth * (value.high - value.low) + spend.high - spend.low
    joint = (profit.own.high - profit.own.low) / apart if apart > 0 else np.nan
    hits = {name: contains(estimate, truth[name]) for name, estimate in found.items()}
    return {**hits, "joint": float(joint) if np.isfinite(joint) else None}


def contains(estimate: Estimate, truth: float) -> bool | None:
    """Whether an interval contains the truth, up to rounding; None where there is no interval."""
    if not np.isfinite(estimate.low):
        return None
    slack = 1e-9 * max(abs(truth), abs(estimate.estimate))
    return bool(estimate.low - slack <= truth <= estimate.high + slack)


def _judge_best(
    scores: Scores, plans: Sequence[HeldOutPlan], budget: float, fresh: _Fresh, seen: Sequence[Array]
) -> dict[str, Any]:
    """Return whether the truly best budget is among those that may be, how wide they lie, and what the chosen one loses."""
    _, best = trace_profit(scores, plans, fresh.worth, budget)
    true = np.array([fresh.judge(_follow(plan, seen, fresh.levels))["profit"] for plan in plans])
    budgets = np.array([plan.budget for plan in plans])
    kept = (budgets >= best.low) & (budgets <= best.high)
    chosen, apart = true[budgets == best.budget][0], float(np.ptp(true))
    return {
        "set": bool(kept[true >= true.max() - 1e-9 * max(apart, 1e-300)].any()),
        "width": float(kept.mean()),
        "best": contains(best.profit, float(chosen)),
        "lost": float(true.max() - chosen) / apart if apart > 0 else 0.0,
    }


# -- the table ---------------------------------------------------------------------------------------------------------


def tabulate(records: Records) -> str:
    """Return as Markdown how often intervals contain the truth, over all logs and by kinds of logs."""
    body = [_write_row("all", records)]
    for word, title in (("paid", "paid "), ("response", ""), ("way", "log: ")):
        kinds = sorted({record[word] for record in records})
        body += [_write_row(f"{title}{kind}", [r for r in records if r[word] == kind]) for kind in kinds]
    head = f"{len(records)} logs of {records[0]['rows'] if records else ROWS:,} rows, each from a random world of its own.\n\n"
    names = [f"{case}: {kind}" for case in CASES for kind in KINDS]
    return head + write_table(["logs", "n", *names, "joint", "set", "width", "best", "lost"], body) + "\n"


def _write_row(name: str, records: Records) -> list[str]:
    hits = [[record[case][kind] for record in records] for case in CASES for kind in KINDS]
    joint = [record[case]["joint"] for record in records for case in CASES]
    last = ([record[key] for record in records] for key in ("set", "width", "best", "lost"))
    return [name, str(len(records)), *(_share(each) for each in (*hits, joint, *last))]


def _share(found: Sequence[Any]) -> str:
    known = [float(one) for one in found if one is not None]
    return f"{np.mean(known):.1%}" if known else "–"


EXPERIMENT = Experiment("profit", measure, tabulate, Chapter("What is left after costs"))
