"""How much the strength κ of the balance matters: error of the estimate and reward of the plan against κ, 0 among them.

SIRE and IRE are those of Table 1, with κ given instead of chosen. A problem is a log, and customers whose truth is known;
others than the ones here can be handed in. With two levels the error is that of the effect (√PEHE), else RMSE. The sets of
Table 2 are problems where their files are here, with its wider networks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from largesse.allocation import allocate
from largesse.errors import refuse
from largesse.records import Array, Log
from largesse.response import IRE, SIRE, fit_together
from largesse_lab.bench.kept import Kept
from largesse_lab.bench.measures import effect_error, root_mean_square
from largesse_lab.bench.repeats import Tell, chunks, part_problems, taken, unit, unknown, without_gpu
from largesse_lab.bench.rows import FEWER, LITERAL
from largesse_lab.experiments import table2
from largesse_lab.nested.labelled import FILES, nested_here
from largesse_lab.page import summaries
from largesse_lab.page.compared import plain

KAPPAS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
KEY = ("problem", "repeat", "row", "kappa")
ROWS: dict[str, Callable[[float], Any]] = {
    "CCPOvSIRE": lambda kappa: SIRE(head="minmax", kappa=kappa, **{**LITERAL, **without_gpu(FEWER)}),
    "CCPOvIRE": lambda kappa: IRE(kappa=kappa, **{**LITERAL, **without_gpu(FEWER)}),
}


@dataclass(frozen=True, eq=False)
class Task:
    """A log to learn from, and customers to be judged by."""

    log: Log
    customers: Any  # what `predict` takes
    truth: Array  # (n, K)
    costs: Array  # (K,) or (n, K)
    budgets: tuple[float, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the models, where they are not those of Table 1


def levels(simulation: str, repeat: int) -> Task:
    """Return a simulation's log with all its levels."""
    one = unit(simulation, repeat)
    return Task(one.log, one.fresh.features, one.fresh.truth, one.fresh.costs, (3.0,))


def binary(simulation: str, repeat: int) -> Task:
    """Return a simulation's log with its first two levels."""
    one = unit(simulation, repeat)
    assert one.binary is not None
    return Task(one.binary, one.fresh.features, one.fresh.truth[:, :2], one.fresh.costs[:2])


def nested(name: str, repeat: int) -> Task:
    """Return the log of a set of nested labels."""
    one = table2.unit(name, repeat)
    wide = {"width": without_gpu(FEWER).get("width", table2.WIDE["width"])}
    return Task(one.log, one.fresh.features, one.fresh.truth, one.fresh.costs, (1.0, 2.0), wide)


Problems = Mapping[str, Callable[[int], Task]]
PROBLEMS: dict[str, Callable[[int], Task]] = {
    "averaged, binary": partial(binary, "averaged"),
    "averaged": partial(levels, "averaged"),
    "instrument, binary": partial(binary, "instrument"),
    "instrument": partial(levels, "instrument"),
    **{name: partial(nested, name) for name in FILES},
}


def kappa(
    problems: Problems | Sequence[str] | None = None,
    rows: Sequence[str] = tuple(ROWS),
    *,
    kappas: Sequence[float] = KAPPAS,
    repeats: int = 20,
    part: tuple[int, int] = (0, 1),
    chunk: int = 50,
    out: str | Path | None = None,
    tell: Tell = lambda _what, _done: None,
) -> list[dict[str, Any]]:
    """Return one record per problem, repeat, row and κ, `chunk` logs at a time.

    `problems` are names of `PROBLEMS` (None: all whose data are here), or make a `Task` of a repeat.
    """
    given = problems if isinstance(problems, Mapping) else None
    names = _spelled(_here() if problems is None else problems)
    wrong = [] if given is not None else unknown("problem", names, list(PROBLEMS))
    refuse("experiment", wrong + unknown("row", rows, list(ROWS)) + part_problems(part))
    makers = given or {name: PROBLEMS[name] for name in names}
    kept = Kept(out, KEY)
    todo = [(name, repeat) for name in makers for repeat in taken(repeats, part)]
    for done, some in enumerate(chunks(todo, chunk)):
        for row in rows:
            tell(f"{row}, {some[0][0]}", done * chunk / len(todo))
            _measure(kept, makers, row, [(*key, row, k) for key in some for k in kappas])
    return [kept.found[*key, row, k] for key in todo for row in rows for k in kappas]


