"""Do 95 % intervals hold on hard logs? Few buyers of amounts of any size, row weights, uneven propensities, households.

A fixed policy is judged on many logs of each case, with given propensities, by every estimator, by the bootstrap, on costs paid
on redemption (`spend`), against the cheapest level for all (`difference`) and per unit spent (`ratio`). Curves are a straight
line per fold, or the product's own model. A cell is the share of logs whose interval contains the truth, among those that have
one: with fewer than ten buyers behind an estimate there is none, nor of a ratio with fewer than twenty clusters. `width` is the
median width of `dr` over that of a t interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from largesse.errors import refuse
from largesse.evaluation import (
    ESTIMATORS,
    bootstrap_values,
    crossfit,
    estimate_difference,
    estimate_ratio,
    estimate_value,
    join_intervals,
    score_policy,
    score_rows,
)
from largesse.levels import Levels
from largesse.records import Array, Estimate, HeldOut, Log, Progress, Propensities, Scores
from largesse.stats import mean_estimate
from largesse_lab.experiments.base import Experiment
from largesse_lab.page.sections import Chapter
from largesse_lab.page.tables import write_table
from largesse_lab.runner.cache import Kept
from largesse_lab.runner.request import Records, Request, check_part, find_unknown, ignore_progress

LEVELS = Levels(costs=(0.0, 1.0, 2.0), on_redemption=True)
FOLDS = 5
MANY = 400_000  # rows or households from which the truth is taken
LARGEST = 30  # rows of a household
RISE = 0.3  # of amounts, per level


@dataclass(frozen=True)
class Case:
    """One kind of log."""

    rows: int = 0
    spread: float = 0.0  # of the logarithms of amounts; 0: responses are yes or no
    buyers: float = 0.05
    houses: int = 0
    by_house: bool = False  # whole households get the same level
    informative: bool = False  # large households buy more often
    uneven: bool = False  # propensities from 0.1 to 0.7
    weighted: bool = False
    own: bool = False  # the product's own curves
    less: float = 1.0  # factor of the rate of yes


CASES = {
    "yes/no, 500 rows": Case(500),
    "yes/no, 500 rows, own curves": Case(500, own=True),
    "yes/no, 1,000 rows, uneven propensities": Case(1000, uneven=True),
    "yes/no, 60 households": Case(houses=60),
    "yes/no, 60 households, level by household": Case(houses=60, by_house=True),
    "yes/no, 12 households": Case(houses=12),
    "amounts (σ 0.2), 1,000 rows, all buy": Case(1000, 0.2, 1.0),
    "amounts (σ 1.5), 300 rows": Case(300, 1.5),
    "amounts (σ 1.5), 1,000 rows": Case(1000, 1.5),
    "amounts (σ 1.5), 1,000 rows, own curves": Case(1000, 1.5, own=True),
    "amounts (σ 1.5), 1,000 rows, uneven propensities": Case(1000, 1.5, uneven=True),
    "amounts (σ 1.5), 1,000 rows, row weights": Case(1000, 1.5, weighted=True),
    "amounts (σ 1.5), 80 households, informative": Case(houses=80, spread=1.5, informative=True),
    "amounts (σ 1.5), 1,000 rows, half buy": Case(1000, 1.5, 0.5),
    "amounts (σ 1.5), 5,000 rows": Case(5000, 1.5),
    "amounts (σ 1), 1,000 rows": Case(1000, 1.0),
    "yes/no, 300 rows, few yes": Case(300, less=0.2),
    "yes/no, 600 rows, few yes, uneven propensities": Case(600, less=0.2, uneven=True),
    "yes/no, 2,000 rows, few yes, uneven propensities": Case(2000, less=0.2, uneven=True),
    "yes/no, 600 rows, row weights": Case(600, weighted=True),
}


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per case and log: for each estimate whether the truth lies in, above or below its interval."""
    names = list(CASES) if request.problems is None else request.problems
    refuse("experiment", find_unknown("case", names, list(CASES)) + check_part(request.part))
    logs = range(400 if request.repeats is None else request.repeats)[request.part[0] :: request.part[1]]
    todo = [(name, log) for name in names for log in logs]
    kept = Kept(request.out, ("case", "log"))
    kept.complete([[key] for key in todo], lambda keys: [_measure_log(*keys[0])], progress)
    return kept.take(todo)


