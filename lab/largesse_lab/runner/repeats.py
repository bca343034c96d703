"""Rows of a table, measured on many repeats of logs whose truth is known, one chunk of logs at a time.

All fits of a row on the logs of a chunk go through `fit_together`, which trains their networks as one program on a GPU. A
repeat is a log of its own (it seeds the simulated world, or the draw) and the seed of the models. Records are kept as they
are made: a stopped run resumes, and the records of several parts, or of several sets of rows, form one table when their
files are joined.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from largesse.allocation import allocate
from largesse.errors import refuse
from largesse.records import Array, Log, Progress
from largesse.stats import cores
from largesse.worlds import SIMULATIONS, simulate
from largesse_lab.runner import measures
from largesse_lab.runner.cache import Kept
from largesse_lab.runner.dynamic_programme import dynamic_programme
from largesse_lab.runner.joint_training import fit_together
from largesse_lab.runner.measures import (
    BUDGETS,
    Fresh,
    draw_two_levels,
    effect_error,
    judge_curves,
    judge_policies,
    read_choices,
)
from largesse_lab.runner.request import Records, Request, check_part, cut, find_unknown, take_part

KEY = ("simulation", "repeat", "row")
TUNED = 10  # repeats on which an expensive grid is searched; the setting it finds is used in all repeats
FEW, FEW_BUDGET = 500, 3  # customers and budget of the paper's dynamic programme
LEAST_ROOM = 1e-3  # between the oracle and the best uniform mix; below it a skill means nothing
Found = Mapping[str, Mapping[str, Mapping[str, float]]]  # simulation → problem → settings


@dataclass(frozen=True)
class Row:
    """One row of a table: a factory of its model (for a policy, from a budget), or a function that measures it without one."""

    make: Callable[..., Any] | None = None
    simple: Callable[[Unit], dict[str, Any]] | None = None
    policy: bool = False  # one model for each budget, with plans and no curves
    binary: bool = True  # whether the binary problem is learnt too
    tuned: tuple[tuple[str, tuple[float, ...]], ...] = ()  # grids searched on the first repeats, by mean held-out loss
    found: Found = field(default_factory=dict)  # results of an earlier search, for runs of fewer repeats
    small: Mapping[str, Any] = field(default_factory=dict)  # settings without a GPU
    few: Mapping[str, Any] = field(default_factory=dict)  # further settings without a GPU, for fewer than TUNED repeats
    group: str = "networks"
    judge: Callable[..., dict[str, Any]] | None = None  # (row, fitted models, unit) → measures; None: all of them


@dataclass(frozen=True, eq=False)
class Unit:
    """One repeat of one simulation or data set: a log to learn from, and fresh customers on whom models are judged."""

    simulation: str
    repeat: int
    log: Log
    fresh: Fresh
    budgets: tuple[float, ...]
    binary: Log | None = None  # the log of the binary problem, where there is one
    few_budget: int | None = None  # budget of the paper's dynamic programme; None: it is not run

    @cached_property
    def no_skill(self) -> dict[str, None]:
        """Skills that mean nothing: at these budgets even the oracle gains hardly anything over a uniform mix."""
        rooms = {b: self.fresh.oracle_value(b) - self.fresh.uniform_value(b) for b in self.budgets}
        return {f"skill {budget:g}": None for budget, room in rooms.items() if room < LEAST_ROOM}


def simulate_unit(simulation: str, repeat: int) -> Unit:
    """Return one repeat of a simulation."""
    made = simulate(simulation, n=measures.TRAIN, seed=repeat)
    fresh = made.draw(measures.FRESH, seed=measures.FRESH_SEED)
    return Unit(simulation, repeat, made.log, fresh, BUDGETS, draw_two_levels(made), FEW_BUDGET)


@dataclass(frozen=True)
class Source:
    """A source of repeats: a factory, the names it accepts, and what such a name is called in messages."""

    make: Callable[[str, int], Unit]
    known: Sequence[str]
    word: str


SIMULATED = Source(simulate_unit, SIMULATIONS, "simulation")


def make_units(keys: Sequence[tuple[str, int]], source: Source) -> list[Unit]:
    """Return several repeats, drawn in parallel."""
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(lambda key: source.make(*key), keys))


def measure_rows(book: Mapping[str, Row], request: Request, progress: Progress, source: Source = SIMULATED) -> Records:
    """Return one record per simulation (or other name of the source), repeat of the part, and row of the book.

    The request must name problems, rows, repeats and chunk.
    """
    names, rows = request.problems or (), request.rows or ()
    wrong = find_unknown(source.word, names, source.known) + find_unknown("row", rows, list(book))
    refuse("experiment", wrong + check_part(request.part))
    repeats, chunk = request.repeats or 0, request.chunk or 1
    run = _Run(Kept(request.out, KEY), source)
    run = replace(run, found=_search_grids(run, {row: book[row] for row in rows}, names, repeats, chunk, progress))
    todo = [(name, repeat) for repeat in take_part(repeats, request.part) for name in names]
    chosen = {row: book[row] if repeats >= TUNED else _shrink_for_few(book[row]) for row in rows}
    for done, keys in enumerate(cut(todo, chunk)):
        _measure_chunk(run, keys, chosen, _fix_share(progress, done * chunk / len(todo)))
    return run.kept.take((name, repeat, row) for name, repeat in todo for row in rows)


def _fix_share(progress: Progress, share: float) -> Progress:
    """Return a progress that always reports the same share of the work."""
    return lambda what, _share: progress(what, share)


@dataclass(frozen=True)
class _Run:
    kept: Kept
    source: Source
    found: Mapping[tuple[str, str], Any] = field(default_factory=dict)  # settings by (simulation, row)


# -- one chunk --------------------------------------------------------------------------------------------------------


def _measure_chunk(run: _Run, keys: Sequence[tuple[str, int]], rows: Mapping[str, Row], progress: Progress) -> None:
    """Measure what is missing, one row after another, on all logs of a chunk together."""
    missing = {
        name: [key for key in keys if _is_missing(run.kept.found.get((*key, name)), row)] for name, row in rows.items()
    }
    wanted = sorted({key for some in missing.values() for key in some}, key=lambda key: keys.index(key))
    made = dict(zip(wanted, make_units(wanted, run.source), strict=True))
    for name, row in rows.items():
        units = [made[key] for key in missing[name]]
        if units:
            progress(f"{name}, {len(units)} logs", 0.0)
            for record in _measure_row(name, row, units, run.found):
                run.kept.add(record)


def _is_missing(kept: Mapping[str, Any] | None, row: Row) -> bool:
    """Return whether a row must be measured: it has no record, or that of a smaller model than the row's now."""
    return kept is None or (bool(kept.get("small")) and not _small_settings(row))


