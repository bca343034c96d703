"""Estimated values of uniform levels on real randomised logs, compared with stratified means.

The value of a uniform level must equal the mean response at that level, taken within strata where levels were randomised
within strata. Karlan and List (2007) randomised match ratios for donors, Karlan and Zinman (2008) interest rates within risk
class and wave, Thornton (2008) cash within blocks of villages. There, intervals clustered by village must be wider than
intervals by person, since people of one village are not independent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from largesse.data import read_log, read_table
from largesse.errors import Problem, fail
from largesse.evaluation import crossfit_scores, estimate_each_level
from largesse.levels import Levels
from largesse.records import Array, Log, Progress
from largesse.worlds import read_thornton, thornton_levels
from largesse_lab.experiments.experiment_definition import table_experiment
from largesse_lab.nested_label_logs import find_data_folder
from largesse_lab.pages.markdown import format_table
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress

# Known before randomisation. Other randomised arms of the same mailing are left out.
LIST_FEATURES = ("hpa", "ltmedmra", "freq", "years", "mrm2", "dormant", "female", "couple", "red0", "cases", "pwhite")
ZINMAN_FEATURES = (
    *("risk", "wave", "dormancy", "trcount", "female", "married", "age", "edhi", "rural", "dependants", "grossincome"),
    *("itcscore", "appscore", "lastterm", "lastamount", "province"),
)


def measure(_request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per log, outcome and level: the estimated mean and the stratified mean."""
    folder = find_data_folder()
    if folder is None:
        hint = "set LARGESSE_DATA to the folder that holds karlan_list_2007.csv.gz"
        fail("experiment", Problem("the real data are missing", hint))
    records = []
    for i, (name, read) in enumerate(REAL_LOGS.items()):
        progress(name, i / len(REAL_LOGS))
        log, strata = read(folder)
        records += _measure_log(name, log, strata)
    return records


def _measure_log(name: str, log: Log, strata: Array) -> list[dict[str, Any]]:
    scores = crossfit_scores(log)
    rows = estimate_each_level(replace(scores, cluster=None))
    clusters = estimate_each_level(scores) if log.cluster is not None else rows
    return [
        {
            "log": name,
            "level": label,
            "estimate": value.estimate,
            "se": value.se,
            "reach": (value.high - value.low) / 2,
            "cluster_se": wide.se if log.cluster is not None else None,
            "cluster_reach": (wide.high - wide.low) / 2 if log.cluster is not None else None,
            "by_hand": compute_stratified_mean_response(log.response, log.level == k, strata),
        }
        for k, (label, (value, _), (wide, _)) in enumerate(zip(log.levels.labels, rows, clusters, strict=True))
    ]


def compute_stratified_mean_response(response: Array, selected: Array, strata: Array) -> float:
    """Return the stratified mean response of the selected rows, weighted by the strata's shares of all rows."""
    _, code = np.unique(strata, return_inverse=True)
    size, n_selected = np.bincount(code), np.bincount(code, weights=selected)
    sums = np.bincount(code, weights=selected * response)
    used = n_selected > 0
    return float(size[used] @ (sums[used] / n_selected[used]) / size[used].sum())


def _make_karlan_list_reader(outcome: str, *, on_redemption: bool | str = False) -> Callable[[Path], tuple[Log, Array]]:
    def read(folder: Path) -> tuple[Log, Array]:
        log = read_log(
            str(folder / "karlan_list_2007.csv.gz"),
            level="level",
            response=outcome,
            levels=Levels(costs=[0, 1, 2, 3], on_redemption=on_redemption),  # a match is paid on the donated amount
            propensity="propensity",
            features=LIST_FEATURES,
        )
        return log, np.zeros(len(log))

    return read


def _make_karlan_zinman_reader(outcome: str) -> Callable[[Path], tuple[Log, Array]]:
    def read(folder: Path) -> tuple[Log, Array]:
        table = read_table(str(folder / "karlan_zinman_2008.csv.gz"), what="log")
        levels = Levels(costs=[0, 1, 2, 3, 4])
        roles: dict[str, Any] = {"level": "level", "response": outcome, "propensity": "propensity"}
        return read_log(table, levels=levels, features=ZINMAN_FEATURES, **roles), np.asarray(table["stratum"])

    return read


def _read_thornton_log(_folder: Path) -> tuple[Log, Array]:
    table = read_thornton()
    roles: dict[str, Any] = {"level": "incentive", "response": "got", "cluster": "village"}
    log = read_log(table, levels=thornton_levels(), features=["block", "age", "distance"], **roles)
    return log, np.asarray(table["block"])


REAL_LOGS: dict[str, Callable[[Path], tuple[Log, Array]]] = {
    "Karlan–List, gave": _make_karlan_list_reader("out_gavedum"),
    "Karlan–List, amount": _make_karlan_list_reader("out_amountgive", on_redemption="per unit"),
    "Karlan–Zinman, applied": _make_karlan_zinman_reader("applied"),
    "Karlan–Zinman, took up": _make_karlan_zinman_reader("tookup"),
    "Thornton, got": _read_thornton_log,
}


def tabulate(records: Records) -> str:
    """Return a Markdown table of estimated level means and stratified level means."""
    body = []
    for row in records:
        z = (row["estimate"] - row["by_hand"]) / row["se"]
        clusters = f"{row['cluster_reach']:.5f}" if row["cluster_reach"] is not None else ""
        numbers = [f"{row['estimate']:.5f}", f"{row['by_hand']:.5f}", f"{z:+.2f}", f"{row['reach']:.5f}", clusters]
        body.append([row["log"], str(row["level"]), *numbers])
    head = ["log", "level", "estimate", "by hand", "difference / se", "95 % ±, rows", "95 % ±, clusters"]
    return format_table(head, body, text_columns=2)


REAL_LOGS_EXPERIMENT = table_experiment("real_logs", "Randomised real logs", measure, tabulate, parallel=False)
