"""Plans of the default model and of other packages' methods, on randomised logs and random simulated worlds.

On a log, every method gets the same rows, features and folds, and plans rows that it did not see, through the same allocation under
the same budget. All plans of a log are judged by the same doubly robust scores, with known propensities; their outcome model
belongs to no method. On a random world, plans for fresh customers are judged by the truth. A method that fails, exceeds
ten minutes of one core, or whose package is missing, gets a record with the reason.

Fits are saved next to the records: curves as NAME.npz, time, memory or the reason of a failure as NAME.json. Delete both files to fit
again. Several processes share the fits; the plans are judged when all fits are there.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, Self

import numpy as np

from largesse.data import read_log, read_table
from largesse.errors import refuse
from largesse.evaluation import (
    compute_scores,
    estimate_gain_over_mix,
    estimate_policy_difference,
    estimate_policy_value_and_spend,
    measure_spend_by_price,
    plan_each_fold,
    predict_out_of_fold,
)
from largesse.levels import Levels
from largesse.propensity import estimate_propensities
from largesse.records import Array, Estimate, HeldOutPredictions, Log, Progress, Propensities, Scores
from largesse.response import Linear, predict_held_out
from largesse.stats import assign_folds, limit_to_one_thread
from largesse.worlds import draw_world
from largesse_lab.experiments.experiment_definition import Experiment
from largesse_lab.experiments.head_to_head_page import HEAD_SETUP, fill_head_to_head, summarise_head_to_head
from largesse_lab.experiments.random_world_comparison import FRESH_ROWS, measure_world_model
from largesse_lab.experiments.real_log_gains import (
    GAIN_BUDGET_SHARES,
    GAIN_LOGS,
    estimate_costliest_level_cost,
    find_real_log_path,
)
from largesse_lab.nested_label_logs import find_data_folder
from largesse_lab.runner.competitor_models import (
    ORACLE,
    find_model_name_problems,
    list_known_models,
    make_competitor,
    match_models,
)
from largesse_lab.runner.experiment_request import (
    Records,
    Request,
    find_unknown_name_problems,
    ignore_progress,
    match_names,
)
from largesse_lab.runner.limited_process import describe_error, run_in_limited_process
from largesse_lab.runner.record_cache import Key, RecordCache
from largesse_lab.runner.uplift_measures import measure_aucc, measure_multi_level_aucc, measure_qini

HEAD_KEY = ("log", "repeat", "model", "share")
HEAD_MODELS = (
    *("auto", "sklearn S-learner", "sklearn T-learner", "lightgbm", "xgboost", "perpetual", "DR-learner", "bart"),
    *("econml DRLearner", "econml LinearDRLearner", "econml CausalForestDML"),
    *("econml DRPolicyForest", "econml DRPolicyTree"),
    *("causalml X-learner", "causalml R-learner", "causalml uplift forest"),
    *("stochtree BCF", "TabPFN v2 S-learner", "DFCL", "funnel product", "uniform"),
)
HEAD_SPLITS = 3  # into folds
HEAD_FOLDS = 5
RANDOM_WORLDS = "worlds"  # the name of the random worlds among the logs
HEAD_SEEDS, HEAD_ROWS = (1000, 1099), (2000,)


# -- logs --------------------------------------------------------------------------------------------------------------


def _read_star(folder: Path | None) -> Log:
    """Read pupils of kindergarten; costs are a guess: an aide costs half as much as a small class."""
    roles: dict[str, Any] = {"level": "level", "response": "score", "propensity": "propensity"}
    features = ["gender", "ethnicity", "birth", "lunchk", "schoolk"]
    levels = Levels(names=["0", "1", "2"], costs=[0, 0.5, 1])
    return read_log(find_real_log_path(folder, "star_kindergarten"), levels=levels, features=features, **roles)


def _read_survey_pay(folder: Path | None) -> Log:
    """Read a door-to-door survey with rewards as incentives; only people who answer are paid."""
    roles: dict[str, Any] = {"level": "level", "response": "answer", "propensity_strata": "stratum"}
    features = ["location", "voterin2010", "hour", "nosolsign"]
    levels = Levels(names=["0", "1", "2"], costs=[0, 10, 10], on_redemption=True)
    source = find_real_log_path(folder, "survey_pay_2011")
    return read_log(source, levels=levels, features=features, cluster="cluster", **roles)


def _read_new_haven(folder: Path | None) -> Log:
    """Read the voters without telephone calls; the number of mailings was drawn separately for canvassed voters."""
    import pyarrow.compute as pc

    table = read_table(find_real_log_path(folder, "new_haven_1998"), what="log")
    table = table.filter(pc.equal(table["phnscrpt"], pc.cast(0, table["phnscrpt"].type)))
    roles: dict[str, Any] = {"level": "mailings", "response": "voted98", "propensity_strata": "persngrp"}
    features = ["persngrp", "age", "majorpty", "vote96_1", "vote96_0"]
    return read_log(table, levels=Levels(names=list("0123"), costs=[0, 1, 2, 3]), features=features, **roles)


HEAD_LOGS: dict[str, Callable[[Path | None], Log]] = {
    **GAIN_LOGS,
    "STAR": _read_star,
    "survey pay": _read_survey_pay,
    "New Haven": _read_new_haven,
}
HEAD_FILES = {
    "Karlan–Zinman": "karlan_zinman_2008",
    "Karlan–List": "karlan_list_2007",
    "RAND": "rand_hie",
    "Hillstrom": "hillstrom",
    "STAR": "star_kindergarten",
    "survey pay": "survey_pay_2011",
    "New Haven": "new_haven_1998",
}


def list_available_logs() -> list[str]:
    """Return the names of the real logs whose data files exist."""
    folder = find_data_folder()
    return [
        name
        for name in HEAD_LOGS
        if name not in HEAD_FILES or (folder is not None and (folder / f"{HEAD_FILES[name]}.csv.gz").is_file())
    ]


# -- fits --------------------------------------------------------------------------------------------------------------


class Contestant:
    """Model by name, which cross-fitting can copy and fit to the training folds of a log."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed = name, seed

    def get_params(self, **_: bool) -> dict[str, Any]:
        """Return the constructor's arguments, for compatibility with scikit-learn's models."""
        return {"name": self.name, "seed": self.seed}

    def fit(self, log: Log) -> Self:
        """Fit the named model to a log."""
        model: Any = make_competitor(self.name, self.seed)
        self.model = model
        with limit_to_one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other packages warn of their own use of others
            self.model.fit(log)
        return self

    def predict(self, customers: Any) -> Array:
        """Return the predicted response curves (n, K) of customers."""
        with limit_to_one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(self.model.predict(customers))


