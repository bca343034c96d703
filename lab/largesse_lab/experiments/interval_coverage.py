"""Coverage of 95 % intervals on simulated logs with a known truth.

Twenty logs share a world. Three policies are evaluated: a fixed rule on two features ("fixed"), the highest level for everybody
("highest"), and policies learnt on the same log for a budget, cross-fitted ("learnt"). Each is evaluated with the log's own
propensities ("given") and with estimated ones ("estimated"), with costs that are always paid ("always") and costs paid on
redemption ("redeemed"). The truth is that of fresh customers of the same world; for learnt policies it is the mean over folds
of what each fold's model brings them at that fold's price. The band is that of the whole frontier of learnt policies.

With given propensities the estimates for fixed policies are unbiased, so any bias seen there is random error (a learnt plan of whole
customers spends a little less than its price would elsewhere). With estimated propensities the bias is measured against the
estimate with given ones on the same log, so that the error they share cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from largesse.allocation import decide_at_price, expected_costs
from largesse.errors import Problem, refuse
from largesse.evaluation import (
    compute_scores,
    estimate_frontier,
    estimate_policy_value_and_spend,
    make_budget_grid,
    plan_at_budgets,
    plan_each_fold,
    predict_out_of_fold,
)
from largesse.levels import Levels
from largesse.propensity import estimate_propensities
from largesse.records import Array, Estimate, HeldOutPlan, HeldOutPredictions, Log, Progress, Propensities, Scores
from largesse.response import Linear, ResponseModel, Stack
from largesse.stats import assign_folds
from largesse.worlds import SIMULATIONS, Simulation, simulate
from largesse_lab.experiments.experiment_definition import table_experiment
from largesse_lab.experiments.simulation_comparison import SIMULATION_MODELS
from largesse_lab.pages.markdown import format_table
from largesse_lab.runner.concurrent_model_fitting import run_fitting_calls_together
from largesse_lab.runner.experiment_request import Records, Request, find_unknown_name_problems, ignore_progress
from largesse_lab.runner.record_cache import Key, RecordCache

COVERAGE_LOG_ROWS = 2000
COVERAGE_LOGS_PER_WORLD = 20
COVERAGE_MODEL: Callable[[], ResponseModel] = Linear
FRESH_ROWS, FRESH_SEED = 200_000, 99  # fresh customers of fixed policies
# Fewer fresh customers for learnt policies (one policy per fold), and for the band (one policy per budget)
LEARNT_FRESH_ROWS, BAND_FRESH_ROWS = 50_000, 10_000
BAND_PERIOD = 5  # the band is checked in every fifth log: it takes as long as everything else
MIX = 0.2  # share of the log with uniformly random levels: without it weights are unbounded
COVERAGE_BUDGETS = {"always": 1.5, "redeemed": 0.8}
FACE = (0.0, 1.0, 2.0, 3.0, 4.0)


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per simulation and log: error, standard error and coverage of every estimate.

    `models` names one response model of `simulation`; the default is `Linear`. A part takes every n-th world. The logs of a
    world are judged together, so that networks are trained as one program.
    """
    names = ("averaged", "unit", "confounded") if request.problems is None else request.problems
    refuse(
        "experiment",
        find_unknown_name_problems("simulation", names, SIMULATIONS) + _find_model_problems(request.models),
    )
    make = SIMULATION_MODELS[request.models[0]] if request.models else COVERAGE_MODEL
    logs, mix = 500 if request.repeats is None else request.repeats, MIX if request.mix is None else request.mix
    worlds = [
        range(first, min(first + COVERAGE_LOGS_PER_WORLD, logs)) for first in range(0, logs, COVERAGE_LOGS_PER_WORLD)
    ]
    worlds = worlds[request.part[0] :: request.part[1]]
    groups = [[(name, log, COVERAGE_LOG_ROWS, mix) for log in world] for name in names for world in worlds]

    def measure_world(keys: Sequence[Key]) -> Records:
        return run_fitting_calls_together(
            [partial(_measure_log, name, log, rows, mix, make) for name, log, rows, mix in keys]
        )

    cache = RecordCache(request.out, ("simulation", "log", "rows", "mix"))
    return cache.measure_groups(groups, measure_world, progress)


