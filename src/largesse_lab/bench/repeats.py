"""Rows of a table, measured on many repeats of logs whose truth is known, a chunk of repeats at a time.

The fits of a row for all logs of a chunk go through `fit_together`: on a GPU their networks are trained as one. A repeat is
a log of its own (the seed of a simulation's world, or of a draw) and the seed of the models. Results are kept as they come; a
run that was stopped goes on where it was, and runs on parts of the repeats, or of the rows, make up one table when their
files are joined.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from largesse.allocation import allocate
from largesse.errors import Problem, nearest, refuse
from largesse.records import Array, Log
from largesse.response import fit_together
from largesse.stats import cores
from largesse.worlds import SIMULATIONS, simulate
from largesse_lab.bench import measures
from largesse_lab.bench.kept import Kept
from largesse_lab.bench.measures import BUDGETS, Fresh, chosen, effect_error, of_curves, of_policies, two_levels
from largesse_lab.bench.textbook import dynamic_programme

KEY = ("simulation", "repeat", "row")
TUNED = 10  # repeats on which a grid that is dear to search is searched; what it finds is used for all
FEW, FEW_BUDGET = 500, 3  # customers and budget at which the paper's dynamic programme is run
LEAST_ROOM = 1e-3  # between a plan that knows the truth and the best uniform mix, for a skill to mean something
Tell = Callable[[str, float], None]


@dataclass(frozen=True)
class Row:
    """One row of a table: what makes its model (for a policy, from a budget), or what measures it without one."""

    make: Callable[..., Any] | None = None
    simple: Callable[[Unit], dict[str, Any]] | None = None
    policy: bool = False  # one model for each budget, with plans and no curves
    binary: bool = True  # whether the binary problem is learnt too
    tuned: tuple[tuple[str, tuple[float, ...]], ...] = ()  # grids searched on the first repeats, by mean held-out loss
    found: Mapping[str, Mapping[str, Mapping[str, float]]] = field(
        default_factory=dict
    )  # simulation → problem → settings
    small: Mapping[str, Any] = field(default_factory=dict)  # settings for a machine without a GPU
    few: Mapping[str, Any] = field(
        default_factory=dict
    )  # more of these, where there are fewer repeats than are searched
    group: str = "networks"
    judge: Callable[..., dict[str, Any]] | None = None  # row, fitted models, unit → figures; None: all there are


@dataclass(frozen=True, eq=False)
class Unit:
    """One repeat of one simulation or set: a log to learn from, and fresh customers to be judged by, at some budgets."""

    simulation: str
    repeat: int
    log: Log
    fresh: Fresh
    budgets: tuple[float, ...]
    binary: Log | None = None  # the same with the first two levels alone, where that is a problem too
    few_budget: int | None = None  # at which the paper's dynamic programme is run, if at all

    @cached_property
    def no_skill(self) -> dict[str, None]:
        """The skills that say nothing, of budgets at which even the truth brings hardly more than a uniform mix."""
        rooms = {b: self.fresh.oracle_value(b) - self.fresh.uniform_value(b) for b in self.budgets}
        return {f"skill {budget:g}": None for budget, room in rooms.items() if room < LEAST_ROOM}


def unit(simulation: str, repeat: int) -> Unit:
    """Return one repeat of a simulation."""
    made = simulate(simulation, n=measures.TRAIN, seed=repeat)
    fresh = made.draw(measures.FRESH, seed=measures.FRESH_SEED)
    return Unit(simulation, repeat, made.log, fresh, BUDGETS, two_levels(made), FEW_BUDGET)


@dataclass(frozen=True)
class Source:
    """Where repeats come from: what makes one, of which names, and what these are names of."""

    make: Callable[[str, int], Unit]
    known: Sequence[str]
    word: str


SIMULATED = Source(unit, SIMULATIONS, "simulation")


def units(keys: Sequence[tuple[str, int]], source: Source) -> list[Unit]:
    """Return several repeats, drawn side by side."""
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(lambda key: source.make(*key), keys))


def repeated(
    book: Mapping[str, Row],
    simulations: Sequence[str],
    rows: Sequence[str],
    *,
    repeats: int,
    part: tuple[int, int] = (0, 1),
    chunk: int = 100,
    out: str | Path | None = None,
    tell: Tell = lambda _what, _done: None,
    source: Source = SIMULATED,
) -> list[dict[str, Any]]:
    """Return one record per simulation (or what else there is a source of), repeat of this part and row of the book.

    `chunk` is of logs.
    """
    _check(source, simulations, rows, book, part)
    run = _Run(Kept(out, KEY), source)
    tuned = {row: book[row] for row in rows if book[row].tuned}
    found: dict[tuple[str, str], Any] = {
        (name, row): book[row].found.get(name, {}) for name in simulations for row in tuned
    }
    if tuned and repeats >= TUNED:  # with fewer, what was found before
        early = [(name, repeat) for repeat in range(TUNED) for name in simulations]
        for some in chunks(early, chunk):
            _measure(run, some, {_grid(name): _searched(row) for name, row in tuned.items()}, {}, tell)
        found = {(name, row): _tuned(run.kept, name, row, book[row]) for name, row in found}
    todo = [(name, repeat) for repeat in taken(repeats, part) for name in simulations]
    asked = {row: book[row] if repeats >= TUNED else _for_few(book[row]) for row in rows}
    for done, some in enumerate(chunks(todo, chunk)):
        share = done * chunk / max(len(todo), 1)
        _measure(run, some, asked, found, partial(_told, tell, share))
    return [run.kept.found[name, repeat, row] for name, repeat in todo for row in rows]


@dataclass(frozen=True)
class _Run:
    kept: Kept
    source: Source


def _told(tell: Tell, share: float, what: str, _part: float) -> None:
    tell(what, share)


def _check(source: Source, simulations: Sequence[str], rows: Sequence[str], book: Mapping[str, Row], part: Any) -> None:
    """Refuse names that are not known, and a part that is none."""
    refuse(
        "experiment",
        unknown(source.word, simulations, source.known) + unknown("row", rows, list(book)) + part_problems(part),
    )


def unknown(word: str, names: Sequence[str], known: Sequence[str]) -> list[Problem]:
    """Say which names are not known."""
    return [Problem(f"{word} {name!r} is not known", nearest(name, known)) for name in names if name not in known]


def part_problems(part: tuple[int, int]) -> list[Problem]:
    """Say whether a part (i, n) of the repeats is none."""
    if 0 <= part[0] < part[1]:
        return []
    return [Problem(f"part {part[0]} of {part[1]}", "parts of n are counted 0 to n − 1, as (0, 4)")]


def taken(repeats: int, part: tuple[int, int]) -> list[int]:
    """Return every n-th repeat.

    >>> taken(10, (1, 4))
    [1, 5, 9]
    """
    return list(range(repeats))[part[0] :: part[1]]


def chunks(todo: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Yield parts of a list."""
    for first in range(0, len(todo), size):
        yield todo[first : first + size]


