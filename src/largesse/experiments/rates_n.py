"""How fast response models learn: error of the curves against the number of rows of the log.

Worlds are those of a seed; every model meets the same rows, and judged are fresh customers of the same world, on whom the
true curves are known. Networks are small (half the default's width, three folds, one member), so that the whole grid runs on
two CPU cores; one of them takes about twenty seconds to fit, nearly all of it compiling, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from largesse.data import SIMULATIONS, Simulation, simulate
from largesse.errors import Problem, nearest, refuse
from largesse.experiments.kept import Kept
from largesse.experiments.rates import moments
from largesse.records import Array
from largesse.response import IRE, SIRE, Linear, ResponseModel

ROWS = (250, 500, 1000, 2000, 4000, 8000)
FRESH, FRESH_SEED = 10_000, 99
SMALL: dict[str, Any] = {"width": 32, "members": 1, "folds": 3}
MEANS = "level means"
MODELS: dict[str, Callable[[], ResponseModel]] = {
    "linear": Linear,
    "sire": lambda: SIRE(**SMALL),
    "sire common": lambda: SIRE(kappa=0.0, shrinkage=np.inf, **SMALL),
    "ire": lambda: IRE(**SMALL),
}


def rates_n(
    simulations: Sequence[str] = ("averaged", "confounded"),
    models: Sequence[str] = (MEANS, *MODELS),
    *,
    rows: Sequence[int] = ROWS,
    seeds: int = 10,
    out: str | Path | None = None,
    tell: Callable[[str, float], None] = lambda _what, _done: None,
) -> list[dict[str, Any]]:
    """Return one record per simulation, seed, number of rows and model: RMSE over fresh customers and all levels."""
    _check(simulations, models)
    kept = Kept(out, ("simulation", "seed", "rows", "model"))
    todo = [(name, seed, n, model) for seed in range(seeds) for name in simulations for n in rows for model in models]
    for done, key in enumerate(todo):
        tell(f"{key[0]}, seed {key[1]}, {key[2]:,} rows: {key[3]}", done / len(todo))
        if key not in kept.found:
            kept.add(_measured(*key))
    return [kept.found[key] for key in todo]


def _check(simulations: Sequence[str], models: Sequence[str]) -> None:
    known = (MEANS, *MODELS)
    problems = [(f"simulation {name!r}", nearest(name, SIMULATIONS)) for name in simulations if name not in SIMULATIONS]
    problems += [(f"model {name!r}", nearest(name, known)) for name in models if name not in known]
    refuse("experiment", [Problem(f"{what} is not known", hint) for what, hint in problems])


def _measured(name: str, seed: int, rows: int, model: str) -> dict[str, Any]:
    sim = simulate(name, n=rows, seed=seed)
    fresh = sim.draw(FRESH, seed=FRESH_SEED)
    error = _curves(model, sim, fresh) - fresh.truth
    return {"simulation": name, "seed": seed, "rows": rows, "model": model, "rmse": float(np.sqrt(np.mean(error**2)))}


def _curves(model: str, sim: Simulation, fresh: Simulation) -> Array:
    """Return curves of the fresh customers: (n, K), or (K,) the same for all."""
    if model != MEANS:
        return MODELS[model]().fit(sim.log).predict(fresh.features)
    K = len(sim.log.levels)
    return np.bincount(sim.log.level, sim.log.response, K) / np.maximum(np.bincount(sim.log.level, minlength=K), 1)


# -- what it comes to ------------------------------------------------------------------------------------------------


def summary(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return mean, sd and count of RMSE by simulation, model and rows, and each model's slope on doubly logarithmic paper.

    A slope of −½ is that of a model whose error is all noise; 0 that of one that has nothing left to learn.
    """
    cells: dict[str, Any] = {}
    slopes: dict[str, Any] = {}
    for name, model in dict.fromkeys((record["simulation"], record["model"]) for record in records):
        mine = [record for record in records if (record["simulation"], record["model"]) == (name, model)]
        counts = dict.fromkeys(record["rows"] for record in mine)
        by_rows = {n: moments([record["rmse"] for record in mine if record["rows"] == n]) for n in counts}
        cells.setdefault(name, {})[model] = {str(n): cell for n, cell in by_rows.items()}
        slopes.setdefault(name, {})[model] = moments(_slopes(mine))
    return {"cells": cells, "slopes": slopes}


def _slopes(records: Sequence[dict[str, Any]]) -> list[float]:
    """Return the slope of log RMSE over log rows, of every seed; none where there are fewer than two sizes."""
    found = []
    for seed in dict.fromkeys(record["seed"] for record in records):
        points = [(record["rows"], record["rmse"]) for record in records if record["seed"] == seed]
        if len({n for n, _ in points}) > 1:
            across, up = np.log(np.array(points, dtype=np.float64)).T
            found.append(float(np.polyfit(across, up, 1)[0]))
    return found


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return mean RMSE ± standard error as Markdown, one table per simulation."""
    return summary_table(summary(records))


def summary_table(found: dict[str, Any]) -> str:
    """Return the same from a summary."""
    lines: list[str] = []
    for name, by_model in found["cells"].items():
        rows = list(dict.fromkeys(n for row in by_model.values() for n in row))
        lines += [f"\n### {name}\n", "| model | " + " | ".join(f"n = {int(n):,}" for n in rows) + " | slope |"]
        lines += ["|---|" + "---:|" * (len(rows) + 1)]
        for model, row in by_model.items():
            cells = [_cell(row.get(n), 4) for n in rows] + [_cell(found["slopes"][name][model], 2)]
            lines.append(f"| {model} | " + " | ".join(cells) + " |")
    return "\n".join(lines).strip() + "\n"


def _cell(cell: dict[str, Any] | None, digits: int) -> str:
    if cell is None or cell["mean"] is None:
        return "–"
    mean = f"{cell['mean']:.{digits}f}".replace("-", "−")
    return mean if cell["se"] is None else f"{mean} ± {cell['se']:.{digits}f}"


def series(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return lines to draw over the number of rows: a panel per simulation, a line per model."""
    return summary_series(summary(records))


def summary_series(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the same from a summary."""
    lines = []
    for name, by_model in found["cells"].items():
        for model, row in by_model.items():
            drawn = {"mean": [cell["mean"] for cell in row.values()], "sd": [cell["sd"] for cell in row.values()]}
            lines.append({"panel": name, "label": model, "x": [int(n) for n in row], **drawn})
    return lines
