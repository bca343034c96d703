"""Error of the curves and reward of the plan against the strength κ of the balance penalty, from 0 on.

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
from largesse_lab.nested_classification import NESTED_FILES, has_nested
from largesse_lab.pages.figures import FigureText, draw_lines
from largesse_lab.pages.markdown import NUMBER_DASH, Section, format_table, write_mean
from largesse_lab.pages.method_comparison import (
    NORMALISED,
    Summary,
    average_column,
    is_higher_better,
    keep_latest,
    list_values,
    subtract,
    title_column,
)
from largesse_lab.runner.experiment_request import (
    Records,
    Request,
    find_unknown,
    ignore_progress,
    match_names,
    split_chunks,
    take_part,
)
from largesse_lab.runner.joint_training import fit_together
from largesse_lab.runner.method_repeats import simulate_repeat, without_gpu
from largesse_lab.runner.paper_methods import CPU_NETWORK, LITERAL, PAPER_BALANCE
from largesse_lab.runner.record_cache import Key, RecordCache
from largesse_lab.runner.truth_measures import measure_effect_error, root_mean_square

TRIED_KAPPAS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
NORMALISED_KAPPAS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
KAPPA_KEY = ("problem", "repeat", "row", "kappa")  # "row" is the model
REPEATS, CHUNK = 20, 50
KAPPA_TITLE = "Strength of the balance penalty: κ"
ONLY_NORMALISED = """\
Only the normalised penalty was measured here. Table 1 measures the paper's own penalty at a κ that is chosen on held-out rows."""


def _make_sire(kappa: float, balance: Balance = PAPER_BALANCE) -> SIRE:
    return SIRE(head="minmax", kappa=kappa, balance=balance).set_params(**{**LITERAL, **without_gpu(CPU_NETWORK)})


def _make_ire(kappa: float, balance: Balance = PAPER_BALANCE) -> IRE:
    return IRE(kappa=kappa, balance=balance).set_params(**{**LITERAL, **without_gpu(CPU_NETWORK)})


KAPPA_MODELS: dict[str, Callable[[float], Any]] = {
    "CCPOvSIRE": _make_sire,
    "CCPOvIRE": _make_ire,
    f"CCPOvSIRE{NORMALISED}": partial(_make_sire, balance=Balance()),
    f"CCPOvIRE{NORMALISED}": partial(_make_ire, balance=Balance()),
}


def list_strengths(model: str) -> tuple[float, ...]:
    """Return the κ at which a model is measured: a normalised penalty has another scale."""
    return NORMALISED_KAPPAS if model.endswith(NORMALISED) else TRIED_KAPPAS


@dataclass(frozen=True, eq=False)
class Task:
    """A log to learn from, and customers on whom models are judged."""

    log: Log
    customers: Any  # the argument of `predict`
    truth: Array  # (n, K)
    costs: Array  # (K,) or (n, K)
    budgets: tuple[float, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)  # model settings that differ from those of Table 1


def draw_levels_task(simulation: str, repeat: int) -> Task:
    """Return a simulation's log with all its levels."""
    data = simulate_repeat(simulation, repeat)
    return Task(data.log, data.fresh.features, data.fresh.truth, data.fresh.costs, (3.0,))


def draw_binary_task(simulation: str, repeat: int) -> Task:
    """Return a simulation's log with its first two levels."""
    data = simulate_repeat(simulation, repeat)
    assert data.binary is not None
    return Task(data.binary, data.fresh.features, data.fresh.truth[:, :2], data.fresh.costs[:2])


def draw_nested_task(name: str, repeat: int) -> Task:
    """Return the log of a nested classification data set."""
    data = table2.draw_repeat(name, repeat)
    wide = {"network__width": without_gpu(CPU_NETWORK).get("network__width", table2.WIDE["network__width"])}
    return Task(data.log, data.fresh.features, data.fresh.truth, data.fresh.costs, (1.0, 2.0), wide)


