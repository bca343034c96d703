"""Methods of a table, measured on many repeats of logs with known truth, one chunk of logs at a time.

All fits of a method on the logs of a chunk go through `fit_together`, which trains their networks as one program on a GPU. A
repeat is a log of its own (it seeds the simulated world, or the draw) and the seed of the models. Records are saved as they
are made: a stopped run resumes, and the records of several parts, or of several sets of methods, form one table when their
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
from largesse.stats import count_cores
from largesse.worlds import SIMULATIONS, simulate
from largesse_lab.runner import truth_measures
from largesse_lab.runner.dynamic_programme import dynamic_programme
from largesse_lab.runner.experiment_request import Records, Request, find_unknown, split_chunks, take_part
from largesse_lab.runner.joint_training import fit_together
from largesse_lab.runner.record_cache import RecordCache
from largesse_lab.runner.truth_measures import (
    PAPER_BUDGETS,
    Fresh,
    draw_two_levels,
    judge_curves,
    judge_policies,
    measure_effect_error,
    read_choices,
)

REPEAT_KEY = ("simulation", "repeat", "row")  # "row" is the method
GRID_REPEATS = 10  # repeats on which an expensive grid is searched; its best setting is used in all repeats
PROGRAMME_ROWS, PROGRAMME_BUDGET = 500, 3  # customers and budget of the paper's dynamic programme
MIN_SKILL_ROOM = 1e-3  # between the oracle and the best uniform mix; below it a skill means nothing
GridResults = Mapping[str, Mapping[str, Mapping[str, float]]]  # simulation → problem → settings


@dataclass(frozen=True)
class Method:
    """One row of a table: a factory of its model (for a policy, from a budget), or a function that measures it without one."""

    make: Callable[..., Any] | None = None
    simple: Callable[[RepeatData], dict[str, Any]] | None = None
    policy: bool = False  # one model for each budget, with plans and no curves
    binary: bool = True  # whether the binary problem is learnt too
    grid: tuple[
        tuple[str, tuple[float, ...]], ...
    ] = ()  # settings searched on the first repeats, by mean held-out loss
    earlier: GridResults = field(default_factory=dict)  # best settings of an earlier search, for runs of fewer repeats
    small: Mapping[str, Any] = field(default_factory=dict)  # settings without a GPU
    few: Mapping[str, Any] = field(default_factory=dict)  # further settings without a GPU, for few repeats
    group: str = "networks"
    judge: Callable[..., dict[str, Any]] | None = None  # (method, fitted models, data) → measures; None: all of them


@dataclass(frozen=True, eq=False)
class RepeatData:
    """Data of one repeat of a simulation or data set: a log to learn from, and fresh customers on whom models are judged."""

    simulation: str
    repeat: int
    log: Log
    fresh: Fresh
    budgets: tuple[float, ...]
    binary: Log | None = None  # the log of the binary problem
    programme_budget: int | None = None  # budget of the paper's dynamic programme; None: it is not run

    @cached_property
    def undefined_skills(self) -> dict[str, None]:
        """Skills at budgets at which even the oracle gains hardly anything over a uniform mix, as None."""
        rooms = {b: self.fresh.oracle_value(b) - self.fresh.uniform_value(b) for b in self.budgets}
        return {f"skill {budget:g}": None for budget, room in rooms.items() if room < MIN_SKILL_ROOM}


def simulate_repeat(simulation: str, repeat: int) -> RepeatData:
    """Return one repeat of a simulation."""
    world = simulate(simulation, n=truth_measures.LOG_ROWS, seed=repeat)
    fresh = world.draw(truth_measures.FRESH_ROWS, seed=truth_measures.FRESH_SEED)
    return RepeatData(simulation, repeat, world.log, fresh, PAPER_BUDGETS, draw_two_levels(world), PROGRAMME_BUDGET)


@dataclass(frozen=True)
class RepeatSource:
    """A factory of repeats, the names it accepts, and the kind of these names in messages."""

    make: Callable[[str, int], RepeatData]
    names: Sequence[str]
    kind: str


SIMULATED = RepeatSource(simulate_repeat, SIMULATIONS, "simulation")


def draw_repeats(keys: Sequence[tuple[str, int]], source: RepeatSource) -> list[RepeatData]:
    """Draw the data of several repeats in parallel."""
    with ThreadPoolExecutor(count_cores()) as pool:
        return list(pool.map(lambda key: source.make(*key), keys))


def measure_methods(
    methods: Mapping[str, Method], request: Request, progress: Progress, source: RepeatSource = SIMULATED
) -> Records:
    """Return one record per simulation (or other name of the source), repeat of the part, and method.

    The request must name problems, models, repeats and chunk.
    """
    problems, names = request.problems or (), request.models or ()
    refuse(
        "experiment", find_unknown(source.kind, problems, source.names) + find_unknown("method", names, list(methods))
    )
    repeats, chunk = request.repeats or 0, request.chunk or 1
    cache = RecordCache(request.out, REPEAT_KEY)
    requested = {name: methods[name] for name in names}
    settings = _search_grids(cache, source, requested, problems, repeats, chunk, progress)
    if repeats < GRID_REPEATS:
        requested = {n: replace(method, small={**method.small, **method.few}) for n, method in requested.items()}
    keys = [(problem, repeat) for repeat in take_part(repeats, request.part) for problem in problems]
    for i, chunk_keys in enumerate(split_chunks(keys, chunk)):
        share = i * chunk / len(keys)
        _measure_chunk(
            cache, source, chunk_keys, requested, settings, lambda stage, _, share=share: progress(stage, share)
        )
    return cache.select((*key, name) for key in keys for name in names)


# -- one chunk --------------------------------------------------------------------------------------------------------

Settings = Mapping[tuple[str, str], Any]  # by (simulation, method)


def _measure_chunk(
    cache: RecordCache,
    source: RepeatSource,
    keys: Sequence[tuple[str, int]],
    methods: Mapping[str, Method],
    settings: Settings,
    progress: Progress,
) -> None:
    """Measure the missing records of a chunk, one method after another, on all its logs together."""
    missing = {
        name: [key for key in keys if _is_missing(cache.records.get((*key, name)), method)]
        for name, method in methods.items()
    }
    needed = [key for key in keys if any(key in keys_of_method for keys_of_method in missing.values())]
    drawn_repeats = dict(zip(needed, draw_repeats(needed, source), strict=True))
    for name, method in methods.items():
        if missing[name]:
            progress(f"{name}, {len(missing[name])} logs", 0.0)
            for record in _measure_method(name, method, [drawn_repeats[key] for key in missing[name]], settings):
                cache.add(record)


def _is_missing(record: Mapping[str, Any] | None, method: Method) -> bool:
    """Return True if a method has no record yet, or only a record of an earlier, smaller model."""
    return record is None or (bool(record.get("small")) and not without_gpu(method.small))


def _measure_method(
    name: str, method: Method, drawn_repeats: list[RepeatData], settings: Settings
) -> Iterator[dict[str, Any]]:
    """Yield the record of one method on each log; all its models are fitted together."""
    if method.simple is not None:
        for data in drawn_repeats:
            yield _identify(name, data) | method.simple(data) | data.undefined_skills
        return
    fits = [fit for data in drawn_repeats for fit in list_fits(method, data, settings.get((data.simulation, name), {}))]
    start = time.perf_counter()
    fit_together([fit.model for fit in fits], [fit.log for fit in fits])
    seconds = round((time.perf_counter() - start) / len(drawn_repeats), 3)
    size = len(fits) // len(drawn_repeats)
    for data, repeat_fits in zip(drawn_repeats, split_chunks(fits, size), strict=True):
        fitted = {fit.problem: fit.model for fit in repeat_fits}
        record = (method.judge or _judge_method)(method, fitted, data)
        record |= {"small": True} if without_gpu(method.small) else {}
        yield _identify(name, data) | record | data.undefined_skills | {"seconds": seconds}


def _identify(name: str, data: RepeatData) -> dict[str, Any]:
    return {"simulation": data.simulation, "repeat": data.repeat, "row": name}


@dataclass(frozen=True, eq=False)
class Fit:
    """A model to be fitted: its problem ("levels" or "binary") or budget, the model, and its log."""

    problem: Any
    model: Any
    log: Log


def list_fits(method: Method, data: RepeatData, settings: Mapping[str, Any]) -> list[Fit]:
    """Return the fits of a method on one log."""
    assert method.make is not None
    small = without_gpu(method.small)
    if method.policy:
        return [
            Fit(budget, method.make(budget).set_params(seed=data.repeat, **small), data.log) for budget in data.budgets
        ]
    logs = {"levels": data.log}
    if method.binary and data.binary is not None:
        logs["binary"] = data.binary
    return [
        Fit(problem, _make_model(method.make, data.repeat, {**small, **settings.get(problem, {})}), log)
        for problem, log in logs.items()
    ]


def without_gpu(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return settings that are meant for a machine without a GPU; nothing on a machine with one."""
    if not settings:
        return {}
    import jax

    return settings if jax.default_backend() == "cpu" else {}