def _measure_row(
    name: str, row: Row, units: list[Unit], found: Mapping[tuple[str, str], Any]
) -> Iterator[dict[str, Any]]:
    """Yield the record of one row on each log; all its models are fitted together."""
    if row.simple is not None:
        for one in units:
            yield _label(name, one) | row.simple(one) | one.no_skill
        return
    jobs = [job for one in units for job in list_fits(row, one, found.get((one.simulation, name), {}))]
    start = time.perf_counter()
    fit_together([job.model for job in jobs], [job.log for job in jobs])
    seconds = round((time.perf_counter() - start) / len(units), 3)
    size = len(jobs) // len(units)
    for i, one in enumerate(units):
        fitted = {job.what: job.model for job in jobs[i * size : (i + 1) * size]}
        record = (row.judge or _judge_row)(row, fitted, one) | ({"small": True} if _small_settings(row) else {})
        yield _label(name, one) | record | one.no_skill | {"seconds": seconds}


def _label(name: str, one: Unit) -> dict[str, Any]:
    return {"simulation": one.simulation, "repeat": one.repeat, "row": name}


@dataclass(frozen=True, eq=False)
class Fit:
    """A model to be fitted: its problem ("levels" or "binary") or budget, the model, and its log."""

    what: Any
    model: Any
    log: Log


def list_fits(row: Row, one: Unit, settings: Mapping[str, Any]) -> list[Fit]:
    """Return the fits of a row on one log."""
    assert row.make is not None
    if row.policy:
        small = {"seed": one.repeat, **_small_settings(row)}
        return [Fit(budget, row.make(budget).set_params(**small), one.log) for budget in one.budgets]
    logs = {"levels": one.log}
    if row.binary and one.binary is not None:
        logs["binary"] = one.binary
    return [
        Fit(what, _make_model(row.make, one.repeat, {**_small_settings(row), **settings.get(what, {})}), log)
        for what, log in logs.items()
    ]