def _find_model_problems(names: Sequence[str] | None) -> list[Problem]:
    problems = find_unknown_name_problems("model", names or [], list(SIMULATION_MODELS))
    if names is not None and len(names) != 1:
        problems.append(Problem(f"{len(names)} models", "give one: all policies are judged with its curves"))
    return problems


@lru_cache(maxsize=6)
def _draw_world(name: str, seed: int, rows: int, mix: float) -> tuple[Simulation, Simulation]:
    """Return a simulated world (data-generating process), and new customers of this world."""
    world = simulate(name, n=rows, seed=seed, mix=mix)
    return world, world.draw(FRESH_ROWS, FRESH_SEED)


@lru_cache(maxsize=6)
def _tune_model(model: Callable[[], ResponseModel], name: str, seed: int, rows: int, mix: float) -> ResponseModel:
    """Return an unfitted model; the penalty of `Linear` is chosen on another log of the same world."""
    tuned = model()
    if isinstance(tuned, Linear) and tuned.penalty == "auto":
        return Linear(penalty=tuned.fit(_draw_world(name, seed, rows, mix)[0].log).penalty_)
    return tuned


def _measure_log(name: str, log: int, rows: int, mix: float, model: Callable[[], ResponseModel]) -> dict[str, Any]:
    seed, stream = divmod(log, COVERAGE_LOGS_PER_WORLD)
    world, fresh = _draw_world(name, seed, rows, mix)
    sim = world.draw(rows, stream)
    tuned = _tune_model(model, name, seed, rows, mix)
    base, fresh_curves = _predict_out_of_fold(tuned, sim.log, fresh.features[:LEARNT_FRESH_ROWS], log)
    record: dict[str, Any] = {"simulation": name, "log": log, "rows": rows, "mix": mix}
    truths: dict[str, Any] = {}  # plans depend on the curves alone: they are the same for all propensities
    for source in ("given", "estimated"):
        known = sim.log if source == "given" else replace(sim.log, propensity=None)
        propensities = estimate_propensities(known, base.fold, log)
        for paid in COVERAGE_BUDGETS:
            scores = _score_log(known, base, propensities, paid)
            if paid not in truths:
                truths[paid] = _compute_true_values(scores, fresh, fresh_curves, paid)
            for policy, case in _evaluate_policies(scores, sim, truths[paid], paid):
                record[f"{policy} {source} {paid}"] = case
            if paid == "always" and log % BAND_PERIOD == 0:
                if "band" not in truths:
                    truths["band"] = _trace_true_frontier(scores, fresh, fresh_curves)
                record[f"band {source}"] = _check_frontier_band(scores, *truths["band"])
    return record


def _predict_out_of_fold(
    model: ResponseModel, log: Log, fresh: Array, seed: int
) -> tuple[HeldOutPredictions, list[Array]]:
    """Return a log's out-of-fold predictions, and new simulated customers' curves, one array per fold's model."""
    if isinstance(model, Stack):
        stack = Stack(models=model.models, folds=model.folds, seed=seed)
        return stack.fit_held_out(log, assign_folds(log, stack.folds, seed)), stack.predict_by_fold(fresh)
    recorder = FreshCurveRecorder(model=model, fresh=fresh, fresh_curves=[])
    return predict_out_of_fold(log, recorder, seed=seed), recorder.fresh_curves


def _score_log(log: Log, base: HeldOutPredictions, estimated: Propensities, paid: str) -> Scores:
    levels = Levels(costs=FACE, on_redemption=paid == "redeemed")
    return compute_scores(replace(log, levels=levels), base, estimated)