def _make_model(make: Callable[[], Any], seed: int, settings: Mapping[str, Any]) -> Any:
    model = make()
    seeded = {"seed": seed} if "seed" in model.get_params(deep=False) else {}
    return model.set_params(**seeded, **settings)


def _judge_method(method: Method, fitted: Mapping[Any, Any], data: RepeatData) -> dict[str, Any]:
    if method.policy:
        return judge_policies(fitted, data.fresh)
    model = fitted["levels"]
    curves = model.predict(data.fresh.features)
    record = read_choices(model) | judge_repeat(curves, data)
    if "binary" in fitted:
        record["√pehe"] = measure_effect_error(fitted["binary"].predict(data.fresh.features), data.fresh.truth)
    return record


def judge_repeat(curves: Array, data: RepeatData) -> dict[str, Any]:
    """Return the errors of curves (n, K) of a repeat's fresh customers, and the value and skill of plans made from them."""
    record = judge_curves(curves, data.fresh, data.budgets)
    if data.programme_budget is not None:
        record |= _compare_programme(curves, data.fresh, data.programme_budget)
    return record


def _compare_programme(curves: Array, fresh: Fresh, budget: int) -> dict[str, Any]:
    """Plan for the first customers by the paper's dynamic programme and by `allocate`; return predicted and true values."""
    curves, truth = curves[:PROGRAMME_ROWS], fresh.truth[:PROGRAMME_ROWS]
    plans = {
        "programme": dynamic_programme(curves, fresh.costs, budget * len(curves)),
        "ours": allocate(curves, fresh.costs, budget).levels,
    }
    rows = np.arange(len(curves))
    return {
        f"few {planner} {kind}": float(values[rows, levels].mean())
        for planner, levels in plans.items()
        for kind, values in (("predicted", curves), ("value", truth))
    }