def _here() -> list[str]:
    """Return the problems whose data are here."""
    return [name for name in PROBLEMS if name not in FILES or nested_here(name)]


def _spelled(names: Iterable[str]) -> list[str]:
    """Return names as they are spelled here; on a command line, where commas part names, they have none.

    >>> _spelled(["averaged binary", "images", "imges"])
    ['averaged, binary', 'images', 'imges']
    """
    known = {plain(name): name for name in PROBLEMS}
    return list(dict.fromkeys(known.get(plain(name), name) for name in names))


def _measure(kept: Kept, problems: Problems, row: str, keys: list[tuple[Any, ...]]) -> None:
    missing = [key for key in keys if key not in kept.found]
    tasks = {(name, repeat): problems[name](repeat) for name, repeat in dict.fromkeys(key[:2] for key in missing)}
    mine = [tasks[key[:2]] for key in missing]
    models = [
        ROWS[row](strength).set_params(seed=repeat, **task.settings)
        for (_, repeat, _, strength), task in zip(missing, mine, strict=True)
    ]
    fit_together(models, [task.log for task in mine])
    for key, model in zip(missing, models, strict=True):
        kept.add(dict(zip(KEY, key, strict=True)) | judged(model, tasks[key[:2]]))


def judged(model: Any, task: Task) -> dict[str, float]:
    """Return the error of a model's curves and the true value of the plans made from them."""
    curves = model.predict(task.customers)
    two = task.truth.shape[1] == 2
    record = {"error": effect_error(curves, task.truth) if two else root_mean_square(curves - task.truth)}
    rows = np.arange(len(curves))
    for budget in task.budgets:
        plan = allocate(curves, task.costs, budget).levels
        record[f"value {budget:g}"] = float(task.truth[rows, plan].mean())
    return record


def series(records: summaries.Records) -> list[dict[str, Any]]:
    """Return the lines of a figure: panel (problem and measure), label (row), x (κ), and mean and sd at each of them."""
    found, records = [], summaries.latest(records, KEY)
    for name in summaries.names(records, "problem"):
        here = [record for record in records if record["problem"] == name]
        for column in [word for word in dict.fromkeys(w for r in here for w in r) if word not in KEY]:
            for row in summaries.names(here, "row"):
                mine = [record for record in here if record["row"] == row]
                found.append({"panel": f"{name}: {column}", "label": row, **_line(mine, column)})
    return found


def _line(records: summaries.Records, column: str) -> dict[str, list[Any]]:
    strengths = sorted(summaries.names(records, "kappa"))
    cells = [summaries.cell([r for r in records if r["kappa"] == k], column) or {} for k in strengths]
    return {"x": strengths} | {word: [cell.get(word) for cell in cells] for word in ("mean", "sd", "n")}


def summary(records: summaries.Records) -> dict[str, Any]:
    """Return the series, and for each problem, row and measure the paired difference of every κ from κ = 0."""
    against, records = [], summaries.latest(records, KEY)
    for line in series(records):
        name, _, column = line["panel"].rpartition(": ")
        mine = [r for r in records if (r["problem"], r["row"]) == (name, line["label"])]
        base = [r for r in mine if r["kappa"] == 0]
        for k in line["x"]:
            found = summaries.difference([r for r in mine if r["kappa"] == k], base, column) if k else None
            if found:
                against.append({"panel": line["panel"], "label": line["label"], "kappa": k, **found})
    return {"series": series(records), "against": against}


def table(records: summaries.Records) -> str:
    """Return the means ± standard deviations as Markdown: a line for each problem, measure and row, a column for each κ."""
    strengths = sorted(summaries.names(records, "kappa"))
    text = ["| | " + " | ".join(f"κ = {k:g}" for k in strengths) + " |", "|---|" + "---:|" * len(strengths)]
    for line in series(records):
        at = dict(zip(line["x"], zip(line["mean"], line["sd"], strict=True), strict=True))
        told = [summaries.shown(*at.get(k, (None, None))) for k in strengths]
        text.append(f"| {line['panel']}, {line['label']} | " + " | ".join(told) + " |")
    return "\n".join(text) + "\n"