def _compute_true_values(
    scores: Scores, fresh: Simulation, fresh_curves: list[Array], paid: str
) -> dict[str, tuple[float, float]]:
    """Return the true value and spend of each policy by name."""
    plan = plan_each_fold(scores, COVERAGE_BUDGETS[paid])
    prices = plan.prices if plan.scales is None else plan.prices * plan.scales  # of costs as the model expects them
    return {
        **{
            name: _measure_true_value_and_spend(fresh, [rule(fresh.features)], paid)
            for name, rule in LOGGING_RULES.items()
        },
        "learnt": _measure_true_value_and_spend(fresh, _decide_fresh_levels(fresh_curves, prices, paid), paid),
    }


def _evaluate_policies(
    scores: Scores, sim: Simulation, truths: Mapping[str, tuple[float, float]], paid: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, rule in LOGGING_RULES.items():
        yield (
            name,
            _record_errors_and_coverage(estimate_policy_value_and_spend(scores, rule(sim.features)), truths[name]),
        )
    levels = plan_each_fold(scores, COVERAGE_BUDGETS[paid]).levels
    promised = float(scores.curves[np.arange(len(levels)), levels].mean())
    case = _record_errors_and_coverage(estimate_policy_value_and_spend(scores, levels), truths["learnt"])
    yield "learnt", {**case, "promise": promised - truths["learnt"][0]}


def apply_fixed_rule(features: Array) -> Array:
    """Return the levels (n,) of a fixed rule on two features."""
    middle = round(float(features.max())) / 2  # the features fill a cube
    return (features[:, 0] > middle).astype(np.int64) + 2 * (features[:, 7] > middle)


def apply_highest_level(features: Array) -> Array:
    """Return the highest level (n,) for all customers."""
    return np.full(len(features), len(FACE) - 1)


LOGGING_RULES = {"fixed": apply_fixed_rule, "highest": apply_highest_level}


def _decide_fresh_levels(fresh_curves: list[Array], prices: Array, paid: str) -> list[Array]:
    """Return the levels (n,) of customers outside the log, one array per fold's model and shadow price."""
    levels = Levels(costs=FACE, on_redemption=paid == "redeemed")
    return [
        decide_at_price(curves, expected_costs(levels, curves), price)
        for curves, price in zip(fresh_curves, prices, strict=True)
    ]


def _measure_true_value_and_spend(fresh: Simulation, policies: list[Array], paid: str) -> tuple[float, float]:
    """Return the true value and spend of new simulated customers, averaged over policies."""
    rows, costs = np.arange(len(policies[0])), np.asarray(FACE)
    responses = [fresh.truth[rows, levels] for levels in policies]
    spends = [
        costs[levels] * (response if paid == "redeemed" else 1.0)
        for levels, response in zip(policies, responses, strict=True)
    ]
    return float(np.mean(responses)), float(np.mean(spends))


def _record_errors_and_coverage(estimates: tuple[Estimate, Estimate], truth: tuple[float, float]) -> dict[str, Any]:
    return {
        "error": [e.estimate - t for e, t in zip(estimates, truth, strict=True)],
        "se": [e.se for e in estimates],
        "reach": [(e.high - e.low) / 2 for e in estimates],
        "hit": [bool(e.low <= t <= e.high) for e, t in zip(estimates, truth, strict=True)],
        "truth": list(truth),
    }


def _trace_true_frontier(
    scores: Scores, fresh: Simulation, fresh_curves: list[Array]
) -> tuple[tuple[HeldOutPlan, ...], Array]:
    """Return the plans at every budget, and the true value of each plan for new simulated customers."""
    plans = plan_at_budgets(scores, make_budget_grid(scores))
    fresh_curves = [curves[:BAND_FRESH_ROWS] for curves in fresh_curves]
    decided = [_decide_fresh_levels(fresh_curves, plan.prices, "always") for plan in plans]
    return plans, np.array([_measure_true_value_and_spend(fresh, levels, "always")[0] for levels in decided])


def _check_frontier_band(scores: Scores, plans: Sequence[HeldOutPlan], truths: Array) -> dict[str, Any]:
    """Return a flag for a band that covers the whole true frontier, and the coverage of pointwise intervals."""
    points = estimate_frontier(scores, plans)
    inside = [p.band[0] <= true <= p.band[1] for p, true in zip(points, truths, strict=True)]
    pointwise = [p.value.low <= true <= p.value.high for p, true in zip(points, truths, strict=True)]
    return {"hit": bool(np.all(inside)), "pointwise": float(np.mean(pointwise))}


class FreshCurveRecorder:
    """Response model that also predicts and records new simulated customers' curves at every call of `predict`."""

    def __init__(self, *, model: ResponseModel, fresh: Any, fresh_curves: list[Array]) -> None:
        self.model, self.fresh, self.fresh_curves = model, fresh, fresh_curves

    def get_params(self, deep: bool = False) -> dict[str, Any]:  # noqa: ARG002 — the estimator contract
        """Return the constructor's arguments."""
        return {"model": self.model, "fresh": self.fresh, "fresh_curves": self.fresh_curves}

    def fit(self, log: Log) -> FreshCurveRecorder:
        """Fit the wrapped model to a log."""
        self.model = self.model.fit(log)
        return self

    def predict(self, features: Any) -> Array:
        """Return the curves of customers, and record the curves of the new simulated customers."""
        self.fresh_curves.append(self.model.predict(self.fresh))
        return self.model.predict(features)


# -- the table --------------------------------------------------------------------------------------------------------


def tabulate(records: Records) -> str:
    """Return Markdown tables of coverage and bias by policy, one per simulation."""
    head = ["policy", "propensities", "costs", "value covered", "bias/sd ± se", "spend covered", "bias/sd ± se"]
    parts: list[str] = []
    for name, mix in dict.fromkeys((record["simulation"], record["mix"]) for record in records):
        logs = [record for record in records if (record["simulation"], record["mix"]) == (name, mix)]
        cases = [key for key in logs[0] if isinstance(logs[0][key], dict) and "truth" in logs[0][key]]
        body = [_write_case(case, logs) for case in cases]
        for source in ("given", "estimated"):
            bands = [record[f"band {source}"] for record in logs if f"band {source}" in record]
            hit, points = np.mean([b["hit"] for b in bands]), np.mean([b["pointwise"] for b in bands])
            cells = [f"band {hit:.1%} of {len(bands)} logs", "", f"points {points:.1%}", "", ""]
            body.append(["whole frontier", source, "always", *cells])
        parts.append(f"## {name}, {len(logs)} logs of {logs[0]['rows']:,} rows, {mix:.0%} randomised")
        parts.append(format_table([*head, "promise bias"], body, text_columns=3))
    return "\n\n".join(parts)


def _write_case(case: str, logs: Records) -> list[str]:
    results = [record[case] for record in logs]
    unbiased = case.replace(" estimated ", " given ")
    cells = []
    for j in range(2):
        errors = np.array([result["error"][j] for result in results])
        shared = np.array([record[unbiased]["error"][j] for record in logs]) if unbiased != case else 0.0
        cells += [f"{np.mean([result['hit'][j] for result in results]):.1%}", _write_bias(errors, errors - shared)]
    promise = f"{np.mean([result['promise'] for result in results]):+.4f}" if "promise" in results[0] else ""
    return [*case.split(), *cells, promise]


def _write_bias(errors: Array, bias: Array) -> str:
    """Return the mean bias ± its standard error as text, in standard deviations of the errors."""
    spread = errors.std(ddof=1) if len(errors) > 1 else np.nan
    if not spread > 1e-9:
        return "exact" if len(errors) > 1 else "–"
    if not np.abs(bias).max() > 1e-9 * spread:
        return "as given"
    bias = bias / spread
    return f"{bias.mean():+.2f} ± {bias.std(ddof=1) / np.sqrt(len(bias)):.2f}"


COVERAGE_EXPERIMENT = table_experiment("coverage", "Coverage of intervals", measure, tabulate)
