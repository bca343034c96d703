"""How much the strength κ of the balance penalty matters: error of the curves and reward of the plan against κ, from 0 on.

SIRE and IRE are those of Table 1, with κ given instead of chosen. A problem is a log together with customers whose truth is
known. With two levels the error is that of the effect (√PEHE), otherwise RMSE. The data sets of Table 2 are problems where
their files are present, with its wider networks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from largesse.allocation import allocate
from largesse.errors import refuse
from largesse.records import Array, Log, Progress
from largesse.response import IRE, SIRE, Balance
from largesse_lab.experiments import table2
from largesse_lab.experiments.base import Experiment
from largesse_lab.nested import FILES, has_nested
from largesse_lab.page.comparison import NORMALISED, is_higher_better, title_column
from largesse_lab.page.figures import Caption, Look, draw_lines
from largesse_lab.page.sections import Chapter, Result, Section, make_slug
from largesse_lab.page.tables import DASH, average, keep_latest, list_values, subtract, write_mean, write_table
from largesse_lab.runner.cache import Kept, Key
from largesse_lab.runner.joint_training import fit_together
from largesse_lab.runner.measures import effect_error, root_mean_square
from largesse_lab.runner.methods import FEWER, LITERAL, PLAIN
from largesse_lab.runner.repeats import simulate_unit, without_gpu
from largesse_lab.runner.request import (
    Records,
    Request,
    check_part,
    cut,
    find_unknown,
    ignore_progress,
    match_names,
    take_part,
)

KAPPAS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
NORMALISED_KAPPAS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
KEY = ("problem", "repeat", "row", "kappa")
REPEATS, CHUNK = 20, 50
ONLY_NORMALISED = """\
Only the normalised penalty was measured here, so nothing in this chapter tells what the paper's own penalty does as κ grows. What
it does at a κ that is chosen on held-out rows stands in Table 1."""


def _make_sire(kappa: float, balance: Balance = PLAIN) -> SIRE:
    return SIRE(head="minmax", kappa=kappa, balance=balance).set_params(**{**LITERAL, **without_gpu(FEWER)})


def _make_ire(kappa: float, balance: Balance = PLAIN) -> IRE:
    return IRE(kappa=kappa, balance=balance).set_params(**{**LITERAL, **without_gpu(FEWER)})


ROWS: dict[str, Callable[[float], Any]] = {
    "CCPOvSIRE": _make_sire,
    "CCPOvIRE": _make_ire,
    f"CCPOvSIRE{NORMALISED}": partial(_make_sire, balance=Balance()),
    f"CCPOvIRE{NORMALISED}": partial(_make_ire, balance=Balance()),
}


def list_strengths(row: str) -> tuple[float, ...]:
    """Return the κ at which a row is measured: a normalised penalty has another scale."""
    return NORMALISED_KAPPAS if row.endswith(NORMALISED) else KAPPAS


@dataclass(frozen=True, eq=False)
class Task:
    """A log to learn from, and customers on whom models are judged."""

    log: Log
    customers: Any  # what `predict` takes
    truth: Array  # (n, K)
    costs: Array  # (K,) or (n, K)
    budgets: tuple[float, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)  # model settings that differ from those of Table 1


def draw_levels_task(simulation: str, repeat: int) -> Task:
    """Return a simulation's log with all its levels."""
    one = simulate_unit(simulation, repeat)
    return Task(one.log, one.fresh.features, one.fresh.truth, one.fresh.costs, (3.0,))


def draw_binary_task(simulation: str, repeat: int) -> Task:
    """Return a simulation's log with its first two levels."""
    one = simulate_unit(simulation, repeat)
    assert one.binary is not None
    return Task(one.binary, one.fresh.features, one.fresh.truth[:, :2], one.fresh.costs[:2])


def draw_nested_task(name: str, repeat: int) -> Task:
    """Return the log of a data set of nested labels."""
    one = table2.draw_unit(name, repeat)
    wide = {"network__width": without_gpu(FEWER).get("network__width", table2.WIDE["network__width"])}
    return Task(one.log, one.fresh.features, one.fresh.truth, one.fresh.costs, (1.0, 2.0), wide)