# -- one chunk --------------------------------------------------------------------------------------------------------


def _measure(run: _Run, keys: Sequence[tuple[str, int]], rows: Mapping[str, Row], found: Any, tell: Tell) -> None:
    """Measure what is missing of some rows on some logs, one row after another, all logs together."""
    missing = {
        name: [key for key in keys if _wanted(run.kept.found.get((*key, name)), row)] for name, row in rows.items()
    }
    wanted = sorted({key for some in missing.values() for key in some}, key=lambda key: keys.index(key))
    made = dict(zip(wanted, units(wanted, run.source), strict=True))
    for name, row in rows.items():
        some = [made[key] for key in missing[name]]
        if some:
            tell(f"{name}, {len(some)} logs", 0.0)
            for record in _records(name, row, some, found):
                run.kept.add(record)


def _wanted(kept: Mapping[str, Any] | None, row: Row) -> bool:
    """Return whether a row is still to be measured; what a small model left is not what a whole one would."""
    return kept is None or (bool(kept.get("small")) and not _small(row))


def _records(name: str, row: Row, some: list[Unit], found: Any) -> Iterator[dict[str, Any]]:
    if row.simple is not None:
        for one in some:
            yield _named(name, one) | row.simple(one) | one.no_skill
        return
    jobs = [job for one in some for job in _jobs(row, one, found.get((one.simulation, name), {}))]
    start = time.perf_counter()
    fit_together([model for _, model, _ in jobs], [log for _, _, log in jobs])
    seconds = round((time.perf_counter() - start) / len(some), 3)
    size = len(jobs) // len(some)
    for i, one in enumerate(some):
        fitted = {what: model for what, model, _ in jobs[i * size : (i + 1) * size]}
        record = (row.judge or _judged)(row, fitted, one) | ({"small": True} if _small(row) else {})
        yield _named(name, one) | record | one.no_skill | {"seconds": seconds}