PROBLEMS: dict[str, Callable[[int], Task]] = {
    "averaged, binary": partial(draw_binary_task, "averaged"),
    "averaged": partial(draw_levels_task, "averaged"),
    "instrument, binary": partial(draw_binary_task, "instrument"),
    "instrument": partial(draw_levels_task, "instrument"),
    **{name: partial(draw_nested_task, name) for name in NESTED_FILES},
}


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per problem (by default all whose data exist), repeat, model and κ."""
    names = match_names(list_available() if request.problems is None else request.problems, PROBLEMS)
    models = tuple(KAPPA_MODELS) if request.models is None else match_names(request.models, KAPPA_MODELS)
    refuse(
        "experiment", find_unknown("problem", names, list(PROBLEMS)) + find_unknown("model", models, list(KAPPA_MODELS))
    )
    repeats = take_part(REPEATS if request.repeats is None else request.repeats, request.part)
    pairs = [(name, repeat) for name in names for repeat in repeats]
    groups = [
        [(*pair, model, kappa) for pair in chunk for kappa in list_strengths(model)]
        for chunk in split_chunks(pairs, request.chunk or CHUNK)
        for model in models
    ]
    cache = RecordCache(request.out, KAPPA_KEY)
    cache.measure_groups(groups, _measure_group, progress)
    return cache.select((*pair, model, kappa) for pair in pairs for model in models for kappa in list_strengths(model))


def list_available() -> list[str]:
    """Return the problems whose data exist."""
    return [name for name in PROBLEMS if name not in NESTED_FILES or has_nested(name)]


def _measure_group(keys: Sequence[Key]) -> Records:
    drawn = {(name, repeat): PROBLEMS[name](repeat) for name, repeat in dict.fromkeys(key[:2] for key in keys)}
    tasks = [drawn[key[:2]] for key in keys]
    models = [
        KAPPA_MODELS[model](kappa).set_params(seed=repeat, **task.settings)
        for (_, repeat, model, kappa), task in zip(keys, tasks, strict=True)
    ]
    fit_together(models, [task.log for task in tasks])
    return [
        dict(zip(KAPPA_KEY, key, strict=True)) | judge_model(model, task)
        for key, model, task in zip(keys, models, tasks, strict=True)
    ]


def judge_model(model: Any, task: Task) -> dict[str, float]:
    """Return the error of a model's curves, and the true value of the plans made from them."""
    curves = model.predict(task.customers)
    binary = task.truth.shape[1] == 2
    record = {"error": measure_effect_error(curves, task.truth) if binary else root_mean_square(curves - task.truth)}
    rows = np.arange(len(curves))
    for budget in task.budgets:
        levels = allocate(curves, task.costs, budget).levels
        record[f"value {budget:g}"] = float(task.truth[rows, levels].mean())
    return record


# -- the summary -------------------------------------------------------------------------------------------------------


def list_lines(records: Records) -> list[dict[str, Any]]:
    """Return the lines of the figures: panel (problem and measure), label (model), x (κ), and mean, sd and n at each κ."""
    lines, records = [], keep_latest(records, KAPPA_KEY)
    for problem in list_values(records, "problem"):
        of_problem = [record for record in records if record["problem"] == problem]
        columns = dict.fromkeys(name for record in of_problem for name in record if name not in KAPPA_KEY)
        for column in columns:
            for model in list_values(of_problem, "row"):
                of_model = [record for record in of_problem if record["row"] == model]
                kappas = sorted(list_values(of_model, "kappa"))
                cells = [average_column([r for r in of_model if r["kappa"] == k], column) or {} for k in kappas]
                points = {name: [cell.get(name) for cell in cells] for name in ("mean", "sd", "n")}
                lines.append({"panel": f"{problem}: {column}", "label": model, "x": kappas, **points})
    return lines