# -- settings chosen on the first repeats -----------------------------------------------------------------------------


def _search_grids(
    cache: RecordCache,
    source: RepeatSource,
    methods: Mapping[str, Method],
    problems: Sequence[str],
    repeats: int,
    chunk: int,
    progress: Progress,
) -> dict[tuple[str, str], Any]:
    """Return the settings of all methods with grids; runs of too few repeats use those of an earlier search."""
    tuned = {name: method for name, method in methods.items() if method.grid}
    if not tuned or repeats < GRID_REPEATS:
        return {(p, name): method.earlier.get(p, {}) for p in problems for name, method in tuned.items()}
    keys = [(problem, repeat) for repeat in range(GRID_REPEATS) for problem in problems]
    searches = {_name_search(name): _make_search(method) for name, method in tuned.items()}
    for chunk_keys in split_chunks(keys, chunk):
        _measure_chunk(cache, source, chunk_keys, searches, {}, progress)
    return {(p, name): _pick_settings(cache, p, name, method) for p in problems for name, method in tuned.items()}


def _make_search(method: Method) -> Method:
    """Return a method whose model tries the whole grid and records the losses alone."""
    assert method.make is not None
    make, grid = method.make, dict(method.grid)
    return replace(method, make=lambda: make().set_params(**grid), grid=(), judge=_read_losses)


def _read_losses(_method: Method, fitted: Mapping[str, Any], _data: RepeatData) -> dict[str, Any]:
    """Return the held-out loss of each candidate of a grid, for each problem."""
    return {"losses": {problem: [choice.loss for choice in model.choices_] for problem, model in fitted.items()}}


def _pick_settings(cache: RecordCache, simulation: str, name: str, method: Method) -> dict[str, dict[str, float]]:
    """Return, for each problem of a simulation, the settings of least mean held-out loss over the first repeats."""
    losses = [
        record["losses"]
        for (record_simulation, repeat, record_name), record in cache.records.items()
        if (record_simulation, record_name) == (simulation, _name_search(name)) and int(repeat) < GRID_REPEATS
    ]
    candidates = list(product(*(values for _, values in method.grid)))
    best = {}
    for problem in losses[0]:
        means = np.mean([loss[problem] for loss in losses], axis=0)
        setting = candidates[int(np.nanargmin(means))]
        best[problem] = dict(zip((name for name, _ in method.grid), setting, strict=True))
    return best


def _name_search(name: str) -> str:
    """Return the name of the records of a grid search."""
    return f"{name} grid"