PROBLEMS: dict[str, Callable[[int], Task]] = {
    "averaged, binary": partial(draw_binary_task, "averaged"),
    "averaged": partial(draw_levels_task, "averaged"),
    "instrument, binary": partial(draw_binary_task, "instrument"),
    "instrument": partial(draw_levels_task, "instrument"),
    **{name: partial(draw_nested_task, name) for name in FILES},
}


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per problem (by default all whose data are present), repeat, row and κ."""
    names = match_names(list_present() if request.problems is None else request.problems, PROBLEMS)
    rows = tuple(ROWS) if request.rows is None else match_names(request.rows, ROWS)
    wrong = find_unknown("problem", names, list(PROBLEMS)) + find_unknown("row", rows, list(ROWS))
    refuse("experiment", wrong + check_part(request.part))
    repeats = take_part(REPEATS if request.repeats is None else request.repeats, request.part)
    todo = [(name, repeat) for name in names for repeat in repeats]
    groups = [
        [(*key, row, kappa) for key in keys for kappa in list_strengths(row)]
        for keys in cut(todo, request.chunk or CHUNK)
        for row in rows
    ]
    kept = Kept(request.out, KEY)
    kept.complete(groups, _measure_group, progress)
    return kept.take((*key, row, kappa) for key in todo for row in rows for kappa in list_strengths(row))


def list_present() -> list[str]:
    """Return the problems whose data are present."""
    return [name for name in PROBLEMS if name not in FILES or has_nested(name)]


def _measure_group(keys: Sequence[Key]) -> Records:
    tasks = {(name, repeat): PROBLEMS[name](repeat) for name, repeat in dict.fromkeys(key[:2] for key in keys)}
    mine = [tasks[key[:2]] for key in keys]
    models = [
        ROWS[row](kappa).set_params(seed=repeat, **task.settings)
        for (_, repeat, row, kappa), task in zip(keys, mine, strict=True)
    ]
    fit_together(models, [task.log for task in mine])
    return [
        dict(zip(KEY, key, strict=True)) | judge_model(model, task)
        for key, model, task in zip(keys, models, mine, strict=True)
    ]


def judge_model(model: Any, task: Task) -> dict[str, float]:
    """Return the error of a model's curves, and the true value of the plans made from them."""
    curves = model.predict(task.customers)
    two = task.truth.shape[1] == 2
    record = {"error": effect_error(curves, task.truth) if two else root_mean_square(curves - task.truth)}
    rows = np.arange(len(curves))
    for budget in task.budgets:
        plan = allocate(curves, task.costs, budget).levels
        record[f"value {budget:g}"] = float(task.truth[rows, plan].mean())
    return record


# -- the summary -------------------------------------------------------------------------------------------------------


def draw_series(records: Records) -> list[dict[str, Any]]:
    """Return the lines of a figure: panel (problem and measure), label (row), x (κ), and mean, sd and n at each κ."""
    found, records = [], keep_latest(records, KEY)
    for name in list_values(records, "problem"):
        here = [record for record in records if record["problem"] == name]
        for column in [word for word in dict.fromkeys(w for r in here for w in r) if word not in KEY]:
            for row in list_values(here, "row"):
                mine = [record for record in here if record["row"] == row]
                found.append({"panel": f"{name}: {column}", "label": row, **_draw_line(mine, column)})
    return found


def _draw_line(records: Records, column: str) -> dict[str, list[Any]]:
    kappas = sorted(list_values(records, "kappa"))
    cells = [average([r for r in records if r["kappa"] == k], column) or {} for k in kappas]
    return {"x": kappas} | {word: [cell.get(word) for cell in cells] for word in ("mean", "sd", "n")}


def summarise(records: Records) -> dict[str, Any]:
    """Return the series, and for each problem, row and measure the paired difference of every κ from κ = 0."""
    against, records = [], keep_latest(records, KEY)
    series = draw_series(records)
    for line in series:
        name, column = split_panel(line["panel"])
        mine = [r for r in records if (r["problem"], r["row"]) == (name, line["label"])]
        base = [r for r in mine if r["kappa"] == 0]
        for k in line["x"]:
            found = subtract([r for r in mine if r["kappa"] == k], base, column) if k else None
            if found:
                against.append({"panel": line["panel"], "label": line["label"], "kappa": k, **found})
    return {"series": series, "against": against}


def tabulate(records: Records) -> str:
    """Return mean ± sd as Markdown: a row for each problem, measure and model, a column for each κ."""
    return _tabulate({"series": draw_series(records)})


def _tabulate(summary: Mapping[str, Any]) -> str:
    """Return a summary as Markdown, as `tabulate` returns records."""
    kappas = sorted({k for line in summary["series"] for k in line["x"]})
    body = []
    for line in summary["series"]:
        at = dict(zip(line["x"], zip(line["mean"], line["sd"], strict=True), strict=True))
        body.append([f"{line['panel']}, {line['label']}", *(write_mean(*at.get(k, (None, None))) for k in kappas)])
    return write_table(["", *(f"κ = {k:g}" for k in kappas)], body) + "\n"