def summarise(records: Records) -> dict[str, Any]:
    """Return the lines, and for each problem, model and measure the paired difference of every κ from κ = 0."""
    against, records = [], keep_latest(records, KAPPA_KEY)
    lines = list_lines(records)
    for line in lines:
        problem, column = split_panel(line["panel"])
        of_line = [r for r in records if (r["problem"], r["row"]) == (problem, line["label"])]
        base = [r for r in of_line if r["kappa"] == 0]
        for kappa in line["x"]:
            difference = subtract([r for r in of_line if r["kappa"] == kappa], base, column) if kappa else None
            if difference:
                against.append({"panel": line["panel"], "label": line["label"], "kappa": kappa, **difference})
    return {"series": lines, "against": against}


def split_panel(panel: str) -> tuple[str, str]:
    """Return problem and measure of a panel's name.

    >>> split_panel("averaged, binary: error")
    ('averaged, binary', 'error')
    """
    problem, _, column = panel.rpartition(": ")
    return problem, column


# -- the page ----------------------------------------------------------------------------------------------------------


def fill(section: Section, summary: Summary) -> None:
    """Add a figure for each measure, the means, and the κ that are better or worse than κ = 0."""
    lines = summary["series"]
    if lines and all(line["label"].endswith(NORMALISED) for line in lines):
        section.add(ONLY_NORMALISED)
    for column in dict.fromkeys(split_panel(line["panel"])[1] for line in lines):
        of_column = [
            {**line, "panel": problem}
            for line in lines
            for problem, name in [split_panel(line["panel"])]
            if name == column
        ]
        title = f"{KAPPA_TITLE}, {title_column(column)}"
        note = f"Bands: ± 1 sd over {count_repeats(of_column)}. Normalised models have a κ of another scale."
        text = FigureText(title, "κ", title_column(column), note)
        section.add_figure(partial(draw_lines, of_column, text, log_x=True), title, column)
    section.add(tabulate_against(summary["against"]), tabulate_means(lines))


def count_repeats(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the number of repeats behind some lines, and the problems that have fewer.

    >>> count_repeats([{"panel": "a", "n": [50, 50]}, {"panel": "b", "n": [10, 10]}])
    '50 repeats; b: 10'
    >>> count_repeats([{"panel": "a", "n": [50]}, {"panel": "a", "n": [20]}])
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


def tabulate_means(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return mean ± sd as Markdown: a row for each problem, measure and model, a column for each κ."""
    kappas = sorted({kappa for line in lines for kappa in line["x"]})
    body = []
    for line in lines:
        cells = dict(zip(line["x"], zip(line["mean"], line["sd"], strict=True), strict=True))
        means = [write_mean(*cells.get(kappa, (None, None))) for kappa in kappas]
        body.append([f"{line['panel']}, {line['label']}", *means])
    return format_table(["problem, measure and model", *(f"κ = {kappa:g}" for kappa in kappas)], body)


def tabulate_against(against: Sequence[Mapping[str, Any]]) -> str:
    """Return as Markdown the κ at which a model is better than without balance, worse, and undecided."""
    if not against:
        return ""
    body = []
    for panel, label in dict.fromkeys((row["panel"], row["label"]) for row in against):
        rows = [row for row in against if (row["panel"], row["label"]) == (panel, label)]
        kappas = [[f"{row['kappa']:g}" for row in rows if _compare_sign(row) == sign] for sign in (1, -1, 0)]
        problem, column = split_panel(panel)
        body.append([problem, title_column(column), label, *(", ".join(group) or NUMBER_DASH for group in kappas)])
    head = ["problem", "measure", "model", "better than κ = 0 at κ =", "worse at κ =", "undecided at κ ="]
    return format_table(head, body, text_columns=6) + "\n\nBy 95 % intervals of paired differences."


def _compare_sign(row: Mapping[str, Any]) -> int:
    """Return 1 if κ is better than κ = 0, −1 if it is worse, 0 if the interval contains zero."""
    sign = 1 if is_higher_better(split_panel(row["panel"])[1]) else -1
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