def save_out_of_fold_curves(name: str, split: int, model: str, file: str) -> dict[str, Any]:
    """Save the out-of-fold curves of a model on a log; return the processor time."""
    log = HEAD_LOGS[name](find_data_folder())
    start = process_time()
    held = predict_held_out(Contestant(model, split), log, assign_folds(log, HEAD_FOLDS, split))
    seconds = process_time() - start
    if not np.isfinite(held.curves).all():
        raise ValueError("predictions are not finite")
    np.savez_compressed(file, curves=held.curves.astype(np.float32))
    return {"seconds": round(seconds, 2)}


def measure_model_on_random_world(seed: int, rows: int, model: str) -> dict[str, Any]:
    """Fit a model to the log of a random simulated world, and measure its plans for new simulated customers."""
    world = draw_world(seed)
    log, fresh = world.draw_log(rows), world.draw_fresh(FRESH_ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measure_world_model(model, seed, log, fresh, world.budgets) | {"regimes": world.traits.regimes}


@contextmanager
def open_fit_folder(records: Path | None) -> Iterator[FitFolder]:
    """Open the folder of saved fits next to a file of records; without a file, a temporary folder."""
    if records is None:
        with tempfile.TemporaryDirectory() as folder:
            yield FitFolder(Path(folder))
    else:  # NAME.0-of-4.jsonl is a part of NAME.jsonl
        yield FitFolder(records.with_name(f"{records.name.split('.')[0]}-fits"))


class FitFolder:
    """Folder of saved fits of models to logs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def load_fit(self, name: str, split: int, model: str) -> tuple[dict[str, Any], Array | None]:
        """Load the time, memory and curves of a saved fit; fit the model if no fit is saved."""
        base = self.path / f"{name}-{split}-{model}".replace(" ", "_").replace(":", "_")
        curves_file, facts_file = base.with_name(base.name + ".npz"), base.with_name(base.name + ".json")
        if not facts_file.exists():
            facts = run_in_limited_process(save_out_of_fold_curves, name, split, model, str(curves_file))
            facts_file.write_text(json.dumps(facts, ensure_ascii=False) + "\n", encoding="utf-8")
        facts = json.loads(facts_file.read_text(encoding="utf-8"))
        if "failed" in facts:
            return facts, None
        with np.load(curves_file) as arrays:
            return facts, arrays["curves"].astype(np.float64)


# -- measuring ---------------------------------------------------------------------------------------------------------


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per log, random split, model and budget, and one per random simulated world and model."""
    names = [*list_available_logs(), RANDOM_WORLDS] if request.problems is None else request.problems
    names = match_names(names, [*HEAD_LOGS, RANDOM_WORLDS])
    models = match_models(HEAD_MODELS if request.models is None else request.models)
    known = [name for name in list_known_models() if name != ORACLE]
    refuse(
        "experiment",
        find_unknown_name_problems("log", names, [*HEAD_LOGS, RANDOM_WORLDS])
        + find_unknown_name_problems("model", models, known),
    )
    refuse("experiment", find_model_name_problems(models))
    logs = [name for name in names if name != RANDOM_WORLDS]
    for name in logs:
        if name in HEAD_FILES:
            find_real_log_path(find_data_folder(), HEAD_FILES[name])  # refuses missing data
    splits = range(HEAD_SPLITS if request.repeats is None else request.repeats)
    cache = RecordCache(request.out, HEAD_KEY)
    records = _measure_worlds(request, models, cache, progress) if RANDOM_WORLDS in names and len(splits) else []
    with open_fit_folder(request.out) as fits:
        if request.part == (0, 1):
            groups = [
                [(log, split, model, share) for model in models for share in GAIN_BUDGET_SHARES]
                for split in splits
                for log in logs
            ]
            judge = partial(_measure_log, first=models[0], fits=fits, progress=progress)
            return records + cache.measure_groups(groups, judge, progress)
        tasks = [(log, split, model) for split in splits for model in models for log in logs]
        for i, task in enumerate(mine := tasks[request.part[0] :: request.part[1]]):
            progress(", ".join(map(str, task)), i / len(mine))
            fits.load_fit(*task)
    return records


def _measure_worlds(request: Request, models: Sequence[str], cache: RecordCache, progress: Progress) -> Records:
    first, last = HEAD_SEEDS if request.seeds is None else request.seeds
    groups = [
        [(f"worlds of {rows:,} rows", seed, model, None)]
        for rows in request.sizes or HEAD_ROWS
        for seed in range(first, last + 1)
        for model in models
    ]
    mine = groups[request.part[0] :: request.part[1]]
    return cache.measure_groups(mine, _measure_world, progress)


def _measure_world(keys: Sequence[Key]) -> Iterator[dict[str, Any]]:
    for name, seed, model, share in keys:
        rows = int(name.split()[2].replace(",", ""))
        record = {"log": name, "repeat": seed, "model": model, "share": share, "world": seed, "rows": rows}
        yield record | run_in_limited_process(measure_model_on_random_world, seed, rows, model)


def _measure_log(keys: Sequence[Key], first: str, fits: FitFolder, progress: Progress) -> Iterator[dict[str, Any]]:
    """Yield the missing records of a log, with the first model's plans compared with every other model's."""
    name, split = keys[0][:2]
    models = list(dict.fromkeys([first, *(key[2] for key in keys)]))
    for model in models:
        progress(f"{name}, {split}, {model}", 0.0)
        fits.load_fit(name, split, model)
    log = HEAD_LOGS[name](find_data_folder())
    held = predict_out_of_fold(log, Linear(seed=split), folds=HEAD_FOLDS, seed=split)
    propensities = estimate_propensities(log, held.fold, split)  # the log has them, or its strata
    judge = compute_scores(log, held, propensities)
    shared = {"log": name, "repeat": split, "rows": len(log), "clusters": log.clusters, "levels": len(log.levels)}
    budgets = {share: share * estimate_costliest_level_cost(judge) for share in GAIN_BUDGET_SHARES}
    plans: dict[float, Array] = {}
    for model in models:
        facts, curves = fits.load_fit(name, split, model)
        shares = [key[3] for key in keys if key[2] == model]
        try:
            scores = None if curves is None else _score_curves(log, held, curves, propensities)
            found = {} if scores is None else _plan_log(scores, list(budgets.values()))
        except Exception as error:
            facts, scores = facts | {"failed": describe_error(error)}, None
        if model == first and scores is not None:
            plans = found
        measures = {} if scores is None else _measure_order(judge, scores)
        for share in shares:
            record = shared | {"model": model, "share": share, "budget": budgets[share]} | facts
            if scores is not None:
                plan = found[budgets[share]]
                record |= _judge(judge, plan, plans.get(budgets[share])) | measures
            yield record


def _score_curves(log: Log, held: HeldOutPredictions, curves: Array, propensities: Propensities) -> Scores:
    return compute_scores(log, replace(held, curves=curves), propensities)


def _plan_log(scores: Scores, budgets: Sequence[float]) -> dict[float, Array]:
    spending = measure_spend_by_price(scores)
    return {budget: plan_each_fold(scores, budget, spending).levels for budget in budgets}


def _judge(judge: Scores, plan: Array, leader: Array | None) -> dict[str, Any]:
    value, spend = estimate_policy_value_and_spend(judge, plan)
    record = {"value": _list(value), "spend": _list(spend), "gain": _list(estimate_gain_over_mix(judge, plan))}
    if leader is not None:
        record["lead"] = _list(estimate_policy_difference(judge, leader, plan).value)
    return record


def _measure_order(judge: Scores, scores: Scores) -> dict[str, Any]:
    """Return measures of a model's order of customers by effect: Qini of each level over the cheapest, and AUCC."""
    curves, costs = scores.curves, scores.expected_costs
    dearest = int(np.argmax(costs.mean(axis=0)))
    level, logged = judge.level, np.arange(curves.shape[1]) == judge.level[:, None]
    value = logged * (judge.response / judge.propensity)[:, None]
    paid = logged * (judge.paid / judge.propensity)[:, None]
    qini = []
    for k in range(1, curves.shape[1]):
        rows = (level == 0) | (level == k)
        qini.append(measure_qini((curves[:, k] - curves[:, 0])[rows], level[rows] == k, judge.response[rows]))
    effect, cost = curves[:, dearest] - curves[:, 0], costs[:, dearest] - costs[:, 0]
    aucc = measure_aucc(effect, cost, value[:, dearest] - value[:, 0], paid[:, dearest] - paid[:, 0])
    return {"qini": qini, "aucc": aucc, "mt_aucc": measure_multi_level_aucc(curves, costs, value, paid)}


def _list(estimate: Estimate) -> list[float]:
    return [estimate.estimate, estimate.low, estimate.high]


HEAD_EXPERIMENT = Experiment(
    "head_to_head",
    "Head to head",
    measure,
    summarise_head_to_head,
    fill_head_to_head,
    setup=HEAD_SETUP,
    random_worlds=True,
    one_thread=True,
)
