"""Response models on simulated logs: error of the curves against the truth, and skill of the plans made from them.

RMSE is over fresh customers and all levels, against the true mean response. Skill at a budget is
(V − V_uniform) / (V_oracle − V_uniform): 0 for the best uniform mix, 1 for a plan that knows the truth. Results are kept
as they come, one line of JSON each; a run that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from largesse.allocate import allocate
from largesse.data import SIMULATIONS, Simulation, simulate
from largesse.errors import Problem, nearest, refuse
from largesse.records import Array
from largesse.response import IRE, SIRE, Additive, Boosting, Choose, Linear, ResponseModel, Stack

TRAIN, FRESH, FRESH_SEED = 2000, 10_000, 99
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
}
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
    """Return one record per simulation, model and seed: RMSE, error of increments, skill at each budget, seconds."""
    _check(simulations, models)
    kept = _Kept(out)
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
        Problem(f"model {name!r} is not known", nearest(name, MODELS)) for name in models if name not in MODELS
    ]
    refuse("experiment", problems)


def _measured(name: str, seed: int, model: str) -> dict[str, Any]:
    log = simulate(name, n=TRAIN, seed=seed)
    fresh = log.draw(FRESH, seed=FRESH_SEED)
    start = time.perf_counter()
    curves, more = _curves(model, log, fresh)
    record = {
        "simulation": name,
        "seed": seed,
        "model": model,
        "seconds": round(time.perf_counter() - start, 2),
        **more,
    }
    record["rmse"] = float(np.sqrt(np.mean((curves - fresh.truth) ** 2)))
    record["increments"] = float(np.sqrt(np.mean((np.diff(curves, axis=1) - np.diff(fresh.truth, axis=1)) ** 2)))
    for budget in BUDGETS:
        levels = allocate(curves, fresh.costs, budget).levels
        record[f"value {budget:g}"] = fresh.value(levels) if model != "uniform" else fresh.uniform_value(budget)
        record[f"skill {budget:g}"] = fresh.skill(levels, budget) if model != "uniform" else 0.0
    return record


def _curves(model: str, log: Simulation, fresh: Simulation) -> tuple[Array, dict[str, Any]]:
    """Return curves of the fresh customers (n, K), and what the model chose."""
    if model == "oracle":
        return fresh.truth, {}
    if model in SIMPLE:
        K = log.truth.shape[1]
        means = np.bincount(log.level, log.response, K) / np.maximum(np.bincount(log.level, minlength=K), 1)
        return np.tile(means, (len(fresh.level), 1)), {}
    fitted = MODELS[model]().fit(log.log)
    chosen = {word: getattr(fitted, f"{word}_") for word in ("kappa", "penalty") if hasattr(fitted, f"{word}_")}
    return fitted.predict(fresh.features), {word: str(value) for word, value in chosen.items()}


class _Kept:
    """Results so far, in memory and in a file that grows by one line at a time."""

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else Path(path)
        self.found: dict[tuple[str, int, str], dict[str, Any]] = {}
        if self.path is not None and self.path.exists():
            whole = self.path.read_text(encoding="utf-8").rpartition("\n")[
                0
            ]  # a run killed while writing leaves half a line
            self.path.write_text(whole + "\n" if whole else "", encoding="utf-8")
            for line in whole.splitlines():
                record = json.loads(line)
                self.found[record["simulation"], record["seed"], record["model"]] = record

    def add(self, record: dict[str, Any]) -> None:
        self.found[record["simulation"], record["seed"], record["model"]] = record
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(record, ensure_ascii=False) + "\n")


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return the means ± standard errors as a Markdown table, one per simulation."""
    columns = ("rmse", "increments", *(f"skill {budget:g}" for budget in BUDGETS), "seconds")
    lines = []
    for name in dict.fromkeys(record["simulation"] for record in records):
        mine = [record for record in records if record["simulation"] == name]
        lines += [f"\n### {name}\n", "| model | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
        for model in dict.fromkeys(record["model"] for record in mine):
            rows = [record for record in mine if record["model"] == model]
            lines.append(f"| {model} | " + " | ".join(_cell([row[c] for row in rows], c) for c in columns) + " |")
    return "\n".join(lines).strip() + "\n"


def _cell(values: list[float], column: str) -> str:
    if column == "seconds":
        return f"{np.mean(values):.1f}"
    digits = 4 if column in ("rmse", "increments") else 3
    se = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{np.mean(values):.{digits}f} ± {se:.{digits}f}" if np.isfinite(se) else f"{np.mean(values):.{digits}f}"
