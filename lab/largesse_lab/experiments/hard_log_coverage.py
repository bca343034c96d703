"""Coverage of 95 % intervals on hard logs: rare amounts, row weights, uneven propensities, households.

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
    bootstrap_value_and_spend,
    compute_scores,
    crossfit_scores,
    estimate_policy_difference,
    estimate_policy_value_and_spend,
    estimate_ratio,
    join_intervals,
    measure_policy_influence,
)
from largesse.levels import Levels
from largesse.records import Array, Estimate, HeldOutPredictions, Log, Progress, Propensities, Scores
from largesse.stats import t_estimate
from largesse_lab.experiments.experiment_definition import table_experiment
from largesse_lab.pages.markdown import format_table
from largesse_lab.runner.experiment_request import (
    Records,
    Request,
    find_unknown_name_problems,
    ignore_progress,
    select_repeats_of_part,
)
from largesse_lab.runner.record_cache import RecordCache

HARD_LOG_LEVELS = Levels(costs=(0.0, 1.0, 2.0), on_redemption=True)
HARD_LOG_FOLDS = 5
TRUTH_ROWS = 400_000
MAX_HOUSEHOLD_ROWS = 30
AMOUNT_RISE = 0.3  # per level


@dataclass(frozen=True)
class HardLogCase:
    """Settings of one kind of simulated log."""

    rows: int = 0
    spread: float = 0.0  # of the logarithms of amounts; 0: responses are yes or no
    buyers: float = 0.05
    households: int = 0
    by_household: bool = False  # whole households get the same level
    informative: bool = False  # large households buy more often
    uneven: bool = False  # propensities from 0.1 to 0.7
    weighted: bool = False
    default_model: bool = False  # curves of the product's default model
    yes_factor: float = 1.0  # of the rate of yes


HARD_LOG_CASES = {
    "yes/no, 500 rows": HardLogCase(500),
    "yes/no, 500 rows, own curves": HardLogCase(500, default_model=True),
    "yes/no, 1,000 rows, uneven propensities": HardLogCase(1000, uneven=True),
    "yes/no, 60 households": HardLogCase(households=60),
    "yes/no, 60 households, level by household": HardLogCase(households=60, by_household=True),
    "yes/no, 12 households": HardLogCase(households=12),
    "amounts (σ 0.2), 1,000 rows, all buy": HardLogCase(1000, 0.2, 1.0),
    "amounts (σ 1.5), 300 rows": HardLogCase(300, 1.5),
    "amounts (σ 1.5), 1,000 rows": HardLogCase(1000, 1.5),
    "amounts (σ 1.5), 1,000 rows, own curves": HardLogCase(1000, 1.5, default_model=True),
    "amounts (σ 1.5), 1,000 rows, uneven propensities": HardLogCase(1000, 1.5, uneven=True),
    "amounts (σ 1.5), 1,000 rows, row weights": HardLogCase(1000, 1.5, weighted=True),
    "amounts (σ 1.5), 80 households, informative": HardLogCase(households=80, spread=1.5, informative=True),
    "amounts (σ 1.5), 1,000 rows, half buy": HardLogCase(1000, 1.5, 0.5),
    "amounts (σ 1.5), 5,000 rows": HardLogCase(5000, 1.5),
    "amounts (σ 1), 1,000 rows": HardLogCase(1000, 1.0),
    "yes/no, 300 rows, few yes": HardLogCase(300, yes_factor=0.2),
    "yes/no, 600 rows, few yes, uneven propensities": HardLogCase(600, yes_factor=0.2, uneven=True),
    "yes/no, 2,000 rows, few yes, uneven propensities": HardLogCase(2000, yes_factor=0.2, uneven=True),
    "yes/no, 600 rows, row weights": HardLogCase(600, weighted=True),
}


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per case and log: the position of the truth relative to each estimate's interval."""
    names = list(HARD_LOG_CASES) if request.problems is None else request.problems
    refuse("experiment", find_unknown_name_problems("case", names, list(HARD_LOG_CASES)))
    logs = select_repeats_of_part(400 if request.repeats is None else request.repeats, request.part)
    keys = [(name, log) for name in names for log in logs]
    return RecordCache(request.out, ("case", "log")).measure_each(keys, _measure_log, progress)


