"""Coverage of profit intervals, compared with value intervals, on logs of random simulated worlds.

Each log is drawn from a world of its own (`worlds.draw_world`), of yes/no responses or amounts; costs are always paid, or on
redemption. A response is worth between half of its cost and three times as much, so that the best budget is often neither zero nor
the largest. Two policies are judged with a linear model and the propensities that the log holds: a fixed one,
learnt on another log of the world, and plans learnt on the log itself, cross-fitted. The truth is that of fresh customers; for
learnt plans, the mean over folds. `set` is the share of logs in which the budgets that may be the best include the truly best of
those compared, `width` their number as a share of all, and `best` the share in which the interval of the chosen budget's
profit contains the true profit of plans at that budget. `joint` is the width of the profit's interval as a share of that of two
intervals, of value and spend, added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from largesse.allocation import decide_at_price, expected_costs
from largesse.errors import Problem, fail
from largesse.evaluation import (
    crossfit_scores,
    estimate_policy_value_and_spend,
    estimate_profit,
    estimate_profit_by_budget,
    make_budget_grid,
    measure_level_influence,
    measure_policy_influence,
    plan_at_budgets,
)
from largesse.levels import Levels
from largesse.records import Array, Estimate, HeldOutPlan, Progress, Scores
from largesse.response import Linear
from largesse.worlds import RandomLog, RandomWorld, draw_world
from largesse_lab.experiments.experiment_definition import table_experiment
from largesse_lab.experiments.interval_coverage import FreshCurveRecorder
from largesse_lab.pages.markdown import format_table
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress, select_repeats_of_part
from largesse_lab.runner.record_cache import RecordCache

LOG_ROWS, FRESH_ROWS = 1500, 10_000
PROFIT_LOGS = 500
PROFIT_PENALTY = 0.03  # of the linear model: a fixed one, so that many logs can be judged
MAX_REFUND = 0.3  # the largest share of an amount that is paid back on redemption
PROFIT_CASES = ("fixed", "learnt")
MEASURED_INTERVALS = ("value", "spend", "profit", "gain")


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per log: the coverage of value, spend and profit intervals, and the best budget."""
    if request.problems is not None or request.models is not None:
        what = "profit draws its own worlds and has one model"
        fail("experiment", Problem(what, "leave out --simulations and --models"))
    logs = select_repeats_of_part(PROFIT_LOGS if request.repeats is None else request.repeats, request.part)
    return RecordCache(request.out, ("log",)).measure_each([(log,) for log in logs], _measure_log, progress)


@dataclass(frozen=True, eq=False)
class _FreshProfits:
    """Customers outside the log with known responses, and the money value of a response."""

    customers: RandomLog
    levels: Levels
    worth: float

    def measure_true_profit(self, policies: Sequence[Array]) -> dict[str, float]:
        """Return the true value, spend and profit of policies for new simulated customers."""
        truth, rows = self.customers.truth, np.arange(len(self.customers))
        costs = compute_expected_level_costs(self.levels, truth)
        value = float(np.mean([truth[rows, levels].mean() for levels in policies]))
        spend = float(np.mean([costs[rows, levels].mean() for levels in policies]))
        profit = self.worth * value - spend
        cheapest = self.worth * float(truth[:, 0].mean()) - float(costs[:, 0].mean())
        return {"value": value, "spend": spend, "profit": profit, "gain": profit - cheapest}


def compute_expected_level_costs(levels: Levels, responses: Array) -> Array:
    """Return the expected costs (n, K) of all levels for customers with expected responses (n, K)."""
    return np.broadcast_to(expected_costs(levels, responses), responses.shape)


def _draw_world_and_levels(seed: int) -> tuple[RandomWorld, Levels]:
    """Return a random simulated world and its levels, with costs paid on redemption if the seed is odd."""
    world = next(
        world for place in range(1000) if (world := draw_world(1000 * place + seed)).traits.response != "gaussian"
    )
    redeemed = seed % 2 == 1
    if not redeemed:
        return world, Levels(costs=world.doses)
    amounts = world.traits.response == "amounts"
    costs = (MAX_REFUND if amounts else 1.0) * world.doses / world.doses[-1]
    return world, Levels(costs=costs, on_redemption="per unit" if amounts else True)


