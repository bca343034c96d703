"""Head to head: plans of the default and of other packages' methods on real randomised logs.

Levels were randomised and propensities are known. Every method gets the same rows, features and folds, and plans rows that it did not see,
through the same allocation under the same budget. All plans of a log are judged by the same doubly robust scores, whose outcome
model belongs to no method. A method that fails, or whose package is missing, gets a record with the reason.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any, Self

import numpy as np

from largesse.data import read_log, read_table
from largesse.errors import refuse
from largesse.evaluation import (
    crossfit_scores,
    estimate_gain_over_mix,
    estimate_policy_difference,
    estimate_policy_value_and_spend,
    measure_spend_by_price,
    plan_each_fold,
)
from largesse.levels import Levels
from largesse.records import Array, Estimate, Log, Progress, Scores
from largesse.response import Linear
from largesse.stats import limit_to_one_thread
from largesse_lab.experiments.experiment_definition import table_experiment
from largesse_lab.experiments.real_log_gains import GAIN_BUDGET_SHARES, GAIN_LOGS, average_dearest_cost, find_log_file
from largesse_lab.nested_classification import find_data_folder
from largesse_lab.pages.markdown import format_table
from largesse_lab.runner.experiment_request import Records, Request, find_unknown, ignore_progress, match_names
from largesse_lab.runner.record_cache import Key, RecordCache
from largesse_lab.runner.simple_models import ORACLE, find_invalid, list_known, make_competitor, match_models

HEAD_KEY = ("log", "repeat", "model", "share")
HEAD_MODELS = (
    *("auto", "sklearn S-learner", "sklearn T-learner", "lightgbm", "xgboost", "DR-learner", "bart"),
    *(
        "econml DRLearner",
        "econml LinearDRLearner",
        "econml CausalForestDML",
        "causalml X-learner",
        "causalml R-learner",
    ),
)
HEAD_SPLITS = 3  # into folds


# -- logs --------------------------------------------------------------------------------------------------------------


def _read_star(folder: Path | None) -> Log:
    """Read pupils of kindergarten; costs are a guess: an aide costs half as much as a small class."""
    roles: dict[str, Any] = {"level": "level", "response": "score", "propensity": "propensity"}
    features = ["gender", "ethnicity", "birth", "lunchk", "schoolk"]
    levels = Levels(names=["0", "1", "2"], costs=[0, 0.5, 1])
    return read_log(find_log_file(folder, "star_kindergarten"), levels=levels, features=features, **roles)


def _read_survey_pay(folder: Path | None) -> Log:
    """Read visits at doors; only those who answer are paid."""
    roles: dict[str, Any] = {"level": "level", "response": "answer", "propensity_strata": "stratum"}
    features = ["location", "voterin2010", "hour", "nosolsign"]
    levels = Levels(names=["0", "1", "2"], costs=[0, 10, 10], on_redemption=True)
    source = find_log_file(folder, "survey_pay_2011")
    return read_log(source, levels=levels, features=features, cluster="cluster", **roles)


def _read_new_haven(folder: Path | None) -> Log:
    """Read voters who were not telephoned; the number of mailings was drawn separately for canvassed voters."""
    import pyarrow.compute as pc

    table = read_table(find_log_file(folder, "new_haven_1998"), what="log")
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


# -- measuring ---------------------------------------------------------------------------------------------------------


class Contestant:
    """A model by its name, that can be copied and fitted to the other folds."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed = name, seed

    def get_params(self, **_: bool) -> dict[str, Any]:
        """Return the arguments, as scikit-learn's models do."""
        return {"name": self.name, "seed": self.seed}

    def fit(self, log: Log) -> Self:
        """Fit the model of that name."""
        model: Any = make_competitor(self.name, self.seed)
        self.model = model
        with limit_to_one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other packages warn of their own use of others
            self.model.fit(log)
        return self

    def predict(self, customers: Any) -> Array:
        """Return the curves (n, K)."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(self.model.predict(customers))


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per log, split into folds, model and budget."""
    logs = list(HEAD_LOGS) if request.problems is None else match_names(request.problems, HEAD_LOGS)
    models = match_models(HEAD_MODELS if request.models is None else request.models)
    known = [name for name in list_known() if name != ORACLE]
    refuse("experiment", find_unknown("log", logs, list(HEAD_LOGS)) + find_unknown("model", models, known))
    refuse("experiment", find_invalid(models))
    splits = range(HEAD_SPLITS if request.repeats is None else request.repeats)
    groups = [
        [(log, split, model, share) for model in models for share in GAIN_BUDGET_SHARES]
        for split in splits
        for log in logs
    ][request.part[0] :: request.part[1]]
    cache = RecordCache(request.out, HEAD_KEY)
    return cache.measure_groups(groups, lambda keys: _measure_log(keys, models[0]), progress)


def _measure_log(keys: Sequence[Key], first: str) -> Iterator[dict[str, Any]]:
    """Yield the records of the models that are missing; the first model is fitted again, as all are compared with it."""
    name, split = keys[0][:2]
    log = HEAD_LOGS[name](find_data_folder())
    judge = crossfit_scores(log, Linear(seed=split), seed=split)
    shared = {"log": name, "repeat": split, "rows": len(log), "clusters": log.clusters, "levels": len(log.levels)}
    plans: dict[float, Array] = {}
    for model in dict.fromkeys([first, *(key[2] for key in keys)]):
        shares = [key[3] for key in keys if key[2] == model]
        try:
            scores, seconds = _score(log, model, split)
            found = {share: _plan(scores, share * average_dearest_cost(judge)) for share in GAIN_BUDGET_SHARES}
        except Exception as error:
            if os.environ.get("LARGESSE_RAISE"):
                raise
            yield from (shared | {"model": model, "share": share, "failed": _describe(error)} for share in shares)
            continue
        plans = found if model == first else plans
        for share in shares:
            record = shared | {"model": model, "share": share, "seconds": round(seconds, 2)}
            yield (
                record | {"budget": share * average_dearest_cost(judge)} | _judge(judge, found[share], plans.get(share))
            )