def _measure_log(name: str, seed: int) -> dict[str, Any]:
    case, rng = HARD_LOG_CASES[name], np.random.default_rng([seed, list(HARD_LOG_CASES).index(name)])
    rows = _draw_rows(case, rng, case.households or case.rows)
    log = _draw_log(case, rows, rng)
    scores = _score_log(case, log, rows.feature, seed)
    policy, truth = choose_policy_levels(rows.feature), _compute_true_values(case)
    cheapest = np.zeros(len(policy), dtype=np.int64)
    estimates = {name: estimate_policy_value_and_spend(scores, policy, name)[0] for name in ESTIMATORS}
    estimates["bootstrap"] = join_intervals(bootstrap_value_and_spend(scores, policy, seed=seed)[0], estimates["dr"])
    estimates["spend"] = estimate_policy_value_and_spend(scores, policy)[1]
    estimates["difference"] = estimate_policy_difference(scores, policy, cheapest).value
    estimates["ratio"] = estimate_ratio(scores, *measure_policy_influence(scores, policy))
    plain = t_estimate(scores.gamma[np.arange(len(policy)), policy], scores.weight, scores.cluster)
    estimates["t"] = plain
    places = {
        key: _locate_truth(estimate, truth[key if key in truth else "value"]) for key, estimate in estimates.items()
    }
    width = (estimates["dr"].high - estimates["dr"].low) / (plain.high - plain.low)
    return {"case": name, "log": seed, "places": places, "width": None if math.isnan(width) else width}


def _locate_truth(estimate: Estimate, truth: float) -> str:
    """Return the truth's position relative to an interval: "in", "above", "below", or "none" without an interval."""
    if not (math.isfinite(estimate.low) and math.isfinite(estimate.high)):
        return "none"
    return "below" if truth < estimate.low else "above" if truth > estimate.high else "in"


def choose_policy_levels(feature: Array) -> Array:
    """Return the levels (n,) of the evaluated policy from a feature (n,)."""
    return np.where(feature > 0.3, 2, 1)


# -- logs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RowsWithoutLevel:
    """Simulated customers before a level is assigned."""

    feature: Array  # (n,)
    chance: Array  # (n,) of a response at the cheapest level
    household: Array | None  # (n,)

    def expect_responses(self, case: HardLogCase, level: Array) -> Array:
        """Return the true expected responses (n,) at levels (n,)."""
        if case.spread == 0:
            return case.yes_factor * (self.chance + 0.1 * level)
        return self.chance * (1 + AMOUNT_RISE * level) * math.exp(case.spread**2 / 2)


def _draw_rows(case: HardLogCase, rng: np.random.Generator, n: int) -> RowsWithoutLevel:
    """Draw n customers, or the customers of n households."""
    if not case.households:
        feature = rng.random(n)
        chance = 0.2 + 0.2 * feature if case.spread == 0 else np.full(n, case.buyers)
        return RowsWithoutLevel(feature, chance, None)
    size = rng.integers(1, MAX_HOUSEHOLD_ROWS + 1, n)
    household = np.repeat(np.arange(n), size)
    feature = (rng.random(len(household)) + rng.random(n)[household]) / 2
    if case.spread == 0:
        return RowsWithoutLevel(feature, 0.1 + 0.3 * feature + 0.2 * rng.random(n)[household], household)
    factor = (1 + size[household] / 15) / 2 if case.informative else 1.0
    return RowsWithoutLevel(feature, case.buyers * factor * np.ones(len(household)), household)


def _draw_log(case: HardLogCase, rows: RowsWithoutLevel, rng: np.random.Generator) -> Log:
    import pyarrow as pa

    n, x = len(rows.feature), rows.feature
    shares = np.full((n, 3), 1 / 3)
    if case.uneven:
        shares = np.column_stack([0.1 + 0.6 * x, np.full(n, 0.2), 0.7 - 0.6 * x])
    if case.by_household and rows.household is not None:
        level = rng.integers(0, 3, rows.household.max() + 1)[rows.household]
    else:
        level = np.minimum((rng.random(n)[:, None] > np.cumsum(shares, axis=1)).sum(axis=1), 2)
    if case.spread == 0:
        response = (rng.random(n) < rows.expect_responses(case, level)).astype(np.float64)
    else:
        amount = np.exp(case.spread * rng.standard_normal(n)) * (1 + AMOUNT_RISE * level)
        response = (rng.random(n) < rows.chance) * amount
    weight = np.exp(0.8 * rng.standard_normal(n)) if case.weighted else None
    propensity = shares[np.arange(n), level]
    features = pa.table({"x": x})
    return Log(features, level, response, HARD_LOG_LEVELS, propensity=propensity, cluster=rows.household, weight=weight)


