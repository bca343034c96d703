"""Gains of plans over the best mix of levels for all customers on real randomised logs, by response model.

Every log is randomised with known propensities, and values are out-of-fold: rows are planned and scored by models that did not see
them, and doubly robust scores correct these models by the rows' own outcomes. Levels are cash for collecting a test result
(Thornton 2008), discounts of a loan's interest (Karlan and Zinman 2008), match ratios of donations (Karlan and List 2007),
generosity of a health plan (RAND) and two kinds of e-mail (Hillstrom).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from largesse.data import read_log, read_table
from largesse.errors import Problem, fail, refuse
from largesse.evaluation import (
    bound_policy_gains,
    crossfit_scores,
    estimate_each_level,
    estimate_gain_over_mix,
    estimate_policy_difference,
    estimate_policy_value_and_spend,
    find_best_mixes,
    give_verdict,
    learn_one_column_rules,
    measure_policy_influence,
    measure_spend_by_price,
    plan_each_fold,
)
from largesse.levels import Levels
from largesse.records import Array, Estimate, Log, Progress, Scores
from largesse.response import list_models, make_model
from largesse.worlds import read_thornton, thornton_levels
from largesse_lab.experiments import real_log_level_means
from largesse_lab.experiments.experiment_definition import table_experiment
from largesse_lab.nested_label_logs import find_data_folder
from largesse_lab.pages.markdown import NUMBER_DASH, format_table
from largesse_lab.runner.experiment_request import (
    Records,
    Request,
    find_unknown_name_problems,
    ignore_progress,
    match_names,
)
from largesse_lab.runner.record_cache import Key, RecordCache

GAIN_BUDGET_SHARES = (0.25, 0.5)  # of the dearest level's cost
N_SPLITS = 3  # into folds
GAIN_MODELS = ("auto", "linear", "additive", "boosting")
COMPLETE_SITES = (3, 4, 5, 6)  # of RAND: the others lack a level
RAND_FEATURES = (
    *("site", "year", "age", "female", "black", "income", "education", "child", "family_size"),
    *("mental_health", "chronic_diseases", "limited", "health_good", "health_fair", "health_poor"),
)
HILLSTROM_FEATURES = ("recency", "history", "mens", "womens", "zip_code", "newbie", "channel")


# -- logs --------------------------------------------------------------------------------------------------------------


def _read_thornton_log(_folder: Path | None) -> Log:
    roles: dict[str, Any] = {
        "level": "incentive",
        "response": "got",
        "cluster": "village",
        "propensity_strata": "block",
    }
    return read_log(read_thornton(), levels=thornton_levels(), features=["block", "age", "distance"], **roles)


def _read_karlan_zinman_log(folder: Path | None) -> Log:
    """Read the loan-offer log of Karlan and Zinman, with levels of interest discounts."""
    table = read_table(find_real_log_path(folder, "karlan_zinman_2008"), what="log")
    level, discount = np.asarray(table["level"]), np.asarray(table["discount_rel"])
    costs = [round(float(discount[level == k].mean()), 2) for k in range(5)]
    table = table.append_column("discount", [np.array(costs)[level]])
    roles: dict[str, Any] = {"level": "discount", "response": "tookup", "propensity": "propensity"}
    levels = Levels(costs=costs, doses=costs, on_redemption=True)
    return read_log(table, levels=levels, features=real_log_level_means.ZINMAN_FEATURES, **roles)


def _read_karlan_list_log(folder: Path | None) -> Log:
    return real_log_level_means.REAL_LOGS["Karlan–List, amount"](find_real_log_path(folder, "karlan_list_2007").parent)[
        0
    ]


def _read_rand_insurance_log(folder: Path | None) -> Log:
    """Read the RAND health insurance log (person-years), with observed costs."""
    import pyarrow.compute as pc

    table = read_table(find_real_log_path(folder, "rand_hie"), what="log")
    table = table.filter(pc.is_in(table["site"], value_set=pc.cast(list(COMPLETE_SITES), table["site"].type)))
    roles: dict[str, Any] = {"level": "level", "response": "any_use", "cluster": "person", "propensity_strata": "site"}
    levels = Levels(names=["0", "1", "2", "3"], observed=True)
    return read_log(table, levels=levels, features=RAND_FEATURES, cost_column="paid_by_plan", **roles)


def _read_hillstrom_log(folder: Path | None) -> Log:
    levels = Levels(costs=[0, 1, 1], names=["No E-Mail", "Womens E-Mail", "Mens E-Mail"])
    roles: dict[str, Any] = {"level": "segment", "response": "visit", "propensity": [1 / 3, 1 / 3, 1 / 3]}
    return read_log(find_real_log_path(folder, "hillstrom"), levels=levels, features=HILLSTROM_FEATURES, **roles)


def find_real_log_path(folder: Path | None, name: str) -> Any:
    """Return the path of a real log's data file."""
    path = None if folder is None else folder / f"{name}.csv.gz"
    if path is None or not path.is_file():
        hint = f"set LARGESSE_DATA to the folder that holds {name}.csv.gz; --simulations thornton needs no folder"
        fail("experiment", Problem("the real data are missing", hint))
    return path


