"""Measurement of the paper's methods on many repeats of logs with a known truth.

All fits of a method on the logs of a chunk go through `fit_models_together`, which trains their networks as one program on a GPU. A
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
from largesse_lab.runner.allocation_dynamic_programme import allocate_by_dynamic_programme
from largesse_lab.runner.concurrent_model_fitting import fit_models_together
from largesse_lab.runner.experiment_request import (
    Records,
    Request,
    find_unknown_name_problems,
    select_repeats_of_part,
    split_chunks,
)
from largesse_lab.runner.record_cache import RecordCache
from largesse_lab.runner.truth_measures import (
    PAPER_BUDGETS,
    Fresh,
    judge_curves,
    judge_policies,
    measure_effect_error,
    read_chosen_settings,
    select_two_level_log,
)

REPEAT_KEY = ("simulation", "repeat", "row")  # "row" is the method
GRID_REPEATS = 10  # repeats on which an expensive grid is searched; its best setting is used in all repeats
PROGRAMME_ROWS, PROGRAMME_BUDGET = 500, 3  # customers and budget of the paper's dynamic programme
MIN_SKILL_ROOM = 1e-3  # between the oracle and the best uniform mix; below it a skill means nothing
GridResults = Mapping[str, Mapping[str, Mapping[str, float]]]  # simulation → problem → settings


@dataclass(frozen=True)
class Method:
    """One method of a table: a factory of its model, or a function that measures it without a model."""

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
    """Data of one repeat: a log for training, and customers outside the log with known responses for testing."""

    simulation: str
    repeat: int
    log: Log
    fresh: Fresh
    budgets: tuple[float, ...]
    binary: Log | None = None  # the log of the binary problem
    programme_budget: int | None = None  # budget of the paper's dynamic programme; None: it is not run

    @cached_property
    def undefined_skills(self) -> dict[str, None]:
        """Skill scores to report as None: at budgets where the oracle hardly beats one mix of levels for all."""
        rooms = {b: self.fresh.oracle_value(b) - self.fresh.uniform_value(b) for b in self.budgets}
        return {f"skill {budget:g}": None for budget, room in rooms.items() if room < MIN_SKILL_ROOM}


def simulate_repeat(simulation: str, repeat: int) -> RepeatData:
    """Simulate the data of one repeat of a simulation."""
    world = simulate(simulation, n=truth_measures.LOG_ROWS, seed=repeat)
    fresh = world.draw(truth_measures.FRESH_ROWS, seed=truth_measures.FRESH_SEED)
    return RepeatData(
        simulation, repeat, world.log, fresh, PAPER_BUDGETS, select_two_level_log(world), PROGRAMME_BUDGET
    )


@dataclass(frozen=True)
class RepeatSource:
    """Source of data for repeats: a function, its accepted names, and their kind, such as "simulation"."""

    make: Callable[[str, int], RepeatData]
    names: Sequence[str]
    kind: str


SIMULATED = RepeatSource(simulate_repeat, SIMULATIONS, "simulation")


def draw_repeats(keys: Sequence[tuple[str, int]], source: RepeatSource) -> list[RepeatData]:
    """Draw the data of several repeats in parallel threads."""
    with ThreadPoolExecutor(count_cores()) as pool:
        return list(pool.map(lambda key: source.make(*key), keys))


def measure_methods(
    methods: Mapping[str, Method], request: Request, progress: Progress, source: RepeatSource = SIMULATED
) -> Records:
    """Return one record of measures per simulation or data set, repeat and method.

    The request must name problems, models, repeats and chunk.
    """
    problems, names = request.problems or (), request.models or ()
    refuse(
        "experiment",
        find_unknown_name_problems(source.kind, problems, source.names)
        + find_unknown_name_problems("method", names, list(methods)),
    )
    repeats, chunk = request.repeats or 0, request.chunk or 1
    cache = RecordCache(request.out, REPEAT_KEY)
    requested = {name: methods[name] for name in names}
    settings = _search_grids(cache, source, requested, problems, repeats, chunk, progress)
    if repeats < GRID_REPEATS:
        requested = {n: replace(method, small={**method.small, **method.few}) for n, method in requested.items()}
    keys = [(problem, repeat) for repeat in select_repeats_of_part(repeats, request.part) for problem in problems]
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
    """Measure the missing records of a few repeats, one method after another."""
    missing = {
        name: [key for key in keys if _needs_measurement(cache.records.get((*key, name)), method)]
        for name, method in methods.items()
    }
    needed = [key for key in keys if any(key in keys_of_method for keys_of_method in missing.values())]
    drawn_repeats = dict(zip(needed, draw_repeats(needed, source), strict=True))
    for name, method in methods.items():
        if missing[name]:
            progress(f"{name}, {len(missing[name])} logs", 0.0)
            for record in _measure_method(name, method, [drawn_repeats[key] for key in missing[name]], settings):
                cache.add(record)


def _needs_measurement(record: Mapping[str, Any] | None, method: Method) -> bool:
    """Return True if a method has no record, or one of its small model although this machine has a GPU."""
    return record is None or (bool(record.get("small")) and not select_settings_without_gpu(method.small))


def _measure_method(
    name: str, method: Method, drawn_repeats: list[RepeatData], settings: Settings
) -> Iterator[dict[str, Any]]:
    """Yield one record per log of a method whose models are all fitted concurrently."""
    if method.simple is not None:
        for data in drawn_repeats:
            yield _make_record_key(name, data) | method.simple(data) | data.undefined_skills
        return
    fits = [
        fit
        for data in drawn_repeats
        for fit in list_model_fits(method, data, settings.get((data.simulation, name), {}))
    ]
    start = time.perf_counter()
    fit_models_together([fit.model for fit in fits], [fit.log for fit in fits])
    seconds = round((time.perf_counter() - start) / len(drawn_repeats), 3)
    size = len(fits) // len(drawn_repeats)
    for data, repeat_fits in zip(drawn_repeats, split_chunks(fits, size), strict=True):
        fitted = {fit.problem: fit.model for fit in repeat_fits}
        record = (method.judge or _measure_fitted_method)(method, fitted, data)
        record |= {"small": True} if select_settings_without_gpu(method.small) else {}
        yield _make_record_key(name, data) | record | data.undefined_skills | {"seconds": seconds}


def _make_record_key(name: str, data: RepeatData) -> dict[str, Any]:
    return {"simulation": data.simulation, "repeat": data.repeat, "row": name}


@dataclass(frozen=True, eq=False)
class ModelFitTask:
    """Unfitted model with its log, and its problem: all levels, two levels, or the plan at one budget."""

    problem: Any
    model: Any
    log: Log


def list_model_fits(method: Method, data: RepeatData, settings: Mapping[str, Any]) -> list[ModelFitTask]:
    """Return the models that a method must fit to one log."""
    assert method.make is not None
    small = select_settings_without_gpu(method.small)
    if method.policy:
        return [
            ModelFitTask(budget, method.make(budget).set_params(seed=data.repeat, **small), data.log)
            for budget in data.budgets
        ]
    logs = {"levels": data.log}
    if method.binary and data.binary is not None:
        logs["binary"] = data.binary
    return [
        ModelFitTask(problem, _make_model(method.make, data.repeat, {**small, **settings.get(problem, {})}), log)
        for problem, log in logs.items()
    ]


def select_settings_without_gpu(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings on a machine without a GPU, and nothing on a machine with a GPU."""
    if not settings:
        return {}
    import jax

    return settings if jax.default_backend() == "cpu" else {}


