"""Convergence of estimation errors with the number of levels (the paper's Proposition 3) and of rows.

**Levels** (`rates`). Every level has n rows with noise σ, so the free least squares estimate is the K level means, each off by
s = σ/√n, and the monotone one is their projection onto curves that never fall. The mean squared error over levels, divided by
s², depends on the truth only through its gaps in units of s. These gaps are all that is simulated; n and σ need no values.

The proposition promises the monotone estimate an error of log(K)/K for every non-falling truth, and the free one 1. For k
constant pieces that lie far apart, the error is the sum over pieces of the harmonic number of their length, over K: about
k log(eK/k)/K, so the promise holds, up to k. A truth that rises at every level has K pieces: with gaps far above s nothing is
pooled, and the error is 1 whatever K is. With gaps below s pooling helps, by a share that does not depend on K. If the whole
rise is fixed, gaps shrink as K grows and the error falls as K^(−2/3), more slowly than promised.

**Rows** (`rates_n`). Response models are fitted to logs of growing length from the same simulated worlds and judged on fresh
customers, whose true curves are known. Networks are small (half the default width, three folds, one member), so that the whole
grid runs on two CPU cores; those of all worlds with the same number of rows are fitted together, since compiling takes most of
their time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from largesse.errors import refuse
from largesse.records import Array, Progress
from largesse.response import IRE, SIRE, Linear, ResponseModel, make_monotone
from largesse.worlds import SIMULATIONS, simulate
from largesse_lab.experiments.experiment_definition import Experiment
from largesse_lab.pages.figures import FigureText, draw_lines
from largesse_lab.pages.markdown import Section, format_mean, format_table
from largesse_lab.pages.method_comparison import Summary, list_distinct_values
from largesse_lab.runner.concurrent_model_fitting import fit_models_together
from largesse_lab.runner.experiment_request import (
    Records,
    Request,
    find_unknown_name_problems,
    ignore_progress,
    select_repeats_of_part,
)
from largesse_lab.runner.record_cache import Key, RecordCache
from largesse_lab.runner.truth_measures import FRESH_ROWS, FRESH_SEED, compute_root_mean_square, measure_level_means

# -- by the number of levels -------------------------------------------------------------------------------------------

RATE_LEVELS = (2, 5, 10, 20, 50, 100)
CURVES_PER_REPEAT = 200
WIDE_GAP, NARROW_GAP, TOTAL_RISE = 10.0, 0.2, 10.0  # in units of the standard error of a level's mean
SEED = 32
TRUTHS: dict[str, Callable[[int], Array]] = {
    "constant": lambda K: np.zeros(K),
    "2 pieces": lambda K: make_piecewise_constant_curve(K, 2),
    "5 pieces": lambda K: make_piecewise_constant_curve(K, 5),
    f"rise of {TOTAL_RISE:g} s in all": lambda K: np.linspace(0.0, TOTAL_RISE, K),
    f"gaps of {NARROW_GAP:g} s": lambda K: NARROW_GAP * np.arange(K),
    f"gaps of {WIDE_GAP:g} s": lambda K: WIDE_GAP * np.arange(K),
}
ESTIMATES = ("free", "monotone")


def measure_level_errors(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per true curve, number of levels and repeat: mean squared errors in units of σ²/n."""
    truths = tuple(TRUTHS) if request.problems is None else request.problems
    refuse("experiment", find_unknown_name_problems("truth", truths, list(TRUTHS)))
    repeats = select_repeats_of_part(100 if request.repeats is None else request.repeats, request.part)
    keys = [(truth, K, repeat) for truth in truths for K in RATE_LEVELS for repeat in repeats]
    return RecordCache(request.out, ("truth", "levels", "repeat")).measure_each(
        keys, _measure_errors_on_truth, progress
    )