def _measure_log(name: str, seed: int) -> dict[str, Any]:
    case, rng = CASES[name], np.random.default_rng([seed, list(CASES).index(name)])
    world = _draw_world(case, rng, case.houses or case.rows)
    log = _draw_log(case, world, rng)
    scores = _score(case, log, world.feature, seed)
    policy, truth = choose_levels(world.feature), _find_truth(case)
    cheapest = np.zeros(len(policy), dtype=np.int64)
    found = {name: estimate_value(scores, policy, name)[0] for name in ESTIMATORS}
    found["bootstrap"] = join_intervals(bootstrap_values(scores, policy, seed=seed)[0], found["dr"])
    found["spend"] = estimate_value(scores, policy)[1]
    found["difference"] = estimate_difference(scores, policy, cheapest).value
    found["ratio"] = estimate_ratio(scores, *score_policy(scores, policy))
    plain = mean_estimate(scores.gamma[np.arange(len(policy)), policy], scores.weight, scores.cluster)
    found["t"] = plain
    places = {key: _place(estimate, truth[key if key in truth else "value"]) for key, estimate in found.items()}
    width = (found["dr"].high - found["dr"].low) / (plain.high - plain.low)
    return {"case": name, "log": seed, "places": places, "width": None if math.isnan(width) else width}


def _place(found: Estimate, truth: float) -> str:
    """Say where the truth lies: in, above or below the interval; "none" without an interval."""
    if not (math.isfinite(found.low) and math.isfinite(found.high)):
        return "none"
    return "below" if truth < found.low else "above" if truth > found.high else "in"


def choose_levels(feature: Array) -> Array:
    """Return the levels (n,) of the policy that is judged."""
    return np.where(feature > 0.3, 2, 1)


# -- worlds ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class World:
    """Rows before a level is drawn."""

    feature: Array  # (n,)
    chance: Array  # (n,) of a response at the cheapest level
    house: Array | None  # (n,)

    def mean(self, case: Case, level: Array) -> Array:
        """Return the expected response (n,) at levels (n,)."""
        if case.spread == 0:
            return case.less * (self.chance + 0.1 * level)
        return self.chance * (1 + RISE * level) * math.exp(case.spread**2 / 2)


def _draw_world(case: Case, rng: np.random.Generator, units: int) -> World:
    if not case.houses:
        feature = rng.random(units)
        return World(feature, 0.2 + 0.2 * feature if case.spread == 0 else np.full(units, case.buyers), None)
    size = rng.integers(1, LARGEST + 1, units)
    house = np.repeat(np.arange(units), size)
    feature = (rng.random(len(house)) + rng.random(units)[house]) / 2
    if case.spread == 0:
        return World(feature, 0.1 + 0.3 * feature + 0.2 * rng.random(units)[house], house)
    more = (1 + size[house] / 15) / 2 if case.informative else 1.0
    return World(feature, case.buyers * more * np.ones(len(house)), house)