def _named(name: str, one: Unit) -> dict[str, Any]:
    return {"simulation": one.simulation, "repeat": one.repeat, "row": name}


def _jobs(row: Row, one: Unit, settings: Mapping[str, Any]) -> list[tuple[Any, Any, Log]]:
    """Return what is to be fitted: of which problem or budget, the model, its log."""
    assert row.make is not None
    if row.policy:
        return [
            (budget, row.make(budget).set_params(seed=one.repeat, **_small(row)), one.log) for budget in one.budgets
        ]
    logs = {"levels": one.log}
    if row.binary and one.binary is not None:
        logs["binary"] = one.binary
    return [
        (what, _made(row.make, one.repeat, {**_small(row), **settings.get(what, {})}), log)
        for what, log in logs.items()
    ]


def _for_few(row: Row) -> Row:
    return replace(row, small={**row.small, **row.few})


def _small(row: Row) -> Mapping[str, Any]:
    return without_gpu(row.small)


def without_gpu(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return settings that are for a machine without a GPU; none where there is one."""
    if not settings:
        return {}
    import jax

    return settings if jax.default_backend() == "cpu" else {}


def _made(make: Callable[[], Any], seed: int, settings: Mapping[str, Any]) -> Any:
    model = make()
    known = model.get_params(deep=False)
    return model.set_params(**({"seed": seed} if "seed" in known else {}), **settings)


def _judged(row: Row, fitted: Mapping[Any, Any], one: Unit) -> dict[str, Any]:
    if row.policy:
        return of_policies(fitted, one.fresh)
    model = fitted["levels"]
    curves = model.predict(one.fresh.features)
    record = chosen(model) | judged(curves, one)
    if "binary" in fitted:
        record["√pehe"] = effect_error(fitted["binary"].predict(one.fresh.features), one.fresh.truth)
    return record


def judged(curves: Array, one: Unit) -> dict[str, Any]:
    """Return the errors of curves (n, K) of the fresh customers of a unit, and what plans made from them are worth."""
    more = {} if one.few_budget is None else _few(curves, one.fresh, one.few_budget)
    return of_curves(curves, one.fresh, one.budgets) | more


def _few(curves: Array, fresh: Fresh, budget: int) -> dict[str, Any]:
    """Return what the paper's dynamic programme and ours make of the first customers: predicted and true values."""
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


def _searched(row: Row) -> Row:
    """Return the row whose model tries a whole grid, and of which only the losses are wanted."""
    assert row.make is not None
    make, grids = row.make, dict(row.tuned)
    return replace(row, make=lambda: make().set_params(**grids), tuned=(), judge=_grid_losses)


def _grid_losses(_row: Row, fitted: Mapping[str, Any], _unit: Unit) -> dict[str, Any]:
    """Return what each candidate of a grid lost on held-out rows, for each problem."""
    return {"losses": {what: [choice.loss for choice in model.choices_] for what, model in fitted.items()}}


def _tuned(kept: Kept, simulation: str, name: str, row: Row) -> dict[str, dict[str, float]]:
    """Return, for each problem of a simulation, the settings of least mean held-out loss over the first repeats."""
    mine = [
        r for key, r in kept.found.items() if (key[0], key[2]) == (simulation, _grid(name)) and int(r["repeat"]) < TUNED
    ]
    candidates = list(product(*(grid for _, grid in row.tuned)))
    found = {}
    for what in mine[0]["losses"]:
        means = np.mean([record["losses"][what] for record in mine], axis=0)
        best = candidates[int(np.nanargmin(means))]
        found[what] = dict(zip((setting for setting, _ in row.tuned), best, strict=True))
    return found


def _grid(name: str) -> str:
    """Return under which name the search of a row's grid is kept."""
    return f"{name} grid"