def split_panel(panel: str) -> tuple[str, str]:
    """Return problem and measure of a panel's name.

    >>> split_panel("averaged, binary: error")
    ('averaged, binary', 'error')
    """
    problem, _, column = panel.rpartition(": ")
    return problem, column


# -- the page ----------------------------------------------------------------------------------------------------------


def fill(section: Section, result: Result, _notes: Sequence[str]) -> None:
    """Add a figure for each measure, and where each κ is better or worse than κ = 0."""
    parts = [(row, *split_panel(row["panel"])) for row in result.summary.get("series", [])]
    section.say(ONLY_NORMALISED if parts and _lacks_plain(row["label"] for row, _, _ in parts) else "")
    for column in dict.fromkeys(column for _, _, column in parts):
        mine = [{**row, "panel": problem} for row, problem, name in parts if name == column]
        title = f"{CHAPTER.title}, {title_column(column)}"
        note = f"Bands: ± 1 sd over {count_repeats(mine)}. Normalised rows have a κ of another scale."
        words = Caption(title, "κ", title_column(column), note)
        name = f"{result.experiment}-{make_slug(column)}.svg"
        section.show(name, draw_lines(mine, words, Look(log_across=True)), title)
    section.say(tabulate_against(result.summary.get("against", [])))


def count_repeats(series: Sequence[Mapping[str, Any]]) -> str:
    """Return the number of repeats behind some series, and the problems that have fewer.

    >>> count_repeats([{"panel": "a", "n": [50, 50]}, {"panel": "b", "n": [10, 10]}, {"panel": "c"}])
    '50 repeats; b: 10'
    >>> count_repeats([{"panel": "a", "n": [50]}, {"panel": "a", "n": [20]}])
    'at least 20 repeats'
    """
    counts: dict[str, int] = {}
    mixed = False
    for row in series:
        found = [n for n in row.get("n", []) if n]
        if found:
            seen = [*found, counts.get(row["panel"], found[0])]
            mixed |= max(seen) > min(seen)
            counts[row["panel"]] = min(seen)
    if not counts:
        return "repeats"
    most = max(counts.values())
    fewer = {n: [panel for panel, m in counts.items() if m == n] for n in sorted(set(counts.values()) - {most})}
    first = f"{'at least ' if mixed else ''}{most} repeats"
    return "; ".join([first, *(f"{', '.join(panels)}: {n}" for n, panels in fewer.items())])


def tabulate_against(against: Sequence[Mapping[str, Any]]) -> str:
    """Return as Markdown at which κ a row is better than without balance, at which worse, and at which undecided."""
    if not against:
        return ""
    body = []
    for panel, label in dict.fromkeys((row["panel"], row["label"]) for row in against):
        mine = [row for row in against if (row["panel"], row["label"]) == (panel, label)]
        places = [[f"{row['kappa']:g}" for row in mine if _find_side(row) == side] for side in (1, -1, 0)]
        problem, column = split_panel(panel)
        body.append([problem, title_column(column), label, *(", ".join(some) or DASH for some in places)])
    head = ["problem", "measure", "row", "better than κ = 0 at κ =", "worse at κ =", "undecided at κ ="]
    return write_table(head, body, words=6) + "\n\nBy 95 % intervals of paired differences."


def _find_side(row: Mapping[str, Any]) -> int:
    """Return 1 where κ is better than κ = 0, −1 where it is worse, 0 where the interval contains zero."""
    sign = 1 if is_higher_better(split_panel(row["panel"])[1]) else -1
    return sign * ((row["low"] > 0) - (row["high"] < 0))


def _lacks_plain(labels: Iterable[str]) -> bool:
    """Return whether no row has the paper's penalty."""
    return all(label.endswith(NORMALISED) for label in labels)


CHAPTER = Chapter(
    "How much balance: κ",
    setup="""\
The models of Table 1 with the strength κ of the balance penalty fixed in advance, from zero to large, instead of chosen on
held-out rows. κ = 0 is drawn apart, on the left. Rows called CCPOvSIRE and CCPOvIRE alone have the paper's penalty, which also
falls when the representation shrinks. In rows called “normalised” it cannot: the representation is brought to unit mean square
first, so its κ is on another scale.""",
    differences="""\
The paper gives no values of κ, and the scale of its κ depends on that of the representation: the positions of minima cannot be
compared with the paper's. The shapes of curves can, but only those of rows with the paper's penalty.""",
    fill=fill,
)
EXPERIMENT = Experiment("kappa", measure, tabulate, CHAPTER, summarise)