def make_piecewise_constant_curve(K: int, k: int) -> Array:
    """Return a true curve (K,) of k constant segments of about equal length.

    >>> make_piecewise_constant_curve(5, 2)
    array([ 0.,  0.,  0., 10., 10.])
    """
    return WIDE_GAP * np.floor(np.arange(K) * min(k, K) / K)


def _measure_errors_on_truth(truth: str, K: int, repeat: int) -> dict[str, Any]:
    rng = np.random.default_rng((SEED, list(TRUTHS).index(truth), K, repeat))
    curve = TRUTHS[truth](K)
    means = curve + rng.standard_normal((CURVES_PER_REPEAT, K))
    estimates = {"free": means, "monotone": make_monotone(means)}
    errors = {name: float(np.mean((estimate - curve) ** 2)) for name, estimate in estimates.items()}
    return {"truth": truth, "levels": K, "repeat": repeat, **errors}


def compute_theoretical_error(K: int) -> float:
    """Return the mean squared error that Proposition 3 predicts for K levels, in units of σ²/n."""
    return float(np.log(K) / K)


def compute_monotone_regression_error(truth: str, K: int) -> float:
    """Return the exact mean squared error of monotone regression on a curve with widely spaced constant segments.

    It is a sum of harmonic numbers over the pieces.

    >>> compute_monotone_regression_error("gaps of 10 s", 7)
    1.0
    """
    _, lengths = np.unique(TRUTHS[truth](K), return_counts=True)
    return float(sum(np.sum(1.0 / np.arange(1, m + 1)) for m in lengths) / K)


def summarise_level_errors(records: Records) -> dict[str, Any]:
    """Return the mean, deviation and standard error of errors by true curve and number of levels."""
    cells: dict[str, Any] = {}
    for truth, K in dict.fromkeys((record["truth"], record["levels"]) for record in records):
        of_cell = [record for record in records if (record["truth"], record["levels"]) == (truth, K)]
        cell: dict[str, Any] = {name: compute_moments([record[name] for record in of_cell]) for name in ESTIMATES}
        cells.setdefault(truth, {})[str(K)] = {
            **cell,
            "promised": compute_theoretical_error(K),
            "known": compute_monotone_regression_error(truth, K),
        }
    return {"cells": cells, "curves": CURVES_PER_REPEAT}


def compute_moments(values: Sequence[float]) -> dict[str, Any]:
    """Return the mean, standard deviation, standard error and count of numbers; None if too few."""
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    se = None if sd is None else sd / len(values) ** 0.5
    return {"mean": float(np.mean(values)) if values else None, "sd": sd, "se": se, "n": len(values)}


def tabulate_level_errors(summary: Summary) -> str:
    """Return a Markdown table of monotone-estimate errors and their ratios to the predicted error."""
    levels = list(dict.fromkeys(K for row in summary["cells"].values() for K in row))
    rows = [["promised, log(K)/K", *(f"{compute_theoretical_error(int(K)):.4f}" for K in levels)]]
    rows += [[truth, *(_write_error_ratio(row.get(K)) for K in levels)] for truth, row in summary["cells"].items()]
    return format_table(["truth", *(f"K = {K}" for K in levels)], rows)