def _shrink_for_few(row: Row) -> Row:
    return replace(row, small={**row.small, **row.few})


def _small_settings(row: Row) -> Mapping[str, Any]:
    return without_gpu(row.small)


def without_gpu(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return settings that are meant for a machine without a GPU; nothing where there is one."""
    if not settings:
        return {}
    import jax

    return settings if jax.default_backend() == "cpu" else {}


def _make_model(make: Callable[[], Any], seed: int, settings: Mapping[str, Any]) -> Any:
    model = make()
    known = model.get_params(deep=False)
    return model.set_params(**({"seed": seed} if "seed" in known else {}), **settings)


def _judge_row(row: Row, fitted: Mapping[Any, Any], one: Unit) -> dict[str, Any]:
    if row.policy:
        return judge_policies(fitted, one.fresh)
    model = fitted["levels"]
    curves = model.predict(one.fresh.features)
    record = read_choices(model) | judge_unit(curves, one)
    if "binary" in fitted:
        record["√pehe"] = effect_error(fitted["binary"].predict(one.fresh.features), one.fresh.truth)
    return record


def judge_unit(curves: Array, one: Unit) -> dict[str, Any]:
    """Return the errors of curves (n, K) of a unit's fresh customers, and the value and skill of plans made from them."""
    more = {} if one.few_budget is None else _compare_programme(curves, one.fresh, one.few_budget)
    return judge_curves(curves, one.fresh, one.budgets) | more


def _compare_programme(curves: Array, fresh: Fresh, budget: int) -> dict[str, Any]:
    """Plan for the first customers by the paper's dynamic programme and by `allocate`; return predicted and true values."""
    some, true, n = curves[:FEW], fresh.truth[:FEW], min(FEW, len(curves))
    plans = {
        "programme": dynamic_programme(some, fresh.costs, budget * n),
        "ours": allocate(some, fresh.costs, budget).levels,
    }
    rows = np.arange(n)
    return {
        f"few {who} {what}": float(values[rows, levels].mean())
        for who, levels in plans.items()
        for what, values in (("predicted", some), ("value", true))
    }


# -- settings chosen on the first repeats -----------------------------------------------------------------------------


def _search_grids(
    run: _Run, rows: Mapping[str, Row], names: Sequence[str], repeats: int, chunk: int, progress: Progress
) -> dict[tuple[str, str], Any]:
    """Return the settings of all rows with grids, by (simulation, row); too few repeats use those of an earlier search."""
    tuned = {name: row for name, row in rows.items() if row.tuned}
    if not tuned or repeats < TUNED:
        return {(name, row): tuned[row].found.get(name, {}) for name in names for row in tuned}
    early = [(name, repeat) for repeat in range(TUNED) for name in names]
    searches = {_name_search(name): _make_search(row) for name, row in tuned.items()}
    for keys in cut(early, chunk):
        _measure_chunk(run, keys, searches, progress)
    return {(name, row): _pick_settings(run.kept, name, row, tuned[row]) for name in names for row in tuned}


def _make_search(row: Row) -> Row:
    """Return a row whose model tries the whole grid and records the losses alone."""
    assert row.make is not None
    make, grids = row.make, dict(row.tuned)
    return replace(row, make=lambda: make().set_params(**grids), tuned=(), judge=_read_losses)


def _read_losses(_row: Row, fitted: Mapping[str, Any], _unit: Unit) -> dict[str, Any]:
    """Return the held-out loss of each candidate of a grid, for each problem."""
    return {"losses": {what: [choice.loss for choice in model.choices_] for what, model in fitted.items()}}


def _pick_settings(kept: Kept, simulation: str, name: str, row: Row) -> dict[str, dict[str, float]]:
    """Return, for each problem of a simulation, the settings of least mean held-out loss over the first repeats."""
    mine = [
        record
        for key, record in kept.found.items()
        if (key[0], key[2]) == (simulation, _name_search(name)) and int(record["repeat"]) < TUNED
    ]
    candidates = list(product(*(grid for _, grid in row.tuned)))
    found = {}
    for what in mine[0]["losses"]:
        means = np.mean([record["losses"][what] for record in mine], axis=0)
        best = candidates[int(np.nanargmin(means))]
        found[what] = dict(zip((setting for setting, _ in row.tuned), best, strict=True))
    return found


def _name_search(name: str) -> str:
    """Return the name under which the search of a row's grid is kept."""
    return f"{name} grid"