@lru_cache(maxsize=len(HARD_LOG_CASES))
def _compute_true_values(case: HardLogCase) -> dict[str, float]:
    """Return the true value, spend, difference and ratio of the policy by simulation."""
    n = TRUTH_ROWS // (MAX_HOUSEHOLD_ROWS // 2) if case.households else TRUTH_ROWS
    rows = _draw_rows(case, np.random.default_rng(0), n)
    policy = choose_policy_levels(rows.feature)
    expected, costs = rows.expect_responses(case, policy), np.asarray(HARD_LOG_LEVELS.common_costs)
    value, spend = float(expected.mean()), float((costs[policy] * expected).mean())
    cheapest_value = float(rows.expect_responses(case, np.zeros(len(policy))).mean())
    return {"value": value, "spend": spend, "difference": value - cheapest_value, "ratio": value / spend}


# -- curves ------------------------------------------------------------------------------------------------------------


def _score_log(case: HardLogCase, log: Log, feature: Array, seed: int) -> Scores:
    if case.default_model:
        return crossfit_scores(log, folds=HARD_LOG_FOLDS, seed=seed)
    assert log.propensity is not None
    unit = np.arange(len(log)) if log.cluster is None else log.cluster
    fold = np.random.default_rng(seed).integers(0, HARD_LOG_FOLDS, int(unit.max()) + 1)[unit]
    held_out = HeldOutPredictions(_fit_out_of_fold_lines(log, feature, fold), fold)
    return compute_scores(log, held_out, Propensities(log.propensity, "given"))


def _fit_out_of_fold_lines(log: Log, feature: Array, fold: Array) -> Array:
    """Return out-of-fold response curves (n, K) of a linear regression on feature and level."""
    curves = np.empty((len(log), 3))
    design = np.column_stack([np.ones(len(log)), feature, log.level])
    for f in range(HARD_LOG_FOLDS):
        train, test = fold != f, fold == f
        rows = design[train]
        line = np.linalg.solve(rows.T @ rows + np.diag([1e-6, 1, 1]), rows.T @ log.response[train])
        curves[test] = (design[test, :2] @ line[:2])[:, None] + line[2] * np.arange(3)
    return curves


# -- the table ---------------------------------------------------------------------------------------------------------


def tabulate(records: Records) -> str:
    """Return a Markdown table of interval coverage by case and estimator."""
    columns = [*ESTIMATORS, "bootstrap", "spend", "difference", "ratio", "t"]
    body = []
    for name in dict.fromkeys(record["case"] for record in records):
        logs = [record for record in records if record["case"] == name]
        widths = [record["width"] for record in logs if record["width"] is not None]
        cells = [
            _write_coverage([record["places"][key] for record in logs if key in record["places"]]) for key in columns
        ]
        without = np.mean([record["places"]["dr"] == "none" for record in logs])
        body.append([name, *cells, f"{np.median(widths):.2f}" if widths else "–", f"{without:.0%}"])
    n_logs = len({record["log"] for record in records})
    head = f"{n_logs} logs of each case; nominal coverage .95; `t` is a plain t interval of `dr`.\n\n"
    return head + format_table(["logs", *columns, "width", "without"], body)


def _write_coverage(places: list[str]) -> str:
    intervals = [place for place in places if place != "none"]
    if len(intervals) <= 0.1 * len(places):
        return "none"
    return f"{np.mean([place == 'in' for place in intervals]):.3f}".lstrip("0")


HARD_LOGS_EXPERIMENT = table_experiment("hard_logs", "Coverage of intervals on hard logs", measure, tabulate)
