"""What plans gain on real randomised logs over the best uniform mix for the same money, and whether models meet level means.

Every log is randomised with known propensities, so values are honest: rows are planned and scored by models that did not see
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
from largesse.errors import Problem, refuse
from largesse.evaluation import (
    crossfit,
    estimate_difference,
    estimate_uniform,
    estimate_value,
    find_best_mix,
    measure_spending,
    plan_held_out,
)
from largesse.levels import Levels
from largesse.records import Array, Estimate, Log, Progress, Scores
from largesse.response import list_models, make_model
from largesse.worlds import read_thornton, thornton_levels
from largesse_lab.bench.kept import Kept, Key
from largesse_lab.bench.request import Records, Request, find_unknown, ignore_progress, match_names
from largesse_lab.experiments import real_logs
from largesse_lab.experiments.base import Experiment
from largesse_lab.nested import find_data_folder
from largesse_lab.page.sections import Chapter
from largesse_lab.page.tables import write_table

SHARES = (0.25, 0.5)  # budgets, as shares of what the dearest level costs
MODELS = ("auto", "linear", "additive", "boosting")
FULL_SITES = (3, 4, 5, 6)  # of RAND: the others lack a level, and what it would bring there nobody has seen
RAND_FEATURES = (
    *("site", "year", "age", "female", "black", "income", "education", "child", "family_size"),
    *("mental_health", "chronic_diseases", "limited", "health_good", "health_fair", "health_poor"),
)
HILLSTROM_FEATURES = ("recency", "history", "mens", "womens", "zip_code", "newbie", "channel")


# -- logs --------------------------------------------------------------------------------------------------------------


def _read_thornton(_folder: Path | None) -> Log:
    roles: dict[str, Any] = {"level": "incentive", "response": "got", "cluster": "village", "propensity_strata": "block"}
    return read_log(read_thornton(), levels=thornton_levels(), features=["block", "age", "distance"], **roles)


def _read_karlan_zinman(folder: Path | None) -> Log:
    """Read loan offers: a level costs the mean discount inside it, as a share of the usual rate, if the loan is taken up."""
    table = read_table(_find(folder, "karlan_zinman_2008"), what="log")
    level, discount = np.asarray(table["level"]), np.asarray(table["discount_rel"])
    costs = [round(float(discount[level == k].mean()), 2) for k in range(5)]
    table = table.append_column("discount", [np.array(costs)[level]])
    roles: dict[str, Any] = {"level": "discount", "response": "tookup", "propensity": "propensity"}
    levels = Levels(costs=costs, doses=costs, on_redemption=True)
    return read_log(table, levels=levels, features=real_logs.ZINMAN_FEATURES, **roles)


def _read_karlan_list(folder: Path | None) -> Log:
    return real_logs.LOGS["Karlan–List, amount"](_find(folder, "karlan_list_2007").parent)[0]


def _read_rand(folder: Path | None) -> Log:
    """Read person-years of the sites that have all levels; what the plan paid is observed."""
    import pyarrow.compute as pc

    table = read_table(_find(folder, "rand_hie"), what="log")
    table = table.filter(pc.is_in(table["site"], value_set=pc.cast(list(FULL_SITES), table["site"].type)))
    roles: dict[str, Any] = {"level": "level", "response": "any_use", "cluster": "person", "propensity_strata": "site"}
    levels = Levels(names=["0", "1", "2", "3"], observed=True)
    return read_log(table, levels=levels, features=RAND_FEATURES, cost_column="paid_by_plan", **roles)


def _read_hillstrom(folder: Path | None) -> Log:
    levels = Levels(costs=[0, 1, 1], names=["No E-Mail", "Womens E-Mail", "Mens E-Mail"])
    roles: dict[str, Any] = {"level": "segment", "response": "visit", "propensity": [1 / 3, 1 / 3, 1 / 3]}
    return read_log(_find(folder, "hillstrom"), levels=levels, features=HILLSTROM_FEATURES, **roles)


def _find(folder: Path | None, name: str) -> Any:
    """Return the path of a file of the real data."""
    path = None if folder is None else folder / f"{name}.csv.gz"
    if path is None or not path.is_file():
        hint = f"set LARGESSE_DATA to the folder that holds {name}.csv.gz; --simulations thornton needs no folder"
        refuse("experiment", [Problem("the real data are not here", hint)])
    return path


LOGS: dict[str, Callable[[Path | None], Log]] = {
    "Thornton": _read_thornton,
    "Karlan–Zinman": _read_karlan_zinman,
    "Karlan–List": _read_karlan_list,
    "RAND": _read_rand,
    "Hillstrom": _read_hillstrom,
}
ABOUT = {
    "Thornton": "came for the result, for cash",
    "Karlan–Zinman": "took up a loan, for a discount",
    "Karlan–List": "dollars given, for a match",
    "RAND": "used care in a year, for a more generous plan",
    "Hillstrom": "visited the shop, for an e-mail",
}


# -- measuring ---------------------------------------------------------------------------------------------------------


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per log, model and budget: what the plan and the best uniform mix bring for the same money."""
    logs = list(LOGS) if request.problems is None else match_names(request.problems, LOGS)
    models = list(MODELS if request.rows is None else request.rows)
    refuse("experiment", find_unknown("log", logs, list(LOGS)) + find_unknown("model", models, list(list_models())))
    if request.repeats == 0:
        return []
    kept = Kept(request.out, ("log", "model", "share"))
    groups = [[(log, model, share) for share in SHARES] for log in logs for model in models]
    kept.complete(groups, _measure_keys, progress)
    return kept.take([key for group in groups for key in group])


