"""Winner's curse in gains over the best mix of levels for all customers, on logs with identical curves.

Without heterogeneity every plan has zero gain.

The response is .1 + .3 · level / (K − 1) for everybody, and costs rise in proportion: at a budget, every plan and every mix are
worth the same. A mix that is chosen on the rows that judge it seems better by the noise of the level means, so gains seem
negative. Each log is studied as a run does, with a linear model and known propensities: the gain of the plan, of a simple rule, at
another budget of the slider and on average over all budgets, and the value of the mix. Costs are listed, or observed: the listed
ones times a random factor of mean one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from largesse.errors import refuse
from largesse.evaluation import interpolate_at_budget, make_study, summarise_study
from largesse.levels import Levels
from largesse.records import Estimate, Log, Progress
from largesse.response import Linear
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

LOWEST_RATE, RATE_RISE = 0.1, 0.3
BUDGET_OF_DEAREST, SLIDER_OF_DEAREST = 0.4, 0.37  # budgets, as shares of the dearest level's cost
COST_SPREAD = 0.5  # of the logarithms of observed costs
CURSE_LOGS = 300
CURSE_GAINS = {"plan": "gain of the plan", "rule": "of a rule", "slider": "on the slider", "area": "over all budgets"}


@dataclass(frozen=True)
class HomogeneousWorld:
    """Settings of a simulated log whose customers all have the same response curve."""

    levels: int
    rows: int
    observed: bool = False  # costs


FLAT_WORLDS = {
    "3 levels, 3,000 rows": HomogeneousWorld(3, 3000),
    "5 levels, 3,000 rows": HomogeneousWorld(5, 3000),
    "12 levels, 3,000 rows": HomogeneousWorld(12, 3000),
    "30 levels, 3,000 rows": HomogeneousWorld(30, 3000),
    "3 levels, 20,000 rows": HomogeneousWorld(3, 20_000),
    "5 levels, 20,000 rows": HomogeneousWorld(5, 20_000),
    "12 levels, 20,000 rows": HomogeneousWorld(12, 20_000),
    "30 levels, 20,000 rows": HomogeneousWorld(30, 20_000),
    "5 levels, 3,000 rows, observed costs": HomogeneousWorld(5, 3000, observed=True),
    "12 levels, 3,000 rows, observed costs": HomogeneousWorld(12, 3000, observed=True),
}


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per simulated log: estimated gains with intervals, whose true value is zero."""
    names = list(FLAT_WORLDS) if request.problems is None else request.problems
    refuse("experiment", find_unknown_name_problems("kind of log", names, list(FLAT_WORLDS)))
    logs = select_repeats_of_part(CURSE_LOGS if request.repeats is None else request.repeats, request.part)
    keys = [(name, log) for name in names for log in logs]
    return RecordCache(request.out, ("case", "log")).measure_each(keys, _measure_log, progress)


def _measure_log(name: str, seed: int) -> dict[str, Any]:
    world = FLAT_WORLDS[name]
    dearest = world.levels - 1
    study = make_study(draw_homogeneous_log(world, seed), Linear(seed=seed), BUDGET_OF_DEAREST * dearest, seed=seed)
    mix, rule = study.evaluation.references[0], study.safety.options[-1]
    gains = {
        "plan": mix.difference,
        "rule": rule.gain,
        "slider": interpolate_at_budget(summarise_study(study), SLIDER_OF_DEAREST * dearest).gain,
        "area": study.cost_curve.area,
    }
    true_mix = LOWEST_RATE + RATE_RISE * mix.spend.estimate / dearest
    return {
        "case": name,
        "log": seed,
        "mix": mix.value.estimate - true_mix,
        **{key: [gain.estimate, gain.low, gain.high] for key, gain in gains.items() if isinstance(gain, Estimate)},
    }


def draw_homogeneous_log(world: HomogeneousWorld, seed: int) -> Log:
    """Draw a log of customers who all have the same response curve, with uniformly random levels."""
    rng, K, n = np.random.default_rng(seed), world.levels, world.rows
    features = pa.table({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    level = rng.integers(0, K, n)
    response = (rng.random(n) < LOWEST_RATE + RATE_RISE * level / (K - 1)).astype(np.float64)
    propensity = np.full(n, 1 / K)
    if not world.observed:
        return Log(features, level, response, Levels(costs=list(range(K))), propensity=propensity)
    factor = np.exp(COST_SPREAD * rng.standard_normal(n) - COST_SPREAD**2 / 2)
    levels = Levels(doses=list(range(K)), observed=True)
    return Log(features, level, response, levels, propensity=propensity, paid=level * factor)


# -- the table ---------------------------------------------------------------------------------------------------------


def tabulate(records: Records) -> str:
    """Return a Markdown table of mean estimated gains and of intervals that exclude zero."""
    body = []
    for name in dict.fromkeys(record["case"] for record in records):
        logs = [record for record in records if record["case"] == name]
        gains = [_write_gain_shares([record[key] for record in logs if key in record]) for key in CURSE_GAINS]
        body.append([name, str(len(logs)), *gains, _write_mean([record["mix"] for record in logs])])
    head = (
        "Percentage points: mean (standard error). In brackets: share of 95 % intervals wholly below, above zero. True gains are "
        "zero.\n\n"
    )
    return head + format_table(["logs", "n", *CURSE_GAINS.values(), "error of the mix"], body)


def _write_gain_shares(gains: Sequence[Sequence[float]]) -> str:
    if not gains:
        return "–"
    estimate, low, high = np.array(gains, dtype=np.float64).T
    return f"{_write_mean(estimate)} [{np.mean(high < 0):.1%}, {np.mean(low > 0):.1%}]"


def _write_mean(values: Sequence[float]) -> str:
    spread = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{100 * np.mean(values):+.2f} ({100 * spread:.2f})"


CURSE_EXPERIMENT = table_experiment(
    "curse", "Winner's curse of the best uniform mix", measure, tabulate, one_thread=True
)
