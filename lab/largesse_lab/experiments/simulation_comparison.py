"""Comparison of response models on simulated logs: curve error and plan skill against the truth.

`truth_measures` defines the measures. Every table has the simple models and the oracle, so that no model looks good only for lack
of comparison.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from largesse.errors import refuse
from largesse.records import Array, Log, Progress
from largesse.response import IRE, SIRE, Additive, Balance, Boosting, Linear, ResponseModel, Stack, Training
from largesse.worlds import SIMULATIONS, Simulation, simulate
from largesse_lab.baselines import BART, GANITE, BanditNet, CFRNet, TLearner
from largesse_lab.experiments.experiment_definition import Experiment
from largesse_lab.pages.method_comparison import add_method_comparison, summarise_methods
from largesse_lab.runner import truth_measures
from largesse_lab.runner.concurrent_model_fitting import run_fitting_calls_together
from largesse_lab.runner.experiment_request import (
    Records,
    Request,
    find_unknown_name_problems,
    ignore_progress,
    select_repeats_of_part,
    split_chunks,
)
from largesse_lab.runner.record_cache import Key, RecordCache
from largesse_lab.runner.truth_measures import (
    FRESH_SEED,
    NARROW,
    PAPER,
    PAPER_BUDGETS,
    judge_curves,
    judge_policies,
    measure_best_level_mix,
    measure_effect_error,
    measure_level_means,
    read_chosen_settings,
    select_two_level_log,
)

SIMULATION_MODELS: dict[str, Callable[[], ResponseModel]] = {
    "linear": Linear,
    "additive": Additive,
    "boosting": Boosting,
    "sire": SIRE,
    "sire κ=0": lambda: SIRE(kappa=0.0),
    "sire common": lambda: SIRE(kappa=0.0, shrinkage=np.inf),
    "ire": IRE,
    "ire κ=0": lambda: IRE(kappa=0.0),
    "ire unbiased": lambda: IRE(balance=Balance(estimator="unbiased")),
    "ire variance": lambda: IRE(balance=Balance(estimator="variance")),
    "stack": Stack,
    "stack with sire": lambda: Stack(models=[Additive(), Boosting(), SIRE()]),
    "paper sire": lambda: SIRE(head="minmax").set_params(**PAPER),
    "paper sire κ=0": lambda: SIRE(head="minmax", kappa=0.0).set_params(**PAPER),
    "paper ire": lambda: IRE().set_params(**PAPER),
    "paper ire κ=0": lambda: IRE(kappa=0.0).set_params(**PAPER),
    "cfrnet": lambda: CFRNet().set_params(**NARROW),
    "cfrnet shared": lambda: CFRNet(way="shared").set_params(**NARROW),
    "cfrnet linear": lambda: CFRNet(way="shared", ipm="linear").set_params(**NARROW),
    "cfrnet rbf": lambda: CFRNet(way="shared", ipm="rbf").set_params(**NARROW),
    "cfrnet stacked": lambda: Stack(models=[CFRNet(way="shared").set_params(**NARROW)]),
    "tarnet": lambda: CFRNet(way="shared", alpha=0.0).set_params(**NARROW),
    "ganite": lambda: GANITE(training=Training(steps=2000)),
    "bart": BART,
    "bart stacked": lambda: Stack(models=[BART()]),
    "bart propensity": lambda: BART(propensity=True),
    "t-learner": TLearner,
    "paper cfrnet": CFRNet,  # the paper's grids, at published sizes: for a GPU
    "paper cfrnet shared": lambda: CFRNet(way="shared"),
    "paper ganite": lambda: GANITE(alpha="auto", beta="auto"),
}
POLICIES: dict[str, Callable[[float], BanditNet]] = {
    "banditnet": lambda budget: BanditNet(budget=budget),
    "banditnet retrain": lambda budget: BanditNet(budget=budget, search="retrain"),
    "banditnet spend-all": lambda budget: BanditNet(budget=budget, spend="all"),
}
SIMPLE = ("level means", "uniform", "oracle")
SIMULATION_COLUMNS = ("rmse", "increments", "√pehe", *(f"skill {budget:g}" for budget in PAPER_BUDGETS), "seconds")


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per simulation, model and seed: RMSE, √PEHE, skill at each budget and seconds.

    The fits of a chunk run together, for a GPU: the seconds of a fit are then its share.
    """
    names = ("averaged", "confounded", "unit") if request.problems is None else request.problems
    models = ("linear", "boosting", "sire") if request.models is None else request.models
    unknown = find_unknown_name_problems("simulation", names, SIMULATIONS) + find_unknown_name_problems(
        "model", models, [*SIMULATION_MODELS, *POLICIES]
    )
    refuse("experiment", unknown)
    seeds = select_repeats_of_part(20 if request.repeats is None else request.repeats, request.part)
    keys = [(name, seed, model) for name in names for seed in seeds for model in (*SIMPLE, *models)]
    cache = RecordCache(request.out, ("simulation", "seed", "model"))
    missing = [key for key in keys if key not in cache.records]
    chunk = request.chunk or 1
    if chunk > 1:  # only fits of the same model can be trained as one program
        missing.sort(key=lambda key: (key[2], key[0]))
    cache.measure_groups(list(split_chunks(missing, chunk)), _measure_chunk, progress)
    return cache.select(keys)