GAIN_LOGS: dict[str, Callable[[Path | None], Log]] = {
    "Thornton": _read_thornton_log,
    "Karlan–Zinman": _read_karlan_zinman_log,
    "Karlan–List": _read_karlan_list_log,
    "RAND": _read_rand_insurance_log,
    "Hillstrom": _read_hillstrom_log,
}
DESCRIPTIONS = {
    "Thornton": "came for the result, for cash",
    "Karlan–Zinman": "took up a loan, for a discount",
    "Karlan–List": "dollars given, for a match",
    "RAND": "used care in a year, for a more generous plan",
    "Hillstrom": "visited the shop, for an e-mail",
}


# -- measuring ---------------------------------------------------------------------------------------------------------


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per log, model, budget and split: the values of the plan and the best mix of levels."""
    logs = list(GAIN_LOGS) if request.problems is None else match_names(request.problems, GAIN_LOGS)
    models = list(GAIN_MODELS if request.models is None else request.models)
    refuse(
        "experiment",
        find_unknown_name_problems("log", logs, list(GAIN_LOGS))
        + find_unknown_name_problems("model", models, list(list_models())),
    )
    splits = range(N_SPLITS if request.repeats is None else request.repeats)
    groups = [
        [(log, model, split, share) for share in GAIN_BUDGET_SHARES]
        for log in logs
        for model in models
        for split in splits
    ]
    cache = RecordCache(request.out, ("log", "model", "repeat", "share"))
    return cache.measure_groups(groups, _measure_budgets, progress)


def _measure_budgets(keys: Sequence[Key]) -> Records:
    """Return the records of several budgets for one log, model and split, after a single fit."""
    name, model, split, _ = keys[0]
    log, start = GAIN_LOGS[name](find_data_folder()), process_time()
    scores = crossfit_scores(log, make_model(model, split), seed=split)
    spending, means = measure_spend_by_price(scores), estimate_each_level(scores)
    curve = scores.weight @ scores.curves / scores.weight.sum()
    shared = {"log": name, "model": model, "repeat": split, "rows": len(log), "clusters": log.clusters}
    shared |= {"seconds": process_time() - start, "labels": log.levels.labels, "curve": curve.tolist()}
    shared |= {"means": [_list_interval(value) for value, _ in means]}
    records = []
    for *_, share in keys:
        budget = share * estimate_costliest_level_cost(scores)
        plan = plan_each_fold(scores, budget, spending).levels
        value, spend = estimate_policy_value_and_spend(scores, plan)
        mixes = find_best_mixes(scores, measure_policy_influence(scores, plan).spend.values)
        gain = estimate_policy_difference(scores, plan, mixes.policy).value
        estimates = {
            "value": value,
            "spend": spend,
            "uniform": estimate_policy_value_and_spend(scores, mixes.policy)[0],
            "gain": gain,
        }
        estimates["fair"] = estimate_gain_over_mix(scores, plan)  # allows for errors of both spends
        record = shared | {"share": share, "budget": budget, "given": np.bincount(plan, minlength=len(means)).tolist()}
        record |= {"mix": mixes.mean.tolist(), "verdict": _record_verdict(log, scores, plan, split)}
        records.append(record | {key: _list_interval(estimate) for key, estimate in estimates.items()})
    return records


def _record_verdict(log: Log, scores: Scores, plan: Array, seed: int) -> dict[str, Any]:
    """Return the verdict on a plan and its lower bounds as a record."""
    rules = learn_one_column_rules(log, scores, plan)
    bounds = bound_policy_gains(log, scores, plan, rules, learnt=True)
    verdict = give_verdict(log, scores, plan, rules, bounds, seed=seed)
    facts = {"grade": verdict.grade, "recommended": verdict.recommended, "rows": verdict.needed_rows}
    gain = None if verdict.gain is None else _list_interval(verdict.gain)
    return facts | {"probability": verdict.probability, "gain": gain}


def estimate_costliest_level_cost(scores: Scores) -> float:
    """Estimate the mean cost of the costliest level by inverse propensity weighting."""
    dearest = scores.level == scores.gamma.shape[1] - 1
    weight: Array = (scores.weight / scores.propensity)[dearest]
    return float(weight @ scores.paid[dearest] / weight.sum())


def _list_interval(estimate: Estimate) -> list[float]:
    return [estimate.estimate, estimate.low, estimate.high]


# -- tables ------------------------------------------------------------------------------------------------------------


def tabulate(records: Records) -> str:
    """Return Markdown tables of plans, verdicts, gains by model, and levels with a mean outside its interval.

    Estimates and ends of intervals are averaged over splits into folds.
    """
    if not records:
        return ""
    models, logs, shares = (
        list(dict.fromkeys(record[field] for record in records)) for field in ("model", "log", "share")
    )
    cells = {
        (log, share, model): _average_splits(
            [r for r in records if (r["log"], r["share"], r["model"]) == (log, share, model)]
        )
        for log in logs
        for share in shares
        for model in models
    }
    head = ["log", "rows", "levels", "budget", "spend", "plan", "uniform mix", "plan − mix"]
    head += ["at the same true spend", "by the log alone"]
    body = [_write_plan_row(cells[log, share, models[0]]) for log in logs for share in shares]
    parts = [f"Plans of `{models[0]}`, 95 % intervals in brackets.", format_table(head, body)]
    head = ["log", "budget", "grade", "recommended", "probability", "expected gain", "rows that would show it"]
    first = [r for r in records if r["model"] == models[0] and r["repeat"] == records[0]["repeat"]]
    verdicts = format_table(head, [_write_verdict_row(record) for record in first])
    parts += ["Verdicts on these plans, by model and log together; the first split into folds.", verdicts]
    body = [
        [log, f"{share:.0%}", *(_write_estimate(cells[log, share, model]["fair"], signed=True) for model in models)]
        for log in logs
        for share in shares
    ]
    parts += ["Plan − mix at the same true spend, by model.", format_table(["log", "budget", *models], body)]
    body = [[log, *(_write_missed_level_means(cells[log, shares[0], model]) for model in models)] for log in logs]
    parts += [
        "Levels whose mean by the model lies outside its out-of-fold interval.",
        format_table(["log", *models], body),
    ]
    return "\n\n".join(parts)


def _average_splits(records: Records) -> dict[str, Any]:
    """Average the records of several random splits of the log into folds."""
    fields = ("budget", "value", "spend", "uniform", "gain", "fair", "curve", "means")
    return records[0] | {field: np.mean([record[field] for record in records], axis=0).tolist() for field in fields}


def _write_plan_row(record: dict[str, Any]) -> list[str]:
    clusters = "" if record["clusters"] is None else f" in {record['clusters']:,} clusters"
    size = [f"{record['rows']:,}{clusters}", str(len(record["labels"]))]
    numbers = [f"{record['budget']:.4g} ({record['share']:.0%})"]
    numbers += [_write_estimate(record[field]) for field in ("spend", "value", "uniform")]
    numbers += [_write_estimate(record[field], signed=True) for field in ("gain", "fair")]
    return [f"{record['log']}: {DESCRIPTIONS[record['log']]}", *size, *numbers, classify_interval(*record["fair"][1:])]


def _write_verdict_row(record: dict[str, Any]) -> list[str]:
    verdict = record["verdict"]
    known = verdict["probability"] is not None
    probability = f"{verdict['probability']:.0%}" if known else NUMBER_DASH
    gain = _write_estimate(verdict["gain"], signed=True) if known else NUMBER_DASH
    rows = NUMBER_DASH if verdict["rows"] is None else f"{verdict['rows']:,.0f}"
    names = [record["log"], f"{record['share']:.0%}", verdict["grade"], verdict["recommended"] or NUMBER_DASH]
    return [*names, probability, gain, rows]


def classify_interval(low: float, high: float) -> str:
    """Classify a gain as positive, negative or undecided by the ends of its interval.

    >>> classify_interval(-0.1, 0.3)
    'no difference beyond chance'
    """
    if not np.isfinite(high - low):
        return "too few responses to say"
    if low > 0:
        return "a gain"
    return "a loss" if high < 0 else "no difference beyond chance"


def _write_estimate(values: Sequence[float], *, signed: bool = False) -> str:
    estimate, low, high = (f"{value:{'+.2g' if signed else '.3g'}}".replace("-", "−") for value in values)
    return f"{estimate} ({low} to {high})"


def _write_missed_level_means(record: dict[str, Any]) -> str:
    missed = [
        f"{label}: {mean:.3g} for {low:.3g} to {high:.3g}"
        for label, mean, (_, low, high) in zip(record["labels"], record["curve"], record["means"], strict=True)
        if mean < low or mean > high
    ]
    return f"{len(missed)} of {len(record['labels'])}" + (f" ({'; '.join(missed)})" if missed else "")


GAINS_SETUP = (
    "The out-of-fold value of plans on five randomised logs, compared with the best uniform mix of levels at the same spend. Budgets "
    "are 25 % and 50 % of the dearest level's cost."
)
GAINS_EXPERIMENT = table_experiment("gains", "Gains on real logs", measure, tabulate, setup=GAINS_SETUP, parallel=False)
