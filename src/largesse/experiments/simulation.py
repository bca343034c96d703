"""Response models on simulated logs: error of the curves against the truth, and skill of the plans made from them.

RMSE is over fresh customers and all levels, against the true mean response. Skill at a budget is
(V − V_uniform) / (V_oracle − V_uniform): 0 for the best uniform mix, 1 for a plan that knows the truth. √PEHE is of the
binary problem, drawn anew with the first two levels alone: the root mean squared error of the effect of the second over the
first. A policy network has no curves, only plans, one trained for each budget; its spend is kept beside its skill. Results
are kept as they come, one line of JSON each; a run that was stopped goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from largesse.allocate import allocate
from largesse.banditnet import BanditNet
from largesse.data import SIMULATIONS, Simulation, log_from_arrays, simulate
from largesse.errors import Problem, nearest, refuse
from largesse.experiments.kept import Kept
from largesse.records import Array, Levels, Log
from largesse.response import (
    BART,
    GANITE,
    IRE,
    SIRE,
    Additive,
    Boosting,
    CFRNet,
    Choose,
    Linear,
    Pava,
    ResponseModel,
    Shrunk,
    Stack,
    TLearner,
)

TRAIN, FRESH, FRESH_SEED = 2000, 10_000, 99
BINARY_TRAIN = 1000
TWO_LEVELS = (7,)  # a stream of the world's seed that nothing else uses
BUDGETS = (1.5, 3.0)
PAPER: dict[str, Any] = {  # as far as the paper says how: 3 × 512, plain gradient descent, one hold-out
    "width": 512,
    "activation": "elu",
    "batch": 32,
    "skip": False,
    "optimiser": "sgd",
    "rate": 0.01,
    "schedule": "constant",
    "decay": 0.0,
    "epochs": 400,
    "patience": 60,
    "folds": 1,
    "members": 1,
    "start": None,
}
NARROW: dict[str, Any] = {"width": 64, "head_width": 32}  # of CFRNet: a third of the published, for a few CPU cores
MODELS: dict[str, Callable[[], ResponseModel]] = {
    "linear": Linear,
    "additive": Additive,
    "boosting": Boosting,
    "choose": Choose,
    "sire": SIRE,
    "sire κ=0": lambda: SIRE(kappa=0.0),
    "sire common": lambda: SIRE(kappa=0.0, shrinkage=np.inf),
    "ire": IRE,
    "ire κ=0": lambda: IRE(kappa=0.0),
    "ire unbiased": lambda: IRE(estimator="unbiased"),
    "ire variance": lambda: IRE(estimator="variance"),
    "stack": Stack,
    "paper sire": lambda: SIRE(head="minmax", **PAPER),
    "paper sire κ=0": lambda: SIRE(head="minmax", kappa=0.0, **PAPER),
    "paper ire": lambda: IRE(**PAPER),
    "paper ire κ=0": lambda: IRE(kappa=0.0, **PAPER),
    "cfrnet": lambda: CFRNet(**NARROW),
    "cfrnet shared": lambda: CFRNet(way="shared", **NARROW),
    "cfrnet linear": lambda: CFRNet(way="shared", ipm="linear", **NARROW),
    "cfrnet rbf": lambda: CFRNet(way="shared", ipm="rbf", **NARROW),
    "cfrnet shrunk": lambda: Shrunk(model=CFRNet(way="shared", **NARROW)),
    "tarnet": lambda: CFRNet(way="shared", alpha=0.0, **NARROW),
    "ganite": lambda: GANITE(steps=2000),
    "bart": BART,
    "bart pava": lambda: Pava(model=BART()),
    "bart shrunk": lambda: Shrunk(model=BART()),
    "bart propensity": lambda: BART(propensity=True),
    "t-learner": TLearner,
    "t-learner pava": lambda: Pava(model=TLearner()),
    "paper cfrnet": CFRNet,  # the grids of the paper, at published sizes: for a GPU
    "paper cfrnet shared": lambda: CFRNet(way="shared"),
    "paper ganite": lambda: GANITE(alpha="cv", beta="cv"),
}
POLICIES: dict[str, Callable[[float], BanditNet]] = {
    "banditnet": lambda budget: BanditNet(budget=budget),
    "banditnet retrain": lambda budget: BanditNet(budget=budget, search="retrain"),
}
SIMPLE = ("level means", "uniform", "oracle")


def simulation(
    simulations: Sequence[str] = ("averaged", "confounded", "unit"),
    models: Sequence[str] = ("linear", "boosting", "sire"),
    *,
    seeds: int = 20,
    out: str | Path | None = None,
    tell: Callable[[str, float], None] = lambda _what, _done: None,
) -> list[dict[str, Any]]:
    """Return one record per simulation, model and seed: RMSE, error of increments, √PEHE, skill at each budget, seconds."""
    _check(simulations, models)
    kept = Kept(out, ("simulation", "seed", "model"))
    todo = [(name, seed, model) for name in simulations for seed in range(seeds) for model in (*SIMPLE, *models)]
    for done, (name, seed, model) in enumerate(todo):
        tell(f"{name}, seed {seed}: {model}", done / len(todo))
        if (name, seed, model) not in kept.found:
            kept.add(_measured(name, seed, model))
    return [kept.found[key] for key in todo]


def _check(simulations: Sequence[str], models: Sequence[str]) -> None:
    problems = [
        Problem(f"simulation {name!r} is not known", nearest(name, SIMULATIONS))
        for name in simulations
        if name not in SIMULATIONS
    ]
    problems += [
        Problem(f"model {name!r} is not known", nearest(name, [*MODELS, *POLICIES]))
        for name in models
        if name not in MODELS and name not in POLICIES
    ]
    refuse("experiment", problems)


def _measured(name: str, seed: int, model: str) -> dict[str, Any]:
    log = simulate(name, n=TRAIN, seed=seed)
    fresh = log.draw(FRESH, seed=FRESH_SEED)
    record = {"simulation": name, "seed": seed, "model": model}
    return record | (_of_policy(model, log, fresh) if model in POLICIES else _of_model(model, log, fresh))


def _of_model(model: str, log: Simulation, fresh: Simulation) -> dict[str, Any]:
    start = time.perf_counter()
    curves, more = _curves(model, log.log, fresh)
    record: dict[str, Any] = {"seconds": round(time.perf_counter() - start, 2), **more}
    record["rmse"] = _root_mean_square(curves - fresh.truth)
    record["increments"] = _root_mean_square(np.diff(curves, axis=1) - np.diff(fresh.truth, axis=1))
    record["√pehe"] = _pehe(model, log, fresh)
    for budget in BUDGETS:
        levels = allocate(curves, fresh.costs, budget).levels
        record[f"value {budget:g}"] = fresh.value(levels) if model != "uniform" else fresh.uniform_value(budget)
        record[f"skill {budget:g}"] = fresh.skill(levels, budget) if model != "uniform" else 0.0
    return record


def _of_policy(model: str, log: Simulation, fresh: Simulation) -> dict[str, Any]:
    record: dict[str, Any] = {"seconds": 0.0}
    for budget in BUDGETS:
        start = time.perf_counter()
        net = POLICIES[model](budget).fit(log.log)
        record["seconds"] += round((time.perf_counter() - start) / len(BUDGETS), 2)
        levels, chances = net.decide(fresh.features), net.chances(fresh.features)
        record[f"value {budget:g}"] = fresh.value(levels)
        record[f"skill {budget:g}"] = fresh.skill(levels, budget)
        record[f"spend {budget:g}"] = float(fresh.costs[levels].mean())
        record[f"expected spend {budget:g}"] = float((chances @ fresh.costs).mean())
        record[f"expected value {budget:g}"] = float((chances * fresh.truth).sum(axis=1).mean())
    return record


def _root_mean_square(error: Array) -> float:
    return float(np.sqrt(np.mean(error**2)))


def _pehe(model: str, log: Simulation, fresh: Simulation) -> float | None:
    """Return the root mean squared error of the effect of level 1 over level 0, learnt from a log of these two alone."""
    if model == "uniform":
        return None
    truth = fresh.truth[:, 1] - fresh.truth[:, 0]
    effect = truth if model == "oracle" else np.diff(_curves(model, two_levels(log), fresh)[0], axis=1)[:, 0]
    return _root_mean_square(effect - truth)


def two_levels(log: Simulation) -> Log:
    """Return a log of the first customers in which only levels 0 and 1 were ever given, in the odds they had."""
    rng = log.world.rng(*TWO_LEVELS)
    n = min(BINARY_TRAIN, len(log))
    odds = log.propensities[:n, :2] / log.propensities[:n, :2].sum(axis=1, keepdims=True)
    level = (rng.random(n) < odds[:, 1]).astype(np.int64)
    rows = np.arange(n)
    response = (rng.random(n) < log.truth[rows, level]).astype(np.float64)
    levels = Levels(costs=log.costs[:2])
    return log_from_arrays(log.features[:n], level, response, levels=levels, propensity=odds[rows, level])


def _curves(model: str, log: Log, fresh: Simulation) -> tuple[Array, dict[str, Any]]:
    """Return curves of the fresh customers (n, K), and what the model chose."""
    if model == "oracle":
        return fresh.truth, {}
    if model in SIMPLE:
        return np.tile(level_means(log), (len(fresh.level), 1)), {}
    fitted = MODELS[model]().fit(log)
    words = ("kappa", "penalty", "alpha", "beta")
    chosen = {word: getattr(fitted, f"{word}_") for word in words if hasattr(fitted, f"{word}_")}
    return fitted.predict(fresh.features), {word: str(value) for word, value in chosen.items()}


def level_means(log: Log) -> Array:
    """Return the mean response (K,) of the rows at each level."""
    K = len(log.levels)
    return np.bincount(log.level, log.response, K) / np.maximum(np.bincount(log.level, minlength=K), 1)


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return the means ± standard errors as a Markdown table, one per simulation."""
    columns = ("rmse", "increments", "√pehe", *(f"skill {budget:g}" for budget in BUDGETS), "seconds")
    lines = []
    for name in dict.fromkeys(record["simulation"] for record in records):
        mine = [record for record in records if record["simulation"] == name]
        lines += [f"\n### {name}\n", "| model | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
        for model in dict.fromkeys(record["model"] for record in mine):
            rows = [record for record in mine if record["model"] == model]
            lines.append(f"| {model} | " + " | ".join(_cell([row.get(c) for row in rows], c) for c in columns) + " |")
    return "\n".join(lines).strip() + "\n"


def _cell(found: Sequence[float | None], column: str) -> str:
    values = [value for value in found if value is not None]
    if not values:
        return "–"
    if column == "seconds":
        return f"{np.mean(values):.1f}"
    digits = 4 if column in ("rmse", "increments", "√pehe") else 3
    se = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{np.mean(values):.{digits}f} ± {se:.{digits}f}" if np.isfinite(se) else f"{np.mean(values):.{digits}f}"
