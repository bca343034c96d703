"""Error of response curves and value of plans by the strength κ of the balance penalty.

SIRE and IRE are those of Table 1, with κ given instead of chosen. A problem is a log together with customers whose truth is
known. With two levels the error is that of the effect (√PEHE), otherwise RMSE. The data sets of Table 2 are problems if
their files exist, with its wider networks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from largesse.allocation import allocate
from largesse.errors import refuse
from largesse.records import Array, Log, Progress
from largesse.response import IRE, SIRE, Balance
from largesse_lab.experiments import table2
from largesse_lab.experiments.experiment_definition import Experiment
from largesse_lab.nested_label_logs import NESTED_FILES, has_nested_file
from largesse_lab.pages.figures import FigureText, draw_lines
from largesse_lab.pages.markdown import NUMBER_DASH, Section, format_mean, format_table
from largesse_lab.pages.method_comparison import (
    NORMALISED,
    Summary,
    average_column,
    compare_paired_means,
    is_higher_better,
    keep_latest_records,
    list_distinct_values,
    make_column_title,
)
from largesse_lab.runner.concurrent_model_fitting import fit_models_together
from largesse_lab.runner.experiment_request import (
    Records,
    Request,
    find_unknown_name_problems,
    ignore_progress,
    match_names,
    select_repeats_of_part,
    split_chunks,
)
from largesse_lab.runner.method_measurement import select_settings_without_gpu, simulate_repeat
from largesse_lab.runner.paper_methods import CPU_NETWORK, LITERAL, PAPER_BALANCE
from largesse_lab.runner.record_cache import Key, RecordCache
from largesse_lab.runner.truth_measures import compute_root_mean_square, measure_effect_error

TRIED_KAPPAS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
NORMALISED_KAPPAS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
KAPPA_KEY = ("problem", "repeat", "row", "kappa")  # "row" is the model
REPEATS, CHUNK = 20, 50
KAPPA_TITLE = "Strength of the balance penalty: κ"
ONLY_NORMALISED = """\
Only the normalised penalty was measured here. Table 1 measures the paper's own penalty at a κ that is chosen on held-out rows."""


def _make_sire(kappa: float, balance: Balance = PAPER_BALANCE) -> SIRE:
    return SIRE(head="minmax", kappa=kappa, balance=balance).set_params(
        **{**LITERAL, **select_settings_without_gpu(CPU_NETWORK)}
    )


def _make_ire(kappa: float, balance: Balance = PAPER_BALANCE) -> IRE:
    return IRE(kappa=kappa, balance=balance).set_params(**{**LITERAL, **select_settings_without_gpu(CPU_NETWORK)})


KAPPA_MODELS: dict[str, Callable[[float], Any]] = {
    "CCPOvSIRE": _make_sire,
    "CCPOvIRE": _make_ire,
    f"CCPOvSIRE{NORMALISED}": partial(_make_sire, balance=Balance()),
    f"CCPOvIRE{NORMALISED}": partial(_make_ire, balance=Balance()),
}


def list_kappas(model: str) -> tuple[float, ...]:
    """Return the strengths κ at which a model is measured."""
    return NORMALISED_KAPPAS if model.endswith(NORMALISED) else TRIED_KAPPAS


@dataclass(frozen=True, eq=False)
class BalanceTask:
    """Training log and test customers with known responses."""

    log: Log
    customers: Any  # the argument of `predict`
    truth: Array  # (n, K)
    costs: Array  # (K,) or (n, K)
    budgets: tuple[float, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)  # model settings that differ from those of Table 1


def draw_levels_task(simulation: str, repeat: int) -> BalanceTask:
    """Return the log of a simulation with all levels, and its test customers."""
    data = simulate_repeat(simulation, repeat)
    return BalanceTask(data.log, data.fresh.features, data.fresh.truth, data.fresh.costs, (3.0,))


def draw_binary_task(simulation: str, repeat: int) -> BalanceTask:
    """Return the log of a simulation with its first two levels, and its test customers."""
    data = simulate_repeat(simulation, repeat)
    assert data.binary is not None
    return BalanceTask(data.binary, data.fresh.features, data.fresh.truth[:, :2], data.fresh.costs[:2])


def draw_nested_task(name: str, repeat: int) -> BalanceTask:
    """Return the log of a nested classification data set, and its test customers."""
    data = table2.draw_nested_repeat(name, repeat)
    wide = {
        "network__width": select_settings_without_gpu(CPU_NETWORK).get("network__width", table2.WIDE["network__width"])
    }
    return BalanceTask(data.log, data.fresh.features, data.fresh.truth, data.fresh.costs, (1.0, 2.0), wide)


