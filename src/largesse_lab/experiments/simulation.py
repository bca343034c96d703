"""Response models on simulated logs: error of the curves against the truth, and skill of the plans made from them.

What is measured is told in `measures`. Results are kept as they come, one line of JSON each; a run that was stopped goes on
where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from largesse.errors import Problem, nearest, refuse
from largesse.policy import BanditNet
from largesse.records import Array, Log
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
    call_together,
)
from largesse.worlds import SIMULATIONS, Simulation, simulate
from largesse_lab.bench.kept import Kept
from largesse_lab.bench.measures import (
    BUDGETS,
    FRESH,
    FRESH_SEED,
    NARROW,
    PAPER,
    TRAIN,
    chosen,
    effect_error,
    level_means,
    of_curves,
    of_policies,
    of_uniform,
    two_levels,
)
from largesse_lab.page import summaries

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
    "stack without bart": lambda: Stack(bart=False),
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
    "banditnet spend-all": lambda budget: BanditNet(budget=budget, spend="all"),
}
SIMPLE = ("level means", "uniform", "oracle")
COLUMNS = ("rmse", "increments", "√pehe", *(f"skill {budget:g}" for budget in BUDGETS), "seconds")


def simulation(
    simulations: Sequence[str] = ("averaged", "confounded", "unit"),
    models: Sequence[str] = ("linear", "boosting", "sire"),
    *,
    seeds: int = 20,
    part: tuple[int, int] = (0, 1),
    chunk: int = 1,
    out: str | Path | None = None,
    tell: Callable[[str, float], None] = lambda _what, _done: None,
) -> list[dict[str, Any]]:
    """Return one record per simulation, model and seed: RMSE, error of increments, √PEHE, skill at each budget, seconds.

    `part` (i, n) takes every n-th seed; `chunk` seeds are fitted together, for a GPU: a fit's seconds are then its share.
    """
    _check(simulations, models)
    kept = Kept(out, ("simulation", "seed", "model"))
    mine = range(seeds)[part[0] :: part[1]]  # several processes share the seeds
    todo = [(name, seed, model) for name in simulations for seed in mine for model in (*SIMPLE, *models)]
    missing = [(name, seed, model) for name, seed, model in todo if (name, seed, model) not in kept.found]
    if chunk > 1:  # only fits of one model are alike
        missing.sort(key=lambda key: (key[2], key[0]))
    for first in range(0, len(missing), chunk):
        some = missing[first : first + chunk]
        tell("{}, seed {}: {}".format(*some[0]), first / len(missing))
        for record in _together(some):
            kept.add(record)
    return [kept.found[key] for key in todo]


def _together(keys: Sequence[tuple[str, int, str]]) -> list[dict[str, Any]]:
    start = time.perf_counter()
    found = call_together([partial(_measured, *key) for key in keys])
    each = round((time.perf_counter() - start) / len(keys), 2)
    return found if len(keys) == 1 else [record | {"seconds": each} for record in found]


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
    record: dict[str, Any] = {"seconds": round(time.perf_counter() - start, 2), **more, **of_curves(curves, fresh)}
    if model == "uniform":
        return record | {"√pehe": None} | of_uniform(fresh)
    return record | {"√pehe": _pehe(model, log, fresh)}


def _of_policy(model: str, log: Simulation, fresh: Simulation) -> dict[str, Any]:
    start = time.perf_counter()
    policies = {budget: POLICIES[model](budget).fit(log.log) for budget in BUDGETS}
    seconds = (time.perf_counter() - start) / len(BUDGETS)
    return {"seconds": round(seconds, 2)} | of_policies(policies, fresh)


def _pehe(model: str, log: Simulation, fresh: Simulation) -> float:
    """Return the root mean squared error of the effect of level 1 over level 0, learnt from a log of these two alone."""
    return effect_error(fresh.truth if model == "oracle" else _curves(model, two_levels(log), fresh)[0], fresh.truth)


def _curves(model: str, log: Log, fresh: Simulation) -> tuple[Array, dict[str, Any]]:
    """Return curves of the fresh customers (n, K), and what the model chose."""
    if model == "oracle":
        return fresh.truth, {}
    if model in SIMPLE:
        return np.tile(level_means(log), (len(fresh.level), 1)), {}
    fitted = MODELS[model]().fit(log)
    return fitted.predict(fresh.features), dict(chosen(fitted))


def summary(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return means, deviations, and paired differences from level means on the same logs."""
    told = [{**record, "row": record["model"], "repeat": record["seed"]} for record in records]
    by = {name: [r for r in told if r["simulation"] == name] for name in summaries.names(told, "simulation")}
    return {
        "base": SIMPLE[0],
        "simulations": {name: summaries.by_row(mine, COLUMNS, SIMPLE[0]) for name, mine in by.items()},
    }


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return the means ± standard errors as a Markdown table, one per simulation."""
    lines = []
    for name in dict.fromkeys(record["simulation"] for record in records):
        mine = [record for record in records if record["simulation"] == name]
        lines += [f"\n### {name}\n", "| model | " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * len(COLUMNS)]
        for model in dict.fromkeys(record["model"] for record in mine):
            rows = [record for record in mine if record["model"] == model]
            lines.append(f"| {model} | " + " | ".join(_cell([row.get(c) for row in rows], c) for c in COLUMNS) + " |")
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