def _score(log: Log, model: str, seed: int) -> tuple[Scores, float]:
    start = process_time()
    scores = crossfit_scores(log, Contestant(model, seed), seed=seed)
    if not np.isfinite(scores.curves).all():
        raise ValueError("predictions are not finite")
    return scores, process_time() - start


def _plan(scores: Scores, budget: float) -> Array:
    return plan_each_fold(scores, budget, measure_spend_by_price(scores)).levels


def _judge(judge: Scores, plan: Array, leader: Array | None) -> dict[str, Any]:
    value, spend = estimate_policy_value_and_spend(judge, plan)
    record = {"value": _list(value), "spend": _list(spend), "gain": _list(estimate_gain_over_mix(judge, plan))}
    if leader is not None:
        record["lead"] = _list(estimate_policy_difference(judge, leader, plan).value)
    return record


def _list(estimate: Estimate) -> list[float]:
    return [estimate.estimate, estimate.low, estimate.high]


def _describe(error: Exception) -> str:
    """Return the first line of an error, short enough for a table."""
    text = f"{type(error).__name__}: {error}".splitlines()
    return " ".join(text)[:160].replace("|", "/")


# -- tables ------------------------------------------------------------------------------------------------------------


def tabulate(records: Records) -> str:
    """Return a table of all methods, one for each log, and the cases in which the first method is behind."""
    if not records:
        return ""
    models, logs = (list(dict.fromkeys(record[field] for record in records)) for field in ("model", "log"))
    first, cells = models[0], _average(records)
    parts = [
        f"Plans of `{first}` minus those of each method, over all logs and budgets.",
        _write_standing(cells, models),
    ]
    for log in logs:
        rows = [cell for cell in cells if cell["log"] == log]
        clusters = "" if rows[0]["clusters"] is None else f" in {rows[0]['clusters']:,} clusters"
        parts += [
            f"**{log}**: {rows[0]['rows']:,} rows{clusters}, {rows[0]['levels']} levels.",
            _write_log(rows, first),
        ]
    behind = [cell for cell in cells if cell.get("lead") and cell["lead"][0] < 0]
    clearly = [cell for cell in behind if cell["lead"][2] < 0]
    lost = ", ".join(f"{cell['log']} at {cell['share']:.0%} ({cell['model']})" for cell in clearly) or "nowhere"
    parts.append(
        f"`{first}` is behind beyond the interval: {lost}. It is behind by the estimate in {len(behind)} cases."
    )
    return "\n\n".join(parts)


def _average(records: Records) -> Records:
    """Return one cell for each log, model and budget: means over splits, of estimates and of ends of intervals."""
    groups: dict[tuple[Any, ...], Records] = {}
    for record in records:
        groups.setdefault((record["log"], record["model"], record["share"]), []).append(record)
    cells = []
    for rows in groups.values():
        good = [row for row in rows if "failed" not in row]
        fields = [
            field for field in ("budget", "value", "spend", "gain", "lead", "seconds") if good and field in good[0]
        ]
        means = {field: np.mean([row[field] for row in good if field in row], axis=0).tolist() for field in fields}
        cells.append((rows if len(good) < len(rows) else good)[-1] | means if good else rows[0])
    return cells


def _write_standing(cells: Records, models: Sequence[str]) -> str:
    body = []
    for model in models[1:]:
        mine = [cell for cell in cells if cell["model"] == model]
        leads = [cell["lead"] for cell in mine if "lead" in cell]
        ahead, behind = sum(low > 0 for _, low, _ in leads), sum(high < 0 for *_, high in leads)
        failed = sum("lead" not in cell for cell in mine)
        body.append(
            [model, str(sum(lead[0] > 0 for lead in leads)), str(ahead), str(behind), str(len(leads)), str(failed)]
        )
    head = ["method", "ahead", "ahead beyond the interval", "behind beyond it", "compared", "failed"]
    return format_table(head, body)


def _write_log(cells: Records, first: str) -> str:
    body = []
    for cell in cells:
        if "value" not in cell:
            body.append([cell["model"], f"{cell['share']:.0%}", cell.get("failed", ""), "", "", "", ""])
            continue
        lead = "" if cell["model"] == first or "lead" not in cell else _write(cell["lead"], signed=True)
        numbers = [_write(cell["value"]), f"{cell['spend'][0]:.3g}", _write(cell["gain"], signed=True), lead]
        body.append([cell["model"], f"{cell['share']:.0%}", *numbers, f"{cell['seconds']:.3g}"])
    return format_table(["method", "budget", "value", "spend", "gain over the mix", f"{first} − method", "s"], body)


def _write(values: Sequence[float], *, signed: bool = False) -> str:
    estimate, low, high = (f"{value:{'+.2g' if signed else '.3g'}}".replace("-", "−") for value in values)
    return f"{estimate} ({low} to {high})"


HEAD_SETUP = (
    "Plans of the default and of methods of other packages on randomised logs with known propensities: same rows, features, folds, "
    "allocation and budgets (25 % and 50 % of the dearest level's cost). Rows are planned by models that did not see them, and all plans "
    "are judged by the same doubly robust scores. Intervals are 95 %, and averaged over splits into folds."
)
HEAD_EXPERIMENT = table_experiment("head_to_head", "Head to head", measure, tabulate, setup=HEAD_SETUP)