def _draw_log(case: Case, world: World, rng: np.random.Generator) -> Log:
    import pyarrow as pa

    n, x = len(world.feature), world.feature
    shares = np.full((n, 3), 1 / 3)
    if case.uneven:
        shares = np.column_stack([0.1 + 0.6 * x, np.full(n, 0.2), 0.7 - 0.6 * x])
    if case.by_house and world.house is not None:
        level = rng.integers(0, 3, world.house.max() + 1)[world.house]
    else:
        level = np.minimum((rng.random(n)[:, None] > np.cumsum(shares, axis=1)).sum(axis=1), 2)
    if case.spread == 0:
        response = (rng.random(n) < world.mean(case, level)).astype(np.float64)
    else:
        amount = np.exp(case.spread * rng.standard_normal(n)) * (1 + RISE * level)
        response = (rng.random(n) < world.chance) * amount
    weight = np.exp(0.8 * rng.standard_normal(n)) if case.weighted else None
    own = shares[np.arange(n), level]
    return Log(pa.table({"x": x}), level, response, LEVELS, propensity=own, cluster=world.house, weight=weight)


@lru_cache(maxsize=len(CASES))
def _find_truth(case: Case) -> dict[str, float]:
    """Return what is estimated, from expected responses of many rows."""
    world = _draw_world(case, np.random.default_rng(0), MANY // (LARGEST // 2) if case.houses else MANY)
    policy = choose_levels(world.feature)
    brought, costs = world.mean(case, policy), np.asarray(LEVELS.common_costs)
    value, spend = float(brought.mean()), float((costs[policy] * brought).mean())
    least = float(world.mean(case, np.zeros(len(policy))).mean())
    return {"value": value, "spend": spend, "difference": value - least, "ratio": value / spend}


# -- curves ------------------------------------------------------------------------------------------------------------


def _score(case: Case, log: Log, feature: Array, seed: int) -> Scores:
    if case.own:
        return crossfit(log, folds=FOLDS, seed=seed)
    assert log.propensity is not None
    unit = np.arange(len(log)) if log.cluster is None else log.cluster
    fold = np.random.default_rng(seed).integers(0, FOLDS, int(unit.max()) + 1)[unit]
    held = HeldOut(_fit_lines(log, feature, fold), fold)
    return score_rows(log, held, Propensities(log.propensity, "given"))


def _fit_lines(log: Log, feature: Array, fold: Array) -> Array:
    """Return the curves (n, K) of straight lines in feature and level, each fold by the other folds."""
    curves = np.empty((len(log), 3))
    design = np.column_stack([np.ones(len(log)), feature, log.level])
    for f in range(FOLDS):
        train, test = fold != f, fold == f
        rows = design[train]
        line = np.linalg.solve(rows.T @ rows + np.diag([1e-6, 1, 1]), rows.T @ log.response[train])
        curves[test] = (design[test, :2] @ line[:2])[:, None] + line[2] * np.arange(3)
    return curves


# -- the table ---------------------------------------------------------------------------------------------------------


def tabulate(records: Records) -> str:
    """Return the coverage of every interval in every case as Markdown, misses above the interval in the last column."""
    shown = [*ESTIMATORS, "bootstrap", "spend", "difference", "ratio", "t"]
    body = []
    for name in dict.fromkeys(record["case"] for record in records):
        mine = [record for record in records if record["case"] == name]
        widths = [record["width"] for record in mine if record["width"] is not None]
        cells = [
            _write_coverage([record["places"][key] for record in mine if key in record["places"]]) for key in shown
        ]
        none = np.mean([record["places"]["dr"] == "none" for record in mine])
        body.append([name, *cells, f"{np.median(widths):.2f}" if widths else "–", f"{none:.0%}"])
    logs = len({record["log"] for record in records})
    head = f"{logs} logs of each case; nominal coverage .95; `t` is a plain t interval of `dr`.\n\n"
    return head + write_table(["logs", *shown, "width", "without"], body) + "\n"


def _write_coverage(places: list[str]) -> str:
    given = [place for place in places if place != "none"]
    return (
        f"{np.mean([place == 'in' for place in given]):.3f}".lstrip("0")
        if len(given) > 0.1 * len(places) > 0
        else "none"
    )


EXPERIMENT = Experiment("hard_logs", measure, tabulate, Chapter("Coverage of intervals on hard logs"))