def _write_error_ratio(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return format_mean(None)
    mean, se = cell["monotone"]["mean"], cell["monotone"]["se"]
    return f"{format_mean(mean, se)} ({mean / cell['promised']:.1f} ×)"


def list_error_lines_by_levels(summary: Summary) -> list[dict[str, Any]]:
    """Return the figure's lines of error over the number of levels, one panel per true curve."""
    lines = []
    for truth, row in summary["cells"].items():
        levels = [int(K) for K in row]
        estimates = {name: _list_line_points([cell[name] for cell in row.values()]) for name in ESTIMATES}
        estimates["promised"] = {"mean": [compute_theoretical_error(K) for K in levels]}
        lines += [{"panel": truth, "label": name, "x": levels, **points} for name, points in estimates.items()]
    return lines


def _list_line_points(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: [cell[name] for cell in cells] for name in ("mean", "sd")}


def fill_level_section(section: Section, summary: Summary) -> None:
    """Add the figure and the table of errors by number of levels to the result section."""
    text = FigureText(
        "Error by the number of levels",
        "number of levels K",
        "mean squared error / (σ²/n)",
        "s = σ/√n, the standard error of a level’s mean. Bands: ± 1 sd over repeats.",
    )
    lines = list_error_lines_by_levels(summary)
    section.add_figure(
        partial(draw_lines, lines, text, log_x=True, log_y=True, share_y=True, references=["promised"]), text.title
    )
    section.add("Error of the monotone estimate ± standard error, and its ratio to the promised error:")
    section.add(tabulate_level_errors(summary))


LEVELS_EXPERIMENT = Experiment(
    "rates",
    "Proposition 3: error by the number of levels",
    measure_level_errors,
    summarise_level_errors,
    fill_level_section,
    setup="""\
For every true curve that never falls, Proposition 3 promises least squares over non-falling curves an error of σ² log(K)/(nK),
where free least squares has σ²/n. Both are fitted to K level means of n rows each. Errors are given in units of σ²/n, and gaps
between levels in units of s = σ/√n. The true curves are constant, consist of 2 or 5 constant pieces that lie 10 s apart, or rise
in equal steps: by 10 s in all, or by 0.2 s or 10 s at every level.""",
    differences="""\
The proof counts curves on one grid, although the grid is centred differently at every level, and one of its entropy bounds is
conjectured. For k constant pieces the error is about σ² k log(eK/k)/(nK), which is the promise, up to k. Where gaps are below
the noise, pooling neighbours helps. Where a curve rises at every level by much more than s there is nothing to pool, and the
monotone estimate equals the free one. With few rows per level, when help is needed most, gaps are small compared with s and the
gain is real.""",
    parallel=False,
)

# -- by the number of rows ---------------------------------------------------------------------------------------------

RATE_LOG_ROWS = (250, 500, 1000, 2000, 4000, 8000)
SMALL_NETWORK: dict[str, Any] = {"network__width": 32, "members": 1, "folds": 3}
MEANS = "level means"
RATE_MODELS: dict[str, Callable[[], ResponseModel]] = {
    "linear": Linear,
    "sire": lambda: SIRE().set_params(**SMALL_NETWORK),
    "sire common": lambda: SIRE(kappa=0.0, shrinkage=np.inf).set_params(**SMALL_NETWORK),
    "ire": lambda: IRE().set_params(**SMALL_NETWORK),
}


def measure_errors_by_rows(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per simulation, seed, number of rows and model: RMSE on new simulated customers."""
    names = ("averaged", "confounded") if request.problems is None else request.problems
    models = (MEANS, *RATE_MODELS) if request.models is None else request.models
    unknown = find_unknown_name_problems("simulation", names, SIMULATIONS) + find_unknown_name_problems(
        "model", models, (MEANS, *RATE_MODELS)
    )
    refuse("experiment", unknown)
    seeds = select_repeats_of_part(10 if request.repeats is None else request.repeats, request.part)
    groups = [[(name, seed, n, model) for seed in seeds for name in names] for n in RATE_LOG_ROWS for model in models]
    cache = RecordCache(request.out, ("simulation", "seed", "rows", "model"))
    cache.measure_groups(groups if seeds else [], _measure_model_errors, progress)
    return cache.select(
        (name, seed, n, model) for seed in seeds for name in names for n in RATE_LOG_ROWS for model in models
    )


def _measure_model_errors(keys: Sequence[Key]) -> Iterator[dict[str, Any]]:
    """Yield the records of one model on the logs of several simulations and seeds."""
    sims = [simulate(name, n=n, seed=seed) for name, seed, n, _ in keys]
    models = [RATE_MODELS[model]() for *_, model in keys if model != MEANS]
    if models:
        fit_models_together(models, [sim.log for sim in sims])
    for i, ((name, seed, n, model), sim) in enumerate(zip(keys, sims, strict=True)):
        fresh = sim.draw(FRESH_ROWS, seed=FRESH_SEED)
        curves = models[i].predict(fresh.features) if models else measure_level_means(sim.log)
        error = compute_root_mean_square(curves - fresh.truth)
        yield {"simulation": name, "seed": seed, "rows": n, "model": model, "rmse": error}


def summarise_errors_by_rows(records: Records) -> dict[str, Any]:
    """Return mean RMSE by simulation, model and rows, and each model's slope of log RMSE over log rows.

    The slope is −½ where all error is noise, and 0 where nothing is left to learn.
    """
    cells: dict[str, Any] = {}
    slopes: dict[str, Any] = {}
    for name, model in dict.fromkeys((record["simulation"], record["model"]) for record in records):
        of_model = [record for record in records if (record["simulation"], record["model"]) == (name, model)]
        cells.setdefault(name, {})[model] = {
            str(n): compute_moments([record["rmse"] for record in of_model if record["rows"] == n])
            for n in list_distinct_values(of_model, "rows")
        }
        slopes.setdefault(name, {})[model] = compute_moments(_fit_error_slopes(of_model))
    return {"cells": cells, "slopes": slopes}


def _fit_error_slopes(records: Records) -> list[float]:
    """Return the slope of log RMSE over log rows for each seed with several numbers of rows."""
    slopes = []
    for seed in list_distinct_values(records, "seed"):
        points = [(record["rows"], record["rmse"]) for record in records if record["seed"] == seed]
        if len({n for n, _ in points}) > 1:
            log_rows, log_errors = np.log(np.array(points, dtype=np.float64)).T
            slopes.append(float(np.polyfit(log_rows, log_errors, 1)[0]))
    return slopes


def tabulate_errors_by_rows(summary: Summary) -> str:
    """Return Markdown tables of mean RMSE ± standard error by rows, one per simulation."""
    parts = []
    for name, by_model in summary["cells"].items():
        rows = list(dict.fromkeys(n for row in by_model.values() for n in row))
        body = []
        for model, row in by_model.items():
            cells = [row.get(n, {"mean": None, "se": None}) for n in rows]
            slope = summary["slopes"][name][model]
            errors = [format_mean(cell["mean"], cell["se"]) for cell in cells]
            body.append([model, *errors, format_mean(slope["mean"], slope["se"], 2)])
        head = ["model", *(f"n = {int(n):,}" for n in rows), "slope"]
        parts += [f"## {name}", format_table(head, body)]
    return "\n\n".join(parts)


def list_error_lines_by_rows(summary: Summary) -> list[dict[str, Any]]:
    """Return the figure's lines of RMSE over the number of rows, one panel per simulation."""
    return [
        {"panel": name, "label": model, "x": [int(n) for n in row], **_list_line_points(list(row.values()))}
        for name, by_model in summary["cells"].items()
        for model, row in by_model.items()
    ]


def fill_row_section(section: Section, summary: Summary) -> None:
    """Add the figure and the tables of errors by number of rows to the result section."""
    text = FigureText("Error by rows of the log", "rows n", "RMSE of curves", "Bands: ± 1 sd over worlds.")
    section.add_figure(partial(draw_lines, list_error_lines_by_rows(summary), text, log_x=True, log_y=True), text.title)
    section.add("RMSE ± standard error:", tabulate_errors_by_rows(summary))


SIZES_EXPERIMENT = Experiment(
    "rates_n",
    "Error by rows of the log",
    measure_errors_by_rows,
    summarise_errors_by_rows,
    fill_row_section,
    setup="""\
Response models fitted to logs of growing length from the same simulated worlds; networks are smaller than the default, and
`sire common` gives all customers the same increments (κ = 0). The slope is that of log RMSE over log n: −½ if all error is
noise, 0 if nothing is left to learn.""",
)