def _measure_log(seed: int) -> dict[str, Any]:
    world, levels = _draw_world_and_levels(seed)
    customers = world.draw_fresh(FRESH_ROWS)
    costs, truth = compute_expected_level_costs(levels, customers.truth).mean(axis=0), customers.truth.mean(axis=0)
    share = float(np.exp(np.random.default_rng(seed).uniform(-0.7, 1.1)))
    worth = share * float((costs[-1] - costs[0]) / (truth[-1] - truth[0]))
    fresh = _FreshProfits(customers, levels, worth)
    log = replace(world.draw_log(LOG_ROWS).log, levels=levels, response_value=worth)
    model = Linear(penalty=PROFIT_PENALTY).fit(replace(world.draw_fresh(LOG_ROWS, 2).log, levels=levels))
    recorder = FreshCurveRecorder(model=Linear(penalty=PROFIT_PENALTY), fresh=customers.table, fresh_curves=[])
    scores = crossfit_scores(log, recorder, seed=seed)
    fixed, fixed_fresh = (
        _decide_levels(model.predict(table), levels, 1 / worth) for table in (log.features, customers.table)
    )
    budgets = make_budget_grid(scores)
    plans = plan_at_budgets(scores, budgets)
    middle = plans[len(plans) // 2]
    traits = world.traits
    return {
        "log": seed,
        "rows": LOG_ROWS,
        "response": traits.response,
        "way": traits.log,
        "paid": "on redemption" if levels.on_redemption else "always",
        "fixed": _record_interval_hits(scores, fixed, worth, fresh.measure_true_profit([fixed_fresh])),
        "learnt": _record_interval_hits(
            scores,
            middle.levels,
            worth,
            fresh.measure_true_profit(_decide_fresh_levels(middle, recorder.fresh_curves, levels)),
        ),
        **_check_best_budget(scores, plans, middle.budget, fresh, recorder.fresh_curves),
    }


def _decide_levels(curves: Array, levels: Levels, price: float) -> Array:
    return decide_at_price(curves, compute_expected_level_costs(levels, curves), price)


def _decide_fresh_levels(plan: HeldOutPlan, fresh_curves: Sequence[Array], levels: Levels) -> list[Array]:
    """Return the levels (n,) of customers outside the log, one array per fold's model and shadow price."""
    prices = plan.prices if plan.scales is None else plan.prices * plan.scales
    return [_decide_levels(curves, levels, float(price)) for curves, price in zip(fresh_curves, prices, strict=True)]


def _record_interval_hits(scores: Scores, policy: Array, worth: float, truth: dict[str, float]) -> dict[str, Any]:
    """Return a flag per estimate: True if its interval contains the truth, None without an interval."""
    value, spend = estimate_policy_value_and_spend(scores, policy)
    profit = estimate_profit(
        scores, measure_policy_influence(scores, policy), measure_level_influence(scores, 0), worth
    )
    estimates = dict(zip(MEASURED_INTERVALS, (value, spend, profit.own, profit.gain), strict=True))
    added = worth * (value.high - value.low) + spend.high - spend.low
    joint = (profit.own.high - profit.own.low) / added if added > 0 else np.nan
    hits = {name: interval_contains_truth(estimate, truth[name]) for name, estimate in estimates.items()}
    return {**hits, "joint": float(joint) if np.isfinite(joint) else None}


def interval_contains_truth(estimate: Estimate, truth: float) -> bool | None:
    """Return True if an interval contains the truth up to rounding, or None without an interval."""
    if not np.isfinite(estimate.low):
        return None
    slack = 1e-9 * max(abs(truth), abs(estimate.estimate))
    return bool(estimate.low - slack <= truth <= estimate.high + slack)


def _check_best_budget(
    scores: Scores, plans: Sequence[HeldOutPlan], budget: float, fresh: _FreshProfits, fresh_curves: Sequence[Array]
) -> dict[str, Any]:
    """Return a flag for a confidence set with the truly best budget, its width, and the chosen budget's loss."""
    _, best = estimate_profit_by_budget(scores, plans, fresh.worth, budget)
    true = np.array(
        [fresh.measure_true_profit(_decide_fresh_levels(plan, fresh_curves, fresh.levels))["profit"] for plan in plans]
    )
    budgets = np.array([plan.budget for plan in plans])
    maybe_best = (budgets >= best.low) & (budgets <= best.high)
    chosen, profit_range = true[budgets == best.budget][0], float(np.ptp(true))
    return {
        "set": bool(maybe_best[true >= true.max() - 1e-9 * max(profit_range, 1e-300)].any()),
        "width": float(maybe_best.mean()),
        "best": interval_contains_truth(best.profit, float(chosen)),
        "lost": float(true.max() - chosen) / profit_range if profit_range > 0 else 0.0,
    }


# -- the table ---------------------------------------------------------------------------------------------------------


def tabulate(records: Records) -> str:
    """Return a Markdown table of interval coverage, over all logs and by kind of log."""
    body = [_write_coverage_row("all", records)]
    for field, prefix in (("paid", "paid "), ("response", ""), ("way", "log: ")):
        kinds = sorted({record[field] for record in records})
        body += [_write_coverage_row(f"{prefix}{kind}", [r for r in records if r[field] == kind]) for kind in kinds]
    rows = records[0]["rows"] if records else LOG_ROWS
    head = f"{len(records)} logs of {rows:,} rows, each from a random world of its own.\n\n"
    names = [f"{case}: {kind}" for case in PROFIT_CASES for kind in MEASURED_INTERVALS]
    return head + format_table(["logs", "n", *names, "joint", "set", "width", "best", "lost"], body)


def _write_coverage_row(name: str, records: Records) -> list[str]:
    hits = [[record[case][kind] for record in records] for case in PROFIT_CASES for kind in MEASURED_INTERVALS]
    joint = [record[case]["joint"] for record in records for case in PROFIT_CASES]
    budgets = ([record[key] for record in records] for key in ("set", "width", "best", "lost"))
    return [name, str(len(records)), *(_write_mean_percent(values) for values in (*hits, joint, *budgets))]


def _write_mean_percent(values: Sequence[Any]) -> str:
    known = [float(value) for value in values if value is not None]
    return f"{np.mean(known):.1%}" if known else "–"


PROFIT_EXPERIMENT = table_experiment("profit", "Coverage of intervals of profit", measure, tabulate)