PROBLEMS: dict[str, Callable[[int], BalanceTask]] = {
    "averaged, binary": partial(draw_binary_task, "averaged"),
    "averaged": partial(draw_levels_task, "averaged"),
    "instrument, binary": partial(draw_binary_task, "instrument"),
    "instrument": partial(draw_levels_task, "instrument"),
    **{name: partial(draw_nested_task, name) for name in NESTED_FILES},
}


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per data set, repeat, model and κ: the error of curves and the value of plans."""
    names = match_names(list_available_problems() if request.problems is None else request.problems, PROBLEMS)
    models = tuple(KAPPA_MODELS) if request.models is None else match_names(request.models, KAPPA_MODELS)
    refuse(
        "experiment",
        find_unknown_name_problems("problem", names, list(PROBLEMS))
        + find_unknown_name_problems("model", models, list(KAPPA_MODELS)),
    )
    repeats = select_repeats_of_part(REPEATS if request.repeats is None else request.repeats, request.part)
    pairs = [(name, repeat) for name in names for repeat in repeats]
    groups = [
        [(*pair, model, kappa) for pair in chunk for kappa in list_kappas(model)]
        for chunk in split_chunks(pairs, request.chunk or CHUNK)
        for model in models
    ]
    cache = RecordCache(request.out, KAPPA_KEY)
    cache.measure_groups(groups, _measure_group, progress)
    return cache.select((*pair, model, kappa) for pair in pairs for model in models for kappa in list_kappas(model))


def list_available_problems() -> list[str]:
    """Return the names of the data sets and simulations whose data files exist."""
    return [name for name in PROBLEMS if name not in NESTED_FILES or has_nested_file(name)]


def _measure_group(keys: Sequence[Key]) -> Records:
    drawn = {(name, repeat): PROBLEMS[name](repeat) for name, repeat in dict.fromkeys(key[:2] for key in keys)}
    tasks = [drawn[key[:2]] for key in keys]
    models = [
        KAPPA_MODELS[model](kappa).set_params(seed=repeat, **task.settings)
        for (_, repeat, model, kappa), task in zip(keys, tasks, strict=True)
    ]
    fit_models_together(models, [task.log for task in tasks])
    return [
        dict(zip(KAPPA_KEY, key, strict=True)) | measure_model_against_truth(model, task)
        for key, model, task in zip(keys, models, tasks, strict=True)
    ]


def measure_model_against_truth(model: Any, task: BalanceTask) -> dict[str, float]:
    """Return the error of a fitted model's curves, and the true value of its plans."""
    curves = model.predict(task.customers)
    binary = task.truth.shape[1] == 2
    record = {
        "error": measure_effect_error(curves, task.truth) if binary else compute_root_mean_square(curves - task.truth)
    }
    rows = np.arange(len(curves))
    for budget in task.budgets:
        levels = allocate(curves, task.costs, budget).levels
        record[f"value {budget:g}"] = float(task.truth[rows, levels].mean())
    return record


# -- the summary -------------------------------------------------------------------------------------------------------


def list_kappa_lines(records: Records) -> list[dict[str, Any]]:
    """Return the lines of the figures: mean, deviation and count of a measure over κ, per model and problem."""
    lines, records = [], keep_latest_records(records, KAPPA_KEY)
    for problem in list_distinct_values(records, "problem"):
        of_problem = [record for record in records if record["problem"] == problem]
        columns = dict.fromkeys(name for record in of_problem for name in record if name not in KAPPA_KEY)
        for column in columns:
            for model in list_distinct_values(of_problem, "row"):
                of_model = [record for record in of_problem if record["row"] == model]
                kappas = sorted(list_distinct_values(of_model, "kappa"))
                cells = [average_column([r for r in of_model if r["kappa"] == k], column) or {} for k in kappas]
                points = {name: [cell.get(name) for cell in cells] for name in ("mean", "sd", "n")}
                lines.append({"panel": f"{problem}: {column}", "label": model, "x": kappas, **points})
    return lines


def summarise(records: Records) -> dict[str, Any]:
    """Return the figures' lines, and each model's paired differences from κ = 0."""
    against, records = [], keep_latest_records(records, KAPPA_KEY)
    lines = list_kappa_lines(records)
    for line in lines:
        problem, column = split_panel_name(line["panel"])
        of_line = [r for r in records if (r["problem"], r["row"]) == (problem, line["label"])]
        base = [r for r in of_line if r["kappa"] == 0]
        for kappa in line["x"]:
            difference = (
                compare_paired_means([r for r in of_line if r["kappa"] == kappa], base, column) if kappa else None
            )
            if difference:
                against.append({"panel": line["panel"], "label": line["label"], "kappa": kappa, **difference})
    return {"series": lines, "against": against}