def _measure_chunk(keys: Sequence[Key]) -> Records:
    start = time.perf_counter()
    records = run_fitting_calls_together([partial(_measure_model, *key) for key in keys])
    seconds = round((time.perf_counter() - start) / len(keys), 2)
    return records if len(keys) == 1 else [record | {"seconds": seconds} for record in records]


def _measure_model(name: str, seed: int, model: str) -> dict[str, Any]:
    log = simulate(name, n=truth_measures.LOG_ROWS, seed=seed)
    fresh = log.draw(truth_measures.FRESH_ROWS, seed=FRESH_SEED)
    record = {"simulation": name, "seed": seed, "model": model}
    return record | (
        _measure_policy_model(model, log, fresh) if model in POLICIES else _measure_response_model(model, log, fresh)
    )


def _measure_response_model(model: str, log: Simulation, fresh: Simulation) -> dict[str, Any]:
    start = time.perf_counter()
    curves, choices = _fit_and_predict_curves(model, log.log, fresh)
    seconds = round(time.perf_counter() - start, 2)
    record: dict[str, Any] = {"seconds": seconds, **choices, **judge_curves(curves, fresh)}
    if model == "uniform":
        return record | {"√pehe": None} | measure_best_level_mix(fresh)
    effect = fresh.truth if model == "oracle" else _fit_and_predict_curves(model, select_two_level_log(log), fresh)[0]
    return record | {"√pehe": measure_effect_error(effect, fresh.truth)}


def _measure_policy_model(model: str, log: Simulation, fresh: Simulation) -> dict[str, Any]:
    start = time.perf_counter()
    policies = {budget: POLICIES[model](budget).fit(log.log) for budget in PAPER_BUDGETS}
    seconds = (time.perf_counter() - start) / len(PAPER_BUDGETS)
    return {"seconds": round(seconds, 2)} | judge_policies(policies, fresh)


def _fit_and_predict_curves(model: str, log: Log, fresh: Simulation) -> tuple[Array, dict[str, Any]]:
    """Return a fitted model's curves (n, K) of new simulated customers, and its chosen settings."""
    if model == "oracle":
        return fresh.truth, {}
    if model in SIMPLE:
        return np.tile(measure_level_means(log), (len(fresh.level), 1)), {}
    fitted = SIMULATION_MODELS[model]().fit(log)
    return fitted.predict(fresh.features), dict(read_chosen_settings(fitted))


def summarise(records: Records) -> dict[str, Any]:
    """Return mean measures by model, and paired differences from the level-means model."""
    rows = [{**record, "row": record["model"], "repeat": record["seed"]} for record in records]
    return {"base": SIMPLE[0], "simulations": summarise_methods(rows, SIMULATION_COLUMNS, SIMPLE[0])}


SIMULATION_EXPERIMENT = Experiment(
    "simulation",
    "Models on simulated logs",
    measure,
    summarise,
    add_method_comparison,
    setup="""\
Our models and the paper's on the simulations of Table 1, each fitted to the same rows. Seconds are those of one fit, or its
share if several were fitted together.""",
)