def _measure_keys(keys: Sequence[Key]) -> Records:
    name, model = keys[0][:2]
    return measure_log(name, LOGS[name](find_data_folder()), model, [share for _, _, share in keys])


def measure_log(name: str, log: Log, model: str, shares: Sequence[float] = SHARES) -> Records:
    """Return one record per budget; models are fitted once."""
    began = process_time()
    scores = crossfit(log, make_model(model))
    spending, means = measure_spending(scores), estimate_uniform(scores)
    curve = scores.weight @ scores.curves / scores.weight.sum()
    outside = [
        {"level": label, "mean": float(mean), **_as_dict(value)}
        for label, mean, (value, _) in zip(log.levels.labels, curve, means, strict=True)
        if not value.low <= mean <= value.high
    ]
    seconds = process_time() - began
    found = []
    for share in shares:
        budget = share * _cost_of_dearest(scores)
        plan = plan_held_out(scores, budget, spending).levels
        value, spend = estimate_value(scores, plan)
        mix = find_best_mix(scores, spend.estimate)
        gain, _ = estimate_difference(scores, plan, mix)
        record = {"log": name, "model": model, "share": share, "rows": len(log), "levels": len(log.levels)}
        record |= {"clusters": log.clusters, "budget": budget, "outside": outside, "seconds": seconds}
        record |= {"given": (np.bincount(plan, minlength=len(mix)) / len(plan)).tolist(), "mix": mix.tolist()}
        estimates = {"value": value, "spend": spend, "uniform": estimate_value(scores, mix)[0], "gain": gain}
        found.append(record | {word: _as_dict(estimate) for word, estimate in estimates.items()})
    return found


def _cost_of_dearest(scores: Scores) -> float:
    """Return what the dearest level costs a row: the mean of what its rows cost, weighted by 1 / propensity."""
    own = scores.level == scores.gamma.shape[1] - 1
    weight: Array = (scores.weight / scores.propensity)[own]
    return float(weight @ scores.paid[own] / weight.sum())


def _as_dict(found: Estimate) -> dict[str, float]:
    return {"estimate": found.estimate, "low": found.low, "high": found.high}


# -- tables ------------------------------------------------------------------------------------------------------------


def tabulate(records: Records) -> str:
    """Return the default's plans, the gains of all models, and the level means they miss, as Markdown."""
    first = records[0]["model"] if records else MODELS[0]
    head = ["log", "rows", "levels", "budget", "spend", "plan", "uniform mix", "plan − mix", "verdict"]
    body = [_write_plan(record) for record in records if record["model"] == first]
    tables = [f"Plans of `{first}`, 95 % intervals in brackets.", write_table(head, body)]
    models = list(dict.fromkeys(record["model"] for record in records))
    cells = {(record["log"], record["share"], record["model"]): record for record in records}
    places = list(dict.fromkeys((record["log"], record["share"]) for record in records))
    body = [
        [log, f"{share:.0%}", *(_write_estimate(cells[log, share, model]["gain"], plus=True) for model in models)]
        for log, share in places
    ]
    tables += ["Plan − mix, by model.", write_table(["log", "budget", *models], body)]
    logs = list(dict.fromkeys(log for log, _ in places))
    body = [[log, *(_write_outside(cells[log, places[0][1], model]) for model in models)] for log in logs]
    tables += ["Levels whose mean curve lies outside the honest interval.", write_table(["log", *models], body)]
    return "\n\n".join(tables) + "\n"


def _write_plan(record: dict[str, Any]) -> list[str]:
    clusters = "" if record["clusters"] is None else f" in {record['clusters']:,} clusters"
    numbers = [f"{record['budget']:.4g} ({record['share']:.0%})", _write_estimate(record["spend"])]
    values = [_write_estimate(record[word]) for word in ("value", "uniform")]
    gain = record["gain"]
    log = f"{record['log']}: {ABOUT.get(record['log'], '')}"
    size = [f"{record['rows']:,}{clusters}", str(record["levels"])]
    return [log, *size, *numbers, *values, _write_estimate(gain, plus=True), give_verdict(gain)]


def give_verdict(gain: dict[str, float]) -> str:
    """Say in words what an interval of a gain shows.

    >>> give_verdict({"estimate": 0.1, "low": -0.1, "high": 0.3})
    'no difference beyond chance'
    """
    if not np.isfinite(gain["high"] - gain["low"]):
        return "too few responses to say"
    if gain["low"] > 0:
        return "a gain"
    return "a loss" if gain["high"] < 0 else "no difference beyond chance"


def _write_estimate(found: dict[str, float], *, plus: bool = False) -> str:
    form = "+.3g" if plus else ".4g"
    return f"{found['estimate']:{form}} ({found['low']:{form}} to {found['high']:{form}})"


def _write_outside(record: dict[str, Any]) -> str:
    missed = [f"{one['level']}: {one['mean']:.4g} for {one['low']:.4g} to {one['high']:.4g}" for one in record["outside"]]
    return f"{len(missed)} of {record['levels']}" + (f" ({'; '.join(missed)})" if missed else "")


SETUP = (
    "The honest value of plans on five randomised logs against the best uniform mix of levels for the same money. Budgets are "
    "25 % and 50 % of what the dearest level costs; rows are planned and scored by models that did not see them."
)
EXPERIMENT = Experiment("gains", measure, tabulate, Chapter("Gains on real logs", SETUP), parts=False)