def _make_model(make: Callable[[], Any], seed: int, settings: Mapping[str, Any]) -> Any:
    model = make()
    seeded = {"seed": seed} if "seed" in model.get_params(deep=False) else {}
    return model.set_params(**seeded, **settings)


def _measure_fitted_method(method: Method, fitted: Mapping[Any, Any], data: RepeatData) -> dict[str, Any]:
    if method.policy:
        return judge_policies(fitted, data.fresh)
    model = fitted["levels"]
    curves = model.predict(data.fresh.features)
    record = read_chosen_settings(model) | measure_repeat_curves(curves, data)
    if "binary" in fitted:
        record["√pehe"] = measure_effect_error(fitted["binary"].predict(data.fresh.features), data.fresh.truth)
    return record


def measure_repeat_curves(curves: Array, data: RepeatData) -> dict[str, Any]:
    """Return the errors of curves (n, K) on a repeat's new customers, and the value and skill of their plans."""
    record = judge_curves(curves, data.fresh, data.budgets)
    if data.programme_budget is not None:
        record |= _compare_with_dynamic_programme(curves, data.fresh, data.programme_budget)
    return record


def _compare_with_dynamic_programme(curves: Array, fresh: Fresh, budget: int) -> dict[str, Any]:
    """Return predicted and true values of plans by the paper's dynamic programme and by `allocate`."""
    curves, truth = curves[:PROGRAMME_ROWS], fresh.truth[:PROGRAMME_ROWS]
    plans = {
        "programme": allocate_by_dynamic_programme(curves, fresh.costs, budget * len(curves)),
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
    """Return the settings of methods with grids, chosen by held-out loss on the first repeats.

    Runs of too few repeats use the settings of an earlier search.
    """
    tuned = {name: method for name, method in methods.items() if method.grid}
    if not tuned or repeats < GRID_REPEATS:
        return {(p, name): method.earlier.get(p, {}) for p in problems for name, method in tuned.items()}
    keys = [(problem, repeat) for repeat in range(GRID_REPEATS) for problem in problems]
    searches = {_name_grid_search(name): _make_grid_search_method(method) for name, method in tuned.items()}
    for chunk_keys in split_chunks(keys, chunk):
        _measure_chunk(cache, source, chunk_keys, searches, {}, progress)
    return {
        (p, name): _pick_best_grid_settings(cache, p, name, method) for p in problems for name, method in tuned.items()
    }


def _make_grid_search_method(method: Method) -> Method:
    """Return a copy of a method that fits its whole grid and records only held-out losses."""
    assert method.make is not None
    make, grid = method.make, dict(method.grid)
    return replace(method, make=lambda: make().set_params(**grid), grid=(), judge=_read_held_out_losses)


def _read_held_out_losses(_method: Method, fitted: Mapping[str, Any], _data: RepeatData) -> dict[str, Any]:
    """Return the held-out loss of each setting in a method's grid, by problem (all levels, two levels)."""
    return {"losses": {problem: [choice.loss for choice in model.choices_] for problem, model in fitted.items()}}


def _pick_best_grid_settings(
    cache: RecordCache, simulation: str, name: str, method: Method
) -> dict[str, dict[str, float]]:
    """Return the grid settings with the lowest mean held-out loss, by problem (all levels, two levels)."""
    losses = [
        record["losses"]
        for (record_simulation, repeat, record_name), record in cache.records.items()
        if (record_simulation, record_name) == (simulation, _name_grid_search(name)) and int(repeat) < GRID_REPEATS
    ]
    candidates = list(product(*(values for _, values in method.grid)))
    best = {}
    for problem in losses[0]:
        means = np.mean([loss[problem] for loss in losses], axis=0)
        setting = candidates[int(np.nanargmin(means))]
        best[problem] = dict(zip((name for name, _ in method.grid), setting, strict=True))
    return best


def _name_grid_search(name: str) -> str:
    """Return the name under which a method's grid search is recorded."""
    return f"{name} grid"