def split_panel_name(panel: str) -> tuple[str, str]:
    """Split the name of a figure's panel into problem and measure.

    >>> split_panel_name("averaged, binary: error")
    ('averaged, binary', 'error')
    """
    problem, _, column = panel.rpartition(": ")
    return problem, column


# -- the page ----------------------------------------------------------------------------------------------------------


def fill(section: Section, summary: Summary) -> None:
    """Add the figures and tables of measures by κ to the result section."""
    lines = summary["series"]
    if lines and all(line["label"].endswith(NORMALISED) for line in lines):
        section.add(ONLY_NORMALISED)
    for column in dict.fromkeys(split_panel_name(line["panel"])[1] for line in lines):
        of_column = [
            {**line, "panel": problem}
            for line in lines
            for problem, name in [split_panel_name(line["panel"])]
            if name == column
        ]
        title = f"{KAPPA_TITLE}, {make_column_title(column)}"
        note = f"Bands: ± 1 sd over {describe_repeat_counts(of_column)}. Normalised models have a κ of another scale."
        text = FigureText(title, "κ", make_column_title(column), note)
        section.add_figure(partial(draw_lines, of_column, text, log_x=True), title, column)
    section.add(tabulate_kappa_comparisons(summary["against"]), tabulate_kappa_means(lines))


def describe_repeat_counts(lines: Sequence[Mapping[str, Any]]) -> str:
    """Describe the number of repeats, and name the problems with fewer repeats.

    >>> describe_repeat_counts([{"panel": "a", "n": [50, 50]}, {"panel": "b", "n": [10, 10]}])
    '50 repeats; b: 10'
    >>> describe_repeat_counts([{"panel": "a", "n": [50]}, {"panel": "a", "n": [20]}])
    'at least 20 repeats'
    """
    counts: dict[str, list[int]] = {}
    for line in lines:
        counts.setdefault(line["panel"], []).extend(n for n in line["n"] if n)
    least = {panel: min(numbers) for panel, numbers in counts.items()}
    usual = max(least.values())
    mixed = any(max(numbers) > min(numbers) for numbers in counts.values())
    fewer = {n: [panel for panel, m in least.items() if m == n] for n in sorted(set(least.values()) - {usual})}
    first = f"{'at least ' if mixed else ''}{usual} repeats"
    return "; ".join([first, *(f"{', '.join(panels)}: {n}" for n, panels in fewer.items())])


def tabulate_kappa_means(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table of means by κ, the weight of the balancing penalty: a row per problem, measure, model."""
    kappas = sorted({kappa for line in lines for kappa in line["x"]})
    body = []
    for line in lines:
        cells = dict(zip(line["x"], zip(line["mean"], line["sd"], strict=True), strict=True))
        means = [format_mean(*cells.get(kappa, (None, None))) for kappa in kappas]
        body.append([f"{line['panel']}, {line['label']}", *means])
    return format_table(["problem, measure and model", *(f"κ = {kappa:g}" for kappa in kappas)], body)


def tabulate_kappa_comparisons(against: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table of the κ at which a model is better or worse than without a penalty."""
    if not against:
        return ""
    body = []
    for panel, label in dict.fromkeys((row["panel"], row["label"]) for row in against):
        rows = [row for row in against if (row["panel"], row["label"]) == (panel, label)]
        kappas = [[f"{row['kappa']:g}" for row in rows if _classify_difference(row) == sign] for sign in (1, -1, 0)]
        problem, column = split_panel_name(panel)
        body.append([problem, make_column_title(column), label, *(", ".join(group) or NUMBER_DASH for group in kappas)])
    head = ["problem", "measure", "model", "better than κ = 0 at κ =", "worse at κ =", "undecided at κ ="]
    return format_table(head, body, text_columns=6) + "\n\nBy 95 % intervals of paired differences."


def _classify_difference(row: Mapping[str, Any]) -> int:
    """Return 1 if κ is better than κ = 0, −1 if worse, and 0 if the interval contains zero."""
    sign = 1 if is_higher_better(split_panel_name(row["panel"])[1]) else -1
    return sign * ((row["low"] > 0) - (row["high"] < 0))


KAPPA_EXPERIMENT = Experiment(
    "kappa",
    KAPPA_TITLE,
    measure,
    summarise,
    fill,
    setup="""\
The models of Table 1 with the strength κ of the balance penalty fixed in advance, from zero to large, instead of chosen on
held-out rows. κ = 0 stands at the left end. The models CCPOvSIRE and CCPOvIRE have the paper's penalty, which also
falls when the representation shrinks. In models called “normalised” it cannot: the representation is brought to unit mean square
first, so its κ is on another scale.""",
    differences="""\
The paper gives no values of κ, and the scale of its κ depends on that of the representation: the positions of minima cannot be
compared with the paper's. The shapes of curves can, but only those of models with the paper's penalty.""",
)
