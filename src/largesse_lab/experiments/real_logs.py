"""Where the answer can be computed by hand: randomised real logs, every level given to everybody.

The value of a uniform level must equal the mean response at that level, taken within strata where the lots were drawn
within strata. Karlan and List (2007) drew match ratios for donors, Karlan and Zinman (2008) interest rates within risk
class and wave, Thornton (2008) cash within blocks of villages; there, intervals over villages must be wider than over
people, who are no independent witnesses of their village.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from largesse.data import read_log, read_table
from largesse.errors import InputError, Problem
from largesse.evaluation import crossfit, estimate_uniform
from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.worlds import read_thornton, thornton_levels
from largesse_lab.nested.folder import data_folder as data_folder

# Known before the draw. Other randomised arms of the same mailing are no features.
LIST_FEATURES = ("hpa", "ltmedmra", "freq", "years", "mrm2", "dormant", "female", "couple", "red0", "cases", "pwhite")
ZINMAN_FEATURES = (
    *("risk", "wave", "dormancy", "trcount", "female", "married", "age", "edhi", "rural", "dependants", "grossincome"),
    *("itcscore", "appscore", "lastterm", "lastamount", "province"),
)


def real(tell: Callable[[str, float], None] = lambda _what, _done: None) -> list[dict[str, Any]]:
    """Return one record per log, outcome and level: the estimate, its standard errors, and the answer by hand."""
    folder = data_folder()
    if folder is None:
        hint = "set LARGESSE_DATA to the folder that holds karlan_list_2007.csv.gz"
        raise InputError("experiment", [Problem("the real data are not here", hint)])
    found = []
    for done, (name, make) in enumerate(LOGS.items()):
        tell(name, done / len(LOGS))
        log, strata = make(folder)
        found += _compared(name, log, strata)
    return found


def _compared(name: str, log: Log, strata: Array) -> list[dict[str, Any]]:
    scores = crossfit(log)
    rows = estimate_uniform(replace(scores, cluster=None))
    clusters = estimate_uniform(scores) if log.cluster is not None else rows
    return [
        {
            "log": name,
            "level": label,
            "estimate": value.estimate,
            "se": value.se,
            "reach": (value.high - value.low) / 2,
            "cluster_se": wide.se if log.cluster is not None else None,
            "cluster_reach": (wide.high - wide.low) / 2 if log.cluster is not None else None,
            "by_hand": stratified_mean(log.response, log.level == k, strata),
        }
        for k, (label, (value, _), (wide, _)) in enumerate(zip(log.levels.labels, rows, clusters, strict=True))
    ]


def stratified_mean(response: Array, own: Array, strata: Array) -> float:
    """Return the mean response of the rows marked `own`, each stratum counted by its share of all rows."""
    _, code = np.unique(strata, return_inverse=True)
    size, inside = np.bincount(code), np.bincount(code, weights=own)
    sums = np.bincount(code, weights=own * response)
    used = inside > 0
    return float(size[used] @ (sums[used] / inside[used]) / size[used].sum())


def _karlan_list(outcome: str, *, on_redemption: bool = False) -> Callable[[Path], tuple[Log, Array]]:
    def make(folder: Path) -> tuple[Log, Array]:
        log = read_log(
            str(folder / "karlan_list_2007.csv.gz"),
            level="level",
            response=outcome,
            levels=Levels(costs=[0, 1, 2, 3], on_redemption=on_redemption),  # a match is paid on what is given
            propensity="propensity",
            features=LIST_FEATURES,
        )
        return log, np.zeros(len(log))

    return make


def _karlan_zinman(outcome: str) -> Callable[[Path], tuple[Log, Array]]:
    def make(folder: Path) -> tuple[Log, Array]:
        table = read_table(str(folder / "karlan_zinman_2008.csv.gz"), what="log")
        levels = Levels(costs=[0, 1, 2, 3, 4])
        roles = {"level": "level", "response": outcome, "propensity": "propensity"}
        return read_log(table, levels=levels, features=ZINMAN_FEATURES, **roles), np.asarray(table["stratum"])

    return make


def _thornton(_folder: Path) -> tuple[Log, Array]:
    table = read_thornton()
    roles = {"level": "incentive", "response": "got", "cluster": "village"}
    log = read_log(table, levels=thornton_levels(), features=["block", "age", "distance"], **roles)
    return log, np.asarray(table["block"])


LOGS: dict[str, Callable[[Path], tuple[Log, Array]]] = {
    "Karlan–List, gave": _karlan_list("out_gavedum"),
    "Karlan–List, amount": _karlan_list("out_amountgive", on_redemption=True),
    "Karlan–Zinman, applied": _karlan_zinman("applied"),
    "Karlan–Zinman, took up": _karlan_zinman("tookup"),
    "Thornton, got": _thornton,
}


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return estimates beside the answers by hand as Markdown."""
    lines = [
        "| log | level | estimate | by hand | difference / se | 95 % ±, rows | 95 % ±, clusters |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in records:
        apart = (row["estimate"] - row["by_hand"]) / row["se"]
        wide = f"{row['cluster_reach']:.5f}" if row["cluster_reach"] is not None else ""
        lines.append(
            f"| {row['log']} | {row['level']} | {row['estimate']:.5f} | {row['by_hand']:.5f} | {apart:+.2f} "
            f"| {row['reach']:.5f} | {wide} |"
        )
    return "\n".join(lines) + "\n"
