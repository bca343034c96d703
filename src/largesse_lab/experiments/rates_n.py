"""How fast response models learn: error of the curves against the number of rows of the log.

Worlds are those of a seed; every model meets the same rows, and judged are fresh customers of the same world, on whom the
true curves are known. Networks are small (half the default's width, three folds, one member), so that the whole grid runs on
two CPU cores; those of all worlds with one number of rows are fitted together, since most of their time goes into compiling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from largesse.errors import refuse
from largesse.response import IRE, SIRE, Linear, ResponseModel, fit_together
from largesse.worlds import SIMULATIONS, simulate
from largesse_lab.bench.kept import Kept
from largesse_lab.bench.measures import level_means, root_mean_square
from largesse_lab.bench.repeats import part_problems, taken, unknown
from largesse_lab.experiments.rates import moments

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
    part: tuple[int, int] = (0, 1),
    out: str | Path | None = None,
    tell: Callable[[str, float], None] = lambda _what, _done: None,
) -> list[dict[str, Any]]:
    """Return one record per simulation, seed, number of rows and model: RMSE over fresh customers and all levels.

    `part` (i, n) takes every n-th seed.
    """
    _check(simulations, models, part)
    kept = Kept(out, ("simulation", "seed", "rows", "model"))
    mine = taken(seeds, part)
    groups = [(n, model) for n in rows for model in models]
    for done, (n, model) in enumerate(groups):
        tell(f"{n:,} rows: {model}", done / len(groups))
        keys = [(name, seed, n, model) for seed in mine for name in simulations]
        for record in _measured([key for key in keys if key not in kept.found]):
            kept.add(record)
    return [kept.found[name, seed, n, model] for seed in mine for name in simulations for n in rows for model in models]


def _check(simulations: Sequence[str], models: Sequence[str], part: tuple[int, int]) -> None:
    wrong = unknown("simulation", simulations, SIMULATIONS) + unknown("model", models, (MEANS, *MODELS))
    refuse("experiment", wrong + part_problems(part))


def _measured(keys: Sequence[tuple[str, int, int, str]]) -> Iterator[dict[str, Any]]:
    """Measure one model on the logs of several simulations and seeds."""
    sims = [simulate(name, n=n, seed=seed) for name, seed, n, _ in keys]
    models = [MODELS[model]() for *_, model in keys if model != MEANS]
    if models:
        fit_together(models, [sim.log for sim in sims])
    for i, ((name, seed, n, model), sim) in enumerate(zip(keys, sims, strict=True)):
        fresh = sim.draw(FRESH, seed=FRESH_SEED)
        curves = models[i].predict(fresh.features) if models else level_means(sim.log)
        error = root_mean_square(curves - fresh.truth)
        yield {"simulation": name, "seed": seed, "rows": n, "model": model, "rmse": error}


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
